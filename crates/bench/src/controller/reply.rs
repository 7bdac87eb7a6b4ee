//! Views of the two messages by which controllers answer packet-ins, read in place: flow-mod and packet-out.
use weir_openflow::Version;
use weir_packet::MacAddr;

/// Type numbers of messages, equal in all versions (OpenFlow 1.3.5, 7.1).
pub(super) mod message_type {
    pub(in super::super) const HELLO: u8 = 0;
    pub(in super::super) const ERROR: u8 = 1;
    pub(in super::super) const ECHO_REQUEST: u8 = 2;
    pub(in super::super) const ECHO_REPLY: u8 = 3;
    pub(in super::super) const PACKET_IN: u8 = 10;
    pub(in super::super) const PACKET_OUT: u8 = 13;
    pub(in super::super) const FLOW_MOD: u8 = 14;
}

/// `OFP_NO_BUFFER`.
const NO_BUFFER: u32 = u32::MAX;
/// `OFPFW_DL_SRC` and `OFPFW_DL_DST` of 1.0: the field is not matched.
const ANY_SRC: u32 = 1 << 2;
const ANY_DST: u32 = 1 << 3;
/// OXM headers without mask of the Ethernet addresses (OpenFlow 1.3.5, 7.2.3.7).
const OXM_ETH_DST: [u8; 4] = [0x80, 0, 3 << 1, 6];
const OXM_ETH_SRC: [u8; 4] = [0x80, 0, 4 << 1, 6];
/// Highest command that adds or modifies: add, modify, modify strict.
const MODIFY_STRICT: u8 = 2;

/// Statements of a reply about its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyView<'a> {
    /// A flow-mod.
    FlowMod {
        /// True for add and modify, false for delete.
        adds: bool,
        /// True for add.
        is_add: bool,
        buffer: Option<u32>,
        src: Option<MacAddr>,
        dst: Option<MacAddr>,
    },
    /// A packet-out; the frame is empty if it is in a buffer.
    PacketOut { buffer: Option<u32>, frame: &'a [u8] },
}

/// Reads a flow-mod or a packet-out, with its header. Returns `None` if it is malformed.
pub(super) fn read(version: Version, message: &[u8]) -> Option<ReplyView<'_>> {
    match (message.get(1)?, version) {
        (&message_type::FLOW_MOD, Version::V10) => flow_mod_10(message),
        (&message_type::FLOW_MOD, _) => flow_mod(message),
        (_, Version::V10) => packet_out(message, 14, 16),
        _ => packet_out(message, 16, 24),
    }
}

fn flow_mod_10(message: &[u8]) -> Option<ReplyView<'_>> {
    let wildcards = u32_at(message, 8)?;
    let command = u16_at(message, 56)?;
    let buffer = buffer_at(message, 64)?;
    message.get(..72)?;
    let address = |any, at| if wildcards & any == 0 { mac_at(message, at) } else { None };
    let adds = command <= u16::from(MODIFY_STRICT);
    Some(ReplyView::FlowMod {
        adds,
        is_add: command == 0,
        buffer,
        src: address(ANY_SRC, 14),
        dst: address(ANY_DST, 20),
    })
}

fn flow_mod(message: &[u8]) -> Option<ReplyView<'_>> {
    let command = *message.get(25)?;
    let buffer = buffer_at(message, 32)?;
    let length = usize::from(u16_at(message, 50)?);
    let mut fields = message.get(52..48 + length.max(4))?;
    let (mut src, mut dst) = (None, None);
    while fields.len() >= 4 {
        let (header, rest) = fields.split_at(4);
        let value = rest.get(..usize::from(header[3]))?;
        match header {
            _ if *header == OXM_ETH_DST => dst = mac_at(value, 0),
            _ if *header == OXM_ETH_SRC => src = mac_at(value, 0),
            _ => {}
        }
        fields = &rest[value.len()..];
    }
    Some(ReplyView::FlowMod { adds: command <= MODIFY_STRICT, is_add: command == 0, buffer, src, dst })
}

fn packet_out(message: &[u8], length_at: usize, actions_at: usize) -> Option<ReplyView<'_>> {
    let buffer = buffer_at(message, 8)?;
    let length = usize::from(u16_at(message, length_at)?);
    Some(ReplyView::PacketOut { buffer, frame: message.get(actions_at + length..)? })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn mac_at(bytes: &[u8], at: usize) -> Option<MacAddr> {
    Some(MacAddr(bytes.get(at..at + 6)?.try_into().ok()?))
}

/// Returns the buffer's number, `Some(None)` for none.
fn buffer_at(bytes: &[u8], at: usize) -> Option<Option<u32>> {
    u32_at(bytes, at).map(|number| (number != NO_BUFFER).then_some(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::{Action, BufferId, Bytes, FlowMod, Instruction, Match, PacketOut, PortNo};
    use weir_openflow::{Body, Message, codec};
    use weir_packet::Field;

    fn encoded(body: Body, version: Version) -> Vec<u8> {
        let mut bytes = Vec::new();
        codec::encode(&Message { xid: 7, body }, version, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn views_agree_with_the_codec() {
        let [src, dst] = [MacAddr([2, 0, 1, 0, 0, 3]), MacAddr([2, 0, 1, 0, 0, 4])];
        let matching = Match::any().with(Field::InPort, 3_u32).with(Field::EthSrc, src.to_bits());
        let matching = matching.with(Field::EthDst, dst.to_bits());
        let to = vec![Action::output(PortNo(2))];
        let add = FlowMod::add(1, matching, vec![Instruction::ApplyActions(to.clone())]);
        for version in [Version::V10, Version::V13, Version::V14] {
            let flow = FlowMod { buffer_id: Some(BufferId(9)), ..add.clone() };
            let bytes = encoded(Body::FlowMod(flow), version);
            let expected =
                ReplyView::FlowMod { adds: true, is_add: true, buffer: Some(9), src: Some(src), dst: Some(dst) };
            assert_eq!(read(version, &bytes), Some(expected));
            let all = encoded(Body::FlowMod(FlowMod::delete_all()), version);
            let expected = ReplyView::FlowMod { adds: false, is_add: false, buffer: None, src: None, dst: None };
            assert_eq!(read(version, &all), Some(expected));
            for (buffer_id, data) in [(Some(BufferId(4)), vec![]), (None, vec![1, 2, 3])] {
                let out = PacketOut {
                    buffer_id,
                    in_port: PortNo(1),
                    matching: Match::any(),
                    actions: to.clone(),
                    data: Bytes(data.clone()),
                };
                let bytes = encoded(Body::PacketOut(out), version);
                let buffer = buffer_id.map(|id| id.0);
                assert_eq!(read(version, &bytes), Some(ReplyView::PacketOut { buffer, frame: &data }));
            }
            for length in 0..bytes.len() {
                let _ = read(version, &bytes[..length]);
            }
        }
    }
}
