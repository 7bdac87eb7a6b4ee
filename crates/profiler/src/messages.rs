//! Measures how long a switch takes for packet-ins, packet-outs, echo requests and flow statistics requests.
use crate::bench::{TestBench, packet_out};
use crate::device::DeviceEvent;
use crate::levels::{PRIORITY, alike};
use crate::rules::TestFlowEntry;
use crate::store::{MessageRow, RawDataRow, RawDataStore};
use crate::{MeasurementGrid, ProfilerError, ProgressReporter};
use std::time::Duration;
use weir_openflow::Body;
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, RequestBody};
use weir_openflow::model::{Action, Bytes, FlowMod, Instruction, PortNo, SwitchConfig};
use weir_traffic::ProbeHeader;
use weir_units::Instant;

/// Lengths of the packets in packet-ins and packet-outs, in bytes.
const SIZES: [u32; 2] = [128, 1024];
/// Numbers of flow entries in the table while statistics requests are measured.
const ENTRIES: [u32; 3] = [1, 10, 100];
/// Number of statistics requests that are measured for each number of entries.
const STATISTICS: u32 = 10;
/// Value of `max_len` and `miss_send_len` that sends whole packets to the controller.
const WHOLE: u16 = 0xffff;
/// Number of packets after which the measurement of packet-ins ends if none of them caused a packet-in.
const NONE_CAME: u32 = 3;
/// Minimum time between two measurements, so that each finds the switch idle.
const APART: Duration = Duration::from_millis(2);

/// Measures the kinds of messages whose times are not in the store yet. Returns all times, including those that were in
/// the store.
pub(crate) fn measure(
    bench: &mut TestBench<'_>,
    grid: &MeasurementGrid,
    store: &mut RawDataStore,
    progress: &mut ProgressReporter<'_>,
) -> Result<Vec<MessageRow>, ProfilerError> {
    let mut rows = store.messages()?;
    progress.expect(SIZES.len() * 2 + 1 + ENTRIES.len());
    for size in SIZES {
        for kind in ["packet_out", "packet_in"] {
            progress.step(kind);
            if has(&rows, kind, size) {
                continue;
            }
            bench.during = format!("measuring {kind} of {size} bytes");
            let delays =
                if kind == "packet_out" { packet_outs(bench, grid, size)? } else { packet_ins(bench, grid, size)? };
            keep(&mut rows, store, kind, size, delays)?;
        }
    }
    progress.step("echo");
    if !has(&rows, "echo", 0) {
        bench.during = "measuring echoes".to_owned();
        let delays = (0..grid.messages).map(|_| echo(bench)).collect::<Result<_, _>>()?;
        keep(&mut rows, store, "echo", 0, delays)?;
    }
    for entries in ENTRIES {
        progress.step("statistics");
        if !has(&rows, "statistics", entries) {
            bench.during = format!("measuring statistics of {entries} entries");
            let delays = statistics(bench, entries)?;
            keep(&mut rows, store, "statistics", entries, delays)?;
        }
    }
    bench.clear()?;
    Ok(rows)
}

fn has(rows: &[MessageRow], kind: &str, size: u32) -> bool {
    rows.iter().any(|row| row.message == kind && row.size == size)
}

fn keep(
    rows: &mut Vec<MessageRow>,
    store: &mut RawDataStore,
    kind: &str,
    size: u32,
    delays: Vec<Option<f64>>,
) -> Result<(), ProfilerError> {
    for (run, delay_s) in (0..).zip(delays) {
        let row = MessageRow { message: kind.to_owned(), size, run, delay_s };
        store.write(&RawDataRow::Message(&row))?;
        rows.push(row);
    }
    Ok(())
}

/// Waits for an event that `is_it` accepts, and returns its result; `None` if there is none in time (one second, or the
/// bench's patience if that is shorter). Then waits for [`APART`], so that the next message finds the switch idle.
fn until<T>(
    bench: &mut TestBench<'_>,
    mut is_it: impl FnMut(DeviceEvent) -> Option<T>,
) -> Result<Option<T>, ProfilerError> {
    bench.check_stop()?;
    let deadline = bench.device.now() + bench.settings.patience.min(Duration::from_secs(1));
    let mut found = None;
    while found.is_none() && bench.device.now() < deadline {
        found = bench.device.wait(deadline)?.and_then(&mut is_it);
    }
    bench.rest(APART)?;
    Ok(found)
}

fn mark(bench: &TestBench<'_>, run: u16, sequence: u32) -> ProbeHeader {
    let sent_ns = bench.device.now().as_nanos();
    ProbeHeader { run, sequence, sent_ns, is_new_flow: false, counts: true, is_wall: false }
}

/// Measures the times from sending a packet-out to the arrival of its packet at the second interface, in seconds;
/// `None` for a packet that did not arrive.
fn packet_outs(
    bench: &mut TestBench<'_>,
    grid: &MeasurementGrid,
    size: u32,
) -> Result<Vec<Option<f64>>, ProfilerError> {
    let run = bench.next_run();
    let mut delays = Vec::new();
    for sequence in 0..grid.messages {
        let packet = alike(0).packet(size, &mark(bench, run, sequence));
        let message = bench.message(Body::PacketOut(packet_out(bench.port(1), packet)));
        let started = bench.device.now();
        bench.device.send(&[message])?;
        let came = until(bench, |seen| match seen {
            DeviceEvent::Frame { at, interface: 1, bytes } if is_marked(&bytes, run, sequence) => Some(at),
            _ => None,
        })?;
        delays.push(came.map(|at: Instant| at.since(started).as_secs_f64()));
    }
    Ok(delays)
}

fn is_marked(bytes: &[u8], run: u16, sequence: u32) -> bool {
    ProbeHeader::find(bytes, Some(run)).is_some_and(|mark| mark.sequence == sequence)
}

/// Measures the times from sending a packet to the first interface to the arrival of its packet-in, in seconds,
/// including the time in the data path; `None` for a packet without a packet-in.
fn packet_ins(bench: &mut TestBench<'_>, grid: &MeasurementGrid, size: u32) -> Result<Vec<Option<f64>>, ProfilerError> {
    bench.clear()?;
    let asking =
        TestFlowEntry { number: crate::rules::number(3, 1), priority: PRIORITY, kind: weir_profile::MatchLayers::L2L3 };
    let to_controller = vec![Action::Output { port: PortNo::CONTROLLER, max_len: WHOLE }];
    let entry = FlowMod {
        instructions: vec![Instruction::ApplyActions(to_controller)],
        ..asking.add(bench.port(0), PortNo::CONTROLLER)
    };
    let message = bench.message(Body::FlowMod(entry));
    bench.device.send(&[message])?;
    bench.barrier()?;
    bench.rest(bench.settings.grace)?;
    configure(bench, WHOLE)?;
    let run = bench.next_run();
    let mut delays = Vec::new();
    for sequence in 0..grid.messages {
        if sequence >= NONE_CAME && delays.iter().all(Option::is_none) {
            break;
        }
        let packet = asking.packet(size, &mark(bench, run, sequence));
        let began = bench.device.now();
        let started = bench.device.transmit(0, &packet)?.unwrap_or(began);
        let came = until(bench, |seen| match seen {
            DeviceEvent::Message { at, message } => match message.body {
                Body::PacketIn(packet) if is_marked(&packet.data.0, run, sequence) => Some(at),
                _ => None,
            },
            DeviceEvent::Frame { .. } => None,
        })?;
        delays.push(came.map(|at: Instant| at.since(started).as_secs_f64()));
    }
    configure(bench, 0)?;
    Ok(delays)
}

/// Sets how many bytes of a packet the switch sends to the controller. Switches that accept connections send nothing
/// unsolicited until this is set; with 0, packets without an entry cause no packet-ins.
fn configure(bench: &mut TestBench<'_>, miss_send_len: u16) -> Result<(), ProfilerError> {
    let message = bench.message(Body::SetConfig(SwitchConfig { flags: 0, miss_send_len }));
    bench.device.send(&[message])?;
    bench.barrier().map(drop)
}

fn echo(bench: &mut TestBench<'_>) -> Result<Option<f64>, ProfilerError> {
    let started = bench.device.now();
    // The data must not be empty: empty echoes are the session's own.
    let (at, _) = bench.ask(Body::EchoRequest(Bytes(b"weir".to_vec())), "echo reply")?;
    bench.rest(APART)?;
    Ok(Some(at.since(started).as_secs_f64()))
}

/// Measures the times from sending a request for the statistics of `entries` flow entries to the arrival of the last
/// part of the reply, in seconds; `None` for a request without a reply.
fn statistics(bench: &mut TestBench<'_>, entries: u32) -> Result<Vec<Option<f64>>, ProfilerError> {
    bench.clear()?;
    let rules: Vec<TestFlowEntry> = (0..entries).map(alike).collect();
    bench.fill(&rules)?;
    let mut delays = Vec::new();
    for _ in 0..STATISTICS {
        let body = RequestBody::Flow(FlowRequest::all());
        let message = bench.message(Body::MultipartRequest(MultipartRequest { more: false, body }));
        let (xid, started) = (message.xid, bench.device.now());
        bench.device.send(&[message])?;
        let came = until(bench, |seen| match seen {
            DeviceEvent::Message { at, message } if message.xid == xid => match message.body {
                Body::MultipartReply(reply) if reply.more => None,
                _ => Some(at),
            },
            _ => None,
        })?;
        delays.push(came.map(|at: Instant| at.since(started).as_secs_f64()));
    }
    Ok(delays)
}
