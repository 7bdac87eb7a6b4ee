//! Checks that the links of a scenario make no loop in which floods would go round for ever.
use crate::{Scenario, ScenarioController};
use weir_datapath::FailMode;

/// Actions that send a packet to several ports, or where the switch wants.
const FLOODING: [&str; 3] = ["flood", "normal", "all"];

impl Scenario {
    /// Returns what is wrong if links form a loop, no controller breaks it, and switches flood. The embedded controller
    /// breaks loops; an external one is expected to. Switches that have nothing but entries without floods may be in
    /// loops.
    pub fn flood_loop(&self) -> Option<String> {
        let alone = self.switches.iter().find(|switch| switch.fail_mode == FailMode::Standalone);
        let why = match (&self.control, alone) {
            (ScenarioController::Connect(_), _) | (ScenarioController::Embedded { .. }, None) => return None,
            (ScenarioController::None, None) if !self.switches.iter().any(|switch| floods(&switch.entries)) => {
                return None;
            }
            (ScenarioController::None, _) => "without a controller".to_owned(),
            // The standalone switch floods until the controller is connected.
            (ScenarioController::Embedded { .. }, Some(switch)) => format!("and the standalone switch {}", switch.name),
        };
        let [a, b] = looping_link(self)?;
        let problem = format!("found a loop of links {why}, expected a tree: floods would go round it for ever");
        Some(format!("link {a} - {b}: {problem}"))
    }
}

/// Returns true if one of these entries, in the format of `ovs-ofctl`, has an action that floods.
fn floods(entries: &[String]) -> bool {
    let words = |entry: &String| {
        let lower = entry.to_lowercase();
        lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| FLOODING.contains(&word))
    };
    entries.iter().any(words)
}

/// Returns the names of the ends of the first link whose switches are joined already.
fn looping_link(scenario: &Scenario) -> Option<[&str; 2]> {
    // Number of each switch's group of joined switches; a link renames one of its two groups.
    let mut group: Vec<usize> = (0..scenario.switches.len()).collect();
    for link in &scenario.links {
        let [a, b] = link.ends.map(|end| group[end.switch]);
        if a == b {
            return Some(link.ends.map(|end| scenario.switches[end.switch].name.as_str()));
        }
        group.iter_mut().filter(|number| **number == b).for_each(|number| *number = a);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a ring of three switches without a controller, which have this entry.
    fn ring(entry: &str) -> Scenario {
        let switches = (1..=3).map(|number| format!("[[switch]]\nname = \"s{number}\"\nentries = [\"{entry}\"]\n"));
        let links = [(1, 2), (2, 3), (3, 1)].map(|(a, b)| format!("[[link]]\nends = [\"s{a}\", \"s{b}\"]\n"));
        let text = format!("{}{}[controller]\nconnect = \"none\"\n", switches.collect::<String>(), links.concat());
        Scenario::parse(&text, "ring").unwrap()
    }

    #[test]
    fn entries_without_floods_may_be_in_loops() {
        assert_eq!(ring("ip,nw_dst=10.0.0.1,actions=output:1").flood_loop(), None);
        for entry in ["actions=FLOOD", "actions=output:1,NORMAL", "actions=output:all"] {
            let problem = ring(entry).flood_loop().unwrap();
            assert!(problem.starts_with("link s3 - s1: found a loop of links without a controller"), "{problem}");
        }
    }
}
