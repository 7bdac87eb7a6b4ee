//! Converts virtual switches to configurations of `weir_datapath`.
use crate::VirtualSwitch;
use weir_datapath::{DatapathConfig, LookupMethod, PacketInLimit};

impl VirtualSwitch {
    /// Returns the configuration of this virtual switch's datapath. Its limits keep one tenant from exhausting
    /// resources of the others.
    pub fn datapath_config(&self, lookup: LookupMethod) -> DatapathConfig {
        DatapathConfig {
            datapath_id: self.dpid,
            name: self.name.clone(),
            n_tables: self.tables,
            max_entries: self.max_entries,
            packet_in_limit: Some(PacketInLimit { per_second: self.max_packet_ins, burst: None }),
            lookup,
            ..DatapathConfig::default()
        }
    }
}
