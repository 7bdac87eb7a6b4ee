//! Checks placements of virtual networks against all that there are, what is given back, and reasons of refusals.
use weir_units::{Bps, ByteSize};
use weir_vnet::admission::QueuedLink;
use weir_vnet::placement::{
    MAX_EXACT, NetworkPlacement, PlacementError, SwitchRoom, VirtualNetworkRequest, VirtualRouter,
};
use weir_vnet::ways::{LinkRouting, Substrate, SwitchLink, TurnRule, VirtualLinkRequest, WaySettings};

fn room(entries: u64) -> SwitchRoom {
    SwitchRoom { ports: 4, entries, rate: Bps(1_000_000) }
}

fn needs(entries: u64) -> SwitchRoom {
    SwitchRoom { ports: 1, entries, rate: Bps(1000) }
}

/// Returns a connected network with links of some Mbit/s in both directions, and switches with drawn room.
fn draw(random: &mut fastrand::Rng, switches: usize) -> NetworkPlacement {
    let mut pairs: Vec<(usize, usize)> = (1..switches).map(|one| (random.usize(0..one), one)).collect();
    pairs.extend((0..switches).map(|one| (one, (one + random.usize(1..switches)) % switches)));
    let mut links = Vec::new();
    for (number, (from, to)) in pairs.into_iter().enumerate() {
        for (from, to, which) in [(from, to, "there"), (to, from, "back")] {
            let queue = QueuedLink::new(format!("{number} {which}"), Bps(random.u64(3..15) * 1_000_000));
            links.push(SwitchLink::new(format!("s{from}"), format!("s{to}"), queue));
        }
    }
    let names = (0..switches).map(|switch| format!("s{switch}"));
    let substrate = Substrate::new(ByteSize(0), names, links).unwrap();
    let settings = WaySettings { turns: TurnRule::UpDown, ..WaySettings::default() };
    let routing = LinkRouting::new(substrate, settings).unwrap();
    let entries: Vec<u64> = (0..switches).map(|_| random.u64(0..300)).collect();
    NetworkPlacement::new(routing, |name| room(entries[name[1..].parse::<usize>().unwrap()]))
}

fn draw_request(random: &mut fastrand::Rng, name: usize, routers: usize, switches: usize) -> VirtualNetworkRequest {
    let router = |number: usize| {
        let router = VirtualRouter::new(format!("r{number}"), needs(random.u64(1..150)));
        if random.u8(0..4) == 0 { router.at(format!("s{}", random.usize(0..switches))) } else { router }
    };
    let routers: Vec<VirtualRouter> = (0..routers).map(router).collect();
    let link = |number: usize| {
        let from = random.usize(0..routers.len());
        let to = (from + random.usize(1..routers.len())) % routers.len();
        let rate = Bps(random.u64(1..6_000_000));
        VirtualLinkRequest::new(format!("l{number}"), format!("r{from}"), format!("r{to}"), rate)
    };
    let links = (0..=routers.len()).map(link).collect();
    VirtualNetworkRequest { name: format!("n{name}"), routers, links }
}

/// Returns the least sum of all placements, each asked for with fixed places.
fn least_of_all(placement: &NetworkPlacement, request: &VirtualNetworkRequest) -> Option<u128> {
    let switches = placement.routing().substrate().switches();
    let mut least = None;
    for number in 0..switches.len().pow(u32::try_from(request.routers.len()).unwrap()) {
        let mut fixed = request.clone();
        let mut rest = number;
        let mut is_allowed = true;
        for router in &mut fixed.routers {
            let switch = &switches[rest % switches.len()];
            rest /= switches.len();
            is_allowed &= router.place.as_ref().is_none_or(|place| place == switch);
            router.place = Some(switch.clone());
        }
        if is_allowed && let Ok(placed) = placement.clone().request(fixed) {
            least = least.into_iter().chain([placed.reserved]).min();
        }
    }
    least
}

#[test]
fn the_best_of_all_placements_is_found() {
    let mut random = fastrand::Rng::with_seed(91);
    let (mut placed, mut refused) = (0, 0);
    for round in 0..60 {
        let switches = random.usize(3..=4);
        let mut placement = draw(&mut random, switches);
        for name in 0..4 {
            let request = draw_request(&mut random, name, 3, switches);
            let least = least_of_all(&placement, &request);
            match placement.request(request) {
                Ok(found) => {
                    assert_eq!(Some(found.reserved), least, "{round}");
                    placed += 1;
                }
                Err(error) => {
                    assert_eq!(least, None, "{round}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(placed > 30 && refused > 30, "{placed} {refused}");
}

#[test]
fn releases_give_back_everything() {
    let mut random = fastrand::Rng::with_seed(92);
    let mut placed = 0;
    for round in 0..30 {
        let switches = random.usize(3..=6);
        let new = draw(&mut random, switches);
        let mut placement = new.clone();
        for name in 0..12 {
            let routers = random.usize(2..=4);
            let request = draw_request(&mut random, name, routers, switches);
            placed += usize::from(placement.request(request).is_ok());
            let held: Vec<String> = placement.held().map(|network| network.request.name.clone()).collect();
            if !held.is_empty() && random.u8(0..3) == 0 {
                placement.release(&held[random.usize(0..held.len())]).unwrap();
            }
        }
        let held: Vec<String> = placement.held().map(|network| network.request.name.clone()).collect();
        held.iter().for_each(|name| drop(placement.release(name).unwrap()));
        assert_eq!(placement.routing().held().count(), 0);
        let mut new = new;
        for switch in new.routing().substrate().switches() {
            assert_eq!(placement.room_left(switch), new.room_left(switch));
        }
        for name in 20..24 {
            let request = draw_request(&mut random, name, 3, switches);
            assert_eq!(placement.request(request.clone()), new.request(request), "{round}");
        }
    }
    assert!(placed > 100, "{placed}");
}

/// With more placements than are examined one by one, places have room and fixed ones are kept.
#[test]
fn many_placements_are_searched_greedily() {
    let mut random = fastrand::Rng::with_seed(93);
    let mut placed = 0;
    for _ in 0..20 {
        let mut placement = draw(&mut random, 20);
        let before = placement.clone();
        let mut request = draw_request(&mut random, 0, 6, 20);
        request.routers[2..].iter_mut().for_each(|router| router.place = None);
        request.links.iter_mut().for_each(|link| link.rate = Bps(link.rate.0 / 3));
        assert!(8_usize.pow(4) < MAX_EXACT && 15_usize.pow(4) > MAX_EXACT);
        let Ok(found) = placement.request(request.clone()) else { continue };
        let found = found.clone();
        for switch in before.routing().substrate().switches() {
            let taken = request.routers.iter().filter(|router| found.places[&router.name] == *switch);
            let left =
                taken.fold(before.room_left(switch).unwrap(), |left, router| left.without(router.needs).unwrap());
            assert_eq!(placement.room_left(switch), Some(left));
        }
        let is_kept =
            |router: &VirtualRouter| router.place.as_ref().is_none_or(|place| found.places[&router.name] == *place);
        assert!(request.routers.iter().all(is_kept));
        let sum: u128 = placement
            .routing()
            .held()
            .flat_map(|link| &link.ways)
            .map(|way| u128::from(way.rate.0) * way.path.len() as u128)
            .sum();
        assert_eq!(sum, found.reserved);
        // A single move of a router makes no improvement.
        for router in request.routers.iter().filter(|router| router.place.is_none()) {
            for switch in before.routing().substrate().switches() {
                let mut moved = request.clone();
                for one in &mut moved.routers {
                    let place = if one.name == router.name { switch } else { &found.places[&one.name] };
                    one.place = Some(place.clone());
                }
                let least = before.clone().request(moved).map_or(u128::MAX, |moved| moved.reserved);
                assert!(least >= found.reserved, "{least} {}", found.reserved);
            }
        }
        placed += 1;
    }
    assert!(placed >= 10, "{placed}");
}

fn row(entries: &[u64]) -> NetworkPlacement {
    let links = (1..entries.len()).flat_map(|switch| {
        [(switch - 1, switch), (switch, switch - 1)].map(|(from, to)| {
            let queue = QueuedLink::new(format!("{from}-{to}"), Bps(10_000_000));
            SwitchLink::new(format!("s{from}"), format!("s{to}"), queue)
        })
    });
    let names = (0..entries.len()).map(|switch| format!("s{switch}"));
    let substrate = Substrate::new(ByteSize(0), names, links).unwrap();
    let routing = LinkRouting::new(substrate, WaySettings::default()).unwrap();
    NetworkPlacement::new(routing, |name| room(entries[name[1..].parse::<usize>().unwrap()]))
}

fn network(routers: Vec<VirtualRouter>, links: &[(&str, &str, u64)]) -> VirtualNetworkRequest {
    let link = |(number, (from, to, mbps)): (usize, &(&str, &str, u64))| {
        VirtualLinkRequest::new(format!("l{number}"), *from, *to, Bps(mbps * 1_000_000))
    };
    VirtualNetworkRequest { name: "n".to_owned(), routers, links: links.iter().enumerate().map(link).collect() }
}

#[test]
fn refusals_name_what_binds() {
    let mut placement = row(&[100, 50, 20]);
    let mut refused = |request| placement.request(request).unwrap_err().to_string();
    let router = |name: &str, entries| VirtualRouter::new(name, needs(entries));
    assert_eq!(
        refused(network(vec![router("a", 101)], &[])),
        "virtual network n: router a needs 1 ports, 101 entries, 1kbit/s, found at most 4 ports, 100 entries, 1Mbit/s \
         left at any switch, and no switch with all of it"
    );
    assert_eq!(
        refused(network(vec![router("a", 60).at("s2")], &[])),
        "virtual network n: router a needs 1 ports, 60 entries, 1kbit/s, found at most 4 ports, 20 entries, 1Mbit/s \
         left at its switch"
    );
    assert_eq!(
        refused(network(vec![router("a", 60), router("b", 60)], &[])),
        "virtual network n: no placement has room for all routers together, and links between them"
    );
    assert_eq!(
        refused(network(vec![router("a", 60), router("b", 45)], &[("a", "b", 11)])),
        "virtual network n: no placement out of 1 has ways for all links; in the best one, link l0: on the way \
         0-1, link 0-1 lacks 1Mbit/s of rate"
    );
    let found = placement.request(network(vec![router("a", 60), router("b", 40)], &[("a", "b", 11)])).unwrap();
    assert_eq!((found.reserved, &found.places["b"]), (0, &"s0".to_owned()), "both are on one switch");
    assert_eq!(placement.release("m"), Err(PlacementError::NoNetwork { name: "m".to_owned() }));
}

#[test]
fn malformed_requests_are_refused() {
    let mut placement = row(&[100, 50]);
    let router = |name: &str| VirtualRouter::new(name, needs(1));
    placement.request(VirtualNetworkRequest { name: "old".to_owned(), ..network(vec![router("a")], &[]) }).unwrap();
    let named = |name: &str| VirtualNetworkRequest { name: name.to_owned(), ..network(vec![router("a")], &[]) };
    for (request, expected) in [
        (named("old"), "virtual network old: found a name that another one has"),
        (named("a/b"), "virtual network a/b: found a name that another one has, or with a slash"),
        (network(vec![], &[]), "virtual network n: found 0 routers, expected 1 to 100"),
        (network(vec![router("a"), router("a")], &[]), "virtual network n: found two routers or two links of one name"),
        (network(vec![router("a")], &[("a", "b", 1)]), "virtual network n: found a link that ends at no router: b"),
        (network(vec![router("a").at("x")], &[]), "virtual network n, router a: found no switch or host x"),
        (
            network(vec![router("a").at("s0"), router("b").at("s1")], &[("a", "b", 0)]),
            "virtual link n/l0: found a rate outside",
        ),
    ] {
        let text = placement.request(request).unwrap_err().to_string();
        assert!(text.starts_with(expected), "{text}");
    }
    assert_eq!((placement.held().count(), placement.routing().held().count()), (1, 0));
}
