//! A control connection in memory that moves bytes in pieces of random sizes and can be cut.
use super::schedule_rng::ScheduleRng;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// State shared by both ends of a connection.
#[derive(Debug)]
struct MemoryConnection {
    to_switch: VecDeque<u8>,
    to_controller: VecDeque<u8>,
    /// Maximum number of bytes waiting in each direction.
    capacity: usize,
    /// Maximum number of bytes of one read or write.
    piece: usize,
    dice: ScheduleRng,
    end: Option<DisconnectKind>,
    /// True if the switch closed its end.
    is_closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Number of reads and writes that moved less than they could have.
    partial: u64,
}

/// Way in which the controller ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisconnectKind {
    /// Closed: the switch still reads what was sent before.
    Closed,
    /// Reset: bytes in transit are lost.
    Reset,
}

/// The switch's end of a connection.
pub(super) struct SwitchEnd(Arc<Mutex<MemoryConnection>>);

/// The controller's end of a connection.
pub(super) struct ControllerEnd(Arc<Mutex<MemoryConnection>>);

/// Makes a connection and returns both ends. At most `capacity` bytes wait in each direction, and at most `piece`
/// bytes move at once.
pub(super) fn wire(capacity: usize, piece: usize, dice: ScheduleRng) -> (SwitchEnd, ControllerEnd) {
    let wire = Arc::new(Mutex::new(MemoryConnection {
        to_switch: VecDeque::new(),
        to_controller: VecDeque::new(),
        capacity,
        piece,
        dice,
        end: None,
        is_closed: false,
        reader: None,
        writer: None,
        partial: 0,
    }));
    (SwitchEnd(Arc::clone(&wire)), ControllerEnd(wire))
}

fn locked(wire: &Mutex<MemoryConnection>) -> MutexGuard<'_, MemoryConnection> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryConnection {
    /// Draws how many of `there` bytes are moved this time.
    fn some_of(&mut self, there: usize) -> usize {
        let most = self.dice.below(self.piece).saturating_add(1);
        self.partial += u64::from(most < there);
        there.min(most)
    }
}

impl ControllerEnd {
    /// Sends some of `bytes` to the switch, as far as there is room. Returns their number.
    pub(super) fn write(&self, bytes: &[u8]) -> usize {
        let mut wire = locked(&self.0);
        let room = wire.capacity.saturating_sub(wire.to_switch.len()).min(bytes.len());
        if room == 0 || wire.end.is_some() {
            return 0;
        }
        let count = wire.some_of(room);
        wire.to_switch.extend(&bytes[..count]);
        wire.reader.take().into_iter().for_each(Waker::wake);
        count
    }

    /// Reads some of the bytes that the switch wrote.
    pub(super) fn read(&self) -> Vec<u8> {
        let mut wire = locked(&self.0);
        if wire.to_controller.is_empty() {
            return Vec::new();
        }
        let there = wire.to_controller.len();
        let count = wire.some_of(there);
        wire.writer.take().into_iter().for_each(Waker::wake);
        wire.to_controller.drain(..count).collect()
    }

    /// Moves everything available at each read and write from now on.
    pub(super) fn hurry(&self) {
        locked(&self.0).piece = usize::MAX;
    }

    /// Ends the connection.
    pub(super) fn end(&self, end: DisconnectKind) {
        let mut wire = locked(&self.0);
        wire.end = Some(end);
        if end == DisconnectKind::Reset {
            wire.to_switch.clear();
            wire.to_controller.clear();
        }
        let wakers = wire.reader.take().into_iter().chain(wire.writer.take());
        wakers.collect::<Vec<_>>().into_iter().for_each(Waker::wake);
    }

    /// Returns true if the switch closed the connection and all its bytes were read.
    pub(super) fn is_over(&self) -> bool {
        let wire = locked(&self.0);
        wire.is_closed && wire.to_controller.is_empty()
    }

    /// Returns the number of reads and writes that moved less than they could have.
    pub(super) fn partial(&self) -> u64 {
        locked(&self.0).partial
    }
}

impl AsyncRead for SwitchEnd {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut wire = locked(&self.0);
        if wire.to_switch.is_empty() {
            return match wire.end {
                Some(DisconnectKind::Closed) => Poll::Ready(Ok(())),
                Some(DisconnectKind::Reset) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                None => {
                    wire.reader = Some(context.waker().clone());
                    Poll::Pending
                }
            };
        }
        let there = wire.to_switch.len().min(into.remaining());
        let count = wire.some_of(there);
        wire.to_switch.drain(..count).for_each(|byte| into.put_slice(&[byte]));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SwitchEnd {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut wire = locked(&self.0);
        if wire.end.is_some() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = wire.capacity.saturating_sub(wire.to_controller.len()).min(bytes.len());
        if room == 0 {
            wire.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let count = wire.some_of(room);
        wire.to_controller.extend(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        locked(&self.0).is_closed = true;
        Poll::Ready(Ok(()))
    }
}

impl Drop for SwitchEnd {
    fn drop(&mut self) {
        locked(&self.0).is_closed = true;
    }
}
