//! Compares decisions with those of an admission that tries all ways, over sequences of requests and releases.
use super::drawn::draw;
use super::*;
use weir_vnet::admission::{LinkAdmission, LinkDemand, PathBound};
use weir_vnet::ways::{MAX_PATHS, WayError, WayOffer};

const ALL: WaySettings = WaySettings { ways: MAX_PATHS, turns: weir_vnet::ways::TurnRule::Any };

fn demand(request: &VirtualLinkRequest, path: &[String]) -> LinkDemand {
    let demand = LinkDemand::new(request.name.clone(), path, request.rate)
        .with_packets(request.shortest_packet, request.longest_packet)
        .with_burst(request.burst);
    LinkDemand { promised_delay: request.promised_delay, ..demand }
}

fn bounds(admission: &LinkAdmission) -> Vec<(LinkDemand, PathBound)> {
    admission.admitted().map(|(demand, bound)| (demand.clone(), bound.clone())).collect()
}

#[test]
fn a_way_is_found_exactly_if_there_is_one() {
    let mut random = fastrand::Rng::with_seed(51);
    let (mut admitted, mut refused, mut rates, mut delays, mut cycles) = (0, 0, 0, 0, 0);
    for round in 0..200 {
        let network = draw(&mut random);
        let mut routing = LinkRouting::new(network.substrate(), ALL).unwrap();
        let mut plain =
            LinkAdmission::new(network.overhead, network.links.iter().map(|link| link.queue.clone())).unwrap();
        for number in 0..25 {
            let held: Vec<String> = routing.held().map(|link| link.request.name.clone()).collect();
            if !held.is_empty() && random.u8(0..4) == 0 {
                let name = &held[random.usize(0..held.len())];
                routing.release(name).unwrap();
                plain.release(name).unwrap();
            }
            let request = network.request(&mut random, number);
            let all = network.all_ways(&request.ends);
            assert!(all.len() <= MAX_PATHS);
            let tried: Vec<LinkDemand> = all.iter().map(|path| demand(&request, path)).collect();
            let is_possible = tried.iter().any(|demand| plain.clone().request(demand.clone()).is_ok());
            match routing.request(request.clone()) {
                Ok(link) => {
                    assert_eq!((link.ways.len(), link.ways[0].rate), (1, request.rate));
                    assert!(all.contains(&link.ways[0].path), "{round}: it leads from one end to the other");
                    plain.request(demand(&request, &link.ways[0].path)).unwrap();
                    admitted += 1;
                }
                Err(WayError::Refused { ways, offers, .. }) => {
                    assert!(!is_possible, "{round}: {request:?}");
                    assert_eq!(ways.len(), all.len());
                    let rate = tried.iter().filter_map(|demand| plain.largest_rate(demand).ok().flatten()).max();
                    let rate = rate.map(WayOffer::Rate);
                    assert_eq!(offers.iter().find(|offer| matches!(offer, WayOffer::Rate(_))), rate.as_ref());
                    let delay = tried.iter().filter_map(|demand| plain.least_delay(demand).ok().flatten()).min();
                    let delay = delay.filter(|_| request.promised_delay.is_some()).map(WayOffer::Delay);
                    assert_eq!(offers.iter().find(|offer| matches!(offer, WayOffer::Delay(_))), delay.as_ref());
                    refused += 1;
                    rates += usize::from(rate.is_some());
                    delays += usize::from(delay.is_some());
                    cycles += usize::from(tried.iter().any(|demand| plain.largest_rate(demand).is_err()));
                }
                Err(error) => panic!("{round}: {error}"),
            }
            assert_eq!(bounds(routing.admission()), bounds(&plain), "{round}");
        }
    }
    let all = [admitted, refused, rates, delays, cycles];
    assert!(all.iter().all(|number| *number > 50), "each kind is examined: {all:?}");
}

/// Checks that releases leave nothing behind: all rates are there again, and requests get the answers of a new network.
#[test]
fn releases_give_back_everything() {
    let mut random = fastrand::Rng::with_seed(52);
    let mut split = 0;
    for round in 0..150 {
        let network = draw(&mut random);
        let settings = WaySettings { ways: random.usize(1..10), ..WaySettings::default() };
        let new = LinkRouting::new(network.substrate(), settings).unwrap();
        let mut routing = new.clone();
        for number in 0..30 {
            let request = network.request(&mut random, number).over_ways(random.usize(1..=3));
            let before = bounds(routing.admission());
            match routing.request(request) {
                Ok(link) => split += usize::from(link.ways.len() > 1),
                Err(_) => assert_eq!(bounds(routing.admission()), before, "{round}: a refusal changes nothing"),
            }
        }
        let mut held: Vec<String> = routing.held().map(|link| link.request.name.clone()).collect();
        random.shuffle(&mut held);
        held.iter().for_each(|name| drop(routing.release(name).unwrap()));
        assert_eq!(routing.admission().admitted().count(), 0);
        for link in &network.links {
            assert_eq!(routing.admission().rate_left(&link.queue.name), Some(link.queue.capacity));
        }
        let mut new = new;
        for number in 0..30 {
            let request = network.request(&mut random, number).over_ways(random.usize(1..=3));
            assert_eq!(routing.request(request.clone()), new.request(request), "{round}");
        }
    }
    assert!(split > 20, "only {split} were split");
}
