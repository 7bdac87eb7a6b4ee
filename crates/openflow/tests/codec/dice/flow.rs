//! Generates matches, actions, instructions, and the messages about flow entries.
use super::Dice;
use weir_openflow::model::action::{Action, Instruction, Subfield};
use weir_openflow::model::flow::*;
use weir_openflow::model::group::*;
use weir_openflow::model::matching::RawField;
use weir_openflow::model::meter::*;
use weir_openflow::model::*;
use weir_packet::Field;
use weir_packet::field::{VLAN_PRESENT, eth_type, ip_proto};

impl Dice<'_> {
    pub(super) fn raw_field(&mut self) -> RawField {
        // A class that does not exist.
        RawField { class: 0x7001, number: self.below(128), has_mask: self.flag(), payload: self.bytes() }
    }

    /// Generates fields without regard to prerequisites, which the codec does not check.
    pub(super) fn matching(&mut self, version: Version) -> Match {
        if version == Version::V10 {
            return self.matching_v10();
        }
        let fields = self.few(|dice| {
            if dice.below(6) == 5 {
                return MatchField::Raw(dice.raw_field());
            }
            let field = dice.pick(&Field::ALL);
            let mask = if dice.flag() { Some(dice.bounded(field)) } else { None };
            MatchField::Known { field, value: dice.bounded(field), mask }
        });
        Match { fields }
    }

    /// Generates fields in the order in which 1.0's codec decodes them.
    pub(super) fn matching_v10(&mut self) -> Match {
        let mut matching = Match::any();
        let exact = |field: Field, dice: &mut Self, matching: &mut Match| {
            if dice.flag() {
                let value = dice.bounded(field);
                matching.fields.push(MatchField::Known { field, value, mask: None });
            }
        };
        if self.flag() {
            matching = matching.with(Field::InPort, self.port(Version::V10).0);
        }
        exact(Field::EthDst, self, &mut matching);
        exact(Field::EthSrc, self, &mut matching);
        let kind = self.below(5);
        let types = [0, eth_type::IPV4, eth_type::ARP, eth_type::IPV6, 0x1234];
        if kind > 0 {
            matching = matching.with(Field::EthType, types[usize::from(kind)]);
        }
        match self.below(4) {
            0 => (),
            1 => matching = matching.with(Field::VlanVid, 0_u16),
            2 => {
                matching = matching.with(Field::VlanVid, self.u16() & 0xfff | VLAN_PRESENT);
                exact(Field::VlanPcp, self, &mut matching);
            }
            _ => {
                matching = matching
                    .with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT)
                    .with(Field::VlanPcp, self.below(8));
            }
        }
        match types[usize::from(kind)] {
            eth_type::ARP => {
                if self.flag() {
                    matching = matching.with(Field::ArpOp, self.u8());
                }
                self.addresses([Field::ArpSpa, Field::ArpTpa], &mut matching);
            }
            eth_type::IPV4 | eth_type::IPV6 => {
                exact(Field::IpDscp, self, &mut matching);
                let is_ipv4 = types[usize::from(kind)] == eth_type::IPV4;
                let protos = [
                    (ip_proto::TCP, Some((Field::TcpSrc, Field::TcpDst))),
                    (ip_proto::UDP, Some((Field::UdpSrc, Field::UdpDst))),
                    (ip_proto::SCTP, Some((Field::SctpSrc, Field::SctpDst))),
                    (ip_proto::ICMP, is_ipv4.then_some((Field::Icmpv4Type, Field::Icmpv4Code))),
                    (ip_proto::ICMPV6, (!is_ipv4).then_some((Field::Icmpv6Type, Field::Icmpv6Code))),
                    (99, None),
                ];
                let proto = self.flag().then(|| self.pick(&protos));
                if let Some((number, _)) = proto {
                    matching = matching.with(Field::IpProto, number);
                }
                if is_ipv4 {
                    self.addresses([Field::Ipv4Src, Field::Ipv4Dst], &mut matching);
                }
                if let Some((_, Some((source, destination)))) = proto {
                    exact(source, self, &mut matching);
                    exact(destination, self, &mut matching);
                }
            }
            _ => (),
        }
        matching
    }

    pub(super) fn addresses(&mut self, fields: [Field; 2], matching: &mut Match) {
        for field in fields {
            let length = self.below(33);
            let address = self.u32();
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            if length > 0 {
                let mask_field = (length < 32).then_some(mask.into());
                let value = u128::from(address & mask);
                matching.fields.push(MatchField::Known { field, value, mask: mask_field });
            }
        }
    }

    pub(super) fn actions(&mut self, version: Version) -> Vec<Action> {
        self.few(|dice| match version {
            Version::V10 => dice.action_v10(),
            version => dice.action_v13(version),
        })
    }

    pub(super) fn action_v10(&mut self) -> Action {
        match self.below(13) {
            0 => Action::Output { port: self.output_port(Version::V10), max_len: self.u16() },
            1 => Action::SetVlanVid(self.u16() & 0xfff),
            2 => Action::SetVlanPcp(self.below(8)),
            3 => Action::PopVlan,
            4 => Action::set_mac(Field::EthSrc, self.mac()),
            5 => Action::set_mac(Field::EthDst, self.mac()),
            6 => Action::SetNwSrc(self.u32()),
            7 => Action::SetNwDst(self.u32()),
            8 => Action::SetNwTos(self.u8()),
            9 => Action::SetTpSrc(self.u16()),
            10 => Action::SetTpDst(self.u16()),
            11 => Action::Enqueue { port: self.output_port(Version::V10), queue: self.u32() },
            _ => Action::Experimenter { id: self.u32(), data: self.eights() },
        }
    }

    pub(super) fn action_v13(&mut self, version: Version) -> Action {
        match self.below(if version >= Version::V15 { 21 } else { 18 }) {
            18 => Action::Meter(MeterId(self.u32())),
            19 => {
                let field = self.pick(&Field::ALL);
                Action::SetFieldMasked { field, value: self.bounded(field), mask: self.bounded(field) }
            }
            20 => {
                let (src, dst, bits) = (self.pick(&Field::ALL), self.pick(&Field::ALL), self.u16());
                let mut part = |field| Subfield { field, offset: self.u16(), bits };
                Action::Move { src: part(src), dst: part(dst) }
            }
            0 => Action::Output { port: self.output_port(version), max_len: self.u16() },
            1 => Action::Group(self.group()),
            2 => Action::SetQueue(self.u32()),
            3 => Action::CopyTtlOut,
            4 => Action::CopyTtlIn,
            5 => Action::SetMplsTtl(self.u8()),
            6 => Action::DecMplsTtl,
            7 => Action::SetNwTtl(self.u8()),
            8 => Action::DecNwTtl,
            9 => Action::PushVlan(self.u16()),
            10 => Action::PopVlan,
            11 => Action::PushMpls(self.u16()),
            12 => Action::PopMpls(self.u16()),
            13 => Action::PushPbb(self.u16()),
            14 => Action::PopPbb,
            15 => Action::Experimenter { id: self.u32(), data: self.eights() },
            16 => Action::SetFieldRaw(self.raw_field()),
            _ => {
                let field = self.pick(&Field::ALL);
                Action::SetField { field, value: self.bounded(field) }
            }
        }
    }

    pub(super) fn instructions(&mut self, version: Version) -> Vec<Instruction> {
        if version == Version::V10 {
            let actions = self.actions(version);
            return if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] };
        }
        let n_kinds = if version >= Version::V15 { 8 } else { 7 };
        self.few(|dice| match dice.below(n_kinds) {
            7 => Instruction::StatTrigger { flags: dice.u32(), thresholds: dice.stats() },
            0 => Instruction::GotoTable(dice.table()),
            1 => Instruction::WriteMetadata { metadata: dice.u64(), mask: dice.u64() },
            2 => Instruction::WriteActions(dice.actions(version)),
            3 => Instruction::ApplyActions(dice.actions(version)),
            4 => Instruction::ClearActions,
            5 if version < Version::V15 => Instruction::Meter(MeterId(dice.u32())),
            _ => Instruction::Experimenter { id: dice.u32(), data: dice.eights() },
        })
    }

    pub(super) fn flags(&mut self, version: Version) -> FlowFlags {
        match version {
            Version::V10 => FlowFlags(self.u16() & (3 | FlowFlags::EMERG.0)),
            _ => FlowFlags(self.u16() & !FlowFlags::EMERG.0),
        }
    }

    pub(super) fn flow_mod(&mut self, version: Version) -> FlowMod {
        let command = self.pick(&[
            FlowCommand::Add,
            FlowCommand::Modify,
            FlowCommand::ModifyStrict,
            FlowCommand::Delete,
            FlowCommand::DeleteStrict,
        ]);
        let delete = matches!(command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        let mut flow = FlowMod {
            cookie: self.u64(),
            cookie_mask: self.u64(),
            table: self.table(),
            command,
            idle_timeout: self.u16(),
            hard_timeout: self.u16(),
            priority: self.u16(),
            buffer_id: self.buffer(),
            out_port: self.port(version),
            out_group: self.group(),
            flags: self.flags(version),
            importance: if version >= Version::V14 { self.u16() } else { 0 },
            matching: self.matching(version),
            instructions: self.instructions(version),
        };
        if version == Version::V10 {
            flow.cookie_mask = 0;
            flow.table = if delete { TableId::ALL } else { TableId(0) };
            flow.out_group = GroupId::ANY;
        }
        flow
    }

    pub(super) fn flow_removed(&mut self, version: Version) -> FlowRemoved {
        let is_v13 = version != Version::V10;
        let n_reasons = match version {
            Version::V10 => 3,
            Version::V13 => 4,
            _ => 6,
        };
        let reasons = [
            FlowRemovedReason::IdleTimeout,
            FlowRemovedReason::HardTimeout,
            FlowRemovedReason::Delete,
            FlowRemovedReason::GroupDelete,
            FlowRemovedReason::MeterDelete,
            FlowRemovedReason::Eviction,
        ];
        FlowRemoved {
            cookie: self.u64(),
            priority: self.u16(),
            reason: self.pick(&reasons[..n_reasons]),
            table: if is_v13 { self.table() } else { TableId(0) },
            duration_sec: self.u32(),
            duration_nsec: self.u32(),
            idle_timeout: self.u16(),
            hard_timeout: if is_v13 { self.u16() } else { 0 },
            packet_count: self.u64(),
            byte_count: self.u64(),
            more: self.more_stats(version),
            matching: self.matching(version),
        }
    }
}
