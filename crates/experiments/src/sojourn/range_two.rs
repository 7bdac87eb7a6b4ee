//! Experiment `sojourn-range-two`, Table 6.2: few packets per second, up to half of which go to the controller.
use super::emulated::{self, EmulatedCase};
use super::{QUEUE, SCV, SimulatedCase, chart, loss, over, series, simulate, sojourn_ms};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_plot::Axis;
use weir_sim::stations::QueueingRunResult;

const RATES: [u32; 10] = [20, 40, 60, 80, 100, 120, 140, 160, 180, 200];
/// Packet rates of the small size.
const FEW_RATES: [u32; 5] = [20, 60, 100, 140, 200];
const SHARES: [f64; 4] = [0.01, 0.04, 0.25, 0.5];
const BYTES: u32 = 600;
const SOJOURN: &str = "mean sojourn";
const LOSS: &str = "loss";
const EFFECTIVE: &str = "effective P_nf";
const RATIO: &str = "effective over true P_nf";
/// Largest loss that counts as none, in percent.
const NO_LOSS: f64 = 0.1;

/// Interpretations of the measured times, which differ in the structure of the control path.
const ONE_QUEUE: &str = "one queue";
const FOUR_STATIONS: &str = "four stations";
const SHARED: &str = "shared processor";
const MEASURED: &str = "measured path";
const READINGS: [&str; 4] = [ONE_QUEUE, FOUR_STATIONS, SHARED, MEASURED];

/// Returns the lines of `[controller]` and `[switch.timing]` of an interpretation.
fn described(reading: &str) -> [String; 2] {
    let gamma = |ms: f64| format!("{{ law = \"gamma\", mean = \"{ms}ms\", scv = {SCV} }}");
    let agents = || {
        let controller = format!("service = {}\nbuffer = {QUEUE}", gamma(7.49));
        let timing = format!("packet_in = {}\npacket_out = {}\nbuffer = {QUEUE}", gamma(5.63625), gamma(5.9275));
        [controller, timing]
    };
    match reading {
        // The thesis's models treat the control path as one queue, whose service time is the idle delay.
        ONE_QUEUE => {
            let path =
                format!("control = {{ delay = \"19.0625ms\", capacity = 52.459016393, scv = 1.0, buffer = {QUEUE} }}");
            [String::new(), path]
        }
        FOUR_STATIONS => agents(),
        SHARED => {
            let [controller, timing] = agents();
            [controller, timing + "\nagents = \"shared\""]
        }
        // Idle delay and measured capacity are separate, and forwarding stops while an entry is written.
        _ => {
            let path = format!("control = {{ delay = \"19.0625ms\", capacity = 70.0, scv = {SCV}, buffer = {QUEUE} }}");
            [String::new(), path + "\nwrite = \"9.3ms\""]
        }
    }
}

fn case(reading: &str, share: f64, rate: u32) -> String {
    format!("{reading}, P_nf {share}, {rate} packets/s")
}

/// Simulates all cases, and emulates some.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let rates: &[u32] = if run.options.full { &RATES } else { &FEW_RATES };
    'all: for reading in READINGS {
        let [controller, timing] = described(reading);
        for share in SHARES {
            for rate in rates {
                let name = case(reading, share, *rate);
                let case = SimulatedCase {
                    name: name.clone(),
                    controller: &controller,
                    timing: &timing,
                    new_flows: share,
                    rate: *rate,
                    bytes: BYTES,
                };
                let Some(results) = simulate(run, &case)? else { break 'all };
                run.figure(&name, SOJOURN, "ms", over(&results, |result| sojourn_ms(result, true)));
                run.figure(&name, LOSS, "%", over(&results, loss));
                run.figure(&name, EFFECTIVE, "%", over(&results, held_up));
            }
        }
    }
    ratios(run, rates);
    claims(run);
    plots(run, rates);
    let (emulated, time) = emulated_cases(run.options.full);
    emulated::measure(run, &emulated, time)
}

/// Returns the cases to emulate and the duration of each: few at the small size, half of the rates at the published
/// one.
fn emulated_cases(is_full: bool) -> (Vec<EmulatedCase>, Duration) {
    let of = |(share, rate): (f64, u32)| EmulatedCase { share, rate, bytes: BYTES };
    if !is_full {
        return ([(0.04, 100), (0.25, 100), (0.5, 60), (0.5, 200)].map(of).into(), Duration::from_secs(10));
    }
    // At the smallest share, too few packets go to the controller in a minute for a mean.
    let all = SHARES[1..].iter().flat_map(|share| FEW_RATES.map(|rate| of((*share, rate))));
    (all.collect(), Duration::from_secs(60))
}

/// Returns the share, in percent, of packets leaving the switch that went to the controller or took more than a
/// millisecond.
fn held_up(result: &QueueingRunResult) -> f64 {
    100.0 * result.switches[0].held_up as f64 / result.switches[0].passed.max(1) as f64
}

/// Adds the ratio of the effective to the true share, as the mean over rates without loss.
fn ratios(run: &mut ExperimentRun<'_>, rates: &[u32]) {
    for share in &SHARES[..3] {
        let lossless = rates.iter().map(|rate| case(MEASURED, *share, *rate));
        let lossless = lossless.filter(|case| run.value(case, LOSS).is_some_and(|loss| loss < NO_LOSS));
        let found: Vec<f64> = lossless.filter_map(|case| run.value(&case, EFFECTIVE)).collect();
        if !found.is_empty() {
            let ratios: Vec<f64> = found.iter().map(|percent| percent / 100.0 / share).collect();
            run.figure(&format!("{MEASURED}, P_nf {share}"), RATIO, "", SampledValue::mean_of(&ratios));
        }
    }
}

fn claims(run: &mut ExperimentRun<'_>) {
    let value = |reading, share, rate, metric| run.value(&case(reading, share, rate), metric);
    let both = |a: Option<f64>, b: Option<f64>| a.zip(b);
    let tested = |text: &str, found: Option<(bool, String)>| match found {
        Some((holds, because)) => Claim::tested(text, holds, because),
        None => Claim::untested(text, "stopped before all cases were simulated"),
    };
    let lossy = |reading| both(value(reading, 0.5, 100, LOSS), value(reading, 0.5, 140, LOSS));
    let claims = [
        tested(
            "with half of the packets to the controller the sojourn rises steeply, then levels off as packets are lost (measured path)",
            both(value(MEASURED, 0.5, 140, SOJOURN), value(MEASURED, 0.5, 200, SOJOURN))
                .zip(value(MEASURED, 0.5, 60, SOJOURN))
                .map(|((middle, last), low)| {
                    (
                        middle > 10.0 * low && last < 3.0 * middle,
                        format!("{low:.1}, {middle:.0}, {last:.0} ms at 60, 140, 200 packets/s"),
                    )
                }),
        ),
        tested(
            "a level of about K / capacity, 2.9 s for packets that asked (measured path, P_nf 0.5, 200 packets/s)",
            value(MEASURED, 0.5, 200, SOJOURN).map(|all| {
                // Of 200 packets per second 100 go to the controller, 70 of which arrive.
                let asked = all * 170.0 / 70.0 / 1000.0;
                ((2.5..3.3).contains(&asked), format!("{asked:.2} s at most, if those that did not ask took no time"))
            }),
        ),
        tested(
            "up to 4 % there is no loss (all readings)",
            READINGS
                .iter()
                .map(|reading| value(reading, 0.04, 200, LOSS))
                .sum::<Option<f64>>()
                .map(|all| (all < 0.01, format!("{all:.4} % in all at 200 packets/s"))),
        ),
        tested(
            "one queue with the idle delay as its service time loses packets too early: from 105 packets/s on at P_nf 0.5",
            lossy(ONE_QUEUE).map(|(low, high)| {
                (low < 1.0 && high > 10.0, format!("{low:.2} % at 100, {high:.1} % at 140 packets/s"))
            }),
        ),
        tested(
            "four stations of the same times lose none before 267 packets/s: idle delay is no capacity",
            value(FOUR_STATIONS, 0.5, 200, LOSS).map(|loss| (loss < 0.01, format!("{loss:.4} % at 200 packets/s"))),
        ),
        tested(
            "the effective P_nf is larger than the true one by half to twice as much, in the mean over rates without loss (measured path)",
            both(
                run.value(&format!("{MEASURED}, P_nf 0.01"), RATIO),
                run.value(&format!("{MEASURED}, P_nf 0.04"), RATIO),
            )
            .zip(run.value(&format!("{MEASURED}, P_nf 0.25"), RATIO))
            .map(|((one, four), quarter)| {
                let all = [one, four, quarter];
                (
                    all.iter().all(|ratio| (1.5..3.0).contains(ratio)),
                    format!("{one:.2}, {four:.2} and {quarter:.2} times"),
                )
            }),
        ),
    ];
    run.claims.extend(claims);
    run.note("\"between 100-200 pps\" for the controller's service rate (6.4.3) is the rate of all packets where P_nf 0.5 saturates: half of them ask, so it is 50 to 100");
}

fn plots(run: &mut ExperimentRun<'_>, rates: &[u32]) {
    let line = |run: &ExperimentRun<'_>, name: String, reading: &str, share: f64, metric: &str| {
        series(run, name, metric, rates.iter().map(|rate| (f64::from(*rate), case(reading, share, *rate))))
    };
    let readings = |run: &ExperimentRun<'_>, share, metric| {
        READINGS.iter().map(|reading| line(run, (*reading).to_owned(), reading, share, metric)).collect::<Vec<_>>()
    };
    let shares = |run: &ExperimentRun<'_>, metric| {
        SHARES.iter().map(|share| line(run, format!("P_nf {share}"), MEASURED, *share, metric)).collect::<Vec<_>>()
    };
    let plots = [
        chart(
            "sojourn-025",
            "Mean sojourn, a quarter to the controller (Fig. 6.7 c)",
            Axis::log("mean sojourn, ms"),
            readings(run, 0.25, SOJOURN),
        ),
        chart(
            "sojourn-050",
            "Mean sojourn, half to the controller (Fig. 6.7 d)",
            Axis::log("mean sojourn, ms"),
            readings(run, 0.5, SOJOURN),
        ),
        chart("loss-050", "Loss, half to the controller (Fig. 6.6)", Axis::linear("loss, %"), readings(run, 0.5, LOSS)),
        chart(
            "sojourn",
            "Mean sojourn by P_nf, measured path (Fig. 6.7)",
            Axis::log("mean sojourn, ms"),
            shares(run, SOJOURN),
        ),
        chart(
            "effective",
            "Effective P_nf, measured path (Fig. 6.9)",
            Axis::log("effective P_nf, %"),
            shares(run, EFFECTIVE),
        ),
    ];
    run.plots.extend(plots);
}
