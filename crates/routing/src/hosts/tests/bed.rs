//! A network of hosts that answer, and the tracker that watches them.
use crate::hosts::{HostChange, HostConfig, HostTracker, HostVerdict};
use crate::map::SwitchPort;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::{Field, MacAddr, parse};
use weir_units::Instant;

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// Returns the Ethernet address of host `number`.
pub(super) fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

/// Returns the IPv4 address of host `number`.
pub(super) fn ip(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

/// Returns the IPv6 address of host `number`.
pub(super) fn ip6(number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number.into())
}

/// Returns port `port` of switch 1.
pub(super) fn port(port: u32) -> SwitchPort {
    SwitchPort::new(1, PortNo(port))
}

/// Returns a gratuitous ARP request.
pub(super) fn announcement(mac: MacAddr, ip: Ipv4Addr) -> Vec<u8> {
    FrameBuilder::ethernet(MacAddr::BROADCAST, mac).arp(1, (mac, ip), (MacAddr::default(), ip)).build()
}

/// Returns a neighbour advertisement.
pub(super) fn advertisement(mac: MacAddr, ip: Ipv6Addr) -> Vec<u8> {
    let payload = [&ip.octets()[..], &[2, 1], &mac.0].concat();
    let builder = FrameBuilder::ethernet(MacAddr([0x33, 0x33, 0, 0, 0, 1]), mac).ipv6(ip, ip6(0xff)).ttl(255);
    builder.icmp(136, 0, [0x20, 0, 0, 0]).payload(&payload).build()
}

/// Returns a packet that says nothing but its source.
pub(super) fn data(mac: MacAddr) -> Vec<u8> {
    FrameBuilder::ethernet(MacAddr([2; 6]), mac).ether_type(0x88b5).payload(&[0; 50]).build()
}

/// A host that answers questions at its port.
#[derive(Debug, Clone)]
pub(super) struct Station {
    pub(super) mac: MacAddr,
    pub(super) at: SwitchPort,
    pub(super) ips: Vec<IpAddr>,
}

/// Tracker, hosts, and what the tracker said.
pub(super) struct Bed {
    pub(super) now: Instant,
    pub(super) tracker: HostTracker,
    /// Hosts that answer, by their number.
    pub(super) stations: BTreeMap<u8, Station>,
    /// Ports that are down.
    pub(super) down: BTreeSet<SwitchPort>,
    /// Time that a question and its answer take.
    pub(super) round_trip: Duration,
    /// Answers on their way.
    answers: Vec<(Instant, SwitchPort, Vec<u8>)>,
    /// Questions of the tracker, and their ports.
    pub(super) questions: Vec<(SwitchPort, Vec<u8>)>,
    /// Changes that the tracker asked for since the last look.
    said: Vec<HostChange>,
}

impl Bed {
    /// Returns a network without hosts, whose switch has been up for long.
    pub(super) fn new(config: HostConfig) -> Bed {
        let mut tracker = HostTracker::new(config);
        tracker.handle_switch_up(Instant::ZERO, 1);
        (1..=60).for_each(|number| tracker.handle_port_up(Instant::ZERO, port(number)));
        let (stations, down) = (BTreeMap::new(), BTreeSet::new());
        let (now, round_trip) = (Instant::ZERO + SECOND * 100, Duration::from_millis(5));
        Bed { now, tracker, stations, down, round_trip, answers: Vec::new(), questions: Vec::new(), said: Vec::new() }
    }

    /// Places host `number` at a port, where it answers from now on, without a packet.
    pub(super) fn place(&mut self, number: u8, at: u32) {
        let ips = vec![ip(number).into(), ip6(number).into()];
        self.stations.insert(number, Station { mac: mac(number), at: port(at), ips });
    }

    /// Places host `number` at a port and lets it announce itself. Returns the verdict on its packet.
    pub(super) fn join(&mut self, number: u8, at: u32) -> HostVerdict {
        self.place(number, at);
        self.send(at, &announcement(mac(number), ip(number)))
    }

    /// Sends a packet from a port. Returns the verdict.
    pub(super) fn send(&mut self, at: u32, packet: &[u8]) -> HostVerdict {
        let mut out = Vec::new();
        let verdict = self.tracker.handle_packet(self.now, port(at), packet, &mut out);
        self.take(out);
        verdict
    }

    pub(super) fn set_down(&mut self, at: u32) {
        let mut out = Vec::new();
        self.down.insert(port(at));
        self.tracker.handle_port_down(self.now, port(at), &mut out);
        self.take(out);
    }

    pub(super) fn set_up(&mut self, at: u32) {
        self.down.remove(&port(at));
        self.tracker.handle_port_up(self.now, port(at));
    }

    pub(super) fn find_link(&mut self, at: u32, peer: u32) -> bool {
        let mut out = Vec::new();
        let believed = self.tracker.handle_trunk(self.now, port(at), port(peer), &mut out);
        self.take(out);
        believed
    }

    /// Lets time pass, with all that is due in it.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let answer = self.answers.iter().map(|(at, ..)| *at).min();
            let next = [self.tracker.next_wake(), answer].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            let (due, later) = std::mem::take(&mut self.answers).into_iter().partition(|(at, ..)| *at <= self.now);
            self.answers = later;
            let due: Vec<(Instant, SwitchPort, Vec<u8>)> = due;
            for (_, at, frame) in due {
                let mut out = Vec::new();
                assert_eq!(self.tracker.handle_packet(self.now, at, &frame, &mut out), HostVerdict::Taken);
                self.take(out);
            }
            let mut out = Vec::new();
            self.tracker.handle_wake(self.now, &mut out);
            self.take(out);
        }
        self.now = end;
    }

    /// Returns what the tracker said since the last call, without questions.
    pub(super) fn said(&mut self) -> Vec<HostChange> {
        std::mem::take(&mut self.said)
    }

    /// Returns the kinds of the alarms since the last look.
    pub(super) fn alarms(&mut self) -> Vec<&'static str> {
        let kind = |change| match change {
            HostChange::Alarm { kind, .. } => Some(kind),
            _ => None,
        };
        self.said().into_iter().filter_map(kind).collect()
    }

    pub(super) fn count(&self, name: &str) -> u64 {
        let counters = self.tracker.counters();
        counters.iter().find(|(counter, _)| *counter == name).expect("a counter").1
    }

    /// Returns the port at which the tracker has a host.
    pub(super) fn place_of(&self, number: u8) -> Option<SwitchPort> {
        self.tracker.host(mac(number)).map(|host| host.at)
    }

    fn take(&mut self, out: Vec<HostChange>) {
        for change in out {
            let HostChange::Probe { to, frame } = change else {
                self.said.push(change);
                continue;
            };
            let answers: Vec<_> = self.stations.values().filter_map(|station| station.answer(to, &frame)).collect();
            self.questions.push((to, frame.clone()));
            if !self.down.contains(&to) {
                let at = self.now + self.round_trip;
                self.answers.extend(answers.into_iter().map(|answer| (at, to, answer)));
            }
        }
    }
}

impl Station {
    /// Returns the answer to a question at a port, as hosts give it; `None` if it is not for this host.
    pub(super) fn answer(&self, to: SwitchPort, frame: &[u8]) -> Option<Vec<u8>> {
        let key = parse(frame, to.port).expect("a whole header").key;
        let address = |field| MacAddr::from_bits(u64::try_from(key.get(field)).expect("48 bits"));
        if to != self.at || address(Field::EthDst) != self.mac {
            return None;
        }
        let (asker, mac) = (address(Field::EthSrc), self.mac);
        if key.get(Field::EthType) == u128::from(eth_type::ARP) {
            let target = Ipv4Addr::from(u32::try_from(key.get(Field::ArpTpa)).expect("32 bits"));
            let sender = Ipv4Addr::from(u32::try_from(key.get(Field::ArpSpa)).expect("32 bits"));
            let reply = FrameBuilder::ethernet(asker, mac).arp(2, (mac, target), (asker, sender)).build();
            return self.ips.contains(&target.into()).then_some(reply);
        }
        let sender = Ipv6Addr::from(key.get(Field::Ipv6Src));
        if key.get(Field::Icmpv6Type) == 135 {
            let target = Ipv6Addr::from(key.get(Field::Ipv6NdTarget));
            let payload = [&target.octets()[..], &[2, 1], &mac.0].concat();
            let builder = FrameBuilder::ethernet(asker, mac).ipv6(target, sender).ttl(255);
            let reply = builder.icmp(136, 0, [0x60, 0, 0, 0]).payload(&payload).build();
            return self.ips.contains(&target.into()).then_some(reply);
        }
        // An echo request to all nodes: the host asks for the sender's Ethernet address first.
        let own = ip6(0xee);
        let payload = [&sender.octets()[..], &[1, 1], &mac.0].concat();
        let group = MacAddr([0x33, 0x33, 0xff, asker.0[3], asker.0[4], asker.0[5]]);
        let builder = FrameBuilder::ethernet(group, mac).ipv6(own, ip6(0xfe)).ttl(255);
        Some(builder.icmp(135, 0, [0; 4]).payload(&payload).build())
    }
}
