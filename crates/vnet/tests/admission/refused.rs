//! Requests that are refused, with the reason, and without an effect.
use super::*;
use weir_vnet::admission::PromiseError;

fn refused(admission: &mut LinkAdmission, demand: LinkDemand) -> String {
    let before: Vec<_> = admission.admitted().map(|(one, bound)| (one.clone(), bound.clone())).collect();
    let error = admission.request(demand).unwrap_err().to_string();
    let after: Vec<_> = admission.admitted().map(|(one, bound)| (one.clone(), bound.clone())).collect();
    assert_eq!(before, after, "nothing changed");
    error
}

#[test]
fn what_binds_is_named() {
    let mut admission = admission(&["a", "b"], Multiplexing::Fifo);
    admission.request(demand("old", &["b"], mbps(4), 2).within(4000 * US)).unwrap();
    assert_eq!(
        refused(&mut admission, demand("new", &["b"], mbps(7), 1)),
        "virtual link new: link b lacks 1Mbit/s of rate; 6Mbit/s is possible"
    );
    assert_eq!(
        refused(&mut admission, demand("new", &["b"], mbps(1), 1).within(3000 * US)),
        "virtual link new: the delay can be 3.6ms, which is 600µs more than promised, with most of it at link b; \
         a delay of 3.6ms is possible"
    );
    assert_eq!(
        refused(&mut admission, demand("new", &["b"], mbps(1), 2)),
        "virtual link new: the delay promised to virtual link old would be exceeded by 800µs; \
         neither less rate nor more delay is enough"
    );
    let small = QueuedLink { buffer: ByteSize(2500), ..QueuedLink::new("c", mbps(10)) };
    let mut small = LinkAdmission::new(ByteSize(0), [small]).unwrap();
    assert!(refused(&mut small, demand("new", &["c"], mbps(1), 1)).contains("link c lacks 500B of buffer"));
    let slow = QueuedLink::new("d", Bps(1));
    let mut slow = LinkAdmission::new(ByteSize(0), [slow]).unwrap();
    let enormous = demand("new", &["d"], Bps(1), 100_000_000);
    assert!(refused(&mut slow, enormous).contains("the delay of virtual link new has no bound"));
}

/// Bounds of this kind need that no link feeds itself, directly or over others.
#[test]
fn cycles_are_refused_by_name() {
    let mut admission = admission(&["a", "b", "c", "d"], Multiplexing::Fifo);
    admission.request(demand("ab", &["d", "a", "b"], mbps(1), 1)).unwrap();
    admission.request(demand("bc", &["b", "c"], mbps(1), 1)).unwrap();
    let closing = demand("ca", &["c", "a"], mbps(1), 1);
    let text = refused(&mut admission, closing.clone());
    let Err(PromiseError::Cycle { links, .. }) = admission.largest_rate(&closing) else { panic!("{text}") };
    let start = links.iter().position(|link| link == "a").unwrap();
    let from_a: Vec<&str> = links.iter().map(String::as_str).cycle().skip(start).take(3).collect();
    assert_eq!((from_a, links.len()), (vec!["a", "b", "c"], 3));
    assert!(text.starts_with("virtual link ca: the paths of virtual links lead around a cycle: "), "{text}");
    admission.release("bc").unwrap();
    admission.request(closing).unwrap();
}

#[test]
fn malformed_requests_are_refused() {
    let mut admission = admission(&["a", "b"], Multiplexing::Fifo);
    admission.request(demand("old", &["a"], mbps(1), 1)).unwrap();
    let new = || demand("new", &["a"], mbps(1), 1);
    let zero = ByteSize(0);
    for (demand, expected) in [
        (demand("new", &[], mbps(1), 1), "virtual link new: found an empty path"),
        (demand("new", &["a", "b", "a"], mbps(1), 1), "a link twice in its path"),
        (demand("new", &["c"], mbps(1), 1), "virtual link new: found no link c, which its path names"),
        (demand("old", &["a"], mbps(1), 1), "found virtual link old twice"),
        (demand("new", &["a"], Bps(0), 1), "a rate outside"),
        (demand("new", &["a"], Bps(u64::MAX), 1), "a rate outside"),
        (new().with_burst(ByteSize(1499)), "a burst below the longest packet"),
        (new().with_burst(ByteSize(u64::MAX)), "or above 1TB"),
        (new().with_packets(zero, ByteSize(60)), "a shortest packet of no byte"),
        (new().with_packets(ByteSize(61), ByteSize(60)), "or longer than the longest"),
        (new().with_packets(ByteSize(60), ByteSize(u64::MAX)), "a packet above 16MB"),
        (new().within(Duration::ZERO), "a promised delay of zero"),
        (new().within(Duration::MAX), "or above 1000s"),
    ] {
        let text = refused(&mut admission, demand);
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(admission.release("new").unwrap_err().to_string(), "found no virtual link new");
}

#[test]
fn malformed_substrates_are_refused() {
    let link = || QueuedLink::new("a", mbps(1));
    let text = |links: Vec<QueuedLink>| LinkAdmission::new(ByteSize(0), links).unwrap_err().to_string();
    assert_eq!(text(vec![link(), link()]), "found link a twice, expected a name of its own for each");
    assert!(text(vec![QueuedLink { capacity: Bps(0), ..link() }]).starts_with("link a: found a capacity outside"));
    assert!(text(vec![QueuedLink { capacity: Bps(u64::MAX), ..link() }]).contains("a capacity outside"));
    assert!(text(vec![QueuedLink { propagation: Duration::MAX, ..link() }]).contains("a delay above 1000s"));
    assert!(text(vec![QueuedLink { switch_latency: Duration::MAX, ..link() }]).contains("a delay above 1000s"));
    assert!(text(vec![QueuedLink { other_packet: ByteSize(u64::MAX), ..link() }]).contains("a packet above 16MB"));
    let many = (0..=100_000).map(|number| QueuedLink::new(number.to_string(), Bps(1))).collect();
    assert_eq!(text(many), "found 100001 links, expected at most 100000");
    let overhead = LinkAdmission::new(ByteSize(u64::MAX), [link()]).unwrap_err();
    assert!(overhead.to_string().starts_with("found an overhead of "), "{overhead}");
}
