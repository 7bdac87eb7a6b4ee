//! Rounds rates to whole bit/s that are feasible without any error.
use super::component::SharingProblem;

/// Share of a rate that is added before it is rounded down, so that 2.9999999999999996 becomes 3.
const ROUNDING: f64 = 1e-14;

/// Returns the rates rounded down to whole bit/s, within the bounds of the members.
///
/// Rates that are whole up to a rounding error keep their value. If a link is overloaded by this, its largest rate is
/// lowered by what is too much, at most to the minimum, and then the next one.
pub(super) fn whole_rates(problem: &SharingProblem, rates: &[f64]) -> Vec<u64> {
    let bounds: Vec<[u64; 2]> = problem.members.iter().map(|member| [member.lo, member.hi].map(whole)).collect();
    let rounded = |(rate, [lo, hi]): (&f64, &[u64; 2])| whole(rate * (1.0 + ROUNDING)).clamp(*lo, *hi);
    let mut rates: Vec<u64> = rates.iter().zip(&bounds).map(rounded).collect();
    for (link, members) in problem.members_of_links().iter().enumerate() {
        let load: u64 = members.iter().map(|member| rates[*member]).sum();
        let mut over = load.saturating_sub(whole(problem.capacities[link]));
        let mut largest = members.clone();
        largest.sort_by_key(|member| (std::cmp::Reverse(rates[*member]), *member));
        for member in largest {
            let less = over.min(rates[member] - bounds[member][0]);
            rates[member] -= less;
            over -= less;
        }
    }
    rates
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive and at most MAX_CAPACITY"
)]
fn whole(rate: f64) -> u64 {
    rate as u64
}

#[cfg(test)]
mod tests {
    use super::super::component::ProblemMember;
    use super::*;

    #[test]
    fn whole_rates_fit_to_the_bit() {
        let member = |lo, hi| ProblemMember { lo, hi, weight: 1.0, links: vec![0] };
        let members = vec![member(0.0, 9.0), member(0.0, 9.0), member(3.0, 9.0)];
        let problem = SharingProblem { capacities: vec![10.0], members };
        assert_eq!(whole_rates(&problem, &[3.5, 3.5, 3.0]), [3, 3, 3]);
        assert_eq!(whole_rates(&problem, &[2.999_999_999_999_999_6, 3.0, 3.0]), [3, 3, 3], "up to a rounding error");
        assert_eq!(whole_rates(&problem, &[4.0, 3.999_999_999_999_999_6, 3.0]), [3, 4, 3], "4 + 4 + 3 would not fit");
        assert_eq!(whole_rates(&problem, &[5.0, 5.0, 3.0]), [2, 5, 3], "and minima are kept");
    }
}
