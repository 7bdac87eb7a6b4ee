//! Frames of LLDP by which links are found (IEEE 802.1AB-2016, 8 and 9).
//!
//! Bridges do not forward LLDP's group address (IEEE 802.1D-2004, 7.12.6). So that ports find each other through other
//! switches, the same TLVs also go out as broadcast, under an EtherType that controllers use for this.
//!
//! Besides what the standard asks for, a frame carries a TLV of its own with the sending port, a number, the time, and
//! an authentication code that only the controller can work out. A host can send on a frame that it got, but neither
//! make one for another port nor make an old one look new.
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;
use weir_packet::field::eth_type;
use weir_units::Instant;

/// Types of TLVs: end, chassis id, port id, time to live, and those of an organisation.
const END: u8 = 0;
const CHASSIS_ID: u8 = 1;
const PORT_ID: u8 = 2;
const TIME_TO_LIVE: u8 = 3;
const OF_ORGANISATION: u8 = 127;
/// Subtype of an id that is only locally unique, for chassis and ports.
const LOCALLY_ASSIGNED: u8 = 7;
/// Identifier and subtype of weir's own TLV. The identifier is a locally administered one. Subtype 1 was a TLV without
/// number and time.
const WEIR: [u8; 4] = [0x02, 0x77, 0x72, 2];
/// Offset of the first TLV.
const ETHERNET_BYTES: usize = 14;
/// Shortest frame without checksum.
const MIN_FRAME_BYTES: usize = 60;

/// Form of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ProbeForm {
    /// LLDP to the nearest bridge.
    Direct,
    /// Broadcast, which other switches forward.
    Broadcast,
}

impl ProbeForm {
    /// Returns the form of frames with this EtherType.
    pub(super) fn of(eth_type: u16) -> Option<ProbeForm> {
        [ProbeForm::Direct, ProbeForm::Broadcast].into_iter().find(|form| form.header().1 == eth_type)
    }

    /// Returns destination and EtherType.
    fn header(self) -> (MacAddr, u16) {
        match self {
            ProbeForm::Direct => (MacAddr::NEAREST_BRIDGE, eth_type::LLDP),
            ProbeForm::Broadcast => (MacAddr::BROADCAST, eth_type::BROADCAST_DISCOVERY),
        }
    }
}

/// Port that sent a frame: datapath id and number.
pub(super) type SendingPort = (u64, PortNo);

/// Content of weir's own TLV, apart from the authentication code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LinkProbe {
    pub(super) from: SendingPort,
    /// Number of the frame; no two of a port have the same.
    pub(super) number: u64,
    /// Time at which the controller sent it.
    pub(super) sent: Instant,
    /// Nanoseconds that it took to reach the switch, as far as is known.
    pub(super) to_switch_ns: u64,
}

/// Returns a frame for a port. `seconds` is how long its receiver may believe it.
pub(super) fn frame(form: ProbeForm, probe: &LinkProbe, src: MacAddr, seconds: u16, code: u64) -> Vec<u8> {
    let (dpid, port) = probe.from;
    let (dst, eth_type) = form.header();
    let mut frame = [&dst.0[..], &src.0, &eth_type.to_be_bytes()].concat();
    tlv(&mut frame, CHASSIS_ID, &[&[LOCALLY_ASSIGNED], format!("weir:{dpid:016x}").as_bytes()].concat());
    tlv(&mut frame, PORT_ID, &[&[LOCALLY_ASSIGNED], format!("{port}").as_bytes()].concat());
    tlv(&mut frame, TIME_TO_LIVE, &seconds.to_be_bytes());
    let numbers = [dpid, port.0.into(), probe.number, probe.sent.as_nanos(), probe.to_switch_ns, code];
    tlv(&mut frame, OF_ORGANISATION, &[&WEIR[..], numbers.map(u64::to_be_bytes).as_flattened()].concat());
    tlv(&mut frame, END, &[]);
    frame.resize(frame.len().max(MIN_FRAME_BYTES), 0);
    frame
}

#[expect(clippy::cast_possible_truncation, reason = "all values here are short")]
fn tlv(frame: &mut Vec<u8>, kind: u8, value: &[u8]) {
    // Seven bits of type, nine of length (8.4).
    frame.extend((u16::from(kind) << 9 | value.len() as u16).to_be_bytes());
    frame.extend(value);
}

/// Returns the probe and the authentication code in a frame of a weir controller; `None` for other LLDP.
pub(super) fn read(frame: &[u8]) -> Option<(LinkProbe, u64)> {
    let mut rest = frame.get(ETHERNET_BYTES..)?;
    loop {
        let head = u16::from_be_bytes(*rest.first_chunk()?);
        let (kind, length) = (head >> 9, usize::from(head & 0x1ff));
        let value = rest.get(2..2 + length)?;
        match value.strip_prefix(&WEIR) {
            Some(own) if kind == u16::from(OF_ORGANISATION) => {
                let (numbers, _) = own.as_chunks();
                let [dpid, port, number, sent, to_switch_ns, code] = numbers.first_chunk()?.map(u64::from_be_bytes);
                let (from, sent) = ((dpid, PortNo(u32::try_from(port).ok()?)), Instant::from_nanos(sent));
                return Some((LinkProbe { from, number, sent, to_switch_ns }, code));
            }
            _ if kind == u16::from(END) => return None,
            _ => rest = &rest[2 + length..],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_pieces_do_not() {
        let (from, sent) = ((0xabc, PortNo(7)), Instant::from_nanos(5));
        let probe = LinkProbe { from, number: 3, sent, to_switch_ns: 12 };
        let broadcast = frame(ProbeForm::Broadcast, &probe, MacAddr([2; 6]), 15, 99);
        assert_eq!(
            (read(&broadcast), &broadcast[..6], &broadcast[12..14]),
            (Some((probe, 99)), &[0xff; 6][..], &[0x89, 0x42][..])
        );
        let sent = frame(ProbeForm::Direct, &probe, MacAddr([2; 6]), 15, 99);
        assert_eq!(read(&sent), Some((probe, 99)));
        assert!(sent.len() >= MIN_FRAME_BYTES && sent[12..14] == [0x88, 0xcc]);
        let end = sent.windows(4).position(|bytes| bytes == WEIR).unwrap() + 52;
        for length in 0..end {
            assert_eq!(read(&sent[..length]), None, "{length}");
        }
        let mut other = sent;
        other[end - 52] ^= 1;
        assert_eq!(read(&other), None, "another organisation's");
    }
}
