//! Checks under way: hosts that are asked whether they are where they were.
use super::config::HostConfig;
use super::probe::probe_address;
use crate::map::SwitchPort;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Number of times that a host is asked, spread evenly over the patience, so that one lost frame does not decide.
const TIMES_ASKED: u32 = 3;

/// Subject of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CheckKey {
    /// A host is claimed at another port.
    Place(MacAddr),
    /// An IP address is claimed by another host.
    Address(IpAddr),
    /// A host was silent for long.
    Age(MacAddr),
}

/// A source of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    pub(super) at: SwitchPort,
    pub(super) mac: MacAddr,
}

/// A check under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check {
    /// Host that is asked, where it was.
    pub(super) holder: Source,
    /// Source of the claim; `None` if there is none.
    pub(super) claimant: Option<Source>,
    /// Address from which it is asked.
    pub(super) probe: MacAddr,
    begun: Instant,
    asked: u32,
    due: Instant,
}

/// Step of a check that is due.
#[derive(Debug, Clone, Copy)]
pub(super) enum CheckStep {
    /// The host has to be asked.
    Ask(CheckKey, Check),
    /// The host did not answer.
    Silent(CheckKey, Check),
}

/// Checks under way.
#[derive(Debug, Default)]
pub(super) struct CheckList {
    checks: BTreeMap<CheckKey, Check>,
    by_probe: BTreeMap<MacAddr, CheckKey>,
    due: BTreeSet<(Instant, CheckKey)>,
    /// Number of claims by port.
    claims: BTreeMap<SwitchPort, usize>,
    /// Makes the addresses of checks (SipHash). The key stays in the program.
    secret: RandomState,
    n_begun: u64,
}

impl CheckList {
    pub(super) fn get(&self, key: CheckKey) -> Option<&Check> {
        self.checks.get(&key)
    }

    /// Begins a check. Returns false if too many are under way.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        key: CheckKey,
        holder: Source,
        claimant: Option<Source>,
        config: &HostConfig,
    ) -> bool {
        let of_port = claimant.and_then(|claimant| self.claims.get(&claimant.at)).copied().unwrap_or(0);
        if self.checks.len() >= config.max_checks || of_port >= config.max_checks_per_port {
            return false;
        }
        self.remove(key);
        let probe = self.new_probe();
        self.by_probe.insert(probe, key);
        self.due.insert((now, key));
        if let Some(claimant) = claimant {
            *self.claims.entry(claimant.at).or_default() += 1;
        }
        self.checks.insert(key, Check { holder, claimant, probe, begun: now, asked: 0, due: now });
        true
    }

    /// Returns an address that no check uses.
    fn new_probe(&mut self) -> MacAddr {
        loop {
            self.n_begun += 1;
            let [a, b, c, d, ..] = self.secret.hash_one(self.n_begun).to_be_bytes();
            let probe = probe_address(u32::from_be_bytes([a, b, c, d]));
            if !self.by_probe.contains_key(&probe) {
                return probe;
            }
        }
    }

    pub(super) fn remove(&mut self, key: CheckKey) -> Option<Check> {
        let check = self.checks.remove(&key)?;
        self.by_probe.remove(&check.probe);
        self.due.remove(&(check.due, key));
        if let Some(claimant) = check.claimant
            && let Some(count) = self.claims.get_mut(&claimant.at)
        {
            *count -= 1;
            if *count == 0 {
                self.claims.remove(&claimant.at);
            }
        }
        Some(check)
    }

    /// Returns the check whose host was asked from an address.
    pub(super) fn of_probe(&self, probe: MacAddr) -> Option<(CheckKey, Check)> {
        let key = *self.by_probe.get(&probe)?;
        self.checks.get(&key).map(|check| (key, *check))
    }

    /// Returns the checks that `is_meant` accepts.
    pub(super) fn select(&self, is_meant: impl Fn(&Check) -> bool) -> Vec<CheckKey> {
        self.checks.iter().filter(|(_, check)| is_meant(check)).map(|(key, _)| *key).collect()
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns the next step that is due, and prepares the one after it. A check whose host was silent is over.
    pub(super) fn step(&mut self, now: Instant, config: &HostConfig) -> Option<CheckStep> {
        let (at, key) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        let check = self.checks.get_mut(&key)?;
        if check.asked >= TIMES_ASKED {
            return self.remove(key).map(|check| CheckStep::Silent(key, check));
        }
        check.asked += 1;
        check.due = check.begun + config.move_patience * check.asked / TIMES_ASKED;
        let check = *check;
        self.due.remove(&(at, key));
        self.due.insert((check.due, key));
        Some(CheckStep::Ask(key, check))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_openflow::model::PortNo;

    fn source(port: u32, last: u8) -> Source {
        Source { at: SwitchPort::new(1, PortNo(port)), mac: MacAddr([2, 0, 0, 0, 0, last]) }
    }

    #[test]
    fn a_silent_host_is_asked_three_times_within_the_patience() {
        let (mut checks, config) = (CheckList::default(), HostConfig::default());
        let (key, mut asked) = (CheckKey::Age(source(1, 1).mac), Vec::new());
        let begin = Instant::from_nanos(1000);
        assert!(checks.begin(begin, key, source(1, 1), None, &config));
        let end = loop {
            let now = checks.next_due().expect("it is under way");
            match checks.step(now, &config) {
                Some(CheckStep::Ask(..)) => asked.push(now.since(begin)),
                _ => break now.since(begin),
            }
        };
        let times = [0, 66_666_666, 133_333_333].map(Duration::from_nanos);
        assert_eq!((asked.as_slice(), end, checks.checks.len()), (&times[..], config.move_patience, 0));
    }

    #[test]
    fn claims_are_bounded_in_all_and_by_port() {
        let config = HostConfig { max_checks: 3, max_checks_per_port: 2, ..HostConfig::default() };
        let mut checks = CheckList::default();
        let mut begin = |last, port| {
            let claimed = source(9, last);
            let (key, claimant) = (CheckKey::Place(claimed.mac), Some(source(port, last)));
            checks.begin(Instant::ZERO, key, claimed, claimant, &config)
        };
        assert_eq!([begin(1, 1), begin(2, 1), begin(3, 1)], [true, true, false], "by port");
        assert_eq!([begin(3, 2), begin(4, 3)], [true, false], "in all");
        checks.remove(CheckKey::Place(source(9, 1).mac));
        checks.remove(CheckKey::Place(source(9, 2).mac));
        checks.remove(CheckKey::Place(source(9, 3).mac));
        assert!(checks.by_probe.is_empty() && checks.claims.is_empty() && checks.due.is_empty());
    }
}
