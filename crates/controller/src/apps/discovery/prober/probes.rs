//! Sends probes, and reads those that arrive.
use super::super::links::HeardProbe;
use super::super::lldp::{self, LinkProbe, ProbeForm};
use super::{LinkProber, MAX_AGE, PortDown, TrunkPort};
use crate::{ConnectionId, ControllerOutbox};
use std::hash::BuildHasher;
use std::time::Duration;
use weir_openflow::Message;
use weir_openflow::model::{Action, Body, Bytes, Match, PacketOut, PortNo};
use weir_packet::MacAddr;
use weir_units::Instant;

/// Source of the probes that do not leave the switch; a locally administered address.
const CONTROLLER_ADDRESS: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0]);

/// Numbers of probes that arrived.
#[derive(Debug, Default)]
pub(super) struct ProbeCounters {
    pub(super) received: u64,
    pub(super) forged: u64,
    pub(super) replayed: u64,
    /// At ports that are not known, or down.
    pub(super) unknown_port: u64,
}

impl LinkProber {
    pub(super) fn send_probe(
        &mut self,
        now: Instant,
        form: ProbeForm,
        (id, port): (ConnectionId, PortNo),
        out: &mut ControllerOutbox,
    ) {
        let Some(switch) = self.switches.get(id) else { return };
        let (src, action) = match switch.ports.get(&port) {
            _ if port == PortNo::CONTROLLER => (CONTROLLER_ADDRESS, Action::to_controller()),
            Some(src) => (*src, Action::output(port)),
            None => return,
        };
        let interval = u16::try_from(self.schedule.stretched_interval().as_secs()).unwrap_or(u16::MAX);
        let seconds = interval.saturating_mul(3).max(1);
        let (from, number) = ((switch.dpid, port), self.n_sent);
        let to_switch_ns = u64::try_from(switch.one_way().as_nanos()).unwrap_or(u64::MAX);
        let probe = LinkProbe { from, number, sent: now, to_switch_ns };
        let data = Bytes(lldp::frame(form, &probe, src, seconds, self.key.hash_one((form, probe))));
        self.n_sent += 1;
        let (in_port, actions) = (PortNo::CONTROLLER, vec![action]);
        let body = Body::PacketOut(PacketOut { buffer_id: None, in_port, matching: Match::any(), actions, data });
        out.push((id, Message { xid: 0, body }));
    }

    /// Handles a probe of this controller that arrived at a port of a switch. Each link is noticed at its greater end
    /// only, so that one thread has it.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        form: ProbeForm,
        probe: &LinkProbe,
        (id, in_port): (ConnectionId, PortNo),
    ) {
        let Some(switch) = self.switches.get_mut(id) else { return };
        let (from, at, age) = (probe.from, (switch.dpid, in_port), now.since(probe.sent));
        let heard = HeardProbe { from, at, form, order: (probe.sent, probe.number) };
        if age > MAX_AGE || !self.links.is_news(&heard) {
            self.counters.replayed += 1;
            return;
        }
        switch.handed_in = switch.handed_in.max(probe.sent);
        if let Some(sender) = self.by_dpid.get(&from.0).and_then(|id| self.switches.get_mut(*id)) {
            sender.sent_on = sender.sent_on.max(probe.sent);
        }
        let Some(switch) = self.switches.get_mut(id) else { return };
        if from.1 == PortNo::CONTROLLER {
            if from.0 == at.0 {
                switch.round_trips.add(age);
            }
            self.counters.received += 1;
            return;
        }
        if self.port_down == PortDown::LosesLinks && !switch.ports.contains_key(&in_port) {
            self.counters.unknown_port += 1;
            return;
        }
        self.counters.received += 1;
        if from >= at {
            return self.answer(from, at, id);
        }
        let delay = age.saturating_sub(switch.one_way()).saturating_sub(Duration::from_nanos(probe.to_switch_ns));
        self.links.hear(now, self.schedule.probing(), heard, delay);
    }

    /// Handles a probe from the greater end of a link at the lesser end: a link that is not known yet is probed from
    /// here, too, at once.
    fn answer(&mut self, greater: TrunkPort, lesser: TrunkPort, id: ConnectionId) {
        let is_of_this_thread = self.by_dpid.contains_key(&greater.0);
        if greater != lesser && is_of_this_thread && self.links.get([lesser, greater]).is_none() {
            self.schedule.hasten(id, lesser.1);
        }
    }
}
