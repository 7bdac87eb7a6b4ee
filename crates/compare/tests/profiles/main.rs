//! Checks that a profile means the same to formulas, simulated stations and simulated packets.
mod parameters;
mod stage;

use std::convert::Infallible;
use weir_predict::{PredictSettings, Prediction, predict};
use weir_scenario::{Profile, Scenario};
use weir_sim::network::{VirtualTimeSettings, simulate};
use weir_sim::stations::report::{QueueingReport, report};
use weir_sim::stations::{plan, run};
use weir_sim::stats::Confidence;
use weir_sim::{ReplicationLimits, SimulationMonitor, replicate};

/// Entries by Ethernet addresses: for both directions between two hosts, and for their questions for addresses.
const L2: &str = "'dl_dst=ff:ff:ff:ff:ff:ff,actions=flood', 'dl_dst=02:00:00:00:00:0a,actions=output:1', 'dl_dst=02:00:00:00:00:0b,actions=output:2'";

/// Traffic in which most packets come within the first level of times between packets, and some do not.
const STREAM: &str =
    "kind = 'udp'\nfrom = 'a'\nto = 'b'\nrate = 900\npayload = '100B'\narrival = 'poisson'\nduration = '20s'";

/// A network of one switch with this profile, lines that take little time, and these items of traffic.
fn scenario(profile: &str, entries: &str, traffic: &[&str]) -> Scenario {
    let items: String = traffic.iter().map(|item| format!("[[traffic]]\n{item}\n")).collect();
    let text = format!(
        "duration = '30s'\n[controller]\nconnect = 'none'\n[[switch]]\nname = 's1'\nentries = [{entries}]\n\
         [switch.timing]\npacket_in = '1ms'\n\
         [[host]]\nname = 'a'\nswitch = 's1'\nport = 1\nip = '10.0.0.1/24'\nmac = '02:00:00:00:00:0a'\nrate = '10Gbit/s'\n\
         [[host]]\nname = 'b'\nswitch = 's1'\nport = 2\nip = '10.0.0.2/24'\nmac = '02:00:00:00:00:0b'\nrate = '10Gbit/s'\n\
         {items}[simulate]\nduration = '20s'\nwarm_up = '1s'\nreplications = 4\n"
    );
    let mut scenario = Scenario::parse(&text, "profiles.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let head = "name = 'p'\ndevice = 'd'\norigin = 'assumed'\nsource = 's'\n";
    let text = format!("{head}{profile}");
    let profile = Profile::parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    scenario.switches[0].timing.clone_from(&profile.timing);
    scenario.switches[0].profile = Some(Box::new(profile));
    scenario
}

fn predicted(scenario: &Scenario) -> Prediction {
    predict(scenario, &PredictSettings::default()).unwrap()
}

fn stations(scenario: &Scenario) -> QueueingReport {
    let (plan, watch) = (plan(scenario).unwrap(), SimulationMonitor::default());
    let window = weir_sim::scenario::window(scenario);
    let one = |number| Ok::<_, Infallible>(Some(run(&plan, window, scenario.seed, number, &watch).unwrap()));
    let Ok(done) = replicate(&ReplicationLimits { least: 4, most: 4, threads: 1 }, one, |_| true);
    report(&plan, &done.results, Confidence::P95)
}

/// Returns mean and 95th percentile of each item of the network's packets, in microseconds; of pings after the first.
fn packets(scenario: &Scenario) -> Vec<[f64; 2]> {
    let result =
        simulate(scenario, &VirtualTimeSettings::default(), &SimulationMonitor::default(), &mut |_| {}).unwrap();
    let times = result.traffic.iter().map(|item| item.rtt_after_first.or(item.delay).unwrap());
    times.map(|times| [times.mean_us, times.p95_us]).collect()
}

fn near(what: &str, found: f64, expected: f64, within: f64) {
    assert!((found / expected - 1.0).abs() <= within, "{what}: found {found}, expected {expected}");
}

/// A level with steps by the time between packets, of the shape that software switches have.
fn level(more: &str) -> String {
    format!(
        "[[level]]\nname = 'table'\n[level.forward]\nbase_l2 = '40us'\nbase_l3 = '60us'\nper_gap_level = '70us'\n\
         gap_levels = ['500us', '20ms']\nper_byte = '20ns'\n{more}\n"
    )
}

#[test]
fn a_ping_waits_for_a_long_time_and_its_answer_for_a_short_one() {
    let ping = "kind = 'ping'\nfrom = 'a'\nto = 'b'\ncount = 20\ninterval = '1s'";
    let scenario = scenario(&level(""), L2, &[ping]);
    let delay = predicted(&scenario).flows[0].delay.unwrap();
    // The request comes two steps above the base, the answer at the base; frames have 98 bytes.
    let expected = 2.0 * (40.0 - 30.0 * 0.02) + 2.0 * 70.0 + 4.0 * 98.0 * 8.0 / 1e4;
    near("formulas", delay.mean_s * 1e6, expected, 1e-3);
    near("median", delay.p50_s * 1e6, expected, 1e-3);
    // Simulated lines without a delay take a microsecond.
    near("packets", packets(&scenario)[0][0], expected, 0.02);
}

#[test]
fn streams_take_the_mean_over_the_times_between_packets() {
    for arrival in ["poisson", "constant"] {
        let traffic = STREAM.replace("poisson", arrival);
        let scenario = scenario(&level(""), L2, &[&traffic]);
        let delay = predicted(&scenario).flows[0].delay.unwrap();
        let row = &stations(&scenario).flows[0].all;
        let [mean, p95] = packets(&scenario)[0];
        near(&format!("{arrival}: stations"), row.mean_s.unwrap().mean, delay.mean_s, 0.03);
        near(&format!("{arrival}: packets"), mean * 1e-6, delay.mean_s, 0.03);
        near(&format!("{arrival}: p95 of packets"), p95 * 1e-6, delay.p95_s, 0.1);
    }
}

#[test]
fn pings_beside_a_stream_come_behind_its_packets() {
    let ping = "kind = 'ping'\nfrom = 'a'\nto = 'b'\ncount = 190\ninterval = '100ms'";
    let scenario = scenario(&level(""), L2, &[ping, STREAM]);
    let found = packets(&scenario);
    for (flow, [mean, _]) in predicted(&scenario).flows.iter().zip(found) {
        near(flow.kind, mean * 1e-6, flow.delay.unwrap().mean_s, 0.04);
    }
}
