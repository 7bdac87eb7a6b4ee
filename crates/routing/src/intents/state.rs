//! Notes about each intent: its state, routes, timer and place in the queue.
use super::claims::TrafficClaim;
use super::intent::{Intent, IntentNo};
use super::spec::IntentState;
use super::store::{IntentAction, IntentStore};
use crate::tables::{Route, RouteId};
use std::cmp::Reverse;
use weir_units::Instant;

impl IntentStore {
    pub(super) fn set_state(&mut self, number: IntentNo, state: IntentState, reason: String) {
        self.change_state(number, state, reason, false);
    }

    /// Sets the state of an intent. With `is_told_together` only alarms are reported.
    pub(super) fn change_state(
        &mut self,
        number: IntentNo,
        state: IntentState,
        reason: String,
        is_told_together: bool,
    ) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        if intent.state == state && intent.reason == reason {
            return;
        }
        (intent.state, intent.reason) = (state, reason);
        self.note_failed(number);
        let is_told_together = self.note_decided(number) || is_told_together;
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let (kind, alarm) = match state {
            IntentState::Submitted | IntentState::Compiling => return,
            IntentState::Installed => ("intent-installed", false),
            IntentState::Degraded => ("intent-degraded", true),
            IntentState::Failed => ("intent-failed", true),
            IntentState::Withdrawn => ("intent-withdrawn", false),
        };
        // A failed intent is tried again at each change of the network, for another reason each time.
        if intent.told.replace(state) == Some(state) && alarm || is_told_together && !alarm {
            return;
        }
        let why = if intent.reason.is_empty() { String::new() } else { format!(": {}", intent.reason) };
        let what = kind.strip_prefix("intent-").unwrap_or(kind);
        let text = format!("intent `{}` is {what}{why}", intent.spec.key);
        self.actions.push(IntentAction::Report { kind, text, alarm });
    }

    /// Notes whether an intent is tried again when something is free. One that switches refused waits for its timer:
    /// what it freed is what it needs again.
    fn note_failed(&mut self, number: IntentNo) {
        let waits = |intent: &Intent| intent.state == IntentState::Failed && intent.due.is_none();
        if self.intents.get(&number).is_some_and(waits) {
            self.failed.insert(number);
        } else {
            self.failed.remove(&number);
        }
    }

    /// Compiles failed intents again, because something is free now. Those that fail again are noted again then.
    pub(super) fn retry_failed(&mut self) {
        std::mem::take(&mut self.failed).into_iter().for_each(|number| self.enqueue(number));
    }

    pub(super) fn set_route(&mut self, id: RouteId, route: Route) {
        self.unsent.insert(id);
        self.actions.push(IntentAction::SetRoute(id, route));
    }

    /// Removes a route; the label is free when switches have confirmed that.
    pub(super) fn remove_route(&mut self, number: IntentNo, id: RouteId, label: Option<u16>) {
        if self.leaving.insert(id, label).is_none()
            && let Some(intent) = self.intents.get_mut(&number)
        {
            intent.leaving += 1;
            intent.waiting.remove(&id);
        }
        self.unsent.insert(id);
        self.actions.push(IntentAction::RemoveRoute(id));
    }

    /// Returns the number of a new route of an intent.
    pub(super) fn new_route(&mut self, number: IntentNo) -> RouteId {
        let id = RouteId(self.next_route);
        self.next_route += 1;
        self.owners.insert(id, number);
        id
    }

    pub(super) fn set_due(&mut self, number: IntentNo, due: Option<Instant>) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        if let Some(former) = std::mem::replace(&mut intent.due, due) {
            self.timers.remove(&(former, number));
        }
        if let Some(due) = due {
            self.timers.insert((due, number));
        }
        self.note_failed(number);
    }

    pub(super) fn enqueue(&mut self, number: IntentNo) {
        if let Some(intent) = self.intents.get(&number) {
            self.queue.insert((Reverse(intent.wanted.precedence), number));
        }
    }

    pub(super) fn dequeue(&mut self, number: IntentNo) {
        if let Some(intent) = self.intents.get(&number) {
            self.queue.remove(&(Reverse(intent.wanted.precedence), number));
        }
    }

    /// Forgets an intent that was removed when nothing of it is left.
    pub(super) fn forget_if_gone(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.get(&number) else { return };
        if intent.leaving > 0 || intent.laid.is_some() {
            return;
        }
        let is_withdrawn = intent.state == IntentState::Withdrawn;
        let had_claims = self.release_claims(number);
        if is_withdrawn {
            self.set_due(number, None);
            self.note_gone(number);
            if let Some(intent) = self.intents.remove(&number) {
                self.keys.remove(&intent.spec.key);
            }
        }
        if had_claims {
            self.retry_failed();
        }
    }

    /// Claims the packets of the present way, besides those of former ones that switches may still have entries for.
    pub(super) fn claim(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let Some(laid) = &intent.laid else { return };
        let priority = intent.wanted.priority();
        for (at, matching) in laid.plan.entrances() {
            let claim = TrafficClaim { at, priority, matching: matching.clone() };
            if !intent.claimed.contains(&claim) {
                self.claims.add(number, &claim);
                intent.claimed.push(claim);
            }
        }
    }

    /// Releases the claims of an intent; returns false if there were none.
    fn release_claims(&mut self, number: IntentNo) -> bool {
        let Some(intent) = self.intents.get_mut(&number) else { return false };
        let claimed = std::mem::take(&mut intent.claimed);
        claimed.iter().for_each(|claim| self.claims.remove(number, claim));
        !claimed.is_empty()
    }

    /// Notes on which lanes the bound of an intent's delay depends.
    pub(super) fn note_bound(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.get(&number) else { return };
        let plan = intent.laid.as_ref().map(|laid| &laid.plan).filter(|_| intent.wanted.delay.is_some());
        self.bounded.set(number, plan.into_iter().flat_map(|plan| plan.ways.iter().chain(&plan.spare)));
    }
}
