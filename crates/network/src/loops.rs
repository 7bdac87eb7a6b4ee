//! Checks that the links of a scenario make no loop in which floods would go round for ever.
use crate::NetworkError;
use weir_datapath::FailMode;
use weir_scenario::{Scenario, ScenarioController};

/// Refuses loops of links if no controller breaks them. The embedded controller breaks loops; an external one is
/// expected to.
///
/// # Errors
/// A link closes a loop.
pub fn refuse_loops(scenario: &Scenario) -> Result<(), NetworkError> {
    let alone = scenario.switches.iter().find(|switch| switch.fail_mode == FailMode::Standalone);
    let why = match (&scenario.control, alone) {
        (ScenarioController::Connect(_), _) | (ScenarioController::Embedded { .. }, None) => return Ok(()),
        (ScenarioController::None, _) => "without a controller".to_owned(),
        // The standalone switch floods until the controller is connected.
        (ScenarioController::Embedded { .. }, Some(switch)) => format!("and the standalone switch {}", switch.name),
    };
    looping_link(scenario).map_or(Ok(()), |[a, b]| {
        let problem = format!("found a loop of links {why}, expected a tree: floods would go round it for ever");
        Err(NetworkError::Scenario(format!("link {a} - {b}: {problem}")))
    })
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
