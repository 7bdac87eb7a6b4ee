//! Generates the messages and parts that 1.4 and 1.5 added.
use super::Dice;
use weir_openflow::model::bundle::*;
use weir_openflow::model::config::{TableMod, VacancyThresholds};
use weir_openflow::model::flow::*;
use weir_openflow::model::monitor::*;
use weir_openflow::model::packet_io::PacketInReason;
use weir_openflow::model::port::*;
use weir_openflow::model::property::RawProperty;
use weir_openflow::model::role::{AsyncConfig, Role};
use weir_openflow::model::stats::{OxsExtraStats, OxsStats, RawStat};
use weir_openflow::model::status::*;
use weir_openflow::model::*;
use weir_packet::Field;

impl Dice<'_> {
    /// Returns a few items if `version` is at least `first`, otherwise none.
    pub(super) fn since<T>(&mut self, first: Version, version: Version, make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        if version >= first { self.few(make) } else { Vec::new() }
    }

    /// Generates a property of a type that no message interprets.
    pub(super) fn property(&mut self) -> RawProperty {
        let kind = self.pick(&[99, 0x7000, RawProperty::EXPERIMENTER]);
        RawProperty { kind, data: self.bytes() }
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(make(self)) } else { None }
    }

    pub(super) fn stats(&mut self) -> OxsStats {
        let OxsExtraStats { idle_time, flow_count, others } = self.more_stats(Version::V15);
        OxsStats {
            duration: self.maybe(|dice| (dice.u32(), dice.u32())),
            idle_time,
            flow_count,
            packet_count: self.maybe(Self::u64),
            byte_count: self.maybe(Self::u64),
            others,
        }
    }

    pub(super) fn more_stats(&mut self, version: Version) -> OxsExtraStats {
        if version < Version::V15 {
            return OxsExtraStats::default();
        }
        OxsExtraStats {
            idle_time: self.maybe(|dice| (dice.u32(), dice.u32())),
            flow_count: self.maybe(Self::u32),
            others: self.few(|dice| RawStat { class: 0x7001, number: dice.u8(), payload: dice.bytes() }),
        }
    }

    pub(super) fn packet_in_reason(&mut self, version: Version) -> PacketInReason {
        use PacketInReason::{Action, ActionSet, Group, InvalidTtl, NoMatch, PacketOut};
        let known = [NoMatch, Action, InvalidTtl, ActionSet, Group, PacketOut];
        self.pick(&known[..if version >= Version::V14 { 6 } else { 3 }])
    }

    /// Generates fields other than the input port.
    pub(super) fn pipeline_fields(&mut self, version: Version) -> Match {
        if version < Version::V15 {
            return Match::any();
        }
        let is_port = |field: &MatchField| matches!(field, MatchField::Known { field: Field::InPort, .. });
        let fields = self.matching(version).fields;
        Match { fields: fields.into_iter().filter(|field| !is_port(field)).collect() }
    }

    pub(super) fn table_mod(&mut self, version: Version) -> TableMod {
        let change = TableMod::new(self.table(), self.u32());
        if version < Version::V14 {
            return change;
        }
        TableMod {
            eviction: self.maybe(Self::u32),
            vacancy: self.maybe(|dice| VacancyThresholds { down: dice.u8(), up: dice.u8(), now: dice.u8() }),
            properties: self.few(Self::property),
            ..change
        }
    }

    pub(super) fn table_status(&mut self, version: Version) -> TableStatus {
        let reason = self.pick(&[TableReason::VacancyDown, TableReason::VacancyUp]);
        TableStatus { reason, table: self.table_mod(version) }
    }

    fn any_role(&mut self) -> Role {
        self.pick(&[Role::NoChange, Role::Equal, Role::Master, Role::Slave, Role::Unknown(9)])
    }

    pub(super) fn role_status(&mut self) -> RoleStatus {
        RoleStatus {
            role: self.any_role(),
            reason: self.pick(&[RoleReason::MasterRequest, RoleReason::Config, RoleReason::Experimenter]),
            generation_id: self.u64(),
            properties: self.few(Self::property),
        }
    }

    pub(super) fn controller_status(&mut self) -> ControllerStatus {
        use ControllerReason::{
            ChannelStatus, ControllerAdded, ControllerRemoved, Experimenter, Request, Role as OfRole, ShortId,
        };
        ControllerStatus {
            short_id: self.u16(),
            role: self.any_role(),
            reason: self.pick(&[
                Request,
                ChannelStatus,
                OfRole,
                ControllerAdded,
                ControllerRemoved,
                ShortId,
                Experimenter,
            ]),
            is_up: self.flag(),
            uri: self.name(),
            properties: self.few(Self::property),
        }
    }

    pub(super) fn asynchronous_v14(&mut self, version: Version) -> AsyncConfig {
        let mut config = AsyncConfig::default();
        let n_kinds = if version >= Version::V15 { 8 } else { 6 };
        for kind in config.kinds_mut().into_iter().take(n_kinds) {
            *kind = [self.maybe(Self::u32), self.maybe(Self::u32)];
        }
        AsyncConfig { properties: self.few(Self::property), ..config }
    }

    pub(super) fn port_property(&mut self, version: Version) -> PortProperty {
        match self.below(if version >= Version::V15 { 5 } else { 2 }) {
            0 => PortProperty::Other(self.property()),
            1 => PortProperty::Optical(OpticalPort {
                supported: self.u32(),
                tx_min_freq_lmda: self.u32(),
                tx_max_freq_lmda: self.u32(),
                tx_grid_freq_lmda: self.u32(),
                rx_min_freq_lmda: self.u32(),
                rx_max_freq_lmda: self.u32(),
                rx_grid_freq_lmda: self.u32(),
                tx_pwr_min: self.u16(),
                tx_pwr_max: self.u16(),
            }),
            2 => PortProperty::PipelineInput(self.few(|dice| dice.oxm_id(version))),
            3 => PortProperty::PipelineOutput(self.few(|dice| dice.oxm_id(version))),
            _ => PortProperty::Recirculate(self.few(|dice| dice.port(version))),
        }
    }

    pub(super) fn port_mod_property(&mut self) -> PortModProperty {
        match self.flag() {
            false => PortModProperty::Other(self.property()),
            true => PortModProperty::Optical {
                configure: self.u32(),
                freq_lmda: self.u32(),
                fl_offset: self.u32(),
                grid_span: self.u32(),
                tx_pwr: self.u32(),
            },
        }
    }

    pub(super) fn port_stats_property(&mut self) -> PortStatsProperty {
        match self.flag() {
            false => PortStatsProperty::Other(self.property()),
            true => PortStatsProperty::Optical(OpticalStats {
                flags: self.u32(),
                tx_freq_lmda: self.u32(),
                tx_offset: self.u32(),
                tx_grid_span: self.u32(),
                rx_freq_lmda: self.u32(),
                rx_offset: self.u32(),
                rx_grid_span: self.u32(),
                tx_pwr: self.u16(),
                rx_pwr: self.u16(),
                bias_current: self.u16(),
                temperature: self.u16(),
            }),
        }
    }

    pub(super) fn monitor(&mut self, version: Version) -> FlowMonitor {
        FlowMonitor {
            id: self.u32(),
            out_port: self.port(version),
            out_group: self.group(),
            flags: MonitorFlags(self.u16()),
            table: self.table(),
            command: self.pick(&[
                MonitorCommand::Add,
                MonitorCommand::Modify,
                MonitorCommand::Delete,
                MonitorCommand::Unknown(77),
            ]),
            matching: self.matching(version),
        }
    }

    pub(super) fn flow_update(&mut self, version: Version) -> FlowUpdate {
        match self.below(4) {
            0 => FlowUpdate::Paused,
            1 => FlowUpdate::Resumed,
            2 => FlowUpdate::Abbrev { xid: self.u32() },
            _ => {
                let events = [FlowEvent::Initial, FlowEvent::Added, FlowEvent::Removed, FlowEvent::Modified];
                let event = self.pick(&events);
                FlowUpdate::Full(FlowUpdateFull {
                    event,
                    reason: (event == FlowEvent::Removed).then_some(FlowRemovedReason::Eviction),
                    table: self.table(),
                    idle_timeout: self.u16(),
                    hard_timeout: self.u16(),
                    priority: self.u16(),
                    cookie: self.u64(),
                    matching: self.matching(version),
                    instructions: self.instructions(version),
                })
            }
        }
    }

    fn time(&mut self) -> BundleTime {
        BundleTime { seconds: self.u64(), nanoseconds: self.u32() }
    }

    pub(super) fn bundle_features_property(&mut self) -> BundleFeaturesProperty {
        match self.flag() {
            false => BundleFeaturesProperty::Other(self.property()),
            true => BundleFeaturesProperty::Time {
                accuracy: self.time(),
                max_future: self.time(),
                max_past: self.time(),
                timestamp: self.time(),
            },
        }
    }

    fn bundle_property(&mut self, version: Version) -> BundleProperty {
        if version >= Version::V15 && self.flag() {
            return BundleProperty::Time(self.time());
        }
        BundleProperty::Other(self.property())
    }

    pub(super) fn bundle_control(&mut self, version: Version) -> BundleControl {
        use BundleCommand::{
            CloseReply, CloseRequest, CommitReply, CommitRequest, DiscardReply, DiscardRequest, OpenReply, OpenRequest,
        };
        BundleControl {
            bundle: BundleId(self.u32()),
            command: self.pick(&[
                OpenRequest,
                OpenReply,
                CloseRequest,
                CloseReply,
                CommitRequest,
                CommitReply,
                DiscardRequest,
                DiscardReply,
            ]),
            flags: BundleFlags(self.u16()),
            properties: self.few(|dice| dice.bundle_property(version)),
        }
    }

    pub(super) fn bundle_add(&mut self, version: Version) -> BundleAdd {
        let xid = self.u32();
        let body = match self.below(3) {
            0 => Body::FlowMod(self.flow_mod(version)),
            1 => Body::PortMod(self.port_mod(version)),
            _ => Body::EchoRequest(self.bytes()),
        };
        BundleAdd {
            bundle: BundleId(self.u32()),
            flags: BundleFlags(self.u16()),
            message: Box::new(Message { xid, body }),
            properties: self.few(|dice| dice.bundle_property(version)),
        }
    }

    pub(super) fn forwarded(&mut self, version: Version) -> Message {
        let body = match self.flag() {
            false => Body::MeterMod(self.meter_mod()),
            true => Body::GroupMod(self.group_mod(version)),
        };
        Message { xid: self.u32(), body }
    }
}
