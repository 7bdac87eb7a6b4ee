//! Compares formulas and simulated stations for flows of several packets, of which some ask the controller.
use std::convert::Infallible;
use weir_predict::{PredictSettings, PredictionStatus, predict};
use weir_scenario::Scenario;
use weir_sim::stations::report::{QueueingReport, report};
use weir_sim::stations::{plan, run};
use weir_sim::stats::Confidence;
use weir_sim::{ReplicationLimits, SimulationMonitor, replicate};

/// Tolerance for formulas, in addition to the simulation's own interval. Formulas do not know that packets reach the
/// controller in groups.
const WITHIN: f64 = 0.02;

fn scenario(controller: &str, timing: &str, traffic: &str) -> Scenario {
    let text = format!(
        "seed = 7\n[controller]\n{controller}\n[[switch]]\nname = 's1'\n[switch.timing]\ndata = '5us'\n{timing}\n\
         [[host]]\nname = 'a'\nswitch = 's1'\nip = '10.0.0.1/24'\n[[host]]\nname = 'b'\nswitch = 's1'\nip = '10.0.0.2/24'\n\
         [[traffic]]\nkind = 'udp'\nfrom = 'a'\nto = 'b'\narrival = 'poisson'\npayload = '100B'\n{traffic}\n\
         [simulate]\nwarm_up = '10s'\nduration = '400s'\n"
    );
    Scenario::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn simulated(scenario: &Scenario) -> QueueingReport {
    let plan = plan(scenario).unwrap();
    let (window, watch) = (weir_sim::scenario::window(scenario), SimulationMonitor::default());
    let one = |number| Ok::<_, Infallible>(Some(run(&plan, window, scenario.seed, number, &watch).unwrap()));
    let Ok(done) = replicate(&ReplicationLimits { least: 6, most: 6, threads: 1 }, one, |_| true);
    report(&plan, &done.results, Confidence::P95)
}

#[test]
fn as_many_ask_as_formulas_say() {
    let exponential = "service = { law = 'exponential', mean = '5ms' }";
    for (controller, timing, traffic) in [
        (exponential, "", "rate = 150\nflow_packets = 5\nflows = 3"),
        (exponential, "", "rate = 300\nflow_packets = 10\nflows = 10"),
        // A set-up time that hardly varies is nearly that of the formula for a constant one.
        ("service = '1ns'\ndelay = '10ms'", "", "rate = 200\nflow_packets = 4\nflows = 2"),
        // A measured control path, most of whose delay is not the bottleneck.
        (
            "app = 'learning'",
            "control = { delay = '19.06ms', capacity = 70, scv = 0.5 }",
            "rate = 60\nflow_packets = 3\nflows = 6",
        ),
    ] {
        let scenario = scenario(controller, timing, traffic);
        let (formulas, simulation) = (predict(&scenario, &PredictSettings::default()).unwrap(), simulated(&scenario));
        let (share, asked) = (formulas.flows[0].asks.unwrap(), simulation.switches[0].asked.unwrap());
        let own = asked.half_width.unwrap();
        assert!((share - asked.mean).abs() < WITHIN * asked.mean + own, "{traffic}: {share}, simulated {asked:?}");
        let (mean, found) = (formulas.flows[0].delay.unwrap().mean_s, simulation.flows[0].all.mean_s.unwrap());
        let own = found.half_width.unwrap();
        assert!((mean - found.mean).abs() < 0.1 * found.mean + own, "{traffic}: {mean}, simulated {found:?}");
        // A second state is possible if the rate of all packets exceeds the service rate.
        let kinds: Vec<_> = formulas.warnings.iter().map(|warning| warning.kind).collect();
        assert_eq!(kinds, if traffic.contains("rate = 300") { vec!["METASTABLE"] } else { vec![] }, "{traffic}");
    }
}

#[test]
fn flows_of_one_packet_are_the_share_that_begins_them() {
    let controller = "service = { law = 'exponential', mean = '5ms' }";
    let known = scenario(controller, "", "rate = 60\nflow_packets = 1\nflows = 3");
    let plain = scenario(controller, "", "rate = 60\nnew_flows = 1.0");
    let mean =
        |scenario: &Scenario| predict(scenario, &PredictSettings::default()).unwrap().flows[0].delay.unwrap().mean_s;
    assert!((mean(&known) / mean(&plain) - 1.0).abs() < 1e-6);
}

#[test]
fn a_second_worse_state_is_warned_of_and_none_is_unstable() {
    let controller = "service = { law = 'exponential', mean = '5ms' }";
    let two = scenario(controller, "", "rate = 600\nflow_packets = 10\nflows = 120");
    let answer = predict(&two, &PredictSettings::default()).unwrap();
    assert_eq!(answer.flows[0].status, PredictionStatus::Ok);
    let warning = answer.warnings.iter().find(|warning| warning.kind == "METASTABLE").unwrap();
    assert!(warning.text.contains("controller"), "{warning}");
    let none = scenario(controller, "", "rate = 3000\nflow_packets = 20\nflows = 6");
    let answer = predict(&none, &PredictSettings::default()).unwrap();
    assert_eq!(answer.flows[0].status, PredictionStatus::Unstable);
    assert!(answer.warnings.iter().all(|warning| warning.kind != "METASTABLE"), "{:?}", answer.warnings);
}
