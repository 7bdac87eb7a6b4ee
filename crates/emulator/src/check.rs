//! Checks before a start whether a lab can be made of a scenario.
use crate::host::MAX_ADDRESSES;
use crate::netns;
use crate::threads::threads;
use crate::{LabError, LabOptions};
use weir_scenario::{FailMode, Scenario, ScenarioController};
use weir_switch::threads::MachineResources;

/// Refuses what the scenario schema allows but a lab does not support, and a machine that lacks a requirement.
pub(crate) fn check(scenario: &Scenario, options: &LabOptions) -> Result<(), LabError> {
    if options.netns || options.emulate {
        options.dilation.check(scenario)?;
        netns::check(scenario)?;
    } else if let Some(host) = scenario.hosts.iter().find(|host| host.ip.len() > MAX_ADDRESSES) {
        let (name, found) = (&host.name, host.ip.len());
        let problem = format!("host {name}: found {found} addresses, expected at most {MAX_ADDRESSES}");
        return Err(LabError::Scenario(problem));
    }
    crate::streams::check(scenario)?;
    let machine = MachineResources::here();
    scenario.switches.iter().try_for_each(|switch| threads(switch, &machine).map(drop))?;
    refuse_loops(scenario)
}

/// Refuses loops of links if no controller breaks them. The embedded controller breaks loops; an external one is
/// expected to.
///
/// # Errors
/// A link closes a loop.
pub fn refuse_loops(scenario: &Scenario) -> Result<(), LabError> {
    let alone = scenario.switches.iter().find(|switch| switch.fail_mode == FailMode::Standalone);
    let why = match (&scenario.control, alone) {
        (ScenarioController::Connect(_), _) | (ScenarioController::Embedded { .. }, None) => return Ok(()),
        (ScenarioController::None, _) => "without a controller".to_owned(),
        // The standalone switch floods until the controller is connected.
        (ScenarioController::Embedded { .. }, Some(switch)) => format!("and the standalone switch {}", switch.name),
    };
    looping_link(scenario).map_or(Ok(()), |[a, b]| {
        let problem = format!("found a loop of links {why}, expected a tree: floods would go round it for ever");
        Err(LabError::Scenario(format!("link {a} - {b}: {problem}")))
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
