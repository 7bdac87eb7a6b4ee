//! Keeps the virtual links that were routed, and finds ways for new ones.
use super::candidates::{CandidateSearch, Way};
use super::split::SplitSearch;
use super::turns::{TurnRule, WayGraph};
use super::{RefusedWay, Substrate, VirtualLinkRequest, WayError, WayObstacle};
use crate::admission::{LinkAdmission, PathBound, PromiseError};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_topology::paths::MAX_PATHS;
use weir_units::Bps;

/// Settings of the search for ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaySettings {
    /// Number of ways that are examined for a virtual link, the cheapest, 1 to [`MAX_PATHS`]. Ways that would close a
    /// cycle do not count.
    pub ways: usize,
    /// Turns that ways may make.
    pub turns: TurnRule,
}

impl Default for WaySettings {
    /// Returns settings with 8 ways and all turns.
    fn default() -> WaySettings {
        WaySettings { ways: 8, turns: TurnRule::Any }
    }
}

/// A way of a virtual link, with the rate that it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayShare {
    /// Names of the links of the way.
    pub path: Vec<String>,
    /// Rate of the virtual link on this way.
    pub rate: Bps,
    /// Name of this part in the admission: that of the virtual link, with a number behind it if it is split.
    pub part: String,
}

/// A virtual link with its ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutedLink {
    /// Request that was admitted.
    pub request: VirtualLinkRequest,
    /// Ways in use. Their rates add up to the rate that was asked for.
    pub ways: Vec<WayShare>,
}

/// Substrate with the virtual links that were routed over it.
#[derive(Debug, Clone)]
pub struct LinkRouting {
    pub(super) substrate: Substrate,
    pub(super) admission: LinkAdmission,
    settings: WaySettings,
    graph: WayGraph,
    held: BTreeMap<String, RoutedLink>,
}

/// Ways that may be taken by a virtual link, whatever its rate and promised delay.
pub(super) struct CandidateWays {
    /// Cheapest ways.
    first: Vec<Way>,
    /// Ways behind these, once they are needed.
    more: Option<Vec<Way>>,
}

/// Ways that were examined, none of which was admitted.
#[derive(Default)]
pub(super) struct ExaminedWays {
    /// Ways that lack something, in the order in which they were examined.
    pub(super) lacking: Vec<Way>,
    pub(super) refused: Vec<RefusedWay>,
    /// Largest rate that several ways were found to carry together.
    pub(super) most_split: Option<Bps>,
}

impl LinkRouting {
    /// Returns a substrate without virtual links.
    ///
    /// # Errors
    /// The number of ways to examine is out of range.
    pub fn new(substrate: Substrate, settings: WaySettings) -> Result<LinkRouting, WayError> {
        if !(1..=MAX_PATHS).contains(&settings.ways) {
            return Err(WayError::Settings { found: settings.ways, most: MAX_PATHS });
        }
        let graph = WayGraph::new(&substrate, settings.turns);
        let graph = graph.expect("a substrate has ends, costs and numbers that a graph may have");
        let admission = substrate.admission()?;
        Ok(LinkRouting { substrate, admission, settings, graph, held: BTreeMap::new() })
    }

    /// Returns the substrate.
    pub fn substrate(&self) -> &Substrate {
        &self.substrate
    }

    /// Returns the admission of the virtual links, with a path and a rate for each way.
    pub fn admission(&self) -> &LinkAdmission {
        &self.admission
    }

    /// Returns the virtual links with their ways, in the order of their names.
    pub fn held(&self) -> impl Iterator<Item = &RoutedLink> {
        self.held.values()
    }

    /// Returns a virtual link with its ways.
    pub fn get(&self, name: &str) -> Option<&RoutedLink> {
        self.held.get(name)
    }

    /// Returns the bounds of the delay of a virtual link on each of its ways, at present. Empty if there is no such
    /// virtual link.
    pub fn bounds(&self, name: &str) -> Vec<&PathBound> {
        let ways = self.held.get(name).into_iter().flat_map(|link| &link.ways);
        ways.filter_map(|way| self.admission.bound(&way.part)).collect()
    }

    /// Returns the bound of the delay of a virtual link at present: the largest one of its ways.
    pub fn delay(&self, name: &str) -> Option<Duration> {
        self.bounds(name).into_iter().map(|bound| bound.delay).max()
    }

    /// Finds a way for a virtual link, or several if it may be split, and reserves what it needs.
    ///
    /// # Errors
    /// No way is admitted: [`WayError::Refused`] has the reason for each and what would be admitted. Or the request is
    /// malformed. Nothing is changed then.
    pub fn request(&mut self, request: VirtualLinkRequest) -> Result<&RoutedLink, WayError> {
        if self.held.contains_key(&request.name) {
            return Err(PromiseError::Duplicate { kind: "virtual link", name: request.name }.into());
        }
        let mut candidates = self.candidates(&request)?;
        match self.route(&request, &mut candidates)? {
            Ok(ways) => Ok(self.held.entry(request.name.clone()).or_insert(RoutedLink { request, ways })),
            Err(examined) => {
                let offers = self.offers(&request, &mut candidates, &examined)?;
                Err(WayError::Refused { name: request.name, ways: examined.refused, offers })
            }
        }
    }

    /// Releases a virtual link with all that was reserved for it, and returns it.
    ///
    /// # Errors
    /// The virtual link does not exist.
    pub fn release(&mut self, name: &str) -> Result<RoutedLink, WayError> {
        let missing = || PromiseError::NoVirtualLink { name: name.to_owned() };
        let released = self.held.remove(name).ok_or_else(missing)?;
        self.give_back(&released.ways)?;
        Ok(released)
    }

    /// Returns the ways that a virtual link may take.
    pub(super) fn candidates(&mut self, request: &VirtualLinkRequest) -> Result<CandidateWays, WayError> {
        let stops = request.check(&self.substrate)?;
        let mut search = CandidateSearch::new(&self.substrate, &mut self.graph, request, &stops);
        Ok(CandidateWays { first: search.cheapest(self.settings.ways), more: None })
    }

    /// Reserves what was asked for on the preferred way, or else on as few as are allowed; otherwise returns what was
    /// examined.
    pub(super) fn route(
        &mut self,
        request: &VirtualLinkRequest,
        candidates: &mut CandidateWays,
    ) -> Result<Result<Vec<WayShare>, ExaminedWays>, WayError> {
        let mut examined = ExaminedWays::default();
        // 1. Try the cheapest ways, those first that leave most for others.
        let mut ways = candidates.first.clone();
        self.sort_by_price(request, &mut ways);
        for way in ways {
            if let Some(share) = self.examine(request, way, &mut examined)? {
                return Ok(Ok(vec![share]));
            }
        }
        // 2. Try others in place of those that would close a cycle.
        if examined.refused.len() > examined.lacking.len() {
            let more = match candidates.more.take() {
                Some(more) => more,
                None => self.more_ways(request)?,
            };
            for way in candidates.more.insert(more).clone() {
                if examined.lacking.len() == self.settings.ways {
                    break;
                }
                if let Some(share) = self.examine(request, way, &mut examined)? {
                    return Ok(Ok(vec![share]));
                }
            }
        }
        // 3. Split the virtual link.
        if request.max_ways > 1 {
            match self.split(request, &examined.lacking)? {
                Ok(ways) => return Ok(Ok(ways)),
                Err(most) => examined.most_split = Some(most),
            }
        }
        Ok(Err(examined))
    }

    /// Reserves a virtual link on several of these ways, or returns the largest rate that they were found to carry.
    pub(super) fn split(
        &mut self,
        request: &VirtualLinkRequest,
        ways: &[Way],
    ) -> Result<Result<Vec<WayShare>, Bps>, WayError> {
        let paths = ways.iter().map(|way| self.substrate.names(way)).collect();
        let mut search = SplitSearch::new(&mut self.admission, request, paths)?;
        Ok(if search.run()? { Ok(search.shares()) } else { Err(search.most()) })
    }

    /// Reserves ways for a virtual link without keeping it, or returns the ways that were examined.
    pub(crate) fn reserve(
        &mut self,
        request: &VirtualLinkRequest,
    ) -> Result<Result<Vec<WayShare>, Vec<RefusedWay>>, WayError> {
        let mut candidates = self.candidates(request)?;
        Ok(self.route(request, &mut candidates)?.map_err(|examined| examined.refused))
    }

    /// Releases ways that were reserved.
    pub(crate) fn give_back(&mut self, ways: &[WayShare]) -> Result<(), WayError> {
        for way in ways {
            self.admission.release(&way.part)?;
        }
        Ok(())
    }

    /// Returns ways behind the cheapest ones.
    fn more_ways(&mut self, request: &VirtualLinkRequest) -> Result<Vec<Way>, WayError> {
        let stops = request.check(&self.substrate)?;
        let mut search = CandidateSearch::new(&self.substrate, &mut self.graph, request, &stops);
        Ok(search.cheapest(MAX_PATHS).into_iter().skip(self.settings.ways).collect())
    }

    /// Tries a way, and notes why it is not taken.
    fn examine(
        &mut self,
        request: &VirtualLinkRequest,
        way: Way,
        examined: &mut ExaminedWays,
    ) -> Result<Option<WayShare>, WayError> {
        let (path, part) = (self.substrate.names(&way), request.name.clone());
        let obstacle =
            match self.admission.request_without_offers(request.demand(part.clone(), path.clone(), request.rate)) {
                Ok(Ok(_)) => return Ok(Some(WayShare { path, rate: request.rate, part })),
                Ok(Err(binding)) => {
                    examined.lacking.push(way);
                    WayObstacle::Lacks(binding)
                }
                Err(PromiseError::Cycle { links, .. }) => WayObstacle::Cycle(links),
                Err(error) => return Err(error.into()),
            };
        examined.refused.push(RefusedWay { path, obstacle });
        Ok(None)
    }
}
