//! Compares switches with what they should have, round by round, and carries out the steps in between.
use super::verdicts::{NetworkVerdict, verdicts};
use super::{NetworkService, NetworkServiceError};
use crate::plan::{PlannedSlice, SliceSpec, plan};
use crate::store::StateStore;
use crate::switches::{SwitchAccess, SwitchFailure};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_units::Instant;

/// Time between two looks at switches that should have what they have.
const LOOK: Duration = Duration::from_secs(5);

/// Findings of a round.
#[derive(Debug, Default)]
pub(super) struct RoundFindings {
    /// Virtual switches of each switch that answers.
    pub(super) present: BTreeMap<String, Vec<SliceSpec>>,
    /// Reasons why switches do not answer.
    pub(super) silent: BTreeMap<String, String>,
    /// Networks with a step that a switch refused, or with a conflict, and the reason.
    pub(super) refused: BTreeMap<String, String>,
}

impl<S: StateStore, A: SwitchAccess> NetworkService<S, A> {
    /// Carries out what is due at the machine's time `now`, in nanoseconds since 1970. Returns the time of the next
    /// call; one that comes earlier, such as after a request, is no mistake.
    ///
    /// # Errors
    /// The store cannot be written. No step was carried out then that it does not know of.
    pub fn round(&mut self, now: Instant) -> Result<Instant, NetworkServiceError> {
        self.change(|manager| {
            manager.advance(now);
            Ok(())
        })?;
        let next_look = self.looked.map_or(now, |looked| looked + LOOK);
        // A clock that goes back makes a look earlier, not later.
        let is_early = now < next_look && next_look - now <= LOOK;
        if is_early && !self.manager.has_work() {
            return Ok(self.next_call(now));
        }
        let slices = self.planned();
        let mut findings = RoundFindings::default();
        let switches: BTreeSet<&str> = slices.iter().map(|slice| slice.switch.as_str()).collect();
        switches.iter().for_each(|switch| self.look_at(switch, now, &mut findings));
        let touched = self.carry_out(&slices, now, &mut findings);
        touched.iter().for_each(|switch| self.look_at(switch, now, &mut findings));
        self.looked = Some(now);
        let verdicts = verdicts(&slices, &findings);
        let is_news = self.conclude(verdicts, now)?;
        Ok(if is_news { now } else { self.next_call(now) })
    }

    /// Returns the time at which something is due.
    fn next_call(&self, now: Instant) -> Instant {
        let look = self.looked.map_or(now, |looked| looked + LOOK);
        let retries = self.backoff.values().map(super::SwitchBackoff::next).filter(|_| self.manager.has_work());
        retries.chain(self.manager.due()).fold(look, Instant::min).max(now)
    }

    /// Reads a switch, unless it did not answer a moment ago.
    fn look_at(&mut self, switch: &str, now: Instant, findings: &mut RoundFindings) {
        if let Some(backoff) = self.backoff.get(switch).filter(|backoff| backoff.is_waiting(now)) {
            findings.silent.insert(switch.to_owned(), backoff.problem().to_owned());
            return;
        }
        match self.switches.read(switch) {
            Ok(found) => {
                self.backoff.remove(switch);
                findings.present.insert(switch.to_owned(), found);
            }
            Err(failure) => self.note_silent(switch, now, failure.to_string(), findings),
        }
    }

    fn note_silent(&mut self, switch: &str, now: Instant, problem: String, findings: &mut RoundFindings) {
        self.backoff.entry(switch.to_owned()).or_default().failed(now, problem.clone());
        findings.present.remove(switch);
        findings.silent.insert(switch.to_owned(), problem);
    }

    /// Carries out the steps of a plan, and returns the switches that were asked. Steps behind one that failed are left
    /// out: on its switch if that does not answer, of its network if it was refused. Later rounds plan them again.
    fn carry_out(&mut self, slices: &[PlannedSlice], now: Instant, findings: &mut RoundFindings) -> BTreeSet<String> {
        let plan = plan(slices, &findings.present);
        for conflict in plan.conflicts {
            findings.refused.entry(conflict.network).or_insert(conflict.problem);
        }
        let mut touched = BTreeSet::new();
        let mut stopped: BTreeSet<String> = BTreeSet::new();
        for step in &plan.steps {
            if findings.silent.contains_key(step.switch()) || stopped.contains(step.network()) {
                // What is behind a step that is left out would be carried out before it.
                stopped.insert(step.network().to_owned());
                continue;
            }
            tracing::debug!("network {}: {step}", step.network());
            match self.switches.carry_out(step) {
                Ok(()) => _ = touched.insert(step.switch().to_owned()),
                Err(SwitchFailure::Refused { problem, .. }) => {
                    let problem = format!("{step}: {problem}");
                    findings.refused.entry(step.network().to_owned()).or_insert(problem);
                    stopped.insert(step.network().to_owned());
                }
                Err(failure) => {
                    touched.remove(step.switch());
                    self.note_silent(step.switch(), now, failure.to_string(), findings);
                    stopped.insert(step.network().to_owned());
                }
            }
        }
        touched
    }

    /// Writes what was found out about networks. Returns true if another round is needed at once.
    fn conclude(
        &mut self,
        verdicts: BTreeMap<String, NetworkVerdict>,
        now: Instant,
    ) -> Result<bool, NetworkServiceError> {
        let is_news = verdicts.values().any(|verdict| match verdict {
            NetworkVerdict::Gone | NetworkVerdict::Impossible(_) => true,
            NetworkVerdict::Complete | NetworkVerdict::Troubled(_) => false,
        });
        self.change(|manager| {
            for (network, verdict) in verdicts {
                match verdict {
                    NetworkVerdict::Complete => manager.confirmed(&network, now),
                    NetworkVerdict::Gone => manager.removed(&network, now),
                    NetworkVerdict::Troubled(problem) => manager.troubled(&network, problem, now),
                    NetworkVerdict::Impossible(problem) => manager.refused(&network, problem, now),
                }
            }
            Ok(())
        })?;
        Ok(is_news)
    }
}
