//! Draws action lists, mostly on headers that the match guarantees.
use super::CaseGenerator;
use weir_openflow::model::FlowMod;
use weir_openflow::model::{Action, EncapHeader, GroupId, Match, MeterId, NxAction, PortNo, Subfield, TableId};
use weir_openflow::{Body, Version};
use weir_packet::Field;

/// Fields that actions set, for each EtherType.
const ETHERNET: [Field; 3] = [Field::EthDst, Field::EthSrc, Field::EthDst];
const IPV4: [Field; 4] = [Field::Ipv4Src, Field::Ipv4Dst, Field::IpDscp, Field::IpEcn];
const IPV6: [Field; 5] = [Field::Ipv6Src, Field::Ipv6Dst, Field::IpDscp, Field::IpEcn, Field::Ipv6Flabel];
const ARP: [Field; 5] = [Field::ArpOp, Field::ArpSpa, Field::ArpTpa, Field::ArpSha, Field::ArpTha];
const MPLS: [Field; 3] = [Field::MplsLabel, Field::MplsTc, Field::MplsBos];
const TAG: [Field; 2] = [Field::VlanVid, Field::VlanPcp];

impl CaseGenerator {
    /// Draws the actions of an entry with this match. Actions that the version cannot encode are dropped.
    pub(super) fn entry_actions(&mut self, matching: &Match) -> Vec<Action> {
        let count = *self.dice.pick(&[0, 1, 1, 2, 2, 3, 4]);
        let mut actions: Vec<_> = (0..count).map(|_| self.action(matching)).collect();
        if !self.dice.one_in(4) {
            actions.push(self.output());
        }
        actions.retain(|action| {
            let list = vec![weir_openflow::model::Instruction::ApplyActions(vec![action.clone()])];
            let flow = FlowMod::add(1, Match::any(), list);
            crate::case::bytes_of(&Body::FlowMod(flow), 1, self.version).is_some()
        });
        actions
    }

    fn output(&mut self) -> Action {
        let port = match self.dice.between(0, 29) {
            0 => PortNo::IN_PORT,
            1 => PortNo::ALL,
            2 => PortNo::FLOOD,
            3 => PortNo::LOCAL,
            4 | 5 => PortNo::CONTROLLER,
            6 => PortNo(self.dice.between(5, 9)),
            7 if self.dice.one_in(8) => PortNo(self.dice.word()),
            8 if self.dice.one_in(8) => *self.dice.pick(&[PortNo::TABLE, PortNo::ANY, PortNo(0)]),
            _ => PortNo(self.dice.between(1, 4)),
        };
        let max_len = *self.dice.pick(&[0xffff, 0xffff, 0, 20, 64, 128]);
        Action::Output { port, max_len: if port == PortNo::CONTROLLER { max_len } else { 0 } }
    }

    fn action(&mut self, matching: &Match) -> Action {
        match self.dice.between(0, 23) {
            0..=4 => self.output(),
            5..=10 => self.set_field(matching),
            11 | 12 => self.header(matching),
            13 => self.ttl(matching),
            14 | 15 if self.version > Version::V10 => {
                self.known_group().map_or_else(|| self.output(), |id| Action::Group(GroupId(id)))
            }
            16 if self.dice.one_in(4) => Action::SetQueue(self.dice.between(0, 2)),
            17 if self.version == Version::V10 => self.old(),
            18 if self.version == Version::V15 => {
                self.known_meter().map_or_else(|| self.output(), |id| Action::Meter(MeterId(id)))
            }
            19 if self.dice.one_in(2) => self.nicira(),
            20 if self.version == Version::V15 => self.part(matching),
            21 if self.dice.one_in(6) => self.any_set_field(),
            _ if self.version == Version::V10 => self.old(),
            _ => self.output(),
        }
    }

    /// Draws a field that every packet of this match has.
    fn certain_field(&mut self, matching: &Match) -> Field {
        let exact =
            |field| matching.get(field).filter(|(_, mask)| *mask == Field::all_ones(field)).map(|(value, _)| value);
        let mut fields = ETHERNET.to_vec();
        if matching.get(Field::VlanVid).is_some_and(|(value, _)| value != 0) {
            fields.extend(TAG);
        }
        match exact(Field::EthType) {
            Some(0x0800) => fields.extend(IPV4),
            Some(0x86dd) => fields.extend(IPV6),
            Some(0x0806) => fields.extend(ARP),
            Some(0x8847) => fields.extend(MPLS),
            Some(0x88e7) => fields.extend([Field::PbbIsid, Field::PbbUca]),
            _ => {}
        }
        match exact(Field::IpProto) {
            Some(6) => fields.extend([Field::TcpSrc, Field::TcpDst]),
            Some(17) => fields.extend([Field::UdpSrc, Field::UdpDst]),
            Some(132) => fields.extend([Field::SctpSrc, Field::SctpDst]),
            Some(1) => fields.extend([Field::Icmpv4Type, Field::Icmpv4Code]),
            Some(58) => fields.extend([Field::Icmpv6Type, Field::Icmpv6Code]),
            _ => {}
        }
        match exact(Field::Icmpv6Type) {
            Some(135) => fields.extend([Field::Ipv6NdTarget, Field::Ipv6NdSll]),
            Some(136) => fields.extend([Field::Ipv6NdTarget, Field::Ipv6NdTll]),
            _ => {}
        }
        if self.dice.one_in(12) {
            fields = vec![Field::TunnelId];
        }
        *self.dice.pick(&fields)
    }

    fn set_field(&mut self, matching: &Match) -> Action {
        if self.version == Version::V10 {
            return self.old();
        }
        let field = self.certain_field(matching);
        let value = self.value(field);
        Action::SetField { field, value }
    }

    fn value(&mut self, field: Field) -> u128 {
        let value = if self.dice.one_in(3) { self.dice.wide() } else { self.dice.between(0, 5).into() };
        let value = value & field.all_ones();
        if field == Field::VlanVid && !self.dice.one_in(20) { value | 0x1000 } else { value }
    }

    /// Draws a set-field of any field, whether packets have it or not.
    fn any_set_field(&mut self) -> Action {
        let field = *self.dice.pick(&Field::ALL);
        let value = self.value(field);
        Action::SetField { field, value }
    }

    /// Draws an action that pushes or pops a header.
    fn header(&mut self, matching: &Match) -> Action {
        let is_tagged = matching.get(Field::VlanVid).is_some_and(|(value, _)| value != 0);
        let is_mpls = matching.get(Field::EthType).is_some_and(|(value, _)| value == 0x8847);
        match self.dice.between(0, 11) {
            0..=2 => Action::PushVlan(*self.dice.pick(&[0x8100, 0x8100, 0x88a8])),
            3..=5 if is_tagged => Action::PopVlan,
            6 => Action::PushMpls(*self.dice.pick(&[0x8847, 0x8847, 0x8848])),
            7 | 8 if is_mpls => Action::PopMpls(*self.dice.pick(&[0x0800, 0x86dd, 0x8847, 0x9000])),
            9 if self.dice.one_in(10) => Action::PushVlan(self.dice.short()),
            10 if self.dice.one_in(10) => {
                self.dice.pick(&[Action::PopVlan, Action::PopMpls(0x0800), Action::PopPbb]).clone()
            }
            11 if self.dice.one_in(10) => Action::PushPbb(0x88e7),
            _ if is_mpls => Action::DecMplsTtl,
            _ => self.output(),
        }
    }

    fn ttl(&mut self, matching: &Match) -> Action {
        let kind = matching.get(Field::EthType).map(|(value, _)| value);
        let number = *self.dice.pick(&[0, 1, 64, 255]);
        let mpls = [Action::DecMplsTtl, Action::SetMplsTtl(number), Action::CopyTtlIn, Action::CopyTtlOut];
        match kind {
            Some(0x0800 | 0x86dd) => {
                if self.dice.one_in(2) {
                    Action::DecNwTtl
                } else {
                    Action::SetNwTtl(number)
                }
            }
            Some(0x8847) => self.dice.pick(&mpls).clone(),
            _ if self.dice.one_in(8) => self.dice.pick(&mpls).clone(),
            _ => self.output(),
        }
    }

    /// Draws an action of OpenFlow 1.0 that later versions replaced.
    fn old(&mut self) -> Action {
        match self.dice.between(0, 9) {
            0 => Action::SetVlanVid(self.dice.short() & 0xfff),
            1 => Action::SetVlanPcp(self.dice.byte() & 7),
            2 => Action::SetNwSrc(self.dice.word()),
            3 => Action::SetNwDst(self.dice.word()),
            4 => Action::SetNwTos(self.dice.byte() & 0xfc),
            5 => Action::SetTpSrc(self.dice.short()),
            6 => Action::SetTpDst(self.dice.short()),
            7 => Action::Enqueue { port: PortNo(self.dice.between(1, 4)), queue: self.dice.between(0, 2) },
            8 => Action::PopVlan,
            _ => Action::SetField { field: Field::EthDst, value: self.dice.wide() & 0xffff_ffff_ffff },
        }
    }

    /// Draws a masked set-field or a copy-field, both of OpenFlow 1.5.
    fn part(&mut self, matching: &Match) -> Action {
        let field = self.certain_field(matching);
        if self.dice.one_in(2) {
            let mask = self.dice.wide() & field.all_ones();
            return Action::SetFieldMasked { field, value: self.dice.wide() & mask, mask };
        }
        let other = self.certain_field(matching);
        let bits = self.dice.between(1, field.bits().min(other.bits()));
        let mut part = |field: Field| Subfield {
            field,
            offset: u16::try_from(self.dice.between(0, field.bits() - bits)).unwrap_or(0),
            bits: u16::try_from(bits).unwrap_or(1),
        };
        let (src, dst) = (part(field), part(other));
        Action::Move { src, dst }
    }

    fn nicira(&mut self) -> Action {
        let register = *self.dice.pick(&[Field::Reg0, Field::Reg1, Field::Xreg1, Field::PktMark]);
        match self.dice.between(0, 8) {
            // Only to later tables: the length at which a loop is stopped depends on the switch.
            0 | 1 => {
                let table = TableId(self.table.saturating_add(1).min(250));
                NxAction::Resubmit { port: PortNo::IN_PORT, table: Some(table) }.into_action()
            }
            2 => NxAction::Load { dst: Subfield::all(register), value: self.dice.between(1, 4).into() }.into_action(),
            3 => NxAction::OutputReg { src: Subfield::all(Field::Reg0), max_len: 0xffff }.into_action(),
            4 => NxAction::Note(vec![0; 6].into()).into_action(),
            5 => NxAction::Exit.into_action(),
            6 => NxAction::Push(Subfield::all(register)).into_action(),
            7 => NxAction::Pop(Subfield::all(register)).into_action(),
            _ if self.dice.one_in(8) => Action::Encap(EncapHeader::Ethernet),
            // Copies go only to the controller, which no filter by output port matches: whether the filter applies to
            // actions inside a copy is not specified.
            _ => NxAction::Clone(vec![Action::to_controller()]).into_action(),
        }
    }
}
