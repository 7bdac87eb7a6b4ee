//! Tells the operator how long the switches took to follow a change of links.
use crate::tables::RouteId;
use std::collections::BTreeSet;
use weir_units::Instant;

/// Routes that have changed since links changed, and how many of them the switches have not confirmed.
#[derive(Debug, Default)]
pub(super) struct Rerouting {
    /// Time of the first change of links since all routes were confirmed; `None` if there was none.
    since: Option<Instant>,
    unconfirmed: BTreeSet<RouteId>,
    n_changed: u64,
}

impl Rerouting {
    /// Notes that a link came or went.
    pub(super) fn begin(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Notes a route whose entries have to change. It is not counted unless links have changed.
    pub(super) fn add(&mut self, id: RouteId) {
        if self.since.is_some() && self.unconfirmed.insert(id) {
            self.n_changed += 1;
        }
    }

    /// Notes that the switches have confirmed a route, have refused it, or have removed it.
    pub(super) fn remove(&mut self, id: RouteId) {
        self.unconfirmed.remove(&id);
    }

    /// Returns the text of the event once all routes are confirmed; `None` before, and if no route had to change.
    pub(super) fn take_end(&mut self, now: Instant) -> Option<String> {
        let since = self.since.filter(|_| self.unconfirmed.is_empty())?;
        let n_changed = std::mem::take(&mut self.n_changed);
        self.since = None;
        let ms = now.since(since).as_secs_f64() * 1e3;
        let routes = weir_units::counted(n_changed, "route follows", "routes follow");
        (n_changed > 0).then(|| format!("{routes} the change of links, confirmed after {ms:.1} ms"))
    }
}
