//! Messages of switches about their tables: confirmations, refusals, and entries that they removed.
use super::event::TableEvent;
use super::keeper::{TableCounter, TableKeeper};
use super::route::RouteState;
use super::switch::{RefusalOutcome, RefusedEntry};
use super::work::{RouteWork, WorkPhase};
use weir_openflow::model::error::{BadRequest, ErrorMessage, ErrorType};
use weir_openflow::model::multipart::{MultipartReply, ReplyBody};
use weir_openflow::model::{Body, FlowRemoved, FlowRemovedReason, GroupId};
use weir_units::Instant;

/// Types of messages in the data of an error (OpenFlow 1.3.5, A.1).
const FLOW_MOD: u8 = 14;
const GROUP_MOD: u8 = 15;
const MULTIPART_REQUEST: u8 = 18;

impl TableKeeper {
    /// Handles a message of a switch. Messages that are about something else are ignored.
    pub fn handle_message(&mut self, now: Instant, dpid: u64, message: &Body) {
        match message {
            Body::BarrierReply if self.config.barrier_lag.is_zero() => self.confirm(dpid),
            Body::BarrierReply => self.lagging.push_back((now + self.config.barrier_lag, dpid)),
            Body::Error(error) => self.handle_error(now, dpid, error),
            Body::FlowRemoved(removed) => self.handle_removed(dpid, removed),
            Body::MultipartReply(MultipartReply { more, body, .. }) => {
                let Some(tables) = self.tables.get_mut(dpid).filter(|tables| tables.is_reading()) else { return };
                match body {
                    ReplyBody::Flow(flows) => tables.read_flows(flows, *more),
                    ReplyBody::GroupDesc(groups) => tables.read_groups(groups, *more),
                    _ => return,
                }
                self.tables.unsent.insert(dpid);
                self.look_at_routes_over(dpid);
            }
            _ => {}
        }
    }

    fn handle_error(&mut self, now: Instant, dpid: u64, error: &ErrorMessage) {
        let data = &error.data.0;
        let Some(tables) = self.tables.get_mut(dpid) else { return };
        let reason = weir_openflow::text::error_name(error.error);
        match data.get(1).copied() {
            Some(FLOW_MOD) => {
                let cookie = data.get(8..16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
                let Some(refused) = cookie.and_then(|cookie| tables.refuse(cookie)) else { return };
                self.counters[TableCounter::Refused as usize] += 1;
                self.handle_refused(now, dpid, refused, reason);
            }
            Some(GROUP_MOD) => {
                let group = data.get(12..16).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
                // Entries that lead to it are refused, too, and named then.
                group.into_iter().for_each(|group| tables.refuse_group(GroupId(group)));
            }
            Some(MULTIPART_REQUEST) if matches!(error.error, ErrorType::BadRequest(BadRequest::BadMultipart)) => {
                tables.has_no_groups();
                self.tables.unsent.insert(dpid);
            }
            _ => {}
        }
    }

    fn handle_refused(&mut self, now: Instant, dpid: u64, refused: RefusedEntry, reason: String) {
        let Some(id) = refused.route else {
            match refused.outcome {
                RefusalOutcome::Superseded => return,
                // Those who ask for routes try again themselves.
                RefusalOutcome::Kept => _ = self.retries.entry(dpid).or_insert(now + self.config.retry_after),
                RefusalOutcome::Dropped => _ = self.tables.unsent.insert(dpid),
            }
            return self.events.push(TableEvent::EntryRefused { dpid, key: refused.key, reason });
        };
        // Several switches can refuse one change. The first refusal ends it, and later ones change nothing more.
        let is_wanted = |work: &&mut RouteWork| work.wants(dpid, refused.handle);
        let Some(work) = self.routes.get_mut(&id).filter(is_wanted) else { return };
        // A former way that is refused, too, is not tried again.
        self.events.push(TableEvent::Route(id, RouteState::Refused { dpid, reason }));
        match work.former.take() {
            Some(former) => {
                (work.target, work.phase) = (Some(former), WorkPhase::Installing);
                self.active.insert(id);
            }
            None => self.remove_route(id),
        }
    }

    fn handle_removed(&mut self, dpid: u64, removed: &FlowRemoved) {
        let expired = matches!(removed.reason, FlowRemovedReason::IdleTimeout | FlowRemovedReason::HardTimeout);
        let Some(lost) = self.tables.get_mut(dpid).and_then(|tables| tables.lose(removed.cookie, expired)) else {
            return;
        };
        let counter = if expired { TableCounter::Expired } else { TableCounter::Lost };
        self.counters[counter as usize] += 1;
        self.tables.unsent.insert(dpid);
        if let Some(id) = lost.route.filter(|_| expired) {
            self.events.push(TableEvent::Expired(id));
        }
    }
}
