//! Checks rates against independent solvers, and for the properties that define them.
mod drawn;
mod oracle;
mod refused;
mod sequences;

use drawn::{DrawnCase, draw};
use oracle::OracleLink;
use weir_units::Bps;
use weir_vnet::allocation::SharingRule::{MaxMin, MaximumSum, ProportionalFair};
use weir_vnet::allocation::{LinkSharing, SharingRule, SubstrateLink, VirtualLink, allocate};

const RULES: [SharingRule; 3] = [MaximumSum, MaxMin, ProportionalFair];

fn mbps(rate: u64) -> Bps {
    Bps(rate * 1_000_000)
}

fn rates(rule: SharingRule, case: &DrawnCase) -> Vec<f64> {
    allocate(rule, case.links.clone(), &case.virtual_links).unwrap_or_else(|error| panic!("{error}\n{case:?}"))
}

fn assert_equal(found: &[f64], expected: &[f64], what: &str, case: &DrawnCase) {
    assert_eq!(found.len(), expected.len());
    // A rate near zero is the difference of larger ones.
    let is_near = |(found, expected): (&f64, &f64)| (found - expected).abs() <= 1e-9 * expected.max(1e-3);
    let all = found.iter().zip(expected).all(is_near);
    assert!(all, "{what}: found {found:?}, expected {expected:?}\n{case:#?}");
}

/// Table 5.1 of Anhalt (2011): three virtual links at 2 Gbit/s, then the third leaves.
#[test]
fn published_rates() {
    for rule in RULES {
        let mut sharing = LinkSharing::new(rule, [SubstrateLink::new("link", mbps(2000))]).unwrap();
        let virtual_link = |name| VirtualLink::new(name, ["link"]);
        sharing.insert(virtual_link("1").between(mbps(100), mbps(500))).unwrap();
        sharing.insert(virtual_link("2").between(mbps(800), mbps(1500))).unwrap();
        sharing.insert(virtual_link("3").fixed_at(mbps(300))).unwrap();
        let rates = |sharing: &LinkSharing| sharing.rates().map(|(_, rate)| rate).collect::<Vec<_>>();
        assert_eq!(rates(&sharing), [mbps(500), mbps(1200), mbps(300)], "{rule:?}");
        let changes = sharing.remove("3").unwrap();
        assert_eq!(rates(&sharing), [mbps(500), mbps(1500)], "{rule:?}");
        assert_eq!(changes.changed.into_iter().collect::<Vec<_>>(), [("2".to_owned(), mbps(1500))]);
    }
}

/// A long virtual link over two links, and a short one on each: the rules differ.
#[test]
fn rules_differ_in_networks() {
    let links = [SubstrateLink::new("a", Bps(90)), SubstrateLink::new("b", Bps(90))];
    let virtual_links =
        [VirtualLink::new("long", ["a", "b"]), VirtualLink::new("left", ["a"]), VirtualLink::new("right", ["b"])];
    let rates = |rule, virtual_links: &[VirtualLink]| allocate(rule, links.clone(), virtual_links).unwrap();
    assert_eq!(rates(MaximumSum, &virtual_links), [0.0, 90.0, 90.0]);
    assert_eq!(rates(MaxMin, &virtual_links), [45.0, 45.0, 45.0]);
    let fair = rates(ProportionalFair, &virtual_links);
    assert!(fair.iter().zip([30.0, 60.0, 60.0]).all(|(one, other)| (one - other).abs() < 1e-10), "{fair:?}");
    let [long, left, right] = virtual_links;
    let weighted = [long.weighing(2.0), left.at_least(Bps(50)), right];
    assert_eq!(rates(MaximumSum, &weighted), [0.0, 90.0, 90.0]);
    assert_eq!(rates(MaxMin, &weighted), [40.0, 50.0, 50.0]);
}

/// Three links in a ring, and a virtual link over each pair: the largest sum needs half of each link.
#[test]
fn largest_sums_may_need_fractions() {
    let links = ["a", "b", "c"].map(|name| SubstrateLink::new(name, Bps(1)));
    let pairs = [["a", "b"], ["b", "c"], ["c", "a"]].map(|pair| VirtualLink::new(pair.concat(), pair));
    assert_eq!(allocate(MaximumSum, links, &pairs).unwrap(), [0.5, 0.5, 0.5]);
}

#[test]
fn ten_thousand_cases_equal_independent_solvers() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..10_000 {
        let case = draw(&mut random, 4, 7, 4);
        let (capacities, numbers) = (case.capacities(), case.numbers());
        let sum = rates(MaximumSum, &case);
        assert_equal(&sum, &oracle::leximin(&capacities, &numbers, true), "largest sum", &case);
        let fair = rates(MaxMin, &case);
        assert_equal(&fair, &oracle::leximin(&capacities, &numbers, false), "max-min", &case);
        if case.has_room_everywhere() {
            let fair = rates(ProportionalFair, &case);
            assert_equal(&fair, &oracle::proportional(&capacities, &numbers), "proportional", &case);
        }
    }
}

#[test]
fn on_one_link_all_rules_agree() {
    let mut random = fastrand::Rng::with_seed(6);
    for _ in 0..2000 {
        let case = draw(&mut random, 1, 12, 1);
        let expected = rates(MaxMin, &case);
        assert_equal(&rates(MaximumSum, &case), &expected, "largest sum", &case);
        assert_equal(&rates(ProportionalFair, &case), &expected, "proportional", &case);
    }
}

/// Returns true if the rate of a virtual link cannot rise without lowering one that is not larger, by weight.
fn is_limited(index: usize, rates: &[f64], capacities: &[f64], numbers: &[OracleLink]) -> bool {
    let by_weight = |index: usize| rates[index] / numbers[index].weight;
    let limits = |link: &usize| {
        let through = (0..rates.len()).filter(|other| numbers[*other].path.contains(link));
        let load: f64 = through.clone().map(|other| rates[other]).sum();
        let is_full = load >= capacities[*link] * (1.0 - 1e-12);
        // Rates at their minimum cannot be lowered.
        let mut lowered = through.filter(|other| rates[*other] > numbers[*other].lo * (1.0 + 1e-12));
        is_full && lowered.all(|other| by_weight(other) <= by_weight(index) * (1.0 + 1e-9))
    };
    rates[index] >= numbers[index].hi || numbers[index].path.iter().any(limits)
}

#[test]
fn larger_networks_are_shared_as_defined() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..40 {
        let case = draw(&mut random, 15, 80, 5);
        let (capacities, numbers) = (case.capacities(), case.numbers());
        let fair = rates(MaxMin, &case);
        for index in 0..fair.len() {
            assert!(is_limited(index, &fair, &capacities, &numbers), "{} of {fair:?}\n{case:?}", fair[index]);
        }
        let found: f64 = rates(MaximumSum, &case).iter().sum();
        let expected = oracle::largest_sum(&capacities, &numbers);
        assert!((found - expected).abs() <= 1e-9 * expected, "found {found}, expected {expected}\n{case:?}");
    }
}

#[test]
fn whole_rates_are_feasible_to_the_bit() {
    let mut random = fastrand::Rng::with_seed(8);
    for round in 0..600 {
        let case = draw(&mut random, 6, 20, 4);
        let rule = RULES[round % RULES.len()];
        let mut sharing = LinkSharing::new(rule, case.links.clone()).unwrap();
        sharing.change(&[], case.virtual_links.clone()).unwrap();
        for (one, rate) in sharing.rates() {
            assert!(rate >= one.minimum && one.maximum.is_none_or(|maximum| rate <= maximum), "{one:?}: {rate}");
            let exact = sharing.exact_rate(&one.name).unwrap();
            assert!((rate.0 as f64 - exact).abs() <= 1.0 + 1e-11 * exact, "{rule:?}: {} and {exact}", rate.0);
        }
        for link in &case.links {
            let through = sharing.rates().filter(|(one, _)| one.path.contains(&link.name));
            let load: u64 = through.map(|(_, rate)| rate.0).sum();
            assert!(load <= link.capacity.0, "{rule:?}: {load} on {link:?}");
        }
    }
}
