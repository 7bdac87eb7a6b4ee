//! Offers of refusals: what is offered is admitted, and a little more is refused.
use super::drawn::draw;
use super::*;
use weir_vnet::ways::{WayError, WayOffer};

const NS: Duration = Duration::from_nanos(1);

fn is_admitted(routing: &LinkRouting, request: VirtualLinkRequest) -> bool {
    routing.clone().request(request).is_ok()
}

/// Asks for an offer, and for a little more where the offer is exact.
fn check(routing: &LinkRouting, request: &VirtualLinkRequest, offer: &WayOffer) -> usize {
    let is_exact = request.max_ways == 1;
    match offer {
        WayOffer::Rate(rate) => {
            let at = |rate| is_admitted(routing, VirtualLinkRequest { rate: Bps(rate), ..request.clone() });
            assert!(rate.0 < request.rate.0 && at(rate.0) && !(is_exact && at(rate.0 + 1)), "{offer:?} {request:?}");
            0
        }
        WayOffer::Delay(delay) => {
            let within = |delay| is_admitted(routing, request.clone().within(delay));
            assert!(within(*delay) && !(is_exact && within(*delay - NS)), "{offer:?} {request:?}");
            1
        }
        WayOffer::OtherWay { without_avoid, without_through, paths } => {
            let mut changed = request.clone();
            if *without_avoid {
                changed.avoid.clear();
            }
            if *without_through {
                changed.through.clear();
            }
            let mut routing = routing.clone();
            let link = routing.request(changed).unwrap();
            assert!(link.ways.iter().map(|way| &way.path).eq(paths));
            2
        }
        WayOffer::MoreWays(ways) => {
            assert!(*ways > request.max_ways);
            let mut routing = routing.clone();
            assert_eq!(routing.request(request.clone().over_ways(*ways)).unwrap().ways.len(), *ways);
            3
        }
        other => panic!("{other:?} is not checked"),
    }
}

#[test]
fn offers_are_admitted_and_more_is_refused() {
    let mut random = fastrand::Rng::with_seed(61);
    let mut seen = [0; 4];
    for _ in 0..200 {
        let network = draw(&mut random);
        let settings = WaySettings { ways: random.usize(1..10), ..WaySettings::default() };
        let mut routing = LinkRouting::new(network.substrate(), settings).unwrap();
        for number in 0..20 {
            let mut request = network.request(&mut random, number).over_ways([1, 1, 2, 3][random.usize(0..4)]);
            let switch = |random: &mut fastrand::Rng| format!("s{}", random.usize(0..network.switches));
            if random.u8(0..4) == 0 {
                request.through = vec![switch(&mut random)];
            }
            if random.u8(0..3) == 0 {
                request.avoid = vec![switch(&mut random), network.links[0].queue.name.clone()];
            }
            if let Err(WayError::Refused { offers, .. }) = routing.request(request.clone()) {
                offers.iter().for_each(|offer| seen[check(&routing, &request, offer)] += 1);
            }
        }
    }
    assert!(seen.iter().all(|number| *number > 20), "each kind is examined: {seen:?}");
}
