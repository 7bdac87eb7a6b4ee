//! Experiment `lagopus-workers`, Table III of Rahimi et al., 2016: the effect of workers, entries and flows on
//! throughput.
use super::network::{self, GIGABIT_FRAMES, MACS, goodput_mbps};
use super::workers_here;
use crate::report::Claim;
use crate::testbed::{ExperimentTestbed, LagopusThreads, LoadMeasurement, PORTS, entry};
use crate::tester::{BulkFlowRate, TesterLoad};
use crate::{ExperimentError, ExperimentRun, SampledValue};
use weir_openflow::model::{FlowMod, Match};
use weir_packet::{Field, MacAddr};
use weir_plot::short;
use weir_switch::threads::ReceivePolicy;

/// Burst size, as published.
const BURST: usize = 144;
const IO_LOOP_COUNT: u32 = 100;
const ENTRIES: [u32; 2] = [3, 1000];
/// Numbers of workers and flows, as published.
const CASES: [(usize, usize); 3] = [(1, 1), (1, 2), (2, 2)];
const CAPACITY: &str = "capacity, 1514-byte frames";
/// Names of the goodputs of the two directions.
const GOODPUTS: [&str; 2] = ["goodput H1 to H2", "goodput H2 to H1"];
/// Largest relative difference of two rates that count as equal.
const SAME: f64 = 0.15;
/// Smallest accepted ratio of the capacity with more workers to that with one.
const NOT_WORSE: f64 = 0.9;

fn case(workers: usize, entries: u32, flows: usize) -> String {
    let (workers_s, flows_s) = (if workers == 1 { "" } else { "s" }, if flows == 1 { "" } else { "s" });
    format!("{workers} worker{workers_s}, {entries} entries, {flows} flow{flows_s}")
}

/// Measures all numbers of entries, workers and flows.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    for entries in ENTRIES {
        for (workers, flows) in CASES {
            if run.options.cancel.is_cancelled() {
                return Ok(());
            }
            if workers_here(workers) == workers {
                one(run, workers, entries, flows)?;
            }
        }
    }
    claims(run);
    run.note("flows are frames of a fixed rate, that of a full 1 Gbit/s link; goodput counts what iperf3 would");
    Ok(())
}

fn one(run: &mut ExperimentRun<'_>, workers: usize, entries: u32, flows: usize) -> Result<(), ExperimentError> {
    let case = case(workers, entries, flows);
    run.tell(&case);
    let threads = LagopusThreads {
        workers,
        burst: BURST,
        io_loop_count: IO_LOOP_COUNT,
        policy: ReceivePolicy::Mac,
        classes: Vec::new(),
    };
    let bed = ExperimentTestbed::new(run, threads, mac_entries(entries))?;
    let load = |rate| TesterLoad {
        bulk: [0, 1].map(|from| (from < flows).then(|| network::stream(from, false, rate))),
        ping: None,
    };
    let time = run.sizes.time.0;
    let Some(paced) = bed.measure(run, &load(BulkFlowRate::PerSecond(GIGABIT_FRAMES)), time)? else { return Ok(()) };
    for (from, metric) in GOODPUTS.into_iter().enumerate().take(flows) {
        let goodput: Vec<f64> = paced.ends[1 - from].rates().into_iter().map(goodput_mbps).collect();
        run.figure(&case, metric, "Mbit/s", SampledValue::mean_of(&goodput));
    }
    let lost = (0..flows).map(|from| paced.loss(from)).fold(0.0, f64::max);
    run.figure(&case, "loss", "", SampledValue::of(lost, paced.ends.iter().map(|end| end.due).sum()));
    paced.disturbances(run, &case);
    let Some(most) = bed.measure(run, &load(BulkFlowRate::Most), time)? else { return Ok(()) };
    run.figure(&case, CAPACITY, "Mpps", capacity(&most));
    Ok(())
}

/// Returns the highest rate of a tenth of a second, both directions together. It counts, because other load of the
/// machine can only lower a rate.
fn capacity(measured: &LoadMeasurement) -> SampledValue {
    let [first, second] = &measured.ends;
    let sums: Vec<f64> = first.rates().iter().zip(second.rates()).map(|(a, b)| (a + b) / 1e6).collect();
    let best = sums.iter().copied().fold(0.0, f64::max);
    SampledValue { value: best, ..SampledValue::mean_of(&sums) }
}

/// Returns `count` entries on the destination address: those of the two hosts, and of other addresses.
fn mac_entries(count: u32) -> Vec<FlowMod> {
    let to = |mac: MacAddr, port| entry(100, Match::any().with(Field::EthDst, mac.to_bits()), Vec::new(), port);
    let others = (2..count).map(|number| {
        let [a, b, c, d] = number.to_be_bytes();
        to(MacAddr([2, 1, a, b, c, d]), PORTS[0])
    });
    [to(MACS[0], PORTS[0]), to(MACS[1], PORTS[1])].into_iter().chain(others).collect()
}

fn claims(run: &mut ExperimentRun<'_>) {
    let (few, many) = (case(1, ENTRIES[0], 1), case(1, ENTRIES[1], 1));
    if let (Some(few), Some(many)) = (run.value(&few, CAPACITY), run.value(&many, CAPACITY)) {
        let because = format!("{} Mpps with 3, {} Mpps with 1000", short(few), short(many));
        run.claims.push(Claim::tested(
            "the rate does not depend on the number of entries",
            many > few * (1.0 - SAME),
            because,
        ));
    }
    let full: Vec<f64> = ENTRIES.into_iter().filter_map(|entries| run.value(&case(1, entries, 2), "loss")).collect();
    let worst = full.iter().copied().fold(0.0, f64::max);
    let because = format!("{} of the frames lost at worst", short(worst));
    run.claims.push(Claim::tested(
        "one worker carries two flows of 1 Gbit/s, whatever the entries",
        worst < 1e-3,
        because,
    ));
    let text = "two workers are never worse than one";
    let claim = match (run.value(&case(1, 1000, 2), CAPACITY), run.value(&case(2, 1000, 2), CAPACITY)) {
        (Some(one), Some(two)) => {
            Claim::tested(text, two > one * NOT_WORSE, format!("{} and {} Mpps", short(two), short(one)))
        }
        _ => Claim::untested(text, "two workers need two processors"),
    };
    run.claims.push(claim);
}
