//! Accepts the clients of a control socket, and reads and writes their lines.
use super::{CtlReply, CtlRequest, MAX_REQUEST_BYTES};
use crate::socket::SocketFile;
use serde::Serialize;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Maximum number of concurrent clients; further ones wait to be accepted.
const MAX_CLIENTS: usize = 32;
/// Pause after a failed accept, which is most likely due to a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the control socket of a program that is not a switch, until the result is dropped: `answer` is asked for the
/// reply to each request. The socket's file is removed in the end.
///
/// # Errors
/// There is no tokio runtime with I/O.
pub async fn serve_requests<F>(
    socket: SocketFile,
    answer: impl Fn(CtlRequest) -> F + Clone + Send + 'static,
) -> io::Result<()>
where
    F: Future<Output = CtlReply> + Send + 'static,
{
    let client = |stream| {
        let answer = answer.clone();
        async move {
            let mut stream = BufReader::new(stream);
            while let Some(request) = read_request(&mut stream).await {
                let (reply, is_last) = match request {
                    Ok(request) => (answer(request).await, false),
                    Err(refused) => (CtlReply::Error(refused.problem), refused.is_last),
                };
                let Ok(line) = line_of(reply).await else { return };
                if stream.get_mut().write_all(&line).await.is_err() || is_last {
                    return;
                }
            }
        }
    };
    serve_clients(socket, std::future::pending(), client).await
}

/// Accepts clients until `stopped` is ready, then waits until all are served, and removes the socket's file.
///
/// # Errors
/// There is no tokio runtime with I/O.
pub(super) async fn serve_clients<F>(
    socket: SocketFile,
    stopped: impl Future<Output = ()>,
    client: impl Fn(UnixStream) -> F,
) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, _file) = socket.into_tokio()?;
    let mut clients = tokio::task::JoinSet::new();
    let mut stopped = std::pin::pin!(stopped);
    loop {
        tokio::select! {
            () = &mut stopped => break,
            Some(_) = clients.join_next() => {}
            accepted = listener.accept(), if clients.len() < MAX_CLIENTS => match accepted {
                Ok((stream, _)) => drop(clients.spawn(client(stream))),
                Err(error) => {
                    tracing::warn!("control socket: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    while clients.join_next().await.is_some() {}
    Ok(())
}

/// Line that is no request.
pub(super) struct RefusedLine {
    pub(super) problem: String,
    /// True if the rest of the line is still to come, so that the connection cannot be used any more.
    pub(super) is_last: bool,
}

/// Reads a request; `None` if the client has closed the connection.
pub(super) async fn read_request(stream: &mut BufReader<UnixStream>) -> Option<Result<CtlRequest, RefusedLine>> {
    let mut line = Vec::new();
    let mut limited = stream.take(MAX_REQUEST_BYTES as u64 + 1);
    if !matches!(limited.read_until(b'\n', &mut line).await, Ok(1..)) {
        return None;
    }
    if line.len() > MAX_REQUEST_BYTES {
        let problem = format!("the request is longer than {MAX_REQUEST_BYTES} bytes");
        return Some(Err(RefusedLine { problem, is_last: true }));
    }
    let not_understood =
        |error| RefusedLine { problem: format!("the request is not understood: {error}"), is_last: false };
    Some(serde_json::from_slice(&line).map_err(not_understood))
}

/// Encodes a reply as a line. Some replies have tens of megabytes, so encoding and dropping them run on another
/// thread while the control thread serves channels.
pub(super) async fn line_of(reply: impl Serialize + Send + 'static) -> io::Result<Vec<u8>> {
    let written = tokio::task::spawn_blocking(move || {
        let mut line = serde_json::to_vec(&reply)?;
        line.push(b'\n');
        Ok(line)
    });
    written.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::line_of;
    use serde::{Serialize, Serializer};
    use std::sync::{Arc, Mutex};
    use std::thread::{self, ThreadId};

    /// Records the threads on which it is serialized and dropped.
    struct Noting(Arc<Mutex<Vec<ThreadId>>>);

    impl Noting {
        fn note(&self) {
            self.0.lock().unwrap().push(thread::current().id());
        }
    }

    impl Serialize for Noting {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.note();
            serializer.serialize_u8(7)
        }
    }

    impl Drop for Noting {
        fn drop(&mut self) {
            self.note();
        }
    }

    #[tokio::test]
    async fn replies_are_not_written_down_by_the_control_thread() {
        let threads = Arc::default();
        assert_eq!(line_of(Noting(Arc::clone(&threads))).await.unwrap(), b"7\n");
        let threads = threads.lock().unwrap();
        assert!(threads.len() == 2 && !threads.contains(&thread::current().id()), "{threads:?}");
    }
}
