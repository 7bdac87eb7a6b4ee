//! Judges the rates, losses and delays of all cases.
use super::network::{FlowProtocol, IsolationCase, LoadProfile, MAXIMUM_MBPS, RateLimitPlace};
use super::trial::FlowFindings;
use super::{MEAN, MeasuredCase, RATE, SPEEDS, flows};
use crate::ExperimentRun;
use crate::report::Claim;

/// Tolerances of rates, as shares of the expected rate.
const UDP: f64 = 0.005;
const TCP: f64 = 0.02;
/// Tolerance of TCP rates below a limit that counts acknowledgements, too: these take 1.8 % if each is for two frames.
const WITH_ACKNOWLEDGEMENTS: f64 = 0.03;
/// Passages of the line that all virtual links share, on the way from host to host.
const PASSAGES: f64 = 2.0;
/// Share of packets in percent that flows at 120 % of their maximum exceed it by.
const EXCESS: f64 = 100.0 * (1.0 - 1.0 / 1.2);
/// Tolerances of losses, in points: with a limit for each flow, and with one for both, where the published losses are
/// up to 3.7 points off.
const OWN_POINTS: f64 = 0.5;
const COMMON_POINTS: f64 = 4.0;

const MISSING: &str = "not all cases were simulated";

fn tolerance(protocol: FlowProtocol) -> f64 {
    match protocol {
        FlowProtocol::Udp => UDP,
        FlowProtocol::Tcp => TCP,
    }
}

/// A flow of a case.
#[derive(Clone, Copy)]
struct JudgedFlow {
    case: IsolationCase,
    network: usize,
    flow: usize,
    /// Place among the case's findings.
    place: usize,
}

impl JudgedFlow {
    fn profile(&self) -> LoadProfile {
        self.case.profile(self.network)
    }

    fn asked(&self) -> f64 {
        self.case.asked_mbps(self.network, self.flow) as f64
    }

    fn maximum(&self) -> f64 {
        self.case.maximum_mbps(self.network, self.flow) as f64
    }
}

/// All findings, from which claims take some.
struct IsolationJudge<'a> {
    measured: &'a [MeasuredCase],
    speed: u64,
}

impl IsolationJudge<'_> {
    /// Returns a value of all flows for which `which` is true, in each replication.
    fn values(
        &self,
        which: impl Fn(&JudgedFlow) -> bool,
        value: impl Fn(&JudgedFlow, &FlowFindings) -> f64,
    ) -> Vec<f64> {
        let cases = self.measured.iter().filter(|(case, _)| case.speed == self.speed);
        let each = cases.flat_map(|(case, found)| {
            let all = flows().map(|(network, flow, place)| JudgedFlow { case: *case, network, flow, place });
            all.filter(&which)
                .flat_map(|one| found.iter().map(|flows| value(&one, &flows[one.place])).collect::<Vec<_>>())
        });
        each.collect()
    }

    /// Claims that a value is at most `limit` in all flows for which `which` is true. `unit` follows the largest value.
    fn at_most(
        &self,
        text: &str,
        (limit, unit): (f64, &str),
        which: impl Fn(&JudgedFlow) -> bool,
        value: impl Fn(&JudgedFlow, &FlowFindings) -> f64,
    ) -> Claim {
        let values = self.values(which, value);
        let text = self.named(text);
        match values.iter().copied().reduce(f64::max) {
            Some(most) => {
                let samples = values.len();
                Claim::tested(
                    text,
                    most <= limit,
                    format!("{most:.3}{unit} at most, limit {limit:.3}; {samples} flows"),
                )
            }
            None => Claim::untested(text, MISSING),
        }
    }

    fn named(&self, text: &str) -> String {
        if self.speed == 1 { text.to_owned() } else { format!("at {} times the rates, {text}", self.speed) }
    }

    /// Returns the sum of the rates of the second virtual network in case 4 with one limit for both flows.
    fn common_sums(&self, protocol: FlowProtocol) -> Vec<f64> {
        let of = |case: &IsolationCase| (case.speed, case.protocol, case.place);
        let wanted = (self.speed, protocol, RateLimitPlace::VirtualNetwork);
        let found = self.measured.iter().filter(|(case, _)| of(case) == wanted).flat_map(|(_, found)| found);
        found.map(|flows| flows[2].rate_mbps + flows[3].rate_mbps).collect()
    }
}

/// Adds the claims, first those at the published rates.
pub(super) fn claims(run: &mut ExperimentRun<'_>, measured: &[MeasuredCase]) {
    for speed in SPEEDS {
        let judge = IsolationJudge { measured, speed };
        rates(run, &judge);
        offenders(run, &judge);
        common_limit(run, &judge);
        isolation(run, &judge);
    }
}

fn off(found: f64, expected: f64) -> f64 {
    100.0 * (found / expected - 1.0).abs()
}

/// Claims that flows get what they ask for, up to their maximum.
fn rates(run: &mut ExperimentRun<'_>, judge: &IsolationJudge<'_>) {
    run.claims.push(judge.at_most(
        "in profile no UDP packet is lost",
        (0.0, " packets"),
        |one| one.case.protocol == FlowProtocol::Udp && one.profile() == LoadProfile::InProfile,
        |_, found| found.lost as f64,
    ));
    run.claims.push(judge.at_most(
        "in profile TCP gets what it asks for within 2 %",
        (100.0 * TCP, " %"),
        |one| one.case.protocol == FlowProtocol::Tcp && one.profile() == LoadProfile::InProfile,
        |one, found| off(found.rate_mbps, one.asked()),
    ));
    for (protocol, text) in [
        (FlowProtocol::Udp, "at the limit each UDP flow gets its maximum within 0.5 %"),
        (FlowProtocol::Tcp, "at the limit each TCP flow gets its maximum within 2 %"),
    ] {
        run.claims.push(judge.at_most(
            text,
            (100.0 * tolerance(protocol), " %"),
            |one| one.case.protocol == protocol && one.profile() == LoadProfile::Limit,
            |one, found| off(found.rate_mbps, one.maximum()),
        ));
    }
}

/// Claims that flows out of profile get their maximum, and lose the rest.
fn offenders(run: &mut ExperimentRun<'_>, judge: &IsolationJudge<'_>) {
    let own =
        |one: &JudgedFlow| one.profile() == LoadProfile::OutOfProfile && one.case.place == RateLimitPlace::VirtualLink;
    for (protocol, text) in [
        (FlowProtocol::Udp, "out of profile each UDP flow gets its maximum within 0.5 %"),
        (FlowProtocol::Tcp, "out of profile each TCP flow gets its maximum within 2 %"),
    ] {
        run.claims.push(judge.at_most(
            text,
            (100.0 * tolerance(protocol), " %"),
            |one| own(one) && one.case.protocol == protocol,
            |one, found| off(found.rate_mbps, one.maximum()),
        ));
    }
    run.claims.push(judge.at_most(
        "out of profile each UDP flow loses 16.7 % within 0.5 points",
        (OWN_POINTS, " points off"),
        |one| own(one) && one.case.protocol == FlowProtocol::Udp,
        |_, found| (found.loss_percent - EXCESS).abs(),
    ));
}

/// Claims how the flows of a virtual network share one limit.
fn common_limit(run: &mut ExperimentRun<'_>, judge: &IsolationJudge<'_>) {
    let maximum = (MAXIMUM_MBPS[1].iter().sum::<u64>() * judge.speed) as f64;
    for (protocol, tolerance, text) in [
        (FlowProtocol::Udp, UDP, "with one limit for its flows VNet 2 gets that limit within 0.5 % with UDP"),
        (
            FlowProtocol::Tcp,
            WITH_ACKNOWLEDGEMENTS,
            "with one limit for its flows and their acknowledgements VNet 2 gets that limit within 3 % with TCP",
        ),
    ] {
        let sums = judge.common_sums(protocol);
        let text = judge.named(text);
        let most = sums.iter().map(|sum| off(*sum, maximum)).reduce(f64::max);
        run.claims.push(most.map_or_else(
            || Claim::untested(&*text, MISSING),
            |most| Claim::tested(&*text, most <= 100.0 * tolerance, format!("{most:.3} % off at most")),
        ));
    }
    let common = |one: &JudgedFlow| one.network == 1 && one.case.place == RateLimitPlace::VirtualNetwork;
    run.claims.push(judge.at_most(
        "with one limit each UDP flow of VNet 2 loses 16.7 % within 4 points",
        (COMMON_POINTS, " points off"),
        |one| common(one) && one.case.protocol == FlowProtocol::Udp,
        |_, found| (found.loss_percent - EXCESS).abs(),
    ));
    run.claims.push(judge.at_most(
        "with one limit flow 1 of VNet 2, which asks for less than half, gets what it asks for within 2 % with TCP",
        (100.0 * TCP, " %"),
        |one| common(one) && one.flow == 0 && one.case.protocol == FlowProtocol::Tcp,
        |one, found| off(found.rate_mbps, one.asked()),
    ));
}

/// Claims that flows of the first virtual network in cases 3 and 4 fare as in case 1.
fn isolation(run: &mut ExperimentRun<'_>, judge: &IsolationJudge<'_>) {
    let name = |case: IsolationCase, flow: usize| case.flow_name(0, flow);
    let cases = |protocol: FlowProtocol| {
        let of = move |number: usize| IsolationCase {
            number,
            protocol,
            place: RateLimitPlace::VirtualLink,
            speed: judge.speed,
        };
        [3, 4].into_iter().flat_map(move |number| [0, 1].map(|flow| (of(number), of(1), flow)))
    };
    let largest = |run: &ExperimentRun<'_>, protocol, metric, difference: fn(f64, f64) -> f64| {
        let of = |(case, first, flow): (IsolationCase, IsolationCase, usize)| {
            Some(difference(run.value(&name(case, flow), metric)?, run.value(&name(first, flow), metric)?))
        };
        cases(protocol).map(of).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    };
    let claim = |run: &mut ExperimentRun<'_>, text: &str, limit: f64, unit: &str, found: Option<f64>| {
        let text = judge.named(text);
        run.claims.push(match found {
            Some(most) => Claim::tested(text, most <= limit, format!("{most:.3} {unit} at most, limit {limit:.3}")),
            None => Claim::untested(text, MISSING),
        });
    };
    let udp = largest(run, FlowProtocol::Udp, RATE, off);
    claim(run, "VNet 1 has the UDP rates of case 1 in cases 3 and 4, within 0.5 %", 100.0 * UDP, "%", udp);
    let tcp = largest(run, FlowProtocol::Tcp, RATE, off);
    claim(run, "VNet 1 has the TCP rates of case 1 in cases 3 and 4, within 2 %", 100.0 * TCP, "%", tcp);
    let frame_us = cases(FlowProtocol::Udp).next().map_or(0.0, |(case, ..)| case.frame_us());
    let delay = largest(run, FlowProtocol::Udp, MEAN, |found, first| (found - first).abs());
    let text = "mean delays of VNet 1 in cases 3 and 4 differ from those of case 1 by at most a frame's time for each passage of the line";
    claim(run, text, PASSAGES * frame_us, "us", delay);
}
