//! Frames that carry their number and the key of their flow entry.
use weir_openflow::model::{FlowMod, Instruction, Match};
use weir_packet::craft::FrameBuilder;
use weir_packet::{Field, MacAddr};

/// Offset of a frame's payload: after Ethernet, IPv4 and UDP headers, in bytes.
const PAYLOAD: usize = 14 + 20 + 8;

/// Destination prefix that selects packets for the virtual switch.
pub(super) const VIRTUAL_PREFIX: &str = "10.9.0.0/16";
/// First key of entries of the virtual switch.
pub(super) const FIRST_VIRTUAL_KEY: u16 = 30_000;

/// Makes a frame for a key, with its number.
pub(super) fn frame(key: u16, number: u64) -> Vec<u8> {
    let to = if key >= FIRST_VIRTUAL_KEY { [10, 9, 0, 2] } else { [10, 0, 0, 2] };
    let link = FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    let ip = link.ipv4([10, 0, 0, 1].into(), to.into());
    ip.udp(1, key).payload(&number.to_be_bytes()).frame().bytes().to_vec()
}

/// Returns the number in a frame, or in the beginning of a frame.
pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    let payload = bytes.get(PAYLOAD..PAYLOAD + 8)?;
    Some(u64::from_be_bytes(payload.try_into().ok()?))
}

/// Makes the flow-mod that adds the entry of a key.
pub(super) fn entry(key: u16, instructions: Vec<Instruction>) -> FlowMod {
    let matching = Match::any().with(Field::EthType, 0x0800u16).with(Field::IpProto, 17u8).with(Field::UdpDst, key);
    FlowMod::add(10, matching, instructions)
}
