//! Virtual links over several ways: as few as possible, with rates that add up.
use super::*;
use weir_vnet::admission::{LinkAdmission, LinkDemand};
use weir_vnet::ways::{MAX_PATHS, TurnRule, WayError};

const THREE_WAYS: [(&str, u64); 6] = [("ab", 10), ("bd", 9), ("ac", 8), ("cd", 10), ("ae", 5), ("ed", 5)];

#[test]
fn as_few_ways_as_possible_carry_it() {
    let mut routing = routing(&THREE_WAYS);
    routing.request(request("one", "ad", 9).over_ways(4)).unwrap();
    assert_eq!(ways(&routing, "one"), [("ab bd".to_owned(), 9_000_000)]);
    routing.release("one").unwrap();
    routing.request(request("two", "ad", 17).over_ways(4)).unwrap();
    let [b, c, e] = ["ab bd", "ac cd", "ae ed"].map(str::to_owned);
    assert_eq!(ways(&routing, "two"), [(b.clone(), 9_000_000), (c.clone(), 8_000_000)]);
    routing.release("two").unwrap();
    routing.request(request("three", "ad", 20).over_ways(3)).unwrap();
    assert_eq!(ways(&routing, "three"), [(b, 9_000_000), (c, 8_000_000), (e, 3_000_000)]);
}

/// The delay of the whole is the largest one of its ways, and the promise holds on each.
#[test]
fn each_way_keeps_the_promise() {
    let mut routing = routing(&THREE_WAYS);
    let packets =
        |request: VirtualLinkRequest| request.with_packets(ByteSize(1500), ByteSize(1500)).with_burst(ByteSize(3000));
    // 24 kbit at the slower link of each way and 12 kbit at the other one.
    let asked = packets(request("v", "ad", 17)).over_ways(2).within(5000 * US);
    routing.request(asked).unwrap();
    let delays: Vec<Duration> = routing.bounds("v").into_iter().map(|bound| bound.delay).collect();
    assert_eq!(delays.len(), 2);
    assert_eq!(routing.delay("v"), delays.iter().max().copied());
    assert!(delays.iter().all(|delay| *delay <= 5000 * US), "{delays:?}");
    routing.release("v").unwrap();
    let WayError::Refused { offers, .. } =
        routing.request(packets(request("v", "ad", 17)).over_ways(2).within(100 * US)).unwrap_err()
    else {
        panic!()
    };
    let longest = delays.into_iter().max().unwrap();
    assert!(offers.contains(&weir_vnet::ways::WayOffer::Delay(longest)), "{offers:?}");
}

/// Tries all shares of all pairs of ways, with capacities of a few bit/s.
#[test]
fn two_ways_are_found_exactly_if_two_carry_it() {
    let mut random = fastrand::Rng::with_seed(71);
    let (mut split, mut refused) = (0, 0);
    for _ in 0..600 {
        let mut network = super::drawn::draw(&mut random);
        network.overhead = NO_OVERHEAD;
        for link in &mut network.links {
            link.queue = QueuedLink::new(link.queue.name.clone(), Bps(random.u64(2..12)));
        }
        // Virtual links through single links close no cycles; larger rates are left for the split one.
        let mut plain = LinkAdmission::new(NO_OVERHEAD, network.links.iter().map(|link| link.queue.clone())).unwrap();
        let settings = WaySettings { ways: MAX_PATHS, turns: TurnRule::Any };
        let mut routing = LinkRouting::new(network.substrate(), settings).unwrap();
        let asked = network.request(&mut random, 0);
        let asked = VirtualLinkRequest::new("v", &asked.ends[0], &asked.ends[1], Bps(random.u64(2..24))).over_ways(2);
        let all = network.all_ways(&asked.ends);
        let mut admits = |parts: &[(&Vec<String>, u64)]| {
            let demand = |number: usize| {
                let (path, rate) = parts[number];
                LinkDemand::new(format!("{number}"), path, Bps(rate))
            };
            let admitted = (0..parts.len()).take_while(|number| plain.request(demand(*number)).is_ok()).count();
            (0..admitted).for_each(|number| drop(plain.release(&number.to_string()).unwrap()));
            admitted == parts.len()
        };
        let by_one = all.iter().any(|path| admits(&[(path, asked.rate.0)]));
        let by_two = all.iter().enumerate().any(|(number, first)| {
            let shares = |second| (1..asked.rate.0).map(move |rate| [(first, rate), (second, asked.rate.0 - rate)]);
            all[number + 1..].iter().flat_map(shares).any(|parts| admits(&parts))
        });
        match routing.request(asked.clone()) {
            Ok(link) => {
                assert_eq!(link.ways.iter().map(|way| way.rate.0).sum::<u64>(), asked.rate.0);
                assert_eq!(link.ways.len() == 1, by_one, "{asked:?}");
                split += usize::from(link.ways.len() == 2);
            }
            Err(_) => {
                assert!(!by_one && !by_two, "{asked:?} {:?}", network.links);
                refused += 1;
            }
        }
    }
    assert!(split > 20 && refused > 50, "{split} {refused}");
}
