//! Makes the messages that a learning switch sends: entries, their deletion, packet-outs.
use super::ports::{VlanId, VlanTag};
use std::time::Duration;
use weir_openflow::Version;
use weir_openflow::model::action::NO_BUFFER;
use weir_openflow::model::multipart::{FlowRequest, RequestBody};
use weir_openflow::model::{
    Action, Body, BufferId, Bytes, FlowCommand, FlowFlags, FlowMod, Instruction, Match, MultipartRequest, PacketOut,
    PortNo, SwitchConfig, TableId,
};
use weir_packet::field::VLAN_PRESENT;
use weir_packet::{Field, MacAddr};

/// Bytes of a packet that a switch with buffers sends along: enough for the Ethernet header and two tags.
const HEADER_BYTES: u16 = 128;
/// Cookie of this application's entries: `weir` in ASCII, then the VLAN id.
const COOKIE: u64 = 0x7765_6972_0000_0000;
/// Hard timeout in seconds of an entry that drops. Short, because dropped packets may be wanted once a station has
/// moved.
const DROP_SECONDS: u16 = 10;

/// Flow of a packet, as an entry matches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EthernetFlow {
    pub(super) in_port: PortNo,
    pub(super) tag: VlanTag,
    pub(super) vlan: VlanId,
    pub(super) src: MacAddr,
    pub(super) dst: MacAddr,
}

/// Returns the messages that set up a switch, in order: delete all entries of earlier controllers, and send table
/// misses to the controller. In 1.3 the ports are requested first, so that they are known before the first packet
/// arrives.
pub(super) fn setup(version: Version, n_buffers: u32) -> Vec<Body> {
    let max_len = if n_buffers > 0 { HEADER_BYTES } else { NO_BUFFER };
    let clear = Body::FlowMod(FlowMod::delete_all());
    match version {
        Version::V10 => vec![clear, Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: max_len })],
        _ => vec![ask_ports(), clear, miss(max_len)],
    }
}

/// Returns the messages that set up a switch of another controller, in 1.3 and later: entries are requested instead
/// of deleted.
pub(super) fn take_over(n_buffers: u32) -> [Body; 3] {
    let max_len = if n_buffers > 0 { HEADER_BYTES } else { NO_BUFFER };
    let ours = FlowRequest { cookie: COOKIE, cookie_mask: !0xffff, ..FlowRequest::all() };
    let entries = Body::MultipartRequest(MultipartRequest { more: false, body: RequestBody::Flow(ours) });
    [ask_ports(), entries, miss(max_len)]
}

fn ask_ports() -> Body {
    Body::MultipartRequest(MultipartRequest { more: false, body: RequestBody::PortDesc(PortNo::ANY) })
}

/// Returns the table-miss entry, which sends packets to the controller.
fn miss(max_len: u16) -> Body {
    let to_us = vec![Action::Output { port: PortNo::CONTROLLER, max_len }];
    Body::FlowMod(FlowMod::add(0, Match::any(), vec![Instruction::ApplyActions(to_us)]))
}

/// Returns an entry that applies `actions` to a flow. It expires after `idle_timeout` without a packet, and the
/// switch reports its removal. A packet in the switch's buffer is sent by it.
pub(super) fn forward(
    flow: &EthernetFlow,
    priority: u16,
    idle_timeout: Duration,
    buffer_id: Option<BufferId>,
    actions: Vec<Action>,
) -> Body {
    let entry = FlowMod::add(priority, flow.matching(), vec![Instruction::ApplyActions(actions)]);
    let idle_timeout = u16::try_from(idle_timeout.as_secs()).unwrap_or(u16::MAX);
    let flags = FlowFlags::SEND_FLOW_REM;
    Body::FlowMod(FlowMod { idle_timeout, flags, cookie: cookie(flow.vlan), buffer_id, ..entry })
}

/// Returns an entry that drops a flow for [`DROP_SECONDS`], and a packet of it in the switch's buffer.
pub(super) fn drop_for_a_while(flow: &EthernetFlow, priority: u16, buffer_id: Option<BufferId>) -> Body {
    let entry = FlowMod::add(priority, flow.matching(), Vec::new());
    Body::FlowMod(FlowMod { hard_timeout: DROP_SECONDS, cookie: cookie(flow.vlan), buffer_id, ..entry })
}

/// Returns messages that delete the entries of a station that left `port`: of frames that it sent from there, and of
/// frames sent to it there.
///
/// Only entries of its VLAN are deleted. OpenFlow 1.0 cannot select by cookie, so entries of an equal address in
/// another VLAN that use the port are deleted, too. Its next packet restores them.
pub(super) fn forget_station(version: Version, vlan: VlanId, mac: MacAddr, port: PortNo) -> [Body; 2] {
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

/// Returns messages that delete the entries by which packets enter or leave by a port.
pub(super) fn forget_port(port: PortNo) -> [Body; 2] {
    let entering = Match::any().with(Field::InPort, port.0);
    [Body::FlowMod(delete(entering, PortNo::ANY)), Body::FlowMod(delete(Match::any(), port))]
}

/// Returns a packet-out, of a packet in the switch's buffer or of `data`. Without actions the switch drops the packet.
pub(super) fn packet_out(buffer_id: Option<BufferId>, in_port: PortNo, actions: Vec<Action>, data: &[u8]) -> Body {
    let data = Bytes(if buffer_id.is_some() { Vec::new() } else { data.to_vec() });
    Body::PacketOut(PacketOut { buffer_id, in_port, matching: Match::any(), actions, data })
}

fn delete(matching: Match, out_port: PortNo) -> FlowMod {
    let all = FlowMod::add(0, matching, Vec::new());
    FlowMod { table: TableId::ALL, command: FlowCommand::Delete, out_port, ..all }
}

fn cookie(vlan: VlanId) -> u64 {
    COOKIE | u64::from(vlan)
}

impl std::hash::Hash for EthernetFlow {
    /// Hashes three words instead of the parts of each field.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let tag = self.tag.map_or(0, |id| VLAN_PRESENT | id);
        state.write_u64(self.src.to_bits() << 16 | u64::from(self.vlan));
        state.write_u64(self.dst.to_bits() << 16 | u64::from(tag));
        state.write_u32(self.in_port.0);
    }
}

impl EthernetFlow {
    /// Returns the flow of an entry; `None` if the entry is not this application's.
    #[expect(clippy::cast_possible_truncation, reason = "ports have 32 bits, MAC addresses 48, VLAN ids 12")]
    pub(super) fn of_entry(matching: &Match, cookie: u64) -> Option<EthernetFlow> {
        let exact = |field| matching.get(field).map(|(value, _)| value);
        let mac = |field| exact(field).map(|value| MacAddr::from_bits(value as u64));
        let vlan_vid = exact(Field::VlanVid)? as u16;
        (cookie & !0xffff == COOKIE).then_some(())?;
        Some(EthernetFlow {
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
