//! Messages to switches, and the frames in messages.
use crate::change::EntryChanges;
use crate::config::RouterPort;
use crate::entries::{COOKIE_BITS, RouterPlacement};
use weir_openflow::model::role::AsyncConfig;
use weir_openflow::model::{
    Action, Body, Bytes, FlowCommand, FlowMod, GroupId, Match, PacketInReason, PacketOut, PortNo, TableId,
};
use weir_packet::field::eth_type;

/// Length of an Ethernet address pair, and of a VLAN tag.
const ADDRESSES: usize = 12;
const TAG: usize = 4;

impl EntryChanges {
    /// Returns the messages that carry out the changes. Barriers keep the order between tables, and between what is
    /// added and what is deleted; one at the end lets the switch be asked afterwards.
    pub(super) fn messages(&self) -> Vec<Body> {
        let added = self.added.iter().map(|entry| (true, entry.key.table, entry.add()));
        let deleted = self.deleted.iter().map(|entry| (false, entry.key.table, entry.delete()));
        let (mut messages, mut step) = (Vec::new(), None);
        for (is_added, table, flow_mod) in added.chain(deleted) {
            if step.replace((is_added, table)).is_some_and(|former| former != (is_added, table)) {
                messages.push(Body::BarrierRequest);
            }
            messages.push(Body::FlowMod(flow_mod));
        }
        messages.extend(step.map(|_| Body::BarrierRequest));
        messages
    }
}

/// Returns the message that deletes all entries of a router.
pub(super) fn delete_all(placement: &RouterPlacement) -> [Body; 2] {
    let all = FlowMod::add(0, Match::any(), Vec::new());
    let (cookie, cookie_mask) = (placement.cookie, !COOKIE_BITS);
    let (table, command, out_group) = (TableId::ALL, FlowCommand::Delete, GroupId::ANY);
    let delete = FlowMod { table, command, cookie, cookie_mask, out_port: PortNo::ANY, out_group, ..all };
    [Body::FlowMod(delete), Body::BarrierRequest]
}

/// Returns the message that asks for packets whose TTL expires, besides those that the switch sends already; none if it
/// sends them (OpenFlow 1.3.5, 7.3.10).
pub(super) fn with_expired(mut config: AsyncConfig) -> Option<Body> {
    let wanted = 1 << PacketInReason::InvalidTtl as u32;
    let [as_master, _] = &mut config.packet_in;
    let present = as_master.unwrap_or(0);
    *as_master = Some(present | wanted);
    (present & wanted == 0).then_some(Body::SetAsync(config))
}

/// Returns the VLAN of a frame and the frame without the tag. A frame with a tag of VLAN 0 or of a provider stays as it
/// is: no port of a router has it.
pub(super) fn without_tag(frame: &[u8]) -> (Option<u16>, Vec<u8>) {
    let tag = frame.get(ADDRESSES..ADDRESSES + TAG).filter(|tag| tag[..2] == eth_type::VLAN.to_be_bytes());
    let vlan = tag.map(|tag| u16::from_be_bytes([tag[2], tag[3]]) & 0xfff);
    match (vlan, frame.split_at_checked(ADDRESSES)) {
        (Some(vlan), Some((addresses, rest))) => (Some(vlan), [addresses, rest.get(TAG..).unwrap_or(&[])].concat()),
        _ => (None, frame.to_vec()),
    }
}

/// Returns the message that sends a frame out of a port of a router, with its tag and through its queue.
pub(super) fn packet_out(port: &RouterPort, frame: &[u8]) -> Body {
    let mut data = frame.to_vec();
    if let (Some(vlan), true) = (port.port.vlan, data.len() >= ADDRESSES) {
        let tag = [eth_type::VLAN.to_be_bytes(), vlan.to_be_bytes()].concat();
        data.splice(ADDRESSES..ADDRESSES, tag);
    }
    let queue = port.queue.map(Action::SetQueue);
    let actions = queue.into_iter().chain([Action::output(port.port.number)]).collect();
    let (buffer_id, in_port, matching, data) = (None, PortNo::CONTROLLER, Match::any(), Bytes(data));
    Body::PacketOut(PacketOut { buffer_id, in_port, matching, actions, data })
}
