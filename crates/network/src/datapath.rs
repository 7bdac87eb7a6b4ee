//! Makes the settings of a scenario's datapaths.
use weir_datapath::{DatapathConfig, FailMode};
use weir_scenario::{Profile, Scenario, ScenarioSwitch};

/// Returns the datapath's configuration of a scenario's switch, and its behaviour without a controller.
pub fn config(switch: &ScenarioSwitch) -> (DatapathConfig, FailMode) {
    let config = DatapathConfig {
        datapath_id: switch.dpid,
        name: switch.name.clone(),
        n_tables: switch.tables,
        max_entries: switch.max_entries,
        ..DatapathConfig::default()
    };
    (config, switch.fail_mode)
}

/// Returns the profile whose times a scenario's switch keeps, and the seed of its random times, which the scenario's
/// seed determines; `None` without a profile that takes time.
pub fn profile(scenario: &Scenario, switch: &ScenarioSwitch) -> Option<(Box<Profile>, u64)> {
    let profile = switch.profile.clone().filter(|profile| profile.takes_time())?;
    Some((profile, scenario.seed.wrapping_add(switch.dpid)))
}
