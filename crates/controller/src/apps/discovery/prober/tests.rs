//! Tests the prober on wires without delay, in virtual time.
use super::*;
use crate::outbox::OutboxItem;
use std::collections::BTreeSet;
use weir_openflow::model::port::PortStatus;
use weir_openflow::model::{Action, PacketIn, PacketInReason, TableId};
use weir_packet::Field;

const VERSION: Version = Version::V13;
const INTERVAL: Duration = Duration::from_millis(20);

struct Bed {
    prober: LinkProber,
    now: Instant,
    wires: BTreeMap<TrunkPort, TrunkPort>,
    /// Ports at switches of others, which forward broadcasts to one another.
    island: Vec<TrunkPort>,
    down: BTreeSet<TrunkPort>,
    /// Probes that arrived nowhere, or were held back.
    held: Vec<(TrunkPort, Vec<u8>)>,
    holds: bool,
    /// Switch that handles no messages, so that its probes are held back.
    stuck: Option<u64>,
}

fn end(dpid: u64, port: u32) -> TrunkPort {
    (dpid, PortNo(port))
}

fn desc(port: u32, up: bool) -> PortDesc {
    let state = if up { 0 } else { bits::LINK_DOWN };
    PortDesc { state, ..PortDesc::new(PortNo(port), MacAddr([2; 6]), format!("p{port}")) }
}

impl Bed {
    /// Returns switches 1 to `switches` with ports 1 to `ports` and these wires.
    fn new(config: DiscoveryConfig, switches: u64, ports: u32, wires: &[[TrunkPort; 2]]) -> Bed {
        let both = |[a, b]: &[TrunkPort; 2]| [(*a, *b), (*b, *a)];
        let (now, wires) = (Instant::from_nanos(1), wires.iter().flat_map(both).collect());
        let prober = LinkProber::new(config);
        let (island, down, held, stuck) = Default::default();
        let mut bed = Bed { prober, now, wires, island, down, held, holds: false, stuck };
        (1..=switches).for_each(|dpid| bed.connect(dpid, ports));
        bed
    }

    fn ring(interval: Duration) -> Bed {
        let wires = [[end(1, 1), end(2, 2)], [end(2, 1), end(3, 2)], [end(1, 2), end(3, 1)]];
        Bed::new(DiscoveryConfig { interval, ..DiscoveryConfig::default() }, 3, 3, &wires)
    }

    fn connect(&mut self, dpid: u64, ports: u32) {
        let ports = (1..=ports).map(|port| desc(port, true)).collect();
        let features = FeaturesReply { datapath_id: dpid, ports, ..FeaturesReply::default() };
        let mut out = ControllerOutbox::default();
        self.prober.handle_switch_up(self.now, ConnectionId(dpid), VERSION, &features, &mut out);
    }

    /// Runs for a time. Returns what happened to links, in its order.
    fn run(&mut self, time: Duration) -> Vec<ProbedLinkEvent> {
        let until = self.now + time;
        let mut events = self.prober.take_events();
        while let Some(at) = self.prober.next_wake().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.wake();
            events.append(&mut self.prober.take_events());
        }
        self.now = until;
        events
    }

    /// Lets the prober send, and carries its probes over the wires.
    fn wake(&mut self) {
        let (mut out, mut sent) = (ControllerOutbox::default(), Vec::new());
        self.prober.handle_wake(self.now, &mut out);
        out.for_each(|item| {
            if let OutboxItem::Message(switch, Message { body: Body::PacketOut(packet), .. }) = item {
                let Action::Output { port, .. } = packet.actions[0] else { panic!("{packet:?}") };
                sent.push(((switch.0, port), packet.data.0.clone()));
            }
        });
        for (from, data) in sent {
            if self.island.contains(&from) && data.starts_with(&[0xff; 6]) {
                let others: Vec<_> = self.island.iter().copied().filter(|port| *port != from).collect();
                others.into_iter().for_each(|to| self.receive(to, &data));
                continue;
            }
            let to = if from.1 == PortNo::CONTROLLER { Some(from) } else { self.wires.get(&from).copied() };
            let is_stuck = |port: &TrunkPort| self.stuck == Some(port.0);
            let is_held = |to: &TrunkPort| self.holds || is_stuck(&from) || is_stuck(to);
            match to.filter(|to| !is_held(to) && !self.down.contains(&from) && !self.down.contains(to)) {
                Some(to) => self.receive(to, &data),
                None => self.held.push((from, data)),
            }
        }
    }

    fn receive(&mut self, (dpid, port): TrunkPort, data: &[u8]) {
        let body = Body::PacketIn(PacketIn {
            buffer_id: None,
            total_len: 60,
            reason: PacketInReason::Action,
            table: TableId(0),
            cookie: 0,
            matching: Match::any().with(Field::InPort, port.0),
            data: Bytes(data.to_vec()),
        });
        let mut bytes = Vec::new();
        weir_openflow::encode(&Message { xid: 0, body }, VERSION, &mut bytes).unwrap();
        let view = PacketInView::read(&bytes).unwrap().expect("a packet-in");
        let mut out = ControllerOutbox::default();
        let decision = self.prober.handle_packet_in(self.now, ConnectionId(dpid), &view, &mut out);
        assert_eq!(decision, PacketDecision::Taken);
    }

    /// Takes a port down or up, and tells the prober. Returns what happened to links at once.
    fn set_port(&mut self, (dpid, port): TrunkPort, up: bool) -> Vec<ProbedLinkEvent> {
        let reason = PortStatusReason::Modify;
        let body = Body::PortStatus(PortStatus { reason, desc: desc(port.0, up) });
        let _ = if up { self.down.remove(&(dpid, port)) } else { self.down.insert((dpid, port)) };
        let mut out = ControllerOutbox::default();
        self.prober.handle_message(self.now, ConnectionId(dpid), Message { xid: 0, body }, &mut out);
        self.prober.take_events()
    }

    fn count(&self, name: &str) -> u64 {
        self.prober.counters().into_iter().find(|(of, _)| *of == name).expect("a counter").1
    }
}

const FIRST: [TrunkPort; 2] = [(1, PortNo(1)), (2, PortNo(2))];

#[test]
fn a_port_that_goes_down_loses_its_link_at_once_and_finds_it_at_once() {
    for interval in [INTERVAL, Duration::from_secs(5)] {
        let mut bed = Bed::ring(interval);
        let found = bed.run(Duration::from_millis(2));
        assert!(found.len() == 3 && found.contains(&ProbedLinkEvent::Found(FIRST)), "{found:?}");
        for (first, second) in [(0, 1), (1, 0)] {
            bed.run(Duration::from_secs(60));
            assert_eq!(bed.set_port(FIRST[first], false), [ProbedLinkEvent::Lost(FIRST)]);
            assert_eq!(bed.set_port(FIRST[second], false), [], "it is lost already");
            assert!(bed.run(Duration::from_secs(60)).is_empty() && bed.prober.links().count() == 2);
            // The port that comes up first has no use of its probe.
            assert_eq!(bed.set_port(FIRST[first], true), []);
            assert_eq!(bed.run(Duration::from_millis(1)), []);
            assert_eq!(bed.set_port(FIRST[second], true), []);
            assert_eq!(bed.run(Duration::from_millis(1)), [ProbedLinkEvent::Found(FIRST)], "{interval:?} {first}");
            // One end is enough.
            assert_eq!(bed.set_port(FIRST[first], false), [ProbedLinkEvent::Lost(FIRST)]);
            bed.set_port(FIRST[first], true);
            assert_eq!(bed.run(Duration::from_millis(1)), [ProbedLinkEvent::Found(FIRST)], "{interval:?} {first}");
        }
    }
}

#[test]
fn a_probe_that_was_on_its_way_does_not_bring_a_link_back() {
    let mut bed = Bed::ring(Duration::from_secs(5));
    bed.run(Duration::from_secs(1));
    bed.holds = true;
    bed.run(Duration::from_secs(5));
    let (_, probe) = bed.held.iter().rfind(|(from, _)| *from == FIRST[0]).expect("a probe").clone();
    assert_eq!(bed.set_port(FIRST[0], false), [ProbedLinkEvent::Lost(FIRST)]);
    bed.receive(FIRST[1], &probe);
    assert_eq!(bed.prober.take_events(), []);
    // Nor does it when it comes by a port that the switch has not told of.
    bed.receive(end(2, 77), &probe);
    bed.set_port(FIRST[1], false);
    bed.receive(FIRST[1], &probe);
    assert_eq!((bed.prober.take_events(), bed.prober.links().count()), (vec![], 2));
}

#[test]
fn probes_at_ports_that_are_not_known_are_counted() {
    let mut bed = Bed::ring(INTERVAL);
    bed.run(Duration::from_secs(1));
    bed.wires.insert(end(1, 3), end(3, 99));
    assert_eq!(bed.run(Duration::from_secs(1)), []);
    assert!(bed.count("discovery_unknown_port") >= 49);
}

#[test]
fn three_silent_intervals_lose_a_link_and_two_do_not() {
    for interval in [Duration::from_millis(10), Duration::from_secs(5)] {
        let mut bed = Bed::ring(interval);
        bed.run(interval * 10);
        for lost in [2, 1, 2] {
            // Probes of the link's lesser end are lost, so many in a row.
            let (mut left, wire) = (lost, bed.wires.remove(&FIRST[0]).expect("it is wired"));
            while left > 0 {
                bed.held.clear();
                assert_eq!(bed.run(interval / 20), []);
                left -= bed.held.iter().filter(|(from, _)| *from == FIRST[0]).count();
            }
            bed.wires.insert(FIRST[0], wire);
            assert_eq!(bed.run(interval * 5), []);
        }
        bed.wires.remove(&FIRST[0]);
        let since = bed.prober.links().find(|link| link.ends == FIRST).expect("it is known").heard;
        let gone = (0..1000).find(|_| bed.run(interval / 100) == [ProbedLinkEvent::Lost(FIRST)]).expect("it is lost");
        let intervals = bed.now.since(since).as_secs_f64() / interval.as_secs_f64();
        assert!((3.0..3.7).contains(&intervals), "{intervals} intervals, {gone}");
        bed.wires.insert(FIRST[0], FIRST[1]);
        assert_eq!(bed.run(interval * 2), [ProbedLinkEvent::Found(FIRST)]);
    }
}

#[test]
fn a_pause_of_the_controller_loses_no_link() {
    let mut bed = Bed::ring(Duration::from_millis(10));
    bed.run(Duration::from_millis(100));
    for pause_ms in [25, 40, 100, 2000] {
        bed.now += Duration::from_millis(pause_ms);
        assert_eq!(bed.run(Duration::from_millis(100)), [], "{pause_ms} ms");
    }
    assert_eq!(bed.prober.links().count(), 3);
}

#[test]
fn a_switch_that_handles_no_messages_loses_its_links_later() {
    for (stuck, interval) in [(1, INTERVAL), (2, INTERVAL), (3, Duration::from_secs(1))] {
        let mut bed = Bed::ring(interval);
        bed.run(interval * 10);
        for intervals in [4, 6, 8] {
            (bed.stuck, bed.held) = (Some(stuck), Vec::new());
            assert_eq!(bed.run(interval * intervals), [], "switch {stuck}, {intervals} intervals");
            bed.stuck = None;
            let late = std::mem::take(&mut bed.held).into_iter();
            let to =
                |from: TrunkPort| if from.1 == PortNo::CONTROLLER { Some(from) } else { bed.wires.get(&from).copied() };
            let late: Vec<_> = late.filter_map(|(from, data)| Some((to(from)?, data))).collect();
            late.iter().for_each(|(to, data)| bed.receive(*to, data));
            assert_eq!(bed.run(interval * 2), [], "switch {stuck} after {intervals} intervals");
        }
        bed.stuck = Some(stuck);
        let lost = bed.run(interval * 11);
        assert_eq!(lost.len(), 2, "switch {stuck}: {lost:?}");
        bed.stuck = None;
        assert_eq!(bed.run(interval * 2).len(), 2);
    }
}

#[test]
fn a_switch_that_goes_loses_all_its_links_and_comes_back_with_them() {
    let mut bed = Bed::ring(Duration::from_secs(5));
    bed.run(Duration::from_secs(1));
    bed.prober.handle_switch_down(bed.now, ConnectionId(1));
    let lost = bed.prober.take_events();
    assert!(lost.len() == 2 && lost.contains(&ProbedLinkEvent::Lost(FIRST)), "{lost:?}");
    bed.down.extend([end(1, 1), end(1, 2)]);
    assert_eq!(bed.run(Duration::from_secs(30)), []);
    bed.down.clear();
    bed.connect(1, 3);
    assert_eq!(bed.run(Duration::from_millis(2)).len(), 2);
    (1..=3).for_each(|dpid| bed.prober.handle_switch_down(bed.now, ConnectionId(dpid)));
    assert_eq!(bed.prober.take_events().len(), 3);
    bed.run(Duration::from_secs(600));
    assert_eq!(bed.prober.next_wake(), None, "nothing is left to do");
}

#[test]
fn a_link_that_is_lost_again_and_again_is_damped_and_released() {
    let mut bed = Bed::ring(INTERVAL);
    bed.run(Duration::from_secs(1));
    for time in 0..3 {
        let lost = bed.set_port(FIRST[1], false);
        let expected = [ProbedLinkEvent::Lost(FIRST), ProbedLinkEvent::Damped(FIRST)];
        assert_eq!(lost, expected[..if time < 2 { 1 } else { 2 }]);
        bed.set_port(FIRST[1], true);
        assert_eq!(bed.run(Duration::from_secs(1)), [ProbedLinkEvent::Found(FIRST)]);
    }
    assert!(bed.prober.links().any(|link| link.ends == FIRST && link.damped));
    assert_eq!(bed.run(Duration::from_secs(60)), [ProbedLinkEvent::Released(FIRST)]);
    assert!(bed.prober.links().all(|link| !link.damped));
}

/// 100 switches in a ring, with a second ring of every seventh.
#[test]
fn a_hundred_switches_are_known_at_once() {
    let link = |from: u64, to: u64, port| [end(from, port), end(to, port + 1)];
    let wires: Vec<_> = (0..100).flat_map(|at| [(1, 1), (7, 3)].map(|(step, port)| (at, step, port))).collect();
    let wires: Vec<_> = wires.into_iter().map(|(at, step, port)| link(at + 1, (at + step) % 100 + 1, port)).collect();
    let config = DiscoveryConfig { interval: Duration::from_millis(100), ..DiscoveryConfig::default() };
    let mut bed = Bed::new(config, 100, 8, &wires);
    let found = bed.run(Duration::from_millis(100));
    assert_eq!((found.len(), bed.prober.links().count()), (200, 200));
    let before = bed.count("discovery_sent");
    assert_eq!(bed.run(Duration::from_secs(1)), []);
    let sent = bed.count("discovery_sent") - before;
    assert!((8_900..=9_100).contains(&sent), "{sent} probes of 900 in ten intervals");
}

#[test]
fn broadcasts_find_links_through_switches_of_others() {
    let config = DiscoveryConfig { interval: INTERVAL, broadcast: true, ..DiscoveryConfig::default() };
    let mut bed = Bed::new(config, 3, 3, &[FIRST]);
    bed.island = vec![end(1, 3), end(2, 3), end(3, 3)];
    let through = [[end(1, 3), end(2, 3)], [end(1, 3), end(3, 3)], [end(2, 3), end(3, 3)]];
    let found = bed.run(Duration::from_secs(1));
    assert_eq!(found.len(), 4, "each once: {found:?}");
    let links: Vec<_> = bed.prober.links().map(|link| (link.ends, link.indirect)).collect();
    assert_eq!(links.len(), 4);
    assert!(through.iter().all(|ends| links.contains(&(*ends, true))) && links.contains(&(FIRST, false)), "{links:?}");
    // A port that goes down loses all its links.
    let lost = bed.set_port(end(3, 3), false);
    assert_eq!(lost, [ProbedLinkEvent::Lost(through[1]), ProbedLinkEvent::Lost(through[2])]);
    bed.set_port(end(3, 3), true);
    assert_eq!(bed.run(Duration::from_millis(2)).len(), 2);
    // A cable in place of the island, while the broadcasts go on: the link is a direct one without having been lost.
    bed.wires.extend([(through[0][0], through[0][1]), (through[0][1], through[0][0])]);
    bed.island.remove(2);
    let lost = bed.run(Duration::from_secs(1));
    assert_eq!(lost.iter().filter(|event| matches!(event, ProbedLinkEvent::Lost(_))).count(), 2, "{lost:?}");
    assert!(lost.contains(&ProbedLinkEvent::Direct(through[0])), "{lost:?}");
    assert!(bed.prober.link(through[0]).is_some_and(|link| !link.indirect) && bed.prober.link(through[1]).is_none());
    // A direct probe is none of the other form.
    let (mut probe, holds) = (bed.held.pop().expect("of a port without a wire").1, bed.count("discovery_forged"));
    let other: [u8; 2] = if probe[12..14] == [0x89, 0x42] { [0x88, 0xcc] } else { [0x89, 0x42] };
    probe[12..14].copy_from_slice(&other);
    bed.receive(end(3, 1), &probe);
    assert_eq!(bed.count("discovery_forged"), holds + 1);
}

#[test]
fn broadcasts_are_off_unless_wanted() {
    let mut bed = Bed::ring(INTERVAL);
    bed.island = vec![end(1, 3), end(2, 3)];
    assert_eq!(bed.run(Duration::from_secs(1)).len(), 3);
    assert!(bed.held.iter().all(|(_, probe)| probe[12..14] == [0x88, 0xcc]));
}
