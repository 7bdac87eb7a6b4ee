//! Orders the packets of a switch with a profile by their arrival times.
//!
//! A pause of the engine (by the machine's host, or by another thread) must not change which flow entries a packet
//! matches. A packet that arrived before a change took effect is looked up before the change, a later one after it,
//! however late the engine runs. Frames of all ports are therefore sorted by arrival time, and delayed messages due
//! between two packets are released between them. Releases stop at the time up to which all arrivals are known.
use std::collections::VecDeque;
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_units::Instant;

/// Maximum lag of releases while a port has more frames than the engine takes. A longer lag would not improve the
/// order.
const MOST_BEHIND: Duration = Duration::from_millis(5);

/// A frame with its arrival time and its input port.
#[derive(Debug)]
pub(super) struct FrameArrival {
    pub(super) arrived_at: Instant,
    pub(super) port: PortNo,
    pub(super) frame: Frame,
}

/// Received frames that wait for their lookup, sorted by arrival time.
#[derive(Debug)]
pub(super) struct FrameArrivalQueue {
    waiting: VecDeque<FrameArrival>,
    is_sorted: bool,
    /// Time up to which all arrivals are known: a port may hold more frames, which arrived later.
    known: Instant,
}

impl Default for FrameArrivalQueue {
    fn default() -> Self {
        FrameArrivalQueue { waiting: VecDeque::new(), is_sorted: true, known: Instant::FAR }
    }
}

impl FrameArrivalQueue {
    pub(super) fn put(&mut self, arrival: FrameArrival) {
        self.is_sorted &= self.waiting.back().is_none_or(|last| last.arrived_at <= arrival.arrived_at);
        self.waiting.push_back(arrival);
    }

    /// States that the port read last may hold more frames, which arrived at `last` or later.
    pub(super) fn may_have_more(&mut self, last: Instant) {
        self.known = self.known.min(last);
    }

    /// Sorts the frames after all ports were read in a round that began at `now`. Returns the time up to which all
    /// arrivals are known.
    pub(super) fn sort(&mut self, now: Instant) -> Instant {
        if !std::mem::replace(&mut self.is_sorted, true) {
            // The sort is stable: frames of one port, and frames with equal times, keep their order.
            self.waiting.make_contiguous().sort_by_key(|arrival| arrival.arrived_at);
        }
        let behind = std::mem::replace(&mut self.known, Instant::FAR);
        now.min(behind.max(now - MOST_BEHIND))
    }

    /// Returns the arrival time of the next frame, if it is not after `seen`.
    pub(super) fn due(&self, seen: Instant) -> Option<Instant> {
        self.waiting.front().map(|arrival| arrival.arrived_at).filter(|came| *came <= seen)
    }

    /// Removes and returns the next frame.
    pub(super) fn next(&mut self) -> Option<FrameArrival> {
        self.waiting.pop_front()
    }

    /// Removes and returns the frames that arrived on a port that is gone.
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

    fn put(arrivals: &mut FrameArrivalQueue, port: u32, came: &[u64]) {
        came.iter().for_each(|at| {
            arrivals.put(FrameArrival { arrived_at: us(*at), port: PortNo(port), frame: Frame::from_bytes(&[0; 60]) });
        });
    }

    fn take(arrivals: &mut FrameArrivalQueue, seen: Instant) -> Vec<(u64, u32)> {
        let mut taken = Vec::new();
        while arrivals.due(seen).is_some() {
            taken.extend(arrivals.next().map(|one| (one.arrived_at.as_nanos() / 1000, one.port.0)));
        }
        taken
    }

    #[test]
    fn frames_of_all_ports_are_in_the_order_of_their_times() {
        let mut arrivals = FrameArrivalQueue::default();
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
        let mut arrivals = FrameArrivalQueue::default();
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
