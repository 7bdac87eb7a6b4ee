//! Learns places, addresses and names from packets.
use super::blocks::Offence;
use super::change::{HostChange, HostVerdict, alarm_kind};
use super::checks::{CheckKey, Source};
use super::claim::{PacketClaim, Saying, is_host_ipv4};
use super::counters::HostCounter;
use super::dhcp::DhcpMessage;
use super::ports::Reception;
use super::{HostTracker, probe};
use crate::map::SwitchPort;
use std::net::IpAddr;
use std::time::Duration;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Time after a client's request in which a server may acknowledge it.
const DHCP_PATIENCE: Duration = Duration::from_secs(10);

impl HostTracker {
    /// Handles a packet of an edge port, from its Ethernet header on. Says what has to be done with it.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        at: SwitchPort,
        packet: &[u8],
        out: &mut Vec<HostChange>,
    ) -> HostVerdict {
        let Some(claim) = PacketClaim::read(packet) else { return self.refuse(HostCounter::Malformed) };
        let source = Source { at, mac: claim.src };
        if let Some(probe) = claim.probe.filter(|probe| self.table.get(*probe).is_none()) {
            return self.handle_answer(now, source, probe, &claim.says, out);
        }
        let is_own = self.is_own(claim.src) || self.checks.of_probe(claim.src).is_some();
        if is_own || claim.src.is_multicast() || claim.src == MacAddr::default() {
            return self.refuse(HostCounter::Reserved);
        }
        match self.ports.receive(now, at, &self.config) {
            Reception::Open => {}
            Reception::Down => return self.refuse(HostCounter::PortDown),
            Reception::Full => return self.refuse(HostCounter::PortFull),
            Reception::Trunk => {
                self.counters.count(HostCounter::FormerTrunk);
                return HostVerdict::Waiting;
            }
        }
        if self.blocks.is_blocked(now, source) {
            return self.refuse(HostCounter::Blocked);
        }
        if claim.says == Saying::Contradiction {
            return self.refuse(HostCounter::Contradiction);
        }
        let verdict = self.learn_place(now, source, out);
        if verdict != HostVerdict::Accepted {
            return verdict;
        }
        if let Some(known) = self.table.get_mut(source.mac) {
            known.vlan = claim.vlan;
        }
        match claim.says {
            Saying::Uses(ip) => self.learn_ip(now, source, ip, out),
            Saying::Dhcp(message) => self.learn_dhcp(now, source.mac, message, out),
            _ => HostVerdict::Accepted,
        }
    }

    fn refuse(&mut self, reason: HostCounter) -> HostVerdict {
        self.counters.count(reason);
        HostVerdict::Refused
    }

    fn learn_place(&mut self, now: Instant, source: Source, out: &mut Vec<HostChange>) -> HostVerdict {
        let Some(known) = self.table.get(source.mac) else { return self.add_host(now, source, out) };
        let from = known.host.at;
        if from == source.at {
            if self.table.see(now, source.mac, self.ports.up_since(source.at)) {
                out.push(HostChange::Seen { mac: source.mac, at: now });
            }
            return HostVerdict::Accepted;
        }
        if !self.has_room(source.at) {
            return self.refuse_flood(source, out);
        }
        if !self.ports.is_up(from) {
            self.move_host(now, source, Some(from), out);
            return HostVerdict::Accepted;
        }
        let holder = Source { at: from, mac: source.mac };
        self.check(now, CheckKey::Place(source.mac), holder, source, out)
    }

    fn has_room(&self, at: SwitchPort) -> bool {
        self.ports.n_hosts(at) < self.config.max_hosts_per_port
    }

    /// Adds a host that was not known.
    pub(super) fn add_host(&mut self, now: Instant, source: Source, out: &mut Vec<HostChange>) -> HostVerdict {
        if !self.has_room(source.at) {
            return self.refuse_flood(source, out);
        }
        if self.table.len() >= self.config.max_hosts {
            return self.refuse(HostCounter::TableFull);
        }
        self.table.add(now, source.mac, source.at);
        self.ports.add_host(source.at, source.mac);
        self.counters.count(HostCounter::Added);
        out.extend(self.host(source.mac).cloned().map(HostChange::Added));
        HostVerdict::Accepted
    }

    fn refuse_flood(&mut self, source: Source, out: &mut Vec<HostChange>) -> HostVerdict {
        if self.ports.note_flood(source.at) {
            let (at, most) = (source.at, self.config.max_hosts_per_port);
            let text =
                format!("port {at} has more than {most} hosts; further ones, such as {}, are refused", source.mac);
            self.alarm(alarm_kind::HOST_FLOOD, text, out);
        }
        self.refuse(HostCounter::PortFull)
    }

    /// Places a host at another port. `left` is the port that it has left while that was down.
    pub(super) fn move_host(&mut self, now: Instant, to: Source, left: Option<SwitchPort>, out: &mut Vec<HostChange>) {
        self.checks.remove(CheckKey::Place(to.mac));
        let Some(from) = self.table.place(now, to.mac, to.at) else { return };
        self.ports.remove_host(from, to.mac);
        self.ports.add_host(to.at, to.mac);
        self.counters.count(HostCounter::Moved);
        if let Some(known) = self.table.get_mut(to.mac) {
            known.left = left;
            out.push(HostChange::Moved { host: known.host.clone(), from });
        }
    }

    fn learn_ip(&mut self, now: Instant, source: Source, ip: IpAddr, out: &mut Vec<HostChange>) -> HostVerdict {
        if self.config.own_ips.contains(&ip) {
            let text = format!("{} at {} claims {ip}, an address of the controller", source.mac, source.at);
            self.punish(now, source, Offence { kind: alarm_kind::IP_HIJACK, text, holder: None }, out);
            return HostVerdict::Refused;
        }
        let owner = self.table.owner(ip).filter(|owner| *owner != source.mac);
        let Some(holder) = owner.and_then(|owner| self.table.get(owner)) else {
            self.give_ip(now, source.mac, ip, out);
            return HostVerdict::Accepted;
        };
        let holder = Source { at: holder.host.at, mac: holder.host.mac };
        if !self.ports.is_up(holder.at) {
            self.hand_over_ip(now, holder.mac, source.mac, ip, out);
            return HostVerdict::Accepted;
        }
        self.check(now, CheckKey::Address(ip), holder, source, out)
    }

    fn give_ip(&mut self, now: Instant, mac: MacAddr, ip: IpAddr, out: &mut Vec<HostChange>) {
        let (is_new, has_replaced) = self.table.give(now, mac, ip, self.config.max_ips_per_host);
        if has_replaced {
            self.counters.count(HostCounter::IpsReplaced);
        }
        if is_new {
            self.announce(mac, out);
        }
    }

    pub(super) fn hand_over_ip(
        &mut self,
        now: Instant,
        from: MacAddr,
        to: MacAddr,
        ip: IpAddr,
        out: &mut Vec<HostChange>,
    ) {
        self.checks.remove(CheckKey::Address(ip));
        // First the new owner: an addition that is not announced yet stays one.
        self.table.take(from, ip);
        self.give_ip(now, to, ip, out);
        self.announce(from, out);
    }

    /// Begins to ask the holder of what a source claims, if that is not done already.
    fn check(
        &mut self,
        now: Instant,
        key: CheckKey,
        holder: Source,
        claimant: Source,
        out: &mut Vec<HostChange>,
    ) -> HostVerdict {
        if self.checks.get(key).is_none() {
            if !self.checks.begin(now, key, holder, Some(claimant), &self.config) {
                return self.refuse(HostCounter::ChecksFull);
            }
            self.counters.count(HostCounter::Checks);
            self.run_checks(now, out);
        }
        self.counters.count(HostCounter::Waiting);
        HostVerdict::Waiting
    }

    fn learn_dhcp(
        &mut self,
        now: Instant,
        src: MacAddr,
        message: DhcpMessage,
        out: &mut Vec<HostChange>,
    ) -> HostVerdict {
        match message {
            DhcpMessage::FromClient { client, transaction, is_request, name } if client == src => {
                if let Some(known) = self.table.get_mut(client).filter(|_| is_request) {
                    known.dhcp = Some((transaction, now));
                }
                if let Some(name) = name {
                    self.set_name(client, &name, out);
                }
            }
            DhcpMessage::Acknowledged { client, transaction, ip } if client != src && is_host_ipv4(ip) => {
                let asked = self.table.get(client).and_then(|known| known.dhcp);
                let was_asked = asked.is_some_and(|(of, at)| of == transaction && now < at + DHCP_PATIENCE);
                // What another host uses stays with it until the client itself claims it.
                let is_free = self.table.owner(ip.into()).is_none() && !self.config.own_ips.contains(&ip.into());
                if was_asked && is_free {
                    self.give_ip(now, client, ip.into(), out);
                }
            }
            _ => {}
        }
        HostVerdict::Accepted
    }

    /// Handles a packet for the address of a check, or one that asks for it.
    fn handle_answer(
        &mut self,
        now: Instant,
        source: Source,
        probe: MacAddr,
        says: &Saying,
        out: &mut Vec<HostChange>,
    ) -> HostVerdict {
        let Some((key, check)) = self.checks.of_probe(probe) else {
            self.counters.count(HostCounter::LateAnswers);
            return HostVerdict::Taken;
        };
        if source != check.holder {
            self.counters.count(HostCounter::ForgedAnswers);
            return HostVerdict::Taken;
        }
        let is_answer = match key {
            CheckKey::Address(ip) => *says == Saying::Uses(ip),
            _ => true,
        };
        if is_answer {
            self.counters.count(HostCounter::Answers);
            self.note_answer(now, key, out);
        }
        HostVerdict::Taken
    }

    /// Says who claims what of whom, for the operator.
    pub(super) fn offence(&self, key: CheckKey, holder: Source, claimant: Source) -> Offence {
        let name = self.host(holder.mac).map_or_else(|| holder.mac.to_string(), probe::describe);
        let returned = self.table.get(holder.mac).is_some_and(|known| known.left == Some(claimant.at));
        let (kind, text) = match key {
            CheckKey::Address(ip) => {
                let text =
                    format!("{} at {} claims {ip}, but {name} at {} answers", claimant.mac, claimant.at, holder.at);
                (alarm_kind::IP_HIJACK, text)
            }
            _ if returned => {
                let text =
                    format!("{name} left {} while it was down, is at {} and answers there", claimant.at, holder.at);
                let text = format!("{text}, and is at {} again: one of the two is not genuine", claimant.at);
                (alarm_kind::HOST_CONFLICT, text)
            }
            _ => {
                (alarm_kind::HOST_HIJACK, format!("{name} is claimed at {}, but answers at {}", claimant.at, holder.at))
            }
        };
        Offence { kind, text, holder: Some(holder.at) }
    }
}
