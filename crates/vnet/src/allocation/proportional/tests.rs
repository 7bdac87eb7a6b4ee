//! Checks the certificates on their own: prices and rates that meet the conditions of an optimum.
use super::super::component::ProblemMember;
use super::prices::{rates_at, residual};
use super::*;

/// Returns a drawn problem: up to `links` links and `members` members, rates of very different sizes.
fn drawn(random: &mut fastrand::Rng, links: usize, members: usize) -> SharingProblem {
    let links = random.usize(1..=links);
    let capacities: Vec<f64> = (0..links).map(|_| 10_f64.powf(random.f64() * 6.0 + 3.0).round()).collect();
    let mut room = capacities.clone();
    let members = (0..random.usize(1..=members)).map(|_| {
        let mut path: Vec<usize> = (0..links).collect();
        random.shuffle(&mut path);
        path.truncate(random.usize(1..=links.min(4)));
        let of_path = |rates: &[f64]| path.iter().map(|link| rates[*link]).fold(f64::INFINITY, f64::min);
        let lo = if random.bool() { (of_path(&room) * random.f64() * 0.5).floor() } else { 0.0 };
        path.iter().for_each(|link| room[*link] -= lo);
        let hi = lo + ((of_path(&capacities) - lo) * if random.bool() { 1.0 } else { random.f64() }).ceil();
        ProblemMember { lo, hi, weight: 10_f64.powf(random.f64() * 4.0 - 2.0), links: path }
    });
    let members = members.collect();
    SharingProblem { capacities, members }
}

#[test]
fn prices_certify_the_rates() {
    let mut random = fastrand::Rng::with_seed(27);
    for (count, links, members) in [(3000, 4, 8), (300, 20, 60), (5, 60, 400)] {
        for case in 0..count {
            let mut problem = drawn(&mut random, links, members);
            fix_members_without_room(&mut problem);
            let CertifiedRates { rates, prices } = proportional(problem.clone())
                .unwrap_or_else(|error| panic!("case {case} of {links} links: {error}\n{problem:?}"));
            assert!(prices.iter().all(|price| *price >= 0.0));
            let expected = rates_at(&problem, &prices);
            for ((member, rate), expected) in problem.members.iter().zip(&rates).zip(expected) {
                assert!((member.lo..=member.hi).contains(rate));
                assert!(
                    (rate - expected).abs() <= 1e-12 * expected,
                    "case {case}: {rate} at its prices, not {expected}"
                );
            }
            let miss = residual(&problem, &prices, &rates);
            assert!(miss <= 1e-11, "case {case}: the capacities are missed by {miss}");
        }
    }
}

#[test]
fn members_without_room_have_their_minimum() {
    let member = |lo: f64, links: &[usize]| ProblemMember { lo, hi: 10.0, weight: 1.0, links: links.to_vec() };
    let members = vec![member(6.0, &[0]), member(4.0, &[0]), member(0.0, &[0, 1]), member(1.0, &[1])];
    let problem = SharingProblem { capacities: vec![10.0, 8.0], members };
    assert_eq!(proportional(problem).unwrap().rates, [6.0, 4.0, 0.0, 8.0]);
}
