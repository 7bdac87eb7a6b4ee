//! `weir ctl --csv`: formats a switch's answers as CSV, with the names that `--json` has.
use super::{CtlCommand, controller, profile, read, virtuals};
use crate::commands::csv::{CsvRows, kinds};
use serde_json::{Value, json};
use weir_switch::{PortSnapshot, SwitchSnapshot, VirtualSwitchSnapshot};

const PORTS: &[&str] = &["number", "name", "spec", "mac", "renamed", "present", "link_up", "speed_bps"];
const PORT_COUNTERS: &[&str] = &[
    "number",
    "name",
    "counters.rx_packets",
    "counters.rx_bytes",
    "counters.rx_missed",
    "counters.rx_errors",
    "counters.rx_lost",
    "counters.tx_packets",
    "counters.tx_bytes",
    "counters.tx_full",
    "counters.tx_too_long",
    "counters.tx_errors",
    "counters.tx_lost",
    "stray_packets",
];
const QUEUES: &[&str] = &[
    "port",
    "name",
    "queue.queue",
    "queue.min_bps",
    "queue.max_bps",
    "queue.buffer_bytes",
    "queue.priority",
    "queue.waiting_bytes",
    "queue.counters.tx_packets",
    "queue.counters.tx_bytes",
    "queue.counters.tx_full",
];
const TABLES: &[&str] = &["table", "entries", "lookups", "matches"];
const SHAPES: &[&str] = &[
    "table",
    "shape",
    "entries",
    "masks",
    "bytes",
    "lookups",
    "matches",
    "probes_mean=probes.mean",
    "probes_max=probes.max",
];
const WORKERS: &[&str] =
    &["worker", "frames", "bursts", "waiting", "waiting_to_leave", "ring_full", "transmit_ring_full", "ports"];
const CHANNELS: &[&str] = &[
    "target",
    "state",
    "version",
    "role",
    "last_error",
    "connects",
    "received",
    "sent",
    "packet_ins",
    "packet_ins_dropped",
    "packet_ins_limited",
    "notices_dropped",
];
const VIRTUAL_SWITCHES: &[&str] =
    &["name", "datapath_id", "ends_in_s", "rx_packets", "tx_packets", "queued_bytes", "dropped"];
const VIRTUAL_PORTS: &[&str] = &[
    "virtual_switch",
    "number",
    "port",
    "vlan",
    "rate_in_bps",
    "rate_out_bps",
    "ceiling_bps",
    "rx_packets",
    "rx_bytes",
    "tx_packets",
    "tx_bytes",
    "dropped",
    "queued_bytes",
];
const CROSSPOINTS: &[&str] =
    &["virtual_switch", "from", "to", "packets", "bytes", "queued_bytes", "peak_bytes", "dropped"];
const DROPS: &[&str] = &["virtual_switch", "reason", "packets"];
const FLOWS: &[&str] = &[
    "entry.table",
    "entry.priority",
    "entry.cookie",
    "entry.duration_sec",
    "idle_timeout_sec=entry.idle_timeout",
    "hard_timeout_sec=entry.hard_timeout",
    "entry.importance",
    "entry.packet_count",
    "entry.byte_count",
    "text",
];
const GROUPS: &[&str] = &["group.group", "group.kind", "text"];
const GROUP_COUNTERS: &[&str] = &[
    "group.group",
    "group.duration_sec",
    "group.ref_count",
    "group.packet_count",
    "group.byte_count",
    "group.buckets",
];
const METERS: &[&str] = &["meter.meter", "meter.flags", "meter.bands"];
const METER_COUNTERS: &[&str] = &[
    "meter.meter",
    "meter.duration_sec",
    "meter.flow_count",
    "meter.packet_in_count",
    "meter.byte_in_count",
    "meter.bands",
];
const STAGES: &[&str] = &["thread", "stage", "cycles", "times", "packets", "longest_cycles=longest"];
const LEVELS: &[&str] = &["name", "entries", "size"];

/// Returns true if the command prints tables.
pub(super) fn has_tables(command: &CtlCommand) -> bool {
    use CtlCommand as C;
    matches!(
        command,
        C::Show { .. }
            | C::DumpPorts { .. }
            | C::DumpQueues
            | C::DumpFlows { .. }
            | C::DumpGroups { .. }
            | C::DumpGroupStats { .. }
            | C::DumpMeters { .. }
            | C::MeterStats { .. }
            | C::Counters
            | C::Perf { .. }
            | C::Profile { .. }
            | C::Vs(virtuals::CtlVirtualCommand::Show { .. })
            | C::Controller { .. }
    )
}

/// Converts the answer to a command that [`has_tables`] to CSV. Several tables become one, with a column `kind`.
pub(super) fn csv(command: &CtlCommand, answer: Value) -> anyhow::Result<String> {
    use CtlCommand as C;
    let one = |columns, rows| CsvRows { kind: "", columns, rows }.table();
    Ok(match command {
        C::DumpPorts { .. } => one(PORT_COUNTERS, ports(&answer)),
        C::DumpQueues => one(QUEUES, queues(&answer)),
        C::DumpFlows { .. } => {
            if let Some(left_out) = answer["left_out"].as_u64().filter(|count| *count > 0) {
                eprintln!("weir: {left_out} more entries are left out; say which you want to see");
            }
            one(FLOWS, list(&answer["flows"]))
        }
        C::DumpGroups { .. } => one(GROUPS, list(&answer["groups"])),
        C::DumpGroupStats { .. } => one(GROUP_COUNTERS, list(&answer["groups"])),
        C::DumpMeters { .. } => one(METERS, list(&answer["meters"])),
        C::MeterStats { .. } => one(METER_COUNTERS, list(&answer["meters"])),
        C::Profile { commands } => one(LEVELS, list(&profile::json(&read(answer)?, commands.as_deref())?["levels"])),
        C::Perf { .. } => kinds(&[
            rows("stage", STAGES, stages(&answer)),
            rows("worker", WORKERS, list(&answer["workers"])),
            rows("table", SHAPES, list(&answer["tables"])),
            rows("drop", DROPS, drops(&answer["drops"])),
        ]),
        C::Counters => kinds(&[
            rows("port", PORT_COUNTERS, ports(&answer)),
            rows("table", TABLES, list(&answer["tables"])),
            rows("channel", CHANNELS, channels(&answer)),
            rows("drop", DROPS, all_drops(&answer)?),
        ]),
        C::Show { .. } => kinds(&[
            rows("port", PORTS, list(&answer["ports"])),
            rows("table", TABLES, list(&answer["tables"])),
            rows("worker", WORKERS, list(&answer["workers"])),
            rows("virtual_switch", VIRTUAL_SWITCHES, virtual_switches(&answer)?),
            rows("channel", CHANNELS, channels(&answer)),
            rows("drop", DROPS, all_drops(&answer)?),
        ]),
        C::Controller { .. } => controller::csv(&answer),
        C::Vs(_) => {
            let all: Vec<VirtualSwitchSnapshot> = read(answer)?;
            kinds(&[
                rows("port", VIRTUAL_PORTS, all.iter().flat_map(virtual_ports).collect()),
                rows("crosspoint", CROSSPOINTS, all.iter().flat_map(crosspoints).collect()),
            ])
        }
        _ => String::new(),
    })
}

fn rows(kind: &'static str, columns: &'static [&'static str], rows: Vec<Value>) -> CsvRows {
    CsvRows { kind, columns, rows }
}

pub(super) fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Returns the ports whose devices are present.
fn ports(switch: &Value) -> Vec<Value> {
    list(&switch["ports"]).into_iter().filter(|port| port["present"] == true).collect()
}

/// Returns the queues of all ports, each with its port.
fn queues(switch: &Value) -> Vec<Value> {
    let of = |port: Value| {
        let (number, name) = (port["number"].clone(), port["name"].clone());
        list(&port["queues"]).into_iter().map(move |queue| json!({"port": number, "name": name, "queue": queue}))
    };
    list(&switch["ports"]).into_iter().flat_map(of).collect()
}

/// Returns the control channels, with the state in a word and the version beside it.
fn channels(switch: &Value) -> Vec<Value> {
    let flat = |mut channel: Value| {
        if let Some(version) = channel["state"]["up"]["version"].as_str().map(str::to_owned) {
            channel["state"] = "up".into();
            channel["version"] = version.into();
        }
        channel
    };
    list(&switch["channels"]).into_iter().map(flat).collect()
}

fn stages(report: &Value) -> Vec<Value> {
    let of = |thread: Value| {
        let name = thread["name"].clone();
        list(&thread["stages"]).into_iter().map(move |mut stage| {
            stage["thread"] = name.clone();
            stage
        })
    };
    list(&report["threads"]).into_iter().flat_map(of).collect()
}

/// Returns drops by reason, from a list of pairs.
fn drops(pairs: &Value) -> Vec<Value> {
    list(pairs).into_iter().map(|pair| json!({"reason": pair[0], "packets": pair[1]})).collect()
}

/// Returns the drops of the switch, of its ports' queues, of its channels and of its virtual switches.
fn all_drops(switch: &Value) -> anyhow::Result<Vec<Value>> {
    let snapshot: SwitchSnapshot = read(switch.clone())?;
    let mut all = drops(&switch["drops"]);
    let full = |port: &PortSnapshot| port.queues.iter().map(|queue| queue.counters.tx_full).sum::<u64>();
    let counts = [
        ("packet_ins_dropped", snapshot.packet_ins_dropped),
        ("packet_ins_limited", snapshot.packet_ins_limited),
        ("queue_full", snapshot.ports.iter().map(full).sum()),
    ];
    let counts = counts.into_iter().filter(|(_, packets)| *packets > 0);
    all.extend(counts.map(|(reason, packets)| json!({"reason": reason, "packets": packets})));
    for cut in &snapshot.virtual_switches {
        let dropped = virtuals::dropped(cut).into_iter();
        all.extend(
            dropped.map(|(reason, packets)| json!({"virtual_switch": cut.name, "reason": reason, "packets": packets})),
        );
    }
    Ok(all)
}

/// Returns the virtual switches with the sums of their ports' counters.
fn virtual_switches(switch: &Value) -> anyhow::Result<Vec<Value>> {
    let snapshot: SwitchSnapshot = read(switch.clone())?;
    let one = |cut: &VirtualSwitchSnapshot| {
        json!({
            "name": cut.name,
            "datapath_id": cut.datapath_id,
            "ends_in_s": cut.ends_in_s,
            "rx_packets": virtuals::sum(cut, |port| port.rx_packets),
            "tx_packets": virtuals::sum(cut, |port| port.tx_packets),
            "queued_bytes": virtuals::sum(cut, |port| port.queued_bytes),
            "dropped": virtuals::all_dropped(cut),
        })
    };
    Ok(snapshot.virtual_switches.iter().map(one).collect())
}

/// Returns a virtual switch's ports; their rates are numbers, and the columns have the unit.
fn virtual_ports(cut: &VirtualSwitchSnapshot) -> Vec<Value> {
    let one = |port: &weir_switch::VirtualPortSnapshot| {
        let mut row = json!(port);
        row["virtual_switch"] = cut.name.clone().into();
        row["rate_in_bps"] = port.rate_in.0.into();
        row["rate_out_bps"] = port.rate_out.0.into();
        row["ceiling_bps"] = port.ceiling.map(|rate| rate.0).into();
        row
    };
    cut.ports.iter().map(one).collect()
}

/// Returns a virtual switch's crosspoints, with the sum of what each dropped.
fn crosspoints(cut: &VirtualSwitchSnapshot) -> Vec<Value> {
    let one = |point: &weir_switch::CrosspointSnapshot| {
        let mut row = json!(point);
        row["virtual_switch"] = cut.name.clone().into();
        row["dropped"] = point.dropped.values().sum::<u64>().into();
        row
    };
    cut.crosspoints.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::with_virtual_switch;
    use super::*;
    use weir_datapath::TableShape;
    use weir_datapath::perf::ThreadStage;
    use weir_switch::ctl::StagePerf;

    fn columns(csv: &str) -> Vec<&str> {
        csv.lines().next().unwrap_or_default().split(',').collect()
    }

    /// Returns the lines of a kind, each as its cells by column.
    fn of_kind<'a>(csv: &'a str, kind: &str) -> Vec<std::collections::BTreeMap<&'a str, &'a str>> {
        let cells = |line: &'a str| columns(csv).into_iter().zip(line.split(',')).collect();
        csv.lines().filter(|line| line.starts_with(&format!("{kind},"))).map(cells).collect()
    }

    #[test]
    fn a_switch_shows_each_of_its_tables() {
        let switch = json!(with_virtual_switch());
        let csv = csv(&CtlCommand::Show { switch: None }, switch.clone()).unwrap();
        assert!(csv.starts_with("kind,number,name,spec,"), "{csv}");
        let gold = &of_kind(&csv, "virtual_switch")[0];
        assert_eq!((gold["name"], gold["rx_packets"], gold["dropped"]), ("gold", "20", "845001"));
        let drops = of_kind(&csv, "drop");
        assert_eq!((drops[0]["virtual_switch"], drops[0]["reason"]), ("gold", "buffer_full"));
        let shown = CtlCommand::Vs(virtuals::CtlVirtualCommand::Show { name: None });
        let csv = super::csv(&shown, switch["virtual_switches"].clone()).unwrap();
        let ports = of_kind(&csv, "port");
        assert_eq!((ports[1]["virtual_switch"], ports[1]["rate_in_bps"]), ("gold", "1000000"));
        assert_eq!(of_kind(&csv, "crosspoint")[0]["dropped"], "845000");
    }

    #[test]
    fn every_column_is_a_name_of_json() {
        let missing = |columns: &[&'static str], row: Value| {
            let path =
                |column: &&str| format!("/{}", column.split('=').next_back().unwrap_or_default().replace('.', "/"));
            let is_missing = |column: &&&str| row.pointer(&path(column)).is_none();
            columns.iter().filter(is_missing).map(|column| (*column).to_owned()).collect::<Vec<_>>()
        };
        let none: [String; 0] = [];
        let queue = weir_switch::QueueSnapshot {
            queue: 1,
            min_bps: Some(1),
            max_bps: None,
            buffer_bytes: 1,
            priority: 0,
            waiting_bytes: 0,
            counters: weir_port::queues::QueueCounters::default(),
        };
        let port = PortSnapshot {
            number: weir_openflow::model::PortNo(1),
            name: "p".into(),
            spec: "null:p".into(),
            mac: String::new(),
            renamed: Some("q".into()),
            present: true,
            link_up: true,
            speed_bps: None,
            counters: weir_port::FrameCounters::default(),
            queues: vec![queue],
            stray_packets: 0,
        };
        assert_eq!(missing(PORTS, json!(port)), none);
        assert_eq!(missing(PORT_COUNTERS, json!(port)), none);
        assert_eq!(missing(QUEUES, queues(&json!({"ports": [port]}))[0].clone()), none);
        let cut = &with_virtual_switch().virtual_switches[0];
        assert_eq!(missing(VIRTUAL_PORTS, virtual_ports(cut)[0].clone()), none);
        assert_eq!(missing(CROSSPOINTS, crosspoints(cut)[0].clone()), none);
        let stage = StagePerf { stage: ThreadStage::Idle, cycles: 1, times: 1, packets: 1, longest: 1 };
        assert_eq!(
            missing(STAGES, stages(&json!({"threads": [{"name": "engine", "stages": [stage]}]}))[0].clone()),
            none
        );
        let probes = weir_datapath::LookupCost { samples: 1, mean: 1.0, max: 1 };
        let shape = TableShape {
            table: 0,
            shape: String::new(),
            entries: 0,
            masks: None,
            bytes: None,
            lookups: 0,
            matches: 0,
            probes: Some(probes),
        };
        assert_eq!(missing(SHAPES, json!(shape)), none);
        let up = json!({"channels": [{"target": "tcp:1", "state": {"up": {"version": "1.3"}}, "role": null}]});
        assert_eq!((&channels(&up)[0]["state"], &channels(&up)[0]["version"]), (&json!("up"), &json!("1.3")));
    }
}
