//! The server: a thread of its own with listeners, and the routes behind them.
mod connection;
mod listener;

use crate::access::{AccessControl, RequestRate, TokenError, Tokens};
use crate::backend::{BackendCaller, EventWaker, MAX_WAITING};
use crate::requests::RequestCounts;
use crate::routes::{self, ApiState, EventFeed};
use crate::{ApiAddress, NetworkBackend};
use axum::Router;
use listener::ApiListener;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use weir_tls::{CredentialError, Credentials, TlsFiles};
use weir_units::SystemClock;

/// Time for which requests that are being answered are waited for when the server stops.
const STOP_TIME: Duration = Duration::from_secs(2);

/// Settings of the interface.
#[derive(Default)]
pub struct ApiConfig {
    /// Addresses to listen on.
    pub listen: Vec<ApiAddress>,
    /// Tokens of clients over TCP. Without any, only Unix sockets can be listened on.
    pub tokens: Tokens,
    /// Key and certificate for HTTPS. The certificates of CAs are not used: clients have tokens.
    pub tls: Option<TlsFiles>,
    /// How often each client over TCP may ask.
    pub rate: RequestRate,
    /// Counts of requests, for reading them elsewhere.
    pub requests: Arc<RequestCounts>,
}

/// Reasons why the interface cannot be served.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ApiError {
    #[error("cannot serve the interface on {address}: {error}{advice}")]
    Listen { address: ApiAddress, error: io::Error, advice: &'static str },
    #[error("cannot serve the interface on {0} without tokens, expected a file with a line ROLE TOKEN for each client")]
    NoTokens(ApiAddress),
    #[error(
        "cannot serve the interface on {0}: other machines reach this address, and tokens would cross the network in \
         clear; use https: with a key and a certificate, or an address of this machine alone, such as 127.0.0.1"
    )]
    Plain(ApiAddress),
    #[error("cannot serve the interface on {0} without TLS; give a private key and a certificate, or use http:")]
    NoCertificate(ApiAddress),
    #[error(transparent)]
    Tls(#[from] CredentialError),
    #[error(transparent)]
    Tokens(#[from] TokenError),
    #[error("cannot serve the interface: {0}")]
    System(#[from] io::Error),
}

/// Running interface. Dropping it stops it.
pub struct ApiServer {
    addresses: Vec<ApiAddress>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ApiServer {
    /// Starts to serve the interface of a network.
    ///
    /// # Errors
    /// An address cannot be listened on or is not safe with these settings, or the key or certificate cannot be used.
    pub fn start(config: ApiConfig, backend: Arc<dyn NetworkBackend>) -> Result<ApiServer, ApiError> {
        let credentials = config.tls.clone().map(Credentials::load).transpose()?.map(Arc::new);
        check(&config)?;
        let bind = |address: &ApiAddress| ApiListener::bind(address, credentials.as_ref());
        let listeners = config.listen.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
        let addresses = listeners.iter().map(ApiListener::address).collect::<io::Result<Vec<_>>>()?;
        let (waker, told) = EventWaker::new();
        backend.wake_on_events(waker);
        let state = Arc::new(ApiState {
            backend: BackendCaller::new(backend),
            access: AccessControl::new(config.tokens, config.rate),
            events: EventFeed::new(told),
            requests: config.requests,
            clock: SystemClock::start(),
        });
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new().name("weir-api".into()).spawn(move || {
            if let Err(error) = run(listeners, state, stopped) {
                tracing::error!("the interface is not served: {error}");
            }
        })?;
        Ok(ApiServer { addresses, stop, thread: Some(thread) })
    }

    /// Returns the addresses that are listened on, with the actual ports.
    pub fn addresses(&self) -> &[ApiAddress] {
        &self.addresses
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the interface panicked");
        }
    }
}

/// Checks that no address is open to clients that it should not be open to.
fn check(config: &ApiConfig) -> Result<(), ApiError> {
    for address in &config.listen {
        match address {
            ApiAddress::Unix(_) => {}
            ApiAddress::Http(_) | ApiAddress::Https(_) if config.tokens.is_empty() => {
                return Err(ApiError::NoTokens(address.clone()));
            }
            ApiAddress::Http(socket) if !socket.ip().is_loopback() => return Err(ApiError::Plain(address.clone())),
            ApiAddress::Https(_) if config.tls.is_none() => return Err(ApiError::NoCertificate(address.clone())),
            ApiAddress::Http(_) | ApiAddress::Https(_) => {}
        }
    }
    Ok(())
}

/// Serves until `stopped`. The runtime belongs to this thread alone: callers may be in one of their own, in which none
/// may be waited for or dropped.
fn run(listeners: Vec<ApiListener>, state: Arc<ApiState>, stopped: watch::Receiver<bool>) -> io::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(MAX_WAITING).build()?;
    runtime.block_on(async {
        let routes: Router = routes::routes(&state);
        let feed = tokio::spawn(routes::feed_events(Arc::clone(&state)));
        let mut tasks = tokio::task::JoinSet::new();
        for listener in listeners {
            tasks.spawn(listener.serve(routes.clone(), stopped.clone()));
        }
        while let Some(ended) = tasks.join_next().await {
            if let Ok(Err(error)) = ended {
                tracing::error!("the interface is not served at an address: {error}");
            }
        }
        feed.abort();
    });
    // A request to the network may be waited for; one that hangs is left behind.
    runtime.shutdown_timeout(STOP_TIME);
    Ok(())
}
