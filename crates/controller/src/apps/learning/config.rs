//! Configuration of a learning switch.
use std::collections::HashMap;
use std::time::Duration;
use weir_openflow::model::PortNo;

/// Configuration of a learning switch. `..LearningConfig::default()` fills in defaults.
#[derive(Debug, Clone)]
pub struct LearningConfig {
    /// Access ports: (datapath id, port) to VLAN id, `1..=4094`. Without any, only tags distinguish VLANs. Default:
    /// none.
    pub access: HashMap<(u64, PortNo), u16>,
    /// Links between switches, each by datapath id and port of its two ends. If they form loops, packets keep to a
    /// spanning tree. Loops of other links are not broken. Default: none.
    pub links: Vec<[(u64, PortNo); 2]>,
    /// Time without a packet after which an entry is removed, in whole seconds up to 65535; zero for never. Default:
    /// 60 s.
    pub idle_timeout: Duration,
    /// True if an entry also sends the packet that asked for it, when the switch keeps the packet in a buffer: one
    /// message instead of two. The packet then leaves when the entry is in the table, which takes long in some
    /// switches.
    /// Default: false, a packet-out sends it.
    pub entry_sends_packet: bool,
    /// Priority of entries, above 0. Default: 100.
    pub priority: u16,
    /// Most stations known per switch and VLAN; a further one replaces the one not seen for longest. Default: 4096.
    pub max_addresses: usize,
    /// Time after which a station is removed that has sent no packet to the controller and that no entry names.
    /// Default: 300 s.
    pub max_age: Duration,
}

impl Default for LearningConfig {
    fn default() -> Self {
        LearningConfig {
            access: HashMap::new(),
            links: Vec::new(),
            idle_timeout: Duration::from_secs(60),
            entry_sends_packet: false,
            priority: 100,
            max_addresses: 4096,
            max_age: Duration::from_secs(300),
        }
    }
}
