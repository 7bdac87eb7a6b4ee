//! Experiment `vm-router-efficiency`, tables 3.2 to 3.4: the cost of forwarding through 1 to 8 virtual routers, by
//! the thesis's three measures. Its routers are virtual machines, here they are virtual switches of a live switch
//! between the ends of a tester. The first end stands for as many senders as there are routers, each of which fills
//! the line.
use crate::report::Claim;
use crate::tester::{
    BulkFlow, BulkFlowRate, TesterFrameTemplate, TesterLoad, TesterWindow, VaryingHeaderField, mean_us, tester,
};
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::PoisonError;
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;
use weir_plot::{Axis, Chart, short};
use weir_scenario::parse_slicing;
use weir_switch::{PortConfig, SoftwareSwitch, SoftwareSwitchConfig, SwitchHandle};
use weir_units::{Clock, SystemClock};

const ROUTERS: [u32; 4] = [1, 2, 4, 8];
/// Sizes of frames in bytes without frame check sequence, by the packets that they represent.
const FRAMES: [(&str, usize); 2] = [("1500 B", 1514), ("64 B", 64)];
/// Additional bytes of a frame on the wire: check sequence, preamble, gap.
const AROUND: f64 = 24.0;
/// Promised share of the line; the rest is a margin for rounding.
const PROMISED: f64 = 0.99;
/// Buffer of each router in bytes: more than the line sends while the engine is stopped.
const BUFFER: u64 = 512_000;
/// Time between opening the ports and the first frame.
const LEAD: Duration = Duration::from_millis(200);
/// Time for which load is offered before it counts.
const WARM_UP: Duration = Duration::from_millis(300);
const RATE: &str = "rate of each, packets/s";
const LOSS: &str = "loss of each";
const EFFICIENCY: &str = "efficiency";
const FAIRNESS: &str = "fairness";
const IDLE: &str = "round trip, others idle";
const STRESSED: &str = "round trip, others at full rate";

fn case(routers: u32, packets: &str) -> String {
    match routers {
        0 => format!("no router, {packets}"),
        1 => format!("1 router, {packets}"),
        _ => format!("{routers} routers, {packets}"),
    }
}

/// Returns the frames per second that fill a line of 1 Gbit/s.
fn line_frames(bytes: usize) -> f64 {
    1e9 / 8.0 / (bytes as f64 + AROUND)
}

/// Measures rates and round trips for all numbers of routers.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    for (packets, bytes) in FRAMES {
        for routers in [0].into_iter().chain(ROUTERS) {
            if !rates(run, routers, packets, bytes)? {
                return Ok(());
            }
        }
    }
    for routers in [0].into_iter().chain(ROUTERS) {
        if !round_trips(run, routers)? {
            return Ok(());
        }
    }
    claims(run);
    plots(run);
    Ok(())
}

/// Results of a run.
struct RouterResults {
    packets: Vec<u64>,
    /// Mean round trip of pings through the last router.
    round_trip: Option<SampledValue>,
}

/// Runs a switch with `routers` virtual switches, or none, under a load. Returns `None` if stopped.
fn through(
    run: &ExperimentRun<'_>,
    routers: u32,
    bytes: usize,
    load: &TesterLoad,
) -> Result<Option<RouterResults>, ExperimentError> {
    let clock = SystemClock::start();
    let begin = clock.now() + LEAD;
    let (from, time) = (begin + WARM_UP, run.sizes.time.0);
    let (ports, ends) = tester(load, TesterWindow { begin, from, until: from + time }, clock, run.options.seed);
    let ports = (1..).zip(ports).map(|(number, port)| PortConfig::new(PortNo(number), port)).collect();
    let known: BTreeMap<u32, _> = [(1, None), (2, None)].into();
    let (fabric, virtual_switches) = parse_slicing(&cuts(routers, bytes), "routers", "experiment", known)?;
    let entries = vec!["in_port=1,actions=output:2".to_owned(), "in_port=2,actions=output:1".to_owned()];
    let config = SoftwareSwitchConfig {
        ports,
        clock,
        entries,
        virtual_switches,
        fabric: Some(fabric),
        ..SoftwareSwitchConfig::default()
    };
    let switch = SoftwareSwitch::start(config)?;
    if run.options.cancel.wait(from.since(clock.now())) {
        return Ok(None);
    }
    let before = sent(&switch, routers)?;
    if run.options.cancel.wait(time) {
        return Ok(None);
    }
    let after = sent(&switch, routers)?;
    switch.stop();
    let packets = after.iter().zip(before).map(|(after, before)| after - before).collect();
    let seen = ends[0].lock().unwrap_or_else(PoisonError::into_inner);
    let round_trip = (!seen.round_trips.is_empty()).then(|| mean_us(&seen.round_trips));
    Ok(Some(RouterResults { packets, round_trip }))
}

/// Returns the packets sent by the second port so far, of each router, or of the switch without routers.
fn sent(switch: &SwitchHandle, routers: u32) -> Result<Vec<u64>, ExperimentError> {
    let snapshot = switch.snapshot()?;
    let own = snapshot.ports.iter().find(|port| port.number == PortNo(2)).map_or(0, |port| port.counters.tx_packets);
    let of = |cut: &weir_switch::VirtualSwitchSnapshot| cut.ports.get(1).map_or(0, |port| port.tx_packets);
    Ok(if routers == 0 { vec![own] } else { snapshot.virtual_switches.iter().map(of).collect() })
}

/// Returns the definition of virtual switches with equal shares of the line, each selected by an MPLS label.
fn cuts(routers: u32, bytes: usize) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the line's rate")]
    let rate = (line_frames(bytes) * bytes as f64 * 8.0) as u64;
    let crosspoint = BUFFER * u64::from(routers.max(1));
    let mut text = format!("[fabric]\nrate = \"{rate}bit/s\"\ncrosspoint = \"{crosspoint}B\"\n");
    for number in 0..routers {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the line's rate")]
        let share = (rate as f64 * PROMISED / f64::from(routers)) as u64;
        // Writing into a string does not fail.
        let _ = write!(
            text,
            "[[virtual]]\nname = \"vr{number}\"\ndpid = {}\nselect = [{{ mpls = {number} }}]\nbuffer = \"{BUFFER}B\"\n\
             ports = [{{ port = 1, rate = \"{share}bit/s\" }}, {{ port = 2, rate = \"{share}bit/s\" }}]\n\
             entries = [\"in_port=1,actions=output:2\", \"in_port=2,actions=output:1\"]\n",
            0x300 + number
        );
    }
    text
}

fn rates(run: &mut ExperimentRun<'_>, routers: u32, packets: &str, bytes: usize) -> Result<bool, ExperimentError> {
    let case = case(routers, packets);
    run.tell(&case);
    let senders = routers.max(1);
    let offered = line_frames(bytes);
    let bulk = stream(senders, bytes, offered * f64::from(senders));
    let Some(seen) = through(run, routers, bytes, &TesterLoad { bulk: [Some(bulk), None], ping: None })? else {
        return Ok(false);
    };
    let time = run.sizes.time.0.as_secs_f64();
    let rates: Vec<f64> = seen.packets.iter().map(|packets| *packets as f64 / time).collect();
    let losses: Vec<f64> = rates.iter().map(|rate| (1.0 - rate / offered).max(0.0) * 100.0).collect();
    run.figure(&case, RATE, "pps", SampledValue::mean_of(&rates));
    run.figure(&case, LOSS, "%", SampledValue::mean_of(&losses));
    if let (1.., Some(whole)) = (routers, run.value(&self::case(0, packets), RATE)) {
        let all: u64 = seen.packets.iter().sum();
        run.figure(&case, EFFICIENCY, "%", SampledValue::of(rates.iter().sum::<f64>() / whole * 100.0, all));
        run.figure(&case, FAIRNESS, "", SampledValue::of(jain(&rates), all));
    }
    Ok(true)
}

/// Returns a stream for all routers, with labels in random order.
fn stream(routers: u32, bytes: usize, rate: f64) -> BulkFlow {
    BulkFlow {
        rate: BulkFlowRate::PerSecond(rate),
        template: TesterFrameTemplate::new(&labelled(0).frame(), bytes, VaryingHeaderField::MplsLabel(routers)),
    }
}

fn labelled(label: u32) -> FrameBuilder {
    FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]))
        .mpls(label, 0, 64)
        .ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))
        .udp(9, 9)
        .payload(&[0; 64])
}

/// Measures pings through the last router, alone and while the senders of the others fill their lines.
fn round_trips(run: &mut ExperimentRun<'_>, routers: u32) -> Result<bool, ExperimentError> {
    let (packets, bytes) = FRAMES[0];
    let case = case(routers, packets);
    let pings = [(); 2].map(|()| {
        TesterFrameTemplate::new(&labelled(routers.saturating_sub(1)).frame(), 98, VaryingHeaderField::Nothing)
    });
    for (metric, others) in [(IDLE, 0), (STRESSED, routers.saturating_sub(1))] {
        if metric == STRESSED && others == 0 {
            continue;
        }
        run.tell(&format!("{case}: {metric}"));
        let bulk = (others > 0).then(|| stream(others, bytes, line_frames(bytes) * f64::from(others)));
        let load = TesterLoad { bulk: [bulk, None], ping: Some((run.sizes.ping_interval.0, pings.clone())) };
        let Some(seen) = through(run, routers, bytes, &load)? else { return Ok(false) };
        if let Some(us) = seen.round_trip {
            let ms = SampledValue { value: us.value / 1e3, sd: us.sd.map(|sd| sd / 1e3), samples: us.samples };
            run.figure(&case, metric, "ms", ms);
        }
    }
    Ok(true)
}

/// Computes the fairness index of Jain, Chiu and Hawe (1984): 1 if all values are equal.
fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |sums, value| (sums.0 + value, sums.1 + value * value));
    if squares == 0.0 { 0.0 } else { sum * sum / (values.len() as f64 * squares) }
}

fn claims(run: &mut ExperimentRun<'_>) {
    let of = |run: &ExperimentRun<'_>, metric: &str| -> Vec<(String, f64)> {
        let cases = FRAMES.iter().flat_map(|(packets, _)| ROUTERS.map(|routers| case(routers, packets)));
        cases.filter_map(|case| run.value(&case, metric).map(|value| (case, value))).collect()
    };
    for (metric, text, bound) in [
        (EFFICIENCY, "the routers together forward over 95 % of what the switch does alone", 95.0),
        (FAIRNESS, "fairness is above 0.99", 0.99),
    ] {
        let least = of(run, metric).into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((case, least)) = least {
            run.claims.push(Claim::tested(text, least > bound, format!("{} at least, {case}", short(least))));
        }
    }
    let expected = |routers: u32| (1.0 - 1.0 / f64::from(routers)) * 100.0;
    let off = FRAMES.iter().flat_map(|(packets, _)| ROUTERS.map(|routers| (routers, case(routers, packets))));
    let off = off.filter_map(|(routers, case)| Some(((run.value(&case, LOSS)? - expected(routers)).abs(), case)));
    if let Some((off, case)) = off.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let text = "loss can be foretold: of N routers each loses 1 - 1/N, to a point";
        run.claims.push(Claim::tested(text, off < 1.0, format!("{} points off at most, {case}", short(off))));
    }
}

fn plots(run: &mut ExperimentRun<'_>) {
    let lines = |run: &ExperimentRun<'_>, metric: &str| {
        let of = |packets: &str| {
            let cases = ROUTERS.map(|routers| (f64::from(routers), case(routers, packets)));
            super::series(run, packets, metric, cases)
        };
        FRAMES.map(|(packets, _)| of(packets)).into_iter().filter(|series| !series.points.is_empty()).collect()
    };
    for (name, y, metric) in [("efficiency", "efficiency, %", EFFICIENCY), ("rate", "packets a second of each", RATE)] {
        let series = lines(run, metric);
        let title = format!("{metric} by number of routers (Table 3.3)");
        let chart = Chart { name: name.into(), title, x: Axis::log("virtual routers"), y: Axis::linear(y), series };
        run.plots.push(chart.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_when_all_have_the_same() {
        assert!((jain(&[3.0, 3.0]) - 1.0).abs() < 1e-12 && (jain(&[1.0, 0.0]) - 0.5).abs() < 1e-12);
        assert_eq!(jain(&[0.0]), 0.0);
    }

    #[test]
    fn routers_have_equal_shares_of_the_line() {
        for (_, bytes) in FRAMES {
            for routers in ROUTERS {
                let known = [(1, None), (2, None)].into();
                let (fabric, cuts) = parse_slicing(&cuts(routers, bytes), "routers", "test", known).unwrap();
                assert_eq!(cuts.len(), routers as usize);
                let promised: u64 = cuts.iter().map(|cut| cut.ports[1].rate_out.0).sum();
                let line = fabric.ports[1].rate.0;
                assert!(promised <= line && promised as f64 > line as f64 * 0.98, "{promised} of {line}");
            }
        }
    }
}
