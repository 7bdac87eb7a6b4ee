//! Experiment `sojourn-range-one`, Table 6.1: thousands of packets per second, at most one in fifty of which goes to
//! a controller path with a capacity of seventy per second.
use super::emulated::{self, EmulatedCase};
use super::{QUEUE, SCV, SimulatedCase, chart, loss, over, series, simulate, sojourn_ms};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_plot::Axis;

const RATES: [u32; 6] = [5_000, 10_000, 15_000, 20_000, 25_000, 30_000];
/// Packet rates of the small size.
const FEW_RATES: [u32; 3] = [5_000, 15_000, 30_000];
const SHARES: [f64; 3] = [0.005, 0.01, 0.02];
/// Packet lengths: the extremes and one between; more show nothing else.
const SIZES: [u32; 3] = [100, 600, 1_400];
/// Capacities in packets of the data path's buffer while entries are written. They were not published; the smaller
/// one reproduces the published loss.
const BUFFERS: [u32; 2] = [64, 1_024];
const SOJOURN: &str = "mean sojourn";
const DATA: &str = "mean sojourn of packets that did not ask";
const LOSS: &str = "loss";
/// Observation of the thesis that these stations do not reproduce.
const FALLS: &str = "the mean sojourn falls from the lowest rate on, at P_nf 0.005 as well";
const ADDED: &str = "loss of added packets";

fn case(buffer: u32, share: f64, bytes: u32, rate: u32) -> String {
    format!("{buffer} packets held, P_nf {share}, {bytes} B, {rate} packets/s")
}

/// Simulates all cases, and emulates some.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let rates: &[u32] = if run.options.full { &RATES } else { &FEW_RATES };
    'all: for buffer in BUFFERS {
        let path = format!("control = {{ delay = \"19.0625ms\", capacity = 70.0, scv = {SCV}, buffer = {QUEUE} }}");
        let timing = format!("{path}\nwrite = \"9.3ms\"\ndata_buffer = {buffer}");
        for share in SHARES {
            for bytes in SIZES {
                for rate in rates {
                    let name = case(buffer, share, bytes, *rate);
                    let case = SimulatedCase {
                        name: name.clone(),
                        controller: "",
                        timing: &timing,
                        new_flows: share,
                        rate: *rate,
                        bytes,
                    };
                    let Some(results) = simulate(run, &case)? else { break 'all };
                    run.figure(&name, SOJOURN, "ms", over(&results, |result| sojourn_ms(result, true)));
                    run.figure(&name, DATA, "ms", over(&results, |result| sojourn_ms(result, false)));
                    run.figure(&name, LOSS, "%", over(&results, loss));
                }
            }
        }
    }
    for buffer in BUFFERS {
        if let Some(added) = added(run, buffer) {
            run.figure(
                &format!("{buffer} packets held, P_nf 0.02, 600 B, 5000 to 30000 packets/s"),
                ADDED,
                "%",
                SampledValue::of(added, 1),
            );
        }
    }
    claims(run);
    plots(run, rates);
    let (emulated, time) = emulated_cases(run.options.full);
    emulated::measure(run, &emulated, time)
}

/// Returns the cases to emulate and the duration of each: few at the small size, all rates at the published one.
fn emulated_cases(is_full: bool) -> (Vec<EmulatedCase>, Duration) {
    let of = |(share, rate): (f64, u32)| EmulatedCase { share, rate, bytes: 600 };
    if !is_full {
        let few = [(0.005, 5_000), (0.005, 30_000), (0.02, 5_000), (0.02, 15_000)];
        return (few.map(of).into(), Duration::from_secs(5));
    }
    let all = SHARES.into_iter().flat_map(|share| RATES.map(|rate| of((share, rate))));
    (all.collect(), Duration::from_secs(30))
}

/// Returns the lost share of the 25000 packets per second between the lowest and the highest rate.
fn added(run: &ExperimentRun<'_>, buffer: u32) -> Option<f64> {
    let lost = |rate: u32| run.value(&case(buffer, 0.02, 600, rate), LOSS).map(|percent| percent * f64::from(rate));
    let ends = [RATES[0], RATES[5]];
    Some((lost(ends[1])? - lost(ends[0])?) / f64::from(ends[1] - ends[0]))
}

fn claims(run: &mut ExperimentRun<'_>) {
    let of = |buffer: u32, share: f64, bytes: u32, rate: u32, metric: &str| {
        run.value(&case(buffer, share, bytes, rate), metric)
    };
    let value = |share, bytes, rate, metric| of(BUFFERS[0], share, bytes, rate, metric);
    let tested = |text: &str, found: Option<(bool, String)>| match found {
        Some((holds, because)) => Claim::tested(text, holds, because),
        None => Claim::untested(text, "stopped before all cases were simulated"),
    };
    let from = |share, rate, metric| value(share, 600, rate, metric).zip(value(share, 600, 30_000, metric));
    let large = BUFFERS[1];
    let sizes = of(large, 0.02, 100, 30_000, LOSS).zip(of(large, 0.02, 1_400, 30_000, LOSS));
    let claims = [
        tested(
            "where more ask than come through, the mean sojourn falls as the rate rises (P_nf 0.02, from 15000 packets/s on)",
            from(0.02, 15_000, SOJOURN).map(|(low, high)| {
                (high < 0.8 * low, format!("{low:.1} ms at 15000, {high:.1} ms at 30000 packets/s"))
            }),
        ),
        tested(
            FALLS,
            from(0.005, 5_000, SOJOURN)
                .map(|(low, high)| (high < low, format!("{low:.1} ms at 5000, {high:.1} ms at 30000 packets/s"))),
        ),
        tested(
            "it grows with P_nf (5000 packets/s)",
            value(0.005, 600, 5_000, SOJOURN)
                .zip(value(0.02, 600, 5_000, SOJOURN))
                .map(|(few, many)| (many > few, format!("{few:.2} ms at 0.005, {many:.1} ms at 0.02"))),
        ),
        tested(
            "loss rises with the rate, far beyond the 2 % that ask: table writes make the data path lose packets",
            from(0.02, 5_000, LOSS).map(|(low, high)| {
                (high > 10.0 && high > low, format!("{low:.1} % at 5000, {high:.1} % at 30000 packets/s"))
            }),
        ),
        tested(
            "almost half of added packets is lost, if the data path holds something between 64 and 1024",
            added(run, BUFFERS[0]).zip(added(run, large)).map(|(small, large)| {
                (small > 45.0 && large < 45.0, format!("{small:.0} % with 64, {large:.0} % with 1024"))
            }),
        ),
        tested(
            "larger packets lose more (1024 held)",
            sizes.map(|(small, large)| {
                (large > small, format!("{small:.1} % of 100 B, {large:.1} % of 1400 B, at 30000 packets/s"))
            }),
        ),
        tested(
            "the control path is not overloaded everywhere in this range: at P_nf 0.005 and 5000 packets/s it is not",
            value(0.005, 600, 5_000, SOJOURN)
                .map(|sojourn| (sojourn < 20.0, format!("25 of 70 a second ask; mean sojourn {sojourn:.2} ms"))),
        ),
    ];
    run.claims.extend(claims);
    run.note("how many packets the data path holds was not published; the larger buffer shows what depends on it");
}

fn plots(run: &mut ExperimentRun<'_>, rates: &[u32]) {
    let lines = |run: &ExperimentRun<'_>, bytes: u32, metric: &str| {
        let of = |(buffer, share): (u32, f64)| {
            let cases = rates.iter().map(|rate| (f64::from(*rate), case(buffer, share, bytes, *rate)));
            series(run, format!("P_nf {share}, {buffer} held"), metric, cases)
        };
        BUFFERS.into_iter().flat_map(|buffer| SHARES.map(|share| (buffer, share))).map(of).collect::<Vec<_>>()
    };
    let plots = [
        chart("sojourn", "Mean sojourn, 600 B (Fig. 6.3)", Axis::log("mean sojourn, ms"), lines(run, 600, SOJOURN)),
        chart("loss", "Loss, 600 B (Fig. 6.3)", Axis::linear("loss, %"), lines(run, 600, LOSS)),
        chart("loss-1400", "Loss, 1400 B (Fig. 6.3)", Axis::linear("loss, %"), lines(run, 1_400, LOSS)),
    ];
    run.plots.extend(plots);
}
