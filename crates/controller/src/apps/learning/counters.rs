//! Counters of a learning switch.

/// Counters of a learning switch, over all switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LearningCounters {
    /// Stations that were learned.
    pub learned: u64,
    /// Stations that moved to another port.
    pub moved: u64,
    /// Stations removed because of their age.
    pub aged: u64,
    /// Stations replaced in a full table.
    pub pushed_out: u64,
    /// Packets sent to all ports of their VLAN.
    pub flooded: u64,
    /// Packets dropped because they have no whole Ethernet header, or no input port.
    pub drop_malformed: u64,
    /// Packets dropped because their source is a group address.
    pub drop_multicast_source: u64,
    /// Packets dropped because they are for the switch itself, such as bridge protocols and LLDP (IEEE 802.1Q-2022,
    /// table 8-1).
    pub drop_reserved: u64,
    /// Packets dropped because they are tagged on an access port.
    pub drop_tagged: u64,
    /// Packets dropped because they arrived on a blocked link.
    pub drop_blocked: u64,
    /// Packets dropped because their destination is on their input port.
    pub drop_same_port: u64,
    /// Packets dropped because the switch neither buffered them nor sent them whole.
    pub drop_truncated: u64,
    /// Packets dropped because no other port carries their VLAN.
    pub drop_no_port: u64,
    /// Packets whose source was not learned because there are too many VLANs.
    pub unlearned_vlans: u64,
    /// Ports ignored because a switch has too many.
    pub ports_left_aside: u64,
    /// Error messages from switches.
    pub errors: u64,
}

impl LearningCounters {
    /// Returns all counters with their names.
    pub(super) fn named(&self) -> Vec<(&'static str, u64)> {
        let c = self;
        vec![
            ("learned", c.learned),
            ("moved", c.moved),
            ("aged", c.aged),
            ("pushed_out", c.pushed_out),
            ("flooded", c.flooded),
            ("drop_malformed", c.drop_malformed),
            ("drop_multicast_source", c.drop_multicast_source),
            ("drop_reserved", c.drop_reserved),
            ("drop_tagged", c.drop_tagged),
            ("drop_blocked", c.drop_blocked),
            ("drop_same_port", c.drop_same_port),
            ("drop_truncated", c.drop_truncated),
            ("drop_no_port", c.drop_no_port),
            ("unlearned_vlans", c.unlearned_vlans),
            ("ports_left_aside", c.ports_left_aside),
            ("errors", c.errors),
        ]
    }
}
