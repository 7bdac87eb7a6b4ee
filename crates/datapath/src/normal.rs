//! Output NORMAL: a learning bridge with VLANs, with every port as a trunk (IEEE 802.1Q-2018, 8.7 and 8.8).
//!
//! Learned addresses expire [`MAX_AGE`] after the last packet from them, and their number is limited
//! ([`crate::stations`]).
use crate::stations::{HeardStation, MAX_AGE, StationTable};
use weir_openflow::model::PortNo;
use weir_packet::{Field, FlowKey};
use weir_units::Instant;

/// A station in a VLAN: the VLAN id from bit 48 upwards, the address in the low 48 bits.
type VlanStation = u64;

#[derive(Debug, Clone, Copy)]
struct LearnedPort {
    port: PortNo,
    at: Instant,
}

impl HeardStation for LearnedPort {
    fn heard_at(&self) -> Instant {
        self.at
    }
}

/// Learned addresses, each with the port on which the latest packet from it arrived.
#[derive(Debug)]
pub(crate) struct FilteringDatabase {
    stations: StationTable<LearnedPort>,
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
        FilteringDatabase { stations: StationTable::new(max) }
    }

    /// Learns the source address of a packet.
    pub(crate) fn learn(&mut self, now: Instant, in_port: PortNo, key: &FlowKey) {
        const GROUP: u64 = 1 << 40;
        let station = station(key, Field::EthSrc);
        let usable = in_port.is_ordinary() || in_port == PortNo::LOCAL;
        if station & GROUP != 0 || !usable {
            return;
        }
        let heard = LearnedPort { port: in_port, at: now };
        match self.stations.get_mut(station) {
            Some(known) => *known = heard,
            None => self.stations.add(station, heard),
        }
    }

    /// Returns the destination of a packet, by its destination address and VLAN.
    pub(crate) fn forward(&self, now: Instant, key: &FlowKey) -> NormalDestination {
        const RESERVED: u64 = 0x0180_c200_0000;
        let address = address(key, Field::EthDst);
        if address & !0xf == RESERVED {
            return NormalDestination::Reserved;
        }
        match self.stations.get(station(key, Field::EthDst)) {
            Some(heard) if now.since(heard.at) < MAX_AGE => NormalDestination::To(heard.port),
            _ => NormalDestination::Flood,
        }
    }

    /// Removes all addresses learned on a port.
    pub(crate) fn forget_port(&mut self, port: PortNo) {
        self.stations.retain(|heard| heard.port != port);
    }

    /// Removes stations from which no packet arrived for [`MAX_AGE`], examining at most `most` stations. Returns the
    /// time of the next call, or `None` if no station is left.
    pub(crate) fn expire(&mut self, now: Instant, most: usize) -> Option<Instant> {
        self.stations.expire(now, most)
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
