//! Creates flow entries of the cases, and headers of listed flows.
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortNo, TableId};
use weir_packet::Field;
use weir_packet::field::{eth_type, ip_proto};
use weir_port::null::{FlowHeaderKind, GeneratedFlows, HeaderBytes};

/// Input port of all packets.
pub(super) const IN: PortNo = PortNo(1);
/// Output port of all packets.
pub(super) const OUT: PortNo = PortNo(2);
/// Cookie of a case's own entries, so that other entries do not count as hits.
pub(super) const COOKIE: u64 = 1;
/// Priority of entries whose order does not matter.
pub(super) const PRIORITY: u16 = 10;

/// Returns an entry that outputs to [`OUT`].
pub(super) fn output(priority: u16, matching: Match) -> FlowMod {
    let instructions = vec![Instruction::ApplyActions(vec![Action::output(OUT)])];
    FlowMod { cookie: COOKIE, ..FlowMod::add(priority, matching, instructions) }
}

/// Actions that replace the output action of a case's entries.
#[derive(Debug, Clone)]
pub(super) struct EntryActionsArg(Vec<Action>);

/// Parses actions in the syntax of `ovs-ofctl`.
pub(super) fn actions(text: &str) -> Result<EntryActionsArg, String> {
    weir_openflow::text::parse_actions(text).map(EntryActionsArg).map_err(|problem| problem.to_string())
}

impl EntryActionsArg {
    /// Replaces the action list of an entry of the case; other entries are returned unchanged.
    pub(super) fn of(&self, flow: FlowMod) -> FlowMod {
        match flow.instructions[..] {
            [Instruction::ApplyActions(_)] if flow.cookie == COOKIE => {
                FlowMod { instructions: vec![Instruction::ApplyActions(self.0.clone())], ..flow }
            }
            _ => flow,
        }
    }
}

/// Returns an entry that continues at table `next`.
pub(super) fn goto(next: u8, matching: Match) -> FlowMod {
    let instructions = vec![Instruction::GotoTable(TableId(next))];
    FlowMod { cookie: COOKIE, ..FlowMod::add(PRIORITY, matching, instructions) }
}

/// Returns the lowest-priority entry: it outputs packets that match no entry of the case, without counting as a hit.
pub(super) fn table_miss_entry() -> FlowMod {
    FlowMod { cookie: 0, ..output(0, Match::any()) }
}

pub(super) fn ipv4() -> Match {
    Match::any().with(Field::EthType, eth_type::IPV4)
}

pub(super) fn udp() -> Match {
    ipv4().with(Field::IpProto, ip_proto::UDP)
}

/// Adds a match on the first `length` bits of an address, or no field if `length` is 0.
pub(super) fn with_prefix(matching: Match, field: Field, address: u32, length: u32) -> Match {
    match prefix_mask(length) {
        0 => matching,
        u32::MAX => matching.with(field, address),
        mask => matching.with_masked(field, address & mask, mask),
    }
}

/// Returns the mask of an address prefix of `length` bits.
pub(super) fn prefix_mask(length: u32) -> u32 {
    u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0)
}

/// The five fields that identify a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FiveTuple {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) protocol: u8,
}

impl FiveTuple {
    /// Returns the headers of the flow's packets, in frames of `size` bytes.
    pub(super) fn header(&self, size: usize) -> Result<HeaderBytes, String> {
        let mut header = GeneratedFlows::new(FlowHeaderKind::Udp, 1, None, size)?.header(0);
        header[23] = self.protocol;
        header[26..30].copy_from_slice(&self.source.to_be_bytes());
        header[30..34].copy_from_slice(&self.destination.to_be_bytes());
        header[34..36].copy_from_slice(&self.source_port.to_be_bytes());
        header[36..38].copy_from_slice(&self.destination_port.to_be_bytes());
        if self.protocol == 6 {
            // The UDP length and checksum are at the place of a TCP sequence number; a TCP header is 20 bytes long.
            header[38..46].fill(0);
            header[46] = 0x50;
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::{Frame, ParsedHeaders};

    #[test]
    fn a_tuple_s_headers_parse_to_it() {
        for protocol in [1, 6, 17, 47] {
            let tuple = FiveTuple {
                source: 0x0102_0304,
                destination: 0x0506_0708,
                source_port: 9,
                destination_port: 10,
                protocol,
            };
            let frame = Frame::from_bytes(&tuple.header(60).unwrap()[..60]);
            let key = ParsedHeaders::of(&frame, IN).unwrap().key;
            assert_eq!((key.get(Field::Ipv4Src), key.get(Field::Ipv4Dst)), (0x0102_0304, 0x0506_0708));
            assert_eq!(key.get(Field::IpProto), u128::from(protocol));
            if protocol == 6 {
                assert_eq!((key.get(Field::TcpSrc), key.get(Field::TcpDst)), (9, 10));
            }
        }
    }

    #[test]
    fn actions_are_for_entries_of_the_case_that_output() {
        let actions = actions("dec_ttl,output:2").unwrap();
        let changed = actions.of(output(1, ipv4()));
        assert_eq!(changed.instructions, [Instruction::ApplyActions(vec![Action::DecNwTtl, Action::output(OUT)])]);
        for other in [table_miss_entry(), goto(1, ipv4())] {
            assert_eq!(actions.of(other.clone()), other);
        }
        assert!(super::actions("dec_tll").is_err());
    }

    #[test]
    fn prefixes_have_their_length() {
        assert_eq!([0, 1, 8, 32, 40].map(prefix_mask), [0, 1 << 31, 0xff00_0000, u32::MAX, u32::MAX]);
        assert_eq!(with_prefix(ipv4(), Field::Ipv4Dst, 1, 0), ipv4());
        let matching = with_prefix(ipv4(), Field::Ipv4Dst, 0x0a01_0203, 8);
        assert_eq!(matching.get(Field::Ipv4Dst), Some((0x0a00_0000, 0xff00_0000)));
    }
}
