//! Names of flows and devices that are equal in all answers.
use weir_scenario::{Scenario, TrafficItem, TrafficKind};

/// Returns distinct names of the scenario's items of traffic, in their order.
pub fn flow_names(scenario: &Scenario) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for item in &scenario.traffic {
        let plain = flow_name(scenario, item);
        let repeats = (2..).map(|number| format!("{plain} ({number})"));
        let free = std::iter::once(plain.clone()).chain(repeats).find(|name| !names.contains(name));
        names.push(free.unwrap_or(plain));
    }
    names
}

fn flow_name(scenario: &Scenario, item: &TrafficItem) -> String {
    let kind = match item.kind {
        TrafficKind::Ping { .. } => "ping",
        TrafficKind::Tcp { .. } => "tcp",
        TrafficKind::Udp { .. } => "udp",
    };
    let [from, to] = [item.from, item.to].map(|host| scenario.hosts[host].name.as_str());
    format!("{kind} {from} > {to}{}", if item.address.is_ipv6() { " ipv6" } else { "" })
}

/// Returns the name of all packets at a switch, from arrival to departure: the subject of models of a switch and its
/// controller.
pub fn at_switch(switch: &str) -> String {
    format!("all packets at {switch}")
}

/// Kind of the delays of [`at_switch`].
pub const AT_SWITCH: &str = "at the switch";

/// Returns the common name of a device's part, from its name in simulated stations or in formulas.
pub fn device_name(raw: &str) -> String {
    if let Some((from, to)) = raw.split_once(" -> ") {
        return format!("link {from} > {to}");
    }
    let ends = [
        (" data", " data path"),
        (" control", " control path"),
        (" agent", " agents"),
        (" packet-in", " packet-in agent"),
        (" packet-out", " packet-out agent"),
    ];
    let known = ends.iter().find_map(|(short, long)| raw.strip_suffix(short).map(|name| format!("{name}{long}")));
    // Agents of formulas already have the full name, but it ends like the name of the shared agent of stations.
    match known {
        Some(_) if raw.ends_with("packet-in agent") || raw.ends_with("packet-out agent") => raw.to_owned(),
        Some(name) => name,
        None => raw.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_a_name_of_its_own() {
        let hosts: String = ["a", "b"]
            .map(|name| {
                format!(
                    "[[host]]\nname = \"{name}\"\nswitch = \"s1\"\nip = \"10.0.0.{}/24\"\n",
                    name.len() + usize::from(name == "b")
                )
            })
            .concat();
        let item = "[[traffic]]\nkind = \"ping\"\nfrom = \"a\"\nto = \"b\"\n";
        let text = format!("[[switch]]\nname = \"s1\"\n{hosts}{item}{item}{}{item}", item.replace("ping", "tcp"));
        let scenario = Scenario::parse(&text, "made up").unwrap();
        let expected = ["ping a > b", "ping a > b (2)", "tcp a > b", "ping a > b (3)"];
        assert_eq!(flow_names(&scenario), expected);
    }

    #[test]
    fn parts_have_one_name_whoever_names_them() {
        for (raw, expected) in [
            ("s1 data", "s1 data path"),
            ("s1 data path", "s1 data path"),
            ("s1 control", "s1 control path"),
            ("s1 agent", "s1 agents"),
            ("s1 agents", "s1 agents"),
            ("s1 packet-in", "s1 packet-in agent"),
            ("s1 packet-out agent", "s1 packet-out agent"),
            ("h1 -> s1", "link h1 > s1"),
            ("link h1 > s1", "link h1 > s1"),
            ("controller", "controller"),
        ] {
            assert_eq!(device_name(raw), expected);
        }
    }
}
