//! Measures by both methods in virtual time. Events are the times at which a message or a packet arrives. A loop
//! sends a packet again when it has left.
use super::{EVENTS, LOOPS, ProfileServiceTimes, SIMULATED, VISITS, case, parts, sizes};
use crate::live::{PORTS, sent_on};
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_model::fit::line::RegressionLine;
use weir_openflow::model::{FlowMod, PortNo};
use weir_openflow::{Body, Message};
use weir_profile::MatchLayers;
use weir_profiler::rules::{TestFlowEntry, number};
use weir_profiler::{DeviceEvent, DeviceUnderTest, VirtualTimeSwitch};
use weir_traffic::ProbeHeader;
use weir_units::Instant;

/// Service time of the controller, as published (the mean of Table 4.1).
const CONTROLLER: Duration = Duration::from_micros(7490);
/// Time between packets, so that each finds the switch idle.
const APART: Duration = Duration::from_millis(100);
/// Entry for packets that go to the controller.
const ASKS: TestFlowEntry = TestFlowEntry { number: 1 << 16, priority: 10, kind: MatchLayers::L2L3 };
/// Number of packets of each length through the controller, at the small and the published size. Loops use few,
/// because all take equal times.
const PACKETS: [u32; 2] = [400, 4000];
const LOOPED: u32 = 10;

pub(super) fn measure(run: &mut ExperimentRun<'_>, known: &ProfileServiceTimes) -> Result<(), ExperimentError> {
    let mut device = VirtualTimeSwitch::new(&known.profile, 2, run.options.seed).map_err(failed)?;
    let passes = TestFlowEntry { number: number(2, 0), ..ASKS };
    install(&mut device, [ASKS.add(PORTS[0], PortNo::CONTROLLER), passes.add(PORTS[0], PORTS[1])])?;
    for bytes in sizes(run) {
        if run.is_stopped() {
            return Ok(());
        }
        let case = case(SIMULATED, *bytes);
        run.tell(&case);
        let mut found = [const { Vec::new() }; 3];
        for sequence in 0..PACKETS[usize::from(run.options.full)] {
            let times = by_controller(&mut device, &ASKS.packet(*bytes, &mark(1, sequence)), sequence)?;
            found.iter_mut().zip(times).for_each(|(list, us)| list.push(us));
        }
        parts(run, &case, found.map(|list| SampledValue::mean_of(&list)));
        let packet = |run, sequence| passes.packet(*bytes, &mark(run, sequence));
        let once = (0..LOOPED).map(|sequence| visits(&mut device, &packet(2, sequence), 1));
        run.figure(&case, EVENTS, "us", SampledValue::mean_of(&once.collect::<Result<Vec<_>, _>>()?));
        let loops = VISITS.map(|count| visits(&mut device, &packet(3, count), count));
        let delays = loops.into_iter().collect::<Result<Vec<_>, _>>()?;
        let line = RegressionLine::fit(&VISITS.map(f64::from), &delays)?;
        run.figure(&case, LOOPS, "us", SampledValue::of(line.slope, VISITS.len() as u64));
    }
    Ok(())
}

fn failed(error: weir_profiler::ProfilerError) -> ExperimentError {
    ExperimentError::Case(format!("in virtual time: {error}"))
}

fn nothing(what: &str) -> ExperimentError {
    ExperimentError::Case(format!("in virtual time: no {what} came within {APART:?}"))
}

fn mark(run: u16, sequence: u32) -> ProbeHeader {
    ProbeHeader { run, sequence, sent_ns: 0, is_new_flow: false, counts: true, is_wall: false }
}

fn install(device: &mut VirtualTimeSwitch, flows: [FlowMod; 2]) -> Result<(), ExperimentError> {
    let messages = flows.map(|flow| Message { xid: 1, body: Body::FlowMod(flow) });
    device.send(&messages).map_err(failed)?;
    wait(device, APART, |_| None::<()>).map(drop)
}

/// Advances the time until an event satisfies `is_it`. Returns `None` after `time`.
fn wait<T>(
    device: &mut VirtualTimeSwitch,
    time: Duration,
    is_it: impl Fn(DeviceEvent) -> Option<T>,
) -> Result<Option<T>, ExperimentError> {
    let until = device.now() + time;
    while let Some(seen) = device.wait(until).map_err(failed)? {
        if let Some(found) = is_it(seen) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn us(from: Instant, to: Instant) -> f64 {
    to.since(from).as_secs_f64() * 1e6
}

/// Returns the time of a packet that leaves by the second interface.
fn frame(seen: DeviceEvent) -> Option<Instant> {
    match seen {
        DeviceEvent::Frame { at, interface: 1, .. } => Some(at),
        _ => None,
    }
}

/// Returns a packet's times to, in and from the controller, in microseconds.
fn by_controller(device: &mut VirtualTimeSwitch, packet: &[u8], sequence: u32) -> Result<[f64; 3], ExperimentError> {
    let sent = device.now();
    device.transmit(0, packet).map_err(failed)?;
    let packet_in = |seen| match seen {
        DeviceEvent::Message { at, message: Message { body: Body::PacketIn(packet), .. } } => Some((at, packet.data.0)),
        _ => None,
    };
    let (asked, data) = wait(device, APART, packet_in)?.ok_or_else(|| nothing("packet-in"))?;
    wait(device, CONTROLLER, |_| None::<()>)?;
    let answered = device.now();
    let body = Body::PacketOut(sent_on(data, PORTS[1]));
    device.send(&[Message { xid: sequence + 2, body }]).map_err(failed)?;
    let left = wait(device, APART, frame)?.ok_or_else(|| nothing("packet"))?;
    wait(device, APART, |_| None::<()>)?;
    Ok([us(sent, asked), us(asked, answered), us(answered, left)])
}

/// Returns the duration of `count` visits, in microseconds.
fn visits(device: &mut VirtualTimeSwitch, packet: &[u8], count: u32) -> Result<f64, ExperimentError> {
    let sent = device.now();
    let mut left = sent;
    for _ in 0..count {
        device.transmit(0, packet).map_err(failed)?;
        left = wait(device, APART, frame)?.ok_or_else(|| nothing("packet"))?;
    }
    wait(device, APART, |_| None::<()>)?;
    Ok(us(sent, left))
}
