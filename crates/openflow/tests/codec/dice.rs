//! Makes messages of noise: every choice takes a few bytes of it, and none left means zeros, so shorter noise gives simpler
//! messages and a failing case shrinks.
use weir_openflow::model::action::{Action, Instruction};
use weir_openflow::model::config::{SwitchConfig, TableMod};
use weir_openflow::model::error::*;
use weir_openflow::model::flow::*;
use weir_openflow::model::group::*;
use weir_openflow::model::matching::RawField;
use weir_openflow::model::meter::*;
use weir_openflow::model::multipart::*;
use weir_openflow::model::packet_io::*;
use weir_openflow::model::port::*;
use weir_openflow::model::queue::*;
use weir_openflow::model::role::*;
use weir_openflow::model::*;
use weir_packet::field::{VLAN_PRESENT, eth_type, ip_proto};
use weir_packet::{Field, MacAddr};

pub(crate) struct Dice<'a> {
    noise: &'a [u8],
}

/// Codes as each error type numbers them.
const CODES: [(u16, u16); 14] = [
    (0, 2),
    (1, 14),
    (2, 16),
    (3, 9),
    (4, 12),
    (5, 8),
    (6, 15),
    (7, 5),
    (8, 3),
    (9, 3),
    (10, 3),
    (11, 3),
    (12, 12),
    (13, 6),
];

impl<'a> Dice<'a> {
    pub(crate) fn new(noise: &'a [u8]) -> Self {
        Dice { noise }
    }

    fn u8(&mut self) -> u8 {
        let Some((first, rest)) = self.noise.split_first() else { return 0 };
        self.noise = rest;
        *first
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    fn u128(&mut self) -> u128 {
        u128::from(self.u64()) << 64 | u128::from(self.u64())
    }

    /// A number below `end`.
    fn below(&mut self, end: u8) -> u8 {
        self.u8() % end
    }

    fn flag(&mut self) -> bool {
        self.u8() & 1 != 0
    }

    /// At most three of something.
    fn few<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| make(self)).collect()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.u16()) % of.len()]
    }

    fn bytes(&mut self) -> Bytes {
        Bytes((0..self.below(9)).map(|_| self.u8()).collect())
    }

    /// Bytes that fill up an experimenter's part.
    fn eights(&mut self) -> Bytes {
        Bytes((0..8 * self.below(3)).map(|_| self.u8()).collect())
    }

    fn name(&mut self) -> String {
        (0..self.below(8)).map(|_| char::from(b'a' + self.below(26))).collect()
    }

    fn mac(&mut self) -> MacAddr {
        MacAddr::from_bits(self.u64())
    }

    fn buffer(&mut self) -> Option<BufferId> {
        Some(BufferId(self.u32())).filter(|id| id.0 != u32::MAX)
    }

    /// Any port number that the version has, and `ANY`.
    fn port(&mut self, version: Version) -> PortNo {
        match self.below(3) {
            0 => PortNo::ANY,
            1 => self.output_port(version),
            _ => PortNo(u32::from(self.u8())),
        }
    }

    fn output_port(&mut self, version: Version) -> PortNo {
        match (self.below(3), version) {
            (0, _) => PortNo(0xffff_fff8 + u32::from(self.below(7))),
            (1, Version::V13) => PortNo(self.u32() % PortNo::MAX.0 + 1),
            _ => PortNo(u32::from(self.u16()) % 0xff00 + 1),
        }
    }

    fn table(&mut self) -> TableId {
        TableId(self.u8())
    }

    fn group(&mut self) -> GroupId {
        GroupId(self.u32())
    }

    fn bounded(&mut self, field: Field) -> u128 {
        self.u128() & field.all_ones()
    }

    fn raw_field(&mut self) -> RawField {
        // A class that nobody has.
        RawField { class: 0x7001, number: self.below(128), has_mask: self.flag(), payload: self.bytes() }
    }

    /// Fields without regard to prerequisites: the codec carries what it is given.
    fn matching(&mut self, version: Version) -> Match {
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

    /// Fields in the order that the codec of 1.0 gives them.
    fn matching_v10(&mut self) -> Match {
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

    fn addresses(&mut self, fields: [Field; 2], matching: &mut Match) {
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

    fn actions(&mut self, version: Version) -> Vec<Action> {
        self.few(|dice| match version {
            Version::V10 => dice.action_v10(),
            Version::V13 => dice.action_v13(),
        })
    }

    fn action_v10(&mut self) -> Action {
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

    fn action_v13(&mut self) -> Action {
        match self.below(18) {
            0 => Action::Output { port: self.output_port(Version::V13), max_len: self.u16() },
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

    fn instructions(&mut self, version: Version) -> Vec<Instruction> {
        if version == Version::V10 {
            let actions = self.actions(version);
            return if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] };
        }
        self.few(|dice| match dice.below(7) {
            0 => Instruction::GotoTable(dice.table()),
            1 => Instruction::WriteMetadata { metadata: dice.u64(), mask: dice.u64() },
            2 => Instruction::WriteActions(dice.actions(version)),
            3 => Instruction::ApplyActions(dice.actions(version)),
            4 => Instruction::ClearActions,
            5 => Instruction::Meter(MeterId(dice.u32())),
            _ => Instruction::Experimenter { id: dice.u32(), data: dice.eights() },
        })
    }

    fn flags(&mut self, version: Version) -> FlowFlags {
        match version {
            Version::V13 => FlowFlags(self.u16() & !FlowFlags::EMERG.0),
            Version::V10 => FlowFlags(self.u16() & (3 | FlowFlags::EMERG.0)),
        }
    }

    fn flow_mod(&mut self, version: Version) -> FlowMod {
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

    fn flow_removed(&mut self, version: Version) -> FlowRemoved {
        let is_v13 = version == Version::V13;
        let reasons = [
            FlowRemovedReason::IdleTimeout,
            FlowRemovedReason::HardTimeout,
            FlowRemovedReason::Delete,
            FlowRemovedReason::GroupDelete,
        ];
        FlowRemoved {
            cookie: self.u64(),
            priority: self.u16(),
            reason: self.pick(&reasons[..if is_v13 { 4 } else { 3 }]),
            table: if is_v13 { self.table() } else { TableId(0) },
            duration_sec: self.u32(),
            duration_nsec: self.u32(),
            idle_timeout: self.u16(),
            hard_timeout: if is_v13 { self.u16() } else { 0 },
            packet_count: self.u64(),
            byte_count: self.u64(),
            matching: self.matching(version),
        }
    }

    fn features_bits(&mut self, version: Version) -> u32 {
        // 1.0 has no bits for 40 Gbit/s to "other".
        if version == Version::V13 { self.u32() } else { self.u32() & !0x780 }
    }

    fn port_desc(&mut self, version: Version) -> PortDesc {
        let is_v13 = version == Version::V13;
        PortDesc {
            port_no: self.port(version),
            hw_addr: self.mac(),
            name: self.name(),
            config: self.u32(),
            state: if is_v13 { self.u32() } else { self.pick(&[0, 1, bits::BLOCKED, 1 << 8, 2 << 8 | 1]) },
            curr: self.features_bits(version),
            advertised: self.features_bits(version),
            supported: self.features_bits(version),
            peer: self.features_bits(version),
            curr_speed: if is_v13 { self.u32() } else { 0 },
            max_speed: if is_v13 { self.u32() } else { 0 },
        }
    }

    fn packet_in(&mut self, version: Version) -> PacketIn {
        let (buffer_id, total_len) = (self.buffer(), self.u16());
        if version == Version::V10 {
            let port = self.port(version);
            let matching = if port == PortNo::ANY { Match::any() } else { Match::any().with(Field::InPort, port.0) };
            let reason = self.pick(&[PacketInReason::NoMatch, PacketInReason::Action]);
            let (table, cookie) = (TableId(0), u64::MAX);
            return PacketIn { buffer_id, total_len, reason, table, cookie, matching, data: self.bytes() };
        }
        PacketIn {
            buffer_id,
            total_len,
            reason: self.pick(&[PacketInReason::NoMatch, PacketInReason::Action, PacketInReason::InvalidTtl]),
            table: self.table(),
            cookie: self.u64(),
            matching: self.matching(version),
            data: self.bytes(),
        }
    }

    fn error(&mut self, version: Version) -> ErrorType {
        let (kind, codes) = self.pick(&CODES);
        let code = self.u16() % codes;
        match version {
            // Those that 1.0 has.
            Version::V10 => self.pick(&[
                ErrorType::HelloFailed(HelloFailed::Incompatible),
                ErrorType::BadRequest(BadRequest::BadLen),
                ErrorType::BadAction(BadAction::BadOutPort),
                ErrorType::BadAction(BadAction::UnsupportedOrder),
                ErrorType::FlowModFailed(FlowModFailed::TableFull),
                ErrorType::FlowModFailed(FlowModFailed::BadTimeout),
                ErrorType::PortModFailed(PortModFailed::BadHwAddr),
                ErrorType::QueueOpFailed(QueueOpFailed::Eperm),
                ErrorType::Unknown { kind: 77, code },
            ]),
            Version::V13 => match kind {
                0 => HelloFailed::from_number(code).unwrap().into(),
                1 => BadRequest::from_number(code).unwrap().into(),
                2 => BadAction::from_number(code).unwrap().into(),
                3 => BadInstruction::from_number(code).unwrap().into(),
                4 => BadMatch::from_number(code).unwrap().into(),
                5 => FlowModFailed::from_number(code).unwrap().into(),
                6 => GroupModFailed::from_number(code).unwrap().into(),
                7 => PortModFailed::from_number(code).unwrap().into(),
                8 => TableModFailed::from_number(code).unwrap().into(),
                9 => QueueOpFailed::from_number(code).unwrap().into(),
                10 => SwitchConfigFailed::from_number(code).unwrap().into(),
                11 => RoleRequestFailed::from_number(code).unwrap().into(),
                12 => MeterModFailed::from_number(code).unwrap().into(),
                _ => match self.below(3) {
                    0 => TableFeaturesFailed::from_number(code).unwrap().into(),
                    1 => ErrorType::Experimenter { kind: self.u16(), id: self.u32() },
                    _ => ErrorType::Unknown { kind: 77, code },
                },
            },
        }
    }

    fn experimenter(&mut self, version: Version) -> Experimenter {
        let kind = if version == Version::V13 { Some(self.u32()) } else { None };
        Experimenter { id: self.u32(), kind, data: self.bytes() }
    }

    fn bucket(&mut self) -> Bucket {
        Bucket {
            weight: self.u16(),
            watch_port: self.port(Version::V13),
            watch_group: self.group(),
            actions: self.actions(Version::V13),
        }
    }

    fn band(&mut self) -> Band {
        Band {
            rate: self.u32(),
            burst_size: self.u32(),
            kind: match self.below(4) {
                0 => BandKind::Drop,
                1 => BandKind::DscpRemark { prec_level: self.u8() },
                2 => BandKind::Experimenter { id: self.u32(), data: self.bytes() },
                _ => BandKind::Unknown { kind: 99, data: self.bytes() },
            },
        }
    }

    fn queue_property(&mut self) -> QueueProperty {
        match self.below(4) {
            0 => QueueProperty::MinRate(self.u16()),
            1 => QueueProperty::MaxRate(self.u16()),
            2 => QueueProperty::Experimenter { id: self.u32(), data: self.bytes() },
            _ => QueueProperty::Unknown { kind: 99, data: self.bytes() },
        }
    }

    fn type_id(&mut self) -> TypeId {
        match self.flag() {
            false => TypeId::Standard(u16::from(self.u8())),
            true => TypeId::Experimenter { id: self.u32(), data: self.bytes() },
        }
    }

    fn oxm_id(&mut self) -> OxmId {
        let field = self.pick(&Field::ALL);
        OxmId::of(field, self.flag()).unwrap_or(OxmId {
            class: 0xffff,
            number: self.below(128),
            has_mask: self.flag(),
            length: self.u8(),
            experimenter: Some(self.u32()),
        })
    }

    fn table_property(&mut self) -> TableProperty {
        let miss = self.flag();
        match self.below(10) {
            0 => TableProperty::Instructions { miss, ids: self.few(Self::type_id) },
            1 => TableProperty::NextTables { miss, tables: self.few(Self::table) },
            2 => TableProperty::WriteActions { miss, ids: self.few(Self::type_id) },
            3 => TableProperty::ApplyActions { miss, ids: self.few(Self::type_id) },
            4 => TableProperty::Match(self.few(Self::oxm_id)),
            5 => TableProperty::Wildcards(self.few(Self::oxm_id)),
            6 => TableProperty::WriteSetField { miss, fields: self.few(Self::oxm_id) },
            7 => TableProperty::ApplySetField { miss, fields: self.few(Self::oxm_id) },
            8 => TableProperty::Experimenter { miss, id: self.u32(), kind: self.u32(), data: self.bytes() },
            _ => TableProperty::Unknown { kind: 99, data: self.bytes() },
        }
    }

    fn table_features(&mut self) -> TableFeatures {
        TableFeatures {
            table: self.table(),
            name: self.name(),
            metadata_match: self.u64(),
            metadata_write: self.u64(),
            config: self.u32(),
            max_entries: self.u32(),
            properties: self.few(Self::table_property),
        }
    }

    fn flow_request(&mut self, version: Version) -> FlowRequest {
        let request = FlowRequest {
            table: self.table(),
            out_port: self.port(version),
            matching: self.matching(version),
            ..FlowRequest::all()
        };
        match version {
            Version::V10 => request,
            Version::V13 => {
                FlowRequest { out_group: self.group(), cookie: self.u64(), cookie_mask: self.u64(), ..request }
            }
        }
    }

    fn multipart_request(&mut self, version: Version) -> RequestBody {
        match self.below(if version == Version::V10 { 7 } else { 15 }) {
            0 => RequestBody::Desc,
            1 => RequestBody::Flow(self.flow_request(version)),
            2 => RequestBody::Aggregate(self.flow_request(version)),
            3 => RequestBody::Table,
            4 => RequestBody::PortStats(self.port(version)),
            5 => RequestBody::Queue { port: self.port(version), queue: self.u32() },
            6 => RequestBody::Experimenter(self.experimenter(version)),
            7 => RequestBody::Group(self.group()),
            8 => RequestBody::GroupDesc,
            9 => RequestBody::GroupFeatures,
            10 => RequestBody::Meter(MeterId(self.u32())),
            11 => RequestBody::MeterConfig(MeterId(self.u32())),
            12 => RequestBody::MeterFeatures,
            13 => RequestBody::TableFeatures(self.few(Self::table_features)),
            _ => RequestBody::PortDesc,
        }
    }

    fn flow_stats(&mut self, version: Version) -> FlowStats {
        FlowStats {
            table: self.table(),
            duration_sec: self.u32(),
            duration_nsec: self.u32(),
            priority: self.u16(),
            idle_timeout: self.u16(),
            hard_timeout: self.u16(),
            flags: if version == Version::V13 { self.flags(version) } else { FlowFlags::default() },
            cookie: self.u64(),
            packet_count: self.u64(),
            byte_count: self.u64(),
            matching: self.matching(version),
            instructions: self.instructions(version),
        }
    }

    fn table_stats(&mut self, version: Version) -> TableStats {
        let is_v10 = version == Version::V10;
        TableStats {
            table: self.table(),
            name: if is_v10 { self.name() } else { String::new() },
            wildcards: if is_v10 { self.u32() } else { 0 },
            max_entries: if is_v10 { self.u32() } else { 0 },
            active_count: self.u32(),
            lookup_count: self.u64(),
            matched_count: self.u64(),
        }
    }

    fn port_stats(&mut self, version: Version) -> PortStats {
        let is_v13 = version == Version::V13;
        PortStats {
            port_no: self.port(version),
            rx_packets: self.u64(),
            tx_packets: self.u64(),
            rx_bytes: self.u64(),
            tx_bytes: self.u64(),
            rx_dropped: self.u64(),
            tx_dropped: self.u64(),
            rx_errors: self.u64(),
            tx_errors: self.u64(),
            rx_frame_err: self.u64(),
            rx_over_err: self.u64(),
            rx_crc_err: self.u64(),
            collisions: self.u64(),
            duration_sec: if is_v13 { self.u32() } else { 0 },
            duration_nsec: if is_v13 { self.u32() } else { 0 },
        }
    }

    fn queue_stats(&mut self, version: Version) -> QueueStats {
        let is_v13 = version == Version::V13;
        QueueStats {
            port: self.port(version),
            queue: self.u32(),
            tx_bytes: self.u64(),
            tx_packets: self.u64(),
            tx_errors: self.u64(),
            duration_sec: if is_v13 { self.u32() } else { 0 },
            duration_nsec: if is_v13 { self.u32() } else { 0 },
        }
    }

    fn group_stats(&mut self) -> GroupStats {
        GroupStats {
            group: self.group(),
            ref_count: self.u32(),
            packet_count: self.u64(),
            byte_count: self.u64(),
            duration_sec: self.u32(),
            duration_nsec: self.u32(),
            buckets: self.few(|dice| (dice.u64(), dice.u64())),
        }
    }

    fn meter_stats(&mut self) -> MeterStats {
        MeterStats {
            meter: MeterId(self.u32()),
            flow_count: self.u32(),
            packet_in_count: self.u64(),
            byte_in_count: self.u64(),
            duration_sec: self.u32(),
            duration_nsec: self.u32(),
            bands: self.few(|dice| (dice.u64(), dice.u64())),
        }
    }

    fn meter_config(&mut self) -> MeterConfig {
        MeterConfig { flags: self.u16(), meter: MeterId(self.u32()), bands: self.few(Self::band) }
    }

    fn desc(&mut self) -> Desc {
        Desc {
            mfr_desc: self.name(),
            hw_desc: self.name(),
            sw_desc: self.name(),
            serial_num: self.name(),
            dp_desc: self.name(),
        }
    }

    fn multipart_reply(&mut self, version: Version) -> ReplyBody {
        match self.below(if version == Version::V10 { 7 } else { 15 }) {
            0 => ReplyBody::Desc(self.desc()),
            1 => ReplyBody::Flow(self.few(|dice| dice.flow_stats(version))),
            2 => ReplyBody::Aggregate(AggregateStats {
                packet_count: self.u64(),
                byte_count: self.u64(),
                flow_count: self.u32(),
            }),
            3 => ReplyBody::Table(self.few(|dice| dice.table_stats(version))),
            4 => ReplyBody::PortStats(self.few(|dice| dice.port_stats(version))),
            5 => ReplyBody::Queue(self.few(|dice| dice.queue_stats(version))),
            6 => ReplyBody::Experimenter(self.experimenter(version)),
            7 => ReplyBody::Group(self.few(Self::group_stats)),
            8 => ReplyBody::GroupDesc(self.few(|dice| GroupDesc {
                kind: dice.u8(),
                group: dice.group(),
                buckets: dice.few(Self::bucket),
            })),
            9 => ReplyBody::GroupFeatures(GroupFeatures {
                types: self.u32(),
                capabilities: self.u32(),
                max_groups: [self.u32(), self.u32(), self.u32(), self.u32()],
                actions: [self.u32(), self.u32(), self.u32(), self.u32()],
            }),
            10 => ReplyBody::Meter(self.few(Self::meter_stats)),
            11 => ReplyBody::MeterConfig(self.few(Self::meter_config)),
            12 => ReplyBody::MeterFeatures(MeterFeatures {
                max_meter: self.u32(),
                band_types: self.u32(),
                capabilities: self.u32(),
                max_bands: self.u8(),
                max_color: self.u8(),
            }),
            13 => ReplyBody::TableFeatures(self.few(Self::table_features)),
            _ => ReplyBody::PortDesc(self.few(|dice| dice.port_desc(version))),
        }
    }

    fn features(&mut self, version: Version) -> FeaturesReply {
        let is_v10 = version == Version::V10;
        FeaturesReply {
            datapath_id: self.u64(),
            n_buffers: self.u32(),
            n_tables: self.u8(),
            auxiliary_id: if is_v10 { 0 } else { self.u8() },
            capabilities: self.u32(),
            actions: if is_v10 { self.u32() } else { 0 },
            ports: if is_v10 { self.few(|dice| dice.port_desc(version)) } else { Vec::new() },
        }
    }

    fn port_mod(&mut self, version: Version) -> PortMod {
        PortMod {
            port_no: self.port(version),
            hw_addr: self.mac(),
            config: self.u32(),
            mask: self.u32(),
            advertise: self.features_bits(version),
        }
    }

    fn queue_config(&mut self, version: Version) -> QueueConfigReply {
        let port = self.port(version);
        let queues = self.few(|dice| QueueConfig {
            queue: dice.u32(),
            port: if version == Version::V13 { dice.port(version) } else { PortNo::ANY },
            properties: dice.few(Self::queue_property),
        });
        QueueConfigReply { port, queues }
    }

    fn role(&mut self) -> RoleMessage {
        let role = self.pick(&[Role::NoChange, Role::Equal, Role::Master, Role::Slave, Role::Unknown(9)]);
        RoleMessage { role, generation_id: self.u64() }
    }

    fn asynchronous(&mut self) -> AsyncConfig {
        let mut pair = || [self.u32(), self.u32()];
        AsyncConfig { packet_in: pair(), port_status: pair(), flow_removed: pair() }
    }

    fn config(&mut self) -> SwitchConfig {
        SwitchConfig { flags: self.u16(), miss_send_len: self.u16() }
    }

    fn hello(&mut self) -> Hello {
        let mut versions = self.few(Self::u8);
        versions.sort_unstable();
        versions.dedup();
        Hello { versions: self.flag().then_some(versions) }
    }

    pub(crate) fn message(&mut self, version: Version) -> Message {
        Message { xid: self.u32(), body: self.body(version) }
    }

    fn body(&mut self, version: Version) -> Body {
        match self.below(if version == Version::V10 { 22 } else { 30 }) {
            0 => Body::Hello(self.hello()),
            1 => Body::Error(ErrorMessage { error: self.error(version), data: self.bytes() }),
            2 => Body::EchoRequest(self.bytes()),
            3 => Body::EchoReply(self.bytes()),
            4 => Body::Experimenter(self.experimenter(version)),
            5 => Body::FeaturesRequest,
            6 => Body::FeaturesReply(self.features(version)),
            7 => Body::GetConfigRequest,
            8 => Body::GetConfigReply(self.config()),
            9 => Body::SetConfig(self.config()),
            10 => Body::PacketIn(self.packet_in(version)),
            11 => Body::FlowRemoved(self.flow_removed(version)),
            12 => Body::PortStatus(PortStatus {
                reason: self.pick(&[PortStatusReason::Add, PortStatusReason::Delete, PortStatusReason::Modify]),
                desc: self.port_desc(version),
            }),
            13 => Body::PacketOut(PacketOut {
                buffer_id: self.buffer(),
                in_port: self.port(version),
                actions: self.actions(version),
                data: self.bytes(),
            }),
            14 => Body::FlowMod(self.flow_mod(version)),
            15 => Body::PortMod(self.port_mod(version)),
            16 => Body::MultipartRequest(MultipartRequest { more: self.flag(), body: self.multipart_request(version) }),
            17 => Body::MultipartReply(MultipartReply { more: self.flag(), body: self.multipart_reply(version) }),
            18 => Body::BarrierRequest,
            19 => Body::BarrierReply,
            20 => Body::QueueGetConfigRequest(self.port(version)),
            21 => Body::QueueGetConfigReply(self.queue_config(version)),
            22 => Body::RoleRequest(self.role()),
            23 => Body::RoleReply(self.role()),
            24 => Body::GetAsyncRequest,
            25 => Body::GetAsyncReply(self.asynchronous()),
            26 => Body::SetAsync(self.asynchronous()),
            27 => Body::GroupMod(GroupMod {
                command: self.u16(),
                kind: self.u8(),
                group: self.group(),
                buckets: self.few(Self::bucket),
            }),
            28 => Body::TableMod(TableMod { table: self.table(), config: self.u32() }),
            _ => Body::MeterMod(MeterMod {
                command: self.u16(),
                flags: self.u16(),
                meter: MeterId(self.u32()),
                bands: self.few(Self::band),
            }),
        }
    }
}
