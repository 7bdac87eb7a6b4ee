//! Computes how early a packet is released so that it leaves when it is due. Handing a packet to a kernel port takes
//! some microseconds, and more after a silence, when caches are cold. Messages are released early, too, because
//! another thread has to wake up for them.
use std::time::Duration;
use weir_units::Instant;

/// Divisor of the difference by which the lead follows an exactly known duration, in both directions.
const FOLLOWS: u64 = 4;
/// Divisor of the difference by which the lead rises towards an upper bound of the duration.
const UP: u64 = 8;
/// Divisor of the difference by which the lead falls towards an upper bound: the smallest durations are the most
/// reliable.
const DOWN: u64 = 2;
/// Largest lead learned from upper bounds, in nanoseconds: a call that wakes up the packet's receiver takes about 30
/// us, most of it after the packet arrived.
const UNTOLD_NS: u64 = 12_000;
/// Length of a silence below which silences are not distinguished, in nanoseconds.
const SHORT_NS: u64 = 128_000;
/// Number of classes of silences. Each covers twice the length of the previous one; the last class is a quarter of a
/// second and longer.
const SILENCES: usize = 12;

/// Duration of handing something out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendDuration {
    /// Exact duration until it left.
    Exactly(Duration),
    /// Upper bound, which includes time after it left.
    AtMost(Duration),
}

/// Lead before the due time, learned from the durations of handing out.
#[derive(Debug)]
pub(crate) struct SendLatency {
    /// Lead in nanoseconds for each class of silences; none while unknown.
    after: [Option<u64>; SILENCES],
    /// Time at which something was last handed out.
    last: Instant,
    bounds: SendLatencyBounds,
}

/// Limits of what a duration may teach, in nanoseconds.
#[derive(Debug)]
struct SendLatencyBounds {
    /// Largest lead that is learned.
    most: u64,
    /// Largest lead learned from upper bounds.
    untold: u64,
    /// Most by which a duration may exceed the known one; larger excess is due to other causes and is cut off.
    longer: u64,
}

impl SendLatency {
    /// Creates the lead of packets, which the thread itself hands to the kernel: after 10 ms of silence they leave
    /// about 20 us later.
    pub(crate) fn of_packets() -> SendLatency {
        SendLatency::within(SendLatencyBounds { most: 60_000, untold: UNTOLD_NS, longer: 8_000 })
    }

    /// Creates the lead of messages, which another thread writes.
    pub(crate) fn of_messages() -> SendLatency {
        SendLatency::within(SendLatencyBounds { most: 150_000, untold: 150_000, longer: 60_000 })
    }

    fn within(bounds: SendLatencyBounds) -> SendLatency {
        SendLatency { after: [None; SILENCES], last: Instant::ZERO, bounds }
    }

    /// Records the duration of handing something out, which ended at `until`.
    pub(crate) fn note(&mut self, until: Instant, took: SendDuration) {
        let (SendDuration::Exactly(time) | SendDuration::AtMost(time)) = took;
        let place = self.place(until - time);
        let known = self.after(place);
        let (most, up, down) = match took {
            SendDuration::Exactly(_) => (self.bounds.most, FOLLOWS, FOLLOWS),
            // The cap for upper bounds does not reduce a larger known lead.
            SendDuration::AtMost(_) => (self.bounds.untold.max(known), UP, DOWN),
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

    /// Returns the lead of an item due at `due`.
    pub(crate) fn time(&self, due: Instant) -> Duration {
        Duration::from_nanos(self.after(self.place(due)))
    }

    /// Returns the release time of an item due at `due`.
    pub(crate) fn before(&self, due: Instant) -> Instant {
        if due == Instant::FAR { due } else { due - self.time(due) }
    }

    /// Returns the lead for a class of silences, or for the next shorter class that is known.
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
    use SendDuration::{AtMost, Exactly};

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// Hands something out every `every`, with these durations.
    fn each(lead: &mut SendLatency, every: Duration, took: impl IntoIterator<Item = SendDuration>) -> Duration {
        for took in took {
            let (Exactly(time) | AtMost(time)) = took;
            lead.note(lead.last + every + time, took);
        }
        lead.time(lead.last + every)
    }

    #[test]
    fn it_is_what_handing_out_takes_mostly() {
        let mut lead = SendLatency::of_packets();
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
            each(&mut SendLatency::of_messages(), us(100), [AtMost(us(50))]),
            us(50),
            "the first is believed, as far as it can be"
        );
    }

    #[test]
    fn what_follows_silence_is_known_by_itself() {
        let mut lead = SendLatency::of_packets();
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
