//! Names the interfaces and ports of hosts and links: names of a scenario may be longer than the kernel and OpenFlow
//! allow.
use crate::{Scenario, ScenarioHost, ScenarioLink, ScenarioSwitch};
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

/// Returns for each link its place among the links of its two switches: 1, and 2, 3, ... for parallel links.
fn parallel_numbers(links: &[ScenarioLink]) -> Vec<usize> {
    let mut counts: HashMap<[usize; 2], usize> = HashMap::new();
    let mut next = |link: &ScenarioLink| {
        let [one, two] = link.ends.map(|end| end.switch);
        let count = counts.entry([one.min(two), one.max(two)]).or_default();
        *count += 1;
        *count
    };
    links.iter().map(&mut next).collect()
}

/// Returns the whole names of the ports at both ends of each link: `s1-s2`, for a second link of these switches
/// `s1-s2_2`. No name of a switch has a `_`.
fn whole_link_names(switches: &[ScenarioSwitch], links: &[ScenarioLink]) -> Vec<[String; 2]> {
    let name = |own: usize, other: usize, number: usize| {
        let further = if number > 1 { format!("_{number}") } else { String::new() };
        format!("{}-{}{further}", switches[own].name, switches[other].name)
    };
    let both = |(link, number): (&ScenarioLink, usize)| {
        let [one, two] = link.ends.map(|end| end.switch);
        [name(one, two, number), name(two, one, number)]
    };
    links.iter().zip(parallel_numbers(links)).map(both).collect()
}

/// Returns the names of the ports at both ends of each link.
pub(crate) fn link_port_names(switches: &[ScenarioSwitch], links: &[ScenarioLink]) -> Vec<[String; 2]> {
    whole_link_names(switches, links).iter().map(|names| names.each_ref().map(|name| interface_name(name))).collect()
}

impl Scenario {
    /// Returns the names of the ports at both ends of each link. Parallel links have different ones.
    pub fn link_port_names(&self) -> Vec<[String; 2]> {
        link_port_names(&self.switches, &self.links)
    }

    /// Returns what is added to the names of each link's switches where a link is named by them: nothing, or ` (2)`
    /// for a second link of the same switches.
    pub fn link_suffixes(&self) -> Vec<String> {
        let suffix = |number: usize| if number > 1 { format!(" ({number})") } else { String::new() };
        parallel_numbers(&self.links).into_iter().map(suffix).collect()
    }
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
    let names = whole_link_names(&scenario.switches, &scenario.links);
    let links = scenario.links.iter().zip(names).flat_map(|(link, [at_one, at_two])| {
        let [one, two] = link.ends.map(|end| end.switch);
        [(one, at_one), (two, at_two)]
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
    fn parallel_links_have_ports_of_different_names() {
        let link = |ends: [&str; 2]| format!("[[link]]\nends = ['{}', '{}']\n", ends[0], ends[1]);
        let links = [link(["s1", "s2"]), link(["s2", "s1"]), link(["s1", "s2-2"]), link(["s1", "s2"])].concat();
        let text = "[controller]\nconnect = 'none'\n[[switch]]\nname = 's1'\nentries = ['in_port=s1-s2_2,actions=drop']\n\
                    [[switch]]\nname = 's2'\n[[switch]]\nname = 's2-2'\n";
        let scenario = Scenario::parse(&format!("{text}{links}"), "net").unwrap();
        let expected = [["s1-s2", "s2-s1"], ["s2-s1_2", "s1-s2_2"], ["s1-s2-2", "s2-2-s1"], ["s1-s2_3", "s2-s1_3"]];
        assert_eq!(scenario.link_port_names(), expected);
        assert_eq!(scenario.link_suffixes(), ["", " (2)", "", " (3)"]);
        assert_eq!(scenario.switches[0].entries, ["in_port=2,actions=drop"]);
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
