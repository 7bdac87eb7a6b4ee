//! Writes the scenario of a case: two virtual routers on one machine, each joined to four hosts by four virtual links.
//!
//! All eight virtual links share the line between the switch `site`, which the hosts are at, and the switch `machine`
//! with its single interface. A virtual link is a virtual switch of `site` with two ports, the host's and the line's.
use std::fmt::Write as _;
use std::time::Duration;
use weir_traffic::RandomStream;

/// Number of virtual networks, and of the flows of each.
pub(super) const NETWORKS: usize = 2;
pub(super) const FLOWS: usize = 2;
/// Maximum rates of virtual links in Mbit/s (Table 5.2), by virtual network and flow: a flow's sender and its receiver
/// have virtual links with equal maxima.
pub(super) const MAXIMUM_MBPS: [[u64; FLOWS]; NETWORKS] = [[50, 100], [100, 200]];
/// Rates of flows in profile in Mbit/s: together 80 % of the maxima. Those of the first virtual network are published.
const IN_PROFILE_MBPS: [[u64; FLOWS]; NETWORKS] = [[30, 90], [80, 160]];
/// Rate of the hosts' lines and of the line that the virtual links share, in Mbit/s.
const LINE_MBPS: u64 = 1000;
/// Buffer of a virtual link in kB: the frames that a TCP connection has on its way at most (96 KiB of payload).
const LINK_KB: u64 = 104;
/// Buffer of a virtual router in kB: more than its two connections have on their way.
const ROUTER_KB: u64 = 256;
/// Payload of a datagram in bytes: frames of [`FRAME_BYTES`].
const PAYLOAD_BYTES: u64 = 1472;
/// Length of a frame in bytes: the longest, of datagrams and of TCP.
pub(super) const FRAME_BYTES: f64 = 1514.0;
/// Latest start of a flow in microseconds, at the published rates.
const START_US: u64 = 5000;
/// Ports of both switches at the line between them.
const SITE_PORT: usize = 9;
const MACHINE_PORT: usize = 1;

/// Share of the maximum rate that the flows of a virtual network ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadProfile {
    /// 80 % of the sum.
    InProfile,
    /// 100 % of each maximum.
    Limit,
    /// 120 % of each maximum.
    OutOfProfile,
}

/// Place at which rates are limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateLimitPlace {
    /// At both ends of each virtual link: before the router, and before the host.
    VirtualLink,
    /// Behind each router: the sum of its virtual network's flows.
    VirtualNetwork,
}

/// Transport protocol of all flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowProtocol {
    Udp,
    Tcp,
}

/// A case of the experiment (Table 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IsolationCase {
    /// Number of the case in the table, from 1.
    pub(super) number: usize,
    pub(super) protocol: FlowProtocol,
    pub(super) place: RateLimitPlace,
    /// Factor of all rates: 1 or 10.
    pub(super) speed: u64,
}

impl IsolationCase {
    /// Returns the profile of a virtual network's flows.
    pub(super) fn profile(self, network: usize) -> LoadProfile {
        match (self.number, network) {
            (2, _) | (3, 1) => LoadProfile::Limit,
            (4, 1) => LoadProfile::OutOfProfile,
            _ => LoadProfile::InProfile,
        }
    }

    /// Returns the maximum rate of a flow's virtual links in Mbit/s.
    pub(super) fn maximum_mbps(self, network: usize, flow: usize) -> u64 {
        MAXIMUM_MBPS[network][flow] * self.speed
    }

    /// Returns the rate that a flow asks for in Mbit/s.
    pub(super) fn asked_mbps(self, network: usize, flow: usize) -> u64 {
        let maximum = MAXIMUM_MBPS[network][flow];
        self.speed
            * match self.profile(network) {
                LoadProfile::InProfile => IN_PROFILE_MBPS[network][flow],
                LoadProfile::Limit => maximum,
                LoadProfile::OutOfProfile => maximum * 6 / 5,
            }
    }

    /// Returns the time in which the line between the switches sends a frame, in microseconds.
    pub(super) fn frame_us(self) -> f64 {
        FRAME_BYTES * 8.0 / (LINE_MBPS * self.speed) as f64
    }

    /// Returns the scenario. Flows last for `duration` and start at times drawn from `random`.
    pub(super) fn scenario(self, duration: Duration, random: &mut RandomStream) -> String {
        let line = LINE_MBPS * self.speed;
        let mut text = format!(
            "name = \"vlink-isolation\"\nduration = \"{}us\"\n[controller]\nconnect = \"none\"\n",
            duration.as_micros()
        );
        let _ = write!(text, "[[switch]]\nname = \"site\"\n[switch.fabric]\nrate = \"{line}Mbit/s\"\n");
        hosts().for_each(|(network, host)| self.write_virtual_link(&mut text, network, host));
        let _ = write!(
            text,
            "[[switch]]\nname = \"machine\"\n[switch.fabric]\nrate = \"{line}Mbit/s\"\ncrosspoint = \"{}kB\"\n",
            ROUTER_KB * NETWORKS as u64
        );
        (0..NETWORKS).for_each(|network| self.write_router(&mut text, network));
        let _ = write!(
            text,
            "[[link]]\nends = [\"site\", \"machine\"]\nports = [{SITE_PORT}, {MACHINE_PORT}]\nrate = \"{line}Mbit/s\"\n"
        );
        hosts().for_each(|(network, host)| self.write_host(&mut text, network, host));
        for network in 0..NETWORKS {
            for flow in 0..FLOWS {
                let start_us = random.below(START_US) / self.speed;
                self.write_flow(&mut text, network, flow, start_us);
            }
        }
        text
    }

    /// Returns the rate of a host's line in Mbit/s. A TCP connection sends as fast as its host's line.
    fn host_mbps(self, network: usize, host: usize) -> u64 {
        match self.protocol {
            FlowProtocol::Tcp if host <= FLOWS => self.asked_mbps(network, host - 1),
            _ => LINE_MBPS * self.speed,
        }
    }

    fn write_virtual_link(self, text: &mut String, network: usize, host: usize) {
        let maximum = self.maximum_mbps(network, (host - 1) % FLOWS);
        let limit = match self.place {
            RateLimitPlace::VirtualLink => format!(", ceiling = \"{maximum}Mbit/s\", ceiling_burst = \"0B\""),
            RateLimitPlace::VirtualNetwork => String::new(),
        };
        let near = maximum.min(self.host_mbps(network, host));
        let (port, peer) = (site_port(network, host), if host <= FLOWS { host + FLOWS } else { host - FLOWS });
        let _ = write!(
            text,
            "[[switch.virtual]]\nname = \"vl{}{host}\"\ndpid = {}\nbuffer = \"{LINK_KB}kB\"\n\
             select = [{{ port = {port} }}, {{ port = {SITE_PORT}, eth_src = \"{}\" }}]\n\
             ports = [{{ port = {port}, number = 1, rate = \"{near}Mbit/s\"{limit} }}, \
             {{ port = {SITE_PORT}, number = 2, rate = \"{maximum}Mbit/s\"{limit} }}]\n\
             paths = [[1, 2], [2, 1]]\nentries = [\"in_port=1,actions=output:2\", \"in_port=2,actions=output:1\"]\n",
            network + 1,
            0x100 + port,
            mac(network, peer)
        );
    }

    fn write_router(self, text: &mut String, network: usize) {
        let flows: u64 = (0..FLOWS).map(|flow| self.maximum_mbps(network, flow)).sum();
        // A router promises what its four virtual links may bring. Its flows use half of that.
        let (rate, limit) = match self.place {
            RateLimitPlace::VirtualLink => (2 * flows, String::new()),
            RateLimitPlace::VirtualNetwork => (flows, format!(", ceiling = \"{flows}Mbit/s\", ceiling_burst = \"0B\"")),
        };
        let sources = (1..=2 * FLOWS).map(|host| format!("{{ eth_src = \"{}\" }}", mac(network, host)));
        let _ = write!(
            text,
            "[[switch.virtual]]\nname = \"vr{}\"\ndpid = {}\nbuffer = \"{ROUTER_KB}kB\"\nselect = [{}]\n\
             ports = [{{ port = {MACHINE_PORT}, rate = \"{rate}Mbit/s\"{limit} }}]\nentries = [\"actions=in_port\"]\n",
            network + 1,
            0x201 + network,
            sources.collect::<Vec<_>>().join(", ")
        );
    }

    fn write_host(self, text: &mut String, network: usize, host: usize) {
        let number = network + 1;
        let _ = write!(
            text,
            "[[host]]\nname = \"{}\"\nswitch = \"site\"\nport = {}\nip = \"10.{number}.0.{host}/16\"\n\
             mac = \"{}\"\nrate = \"{}Mbit/s\"\n",
            host_name(network, host),
            site_port(network, host),
            mac(network, host),
            self.host_mbps(network, host)
        );
    }

    fn write_flow(self, text: &mut String, network: usize, flow: usize, start_us: u64) {
        let (from, to) = (sender_name(network, flow), host_name(network, flow + 1 + FLOWS));
        let ends = format!("from = \"{from}\"\nto = \"{to}\"\nstart = \"{start_us}us\"\n");
        let _ = match self.protocol {
            FlowProtocol::Tcp => write!(text, "[[traffic]]\nkind = \"tcp\"\n{ends}"),
            FlowProtocol::Udp => write!(
                text,
                "[[traffic]]\nkind = \"udp\"\n{ends}rate = \"{}Mbit/s\"\npayload = \"{PAYLOAD_BYTES}B\"\narrival = \"{}\"\n",
                self.asked_mbps(network, flow),
                self.arrival()
            ),
        };
    }

    /// Returns the law of the times between datagrams. Where two flows share a buffer, packets in step would find it
    /// full always or never, so that one flow has all losses.
    fn arrival(self) -> &'static str {
        match self.place {
            RateLimitPlace::VirtualLink => "constant",
            RateLimitPlace::VirtualNetwork => "poisson",
        }
    }
}

/// Iterates over all hosts: virtual network and number, from 1. Hosts 1 and 2 send to hosts 3 and 4.
fn hosts() -> impl Iterator<Item = (usize, usize)> {
    (0..NETWORKS).flat_map(|network| (1..=2 * FLOWS).map(move |host| (network, host)))
}

/// Returns the name of the host that sends a flow.
pub(super) fn sender_name(network: usize, flow: usize) -> String {
    host_name(network, flow + 1)
}

fn host_name(network: usize, host: usize) -> String {
    format!("vn{}{host}", network + 1)
}

fn site_port(network: usize, host: usize) -> usize {
    network * 2 * FLOWS + host
}

fn mac(network: usize, host: usize) -> String {
    format!("02:00:00:00:0{}:0{host}", network + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::Scenario;

    #[test]
    fn cases_are_scenarios() {
        let mut random = RandomStream::new(1, 0, 0);
        for number in 1..=4 {
            for (protocol, speed) in [(FlowProtocol::Udp, 1), (FlowProtocol::Tcp, 10)] {
                for place in [RateLimitPlace::VirtualLink, RateLimitPlace::VirtualNetwork] {
                    let case = IsolationCase { number, protocol, place, speed };
                    let text = case.scenario(Duration::from_millis(100), &mut random);
                    let scenario = Scenario::parse(&text, "case").unwrap_or_else(|error| panic!("{error}\n{text}"));
                    let slices: Vec<usize> = scenario.switches.iter().map(|one| one.virtual_switches.len()).collect();
                    assert_eq!((slices, scenario.hosts.len(), scenario.traffic.len()), (vec![8, 2], 8, 4));
                }
            }
        }
    }

    #[test]
    fn flows_ask_for_the_published_rates() {
        let case = |number| IsolationCase {
            number,
            protocol: FlowProtocol::Udp,
            place: RateLimitPlace::VirtualLink,
            speed: 1,
        };
        let asked =
            |number| [[0, 0], [0, 1], [1, 0], [1, 1]].map(|[network, flow]| case(number).asked_mbps(network, flow));
        assert_eq!(
            [1, 2, 3, 4].map(asked),
            [[30, 90, 80, 160], [50, 100, 100, 200], [30, 90, 100, 200], [30, 90, 120, 240]]
        );
        for (asked, maxima) in IN_PROFILE_MBPS.iter().zip(MAXIMUM_MBPS) {
            assert_eq!(asked.iter().sum::<u64>() * 5, maxima.iter().sum::<u64>() * 4, "80 %");
        }
    }
}
