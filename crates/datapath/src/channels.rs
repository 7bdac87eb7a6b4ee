//! The control channels that are up, and who of them is told what.
use crate::auxiliary::Auxiliaries;
use crate::meter::bucket::{Cost, TokenBucket};
use crate::{ChannelId, PacketInLimit};
use weir_openflow::Version;
use weir_openflow::model::error::RoleRequestFailed;
use weir_openflow::model::nicira::PacketInFormat;
use weir_openflow::model::role::{AsyncConfig, Role, RoleMessage};
use weir_openflow::model::status::{ControllerReason, RoleReason, TableReason};
use weir_openflow::model::{FlowRemovedReason, PacketInReason};
use weir_units::Instant;

/// Bytes of a missed packet that go to the controller until it says otherwise (`OFP_DEFAULT_MISS_SEND_LEN`).
const DEFAULT_MISS_SEND_LEN: u16 = 128;

/// What is told until a controller says otherwise, as in Open vSwitch: everything to masters and equals except packets whose TTL is
/// used up; to slaves only changes of ports.
fn default_async(version: Version) -> AsyncConfig {
    AsyncConfig {
        packet_in: [Some(1 << PacketInReason::NoMatch as u32 | 1 << PacketInReason::Action as u32), Some(0)],
        port_status: [Some(0b111), Some(0b111)],
        flow_removed: [Some(if version < Version::V14 { 0b1111 } else { 0b11_1111 }), Some(0)],
        ..later_async(version)
    }
}

/// The same for the messages that 1.4 and later have.
fn later_async(version: Version) -> AsyncConfig {
    if version < Version::V14 {
        return AsyncConfig::default();
    }
    let both_vacancies = 1 << TableReason::VacancyDown as u32 | 1 << TableReason::VacancyUp as u32;
    // Whoever is no master any more is a slave when it is told.
    let role_status = [Some(1 << RoleReason::MasterRequest as u32); 2];
    AsyncConfig {
        role_status,
        table_status: [Some(both_vacancies), Some(0)],
        requestforward: [Some(0); 2],
        ..AsyncConfig::default()
    }
}

/// A channel that is up. One that the switch listened for is often a tool that asks one thing and goes: it is told nothing of the
/// switch's own accord until it asks for that, by a `miss_send_len` other than zero or a configuration of what it is told (as
/// in Open vSwitch).
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) version: Version,
    pub(crate) miss_send_len: u16,
    pub(crate) role: Role,
    /// The number that its controller gave itself; 0 for none.
    pub(crate) short_id: u16,
    pub(crate) asynchronous: AsyncConfig,
    /// Whether anything is told at all.
    pub(crate) listens: bool,
    /// What Nicira's messages set.
    pub(crate) nicira: NiciraSettings,
    /// What its packet-ins are limited by.
    packet_ins: Option<TokenBucket>,
}

/// What a channel set by Nicira's messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NiciraSettings {
    /// The number by which actions mean it.
    pub(crate) id: u16,
    /// How packets are told.
    pub(crate) packet_ins: PacketInFormat,
    /// Whether the end of flow entries is told with a list of fields as match (1.0).
    pub(crate) has_nxm: bool,
}

impl Default for NiciraSettings {
    fn default() -> Self {
        NiciraSettings { id: 0, packet_ins: PacketInFormat::Standard, has_nxm: false }
    }
}

/// The channels that are up.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    list: Vec<Channel>,
    auxiliaries: Auxiliaries,
    /// The newest election a master or slave request carried (OpenFlow 1.3.5, 6.3.6).
    generation: Option<u64>,
    packet_in_limit: Option<PacketInLimit>,
}

impl Channels {
    /// No channels yet; each gets packet-ins up to a limit.
    pub(crate) fn new(packet_in_limit: Option<PacketInLimit>) -> Channels {
        Channels { packet_in_limit, ..Channels::default() }
    }

    pub(crate) fn up(&mut self, now: Instant, id: ChannelId, version: Version) {
        self.down(id);
        let listens = id < ChannelId::FIRST_PASSIVE;
        self.list.push(Channel {
            id,
            version,
            miss_send_len: if listens { DEFAULT_MISS_SEND_LEN } else { 0 },
            role: Role::Equal,
            short_id: 0,
            asynchronous: default_async(version),
            listens,
            nicira: NiciraSettings::default(),
            packet_ins: self.packet_in_limit.map(|limit| TokenBucket::new(now, limit.per_second, limit.burst)),
        });
    }

    /// Another connection of the channel `main`; whether that one is up.
    pub(crate) fn auxiliary_up(&mut self, id: ChannelId, main: ChannelId, number: u8) -> bool {
        self.down(id);
        let is_main = self.list.iter().any(|channel| channel.id == main);
        if is_main {
            self.auxiliaries.add(id, main, number);
        }
        is_main
    }

    pub(crate) fn down(&mut self, id: ChannelId) {
        self.list.retain(|channel| channel.id != id);
        self.auxiliaries.remove(id);
    }

    /// The other connections of channels.
    pub(crate) fn auxiliaries(&self) -> &Auxiliaries {
        &self.auxiliaries
    }

    /// Whether a controller is there; tools that connected to the switch are none ([`ChannelId::FIRST_PASSIVE`]).
    pub(crate) fn have_controller(&self) -> bool {
        self.list.iter().any(|channel| channel.id < ChannelId::FIRST_PASSIVE)
    }

    /// The version a channel speaks, if it is up.
    pub(crate) fn version(&self, id: ChannelId) -> Option<Version> {
        if id == ChannelId::LOCAL { Some(Version::V13) } else { self.get(id).map(|channel| channel.version) }
    }

    /// The channel of a connection, main or auxiliary.
    pub(crate) fn get(&self, id: ChannelId) -> Option<&Channel> {
        let id = self.auxiliaries.main_of(id);
        self.list.iter().find(|channel| channel.id == id)
    }

    /// The channel of a connection, main or auxiliary.
    pub(crate) fn get_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        let id = self.auxiliaries.main_of(id);
        self.list.iter_mut().find(|channel| channel.id == id)
    }

    /// The channels whose configuration lets something through.
    pub(crate) fn that(&self, wants: impl Fn(&Channel) -> bool) -> impl Iterator<Item = &Channel> {
        self.list.iter().filter(move |channel| wants(channel))
    }

    /// Whether a channel may be sent a packet-in now, which then counts for its limit.
    pub(crate) fn admits_packet_in(&mut self, now: Instant, id: ChannelId) -> bool {
        let bucket = self.get_mut(id).and_then(|channel| channel.packet_ins.as_mut());
        bucket.is_none_or(|bucket| bucket.take(now, Cost::of_packets(1)))
    }

    /// Gives a channel a role, whatever elections there were; says which channels are masters no more.
    pub(crate) fn give_role(&mut self, id: ChannelId, role: Role) -> Vec<ChannelId> {
        let id = self.auxiliaries.main_of(id);
        let mut displaced = Vec::new();
        for channel in &mut self.list {
            if channel.id == id {
                channel.role = role;
            } else if role == Role::Master && channel.role == Role::Master {
                // There is one master: the former becomes slave.
                channel.role = Role::Slave;
                displaced.push(channel.id);
            }
        }
        displaced
    }

    /// Gives a channel a role; says what it holds then, and which channels are masters no more (OpenFlow 1.3.5, 6.3.6).
    ///
    /// # Errors
    /// The request is older than one seen before, or another controller has its number.
    pub(crate) fn request_role(
        &mut self,
        id: ChannelId,
        request: RoleMessage,
    ) -> Result<(RoleMessage, Vec<ChannelId>), RoleRequestFailed> {
        let is_taken = |channel: &Channel| channel.id != id && channel.short_id == request.short_id;
        if request.short_id != 0 && self.list.iter().any(is_taken) {
            return Err(RoleRequestFailed::IdInUse);
        }
        if matches!(request.role, Role::Master | Role::Slave) {
            #[expect(clippy::cast_possible_wrap, reason = "the specification compares the wrapping distance's sign")]
            let is_older = |newest: u64| (request.generation_id.wrapping_sub(newest) as i64) < 0;
            if self.generation.is_some_and(is_older) {
                return Err(RoleRequestFailed::Stale);
            }
            self.generation = Some(request.generation_id);
        }
        let mut displaced = Vec::new();
        for channel in &mut self.list {
            if channel.id == id {
                channel.short_id = request.short_id;
            }
            match request.role {
                Role::NoChange | Role::Unknown(_) => {}
                role if channel.id == id => channel.role = role,
                // There is one master: the former becomes slave.
                Role::Master if channel.role == Role::Master => {
                    channel.role = Role::Slave;
                    displaced.push(channel.id);
                }
                _ => {}
            }
        }
        let role = self.get(id).map_or(Role::Equal, |channel| channel.role);
        let generation_id = self.generation.unwrap_or(u64::MAX);
        Ok((RoleMessage { role, short_id: request.short_id, generation_id }, displaced))
    }
}

impl Channel {
    /// Whether a packet-in for `reason` is wanted.
    pub(crate) fn wants_packet_in(&self, reason: PacketInReason) -> bool {
        self.allows(self.asynchronous.packet_in, reason as u32)
    }

    /// Whether port-status messages of a reason's number are wanted.
    pub(crate) fn wants_port_status(&self, reason: u32) -> bool {
        self.allows(self.asynchronous.port_status, reason)
    }

    /// Whether flow-removed messages of a reason's number are wanted.
    pub(crate) fn wants_flow_removed(&self, reason: u32) -> bool {
        // A version without the reason is told of a delete.
        const DELETE: u32 = FlowRemovedReason::Delete as u32;
        let is_known = self.version >= Version::V14 || reason <= FlowRemovedReason::GroupDelete as u32;
        let reason = if is_known { reason } else { DELETE };
        self.allows(self.asynchronous.flow_removed, reason)
    }

    /// Whether table-status messages are wanted.
    pub(crate) fn wants_table_status(&self, reason: TableReason) -> bool {
        self.version >= Version::V14 && self.allows(self.asynchronous.table_status, reason as u32)
    }

    /// Whether role-status messages are wanted.
    pub(crate) fn wants_role_status(&self, reason: RoleReason) -> bool {
        self.version >= Version::V14 && self.allows(self.asynchronous.role_status, reason as u32)
    }

    /// Whether others' requests of a kind (`OFPRFR_*`) are wanted.
    pub(crate) fn wants_requests(&self, kind: u32) -> bool {
        self.version >= Version::V14 && self.allows(self.asynchronous.requestforward, kind)
    }

    /// Whether controller-status messages are wanted.
    pub(crate) fn wants_controller_status(&self, reason: ControllerReason) -> bool {
        self.version >= Version::V15 && self.allows(self.asynchronous.controller_status, reason as u32)
    }

    fn allows(&self, [ours, slaves]: [Option<u32>; 2], reason: u32) -> bool {
        let allowed = if self.role == Role::Slave { slaves } else { ours };
        self.listens && allowed.unwrap_or(0) >> reason & 1 != 0
    }
}
