//! Keeps the virtual links that were admitted, and decides on new ones.
use super::trial::Trial;
use super::{LinkDemand, MAX_PACKET, NearestOffer, PromiseError, QueuedLink};
use crate::allocation::MAX_LINKS;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// Way in which the bound of a path was found. The smaller one is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BoundMethod {
    /// Sum of the bounds of all hops.
    SumOfHops,
    /// Delay of a single server with what the other virtual links leave of all hops: bursts are paid only once.
    PayBurstsOnce,
}

/// Bound of the delay of a virtual link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathBound {
    /// Longest delay of a packet, rounded up to a nanosecond.
    pub delay: Duration,
    /// Way in which the delay was found.
    pub method: BoundMethod,
    /// Longest delay at each hop of the path, each rounded up to a nanosecond.
    pub hops: Vec<Duration>,
}

/// Substrate with the virtual links that were admitted.
///
/// Bounds depend on the virtual links that are there, and not on the order in which they were admitted.
#[derive(Debug, Clone)]
pub struct LinkAdmission {
    pub(super) overhead: u64,
    pub(super) links: BTreeMap<String, QueuedLink>,
    pub(super) held: BTreeMap<String, LinkDemand>,
    bounds: BTreeMap<String, PathBound>,
}

impl LinkAdmission {
    /// Returns a substrate without virtual links. Each frame takes `overhead` on the lines in addition to its bytes,
    /// [`ETHERNET_OVERHEAD`](super::ETHERNET_OVERHEAD) for Ethernet.
    ///
    /// # Errors
    /// Two links have one name, a number is out of range, or there are more than [`MAX_LINKS`] links.
    pub fn new(overhead: ByteSize, links: impl IntoIterator<Item = QueuedLink>) -> Result<LinkAdmission, PromiseError> {
        if overhead > MAX_PACKET {
            return Err(PromiseError::Overhead { found: overhead });
        }
        let mut named = BTreeMap::new();
        for link in links {
            link.check()?;
            if let Some(first) = named.insert(link.name.clone(), link) {
                return Err(PromiseError::Duplicate { kind: "link", name: first.name });
            }
        }
        if named.len() > MAX_LINKS {
            return Err(PromiseError::TooMany { kind: "link", found: named.len() });
        }
        let (held, bounds) = (BTreeMap::new(), BTreeMap::new());
        Ok(LinkAdmission { overhead: overhead.0, links: named, held, bounds })
    }

    /// Returns the bound of an admitted virtual link's delay. A promised delay is at least this.
    pub fn bound(&self, name: &str) -> Option<&PathBound> {
        self.bounds.get(name)
    }

    /// Returns the admitted virtual links with the bounds of their delay, in the order of their names.
    pub fn admitted(&self) -> impl Iterator<Item = (&LinkDemand, &PathBound)> {
        self.held.values().zip(self.bounds.values())
    }

    /// Admits a virtual link and returns the bound of its delay.
    ///
    /// # Errors
    /// A promise could not be kept: [`PromiseError::Refused`] has the reason. Or the request is malformed, or its path
    /// leads into a cycle. Nothing is changed then.
    pub fn request(&mut self, demand: LinkDemand) -> Result<PathBound, PromiseError> {
        let trial = Trial::new(self, Some(&demand))?;
        match trial.bounds(demand.rate, demand.promised_delay) {
            Ok(bounds) => {
                self.bounds = bounds;
                let bound = self.bounds[&demand.name].clone();
                self.held.insert(demand.name.clone(), demand);
                Ok(bound)
            }
            Err(binding) => {
                let rate = trial.largest_rate(demand.promised_delay);
                let delay = demand.promised_delay.and_then(|_| trial.least_delay(demand.rate));
                let offer = NearestOffer { rate, delay };
                Err(PromiseError::Refused { name: demand.name, binding, offer })
            }
        }
    }

    /// Returns the largest rate with which a virtual link would be admitted, whatever its own rate. `None` if no rate
    /// would.
    ///
    /// # Errors
    /// The request is malformed, or its path leads into a cycle.
    pub fn largest_rate(&self, demand: &LinkDemand) -> Result<Option<Bps>, PromiseError> {
        Ok(Trial::new(self, Some(demand))?.largest_rate(demand.promised_delay))
    }

    /// Returns the least delay that could be promised to a virtual link, whatever it asks for. `None` if it would not
    /// be admitted with any delay.
    ///
    /// # Errors
    /// The request is malformed, or its path leads into a cycle.
    pub fn least_delay(&self, demand: &LinkDemand) -> Result<Option<Duration>, PromiseError> {
        Ok(Trial::new(self, Some(demand))?.least_delay(demand.rate))
    }

    /// Releases a virtual link, and returns it.
    ///
    /// # Errors
    /// The virtual link does not exist.
    pub fn release(&mut self, name: &str) -> Result<LinkDemand, PromiseError> {
        let Some(released) = self.held.remove(name) else {
            return Err(PromiseError::NoVirtualLink { name: name.to_owned() });
        };
        self.bounds = Trial::new(self, None)?.held_bounds();
        Ok(released)
    }
}
