//! Ways that would close a cycle of links: passed over, named in refusals, and prevented by a rule for turns.
use super::*;
use weir_vnet::ways::{TurnRule, WayError, WayObstacle};

const ONE_WAY: [(&str, u64); 4] = [("ab", 10), ("bc", 10), ("cd", 10), ("da", 10)];
const BOTH_WAYS: [(&str, u64); 8] =
    [("ab", 10), ("bc", 10), ("cd", 10), ("da", 10), ("ba", 10), ("cb", 10), ("dc", 10), ("ad", 10)];

/// Leads virtual links over two links each around a ring, all but the one that closes it.
fn lead_around(routing: &mut LinkRouting) {
    for (ends, way) in [("ac", ["ab", "bc"]), ("bd", ["bc", "cd"]), ("ca", ["cd", "da"])] {
        routing.request(request(ends, ends, 1).through([&way[1][..1]])).unwrap();
        assert_eq!(routing.get(ends).unwrap().ways[0].path, way);
    }
}

#[test]
fn a_refusal_says_that_all_ways_lead_around_a_cycle() {
    let mut routing = routing(&ONE_WAY);
    lead_around(&mut routing);
    let error = routing.request(request("db", "db", 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "virtual link db: the only way would lead around a cycle, such as da, ab, bc, cd; \
         no smaller change is enough"
    );
    let WayError::Refused { ways, offers, .. } = error else { panic!("{error}") };
    assert_eq!(offers, []);
    assert!(matches!(&ways[..], [way] if matches!(&way.obstacle, WayObstacle::Cycle(links) if links.len() == 4)));
    routing.release("ac").unwrap();
    routing.request(request("db", "db", 1)).unwrap();
}

#[test]
fn ways_around_a_cycle_are_passed_over() {
    let mut routing = routing(&BOTH_WAYS);
    lead_around(&mut routing);
    routing.request(request("db", "db", 1)).unwrap();
    assert_eq!(ways(&routing, "db"), [("dc cb".to_owned(), 1_000_000)]);
    // A cycle and a lack of rate are both told.
    routing.request(request("full", "cb", 9)).unwrap();
    let text = routing.request(request("more", "db", 1)).unwrap_err().to_string();
    assert_eq!(
        text,
        "virtual link more: on the way dc, cb, link cb lacks 1Mbit/s of rate; 1 would lead around a cycle; \
         no smaller change is enough"
    );
}

/// A single way is examined, but one that closes a cycle does not count.
#[test]
fn ways_around_a_cycle_do_not_count() {
    let settings = WaySettings { ways: 1, ..WaySettings::default() };
    let mut routing = LinkRouting::new(substrate(&BOTH_WAYS), settings).unwrap();
    lead_around(&mut routing);
    routing.request(request("db", "db", 1)).unwrap();
    assert_eq!(ways(&routing, "db"), [("dc cb".to_owned(), 1_000_000)]);
}

/// With the rule of up and down, each two switches have a way, however many virtual links there are.
#[test]
fn a_rule_for_turns_prevents_cycles() {
    let mut random = fastrand::Rng::with_seed(81);
    let mut longer = 0;
    for _ in 0..40 {
        let switches = random.usize(4..12);
        let mut pairs: Vec<(usize, usize)> = (1..switches).map(|one| (random.usize(0..one), one)).collect();
        pairs.extend((0..switches).map(|one| (one, (one + random.usize(1..switches)) % switches)));
        pairs.retain(|(from, to)| from != to);
        let link = |(number, (from, to)): (usize, &(usize, usize))| {
            [(from, to, "there"), (to, from, "back")].map(|(from, to, which)| {
                let queue = QueuedLink::new(format!("{number} {which}"), mbps(1000));
                SwitchLink::new(format!("s{from}"), format!("s{to}"), queue)
            })
        };
        let links: Vec<SwitchLink> = pairs.iter().enumerate().flat_map(link).collect();
        let substrate =
            Substrate::new(NO_OVERHEAD, (0..switches).map(|switch| format!("s{switch}")), links.clone()).unwrap();
        let [mut up_down, mut any] = [TurnRule::UpDown, TurnRule::Any]
            .map(|turns| LinkRouting::new(substrate.clone(), WaySettings { turns, ..WaySettings::default() }).unwrap());
        for from in 0..switches {
            for to in (0..switches).filter(|to| *to != from) {
                let asked = VirtualLinkRequest::new(
                    format!("{from} {to}"),
                    format!("s{from}"),
                    format!("s{to}"),
                    Bps(random.u64(1..1000)),
                );
                let found = up_down.request(asked.clone()).unwrap().ways[0].path.clone();
                let leads_to = |path: &[String]| {
                    path.iter().fold(format!("s{from}"), |at, name| {
                        let link = links.iter().find(|link| link.queue.name == *name).unwrap();
                        assert_eq!(link.from, at);
                        link.to.clone()
                    })
                };
                assert_eq!(leads_to(&found), format!("s{to}"));
                let shortest = any.request(asked).map_or(found.len(), |link| link.ways[0].path.len());
                longer += usize::from(found.len() > shortest);
            }
        }
        // Ways past a switch keep to the rule, or are not found; they never close a cycle.
        for number in 0..20 {
            let [from, by, to] = [(); 3].map(|()| format!("s{}", random.usize(0..switches)));
            if from != to
                && let Err(error) =
                    up_down.request(VirtualLinkRequest::new(format!("{number}"), from, to, Bps(1)).through([by]))
            {
                assert!(matches!(&error, WayError::Refused { ways, .. } if ways.is_empty()), "{error}");
            }
        }
    }
    assert!(longer > 20, "ways are longer than without the rule: {longer}");
}
