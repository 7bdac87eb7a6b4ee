//! Describes virtual links that are asked for between places of a substrate, and checks them.
use super::{MAX_SPLIT, Substrate, WayError};
use crate::admission::LinkDemand;
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// A virtual link that is asked for, in one direction: ends, promises, and terms for its ways.
///
/// Rate, burst, packets and promised delay are those of [`LinkDemand`], which has a path in addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualLinkRequest {
    /// Name of the virtual link, unique among virtual links, without `[`.
    pub name: String,
    /// Switch or host at which it begins, and the one at which it ends.
    pub ends: [String; 2],
    /// Guaranteed rate of the whole.
    pub rate: Bps,
    /// Bytes that may come at once, on each of its ways.
    pub burst: ByteSize,
    /// Shortest packet.
    pub shortest_packet: ByteSize,
    /// Longest packet.
    pub longest_packet: ByteSize,
    /// Longest delay that is promised, on each of its ways; `None` for no promise.
    pub promised_delay: Option<Duration>,
    /// Switches and links that no way may use.
    pub avoid: Vec<String>,
    /// Switches that each way passes, in this order.
    pub through: Vec<String>,
    /// Largest number of ways, 1 to [`MAX_SPLIT`]. With 1 the virtual link is not split.
    pub max_ways: usize,
    /// Thousandths of the rate left of a link that a unit of cost counts as, in the choice among ways. With 0 only the
    /// rates that are left count, and with [`u32::MAX`] only costs.
    pub cost_weight: u32,
}

impl VirtualLinkRequest {
    /// Returns a request of a virtual link that is not split, without a promise of delay. Packets have 60 to 1514
    /// bytes, and one may come at once.
    pub fn new(
        name: impl Into<String>,
        from: impl Into<String>,
        to: impl Into<String>,
        rate: Bps,
    ) -> VirtualLinkRequest {
        VirtualLinkRequest {
            name: name.into(),
            ends: [from.into(), to.into()],
            rate,
            burst: ByteSize(1514),
            shortest_packet: ByteSize(60),
            longest_packet: ByteSize(1514),
            promised_delay: None,
            avoid: Vec::new(),
            through: Vec::new(),
            max_ways: 1,
            cost_weight: 0,
        }
    }

    /// Sets the bytes that may come at once.
    #[must_use]
    pub fn with_burst(mut self, burst: ByteSize) -> VirtualLinkRequest {
        self.burst = burst;
        self
    }

    /// Sets the lengths of the shortest and the longest packet.
    #[must_use]
    pub fn with_packets(mut self, shortest: ByteSize, longest: ByteSize) -> VirtualLinkRequest {
        (self.shortest_packet, self.longest_packet) = (shortest, longest);
        self
    }

    /// Sets the longest delay that is promised.
    #[must_use]
    pub fn within(mut self, delay: Duration) -> VirtualLinkRequest {
        self.promised_delay = Some(delay);
        self
    }

    /// Sets the switches and links that no way may use.
    #[must_use]
    pub fn avoiding<S: Into<String>>(mut self, places: impl IntoIterator<Item = S>) -> VirtualLinkRequest {
        self.avoid = places.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the switches that each way passes, in this order.
    #[must_use]
    pub fn through<S: Into<String>>(mut self, switches: impl IntoIterator<Item = S>) -> VirtualLinkRequest {
        self.through = switches.into_iter().map(Into::into).collect();
        self
    }

    /// Allows the virtual link to be split over at most this many ways.
    #[must_use]
    pub fn over_ways(mut self, most: usize) -> VirtualLinkRequest {
        self.max_ways = most;
        self
    }

    /// Sets what a unit of cost counts as in the choice among ways, in thousandths of the rate left of a link.
    #[must_use]
    pub fn weighing_cost(mut self, thousandths: u32) -> VirtualLinkRequest {
        self.cost_weight = thousandths;
        self
    }

    /// Returns the demand of this virtual link, or of a part of it, over a path.
    pub(super) fn demand(&self, name: String, path: Vec<String>, rate: Bps) -> LinkDemand {
        LinkDemand {
            name,
            path,
            rate,
            burst: self.burst,
            shortest_packet: self.shortest_packet,
            longest_packet: self.longest_packet,
            promised_delay: self.promised_delay,
        }
    }

    /// Checks all but the name of its own, and returns the switches that each way passes, ends included.
    pub(super) fn check(&self, substrate: &Substrate) -> Result<Vec<usize>, WayError> {
        let malformed = |what| Err(WayError::MalformedRequest { name: self.name.clone(), what });
        if self.name.contains('[') {
            return malformed("a name with a bracket, which numbers the ways of a virtual link");
        }
        if !(1..=MAX_SPLIT).contains(&self.max_ways) {
            return malformed("a largest number of ways outside 1 to 4");
        }
        self.demand(self.name.clone(), Vec::new(), self.rate).check_terms()?;
        let place = |name: &String| {
            let what = || format!("virtual link {}", self.name);
            substrate.place(name).ok_or_else(|| WayError::UnknownPlace { what: what(), place: name.clone() })
        };
        let [from, to] = &self.ends;
        let stops = [from].into_iter().chain(&self.through).chain([to]);
        let mut stops = stops.map(place).collect::<Result<Vec<usize>, WayError>>()?;
        for name in &self.avoid {
            substrate.link_place(name).map_or_else(|| place(name).map(|_| ()), |_| Ok(()))?;
        }
        stops.dedup();
        if stops.len() == 1 {
            return malformed("both ends at one switch, between which no link is needed");
        }
        Ok(stops)
    }
}
