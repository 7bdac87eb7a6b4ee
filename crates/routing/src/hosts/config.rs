//! Configuration of the host tracker.
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use weir_packet::MacAddr;

/// Configuration of the host tracker. `..HostConfig::default()` fills in defaults.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Most hosts known. A further one is refused. Default: 65,536.
    pub max_hosts: usize,
    /// Most hosts at one port, so that a host that makes up addresses fills no more than its own port. A further one is
    /// refused, with one alarm. Default: 1024.
    pub max_hosts_per_port: usize,
    /// Most IP addresses of a host. A further one replaces the one confirmed longest ago. Default: 8.
    pub max_ips_per_host: usize,
    /// Most ports of which something is known. Hosts at further ports are refused. Default: 65,536.
    pub max_ports: usize,
    /// Most claims that are checked at the same time. A further one is refused, and can be made again. Default: 4096.
    pub max_checks: usize,
    /// Most claims of one port that are checked at the same time. Default: 32.
    pub max_checks_per_port: usize,
    /// Most sources that are blocked or were blocked lately. A further one replaces the one whose time ends first.
    /// Default: 4096.
    pub max_blocks: usize,
    /// Time in which the old place of a host may answer when the host appears at another port. It is asked three times
    /// in it. Default: 200 ms.
    pub move_patience: Duration,
    /// Time without a packet to the controller after which a host is asked whether it is there, and removed if it does
    /// not answer. Default: 30 min.
    pub max_age: Duration,
    /// Time in which a new port may turn out to lead to another switch. What hosts behind it seem to do raises no alarm
    /// before. Default: 10 s.
    pub settle_time: Duration,
    /// Time after a port with hosts went down in which it is not believed that it leads to another switch. Default:
    /// 30 s.
    pub amnesia_time: Duration,
    /// Time for which nothing is learned at a port that has led to another switch and has not been down since. Default:
    /// 30 s.
    pub trunk_memory: Duration,
    /// Time for which a source is blocked the first time. Each further time is twice as long. Default: 10 s.
    pub block_time: Duration,
    /// Longest time for which a source is blocked. Default: 10 min.
    pub max_block_time: Duration,
    /// Ethernet addresses of the controller, which no host may use. Default: none.
    pub own_macs: BTreeSet<MacAddr>,
    /// IP addresses of the controller, such as gateways, which no host may use. Default: none.
    pub own_ips: BTreeSet<IpAddr>,
}

impl Default for HostConfig {
    fn default() -> Self {
        HostConfig {
            max_hosts: 65_536,
            max_hosts_per_port: 1024,
            max_ips_per_host: 8,
            max_ports: 65_536,
            max_checks: 4096,
            max_checks_per_port: 32,
            max_blocks: 4096,
            move_patience: Duration::from_millis(200),
            max_age: Duration::from_secs(30 * 60),
            settle_time: Duration::from_secs(10),
            amnesia_time: Duration::from_secs(30),
            trunk_memory: Duration::from_secs(30),
            block_time: Duration::from_secs(10),
            max_block_time: Duration::from_secs(600),
            own_macs: BTreeSet::new(),
            own_ips: BTreeSet::new(),
        }
    }
}
