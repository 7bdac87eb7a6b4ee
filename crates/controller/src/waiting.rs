//! Packets of routers that wait until the Ethernet address of their destination is known.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use weir_units::Instant;

/// Most destinations that are looked for at a time.
pub const MAX_DESTINATIONS: usize = 256;
/// Most packets that wait for a destination. The packets that come later are dropped.
pub const MAX_WAITING: usize = 8;
/// Time between two requests for an address (RFC 1122, 2.3.2.1: at most one a second).
pub const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// Requests for an address, after which the destination counts as unreachable.
pub const MAX_REQUESTS: u32 = 3;

/// A packet that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingPacket<P> {
    /// Port at which it came to the router.
    pub at: P,
    /// Frame as it came.
    pub data: Vec<u8>,
}

/// A destination that is looked for.
#[derive(Debug)]
struct NeighbourSearch<P> {
    packets: Vec<WaitingPacket<P>>,
    requests: u32,
    next: Instant,
}

/// Result of adding a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queued {
    /// The destination was not looked for: ask for its address.
    New,
    /// The packet waits with others.
    Waits,
    /// No room was left: the packet is dropped.
    Full,
}

/// Destinations that do not answer, each with its packets.
pub type SilentDestinations<P> = Vec<(IpAddr, Vec<WaitingPacket<P>>)>;

/// Packets by destination, from ports that `P` names.
#[derive(Debug)]
pub struct WaitingPackets<P>(BTreeMap<IpAddr, NeighbourSearch<P>>);

impl<P> Default for WaitingPackets<P> {
    fn default() -> Self {
        WaitingPackets(BTreeMap::new())
    }
}

impl<P> WaitingPackets<P> {
    /// Adds a packet to a destination.
    pub fn add(&mut self, to: IpAddr, packet: WaitingPacket<P>, now: Instant) -> Queued {
        if let Some(search) = self.0.get_mut(&to) {
            if search.packets.len() >= MAX_WAITING {
                return Queued::Full;
            }
            search.packets.push(packet);
            return Queued::Waits;
        }
        if self.0.len() >= MAX_DESTINATIONS {
            return Queued::Full;
        }
        self.0.insert(to, NeighbourSearch { packets: vec![packet], requests: 1, next: now + ASK_INTERVAL });
        Queued::New
    }

    /// Returns true if a destination is looked for.
    pub fn is_wanted(&self, to: IpAddr) -> bool {
        self.0.contains_key(&to)
    }

    /// Removes and returns the packets to a destination whose address has become known.
    pub fn take(&mut self, to: IpAddr) -> Vec<WaitingPacket<P>> {
        self.0.remove(&to).map(|search| search.packets).unwrap_or_default()
    }

    /// Returns the time at which the next request is due.
    pub fn next(&self) -> Option<Instant> {
        self.0.values().map(|search| search.next).min()
    }

    /// Returns the destinations to ask for again, and those that did not answer, with their packets.
    pub fn due(&mut self, now: Instant) -> (Vec<IpAddr>, SilentDestinations<P>) {
        let (mut again, mut silent) = (Vec::new(), Vec::new());
        for (to, search) in self.0.iter_mut().filter(|(_, search)| search.next <= now) {
            if search.requests < MAX_REQUESTS {
                search.requests += 1;
                search.next = now + ASK_INTERVAL;
                again.push(*to);
            } else {
                silent.push((*to, std::mem::take(&mut search.packets)));
            }
        }
        for (to, _) in &silent {
            self.0.remove(to);
        }
        (again, silent)
    }
}
