//! Stream to the controller for a switch in this process.
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// Switch's end of a stream to the controller in the same process. It belongs to the tokio runtime on which it is first
/// used; that runtime needs its I/O driver.
#[derive(Debug)]
pub struct EmbeddedStream(EmbeddedEnd);

#[derive(Debug)]
enum EmbeddedEnd {
    /// Not used yet.
    Unused(std::os::unix::net::UnixStream),
    Used(UnixStream),
    /// The system had no pair of sockets; says why.
    Failed(Option<io::Error>),
}

impl EmbeddedStream {
    pub(super) fn new(end: io::Result<std::os::unix::net::UnixStream>) -> EmbeddedStream {
        EmbeddedStream(match end {
            Ok(stream) => EmbeddedEnd::Unused(stream),
            Err(error) => EmbeddedEnd::Failed(Some(error)),
        })
    }

    /// Returns the stream, which joins the current runtime at its first use.
    fn stream(self: Pin<&mut Self>) -> io::Result<Pin<&mut UnixStream>> {
        let end = &mut self.get_mut().0;
        if let EmbeddedEnd::Unused(_) = end
            && let EmbeddedEnd::Unused(stream) = std::mem::replace(end, EmbeddedEnd::Failed(None))
        {
            *end = EmbeddedEnd::Used(UnixStream::from_std(stream)?);
        }
        match end {
            EmbeddedEnd::Used(stream) => Ok(Pin::new(stream)),
            EmbeddedEnd::Failed(error) => Err(error.take().unwrap_or_else(|| io::ErrorKind::NotConnected.into())),
            EmbeddedEnd::Unused(_) => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl AsyncRead for EmbeddedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(cx, into)
    }
}

impl AsyncWrite for EmbeddedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(ready!(self.stream()?.poll_write(cx, bytes))?))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }
}
