//! Several applications as one, in an order.
use crate::status::{ApplicationStatus, LinkStatus};
use crate::{ConnectionId, ControllerApp, ControllerOutbox, PacketDecision};
use weir_openflow::model::FeaturesReply;
use weir_openflow::{Message, PacketInView, Version};
use weir_units::Instant;

/// Applications that are called in turn. A packet-in reaches later ones unless an earlier one has taken it; everything
/// else reaches all. Messages that one sends are in front of those of later ones.
pub struct AppChain(Vec<Box<dyn ControllerApp>>);

impl AppChain {
    /// Returns a chain of applications, the first in front.
    pub fn new(apps: Vec<Box<dyn ControllerApp>>) -> AppChain {
        AppChain(apps)
    }
}

impl ControllerApp for AppChain {
    fn handle_switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.0.iter_mut().for_each(|app| app.handle_switch_up(now, switch, version, features, out));
    }

    fn take_over(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.0.iter_mut().for_each(|app| app.take_over(now, switch, version, features, out));
    }

    fn handle_packet_in(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        packet: &PacketInView<'_>,
        out: &mut ControllerOutbox,
    ) -> PacketDecision {
        for app in &mut self.0 {
            if app.handle_packet_in(now, switch, packet, out) == PacketDecision::Taken {
                return PacketDecision::Taken;
            }
        }
        PacketDecision::PassedOn
    }

    fn handle_message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox) {
        let Some((last, others)) = self.0.split_last_mut() else { return };
        others.iter_mut().for_each(|app| app.handle_message(now, switch, message.clone(), out));
        last.handle_message(now, switch, message, out);
    }

    fn handle_switch_down(&mut self, now: Instant, switch: ConnectionId) {
        self.0.iter_mut().for_each(|app| app.handle_switch_down(now, switch));
    }

    fn next_wake(&self) -> Option<Instant> {
        self.0.iter().filter_map(|app| app.next_wake()).min()
    }

    fn handle_wake(&mut self, now: Instant, out: &mut ControllerOutbox) {
        let is_due = |app: &&mut Box<dyn ControllerApp>| app.next_wake().is_some_and(|at| at <= now);
        self.0.iter_mut().filter(is_due).for_each(|app| app.handle_wake(now, out));
    }

    /// Asks one after the other until one knows the command.
    fn handle_command(&mut self, now: Instant, command: &str, out: &mut ControllerOutbox) -> Option<String> {
        self.0.iter_mut().find_map(|app| app.handle_command(now, command, out))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.0.iter().flat_map(|app| app.counters()).collect()
    }

    fn applications(&self) -> Vec<ApplicationStatus> {
        self.0.iter().flat_map(|app| app.applications()).collect()
    }

    fn links(&self, now: Instant) -> Option<Vec<LinkStatus>> {
        self.0.iter().find_map(|app| app.links(now))
    }
}
