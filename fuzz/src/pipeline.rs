//! Draws flow entries, groups, meters and packets from a fuzzer's input. They have few different values, so that
//! packets match entries.
use arbitrary::Arbitrary;
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::meter::{self, Band, BandKind, MeterCommand, MeterMod};
use weir_openflow::model::{
    Action, FlowCommand, FlowFlags, FlowMod, GroupId, Instruction, Match, MeterId, PortNo, TableId,
};
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::{Field, MacAddr};

/// Number of tables.
pub const TABLES: u8 = 4;
/// Number of ports, numbered from 1.
pub const PORTS: u32 = 4;
/// Number of groups, numbered from 1; a group sends only to groups with lower numbers.
const GROUPS: u32 = 4;
/// Number of meters, numbered from 1.
const METERS: u32 = 3;
/// Maximum number of actions in a list, buckets in a group and bands in a meter.
const MOST: usize = 4;

/// Style of the drawn items.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub struct Style {
    /// Determines which of two matches has the higher priority.
    order: u16,
    /// True to draw only what [`weir_reference::ReferencePipeline`] implements.
    pub plain: bool,
}

/// A match, whose fields are chosen by its bits. An entry's priority is computed from it, too: two entries that match
/// one packet never have equal priorities, with which either might be taken.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub struct Looks(pub u16);

/// A change of entries.
#[derive(Debug, Arbitrary)]
pub struct Flow {
    command: u8,
    table: u8,
    /// Match of the first entry.
    looks: Looks,
    /// Number of entries less one, and the step between their matches. Many entries change how a table is searched.
    more: u8,
    step: u8,
    timeouts: u8,
    flags: u8,
    cookie: u8,
    /// Instructions of the entries, in the order in which they are written.
    goto: Option<u8>,
    apply: Option<Vec<Act>>,
    clears: bool,
    write: Option<Vec<Act>>,
    /// Value and mask.
    metadata: Option<(u8, u8)>,
    meter: Option<u8>,
}

/// An action: its kind, and a number for it.
#[derive(Debug, Arbitrary)]
pub struct Act(u8, u8);

/// A change of a group.
#[derive(Debug, Arbitrary)]
pub struct Group {
    command: u8,
    kind: u8,
    group: u8,
    buckets: Vec<Share>,
}

/// A bucket of a group.
#[derive(Debug, Arbitrary)]
struct Share {
    weight: u8,
    watch_port: u8,
    watch_group: u8,
    actions: Vec<Act>,
}

/// A change of a meter.
#[derive(Debug, Arbitrary)]
pub struct Meter {
    command: u8,
    meter: u8,
    flags: u8,
    bands: Vec<(u8, u8, u8)>,
}

/// A packet, whose headers are chosen by its bits.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub struct Packet(u16);

/// Removes bits from the low end of a number and returns them.
fn take(from: &mut u16, bits: u32) -> u16 {
    let taken = *from & ((1 << bits) - 1);
    *from >>= bits;
    taken
}

fn mac(number: u16) -> MacAddr {
    MacAddr::from_bits(0x0200_0000_0000 | u64::from(number))
}

/// Returns one of 16 addresses of four networks.
fn address(number: u16) -> u32 {
    0x0a00_0000 | u32::from(number & 3) << 22 | u32::from(number >> 2 & 3)
}

impl Looks {
    /// Returns the match. For each field, most values leave it out, so that many packets match.
    pub fn matching(self) -> Match {
        let mut bits = self.0;
        let mut matching = Match::any();
        if take(&mut bits, 2) == 3 {
            matching = matching.with(Field::InPort, 1_u32);
        }
        match take(&mut bits, 3) {
            0..=4 => {}
            5 => matching = matching.with_masked(Field::EthDst, 1_u64, 1_u64),
            number => matching = matching.with(Field::EthDst, mac(number - 6).to_bits()),
        }
        if take(&mut bits, 2) == 3 {
            matching = matching.with(Field::EthSrc, mac(2).to_bits());
        }
        match take(&mut bits, 2) {
            0..=1 => {}
            2 => matching = matching.with(Field::VlanVid, 0_u16),
            _ => matching = matching.with_masked(Field::VlanVid, 0x1000_u16, 0x1000_u16),
        }
        if take(&mut bits, 2) == 3 {
            matching = matching.with_masked(Field::Metadata, 1_u64, 1_u64);
        }
        network(matching, bits)
    }

    /// Returns the priority, which is unique: multiplication by an odd factor maps different numbers to different
    /// ones.
    fn priority(self, style: Style) -> u16 {
        self.0.wrapping_mul(style.order | 1)
    }
}

/// Adds one of 32 kinds of match on network and transport.
fn network(matching: Match, kind: u16) -> Match {
    let ipv4 = |matching: Match| matching.with(Field::EthType, eth_type::IPV4);
    let prefix = |length: u32| u32::MAX.checked_shl(32 - length).unwrap_or(0);
    match kind {
        0..=11 => matching,
        12 => matching.with(Field::EthType, eth_type::ARP),
        13 => matching.with(Field::EthType, eth_type::IPV6),
        14 => matching.with(Field::EthType, eth_type::MPLS),
        15 => ipv4(matching),
        16..=19 => ipv4(matching).with_masked(Field::Ipv4Dst, address(kind) & prefix(10), prefix(10)),
        20..=23 => ipv4(matching).with(Field::Ipv4Dst, address(kind)),
        24 => ipv4(matching).with_masked(Field::Ipv4Dst, address(kind) & prefix(9), prefix(9)),
        25..=26 => ipv4(matching).with_masked(Field::Ipv4Src, address(kind) & prefix(10), prefix(10)),
        27 => ipv4(matching).with_masked(Field::Ipv4Src, 1_u32, 1_u32),
        28 => ipv4(matching).with(Field::IpProto, ip_proto::UDP),
        29 => ipv4(matching).with(Field::IpProto, ip_proto::UDP).with(Field::UdpDst, 1_u16),
        30 => ipv4(matching).with(Field::IpProto, ip_proto::TCP).with(Field::TcpSrc, 1_u16),
        _ => ipv4(matching).with(Field::IpDscp, 8_u8),
    }
}

impl Packet {
    /// Returns the frame.
    pub fn frame(self) -> Vec<u8> {
        let mut bits = self.0;
        let frame = FrameBuilder::ethernet(mac(take(&mut bits, 2)), mac(1 + take(&mut bits, 2)));
        let frame = match take(&mut bits, 2) {
            0..=1 => frame,
            2 => frame.vlan(0x8100, 5, 2),
            _ => frame.vlan(0x8100, 6, 0).vlan(0x8100, 5, 0),
        };
        let from = Ipv4Addr::from_bits(address(take(&mut bits, 2) * 5));
        let to = Ipv4Addr::from_bits(address(take(&mut bits, 4)));
        let frame = match take(&mut bits, 3) {
            0 => frame.arp(1, (mac(1), from), (mac(2), to)),
            1 => frame.ipv6(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED).udp(1, bits),
            2 => frame.mpls(3, 0, 9).ipv4(from, to).udp(1, bits),
            3 => frame.traffic_class(32).ipv4(from, to).udp(7, bits),
            4 => frame.ipv4(from, to).tcp(TcpHeader { source: bits, destination: 80, ..TcpHeader::default() }),
            5 => frame.ttl(1).ipv4(from, to).udp(7, bits),
            _ => frame.ipv4(from, to).udp(7, bits),
        };
        frame.payload(&[1; 30]).build()
    }
}

impl Flow {
    fn instructions(&self, table: u8, style: Style) -> Vec<Instruction> {
        let left = TABLES - 1 - table;
        let goto = self.goto.filter(|_| left > 0).map(|more| Instruction::GotoTable(TableId(table + 1 + more % left)));
        let list = |list: &Vec<Act>| actions(list, GROUPS, style);
        let metadata = self.metadata.map(|(value, mask)| Instruction::WriteMetadata {
            metadata: u64::from(value & 3),
            mask: u64::from(mask & 3),
        });
        let all = [
            goto,
            self.apply.as_ref().map(list).map(Instruction::ApplyActions),
            self.clears.then_some(Instruction::ClearActions),
            self.write.as_ref().map(list).map(Instruction::WriteActions),
            metadata,
            self.meter.filter(|_| !style.plain).map(|meter| Instruction::Meter(meter_id(meter))),
        ];
        all.into_iter().flatten().collect()
    }

    /// Returns the flow-mods.
    pub fn mods(&self, style: Style) -> impl Iterator<Item = FlowMod> + '_ {
        use FlowCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
        let command = [Add, Add, Add, Add, Modify, ModifyStrict, Delete, DeleteStrict][usize::from(self.command % 8)];
        // The first table is the most frequent one, because all packets enter there.
        let table = [0, 0, 0, 1, 1, 2, 2, 3][usize::from(self.table % 8)];
        let count = if self.more < 128 { 1 } else { u16::from(self.more % 64) + 1 };
        let instructions = self.instructions(table, style);
        let timeouts = if style.plain { 0 } else { u16::from(self.timeouts) };
        (0..count).map(move |at| {
            let looks = Looks(self.looks.0.wrapping_add(at.wrapping_mul(u16::from(self.step) | 1)));
            FlowMod {
                table: TableId(table),
                command,
                cookie: u64::from(self.cookie),
                idle_timeout: timeouts & 3,
                hard_timeout: timeouts >> 2 & 3,
                flags: FlowFlags(u16::from(self.flags & 0x1f)),
                ..FlowMod::add(looks.priority(style), looks.matching(), instructions.clone())
            }
        })
    }
}

fn meter_id(number: u8) -> MeterId {
    MeterId(1 + u32::from(number) % METERS)
}

/// Returns actions, which may send to groups with numbers up to `groups`.
fn actions(list: &[Act], groups: u32, style: Style) -> Vec<Action> {
    list.iter().take(MOST).filter_map(|act| act.action(groups, style)).collect()
}

impl Act {
    /// Returns the action, or `None` for a group action without an allowed group.
    fn action(&self, groups: u32, style: Style) -> Option<Action> {
        let Act(which, value) = *self;
        let number = u16::from(value);
        // The first eight are those that [`weir_reference::ReferencePipeline`] implements.
        Some(match which % if style.plain { 8 } else { 20 } {
            0..=3 => Action::output(PortNo(1 + u32::from(value) % (PORTS + 1))),
            4 => Action::set_mac(Field::EthDst, mac(number % 4)),
            5 => Action::set_mac(Field::EthSrc, mac(number % 4)),
            6 => Action::PushVlan(0x8100),
            7 if groups == 0 => return None,
            7 => Action::Group(GroupId(1 + u32::from(value) % groups)),
            8 => Action::output(PortNo::IN_PORT),
            9 => Action::output([PortNo::ALL, PortNo::FLOOD][usize::from(value % 2)]),
            10 => Action::output(PortNo::NORMAL),
            11 => Action::output(PortNo::CONTROLLER),
            12 => Action::PopVlan,
            13 => Action::SetField { field: Field::VlanVid, value: 0x1000 | u128::from(value % 8) },
            14 => Action::SetField { field: Field::Ipv4Dst, value: address(number).into() },
            15 => Action::SetField { field: Field::UdpDst, value: u128::from(value % 4) },
            16 => Action::SetNwTtl(value % 4),
            17 => Action::DecNwTtl,
            18 => Action::PushMpls(eth_type::MPLS),
            _ => Action::PopMpls(eth_type::IPV4),
        })
    }
}

impl Group {
    /// Returns the group-mod.
    pub fn change(&self, style: Style) -> GroupMod {
        let number = 1 + u32::from(self.group) % GROUPS;
        let commands = [GroupCommand::Add, GroupCommand::Modify, GroupCommand::Modify, GroupCommand::Delete];
        // The reference implements no deletion of groups.
        let command = commands[usize::from(self.command) % if style.plain { 3 } else { 4 }];
        let kind = GroupKind::from_number(self.kind % 4);
        let shares = self.buckets.iter().take(if command == GroupCommand::Delete { 0 } else { MOST });
        GroupMod {
            command,
            kind,
            group: GroupId(number),
            command_bucket: BucketId::ALL,
            buckets: (0..)
                .map(BucketId)
                .zip(shares)
                .map(|(id, share)| share.bucket(id, kind, number - 1, style))
                .collect(),
            properties: vec![],
        }
    }
}

impl Share {
    /// Returns the bucket; `lower` is the highest group that it may send to.
    fn bucket(&self, id: BucketId, kind: GroupKind, lower: u32, style: Style) -> Bucket {
        let watched =
            |number: u8, most: u32| Some(u32::from(number) % (2 * most + 2)).filter(|at| (1..=most).contains(at));
        Bucket {
            weight: if kind == GroupKind::Select { u16::from(self.weight % 4) } else { 0 },
            watch_port: watched(self.watch_port, PORTS).map_or(PortNo::ANY, PortNo),
            watch_group: watched(self.watch_group, lower).map_or(GroupId::ANY, GroupId),
            ..Bucket::new(id, actions(&self.actions, lower, style))
        }
    }
}

/// Returns an add of each group and of each meter, so that the first entries can use them.
pub fn first() -> (Vec<GroupMod>, Vec<MeterMod>) {
    let bucket = |group| Bucket::new(BucketId(0), vec![Action::output(PortNo(group))]);
    let groups = (1..=GROUPS).map(|group| GroupMod {
        command: GroupCommand::Add,
        kind: GroupKind::All,
        group: GroupId(group),
        command_bucket: BucketId::ALL,
        buckets: vec![bucket(group)],
        properties: vec![],
    });
    let meters = (1..=METERS).map(|meter| MeterMod {
        command: MeterCommand::Add,
        flags: meter::flags::PKTPS,
        meter: MeterId(meter),
        bands: vec![Band { rate: 3 * meter, burst_size: 0, kind: BandKind::Drop }],
    });
    (groups.collect(), meters.collect())
}

impl Meter {
    /// Returns the meter-mod.
    pub fn change(&self) -> MeterMod {
        let command = [MeterCommand::Add, MeterCommand::Modify, MeterCommand::Modify, MeterCommand::Delete];
        let units = if self.flags & 1 == 0 { meter::flags::PKTPS } else { meter::flags::KBPS };
        let more = u16::from(self.flags) & (meter::flags::BURST | meter::flags::STATS);
        let band = |(rate, burst, kind): &(u8, u8, u8)| Band {
            rate: u32::from(*rate),
            burst_size: u32::from(*burst),
            kind: match kind % 3 {
                0 | 1 => BandKind::Drop,
                _ => BandKind::DscpRemark { prec_level: 1 },
            },
        };
        MeterMod {
            command: command[usize::from(self.command % 4)],
            flags: units | more,
            meter: meter_id(self.meter),
            bands: self.bands.iter().take(MOST).map(band).collect(),
        }
    }
}
