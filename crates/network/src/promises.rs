//! Promises of virtual networks beside what was measured.
use crate::host::NO_ANSWER;
use crate::result::{DropCount, TrafficResult};
use serde::Serialize;
use weir_scenario::Scenario;
use weir_scenario::networks::promises;

/// Promise of a virtual network to an item of traffic, and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromiseResult {
    /// Name of the network.
    pub network: String,
    /// Name of the sending host.
    pub from: String,
    /// Name of the receiving host.
    pub to: String,
    /// Names of the virtual links that the packets pass.
    pub links: Vec<String>,
    /// Guaranteed rate in bit/s.
    pub guaranteed_bps: u64,
    /// Delay that was asked for, in microseconds; `None` without such a promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promised_us: Option<f64>,
    /// Longest delay of packets in profile, in microseconds; `None` without a guaranteed rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_us: Option<f64>,
    /// Longest delay that was measured, in microseconds. It begins at the sending host, the bound at its switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_us: Option<f64>,
    /// Share of the packets that were lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Reason why nothing was promised to these packets; `None` if they were in profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_profile: Option<String>,
    /// Reason why a loss is not judged; `None` if it is, or nothing was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<String>,
    /// True if no packet was lost and none was later than the bound; `None` if the item was out of profile, its loss is
    /// not judged, or nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
}

/// Returns the promises to the items of traffic with what was measured of them, and with the drops of hosts.
pub fn results(scenario: &Scenario, traffic: &[TrafficResult], drops: &[DropCount]) -> Vec<PromiseResult> {
    let promised = promises(scenario);
    let result = |promise: weir_scenario::networks::TrafficPromise| {
        let item = traffic.get(promise.item)?;
        let us = |time: std::time::Duration| time.as_secs_f64() * 1e6;
        let measured_us = item.delay.as_ref().map(|delay| delay.max_us);
        // The bound begins when the first switch has the packet.
        let access_us = us(promise.access);
        let bound_us = promise.bound.map(us);
        let in_time = bound_us.zip(measured_us).map(|(bound, measured)| measured <= bound + access_us);
        let lossless = item.loss.map(|loss| loss == 0.0);
        let kept = in_time.zip(lossless).map(|(in_time, lossless)| in_time && lossless);
        let not_judged = dropped_by_sender(item, drops);
        Some(PromiseResult {
            network: promise.network,
            from: item.from.clone(),
            to: item.to.clone(),
            links: promise.links,
            guaranteed_bps: promise.guaranteed.0,
            promised_us: promise.promised.map(us),
            bound_us,
            measured_us,
            loss: item.loss,
            kept: kept.filter(|_| promise.out_of_profile.is_none() && not_judged.is_none()),
            not_judged,
            out_of_profile: promise.out_of_profile,
        })
    };
    promised.into_iter().filter_map(result).collect()
}

/// Returns in words that all lost packets of an item may have been dropped by its sender, while it waited for an
/// address: they were never in the network. `None` if nothing was lost, or more than that.
fn dropped_by_sender(item: &TrafficResult, drops: &[DropCount]) -> Option<String> {
    let dropped: u64 =
        drops.iter().filter(|drop| drop.place == item.from && drop.reason == NO_ANSWER).map(|drop| drop.packets).sum();
    let lost = item.sent?.saturating_sub(item.received);
    (1..=dropped)
        .contains(&lost)
        .then(|| format!("{} dropped {dropped} packets while it waited for addresses", item.from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::TrafficExpectation;

    fn item(sent: u64, received: u64) -> TrafficResult {
        TrafficResult {
            kind: "udp",
            from: "a".to_owned(),
            to: "b".to_owned(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            expect: TrafficExpectation::Reach,
            reached: true,
            ok: true,
            partial: false,
            asked: Some(sent),
            sent: Some(sent),
            received,
            loss: None,
            rtt: None,
            rtt_after_first: None,
            delay: None,
            in_stops: 0,
            undisturbed: None,
            late: None,
            quantiles_us: Vec::new(),
            goodput_bps: None,
            problem: None,
        }
    }

    #[test]
    fn a_loss_that_may_be_the_senders_is_not_judged() {
        let drop = |place: &str, reason: &str| DropCount { place: place.into(), reason: reason.into(), packets: 3 };
        let drops = [drop("a", NO_ANSWER), drop("a", "buffer full"), drop("b", NO_ANSWER)];
        let said = dropped_by_sender(&item(100, 97), &drops);
        assert_eq!(said.as_deref(), Some("a dropped 3 packets while it waited for addresses"));
        assert_eq!(dropped_by_sender(&item(100, 100), &drops), None);
        assert_eq!(dropped_by_sender(&item(100, 96), &drops), None, "one more than the host dropped");
        assert_eq!(dropped_by_sender(&item(100, 97), &drops[1..]), None);
    }
}
