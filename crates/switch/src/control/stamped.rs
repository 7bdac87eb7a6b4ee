//! A TCP stream that says when bytes came: a thread that was asleep, or waited for a processor, reads them later than that.
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use weir_units::{Epoch, Instant, SystemClock};

/// When the last bytes that were read had come. Clones see the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrivals(Arc<AtomicU64>);

impl Arrivals {
    /// When the kernel had them; if it did not say so, when they were read.
    pub(crate) fn last(&self) -> Instant {
        Instant::from_nanos(self.0.load(Relaxed))
    }
}

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Stamped {
    stream: TcpStream,
    clock: SystemClock,
    arrivals: Arrivals,
}

impl Stamped {
    /// Asks the kernel to say when bytes come.
    ///
    /// # Errors
    /// It does not: the stream is given back.
    pub(crate) fn new(stream: TcpStream, clock: SystemClock) -> Result<Stamped, (TcpStream, io::Error)> {
        match setsockopt(&stream, sockopt::ReceiveTimestampns, &true) {
            Ok(()) => Ok(Stamped { stream, clock, arrivals: Arrivals::default() }),
            Err(error) => Err((stream, error.into())),
        }
    }

    /// When what is read from it came.
    pub(crate) fn arrivals(&self) -> Arrivals {
        self.arrivals.clone()
    }

    /// Takes what is there, and notes when the last of it came; how many bytes.
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut beside = nix::cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(into)];
        let received = recvmsg::<()>(self.stream.as_raw_fd(), &mut parts, Some(&mut beside), MsgFlags::MSG_DONTWAIT)?;
        let (now, wall_ns) = self.clock.beside(Epoch::Wall);
        let is_stamp = |message| match message {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
            _ => None,
        };
        // What cannot be read beside the bytes is no reason to lose them.
        let stamp = received.cmsgs().ok().and_then(|mut messages| messages.find_map(is_stamp));
        // The kernel's stamps are of the clock that may be set: what counts is how long ago that was.
        let came_ns = stamp.map_or(wall_ns, |stamp| u64::try_from(stamp.as_nanos()).unwrap_or(wall_ns));
        self.arrivals.0.store(now.as_nanos().saturating_sub(wall_ns.saturating_sub(came_ns)), Relaxed);
        Ok(received.bytes)
    }
}

impl AsyncRead for Stamped {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(context))?;
            let receive = || self.receive(buffer.initialize_unfilled());
            match self.stream.try_io(Interest::READABLE, receive) {
                Ok(bytes) => {
                    buffer.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use weir_units::Clock as _;

    /// How long bytes lie there before they are read.
    const LATE: Duration = Duration::from_millis(30);

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_read_late_says_when_it_came() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let clock = SystemClock::start();
        let mut stream = Stamped::new(listener.accept().await.unwrap().0, clock).unwrap();
        let arrivals = stream.arrivals();
        let mut bytes = [0; 16];
        let mut says = 0;
        // The kernel begins a little after it was asked to.
        for round in 0..10 {
            let before = clock.now();
            peer.write_all(b"some bytes").await.unwrap();
            let sent = clock.now();
            // Nobody reads for a while, whatever runs meanwhile.
            tokio::time::sleep(LATE).await;
            assert_eq!(stream.read(&mut bytes).await.unwrap(), 10);
            let (came, read) = (arrivals.last(), clock.now());
            assert!(before <= came + Duration::from_millis(1) && came <= read, "round {round}: {came:?}");
            // How late the sender learns that it was sent is the machine's.
            says += u32::from(came <= sent.max(read - LATE));
        }
        assert!(says >= 8, "{says} of 10");
        // Halves of it go both ways, and its end is seen.
        stream.write_all(b"answer").await.unwrap();
        assert_eq!(peer.read(&mut bytes).await.unwrap(), 6);
        drop(peer);
        assert_eq!(stream.read(&mut bytes).await.unwrap(), 0);
    }
}
