//! What files say of virtual switches, as the datapath takes it.
use weir_datapath::{DatapathConfig, FailMode, PacketInLimit};
use weir_scenario::VirtualSwitch;

/// A virtual switch's datapath: with room for what one tenant needs, not for what exhausts the others.
pub fn datapath(spec: &VirtualSwitch, lookup: weir_datapath::Lookup) -> DatapathConfig {
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

/// What a switch does without a controller.
pub fn fail_mode(mode: weir_scenario::FailMode) -> FailMode {
    match mode {
        weir_scenario::FailMode::Secure => FailMode::Secure,
        weir_scenario::FailMode::Standalone => FailMode::Standalone,
    }
}
