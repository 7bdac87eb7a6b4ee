//! Tests changes of ways: while switches get new entries at different times, no packet is lost and none circles.
use crate::bed::Bed;
use crate::forwarding::config;
use std::time::Duration;
use weir_routing::forwarding::ForwardingMode;

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);

/// Sends packets between all hosts at short intervals for `time`. Returns their ends and numbers.
fn send_all(bed: &mut Bed, time: Duration) -> Vec<(usize, u64)> {
    let (end, mut sent) = (bed.now + time, Vec::new());
    let pairs: Vec<_> = (0..bed.hosts.len())
        .flat_map(|from| (0..bed.hosts.len()).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
        .collect();
    while bed.now < end {
        for (from, to) in &pairs {
            sent.push((*to, bed.send(*from, *to)));
            bed.run(10 * US);
        }
    }
    sent
}

#[track_caller]
fn assert_none_lost_or_circled(bed: &mut Bed, sent: &[(usize, u64)]) {
    bed.run(50 * MS);
    for (to, number) in sent {
        let seen = (bed.copies(*to, *number), bed.most_crossings(*number) <= 1);
        assert_eq!(seen, (1, true), "packet {number} of {} to host {to}", sent.len());
    }
}

/// A link that comes back attracts flows. Switches are given their entries late, each by another time.
#[test]
fn flows_move_to_a_better_way_without_loss_or_loop() {
    for mode in [ForwardingMode::Proactive, ForwardingMode::ReactivePath] {
        for seed in 1..=5 {
            let mut bed = Bed::new(6, seed, config(mode), Vec::new());
            let ring: Vec<_> = (1..=6).map(|dpid| bed.link(dpid, dpid % 6 + 1)).collect();
            let chord = bed.link(2, 5);
            (1..=6).for_each(|dpid| _ = bed.host(dpid));
            bed.connect_all();
            bed.run(200 * MS);
            bed.set_link(ring[0], false);
            bed.set_link(chord, false);
            bed.announce_all();
            bed.run(200 * MS);
            send_all(&mut bed, MS);
            bed.run(50 * MS);
            bed.jitter = 3 * MS;
            bed.set_link(ring[0], true);
            let mut sent = send_all(&mut bed, 30 * MS);
            bed.set_link(chord, true);
            sent.extend(send_all(&mut bed, 120 * MS));
            assert!(bed.count("tables_routes_changed") > 12, "{mode:?} {seed}: ways changed");
            assert_none_lost_or_circled(&mut bed, &sent);
        }
    }
}

/// A host that moves is reached at its new place by the next packets, and packets on their way are not repeated.
#[test]
fn a_host_that_moves_is_followed() {
    for mode in crate::forwarding::MODES {
        let mut bed = crate::forwarding::ring(5, config(mode));
        let number = bed.send(0, 3);
        bed.run(20 * MS);
        assert_eq!(bed.copies(3, number), 1);
        bed.hosts[3].at = (2, crate::bed::FIRST_HOST_PORT + 3);
        bed.announce(3);
        // Its former place does not answer.
        bed.run(500 * MS);
        // In the reactive modes the first packet goes through the controller.
        let numbers = [0, 1].map(|_| {
            let number = bed.send(0, 3);
            bed.run(20 * MS);
            number
        });
        let copies = numbers.map(|number| bed.copies(3, number));
        assert_eq!((copies, bed.hops(numbers[1])), ([1, 1], 1), "{mode:?}");
    }
}
