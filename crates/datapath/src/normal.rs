//! Output NORMAL: a learning bridge with VLANs, with every port as a trunk (IEEE 802.1Q-2018, 8.7 and 8.8).
//!
//! Learned addresses expire [`MAX_AGE`] after the last packet from them, and their number is limited. To make room for
//! a new address, the address learned first is removed. An address from which packets arrived since it was learned
//! moves to the end of the order instead, once (second chance). So neither learning nor making room examines all
//! addresses at once.
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::{Field, FlowKey};
use weir_units::Instant;

/// Maximum time for which an address is kept without packets from it (IEEE 802.1Q-2018, 8.8.3: ageing time).
pub(crate) const MAX_AGE: Duration = Duration::from_secs(300);

/// A station in a VLAN: the VLAN id from bit 48 upwards, the address in the low 48 bits.
type VlanStation = u64;

#[derive(Debug, Clone, Copy)]
struct LearnedPort {
    port: PortNo,
    at: Instant,
}

/// Learned addresses, each with the port on which the latest packet from it arrived.
#[derive(Debug)]
pub(crate) struct FilteringDatabase {
    stations: HashMap<VlanStation, LearnedPort>,
    /// Learning order. Contains each station once, with the arrival time of a packet from it (possibly not the
    /// latest).
    order: VecDeque<(Instant, VlanStation)>,
    max: usize,
}

/// Destination of a packet output to NORMAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NormalDestination {
    /// The given port, unless the packet arrived there.
    To(PortNo),
    /// Every port except the packet's input port.
    Flood,
    /// None: the destination address is reserved for protocols of the link (IEEE 802.1Q-2018, 8.6.3).
    Reserved,
    /// Deferred: a copy of the packet is processed later.
    Later,
}

impl FilteringDatabase {
    /// Returns an empty table for at most `max` stations.
    pub(crate) fn new(max: usize) -> FilteringDatabase {
        FilteringDatabase { stations: HashMap::new(), order: VecDeque::new(), max }
    }

    /// Learns the source address of a packet.
    pub(crate) fn learn(&mut self, now: Instant, in_port: PortNo, key: &FlowKey) {
        const GROUP: u64 = 1 << 40;
        let station = station(key, Field::EthSrc);
        let usable = in_port.is_ordinary() || in_port == PortNo::LOCAL;
        if station & GROUP != 0 || !usable || self.max == 0 {
            return;
        }
        if let Some(heard) = self.stations.get_mut(&station) {
            *heard = LearnedPort { port: in_port, at: now };
            return;
        }
        if self.stations.len() >= self.max {
            self.make_room();
        }
        self.stations.insert(station, LearnedPort { port: in_port, at: now });
        self.order.push_back((now, station));
    }

    /// Returns the destination of a packet, by its destination address and VLAN.
    pub(crate) fn forward(&self, now: Instant, key: &FlowKey) -> NormalDestination {
        const RESERVED: u64 = 0x0180_c200_0000;
        let address = address(key, Field::EthDst);
        if address & !0xf == RESERVED {
            return NormalDestination::Reserved;
        }
        match self.stations.get(&station(key, Field::EthDst)) {
            Some(heard) if now.since(heard.at) < MAX_AGE => NormalDestination::To(heard.port),
            _ => NormalDestination::Flood,
        }
    }

    /// Removes all addresses learned on a port.
    pub(crate) fn forget_port(&mut self, port: PortNo) {
        self.stations.retain(|_, heard| heard.port != port);
        self.order.retain(|(_, station)| self.stations.contains_key(station));
    }

    /// Removes stations from which no packet arrived for [`MAX_AGE`], examining at most `most` stations. Returns the
    /// time of the next call, or `None` if no station is left.
    pub(crate) fn expire(&mut self, now: Instant, most: usize) -> Option<Instant> {
        for _ in 0..most {
            let (at, station) = *self.order.front()?;
            if now.since(at) < MAX_AGE {
                return Some(at + MAX_AGE);
            }
            self.order.pop_front();
            self.keep_if(station, |heard| now.since(heard.at) < MAX_AGE);
        }
        self.order.front().map(|(at, _)| *at + MAX_AGE)
    }

    /// Removes the first station of the learning order from which no packet arrived since it was put there. The loop
    /// ends because each station moves to the end of the order at most once.
    fn make_room(&mut self) {
        while self.stations.len() >= self.max {
            let Some((at, station)) = self.order.pop_front() else { return };
            self.keep_if(station, |heard| heard.at > at);
        }
    }

    /// Puts a station that was removed from the front of the learning order at its end, if `keep` returns true;
    /// otherwise removes the station from the learned addresses.
    fn keep_if(&mut self, station: VlanStation, keep: impl Fn(&LearnedPort) -> bool) {
        match self.stations.get(&station) {
            Some(heard) if keep(heard) => self.order.push_back((heard.at, station)),
            _ => drop(self.stations.remove(&station)),
        }
    }
}

/// Returns the station with the address in `field` (a packet's source or destination) and the packet's VLAN. Untagged
/// and priority-tagged packets are in VLAN 0.
fn station(key: &FlowKey, field: Field) -> VlanStation {
    #[expect(clippy::cast_possible_truncation, reason = "13 bits")]
    let vlan = key.get(Field::VlanVid) as u64 & 0xfff;
    vlan << 48 | address(key, field)
}

#[expect(clippy::cast_possible_truncation, reason = "48 bits")]
fn address(key: &FlowKey, field: Field) -> u64 {
    key.get(field) as u64
}
