//! Signal of new events to other threads, such as those of an interface.
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

type Listener = Box<dyn Fn(u64) + Send>;

/// Signal that a network sends with each new event. Clones are one signal.
#[derive(Clone, Default)]
pub struct EventSignal {
    listeners: Arc<Mutex<Vec<Listener>>>,
}

impl EventSignal {
    /// Calls `listener` with the number of each new event, on the network's thread: it must return at once, and must
    /// not ask the network. The event can be asked for after the call.
    pub fn subscribe(&self, listener: impl Fn(u64) + Send + 'static) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    pub(super) fn send(&self, newest: u64) {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().for_each(|listener| listener(newest));
    }
}

impl fmt::Debug for EventSignal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EventSignal").finish_non_exhaustive()
    }
}
