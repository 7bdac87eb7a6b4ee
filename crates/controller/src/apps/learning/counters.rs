//! What a learning switch counts.

/// What a learning switch counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Stations learned.
    pub learned: u64,
    /// Stations that moved to another port.
    pub moved: u64,
    /// Stations forgotten because of their age.
    pub aged: u64,
    /// Stations pushed out of a full table.
    pub pushed_out: u64,
    /// Packets sent to all ports of their VLAN.
    pub flooded: u64,
    /// Packets dropped: no whole Ethernet header, or no input port.
    pub drop_malformed: u64,
    /// Packets dropped: a group address as source.
    pub drop_multicast_source: u64,
    /// Packets dropped: for the switch itself, as bridge protocols and LLDP are (IEEE 802.1Q-2022, table 8-1).
    pub drop_reserved: u64,
    /// Packets dropped: tagged on an access port.
    pub drop_tagged: u64,
    /// Packets dropped: they came by a link that no packets take.
    pub drop_blocked: u64,
    /// Packets dropped: the destination is on the port they came from.
    pub drop_same_port: u64,
    /// Packets dropped: the switch neither kept them nor sent all of them.
    pub drop_truncated: u64,
    /// Packets dropped: no other port carries their VLAN.
    pub drop_no_port: u64,
    /// Packets whose source was not learned: too many VLANs.
    pub unlearned_vlans: u64,
    /// Ports left aside: too many on a switch.
    pub ports_left_aside: u64,
    /// Errors from switches.
    pub errors: u64,
}

impl Counters {
    /// All counters by name.
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
