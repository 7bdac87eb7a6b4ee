//! Packets at the controller: whose they are, and who handles them.
use super::NetworkController;
use crate::app::{FORWARDING_TABLE, HostPacket, PacketDecision};
use crate::hosts::HostVerdict;
use crate::map::SwitchPort;
use weir_openflow::PacketInView;
use weir_packet::parse_ethernet;

/// Counters of packets by what became of them.
#[derive(Debug, Default)]
pub(super) struct PacketCounters {
    received: u64,
    refused: u64,
    waiting: u64,
    truncated: u64,
    confirmations: u64,
    /// Packets that the controller has sent into an island, and that come back from another port of it.
    copies: u64,
    by_application: u64,
}

impl PacketCounters {
    pub(super) fn named(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("packets_received", self.received),
            ("packets_dropped_source_refused", self.refused),
            ("packets_dropped_source_checked", self.waiting),
            ("packets_dropped_truncated", self.truncated),
            ("packets_of_intents", self.confirmations),
            ("packets_dropped_island_copies", self.copies),
            ("packets_taken_by_applications", self.by_application),
        ]
    }
}

impl NetworkController {
    /// Handles a packet that is no probe of a link.
    pub(super) fn handle_packet(&mut self, dpid: u64, packet: &PacketInView<'_>) {
        self.counters.received += 1;
        let Some(port) = packet.in_port().filter(|port| port.is_ordinary()) else { return };
        if usize::from(packet.total_len()) > packet.data().len() {
            // Entries ask for whole packets; a switch that cuts them nevertheless keeps the rest.
            self.counters.truncated += 1;
            return;
        }
        let (came_by, data, table) = (SwitchPort::new(dpid, port), packet.data(), packet.table().0);
        if self.intents.handle_probe(came_by, data) {
            return self.counters.confirmations += 1;
        }
        // The admission table sends address resolution of an island's hosts here, and these are at one port. Packets
        // from the forwarding table may be of any part of the network.
        let island = self.core.map.shared_by(came_by);
        let at = island.filter(|_| table != FORWARDING_TABLE).unwrap_or(came_by);
        if island.is_some() && self.forwarding.is_copy(self.core.now, data) {
            return self.counters.copies += 1;
        }
        let from_trunk = self.core.map.is_trunk(at) || island.is_some() && table == FORWARDING_TABLE;
        let packet_of_host = HostPacket { at, from_trunk, data };
        if table == FORWARDING_TABLE && parse_ethernet(data).is_some_and(|header| self.hosts.is_own(header.src)) {
            // An entry of an application has changed the packet, and its host was admitted before.
            return self.forwarding.handle_packet(&packet_of_host, table, &mut self.core);
        }
        if !from_trunk {
            match self.hosts.handle_packet(self.core.now, at, data, &mut self.host_changes) {
                HostVerdict::Accepted => {}
                HostVerdict::Waiting => return self.counters.waiting += 1,
                HostVerdict::Refused => return self.counters.refused += 1,
                HostVerdict::Taken => return,
            }
            // Applications and forwarding see the host at its new place, and its entries are asked for first.
            self.take_host_changes();
        }
        for app in &mut self.apps {
            if app.handle_packet(&packet_of_host, &mut self.core) == PacketDecision::Taken {
                self.counters.by_application += 1;
                return;
            }
        }
        self.forwarding.handle_packet(&packet_of_host, table, &mut self.core);
    }
}
