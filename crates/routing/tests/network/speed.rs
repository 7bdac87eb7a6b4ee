//! Tests how soon the network is known and packets flow again, in virtual time: control messages take 100 us, frames
//! 20 us a link, and nothing else takes time.
use crate::bed::{Bed, End};
use std::time::Duration;
use weir_routing::NetworkConfig;

const MS: Duration = Duration::from_millis(1);

/// Returns a connected network with this many switches and links, whose ports are all free or used by links, and the
/// links.
fn network(switches: u64, links: usize, seed: u64) -> (Bed, Vec<[End; 2]>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bed = Bed::new(switches, seed, NetworkConfig::default(), Vec::new());
    let mut degree = vec![0; usize::try_from(switches).expect("few") + 1];
    let mut made = Vec::new();
    let mut join = |bed: &mut Bed, a: u64, b: u64| {
        let [from, to] = [a, b].map(|dpid| usize::try_from(dpid).expect("few"));
        if a != b && degree[from] < 10 && degree[to] < 10 {
            degree[from] += 1;
            degree[to] += 1;
            made.push(bed.link(a, b));
        }
        made.len()
    };
    (2..=switches).for_each(|dpid| _ = join(&mut bed, random.u64(dpid.saturating_sub(5).max(1)..dpid), dpid));
    while join(&mut bed, random.u64(1..=switches), random.u64(1..=switches)) < links {}
    (bed, made)
}

#[test]
fn a_hundred_switches_and_two_hundred_links_are_known_within_half_a_second() {
    for seed in 1..=3 {
        let (mut bed, links) = network(100, 200, seed);
        bed.connect_all();
        bed.run(450 * MS);
        let state = bed.state();
        assert_eq!((state.switches.len(), state.links.len()), (100, links.len()), "seed {seed}");
    }
}

/// Returns for how long packets between two hosts were lost after each failure, in milliseconds, in order of size.
fn outages(fail: impl Fn(&mut Bed, [End; 2], bool)) -> Vec<u64> {
    let mut outages = Vec::new();
    for seed in 1..=5 {
        let (mut bed, links) = network(12, 24, seed);
        let hosts = [bed.host(1), bed.host(12)];
        bed.connect_all();
        bed.run(400 * MS);
        bed.announce_all();
        bed.run(100 * MS);
        for link in links {
            let before = bed.send(hosts[0], hosts[1]);
            bed.run(5 * MS);
            assert_eq!(bed.copies(hosts[1], before), 1, "seed {seed}, {link:?}");
            fail(&mut bed, link, true);
            let sent: Vec<_> = (0..300)
                .map(|_| {
                    let number = bed.send(hosts[0], hosts[1]);
                    bed.run(MS);
                    number
                })
                .collect();
            bed.run(5 * MS);
            let lost = sent.iter().rposition(|number| bed.copies(hosts[1], *number) == 0);
            outages.push(lost.map_or(0, |last| last as u64 + 1));
            fail(&mut bed, link, false);
            bed.run(300 * MS);
        }
    }
    outages.sort_unstable();
    outages
}

#[test]
fn packets_flow_again_within_ten_milliseconds_of_a_port_that_goes_down() {
    let outages = outages(|bed, link, fails| bed.set_link(link, !fails));
    assert!(outages.iter().any(|outage| *outage > 0), "some links are on the way");
    assert!(outages.last().is_some_and(|outage| *outage <= 10), "{outages:?}");
}

#[test]
fn packets_flow_again_within_a_hundred_milliseconds_of_a_link_that_falls_silent() {
    let outages = outages(Bed::set_silent);
    assert!(outages.iter().any(|outage| *outage > 0), "some links are on the way");
    assert!(outages.last().is_some_and(|outage| *outage <= 100), "{outages:?}");
}
