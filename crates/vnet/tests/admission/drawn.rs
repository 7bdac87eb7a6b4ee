//! Drawn networks: bounds hold for all packets, and do not depend on the order of requests.
use super::packets::{Needed, send};
use super::*;
use weir_vnet::admission::BoundMethod;
use weir_vnet::admission::bound::PS_PER_S;
use weir_vnet::admission::{BindingResource, PromiseError};

/// A substrate whose links are sorted so that none feeds an earlier one, and virtual links to ask for.
pub(crate) struct DrawnNetwork {
    pub(crate) overhead: u64,
    pub(crate) links: Vec<QueuedLink>,
    pub(crate) demands: Vec<LinkDemand>,
}

pub(crate) fn draw(random: &mut fastrand::Rng) -> DrawnNetwork {
    let kind = random.usize(0..3);
    let links: Vec<QueuedLink> = (0..random.usize(1..=5))
        .map(|index| QueuedLink {
            propagation: random.u32(0..50) * US,
            switch_latency: [0, random.u32(0..300)][random.usize(0..2)] * US,
            other_packet: ByteSize([0, random.u64(60..=1514)][random.usize(0..2)]),
            multiplexing: match kind {
                0 => Multiplexing::Fifo,
                1 => Multiplexing::Arbitrary,
                _ => [Multiplexing::Fifo, Multiplexing::Arbitrary][random.usize(0..2)],
            },
            ..QueuedLink::new(format!("l{index}"), Bps(random.u64(8_000_000..100_000_000)))
        })
        .collect();
    let demands = (0..random.usize(1..=7)).map(|index| {
        let mut path: Vec<String> =
            links.iter().filter(|_| random.u8(0..4) > 0).map(|link| link.name.clone()).collect();
        if path.is_empty() {
            path.push("l0".to_owned());
        }
        let longest = random.u64(60..=1514);
        LinkDemand::new(format!("v{index}"), path, Bps(random.u64(100_000..[2_000_000, 20_000_000][index.min(1)])))
            .with_packets(ByteSize(random.u64(60..=longest)), ByteSize(longest))
            .with_burst(ByteSize(longest * random.u64(1..=6)))
    });
    let demands = demands.collect();
    DrawnNetwork { overhead: [0, 24][random.usize(0..2)], links, demands }
}

impl DrawnNetwork {
    /// Returns the substrate, with this size of buffer if it is given.
    pub(crate) fn admission(&self, buffer: Option<(usize, u64)>) -> LinkAdmission {
        let mut links = self.links.clone();
        buffer.into_iter().for_each(|(link, bytes)| links[link].buffer = ByteSize(bytes));
        LinkAdmission::new(ByteSize(self.overhead), links).unwrap()
    }

    /// Keeps the virtual links that are admitted.
    fn admit(&mut self) -> LinkAdmission {
        let mut admission = self.admission(None);
        self.demands.retain(|demand| admission.request(demand.clone()).is_ok());
        admission
    }

    fn send(&self, random: &mut fastrand::Rng) -> Needed {
        let phases: Vec<u128> =
            self.demands.iter().map(|_| [0, random.u128(0..PS_PER_S / 100)][random.usize(0..2)]).collect();
        send(&self.links, &self.demands, self.overhead, &phases, random)
    }
}

fn ps(span: Duration) -> u128 {
    span.as_nanos() * 1000
}

#[test]
fn no_packet_exceeds_a_bound() {
    let mut random = fastrand::Rng::with_seed(11);
    let (mut once, mut sums, mut nearest) = (0, 0, 0.0_f64);
    for round in 0..300 {
        let mut network = draw(&mut random);
        let admission = network.admit();
        for _ in 0..3 {
            let needed = network.send(&mut random);
            for (index, demand) in network.demands.iter().enumerate() {
                let bound = admission.bound(&demand.name).unwrap();
                assert!(needed.delays[index] <= ps(bound.delay), "{round}: {:?} {bound:?} {demand:?}", needed.delays);
                let hops = needed.hops[index].iter().zip(&bound.hops);
                assert!(hops.clone().all(|(seen, hop)| *seen <= ps(*hop)), "{round}: {:?} {bound:?}", needed.hops);
                nearest = nearest.max(needed.delays[index] as f64 / ps(bound.delay) as f64);
                if bound.method == BoundMethod::PayBurstsOnce { once += 1 } else { sums += 1 }
            }
            let link = random.usize(0..network.links.len());
            if let Some(less) = needed.held[link].checked_sub(1) {
                let mut smaller = network.admission(Some((link, less)));
                let refused = network.demands.iter().any(|demand| smaller.request(demand.clone()).is_err());
                assert!(refused, "{round}: {} bytes were held for link {link}", less + 1);
            }
        }
    }
    assert!(once > 100 && sums > 100, "both bounds are examined: {once}, {sums}");
    assert!(nearest > 0.99, "packets were not delayed enough to tell: {nearest}");
}

/// Greedy sources that start together reach the bound of a single FIFO link, less at most a packet.
#[test]
fn bounds_of_one_link_are_reached() {
    let mut random = fastrand::Rng::with_seed(12);
    for _ in 0..200 {
        let mut network = draw(&mut random);
        network.links.truncate(1);
        let link = &mut network.links[0];
        (link.multiplexing, link.switch_latency, link.other_packet) = (Multiplexing::Fifo, Duration::ZERO, ByteSize(0));
        for demand in &mut network.demands {
            demand.path = vec!["l0".to_owned()];
            demand.shortest_packet = demand.longest_packet;
        }
        let admission = network.admit();
        let phases = vec![0; network.demands.len()];
        let needed = send(&network.links, &network.demands, network.overhead, &phases, &mut random);
        let seen = needed.delays.iter().max().unwrap();
        let bound = admission.admitted().map(|(_, bound)| ps(bound.delay)).max().unwrap();
        // Times are rounded to a nanosecond, and rates on the wire to a bit.
        assert!((bound - seen) < 100_000, "{seen} of {bound}");
    }
}

#[test]
fn bounds_do_not_depend_on_the_order() {
    let mut random = fastrand::Rng::with_seed(13);
    for _ in 0..200 {
        let mut network = draw(&mut random);
        let first = network.admit();
        let bounds = |admission: &LinkAdmission| {
            admission.admitted().map(|(demand, bound)| (demand.name.clone(), bound.clone())).collect::<Vec<_>>()
        };
        random.shuffle(&mut network.demands);
        let mut second = network.admission(None);
        let leaving = LinkDemand::new("leaving", ["l0"], Bps(1));
        let _ = second.request(leaving);
        for demand in &network.demands {
            // A full link may leave no room for the one that leaves.
            if second.request(demand.clone()).is_err() {
                let _ = second.release("leaving");
                second.request(demand.clone()).unwrap();
            }
        }
        let _ = second.release("leaving");
        assert_eq!(bounds(&first), bounds(&second));
        let released = &network.demands[0];
        assert_eq!(second.release(&released.name).as_ref(), Ok(released));
        second.request(released.clone()).unwrap();
        assert_eq!(bounds(&first), bounds(&second));
    }
}

/// Buffers that hold exactly the bound admit, and one byte less refuses.
#[test]
fn one_byte_of_buffer_decides() {
    let one = demand("one", &["l0"], mbps(1), 3);
    let network = DrawnNetwork { overhead: 24, links: vec![QueuedLink::new("l0", mbps(10))], demands: Vec::new() };
    // Three packets, and the one that is being sent.
    network.admission(Some((0, 6000))).request(one.clone()).unwrap();
    let error = network.admission(Some((0, 5999))).request(one).unwrap_err();
    let PromiseError::Refused { binding, offer, .. } = error else { panic!("{error}") };
    assert_eq!(binding, [BindingResource::Buffer { link: "l0".to_owned(), missing: ByteSize(1) }]);
    assert_eq!((offer.rate, offer.delay), (None, None), "less rate does not make the burst smaller");
}
