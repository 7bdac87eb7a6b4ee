//! HTTP server with the path `/metrics`, on a thread of its own.
use crate::{CONTENT_TYPE, MetricFamily, MetricsAddress, encode};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// Most connections at a time; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 32;
/// Time for a request to arrive, after which its connection is closed.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Longest time of a connection.
const CONNECTION_TIME: Duration = Duration::from_secs(600);
/// Time for reading the counters.
const READ_TIME: Duration = Duration::from_secs(5);
/// Pause after a failed accept, which is most likely due to a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const INDEX: &str = "<!doctype html><title>weir</title><p><a href=\"/metrics\">metrics</a> for Prometheus\n";

/// Reads the counters. An error says why there are none.
pub type MetricsReader = dyn Fn() -> Result<Vec<MetricFamily>, String> + Send + Sync;

/// Running server. Dropping it stops it.
pub struct MetricsServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl MetricsServer {
    /// Starts a server, which calls `read` for each request.
    ///
    /// # Errors
    /// The address cannot be listened on. The error names it.
    pub fn start(address: MetricsAddress, read: Arc<MetricsReader>) -> io::Result<MetricsServer> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("cannot serve metrics on {address}: {error}"));
        let listener = std::net::TcpListener::bind(address.0).map_err(named)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let routes =
            Router::new().route("/", get(async || Html(INDEX))).route("/metrics", get(metrics)).with_state(read);
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new().name("weir-metrics".into()).spawn(move || {
            if let Err(error) = run(listener, routes, stopped) {
                tracing::error!("metrics are not served: {error}");
            }
        })?;
        Ok(MetricsServer { address, stop, thread: Some(thread) })
    }

    /// Returns the URL of the metrics, with the actual port.
    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the metrics server panicked");
        }
    }
}

/// Serves until `stopped`. The runtime belongs to this thread alone: callers may be in one of their own, in which none
/// may be waited for or dropped.
fn run(listener: std::net::TcpListener, routes: Router, stopped: watch::Receiver<bool>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        serve(TcpListener::from_std(listener)?, routes, stopped).await;
        io::Result::Ok(())
    })?;
    // A reader may be at work; one that hangs is left behind.
    runtime.shutdown_timeout(READ_TIME);
    Ok(())
}

async fn serve(listener: TcpListener, routes: Router, mut stopped: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await.ok();
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = tokio::time::timeout(CONNECTION_TIME, serve_connection(stream, routes.clone()));
                tokio::spawn(async move {
                    let _ = connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("a connection for metrics failed: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, routes: Router) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIME);
    if let Err(error) = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)).await {
        tracing::debug!("a connection for metrics ended: {error}");
    }
}

/// Answers `/metrics`. Reading takes locks and waits for the engine, so it has a thread of its own.
async fn metrics(State(read): State<Arc<MetricsReader>>) -> Response {
    let reading = tokio::task::spawn_blocking(move || read());
    let failed = |why: String| (StatusCode::SERVICE_UNAVAILABLE, format!("no metrics: {why}\n")).into_response();
    match tokio::time::timeout(READ_TIME, reading).await {
        Ok(Ok(Ok(families))) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], encode(families)).into_response(),
        Ok(Ok(Err(why))) => failed(why),
        Ok(Err(_)) => failed("reading the counters failed".to_owned()),
        Err(_) => failed(format!("reading the counters took longer than {} s", READ_TIME.as_secs())),
    }
}
