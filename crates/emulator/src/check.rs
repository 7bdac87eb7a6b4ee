//! Checks before a start whether a lab can be made of a scenario.
use crate::netns;
use crate::threads::threads;
use crate::{LabError, LabOptions};
use weir_network::{check_addresses, refuse_loops};
use weir_scenario::Scenario;
use weir_switch::threads::MachineResources;

/// Refuses what the scenario schema allows but a lab does not support, and a machine that lacks a requirement.
pub(crate) fn check(scenario: &Scenario, options: &LabOptions) -> Result<(), LabError> {
    if options.netns || options.emulate {
        options.dilation.check(scenario)?;
        netns::check(scenario)?;
    } else {
        check_addresses(scenario)?;
    }
    weir_network::streams::check(scenario)?;
    let machine = MachineResources::here();
    scenario.switches.iter().try_for_each(|switch| threads(switch, &machine).map(drop))?;
    Ok(refuse_loops(scenario)?)
}
