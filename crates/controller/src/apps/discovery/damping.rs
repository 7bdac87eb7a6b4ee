//! Tells links that go down again and again from steady ones, so that the network does not change with each of them.
//!
//! Each loss of a link adds one to its penalty, which halves every [`HALF_LIFE`]. Above [`SUPPRESS`] the link is
//! damped: it is used only where no other way is. Below [`REUSE`] it is used as before.
//!
//! Source: RFC 2439, 4.2 (figure of merit, cut-off and reuse thresholds, ceiling).
use std::collections::BTreeMap;
use std::time::Duration;
use weir_units::Instant;

/// Time in which a penalty halves.
const HALF_LIFE: Duration = Duration::from_secs(15);
/// Penalty above which a link is damped: by the third loss within some seconds.
const SUPPRESS: f64 = 2.5;
/// Penalty below which it is no longer damped: 20 s after the third loss.
const REUSE: f64 = 1.0;
/// Largest penalty, so that a link is steady again after 45 s without a loss.
const CEILING: f64 = 8.0;
/// Penalty below which a link's past is forgotten.
const FORGOTTEN: f64 = 0.1;

/// Penalties of links.
#[derive(Debug)]
pub(super) struct LinkDamping<L> {
    penalties: BTreeMap<L, Penalty>,
}

impl<L> Default for LinkDamping<L> {
    fn default() -> Self {
        LinkDamping { penalties: BTreeMap::new() }
    }
}

#[derive(Debug, Clone, Copy)]
struct Penalty {
    figure: f64,
    at: Instant,
    is_damped: bool,
}

impl Penalty {
    fn figure(&self, now: Instant) -> f64 {
        self.figure * (-now.since(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64()).exp2()
    }
}

impl<L: Ord + Copy> LinkDamping<L> {
    /// Notes that a link was lost. Returns true if it is damped from now on, and was not before.
    pub(super) fn note_loss(&mut self, now: Instant, link: L) -> bool {
        let none = Penalty { figure: 0.0, at: now, is_damped: false };
        let penalty = self.penalties.entry(link).or_insert(none);
        let figure = (penalty.figure(now) + 1.0).min(CEILING);
        let begins = figure > SUPPRESS && !penalty.is_damped;
        *penalty = Penalty { figure, at: now, is_damped: penalty.is_damped || begins };
        begins
    }

    /// Returns the links that are no longer damped since the last call, and forgets what is long ago.
    pub(super) fn release(&mut self, now: Instant) -> Vec<L> {
        let mut released = Vec::new();
        self.penalties.retain(|link, penalty| {
            let figure = penalty.figure(now);
            if penalty.is_damped && figure < REUSE {
                penalty.is_damped = false;
                released.push(*link);
            }
            figure >= FORGOTTEN
        });
        released
    }

    /// Returns true if no link was lost lately.
    pub(super) fn is_empty(&self) -> bool {
        self.penalties.is_empty()
    }

    /// Returns true if a link is damped.
    pub(super) fn is_damped(&self, link: L) -> bool {
        self.penalties.get(&link).is_some_and(|penalty| penalty.is_damped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn the_third_loss_damps_and_time_releases() {
        let mut damping = LinkDamping::default();
        assert!(!damping.note_loss(at(0), 1) && !damping.note_loss(at(1), 1) && damping.note_loss(at(2), 1));
        assert!(damping.is_damped(1) && !damping.is_damped(2));
        assert!(!damping.note_loss(at(3), 1), "it is damped already");
        assert!(damping.release(at(20)).is_empty());
        assert_eq!(damping.release(at(40)), [1]);
        assert!(!damping.is_damped(1) && damping.release(at(41)).is_empty());
    }

    #[test]
    fn rare_losses_do_not_damp_and_a_ceiling_bounds_the_time() {
        let mut damping = LinkDamping::default();
        assert!((0..100).all(|loss| !damping.note_loss(at(loss * 20), 1)));
        (0..1000).for_each(|_| _ = damping.note_loss(at(2000), 2));
        assert!(damping.release(at(2044)).is_empty());
        assert_eq!(damping.release(at(2046)), [2]);
        damping.release(at(3000));
        assert!(damping.is_empty(), "all is forgotten");
    }
}
