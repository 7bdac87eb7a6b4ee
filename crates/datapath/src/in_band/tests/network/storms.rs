//! Storms: a host makes up notices of lost paths behind its frames, so that switches forget the locks that end copies.
//! All the same no frame circles, in rings and in meshes, and what is sent again arrives.
use super::*;
use crate::in_band::floods::MOST_REPEATS;
use crate::in_band::lost;
use crate::in_band::paths::LOCK_TIME;

const HOST_MAC: MacAddr = MacAddr([2, 0, 0, 0, 1, 200]);
/// Time in which a host sends its notices.
const ATTACK: Duration = Duration::from_secs(2);

/// Returns rings of 3 to 6 switches, meshes in which all switches are joined, and a grid.
fn topologies() -> Vec<(usize, Vec<[usize; 2]>)> {
    let ring = |switches| (switches, (0..switches).map(|switch| [switch, (switch + 1) % switches]).collect());
    let mesh = |switches: usize| {
        let links = (0..switches).flat_map(|one| (one + 1..switches).map(move |other| [one, other]));
        (switches, links.collect())
    };
    let beside = (0..9).filter(|at| at % 3 < 2).map(|at| [at, at + 1]);
    let grid = (9, beside.chain((0..6).map(|at| [at, at + 3])).collect());
    (3..=6).map(ring).chain([mesh(4), mesh(5), grid]).collect()
}

impl Network {
    /// Makes a network with a host at a drawn switch, and without the traffic of its switches.
    fn with_host(seed: u64, switches: usize, links: &[[usize; 2]]) -> Network {
        let mut network = Network::new(seed, switches, links);
        network.host = network.random.below(switches);
        network
    }

    /// Sends a frame of the host after a while.
    fn send_from_host(&mut self, wait: Duration, frame: Vec<u8>) {
        self.originated += 1;
        self.after(wait, Event::Arrives { switch: self.host, port: HOST_PORT, frame });
    }

    /// Sends notices of the host that its own station is lost, at drawn times.
    fn forge(&mut self, notices: usize) {
        let notice = lost::notices(HOST_MAC, &[HOST_MAC]).next().expect("a notice");
        for _ in 0..notices {
            let wait = self.random.span(ATTACK);
            self.send_from_host(wait, notice.clone());
        }
    }

    /// Returns the host's question for the controller, or its segment to it.
    fn of_host(&self, is_question: bool) -> Vec<u8> {
        let from = address_of(HOST_MAC.0[5], self.controller);
        if is_question {
            return Neighbour { from: (HOST_MAC, from), to: None, target: self.controller.ip() }.bytes();
        }
        let from = (HOST_MAC, SocketAddr::new(from, 40000));
        Tcp { from, to: (CONTROLLER_MAC, self.controller), data: &[9; 4] }.bytes()
    }
}

#[test]
fn a_flooded_frame_does_not_circle_whatever_is_forgotten() {
    for (switches, links) in topologies() {
        for seed in 0..40 {
            for is_question in [true, false] {
                let mut network = Network::with_host(seed, switches, &links);
                // No station answers, so no switch knows the controller's port.
                network.agenda.clear();
                network.home = usize::MAX;
                let frame = network.of_host(is_question);
                network.send_from_host(Duration::ZERO, frame);
                network.forge(200);
                network.run_until(Instant::ZERO + ATTACK + PATIENCE);
                let copies = network.transmitted - network.told;
                assert!(copies <= 2 * links.len(), "seed {seed}: {copies} copies over {} links", links.len());
                assert!(network.agenda.is_empty(), "seed {seed}: {} frames circle", network.agenda.len());
            }
        }
    }
}

#[test]
fn frames_to_a_station_that_some_switches_know_end_too() {
    for (switches, links) in topologies() {
        for seed in 0..40 {
            let mut network = Network::with_host(seed, switches, &links);
            network.expect_answers(seed);
            network.is_active = false;
            network.run_until(network.now + PATIENCE);
            assert!(network.agenda.is_empty(), "seed {seed}");
            // Some switches forget the controller, and the others go on knowing its port.
            for switch in 0..switches {
                if network.random.below(2) == 0 {
                    network.switches[switch].in_band.paths.forget(CONTROLLER_MAC);
                }
            }
            let (transmitted, told) = (network.transmitted, network.told);
            for _ in 0..4 {
                let wait = network.random.span(ATTACK);
                let frame = network.of_host(false);
                network.send_from_host(wait, frame);
            }
            network.forge(200);
            // The controller's answers do not count.
            network.home = usize::MAX;
            network.run_until(network.now + ATTACK + PATIENCE);
            assert!(network.agenda.is_empty(), "seed {seed}: {} frames circle", network.agenda.len());
            let copies = network.transmitted - transmitted - (network.told - told);
            let most = 4 * 2 * links.len() * (usize::from(MOST_REPEATS) + 1);
            assert!(copies <= most, "seed {seed}: {copies} copies over {} links", links.len());
        }
    }
}

#[test]
fn sessions_stay_up_while_notices_are_made_up() {
    for (switches, links) in topologies() {
        for seed in 0..10 {
            let mut network = Network::with_host(seed, switches, &links);
            for _ in 0..20 {
                let (wait, is_question) = (network.random.span(ATTACK), network.random.below(2) == 0);
                let frame = network.of_host(is_question);
                network.send_from_host(wait, frame);
            }
            network.forge(200);
            network.expect_answers(seed);
            network.expect_quiet(seed);
        }
    }
}

/// Sends a segment of the host, and twice again as TCP does, which calls `then` half-way to the first retransmission.
/// Returns how often each of the three arrived at the controller.
fn retransmit(network: &mut Network, then: impl Fn(&mut Network)) -> [usize; 3] {
    let mut arrived = [0; 3];
    for (at, wait) in [FIRST_WAIT, FIRST_WAIT * 2, FIRST_WAIT * 4].into_iter().enumerate() {
        let (start, before) = (network.now, network.arrived);
        let segment = network.of_host(false);
        network.send_from_host(Duration::ZERO, segment);
        network.run_until(start + wait / 2);
        if at == 0 {
            then(network);
        }
        network.run_until(start + wait);
        arrived[at] = network.arrived - before;
    }
    arrived
}

#[test]
fn a_retransmission_is_flooded_again_and_arrives() {
    for (switches, links) in topologies() {
        for seed in 0..20 {
            let mut network = Network::with_host(seed, switches, &links);
            network.agenda.clear();
            network.is_answering = false;
            let arrived = retransmit(&mut network, |_| ());
            assert_eq!(arrived, [1, 1, 1], "seed {seed}, {switches} switches");
            network.run_until(network.now + PATIENCE);
            assert!(network.agenda.is_empty());
        }
    }
}

#[test]
fn a_retransmission_after_a_lost_path_arrives() {
    for (switches, links) in topologies() {
        for (seed, cut) in (0..10).flat_map(|seed| (0..links.len()).map(move |cut| (seed, cut))) {
            for is_known in [true, false] {
                let mut network = Network::with_host(seed, switches, &links);
                network.agenda.clear();
                if is_known {
                    let question = network.of_host(true);
                    network.send_from_host(Duration::ZERO, question);
                    network.run_until(network.now + 2 * LOCK_TIME);
                }
                let arrived = retransmit(&mut network, |network| network.fail(cut, LinkHealth::Cut));
                // What was flooded just before the cut may be followed by its second retransmission only.
                let is_arrived = arrived[1] > 0 || !is_known && arrived[2] > 0;
                assert!(is_arrived, "seed {seed}, {switches} switches, link {cut}: {arrived:?}");
            }
        }
    }
}
