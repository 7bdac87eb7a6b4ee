//! Changes of switches, ports and links, and what the tracker makes of them.
use super::HostTracker;
use super::blocks::Offence;
use super::change::{HostChange, alarm_kind};
use super::checks::{CheckKey, Source};
use super::probe;
use crate::map::SwitchPort;
use weir_units::Instant;

impl HostTracker {
    /// Handles a switch that has connected. [`HostTracker::handle_port_up`] follows for each of its ports that is up.
    pub fn handle_switch_up(&mut self, now: Instant, dpid: u64) {
        self.ports.set_switch_up(now, dpid, &self.config);
    }

    /// Handles a switch that is no longer connected. Its hosts are known on, but are believed elsewhere at once.
    pub fn handle_switch_down(&mut self, now: Instant, dpid: u64, out: &mut Vec<HostChange>) {
        let gone = self.ports.set_switch_down(dpid);
        gone.into_iter().for_each(|at| self.conclude_down(now, at, out));
    }

    /// Handles a port that has come up, or is up when its switch connects.
    pub fn handle_port_up(&mut self, now: Instant, at: SwitchPort) {
        self.ports.set_up(now, at, &self.config);
    }

    /// Handles a port that has gone down or is gone. Its hosts are known on, but are believed elsewhere at once.
    pub fn handle_port_down(&mut self, now: Instant, at: SwitchPort, out: &mut Vec<HostChange>) {
        let had_hosts = self.ports.hosts(at).any(|mac| self.is_established(now, at, mac));
        self.ports.set_down(now, at, had_hosts);
        self.conclude_down(now, at, out);
    }

    /// Handles a link that was found: a port leads to another switch, to its port `peer`. Returns whether that may be
    /// believed; the link may be believed if it is at both of its ends. If so, hosts at the port are forgotten, because
    /// their packets came over the link.
    ///
    /// The link is not believed of a port with hosts that have been there for [`HostConfig::settle_time`], or that were
    /// there when the port went down less than [`HostConfig::amnesia_time`] ago; these are alarms. The link is believed
    /// if one of the two switches connected less than [`HostConfig::settle_time`] ago, because its links may be older
    /// than the connection.
    ///
    /// Has to be called again when a link is up again after one of its ports was down.
    ///
    /// [`HostConfig::settle_time`]: super::HostConfig::settle_time
    /// [`HostConfig::amnesia_time`]: super::HostConfig::amnesia_time
    pub fn handle_trunk(&mut self, now: Instant, at: SwitchPort, peer: SwitchPort, out: &mut Vec<HostChange>) -> bool {
        if self.ports.is_trunk(at) {
            return true;
        }
        let is_new = [at, peer].iter().any(|end| self.ports.is_new_switch(now, end.dpid, self.config.settle_time));
        if !is_new && let Some((kind, text)) = self.doubt_of_link(now, at, peer) {
            if self.ports.note_link_alarm(now, at) {
                self.alarm(kind, text, out);
            }
            return false;
        }
        self.ports.set_trunk(now, at, &self.config);
        self.unblock(now, |source, _| source.at == at, out);
        self.give_up_claims(at);
        let hosts: Vec<_> = self.ports.hosts(at).collect();
        hosts.into_iter().for_each(|mac| self.remove_host(mac, out));
        true
    }

    /// Returns why a link should not be believed.
    fn doubt_of_link(&self, now: Instant, at: SwitchPort, peer: SwitchPort) -> Option<(&'static str, String)> {
        if self.ports.lost_hosts_lately(now, at, self.config.amnesia_time) {
            let text = format!("port {at} had hosts, went down, and now seems to lead to {peer}; not believed");
            return Some((alarm_kind::PORT_AMNESIA, text));
        }
        let host = self.ports.hosts(at).find(|mac| self.is_established(now, at, *mac))?;
        let name = self.host(host).map_or_else(|| host.to_string(), probe::describe);
        let text = format!("port {at}, where host {name} is, seems to lead to {peer}; not believed");
        Some((alarm_kind::LINK_AT_HOST_PORT, text))
    }

    /// Handles a link that is no longer known at a port. Unless the port goes down, it may still lead to another
    /// switch, so nothing is learned there for [`HostConfig::trunk_memory`](super::HostConfig::trunk_memory).
    pub fn handle_edge(&mut self, now: Instant, at: SwitchPort) {
        self.ports.set_edge(now, at, &self.config);
    }

    /// Concludes checks of hosts at a port that is down, and gives up those that a source there has caused. Sources
    /// that were blocked because of hosts at the port are no longer: if one of them is the genuine host, it can be
    /// reached as soon as the false one is gone.
    fn conclude_down(&mut self, now: Instant, at: SwitchPort, out: &mut Vec<HostChange>) {
        self.give_up_claims(at);
        for key in self.checks.select(|check| check.holder.at == at) {
            if let Some(check) = self.checks.remove(key).filter(|_| !matches!(key, CheckKey::Age(_))) {
                self.conclude_silence(now, key, &check, out);
            }
        }
        for offence in self.unblock(now, |_, holder| holder == at, out) {
            self.alarm(offence.kind, offence.text, out);
        }
    }

    /// Gives up checks of what sources at a port claim.
    fn give_up_claims(&mut self, at: SwitchPort) {
        for key in self.checks.select(|check| check.claimant.is_some_and(|claimant| claimant.at == at)) {
            self.checks.remove(key);
        }
    }

    /// Ends blocks that `is_meant` accepts, by their source and the port of the host whose address it claimed. Returns
    /// the offences that were not said yet.
    fn unblock(
        &mut self,
        now: Instant,
        is_meant: impl Fn(Source, SwitchPort) -> bool,
        out: &mut Vec<HostChange>,
    ) -> Vec<Offence> {
        let mut unsaid = Vec::new();
        for (Source { at, mac }, was_blocked, offence) in self.blocks.end(now, is_meant) {
            if was_blocked {
                out.push(HostChange::Unblock { at, mac });
            }
            unsaid.extend(offence);
        }
        unsaid
    }
}
