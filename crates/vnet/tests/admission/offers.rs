//! Offers of refusals: what is offered is admitted, and a little more is refused.
use super::drawn::draw;
use super::*;
use weir_vnet::admission::{BindingResource, NearestOffer, PromiseError};

const NS: Duration = Duration::from_nanos(1);

fn is_admitted(admission: &LinkAdmission, demand: LinkDemand) -> bool {
    admission.clone().request(demand).is_ok()
}

fn check(admission: &LinkAdmission, demand: &LinkDemand, offer: NearestOffer) {
    let at = |rate: u64| is_admitted(admission, LinkDemand { rate: Bps(rate), ..demand.clone() });
    match offer.rate {
        Some(Bps(rate)) => assert!(at(rate) && !at(rate + 1) && rate < demand.rate.0, "{rate} {demand:?}"),
        None => assert!(!at(1), "{demand:?}"),
    }
    if let Some(delay) = offer.delay {
        assert!(is_admitted(admission, demand.clone().within(delay)), "{delay:?} {demand:?}");
        assert!(!is_admitted(admission, demand.clone().within(delay - NS)), "{delay:?} {demand:?}");
    }
}

#[test]
fn offers_are_admitted_and_more_is_refused() {
    let mut random = fastrand::Rng::with_seed(21);
    let (mut refused, mut rates, mut delays, mut others) = (0, 0, 0, 0);
    for _ in 0..700 {
        let mut network = draw(&mut random);
        network.links.iter_mut().for_each(|link| link.buffer = ByteSize(random.u64(5000..60_000)));
        let mut admission = network.admission(None);
        for mut demand in network.demands {
            if random.bool() {
                demand.promised_delay = Some(random.u32(500..20_000) * US);
            }
            if let Err(PromiseError::Refused { binding, offer, .. }) = admission.request(demand.clone()) {
                check(&admission, &demand, offer);
                refused += 1;
                rates += usize::from(offer.rate.is_some());
                delays += usize::from(offer.delay.is_some());
                others += usize::from(binding.iter().any(|one| matches!(one, BindingResource::Promise { .. })));
            }
            let is_kept = |promised: Option<Duration>, bound| promised.is_none_or(|promised| bound <= promised);
            assert!(admission.admitted().all(|(one, bound)| is_kept(one.promised_delay, bound.delay)));
        }
    }
    let all = [refused, rates, delays, others];
    assert!(refused > 200 && all.iter().all(|number| *number > 30), "each kind is examined: {all:?}");
}

/// A largest rate and a least delay can be asked for, and are those of the offers.
#[test]
fn questions_change_nothing() {
    let mut admission = admission(&["a", "b"], Multiplexing::Fifo);
    admission.request(demand("old", &["a"], mbps(4), 2)).unwrap();
    let new = demand("new", &["a", "b"], mbps(1), 1);
    assert_eq!(admission.largest_rate(&new), Ok(Some(mbps(6))));
    // 36 kbit at 10 Mbit/s, then 12 kbit and what comes in a jitter of 3.6 - 1.2 ms.
    assert_eq!(admission.least_delay(&new), Ok(Some(5040 * US)));
    assert_eq!(admission.least_delay(&demand("new", &["a"], mbps(7), 1)), Ok(None), "no delay helps");
    assert_eq!(admission.admitted().count(), 1);
}
