//! Defines the flow entries that are measured, and packets that match them. A number distinguishes each entry.
use std::net::Ipv4Addr;
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, Match, PortNo};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::{Field, MacAddr};
use weir_profile::MatchLayers;
use weir_traffic::{ProbeHeader, probe};

/// Most entries of one group, which a single command can delete.
pub const GROUP_ENTRIES: u32 = 1 << 16;
/// Number of groups.
pub const GROUPS: u32 = 256;
/// Length of the Ethernet, IPv4 and UDP headers, in bytes.
const HEADERS: usize = 42;
/// Length of the shortest packet with room for its mark, in bytes.
#[expect(clippy::cast_possible_truncation, reason = "sixty")]
pub const SHORTEST: u32 = (HEADERS + probe::BYTES) as u32;
const SOURCE: MacAddr = MacAddr([2, 0, 0, 0, 0xff, 1]);
/// Source address, from the network for benchmarks (RFC 2544, appendix C.2.2).
const SOURCE_IP: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// UDP port of the discard service.
const DISCARD: u16 = 9;

/// Flow entry to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TestFlowEntry {
    /// Number of the entry: 24 bits, of which the upper 8 are its group.
    pub number: u32,
    /// Priority of the entry.
    pub priority: u16,
    /// Fields that it matches, besides the input port and the EtherType.
    pub kind: MatchLayers,
}

/// Returns the number of entry `at` of a group.
pub fn number(group: u32, at: u32) -> u32 {
    ((group % GROUPS) << 16) | (at % GROUP_ENTRIES)
}

impl TestFlowEntry {
    fn mac(&self) -> MacAddr {
        let [_, group, high, low] = self.number.to_be_bytes();
        MacAddr([2, 0x77, 0, group, high, low])
    }

    fn ip(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(0x0a00_0000 | self.number)
    }

    fn matching(&self, in_port: PortNo) -> Match {
        let any = Match::any().with(Field::InPort, in_port.0).with(Field::EthType, eth_type::IPV4);
        let [a, b, c, d, e, f] = self.mac().0;
        let mac = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        match self.kind {
            MatchLayers::L2 => any.with(Field::EthDst, mac),
            MatchLayers::L3 => any.with(Field::Ipv4Dst, self.ip().to_bits()),
            MatchLayers::L2L3 => any.with(Field::EthDst, mac).with(Field::Ipv4Dst, self.ip().to_bits()),
        }
    }

    /// Returns a flow-mod that adds the entry: packets from `in_port` go to `out`.
    pub fn add(&self, in_port: PortNo, out: PortNo) -> FlowMod {
        let actions = vec![Action::Output { port: out, max_len: 0 }];
        FlowMod::add(self.priority, self.matching(in_port), vec![Instruction::ApplyActions(actions)])
    }

    /// Returns a flow-mod that changes the output port of the entry.
    pub fn modify(&self, in_port: PortNo, out: PortNo) -> FlowMod {
        FlowMod { command: FlowCommand::ModifyStrict, ..self.add(in_port, out) }
    }

    /// Returns a flow-mod that deletes only this entry.
    pub fn delete(&self, in_port: PortNo) -> FlowMod {
        let only = FlowMod::add(self.priority, self.matching(in_port), Vec::new());
        FlowMod { command: FlowCommand::DeleteStrict, ..only }
    }

    /// Returns a packet in the opposite direction, from which a learning device learns where the entry's packets go.
    pub fn answer(&self) -> Vec<u8> {
        let craft = FrameBuilder::ethernet(SOURCE, self.mac()).ipv4(self.ip(), SOURCE_IP).udp(DISCARD, 1024);
        craft.payload(&[0; probe::BYTES]).build()
    }

    /// Returns a packet that matches the entry and carries a mark, `bytes` long (at least [`SHORTEST`]).
    pub fn packet(&self, bytes: u32, mark: &ProbeHeader) -> Vec<u8> {
        let craft = FrameBuilder::ethernet(self.mac(), SOURCE).ipv4(SOURCE_IP, self.ip()).udp(1024, DISCARD);
        let mut payload = mark.bytes().to_vec();
        payload.resize((bytes.max(SHORTEST) as usize) - HEADERS, 0);
        craft.payload(&payload).build()
    }
}

/// Returns a flow-mod that deletes all entries of a group which match IP addresses.
pub fn delete_group(group: u32) -> FlowMod {
    let prefix = Match::any().with(Field::EthType, eth_type::IPV4).with_masked(
        Field::Ipv4Dst,
        0x0a00_0000 | number(group, 0),
        0xffff_0000_u32,
    );
    FlowMod { command: FlowCommand::Delete, ..FlowMod::add(0, prefix, Vec::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::parse;

    const MARK: ProbeHeader =
        ProbeHeader { run: 1, sequence: 2, sent_ns: 3, is_new_flow: false, counts: true, is_wall: false };

    #[test]
    fn packets_match_their_entry_and_no_other() {
        let port = PortNo(1);
        for kind in MatchLayers::ALL {
            let rule = |number| TestFlowEntry { number, priority: 7, kind };
            let (one, other) = (rule(number(3, 700)), rule(number(4, 700)));
            let key = parse::parse(&one.packet(128, &MARK), port).unwrap().key;
            let hits = |rule: &TestFlowEntry| {
                let (value, mask) = rule.add(port, PortNo(2)).matching.key_and_mask().unwrap();
                key.matches(&value, &mask)
            };
            assert!(hits(&one) && !hits(&other), "{kind:?}");
        }
    }

    #[test]
    fn answers_come_from_where_packets_go() {
        let rule = TestFlowEntry { number: number(3, 700), priority: 1, kind: MatchLayers::L2 };
        let (there, back) = (rule.packet(SHORTEST, &MARK), rule.answer());
        assert_eq!((&there[..6], &there[6..12]), (&back[6..12], &back[..6]));
        assert_eq!((back.len(), weir_packet::checksum::verify(&back)), (SHORTEST as usize, Ok(())));
        assert_eq!(ProbeHeader::find(&back, None), None, "it is not measured");
    }

    #[test]
    fn a_groups_prefix_covers_it_alone() {
        let rule = |group| TestFlowEntry { number: number(group, 5), priority: 7, kind: MatchLayers::L3 };
        let (value, mask) = delete_group(200).matching.key_and_mask().unwrap();
        let covers =
            |group| rule(group).add(PortNo(1), PortNo(2)).matching.key_and_mask().unwrap().0.matches(&value, &mask);
        assert!(covers(200) && !covers(201));
    }

    #[test]
    fn packets_have_their_length_and_carry_their_mark() {
        let rule = TestFlowEntry { number: 9, priority: 1, kind: MatchLayers::L2 };
        for bytes in [60, 64, 128, 1514] {
            let packet = rule.packet(bytes, &MARK);
            assert_eq!(packet.len(), bytes as usize);
            assert_eq!(ProbeHeader::find(&packet, Some(1)), Some(MARK));
            assert_eq!(weir_packet::checksum::verify(&packet), Ok(()));
        }
    }
}
