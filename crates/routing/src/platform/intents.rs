//! Intents in the controller: what they ask for is done, and they are told what became of it.
use super::NetworkController;
use crate::app::Network;
use crate::forwarding::admission;
use crate::intents::{FIRST_ROUTE, IntentAction, IntentError, IntentOutcome, LAST_ROUTE, PROBE_MAC};
use crate::request::{IntentAnswer, NetworkReply};
use crate::tables::{Route, RouteId, RouteState};
use weir_packet::parse::parse_ethernet;

impl NetworkController {
    /// Tells the intents that the network has changed.
    pub(super) fn note_change_for_intents(&mut self) {
        self.note_delays();
        self.intents.handle_network_change(self.core.now, &self.core.map);
    }

    /// Does what intents ask for, until they ask for nothing.
    pub(super) fn carry_out_intents(&mut self) {
        loop {
            let actions = self.intents.take_actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    IntentAction::SetRoute(id, route) => self.set_intent_route(id, route),
                    IntentAction::RemoveRoute(id) => self.remove_intent_route(id),
                    IntentAction::SendProbe { at, frame } => {
                        if parse_ethernet(&frame).is_some_and(|header| header.src == PROBE_MAC) {
                            admission::admit_probe(&mut self.core, PROBE_MAC, at);
                        }
                        self.core.forward(at, frame);
                    }
                    IntentAction::Report { kind, text, alarm } => self.core.report(kind, text, alarm),
                }
            }
        }
    }

    fn set_intent_route(&mut self, id: RouteId, route: Route) {
        self.core.set_route(id, route);
        if self.core.keeper.route_state(id) == Some(RouteState::Installed) {
            self.intents.handle_route(self.core.now, id, &RouteState::Installed);
        }
    }

    fn remove_intent_route(&mut self, id: RouteId) {
        self.core.keeper.remove_route(id);
        if self.core.keeper.route_state(id).is_none() {
            self.intents.handle_removed(id);
        }
    }
}

/// Returns the reply to a request about intents.
pub(super) fn answer<T>(result: Result<T, IntentError>, reply: impl FnOnce(T) -> NetworkReply) -> NetworkReply {
    match result {
        Ok(answer) => reply(answer),
        Err(error) => NetworkReply::Error { kind: error.kind(), message: error.to_string() },
    }
}

/// Returns the answer to one of several intents.
pub(super) fn answer_of(result: Result<IntentOutcome, IntentError>) -> IntentAnswer {
    match result {
        Ok(outcome) => IntentAnswer::Done(outcome),
        Err(error) => IntentAnswer::Error { kind: error.kind(), message: error.to_string() },
    }
}

/// Returns true if a route is one of intents.
pub(super) fn is_of_intents(id: RouteId) -> bool {
    (FIRST_ROUTE..=LAST_ROUTE).contains(&id.0)
}
