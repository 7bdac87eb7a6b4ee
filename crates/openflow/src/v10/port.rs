//! Reads and writes the messages about ports (OpenFlow 1.0.0, 5.2.1, 5.4.3, 5.3.3, 5.3.5).
//!
//! Port numbers have 16 bits. The reserved ones, from 0xff01 on, are 1.3's without the high bits; 1.0's `NONE` is
//! 1.3's `ANY`.
use crate::model::port::{PortMod, PortStats, PortStatus, bits};
use crate::model::{PortDesc, PortNo};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, port};

/// Highest number of an ordinary port, `OFPP_MAX`.
const MAX: u16 = 0xff00;
/// High bits of 1.3's reserved port numbers.
const RESERVED: u32 = 0xffff_0000;
const NAME_BYTES: usize = 16;
/// `OFPPS_STP_*`: two bits of the state, and the value that means blocked.
const STP_MASK: u32 = 3 << 8;
const STP_BLOCK: u32 = 3 << 8;
/// `OFPPF_*` bits that are the same in 1.3. The bits above, from `COPPER` on, are four places higher in 1.3.
const SHARED_FEATURES: u32 = 0x7f;
/// 1.3's `OFPPF_*` bits from `COPPER` on.
const MOVED_FEATURES: u32 = !0x7ff;

/// Returns the port for a 16-bit number.
pub(crate) fn from_wire(number: u16) -> PortNo {
    PortNo(if number > MAX { RESERVED | u32::from(number) } else { number.into() })
}

/// Returns the 16-bit number of a port; `None` if it has none.
pub(crate) fn to_wire(port: PortNo) -> Option<u16> {
    let number = u16::try_from(port.0 & !RESERVED).ok()?;
    (from_wire(number) == port).then_some(number)
}

pub(crate) fn decode_no(reader: &mut WireReader<'_>) -> Decoded<PortNo> {
    reader.read_u16().map(from_wire)
}

pub(crate) fn encode_no(port: PortNo, writer: &mut WireWriter<'_>) -> Encoded {
    let Some(number) = to_wire(port) else {
        return Err(writer.cannot(format!("port {port}: ports end at {MAX}")));
    };
    writer.write_u16(number);
    Ok(())
}

fn features_from_wire(features: u32) -> u32 {
    features & SHARED_FEATURES | (features & !SHARED_FEATURES) << 4
}

/// Converts 1.3's feature bits to 1.0's. Leaves out rates that 1.0 has no bit for.
fn features_to_wire(features: u32) -> u32 {
    features & SHARED_FEATURES | (features & MOVED_FEATURES) >> 4
}

/// Converts 1.0's port state. A port blocked by spanning tree becomes 1.3's blocked port; the other spanning-tree
/// states keep their bits, which 1.3 does not use. Bits that have a meaning only in 1.3 are cleared.
fn state_from_wire(state: u32) -> u32 {
    let own = state & !(bits::BLOCKED | bits::LIVE);
    if own & STP_MASK == STP_BLOCK { own & !STP_MASK | bits::BLOCKED } else { own }
}

fn state_to_wire(state: u32) -> u32 {
    let own = state & !(bits::BLOCKED | bits::LIVE);
    if state & bits::BLOCKED != 0 { own | STP_BLOCK } else { own }
}

pub(crate) fn decode_desc(reader: &mut WireReader<'_>) -> Decoded<PortDesc> {
    Ok(PortDesc {
        port_no: decode_no(reader)?,
        hw_addr: reader.read_mac()?,
        name: reader.read_text(NAME_BYTES)?,
        config: reader.read_u32()?,
        state: state_from_wire(reader.read_u32()?),
        curr: features_from_wire(reader.read_u32()?),
        advertised: features_from_wire(reader.read_u32()?),
        supported: features_from_wire(reader.read_u32()?),
        peer: features_from_wire(reader.read_u32()?),
        curr_speed: 0,
        max_speed: 0,
        properties: Vec::new(),
    })
}

pub(crate) fn encode_desc(desc: &PortDesc, writer: &mut WireWriter<'_>) -> Encoded {
    encode_no(desc.port_no, writer)?;
    writer.write_mac(desc.hw_addr);
    writer.write_text(&desc.name, NAME_BYTES);
    writer.write_u32(desc.config);
    writer.write_u32(state_to_wire(desc.state));
    for features in [desc.curr, desc.advertised, desc.supported, desc.peer] {
        writer.write_u32(features_to_wire(features));
    }
    Ok(())
}

pub(crate) fn decode_status(reader: &mut WireReader<'_>) -> Decoded<PortStatus> {
    port::decode_status(reader, decode_desc)
}

pub(crate) fn encode_status(status: &PortStatus, writer: &mut WireWriter<'_>) -> Encoded {
    port::encode_status_head(status, writer);
    encode_desc(&status.desc, writer)
}

pub(crate) fn decode_mod(reader: &mut WireReader<'_>) -> Decoded<PortMod> {
    let (port_no, hw_addr) = (decode_no(reader)?, reader.read_mac()?);
    let (config, mask, advertise) = (reader.read_u32()?, reader.read_u32()?, features_from_wire(reader.read_u32()?));
    reader.skip(4)?;
    Ok(PortMod { port_no, hw_addr, config, mask, advertise, properties: Vec::new() })
}

pub(crate) fn encode_mod(port: &PortMod, writer: &mut WireWriter<'_>) -> Encoded {
    encode_no(port.port_no, writer)?;
    writer.write_mac(port.hw_addr);
    writer.write_u32(port.config);
    writer.write_u32(port.mask);
    writer.write_u32(features_to_wire(port.advertise));
    writer.write_zeros(4);
    Ok(())
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<PortStats> {
    let port_no = decode_no(reader)?;
    reader.skip(6)?;
    port::decode_counters(reader, port_no)
}

pub(crate) fn encode_stats(stats: &PortStats, writer: &mut WireWriter<'_>) -> Encoded {
    encode_no(stats.port_no, writer)?;
    writer.write_zeros(6);
    port::encode_counters(stats, writer);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::port::feature;

    #[test]
    fn every_number_comes_back() {
        for number in 0..=u16::MAX {
            assert_eq!(to_wire(from_wire(number)), Some(number));
        }
        assert_eq!(from_wire(0xfffb), PortNo::FLOOD);
        assert_eq!(from_wire(0xffff), PortNo::ANY);
        assert_eq!(to_wire(PortNo(0xff01)), None);
        assert_eq!(to_wire(PortNo(0x10001)), None);
    }

    #[test]
    fn features_move() {
        let copper_gigabit = 1 << 5 | 1 << 7 | 1 << 9;
        let model = feature::FD_1GB | feature::COPPER | feature::AUTONEG;
        assert_eq!(features_from_wire(copper_gigabit), model);
        assert_eq!(features_to_wire(model | feature::FD_40GB | feature::OTHER), copper_gigabit);
    }

    #[test]
    fn states_come_back() {
        for state in [0, 1, 1 << 8, 2 << 8, 3 << 8, 3 << 8 | 1] {
            assert_eq!(state_to_wire(state_from_wire(state)), state);
        }
        assert_eq!(state_from_wire(3 << 8), bits::BLOCKED);
        assert_eq!(state_from_wire(bits::BLOCKED), 0);
        assert_eq!(state_to_wire(bits::LIVE), 0);
    }
}
