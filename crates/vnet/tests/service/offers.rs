//! Offers in place of refused requests: each is admitted, and nothing better of its kind is.
use crate::{admit, fixed, mbps, refusal, ring, row};
use std::time::Duration;
use weir_units::{Bps, Instant, TimeSpan};
use weir_vnet::service::{
    Bandwidth, LinkRequest, NetworkBook, NetworkOffer, NetworkServiceRequest, OfferedChange, PromisedDelay,
};

fn filled() -> NetworkBook {
    let mut book = row(3);
    let held = NetworkServiceRequest {
        lifetime: Some(TimeSpan(Duration::from_secs(60))),
        ..NetworkServiceRequest::new("held", vec![LinkRequest::new("b1", "b3", fixed(70))])
    };
    admit(&mut book, &held);
    book
}

fn offered(book: &mut NetworkBook, request: &NetworkServiceRequest) -> Vec<NetworkOffer> {
    let offers = refusal(book, request).offers;
    for offer in &offers {
        let mut book = book.clone();
        let now = if let OfferedChange::Later(at) = offer.change {
            book.release("held").unwrap();
            at
        } else {
            Instant::ZERO
        };
        book.request(&offer.request, now).unwrap();
    }
    offers
}

#[test]
fn the_rate_that_is_left_is_offered_to_the_bit() {
    let mut book = filled();
    let request = NetworkServiceRequest::new("x", vec![LinkRequest::new("a1", "a3", fixed(50))]);
    let offers = offered(&mut book, &request);
    let OfferedChange::Rate { link, rate } = &offers[0].change else { panic!("{offers:?}") };
    assert_eq!(link, "a1-a3");
    assert!(*rate > mbps(23) && *rate < mbps(25), "{rate}");
    let mut more = offers[0].request.clone();
    more.links[0].bandwidth = Bandwidth::Static(Bps(rate.0 + 1));
    more.links[0].backward = None;
    refusal(&mut book, &more);
    assert_eq!(offers[1].change, OfferedChange::Later(Instant::ZERO + Duration::from_secs(60)));
    assert_eq!(offers[1].request, request);
}

#[test]
fn each_direction_keeps_what_fits() {
    let mut book = filled();
    let link = LinkRequest { backward: Some(fixed(2)), ..LinkRequest::new("a1", "a3", fixed(50)) };
    let offers = offered(&mut book, &NetworkServiceRequest::new("x", vec![link]));
    assert_eq!(offers[0].request.links[0].backward, Some(fixed(2)));
}

#[test]
fn other_ways_are_offered_if_the_request_avoids_them() {
    let mut book = ring(4);
    admit(&mut book, &NetworkServiceRequest::new("held", vec![LinkRequest::new("b1", "b2", fixed(70))]));
    let link = LinkRequest { avoid: vec!["s4".to_owned()], ..LinkRequest::new("a1", "a2", fixed(50)) };
    let offers = offered(&mut book, &NetworkServiceRequest::new("x", vec![link]));
    let without = OfferedChange::WithoutAvoid { link: "a1-a2".to_owned() };
    assert!(offers.iter().any(|offer| offer.change == without), "{offers:?}");
}

/// Drawn networks until lines are full: each offer is admitted, one per cent more of the rate is not.
#[test]
fn offers_of_drawn_requests_are_feasible() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut seen = [0; 3];
    for _ in 0..12 {
        let mut book = ring(5);
        for at in 0..40 {
            let end =
                |random: &mut fastrand::Rng| format!("{}{}", random.choice(["a", "b"]).unwrap(), random.usize(1..=5));
            let (from, to) = (end(&mut random), end(&mut random));
            if from == to {
                continue;
            }
            let mut link = LinkRequest::new(from, to, fixed(random.u64(1..40)));
            link.vlan = Some(at + 1);
            link.backward = random.bool().then(|| fixed(random.u64(1..40)));
            link.delay = random
                .bool()
                .then(|| PromisedDelay { bound: TimeSpan(Duration::from_millis(random.u64(5..40))), percentile: None });
            let request = NetworkServiceRequest::new(format!("n{at}"), vec![link]);
            if book.request(&request, Instant::ZERO).is_ok() {
                continue;
            }
            for offer in offered(&mut book, &request) {
                let mut more = offer.request.clone();
                let link = &mut more.links[0];
                match offer.change {
                    OfferedChange::Rate { rate, .. } => {
                        let [forward, backward] = link.bandwidths();
                        let raised = Bandwidth::Static(Bps(rate.0 + rate.0.div_ceil(100)));
                        // Only directions that the offer has lowered are raised.
                        let raise = |one: Bandwidth| if one.minimum() == rate { raised } else { one };
                        (link.bandwidth, link.backward) = (raise(forward), Some(raise(backward)));
                        seen[0] += 1;
                    }
                    OfferedChange::Delay { delay, .. } => {
                        link.delay = Some(PromisedDelay { bound: TimeSpan(delay.mul_f64(0.99)), percentile: None });
                        seen[1] += 1;
                    }
                    _ => seen[2] += 1,
                }
                refusal(&mut book, &more);
            }
        }
    }
    assert!(seen[0] > 20 && seen[1] > 5, "{seen:?}");
}
