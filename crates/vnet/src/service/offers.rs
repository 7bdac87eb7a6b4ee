//! Finds changed requests that would be admitted in place of a refused one. Each is tried before it is offered.
use super::book::NetworkBook;
use super::{
    Bandwidth, BandwidthRange, LinkRequest, NetworkOffer, NetworkServiceRequest, NetworkShortage, OfferedChange,
    Refusal, RefusedNetworkWay,
};
use std::time::Duration;
use weir_units::{Bps, Instant, TimeSpan};

/// Most ends of other networks at which a later start is tried.
const MAX_LATER: usize = 8;

/// Returns offers in place of a refused request.
pub(super) fn offers(
    book: &mut NetworkBook,
    request: &NetworkServiceRequest,
    refused: &Refusal,
    now: Instant,
) -> Vec<NetworkOffer> {
    let at = request.links.iter().position(|one| one.name() == refused.link);
    let Some(at) = at else { return Vec::new() };
    let mut offers = Vec::new();
    offers.extend(less_rate(book, request, at, refused, now));
    offers.extend(more_delay(book, request, at, refused, now));
    offers.extend(without_avoid(book, request, at, now));
    offers.extend(later(book, request, now));
    offers
}

/// Returns true if a request would be admitted; it is not kept.
fn is_admitted(book: &mut NetworkBook, request: &NetworkServiceRequest, now: Instant) -> bool {
    let is_admitted = matches!(book.try_request(request, now, false), Ok(Ok(_)));
    if is_admitted {
        let _ = book.release(&request.name);
    }
    is_admitted
}

fn changed(request: &NetworkServiceRequest, at: usize, change: impl FnOnce(&mut LinkRequest)) -> NetworkServiceRequest {
    let mut changed = request.clone();
    change(&mut changed.links[at]);
    changed
}

/// Offers the largest guaranteed rate of the refused link. A request with stages has none, because these have rates,
/// too.
fn less_rate(
    book: &mut NetworkBook,
    request: &NetworkServiceRequest,
    at: usize,
    refusal: &Refusal,
    now: Instant,
) -> Option<NetworkOffer> {
    let link = &request.links[at];
    if request.stages.iter().any(|stage| stage.links.iter().any(|change| change.name == link.name())) {
        return None;
    }
    let asked = link.bandwidths().map(Bandwidth::minimum);
    let at_most = |rate: u64| {
        changed(request, at, |link| {
            let [forward, backward] = link.bandwidths().map(|bandwidth| limited(bandwidth, Bps(rate)));
            (link.bandwidth, link.backward) = (forward, (backward != forward).then_some(backward));
        })
    };
    let (mut admitted, mut refused) = (0, asked[0].max(asked[1]).0);
    // Mostly the largest rate is what is left on one of the ways.
    let guess = rate_left(refusal).min(refused.saturating_sub(1));
    if guess > 0 && is_admitted(book, &at_most(guess), now) {
        admitted = guess;
        if guess + 1 < refused && !is_admitted(book, &at_most(guess + 1), now) {
            refused = guess + 1;
        }
    }
    // With a promise of delay a lower rate may be refused where a higher one is admitted, because its bound is longer.
    let is_monotonic = link.delay.is_none() && refusal.ways.iter().flat_map(|way| &way.shortages).any(is_eased_by_less);
    while is_monotonic && refused > admitted + 1 {
        let middle = admitted + (refused - admitted) / 2;
        if is_admitted(book, &at_most(middle), now) { admitted = middle } else { refused = middle }
    }
    let (link, rate) = (link.name(), Bps(admitted));
    (admitted > 0).then(|| NetworkOffer { change: OfferedChange::Rate { link, rate }, request: at_most(admitted) })
}

/// Returns true for a shortage that less rate may ease.
fn is_eased_by_less(shortage: &NetworkShortage) -> bool {
    matches!(shortage, NetworkShortage::Rate { .. } | NetworkShortage::Buffer { .. })
}

/// Returns the largest rate that is left on a way that is short of nothing but rate.
fn rate_left(refusal: &Refusal) -> u64 {
    let left = |way: &RefusedNetworkWay| {
        let of =
            |shortage: &NetworkShortage| if let NetworkShortage::Rate { left, .. } = shortage { left.0 } else { 0 };
        way.shortages.iter().map(of).min().unwrap_or(0)
    };
    refusal.ways.iter().map(left).max().unwrap_or(0)
}

/// Returns a bandwidth whose minimum is at most this. A static one stays static.
fn limited(bandwidth: Bandwidth, most: Bps) -> Bandwidth {
    match bandwidth {
        Bandwidth::Static(rate) => Bandwidth::Static(rate.min(most)),
        Bandwidth::Range(range) => {
            Bandwidth::Range(BandwidthRange { minimum: range.minimum.map(|rate| rate.min(most)), ..range })
        }
    }
}

/// Offers the least delay that can be promised to the refused link.
fn more_delay(
    book: &mut NetworkBook,
    request: &NetworkServiceRequest,
    at: usize,
    refusal: &Refusal,
    now: Instant,
) -> Option<NetworkOffer> {
    let link = &request.links[at];
    let promise = link.delay?;
    let with = |delay: Duration| {
        changed(request, at, |link| link.delay = Some(super::PromisedDelay { bound: TimeSpan(delay), ..promise }))
    };
    // The bounds of the ways that were refused for nothing else; the least one is admitted.
    let bounds = refusal.ways.iter().filter_map(|way| match way.shortages.as_slice() {
        [NetworkShortage::Delay { bound, .. }] => Some(*bound),
        _ => None,
    });
    let delay = bounds.min()?;
    let offered = with(delay);
    is_admitted(book, &offered, now)
        .then(|| NetworkOffer { change: OfferedChange::Delay { link: link.name(), delay }, request: offered })
}

fn without_avoid(
    book: &mut NetworkBook,
    request: &NetworkServiceRequest,
    at: usize,
    now: Instant,
) -> Option<NetworkOffer> {
    let link = &request.links[at];
    if link.avoid.is_empty() {
        return None;
    }
    let offered = changed(request, at, |link| link.avoid.clear());
    is_admitted(book, &offered, now)
        .then(|| NetworkOffer { change: OfferedChange::WithoutAvoid { link: link.name() }, request: offered })
}

/// Offers the first end of other networks from which on the request is admitted as it is.
fn later(book: &NetworkBook, request: &NetworkServiceRequest, now: Instant) -> Option<NetworkOffer> {
    let mut ends: Vec<(Instant, String)> = book
        .held()
        .filter_map(|held| Some((held.expires?, held.design.request.name.clone())))
        .filter(|(end, _)| *end > now)
        .collect();
    ends.sort();
    if ends.is_empty() {
        return None;
    }
    let mut later = book.clone();
    for (end, name) in ends.into_iter().take(MAX_LATER) {
        let _ = later.release(&name);
        if is_admitted(&mut later, request, end) {
            return Some(NetworkOffer { change: OfferedChange::Later(end), request: request.clone() });
        }
    }
    None
}
