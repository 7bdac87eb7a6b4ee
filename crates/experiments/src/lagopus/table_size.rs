//! Experiment `lagopus-table-size`, Table IV of Rahimi et al., 2016: the effect of a large table on loss, with one
//! worker and with four.
use super::workers_here;
use crate::report::Claim;
use crate::testbed::{ExperimentTestbed, LagopusThreads, LoadMeasurement, PORTS, entry};
use crate::tester::{BulkFlow, BulkFlowRate, TesterFrameTemplate, TesterLoad, VaryingHeaderField, quantile_us};
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::net::Ipv4Addr;
use weir_openflow::model::{FlowMod, Match};
use weir_packet::Field;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_plot::short;
use weir_switch::threads::ReceivePolicy;

/// Burst size, as published.
const BURST: usize = 32;
const IO_LOOP_COUNT: u32 = 10_000;
const ENTRIES: [u32; 3] = [100_000, 400_000, 1_000_000];
const WORKERS: [usize; 2] = [1, 4];
/// Size of pktgen's frames in bytes, without frame check sequence.
const FRAME: usize = 1500;
/// Frames per second of the published receive rate, 9.8 Gbit/s.
const PUBLISHED_RATE: f64 = 9.8e9 / 8.0 / FRAME as f64;
/// Offered load as a share of a case's capacity.
const SHARE: f64 = 0.7;
const CAPACITY: &str = "capacity";
const LOSS: &str = "loss at the published rate";
const LOSS_AT_SHARE: &str = "loss at 0.7 of capacity";
/// Smallest accepted ratio of the capacity with more workers to that with one.
const NOT_WORSE: f64 = 0.9;

/// Returns the name of a case. Several workers are four in the publication, and no more than processors here, so the
/// name does not count them.
fn case(entries: u32, published: usize) -> String {
    format!("{entries} entries, {}", if published == 1 { "1 worker" } else { "several workers" })
}

/// Says how many workers several are, on this machine and in the publication.
fn several(here: usize) -> String {
    let [_, published] = WORKERS;
    if here == published {
        return format!("several workers are {published}, as published");
    }
    format!("several workers are {here} here, {published} in the publication: no more than this machine has processors")
}

/// Measures all table sizes with each number of workers.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let here: Vec<usize> = WORKERS.into_iter().map(workers_here).collect();
    run.note(several(here[1]));
    for entries in ENTRIES {
        for (published, workers) in WORKERS.into_iter().zip(&here) {
            if run.options.cancel.is_cancelled() {
                return Ok(());
            }
            if published == 1 || *workers > 1 {
                one(run, entries, published, *workers)?;
            }
        }
    }
    claims(run, here[1]);
    run.note("labels come in random order over all entries");
    Ok(())
}

fn one(run: &mut ExperimentRun<'_>, entries: u32, published: usize, workers: usize) -> Result<(), ExperimentError> {
    let case = case(entries, published);
    run.tell(&format!("{case}: loading"));
    let threads = LagopusThreads {
        workers,
        burst: BURST,
        io_loop_count: IO_LOOP_COUNT,
        policy: ReceivePolicy::FiveTuple,
        classes: Vec::new(),
    };
    let bed = ExperimentTestbed::new(run, threads, label_entries(entries))?;
    let time = run.sizes.time.0;
    run.tell(&format!("{case}: as much as possible"));
    let Some(most) = bed.measure(run, &load(entries, BulkFlowRate::Most), time)? else { return Ok(()) };
    let capacity = capacity(&most);
    run.figure(&case, CAPACITY, "Mpps", capacity);
    for (metric, rate) in [(LOSS, PUBLISHED_RATE), (LOSS_AT_SHARE, capacity.value * 1e6 * SHARE)] {
        if rate <= 0.0 {
            continue;
        }
        run.tell(&format!("{case}: {} frames per second", short(rate)));
        let Some(measured) = bed.measure(run, &load(entries, BulkFlowRate::PerSecond(rate)), time)? else {
            return Ok(());
        };
        run.figure(&case, metric, "%", SampledValue::of(measured.loss(0) * 100.0, measured.ends[0].due));
        if metric == LOSS_AT_SHARE {
            run.figure(&case, "delay at 0.7 of capacity, p99", "us", quantile_us(&measured.ends[1].delays, 0.99));
        }
        measured.disturbances(run, &format!("{case}, {metric}"));
    }
    Ok(())
}

/// Returns the median rate over tenths of a second.
fn capacity(measured: &LoadMeasurement) -> SampledValue {
    let mut rates: Vec<f64> = measured.ends[1].rates().into_iter().map(|rate| rate / 1e6).collect();
    rates.sort_by(f64::total_cmp);
    SampledValue { value: rates.get(rates.len() / 2).copied().unwrap_or(0.0), ..SampledValue::mean_of(&rates) }
}

fn load(entries: u32, rate: BulkFlowRate) -> TesterLoad {
    let [from, to] = super::network::MACS;
    let frame = FrameBuilder::ethernet(to, from)
        .mpls(0, 0, 64)
        .ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))
        .udp(9, 9)
        .payload(&[0; 64]);
    let template = TesterFrameTemplate::new(&frame.frame(), FRAME, VaryingHeaderField::MplsLabel(entries));
    TesterLoad { bulk: [Some(BulkFlow { rate, template }), None], ping: None }
}

/// Returns one entry for each label.
fn label_entries(count: u32) -> Vec<FlowMod> {
    let any = Match::any().with(Field::EthType, eth_type::MPLS);
    (0..count).map(|label| entry(100, any.clone().with(Field::MplsLabel, label), Vec::new(), PORTS[1])).collect()
}

fn claims(run: &mut ExperimentRun<'_>, several: usize) {
    for (metric, offered) in [(LOSS, "the published rate"), (LOSS_AT_SHARE, "0.7 of capacity")] {
        let losses: Vec<(String, f64)> = ENTRIES
            .into_iter()
            .flat_map(|entries| WORKERS.map(|workers| case(entries, workers)))
            .filter_map(|case| run.value(&case, metric).map(|loss| (case, loss)))
            .collect();
        let lossy: Vec<String> = losses
            .iter()
            .filter(|(_, loss)| *loss > 0.0)
            .map(|(case, loss)| format!("{} % with {case}", short(*loss)))
            .collect();
        let because = if lossy.is_empty() { "none lost in any case".to_owned() } else { lossy.join(", ") };
        run.claims.push(Claim::tested(format!("no loss at {offered}"), lossy.is_empty(), because));
    }
    for entries in ENTRIES {
        let text = format!("{several} workers are never worse than one, {entries} entries");
        let claim = match WORKERS.map(|workers| run.value(&case(entries, workers), CAPACITY)) {
            [Some(one), Some(more)] => {
                Claim::tested(text, more > one * NOT_WORSE, format!("{} and {} Mpps", short(more), short(one)))
            }
            _ => Claim::untested(text, "more than one worker needs more than one processor"),
        };
        run.claims.push(claim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_counted_as_they_ran() {
        assert_eq!(case(100_000, 1), "100000 entries, 1 worker");
        assert_eq!(case(100_000, 4), "100000 entries, several workers");
        assert!(several(2).starts_with("several workers are 2 here, 4 in the publication"));
        assert_eq!(several(4), "several workers are 4, as published");
        let published = include_str!("../../../../experiments/lagopus-table-size/experiment.toml");
        for entries in ENTRIES {
            assert!(WORKERS.iter().all(|workers| published.contains(&case(entries, *workers))), "{entries}");
        }
    }
}
