//! Lays routes of intents step by step, and takes them down.
use super::intent::{IntentNo, Laid, Notes, Probe, Stage};
use super::spec::IntentState;
use super::store::IntentStore;
use crate::tables::{Route, RouteId, RouteState};
use weir_units::Instant;

impl IntentStore {
    /// Begins to lay the present way.
    pub(super) fn start(&mut self, now: Instant, number: IntentNo) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let Some(laid) = &intent.laid else { return };
        intent.waiting.clear();
        let first: Vec<_> = laid.carriers.iter().copied().zip(laid.layout.carriers.iter().cloned()).collect();
        let captures = laid.captures.iter().copied().zip(laid.layout.captures.iter().cloned());
        let mut routes: Vec<(RouteId, Route)> = captures.collect();
        if first.is_empty() {
            intent.stage = Stage::Mains;
            routes.extend(mains(laid));
        } else {
            intent.stage = Stage::Carriers;
            routes.extend(first);
        }
        self.lay_routes(now, number, routes);
    }

    /// Sends routes and waits for them.
    pub(super) fn lay_routes(&mut self, now: Instant, number: IntentNo, routes: Vec<(RouteId, Route)>) {
        for (id, route) in routes {
            let came_back = self.leaving.remove(&id).is_some();
            if let Some(intent) = self.intents.get_mut(&number) {
                intent.waiting.insert(id);
                intent.leaving -= usize::from(came_back);
            }
            self.set_route(id, route);
        }
        self.set_due(number, Some(now + self.config.confirm_within));
    }

    /// Handles the news of a route: confirmed or refused by switches.
    pub fn handle_route(&mut self, now: Instant, id: RouteId, state: &RouteState) {
        let Some(number) = self.owners.get(&id).copied() else { return };
        if self.unsent.contains(&id) || self.leaving.contains_key(&id) {
            return;
        }
        match state {
            RouteState::Installed => {
                let Some(intent) = self.intents.get_mut(&number) else { return };
                if intent.waiting.remove(&id) && intent.waiting.is_empty() {
                    self.advance(now, number);
                }
            }
            RouteState::Refused { dpid, reason } => {
                self.counters.refused_by_switches += 1;
                self.refused(now, number, id, format!("switch {dpid:x} refused an entry: {reason}"));
            }
            RouteState::Pending => {}
        }
    }

    /// Handles that a route is gone from all switches.
    pub fn handle_removed(&mut self, id: RouteId) {
        if self.unsent.contains(&id) {
            return;
        }
        let Some(label) = self.leaving.remove(&id) else { return };
        let Some(number) = self.owners.remove(&id) else { return };
        if let Some(label) = label {
            self.labels.release(label);
        }
        if let Some(intent) = self.intents.get_mut(&number) {
            intent.leaving = intent.leaving.saturating_sub(1);
            intent.slots.retain(|slot| slot.id != id);
        }
        self.forget_if_gone(number);
    }

    /// Goes on when switches have confirmed all that was asked for.
    fn advance(&mut self, now: Instant, number: IntentNo) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        intent.notes.silent = None;
        match intent.stage {
            Stage::Carriers => {
                intent.stage = Stage::Mains;
                let routes = intent.laid.as_ref().map(mains).unwrap_or_default();
                self.lay_routes(now, number, routes);
            }
            Stage::Mains => {
                self.give_up_former(number);
                self.confirm(now, number);
            }
            Stage::Captures => self.confirm(now, number),
            Stage::Back => {
                intent.stage = Stage::Idle;
                self.set_due(number, Some(now + self.config.retry_after));
                self.settle(number);
            }
            Stage::Idle | Stage::Probes => {}
        }
    }

    /// Removes what only former ways needed.
    fn give_up_former(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        intent.former = None;
        let mut gone = std::mem::take(&mut intent.retiring);
        let used = intent.laid.as_ref().map(|laid| laid.mains.clone()).unwrap_or_default();
        gone.extend(intent.slots.iter().filter(|slot| !used.contains(&slot.id)).map(|slot| (slot.id, None)));
        for (id, label) in gone {
            if !self.leaving.contains_key(&id) {
                self.remove_route(number, id, label);
            }
        }
        self.reserve(number);
    }

    /// Handles that a switch refused an entry: nothing stays half installed.
    fn refused(&mut self, now: Instant, number: IntentNo, id: RouteId, reason: String) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let Some(laid) = &intent.laid else { return };
        if laid.captures.contains(&id) {
            // The way itself may be there; only whether it carries packets cannot be seen.
            intent.notes.unconfirmed = Some(format!("confirmation: {reason}"));
            self.drop_captures(number);
            let waits = self.intents.get(&number).is_none_or(|intent| !intent.waiting.is_empty());
            if !waits {
                self.advance(now, number);
            }
            return;
        }
        self.drop_captures(number);
        if self.go_back(now, number, &reason) {
            return;
        }
        self.take_down(number);
        self.set_state(number, IntentState::Failed, reason);
        self.set_due(number, Some(now + self.config.retry_after));
    }

    /// Uses the former way again; returns false if there is none.
    fn go_back(&mut self, now: Instant, number: IntentNo, reason: &str) -> bool {
        let Some(intent) = self.intents.get_mut(&number) else { return false };
        let Some(former) = intent.former.take() else { return false };
        intent.retiring.retain(|(id, _)| !former.carriers.contains(id));
        let routes = mains(&former);
        let refused = intent.laid.replace(former);
        intent.notes.refused = Some(reason.to_owned());
        intent.stage = Stage::Back;
        intent.waiting.clear();
        let mut gone = std::mem::take(&mut intent.retiring);
        gone.extend(refused.iter().flat_map(|laid| laid.carriers.iter().map(|id| (*id, laid.label))));
        let used: Vec<RouteId> = routes.iter().map(|(id, _)| *id).collect();
        gone.extend(intent.slots.iter().filter(|slot| !used.contains(&slot.id)).map(|slot| (slot.id, None)));
        self.lay_routes(now, number, routes);
        gone.into_iter().for_each(|(id, label)| self.remove_route(number, id, label));
        self.reserve(number);
        self.settle(number);
        true
    }

    /// Removes all routes of an intent, and what is reserved for it.
    pub(super) fn take_down(&mut self, number: IntentNo) {
        self.drop_captures(number);
        self.set_due(number, None);
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let laid = [intent.laid.take(), intent.former.take()];
        let carriers = laid.iter().flatten().flat_map(|laid| laid.carriers.iter().map(|id| (*id, laid.label)));
        let mut gone = std::mem::take(&mut intent.retiring);
        gone.extend(carriers);
        gone.extend(intent.slots.iter().map(|slot| (slot.id, None)));
        intent.waiting.clear();
        intent.stage = Stage::Idle;
        intent.notes = Notes::default();
        for (id, label) in gone {
            if !self.leaving.contains_key(&id) {
                self.remove_route(number, id, label);
            }
        }
        self.reserve(number);
    }

    /// Removes the routes that catch confirmation packets, and forgets the packets.
    pub(super) fn drop_captures(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        for number in std::mem::take(&mut intent.probes).iter().flat_map(|probe: &Probe| &probe.numbers) {
            self.sent.remove(number);
        }
        let captures = intent.laid.as_mut().map(|laid| std::mem::take(&mut laid.captures)).unwrap_or_default();
        captures.into_iter().for_each(|id| self.remove_route(number, id, None));
    }

    /// Sets the state of an intent whose routes are laid.
    pub(super) fn settle(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.get(&number) else { return };
        let (state, reason) = match (intent.shortcoming(), intent.stage) {
            (Some(reason), _) => (IntentState::Degraded, reason),
            (None, Stage::Idle) => (IntentState::Installed, String::new()),
            (None, _) => (IntentState::Compiling, String::new()),
        };
        self.set_state(number, state, reason);
    }
}

/// Returns the main routes of a plan with their numbers.
fn mains(laid: &Laid) -> Vec<(RouteId, Route)> {
    laid.mains.iter().copied().zip(laid.layout.mains.iter().cloned()).collect()
}
