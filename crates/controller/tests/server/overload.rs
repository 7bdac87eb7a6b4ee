//! Tests in virtual time what becomes of more messages than the controller handles.
use crate::hub::{NOW, connect, exchange, learning};
use crate::peer::{Heard, features, packet_in};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::hub::{LEAST_QUEUED, MOST_QUEUED, MessageClass, QueueDropReason};
use weir_controller::{ConnectionId, ControllerApp, ControllerHub, ControllerOutbox};
use weir_openflow::model::multipart::{MultipartReply, ReplyBody};
use weir_openflow::model::port::{PortStatus, PortStatusReason};
use weir_openflow::model::{Body, Bytes, FeaturesReply, PacketIn, PortDesc, PortNo};
use weir_openflow::session::{Session, SessionConfig};
use weir_openflow::{Message, Version};
use weir_packet::MacAddr;
use weir_units::Instant;

/// Virtual processor time of one turn of work.
const TURN: Duration = Duration::from_micros(300);

/// Messages that the application got, by switch, in order: the type's number, or a packet's length.
type Got = Arc<Mutex<BTreeMap<ConnectionId, Vec<u16>>>>;

/// Application that notes what it gets, and answers nothing.
struct Note(Got);

impl ControllerApp for Note {
    fn handle_switch_up(
        &mut self,
        _: Instant,
        _: ConnectionId,
        _: Version,
        _: &FeaturesReply,
        _: &mut ControllerOutbox,
    ) {
    }

    fn handle_message(&mut self, _: Instant, switch: ConnectionId, message: Message, _: &mut ControllerOutbox) {
        let noted = match message.body {
            Body::PacketIn(packet) => packet.total_len,
            Body::BarrierReply => 1,
            Body::MultipartReply(_) => 2,
            Body::PortStatus(_) => 3,
            other => panic!("{other:?}"),
        };
        self.0.lock().unwrap().entry(switch).or_default().push(noted);
    }

    fn handle_switch_down(&mut self, _: Instant, _: ConnectionId) {}
}

struct Overloaded {
    hub: ControllerHub,
    got: Got,
    switches: Vec<(ConnectionId, Session)>,
}

impl Overloaded {
    fn new(switches: u64) -> Overloaded {
        let got = Got::default();
        Overloaded::with_app(Box::new(Note(Arc::clone(&got))), got, switches)
    }

    fn with_app(app: Box<dyn ControllerApp>, got: Got, switches: u64) -> Overloaded {
        let config = SessionConfig { echo_interval: Duration::from_secs(5), ..SessionConfig::default() };
        let mut hub = ControllerHub::new(app, config, 2000, Heard::default().observer().unwrap());
        let switches = (1..=switches)
            .map(|dpid| {
                let (id, mut session) = connect(&mut hub);
                exchange(&mut hub, id, &mut session, &features(dpid, 0));
                (id, session)
            })
            .collect();
        Overloaded { hub, got, switches }
    }

    /// Lets a switch send messages. Returns their bytes.
    fn bytes(&mut self, switch: usize, bodies: impl IntoIterator<Item = Body>) -> Vec<u8> {
        let session = &mut self.switches[switch].1;
        for body in bodies {
            session.send(&Message { xid: 9, body }).unwrap();
        }
        std::mem::take(session.output())
    }

    fn offer(&mut self, switch: usize, bodies: impl IntoIterator<Item = Body>) {
        let bytes = self.bytes(switch, bodies);
        self.hub.enqueue(NOW, self.switches[switch].0, &bytes);
    }

    /// Lets a switch send messages of one length, of which as many are read as the hub allows.
    fn flood(&mut self, now: Instant, switch: usize, messages: &[u8]) {
        let id = self.switches[switch].0;
        let one = usize::from(u16::from_be_bytes([messages[2], messages[3]]));
        let length = self.hub.read_limit(now, id).min(messages.len()) / one * one;
        self.hub.enqueue(now, id, &messages[..length]);
    }

    fn work_off(&mut self) {
        while self.hub.work(NOW, TURN) {}
    }

    fn counts(&self) -> Vec<usize> {
        let got = self.got.lock().unwrap();
        self.switches.iter().map(|(id, _)| got.get(id).map_or(0, Vec::len)).collect()
    }

    fn notes(&self, switch: usize) -> Vec<u16> {
        self.got.lock().unwrap().get(&self.switches[switch].0).cloned().unwrap_or_default()
    }
}

/// Returns a short packet-in whose length says which it is.
fn packet(number: u16) -> Body {
    let Body::PacketIn(packet) = packet_in().body else { panic!("a packet-in") };
    let data = Bytes(packet.data.0[..64].to_vec());
    Body::PacketIn(PacketIn { total_len: number, data, ..packet })
}

fn packets(count: u16) -> impl Iterator<Item = Body> {
    (100..100 + count).map(packet)
}

#[test]
fn one_that_offers_a_hundred_times_as_much_takes_nothing_from_the_others() {
    let mut bed = Overloaded::new(8);
    let [flood, more] = [10_000, 100].map(|count| bed.bytes(0, packets(count)));
    let (mut now, mut even) = (NOW, Vec::new());
    for turn in 0..400 {
        bed.flood(now, 0, &flood);
        (1..8).for_each(|switch| bed.flood(now, switch, &more));
        assert!(bed.hub.work(now, TURN));
        now += TURN;
        if turn == 100 {
            even = bed.counts();
        }
    }
    let counts: Vec<_> = bed.counts().iter().zip(&even).map(|(end, begin)| end - begin).collect();
    let (least, most) = (counts[1..].iter().min().unwrap(), counts[1..].iter().max().unwrap());
    assert!(most - least <= 60 && *least > 1000, "within a turn: {counts:?}");
    assert!(counts[0] <= *most, "{counts:?}");
}

#[test]
fn the_newest_packets_are_kept_and_drops_are_counted_by_reason() {
    let mut bed = Overloaded::new(1000);
    let most = MOST_QUEUED / 1000;
    assert_eq!(most.max(LEAST_QUEUED), LEAST_QUEUED);
    bed.offer(0, packets(200));
    bed.work_off();
    let expected: Vec<u16> = (300 - 64..300).collect();
    assert_eq!(bed.notes(0), expected);
    let snapshot = bed.hub.snapshot();
    assert_eq!((snapshot.counters.packet_ins, snapshot.counters.dropped_overload), (200, 136));
    let drops = &snapshot.loads[0].dropped;
    assert_eq!((drops.len(), drops[0].count), (1, 136));
    assert_eq!((drops[0].class, drops[0].reason), (MessageClass::Packet, QueueDropReason::Overload));
    assert!(snapshot.loads[1].dropped.is_empty());
}

#[test]
fn drops_take_a_fiftieth_of_the_time() {
    let mut bed = Overloaded::new(4);
    let flood = bed.bytes(0, packets(1000));
    let (mut now, turns) = (NOW, 1000);
    for _ in 0..turns {
        (0..4).for_each(|switch| bed.flood(now, switch, &flood));
        assert!(bed.hub.work(now, TURN), "always busy");
        now += TURN;
    }
    // At 100 ns each, after a burst for 10 ms, and at most what was read at once beyond it.
    let expected = (turns * 300 + 10_000) * 1000 / 50 / 100;
    let dropped = bed.hub.snapshot().counters.dropped_overload;
    assert!((expected..expected + 4000).contains(&dropped), "{dropped}, expected {expected}");
    // There is time again later.
    assert!(bed.switches.iter().all(|(id, _)| bed.hub.read_limit(now, *id) < 64 << 10));
    bed.hub.work(now, TURN);
    let later = now + Duration::from_millis(30);
    assert!(bed.switches.iter().all(|(id, _)| bed.hub.read_limit(later, *id) > 64 << 10));
}

#[test]
fn echo_requests_do_not_wait_for_packets() {
    let mut bed = Overloaded::new(20);
    for switch in 0..20 {
        bed.offer(switch, packets(1000));
    }
    bed.hub.work(NOW, TURN);
    bed.offer(7, [Body::EchoRequest(Bytes(vec![1, 2, 3]))]);
    assert_eq!(bed.hub.output(bed.switches[7].0).unwrap().len(), 0);
    bed.hub.work(NOW, TURN);
    assert_eq!(bed.hub.output(bed.switches[7].0).unwrap().len(), 11);
}

#[test]
fn a_switch_that_begins_is_served_before_long_queues() {
    let mut bed = Overloaded::new(100);
    for switch in 1..100 {
        bed.offer(switch, packets(300));
    }
    (0..20).for_each(|_| assert!(bed.hub.work(NOW, TURN)));
    bed.offer(0, [packet(5)]);
    bed.hub.work(NOW, TURN);
    assert_eq!(bed.notes(0), [5]);
}

#[test]
fn every_class_has_a_share() {
    let mut bed = Overloaded::new(1);
    let statistics = || Body::MultipartReply(MultipartReply { more: false, body: ReplyBody::Flow(Vec::new()) });
    // More of each class than the work of a turn.
    for _ in 0..50 {
        bed.offer(0, (0..50).map(|_| Body::BarrierReply));
        bed.offer(0, packets(100));
        bed.offer(0, (0..20).map(|_| statistics()));
        bed.hub.work(NOW, Duration::from_micros(20));
    }
    let notes = bed.notes(0);
    let count = |wanted: fn(&u16) -> bool| notes.iter().filter(|note| wanted(note)).count();
    let (barriers, packets, statistics) = (count(|n| *n == 1), count(|n| *n >= 100), count(|n| *n == 2));
    assert!(barriers > packets && packets > statistics && statistics > 50, "{barriers} {packets} {statistics}");
}

#[test]
fn answers_are_not_dropped_but_their_switch_is_not_read_from() {
    let mut bed = Overloaded::new(1000);
    let id = bed.switches[0].0;
    bed.offer(0, (0..LEAST_QUEUED - 1).map(|_| Body::BarrierReply));
    assert!(bed.hub.read_limit(NOW, id) > 0);
    bed.offer(0, [Body::BarrierReply]);
    assert!(bed.hub.read_limit(NOW, id) == 0 && bed.hub.read_limit(NOW, bed.switches[1].0) > 0);
    bed.work_off();
    assert!(bed.hub.read_limit(NOW, id) > 0);
    assert_eq!(bed.counts()[0], LEAST_QUEUED);
}

#[test]
fn a_switch_that_never_reads_is_heard_and_its_packets_wait() {
    let mut bed = Overloaded::with_app(learning(), Got::default(), 2);
    let silent = bed.switches[0].0;
    for _ in 0..100 {
        bed.offer(0, (0..500).map(|_| packet_in().body));
        bed.work_off();
    }
    let unread = bed.hub.output(silent).unwrap().len();
    assert!((256 << 10..300 << 10).contains(&unread), "{unread}");
    assert!(bed.hub.snapshot().counters.dropped_overload > 0);
    // It is probed, and its reply is heard, although it has not read what came before.
    let later = bed.hub.deadline(silent).unwrap();
    bed.hub.poll(later, silent);
    let bytes = bed.bytes(0, [Body::EchoReply(Bytes::default())]);
    bed.hub.enqueue(later, silent, &bytes);
    bed.hub.poll(later + Duration::from_secs(5), silent);
    assert!(!bed.hub.is_ended(silent));
    // The other one is served; and the first, too, once it reads.
    bed.offer(1, [packet_in().body]);
    bed.work_off();
    assert!(!bed.hub.output(bed.switches[1].0).unwrap().is_empty());
    let sent = bed.hub.snapshot().counters.packet_outs;
    bed.hub.output(silent).unwrap().clear();
    bed.hub.written(silent);
    bed.work_off();
    assert!(bed.hub.snapshot().counters.packet_outs > sent + 100);
}

#[test]
fn packets_from_a_port_that_went_down_are_stale() {
    let mut bed = Overloaded::new(2);
    bed.offer(0, packets(10));
    bed.offer(1, packets(10));
    let down = |port| PortDesc { state: 1, ..PortDesc::new(PortNo(port), MacAddr::default(), "p") };
    let status = |desc| Body::PortStatus(PortStatus { reason: PortStatusReason::Modify, desc });
    bed.offer(0, [status(down(2)), status(down(1)), status(PortDesc { state: 0, ..down(1) })]);
    bed.work_off();
    assert_eq!((bed.notes(0), bed.counts()[1]), (vec![3, 3, 3], 10));
    let snapshot = bed.hub.snapshot();
    assert_eq!((snapshot.counters.packet_ins, snapshot.counters.dropped_port_down), (20, 10));
    assert_eq!(snapshot.loads[0].dropped[0].reason, QueueDropReason::PortDown);
}

#[test]
fn malformed_messages_cost_their_switch_and_no_other() {
    let mut bed = Overloaded::new(2);
    let good = bed.bytes(0, packets(100));
    let one = good.len() / 100;
    for round in 0..200 {
        // Every fiftieth message has a match of nonsense.
        let mut bytes = good.clone();
        bytes[one * (round % 100)..][24..28].fill(0xee);
        bytes[one * ((round + 50) % 100)..][24..28].fill(0xee);
        bed.hub.enqueue(NOW, bed.switches[0].0, &bytes);
        bed.offer(1, packets(100));
        bed.work_off();
    }
    assert_eq!(bed.counts(), [200 * 98, 200 * 100]);
    assert!(!bed.hub.is_ended(bed.switches[0].0));
}

#[test]
fn a_connection_that_ends_within_a_message_leaves_nothing() {
    let mut bed = Overloaded::new(2);
    let bytes = bed.bytes(0, packets(10));
    let id = bed.switches[0].0;
    bed.hub.enqueue(NOW, id, &bytes[..bytes.len() - 5]);
    bed.offer(1, packets(3));
    bed.hub.disconnect(NOW, id, "reset");
    bed.work_off();
    assert_eq!((bed.counts()[1], bed.hub.snapshot().switches.len(), bed.hub.is_ended(id)), (3, 1, true));
}

#[test]
fn what_a_switch_says_last_is_heard() {
    let mut bed = Overloaded::new(1);
    bed.offer(0, [Body::BarrierReply]);
    bed.hub.disconnect(NOW, bed.switches[0].0, "gone");
    assert_eq!(bed.notes(0), [1]);
}

#[test]
fn stations_without_number_are_forgotten_oldest_first() {
    let app = LearningSwitch::new(LearningConfig { max_addresses: 64, ..LearningConfig::default() });
    let mut bed = Overloaded::with_app(Box::new(app), Got::default(), 1);
    for source in 0..10_000_u64 {
        let Body::PacketIn(mut packet) = packet_in().body else { panic!("a packet-in") };
        packet.data.0[6..12].copy_from_slice(&(0x0200_0000_0000 | source).to_be_bytes()[2..]);
        bed.offer(0, [Body::PacketIn(packet)]);
        bed.work_off();
        bed.hub.output(bed.switches[0].0).unwrap().clear();
    }
    let app = bed.hub.snapshot().app;
    assert_eq!((app["learned"], app["pushed_out"]), (10_000, 10_000 - 64));
}
