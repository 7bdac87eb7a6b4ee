//! The channels there are, for those who look: `weir ctl show`, labs.
use super::backlog::Carried;
use crate::snapshot::{ChannelSnapshot, ChannelState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_datapath::ChannelId;
use weir_openflow::Version;

/// All channels, up or being tried.
#[derive(Debug)]
pub(crate) struct Registry {
    channels: Mutex<Vec<Arc<ChannelInfo>>>,
    next_active: AtomicU32,
    next_passive: AtomicU32,
    /// What channels that ended carried and lost.
    ended: PacketIns,
}

/// Packet-ins of one or more channels.
#[derive(Debug, Default)]
struct PacketIns {
    taken: AtomicU64,
    dropped: AtomicU64,
}

/// One channel, over all its connections.
#[derive(Debug)]
pub(crate) struct ChannelInfo {
    target: String,
    /// What it carried and lost.
    pub(crate) carried: Arc<Carried>,
    connects: AtomicU64,
    status: Mutex<Status>,
}

#[derive(Debug)]
struct Status {
    state: ChannelState,
    last_error: Option<String>,
}

impl Default for Registry {
    fn default() -> Self {
        Registry {
            channels: Mutex::default(),
            next_active: AtomicU32::new(ChannelId::LOCAL.0 + 1),
            next_passive: AtomicU32::new(ChannelId::FIRST_PASSIVE.0),
            ended: PacketIns::default(),
        }
    }
}

impl Registry {
    /// Enters a channel.
    pub(crate) fn add(&self, target: String) -> Arc<ChannelInfo> {
        let info = Arc::new(ChannelInfo {
            target,
            carried: Arc::default(),
            connects: AtomicU64::new(0),
            status: Mutex::new(Status { state: ChannelState::Connecting, last_error: None }),
        });
        locked(&self.channels).push(Arc::clone(&info));
        info
    }

    /// Forgets a channel, but not its packet-ins.
    pub(crate) fn remove(&self, info: &Arc<ChannelInfo>) {
        let mut channels = locked(&self.channels);
        self.ended.taken.fetch_add(info.carried.packet_ins.load(Relaxed), Relaxed);
        self.ended.dropped.fetch_add(info.carried.packet_ins_dropped.load(Relaxed), Relaxed);
        channels.retain(|other| !Arc::ptr_eq(other, info));
    }

    /// A number for a new connection; `passive` if the switch listened for it. 2^31 of each last.
    pub(crate) fn next_id(&self, passive: bool) -> ChannelId {
        let next = if passive { &self.next_passive } else { &self.next_active };
        ChannelId(next.fetch_add(1, Relaxed))
    }

    /// Number of channels.
    pub(crate) fn len(&self) -> usize {
        locked(&self.channels).len()
    }

    /// All channels as they are now, and the packet-ins that they and those that ended took, and that they could not take.
    pub(crate) fn snapshot(&self) -> (Vec<ChannelSnapshot>, u64, u64) {
        let listed = locked(&self.channels);
        let channels: Vec<_> = listed.iter().map(|info| info.snapshot()).collect();
        let taken: u64 = channels.iter().map(|channel| channel.packet_ins).sum();
        let dropped: u64 = channels.iter().map(|channel| channel.packet_ins_dropped).sum();
        let (ended_taken, ended_dropped) = (self.ended.taken.load(Relaxed), self.ended.dropped.load(Relaxed));
        drop(listed);
        (channels, taken + ended_taken, dropped + ended_dropped)
    }
}

impl ChannelInfo {
    /// The other end.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// The stream is there.
    pub(crate) fn connected(&self) {
        locked(&self.status).state = ChannelState::Handshake;
    }

    /// The session is up.
    pub(crate) fn up(&self, version: Version) {
        self.connects.fetch_add(1, Relaxed);
        locked(&self.status).state = ChannelState::Up { version: version.name().to_owned() };
    }

    /// The connection ended or could not be made.
    pub(crate) fn down(&self, reason: &str) {
        let mut status = locked(&self.status);
        status.state = ChannelState::Connecting;
        status.last_error = Some(reason.to_owned());
    }

    fn snapshot(&self) -> ChannelSnapshot {
        let status = locked(&self.status);
        ChannelSnapshot {
            target: self.target.clone(),
            state: status.state.clone(),
            last_error: status.last_error.clone(),
            connects: self.connects.load(Relaxed),
            received: self.carried.received.load(Relaxed),
            sent: self.carried.sent.load(Relaxed),
            packet_ins: self.carried.packet_ins.load(Relaxed),
            packet_ins_dropped: self.carried.packet_ins_dropped.load(Relaxed),
            notices_dropped: self.carried.notices_dropped.load(Relaxed),
        }
    }
}

/// What is kept is right whoever panicked while holding it: single assignments.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
