//! Disturbances of a network in virtual time: control messages lost, doubled and out of order, switches with the
//! datapath id of another, ports whose state is reported wrong, and tables that others fill.
use crate::bed::{Bed, BedSwitch, End, datapath};
use std::collections::BTreeMap;
use weir_datapath::{ChannelId, DatapathOutput};
use weir_openflow::model::port::{PortStatus, PortStatusReason, bits};
use weir_openflow::model::{Body, FlowCommand, FlowMod, Match, PortNo, TableId};
use weir_openflow::{Message, model::PortDesc};
use weir_packet::Field;

/// Faults of all control channels.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChannelFaults {
    /// Share of packet-ins that switches do not send, and of packet-outs that they do not carry out, in percent.
    pub(crate) lost_percent: u8,
    /// Share of packet-ins that switches send twice, in percent.
    pub(crate) doubled_percent: u8,
    /// True if switches carry messages out in another order, except across barriers (OpenFlow 1.3.5, 6.2).
    pub(crate) reorders: bool,
}

impl ChannelFaults {
    /// Returns how often a switch sends a message.
    pub(crate) fn copies(self, message: &Message, random: &mut fastrand::Rng) -> u8 {
        if !matches!(message.body, Body::PacketIn(_)) {
            return 1;
        }
        let drawn = random.u8(0..100);
        let (lost, doubled) = (self.lost_percent, self.lost_percent + self.doubled_percent);
        if drawn < lost { 0 } else { 1 + u8::from(drawn < doubled) }
    }

    /// Returns the messages that a switch carries out, in its order.
    pub(crate) fn at_switch(self, messages: Vec<Message>, random: &mut fastrand::Rng) -> Vec<Message> {
        let mut messages: Vec<_> = messages.into_iter().filter(|message| self.arrives(message, random)).collect();
        if self.reorders {
            let is_barrier = |message: &Message| message.body == Body::BarrierRequest;
            messages.split_mut(is_barrier).for_each(|between| random.shuffle(between));
        }
        messages
    }

    fn arrives(self, message: &Message, random: &mut fastrand::Rng) -> bool {
        !matches!(message.body, Body::PacketOut(_)) || random.u8(0..100) >= self.lost_percent
    }
}

/// Bit of a switch's number in the test bed that says that it has the datapath id of another one.
const TWIN: u64 = 1 << 32;

/// Returns true if a number of the test bed is that of a twin.
pub(crate) fn is_twin(number: u64) -> bool {
    number & TWIN != 0
}

/// Tables that have entries which are not the controller's: how many, by switch and table.
#[derive(Debug, Default)]
pub(crate) struct FilledTables(BTreeMap<(u64, u8), u16>);

impl FilledTables {
    /// Forgets a switch that has started anew.
    pub(crate) fn forget(&mut self, dpid: u64) {
        self.0.retain(|(of, _), _| *of != dpid);
    }
}

impl Bed {
    /// Connects another switch with the datapath id of one, or ends its connection.
    pub(crate) fn set_twin(&mut self, dpid: u64, is_there: bool) {
        let number = dpid | TWIN;
        if is_there {
            let switch = BedSwitch::new(datapath(dpid, self.now, self.max_entries));
            self.switches.entry(number).or_insert(switch);
            self.connect(number);
        } else if self.switches.contains_key(&number) {
            self.disconnect(number);
        }
    }

    /// Ends the connections of all twins.
    pub(crate) fn remove_twins(&mut self) {
        self.dpids().into_iter().for_each(|dpid| self.set_twin(dpid, false));
    }

    /// Lets a switch report a port as up or down.
    pub(crate) fn report_port(&mut self, (dpid, port): End, up: bool) {
        let known = self.datapath(dpid).ports().into_iter().find(|desc| desc.port_no == PortNo(port));
        let Some(desc) = known else { return };
        let desc = PortDesc { state: if up { 0 } else { bits::LINK_DOWN }, ..desc };
        let body = Body::PortStatus(PortStatus { reason: PortStatusReason::Modify, desc });
        let mut out = DatapathOutput::default();
        out.messages.push((ChannelId(1), Message { xid: 0, body }));
        self.act(dpid, out);
    }

    /// Fills a table of a switch with entries of others that match no test packet.
    pub(crate) fn fill(&mut self, dpid: u64, table: u8) {
        let now = self.now;
        let mut count = self.filled.0.get(&(dpid, table)).copied().unwrap_or(0);
        while count < 1000 && self.datapath(dpid).flow_mod(now, &foreign(table, count)).is_ok() {
            count += 1;
        }
        self.filled.0.insert((dpid, table), count);
    }

    /// Deletes the entries of others in all switches.
    pub(crate) fn empty(&mut self) {
        let now = self.now;
        for ((dpid, table), count) in std::mem::take(&mut self.filled).0 {
            for number in 0..count {
                let delete = FlowMod { command: FlowCommand::DeleteStrict, ..foreign(table, number) };
                assert_eq!(self.datapath(dpid).flow_mod(now, &delete), Ok(()));
            }
        }
    }
}

/// Returns an entry that applies to no packet of a test.
fn foreign(table: u8, number: u16) -> FlowMod {
    let matching = Match::any().with(Field::EthType, 0x9100 + number);
    FlowMod { table: TableId(table), ..FlowMod::add(1, matching, Vec::new()) }
}
