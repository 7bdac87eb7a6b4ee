//! Formats answers of a controller as tables.
use crate::commands::ctl::controller::delay;
use std::fmt::Write as _;
use weir_routing::SwitchPort;
use weir_routing::intents::{DelayKind, IntentKind, IntentState, IntentStatus, WhatIfAnswer};
use weir_routing::request::PathState;
use weir_routing::state::{HostState, NetworkLink, NetworkState, SwitchState};
use weir_terminal::prose::wrapped;
use weir_terminal::table::ReportTable;
use weir_units::{Bps, counted};

pub(super) fn network(network: &NetworkState) -> String {
    let NetworkState { switches: all, links: between, hosts: known, intents: wanted, .. } = network;
    let counts = [
        counted(all.len(), "switch", "switches"),
        counted(between.len(), "link", "links"),
        counted(known.len(), "host", "hosts"),
        counted(wanted.len(), "intent", "intents"),
    ];
    let mut text = format!("{}; the controller is up for {:.1} s\n", counts.join(", "), network.time_s);
    let parts = [
        (all.is_empty(), switches(all)),
        (between.is_empty(), links(between)),
        (known.is_empty(), hosts(known)),
        (wanted.is_empty(), intents(wanted)),
    ];
    for (_, part) in parts.into_iter().filter(|(is_empty, _)| !is_empty) {
        let _ = write!(text, "\n{part}");
    }
    text
}

pub(super) fn switches(switches: &[SwitchState]) -> String {
    if switches.is_empty() {
        return "no switch is connected\n".to_owned();
    }
    let mut rows = ReportTable::new(["switch", "ports", "up", "down"]).numbers(1..3);
    for switch in switches {
        let down: Vec<_> = switch.ports.iter().filter(|port| !port.up).collect();
        let shown: Vec<String> = down.iter().map(|port| format!("{} {}", port.number, port.name)).collect();
        let up = switch.ports.len() - down.len();
        rows.row([
            format!("{:016x}", switch.dpid),
            switch.ports.len().to_string(),
            up.to_string(),
            or_dash(shown.join(", ")),
        ]);
    }
    format!("{rows}\n")
}

pub(super) fn links(links: &[NetworkLink]) -> String {
    if links.is_empty() {
        return "no link between switches is known\n".to_owned();
    }
    let header = ["link from", "to", "delay", "load", "load back", "reserved", "reserved back", "state"];
    let mut rows = ReportTable::new(header).keys(2).numbers(2..7);
    for link in links {
        let load = |direction: usize| link.load_bps.and_then(|loads| loads.get(direction).copied()).map(rate);
        let reserved = |direction: usize| {
            link.reserved_bps.and_then(|all| all.get(direction).copied()).map(|bps| rate(as_f64(bps)))
        };
        let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        rows.row([
            link.from.to_string(),
            link.to.to_string(),
            known(link.delay_us.map(delay)),
            known(load(0)),
            known(load(1)),
            known(reserved(0)),
            known(reserved(1)),
            state_of_link(link).to_owned(),
        ]);
    }
    format!("{rows}\n")
}

/// Returns the state of a link in words.
fn state_of_link(link: &NetworkLink) -> &'static str {
    match (link.indirect, link.blocked, link.damped) {
        (true, true, _) => "through others, not used",
        (true, false, _) => "up, through others",
        (false, _, true) => "goes down often",
        (false, _, false) => "up",
    }
}

pub(super) fn hosts(hosts: &[HostState]) -> String {
    if hosts.is_empty() {
        return "no host is known\n".to_owned();
    }
    let mut rows = ReportTable::new(["host", "at", "IP addresses", "name", "seen before"]).numbers(4..5);
    for host in hosts {
        let ips: Vec<_> = host.ips.iter().map(ToString::to_string).collect();
        rows.row([
            host.mac.to_string(),
            host.at.to_string(),
            or_dash(ips.join(", ")),
            host.name.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{:.1} s", host.seen_s),
        ]);
    }
    format!("{rows}\n")
}

pub(super) fn paths(paths: &[PathState]) -> String {
    let mut rows = ReportTable::new(["way", "ports", "delay", "free"]).numbers(2..4);
    for (number, path) in (1..).zip(paths) {
        rows.row([
            number.to_string(),
            way(path),
            path.delay_us.map_or_else(|| "-".to_owned(), delay),
            path.free_bps.map_or_else(|| "-".to_owned(), |bps| rate(as_f64(bps))),
        ]);
    }
    if rows.is_empty() { "no way\n".to_owned() } else { format!("{rows}\n") }
}

/// Returns the ports of a way, those of a switch joined.
fn way(path: &PathState) -> String {
    let mut text = String::new();
    for (place, port) in path.ports.iter().enumerate() {
        let SwitchPort { dpid, port: number } = port;
        let is_same = place.checked_sub(1).and_then(|before| path.ports.get(before)).is_some_and(|b| b.dpid == *dpid);
        let _ = match (place, is_same) {
            (0, _) => write!(text, "{dpid:x}:{number}"),
            (_, true) => write!(text, "-{number}"),
            (_, false) => write!(text, ", {dpid:x}:{number}"),
        };
    }
    text
}

pub(super) fn intents(intents: &[IntentStatus]) -> String {
    if intents.is_empty() {
        return "no intents\n".to_owned();
    }
    let mut rows = ReportTable::new(["intent", "kind", "from", "to", "conditions", "state", "reason"]);
    for status in intents {
        let intent = &status.intent;
        rows.row([
            intent.key.clone(),
            kind(intent.kind).to_owned(),
            intent.from.join(", "),
            intent.to.join(", "),
            or_dash(conditions(status)),
            state(status.state).to_owned(),
            or_dash(status.reason.clone()),
        ]);
    }
    format!("{rows}\n")
}

pub(super) fn intent(status: &IntentStatus) -> String {
    let IntentStatus { intent, reason, expected_delay_us, confirmed, .. } = status;
    let (from, to) = (intent.from.join(", "), intent.to.join(", "));
    let mut text = format!("intent {}: {}, {} from {from} to {to}", intent.key, state(status.state), kind(intent.kind));
    for part in [intent.traffic.clone(), conditions(status)].into_iter().filter(|part| !part.is_empty()) {
        let _ = write!(text, "; {part}");
    }
    text.push('\n');
    if !reason.is_empty() {
        let _ = writeln!(text, "reason: {reason}");
    }
    if let Some(expected) = expected_delay_us {
        let _ = writeln!(text, "expected delay: {}", delay(*expected));
    }
    let _ = writeln!(text, "confirmed: {}", counted(*confirmed, "packet", "packets"));
    let mut text = wrapped(&text);
    if !status.paths.is_empty() {
        let _ = write!(text, "\n{}", paths(&status.paths));
    }
    text
}

pub(super) fn effect(effect: &WhatIfAnswer) -> String {
    let WhatIfAnswer { intents: changed, cut_off, overloaded } = effect;
    if changed.is_empty() && cut_off.is_empty() && overloaded.is_empty() {
        return "no intent changes, all hosts are reached, no link is overloaded\n".to_owned();
    }
    let mut text = String::new();
    if !cut_off.is_empty() {
        let _ = writeln!(text, "hosts that not all others would reach: {}", cut_off.join(", "));
    }
    if !overloaded.is_empty() {
        let links: Vec<_> = overloaded.iter().map(SwitchPort::to_string).collect();
        let _ = writeln!(text, "links that would be overloaded: {}", links.join(", "));
    }
    text = wrapped(&text);
    if !changed.is_empty() {
        let _ = write!(text, "intents as they would be:\n{}", intents(changed));
    }
    text
}

/// Returns the conditions of an intent in words.
fn conditions(status: &IntentStatus) -> String {
    let asked = &status.intent.constraints;
    let mut all = Vec::new();
    all.extend(asked.bandwidth.map(|rate| rate.to_string()));
    all.extend(asked.delay.as_ref().map(|bound| match bound.kind {
        DelayKind::Percentile(percent) => format!("at most {} in {percent} %", bound.most),
        DelayKind::WorstCase => format!("at most {}", bound.most),
    }));
    all.extend((!asked.waypoints.is_empty()).then(|| format!("via {}", asked.waypoints.join(", "))));
    all.extend((!asked.avoid.is_empty()).then(|| format!("not {}", asked.avoid.join(", "))));
    all.extend((asked.priority > 0).then(|| format!("priority {}", asked.priority)));
    all.extend(asked.protected.then(|| "protected".to_owned()));
    all.join("; ")
}

fn kind(kind: IntentKind) -> &'static str {
    match kind {
        IntentKind::HostToHost => "host to host",
        IntentKind::PointToPoint => "point to point",
        IntentKind::ManyToOne => "many to one",
        IntentKind::OneToMany => "one to many",
    }
}

pub(in crate::commands) fn state(state: IntentState) -> &'static str {
    match state {
        IntentState::Submitted => "submitted",
        IntentState::Compiling => "compiling",
        IntentState::Installed => "installed",
        IntentState::Degraded => "degraded",
        IntentState::Failed => "failed",
        IntentState::Withdrawn => "withdrawn",
    }
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

fn as_f64(bps: u64) -> f64 {
    bps as f64
}

fn rate(bps: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let whole = bps.round() as u64;
    if whole == 0 { "0".to_owned() } else { format!("{:.1}", Bps(whole)) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weir_openflow::model::PortNo;
    use weir_packet::MacAddr;
    use weir_routing::intents::{DelayBound, IntentConstraints, IntentSpec};
    use weir_routing::state::NetworkPort;
    use weir_units::TimeSpan;

    fn at(dpid: u64, number: u32) -> SwitchPort {
        SwitchPort::new(dpid, PortNo(number))
    }

    pub(in crate::commands::net) fn an_intent() -> IntentStatus {
        let most = TimeSpan(std::time::Duration::from_millis(5));
        let constraints = IntentConstraints {
            bandwidth: Some(Bps(10_000_000)),
            delay: Some(DelayBound { most, kind: DelayKind::Percentile(99.0) }),
            waypoints: vec!["2".into()],
            protected: true,
            ..IntentConstraints::default()
        };
        let intent = IntentSpec {
            key: "web".into(),
            kind: IntentKind::HostToHost,
            from: vec!["10.0.0.1".into()],
            to: vec!["10.0.0.2".into()],
            traffic: "tcp,tp_dst=80".into(),
            constraints,
        };
        let path =
            PathState { ports: vec![at(1, 3), at(1, 1), at(2, 2), at(2, 3)], delay_us: Some(250.0), free_bps: None };
        IntentStatus {
            intent,
            state: IntentState::Degraded,
            reason: "there is no second way".into(),
            paths: vec![path],
            expected_delay_us: Some(1300.0),
            confirmed: 1,
        }
    }

    pub(in crate::commands::net) fn network() -> NetworkState {
        let port =
            |number: u32, up| NetworkPort { number: PortNo(number), name: format!("p{number}"), up, rate_kbps: 0 };
        let switch = |dpid| SwitchState { dpid, ports: vec![port(1, true), port(2, dpid == 2)] };
        NetworkState {
            time_s: 12.34,
            switches: vec![switch(1), switch(2)],
            links: vec![NetworkLink {
                delay_us: Some(250.0),
                load_bps: Some([9e8, 1e6]),
                reserved_bps: Some([10_000_000, 0]),
                ..NetworkLink::between(at(1, 1), at(2, 2))
            }],
            hosts: vec![HostState {
                mac: MacAddr([2, 0, 0, 0, 0, 1]),
                at: at(1, 3),
                ips: vec![[10, 0, 0, 1].into()],
                name: None,
                seen_s: 0.26,
            }],
            intents: vec![an_intent()],
            counters: BTreeMap::from([("packet_ins".to_owned(), 7)]),
            ..NetworkState::default()
        }
    }

    #[test]
    fn a_network_is_shown_within_100_columns() {
        let text = super::network(&network());
        assert!(text.starts_with("2 switches, 1 link, 1 host, 1 intent; the controller is up for 12.3 s\n"), "{text}");
        assert!(text.contains("0000000000000001") && text.contains("2 p2"), "{text}");
        assert!(text.contains("900.0Mbit/s") && text.contains("250 us"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert_eq!(super::network(&NetworkState::default()).lines().count(), 1);
    }

    #[test]
    fn links_through_switches_of_others_are_told() {
        let link = |blocked| NetworkLink { indirect: true, blocked, ..NetworkLink::between(at(1, 1), at(2, 2)) };
        let text = links(&[link(false), link(true)]);
        let ends: Vec<&str> = text.lines().skip(1).collect();
        assert!(ends[0].ends_with("up, through others") && ends[1].ends_with("through others, not used"), "{text}");
    }

    #[test]
    fn an_intent_is_shown_with_its_ways() {
        let text = intent(&an_intent());
        assert!(
            text.contains("intent web: degraded, host to host from 10.0.0.1 to 10.0.0.2; tcp,tp_dst=80; "),
            "{text}"
        );
        assert!(text.contains("at most 5ms\n  in 99 %; via 2; protected\n"), "{text}");
        assert!(
            text.contains("reason: there is no second way\nexpected delay: 1.30 ms\nconfirmed: 1 packet\n"),
            "{text}"
        );
        assert!(text.contains("1:3-1, 2:2-3"), "{text}");
    }

    #[test]
    fn an_effect_is_said() {
        let none = effect(&WhatIfAnswer::default());
        assert!(none.starts_with("no intent changes"), "{none}");
        let cut_off = vec!["02:00:00:00:00:03".to_owned()];
        let told = effect(&WhatIfAnswer { intents: vec![an_intent()], cut_off, overloaded: vec![at(2, 1)] });
        assert!(told.contains("would reach: 02:00:00:00:00:03") && told.contains("overloaded: 2:1"), "{told}");
        assert!(told.contains("intents as they would be:\n intent"), "{told}");
    }
}
