//! Keeps the virtual networks that were placed, and places new ones.
use super::search::{PlacementInput, Places};
use super::{MAX_EXACT, MAX_ROUTERS, MAX_TRIED, PlacementError, SwitchRoom, VirtualNetworkRequest};
use crate::hops::hops;
use crate::ways::{LinkRouting, RefusedWay, VirtualLinkRequest, WayError, WayShare};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A virtual network with the places of its routers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedNetwork {
    /// Request that was admitted.
    pub request: VirtualNetworkRequest,
    /// Switch of each router.
    pub places: BTreeMap<String, String>,
    /// Ways of each link. A link between routers on one switch has none.
    pub ways: BTreeMap<String, Vec<WayShare>>,
    /// Sum over all ways of the rate times the number of links, in bit/s.
    pub reserved: u128,
}

/// Substrate with the virtual networks that were placed on it.
#[derive(Debug, Clone)]
pub struct NetworkPlacement {
    routing: LinkRouting,
    /// Room that is left of each switch.
    room: Vec<SwitchRoom>,
    /// Fewest links from each switch to each other one.
    hops: Arc<Vec<Vec<Option<u16>>>>,
    held: BTreeMap<String, PlacedNetwork>,
}

/// Placement whose links were routed.
struct RoutedPlacement {
    places: Places,
    ways: BTreeMap<String, Vec<WayShare>>,
    reserved: u128,
}

/// Link that is refused in a placement.
struct RefusedLink {
    places: Places,
    link: String,
    ways: Vec<RefusedWay>,
}

impl NetworkPlacement {
    /// Returns a substrate without virtual networks. `room` returns the room of a switch.
    pub fn new(routing: LinkRouting, room: impl Fn(&str) -> SwitchRoom) -> NetworkPlacement {
        let room = routing.substrate().switches().iter().map(|switch| room(switch)).collect();
        let hops = Arc::new(hops(routing.substrate().switches().len(), routing.substrate().ends()));
        NetworkPlacement { routing, room, hops, held: BTreeMap::new() }
    }

    /// Returns the virtual links of all virtual networks, named by both: `network/link`.
    pub fn routing(&self) -> &LinkRouting {
        &self.routing
    }

    /// Returns the virtual networks, in the order of their names.
    pub fn held(&self) -> impl Iterator<Item = &PlacedNetwork> {
        self.held.values()
    }

    /// Returns the room that is left of a switch; `None` if there is no such switch.
    pub fn room_left(&self, switch: &str) -> Option<SwitchRoom> {
        let substrate = self.routing.substrate();
        substrate.place(switch).map(|place| self.room[place])
    }

    /// Places a virtual network, routes its links, and reserves what both need.
    ///
    /// # Errors
    /// No placement is admitted: the error has the reason that binds. Or the request is malformed. Nothing is changed
    /// then.
    pub fn request(&mut self, request: VirtualNetworkRequest) -> Result<&PlacedNetwork, PlacementError> {
        let input = self.input(&request)?;
        let mut best: Option<RoutedPlacement> = None;
        let mut refused: Option<(u128, RefusedLink)> = None;
        let mut failed: Option<PlacementError> = None;
        let mut examined = 0;
        let mut examine = |places: &Places, estimate: u128| {
            // An estimate must be less than the best sum; of equal ones, the first one is kept.
            let most = |best: &Option<RoutedPlacement>| {
                best.as_ref().map_or(u128::MAX, |best| best.reserved.saturating_sub(1))
            };
            if estimate > most(&best) || failed.is_some() {
                return if failed.is_some() { 0 } else { most(&best) };
            }
            examined += 1;
            match self.route(&request, &input, places) {
                Ok(Ok(routed)) if routed.reserved <= most(&best) => best = Some(routed),
                Ok(Ok(_)) => {}
                Ok(Err(link)) if refused.as_ref().is_none_or(|(least, _)| estimate < *least) => {
                    refused = Some((estimate, link));
                }
                Ok(Err(_)) => {}
                Err(error) => failed = Some(error),
            }
            most(&best)
        };
        if input.size() <= MAX_EXACT {
            input.branch_and_bound(&mut examine);
        } else {
            for (estimate, places) in input.greedy().into_iter().take(MAX_TRIED) {
                examine(&places, estimate);
            }
        }
        match (failed, best, refused) {
            (Some(error), ..) => Err(error),
            (None, Some(best), _) => self.hold(request, best),
            (None, None, Some((_, RefusedLink { places, link, ways }))) => {
                let places = self.named(&request, &places);
                Err(PlacementError::NoWay { network: request.name, examined, places, link, ways })
            }
            (None, None, None) => Err(PlacementError::NoPlaces { network: request.name }),
        }
    }

    /// Releases a virtual network with all that was reserved for it, and returns it.
    ///
    /// # Errors
    /// The virtual network does not exist.
    pub fn release(&mut self, name: &str) -> Result<PlacedNetwork, PlacementError> {
        let missing = || PlacementError::NoNetwork { name: name.to_owned() };
        let released = self.held.remove(name).ok_or_else(missing)?;
        for (link, _) in released.ways.iter().filter(|(_, ways)| !ways.is_empty()) {
            self.routing.release(&full_name(name, link))?;
        }
        for router in &released.request.routers {
            let switch = self.routing.substrate().place(&released.places[&router.name]);
            if let Some(switch) = switch {
                self.room[switch] = self.room[switch].with(router.needs);
            }
        }
        Ok(released)
    }

    /// Checks a request, and returns it as numbers.
    fn input(&self, request: &VirtualNetworkRequest) -> Result<PlacementInput, PlacementError> {
        let malformed = |what: String| PlacementError::Malformed { network: request.name.clone(), what };
        if self.held.contains_key(&request.name) || request.name.contains('/') {
            return Err(malformed("a name that another one has, or with a slash".to_owned()));
        }
        if request.routers.is_empty() || request.routers.len() > MAX_ROUTERS {
            return Err(malformed(format!("{} routers, expected 1 to {MAX_ROUTERS}", request.routers.len())));
        }
        let numbers: BTreeMap<&str, usize> =
            request.routers.iter().map(|router| router.name.as_str()).zip(0..).collect();
        let links: BTreeSet<&str> = request.links.iter().map(|link| link.name.as_str()).collect();
        if numbers.len() < request.routers.len() || links.len() < request.links.len() {
            return Err(malformed("two routers or two links of one name".to_owned()));
        }
        let end = |name: &String| {
            numbers
                .get(name.as_str())
                .copied()
                .ok_or_else(|| malformed(format!("a link that ends at no router: {name}")))
        };
        let ends =
            |link: &VirtualLinkRequest| Ok(([end(&link.ends[0])?, end(&link.ends[1])?], u128::from(link.rate.0)));
        let links = request.links.iter().map(ends).collect::<Result<Vec<_>, PlacementError>>()?;
        let may_be_on = request.routers.iter().map(|router| self.switches_for(request, router));
        Ok(PlacementInput {
            room: self.room.clone(),
            needs: request.routers.iter().map(|router| router.needs).collect(),
            may_be_on: may_be_on.collect::<Result<_, PlacementError>>()?,
            links,
            hops: Arc::clone(&self.hops),
        })
    }

    /// Returns the switches that have room for a router and that it may be on.
    fn switches_for(
        &self,
        request: &VirtualNetworkRequest,
        router: &super::VirtualRouter,
    ) -> Result<Vec<usize>, PlacementError> {
        let allowed: Vec<usize> = match &router.place {
            None => (0..self.room.len()).collect(),
            Some(place) => {
                let what = format!("virtual network {}, router {}", request.name, router.name);
                let unknown = || WayError::UnknownPlace { what, place: place.clone() };
                vec![self.routing.substrate().place(place).ok_or_else(unknown)?]
            }
        };
        let fits = |switch: &usize| self.room[*switch].without(router.needs).is_some();
        let fitting: Vec<usize> = allowed.iter().copied().filter(fits).collect();
        if !fitting.is_empty() {
            return Ok(fitting);
        }
        Err(PlacementError::NoRoom {
            network: request.name.clone(),
            router: router.name.clone(),
            place: router.place.clone(),
            needs: router.needs,
            left: allowed.iter().map(|switch| self.room[*switch]).fold(SwitchRoom::NONE, SwitchRoom::most),
        })
    }

    /// Routes the links of a placement one after the other, without keeping them; or returns the first that is refused.
    fn route(
        &mut self,
        request: &VirtualNetworkRequest,
        input: &PlacementInput,
        places: &Places,
    ) -> Result<Result<RoutedPlacement, RefusedLink>, PlacementError> {
        let mut ways: BTreeMap<String, Vec<WayShare>> = BTreeMap::new();
        let mut refused = None;
        for (link, (ends, _)) in request.links.iter().zip(&input.links) {
            let routed = match self.between(request, link, ends.map(|end| places[end])) {
                Some(asked) => self.routing.reserve(&asked)?,
                None => Ok(Vec::new()),
            };
            match routed {
                Ok(shares) => drop(ways.insert(link.name.clone(), shares)),
                Err(examined) => {
                    refused = Some(RefusedLink { places: places.clone(), link: link.name.clone(), ways: examined });
                    break;
                }
            }
        }
        for shares in ways.values() {
            self.routing.give_back(shares)?;
        }
        if let Some(refused) = refused {
            return Ok(Err(refused));
        }
        let reserved = ways.values().flatten().map(|way| u128::from(way.rate.0) * way.path.len() as u128).sum();
        Ok(Ok(RoutedPlacement { places: places.clone(), ways, reserved }))
    }

    /// Returns the request for a link between switches; `None` if both ends are on one switch and nothing is passed.
    fn between(
        &self,
        request: &VirtualNetworkRequest,
        link: &VirtualLinkRequest,
        switches: [usize; 2],
    ) -> Option<VirtualLinkRequest> {
        let names = self.routing.substrate().switches();
        let is_needed = switches[0] != switches[1] || !link.through.is_empty();
        is_needed.then(|| VirtualLinkRequest {
            name: full_name(&request.name, &link.name),
            ends: switches.map(|switch| names[switch].clone()),
            cost_weight: u32::MAX,
            ..link.clone()
        })
    }

    /// Reserves what a placement needs, and keeps it.
    fn hold(
        &mut self,
        request: VirtualNetworkRequest,
        routed: RoutedPlacement,
    ) -> Result<&PlacedNetwork, PlacementError> {
        let input = self.input(&request)?;
        for (link, (ends, _)) in request.links.iter().zip(&input.links) {
            if let Some(asked) = self.between(&request, link, ends.map(|end| routed.places[end])) {
                self.routing.request(asked)?;
            }
        }
        for (switch, router) in routed.places.iter().zip(&request.routers) {
            self.room[*switch] = self.room[*switch].without(router.needs).unwrap_or(self.room[*switch]);
        }
        let RoutedPlacement { places, ways, reserved } = routed;
        let places = self.named(&request, &places);
        let placed = PlacedNetwork { places, ways, reserved, request };
        Ok(self.held.entry(placed.request.name.clone()).or_insert(placed))
    }

    fn named(&self, request: &VirtualNetworkRequest, places: &Places) -> BTreeMap<String, String> {
        let names = self.routing.substrate().switches();
        let routers = request.routers.iter().map(|router| router.name.clone());
        routers.zip(places.iter().map(|switch| names[*switch].clone())).collect()
    }
}

fn full_name(network: &str, link: &str) -> String {
    format!("{network}/{link}")
}
