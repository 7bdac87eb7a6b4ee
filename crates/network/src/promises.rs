//! Promises of virtual networks beside what was measured.
use crate::result::TrafficResult;
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
    /// True if no packet was lost and none was later than the bound; `None` if the item was out of profile, or nothing
    /// was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
}

/// Longest frame of hosts, in bytes.
const LONGEST_FRAME: u64 = 1514;

/// Returns the promises to the items of traffic with what was measured of them.
pub fn results(scenario: &Scenario, traffic: &[TrafficResult]) -> Vec<PromiseResult> {
    let promised = promises(scenario);
    let result = |promise: weir_scenario::networks::TrafficPromise| {
        let item = traffic.get(promise.item)?;
        let us = |time: std::time::Duration| time.as_secs_f64() * 1e6;
        let measured_us = item.delay.as_ref().map(|delay| delay.max_us);
        // The bound begins when the first switch has the packet: the access line before it is added.
        let host = &scenario.hosts[scenario.traffic[promise.item].from];
        let line = host.link.rate.map_or(0.0, |rate| us(rate.time_of(LONGEST_FRAME)));
        let access_us = line + us(host.link.delay);
        let bound_us = promise.bound.map(us);
        let in_time = bound_us.zip(measured_us).map(|(bound, measured)| measured <= bound + access_us);
        let lossless = item.loss.map(|loss| loss == 0.0);
        let kept = in_time.zip(lossless).map(|(in_time, lossless)| in_time && lossless);
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
            kept: kept.filter(|_| promise.out_of_profile.is_none()),
            out_of_profile: promise.out_of_profile,
        })
    };
    promised.into_iter().filter_map(result).collect()
}
