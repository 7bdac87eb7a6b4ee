//! How long before it is due a packet is to be released, so that it leaves when it is due: handing it to a port of the kernel takes some microseconds, more the
//! longer nothing was handed out and caches went cold. A machine that keeps a schedule counts that in. So with messages, for which another thread is to wake up.
use std::time::Duration;
use weir_units::Instant;

/// It follows what is known exactly by this part of the difference, up and down.
const FOLLOWS: u64 = 4;
/// Of what is known to be no more it goes up by this part,
const UP: u64 = 8;
/// and down by this part: what took least counts most.
const DOWN: u64 = 2;
/// What handing a packet out takes at most, where it is not known exactly: a call that wakes up whoever waits for the packet takes some 30 us, most of them after the
/// packet came.
const UNTOLD_NS: u64 = 12_000;
/// Silences shorter than this are alike,
const SHORT_NS: u64 = 128_000;
/// and so are those between this and twice as long, and so on so often: the last are a quarter of a second and longer.
const SILENCES: usize = 12;

/// How long handing something out took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Took {
    /// So long, until it left.
    Exactly(Duration),
    /// No longer: what came after it left is in it.
    AtMost(Duration),
}

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Lead {
    /// In nanoseconds, after each length of silence; none as long as it is not known.
    after: [Option<u64>; SILENCES],
    /// When something was last handed out.
    last: Instant,
    bounds: Bounds,
}

/// What can be held against a machine, in nanoseconds.
#[derive(Debug)]
struct Bounds {
    /// Nothing is released sooner than this before it is due.
    most: u64,
    /// The same of what is not known exactly.
    untold: u64,
    /// One that took so much longer than what is known counts as that, since something else held it up.
    longer: u64,
}

impl Lead {
    /// Of packets, which the thread itself hands to the kernel: after 10 ms of silence they leave some 20 us later.
    pub(crate) fn of_packets() -> Lead {
        Lead::within(Bounds { most: 60_000, untold: UNTOLD_NS, longer: 8_000 })
    }

    /// Of messages, which another thread writes.
    pub(crate) fn of_messages() -> Lead {
        Lead::within(Bounds { most: 150_000, untold: 150_000, longer: 60_000 })
    }

    fn within(bounds: Bounds) -> Lead {
        Lead { after: [None; SILENCES], last: Instant::ZERO, bounds }
    }

    /// Handing something out took so long, until then.
    pub(crate) fn note(&mut self, until: Instant, took: Took) {
        let (Took::Exactly(time) | Took::AtMost(time)) = took;
        let place = self.place(until - time);
        let known = self.after(place);
        let (most, up, down) = match took {
            Took::Exactly(_) => (self.bounds.most, FOLLOWS, FOLLOWS),
            // That it may have been more than what is known exactly of others says nothing against that.
            Took::AtMost(_) => (self.bounds.untold.max(known), UP, DOWN),
        };
        let took_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let took_ns = took_ns.min(known + self.bounds.longer).min(most);
        let moved = match self.after[place] {
            None => took_ns,
            Some(_) if took_ns < known => known - (known - took_ns).div_ceil(down),
            Some(_) => known + (took_ns - known).div_ceil(up),
        };
        self.after[place] = Some(moved);
        self.last = until;
    }

    /// How long before it is due what is due then is to be released.
    pub(crate) fn time(&self, due: Instant) -> Duration {
        Duration::from_nanos(self.after(self.place(due)))
    }

    /// When what is due then is to be released.
    pub(crate) fn before(&self, due: Instant) -> Instant {
        if due == Instant::FAR { due } else { due - self.time(due) }
    }

    /// What is known of such a silence, or of the next shorter one of which something is.
    fn after(&self, place: usize) -> u64 {
        self.after[..=place].iter().rev().find_map(|known| *known).unwrap_or(0)
    }

    fn place(&self, at: Instant) -> usize {
        let silent_ns = u64::try_from(at.since(self.last).as_nanos()).unwrap_or(u64::MAX);
        let doubled = (silent_ns / SHORT_NS).checked_ilog2().map_or(0, |log| log as usize + 1);
        doubled.min(SILENCES - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Took::{AtMost, Exactly};

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// Something is handed out each `every`, and takes so long.
    fn each(lead: &mut Lead, every: Duration, took: impl IntoIterator<Item = Took>) -> Duration {
        for took in took {
            let (Exactly(time) | AtMost(time)) = took;
            lead.note(lead.last + every + time, took);
        }
        lead.time(lead.last + every)
    }

    #[test]
    fn it_is_what_handing_out_takes_mostly() {
        let mut lead = Lead::of_packets();
        assert_eq!((lead.before(Instant::FAR), lead.time(Instant::ZERO)), (Instant::FAR, us(0)));
        let held_up = |at: u64, or: Duration| if at % 20 == 9 { us(5000) } else { or };
        let known = each(&mut lead, us(100), (0..200).map(|at| AtMost(held_up(at, us(10)))));
        assert!((us(9)..us(11)).contains(&known), "{lead:?}");
        let due = lead.last + us(50);
        assert_eq!(lead.before(due) + known, due);
        let known = each(&mut lead, us(100), [AtMost(us(3)); 3]);
        assert!((us(3)..us(5)).contains(&known), "three are enough to go down: {lead:?}");
        let known = each(&mut lead, us(100), [AtMost(us(5000)); 1000]);
        assert!(known <= us(12), "{lead:?}");
        let known = each(&mut lead, us(100), (0..200).map(|at| Exactly(held_up(at, us(18 + at % 5)))));
        assert!((us(18)..us(23)).contains(&known), "in the middle of what they took: {lead:?}");
        assert_eq!(each(&mut lead, us(100), [AtMost(us(30)); 100]), known, "no more than 30 is no less than these");
        assert!(each(&mut lead, us(100), [AtMost(us(3)); 3]) < us(6), "no more than 3 is less");
        let known = each(&mut lead, us(100), [Exactly(us(5000)); 1000]);
        assert!(known <= us(60), "{lead:?}");
        assert_eq!(
            each(&mut Lead::of_messages(), us(100), [AtMost(us(50))]),
            us(50),
            "the first is believed, as far as it can be"
        );
    }

    #[test]
    fn what_follows_silence_is_known_by_itself() {
        let mut lead = Lead::of_packets();
        let busy = each(&mut lead, us(100), [Exactly(us(4)); 50]);
        let silent = each(&mut lead, us(10_000), [Exactly(us(21)); 20]);
        assert!((us(3)..us(5)).contains(&busy), "{lead:?}");
        assert!((us(20)..us(22)).contains(&silent), "{lead:?}");
        let known = |silence: Duration| lead.time(lead.last + silence);
        assert_eq!(known(us(100)), busy, "the one is not changed by the other");
        assert_eq!(
            (known(us(1000)), known(us(500_000))),
            (busy, silent),
            "the next shorter silence says it of those that are not known"
        );
    }
}
