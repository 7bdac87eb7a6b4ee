//! Keeps the virtual networks that were admitted, with their rates, and decides on new ones.
use super::design::NetworkDesign;
use super::ledger::{Ledger, SwitchLimits};
use super::offers::offers;
use super::search::{DesignSearch, release};
use super::{
    Bandwidth, NetworkServiceRequest, NetworkSubstrate, PortName, Refusal, ServiceError, ShareSettings, Slice,
    SlicePort, check,
};
use crate::allocation::{AllocationError, LinkSharing, SharingRule, SubstrateLink, VirtualLink};
use std::collections::{BTreeMap, BTreeSet};
use weir_units::{Bps, Instant};

/// Lowest datapath id of virtual switches of the service, far from the small ones that people choose.
const FIRST_DPID: u64 = 0x0001_0000_0000_0001;

/// Virtual network that was admitted.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldNetwork {
    /// Places, ways and virtual switches of the network.
    pub design: NetworkDesign,
    /// Datapath ids of its virtual switches, in the order of the design.
    pub dpids: Vec<u64>,
    /// Number of stages that have begun.
    pub stage: usize,
    /// Time at which it is released; `None` for never.
    pub expires: Option<Instant>,
}

/// Substrate with the virtual networks that were admitted to it.
///
/// Decisions are those of a pure function of the networks that are held, the request and `now`. A refused request
/// changes nothing. An admitted one takes nothing that was promised to others: only the rates above their guaranteed
/// minima may fall ([`NetworkBook::rate`]).
#[derive(Debug, Clone)]
pub struct NetworkBook {
    pub(super) substrate: NetworkSubstrate,
    pub(super) settings: ShareSettings,
    pub(super) limits: SwitchLimits,
    pub(super) ledger: Ledger,
    pub(super) sharing: LinkSharing,
    pub(super) held: BTreeMap<String, HeldNetwork>,
    pub(super) dpids: BTreeSet<u64>,
}

/// Networks whose rates a change has changed, and the network that it was about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BookChange {
    /// Names of networks with a link whose allowed rate is another one now.
    pub resized: BTreeSet<String>,
}

impl NetworkBook {
    /// Returns a substrate without virtual networks. Above their minima, links share lines by `rule`.
    ///
    /// # Errors
    /// There are more lines than an allocation may have.
    pub fn new(
        substrate: NetworkSubstrate,
        settings: ShareSettings,
        limits: SwitchLimits,
        rule: SharingRule,
    ) -> Result<NetworkBook, ServiceError> {
        let lines = substrate.lines.iter().map(|(port, line)| SubstrateLink::new(port.to_string(), line.capacity));
        let sharing = LinkSharing::new(rule, lines).map_err(|error| ServiceError::Substrate(error.to_string()))?;
        Ok(NetworkBook {
            substrate,
            settings,
            limits,
            ledger: Ledger::default(),
            sharing,
            held: BTreeMap::new(),
            dpids: BTreeSet::new(),
        })
    }

    /// Returns the substrate.
    pub fn substrate(&self) -> &NetworkSubstrate {
        &self.substrate
    }

    /// Returns the settings of the scheduler that promises rest on.
    pub fn settings(&self) -> &ShareSettings {
        &self.settings
    }

    /// Returns the networks that are held, in the order of their names.
    pub fn held(&self) -> impl Iterator<Item = &HeldNetwork> {
        self.held.values()
    }

    /// Returns a network that is held.
    pub fn network(&self, name: &str) -> Option<&HeldNetwork> {
        self.held.get(name)
    }

    /// Returns the share of the rate of a port that is reserved, 0 to 1.
    pub fn load(&self, port: &PortName) -> f64 {
        self.ledger.load(&self.settings, port)
    }

    /// Admits a network and reserves what it needs. Its lifetime begins at `now`.
    ///
    /// # Errors
    /// The request is malformed, or something is short: [`ServiceError::Refused`] says what, and has offers. Nothing is
    /// changed then.
    pub fn request(&mut self, request: &NetworkServiceRequest, now: Instant) -> Result<BookChange, ServiceError> {
        match self.try_request(request, now, true)? {
            Ok(change) => Ok(change),
            Err(mut refusal) => {
                refusal.offers = offers(self, request, &refusal, now);
                Err(ServiceError::Refused(Box::new(refusal)))
            }
        }
    }

    /// Returns the refusal of a request without offers, or admits it. What each way is short of is only examined if
    /// `explain` is true.
    pub(super) fn try_request(
        &mut self,
        request: &NetworkServiceRequest,
        now: Instant,
        explain: bool,
    ) -> Result<Result<BookChange, Refusal>, ServiceError> {
        check::check(request, &self.substrate, &self.settings)?;
        let malformed = |problem: String| ServiceError::Malformed { network: request.name.clone(), problem };
        if self.held.contains_key(&request.name) {
            return Err(malformed("found a network of this name, expected a name of its own".to_owned()));
        }
        let reserved = reserved_request(request);
        let search = DesignSearch {
            substrate: &self.substrate,
            settings: &self.settings,
            limits: &self.limits,
            request: &reserved,
        };
        let mut design = match search.design(&mut self.ledger, explain) {
            Ok(design) => design,
            Err(refused) => {
                let (network, link, ways) = (request.name.clone(), refused.link, refused.ways);
                return Ok(Err(Refusal { network, link, ways, offers: Vec::new() }));
            }
        };
        design.request = request.clone();
        let inserted = virtual_links(&design, 0);
        match self.sharing.change(&[], inserted) {
            Ok(changes) => {
                let names = changes.changed.keys().map(String::as_str);
                let resized = names.filter_map(|name| Some(name.split_once('/')?.0.to_owned())).collect();
                let dpids = design.slices.iter().map(|_| self.next_dpid()).collect();
                let expires = request.lifetime.map(|lifetime| now + lifetime.0);
                let name = request.name.clone();
                self.held.insert(name.clone(), HeldNetwork { design, dpids, stage: 0, expires });
                Ok(Ok(without(BookChange { resized }, &name)))
            }
            Err(error) => {
                release(&mut self.ledger, &design);
                Err(malformed(error.to_string()))
            }
        }
    }

    /// Releases a network.
    ///
    /// # Errors
    /// There is no such network.
    pub fn release(&mut self, name: &str) -> Result<(HeldNetwork, BookChange), ServiceError> {
        let missing = || ServiceError::NoNetwork { name: name.to_owned() };
        let held = self.held.remove(name).ok_or_else(missing)?;
        release(&mut self.ledger, &held.design);
        held.dpids.iter().for_each(|dpid| _ = self.dpids.remove(dpid));
        let links = virtual_links(&held.design, held.stage);
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        // Giving back always fits.
        let change = self.changed(&names, Vec::new()).unwrap_or_default();
        Ok((held, without(change, name)))
    }

    /// Begins the next stage of a network: allowed rates change; what is reserved already covers all stages.
    ///
    /// # Errors
    /// There is no such network, or it has no further stage.
    pub fn next_stage(&mut self, name: &str) -> Result<BookChange, ServiceError> {
        let missing = || ServiceError::NoNetwork { name: name.to_owned() };
        let held = self.held.get(name).ok_or_else(missing)?;
        let stage = held.stage + 1;
        if stage > held.design.request.stages.len() {
            let problem = format!("found {} stages, all of which have begun", stage - 1);
            return Err(ServiceError::Malformed { network: name.to_owned(), problem });
        }
        let (before, after) = (virtual_links(&held.design, held.stage), virtual_links(&held.design, stage));
        let names: Vec<&str> = before.iter().map(|link| link.name.as_str()).collect();
        let malformed =
            |error: AllocationError| ServiceError::Malformed { network: name.to_owned(), problem: error.to_string() };
        let mut change = self.changed(&names, after).map_err(malformed)?;
        change.resized.insert(name.to_owned());
        if let Some(held) = self.held.get_mut(name) {
            held.stage = stage;
        }
        Ok(change)
    }

    /// Returns the rate that a link may have at present in a direction (0: from its first end), between its minimum and
    /// its maximum. `None` if there is no such link, or nothing limits it but its line.
    pub fn rate(&self, network: &str, link: &str, direction: usize) -> Option<Bps> {
        let held = self.held.get(network)?;
        let designed = held.design.links.iter().find(|one| one.name == link)?;
        let shared = self.sharing.rate(&full_name(network, link, direction));
        shared.or_else(|| stage_bandwidth(&held.design, link, held.stage)[direction].maximum()).filter(|_| {
            // Packets from a host to a node of its switch wait nowhere.
            !designed.directions[direction].hops.is_empty()
        })
    }

    /// Returns the largest rate at which a port of a virtual switch may send, in bits of frames without the tag that
    /// they have between switches. `None` for that of the line.
    pub fn ceiling(&self, network: &str, slice: &Slice, port: &SlicePort) -> Option<Bps> {
        let rate = self.rate(network, &port.link, port.sends)?;
        let line = self.substrate.line(&PortName::new(&*slice.switch, port.port))?;
        (rate < line.capacity).then_some(rate)
    }

    fn changed(&mut self, removed: &[&str], inserted: Vec<VirtualLink>) -> Result<BookChange, AllocationError> {
        let changes = self.sharing.change(removed, inserted)?;
        let networks = changes.changed.keys().filter_map(|name| Some(name.split_once('/')?.0.to_owned()));
        Ok(BookChange { resized: networks.collect() })
    }

    fn next_dpid(&mut self) -> u64 {
        let dpid = (FIRST_DPID..).find(|dpid| !self.dpids.contains(dpid)).unwrap_or(u64::MAX);
        self.dpids.insert(dpid);
        dpid
    }
}

fn without(mut change: BookChange, name: &str) -> BookChange {
    change.resized.remove(name);
    change
}

fn full_name(network: &str, link: &str, direction: usize) -> String {
    format!("{network}/{link}/{direction}")
}

/// Returns a request with the largest minimum of all stages, which is what is reserved.
fn reserved_request(request: &NetworkServiceRequest) -> NetworkServiceRequest {
    let mut reserved = request.clone();
    for link in &mut reserved.links {
        let name = link.name();
        let [mut forward, mut backward] = link.bandwidths();
        for stage in &request.stages {
            for change in stage.links.iter().filter(|change| change.name == name) {
                forward = larger(forward, change.bandwidth);
                backward = larger(backward, change.backward.unwrap_or(change.bandwidth));
            }
        }
        (link.bandwidth, link.backward) = (forward, Some(backward));
    }
    reserved
}

fn larger(a: Bandwidth, b: Bandwidth) -> Bandwidth {
    if b.minimum() > a.minimum() { b } else { a }
}

/// Returns the bandwidth of a link in both directions from a stage on, 0 for the request itself.
pub(super) fn stage_bandwidth(design: &NetworkDesign, link: &str, stage: usize) -> [Bandwidth; 2] {
    let mut latest = design.request.stages.iter().take(stage).rev().flat_map(|stage| stage.links.iter().rev());
    match latest.find(|change| change.name == link) {
        Some(change) => [change.bandwidth, change.backward.unwrap_or(change.bandwidth)],
        None => {
            let asked = design.request.links.iter().find(|one| one.name() == link);
            asked.map_or([Bandwidth::Static(Bps(0)); 2], super::LinkRequest::bandwidths)
        }
    }
}

/// Returns the links of a network that share lines above their minima, at a stage.
pub(super) fn virtual_links(design: &NetworkDesign, stage: usize) -> Vec<VirtualLink> {
    let mut links = Vec::new();
    for designed in &design.links {
        let bandwidths = stage_bandwidth(design, &designed.name, stage);
        for (at, direction) in designed.directions.iter().enumerate().filter(|(_, way)| !way.hops.is_empty()) {
            let name = full_name(&design.request.name, &designed.name, at);
            let path = direction.hops.iter().map(|hop| hop.port.to_string());
            let link = VirtualLink::new(name, path).at_least(bandwidths[at].minimum());
            links.push(match bandwidths[at].maximum() {
                Some(maximum) => link.at_most(maximum),
                None => link,
            });
        }
    }
    links
}
