//! Confirms intents in the data plane, and handles their timers.
use super::config::{MOST_COMPILED, MOST_PROBES};
use super::graph::nanos;
use super::intent::{Intent, IntentNo, Probe, Stage};
use super::probe;
use super::spec::IntentState;
use super::store::{IntentAction, IntentStore};
use crate::map::{NetworkMap, SwitchPort};
use std::ops::Bound;
use weir_units::Instant;

impl IntentStore {
    /// Sends the confirmation packets of the present way.
    pub(super) fn confirm(&mut self, now: Instant, number: IntentNo) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let Some(laid) = &intent.laid else { return };
        if laid.captures.is_empty() {
            self.finish(number);
            let again = self.intents.get(&number).is_some_and(|intent| intent.notes.unconfirmed.is_some());
            self.set_due(number, again.then_some(now + self.config.retry_after));
            return;
        }
        let probe = |plan: &super::layout::ProbePlan| Probe { plan: plan.clone(), numbers: Vec::new(), arrived: false };
        intent.probes = laid.layout.probes.iter().map(probe).collect();
        (intent.stage, intent.tries) = (Stage::Probes, 0);
        if self.sent.len() < MOST_PROBES {
            self.send_probes(now, number);
        } else {
            self.set_due(number, None);
            self.unconfirmed.push_back(number);
        }
    }

    /// Sends confirmation packets of intents that wait for it, as far as not too many are under way.
    fn send_waiting(&mut self, now: Instant) {
        while self.sent.len() < MOST_PROBES
            && let Some(number) = self.unconfirmed.pop_front()
        {
            // It may be taken down, or have other ways, since it began to wait.
            let waits = |intent: &Intent| intent.stage == Stage::Probes && intent.tries == 0;
            if self.intents.get(&number).is_some_and(waits) {
                self.send_probes(now, number);
            }
        }
    }

    /// Sends those confirmation packets that have not arrived.
    fn send_probes(&mut self, now: Instant, intent_no: IntentNo) {
        let Some(intent) = self.intents.get_mut(&intent_no) else { return };
        intent.tries += 1;
        for probe in intent.probes.iter_mut().filter(|probe| !probe.arrived) {
            let number = self.next_probe;
            self.next_probe += 1;
            let code = probe::code(&self.key, number);
            let Some(frame) = probe::build(&probe.plan.matching, number, code) else { continue };
            probe.numbers.push(number);
            self.sent.insert(number, intent_no);
            self.counters.probes_sent += 1;
            self.actions.push(IntentAction::SendProbe { at: probe.plan.at, frame });
        }
        self.set_due(intent_no, Some(now + self.config.probe_timeout));
    }

    /// Handles a packet that a switch has sent to the controller: returns true if it claims to be a confirmation
    /// packet, which later parts need not see. `at` is the port by which it reached the switch.
    pub fn handle_probe(&mut self, at: SwitchPort, frame: &[u8]) -> bool {
        let Some((number, code)) = probe::read(frame) else { return false };
        let known = self.sent.get(&number).filter(|_| code == probe::code(&self.key, number)).copied();
        let Some(intent) = known.and_then(|known| self.intents.get_mut(&known)) else {
            self.counters.probes_not_ours += 1;
            return true;
        };
        let expected = |probe: &&mut Probe| probe.plan.end == at && probe.numbers.contains(&number);
        let Some(probe) = intent.probes.iter_mut().find(expected) else {
            // It came back from elsewhere, for example because the first switch has no entry for it.
            self.counters.probes_not_ours += 1;
            return true;
        };
        if !std::mem::replace(&mut probe.arrived, true) {
            intent.confirmed += 1;
            self.counters.probes_arrived += 1;
        }
        let all = intent.probes.iter().all(|probe| probe.arrived);
        if let Some(known) = known.filter(|_| all) {
            if let Some(intent) = self.intents.get_mut(&known) {
                intent.notes.unconfirmed = None;
            }
            self.set_due(known, None);
            self.finish(known);
        }
        true
    }

    /// Ends the confirmation of an intent.
    fn finish(&mut self, number: IntentNo) {
        self.drop_captures(number);
        if let Some(intent) = self.intents.get_mut(&number) {
            intent.stage = Stage::Idle;
        }
        self.settle(number);
    }

    /// Handles timers that are due: packets that did not arrive, switches that do not confirm, better ways, and intents
    /// that wait to be compiled.
    pub fn handle_wake(&mut self, now: Instant, map: &NetworkMap) {
        self.compile_queue(now, map);
        self.send_waiting(now);
        while let Some((at, number)) = self.timers.first().copied()
            && at <= now
        {
            self.set_due(number, None);
            self.handle_timer(now, number);
        }
        self.look_for_better(now, map);
    }

    fn handle_timer(&mut self, now: Instant, number: IntentNo) {
        let tries = self.config.probe_tries;
        let Some(intent) = self.intents.get_mut(&number) else { return };
        match (intent.stage, intent.state) {
            (_, IntentState::Withdrawn) => {}
            (Stage::Idle, IntentState::Failed) => self.enqueue(number),
            (Stage::Probes, _) if intent.tries < tries => self.send_probes(now, number),
            (Stage::Probes, _) => self.give_up(now, number),
            (Stage::Idle, _) => self.confirm_again(now, number),
            (Stage::Carriers | Stage::Mains | Stage::Captures | Stage::Back, _) => {
                intent.notes.silent = Some("switches have not confirmed their entries".to_owned());
                self.settle(number);
                self.set_due(number, Some(now + self.config.confirm_within));
            }
        }
    }

    /// Ends a confirmation for which packets are missing, until it is tried again.
    fn give_up(&mut self, now: Instant, number: IntentNo) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let missing: Vec<&Probe> = intent.probes.iter().filter(|probe| !probe.arrived).collect();
        let (count, all) = (missing.len(), intent.probes.len());
        let example = missing.first().map(|probe| format!(", from port {} to port {}", probe.plan.at, probe.plan.end));
        let example = example.unwrap_or_default();
        let text =
            format!("confirmation: {count} of {all} packets did not arrive after {} tries{example}", intent.tries);
        intent.notes.unconfirmed = Some(text);
        self.counters.probes_lost += u64::try_from(count).unwrap_or(0);
        self.finish(number);
        self.set_due(number, Some(now + self.config.retry_after));
    }

    /// Confirms an intent again that could not be confirmed, or that is back on its former way.
    fn confirm_again(&mut self, now: Instant, number: IntentNo) {
        let Some(laid) = self.intents.get(&number).and_then(|intent| intent.laid.as_ref()) else { return };
        let routes = laid.layout.captures.clone();
        if routes.is_empty() {
            return;
        }
        let routes: Vec<_> = routes.into_iter().map(|route| (self.new_route(number), route)).collect();
        if let Some(intent) = self.intents.get_mut(&number) {
            intent.stage = Stage::Captures;
            if let Some(laid) = &mut intent.laid {
                laid.captures = routes.iter().map(|(id, _)| *id).collect();
            }
        }
        self.lay_routes(now, number, routes);
    }

    /// Looks whether intents have better ways now, or whether a condition of theirs no longer holds; at most
    /// [`MOST_COMPILED`] intents a call.
    fn look_for_better(&mut self, now: Instant, map: &NetworkMap) {
        let Some((at, after)) = self.look.filter(|(at, _)| *at <= now) else { return };
        let from = (Bound::Excluded(after), Bound::Unbounded);
        let numbers: Vec<IntentNo> = self.intents.range(from).map(|(number, _)| *number).take(MOST_COMPILED).collect();
        self.graph.refresh(map, &self.config);
        numbers.iter().for_each(|number| self.look_at(now, *number, map));
        self.look = match numbers.into_iter().last() {
            Some(last) => Some((at, last)),
            None if self.intents.is_empty() => None,
            None => Some((now + self.config.better_after, IntentNo::default())),
        };
    }

    /// Looks at one intent that waits for nothing.
    fn look_at(&mut self, now: Instant, number: IntentNo, map: &NetworkMap) {
        let idle = |intent: &&super::intent::Intent| intent.stage == Stage::Idle && intent.laid.is_some();
        if self.intents.get(&number).filter(idle).is_none() {
            return;
        }
        let Some(plan) = self.plan(number, map) else { return };
        let Some(holds) = self.holds(number, map) else { return };
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let Some(laid) = &intent.laid else { return };
        let old = laid.plan.length(map, &self.config);
        let plan = match plan {
            Err(_) if holds.is_ok() => return,
            Err(_) => {
                intent.notes.condition = holds.err();
                return self.settle(number);
            }
            Ok(plan) => plan,
        };
        let restores = holds.is_err() || laid.plan.lacks.is_some() && plan.lacks.is_none();
        let gain = old.saturating_sub(plan.length(map, &self.config));
        let is_certain = plan.n_links() < laid.plan.n_links() || gain >= nanos(self.config.better_by_time);
        let shorter = gain as f64 >= old as f64 * self.config.better_by && is_certain;
        let was_better = std::mem::replace(&mut intent.better, shorter && plan.lacks.is_none());
        if restores || intent.better && was_better {
            intent.notes.condition = None;
            self.counters.bettered += 1;
            self.adopt(now, number, plan, true);
        } else if intent.notes.condition.take().is_some() {
            self.settle(number);
        }
    }

    /// Returns what the bound of an intent's delay says about its present ways; `None` if the intent has none.
    fn holds(&self, number: IntentNo, map: &NetworkMap) -> Option<Result<(), String>> {
        use super::delay::{DelayInput, excess, largest};
        let intent = self.intents.get(&number)?;
        let laid = intent.laid.as_ref()?;
        let Some(bound) = &intent.wanted.delay else { return Some(Ok(())) };
        let load = |lane| super::check::measured(&self.loads, lane).max(self.reserved.of(lane) as f64);
        let input = DelayInput { map, config: &self.config, load: &load };
        let ways = laid.plan.ways.iter().chain(&laid.plan.spare);
        let excess = largest(&input, ways, bound.kind).map(|delay| delay.and_then(|delay| excess(&delay, bound)));
        Some(match excess {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(reason),
            Err(reason) => Err(format!("delay: {reason}")),
        })
    }
}
