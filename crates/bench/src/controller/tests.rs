//! Tests of the emulated switches in virtual time, with a controller that is a queue.
use super::engine::ServedChannels as _;
use super::fleet::SwitchFleet;
use super::pace::{AskedArrivals, OpenLoop, RequestPace};
use super::request::{AskedFrames, AskedSources, RequestPlan};
use super::switch::{EmulatedSettings, EmulatedStage};
use std::collections::VecDeque;
use std::time::Duration;
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PacketIn, PacketOut, PortNo};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Body, Message, Version};
use weir_packet::Field;
use weir_traffic::RandomStream;
use weir_units::Instant;

/// Way in which the controller of a test answers a packet-in.
#[derive(Clone, Copy, PartialEq)]
enum TestAnswers {
    /// A flow-mod with the buffer.
    FlowMod,
    /// A flow-mod without buffer, then a packet-out with the frame.
    Both,
    /// Two flow-mods with the buffer.
    Twice,
    /// A packet-out of the buffer for announcements, nothing for other packets.
    Floods,
    /// A flow-mod for other addresses.
    Wrong,
    /// A flow-mod with the buffer, but nothing for every tenth packet-in.
    DropsTenth,
}

/// Controller that takes a constant time for each packet-in, one after the other.
struct TestController {
    sessions: Vec<Session>,
    waiting: VecDeque<(usize, PacketIn)>,
    busy_until: Instant,
    service: Duration,
    answers: TestAnswers,
}

impl TestController {
    fn bodies(&self, packet: &PacketIn) -> Vec<Body> {
        let frame = &packet.data.0;
        let mac = |at: usize| frame[at..at + 6].iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let to = || vec![Action::output(PortNo(1))];
        let matching = Match::any().with(Field::EthDst, mac(0)).with(Field::EthSrc, mac(6));
        let entry = FlowMod::add(1, matching, vec![Instruction::ApplyActions(to())]);
        let buffered = Body::FlowMod(FlowMod { buffer_id: packet.buffer_id, ..entry.clone() });
        let out = PacketOut {
            buffer_id: None,
            in_port: PortNo(1),
            matching: Match::any(),
            actions: to(),
            data: packet.data.clone(),
        };
        match self.answers {
            TestAnswers::DropsTenth if packet.buffer_id.is_some_and(|id| id.0 % 10 == 0) => Vec::new(),
            TestAnswers::FlowMod | TestAnswers::DropsTenth => vec![buffered],
            TestAnswers::Both => vec![Body::FlowMod(entry), Body::PacketOut(out)],
            TestAnswers::Twice => vec![buffered.clone(), buffered],
            TestAnswers::Floods if frame[0] == 0xff => {
                let data = weir_openflow::model::Bytes::default();
                vec![Body::PacketOut(PacketOut { buffer_id: packet.buffer_id, data, ..out })]
            }
            TestAnswers::Floods => Vec::new(),
            TestAnswers::Wrong => {
                let matching = Match::any().with(Field::EthSrc, 9_u64);
                let entry = FlowMod { matching, ..entry };
                vec![Body::FlowMod(FlowMod { buffer_id: packet.buffer_id, ..entry })]
            }
        }
    }

    /// Exchanges all bytes, and answers the packet-ins that are done by `now`.
    fn step(&mut self, fleet: &mut SwitchFleet, now: Instant) {
        loop {
            let mut moved = 0;
            for (number, session) in self.sessions.iter_mut().enumerate() {
                let sent = std::mem::take(fleet.switches[number].output());
                session.receive(now, &sent);
                while let Some(event) = session.take_event() {
                    if let SessionEvent::Message(Message { body: Body::PacketIn(packet), .. }) = event {
                        if self.waiting.is_empty() {
                            self.busy_until = now + self.service;
                        }
                        self.waiting.push_back((number, packet));
                    }
                }
                moved += sent.len();
            }
            while self.busy_until <= now && !self.waiting.is_empty() {
                let Some((number, packet)) = self.waiting.pop_front() else { break };
                for body in self.bodies(&packet) {
                    self.sessions[number].send(&Message { xid: 0, body }).unwrap();
                }
                self.busy_until += self.service;
            }
            for number in 0..self.sessions.len() {
                let answers = std::mem::take(self.sessions[number].output());
                moved += answers.len();
                // In odd pieces, as from a socket.
                for piece in answers.chunks(37) {
                    fleet.receive(number, now, piece);
                }
            }
            fleet.take_touched();
            if moved == 0 {
                return;
            }
        }
    }
}

fn settings(number: u16, version: Version, pace: RequestPace) -> EmulatedSettings {
    let plan = RequestPlan { version, frames: AskedFrames::Ip, sources: AskedSources::Known, hosts: 8, switch: number };
    EmulatedSettings {
        plan,
        pace,
        timeout: Duration::from_millis(100),
        most_waiting: 56,
        is_special: false,
        echo_interval: None,
    }
}

/// Runs switches for two seconds after they are set up, and measures all but the first half second.
fn run(version: Version, answers: TestAnswers, paces: Vec<RequestPace>) -> SwitchFleet {
    run_switches(answers, (0..).zip(paces).map(|(number, pace)| settings(number, version, pace)).collect())
}

fn run_switches(answers: TestAnswers, switches: Vec<EmulatedSettings>) -> SwitchFleet {
    let service = Duration::from_millis(1);
    let (mut fleet, mut sessions) = (SwitchFleet::default(), Vec::new());
    for settings in switches {
        let version = settings.plan.version;
        fleet.connect(settings, Instant::ZERO).unwrap();
        let config =
            SessionConfig { versions: vec![version], echo_interval: Duration::ZERO, ..SessionConfig::default() };
        sessions.push(Session::controller(config, Instant::ZERO));
    }
    let mut controller =
        TestController { sessions, waiting: VecDeque::new(), busy_until: Instant::ZERO, service, answers };
    let (mut now, mut end, mut is_started) = (Instant::ZERO, Instant::FAR, false);
    while now < end {
        fleet.step(now);
        controller.step(&mut fleet, now);
        if !is_started && fleet.count(|stage| stage == EmulatedStage::Ready) == fleet.switches.len() {
            is_started = true;
            let from = now + Duration::from_millis(500);
            end = now + Duration::from_secs(2);
            fleet.tally.measured = Some(from..end);
            (0..fleet.switches.len()).for_each(|number| fleet.start(number, now));
        }
        let busy = if controller.waiting.is_empty() { Instant::FAR } else { controller.busy_until };
        let next = fleet.next_wake().unwrap_or(Instant::FAR).min(busy);
        now = next.max(now + Duration::from_micros(1));
        assert!(now < Instant::from_nanos(20_000_000_000), "the switches are not set up in time");
    }
    fleet
}

fn answered(fleet: &SwitchFleet) -> Vec<u64> {
    fleet.switches.iter().map(|switch| switch.figures.answered()).collect()
}

fn p50_us(fleet: &SwitchFleet) -> f64 {
    fleet.tally.ordinary[0].summary().unwrap().p50_us
}

#[test]
fn windows_share_the_controller() {
    for version in [Version::V10, Version::V13, Version::V14] {
        let fleet = run(version, TestAnswers::FlowMod, vec![RequestPace::Window(1); 4]);
        assert!(answered(&fleet).iter().all(|count| count.abs_diff(375) <= 2), "{:?}", answered(&fleet));
        assert!((p50_us(&fleet) - 4000.0).abs() < 10.0, "{}", p50_us(&fleet));
        let fleet = run(version, TestAnswers::FlowMod, vec![RequestPace::Window(3), RequestPace::Window(1)]);
        let [most, least] = answered(&fleet)[..] else { panic!() };
        assert!(most.abs_diff(3 * least) <= 6, "{most} {least}");
    }
}

#[test]
fn an_answer_counts_once_however_many_messages_it_has() {
    for version in [Version::V10, Version::V13] {
        let fleet = run(version, TestAnswers::Both, vec![RequestPace::Window(2)]);
        let (counts, answered) = (fleet.tally.counts, answered(&fleet)[0]);
        assert!(answered.abs_diff(1500) <= 2 && counts.flow_mods.abs_diff(answered) <= 1, "{counts:?}");
        assert!(counts.second.abs_diff(answered) <= 1 && counts.repeated == 0, "{counts:?}");
        assert!(counts.by_addresses == counts.flow_mods && counts.by_frame == counts.packet_outs, "{counts:?}");
        let fleet = run(version, TestAnswers::Twice, vec![RequestPace::Window(2)]);
        let counts = fleet.tally.counts;
        assert!(counts.repeated.abs_diff(1500) <= 2 && counts.second == 0, "{counts:?}");
    }
}

#[test]
fn late_answers_with_nothing_but_addresses_answer_no_later_request() {
    // 56 pairs of hosts, and 300 a second too many: answers come later than the time-out, when the pair is asked again.
    let random = RandomStream::new(1, 0, 0);
    let pace = RequestPace::Open(OpenLoop::new(1300.0, AskedArrivals::Constant, 1, random).unwrap());
    let fleet = run(Version::V13, TestAnswers::Both, vec![pace]);
    let counts = fleet.tally.counts;
    assert!(counts.repeated == 0 && counts.wrong == 0, "{counts:?}");
    assert!(p50_us(&fleet) > 50_000.0, "{}", p50_us(&fleet));
}

#[test]
fn requests_without_an_answer_are_lost_and_others_follow() {
    for answers in [TestAnswers::Floods, TestAnswers::Wrong] {
        let fleet = run(Version::V13, answers, vec![RequestPace::Window(2)]);
        let figures = &fleet.switches[0].figures;
        assert!(figures.answered() == 0 && figures.lost >= 26 && figures.lost <= 30, "{figures:?}");
        let wrong = if answers == TestAnswers::Wrong { figures.asked } else { 0 };
        assert!(fleet.tally.counts.wrong.abs_diff(wrong) <= 2, "{:?} {figures:?}", fleet.tally.counts);
    }
}

#[test]
fn a_rate_heeds_no_lost_requests() {
    // 90 more are sent before a lost one is given up after 100 ms, but there is room for 56.
    let random = RandomStream::new(1, 0, 0);
    let pace = RequestPace::Open(OpenLoop::new(900.0, AskedArrivals::Constant, 1, random).unwrap());
    let fleet = run(Version::V13, TestAnswers::DropsTenth, vec![pace]);
    let figures = &fleet.switches[0].figures;
    assert!(figures.asked.abs_diff(1350) <= 2 && figures.unsent == 0, "{figures:?}");
    assert!(figures.answered().abs_diff(1215) <= 3 && figures.lost >= 125, "{figures:?}");
    assert_eq!(fleet.tally.counts.late, 0);
}

#[test]
fn delays_count_from_when_a_request_was_due() {
    let open = |per_second| {
        let random = RandomStream::new(1, 0, 0);
        RequestPace::Open(OpenLoop::new(per_second, AskedArrivals::Constant, 1, random).unwrap())
    };
    let fleet = run(Version::V13, TestAnswers::FlowMod, vec![open(500.0)]);
    assert!((p50_us(&fleet) - 1000.0).abs() < 2.0 && answered(&fleet)[0].abs_diff(750) <= 1);
    // Twice what the controller can do: the rest is not sent, because 56 packet-ins wait already.
    let fleet = run(Version::V13, TestAnswers::FlowMod, vec![open(2000.0)]);
    let figures = &fleet.switches[0].figures;
    assert!(figures.asked.abs_diff(3000) <= 2 && figures.answered().abs_diff(1500) <= 2, "{figures:?}");
    assert!(figures.unsent.abs_diff(1500) <= 3 && p50_us(&fleet) > 50_000.0, "{figures:?}");
}

#[test]
fn echo_requests_are_answered_or_given_up() {
    let echo_interval = Some(Duration::from_millis(10));
    let settings = EmulatedSettings { echo_interval, ..settings(0, Version::V13, RequestPace::Window(2)) };
    let mut fleet = run_switches(TestAnswers::FlowMod, vec![settings]);
    let echo = fleet.tally.echo.summary().unwrap();
    assert!(echo.samples.abs_diff(150) <= 1 && echo.max_us < 1.0, "the test's controller answers at once: {echo:?}");
    assert_eq!(fleet.switches[0].figures.echo_lost, 0);
    // Without a controller there are no answers: each request waits for the time-out of 100 ms.
    fleet.tally.measured = Some(Instant::ZERO..Instant::FAR);
    let mut now = Instant::ZERO;
    while now < Instant::from_nanos(5_000_000_000) {
        fleet.step(now);
        now = fleet.next_wake().unwrap().max(now + Duration::from_micros(1));
    }
    let lost = fleet.switches[0].figures.echo_lost;
    assert!((20..=30).contains(&lost), "{lost}");
}

#[test]
fn a_peer_that_speaks_another_protocol_ends_the_channel() {
    for bytes in [&b"HTTP/1.1 400 Bad Request\r\n"[..], &[4, 0, 0, 3, 0, 0, 0, 0], &[0x16, 3, 1, 0, 50, 1, 0, 0]] {
        let mut fleet = SwitchFleet::default();
        fleet.connect(settings(0, Version::V13, RequestPace::Window(1)), Instant::ZERO).unwrap();
        fleet.receive(0, Instant::ZERO, bytes);
        assert_eq!(fleet.count(|stage| stage == EmulatedStage::Closed), 1, "{bytes:?}");
        assert!(fleet.ends().next().is_some_and(|why| !why.is_empty()));
    }
    let mut fleet = SwitchFleet::default();
    fleet.connect(settings(0, Version::V13, RequestPace::Window(1)), Instant::ZERO).unwrap();
    fleet.step(Instant::from_nanos(10_000_000_000));
    assert!(fleet.ends().next().is_some_and(|why| why.contains("no hello")));
}
