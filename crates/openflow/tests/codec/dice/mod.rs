//! Generates messages from noise. Every choice consumes a few bytes of it; missing bytes count as zeros. Shorter
//! noise therefore gives simpler messages, so that a failing case shrinks.
mod flow;
mod multipart;
mod newer;

use weir_openflow::model::config::SwitchConfig;
use weir_openflow::model::error::*;
use weir_openflow::model::flow::*;
use weir_openflow::model::group::*;
use weir_openflow::model::meter::*;
use weir_openflow::model::multipart::*;
use weir_openflow::model::packet_io::*;
use weir_openflow::model::port::*;
use weir_openflow::model::queue::*;
use weir_openflow::model::role::*;
use weir_openflow::model::*;
use weir_packet::{Field, MacAddr};

pub(crate) struct Dice<'a> {
    noise: &'a [u8],
}

/// Number of codes to use of each error type.
const CODES: [(u16, u16); 18] = [
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
    (14, 9),
    (15, 3),
    (16, 8),
    (17, 16),
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

    /// Returns a number below `end`.
    fn below(&mut self, end: u8) -> u8 {
        self.u8() % end
    }

    fn flag(&mut self) -> bool {
        self.u8() & 1 != 0
    }

    /// Returns at most three items.
    fn few<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| make(self)).collect()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.u16()) % of.len()]
    }

    fn bytes(&mut self) -> Bytes {
        Bytes((0..self.below(9)).map(|_| self.u8()).collect())
    }

    /// Returns a multiple of eight bytes, for an experimenter's data.
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

    /// Returns any port number of the version, or `ANY`.
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
            (1, Version::V13 | Version::V14 | Version::V15) => PortNo(self.u32() % PortNo::MAX.0 + 1),
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

    fn features_bits(&mut self, version: Version) -> u32 {
        // 1.0 has no bits for the rates from 40 Gbit/s to "other".
        if version != Version::V10 { self.u32() } else { self.u32() & !0x780 }
    }

    fn port_desc(&mut self, version: Version) -> PortDesc {
        let is_v13 = version != Version::V10;
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
            properties: self.since(Version::V14, version, |dice| dice.port_property(version)),
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
            reason: self.packet_in_reason(version),
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
            // Errors that 1.0 has.
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
            _ => match kind {
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
                13 if version == Version::V13 => TableFeaturesFailed::from_number(code).unwrap().into(),
                14 if version >= Version::V14 => BadProperty::from_number(code).unwrap().into(),
                15 if version >= Version::V14 => AsyncConfigFailed::from_number(code).unwrap().into(),
                16 if version >= Version::V14 => FlowMonitorFailed::from_number(code).unwrap().into(),
                17 => BundleFailed::from_number(code).unwrap().into(),
                _ => match self.below(3) {
                    0 if version == Version::V15 => BadAction::BadMeter.into(),
                    0 => TableFeaturesFailed::Eperm.into(),
                    1 => ErrorType::Experimenter { kind: self.u16(), id: self.u32() },
                    _ => ErrorType::Unknown { kind: 77, code },
                },
            },
        }
    }

    fn experimenter(&mut self, version: Version) -> Experimenter {
        let kind = if version != Version::V10 { Some(self.u32()) } else { None };
        Experimenter { id: self.u32(), kind, data: self.bytes() }
    }

    /// Generates buckets, numbered by their index before 1.5.
    fn buckets(&mut self, version: Version) -> Vec<Bucket> {
        let buckets = self.few(|dice| dice.bucket(version));
        let by_place = |(id, bucket)| Bucket { id: BucketId(id), ..bucket };
        if version >= Version::V15 { buckets } else { (0..).zip(buckets).map(by_place).collect() }
    }

    fn bucket(&mut self, version: Version) -> Bucket {
        Bucket {
            id: BucketId(self.u32()),
            weight: self.u16(),
            watch_port: self.port(version),
            watch_group: self.group(),
            actions: self.actions(version),
            properties: self.since(Version::V15, version, Self::property),
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
            properties: self.since(Version::V14, version, Self::port_mod_property),
        }
    }

    fn queue_config(&mut self, version: Version) -> QueueConfigReply {
        let port = self.port(version);
        let queues = self.few(|dice| QueueConfig {
            queue: dice.u32(),
            port: if version != Version::V10 { dice.port(version) } else { PortNo::ANY },
            properties: dice.few(Self::queue_property),
        });
        QueueConfigReply { port, queues }
    }

    fn role(&mut self, version: Version) -> RoleMessage {
        let role = self.pick(&[Role::NoChange, Role::Equal, Role::Master, Role::Slave, Role::Unknown(9)]);
        RoleMessage { role, short_id: if version >= Version::V15 { self.u16() } else { 0 }, generation_id: self.u64() }
    }

    fn asynchronous(&mut self, version: Version) -> AsyncConfig {
        if version >= Version::V14 {
            return self.asynchronous_v14(version);
        }
        let mut pair = || [Some(self.u32()), Some(self.u32())];
        let (packet_in, port_status, flow_removed) = (pair(), pair(), pair());
        AsyncConfig { packet_in, port_status, flow_removed, ..AsyncConfig::default() }
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

    /// Returns a packet-in, half of them with no pipeline field but the input port, as most switches send.
    pub(crate) fn packet_in_message(&mut self, version: Version) -> Message {
        let (xid, only_port) = (self.u32(), self.flag());
        let mut packet = self.packet_in(version);
        if only_port {
            packet.matching = Match::any().with(Field::InPort, self.port(version).0);
        }
        Message { xid, body: Body::PacketIn(packet) }
    }

    fn body(&mut self, version: Version) -> Body {
        let n_kinds = match version {
            Version::V10 => 22,
            Version::V13 => 32,
            Version::V14 => 35,
            Version::V15 => 36,
        };
        match self.below(n_kinds) {
            20 | 21 if version >= Version::V14 => Body::BarrierReply,
            30 => Body::BundleControl(self.bundle_control(version)),
            31 => Body::BundleAdd(self.bundle_add(version)),
            32 => Body::RoleStatus(self.role_status()),
            33 => Body::TableStatus(self.table_status(version)),
            34 => Body::RequestForward(Box::new(self.forwarded(version))),
            35 => Body::ControllerStatus(self.controller_status()),
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
                matching: self.pipeline_fields(version),
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
            22 => Body::RoleRequest(self.role(version)),
            23 => Body::RoleReply(self.role(version)),
            24 => Body::GetAsyncRequest,
            25 => Body::GetAsyncReply(self.asynchronous(version)),
            26 => Body::SetAsync(self.asynchronous(version)),
            27 => Body::GroupMod(self.group_mod(version)),
            28 => Body::TableMod(self.table_mod(version)),
            _ => Body::MeterMod(self.meter_mod()),
        }
    }

    fn group_mod(&mut self, version: Version) -> GroupMod {
        let command = self.u16().into();
        let is_of_buckets = matches!(command, GroupCommand::InsertBucket | GroupCommand::RemoveBucket);
        GroupMod {
            // Only 1.5 changes some of a group's buckets.
            command: if is_of_buckets && version < Version::V15 { GroupCommand::Modify } else { command },
            kind: self.u8().into(),
            group: self.group(),
            command_bucket: if version >= Version::V15 { BucketId(self.u32()) } else { BucketId::ALL },
            buckets: self.buckets(version),
            properties: self.since(Version::V15, version, Self::property),
        }
    }

    fn meter_mod(&mut self) -> MeterMod {
        MeterMod {
            command: self.u16().into(),
            flags: self.u16(),
            meter: MeterId(self.u32()),
            bands: self.few(Self::band),
        }
    }
}
