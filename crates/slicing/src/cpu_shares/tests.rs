use super::*;

/// An engine in virtual time, whose counter counts nanoseconds.
struct Engine {
    shares: CpuShares<(u16, u64)>,
    now: u64,
    ports: Vec<Port>,
    loads: Vec<Load>,
    served: Vec<u64>,
    /// Number of the packet served last, by tenant.
    last: Vec<Option<u64>>,
    ever_took_turns: bool,
}

/// Content of a port's ring: tenant and packet number.
#[derive(Default)]
struct Port {
    ring: VecDeque<(u16, u64)>,
    lost: u64,
    /// The tenant, if all packets of the port belong to one.
    only: Option<u16>,
}

/// Packets of one tenant.
struct Load {
    port: usize,
    gap: u64,
    cost: u64,
    next: u64,
    sent: u64,
}

const BURST: usize = 32;
const RECEIVE: u64 = 20;
const RING: usize = 1024;

impl Engine {
    /// Creates tenants, each given as weight, port, ns between its packets, and ns per packet.
    fn new(tenants: &[(u64, usize, u64, u64)]) -> Engine {
        let mut shares = CpuShares::default();
        let ports = tenants.iter().map(|tenant| tenant.1).max().unwrap() + 1;
        let mut ports: Vec<Port> = (0..ports).map(|_| Port::default()).collect();
        let mut loads = Vec::new();
        for (place, (weight, port, gap, cost)) in (0..).zip(tenants) {
            shares.add(place, *weight);
            loads.push(Load { port: *port, gap: *gap, cost: *cost, next: 0, sent: 0 });
        }
        for (number, port) in ports.iter_mut().enumerate() {
            let mut on = (0..).zip(&loads).filter(|(_, load)| load.port == number);
            port.only = match (on.next(), on.next()) {
                (Some((place, _)), None) => Some(place),
                _ => None,
            };
        }
        let count = tenants.len();
        let (served, last) = (vec![0; count], vec![None; count]);
        Engine { shares, now: 0, ports, loads, served, last, ever_took_turns: false }
    }

    fn pass(&mut self, ns: u64) {
        self.now += ns;
        // Packets arrive in the order of their times.
        loop {
            let Some(place) = (0..self.loads.len()).min_by_key(|at| self.loads[*at].next) else { return };
            let load = &mut self.loads[place];
            if load.next > self.now {
                return;
            }
            let port = &mut self.ports[load.port];
            if port.ring.len() < RING {
                port.ring.push_back((u16::try_from(place).unwrap(), load.sent))
            } else {
                port.lost += 1
            }
            load.sent += 1;
            load.next += load.gap;
        }
    }

    fn serve(&mut self, place: u16, packets: &[(u16, u64)]) -> u64 {
        for (whose, number) in packets {
            assert_eq!(*whose, place);
            let last = &mut self.last[usize::from(place)];
            assert!(last.is_none_or(|last| last < *number), "packets keep their order");
            *last = Some(*number);
        }
        self.served[usize::from(place)] += packets.len() as u64;
        let took = self.loads[usize::from(place)].cost * packets.len() as u64;
        self.pass(took);
        took
    }

    fn instant(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn round(&mut self) {
        let before = self.now;
        for number in 0..self.ports.len() {
            self.ask(number);
        }
        let (budget, mut spent) = (self.shares.budget(), 0);
        while self.shares.is_pressed() && spent < budget {
            let mut packets = Vec::new();
            let Some((place, _)) = self.shares.take(&mut packets) else { break };
            let took = self.serve(place, &packets);
            self.shares.charge(place, took, packets.len());
            spent += took;
        }
        if self.shares.is_pressed() {
            self.shares.end_round(self.instant(), self.now, budget, spent);
        }
        self.ever_took_turns |= self.shares.takes_turns();
        if self.now == before {
            self.pass(1000);
        }
    }

    fn ask(&mut self, number: usize) {
        let port = &mut self.ports[number];
        if port.only.is_some_and(|place| self.shares.is_full(place, BURST)) {
            return;
        }
        let batch: Vec<(u16, u64)> = port.ring.drain(..port.ring.len().min(BURST)).collect();
        if batch.is_empty() {
            return;
        }
        self.pass(RECEIVE * batch.len() as u64);
        let was_pressed = self.shares.is_pressed();
        if batch.len() == BURST {
            self.shares.gave_all(self.instant(), self.now);
        }
        if was_pressed {
            self.shares.received(RECEIVE * batch.len() as u64);
        }
        for place in (0u16..).take(self.loads.len()) {
            let mut its: Vec<(u16, u64)> = batch.iter().copied().filter(|(whose, _)| *whose == place).collect();
            if its.is_empty() {
                continue;
            }
            let count = its.len();
            if batch.len() == BURST {
                self.shares.wants_more(place);
            }
            let received = RECEIVE * count as u64;
            if self.shares.takes_turns() {
                self.shares.put(place, u32::try_from(number).unwrap(), &mut its, drop);
                self.shares.charge(place, received, 0);
            } else {
                let took = self.serve(place, &its);
                if was_pressed {
                    self.shares.charge(place, received + took, count);
                }
            }
        }
    }

    fn run(&mut self, ns: u64) {
        let until = self.now + ns;
        while self.now < until {
            self.round();
        }
    }

    /// Runs for `ns` and returns, for each tenant, the packets served and the time in ns that they took.
    fn measure(&mut self, ns: u64) -> Vec<(u64, u64)> {
        let before = self.served.clone();
        self.run(ns);
        let more = self.served.iter().zip(before).map(|(after, before)| after - before);
        more.zip(&self.loads).map(|(packets, load)| (packets, packets * load.cost)).collect()
    }

    /// Checks that every packet that arrived was served, was dropped, or waits.
    fn check_sums(&self) {
        let sent: u64 = self.loads.iter().map(|load| load.sent).sum();
        let had = (0u16..).take(self.loads.len()).filter_map(|place| self.shares.had(place));
        let (waiting, dropped) = had.fold((0, 0), |sum, had| (sum.0 + had.waiting as u64, sum.1 + had.dropped));
        let in_rings: u64 = self.ports.iter().map(|port| port.ring.len() as u64 + port.lost).sum();
        assert_eq!(sent, self.served.iter().sum::<u64>() + waiting + dropped + in_rings);
    }
}

const MS: u64 = 1_000_000;

#[test]
fn who_needs_less_than_its_part_loses_nothing_to_one_whose_packets_are_dear() {
    // One million packets per second at 100 ns, and as many at 10 us, each tenant on its own port.
    let mut engine = Engine::new(&[(1, 0, 1000, 100), (1, 1, 1000, 10_000)]);
    engine.run(10 * MS);
    let lost = engine.ports[0].lost;
    let [plain, dear] = engine.measure(20 * MS)[..] else { unreachable!() };
    assert!(plain.0 >= 19_900, "{plain:?}");
    assert_eq!(engine.ports[0].lost, lost);
    // Costly packets get the time that the others leave; no time is withheld.
    assert!(dear.1 >= 16 * MS, "{dear:?}");
    assert_eq!(engine.shares.had(1).unwrap().dropped, 0, "what is too much stays with the device");
    engine.check_sums();
}

#[test]
fn time_is_shared_by_weight_whatever_packets_cost() {
    for costs in [[100, 10_000], [3000, 100], [500, 500]] {
        let mut engine = Engine::new(&[(1, 0, 50, costs[0]), (3, 1, 50, costs[1])]);
        engine.run(5 * MS);
        let [one, three] = engine.measure(20 * MS)[..] else { unreachable!() };
        // Receiving is charged, too, and takes a larger part of the tenant with cheap packets.
        let with_receiving = |of: (u64, u64)| (of.1 + of.0 * RECEIVE) as f64;
        let ratio = with_receiving(three) / with_receiving(one);
        assert!((2.8..3.2).contains(&ratio), "{costs:?}: {ratio}");
        assert!(one.1 + three.1 >= 15 * MS, "{costs:?}: {one:?} {three:?}");
        engine.check_sums();
    }
}

#[test]
fn on_a_port_that_all_share_the_one_that_sends_too_much_loses() {
    let mut engine = Engine::new(&[(1, 0, 10_000, 200), (1, 0, 10_000, 200), (1, 0, 500, 10_000)]);
    engine.run(10 * MS);
    let lost = engine.ports[0].lost;
    let found = engine.measure(40 * MS);
    assert!(found[0].0 >= 3990 && found[1].0 >= 3990, "{found:?}");
    assert_eq!(engine.ports[0].lost, lost, "all is received");
    assert_eq!(engine.shares.had(0).unwrap().dropped, 0);
    let dear = engine.shares.had(2).unwrap();
    assert!(dear.dropped > 50_000 && dear.waiting <= MOST, "{dear:?}");
    assert!(found[2].1 >= 30 * MS, "{found:?}");
    engine.check_sums();
}

#[test]
fn nothing_changes_where_the_engine_keeps_up_or_all_cost_the_same() {
    let mut light = Engine::new(&[(1, 0, 2000, 100), (1, 1, 40_000, 10_000)]);
    light.run(20 * MS);
    assert!(!light.shares.is_pressed() && light.shares.had(1).unwrap().total == 0, "nothing is measured");
    let mut alike = Engine::new(&[(1, 0, 100, 300), (1, 1, 100, 300), (1, 2, 100, 310)]);
    alike.run(20 * MS);
    assert!(alike.shares.is_pressed() && !alike.ever_took_turns);
    let part = alike.shares.had(0).unwrap().part;
    assert!((part - 1.0 / 3.0).abs() < 0.02, "{part}");
}

#[test]
fn turns_end_with_the_need_for_them() {
    let mut engine = Engine::new(&[(1, 0, 1000, 100), (1, 1, 1000, 10_000)]);
    engine.run(10 * MS);
    assert!(engine.shares.takes_turns() && engine.shares.has_waiting());
    engine.loads[1].next = u64::MAX;
    engine.run(30 * MS);
    assert!(!engine.shares.takes_turns() && !engine.shares.has_waiting() && !engine.shares.is_pressed());
    engine.check_sums();
}

#[test]
fn who_was_away_has_saved_nothing() {
    let mut engine = Engine::new(&[(1, 0, 50, 1000), (1, 1, 50, 10_000), (1, 2, 50, 1000)]);
    engine.loads[2].next = 30 * MS;
    engine.run(30 * MS);
    let found = engine.measure(20 * MS);
    let part = found[2].1 as f64 / found.iter().map(|(_, time)| time).sum::<u64>() as f64;
    assert!((0.28..0.38).contains(&part), "{part}: {found:?}");
}

#[test]
fn one_that_goes_takes_its_packets_along() {
    let mut engine = Engine::new(&[(1, 0, 1000, 100), (1, 1, 1000, 10_000)]);
    engine.run(10 * MS);
    let waited = engine.shares.had(1).unwrap().waiting;
    assert!(waited > 0);
    assert_eq!(engine.shares.remove(1).count(), waited);
    assert!(engine.shares.had(1).is_none() && engine.shares.waiting == engine.shares.had(0).unwrap().waiting);
    // Further packets for a removed tenant are refused, not kept.
    let mut refused = 0;
    engine.shares.put(1, 1, &mut vec![(1, 0)], |_| refused += 1);
    assert_eq!((refused, engine.shares.remove(7).count()), (1, 0));
}
