//! Registers the control channels and counts their messages, for `weir ctl show` and labs.
use super::MAX_CHANNELS;
use super::backlog::{ChannelCounters, PacketInCounters};
use super::snoop::SnoopHub;
use crate::snapshot::{ChannelSnapshot, ChannelState};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use weir_datapath::ChannelId;
use weir_openflow::Version;
use weir_openflow::model::role::Role;

/// All channels, connected or being connected.
#[derive(Debug)]
pub(crate) struct ChannelRegistry {
    channels: Mutex<Vec<Arc<ChannelInfo>>>,
    /// Maximum number of channels.
    room: usize,
    next_active: AtomicU32,
    next_passive: AtomicU32,
    /// Counters of packet-ins of all channels, including ended ones.
    packet_ins: Arc<PacketInCounters>,
    /// Listeners to the channels' messages.
    snoop: Arc<SnoopHub>,
}

/// Sums of packet-ins over all present and past channels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketInSums {
    /// Packet-ins queued for a channel.
    pub(crate) taken: u64,
    /// Packet-ins dropped because the channel's queue was full.
    pub(crate) dropped: u64,
    /// Packet-ins not made because the channel was at its rate limit.
    pub(crate) limited: u64,
}

/// A channel, over all its connections.
#[derive(Debug)]
pub(crate) struct ChannelInfo {
    target: String,
    /// Counters of what the channel carried and lost.
    pub(crate) carried: Arc<ChannelCounters>,
    connects: AtomicU64,
    /// True if the switch accepted the connection on a listener.
    is_passive: bool,
    /// Notified when the channel has to make room for another one.
    go: Notify,
    status: Mutex<ConnectionStatus>,
}

#[derive(Debug)]
struct ConnectionStatus {
    state: ChannelState,
    /// Channel id of its connection, or of the last one if there is none.
    id: ChannelId,
    last_error: Option<String>,
}

impl Default for ChannelRegistry {
    fn default() -> Self {
        ChannelRegistry::with_room(MAX_CHANNELS)
    }
}

impl ChannelRegistry {
    /// Returns a registry for at most `room` channels.
    pub(crate) fn with_room(room: usize) -> ChannelRegistry {
        ChannelRegistry {
            channels: Mutex::default(),
            room,
            next_active: AtomicU32::new(ChannelId::LOCAL.0 + 1),
            next_passive: AtomicU32::new(ChannelId::FIRST_PASSIVE.0),
            packet_ins: Arc::default(),
            snoop: Arc::default(),
        }
    }
}

impl ChannelRegistry {
    /// Returns the maximum number of channels.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Returns the listeners to the channels' messages.
    pub(crate) fn snoop(&self) -> &Arc<SnoopHub> {
        &self.snoop
    }

    /// Registers a channel to a controller.
    pub(crate) fn add(&self, target: String) -> Arc<ChannelInfo> {
        self.enter(target, false)
    }

    /// Registers a channel that the switch accepted on a listener.
    pub(crate) fn add_passive(&self, target: String) -> Arc<ChannelInfo> {
        self.enter(target, true)
    }

    fn enter(&self, target: String, is_passive: bool) -> Arc<ChannelInfo> {
        let info = Arc::new(ChannelInfo {
            target,
            carried: Arc::new(ChannelCounters { all: Arc::clone(&self.packet_ins), ..ChannelCounters::default() }),
            connects: AtomicU64::new(0),
            is_passive,
            go: Notify::new(),
            status: Mutex::new(ConnectionStatus {
                state: ChannelState::Connecting,
                id: ChannelId::LOCAL,
                last_error: None,
            }),
        });
        locked(&self.channels).push(Arc::clone(&info));
        info
    }

    /// Removes a channel; its packet-ins stay in the sums.
    pub(crate) fn remove(&self, info: &Arc<ChannelInfo>) {
        let mut channels = locked(&self.channels);
        channels.retain(|other| !Arc::ptr_eq(other, info));
    }

    /// Returns an id for a new connection; `passive` if the switch accepted it on a listener. There are 2^31 ids of
    /// each kind.
    pub(crate) fn next_id(&self, passive: bool) -> ChannelId {
        let next = if passive { &self.next_passive } else { &self.next_active };
        ChannelId(next.fetch_add(1, Relaxed))
    }

    /// Returns true if there is room for one more channel. If there is none, closes the oldest accepted channel whose
    /// handshake is not done, so that peers that connect and send nothing cannot keep others out.
    pub(crate) fn make_room(&self) -> bool {
        let mut channels = locked(&self.channels);
        if channels.len() < self.room {
            return true;
        }
        let chosen = channels.iter().position(|info| info.is_passive && !info.is_up());
        chosen.inspect(|place| channels.remove(*place).go.notify_one()).is_some()
    }

    /// Returns the present state of all channels, and the sums of packet-ins including ended channels.
    pub(crate) fn snapshot(&self, roles: &HashMap<ChannelId, Role>) -> (Vec<ChannelSnapshot>, PacketInSums) {
        let listed = locked(&self.channels);
        let channels: Vec<_> = listed.iter().map(|info| info.snapshot(roles)).collect();
        let PacketInCounters { taken, dropped, limited } = &*self.packet_ins;
        let [taken, dropped, limited] = [taken, dropped, limited].map(|count| count.load(Relaxed));
        drop(listed);
        (channels, PacketInSums { taken, dropped, limited })
    }
}

impl ChannelInfo {
    /// Returns the peer's address as text.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Waits until the channel has to make room for another one.
    pub(crate) async fn chosen_to_go(&self) {
        self.go.notified().await;
    }

    fn is_up(&self) -> bool {
        matches!(locked(&self.status).state, ChannelState::Up { .. })
    }

    /// Notes that the stream is connected.
    pub(crate) fn connected(&self, id: ChannelId) {
        let mut status = locked(&self.status);
        status.state = ChannelState::Handshake;
        status.id = id;
    }

    /// Notes that the session is up.
    pub(crate) fn up(&self, version: Version) {
        self.connects.fetch_add(1, Relaxed);
        locked(&self.status).state = ChannelState::Up { version: version.name().to_owned() };
    }

    /// Notes that the connection ended or could not be made. Returns true if the reason differs from the last one.
    pub(crate) fn down(&self, reason: &str) -> bool {
        let mut status = locked(&self.status);
        status.state = ChannelState::Connecting;
        status.last_error.replace(reason.to_owned()).as_deref() != Some(reason)
    }

    fn snapshot(&self, roles: &HashMap<ChannelId, Role>) -> ChannelSnapshot {
        let status = locked(&self.status);
        ChannelSnapshot {
            target: self.target.clone(),
            state: status.state.clone(),
            role: roles.get(&status.id).map(role_name),
            last_error: status.last_error.clone(),
            connects: self.connects.load(Relaxed),
            received: self.carried.received.load(Relaxed),
            sent: self.carried.sent.load(Relaxed),
            packet_ins: self.carried.packet_ins.load(Relaxed),
            packet_ins_dropped: self.carried.packet_ins_dropped.load(Relaxed),
            packet_ins_limited: self.carried.packet_ins_limited.load(Relaxed),
            notices_dropped: self.carried.notices_dropped.load(Relaxed),
        }
    }
}

fn role_name(role: &Role) -> String {
    match role {
        Role::Master => "master".to_owned(),
        Role::Slave => "slave".to_owned(),
        Role::Equal | Role::NoChange | Role::Unknown(_) => "equal".to_owned(),
    }
}

/// Locks a mutex, even a poisoned one: critical sections are single assignments, so the state is valid after a panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
