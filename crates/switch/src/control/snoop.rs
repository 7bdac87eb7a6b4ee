//! Hands copies of the messages that pass channels to those who listen (`weir ctl snoop`), through bounded queues.
use crate::ctl::SnoopedMessage;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Maximum number of messages that wait for a listener; further ones are left out and counted.
pub(crate) const MAX_SNOOPED: usize = 4096;
/// Maximum number of their bytes.
pub(crate) const MAX_SNOOPED_BYTES: usize = 4 << 20;

/// The listeners to one switch's channels.
#[derive(Debug, Default)]
pub(crate) struct SnoopHub {
    /// Number of listeners, for channels to look at between messages.
    count: AtomicUsize,
    queues: Mutex<Vec<SnoopQueue>>,
}

/// A listener's queue, as messages are put on it.
#[derive(Debug)]
struct SnoopQueue {
    messages: mpsc::Sender<SnoopedMessage>,
    state: Arc<SnoopQueueState>,
}

#[derive(Debug, Default)]
struct SnoopQueueState {
    /// Bytes of the messages that wait.
    bytes: AtomicUsize,
    /// Messages left out since this was last read.
    lost: AtomicU64,
}

/// A listener's end of its queue. Dropping it ends the listening.
#[derive(Debug)]
pub(crate) struct SnoopListener {
    hub: Arc<SnoopHub>,
    messages: mpsc::Receiver<SnoopedMessage>,
    state: Arc<SnoopQueueState>,
}

impl SnoopHub {
    fn locked(&self) -> MutexGuard<'_, Vec<SnoopQueue>> {
        // Critical sections add and remove whole queues, so the list is valid after a panic.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if anyone listens.
    pub(crate) fn is_wanted(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Adds a listener, which gets the messages from now on.
    pub(crate) fn listen(self: &Arc<Self>) -> SnoopListener {
        let (sender, messages) = mpsc::channel(MAX_SNOOPED);
        let state = Arc::<SnoopQueueState>::default();
        let mut queues = self.locked();
        queues.push(SnoopQueue { messages: sender, state: Arc::clone(&state) });
        self.count.store(queues.len(), Relaxed);
        drop(queues);
        SnoopListener { hub: Arc::clone(self), messages, state }
    }

    /// Puts a message on the queue of every listener that has room, and counts it for the others.
    pub(crate) fn put(&self, message: &SnoopedMessage) {
        for queue in self.locked().iter() {
            let length = message.bytes.len() / 2;
            let has_room = queue.state.bytes.load(Relaxed) + length <= MAX_SNOOPED_BYTES;
            if has_room && queue.messages.try_send(message.clone()).is_ok() {
                queue.state.bytes.fetch_add(length, Relaxed);
            } else {
                queue.state.lost.fetch_add(1, Relaxed);
            }
        }
    }
}

impl SnoopListener {
    /// Waits for the next message.
    pub(crate) async fn next(&mut self) -> Option<SnoopedMessage> {
        let message = self.messages.recv().await?;
        self.took(&message);
        Some(message)
    }

    /// Returns the next message if it is there already.
    pub(crate) fn try_next(&mut self) -> Option<SnoopedMessage> {
        let message = self.messages.try_recv().ok()?;
        self.took(&message);
        Some(message)
    }

    fn took(&self, message: &SnoopedMessage) {
        // Put and taken on the same thread, so that what was put has been added.
        self.state.bytes.fetch_sub(message.bytes.len() / 2, Relaxed);
    }

    /// Returns the number of messages left out since the last call.
    pub(crate) fn take_lost(&self) -> u64 {
        self.state.lost.swap(0, Relaxed)
    }
}

impl Drop for SnoopListener {
    fn drop(&mut self) {
        let mut queues = self.hub.locked();
        queues.retain(|queue| !Arc::ptr_eq(&queue.state, &self.state));
        self.hub.count.store(queues.len(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let hub = Arc::<SnoopHub>::default();
        assert!(!hub.is_wanted());
        let mut listener = hub.listen();
        assert!(hub.is_wanted());
        let message = |bytes: usize| SnoopedMessage {
            time_ns: 1,
            channel: "tcp:c1:6653".to_owned(),
            to_switch: true,
            bytes: "00".repeat(bytes),
        };
        (0..MAX_SNOOPED + 3).for_each(|_| hub.put(&message(8)));
        assert_eq!((listener.take_lost(), listener.take_lost()), (3, 0));
        assert_eq!(std::iter::from_fn(|| listener.try_next()).count(), MAX_SNOOPED);
        hub.put(&message(MAX_SNOOPED_BYTES));
        hub.put(&message(8));
        assert_eq!(listener.take_lost(), 1);
        assert!(listener.try_next().is_some() && listener.try_next().is_none());
        drop(listener);
        assert!(!hub.is_wanted());
    }
}
