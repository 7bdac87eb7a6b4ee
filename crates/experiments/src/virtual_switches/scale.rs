//! Experiment `vx-scale`, figures 4.6 and 4.7: the number of virtual switches that a switch can host, by the size of
//! buffers.
use super::port::{SharedOutputPort, VirtualOutputShare};
use super::{delay_ms, over, series, simulate, throughput};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun};
use weir_fabric::{BufferSharing, InterDiscipline};
use weir_plot::{Axis, Chart};

const SWITCHES: [u64; 6] = [1, 2, 4, 8, 16, 32];
/// Buffers of the physical crosspoints in bytes.
const CROSSPOINTS: [u64; 7] = [3_000, 6_000, 12_000, 24_000, 48_000, 96_000, 192_000];
/// Size of the longest packet in bytes, a lower bound for virtual buffers.
const LEAST_BUFFER: u64 = 1_500;
const THROUGHPUT: &str = "throughput";
const DELAY: &str = "mean delay";

fn case(switches: u64, crosspoint: u64) -> String {
    let s = if switches == 1 { "" } else { "es" };
    format!("{switches} switch{s}, {} kB", crosspoint / 1000)
}

/// Returns the cases whose virtual buffers hold at least one packet.
fn cases() -> impl Iterator<Item = (u64, u64)> {
    let all = SWITCHES.into_iter().flat_map(|switches| CROSSPOINTS.map(|crosspoint| (switches, crosspoint)));
    all.filter(|(switches, crosspoint)| crosspoint / switches >= LEAST_BUFFER)
}

/// Simulates all cases.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    for (switches, crosspoint) in cases() {
        let case = case(switches, crosspoint);
        let Some(results) = simulate(run, &case, &shared(switches, crosspoint).model())? else { break };
        let all: Vec<usize> = (0..results[0].groups.len()).collect();
        run.figure(&case, THROUGHPUT, "%", over(&results, |result| throughput(result, &all)));
        run.figure(&case, DELAY, "ms", over(&results, |result| delay_ms(result, &all)));
    }
    claims(run);
    plots(run);
    Ok(())
}

fn shared(switches: u64, crosspoint: u64) -> SharedOutputPort {
    let share = || VirtualOutputShare {
        part: 1.0 / switches as f64,
        buffer: crosspoint / switches,
        quantum: 1500,
        priority: 0,
    };
    SharedOutputPort {
        discipline: InterDiscipline::Drr,
        sharing: BufferSharing::Strict,
        crosspoint,
        switches: (0..switches).map(|_| share()).collect(),
    }
}

fn claims(run: &mut ExperimentRun<'_>) {
    let all = least(run, |_| true);
    at_least(
        run,
        "throughput is above 90 % with buffers of at least one packet each, for up to 32 switches",
        90.0,
        all,
    );
    let large = least(run, |crosspoint| crosspoint >= 96_000);
    at_least(run, "throughput is above 99 % from crosspoints of 96 kB on, for up to 32 switches", 99.0, large);
    let delays = [2, 4].map(|switches| run.value(&case(switches, 192_000), DELAY));
    if let [Some(two), Some(four)] = delays {
        let because = format!("{two:.3} ms with 2 switches, {four:.3} ms with 4, of 192 kB");
        run.claims.push(Claim::tested(
            "where hardly anything is lost, delay does not grow with the number of switches",
            four < two * 1.1,
            because,
        ));
    }
}

/// Returns the smallest throughput of the cases with the wanted crosspoints, and its case.
fn least(run: &ExperimentRun<'_>, wanted: fn(u64) -> bool) -> Option<(f64, String)> {
    let values = cases().filter(|(_, crosspoint)| wanted(*crosspoint)).map(|(switches, crosspoint)| {
        let case = case(switches, crosspoint);
        run.value(&case, THROUGHPUT).map(|value| (value, case))
    });
    values.collect::<Option<Vec<_>>>()?.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))
}

fn at_least(run: &mut ExperimentRun<'_>, text: &str, bound: f64, found: Option<(f64, String)>) {
    run.claims.push(match found {
        Some((least, case)) => Claim::tested(text, least > bound, format!("{least:.2} % at least, {case}")),
        None => Claim::untested(text, "stopped before all cases were simulated"),
    });
}

fn plots(run: &mut ExperimentRun<'_>) {
    let lines = |run: &ExperimentRun<'_>, metric: &str| {
        let of = |crosspoint: u64| {
            let cases = SWITCHES.map(|switches| (switches as f64, case(switches, crosspoint)));
            series(run, format!("{} kB", crosspoint / 1000), metric, cases)
        };
        CROSSPOINTS.map(of).into_iter().filter(|series| !series.points.is_empty()).collect()
    };
    for (name, title, y, metric) in [
        ("throughput", "Throughput by crosspoint buffer (Fig. 4.6)", "throughput, %", THROUGHPUT),
        ("delay", "Mean delay by crosspoint buffer (Fig. 4.7)", "mean delay, ms", DELAY),
    ] {
        let series = lines(run, metric);
        run.plots.push(
            Chart {
                name: name.into(),
                title: title.into(),
                x: Axis::log("virtual switches"),
                y: Axis::linear(y),
                series,
            }
            .into(),
        );
    }
}
