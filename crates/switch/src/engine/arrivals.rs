//! What came to a switch with a profile, in the order in which it came.
//!
//! Whoever stops the engine for a while (the machine's host, another thread) must not change what packets meet: one that came before a change took effect is looked
//! up before it, and one that came after it behind it, however late the engine looks. So what came in on all ports is put in the order of its times, and what was
//! due between two packets is released between them. Nothing is released beyond the time up to which all that came is known.
use std::collections::VecDeque;
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_units::Instant;

/// How far releases are behind at most where a port has more frames than the engine takes: keeping them back for longer helps nobody.
const MOST_BEHIND: Duration = Duration::from_millis(5);

/// A frame, when it came and where.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) came: Instant,
    pub(super) port: PortNo,
    pub(super) frame: Frame,
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Arrivals {
    waiting: VecDeque<Arrival>,
    is_sorted: bool,
    /// A port may have more frames, which came after this.
    known: Instant,
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals { waiting: VecDeque::new(), is_sorted: true, known: Instant::FAR }
    }
}

impl Arrivals {
    pub(super) fn put(&mut self, arrival: Arrival) {
        self.is_sorted &= self.waiting.back().is_none_or(|last| last.came <= arrival.came);
        self.waiting.push_back(arrival);
    }

    /// The port whose frames were put last may have more, which came no sooner than then.
    pub(super) fn may_have_more(&mut self, last: Instant) {
        self.known = self.known.min(last);
    }

    /// All ports have been asked in a round that began at `now`: puts what came in order. Up to when all of it is known.
    pub(super) fn sort(&mut self, now: Instant) -> Instant {
        if !std::mem::replace(&mut self.is_sorted, true) {
            // Frames of one port, and those that came at one time, keep their order.
            self.waiting.make_contiguous().sort_by_key(|arrival| arrival.came);
        }
        let behind = std::mem::replace(&mut self.known, Instant::FAR);
        now.min(behind.max(now - MOST_BEHIND))
    }

    /// When the next one came, if it came by then.
    pub(super) fn due(&self, seen: Instant) -> Option<Instant> {
        self.waiting.front().map(|arrival| arrival.came).filter(|came| *came <= seen)
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Option<Arrival> {
        self.waiting.pop_front()
    }

    /// A port is gone: takes out what came in by it.
    pub(super) fn forget(&mut self, port: PortNo) -> Vec<Frame> {
        let waiting = std::mem::take(&mut self.waiting);
        let (gone, kept): (VecDeque<_>, _) = waiting.into_iter().partition(|arrival| arrival.port == port);
        self.waiting = kept;
        gone.into_iter().map(|arrival| arrival.frame).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    fn put(arrivals: &mut Arrivals, port: u32, came: &[u64]) {
        came.iter().for_each(|at| {
            arrivals.put(Arrival { came: us(*at), port: PortNo(port), frame: Frame::from_bytes(&[0; 60]) });
        });
    }

    fn take(arrivals: &mut Arrivals, seen: Instant) -> Vec<(u64, u32)> {
        let mut taken = Vec::new();
        while arrivals.due(seen).is_some() {
            taken.extend(arrivals.next().map(|one| (one.came.as_nanos() / 1000, one.port.0)));
        }
        taken
    }

    #[test]
    fn frames_of_all_ports_are_in_the_order_of_their_times() {
        let mut arrivals = Arrivals::default();
        put(&mut arrivals, 1, &[10, 20, 30]);
        put(&mut arrivals, 2, &[5, 20, 41]);
        let seen = arrivals.sort(us(40));
        assert_eq!(seen, us(40));
        assert_eq!(take(&mut arrivals, seen), [(5, 2), (10, 1), (20, 1), (20, 2), (30, 1)]);
        assert!(!arrivals.is_empty(), "one came while ports were asked: others may have come before it");
        put(&mut arrivals, 1, &[40]);
        let seen = arrivals.sort(us(50));
        assert_eq!((take(&mut arrivals, seen), arrivals.is_empty()), (vec![(40, 1), (41, 2)], true));
    }

    #[test]
    fn nothing_is_known_beyond_what_a_port_still_holds() {
        let mut arrivals = Arrivals::default();
        put(&mut arrivals, 1, &[100, 200]);
        arrivals.may_have_more(us(200));
        put(&mut arrivals, 2, &[150, 250]);
        let seen = arrivals.sort(us(300));
        assert_eq!((seen, take(&mut arrivals, seen)), (us(200), vec![(100, 1), (150, 2), (200, 1)]));
        let seen = arrivals.sort(us(310));
        assert_eq!((seen, take(&mut arrivals, seen)), (us(310), vec![(250, 2)]), "it was asked again");
        put(&mut arrivals, 3, &[320, 330]);
        put(&mut arrivals, 4, &[325]);
        assert_eq!(arrivals.forget(PortNo(3)).len(), 2);
        assert_eq!(take(&mut arrivals, us(400)), [(325, 4)]);
        arrivals.may_have_more(us(400));
        assert_eq!(arrivals.sort(us(20_000)), us(15_000), "who is too far behind holds nobody up for ever");
    }
}
