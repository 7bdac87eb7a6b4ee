//! State that applications keep over a restart of the controller: handed out when it has changed, and taken back.
use super::NetworkController;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_units::Instant;

/// Shortest time between two hand-outs; the first change is handed out at once.
pub const HAND_OUT_INTERVAL: Duration = Duration::from_secs(1);

/// State of applications by their names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeptState(pub BTreeMap<String, serde_json::Value>);

/// Receiver of the state, called by the controller's thread: it should not wait for a disk.
pub type StateSink = Box<dyn FnMut(KeptState) + Send>;

/// Hand-out of the state.
#[derive(Default)]
pub(super) struct StateKeeping {
    sink: Option<StateSink>,
    /// State of applications that do not run now, which is handed out on.
    others: KeptState,
    /// Changes that were handed out, and the time from which on further ones may be.
    handed_out: u64,
    next: Instant,
    /// True if there are changes that wait for that time.
    waits: bool,
}

impl NetworkController {
    /// Hands the state of applications out to `sink`, now and whenever it has changed, at most once in
    /// [`HAND_OUT_INTERVAL`], and when the controller ends.
    pub fn keep_state(&mut self, sink: StateSink) {
        self.keeping.sink = Some(sink);
        self.keeping.handed_out = self.kept_changes();
        self.hand_out();
    }

    /// Takes back what was handed out `elapsed` ago, before the first switch connects. State of applications that do
    /// not run is kept on.
    ///
    /// # Errors
    /// The application whose state is damaged, what was found and what was expected.
    pub fn restore(&mut self, now: Instant, elapsed: Duration, state: KeptState) -> Result<(), String> {
        self.core.now = now;
        for (name, kept) in state.0 {
            match self.apps.iter_mut().find(|app| app.name() == name) {
                Some(app) => app.restore(now, elapsed, &kept).map_err(|problem| format!("{name}: {problem}"))?,
                None => _ = self.keeping.others.0.insert(name, kept),
            }
        }
        Ok(())
    }

    fn kept_changes(&self) -> u64 {
        self.apps.iter().map(|app| app.kept_changes()).sum()
    }

    /// Hands changes out that are due.
    pub(super) fn hand_out_changes(&mut self) {
        let changes = self.kept_changes();
        if self.keeping.sink.is_none() || changes == self.keeping.handed_out {
            return;
        }
        self.keeping.waits = self.core.now < self.keeping.next;
        if !self.keeping.waits {
            (self.keeping.handed_out, self.keeping.next) = (changes, self.core.now + HAND_OUT_INTERVAL);
            self.hand_out();
        }
    }

    /// Returns the time of the next call of [`NetworkController::hand_out_changes`] that does something.
    pub(super) fn next_hand_out(&self) -> Option<Instant> {
        self.keeping.waits.then_some(self.keeping.next)
    }

    fn hand_out(&mut self) {
        let Some(sink) = &mut self.keeping.sink else { return };
        let mut state = self.keeping.others.clone();
        let kept = self.apps.iter().filter_map(|app| Some((app.name().to_owned(), app.kept(self.core.now)?)));
        state.0.extend(kept);
        sink(state);
    }
}

impl Drop for NetworkController {
    /// Hands the last changes out.
    fn drop(&mut self) {
        if self.kept_changes() != self.keeping.handed_out {
            self.hand_out();
        }
    }
}
