//! The channels there are, for those who look: `weir ctl show`, labs.
use super::MAX_CHANNELS;
use super::backlog::{Carried, PacketIns};
use crate::snapshot::{ChannelSnapshot, ChannelState};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use weir_datapath::ChannelId;
use weir_openflow::Version;
use weir_openflow::model::role::Role;

/// All channels, up or being tried.
#[derive(Debug)]
pub(crate) struct Registry {
    channels: Mutex<Vec<Arc<ChannelInfo>>>,
    /// Channels at most.
    room: usize,
    next_active: AtomicU32,
    next_passive: AtomicU32,
    /// What all channels carried and lost, those that ended among them.
    packet_ins: Arc<PacketIns>,
}

/// The packet-ins of all channels there are and were.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketInSums {
    /// Queued.
    pub(crate) taken: u64,
    /// Dropped: the channel's queue was full.
    pub(crate) dropped: u64,
    /// Not made: the channel was at its rate limit.
    pub(crate) limited: u64,
}

/// One channel, over all its connections.
#[derive(Debug)]
pub(crate) struct ChannelInfo {
    target: String,
    /// What it carried and lost.
    pub(crate) carried: Arc<Carried>,
    connects: AtomicU64,
    /// Whether the switch listened for it.
    is_passive: bool,
    /// Told that its place is needed.
    go: Notify,
    status: Mutex<Status>,
}

#[derive(Debug)]
struct Status {
    state: ChannelState,
    /// The number of its connection, the last one if there is none.
    id: ChannelId,
    last_error: Option<String>,
}

impl Default for Registry {
    fn default() -> Self {
        Registry::with_room(MAX_CHANNELS)
    }
}

impl Registry {
    /// One for so many channels.
    pub(crate) fn with_room(room: usize) -> Registry {
        Registry {
            channels: Mutex::default(),
            room,
            next_active: AtomicU32::new(ChannelId::LOCAL.0 + 1),
            next_passive: AtomicU32::new(ChannelId::FIRST_PASSIVE.0),
            packet_ins: Arc::default(),
        }
    }
}

impl Registry {
    /// Channels at most.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Enters a channel to a controller.
    pub(crate) fn add(&self, target: String) -> Arc<ChannelInfo> {
        self.enter(target, false)
    }

    /// Enters a channel that the switch listened for.
    pub(crate) fn add_passive(&self, target: String) -> Arc<ChannelInfo> {
        self.enter(target, true)
    }

    fn enter(&self, target: String, is_passive: bool) -> Arc<ChannelInfo> {
        let info = Arc::new(ChannelInfo {
            target,
            carried: Arc::new(Carried { all: Arc::clone(&self.packet_ins), ..Carried::default() }),
            connects: AtomicU64::new(0),
            is_passive,
            go: Notify::new(),
            status: Mutex::new(Status { state: ChannelState::Connecting, id: ChannelId::LOCAL, last_error: None }),
        });
        locked(&self.channels).push(Arc::clone(&info));
        info
    }

    /// Forgets a channel, but not its packet-ins.
    pub(crate) fn remove(&self, info: &Arc<ChannelInfo>) {
        let mut channels = locked(&self.channels);
        channels.retain(|other| !Arc::ptr_eq(other, info));
    }

    /// A number for a new connection; `passive` if the switch listened for it. 2^31 of each last.
    pub(crate) fn next_id(&self, passive: bool) -> ChannelId {
        let next = if passive { &self.next_passive } else { &self.next_active };
        ChannelId(next.fetch_add(1, Relaxed))
    }

    /// Whether there is room for one more channel. If there is none, the one that came first of those that have not shaken hands
    /// goes: who opens connections and says nothing keeps nobody else out.
    pub(crate) fn make_room(&self) -> bool {
        let mut channels = locked(&self.channels);
        if channels.len() < self.room {
            return true;
        }
        let chosen = channels.iter().position(|info| info.is_passive && !info.is_up());
        chosen.inspect(|place| channels.remove(*place).go.notify_one()).is_some()
    }

    /// All channels as they are now, and the packet-ins of these and those that ended.
    pub(crate) fn snapshot(&self, roles: &HashMap<ChannelId, Role>) -> (Vec<ChannelSnapshot>, PacketInSums) {
        let listed = locked(&self.channels);
        let channels: Vec<_> = listed.iter().map(|info| info.snapshot(roles)).collect();
        let PacketIns { taken, dropped, limited } = &*self.packet_ins;
        let [taken, dropped, limited] = [taken, dropped, limited].map(|count| count.load(Relaxed));
        drop(listed);
        (channels, PacketInSums { taken, dropped, limited })
    }
}

impl ChannelInfo {
    /// The other end.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Waits until its place is needed for another.
    pub(crate) async fn chosen_to_go(&self) {
        self.go.notified().await;
    }

    fn is_up(&self) -> bool {
        matches!(locked(&self.status).state, ChannelState::Up { .. })
    }

    /// The stream is there.
    pub(crate) fn connected(&self, id: ChannelId) {
        let mut status = locked(&self.status);
        status.state = ChannelState::Handshake;
        status.id = id;
    }

    /// The session is up.
    pub(crate) fn up(&self, version: Version) {
        self.connects.fetch_add(1, Relaxed);
        locked(&self.status).state = ChannelState::Up { version: version.name().to_owned() };
    }

    /// The connection ended or could not be made; whether the reason is another than last time.
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

/// What is kept is right whoever panicked while holding it: single assignments.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
