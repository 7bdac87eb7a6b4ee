//! Compares stations with the simulations of published test vectors of performance models.
//!
//! Two programs' measurements of one system agree within both intervals, even where the formulas are approximations.
//! The vectors are outside the repository (see `data/README.md` there).
use serde_json::Value;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use weir_scenario::Scenario;
use weir_sim::stations::report::{QueueingReport, report};
use weir_sim::stations::{plan, run};
use weir_sim::stats::{Confidence, Estimate};
use weir_sim::{ReplicationLimits, SimulationMonitor, replicate};

const REPLICATIONS: u64 = 8;
/// Packets of a replication, a tenth of them sent before the window.
const PACKETS: f64 = 100_000.0;

/// Model, its parameters, and the measurements: metric, mean, half width of a 95 % interval.
struct Case {
    model: String,
    params: Value,
    measured: Vec<(String, f64, f64)>,
}

fn cases() -> Option<Vec<Case>> {
    let path = weir_testing::shared("data/model-vectors.csv")?;
    let mut cases: BTreeMap<[String; 2], Case> = BTreeMap::new();
    for cells in csv::Reader::from_path(path).unwrap().records().map(Result::unwrap) {
        let [model, params, metric, mean, half] = [1, 2, 3, 8, 9].map(|at: usize| cells[at].to_owned());
        let (Ok(mean), Ok(half)) = (mean.parse(), half.parse()) else { continue };
        let case = cases.entry([model.clone(), params.clone()]).or_insert_with(|| Case {
            model,
            params: serde_json::from_str(&params).unwrap(),
            measured: Vec::new(),
        });
        case.measured.push((metric, mean, half));
    }
    Some(cases.into_values().collect())
}

fn number(params: &Value, key: &str) -> f64 {
    params[key].as_f64().unwrap_or_else(|| panic!("{key} of {params}"))
}

fn time(s: f64) -> String {
    format!("'{:.6}ns'", s * 1e9)
}

fn exponential(rate: f64) -> String {
    format!("{{ law = 'exponential', mean = {} }}", time(1.0 / rate))
}

/// Returns a distribution of the vectors in a scenario's notation.
fn law(of: &Value) -> String {
    let parameter = |at: usize| of[at].as_f64().unwrap();
    match of[0].as_str().unwrap() {
        "det" => time(parameter(1)),
        "exp" => exponential(1.0 / parameter(1)),
        "gamma" => format!("{{ law = 'gamma', mean = {}, scv = {} }}", time(parameter(1)), parameter(2)),
        "uniform" => format!("{{ law = 'uniform', from = {}, to = {} }}", time(parameter(1)), time(parameter(2))),
        "h2" => {
            let means = [time(parameter(2)), time(parameter(3))].join(", ");
            format!("{{ law = 'hyperexponential', share = {}, means = [{means}] }}", parameter(1))
        }
        other => panic!("unknown law {other}"),
    }
}

/// Parts of a scenario file that describe a case: controller, switch timing, and arrivals.
struct Described {
    controller: String,
    timing: String,
    rate: f64,
    traffic: String,
}

fn described(case: &Case) -> Option<Described> {
    let params = &case.params;
    let of = |key: &str| number(params, key);
    let limit =
        |key: &str, name: &str| params[key].as_u64().map_or(String::new(), |limit| format!("{name} = {limit}\n"));
    let poisson = |controller: String, timing: String| {
        let share = params["p"].as_f64().map_or(String::new(), |share| format!("new_flows = {share}"));
        let traffic = format!("arrival = 'poisson'\n{share}");
        Some(Described { controller, timing, rate: of("lam"), traffic })
    };
    let served = |rate: &str, buffer: String| format!("service = {}\n{buffer}", exponential(of(rate)));
    match case.model.as_str() {
        "mm1" => poisson(String::new(), format!("data = {}", exponential(of("mu")))),
        "mm1k" => poisson(String::new(), format!("data = {}\n{}", exponential(of("mu")), limit("K", "data_buffer"))),
        "mg1" => poisson(String::new(), format!("data = {}", law(&params["dist"]))),
        "mg1k" => poisson(String::new(), format!("data = {}\n{}", law(&params["dist"]), limit("K", "data_buffer"))),
        "mmpp2_m1" => {
            let (r0, r1, q01, q10) = (of("r0"), of("r1"), of("q01"), of("q10"));
            let rates = format!("rates = [{r0:.1}, {r1:.1}], transitions = [[0.0, {q01:.1}], [{q10:.1}, 0.0]]");
            Some(Described {
                controller: String::new(),
                timing: format!("data = {}", exponential(of("mu"))),
                rate: (r0 * q10 + r1 * q01) / (q01 + q10),
                traffic: format!("arrival = {{ kind = 'mmpp-general', {rates} }}"),
            })
        }
        "mahmood" => {
            poisson(served("mu_c", String::new()), format!("data = {}\nreturns = 'fifo'", exponential(of("mu_s"))))
        }
        // The vectors' other variant examines returning packets again, which no simulated switch does.
        "jarschel" if params["variant"] == "once" => poisson(
            served("mu_c", limit("S", "buffer")),
            format!("data = {}\nreturns = 'fifo'", exponential(of("mu_s"))),
        ),
        "goto" => {
            let [low, high] = ["KL", "KH"].map(|key| of(key) + 1.0);
            let returns = format!("{{ order = 'priority', service = {}, buffer = {high} }}", exponential(of("mu_h")));
            let data = format!("data = {}\ndata_buffer = {low}\nreturns = {returns}", exponential(of("mu_l")));
            poisson(served("mu_c", String::new()), data)
        }
        "sdn4q" => {
            let mut timing = ["data", "packet_in", "packet_out"].iter().zip(["dp", "ain", "aout"]).fold(
                String::new(),
                |mut text, (name, key)| {
                    let _ = writeln!(text, "{name} = {}", law(&params[key]));
                    text
                },
            );
            timing += &limit("K_agent", "buffer");
            timing += if params["shared"] == true { "agents = 'shared'" } else { "" };
            poisson(format!("service = {}\n{}", law(&params["ctl"]), limit("K_ctl", "buffer")), timing)
        }
        "lcs" => {
            let buffer = params["K"].as_u64().map_or(String::new(), |limit| format!(", buffer = {limit}"));
            let path = format!("delay = {}, capacity = {:.1}, scv = {}{buffer}", time(of("D0")), of("cap"), of("scv"));
            let write = params["B"].as_f64().map_or(String::new(), |length| format!("write = {}", time(length)));
            poisson(String::new(), format!("data = {}\ncontrol = {{ {path} }}\n{write}", law(&params["dp"])))
        }
        "tick" => poisson(String::new(), format!("tick = {}\n{}", time(of("delta")), limit("m", "tick_max"))),
        "batch_stage" => {
            poisson(String::new(), format!("batch = {{ packets = {}, timeout = {} }}", params["B"], time(of("theta"))))
        }
        _ => None,
    }
}

fn scenario(described: &Described) -> Scenario {
    let Described { controller, timing, rate, traffic } = described;
    let length_s = PACKETS / rate;
    let text = format!(
        "[controller]\napp = 'learning'\n{controller}\n[[switch]]\nname = 's1'\n[switch.timing]\n{timing}\n\
         [[host]]\nname = 'h1'\nswitch = 's1'\nip = '10.0.0.1/24'\n[[host]]\nname = 'h2'\nswitch = 's1'\nip = '10.0.0.2/24'\n\
         [[traffic]]\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = {rate:.6}\n{traffic}\n\
         [simulate]\nduration = '{:.3}ms'\nwarm_up = '{:.3}ms'\n",
        length_s * 900.0,
        length_s * 100.0
    );
    Scenario::parse(&text, "vector").unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

fn simulate(described: &Described) -> QueueingReport {
    let scenario = scenario(described);
    let plan = plan(&scenario).unwrap();
    let (window, watch) = (weir_sim::scenario::window(&scenario), SimulationMonitor::default());
    let one = |number| Ok::<_, Infallible>(Some(run(&plan, window, scenario.seed, number, &watch).unwrap()));
    let replications = ReplicationLimits { least: REPLICATIONS, most: REPLICATIONS, threads: 2 };
    let Ok(done) = replicate(&replications, one, |_| true);
    report(&plan, &done.results, Confidence::P99)
}

fn found(report: &QueueingReport, metric: &str) -> Option<Estimate> {
    let flow = &report.flows[0];
    match metric {
        "T" => flow.all.mean_s,
        "T_data" => flow.data.mean_s,
        "T_ctrl" => flow.control.mean_s,
        "p50" => flow.all.p50_s,
        "p95" => flow.all.p95_s,
        "p99" => flow.all.p99_s,
        "loss" => flow.loss,
        "Tc" => report.stations.iter().find(|station| station.name == "controller")?.stay_s,
        _ => None,
    }
}

#[test]
fn two_programs_measure_the_same() {
    let Some(cases) = cases() else { return };
    let mut compared = BTreeMap::new();
    for case in &cases {
        let Some(described) = described(case) else { continue };
        let report = simulate(&described);
        for (metric, mean, half) in &case.measured {
            let Some(found) = found(&report, metric) else { continue };
            // Percentiles are kept to a thousandth.
            let within = found.half_width.unwrap() + 1.5 * half + mean.abs() * 1e-3;
            let off = (found.mean - mean).abs();
            assert!(off <= within, "{} {} {metric}: {found:?}, there {mean} ± {half}", case.model, case.params);
            *compared.entry(case.model.clone()).or_insert(0) += 1;
        }
    }
    let expected = [
        "batch_stage",
        "goto",
        "jarschel",
        "lcs",
        "mahmood",
        "mg1",
        "mg1k",
        "mm1",
        "mm1k",
        "mmpp2_m1",
        "sdn4q",
        "tick",
    ];
    assert_eq!(compared.keys().collect::<Vec<_>>(), expected, "{compared:?}");
    assert!(compared.values().sum::<u32>() >= 80, "{compared:?}");
}
