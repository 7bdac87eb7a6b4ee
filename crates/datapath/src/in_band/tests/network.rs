//! Networks of switches with in-band control in virtual time: every switch reaches the controller over the links alone,
//! also after a link fails, and no frame circles.
mod storms;

use super::frames::{Neighbour, Tcp, data};
use super::{CONTROLLER, CONTROLLER_MAC, CONTROLLER_V6, ControlDecision, InBand, InBandConfig, SILENCE};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;
use weir_units::Instant;

/// First wait of TCP for an acknowledgement; doubled after each.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Time between two questions of a resolver.
const ARP_WAIT: Duration = Duration::from_secs(1);
/// Longest pause of a switch between two segments to the controller.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Largest delay of a link. The slowest path is quicker than the lock of a port lasts.
const LONGEST_DELAY: Duration = Duration::from_millis(20);
/// Largest random part of a link's delay.
const LONGEST_JITTER: Duration = Duration::from_millis(1);
/// Time within which every switch has to reach the controller, after the start and after a failure.
const PATIENCE: Duration = Duration::from_secs(15);

/// Pseudo-random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("below a usize")
    }

    fn span(&mut self, longest: Duration) -> Duration {
        longest.mul_f64((self.next() >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkHealth {
    Up,
    /// Both ends lost their carrier.
    Cut,
    /// Frames are lost, and no end knows.
    Silent,
}

struct TestLink {
    ends: [usize; 2],
    delay: Duration,
    health: LinkHealth,
}

/// A switch with the network stack behind its local port.
struct TestSwitch {
    in_band: InBand,
    address: MacAddr,
    ip: IpAddr,
    /// Ethernet address of the controller, once it is known.
    controller: Option<MacAddr>,
    /// Segment that is not acknowledged: its number and the next wait.
    waiting: Option<(u32, Duration)>,
    /// Time at which the latest segment was sent first.
    first_sent: Instant,
    sent: u32,
    /// Time of the latest answer.
    answered: Option<Instant>,
}

enum Event {
    Arrives {
        switch: usize,
        port: PortNo,
        frame: Vec<u8>,
    },
    ArrivesAtController(Vec<u8>),
    /// The stack looks for the controller, or sends its next segment.
    Begins(usize),
    /// The time to wait for the acknowledgement of a segment, by its number, is over.
    Retransmits {
        switch: usize,
        number: u32,
    },
}

struct Network {
    controller: SocketAddr,
    random: Random,
    now: Instant,
    agenda: BTreeMap<(Instant, u64), Event>,
    events: u64,
    switches: Vec<TestSwitch>,
    links: Vec<TestLink>,
    /// The switch at the controller, which is at its port 1000.
    home: usize,
    /// The switch at a host that sends what it likes, and receives nothing, at its port 2000.
    host: usize,
    /// False once the stacks send nothing new.
    is_active: bool,
    originated: usize,
    transmitted: usize,
    /// Number of notices among them.
    told: usize,
    /// Number of frames that arrived at the controller, and whether it answers them.
    arrived: usize,
    is_answering: bool,
    /// Segments sent first after this time must not be lost.
    lossless_since: Option<Instant>,
    /// Number of segments that were lost all the same.
    lost: usize,
}

const CONTROLLER_PORT: PortNo = PortNo(1000);
const HOST_PORT: PortNo = PortNo(2000);

impl Network {
    /// Makes a network of switches that are joined by links, with the controller at one of them. Networks with odd
    /// seeds have IPv6 addresses.
    fn new(seed: u64, switches: usize, links: &[[usize; 2]]) -> Network {
        let mut random = Random(seed);
        let controller = if seed.is_multiple_of(2) { CONTROLLER } else { CONTROLLER_V6 };
        let switch = |number: usize| {
            let number = u8::try_from(number).expect("a small network");
            let address = MacAddr([2, 0, 0, 0, 1, number]);
            let config = InBandConfig { controllers: vec![controller], silence: SILENCE, queue: None, vlan: None };
            let mut in_band = InBand::new(config);
            in_band.set_local(address);
            let ip = address_of(number, controller);
            TestSwitch {
                in_band,
                address,
                ip,
                controller: None,
                waiting: None,
                first_sent: Instant::ZERO,
                sent: 0,
                answered: None,
            }
        };
        let delayed = |ends: &[usize; 2]| TestLink { ends: *ends, delay: Duration::ZERO, health: LinkHealth::Up };
        let mut network = Network {
            controller,
            now: Instant::ZERO,
            agenda: BTreeMap::new(),
            events: 0,
            switches: (0..switches).map(switch).collect(),
            links: links.iter().map(delayed).collect(),
            home: random.below(switches),
            host: usize::MAX,
            random,
            is_active: true,
            originated: 0,
            transmitted: 0,
            told: 0,
            arrived: 0,
            is_answering: true,
            lossless_since: None,
            lost: 0,
        };
        for link in 0..links.len() {
            network.links[link].delay = network.random.span(LONGEST_DELAY);
        }
        for switch in 0..switches {
            let start = network.random.span(Duration::from_secs(1));
            network.after(start, Event::Begins(switch));
        }
        network
    }

    fn after(&mut self, wait: Duration, event: Event) {
        self.events += 1;
        self.agenda.insert((self.now + wait, self.events), event);
    }

    fn run_until(&mut self, end: Instant) {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), event) = entry.remove_entry();
            self.now = at;
            self.handle(event);
        }
        self.now = end;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrives { switch, port, frame } => self.forward(switch, port, &frame),
            Event::ArrivesAtController(frame) => {
                self.arrived += 1;
                if self.is_answering {
                    self.answer(&frame);
                }
            }
            Event::Begins(switch) => self.begin(switch),
            Event::Retransmits { switch, number } => match self.switches[switch].waiting {
                Some((waiting, wait)) if waiting == number => {
                    // The answer may be on its way still, on a path over all switches and back.
                    let first_sent = self.switches[switch].first_sent;
                    let is_late = self.now.since(first_sent) > longest_path(2 * self.switches.len());
                    self.lost += usize::from(is_late && self.lossless_since.is_some_and(|since| first_sent > since));
                    self.ask(switch, number, wait);
                }
                _ => {}
            },
        }
    }

    /// Returns the live ports of a switch. Port n is link n.
    fn live(&self, switch: usize) -> Vec<PortNo> {
        let is_here = |link: &TestLink| link.ends.contains(&switch) && link.health != LinkHealth::Cut;
        let links = self.links.iter().enumerate().filter(|(_, link)| is_here(link));
        let ports = links.map(|(number, _)| PortNo(u32::try_from(number).expect("a small network") + 1));
        let stations = [(self.home, CONTROLLER_PORT), (self.host, HOST_PORT)];
        ports.chain(stations.into_iter().filter_map(|(at, port)| (at == switch).then_some(port))).collect()
    }

    fn forward(&mut self, switch: usize, in_port: PortNo, frame: &[u8]) {
        let live = self.live(switch);
        let in_band = &mut self.switches[switch].in_band;
        // A frame that was on its way when the carrier was lost arrives nowhere.
        if in_port != PortNo::LOCAL && !live.contains(&in_port) {
            return;
        }
        match in_band.handle(self.now, in_port, frame, |port| live.contains(&port)) {
            Some(ControlDecision::To(PortNo::LOCAL)) => self.receive(switch, frame),
            Some(ControlDecision::To(port)) => self.transmit(switch, port, frame),
            Some(ControlDecision::Flood { with_local }) => {
                let ports = live.into_iter().filter(|port| *port != in_port);
                ports.for_each(|port| self.transmit(switch, port, frame));
                if with_local {
                    self.receive(switch, frame);
                }
            }
            Some(ControlDecision::Tell(lost)) => self.tell(switch, in_port, &lost),
            Some(ControlDecision::Drop(_)) => {}
            None => panic!("in-band control takes all frames of this test"),
        }
    }

    fn tell(&mut self, switch: usize, except: PortNo, lost: &[MacAddr]) {
        let notices: Vec<Vec<u8>> = self.switches[switch].in_band.notices(lost).collect();
        let ports = self.live(switch).into_iter().filter(|port| *port != except && port.0 < CONTROLLER_PORT.0);
        for (port, notice) in ports.flat_map(|port| notices.iter().map(move |notice| (port, notice))) {
            self.originated += 1;
            self.told += 1;
            self.transmit(switch, port, notice);
        }
    }

    fn transmit(&mut self, switch: usize, port: PortNo, frame: &[u8]) {
        if port == HOST_PORT {
            return;
        }
        self.transmitted += 1;
        if port == CONTROLLER_PORT {
            return self.after(Duration::from_micros(10), Event::ArrivesAtController(frame.to_vec()));
        }
        let link = &self.links[port.0 as usize - 1];
        let other = if link.ends[0] == switch { link.ends[1] } else { link.ends[0] };
        let (delay, health) = (link.delay, link.health);
        let jitter = self.random.span(LONGEST_JITTER);
        if health == LinkHealth::Up {
            self.after(delay + jitter, Event::Arrives { switch: other, port, frame: frame.to_vec() });
        }
    }

    /// Sends a frame from the stack of a switch.
    fn send(&mut self, switch: usize, frame: &[u8]) {
        self.originated += 1;
        self.forward(switch, PortNo::LOCAL, frame);
    }

    fn begin(&mut self, switch: usize) {
        let stack = &mut self.switches[switch];
        if stack.controller.is_some() {
            stack.sent += 1;
            let number = stack.sent;
            stack.first_sent = self.now;
            self.ask(switch, number, FIRST_WAIT);
        } else if self.is_active {
            let own = (stack.address, stack.ip);
            let target = self.controller.ip();
            self.send(switch, &Neighbour { from: own, to: None, target }.bytes());
            self.after(ARP_WAIT, Event::Begins(switch));
        }
    }

    /// Sends a segment, and again after `wait` if it is not acknowledged.
    fn ask(&mut self, switch: usize, number: u32, wait: Duration) {
        let stack = &mut self.switches[switch];
        let Some(controller) = stack.controller.filter(|_| self.is_active) else { return };
        stack.waiting = Some((number, wait * 2));
        let from = (stack.address, SocketAddr::new(stack.ip, 40000));
        let segment = Tcp { from, to: (controller, self.controller), data: &number.to_be_bytes() };
        self.send(switch, &segment.bytes());
        self.after(wait, Event::Retransmits { switch, number });
    }

    /// Gives a frame to the stack of a switch.
    fn receive(&mut self, switch: usize, frame: &[u8]) {
        let pause = self.random.span(LONGEST_PAUSE);
        let stack = &mut self.switches[switch];
        let Some(acknowledged) = data(frame) else {
            let is_answer = frame[..6] == stack.address.0;
            if is_answer && stack.controller.is_none() {
                // The question's timer begins the first segment.
                stack.controller = Some(CONTROLLER_MAC);
            }
            return;
        };
        assert_eq!(frame[..6], stack.address.0, "a segment for another station");
        let number = u32::from_be_bytes(acknowledged);
        if stack.waiting.is_some_and(|(waiting, _)| waiting == number) {
            (stack.waiting, stack.answered) = (None, Some(self.now));
            self.after(pause, Event::Begins(switch));
        }
    }

    /// Answers a frame as the controller. Now and then the controller asks for the station's address itself before.
    fn answer(&mut self, frame: &[u8]) {
        let mut station = [0; 6];
        station.copy_from_slice(&frame[6..12]);
        let station = MacAddr(station);
        let ip = address_of(station.0[5], self.controller);
        let own = (CONTROLLER_MAC, self.controller.ip());
        let mut answers = Vec::new();
        if self.random.below(4) == 0 {
            answers.push(Neighbour { from: own, to: None, target: ip }.bytes());
        }
        answers.push(match data(frame) {
            None => Neighbour { from: own, to: Some(station), target: ip }.bytes(),
            Some(data) => {
                let to = (station, SocketAddr::new(ip, 40000));
                Tcp { from: (CONTROLLER_MAC, self.controller), to, data: &data }.bytes()
            }
        });
        for frame in answers {
            self.originated += 1;
            self.after(Duration::from_micros(10), Event::Arrives { switch: self.home, port: CONTROLLER_PORT, frame });
        }
    }

    /// Fails a link.
    fn fail(&mut self, link: usize, health: LinkHealth) {
        self.links[link].health = health;
        if health == LinkHealth::Cut {
            let port = PortNo(u32::try_from(link).expect("a small network") + 1);
            for end in self.links[link].ends {
                let lost = self.switches[end].in_band.forget_port(port);
                self.tell(end, port, &lost);
            }
        }
    }

    /// Checks that every switch gets an answer within the patience from now on.
    fn expect_answers(&mut self, seed: u64) {
        let start = self.now;
        self.run_until(start + PATIENCE);
        for (number, switch) in self.switches.iter().enumerate() {
            let is_reached = switch.answered.is_some_and(|at| at > start);
            assert!(is_reached, "seed {seed}: switch {number} has no answer since {start:?}: {:?}", switch.answered);
        }
        let most = 3 * (self.links.len() + 1) * self.originated;
        assert!(self.transmitted <= most, "seed {seed}: {} copies of {} frames", self.transmitted, self.originated);
    }

    /// Checks that frames in flight come to an end once no station sends.
    fn expect_quiet(&mut self, seed: u64) {
        self.is_active = false;
        self.run_until(self.now + PATIENCE);
        assert!(self.agenda.is_empty(), "seed {seed}: {} frames circle", self.agenda.len());
    }

    /// Returns true if all switches are joined by links other than one.
    fn is_joined_without(&self, link: usize) -> bool {
        let mut reached = vec![false; self.switches.len()];
        let mut next = vec![0];
        while let Some(switch) = next.pop() {
            if !std::mem::replace(&mut reached[switch], true) {
                let rest = self.links.iter().enumerate().filter(|(number, _)| *number != link);
                let here = rest.filter(|(_, other)| other.ends.contains(&switch));
                next.extend(here.flat_map(|(_, other)| other.ends));
            }
        }
        reached.into_iter().all(|reached| reached)
    }
}

/// Returns the longest time that a frame takes over so many links.
fn longest_path(links: usize) -> Duration {
    (LONGEST_DELAY + LONGEST_JITTER) * u32::try_from(links).expect("a small network")
}

/// Returns the address of a switch, of the same version as the controller's.
fn address_of(number: u8, controller: SocketAddr) -> IpAddr {
    match controller {
        SocketAddr::V4(_) => Ipv4Addr::new(10, 0, 1, number).into(),
        SocketAddr::V6(_) => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, number.into()).into(),
    }
}

/// Draws the links of a network: a chain, a star, a ring, or a random tree with a few links more.
fn links(random: &mut Random, switches: usize) -> Vec<[usize; 2]> {
    let chain = (1..switches).map(|switch| [switch - 1, switch]);
    match random.below(4) {
        0 => chain.collect(),
        1 => (1..switches).map(|switch| [0, switch]).collect(),
        2 => chain.chain((switches > 2).then_some([switches - 1, 0])).collect(),
        _ => {
            let mut links: Vec<_> = (1..switches).map(|switch| [random.below(switch), switch]).collect();
            for _ in 0..random.below(switches) {
                let (one, other) = (random.below(switches), random.below(switches));
                // Parallel links are allowed, loops at one switch are not.
                if one != other {
                    links.push([one, other]);
                }
            }
            links
        }
    }
}

#[test]
fn all_switches_reach_the_controller_and_no_frame_circles() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let switches = 1 + random.below(12);
        let links = links(&mut random, switches);
        let mut network = Network::new(seed, switches, &links);
        network.expect_answers(seed);
        let spare: Vec<usize> = (0..links.len()).filter(|link| network.is_joined_without(*link)).collect();
        if !spare.is_empty() {
            let failing = spare[random.below(spare.len())];
            let health = if random.below(2) == 0 { LinkHealth::Cut } else { LinkHealth::Silent };
            network.fail(failing, health);
            if health == LinkHealth::Cut {
                // By then the notices have passed all links one after the other.
                network.lossless_since = Some(network.now + longest_path(links.len()));
            }
            network.expect_answers(seed);
            assert_eq!(network.lost, 0, "seed {seed}: segments after the cut of link {failing} were lost");
            network.lossless_since = None;
            network.fail(failing, LinkHealth::Up);
            network.expect_answers(seed);
        }
        network.expect_quiet(seed);
    }
}

#[test]
fn a_flooded_frame_passes_each_link_of_a_ring_at_most_twice() {
    let links: Vec<[usize; 2]> = (0..8).map(|switch| [switch, (switch + 1) % 8]).collect();
    let mut network = Network::new(1, 8, &links);
    network.agenda.clear();
    let own = (network.switches[3].address, network.switches[3].ip);
    // Without a controller that would answer.
    network.home = usize::MAX;
    let target = network.controller.ip();
    network.send(3, &Neighbour { from: own, to: None, target }.bytes());
    network.run_until(Instant::ZERO + PATIENCE);
    assert!(network.agenda.is_empty());
    assert!(network.transmitted <= 2 * links.len(), "{} copies", network.transmitted);
}
