//! Promises: rates, delays and buffers, and that no admission takes anything from others.
use crate::{admit, fixed, mbps, refusal, refused, row, written};
use std::time::Duration;
use weir_units::{ByteSize, Instant, TimeSpan};
use weir_vnet::service::{
    Bandwidth, BandwidthRange, LinkRequest, NetworkServiceRequest, NetworkShortage, PromisedDelay,
};

fn delay(bound: Duration) -> Option<PromisedDelay> {
    Some(PromisedDelay { bound: TimeSpan(bound), percentile: None })
}

/// The bound of one port, by hand: rounds of 24,288 bytes, of which 20 Mbit/s of 100 get a fifth and a 15th of that for
/// tags of the shortest frames; 31 others with packets of 1,518 bytes.
#[test]
fn the_bound_of_a_port_is_that_of_the_theorem() {
    let mut book = row(2);
    let request = NetworkServiceRequest::new("x", vec![LinkRequest::new("a1", "a2", fixed(20))]);
    admit(&mut book, &request);
    let direction = &book.network("x").unwrap().design.links[0].directions[0];
    let quantum = (24_288_u64 * 20 * 64).div_ceil(100 * 60);
    assert_eq!(direction.hops[0].quantum, ByteSize(quantum));
    let untagged = (24_288_u64 * 20).div_ceil(100);
    assert_eq!(direction.hops[1].quantum, ByteSize(untagged));
    let latency = |quantum: u64, packet: u64| {
        let bytes = 31 * packet + ((24_288 - quantum) * (quantum + packet)).div_ceil(quantum);
        8e-8 * bytes as f64
    };
    // The burst of two packets and, behind the first switch, one more packet are sent at the guaranteed rate.
    let queued = latency(quantum, 1518) + latency(untagged, 1514) + 3.0 * 1514.0 * 8.0 / 20e6;
    let expected = queued + 2.0 * 50e-6;
    let found = direction.delay.unwrap().as_secs_f64();
    assert!((found - expected).abs() < 2e-6, "found {found}, expected {expected}");
}

#[test]
fn a_delay_that_can_be_longer_is_refused_with_the_least_one() {
    let mut book = row(3);
    let asked = |bound| {
        let link = LinkRequest { delay: delay(bound), ..LinkRequest::new("a1", "a3", fixed(20)) };
        NetworkServiceRequest::new("x", vec![link])
    };
    let refused = refusal(&mut book, &asked(Duration::from_millis(2)));
    let [NetworkShortage::Delay { bound, .. }] = refused.ways[0].shortages.as_slice() else { panic!("{refused}") };
    assert!(refused.to_string().contains(&format!("a delay of {bound:?} for link a1-a3")), "{refused}");
    assert!(refusal(&mut book, &asked(*bound - Duration::from_nanos(1))).ways.len() == 1);
    admit(&mut book, &asked(*bound));
}

#[test]
fn delays_of_those_who_are_there_never_change() {
    let mut book = row(3);
    let link = LinkRequest { vlan: Some(1), ..LinkRequest::new("a1", "a3", fixed(10)) };
    admit(&mut book, &NetworkServiceRequest::new("first", vec![link.clone()]));
    let before = book.network("first").cloned();
    let mut admitted = 0;
    for at in 2..60 {
        let request =
            NetworkServiceRequest::new(format!("n{at}"), vec![LinkRequest { vlan: Some(at), ..link.clone() }]);
        admitted += usize::from(book.request(&request, Instant::ZERO).is_ok());
    }
    // 9.4 of 10 are what the tags of shortest frames leave.
    assert_eq!(admitted, 8);
    assert_eq!(book.network("first").cloned(), before);
}

#[test]
fn links_share_what_is_not_promised() {
    let mut book = row(2);
    let range = |vlan, minimum, maximum| {
        let range = BandwidthRange { minimum: Some(mbps(minimum)), maximum: Some(mbps(maximum)) };
        LinkRequest { vlan: Some(vlan), ..LinkRequest::new("a1", "a2", Bandwidth::Range(range)) }
    };
    // Table 5.1 (Anhalt, 2011) at a twentieth of its rates.
    admit(&mut book, &NetworkServiceRequest::new("one", vec![range(1, 5, 25)]));
    admit(&mut book, &NetworkServiceRequest::new("two", vec![range(2, 40, 75)]));
    let third = NetworkServiceRequest::new(
        "three",
        vec![LinkRequest { vlan: Some(3), ..LinkRequest::new("a1", "a2", fixed(15)) }],
    );
    let change = book.request(&third, Instant::ZERO).unwrap();
    assert_eq!(change.resized.into_iter().collect::<Vec<_>>(), ["two"]);
    let rate = |book: &weir_vnet::service::NetworkBook, name: &str| book.rate(name, "a1-a2", 0).unwrap();
    assert_eq!(["one", "two", "three"].map(|name| rate(&book, name)), [mbps(25), mbps(60), mbps(15)]);
    let (_, change) = book.release("three").unwrap();
    assert_eq!(change.resized.into_iter().collect::<Vec<_>>(), ["two"]);
    assert_eq!(rate(&book, "two"), mbps(75));
}

#[test]
fn a_ceiling_is_the_allowed_rate_unless_that_is_the_lines() {
    let mut book = row(2);
    admit(&mut book, &NetworkServiceRequest::new("x", vec![LinkRequest::new("a1", "a2", fixed(15))]));
    let slices = &book.network("x").unwrap().design.slices;
    let ceiling = |slice: usize, port: usize| book.ceiling("x", &slices[slice], &slices[slice].ports[port]);
    assert_eq!(ceiling(0, 1), Some(mbps(15)), "to the other switch");
    assert_eq!(ceiling(0, 0), Some(mbps(15)), "to the host");
}

#[test]
fn a_later_stage_is_reserved_from_the_start() {
    let mut book = row(2);
    let mut text = "name = \"x\"\n[[link]]\nends = [\"a1\", \"a2\"]\nbandwidth = \"10Mbit/s\"\n".to_owned();
    for (start, rate) in [(1, 60), (2, 5)] {
        text += &format!(
            "[[stage]]\nstart = \"{start}h\"\nlink = [{{ name = \"a1-a2\", bandwidth = \"{rate}Mbit/s\" }}]\n"
        );
    }
    admit(&mut book, &written(&text));
    let error = refused(&mut book, &NetworkServiceRequest::new("y", vec![LinkRequest::new("b1", "b2", fixed(40))]));
    assert!(error.contains("port s1:4 has 33"), "{error}");
    assert_eq!(book.rate("x", "a1-a2", 0), Some(mbps(10)));
    assert!(book.next_stage("x").unwrap().resized.contains("x"));
    assert_eq!(book.rate("x", "a1-a2", 0), Some(mbps(60)));
    book.next_stage("x").unwrap();
    assert_eq!(book.rate("x", "a1-a2", 0), Some(mbps(5)));
    assert!(book.next_stage("x").unwrap_err().to_string().contains("all of which have begun"));
}

#[test]
fn buffers_that_are_full_are_named() {
    let mut book = row(2);
    let link = |buffer| LinkRequest {
        buffer: Some(ByteSize(buffer)),
        vlan: Some(1),
        ..LinkRequest::new("a1", "a2", fixed(1))
    };
    admit(&mut book, &NetworkServiceRequest::new("x", vec![link(950_000)]));
    let next = LinkRequest { vlan: Some(2), ..link(60_000) };
    let error = refused(&mut book, &NetworkServiceRequest::new("y", vec![next]));
    assert!(error.contains("the buffer from port s1:1 to port 4 has 50kB left, and 60kB is needed"), "{error}");
}
