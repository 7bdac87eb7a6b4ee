//! The network behind the interface, and the calls to it from the server's tasks.
use crate::Problem;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use weir_routing::request::{NetworkReply, NetworkRequest};

/// Most requests that wait for the network at a time.
pub(crate) const MAX_WAITING: usize = 8;
/// Longest wait for the network's answer, and for a place among the waiting requests.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// A network that carries out requests.
pub trait NetworkBackend: Send + Sync {
    /// Carries out a request. May block; the server calls it on threads for that.
    ///
    /// # Errors
    /// Says why there is no answer, for example that the controller stops. What is wrong with the request itself is a
    /// [`NetworkReply::Error`].
    fn request(&self, request: NetworkRequest) -> Result<NetworkReply, String>;

    /// Keeps what is to be woken with each new event, from now on. The server calls it once, when it starts.
    fn wake_on_events(&self, waker: EventWaker);
}

/// Wakes the server's listeners to events.
#[derive(Debug, Clone)]
pub struct EventWaker(Arc<watch::Sender<u64>>);

impl EventWaker {
    /// Returns a waker, and what hears of it.
    pub(crate) fn new() -> (EventWaker, watch::Receiver<u64>) {
        let (sender, receiver) = watch::channel(0);
        (EventWaker(Arc::new(sender)), receiver)
    }

    /// Wakes listeners: there is an event with this number, which can be asked for. Does not block, on any thread.
    pub fn wake(&self, newest: u64) {
        self.0.send_if_modified(|known| {
            let is_news = newest > *known;
            *known = newest.max(*known);
            is_news
        });
    }
}

/// The backend as the server's tasks call it: at most [`MAX_WAITING`] at a time, each for a limited time.
#[derive(Clone)]
pub(crate) struct BackendCaller {
    backend: Arc<dyn NetworkBackend>,
    places: Arc<Semaphore>,
}

impl BackendCaller {
    pub(crate) fn new(backend: Arc<dyn NetworkBackend>) -> BackendCaller {
        BackendCaller { backend, places: Arc::new(Semaphore::new(MAX_WAITING)) }
    }

    /// Returns the answer to a request. An error of the network becomes a problem with a fitting status.
    pub(crate) async fn ask(&self, request: NetworkRequest) -> Result<NetworkReply, Problem> {
        let late = |_| Problem::unavailable(format!("the network did not answer within {} s", ANSWER_TIME.as_secs()));
        let answered = tokio::time::timeout(ANSWER_TIME, self.call(request)).await.map_err(late)?;
        match answered.map_err(Problem::unavailable)? {
            NetworkReply::Error { kind, message } => Err(Problem::of_network(kind, message)),
            reply => Ok(reply),
        }
    }

    async fn call(&self, request: NetworkRequest) -> Result<NetworkReply, String> {
        // The semaphore is never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|error| error.to_string())?;
        let backend = Arc::clone(&self.backend);
        let called = tokio::task::spawn_blocking(move || {
            let answer = backend.request(request);
            // A call that nothing waits for any more keeps its place until its end.
            drop(place);
            answer
        });
        called.await.unwrap_or_else(|_| Err("the request to the network failed".to_owned()))
    }
}
