//! Says when which port is probed: at once when it comes up, and then in turn, evenly over the interval.
//!
//! Turns go by port number first, so that the probes of one switch are spread, too. With so many ports that the largest
//! rate is reached, the interval is longer. Ports that come up take turns with the others, so that neither wait for
//! long.
//!
//! Time without probes does not count for links: after a pause of the controller, a link has as many probes left as
//! before.
use crate::ConnectionId;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_units::Instant;

/// Shortest time between two probes by one port.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// Most probes sent at once, and the part of a second in which at most as many are sent at once as the rate allows.
const SENT_AT_ONCE: usize = 64;
const BATCHES_PER_S: u32 = 100;
/// Batches of an interval, and bounds of the time between them: each wakes the controller.
const BATCHES_PER_INTERVAL: u32 = 100;
const MIN_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(10);

/// Order in which ports are probed.
#[derive(Debug)]
pub(super) struct ProbeSchedule {
    /// Time between two probes by one port, unless there are too many ports.
    interval: Duration,
    max_per_s: u32,
    ports: BTreeSet<Turn>,
    /// Ports that are probed before their turn.
    urgent: BTreeSet<Turn>,
    was_urgent: bool,
    /// Port that had the last turn.
    last: Option<Turn>,
    /// Time of the next turn.
    next_turn: Instant,
    /// Time from which on turns are taken, so that several come together.
    next_batch: Instant,
    /// Time from which on the rate allows more.
    free_at: Instant,
    probing: Duration,
}

type Turn = (PortNo, ConnectionId);

impl ProbeSchedule {
    pub(super) fn new(interval: Duration, max_per_s: u32) -> ProbeSchedule {
        let [next_turn, next_batch, free_at] = [Instant::ZERO; 3];
        ProbeSchedule {
            interval: interval.max(MIN_INTERVAL),
            max_per_s: max_per_s.max(1),
            ports: BTreeSet::new(),
            urgent: BTreeSet::new(),
            was_urgent: false,
            last: None,
            next_turn,
            next_batch,
            free_at,
            probing: Duration::ZERO,
        }
    }

    /// Returns the configured time between two probes by one port.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the time between two probes by one port with the present number of ports.
    pub(super) fn stretched_interval(&self) -> Duration {
        self.between_turns() * self.n_ports()
    }

    /// Returns how long ports were probed: one configured interval for each time that all have had a turn.
    pub(super) fn probing(&self) -> Duration {
        self.probing
    }

    /// Adds a port, which is probed at once.
    pub(super) fn add(&mut self, now: Instant, id: ConnectionId, port: PortNo) {
        let was_empty = self.ports.is_empty();
        self.ports.insert((port, id));
        self.urgent.insert((port, id));
        let soon = now + self.between_turns();
        self.next_turn = if was_empty { now } else { self.next_turn.min(soon) };
        self.next_batch = self.next_batch.min(soon + self.pause());
    }

    /// Has a port probed before its turn.
    pub(super) fn hasten(&mut self, id: ConnectionId, port: PortNo) {
        if self.ports.contains(&(port, id)) {
            self.urgent.insert((port, id));
        }
    }

    pub(super) fn remove(&mut self, id: ConnectionId, port: PortNo) {
        self.ports.remove(&(port, id));
        self.urgent.remove(&(port, id));
    }

    /// Removes all ports of a switch.
    pub(super) fn remove_switch(&mut self, id: ConnectionId) {
        self.ports.retain(|(_, of)| *of != id);
        self.urgent.retain(|(_, of)| *of != id);
    }

    /// Returns the time of the next call of [`ProbeSchedule::take_due`]; `None` without ports.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        let turns = if self.urgent.is_empty() { self.next_turn.max(self.next_batch) } else { Instant::ZERO };
        (!self.ports.is_empty()).then(|| turns.max(self.free_at))
    }

    /// Returns the ports to probe now.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(ConnectionId, PortNo)> {
        if self.free_at > now {
            return Vec::new();
        }
        // What was missed longer ago is not made up for.
        self.next_turn = self.next_turn.max(now - self.stretched_interval());
        let takes_turns = self.next_batch <= now;
        let most = usize::try_from(self.max_per_s / BATCHES_PER_S).unwrap_or(SENT_AT_ONCE).clamp(1, SENT_AT_ONCE);
        let mut due = Vec::new();
        while due.len() < most {
            let has_turn = takes_turns && self.next_turn <= now;
            let urgent = if has_turn && self.was_urgent { None } else { self.urgent.pop_first() };
            self.was_urgent = urgent.is_some();
            let Some((port, id)) = urgent.or_else(|| has_turn.then(|| self.take_turn()).flatten()) else { break };
            due.push((id, port));
        }
        let n_due = u32::try_from(due.len()).unwrap_or(u32::MAX);
        self.free_at = now + self.between_probes() * n_due;
        if takes_turns && self.next_turn > now {
            self.next_batch = now + self.pause();
        }
        due
    }

    /// Returns the port whose turn it is.
    fn take_turn(&mut self) -> Option<Turn> {
        let later = self.last.and_then(|last| self.ports.range((Excluded(last), Unbounded)).next());
        let turn = *later.or_else(|| self.ports.first())?;
        self.last = Some(turn);
        self.urgent.remove(&turn);
        self.next_turn += self.between_turns();
        self.probing += self.interval / self.n_ports();
        Some(turn)
    }

    fn n_ports(&self) -> u32 {
        u32::try_from(self.ports.len()).unwrap_or(u32::MAX).max(1)
    }

    fn between_turns(&self) -> Duration {
        (self.interval / self.n_ports()).max(self.between_probes())
    }

    /// Returns the least time for a probe by the largest rate.
    fn between_probes(&self) -> Duration {
        Duration::from_secs(1) / self.max_per_s
    }

    fn pause(&self) -> Duration {
        (self.interval / BATCHES_PER_INTERVAL).clamp(MIN_PAUSE, MAX_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Returns the times at which each port is probed until `until`, in nanoseconds.
    fn run(schedule: &mut ProbeSchedule, until: Instant) -> BTreeMap<(ConnectionId, PortNo), Vec<u64>> {
        let mut times = BTreeMap::<_, Vec<u64>>::new();
        while let Some(at) = schedule.next_wake().filter(|at| *at <= until) {
            let due = schedule.take_due(at);
            assert!(due.len() <= SENT_AT_ONCE);
            due.into_iter().for_each(|port| times.entry(port).or_default().push(at.as_nanos()));
        }
        times
    }

    fn with_ports(interval_ms: u64, max_per_s: u32, switches: u64, ports: u32) -> ProbeSchedule {
        let mut schedule = ProbeSchedule::new(Duration::from_millis(interval_ms), max_per_s);
        for id in 1..=switches {
            (1..=ports).for_each(|port| schedule.add(Instant::from_nanos(0), ConnectionId(id), PortNo(port)));
        }
        schedule
    }

    #[test]
    fn ports_are_probed_at_once_and_then_evenly() {
        for (interval_ms, switches, ports) in [(10, 1, 1), (100, 20, 10), (5000, 3, 4)] {
            let mut schedule = with_ports(interval_ms, 20_000, switches, ports);
            let times = run(&mut schedule, Instant::from_nanos(interval_ms * 10_000_000));
            assert_eq!(times.len() as u64, switches * u64::from(ports));
            let latest_ns = interval_ms * 1_000_000 + 2 * u64::from(schedule.pause().subsec_nanos());
            let mut all: Vec<_> = times.values().flatten().copied().collect();
            all.sort_unstable();
            for (port, times) in times {
                assert!(times[0] <= 20_000_000, "{port:?} at once: {times:?}");
                let gaps: Vec<_> = times.windows(2).map(|two| two[1] - two[0]).collect();
                assert!(gaps.iter().all(|gap| *gap <= latest_ns), "{port:?}: {gaps:?}");
                assert!((10..=12).contains(&times.len()), "{port:?}: {times:?}");
            }
            // In no tenth of an interval are there many more than a tenth of the probes.
            let later = all.partition_point(|at| *at < interval_ms * 1_000_000);
            let n_ports = schedule.ports.len();
            for from in later..all.len() {
                let until = all[from] + interval_ms * 100_000;
                let n = all[from..].partition_point(|at| *at < until);
                assert!(n <= n_ports / 10 + n_ports / 20 + 3, "{n} of {n_ports} from {}", all[from]);
            }
        }
    }

    #[test]
    fn no_more_are_sent_than_the_rate_allows_and_all_have_their_turn() {
        let mut schedule = with_ports(10, 1000, 40, 50);
        assert_eq!(schedule.stretched_interval(), Duration::from_secs(2));
        let times = run(&mut schedule, Instant::from_nanos(20_000_000_000));
        let n: usize = times.values().map(Vec::len).sum();
        assert!((19_900..=20_100).contains(&n), "{n} in 20 s");
        assert!(times.values().all(|times| (9..=12).contains(&times.len())), "each port in turn");
    }

    #[test]
    fn ports_that_come_up_all_the_time_take_turns_with_the_others() {
        let mut schedule = with_ports(100, 1000, 10, 10);
        run(&mut schedule, Instant::from_nanos(1_000_000_000));
        let (mut flapping, mut steady, before) = (0, 0, schedule.probing());
        for ms in 1000..2000 {
            let now = Instant::from_nanos(ms * 1_000_000);
            (1..=10).for_each(|port| schedule.add(now, ConnectionId(1), PortNo(port)));
            for (id, _) in schedule.take_due(now) {
                *if id == ConnectionId(1) { &mut flapping } else { &mut steady } += 1;
            }
        }
        assert!((400..=500).contains(&steady) && (500..=600).contains(&flapping), "{steady} {flapping}");
        let probing = schedule.probing() - before;
        assert!((450..=600).contains(&probing.as_millis()), "turns took twice as long: {probing:?}");
    }

    #[test]
    fn a_pause_of_the_controller_is_no_time_of_probing() {
        let mut schedule = with_ports(100, 20_000, 1, 4);
        run(&mut schedule, Instant::from_nanos(1_000_000_000));
        let before = schedule.probing();
        let late = Instant::from_nanos(5_000_000_000);
        assert!(schedule.take_due(late).len() <= 5, "one interval is made up for");
        assert!(schedule.probing() - before <= Duration::from_millis(125));
        run(&mut schedule, late + Duration::from_secs(1));
        let probing = schedule.probing() - before;
        assert!((Duration::from_millis(1000)..=Duration::from_millis(1150)).contains(&probing), "{probing:?}");
    }

    #[test]
    fn ports_that_are_gone_are_not_probed() {
        let mut schedule = with_ports(100, 20_000, 2, 2);
        schedule.remove_switch(ConnectionId(1));
        schedule.remove(ConnectionId(2), PortNo(1));
        schedule.hasten(ConnectionId(1), PortNo(1));
        let times = run(&mut schedule, Instant::from_nanos(1_000_000_000));
        assert_eq!(times.into_keys().collect::<Vec<_>>(), [(ConnectionId(2), PortNo(2))]);
        schedule.remove(ConnectionId(2), PortNo(2));
        assert_eq!(schedule.next_wake(), None);
    }
}
