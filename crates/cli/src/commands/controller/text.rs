//! Lines that `weir controller` prints: when it is ready, for each event of a switch, and the summary.
use super::ControllerArgs;
use std::fmt::Write as _;
use std::path::Path;
use weir_controller::hub::{ControllerCounters, role_name};
use weir_controller::{ControllerSnapshot, SwitchEvent};
use weir_scenario::EmbeddedApp;

/// Last object of `--json`.
#[derive(serde::Serialize)]
struct Ended<'a> {
    event: &'static str,
    #[serde(flatten)]
    end: &'a ControllerSnapshot,
}

/// Places at which a controller can be reached.
pub(in crate::commands) struct ReadyController<'a> {
    pub(super) name: &'a str,
    /// Addresses for switches.
    pub(super) listen: Vec<String>,
    /// Control socket.
    pub(super) control: &'a Path,
    /// Address of its metrics.
    pub(super) metrics: Option<String>,
    /// Addresses of the network's interface.
    pub(super) interface: &'a [String],
}

/// Returns the line that says where the controller can be reached, and what it does.
pub(in crate::commands) fn ready_line(args: &ControllerArgs, ready: &ReadyController<'_>) -> String {
    let ReadyController { name, listen, control, metrics, interface } = ready;
    let control = control.display().to_string();
    if args.json {
        let mut line = serde_json::json!({
            "event": "ready", "listen": listen, "name": name, "control": control,
            "discover_links": args.discover_links,
        });
        if let Some(metrics) = metrics {
            line["metrics"] = metrics.as_str().into();
        }
        if !interface.is_empty() {
            line["api"] = (*interface).into();
        }
        return line.to_string();
    }
    let metrics = metrics.as_ref().map(|url| format!("; metrics at {url}")).unwrap_or_default();
    let interface =
        if interface.is_empty() { String::new() } else { format!("; interface at {}", interface.join(", ")) };
    let versions: Vec<_> = args.versions.iter().map(|version| version.name()).collect();
    let discovery = if args.discover_links { "; it discovers links" } else { "" };
    let what = match args.app {
        EmbeddedApp::Learning => "learning switch",
        EmbeddedApp::Forwarding => "controller of a network",
    };
    let (versions, listen) = (versions.join(", "), listen.join(", "));
    format!("{what} for OpenFlow {versions} listens on {listen}{discovery}; control={control}{metrics}{interface}")
}

/// Returns the line of an event.
pub(in crate::commands) fn event_line(event: &SwitchEvent, json: bool) -> String {
    if json {
        return serde_json::to_string(event).unwrap_or_else(|error| error.to_string());
    }
    match event {
        SwitchEvent::Up(info) => {
            format!("switch {:016x} up, OpenFlow {}, from {}", info.dpid, info.version.name(), info.peer)
        }
        SwitchEvent::Role { switch, role, generation_id } => {
            let generation = generation_id.map(|id| format!(", generation {id}")).unwrap_or_default();
            format!("switch {:016x}: this controller is {}{generation}", switch.dpid, role_name(*role))
        }
        SwitchEvent::Auxiliary { switch, number } => {
            format!("switch {:016x}: auxiliary connection {number}", switch.dpid)
        }
        SwitchEvent::Down { switch, reason } => format!("switch {:016x} down: {reason}", switch.dpid),
        SwitchEvent::Refused { peer, reason } => format!("connection from {peer} refused: {reason}"),
    }
}

/// Returns the summary at the end.
pub(in crate::commands) fn summary(end: &ControllerSnapshot, json: bool) -> String {
    if json {
        return serde_json::to_string(&Ended { event: "ended", end }).unwrap_or_else(|error| error.to_string());
    }
    let mut text = totals(&end.counters);
    let counted = end.app.iter().map(|(name, count)| (*name, *count));
    for (name, count) in losses(&end.counters).into_iter().chain(counted).filter(|(_, count)| *count > 0) {
        let _ = write!(text, "\n  {name}: {count}");
    }
    for load in end.loads.iter().filter(|load| !load.dropped.is_empty()) {
        let each = load.dropped.iter().map(|drops| format!("{} {:?} ({:?})", drops.count, drops.class, drops.reason));
        let each: Vec<_> = each.collect();
        let _ = write!(text, "\n  switch {:016x}: packet-ins dropped: {}", load.dpid, each.join(", ").to_lowercase());
    }
    text
}

/// Returns the counts over all switches in a line.
pub(in crate::commands) fn totals(c: &ControllerCounters) -> String {
    format!(
        "connections: {} ({} refused), packet-ins: {}, flow-mods: {}, packet-outs: {}, errors from switches: {}",
        c.connections, c.refused, c.packet_ins, c.flow_mods, c.packet_outs, c.errors
    )
}

/// Returns the counts of what was dropped or ended, over all switches.
pub(in crate::commands) fn losses(c: &ControllerCounters) -> [(&'static str, u64); 6] {
    [
        ("connections ended that did not introduce themselves, for others", c.half_open_ended),
        ("packet-ins dropped, switch sends more than is handled", c.dropped_overload),
        ("packet-ins dropped, port went down", c.dropped_port_down),
        ("not sent, switch does not read", c.dropped_full),
        ("not sent, switch gone", c.dropped_gone),
        ("not sent, not in its OpenFlow version", c.dropped_unencodable),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        args: ControllerArgs,
    }

    #[test]
    fn every_line_of_json_is_an_event() {
        let summary = summary(&ControllerSnapshot::default(), true);
        assert!(summary.starts_with("{\"event\":\"ended\",") && summary.contains("\"counters\":{"), "{summary}");
    }

    #[test]
    fn the_ready_line_says_that_links_are_discovered() {
        let line = |flags: &str| {
            let args = Flags::parse_from(format!("x{flags}").split(' ')).args;
            let listen = vec!["tcp:127.0.0.1:6653".to_owned()];
            let control = Path::new("/run/weir/c.sock");
            ready_line(&args, &ReadyController { name: "c", listen, control, metrics: None, interface: &[] })
        };
        assert_eq!(
            line(""),
            "learning switch for OpenFlow 1.3, 1.0 listens on tcp:127.0.0.1:6653; control=/run/weir/c.sock"
        );
        assert!(line(" --discover-links").contains(" listens on tcp:127.0.0.1:6653; it discovers links; control="));
        assert!(line(" --discover-links --json").contains("\"discover_links\":true"));
    }
}
