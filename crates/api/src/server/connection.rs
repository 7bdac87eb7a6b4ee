//! Serves a connection by HTTP/1.1.
use crate::access::ApiPeer;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedSemaphorePermit;

/// Time for the head of a request to arrive, after which its connection is closed; also the longest silence between
/// two requests.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// Longest time of a connection. Clients that read events connect again and go on where they were.
const CONNECTION_TIME: Duration = Duration::from_secs(3600);
/// Most bytes of a request's head, and of what is read at once.
const MAX_HEAD: usize = 32 << 10;

/// Serves a connection until its end, then frees its place.
pub(super) async fn serve_connection<S>(stream: S, peer: ApiPeer, routes: Router, place: Option<OwnedSemaphorePermit>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(MAX_HEAD);
    let service = TowerToHyperService::new(routes.layer(Extension(peer)));
    let serving = http.serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(CONNECTION_TIME, serving).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::debug!("a connection to the interface ended: {error}"),
    }
    drop(place);
}
