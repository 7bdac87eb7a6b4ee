//! Experiment `vx-priority`, figures 4.8 and 4.9: a small and a large virtual switch, with deficit round robin or
//! strict priority.
use super::port::{SharedOutputPort, VirtualOutputShare};
use super::{delay_ms, over, series, simulate, throughput};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun};
use weir_fabric::{BufferSharing, InterDiscipline};
use weir_plot::{Axis, Chart};

/// Sum of both buffers in bytes.
const CROSSPOINT: u64 = 15_000;
/// Buffers of the first switch in bytes.
const BUFFERS: [u64; 9] = [1_500, 3_000, 4_500, 6_000, 7_500, 9_000, 10_500, 12_000, 13_500];
/// Each switch's share of the output.
const PARTS: [f64; 2] = [0.1, 0.9];
const THROUGHPUTS: [&str; 2] = ["throughput of VS1", "throughput of VS2"];
const DELAYS: [&str; 2] = ["mean delay of VS1", "mean delay of VS2"];

/// A way of sharing: its name, the discipline, the sharing of buffers.
type SharingVariant = (&'static str, InterDiscipline, BufferSharing);
const DRR: &str = "DRR";
const STRICT: &str = "strict priority";
const FLEXIBLE: &str = "strict priority, flexible buffers";
/// Ways of sharing; the last one is not in the thesis.
const WAYS: [SharingVariant; 3] = [
    (DRR, InterDiscipline::Drr, BufferSharing::Strict),
    (STRICT, InterDiscipline::StrictPriority, BufferSharing::Strict),
    (FLEXIBLE, InterDiscipline::StrictPriority, BufferSharing::Flexible),
];

fn case(way: &str, buffer: u64) -> String {
    format!("{way}, {} kB of 15 for VS1", buffer as f64 / 1000.0)
}

/// Simulates all ways and buffers.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    'all: for way in WAYS {
        for buffer in BUFFERS {
            let case = case(way.0, buffer);
            let Some(results) = simulate(run, &case, &shared(way, buffer).model())? else { break 'all };
            for switch in [0, 1] {
                run.figure(&case, THROUGHPUTS[switch], "%", over(&results, |result| throughput(result, &[switch])));
                run.figure(&case, DELAYS[switch], "ms", over(&results, |result| delay_ms(result, &[switch])));
            }
        }
    }
    claims(run);
    plots(run);
    Ok(())
}

fn shared((_, discipline, sharing): SharingVariant, buffer: u64) -> SharedOutputPort {
    let first = VirtualOutputShare { part: PARTS[0], buffer, quantum: 1500, priority: 0 };
    let second = VirtualOutputShare { part: PARTS[1], buffer: CROSSPOINT - buffer, quantum: 13_500, priority: 1 };
    SharedOutputPort { discipline, sharing, crosspoint: CROSSPOINT, switches: vec![first, second] }
}

/// Returns a figure for all buffers of at least `from` bytes, or `None` if one is missing because the run was
/// stopped.
fn values(run: &ExperimentRun<'_>, way: &str, metric: &str, from: u64) -> Option<Vec<f64>> {
    BUFFERS.into_iter().filter(|buffer| *buffer >= from).map(|buffer| run.value(&case(way, buffer), metric)).collect()
}

fn claims(run: &mut ExperimentRun<'_>) {
    let least = |values: Vec<f64>| values.into_iter().fold(f64::INFINITY, f64::min);
    let most = |values: Vec<f64>| values.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let all = BUFFERS[0];
    let differences = |metric: &str| {
        let pairs = values(run, STRICT, metric, all)?.into_iter().zip(values(run, DRR, metric, all)?);
        Some(pairs.map(|(strict, drr)| strict - drr).collect::<Vec<f64>>())
    };
    let tested = |text: &str, found: Option<(bool, String)>| match found {
        Some((holds, because)) => Claim::tested(text, holds, because),
        None => Claim::untested(text, "stopped before all cases were simulated"),
    };
    let strict = values(run, STRICT, THROUGHPUTS[0], 3_000).map(least);
    let drr = values(run, DRR, THROUGHPUTS[0], 6_000).map(least);
    let gain = differences(DELAYS[0]);
    let [lost, later] = [differences(THROUGHPUTS[1]).map(least), differences(DELAYS[1]).map(most)];
    let flexible = values(run, FLEXIBLE, THROUGHPUTS[1], all)
        .zip(values(run, STRICT, THROUGHPUTS[1], all))
        .map(|(flexible, strict)| least(flexible.into_iter().zip(strict).map(|(a, b)| a - b).collect()));
    let claims = [
        tested(
            "with strict priority VS1 gets 100 % from a buffer of 3 kB on",
            strict.map(|least| (least > 99.99, format!("{least:.4} % at least"))),
        ),
        tested(
            "with DRR VS1 gets 99 % from a buffer of 6 kB on",
            drr.map(|least| (least >= 99.0, format!("{least:.2} % at least"))),
        ),
        tested(
            "strict priority takes 0.1 to 0.6 ms off VS1's delay",
            gain.map(|gain| {
                let (smallest, largest) = (-most(gain.clone()), -least(gain));
                (smallest > 0.05 && largest < 0.65 && largest > 0.1, format!("{smallest:.3} to {largest:.3} ms"))
            }),
        ),
        tested(
            "it costs VS2 less than 1 % of throughput",
            lost.map(|least| (least > -1.0, format!("{:.2} points at most", -least))),
        ),
        tested(
            "it adds less than 0.2 ms to VS2's delay",
            later.map(|most| (most < 0.2, format!("{most:.3} ms at most"))),
        ),
        tested(
            "flexible buffers never cost VS2 throughput (ours)",
            flexible.map(|least| (least > -0.05, format!("{least:+.2} points at least"))),
        ),
    ];
    run.claims.extend(claims);
}

fn plots(run: &mut ExperimentRun<'_>) {
    let lines = |run: &ExperimentRun<'_>, metrics: [&str; 2]| {
        let of = |(way, switch): (&str, usize)| {
            let cases = BUFFERS.map(|buffer| (buffer as f64 / 1000.0, case(way, buffer)));
            series(run, format!("VS{}, {}", switch + 1, way.replace("strict priority", "SP")), metrics[switch], cases)
        };
        WAYS.into_iter().flat_map(|(way, ..)| [(way, 0), (way, 1)]).map(of).collect()
    };
    for (name, title, y, metrics) in [
        ("throughput", "Throughput of 10 % and 90 % switches (Fig. 4.8)", "throughput, %", THROUGHPUTS),
        ("delay", "Mean delay of 10 % and 90 % switches (Fig. 4.9)", "mean delay, ms", DELAYS),
    ] {
        let series = lines(run, metrics);
        run.plots.push(
            Chart {
                name: name.into(),
                title: title.into(),
                x: Axis::linear("buffer of VS1 out of 15 kB, kB"),
                y: Axis::linear(y),
                series,
            }
            .into(),
        );
    }
}
