//! Converts the scenario's description of virtual switches to the datapath's configuration.
use weir_datapath::{DatapathConfig, FailMode, PacketInLimit};
use weir_scenario::VirtualSwitch;

/// Returns the datapath configuration of a virtual switch. Its limits keep one tenant from exhausting resources of
/// the others.
pub fn datapath(spec: &VirtualSwitch, lookup: weir_datapath::LookupMethod) -> DatapathConfig {
    DatapathConfig {
        datapath_id: spec.dpid,
        name: spec.name.clone(),
        n_tables: spec.tables,
        max_entries: spec.max_entries,
        packet_in_limit: Some(PacketInLimit { per_second: spec.max_packet_ins, burst: None }),
        lookup,
        ..DatapathConfig::default()
    }
}

/// Converts the behaviour of a switch without a controller.
pub fn fail_mode(mode: weir_scenario::SwitchFailMode) -> FailMode {
    match mode {
        weir_scenario::SwitchFailMode::Secure => FailMode::Secure,
        weir_scenario::SwitchFailMode::Standalone => FailMode::Standalone,
    }
}
