//! Outcomes of checks: moves, removals, and what is done about forged claims.
use super::HostTracker;
use super::blocks::Offence;
use super::change::HostChange;
use super::checks::{Check, CheckKey, CheckStep, Source};
use super::counters::HostCounter;
use super::probe;
use weir_units::Instant;

/// Most hosts that are asked because of their age at a time.
const AGED_AT_ONCE: usize = 64;

impl HostTracker {
    /// Handles what is due: questions, hosts that did not answer, hosts that were silent for long.
    pub fn handle_wake(&mut self, now: Instant, out: &mut Vec<HostChange>) {
        self.run_checks(now, out);
        while let Some((source, offence)) = self.blocks.take_due(now) {
            self.block(now, source, offence, out);
        }
        self.ask_oldest(now, out);
    }

    /// Carries out the steps of checks that are due.
    pub(super) fn run_checks(&mut self, now: Instant, out: &mut Vec<HostChange>) {
        while let Some(step) = self.checks.step(now, &self.config) {
            match step {
                CheckStep::Ask(key, check) => self.ask(key, &check, out),
                CheckStep::Silent(key, check) => self.conclude_silence(now, key, &check, out),
            }
        }
    }

    fn ask(&mut self, key: CheckKey, check: &Check, out: &mut Vec<HostChange>) {
        let Some(known) = self.table.get(check.holder.mac) else { return };
        let (mac, vlan) = (check.holder.mac, known.vlan);
        let frames = match key {
            CheckKey::Address(ip) => vec![probe::frame_for_address(check.probe, mac, ip, vlan)],
            _ => probe::frames_for_host(check.probe, mac, &known.newest_ips(), vlan),
        };
        for frame in frames {
            self.counters.count(HostCounter::Probes);
            out.push(HostChange::Probe { to: check.holder.at, frame });
        }
    }

    /// Handles a host that was asked and did not answer: what was claimed is true.
    pub(super) fn conclude_silence(&mut self, now: Instant, key: CheckKey, check: &Check, out: &mut Vec<HostChange>) {
        match (key, check.claimant) {
            (CheckKey::Place(_), Some(claimant)) => self.conclude_move(now, check.holder, claimant, out),
            (CheckKey::Address(ip), Some(claimant)) => {
                let is_there = |source: Source| self.host(source.mac).is_some_and(|host| host.at == source.at);
                // A host that has moved meanwhile was asked at the wrong port.
                let is_holder = self.table.owner(ip) == Some(check.holder.mac) && is_there(check.holder);
                if is_there(claimant) && is_holder {
                    self.hand_over_ip(now, check.holder.mac, claimant.mac, ip, out);
                }
            }
            (CheckKey::Age(mac), _) if self.host(mac).is_some_and(|host| host.at == check.holder.at) => {
                self.remove_host(mac, out);
            }
            _ => {}
        }
    }

    fn conclude_move(&mut self, now: Instant, holder: Source, claimant: Source, out: &mut Vec<HostChange>) {
        match self.host(claimant.mac).map(|host| host.at) {
            None => _ = self.add_host(now, claimant, out),
            Some(at) if at == holder.at => self.move_host(now, claimant, None, out),
            Some(_) => {}
        }
    }

    /// Handles an answer of the host that was asked.
    pub(super) fn note_answer(&mut self, now: Instant, key: CheckKey, out: &mut Vec<HostChange>) {
        let Some(check) = self.checks.remove(key) else { return };
        if self.table.see(now, check.holder.mac, self.ports.up_since(check.holder.at)) {
            out.push(HostChange::Seen { mac: check.holder.mac, at: now });
        }
        if let Some(claimant) = check.claimant {
            let offence = self.offence(key, check.holder, claimant);
            self.punish(now, claimant, offence, out);
        }
    }

    /// Blocks a source and raises an alarm; if the port came up a moment ago, only when it has been up for a while,
    /// because it may lead to another switch.
    pub(super) fn punish(&mut self, now: Instant, source: Source, offence: Offence, out: &mut Vec<HostChange>) {
        self.counters.count(HostCounter::RefusedClaims);
        let settled = self.ports.up_since(source.at) + self.config.settle_time;
        if settled > now {
            self.blocks.wait(now, settled, source, offence, &self.config);
        } else {
            self.block(now, source, offence, out);
        }
    }

    fn block(&mut self, now: Instant, source: Source, offence: Offence, out: &mut Vec<HostChange>) {
        let time = self.blocks.block(now, source, offence.holder, &self.config);
        out.push(HostChange::Block { at: source.at, mac: source.mac, time });
        self.alarm(offence.kind, offence.text, out);
    }

    /// Asks the hosts that were silent for long. Those at ports that are down are removed.
    fn ask_oldest(&mut self, now: Instant, out: &mut Vec<HostChange>) {
        for _ in 0..AGED_AT_ONCE {
            let oldest = self.table.oldest().filter(|(key, _)| *key + self.config.max_age <= now);
            let Some(known) = oldest.and_then(|(_, mac)| self.table.get(mac)) else { return };
            let holder = Source { at: known.host.at, mac: known.host.mac };
            if !self.ports.is_up(holder.at) {
                self.remove_host(holder.mac, out);
                continue;
            }
            let begun = self.checks.begin(now, CheckKey::Age(holder.mac), holder, None, &self.config);
            // Without room for the check it is tried again after the patience.
            let wait = if begun { self.config.max_age } else { self.config.move_patience };
            self.table.set_age_key(holder.mac, now + wait - self.config.max_age);
        }
        self.run_checks(now, out);
    }
}
