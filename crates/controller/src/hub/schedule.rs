//! Decides whose messages are handled next: deficit round robin over what they cost.
//!
//! 1. Each switch has a credit in nanoseconds. What is done for it takes from the credit: reading its messages,
//!    handling them, dropping them. A switch that sends a hundred times as much pays for its drops itself.
//! 2. A switch whose credit is used up goes behind all others that wait, and gets a quantum when its turn comes again.
//! 3. A switch that begins to have work goes in front of those that have used a quantum. A switch that sends little is
//!    so served within the turns of the others that also begin, however long the queues of the rest are.
//! 4. A switch without work leaves. Debt stays until quanta have paid it. If it begins again before all that wait have
//!    had their turn, it has what is left of its credit, and no new quantum: otherwise a switch that sends a little
//!    less than its share would get more than one that sends a little more.
//!
//! Sources: M. Shreedhar and G. Varghese, Efficient Fair Queuing Using Deficit Round-Robin, IEEE/ACM Transactions on
//! Networking 4 (3), 1996; for switches that begin, RFC 8290, 4.2 (new and old queues).
use crate::ConnectionId;
use std::collections::VecDeque;

/// Credit that a switch gets for a turn: some fifty packet-ins, enough that one write carries many answers.
pub(super) const QUANTUM_NS: i64 = 30_000;
/// Debt from which on a switch is not read from, as a multiple of the quantum.
const MAX_DEBT_QUANTA: i64 = 8;

/// State of a switch in the schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SwitchTurn {
    credit_ns: i64,
    place: TurnPlace,
    /// Round for which it got its last quantum.
    round: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TurnPlace {
    #[default]
    Idle,
    Fresh,
    Waiting,
}

impl SwitchTurn {
    /// Takes the cost of something done for the switch from its credit.
    pub(super) fn charge(&mut self, cost_ns: i64) {
        self.credit_ns -= cost_ns;
    }

    pub(super) fn has_credit(&self) -> bool {
        self.credit_ns > 0
    }

    /// Returns false if the switch has used so much more than its share that it is not read from for now.
    pub(super) fn may_be_read(&self) -> bool {
        self.credit_ns > -MAX_DEBT_QUANTA * QUANTUM_NS
    }
}

/// Order of the switches that have work.
#[derive(Debug)]
pub(super) struct Schedule {
    /// Switches that have begun to have work.
    fresh: VecDeque<ConnectionId>,
    waiting: VecDeque<ConnectionId>,
    /// Number of the round, from 1. In each round all switches that wait at its beginning have a turn.
    round: u64,
    /// Number of these that have not had it.
    left_in_round: usize,
}

impl Schedule {
    pub(super) fn new() -> Schedule {
        Schedule { fresh: VecDeque::new(), waiting: VecDeque::new(), round: 1, left_in_round: 0 }
    }

    /// Adds a switch that has work, unless it is there.
    pub(super) fn begin(&mut self, id: ConnectionId, turn: &mut SwitchTurn) {
        if turn.place != TurnPlace::Idle {
            return;
        }
        if self.left_in_round == 0 {
            self.begin_round();
        }
        let is_new = turn.round != self.round;
        if is_new {
            // Debt is not forgiven; credit is not saved up.
            turn.credit_ns = turn.credit_ns.min(0) + QUANTUM_NS;
            turn.round = self.round;
        }
        if is_new || turn.has_credit() {
            turn.place = TurnPlace::Fresh;
            self.fresh.push_back(id);
        } else {
            // As if it had not left.
            turn.credit_ns += QUANTUM_NS;
            turn.place = TurnPlace::Waiting;
            self.waiting.push_back(id);
        }
    }

    /// Returns the switch whose turn it is. It keeps its place until [`Schedule::end_turn`] or [`Schedule::drop_next`].
    pub(super) fn next(&self) -> Option<ConnectionId> {
        self.fresh.front().or(self.waiting.front()).copied()
    }

    /// Removes the switch whose turn it is, because it is no longer connected.
    pub(super) fn drop_next(&mut self) {
        self.take_next();
    }

    /// Ends the turn of the switch that [`Schedule::next`] returned.
    pub(super) fn end_turn(&mut self, turn: &mut SwitchTurn, has_work: bool) {
        let Some(id) = self.take_next() else { return };
        turn.round = self.round;
        if turn.credit_ns <= 0 {
            turn.credit_ns += QUANTUM_NS;
        } else if !has_work {
            turn.place = TurnPlace::Idle;
            return;
        }
        turn.place = TurnPlace::Waiting;
        self.waiting.push_back(id);
    }

    fn take_next(&mut self) -> Option<ConnectionId> {
        if let Some(id) = self.fresh.pop_front() {
            return Some(id);
        }
        if self.left_in_round == 0 {
            self.begin_round();
        }
        let id = self.waiting.pop_front()?;
        self.left_in_round -= 1;
        Some(id)
    }

    fn begin_round(&mut self) {
        self.round += 1;
        self.left_in_round = self.waiting.len();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Switches with messages of a cost each, served by a schedule.
    struct Served {
        schedule: Schedule,
        switches: BTreeMap<ConnectionId, (SwitchTurn, u64, i64)>,
        order: Vec<u64>,
    }

    impl Served {
        fn new(offers: &[(u64, i64)]) -> Served {
            let mut served = Served { schedule: Schedule::new(), switches: BTreeMap::new(), order: Vec::new() };
            for (id, (messages, cost)) in (1..).zip(offers) {
                served.offer(id, *messages, *cost);
            }
            served
        }

        fn offer(&mut self, id: u64, messages: u64, cost: i64) {
            let switch = self.switches.entry(ConnectionId(id)).or_default();
            (switch.1, switch.2) = (switch.1 + messages, cost);
            self.schedule.begin(ConnectionId(id), &mut switch.0);
        }

        /// Serves turns. Returns the messages handled of each switch.
        fn turns(&mut self, count: usize) -> BTreeMap<u64, u64> {
            let mut handled = BTreeMap::new();
            for _ in 0..count {
                let Some(id) = self.schedule.next() else { break };
                let (turn, left, cost) = self.switches.get_mut(&id).unwrap();
                while turn.has_credit() && *left > 0 {
                    turn.charge(*cost);
                    *left -= 1;
                    *handled.entry(id.0).or_default() += 1;
                    self.order.push(id.0);
                }
                self.schedule.end_turn(turn, *left > 0);
            }
            handled
        }
    }

    #[test]
    fn cost_is_shared_and_not_messages() {
        let mut served = Served::new(&[(100_000, 1000), (100_000, 1000), (100_000, 4000)]);
        let handled = served.turns(3 * 400);
        assert_eq!(handled[&1], handled[&2]);
        assert!(handled[&1].abs_diff(4 * handled[&3]) < 100, "{handled:?}");
    }

    #[test]
    fn one_that_begins_goes_before_long_queues() {
        let mut served = Served::new(&[(100_000, 1000); 50]);
        served.turns(120);
        served.order.clear();
        served.offer(51, 1, 1000);
        served.turns(2);
        assert_eq!(served.order[0], 51);
    }

    #[test]
    fn beginning_again_and_again_is_no_advantage() {
        let mut served = Served::new(&[(100_000, 1000), (100_000, 1000)]);
        let mut handled = BTreeMap::<u64, u64>::new();
        for _ in 0..3000 {
            // Always just enough for one turn, so that its queue is empty at the end.
            let left = served.switches.get(&ConnectionId(3)).map_or(0, |switch| switch.1);
            served.offer(3, 30_u64.saturating_sub(left), 1000);
            for (id, count) in served.turns(1) {
                *handled.entry(id).or_default() += count;
            }
        }
        assert!(handled[&3] < handled[&1] * 21 / 20, "{handled:?}");
    }

    #[test]
    fn what_is_left_over_is_shared_equally() {
        // Each is given work for 46 us before each 300 us of turns, more than an eighth of them; one always has work.
        let mut served = Served::new(&[(1_000_000, 1000)]);
        let mut handled = BTreeMap::<u64, u64>::new();
        for _ in 0..1000 {
            (2..=8).for_each(|id| served.offer(id, 46, 1000));
            let before = served.order.len();
            while served.order.len() < before + 300 {
                for (id, count) in served.turns(1) {
                    *handled.entry(id).or_default() += count;
                }
            }
        }
        let (least, most) = (handled.values().min().unwrap(), handled.values().max().unwrap());
        assert!(handled.len() == 8 && most - least < least / 50, "{handled:?}");
    }

    #[test]
    fn debt_keeps_a_switch_from_being_read_until_it_is_paid() {
        let mut served = Served::new(&[(1, 1000), (1_000_000, 1000)]);
        let turn = &mut served.switches.get_mut(&ConnectionId(1)).unwrap().0;
        turn.charge(20 * QUANTUM_NS);
        assert!(!turn.may_be_read());
        let may_be_read = |served: &Served| served.switches[&ConnectionId(1)].0.may_be_read();
        let rounds = (0..100).take_while(|_| !may_be_read(&served) && served.turns(2).len() < 3).count();
        assert!((8..=16).contains(&rounds), "{rounds}");
        served.turns(100);
        assert!(served.switches[&ConnectionId(1)].1 == 0, "it is served in the end");
    }
}
