//! Checks intents as they are asked for, and reads their parts.
use super::config::{FIRST_PRIORITY, MAX_AVOIDED, MAX_ENDS, MAX_KEY_BYTES, MAX_PRECEDENCE, MAX_WAYPOINTS};
use super::ends::EndName;
use super::error::IntentError;
use super::spec::{DelayBound, DelayKind, IntentConstraints, IntentKind, IntentSpec};
use super::traffic;
use crate::map::{SwitchPort, parse_dpid};
use std::collections::BTreeSet;
use weir_openflow::model::Match;
use weir_packet::Field;

/// An intent with all parts read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) kind: IntentKind,
    pub(super) from: Vec<EndName>,
    pub(super) to: Vec<EndName>,
    pub(super) traffic: Match,
    /// Bandwidth in bit/s; 0 for none.
    pub(super) bandwidth: u64,
    pub(super) delay: Option<DelayBound>,
    pub(super) waypoints: Vec<u64>,
    pub(super) avoided_switches: BTreeSet<u64>,
    pub(super) avoided_ports: BTreeSet<SwitchPort>,
    pub(super) precedence: u16,
    pub(super) protected: bool,
}

impl Wanted {
    /// Reads an intent.
    ///
    /// # Errors
    /// The first part that is wrong: what was found, and what was expected.
    pub(super) fn read(spec: &IntentSpec) -> Result<Wanted, IntentError> {
        check_key(&spec.key)?;
        let constraints = &spec.constraints;
        let (from, to) = (ends("from", &spec.from)?, ends("to", &spec.to)?);
        check_numbers(spec.kind, from.len(), to.len())?;
        check_hosts(spec.kind, &from, &to)?;
        let traffic = traffic::parse(&spec.traffic)?;
        check_traffic(spec.kind, &from, &to, &traffic)?;
        check_constraints(spec.kind, constraints)?;
        let (avoided_switches, avoided_ports) = avoided(&constraints.avoid)?;
        let waypoints = waypoints(&constraints.waypoints)?;
        if let Some(both) = waypoints.iter().find(|dpid| avoided_switches.contains(dpid)) {
            let found = format!("switch {both:x}, which is a waypoint, too");
            return Err(IntentError::invalid("constraints.avoid", found, "other switches than waypoints"));
        }
        Ok(Wanted {
            kind: spec.kind,
            from,
            to,
            traffic,
            bandwidth: constraints.bandwidth.map_or(0, |rate| rate.0),
            delay: constraints.delay.clone(),
            waypoints,
            avoided_switches,
            avoided_ports,
            precedence: constraints.priority,
            protected: constraints.protected,
        })
    }

    /// Returns the priority of the entries. That of entries that catch confirmation packets is higher by one.
    pub(super) const fn priority(&self) -> u16 {
        FIRST_PRIORITY + 2 * self.precedence
    }
}

fn check_key(key: &str) -> Result<(), IntentError> {
    let expected = format!("1 to {MAX_KEY_BYTES} bytes without control characters");
    if key.is_empty() || key.len() > MAX_KEY_BYTES || key.chars().any(char::is_control) {
        let shown: String = key.chars().filter(|letter| !letter.is_control()).take(40).collect();
        return Err(IntentError::invalid("key", format!("`{shown}` ({} bytes)", key.len()), expected));
    }
    Ok(())
}

fn ends(key: &'static str, texts: &[String]) -> Result<Vec<EndName>, IntentError> {
    if texts.is_empty() || texts.len() > MAX_ENDS {
        return Err(IntentError::invalid(key, format!("{} ends", texts.len()), format!("1 to {MAX_ENDS} ends")));
    }
    let mut ends = Vec::new();
    for text in texts {
        let end = EndName::parse(key, text)?;
        if ends.contains(&end) {
            return Err(IntentError::invalid(key, format!("{end} twice"), "each end once"));
        }
        ends.push(end);
    }
    Ok(ends)
}

fn check_numbers(kind: IntentKind, from: usize, to: usize) -> Result<(), IntentError> {
    let one = |key, found: usize| {
        let error = || IntentError::invalid(key, format!("{found} ends"), format!("one end for {}", name(kind)));
        if found == 1 { Ok(()) } else { Err(error()) }
    };
    if kind != IntentKind::ManyToOne {
        one("from", from)?;
    }
    if kind != IntentKind::OneToMany {
        one("to", to)?;
    }
    Ok(())
}

fn check_hosts(kind: IntentKind, from: &[EndName], to: &[EndName]) -> Result<(), IntentError> {
    if let Some(both) = from.iter().find(|end| to.contains(end)) {
        return Err(IntentError::invalid("to", format!("{both}, which is a source, too"), "another end"));
    }
    for (key, ends) in [("from", from), ("to", to)] {
        let port = ends.iter().find(|end| kind == IntentKind::HostToHost && end.is_port());
        if let Some(port) = port {
            let expected = "a host; for ports there is point-to-point";
            return Err(IntentError::invalid(key, format!("the port {port}"), expected));
        }
    }
    Ok(())
}

/// Checks that the traffic says nothing about what the ends say, or about what weir changes on the way.
fn check_traffic(kind: IntentKind, from: &[EndName], to: &[EndName], traffic: &Match) -> Result<(), IntentError> {
    let refuse = |field: Field, why: &str| {
        let there = traffic.get(field).is_some();
        let error = || IntentError::invalid("traffic", format!("`{}`", field.name()), why);
        if there { Err(error()) } else { Ok(()) }
    };
    let hosts = |ends: &[EndName]| ends.iter().any(|end| !end.is_port());
    if hosts(from) {
        refuse(Field::EthSrc, "none, because `from` is a host")?;
    }
    if hosts(to) && kind != IntentKind::OneToMany {
        refuse(Field::EthDst, "none, because `to` is a host")?;
    }
    if from.iter().any(EndName::is_port) {
        for field in [Field::VlanVid, Field::VlanPcp, Field::VlanTci] {
            refuse(field, "none, because packets between ports cross the network in a VLAN of the intent's own")?;
        }
    }
    Ok(())
}

fn check_constraints(kind: IntentKind, constraints: &IntentConstraints) -> Result<(), IntentError> {
    if constraints.priority > MAX_PRECEDENCE {
        let found = constraints.priority.to_string();
        return Err(IntentError::invalid("constraints.priority", found, format!("0 to {MAX_PRECEDENCE}")));
    }
    if let Some(DelayBound { kind: DelayKind::Percentile(percent), .. }) = constraints.delay
        && !(percent > 0.0 && percent <= 99.9999)
    {
        let expected = "a percentile above 0 and at most 99.9999";
        return Err(IntentError::invalid("constraints.delay", format!("{percent}"), expected));
    }
    if constraints.protected && matches!(kind, IntentKind::ManyToOne | IntentKind::OneToMany) {
        let expected = "protection only for host-to-host and point-to-point";
        return Err(IntentError::invalid("constraints.protected", name(kind), expected));
    }
    Ok(())
}

fn waypoints(texts: &[String]) -> Result<Vec<u64>, IntentError> {
    const KEY: &str = "constraints.waypoints";
    if texts.len() > MAX_WAYPOINTS {
        let expected = format!("at most {MAX_WAYPOINTS}");
        return Err(IntentError::invalid(KEY, format!("{} switches", texts.len()), expected));
    }
    let read = |text: &String| {
        let error = || IntentError::invalid(KEY, format!("`{text}`"), "a datapath id in hexadecimal");
        parse_dpid(text).ok_or_else(error)
    };
    let mut dpids = texts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    dpids.dedup();
    Ok(dpids)
}

fn avoided(texts: &[String]) -> Result<(BTreeSet<u64>, BTreeSet<SwitchPort>), IntentError> {
    const KEY: &str = "constraints.avoid";
    if texts.len() > MAX_AVOIDED {
        let found = format!("{} places", texts.len());
        return Err(IntentError::invalid(KEY, found, format!("at most {MAX_AVOIDED}")));
    }
    let (mut switches, mut ports) = (BTreeSet::new(), BTreeSet::new());
    for text in texts {
        if let Some(dpid) = parse_dpid(text) {
            switches.insert(dpid);
        } else if let Ok(port) = text.parse() {
            ports.insert(port);
        } else {
            let expected = "a datapath id in hexadecimal or a port (DPID:PORT)";
            return Err(IntentError::invalid(KEY, format!("`{text}`"), expected));
        }
    }
    Ok((switches, ports))
}

/// Returns the name of a form, as in JSON.
const fn name(kind: IntentKind) -> &'static str {
    match kind {
        IntentKind::HostToHost => "host-to-host",
        IntentKind::PointToPoint => "point-to-point",
        IntentKind::ManyToOne => "many-to-one",
        IntentKind::OneToMany => "one-to-many",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(json: &str) -> IntentSpec {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn wrong_intents_are_refused_by_part_with_found_and_expected() {
        let cases = [
            (r#"{"key":"","kind":"host-to-host","from":["a"],"to":["b"]}"#, "`key`: found"),
            (r#"{"key":"k","kind":"host-to-host","from":["1:1"],"to":["b"]}"#, "`from`: found the port 1:1"),
            (r#"{"key":"k","kind":"point-to-point","from":["1:1","1:2"],"to":["2:1"]}"#, "`from`: found 2 ends"),
            (r#"{"key":"k","kind":"many-to-one","from":["1:1","1:1"],"to":["2:1"]}"#, "`from`: found 1:1 twice"),
            (r#"{"key":"k","kind":"one-to-many","from":["1:1"],"to":[]}"#, "`to`: found 0 ends"),
            (r#"{"key":"k","kind":"point-to-point","from":["1:1"],"to":["1:1"]}"#, "`to`: found 1:1, which is a"),
            (
                r#"{"key":"k","kind":"host-to-host","from":["a"],"to":["b"],"traffic":"dl_src=02:00:00:00:00:01"}"#,
                "eth_src",
            ),
            (r#"{"key":"k","kind":"point-to-point","from":["1:1"],"to":["2:1"],"traffic":"dl_vlan=7"}"#, "vlan_vid"),
            (r#"{"key":"k","kind":"host-to-host","from":["a"],"to":["b"],"constraints":{"priority":1001}}"#, "1001"),
            (
                r#"{"key":"k","kind":"many-to-one","from":["a"],"to":["b"],"constraints":{"protected":true}}"#,
                "protected",
            ),
            (r#"{"key":"k","kind":"host-to-host","from":["a"],"to":["b"],"constraints":{"waypoints":["x"]}}"#, "`x`"),
            (r#"{"key":"k","kind":"host-to-host","from":["a"],"to":["b"],"constraints":{"avoid":["1:x"]}}"#, "`1:x`"),
            (
                r#"{"key":"k","kind":"host-to-host","from":["a"],"to":["b"],"constraints":{"avoid":["1"],"waypoints":["1"]}}"#,
                "waypoint",
            ),
            (
                r#"{"key":"k","kind":"host-to-host","from":["a"],"to":["b"],"constraints":{"delay":{"most":"1ms","percentile":100}}}"#,
                "constraints.delay",
            ),
        ];
        for (json, part) in cases {
            let error = Wanted::read(&spec(json)).unwrap_err();
            assert!(error.to_string().contains(part) && error.to_string().contains("expected"), "{json}: {error}");
            assert_eq!(error.kind(), crate::request::ErrorKind::Invalid);
        }
    }

    #[test]
    fn precedence_gives_priorities_that_leave_room_for_confirmation() {
        let read = |priority: u16| {
            let json = r#"{"key":"k","kind":"host-to-host","from":["a"],"to":["b"]}"#;
            let mut spec = spec(json);
            spec.constraints.priority = priority;
            Wanted::read(&spec).unwrap().priority()
        };
        assert_eq!((read(0), read(1), read(1000)), (2000, 2002, 4000));
    }
}
