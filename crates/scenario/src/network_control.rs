//! Settings of the controller of a whole network (`app = "forwarding"`), its applications, and intents.
use crate::Scenario;
use std::time::Duration;
use weir_units::ByteSize;

pub use weir_routing::apps::NetworkFile;
pub use weir_routing::forwarding::ForwardingMode;
pub use weir_routing::intents::{DelayBound, DelayKind, IntentConstraints, IntentKind, IntentSpec};

/// Settings of the controller of a network. Without `app = "forwarding"` they are the defaults and have no effect.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkControl {
    /// Time at which switches get the entries for a pair of hosts.
    pub forward: ForwardingMode,
    /// True if the flows to a host are spread over all shortest ways.
    pub ecmp: bool,
    /// True if the controller answers ARP requests for known hosts.
    pub arp_answers: bool,
    /// Time without a packet after which reactive entries are removed.
    pub idle_timeout: Duration,
    /// Time between two probes of a link.
    pub probe_interval: Duration,
    /// Bytes that can wait at any port; `None` if they are not known.
    pub port_buffer: Option<ByteSize>,
    /// Longest mean time that a switch takes for a packet, by the profiles; `None` if no switch has one.
    pub switch_delay: Option<Duration>,
    /// Applications.
    pub applications: NetworkFile,
    /// Intents, in the file's order.
    pub intents: Vec<ScenarioIntent>,
}

/// Intent of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioIntent {
    /// Intent as the controller gets it: with addresses of hosts and datapath ids in place of the scenario's names.
    pub spec: IntentSpec,
    /// Sources and destinations as the file names them.
    pub ends: [Vec<String>; 2],
}

impl Default for NetworkControl {
    fn default() -> NetworkControl {
        let forwarding = weir_routing::forwarding::ForwardingConfig::default();
        NetworkControl {
            forward: forwarding.mode,
            ecmp: forwarding.ecmp,
            arp_answers: forwarding.answer_arp,
            idle_timeout: forwarding.idle_timeout,
            probe_interval: weir_routing::NetworkConfig::default().discovery.interval,
            port_buffer: None,
            switch_delay: None,
            applications: NetworkFile::default(),
            intents: Vec::new(),
        }
    }
}

impl NetworkControl {
    /// Returns the names of the applications that run, in the order in which they see packets.
    pub fn application_names(&self) -> Vec<&'static str> {
        let apps = &self.applications;
        let all = [
            ("access-list", !apps.access_list.is_empty()),
            ("router", apps.router.is_some()),
            ("dhcp", apps.dhcp.is_some()),
            ("monitor", apps.monitor.is_some()),
        ];
        all.into_iter().filter(|(_, runs)| *runs).map(|(name, _)| name).collect()
    }
}

impl Scenario {
    /// Returns the largest buffer of all ports: that of the longest queue in front of a link with a rate. `None` if a
    /// link with a rate has no limit, or if no link has a rate.
    pub(crate) fn largest_port_buffer(&self) -> Option<ByteSize> {
        let hosts = self.hosts.iter().map(|host| (&host.link, &host.queues));
        let links = self.links.iter().map(|link| (&link.spec, &link.queues));
        let rated = hosts.chain(links).filter(|(spec, _)| spec.rate.is_some());
        let buffers = rated.map(|(spec, queues)| {
            // Packets of all queues of a port wait for the same link.
            let others: u64 = queues.iter().map(|queue| queue.buffer.0).sum();
            spec.buffer.map(|own| own.0.saturating_add(others))
        });
        buffers.collect::<Option<Vec<u64>>>()?.into_iter().max().map(ByteSize)
    }

    /// Returns the longest mean time that a switch with service times takes for a packet of this length.
    pub(crate) fn longest_switch_delay(&self, bytes: f64) -> Option<Duration> {
        let data = self.switches.iter().filter_map(|switch| switch.timing.as_ref()?.data.as_ref());
        let longest = data.map(|data| data.mean_s(bytes)).fold(0.0, f64::max);
        (longest > 0.0).then(|| Duration::try_from_secs_f64(longest).ok()).flatten()
    }
}
