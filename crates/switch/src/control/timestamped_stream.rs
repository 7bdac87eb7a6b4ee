//! Reads a TCP stream with the kernel's arrival timestamps. A thread that slept or waited for a processor reads bytes
//! later than they arrived.
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

/// Arrival time of the last bytes read. Clones share the value.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamArrivalTime(Arc<AtomicU64>);

impl StreamArrivalTime {
    /// Returns when the kernel received the last bytes read; if it gave no timestamp, when they were read.
    pub(crate) fn last(&self) -> Instant {
        Instant::from_nanos(self.0.load(Relaxed))
    }
}

/// A TCP stream that records the arrival time of the bytes read from it.
#[derive(Debug)]
pub(crate) struct TimestampedStream {
    stream: TcpStream,
    clock: SystemClock,
    arrivals: StreamArrivalTime,
}

impl TimestampedStream {
    /// Enables receive timestamps on `stream`.
    ///
    /// # Errors
    /// Returns the stream and the error if the kernel refuses.
    pub(crate) fn new(stream: TcpStream, clock: SystemClock) -> Result<TimestampedStream, (TcpStream, io::Error)> {
        match setsockopt(&stream, sockopt::ReceiveTimestampns, &true) {
            Ok(()) => Ok(TimestampedStream { stream, clock, arrivals: StreamArrivalTime::default() }),
            Err(error) => Err((stream, error.into())),
        }
    }

    /// Returns the arrival time of the bytes read from the stream, updated by each read.
    pub(crate) fn arrivals(&self) -> StreamArrivalTime {
        self.arrivals.clone()
    }

    /// Reads available bytes into `into`, records the arrival time of the last of them, and returns their number.
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut beside = nix::cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(into)];
        let received = recvmsg::<()>(self.stream.as_raw_fd(), &mut parts, Some(&mut beside), MsgFlags::MSG_DONTWAIT)?;
        let (now, wall_ns) = self.clock.beside(Epoch::Wall);
        let is_stamp = |message| match message {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
            _ => None,
        };
        // Unreadable control messages only cost the timestamp, not the bytes.
        let stamp = received.cmsgs().ok().and_then(|mut messages| messages.find_map(is_stamp));
        // Kernel timestamps use the wall clock, which may be set, so only the age of the bytes is taken from it.
        let came_ns = stamp.map_or(wall_ns, |stamp| u64::try_from(stamp.as_nanos()).unwrap_or(wall_ns));
        self.arrivals.0.store(now.as_nanos().saturating_sub(wall_ns.saturating_sub(came_ns)), Relaxed);
        Ok(received.bytes)
    }
}

impl AsyncRead for TimestampedStream {
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

impl AsyncWrite for TimestampedStream {
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

    /// Time that bytes wait in the kernel before they are read.
    const LATE: Duration = Duration::from_millis(30);

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_read_late_says_when_it_came() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let clock = SystemClock::start();
        let mut stream = TimestampedStream::new(listener.accept().await.unwrap().0, clock).unwrap();
        let arrivals = stream.arrivals();
        let mut bytes = [0; 16];
        let (mut says, mut round) = (0, 0);
        // The kernel starts timestamping some time after it was asked to, on a busy machine many rounds.
        while says < 8 {
            round += 1;
            assert!(round < 2000, "more than a third of all arrivals are stamped late");
            let before = clock.now();
            peer.write_all(b"some bytes").await.unwrap();
            let sent = clock.now();
            // No read for a while, whatever else runs meanwhile.
            tokio::time::sleep(LATE).await;
            assert_eq!(stream.read(&mut bytes).await.unwrap(), 10);
            let (came, read) = (arrivals.last(), clock.now());
            assert!(before <= came + Duration::from_millis(1) && came <= read, "round {round}: {came:?}");
            // The delay with which the sender learns that the bytes were sent depends on the machine.
            let is_in_time = came <= sent.max(read - LATE);
            says = if is_in_time { says + 1 } else { i32::max(says - 2, 0) };
        }
        // Both directions work, and the end of the stream is seen.
        stream.write_all(b"answer").await.unwrap();
        assert_eq!(peer.read(&mut bytes).await.unwrap(), 6);
        drop(peer);
        assert_eq!(stream.read(&mut bytes).await.unwrap(), 0);
    }
}
