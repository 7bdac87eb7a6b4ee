//! Virtual links that come and go: rates depend on the set alone, and only dependent ones are calculated.
use super::*;
use std::collections::BTreeMap;

/// Returns all rates to the last digit.
fn digits(sharing: &LinkSharing) -> BTreeMap<String, u64> {
    let names = sharing.rates().map(|(one, _)| one.name.clone());
    names.map(|name| (name.clone(), sharing.exact_rate(&name).unwrap().to_bits())).collect()
}

#[test]
fn the_order_of_arrival_does_not_matter() {
    let mut random = fastrand::Rng::with_seed(9);
    for round in 0..150 {
        let case = draw(&mut random, 10, 20, 3);
        let rule = RULES[round % RULES.len()];
        let mut sharing = LinkSharing::new(rule, case.links.clone()).unwrap();
        let mut there: Vec<VirtualLink> = Vec::new();
        let mut absent = case.virtual_links.clone();
        for _ in 0..40 {
            if there.is_empty() || (random.bool() && !absent.is_empty()) {
                let one = absent.swap_remove(random.usize(0..absent.len()));
                sharing.insert(one.clone()).unwrap();
                there.push(one);
            } else {
                let one = there.swap_remove(random.usize(0..there.len()));
                sharing.remove(&one.name).unwrap();
                absent.push(one);
            }
        }
        random.shuffle(&mut there);
        let mut at_once = LinkSharing::new(rule, case.links.iter().rev().cloned()).unwrap();
        at_once.change(&[], there).unwrap();
        assert_eq!(digits(&sharing), digits(&at_once), "{rule:?}\n{case:?}");
    }
}

#[test]
fn only_dependent_virtual_links_are_calculated() {
    for rule in RULES {
        let links =
            ["a", "b", "wide", "c"].map(|name| SubstrateLink::new(name, mbps(if name == "wide" { 9000 } else { 100 })));
        let mut sharing = LinkSharing::new(rule, links).unwrap();
        let first = vec![
            VirtualLink::new("1", ["a", "wide"]),
            VirtualLink::new("2", ["a"]),
            VirtualLink::new("3", ["b", "wide"]),
            VirtualLink::new("4", ["b"]),
            VirtualLink::new("5", ["c"]).fixed_at(mbps(10)),
        ];
        sharing.change(&[], first).unwrap();
        // The wide link cannot be full, so that its users do not depend on each other.
        let changes = sharing.insert(VirtualLink::new("6", ["a"])).unwrap();
        assert_eq!(changes.calculated.iter().collect::<Vec<_>>(), ["1", "2", "6"], "{rule:?}");
        assert_eq!(changes.changed.len(), 3);
        // A static one joins two groups only by what it takes from each.
        let changes = sharing.insert(VirtualLink::new("7", ["b", "c"]).fixed_at(mbps(90))).unwrap();
        assert_eq!(changes.calculated.iter().collect::<Vec<_>>(), ["3", "4", "5", "7"], "{rule:?}");
        assert_eq!([sharing.rate("3"), sharing.rate("7")], [Some(mbps(5)), Some(mbps(90))], "{rule:?}");
        assert!(!changes.changed.contains_key("5"));
    }
}

#[test]
fn virtual_links_can_be_replaced() {
    let mut sharing = LinkSharing::new(MaximumSum, [SubstrateLink::new("a", mbps(100))]).unwrap();
    sharing.insert(VirtualLink::new("1", ["a"]).at_least(mbps(80))).unwrap();
    sharing.insert(VirtualLink::new("2", ["a"])).unwrap();
    let changes = sharing.change(&["1"], vec![VirtualLink::new("1", ["a"]).fixed_at(mbps(90))]).unwrap();
    assert_eq!(changes.changed, BTreeMap::from([("1".to_owned(), mbps(90)), ("2".to_owned(), mbps(10))]));
}
