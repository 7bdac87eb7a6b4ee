//! Names the interfaces and ports of hosts and links: names of a scenario may be longer than the kernel and OpenFlow
//! allow.
use crate::{Scenario, ScenarioHost};
use std::collections::HashMap;

/// Maximum length of an interface's name in bytes, as of the kernel and of ports in OpenFlow.
const MAX_INTERFACE_NAME: usize = 15;
/// Number of characters of a digest in base 36.
const DIGEST_CHARS: usize = 6;

/// Returns the name of an interface: `name` if it has at most 15 bytes, otherwise its beginning, `-` and a digest of
/// the whole name, such as `datacent-5uzp87`. Equal names have equal interface names in every run.
pub fn interface_name(name: &str) -> String {
    if name.len() <= MAX_INTERFACE_NAME {
        return name.to_owned();
    }
    let beginning: String = name.chars().take(MAX_INTERFACE_NAME - DIGEST_CHARS - 1).collect();
    format!("{beginning}-{}", digest(name))
}

/// Returns the name of the interface at which one node is joined to another.
pub fn link_interface_name(own: &str, other: &str) -> String {
    interface_name(&format!("{own}-{other}"))
}

/// Returns a digest of [`DIGEST_CHARS`] letters and digits: FNV-1a of 64 bits, in base 36.
fn digest(name: &str) -> String {
    let mut hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let digits = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut next = || {
        let digit = usize::try_from(hash % 36).map_or('0', |place| char::from(digits[place]));
        hash /= 36;
        digit
    };
    (0..DIGEST_CHARS).map(|_| next()).collect()
}

/// Checks that different hosts and links of a switch have different interface names.
///
/// # Errors
/// Two have the same one, which a digest makes possible, if unlikely: a message that names both.
pub(crate) fn check(scenario: &Scenario) -> Result<(), String> {
    let switch_name = |index: usize| scenario.switches[index].name.as_str();
    let host = |host: &ScenarioHost| (host.switch, host.name.clone());
    let links = scenario.links.iter().flat_map(|link| {
        let [one, two] = link.ends.map(|end| end.switch);
        [(one, two), (two, one)].map(|(own, other)| (own, format!("{}-{}", switch_name(own), switch_name(other))))
    });
    let mut taken: HashMap<(usize, String), String> = HashMap::new();
    for (switch, name) in scenario.hosts.iter().map(host).chain(links) {
        let interface = interface_name(&name);
        match taken.get(&(switch, interface.clone())) {
            Some(other) if *other != name && (name.len().max(other.len())) > MAX_INTERFACE_NAME => {
                let at = switch_name(switch);
                return Err(format!(
                    "names: the ports to {other} and {name} of switch {at} would both be called {interface}, expected \
                     other names, or names of at most 10 characters"
                ));
            }
            _ => drop(taken.insert((switch, interface), name)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_have_short_and_different_interfaces() {
        assert_eq!(interface_name("h1"), "h1");
        assert_eq!(interface_name("fifteen-letters"), "fifteen-letters");
        let names: Vec<String> = (0..2000).map(|number| interface_name(&format!("datacenter-host-{number}"))).collect();
        assert!(names.iter().all(|name| name.len() == 15 && name.starts_with("datacent-")), "{}", names[0]);
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        // Names are the same in every run and build: scripts may rely on them.
        assert_eq!(interface_name("datacenter-host-7"), "datacent-5uzp87");
        assert_eq!(link_interface_name("s1", "s2"), "s1-s2");
        assert_eq!(link_interface_name("frankfurt-core", "hannover-core").len(), 15);
    }

    #[test]
    fn a_scenario_has_long_names_and_a_controller_by_name() {
        let long = "a".repeat(63);
        let text =
            |name: &str, connect: &str| format!("[controller]\nconnect = '{connect}'\n[[switch]]\nname = '{name}'\n");
        let scenario = Scenario::parse(&text(&long, "tcp:controller.example:6653"), "net").unwrap();
        assert_eq!(scenario.switches[0].name, long);
        assert!(Scenario::parse(&text(&format!("{long}a"), "none"), "net").is_err());
        assert!(Scenario::parse(&text("s1", "tcp:10.0.0:6653"), "net").is_err());
    }
}
