//! Tests networks in virtual time whose links change between the steps.
use std::time::Duration;
use weir_scenario::Scenario;
use weir_sim::SimulationMonitor;
use weir_sim::network::{NetworkSimulation, SimulatedLinkState, TrafficCount, VirtualTimeSettings};

const MS: Duration = Duration::from_millis(1);

/// Ring of three switches, and a flow between the first two with a packet each 100 us.
const RING: &str = r#"
[controller]
app = "forwarding"
[topology]
kind = "ring"
switches = 3
delay = "20us"
[[traffic]]
kind = "udp"
from = "h1"
to = "h2"
rate = 10000
duration = "3s"
"#;

fn losses(count: TrafficCount) -> u64 {
    count.sent - count.received
}

/// Lets a link go from one state to the next, a third of a second each. Returns the packets lost in each.
fn lost_in(states: [SimulatedLinkState; 3], control_jitter: Duration) -> ([u64; 3], String) {
    let scenario = Scenario::parse(RING, "ring.toml").unwrap_or_else(|error| panic!("{error}"));
    let between = |link: &weir_scenario::ScenarioLink| {
        let names = link.ends.map(|end| scenario.switches[end.switch].name.as_str());
        names.contains(&"s1") && names.contains(&"s2")
    };
    let link = scenario.links.iter().position(between).expect("the ring joins them");
    let settings = VirtualTimeSettings { control_jitter, ..VirtualTimeSettings::default() };
    let watch = SimulationMonitor::default();
    let mut network = NetworkSimulation::start(&scenario, &settings, &watch).unwrap_or_else(|error| panic!("{error}"));
    let run = |network: &mut NetworkSimulation<'_>, time| network.run_for(time).expect("the controller is embedded");
    run(&mut network, 300 * MS + 19 * MS / 20);
    let mut before = losses(network.counts()[0]);
    let lost = states.map(|state| {
        network.set_link(link, state);
        run(&mut network, 333 * MS);
        let lost = losses(network.counts()[0]);
        lost - std::mem::replace(&mut before, lost)
    });
    assert_eq!(network.elapsed(), 1299 * MS + 19 * MS / 20);
    assert!(network.controller_time() > network.elapsed(), "switches connected before the traffic");
    let events =
        network.ask(r#"{"request": "events", "with": {"after": 0, "most": 1000}}"#).expect("the application replies");
    (lost, events)
}

#[test]
fn a_link_that_goes_down_costs_little_and_none_as_it_returns() {
    let states = [SimulatedLinkState::Up, SimulatedLinkState::Down, SimulatedLinkState::Up];
    let ([steady, down, returned], events) = lost_in(states, Duration::ZERO);
    assert!((steady, returned) == (0, 0) && (1..=100).contains(&down), "{steady} {down} {returned}");
    for kind in ["port-down", "link-down", "rerouted", "link-up"] {
        assert!(events.contains(&format!(r#""kind":"{kind}""#)), "{kind}: {events}");
    }
}

#[test]
fn a_silent_link_costs_what_comes_before_it_is_noticed() {
    let states = [SimulatedLinkState::Up, SimulatedLinkState::Silent, SimulatedLinkState::Up];
    let ([steady, silent, returned], events) = lost_in(states, MS);
    assert!((steady, returned) == (0, 0) && (500..=1000).contains(&silent), "{steady} {silent} {returned}");
    assert!(!events.contains(r#""kind":"port-down""#) && events.contains(r#""kind":"link-down""#), "{events}");
}

/// Two flows over links of other lengths; the first in the file starts last.
const TWO_FLOWS: &str = r#"
duration = "100ms"
[controller]
app = "learning"
[topology]
kind = "linear"
switches = 3
delay = "500us"
[[traffic]]
kind = "udp"
from = "h1"
to = "h3"
rate = 1000
start = "20ms"
[[traffic]]
kind = "udp"
from = "h1"
to = "h2"
rate = 1000
start = "10ms"
"#;

#[test]
fn delays_are_told_by_item() {
    let scenario = Scenario::parse(TWO_FLOWS, "two.toml").unwrap_or_else(|error| panic!("{error}"));
    let watch = SimulationMonitor::default();
    let settings = VirtualTimeSettings::default();
    let mut network = NetworkSimulation::start(&scenario, &settings, &watch).unwrap_or_else(|error| panic!("{error}"));
    network.run_for(60 * MS).expect("the controller is embedded");
    let (counts, delays) = (network.counts(), network.item_delays());
    assert_eq!(counts.len(), 2);
    for ((item, count), delays) in scenario.traffic.iter().zip(counts).zip(&delays) {
        let hops = if scenario.hosts[item.to].name == "h3" { 2.0 } else { 1.0 };
        let half = delays.quantile_us(0.5).expect("packets have arrived");
        assert_eq!(delays.count(), count.received);
        assert!((500.0 * hops..500.0 * (hops + 0.5)).contains(&half), "{half} us over {hops} links");
    }
    let all: u64 = delays.iter().map(weir_traffic::TimeHistogram::count).sum();
    assert_eq!(network.delays().count(), all);
}
