//! Learns on which port each station of the control traffic is, and keeps flooded frames from circling in rings of
//! switches that have no controller and no spanning tree yet.
//!
//! The port on which the first copy of a frame arrives is the sender's. For [`LOCK_TIME`] after a frame from there,
//! copies that arrive on other ports are dropped. So each switch forwards a flooded frame once, and the ports on which
//! first copies arrived are a tree of the quickest paths from the sender (ARP-Path; Ibáñez et al., "Implementation of
//! ARP-Path low latency bridges in Linux and OpenFlow/NetFPGA", HPSR 2011). This needs no protocol between switches and
//! no agreement on a root, uses all links, and survives the loss of any. It needs paths whose delays differ by less
//! than [`LOCK_TIME`]. The lock ends when the path is forgotten. Then [`floods`](super::floods) still recognises
//! copies.
//!
//! A frame on a known path does not race with copies of itself, so it may come from another port than the last flood
//! did: the quickest path from a controller need not be the quickest path back. Then frames on known paths lock the
//! port against each other.
use crate::stations::{HeardStation, MAX_AGE, StationTable};
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Time after a frame from a station during which copies from other ports are dropped. It has to be longer than the
/// difference between the delays of two paths, and bounds how long a change of the path goes unnoticed.
pub(super) const LOCK_TIME: Duration = Duration::from_millis(500);

/// Maximum number of stations: controllers, next hops, and the local ports of switches. A further one replaces one that
/// was not heard lately.
const MAX_STATIONS: usize = 1024;

/// How a switch forwards a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// To all ports.
    Flooded,
    /// To the port of its destination.
    Directed,
}

/// Path to a station.
#[derive(Debug, Clone, Copy)]
struct Path {
    /// The station's port; `None` if it was forgotten.
    port: Option<PortNo>,
    /// Arrival time of the latest frame from that port.
    heard: Instant,
    /// Arrival time of the latest frame from that port that was not flooded.
    directed: Option<Instant>,
    /// True for the station of a controller or next hop.
    is_controller: bool,
}

impl HeardStation for Path {
    fn heard_at(&self) -> Instant {
        self.heard
    }
}

impl Path {
    fn new(now: Instant, port: PortNo, transport: Transport) -> Path {
        Path {
            port: Some(port),
            heard: now,
            directed: (transport == Transport::Directed).then_some(now),
            is_controller: false,
        }
    }

    /// Returns true if a frame that arrives on another port is to be dropped.
    fn is_locked(&self, now: Instant, transport: Transport) -> bool {
        let since = match transport {
            Transport::Flooded => Some(self.heard),
            Transport::Directed => self.directed,
        };
        self.port.is_some() && since.is_some_and(|since| now.since(since) < LOCK_TIME)
    }
}

/// Ports of the stations of the control traffic.
#[derive(Debug)]
pub(super) struct ControlPaths {
    stations: StationTable<Path>,
}

impl ControlPaths {
    pub(super) fn new() -> ControlPaths {
        ControlPaths { stations: StationTable::new(MAX_STATIONS) }
    }

    /// Returns the port of a station, if it is known.
    pub(super) fn port(&self, now: Instant, station: MacAddr) -> Option<PortNo> {
        let path = self.stations.get(station.to_bits())?;
        path.port.filter(|_| now.since(path.heard) < MAX_AGE)
    }

    /// Returns true if a station was heard and not forgotten since, whether or not its port is known.
    pub(super) fn contains(&self, station: MacAddr) -> bool {
        self.stations.get(station.to_bits()).is_some()
    }

    /// Returns true if a station is known to be that of a controller or next hop.
    pub(super) fn is_controller(&self, station: MacAddr) -> bool {
        self.stations.get(station.to_bits()).is_some_and(|path| path.is_controller)
    }

    /// Notes that a station is that of a controller or next hop.
    pub(super) fn note_controller(&mut self, station: MacAddr) {
        if let Some(path) = self.stations.get_mut(station.to_bits()) {
            path.is_controller = true;
        }
    }

    /// Returns true if a station is known to be on this port.
    pub(super) fn is_on(&self, port: PortNo, station: MacAddr) -> bool {
        self.stations.get(station.to_bits()).is_some_and(|path| path.port == Some(port))
    }

    /// Returns true if a station's frame is to be dropped, because it is a further copy of one that arrived on another
    /// port.
    pub(super) fn is_locked(&self, now: Instant, in_port: PortNo, station: MacAddr, transport: Transport) -> bool {
        let path = self.stations.get(station.to_bits());
        path.is_some_and(|path| path.port != Some(in_port) && path.is_locked(now, transport))
    }

    /// Learns a station's port from a frame.
    pub(super) fn learn(&mut self, now: Instant, in_port: PortNo, station: MacAddr, transport: Transport) {
        let Some(path) = self.stations.get_mut(station.to_bits()) else {
            return self.stations.add(station.to_bits(), Path::new(now, in_port, transport));
        };
        if path.port != Some(in_port) {
            *path = Path { is_controller: path.is_controller, ..Path::new(now, in_port, transport) };
            return;
        }
        path.heard = now;
        if transport == Transport::Directed {
            path.directed = Some(now);
        }
    }

    /// Forgets the port of a station.
    pub(super) fn forget(&mut self, station: MacAddr) {
        if let Some(path) = self.stations.get_mut(station.to_bits()) {
            path.port = None;
        }
    }

    /// Forgets all stations on a port. Returns them, ascending by address.
    pub(super) fn forget_port(&mut self, port: PortNo) -> Vec<MacAddr> {
        let there = self.stations.iter().filter(|(_, path)| path.port == Some(port));
        let mut lost: Vec<MacAddr> = there.map(|(station, _)| MacAddr::from_bits(station)).collect();
        lost.sort_unstable_by_key(|station| station.to_bits());
        self.stations.retain(|path| path.port != Some(port));
        lost
    }

    /// Forgets the port of a station if it is this one. Returns whether it was.
    pub(super) fn forget_on(&mut self, port: PortNo, station: MacAddr) -> bool {
        match self.stations.get_mut(station.to_bits()) {
            Some(path) if path.port == Some(port) => path.port.take().is_some(),
            _ => false,
        }
    }

    /// Forgets stations from which no frame came for a long time, examining at most `most` stations. Returns the time
    /// of the next call, or `None` if no station is left.
    pub(super) fn expire(&mut self, now: Instant, most: usize) -> Option<Instant> {
        self.stations.expire(now, most)
    }

    /// Returns the stations with a known port, ascending by address.
    pub(super) fn known(&self, now: Instant) -> Vec<(MacAddr, PortNo)> {
        let stations = self.stations.iter().map(|(station, _)| MacAddr::from_bits(station));
        let mut known: Vec<_> = stations.filter_map(|station| Some((station, self.port(now, station)?))).collect();
        known.sort_unstable_by_key(|(station, _)| station.to_bits());
        known
    }
}
