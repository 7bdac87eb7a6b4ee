//! What a learning switch is told.
use std::collections::HashMap;
use std::time::Duration;
use weir_openflow::model::PortNo;

/// How a learning switch behaves. `..LearningConfig::default()` fills in what is not said.
#[derive(Debug, Clone)]
pub struct LearningConfig {
    /// Access ports: (datapath id, port) to VLAN id, `1..=4094`. With none, VLANs are told apart by tag only. Default: none.
    pub access: HashMap<(u64, PortNo), u16>,
    /// Links between switches, each by datapath id and port of its two ends. Where they form loops packets keep to a tree of them; loops of links that are not
    /// named here are not broken. Default: none.
    pub links: Vec<[(u64, PortNo); 2]>,
    /// Time without a packet after which an entry goes, in whole seconds up to 65535; zero for never. Default: 60 s.
    pub idle_timeout: Duration,
    /// Priority of entries, above 0. Default: 100.
    pub priority: u16,
    /// Most stations known per switch and VLAN; one more pushes out the one not seen for longest. Default: 4096.
    pub max_addresses: usize,
    /// Time after which a station is forgotten that sent nothing to the controller and that no entry names. Default: 300 s.
    pub max_age: Duration,
}

impl Default for LearningConfig {
    fn default() -> Self {
        LearningConfig {
            access: HashMap::new(),
            links: Vec::new(),
            idle_timeout: Duration::from_secs(60),
            priority: 100,
            max_addresses: 4096,
            max_age: Duration::from_secs(300),
        }
    }
}
