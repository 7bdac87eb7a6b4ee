//! The control channels that are up, and which asynchronous messages each of them wants.
mod notices;

pub(crate) use notices::{RequestForwardReason, refusal, start_of};

use crate::auxiliary::AuxiliaryConnections;
use crate::meter::bucket::{TokenBucket, TokenCost};
use crate::{ChannelId, PacketInLimit};
use weir_openflow::Version;
use weir_openflow::model::error::RoleRequestFailed;
use weir_openflow::model::nicira::PacketInFormat;
use weir_openflow::model::role::{AsyncConfig, Role, RoleMessage};
use weir_openflow::model::status::{ControllerReason, RoleReason, TableReason};
use weir_openflow::model::{FlowRemovedReason, PacketInReason};
use weir_units::Instant;

/// Default for the number of bytes of a missed packet sent to the controller (`OFP_DEFAULT_MISS_SEND_LEN`).
const DEFAULT_MISS_SEND_LEN: u16 = 128;

/// Returns the asynchronous messages a channel gets by default, as in Open vSwitch. Masters and equals get packet-ins
/// (except those for an expired TTL), port-status and flow-removed messages. Slaves get only port-status messages.
/// [`later_async`] adds the messages of version 1.4.
fn default_async(version: Version) -> AsyncConfig {
    AsyncConfig {
        packet_in: [Some(1 << PacketInReason::NoMatch as u32 | 1 << PacketInReason::Action as u32), Some(0)],
        port_status: [Some(0b111), Some(0b111)],
        flow_removed: [Some(if version < Version::V14 { 0b1111 } else { 0b11_1111 }), Some(0)],
        ..later_async(version)
    }
}

/// Returns the defaults for the asynchronous messages that version 1.4 introduced.
fn later_async(version: Version) -> AsyncConfig {
    if version < Version::V14 {
        return AsyncConfig::default();
    }
    let both_vacancies = 1 << TableReason::VacancyDown as u32 | 1 << TableReason::VacancyUp as u32;
    // A former master is already a slave when the role-status message is sent, so slaves get it, too.
    let role_status = [Some(1 << RoleReason::MasterRequest as u32); 2];
    AsyncConfig {
        role_status,
        table_status: [Some(both_vacancies), Some(0)],
        requestforward: [Some(0); 2],
        ..AsyncConfig::default()
    }
}

/// A channel that is up. A channel that the switch listened for is often a tool that sends one request and
/// disconnects. So it gets no asynchronous messages until it asks for them by a `miss_send_len` other than zero or by
/// an asynchronous configuration (as in Open vSwitch).
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) version: Version,
    pub(crate) miss_send_len: u16,
    pub(crate) role: Role,
    /// Number that the controller chose for itself; 0 for none.
    pub(crate) short_id: u16,
    pub(crate) asynchronous: AsyncConfig,
    /// True if the channel gets asynchronous messages at all.
    pub(crate) listens: bool,
    /// Settings made by Nicira's messages.
    pub(crate) nicira: NiciraSettings,
    /// Rate limiter of packet-ins, if there is a limit.
    packet_ins: Option<TokenBucket>,
}

/// Settings of a channel made by Nicira's messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NiciraSettings {
    /// Controller id, by which `controller` actions address the channel.
    pub(crate) id: u16,
    /// Format of packet-ins.
    pub(crate) packet_ins: PacketInFormat,
    /// True if flow-removed messages use Nicira's format, which has a list of fields as match (1.0).
    pub(crate) has_nxm: bool,
}

impl Default for NiciraSettings {
    fn default() -> Self {
        NiciraSettings { id: 0, packet_ins: PacketInFormat::Standard, has_nxm: false }
    }
}

/// The channels that are up.
#[derive(Debug, Default)]
pub(crate) struct DatapathChannels {
    list: Vec<Channel>,
    auxiliaries: AuxiliaryConnections,
    /// Newest generation id of a master or slave request (OpenFlow 1.3.5, 6.3.6).
    generation: Option<u64>,
    packet_in_limit: Option<PacketInLimit>,
}

impl DatapathChannels {
    /// Returns an empty list. Each channel will get packet-ins up to the limit.
    pub(crate) fn new(packet_in_limit: Option<PacketInLimit>) -> DatapathChannels {
        DatapathChannels { packet_in_limit, ..DatapathChannels::default() }
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

    /// Adds an auxiliary connection of the channel `main`. Returns true if `main` is up.
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

    /// Returns the auxiliary connections.
    pub(crate) fn auxiliaries(&self) -> &AuxiliaryConnections {
        &self.auxiliaries
    }

    /// Returns true if a controller is connected. Tools that connected to the switch do not count
    /// ([`ChannelId::FIRST_PASSIVE`]).
    pub(crate) fn have_controller(&self) -> bool {
        self.list.iter().any(|channel| channel.id < ChannelId::FIRST_PASSIVE)
    }

    /// Returns the version a channel speaks, if the channel is up.
    pub(crate) fn version(&self, id: ChannelId) -> Option<Version> {
        if id == ChannelId::LOCAL { Some(Version::V13) } else { self.get(id).map(|channel| channel.version) }
    }

    /// Returns the channel of a connection, main or auxiliary.
    pub(crate) fn get(&self, id: ChannelId) -> Option<&Channel> {
        let id = self.auxiliaries.main_of(id);
        self.list.iter().find(|channel| channel.id == id)
    }

    /// Returns the channel of a connection, main or auxiliary, mutably.
    pub(crate) fn get_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        let id = self.auxiliaries.main_of(id);
        self.list.iter_mut().find(|channel| channel.id == id)
    }

    /// Returns the main connection of a connection.
    pub(crate) fn main_of(&self, connection: ChannelId) -> ChannelId {
        self.auxiliaries.main_of(connection)
    }

    /// Returns the role of a channel. A channel that is not up counts as equal.
    pub(crate) fn role_of(&self, id: ChannelId) -> Role {
        self.get(id).map_or(Role::Equal, |channel| channel.role)
    }

    /// Returns the asynchronous messages that a channel gets.
    pub(crate) fn async_config(&self, id: ChannelId) -> AsyncConfig {
        self.get(id).map(|channel| channel.asynchronous.clone()).unwrap_or_default()
    }

    /// Changes the asynchronous messages that a channel gets.
    pub(crate) fn set_async_config(&mut self, id: ChannelId, config: &AsyncConfig) {
        if let Some(channel) = self.get_mut(id) {
            channel.asynchronous.update(config);
            channel.listens = true;
        }
    }

    /// Changes a channel's settings made by Nicira's messages.
    pub(crate) fn change_nicira(&mut self, id: ChannelId, change: impl FnOnce(&mut NiciraSettings)) {
        if let Some(channel) = self.get_mut(id) {
            change(&mut channel.nicira);
        }
    }

    /// Returns the channels for which `wants` returns true.
    pub(crate) fn that(&self, wants: impl Fn(&Channel) -> bool) -> impl Iterator<Item = &Channel> {
        self.list.iter().filter(move |channel| wants(channel))
    }

    /// Returns true if a channel's rate limit admits a packet-in now, and counts the packet-in.
    pub(crate) fn admits_packet_in(&mut self, now: Instant, id: ChannelId) -> bool {
        let bucket = self.get_mut(id).and_then(|channel| channel.packet_ins.as_mut());
        bucket.is_none_or(|bucket| bucket.take(now, TokenCost::of_packets(1)))
    }

    /// Gives a channel a role without an election. Returns the channels that are not master any more.
    pub(crate) fn give_role(&mut self, id: ChannelId, role: Role) -> Vec<ChannelId> {
        let id = self.auxiliaries.main_of(id);
        let mut displaced = Vec::new();
        for channel in &mut self.list {
            if channel.id == id {
                channel.role = role;
            } else if role == Role::Master && channel.role == Role::Master {
                // At most one channel is master: the former one becomes slave.
                channel.role = Role::Slave;
                displaced.push(channel.id);
            }
        }
        displaced
    }

    /// Handles a role request. Returns the role that holds afterwards, and the channels that are not master any more
    /// (OpenFlow 1.3.5, 6.3.6).
    ///
    /// # Errors
    /// The request is older than an earlier one, or another channel uses its controller number.
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
                // At most one channel is master: the former one becomes slave.
                Role::Master if channel.role == Role::Master => {
                    channel.role = Role::Slave;
                    displaced.push(channel.id);
                }
                _ => {}
            }
        }
        let role = self.role_of(id);
        let generation_id = self.generation.unwrap_or(u64::MAX);
        Ok((RoleMessage { role, short_id: request.short_id, generation_id }, displaced))
    }
}

impl Channel {
    /// Returns true if the channel gets packets that no entry matches: without a table-miss entry only version 1.0
    /// sends them to the controller, and Nicira's controller ids other than 0 stand for packets sent on purpose.
    pub(crate) fn takes_misses(&self) -> bool {
        self.version == Version::V10 && self.nicira.id == 0
    }

    /// Returns true if the channel wants packet-ins with `reason`.
    pub(crate) fn wants_packet_in(&self, reason: PacketInReason) -> bool {
        self.allows(self.asynchronous.packet_in, reason as u32)
    }

    /// Returns true if the channel wants port-status messages with the number `reason`.
    pub(crate) fn wants_port_status(&self, reason: u32) -> bool {
        self.allows(self.asynchronous.port_status, reason)
    }

    /// Returns true if the channel wants flow-removed messages with the number `reason`.
    pub(crate) fn wants_flow_removed(&self, reason: u32) -> bool {
        // Versions that lack a reason report a delete instead.
        const DELETE: u32 = FlowRemovedReason::Delete as u32;
        let is_known = self.version >= Version::V14 || reason <= FlowRemovedReason::GroupDelete as u32;
        let reason = if is_known { reason } else { DELETE };
        self.allows(self.asynchronous.flow_removed, reason)
    }

    /// Returns true if the channel wants table-status messages with `reason` (version 1.4 or later).
    pub(crate) fn wants_table_status(&self, reason: TableReason) -> bool {
        self.version >= Version::V14 && self.allows(self.asynchronous.table_status, reason as u32)
    }

    /// Returns true if the channel wants role-status messages with `reason` (version 1.4 or later).
    pub(crate) fn wants_role_status(&self, reason: RoleReason) -> bool {
        self.version >= Version::V14 && self.allows(self.asynchronous.role_status, reason as u32)
    }

    /// Returns true if the channel wants other channels' requests of a kind (`OFPRFR_*`) forwarded (version 1.4 or
    /// later).
    pub(crate) fn wants_requests(&self, kind: u32) -> bool {
        self.version >= Version::V14 && self.allows(self.asynchronous.requestforward, kind)
    }

    /// Returns true if the channel wants controller-status messages with `reason` (version 1.5 or later).
    pub(crate) fn wants_controller_status(&self, reason: ControllerReason) -> bool {
        self.version >= Version::V15 && self.allows(self.asynchronous.controller_status, reason as u32)
    }

    fn allows(&self, [ours, slaves]: [Option<u32>; 2], reason: u32) -> bool {
        let allowed = if self.role == Role::Slave { slaves } else { ours };
        self.listens && allowed.unwrap_or(0) >> reason & 1 != 0
    }
}
