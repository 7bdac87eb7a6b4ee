//! How long before it is due a packet is to be released, so that it leaves when it is due: handing it to a port of the kernel takes some microseconds, more where little
//! happens and caches are cold. A machine that keeps a schedule counts that in.
use std::time::Duration;
use weir_units::Instant;

/// No packet is released sooner than this before it is due.
const MOST_NS: u64 = 40_000;
/// It goes up slowly, by this part of what one took longer,
const UP: u64 = 16;
/// and down at once, half of the way: none is to leave before it is due.
const DOWN: u64 = 2;
/// One that took so much longer than what is known counts as that, since something else held it up.
const LONGER_NS: u64 = 4_000;

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Lead {
    ns: u64,
}

impl Lead {
    /// Handing one out took so long.
    pub(crate) fn note(&mut self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).min(self.ns + LONGER_NS).min(MOST_NS);
        if took_ns < self.ns {
            self.ns -= (self.ns - took_ns).div_ceil(DOWN);
        } else {
            self.ns += (took_ns - self.ns).div_ceil(UP);
        }
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.ns)
    }

    /// When what is due then is to be released.
    pub(crate) fn before(&self, due: Instant) -> Instant {
        if due == Instant::FAR { due } else { due - self.time() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_handing_out_takes_mostly() {
        let us = Duration::from_micros;
        let mut lead = Lead::default();
        assert_eq!((lead.before(Instant::FAR), lead.time()), (Instant::FAR, us(0)));
        (0..200).for_each(|at| lead.note(if at % 20 == 19 { us(5000) } else { us(12) }));
        assert!((us(11)..us(13)).contains(&lead.time()), "{lead:?}");
        assert_eq!(lead.before(Instant::from_nanos(1_000_000)) + lead.time(), Instant::from_nanos(1_000_000));
        (0..3).for_each(|_| lead.note(us(3)));
        assert!((us(3)..us(5)).contains(&lead.time()), "three are enough to go down: {lead:?}");
        (0..1000).for_each(|_| lead.note(us(5000)));
        assert!(lead.time() <= us(40), "{lead:?}");
    }
}
