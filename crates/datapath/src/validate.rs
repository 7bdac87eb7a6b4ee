//! Checks that actions make sense before a packet runs them (OpenFlow 1.3.5, 5.12, 6.4 and 7.2.5).
//!
//! [`KnownFields`] describes what is certain about the packets that the actions will process. It starts with the
//! entry's match and follows each action. So `push_vlan, set_field:vlan_vid` is valid, and `set_field:tcp_dst` without
//! a match on TCP is not.
mod nicira;

use weir_openflow::Version;
use weir_openflow::model::error::BadAction;
use weir_openflow::model::nicira::NICIRA;
use weir_openflow::model::queue::ALL_QUEUES;
use weir_openflow::model::{Action, EncapHeader, ErrorType, GroupId, MeterId, PortNo};
use weir_packet::field::{Prerequisite, VLAN_PRESENT, eth_type, ip_proto};
use weir_packet::{Field, FlowKey, FlowMask, PacketType, nsh};

/// Maximum number of actions in a list, because each action may send a copy of every packet of a burst.
const MAX_ACTIONS: usize = 1024;

/// Facts that are certain about a packet.
#[derive(Debug, Clone)]
pub(crate) struct KnownFields {
    key: FlowKey,
    mask: FlowMask,
    vlan: VlanPresence,
}

/// Presence of a VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VlanPresence {
    Present,
    /// The packet may have no tag.
    Absent,
    /// A tag was popped, and another may follow that a match cannot see. Actions on it are allowed.
    Popped,
}

/// Location of the actions to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionListKind {
    /// The action list or action set of a flow entry.
    Entry,
    /// A packet-out, which may output to TABLE.
    PacketOut,
    /// A bucket of a group. The group's packets are not known, so no action is refused for its packets.
    Bucket,
}

impl KnownFields {
    /// Returns the facts that follow from a match, or from a whole packet if every bit is in `mask`.
    pub(crate) fn new(key: FlowKey, mask: FlowMask) -> KnownFields {
        let tag = u128::from(VLAN_PRESENT);
        let is_tagged = key.get(Field::VlanVid) & mask.get(Field::VlanVid) & tag != 0;
        KnownFields { key, mask, vlan: if is_tagged { VlanPresence::Present } else { VlanPresence::Absent } }
    }

    fn exact(&self, field: Field) -> Option<u128> {
        (self.mask.get(field) == field.all_ones()).then(|| self.key.get(field))
    }

    /// Returns the EtherType of a packet that certainly has no Ethernet header.
    fn without_ethernet(&self) -> Option<u16> {
        let bits = u32::try_from(self.exact(Field::PacketType)?).ok()?;
        PacketType::from_bits(bits).eth_type()
    }

    fn is(&self, field: Field, values: &[u16]) -> bool {
        if field == Field::EthType
            && let Some(kind) = self.without_ethernet()
        {
            return values.contains(&kind);
        }
        self.exact(field).is_some_and(|value| values.iter().any(|v| u128::from(*v) == value))
    }

    pub(crate) fn is_ip(&self) -> bool {
        self.is(Field::EthType, &[eth_type::IPV4, eth_type::IPV6])
    }

    fn is_mpls(&self) -> bool {
        self.is(Field::EthType, &[eth_type::MPLS, eth_type::MPLS_MULTICAST])
    }

    /// Returns true if a field with this prerequisite is certainly present.
    pub(crate) fn has(&self, prerequisite: Prerequisite) -> bool {
        let icmp = |kind, proto: u8| self.is(Field::EthType, &[kind]) && self.is(Field::IpProto, &[proto.into()]);
        match prerequisite {
            Prerequisite::None | Prerequisite::InPort => true,
            Prerequisite::VlanPresent => self.vlan != VlanPresence::Absent && self.without_ethernet().is_none(),
            Prerequisite::EthType(types) => self.is(Field::EthType, types),
            Prerequisite::IpProto(number) => self.is_ip() && self.is(Field::IpProto, &[number.into()]),
            Prerequisite::Icmpv4 => icmp(eth_type::IPV4, ip_proto::ICMP),
            Prerequisite::Icmpv6 => icmp(eth_type::IPV6, ip_proto::ICMPV6),
            Prerequisite::Icmpv6Type(types) => {
                let kind = self.exact(Field::Icmpv6Type);
                icmp(eth_type::IPV6, ip_proto::ICMPV6)
                    && kind.is_some_and(|kind| types.iter().any(|t| u128::from(*t) == kind))
            }
        }
    }

    /// Records that the packet now begins with another header, whose type is `kind` if known. Only the pipeline
    /// fields stay known.
    fn set_packet_type(&mut self, kind: Option<PacketType>) {
        let pipeline = self.key;
        let pipeline_mask = self.mask;
        (self.key, self.mask, self.vlan) = (FlowKey::EMPTY, FlowMask::EMPTY, VlanPresence::Absent);
        self.key.carry_pipeline_fields(&pipeline);
        self.mask.carry_pipeline_fields(&pipeline_mask);
        self.key.set(Field::PacketType, kind.unwrap_or_default().to_bits().into());
        self.mask.set(Field::PacketType, if kind.is_some() { Field::PacketType.all_ones() } else { 0 });
    }

    /// Records an Ethernet header pushed onto a packet without one. Facts about the rest of the packet stay valid.
    fn encap_ethernet(&mut self) -> bool {
        let kind = self.without_ethernet();
        self.key.set(Field::PacketType, 0);
        self.mask.set(Field::PacketType, Field::PacketType.all_ones());
        match kind {
            Some(kind) => self.set(Field::EthType, kind.into()),
            None => self.mask.set(Field::EthType, 0),
        }
        true
    }

    /// Records the removal of the outermost header. Returns false for a packet known to begin with neither an
    /// Ethernet nor a network service header.
    fn decap(&mut self) -> bool {
        let (outer, eth_type) = (self.without_ethernet(), self.exact(Field::EthType));
        match (outer, eth_type) {
            (None, Some(kind)) => {
                #[expect(clippy::cast_possible_truncation, reason = "an EtherType has 16 bits")]
                let kind = kind as u16;
                self.vlan = VlanPresence::Absent;
                for field in Field::ALL.into_iter().filter(|field| field.is_ethernet()) {
                    self.key.set(field, 0);
                    self.mask.set(field, 0);
                }
                self.set(Field::PacketType, PacketType::of_eth_type(kind).to_bits().into());
                true
            }
            (Some(eth_type::NSH), _) => {
                let next = self.exact(Field::NshNp).and_then(|next| nsh::payload_type(u8::try_from(next).ok()?));
                self.set_packet_type(next);
                true
            }
            (Some(_), _) => false,
            (None, None) => {
                self.set_packet_type(None);
                true
            }
        }
    }

    fn set(&mut self, field: Field, value: u128) {
        self.key.set(field, value);
        self.mask.set(field, field.all_ones());
    }

    /// Records that bits of a field get unknown values. Returns true if the field was certainly present before.
    pub(crate) fn blur(&mut self, field: Field) -> bool {
        let was_there = self.has(field.prerequisite());
        self.mask.set(field, 0);
        was_there
    }

    /// Records that headers may have been added or removed: a VLAN tag may be present. Facts from the match stay.
    pub(crate) fn forget(&mut self) {
        if self.vlan == VlanPresence::Absent {
            self.vlan = VlanPresence::Popped;
        }
    }

    /// Records a new EtherType. The IP protocol becomes unknown.
    fn set_eth_type(&mut self, kind: u16) {
        self.set(Field::EthType, kind.into());
        self.mask.set(Field::IpProto, 0);
    }
}

/// Checks actions in the order of their execution, for packets with the facts `known`.
///
/// # Errors
/// `OFPET_BAD_ACTION` with the code that fits. In version 1.0, actions on a header that the packet may lack are
/// allowed, because they do nothing then.
pub(crate) fn actions<'a>(
    list: impl IntoIterator<Item = &'a Action>,
    known: &KnownFields,
    place: ActionListKind,
    version: Version,
) -> Result<(), ErrorType> {
    let mut known = known.clone();
    for (index, action) in list.into_iter().enumerate() {
        if index == MAX_ACTIONS {
            return Err(BadAction::TooMany.into());
        }
        if let Action::Nx(nx) = action {
            nicira::check(nx, &mut known, place, version)?;
            continue;
        }
        argument(action, place)?;
        let is_consistent = follow(action, &mut known);
        if !is_consistent && version != Version::V10 && place != ActionListKind::Bucket {
            return Err(BadAction::MatchInconsistent.into());
        }
    }
    Ok(())
}

/// Checks the actions that another action contains.
pub(crate) fn nested(
    list: &[Action],
    known: &KnownFields,
    place: ActionListKind,
    version: Version,
) -> Result<(), ErrorType> {
    actions(list, known, place, version)
}

/// Checks an action's own arguments.
fn argument(action: &Action, place: ActionListKind) -> Result<(), ErrorType> {
    let problem = match *action {
        Action::Output { port, .. } if !is_output(port, place) => BadAction::BadOutPort,
        Action::Enqueue { port, .. } if !port.is_ordinary() && port != PortNo::IN_PORT && port != PortNo::LOCAL => {
            BadAction::BadOutPort
        }
        // Any other queue may be added to a port later. Until then its packets wait in the port's default queue.
        Action::SetQueue(ALL_QUEUES) | Action::Enqueue { queue: ALL_QUEUES, .. } => BadAction::BadQueue,
        // The existence of the group is checked by the group table.
        Action::Group(group) if group > GroupId::MAX => BadAction::BadOutGroup,
        Action::PushVlan(tpid) if tpid != eth_type::VLAN && tpid != eth_type::QINQ => BadAction::BadArgument,
        Action::PushMpls(kind) if kind != eth_type::MPLS && kind != eth_type::MPLS_MULTICAST => BadAction::BadArgument,
        Action::PushPbb(kind) if kind != eth_type::PBB => BadAction::BadArgument,
        Action::SetField { field, .. } if !field.is_settable() => BadAction::BadSetType,
        Action::SetField { field, value } if value & !field.all_ones() != 0 => BadAction::BadSetArgument,
        // A tag cannot be set to absent (OpenFlow 1.3.5, 7.2.5: OFPVID_PRESENT must be set).
        Action::SetField { field: Field::VlanVid, value } if value & u128::from(VLAN_PRESENT) == 0 => {
            BadAction::BadSetArgument
        }
        Action::SetFieldMasked { field, .. } if !is_writable(field) => BadAction::BadSetType,
        Action::SetFieldMasked { field, value, mask } if (value & !mask | mask & !field.all_ones()) != 0 => {
            BadAction::BadSetMask
        }
        Action::Move { dst, .. } if !is_writable(dst.field) => BadAction::BadSetType,
        Action::Move { src, dst } if !src.is_valid() || !dst.is_valid() || src.bits != dst.bits => {
            BadAction::BadSetArgument
        }
        Action::SetField { field: Field::NshTtl, value } if value > nsh::MAX_TTL.into() => BadAction::BadSetArgument,
        Action::SetField { field: Field::NshFlags, value } if value > nsh::MAX_FLAGS.into() => {
            BadAction::BadSetArgument
        }
        Action::Encap(EncapHeader::Nsh(ref header)) if !header.is_valid() => BadAction::BadArgument,
        Action::SetVlanVid(vid) if vid > 0xfff => BadAction::BadArgument,
        Action::SetVlanPcp(pcp) if pcp > 7 => BadAction::BadArgument,
        Action::SetNwTos(tos) if tos & 3 != 0 => BadAction::BadArgument,
        // The existence of the meter is checked by the meter table. In buckets meters are refused, because removing a
        // meter does not remove the groups that use it.
        Action::Meter(_) if place == ActionListKind::Bucket => BadAction::BadType,
        Action::Meter(meter) if meter == MeterId(0) || meter > MeterId::MAX => BadAction::BadMeter,
        // Nicira's actions that weir does not have: connection tracking, conjunctions, samples.
        Action::Experimenter { id: NICIRA, .. } => BadAction::BadExpType,
        Action::Experimenter { .. } => BadAction::BadExperimenter,
        Action::SetFieldRaw(_) => BadAction::BadSetType,
        _ => return Ok(()),
    };
    Err(problem.into())
}

/// Returns true if bits of a field may be written: the fields allowed in set-field, the metadata, the whole VLAN tag
/// and the input port.
pub(crate) fn is_writable(field: Field) -> bool {
    field.is_settable() || matches!(field, Field::Metadata | Field::VlanTci | Field::InPort)
}

/// Returns true if actions may output to a port. The port need not exist: until it does, packets for it are dropped
/// and counted.
fn is_output(port: PortNo, place: ActionListKind) -> bool {
    match port {
        PortNo::TABLE => place == ActionListKind::PacketOut,
        PortNo::IN_PORT | PortNo::NORMAL | PortNo::FLOOD | PortNo::ALL | PortNo::CONTROLLER | PortNo::LOCAL => true,
        port => port.is_ordinary(),
    }
}

/// Returns true if an action fits the known facts, and updates them to those after the action.
fn follow(action: &Action, known: &mut KnownFields) -> bool {
    match *action {
        Action::PushVlan(_) | Action::SetVlanVid(_) | Action::SetVlanPcp(_) => {
            known.vlan = VlanPresence::Present;
            true
        }
        Action::PopVlan => std::mem::replace(&mut known.vlan, VlanPresence::Popped) != VlanPresence::Absent,
        Action::PushMpls(kind) | Action::PushPbb(kind) => {
            known.set_eth_type(kind);
            true
        }
        Action::PopPbb => {
            let was_pbb = known.is(Field::EthType, &[eth_type::PBB]);
            known.mask.set(Field::EthType, 0);
            was_pbb
        }
        Action::PopMpls(kind) => {
            let was_mpls = known.is_mpls();
            known.set_eth_type(kind);
            was_mpls
        }
        Action::SetMplsTtl(_) | Action::DecMplsTtl => known.is_mpls(),
        Action::SetNwTtl(_) | Action::DecNwTtl => known.is_ip(),
        Action::SetField { field: Field::VlanVid, .. } => known.vlan != VlanPresence::Absent,
        Action::SetField { field: Field::EthType, value } => {
            known.set(Field::EthType, value);
            true
        }
        Action::SetFieldMasked { field, .. } => known.blur(field),
        Action::Move { src, dst } => known.has(src.field.prerequisite()) && known.blur(dst.field),
        Action::SetField { field, value } => {
            let lacks_ethernet = field.is_ethernet() && known.without_ethernet().is_some();
            let fits = known.has(field.prerequisite()) && !lacks_ethernet;
            known.set(field, value);
            fits
        }
        Action::DecNshTtl => known.is(Field::EthType, &[eth_type::NSH]),
        Action::Encap(EncapHeader::Ethernet) => known.encap_ethernet(),
        Action::Encap(EncapHeader::Nsh(_)) => {
            known.set_packet_type(Some(PacketType::NSH));
            true
        }
        Action::Decap(_) => known.decap(),
        _ => true,
    }
}
