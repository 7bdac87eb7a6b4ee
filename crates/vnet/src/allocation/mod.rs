//! Allocates rates to virtual links that share the links of a substrate.
//!
//! # What is allocated
//! A virtual link `v` occupies each substrate link of its path with its rate `r(v)`. It has a guaranteed minimum
//! `m(v)`, an allowed maximum `M(v)` and a weight `w(v)`. Rates are feasible if
//!
//! ```text
//! m(v) <= r(v) <= M(v)                       for each virtual link v
//! sum of r(v) over the v through l <= C(l)   for each substrate link l of capacity C(l)
//! ```
//!
//! Feasible rates exist if and only if the minima fit: no substrate link has less capacity than the sum of the minima
//! of its virtual links. Requests that break this are refused with each such link and what it lacks
//! ([`AllocationError::Shortage`]). A maximum that is not given is the smallest capacity of the path.
//!
//! # Which feasible rates are chosen
//! [`SharingRule`] has three rules. Each has one solution, whatever the order in which virtual links were inserted:
//!
//! 1. [`SharingRule::MaximumSum`] maximises the sum of all rates, and then, among all rates with this sum, takes the
//!    max-min fair ones of `r(v) / w(v)`. This is the programme 5.1 of Anhalt (2011, section 5.2.4), completed: the
//!    programme as printed bounds each minimum by what the other rates leave of the capacity, which does not imply
//!    that the rates add up to at most the capacity; and its published example (Table 5.1) has several optima, of which
//!    the printed one is the max-min fair one.
//! 2. [`SharingRule::MaxMin`] takes the max-min fair values of `r(v) / w(v)` among all feasible rates: none of them can
//!    rise unless one that is not larger falls (Bertsekas and Gallager, 1992, section 6.5.2; with minima, Radunović and
//!    Le Boudec, 2007).
//! 3. [`SharingRule::ProportionalFair`] maximises the sum of `w(v) log r(v)` (Kelly, Maulloo and Tan, 1998). Virtual
//!    links that cannot have more than a minimum of 0 are left out of this sum.
//!
//! On a single substrate link all three give the same rates: `w(v)` times a common level, raised to the minimum or
//! lowered to the maximum where necessary, with the highest level that fits.
//!
//! # How exact the rates are
//! [`LinkSharing::exact_rate`] returns the solution in bit/s as a floating-point number. Tests compare it with
//! independent solvers to 1e-9 of each rate. The reasons why it is that exact:
//!
//! - Capacities, minima and maxima are whole numbers of at most [`MAX_CAPACITY`], so that sums of them have no rounding
//!   error.
//! - Rates of the first two rules are bounds, or a level in closed form: a few sums and one division. The largest sum
//!   is checked against the simplex method's.
//! - Prices of links certify the rates of the third rule: they are the exact optimum of a substrate whose capacities
//!   differ by at most one part in 10^12 from the given ones. The iteration ends when this is so, and not after a
//!   number of steps; if it never is, [`AllocationError::Uncertified`] says so.
//!
//! [`LinkSharing::rate`] returns the rate in whole bit/s, rounded down, for devices. These rates are feasible without
//! any error.
//!
//! # What is calculated anew
//! Virtual links depend on each other if they share a substrate link that their maxima could fill. A change calculates
//! only the virtual links that depend on a changed one, directly or over others.
mod component;
mod error;
mod link_sharing;
mod max_min;
mod max_sum;
mod proportional;
mod request;
mod tableau;
mod whole;

pub use error::{AllocationError, CapacityShortage};
pub use link_sharing::{LinkSharing, RateChanges};
pub use request::{SubstrateLink, VirtualLink};

/// Largest capacity of a substrate link: 100 Tbit/s.
pub const MAX_CAPACITY: weir_units::Bps = weir_units::Bps(100_000_000_000_000);
/// Smallest and largest weight of a virtual link.
pub const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;
/// Maximum number of substrate links, and of virtual links.
pub const MAX_LINKS: usize = 100_000;
/// Maximum number of virtual links that depend on each other, times the number of substrate links that join them.
pub const MAX_DEPENDENCIES: usize = 4_000_000;

/// Rule that chooses among feasible rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SharingRule {
    /// The largest sum of all rates; among rates with this sum, those that are max-min fair by weight.
    MaximumSum,
    /// Max-min fairness by weight.
    MaxMin,
    /// Proportional fairness by weight.
    ProportionalFair,
}

/// Returns the rates of virtual links in bit/s, in their order.
///
/// # Errors
/// The minima do not fit, or a request is malformed.
pub fn allocate(
    rule: SharingRule,
    links: impl IntoIterator<Item = SubstrateLink>,
    virtual_links: &[VirtualLink],
) -> Result<Vec<f64>, AllocationError> {
    let mut sharing = LinkSharing::new(rule, links)?;
    sharing.change(&[], virtual_links.to_vec())?;
    Ok(virtual_links.iter().filter_map(|virtual_link| sharing.exact_rate(&virtual_link.name)).collect())
}
