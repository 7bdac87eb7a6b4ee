//! Generates multipart requests and replies.
use super::Dice;
use weir_openflow::model::bundle::*;
use weir_openflow::model::flow::*;
use weir_openflow::model::group::*;
use weir_openflow::model::meter::*;
use weir_openflow::model::multipart::*;
use weir_openflow::model::port::*;
use weir_openflow::model::queue::*;
use weir_openflow::model::*;
use weir_packet::Field;

/// Returns how many kinds of multipart messages a version has.
fn n_kinds(version: Version) -> u8 {
    match version {
        Version::V10 => 7,
        Version::V13 => 15,
        Version::V14 => 18,
        Version::V15 => 21,
    }
}

impl Dice<'_> {
    pub(super) fn type_id<T: From<u16>>(&mut self) -> FeatureTypeId<T> {
        match self.flag() {
            false => FeatureTypeId::Standard(u16::from(self.u8()).into()),
            true => FeatureTypeId::Experimenter { id: self.u32(), data: self.bytes() },
        }
    }

    pub(super) fn oxm_id(&mut self, version: Version) -> OxmId {
        let field = self.pick(&Field::ALL);
        OxmId::of_version(field, self.flag(), version).unwrap_or(OxmId {
            class: OxmClass::Experimenter,
            number: self.below(128),
            has_mask: self.flag(),
            length: self.u8(),
            experimenter: Some(self.u32()),
        })
    }

    pub(super) fn table_property(&mut self, version: Version) -> TableProperty {
        let miss = self.flag();
        let n_kinds = match version {
            Version::V10 | Version::V13 => 10,
            Version::V14 => 11,
            Version::V15 => 14,
        };
        match self.below(n_kinds) {
            10 => TableProperty::TableSyncFrom(self.few(Self::table)),
            11 => TableProperty::WriteCopyField { miss, fields: self.few(|dice| dice.oxm_id(version)) },
            12 => TableProperty::ApplyCopyField { miss, fields: self.few(|dice| dice.oxm_id(version)) },
            13 => TableProperty::PacketTypes(self.matching(version).fields),
            0 => TableProperty::Instructions { miss, ids: self.few(Self::type_id) },
            1 => TableProperty::NextTables { miss, tables: self.few(Self::table) },
            2 => TableProperty::WriteActions { miss, ids: self.few(Self::type_id) },
            3 => TableProperty::ApplyActions { miss, ids: self.few(Self::type_id) },
            4 => TableProperty::Match(self.few(|dice| dice.oxm_id(version))),
            5 => TableProperty::Wildcards(self.few(|dice| dice.oxm_id(version))),
            6 => TableProperty::WriteSetField { miss, fields: self.few(|dice| dice.oxm_id(version)) },
            7 => TableProperty::ApplySetField { miss, fields: self.few(|dice| dice.oxm_id(version)) },
            8 => TableProperty::Experimenter { miss, id: self.u32(), kind: self.u32(), data: self.bytes() },
            _ => TableProperty::Unknown { kind: 99, data: self.bytes() },
        }
    }

    pub(super) fn table_features(&mut self, version: Version) -> TableFeatures {
        TableFeatures {
            table: self.table(),
            command: if version >= Version::V15 { self.u8() } else { 0 }.into(),
            features: if version >= Version::V15 { self.u32() } else { 0 },
            name: self.name(),
            metadata_match: self.u64(),
            metadata_write: self.u64(),
            config: self.u32(),
            max_entries: self.u32(),
            properties: self.few(|dice| dice.table_property(version)),
        }
    }

    pub(super) fn flow_request(&mut self, version: Version) -> FlowRequest {
        let request = FlowRequest {
            table: self.table(),
            out_port: self.port(version),
            matching: self.matching(version),
            ..FlowRequest::all()
        };
        match version {
            Version::V10 => request,
            _ => FlowRequest { out_group: self.group(), cookie: self.u64(), cookie_mask: self.u64(), ..request },
        }
    }

    pub(super) fn multipart_request(&mut self, version: Version) -> RequestBody {
        match self.below(n_kinds(version)) {
            0 => RequestBody::Desc,
            1 => RequestBody::Flow(self.flow_request(version)),
            2 => RequestBody::Aggregate(self.flow_request(version)),
            3 => RequestBody::Table,
            4 => RequestBody::PortStats(self.port(version)),
            5 => RequestBody::Queue { port: self.port(version), queue: self.u32() },
            6 => RequestBody::Experimenter(self.experimenter(version)),
            7 => RequestBody::Group(self.group()),
            8 if version >= Version::V15 => RequestBody::GroupDesc(self.group()),
            8 => RequestBody::GroupDesc(GroupId::ALL),
            9 => RequestBody::GroupFeatures,
            10 => RequestBody::Meter(MeterId(self.u32())),
            11 => RequestBody::MeterConfig(MeterId(self.u32())),
            12 => RequestBody::MeterFeatures,
            13 => RequestBody::TableFeatures(self.few(|dice| dice.table_features(version))),
            14 if version >= Version::V15 => RequestBody::PortDesc(self.port(version)),
            14 => RequestBody::PortDesc(PortNo::ANY),
            15 => RequestBody::TableDesc,
            16 => RequestBody::QueueDesc { port: self.port(version), queue: self.u32() },
            17 => RequestBody::FlowMonitor(self.few(|dice| dice.monitor(version))),
            18 => RequestBody::FlowCounters(self.flow_request(version)),
            19 => RequestBody::ControllerStatus,
            _ => RequestBody::BundleFeatures(BundleFeaturesRequest {
                flags: self.u32(),
                properties: self.few(Self::bundle_features_property),
            }),
        }
    }

    pub(super) fn flow_stats(&mut self, version: Version) -> FlowStats {
        FlowStats {
            table: self.table(),
            duration_sec: self.u32(),
            duration_nsec: self.u32(),
            priority: self.u16(),
            idle_timeout: self.u16(),
            hard_timeout: self.u16(),
            flags: if version != Version::V10 { self.flags(version) } else { FlowFlags::default() },
            importance: if version >= Version::V14 { self.u16() } else { 0 },
            cookie: self.u64(),
            packet_count: self.u64(),
            byte_count: self.u64(),
            more: self.more_stats(version),
            matching: self.matching(version),
            instructions: self.instructions(version),
        }
    }

    pub(super) fn table_stats(&mut self, version: Version) -> TableStats {
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

    pub(super) fn port_stats(&mut self, version: Version) -> PortStats {
        let is_v13 = version != Version::V10;
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
            properties: self.since(Version::V14, version, Self::port_stats_property),
        }
    }

    pub(super) fn queue_stats(&mut self, version: Version) -> QueueStats {
        let is_v13 = version != Version::V10;
        QueueStats {
            port: self.port(version),
            queue: self.u32(),
            tx_bytes: self.u64(),
            tx_packets: self.u64(),
            tx_errors: self.u64(),
            duration_sec: if is_v13 { self.u32() } else { 0 },
            duration_nsec: if is_v13 { self.u32() } else { 0 },
            properties: self.since(Version::V14, version, Self::property),
        }
    }

    pub(super) fn group_stats(&mut self) -> GroupStats {
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

    pub(super) fn meter_stats(&mut self) -> MeterStats {
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

    pub(super) fn meter_config(&mut self) -> MeterConfig {
        MeterConfig { flags: self.u16(), meter: MeterId(self.u32()), bands: self.few(Self::band) }
    }

    pub(super) fn desc(&mut self) -> SwitchDesc {
        SwitchDesc {
            mfr_desc: self.name(),
            hw_desc: self.name(),
            sw_desc: self.name(),
            serial_num: self.name(),
            dp_desc: self.name(),
        }
    }

    pub(super) fn multipart_reply(&mut self, version: Version) -> ReplyBody {
        match self.below(n_kinds(version)) {
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
                kind: dice.u8().into(),
                group: dice.group(),
                buckets: dice.buckets(version),
                properties: dice.since(Version::V15, version, Self::property),
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
                features: if version >= Version::V15 { self.u32() } else { 0 },
            }),
            13 => ReplyBody::TableFeatures(self.few(|dice| dice.table_features(version))),
            14 => ReplyBody::PortDesc(self.few(|dice| dice.port_desc(version))),
            15 => ReplyBody::TableDesc(self.few(|dice| dice.table_mod(version))),
            16 => ReplyBody::QueueDesc(self.few(|dice| QueueConfig {
                queue: dice.u32(),
                port: dice.port(version),
                properties: dice.few(Self::queue_property),
            })),
            17 => ReplyBody::FlowMonitor(self.few(|dice| dice.flow_update(version))),
            18 => ReplyBody::FlowCounters(self.few(|dice| FlowCounters {
                table: dice.table(),
                reason: dice.pick(&[FlowCountersReason::Request, FlowCountersReason::Trigger]),
                priority: dice.u16(),
                matching: dice.matching(version),
                stats: dice.stats(),
            })),
            19 => ReplyBody::ControllerStatus(self.few(Self::controller_status)),
            _ => ReplyBody::BundleFeatures(BundleFeatures {
                capabilities: BundleFlags(self.u16()),
                properties: self.few(Self::bundle_features_property),
            }),
        }
    }
}
