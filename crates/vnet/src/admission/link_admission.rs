//! Keeps the virtual links that were admitted, and decides on new ones.
use super::network::BoundedNetwork;
use super::trial::{AdmittedFlow, Trial, path_bound, server};
use super::{BindingResource, LinkDemand, MAX_PACKET, NearestOffer, PromiseError, QueuedLink};
use crate::allocation::MAX_LINKS;
use std::collections::BTreeMap;
use std::sync::OnceLock;
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
/// Bounds depend on the virtual links that are there, and not on the order in which they were admitted. A change
/// calculates only the bounds that it changes.
#[derive(Debug, Clone)]
pub struct LinkAdmission {
    pub(super) overhead: u64,
    /// Links in the order of their names.
    pub(super) links: Vec<QueuedLink>,
    pub(super) places: BTreeMap<String, usize>,
    pub(super) held: BTreeMap<String, HeldDemand>,
    /// Virtual links and their bounds as numbers.
    pub(super) network: BoundedNetwork,
    /// Names of the virtual links by their slots in `network`.
    names: Vec<Option<String>>,
    /// Promised delays by slot.
    promises: Vec<Option<Duration>>,
}

/// Virtual link that was admitted.
#[derive(Debug, Clone)]
pub(super) struct HeldDemand {
    demand: LinkDemand,
    slot: usize,
    /// Bound of the delay, once it is asked for.
    bound: OnceLock<PathBound>,
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
        let places = named.keys().cloned().zip(0..).collect();
        let links: Vec<QueuedLink> = named.into_values().collect();
        let network = BoundedNetwork::new(links.iter().map(|link| server(link, overhead.0)).collect());
        Ok(LinkAdmission {
            overhead: overhead.0,
            links,
            places,
            held: BTreeMap::new(),
            network,
            names: Vec::new(),
            promises: Vec::new(),
        })
    }

    /// Returns the bound of an admitted virtual link's delay. A promised delay is at least this.
    pub fn bound(&self, name: &str) -> Option<&PathBound> {
        self.held.get(name).map(|held| self.bound_of(held))
    }

    /// Returns the admitted virtual links with the bounds of their delay, in the order of their names.
    pub fn admitted(&self) -> impl Iterator<Item = (&LinkDemand, &PathBound)> {
        self.held.values().map(|held| (&held.demand, self.bound_of(held)))
    }

    /// Returns the rate of a substrate link that is not given to virtual links, overhead of frames included. `None` if
    /// there is no such link.
    pub fn rate_left(&self, link: &str) -> Option<Bps> {
        let place = *self.places.get(link)?;
        let used = u64::try_from(self.network.load(place).rate).unwrap_or(u64::MAX);
        Some(Bps(self.links[place].capacity.0.saturating_sub(used)))
    }

    /// Admits a virtual link and returns the bound of its delay.
    ///
    /// # Errors
    /// A promise could not be kept: [`PromiseError::Refused`] has the reason. Or the request is malformed, or its path
    /// leads into a cycle. Nothing is changed then.
    pub fn request(&mut self, demand: LinkDemand) -> Result<PathBound, PromiseError> {
        let trial = Trial::new(self, &demand)?;
        match trial.admit(demand.rate, demand.promised_delay) {
            Ok(admitted) => Ok(self.insert(demand, admitted)),
            Err(binding) => {
                let rate = trial.largest_rate(demand.promised_delay);
                let delay = demand.promised_delay.and_then(|_| trial.least_delay(demand.rate));
                let offer = NearestOffer { rate, delay };
                Err(PromiseError::Refused { name: demand.name, binding, offer })
            }
        }
    }

    /// Admits a virtual link as [`LinkAdmission::request`] does, but returns only the resources that bind if it is
    /// refused.
    ///
    /// # Errors
    /// The request is malformed, or its path leads into a cycle.
    pub(crate) fn request_without_offers(
        &mut self,
        demand: LinkDemand,
    ) -> Result<Result<PathBound, Vec<BindingResource>>, PromiseError> {
        let admitted = Trial::new(self, &demand)?.admit(demand.rate, demand.promised_delay);
        Ok(admitted.map(|admitted| self.insert(demand, admitted)))
    }

    /// Prepares a virtual link to examine what would be admitted.
    ///
    /// # Errors
    /// The request is malformed, or its path leads into a cycle.
    pub(crate) fn trial<'a>(&'a self, demand: &'a LinkDemand) -> Result<Trial<'a>, PromiseError> {
        Trial::new(self, demand)
    }

    /// Returns the largest rate with which a virtual link would be admitted, whatever its own rate. `None` if no rate
    /// would.
    ///
    /// # Errors
    /// The request is malformed, or its path leads into a cycle.
    pub fn largest_rate(&self, demand: &LinkDemand) -> Result<Option<Bps>, PromiseError> {
        Ok(Trial::new(self, demand)?.largest_rate(demand.promised_delay))
    }

    /// Returns the least delay that could be promised to a virtual link, whatever it asks for. `None` if it would not
    /// be admitted with any delay.
    ///
    /// # Errors
    /// The request is malformed, or its path leads into a cycle.
    pub fn least_delay(&self, demand: &LinkDemand) -> Result<Option<Duration>, PromiseError> {
        Ok(Trial::new(self, demand)?.least_delay(demand.rate))
    }

    /// Releases a virtual link, and returns it.
    ///
    /// # Errors
    /// The virtual link does not exist.
    pub fn release(&mut self, name: &str) -> Result<LinkDemand, PromiseError> {
        let Some(released) = self.held.remove(name) else {
            return Err(PromiseError::NoVirtualLink { name: name.to_owned() });
        };
        self.names[released.slot] = None;
        let affected = self.network.remove(released.slot);
        self.forget_bounds(&affected);
        Ok(released.demand)
    }

    /// Returns the admitted virtual link in a slot.
    pub(super) fn demand_in(&self, slot: usize) -> Option<&LinkDemand> {
        let name = self.names.get(slot)?.as_ref()?;
        Some(&self.held.get(name)?.demand)
    }

    /// Returns the delay that is promised to the virtual link in a slot.
    pub(super) fn promised_in(&self, slot: usize) -> Option<Duration> {
        self.promises.get(slot).copied().flatten()
    }

    fn insert(&mut self, demand: LinkDemand, admitted: AdmittedFlow) -> PathBound {
        let slot = self.network.next_slot();
        if slot == self.names.len() {
            self.names.push(None);
            self.promises.push(None);
        }
        self.names[slot] = Some(demand.name.clone());
        self.promises[slot] = demand.promised_delay;
        let affected = self.network.affected(&admitted.change);
        self.network.insert(admitted.flow, admitted.ranks, admitted.change);
        self.forget_bounds(&affected);
        let held = HeldDemand { demand, slot, bound: OnceLock::new() };
        let bound = self.bound_of(&held).clone();
        self.held.insert(held.demand.name.clone(), held);
        bound
    }

    fn bound_of<'a>(&self, held: &'a HeldDemand) -> &'a PathBound {
        held.bound.get_or_init(|| {
            let flow = self.network.flow(held.slot).expect("each slot has a virtual link");
            path_bound(&self.network.bound(flow, held.slot, None))
        })
    }

    /// Forgets bounds that changed.
    fn forget_bounds(&mut self, slots: &[usize]) {
        for slot in slots {
            let name = self.names.get(*slot).and_then(Option::as_ref);
            if let Some(held) = name.and_then(|name| self.held.get_mut(name)) {
                held.bound = OnceLock::new();
            }
        }
    }
}
