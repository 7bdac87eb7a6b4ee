mod frames;
mod network;
mod recognition;

use super::*;
use frames::{Neighbour, Tcp};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const CONTROLLER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 100)), 6653);
const CONTROLLER_V6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x100)), 6653);
const CONTROLLER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 100]);
const LOCAL_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const LOCAL_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const OTHER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const OTHER_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const HOST_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 50]);
const HOST_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50));
const SILENCE: Duration = Duration::from_secs(1);

const FLOOD: ControlDecision = ControlDecision::Flood { with_local: true };
const FLOOD_TO_ONE: ControlDecision = ControlDecision::Flood { with_local: false };
const EXCESS: ControlDecision = ControlDecision::Drop(DropReason::ControlExcess);
const COPY: ControlDecision = ControlDecision::Drop(DropReason::ControlCopy);

fn in_band() -> InBand {
    let mut in_band =
        InBand::new(InBandConfig { controllers: vec![CONTROLLER], silence: SILENCE, queue: None, vlan: None });
    in_band.set_local(LOCAL_MAC);
    in_band
}

impl InBand {
    /// Returns true if a hidden entry takes a frame.
    fn takes(&self, in_port: PortNo, bytes: &[u8]) -> bool {
        self.recognise(in_port, bytes).is_some()
    }

    /// Decides about a frame; `None` if no hidden entry takes it.
    fn handle(
        &mut self,
        now: Instant,
        in_port: PortNo,
        bytes: &[u8],
        is_live: impl Fn(PortNo) -> bool,
    ) -> Option<ControlDecision> {
        let recognised = self.recognise(in_port, bytes)?;
        Some(self.decide(now, in_port, &recognised, bytes, is_live))
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn to(port: u32) -> ControlDecision {
    ControlDecision::To(PortNo(port))
}

/// Gives a frame to in-band control with all ports up.
fn decide(in_band: &mut InBand, ms: u64, port: PortNo, frame: &[u8]) -> Option<ControlDecision> {
    assert_eq!(in_band.takes(port, frame), in_band.handle(at(ms), port, frame, |_| true).is_some());
    // The frame was given once more by the line above; a second frame from the same port changes nothing.
    in_band.handle(at(ms), port, frame, |_| true)
}

fn asks_for_controller() -> Neighbour {
    Neighbour { from: (OTHER_MAC, OTHER_ADDRESS), to: None, target: CONTROLLER.ip() }
}

fn segment(from: (MacAddr, SocketAddr), to: (MacAddr, SocketAddr)) -> Vec<u8> {
    Tcp { from, to, data: &[1, 2, 3] }.bytes()
}

fn to_controller(from: MacAddr, address: IpAddr) -> Vec<u8> {
    segment((from, SocketAddr::new(address, 40000)), (CONTROLLER_MAC, CONTROLLER))
}

fn from_controller(to: MacAddr, address: IpAddr) -> Vec<u8> {
    segment((CONTROLLER_MAC, CONTROLLER), (to, SocketAddr::new(address, 40000)))
}

#[test]
fn answers_follow_the_path_of_the_question() {
    let mut in_band = in_band();
    assert_eq!(decide(&mut in_band, 0, PortNo(2), &asks_for_controller().bytes()), Some(FLOOD));
    let answer = Neighbour { from: (CONTROLLER_MAC, CONTROLLER.ip()), to: Some(OTHER_MAC), target: OTHER_ADDRESS };
    assert_eq!(decide(&mut in_band, 1, PortNo(1), &answer.bytes()), Some(to(2)));
    assert_eq!(decide(&mut in_band, 2, PortNo(2), &to_controller(OTHER_MAC, OTHER_ADDRESS)), Some(to(1)));
    let own = to_controller(LOCAL_MAC, LOCAL_ADDRESS);
    assert_eq!(decide(&mut in_band, 3, PortNo::LOCAL, &own), Some(to(1)));
    let answer = from_controller(LOCAL_MAC, LOCAL_ADDRESS);
    assert_eq!(decide(&mut in_band, 4, PortNo(1), &answer), Some(ControlDecision::To(PortNo::LOCAL)));
    let state = in_band.state(at(5));
    assert_eq!(state.stations, [(OTHER_MAC, PortNo(2)), (CONTROLLER_MAC, PortNo(1))]);
    let counted = |text: &str| state.entries.iter().find(|entry| entry.to_string() == text).map(|entry| entry.packets);
    // Each frame was given twice.
    assert_eq!(counted("tcp,nw_dst=10.0.0.100,tp_dst=6653"), Some(4));
    assert_eq!(counted("arp,arp_tpa=10.0.0.100"), Some(2));
    assert_eq!(counted("arp,dl_dst=02:00:00:00:00:01"), Some(0));
}

#[test]
fn further_copies_of_a_flooded_frame_are_dropped_for_a_while() {
    let mut in_band = in_band();
    let question = asks_for_controller().bytes();
    assert_eq!(decide(&mut in_band, 0, PortNo(2), &question), Some(FLOOD));
    assert_eq!(decide(&mut in_band, 100, PortNo(3), &question), Some(COPY));
    assert_eq!(decide(&mut in_band, 499, PortNo(3), &question), Some(COPY));
    assert_eq!(decide(&mut in_band, 500, PortNo(3), &question), Some(FLOOD));
    // Copies of the switch's own frames come back in a ring.
    let own = Neighbour { from: (LOCAL_MAC, LOCAL_ADDRESS), to: None, target: CONTROLLER.ip() }.bytes();
    let sent = decide(&mut in_band, 600, PortNo::LOCAL, &own);
    assert_eq!(sent, Some(FLOOD_TO_ONE));
    assert_eq!(decide(&mut in_band, 600, PortNo(3), &own), Some(COPY));
    assert!(in_band.state(at(600)).counters.copies > 0);
}

#[test]
fn a_known_path_may_differ_from_that_of_the_last_flood() {
    let mut in_band = in_band();
    let question = Neighbour { from: (CONTROLLER_MAC, CONTROLLER.ip()), to: None, target: OTHER_ADDRESS }.bytes();
    assert_eq!(decide(&mut in_band, 0, PortNo(2), &question), Some(FLOOD));
    let answer = from_controller(LOCAL_MAC, LOCAL_ADDRESS);
    assert_eq!(decide(&mut in_band, 1, PortNo(1), &answer), Some(ControlDecision::To(PortNo::LOCAL)));
    assert_eq!(decide(&mut in_band, 2, PortNo(2), &answer), Some(COPY), "one copy is enough");
}

#[test]
fn a_port_without_link_is_forgotten() {
    let mut in_band = in_band();
    decide(&mut in_band, 0, PortNo(2), &from_controller(OTHER_MAC, OTHER_ADDRESS));
    let own = to_controller(LOCAL_MAC, LOCAL_ADDRESS);
    assert_eq!(decide(&mut in_band, 1, PortNo::LOCAL, &own), Some(to(2)));
    in_band.forget_port(PortNo(2));
    let sent = decide(&mut in_band, 2, PortNo::LOCAL, &own);
    assert_eq!(sent, Some(FLOOD_TO_ONE));
    // At once, although the lock of the former port would still hold.
    let answer = from_controller(LOCAL_MAC, LOCAL_ADDRESS);
    assert_eq!(decide(&mut in_band, 3, PortNo(3), &answer), Some(ControlDecision::To(PortNo::LOCAL)));
    // A port that is down, but was not told of yet, is not used.
    let down = in_band.handle(at(4), PortNo::LOCAL, &own, |port| port != PortNo(3));
    assert_eq!(down, Some(FLOOD_TO_ONE));
}

#[test]
fn lost_stations_are_told_to_those_who_reach_them_here() {
    let mut in_band = in_band();
    decide(&mut in_band, 0, PortNo(2), &from_controller(OTHER_MAC, OTHER_ADDRESS));
    decide(&mut in_band, 0, PortNo(3), &to_controller(OTHER_MAC, OTHER_ADDRESS));
    let lost = [CONTROLLER_MAC, OTHER_MAC, HOST_MAC];
    let notice = in_band.notices(&lost).next().expect("a notice");
    assert!(!in_band.takes(PortNo::LOCAL, &notice));
    // Only the controller is on the port on which the notice arrives.
    let told = in_band.handle(at(1), PortNo(2), &notice, |_| true);
    assert_eq!(told, Some(ControlDecision::Tell(vec![CONTROLLER_MAC])));
    let told = in_band.handle(at(2), PortNo(2), &notice, |_| true);
    assert_eq!(told, Some(ControlDecision::Tell(Vec::new())), "it was forgotten before");
    assert_eq!(in_band.state(at(2)).stations, [(OTHER_MAC, PortNo(3))]);
    // The new path is taken at once, although the lock of the former port would still hold.
    decide(&mut in_band, 3, PortNo(4), &from_controller(LOCAL_MAC, LOCAL_ADDRESS));
    assert_eq!(decide(&mut in_band, 4, PortNo(3), &to_controller(OTHER_MAC, OTHER_ADDRESS)), Some(to(4)));
    assert_eq!(in_band.forget_port(PortNo(4)), [CONTROLLER_MAC]);
}

#[test]
fn a_controller_that_does_not_answer_is_looked_for_elsewhere() {
    let mut in_band = in_band();
    let (own, answer) = (to_controller(LOCAL_MAC, LOCAL_ADDRESS), from_controller(LOCAL_MAC, LOCAL_ADDRESS));
    let acknowledgement =
        Tcp { from: (LOCAL_MAC, SocketAddr::new(LOCAL_ADDRESS, 40000)), to: (CONTROLLER_MAC, CONTROLLER), data: &[] };
    decide(&mut in_band, 0, PortNo(2), &answer);
    assert_eq!(decide(&mut in_band, 1, PortNo::LOCAL, &acknowledgement.bytes()), Some(to(2)));
    assert_eq!(decide(&mut in_band, 5000, PortNo::LOCAL, &own), Some(to(2)), "an acknowledgement asks nothing");
    decide(&mut in_band, 5900, PortNo(2), &answer);
    assert_eq!(decide(&mut in_band, 6100, PortNo::LOCAL, &own), Some(to(2)));
    assert_eq!(decide(&mut in_band, 7099, PortNo::LOCAL, &own), Some(to(2)));
    let retransmitted = in_band.handle(at(7100), PortNo::LOCAL, &own, |_| true);
    assert_eq!(retransmitted, Some(FLOOD_TO_ONE));
    assert_eq!(in_band.state(at(7100)).counters.silences, 1);
    decide(&mut in_band, 7200, PortNo(3), &answer);
    assert_eq!(decide(&mut in_band, 9000, PortNo::LOCAL, &own), Some(to(3)));
}

#[test]
fn a_frame_from_the_port_of_its_destination_is_sent_the_other_way() {
    let mut in_band = in_band();
    decide(&mut in_band, 0, PortNo(2), &from_controller(OTHER_MAC, OTHER_ADDRESS));
    let lost = to_controller(OTHER_MAC, OTHER_ADDRESS);
    let sent = in_band.handle(at(10), PortNo(2), &lost, |_| true);
    assert_eq!(sent, Some(FLOOD_TO_ONE));
    let own = to_controller(LOCAL_MAC, LOCAL_ADDRESS);
    assert_eq!(decide(&mut in_band, 11, PortNo::LOCAL, &own), Some(FLOOD_TO_ONE));
}

#[test]
fn the_number_of_stations_is_bounded() {
    let mut in_band = in_band();
    for number in 0_u16..5000 {
        let [high, low] = number.to_be_bytes();
        let from = (MacAddr([2, 0, 0, 1, high, low]), OTHER_ADDRESS);
        let question = Neighbour { from, to: None, target: CONTROLLER.ip() }.bytes();
        assert_eq!(in_band.handle(at(u64::from(number) * 2), PortNo(1), &question, |_| true), Some(FLOOD));
    }
    assert_eq!(in_band.state(at(10_000)).stations.len(), 1024);
    let group = Neighbour { from: (MacAddr([3, 0, 0, 0, 0, 0]), OTHER_ADDRESS), to: None, target: CONTROLLER.ip() };
    assert_eq!(in_band.handle(at(10_000), PortNo(1), &group.bytes(), |_| true), Some(COPY));
    let mut next = at(10_000);
    while let Some(due) = in_band.expire(next) {
        next = due.max(next);
    }
    assert!(in_band.state(next).stations.is_empty());
}

#[test]
fn controllers_have_a_limit_and_keep_their_counters() {
    let mut in_band = in_band();
    decide(&mut in_band, 0, PortNo(2), &from_controller(OTHER_MAC, OTHER_ADDRESS));
    let many: Vec<SocketAddr> = (6600..6700).map(|port| SocketAddr::new(CONTROLLER.ip(), port)).collect();
    in_band.set_controllers(&[&[CONTROLLER, CONTROLLER], &many[..]].concat());
    let entries = in_band.state(at(1)).entries;
    assert_eq!(entries.len(), 4 + 2 + 2 * MAX_IN_BAND_CONTROLLERS + 1);
    let kept = entries.iter().find(|entry| entry.to_string() == "tcp,nw_src=10.0.0.100,tp_src=6653");
    assert_eq!(kept.map(|entry| entry.packets), Some(2));
}

#[test]
fn a_flooded_frame_is_flooded_again_only_from_its_first_port() {
    let mut in_band = in_band();
    let question = asks_for_controller().bytes();
    let mut given = |ms, port, frame: &[u8]| in_band.handle(at(ms), PortNo(port), frame, |_| true);
    assert_eq!(given(0, 2, &question), Some(FLOOD));
    // A notice that the host makes up erases the lock, but not the memory of the frame.
    let notice = lost::notices(OTHER_MAC, &[OTHER_MAC]).next().expect("a notice");
    assert_eq!(given(1, 2, &notice), Some(ControlDecision::Tell(vec![OTHER_MAC])));
    assert_eq!(given(2, 3, &question), Some(COPY));
    // Some links pad short frames.
    let padded = [&question[..], &[0; 18]].concat();
    assert_eq!(given(3, 3, &padded), Some(COPY));
    assert_eq!(given(200, 2, &padded), Some(FLOOD), "a retransmission");
    assert_eq!(given(600, 2, &question), Some(FLOOD), "a retransmission");
    assert_eq!(given(800, 2, &question), Some(COPY), "too many");
    assert_eq!(given(1100, 2, &question), Some(FLOOD), "the time is over");
    let other = Neighbour { target: CONTROLLER.ip(), to: None, from: (OTHER_MAC, HOST_ADDRESS) }.bytes();
    assert_eq!(given(1100, 2, &other), Some(FLOOD), "another frame");
}

#[test]
fn a_copy_does_not_move_its_source_when_the_destination_has_become_known() {
    let mut in_band = in_band();
    assert_eq!(
        in_band.handle(at(0), PortNo(2), &to_controller(OTHER_MAC, OTHER_ADDRESS), |_| true),
        Some(FLOOD_TO_ONE)
    );
    assert_eq!(decide(&mut in_band, 1, PortNo(1), &from_controller(OTHER_MAC, OTHER_ADDRESS)), Some(to(2)));
    assert_eq!(decide(&mut in_band, 2, PortNo(3), &to_controller(OTHER_MAC, OTHER_ADDRESS)), Some(COPY));
    assert_eq!(in_band.state(at(2)).stations, [(OTHER_MAC, PortNo(2)), (CONTROLLER_MAC, PortNo(1))]);
    // Its port lost the link: the frame may come by another.
    in_band.forget_port(PortNo(2));
    assert_eq!(decide(&mut in_band, 3, PortNo(3), &to_controller(OTHER_MAC, OTHER_ADDRESS)), Some(to(1)));
}

#[test]
fn each_port_has_a_number_of_floods_and_the_switch_has_its_own() {
    let mut in_band = in_band();
    let question = |number: u16| {
        let [high, low] = number.to_be_bytes();
        Neighbour { from: (OTHER_MAC, IpAddr::from([10, 1, high, low])), to: None, target: CONTROLLER.ip() }.bytes()
    };
    let mut flooded = |ms, port, numbers: std::ops::Range<u16>| {
        // Each port has another station, or the lock would hold.
        let from = MacAddr([2, 0, 0, 0, 9, u8::try_from(port & 0xff).expect("a byte")]);
        let frames = numbers.map(|number| [&[0xff; 6][..], &from.0, &question(number)[12..]].concat());
        let decided = frames.map(|frame| in_band.handle(at(ms), PortNo(port), &frame, |_| true));
        decided.filter(|decision| matches!(decision, Some(ControlDecision::Flood { .. }))).count()
    };
    assert_eq!(flooded(0, 1, 0..300), 256);
    assert_eq!(flooded(100, 1, 300..600), 0);
    assert_eq!((2..7).map(|port| flooded(100, port, 0..300)).sum::<usize>(), 1024 - 256);
    assert_eq!(flooded(200, PortNo::LOCAL.0, 0..300), 256);
    assert_eq!(flooded(500, 1, 600..900), 256, "the time is over");
    assert_eq!(in_band.state(at(500)).counters.excess, 44 + 300 + 5 * 300 - 768 + 44 + 44);
}

#[test]
fn notices_beyond_the_limit_of_a_port_are_dropped() {
    let mut in_band = in_band();
    let notice = lost::notices(OTHER_MAC, &[OTHER_MAC]).next().expect("a notice");
    let mut heeded = |ms, port| {
        let decided = (0..30).map(|_| in_band.handle(at(ms), PortNo(port), &notice, |_| true));
        decided.filter(|decision| matches!(decision, Some(ControlDecision::Tell(_)))).count()
    };
    assert_eq!([(0, 1), (0, 1), (0, 2), (20, 1), (1000, 1)].map(|(ms, port)| heeded(ms, port)), [10, 0, 10, 2, 10]);
    assert_eq!(
        in_band.state(at(1000)).counters,
        InBandCounters { excess: 20 + 30 + 20 + 28 + 20, ..Default::default() }
    );
    // The path stays as it is.
    decide(&mut in_band, 1000, PortNo(1), &asks_for_controller().bytes());
    assert_eq!(in_band.handle(at(1001), PortNo(1), &notice, |_| true), Some(EXCESS));
    assert_eq!(in_band.state(at(1001)).stations, [(OTHER_MAC, PortNo(1))]);
}
