//! The messages a learning switch sends: entries, their deletion, packets.
use super::ports::{Tag, Vlan};
use std::time::Duration;
use weir_openflow::Version;
use weir_openflow::model::action::NO_BUFFER;
use weir_openflow::model::multipart::{FlowRequest, RequestBody};
use weir_openflow::model::{
    Action, Body, Bytes, FlowCommand, FlowFlags, FlowMod, Instruction, Match, MultipartRequest, PacketIn, PacketOut,
    PortNo, SwitchConfig, TableId,
};
use weir_packet::field::VLAN_PRESENT;
use weir_packet::{Field, MacAddr};

/// Bytes of a packet that a switch which keeps packets sends along: enough for the Ethernet header and two tags.
const HEADER_BYTES: u16 = 128;
/// Cookies of our entries: `weir` in ASCII, then the VLAN id.
const COOKIE: u64 = 0x7765_6972_0000_0000;
/// Seconds for which an entry that drops stays, whatever comes: what it drops may be wanted once a station has moved.
const DROP_SECONDS: u16 = 10;

/// The flow of a packet, as an entry matches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Flow {
    pub(super) in_port: PortNo,
    pub(super) tag: Tag,
    pub(super) vlan: Vlan,
    pub(super) src: MacAddr,
    pub(super) dst: MacAddr,
}

/// What makes a switch ready, in order: nothing left of earlier controllers, and packets that match nothing come to us.
/// Asking for the ports comes first, so that they are known when the first packet comes.
pub(super) fn setup(version: Version, n_buffers: u32) -> Vec<Body> {
    let max_len = if n_buffers > 0 { HEADER_BYTES } else { NO_BUFFER };
    let clear = Body::FlowMod(FlowMod::delete_all());
    match version {
        Version::V10 => vec![clear, Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: max_len })],
        _ => vec![ask_ports(), clear, miss(max_len)],
    }
}

/// What makes a switch ready that another controller had before, in 1.3 and later: its entries are asked for, not deleted.
pub(super) fn take_over(n_buffers: u32) -> [Body; 3] {
    let max_len = if n_buffers > 0 { HEADER_BYTES } else { NO_BUFFER };
    let ours = FlowRequest { cookie: COOKIE, cookie_mask: !0xffff, ..FlowRequest::all() };
    let entries = Body::MultipartRequest(MultipartRequest { more: false, body: RequestBody::Flow(ours) });
    [ask_ports(), entries, miss(max_len)]
}

fn ask_ports() -> Body {
    Body::MultipartRequest(MultipartRequest { more: false, body: RequestBody::PortDesc(PortNo::ANY) })
}

/// The entry by which packets that match nothing come to us.
fn miss(max_len: u16) -> Body {
    let to_us = vec![Action::Output { port: PortNo::CONTROLLER, max_len }];
    Body::FlowMod(FlowMod::add(0, Match::any(), vec![Instruction::ApplyActions(to_us)]))
}

/// An entry that does `actions` with a flow until nothing of it came for `idle_timeout`; the switch says when it goes.
pub(super) fn forward(flow: &Flow, priority: u16, idle_timeout: Duration, actions: Vec<Action>) -> Body {
    let entry = FlowMod::add(priority, flow.matching(), vec![Instruction::ApplyActions(actions)]);
    let idle_timeout = u16::try_from(idle_timeout.as_secs()).unwrap_or(u16::MAX);
    let flags = FlowFlags::SEND_FLOW_REM;
    Body::FlowMod(FlowMod { idle_timeout, flags, cookie: cookie(flow.vlan), ..entry })
}

/// An entry that drops a flow, for a while.
pub(super) fn drop_for_a_while(flow: &Flow, priority: u16) -> Body {
    let entry = FlowMod::add(priority, flow.matching(), Vec::new());
    Body::FlowMod(FlowMod { hard_timeout: DROP_SECONDS, cookie: cookie(flow.vlan), ..entry })
}

/// Deletes the entries of a station that left `port`: what it sent from there, and what is sent to it there.
///
/// Only those of its VLAN; in 1.0, which cannot select by cookie, a namesake's in another VLAN that enter or leave by the
/// same port go too, and come back with its next packet.
pub(super) fn forget_station(version: Version, vlan: Vlan, mac: MacAddr, port: PortNo) -> [Body; 2] {
    let mac = mac.to_bits();
    let from = Match::any().with(Field::InPort, port.0).with(Field::EthSrc, mac);
    let to = Match::any().with(Field::EthDst, mac);
    let (cookie, cookie_mask) = match version {
        Version::V10 => (0, 0),
        _ => (cookie(vlan), u64::MAX),
    };
    let narrow = |delete| Body::FlowMod(FlowMod { cookie, cookie_mask, ..delete });
    [narrow(delete(from, PortNo::ANY)), narrow(delete(to, port))]
}

/// Deletes the entries by which packets enter or leave by a port.
pub(super) fn forget_port(port: PortNo) -> [Body; 2] {
    let entering = Match::any().with(Field::InPort, port.0);
    [Body::FlowMod(delete(entering, PortNo::ANY)), Body::FlowMod(delete(Match::any(), port))]
}

/// Sends the packet of a packet-in, from the switch's buffer if it is there; none if the switch did not send all of it.
/// No actions let the switch drop it.
pub(super) fn packet_out(packet: PacketIn, in_port: PortNo, actions: Vec<Action>) -> Option<Body> {
    let kept = packet.buffer_id.is_some();
    if !kept && (packet.data.0.len() < usize::from(packet.total_len) || actions.is_empty()) {
        return None;
    }
    let data = if kept { Bytes::default() } else { packet.data };
    Some(Body::PacketOut(PacketOut { buffer_id: packet.buffer_id, in_port, matching: Match::any(), actions, data }))
}

fn delete(matching: Match, out_port: PortNo) -> FlowMod {
    let all = FlowMod::add(0, matching, Vec::new());
    FlowMod { table: TableId::ALL, command: FlowCommand::Delete, out_port, ..all }
}

fn cookie(vlan: Vlan) -> u64 {
    COOKIE | u64::from(vlan)
}

impl Flow {
    /// The flow of an entry, if it is one of ours.
    #[expect(clippy::cast_possible_truncation, reason = "ports have 32 bits, MAC addresses 48, VLAN ids 12")]
    pub(super) fn of_entry(matching: &Match, cookie: u64) -> Option<Flow> {
        let exact = |field| matching.get(field).map(|(value, _)| value);
        let mac = |field| exact(field).map(|value| MacAddr::from_bits(value as u64));
        let vlan_vid = exact(Field::VlanVid)? as u16;
        (cookie & !0xffff == COOKIE).then_some(())?;
        Some(Flow {
            in_port: PortNo(exact(Field::InPort)? as u32),
            tag: (vlan_vid & VLAN_PRESENT != 0).then_some(vlan_vid & !VLAN_PRESENT),
            vlan: (cookie & 0xffff) as u16,
            src: mac(Field::EthSrc)?,
            dst: mac(Field::EthDst)?,
        })
    }

    fn matching(&self) -> Match {
        let vlan_vid = self.tag.map_or(0, |id| VLAN_PRESENT | id);
        Match::any()
            .with(Field::InPort, self.in_port.0)
            .with(Field::EthDst, self.dst.to_bits())
            .with(Field::EthSrc, self.src.to_bits())
            .with(Field::VlanVid, vlan_vid)
    }
}
