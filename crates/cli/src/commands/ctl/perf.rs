//! `weir ctl perf`: formats the report as text.
use std::fmt::Write as _;
use weir_datapath::perf::ThreadStage;
use weir_datapath::{CacheCounts, TableShape};
use weir_switch::WorkerSnapshot;
use weir_switch::ctl::{BuffersPerf, PerfReport, PreparedBuffers, ThreadPerf, ThreadPlacement};
use weir_terminal::table::ReportTable;

/// Lower bounds of the classes of burst sizes; each class ends before the next bound, the last has no upper bound.
const BURSTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 33, 64];

pub(super) fn text(report: &PerfReport) -> String {
    let mut text = format!("{:.2} s, time stamp counter at {:.2} GHz\n", report.seconds, report.cycles_per_ns);
    for thread in &report.threads {
        let _ = write!(text, "\n{}", stages(thread, report));
    }
    text += &workers(&report.workers);
    text += &report.buffers.as_ref().map(|known| buffers(known, report.nodes)).unwrap_or_default();
    let _ = write!(text, "\n{}", tables(&report.tables));
    let reasons: Vec<String> =
        report.drops.iter().map(|(reason, count)| format!("{} {count}", reason.replace('_', " "))).collect();
    let dropped = if reasons.is_empty() { "no drops".to_owned() } else { format!("dropped: {}", reasons.join(", ")) };
    text + &format!("\n{dropped}\n")
}

/// Lists the frames in each pipeline worker's rings, or, if several threads run to completion, the ports of each
/// thread.
fn workers(workers: &[WorkerSnapshot]) -> String {
    let have_ports = workers.iter().any(|worker| !worker.ports.is_empty());
    let line = |worker: &WorkerSnapshot| {
        let WorkerSnapshot { worker, waiting, waiting_to_leave, ports, .. } = worker;
        if have_ports {
            let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
            let name = if *worker == 0 { "engine".to_owned() } else { worker.to_string() };
            let ports = if ports.is_empty() { "none".to_owned() } else { ports.join(", ") };
            return format!("\nports of thread {name}: {ports}\n");
        }
        format!("\nrings of worker {worker}: {waiting} frames wait for it, {waiting_to_leave} to be transmitted\n")
    };
    workers.iter().map(line).collect()
}

fn stages(thread: &ThreadPerf, report: &PerfReport) -> String {
    let all: u64 = thread.stages.iter().map(|stage| stage.cycles).sum();
    let header = ["stage", "share", "ns/packet", "cycles/packet", "us each", "longest us", "times", "packets"];
    let mut rows = ReportTable::new(header).numbers(1..8);
    for took in &thread.stages {
        let per = |whole: f64, count: u64| if count == 0 { "-".to_owned() } else { format!("{whole:.1}") };
        let (cycles, packets) = (took.cycles as f64, took.packets.max(1) as f64);
        let ns = cycles / report.cycles_per_ns;
        let each = ns / 1e3 / took.times.max(1) as f64;
        rows.row([
            took.stage.name().to_owned(),
            format!("{:.1} %", cycles * 100.0 / all.max(1) as f64),
            per(ns / packets, took.packets),
            per(cycles / packets, took.packets),
            format!("{each:.2}"),
            format!("{:.1}", took.longest as f64 / report.cycles_per_ns / 1e3),
            took.times.to_string(),
            took.packets.to_string(),
        ]);
    }
    let looked_up = thread.stages.iter().find(|took| took.stage == ThreadStage::LookUp).map_or(0, |took| took.packets);
    let rate = looked_up as f64 / report.seconds / 1e6;
    format!(
        "thread {}{}: {rate:.3} million packets per second\n{}\n{}{}",
        thread.name,
        place(thread.place, report.nodes),
        rows,
        bursts(thread),
        cache(thread)
    )
}

/// Describes the frame buffers: number, size, pages and NUMA node.
fn buffers(known: &BuffersPerf, nodes: usize) -> String {
    let BuffersPerf { bytes_each, free, beyond, prepared } = known;
    let count: u64 = prepared.iter().map(|slab| u64::from(slab.count)).sum();
    let mut text =
        format!("\nframe buffers: {count} of {bytes_each} bytes, {beyond} made besides; {free} wait for frames\n");
    for (thread, PreparedBuffers { count, bytes, huge_bytes, place }) in prepared.iter().enumerate() {
        let thread = if thread == 0 { "engine".to_owned() } else { thread.to_string() };
        let mib = |bytes: usize| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let huge = huge_bytes.map_or_else(|| "pages unknown".to_owned(), |huge| format!("{} on huge pages", mib(huge)));
        let node = match (nodes, place.node) {
            (1, _) => "one node".to_owned(),
            (_, Some(node)) => format!("node {node}"),
            (_, None) => format!("any of {nodes} nodes"),
        };
        let _ = writeln!(text, " of thread {thread}: {count} in {}, {huge}, {node}", mib(*bytes));
    }
    text
}

/// Describes the CPU and NUMA node of a thread.
fn place(place: ThreadPlacement, nodes: usize) -> String {
    let cpu = place.cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let node = match (nodes, place.node) {
        (1, _) => "one node".to_owned(),
        (_, Some(node)) => format!("node {node}"),
        (_, None) => format!("any of {nodes} nodes"),
    };
    format!(" ({cpu}, {node})")
}

/// Describes the verdict cache's state and counters; empty if the thread had no packets.
fn cache(thread: &ThreadPerf) -> String {
    let CacheCounts { state, hits, misses, renewals, trials, kept, slots } = thread.cache;
    if thread.bursts.is_empty() {
        return String::new();
    }
    let asked = hits + misses;
    let mut text = format!("verdict cache: {}", state.name());
    if asked > 0 {
        let _ = write!(text, "; knew {:.1} % of {asked} packets", hits as f64 * 100.0 / asked as f64);
    }
    if slots > 0 {
        let _ = write!(text, "; has {kept} verdicts, room for {slots}; out of date {renewals} times, {trials} trials");
    }
    text + "\n"
}

/// Lists the shares of burst sizes, in classes.
fn bursts(thread: &ThreadPerf) -> String {
    let all: u64 = thread.bursts.iter().map(|(_, count)| count).sum();
    if all == 0 {
        return String::new();
    }
    let ends = BURSTS.into_iter().skip(1).map(|end| end - 1).chain([usize::MAX]);
    let classes = BURSTS.into_iter().zip(ends).filter_map(|(from, to)| {
        let count: u64 =
            thread.bursts.iter().filter(|(size, _)| (from..=to).contains(size)).map(|(_, count)| count).sum();
        let name = if to == from || to == usize::MAX { from.to_string() } else { format!("{from}-{to}") };
        (count > 0).then(|| format!("{name}: {:.1} %", count as f64 * 100.0 / all as f64))
    });
    format!("bursts of packets: {}\n", classes.collect::<Vec<_>>().join(", "))
}

fn tables(tables: &[TableShape]) -> String {
    if tables.is_empty() {
        return "no flow entries, no lookups\n".to_owned();
    }
    let header = ["table", "shape", "entries", "masks", "memory", "lookups", "matched", "probes", "most"];
    let mut rows = ReportTable::new(header).numbers(0..1).numbers(2..9);
    for shape in tables {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let hits = (shape.lookups > 0).then(|| format!("{:.1} %", shape.matches as f64 * 100.0 / shape.lookups as f64));
        rows.row([
            shape.table.to_string(),
            shape.shape.clone(),
            shape.entries.to_string(),
            or_dash(shape.masks.map(|masks| masks.to_string())),
            or_dash(shape.bytes.map(|bytes| format!("{} KiB", bytes / 1024))),
            shape.lookups.to_string(),
            or_dash(hits),
            or_dash(shape.probes.map(|probes| format!("{:.1}", probes.mean))),
            or_dash(shape.probes.map(|probes| probes.max.to_string())),
        ]);
    }
    format!("{rows}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_datapath::{CacheState, LookupCost};
    use weir_switch::ctl::StagePerf;

    #[test]
    fn a_report_says_what_a_packet_costs() {
        let stage = |stage, cycles, times, packets| StagePerf { stage, cycles, times, packets, longest: 5200 };
        let thread = ThreadPerf {
            name: "engine".into(),
            place: ThreadPlacement { cpu: Some(3), node: Some(1) },
            stages: vec![stage(ThreadStage::LookUp, 2600, 2, 100), stage(ThreadStage::Idle, 7400, 5, 0)],
            bursts: vec![(1, 1), (3, 1), (32, 1), (64, 1)],
            cache: CacheCounts {
                state: CacheState::Using,
                hits: 75,
                misses: 25,
                renewals: 2,
                trials: 1,
                kept: 7,
                slots: 16_384,
            },
        };
        let shape = TableShape {
            table: 0,
            shape: "tuple space".into(),
            entries: 7,
            masks: Some(2),
            bytes: Some(4096),
            lookups: 100,
            matches: 50,
            probes: Some(LookupCost { samples: 4, mean: 1.5, max: 2 }),
        };
        let place = ThreadPlacement { cpu: Some(3), node: Some(1) };
        let prepared = PreparedBuffers { count: 4096, bytes: 10 << 20, huge_bytes: Some(8 << 20), place };
        let report = PerfReport {
            seconds: 0.5,
            cycles_per_ns: 2.6,
            nodes: 2,
            threads: vec![thread],
            workers: Vec::new(),
            tables: vec![shape],
            drops: vec![("table_miss".into(), 50)],
            buffers: Some(BuffersPerf { bytes_each: 2240, free: 4000, beyond: 7, prepared: vec![prepared] }),
        };
        let text = text(&report);
        for part in [
            "thread engine (CPU 3, node 1): ",
            "frame buffers: 4096 of 2240 bytes, 7 made besides; 4000 wait for frames\n",
            " of thread engine: 4096 in 10.0 MiB, 8.0 MiB on huge pages, node 1\n",
            "10.0",
            "26.0",
            "0.50",
            "2.0",
            "26.0 %",
            "74.0 %",
            "tuple space",
            "50.0 %",
            "1.5",
            "dropped: table miss 50",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let cache = "in use; knew 75.0 % of 100 packets; has 7 verdicts, room for 16384; out of date 2 times, 1 trials";
        assert!(text.contains(cache), "{text}");
        assert!(text.contains("1: 25.0 %, 2-3: 25.0 %, 32: 25.0 %, 64: 25.0 %"), "{text}");
    }
}
