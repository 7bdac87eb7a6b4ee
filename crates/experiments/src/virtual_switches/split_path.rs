//! Experiment `vx-split-path`, figures 4.13 and 4.14 of Anhalt's thesis (2011): a virtual link split over two paths and
//! merged again in order.
use super::{BURSTS, LINE, over, packets_per_second, series, simulate, sizes};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_fabric::{
    CrosspointBuffers, FabricConfig, FabricDropReason, InputConfig, IntraDiscipline, OutputConfig, PortIndex,
    SplitPolicy, VirtualPort, VirtualSwitchConfig,
};
use weir_plot::{Axis, Chart};
use weir_sim::{
    FabricHop, FabricModel, FabricNetwork, FabricPath, FabricRunResult, FabricSource, LineModel, MeasurementGroup,
    PathSplit,
};
use weir_traffic::OfferedPackets;
use weir_units::{Bps, Instant};

/// Buffers in bytes, for paths of equal latency.
const BUFFERS: [u64; 7] = [12_000, 24_000, 48_000, 96_000, 144_000, 192_000, 240_000];
/// Smallest buffer in bytes that loses no packet in the published figures.
const ENOUGH: u64 = 192_000;
/// Bytes added to the buffer in which the merge keeps packets of the shorter path until those of the longer path
/// arrive.
const ADDED: [u64; 5] = [0, 72_000, 144_000, 216_000, 288_000];
/// Additional delay of the second path: the time in which a full line sends the largest buffer of [`ADDED`].
const LONGER: Duration = Duration::from_micros(2304);
const LINK: usize = 0;
/// Patience of the merge: longer than any two packets of the link can be apart.
const PATIENCE: Duration = Duration::from_millis(20);
const LOST_FIRST: &str = "lost where it is split";
const LOST_SECOND: &str = "lost where it is merged";
/// Percentage of packets below which the thesis's figures would show zero: a tenth of what buffers of 24 kB lose. At
/// load 1 the queues grow with the length of a run, so that single runs lose some packets from any buffer: seeds 1 to
/// 10 lost up to 0.0215 %.
const ZERO: f64 = 0.025;
const LATE: &str = "packets out of order";
const HALF: Bps = Bps(LINE.0 / 2);

/// A variant of the link.
#[derive(Clone, Copy)]
struct SplitLinkVariant {
    buffer: u64,
    added: u64,
    longer: Duration,
}

impl SplitLinkVariant {
    fn equal(buffer: u64) -> SplitLinkVariant {
        SplitLinkVariant { buffer, added: 0, longer: Duration::ZERO }
    }

    fn unequal(added: u64) -> SplitLinkVariant {
        SplitLinkVariant { buffer: ENOUGH, added, longer: LONGER }
    }

    fn case(self) -> String {
        if self.longer.is_zero() {
            format!("equal paths, {} kB", self.buffer / 1000)
        } else {
            format!("second path 2.3 ms longer, {} + {} kB", self.buffer / 1000, self.added / 1000)
        }
    }
}

/// Simulates all variants of the link.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    for link in BUFFERS.map(SplitLinkVariant::equal).into_iter().chain(ADDED.map(SplitLinkVariant::unequal)) {
        let case = link.case();
        let Some(results) = simulate(run, &case, &model(link))? else { break };
        for (hop, metric) in [LOST_FIRST, LOST_SECOND].into_iter().enumerate() {
            run.figure(&case, metric, "%", over(&results, |result| lost(result, hop)));
        }
        let late: u64 =
            results.iter().map(|result| result.groups[LINK].lost_for[FabricDropReason::Late as usize]).sum();
        run.figure(&case, LATE, "", SampledValue::of(late as f64, results.len() as u64));
    }
    claims(run);
    plots(run);
    run.note(format!(
        "the original does not say how much longer its second path is: here {:.1} ms, of which a full line's bytes are the largest \
         addition of its figure",
        LONGER.as_secs_f64() * 1e3
    ));
    Ok(())
}

/// Returns the share of the link's packets that were lost at a hop, in percent.
fn lost(result: &FabricRunResult, hop: usize) -> f64 {
    let link = &result.groups[LINK];
    let lost = link.lost_at.get(hop).map_or(0, |count| count.packets);
    100.0 * lost as f64 / link.arrived.packets.max(1) as f64
}

/// Returns the model: two switches with two paths between them. The first splits the link over both its outputs,
/// which it shares with cross traffic; the second merges it.
fn model(link: SplitLinkVariant) -> FabricNetwork {
    let [split, cross] = [0, 1].map(|input| {
        let ports = [0, 1].map(|port| VirtualPort {
            rate_in: if port == input { LINE } else { Bps(0) },
            ..VirtualPort::new(PortIndex(port), HALF)
        });
        VirtualSwitchConfig::new("half", ports.to_vec(), link.buffer)
    });
    let ports = [(0, LINE), (1, Bps(0))]
        .map(|(port, out)| VirtualPort { rate_out: out, ..VirtualPort::new(PortIndex(port), HALF) });
    let merge = VirtualSwitchConfig {
        buffers: CrosspointBuffers {
            default: link.buffer,
            per_crosspoint: vec![(PortIndex(0), PortIndex(0), link.buffer + link.added)],
        },
        intra: IntraDiscipline::Merge { patience: PATIENCE },
        ..VirtualSwitchConfig::new("merge", ports.to_vec(), 0)
    };
    let fabric = |outputs, crosspoint| FabricConfig {
        inputs: vec![InputConfig { rate: LINE }; 2],
        outputs: vec![OutputConfig::new(LINE, crosspoint); outputs],
        ..FabricConfig::default()
    };
    let group = |name: &str| MeasurementGroup { switch: name.into(), port: "1".into(), class: 0 };
    FabricNetwork {
        fabrics: vec![
            FabricModel { config: fabric(2, 2 * link.buffer), switches: vec![split, cross] },
            FabricModel { config: fabric(1, link.buffer + link.added), switches: vec![merge] },
        ],
        lines: vec![LineModel::Serial(LINE); 2],
        sources: vec![source(link, true), source(link, false)],
        groups: vec![group("link"), group("cross traffic")],
    }
}

/// Returns the link's packets, alternating between both paths, or the cross traffic, at random over both outputs.
fn source(link: SplitLinkVariant, is_link: bool) -> FabricSource {
    let index = u16::from(!is_link);
    let path = |output: u16| {
        let delay = if output == 0 { Duration::ZERO } else { link.longer };
        let first = FabricHop { fabric: 0, switch: index.into(), input: index, output, delay };
        let second = FabricHop { fabric: 1, switch: 0, input: output, output: 0, delay: Duration::ZERO };
        let hops = if is_link { vec![first, second] } else { vec![first] };
        FabricPath { share: 1.0, group: index.into(), class: 0, hops }
    };
    FabricSource {
        line: index.into(),
        traffic: OfferedPackets::Rule { arrival: BURSTS, per_second: packets_per_second(1.0), size: sizes() },
        start: Instant::ZERO,
        stop: Instant::FAR,
        split: if is_link { PathSplit::Link(SplitPolicy::Turn) } else { PathSplit::Random },
        paths: vec![path(0), path(1)],
    }
}

fn claims(run: &mut ExperimentRun<'_>) {
    let lost = |run: &ExperimentRun<'_>, link: SplitLinkVariant| {
        let case = link.case();
        Some(run.value(&case, LOST_FIRST)? + run.value(&case, LOST_SECOND)?)
    };
    let most = |run: &ExperimentRun<'_>, links: Vec<SplitLinkVariant>| {
        links
            .into_iter()
            .map(|link| lost(run, link))
            .collect::<Option<Vec<f64>>>()
            .map(|all| all.into_iter().fold(0.0, f64::max))
    };
    let enough = BUFFERS.into_iter().filter(|buffer| *buffer >= ENOUGH).map(SplitLinkVariant::equal).collect();
    let zero = |text: &str, found: Option<f64>| match found {
        Some(most) => Claim::tested(text, most < ZERO, format!("{most:.4} % at most")),
        None => Claim::untested(text, "stopped before all cases were simulated"),
    };
    let equal =
        zero("with paths of equal latency less than 0.025 % is lost from buffers of 192 kB on", most(run, enough));
    let unequal = zero(
        "with a longer path less than 0.025 % is lost once the other's buffer has the line's bytes of that time in addition",
        most(run, vec![SplitLinkVariant::unequal(288_000)]),
    );
    let late: f64 = run.figures.iter().filter(|figure| figure.metric == LATE).map(|figure| figure.ours).sum();
    let order = Claim::tested("packets leave in order", late == 0.0, format!("{late} came after a later one had left"));
    run.claims.extend([equal, unequal, order]);
}

fn plots(run: &mut ExperimentRun<'_>) {
    type Cases = Vec<(f64, String)>;
    let kb = |bytes: u64| bytes as f64 / 1000.0;
    let equal: Cases = BUFFERS.iter().map(|bytes| (kb(*bytes), SplitLinkVariant::equal(*bytes).case())).collect();
    let unequal: Cases = ADDED.iter().map(|bytes| (kb(*bytes), SplitLinkVariant::unequal(*bytes).case())).collect();
    for (name, title, x, cases) in [
        ("equal-latency", "Loss with paths of equal latency (Fig. 4.13)", "buffers, kB", equal),
        (
            "unequal-latency",
            "Loss with a longer second path (Fig. 4.14)",
            "added to the first path's merge buffer, kB",
            unequal,
        ),
    ] {
        let series = [LOST_FIRST, LOST_SECOND].map(|metric| series(run, metric, metric, cases.clone())).into();
        let (x, y) = (Axis::linear(x), Axis::linear("lost packets, %"));
        run.plots.push(Chart { name: name.into(), title: title.into(), x, y, series }.into());
    }
}
