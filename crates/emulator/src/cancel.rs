//! Stops a lab from outside, for example from a signal handler.
use crossbeam_channel::{Receiver, RecvTimeoutError, Select, Sender, bounded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time that no work takes.
const FOREVER: Duration = Duration::from_secs(1 << 32);

/// Handle that stops a lab, for example from a signal handler's thread. Clones of the handle stop the same lab.
#[derive(Debug, Clone)]
pub struct CancelHandle {
    /// Sender of `closed`, dropped to cancel: every receiver observes the disconnection at once, and at any later
    /// time.
    open: Arc<Mutex<Option<Sender<()>>>>,
    closed: Receiver<()>,
}

impl CancelHandle {
    /// Returns a handle that is not cancelled.
    pub fn new() -> CancelHandle {
        let (open, closed) = bounded(0);
        CancelHandle { open: Arc::new(Mutex::new(Some(open))), closed }
    }

    /// Requests that the lab stops: its traffic ends, the measurements so far are reported as partial, and everything
    /// the lab created is removed. Returns at once.
    pub fn cancel(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Returns true if [`CancelHandle::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Waits until [`CancelHandle::cancel`] is called, for at most `limit`. Returns true if it was called.
    pub fn wait(&self, limit: Duration) -> bool {
        self.closed.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }

    /// Runs `work`, and sets `flag` if [`CancelHandle::cancel`] is called meanwhile. For work that may wait for another
    /// program, and so cannot ask the handle itself.
    pub fn set_during<R>(&self, flag: &AtomicBool, work: impl FnOnce() -> R) -> R {
        let (running, over) = bounded::<()>(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Ends at once when `running` is dropped.
                while self.receive(&over, FOREVER).is_some() {}
                flag.fetch_or(self.is_cancelled(), Ordering::Relaxed);
            });
            let result = work();
            drop(running);
            result
        })
    }

    /// Waits for a message for at most `limit`. Returns `None` on time-out, after [`CancelHandle::cancel`], or if the
    /// message's sender is gone.
    pub(crate) fn receive<T>(&self, messages: &Receiver<T>, limit: Duration) -> Option<T> {
        let mut select = Select::new();
        select.recv(&self.closed);
        let message = select.recv(messages);
        let ready = select.select_timeout(limit).ok()?;
        if ready.index() == message {
            return ready.recv(messages).ok();
        }
        // The library requires the selected operation to be completed; the disconnection itself is the signal.
        let _ = ready.recv(&self.closed);
        None
    }
}

impl Default for CancelHandle {
    fn default() -> Self {
        CancelHandle::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::unbounded;

    #[test]
    fn waiting_ends_when_cancelled() {
        let cancel = CancelHandle::new();
        let (send, messages) = unbounded();
        assert!(!cancel.is_cancelled());
        send.send(7).unwrap();
        assert_eq!(cancel.receive(&messages, Duration::from_secs(60)), Some(7));
        assert_eq!(cancel.receive(&messages, Duration::ZERO), None);
        let other = cancel.clone();
        let thread = std::thread::spawn(move || other.wait(Duration::from_secs(60)));
        cancel.cancel();
        assert!(thread.join().unwrap());
        assert_eq!(cancel.receive(&messages, Duration::from_secs(60)), None);
        assert!(cancel.clone().is_cancelled());
    }

    #[test]
    fn a_flag_is_set_only_if_the_handle_is_cancelled_while_the_work_runs() {
        let (cancel, flag) = (CancelHandle::new(), AtomicBool::new(false));
        assert_eq!(cancel.set_during(&flag, || 7), 7);
        assert!(!flag.load(Ordering::Relaxed));
        cancel.set_during(&flag, || {
            cancel.cancel();
            while !flag.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        });
    }
}
