//! `weir ctl controller`: formats what a running controller is doing as text and as CSV.
use super::csv::list;
use crate::commands::controller::text::{losses, totals};
use crate::commands::csv::{CsvRows, kinds};
use serde_json::{Value, json};
use std::fmt::Write as _;
use weir_controller::hub::MessageClass;
use weir_controller::status::{
    ApplicationStatus, ClassStatus, ControllerOverview, LinkStatus, SwitchStatus, ThreadStatus,
};
use weir_terminal::table::ReportTable;
use weir_units::{ByteSize, counted};

const SWITCHES: &[&str] = &["dpid", "peer", "tls", "version", "role", "up_s", "thread", "auxiliary"];
const CLASSES: &[&str] = &[
    "dpid",
    "class",
    "received",
    "waiting",
    "waiting_bytes",
    "dropped_overload",
    "dropped_port_down",
    "handled",
    "answered",
];
const THREADS: &[&str] = &["thread", "switches", "connections", "busy", "busy_since_start", "turns"];
const APPLICATIONS: &[&str] = &["application", "counter", "count"];
const LINKS: &[&str] = &["from", "from_port", "to", "to_port", "heard_s", "delay_us", "blocked", "down", "damped"];
const TOTALS: &[&str] = &["counter", "count"];

pub(super) fn text(controller: &ControllerOverview) -> String {
    let ControllerOverview { name, uptime_s, listen, switches, counters, .. } = controller;
    let listens = if listen.is_empty() { String::new() } else { format!(", listens on {}", listen.join(", ")) };
    let count = counted(switches.len(), "switch", "switches");
    let mut text = format!("controller {name}, up {}, {count}{listens}\n", duration(*uptime_s));
    let _ = writeln!(text, "\n{}", totals(counters));
    for (what, count) in losses(counters).into_iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(text, "{what}: {count}");
    }
    if !switches.is_empty() {
        let _ = writeln!(text, "\n{}\n\n{}", switch_table(switches), class_table(switches));
    }
    let _ = writeln!(text, "\n{}", thread_table(&controller.threads));
    let _ = writeln!(text, "\n{}", application_table(&controller.applications));
    match controller.links.as_deref() {
        None => {}
        Some([]) => text += "\nno links found\n",
        Some(links) => _ = writeln!(text, "\n{}", link_table(links)),
    }
    text
}

fn switch_table(switches: &[SwitchStatus]) -> ReportTable {
    let header = ["switch", "address", "TLS", "OpenFlow", "role", "up", "auxiliary", "thread"];
    let mut rows = ReportTable::new(header).numbers(5..6).numbers(7..8);
    for switch in switches {
        let auxiliary: Vec<_> = switch.auxiliary.iter().map(|connection| connection.number.to_string()).collect();
        rows.row([
            dpid(switch.dpid),
            switch.peer.clone(),
            if switch.tls { "yes" } else { "no" }.to_owned(),
            switch.version.name().to_owned(),
            switch.role.clone(),
            duration(switch.up_s),
            if auxiliary.is_empty() { "-".to_owned() } else { auxiliary.join(" ") },
            switch.thread.to_string(),
        ]);
    }
    rows
}

/// Table of the classes of which each switch has sent messages.
fn class_table(switches: &[SwitchStatus]) -> ReportTable {
    let header =
        ["switch", "class", "received", "handled", "answered", "waiting", "bytes", "dropped: load", "port down"];
    let mut rows = ReportTable::new(header).keys(2).groups([7]).numbers(2..9);
    for switch in switches {
        for class in switch.classes.iter().filter(|class| class.received > 0) {
            let ClassStatus { received, waiting, waiting_bytes, dropped_overload, .. } = class;
            rows.row([
                dpid(switch.dpid),
                class_name(class.class),
                received.to_string(),
                class.handled.to_string(),
                class.answered.to_string(),
                waiting.to_string(),
                ByteSize(*waiting_bytes as u64).to_string(),
                dropped_overload.to_string(),
                class.dropped_port_down.to_string(),
            ]);
        }
    }
    rows
}

fn thread_table(threads: &[ThreadStatus]) -> ReportTable {
    let header = ["thread", "switches", "connections", "busy, last second", "since start", "turns"];
    let mut rows = ReportTable::new(header).numbers(0..6);
    for thread in threads {
        rows.row([
            thread.thread.to_string(),
            thread.switches.to_string(),
            thread.connections.to_string(),
            percent(thread.busy),
            percent(thread.busy_since_start),
            thread.turns.to_string(),
        ]);
    }
    rows
}

/// Table of the applications in their order, with the counters that are not zero.
fn application_table(applications: &[ApplicationStatus]) -> ReportTable {
    let mut rows = ReportTable::new(["application", "counters"]);
    for application in applications {
        let counters = application.counters.iter().filter(|(_, count)| **count > 0);
        let counters: Vec<_> = counters.map(|(name, count)| format!("{name} {count}")).collect();
        rows.row([application.name.clone(), if counters.is_empty() { "-".to_owned() } else { counters.join(", ") }]);
    }
    rows
}

fn link_table(links: &[LinkStatus]) -> ReportTable {
    let header = ["link from", "port", "to", "port", "delay", "heard before", "state"];
    let mut rows = ReportTable::new(header).keys(4).numbers(4..6);
    for link in links {
        rows.row([
            dpid(link.from),
            link.from_port.to_string(),
            dpid(link.to),
            link.to_port.to_string(),
            link.delay_us.map_or_else(|| "-".to_owned(), delay),
            duration(link.heard_s),
            match (link.blocked, link.damped) {
                _ if link.down => "a port is down",
                (true, false) => "blocked, breaks a loop",
                (true, true) => "blocked, goes down often",
                (false, false) => "in use",
                (false, true) => "in use, goes down often",
            }
            .to_owned(),
        ]);
    }
    rows
}

/// Converts the state to CSV. Datapath ids are numbers, as in JSON.
pub(super) fn csv(controller: &Value) -> String {
    let rows = |kind, columns, rows| CsvRows { kind, columns, rows };
    let switches = list(&controller["switches"]);
    let classes = switches.iter().flat_map(|switch| {
        list(&switch["classes"]).into_iter().map(|mut class| {
            class["dpid"] = switch["dpid"].clone();
            class
        })
    });
    let numbered = |switch: &Value| {
        let mut row = switch.clone();
        row["auxiliary"] = list(&switch["auxiliary"]).iter().map(|connection| connection["number"].clone()).collect();
        row
    };
    let counters = |counters: &Value| {
        let counters = counters.as_object().cloned().unwrap_or_default();
        counters.into_iter().map(|(name, count)| json!({"counter": name, "count": count})).collect::<Vec<_>>()
    };
    let of_application = |application: &Value| {
        let named = counters(&application["counters"]).into_iter().map(|mut row| {
            row["application"] = application["name"].clone();
            row
        });
        named.collect::<Vec<_>>()
    };
    kinds(&[
        rows("switch", SWITCHES, switches.iter().map(numbered).collect()),
        rows("class", CLASSES, classes.collect()),
        rows("thread", THREADS, list(&controller["threads"])),
        rows("application", APPLICATIONS, list(&controller["applications"]).iter().flat_map(of_application).collect()),
        rows("link", LINKS, list(&controller["links"])),
        rows("total", TOTALS, counters(&controller["counters"])),
    ])
}

fn dpid(dpid: u64) -> String {
    format!("{dpid:016x}")
}

fn class_name(class: MessageClass) -> String {
    format!("{class:?}").to_lowercase()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Formats a time with one digit behind the point, in a unit that leaves few digits in front of it.
pub(in crate::commands) fn delay(us: f64) -> String {
    match us {
        ..1.0 => "< 1 us".to_owned(),
        ..1000.0 => format!("{us:.0} us"),
        _ => format!("{:.2} ms", us / 1000.0),
    }
}

fn duration(seconds: f64) -> String {
    let units = [("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 172_800.0)];
    let (unit, factor, _) = units.into_iter().find(|(_, _, most)| seconds < *most).unwrap_or(("d", 86_400.0, 0.0));
    format!("{:.1} {unit}", seconds / factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_controller::hub::ControllerCounters;
    use weir_controller::status::AuxiliaryStatus;
    use weir_openflow::Version;
    use weir_openflow::model::PortNo;
    use weir_terminal::table::MAX_WIDTH;

    fn busy() -> ControllerOverview {
        let class = |class, received| ClassStatus {
            class,
            received,
            waiting: 32_768,
            waiting_bytes: 16 << 20,
            dropped_overload: 12_345_678_901,
            dropped_port_down: 17,
            handled: received / 2,
            answered: received / 2,
        };
        let switch = |dpid| SwitchStatus {
            dpid,
            peer: "ssl:[2001:db8:1234:5678:9abc:def0:1234:5678]:51970".to_owned(),
            tls: true,
            version: Version::V13,
            role: "master".to_owned(),
            up_s: 172_799.0,
            thread: 255,
            auxiliary: vec![AuxiliaryStatus { number: 7, peer: "ssl:x".to_owned() }],
            classes: vec![class(MessageClass::Control, 12_345_678_901), class(MessageClass::Statistics, 0)],
        };
        let link = LinkStatus {
            from: 1,
            from_port: PortNo(2),
            to: u64::MAX,
            to_port: PortNo(8191),
            heard_s: 1.26,
            delay_us: Some(12.3),
            blocked: true,
            down: false,
            damped: false,
        };
        ControllerOverview {
            name: "weir".to_owned(),
            uptime_s: 1.0,
            listen: vec!["tcp:127.0.0.1:6653".to_owned()],
            switches: vec![switch(1), switch(u64::MAX)],
            threads: vec![ThreadStatus {
                thread: 0,
                switches: 2,
                connections: 3,
                busy: 0.123,
                busy_since_start: 1.0,
                turns: 12_345_678_901,
            }],
            applications: vec![
                ApplicationStatus::new("link discovery", [("discovery_sent", 9), ("discovery_forged", 0)]),
                ApplicationStatus::new("learning switch", []),
            ],
            links: Some(vec![link]),
            counters: ControllerCounters { dropped_full: 3, ..ControllerCounters::default() },
        }
    }

    #[test]
    fn everything_is_shown_within_the_width_of_a_terminal() {
        let text = text(&busy());
        assert!(text.lines().all(|line| line.chars().count() <= MAX_WIDTH), "{text}");
        for wanted in [
            "controller weir, up 1.0 s, 2 switches, listens on tcp:127.0.0.1:6653\n",
            "\nnot sent, switch does not read: 3\n",
            "discovery_sent 9",
            "blocked, breaks a loop",
            "12 us",
            "48.0 h",
            "12.3 %",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert!(!text.contains("statistics"), "no message of this class: {text}");
        assert_eq!([0.0, 1.0, 999.4, 2020.0].map(delay), ["< 1 us", "1 us", "999 us", "2.02 ms"]);
        let idle = super::text(&ControllerOverview { links: Some(Vec::new()), ..ControllerOverview::default() });
        assert!(idle.contains("0 switches\n") && idle.ends_with("\nno links found\n"), "{idle}");
    }

    #[test]
    fn tables_are_csv_with_the_names_of_json() {
        let status = json!(busy());
        let csv = csv(&status);
        let cells = |kind: &str| -> Vec<std::collections::BTreeMap<&str, &str>> {
            let columns: Vec<&str> = csv.lines().next().unwrap_or_default().split(',').collect();
            let lines = csv.lines().filter(|line| line.starts_with(&format!("{kind},")));
            lines.map(|line| columns.iter().copied().zip(line.split(',')).collect()).collect()
        };
        let switch = &cells("switch")[1];
        assert_eq!((switch["dpid"], switch["auxiliary"]), ("18446744073709551615", "7"));
        let class = &cells("class")[0];
        assert_eq!((class["dpid"], class["class"], class["waiting"]), ("1", "control", "32768"));
        assert_eq!((cells("class").len(), cells("thread")[0]["busy"]), (4, "0.123"));
        let application = &cells("application")[1];
        assert_eq!((application["application"], application["counter"]), ("link discovery", "discovery_sent"));
        assert_eq!(cells("link")[0]["to_port"], "8191");
        assert!(cells("total").iter().any(|row| row["counter"] == "dropped_full" && row["count"] == "3"));
    }

    #[test]
    fn times_have_a_fitting_unit() {
        let shown = [0.04, 119.94, 120.0, 7200.0, 172_800.0].map(duration);
        assert_eq!(shown, ["0.0 s", "119.9 s", "2.0 min", "2.0 h", "2.0 d"]);
    }
}
