//! Draws small networks and requests for virtual links.
use super::*;
use std::collections::BTreeSet;

pub(crate) struct DrawnWays {
    pub(crate) overhead: ByteSize,
    pub(crate) switches: usize,
    pub(crate) links: Vec<SwitchLink>,
}

fn name(switch: usize) -> String {
    format!("s{switch}")
}

/// Returns a network of 4 or 5 switches with at most 64 ways between any two.
pub(crate) fn draw(random: &mut fastrand::Rng) -> DrawnWays {
    let switches = random.usize(4..=5);
    let mut pairs: BTreeSet<(usize, usize)> = BTreeSet::new();
    for _ in 0..random.usize(8..=20) {
        let (from, to) = (random.usize(0..switches), random.usize(0..switches));
        if from != to {
            pairs.insert((from, to));
        }
    }
    let link = |(from, to): (usize, usize)| {
        let queue = QueuedLink {
            propagation: random.u32(0..200) * US,
            switch_latency: random.u32(0..100) * US,
            buffer: ByteSize([u64::MAX, random.u64(8_000..40_000)][random.usize(0..3) / 2]),
            other_packet: ByteSize([0, 1514][random.usize(0..2)]),
            ..QueuedLink::new(format!("{from}-{to}"), Bps(random.u64(5_000_000..60_000_000)))
        };
        SwitchLink { cost: random.u32(1..=3), ..SwitchLink::new(name(from), name(to), queue) }
    };
    let links = pairs.into_iter().map(link).collect();
    DrawnWays { overhead: ByteSize([0, 24][random.usize(0..2)]), switches, links }
}

impl DrawnWays {
    pub(crate) fn substrate(&self) -> Substrate {
        Substrate::new(self.overhead, (0..self.switches).map(name), self.links.clone()).unwrap()
    }

    /// Returns a request between two switches that promises a delay in half of all cases.
    pub(crate) fn request(&self, random: &mut fastrand::Rng, number: usize) -> VirtualLinkRequest {
        let from = random.usize(0..self.switches);
        let to = (from + random.usize(1..self.switches)) % self.switches;
        let longest = random.u64(100..=1514);
        let most = [3_000_000, 50_000_000][random.usize(0..2)];
        let request = VirtualLinkRequest::new(format!("v{number}"), name(from), name(to), Bps(random.u64(1..most)))
            .with_packets(ByteSize(random.u64(60..=longest)), ByteSize(longest))
            .with_burst(ByteSize(longest * random.u64(1..=4)))
            .weighing_cost([0, 50, u32::MAX][random.usize(0..3)]);
        if random.bool() { request.within(random.u32(300..8_000) * US) } else { request }
    }

    /// Returns all ways from one switch to another that pass no switch twice, as names of links.
    pub(crate) fn all_ways(&self, [from, to]: &[String; 2]) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        let mut open = vec![(vec![from.clone()], Vec::new())];
        while let Some((passed, path)) = open.pop() {
            let at = passed.last().unwrap();
            if at == to {
                found.push(path);
                continue;
            }
            for link in self.links.iter().filter(|link| link.from == *at && !passed.contains(&link.to)) {
                open.push((
                    [&passed[..], std::slice::from_ref(&link.to)].concat(),
                    [&path[..], std::slice::from_ref(&link.queue.name)].concat(),
                ));
            }
        }
        found
    }
}
