//! Keeps the state of the switch under test (its entries and what is known of its levels), and sends it commands and
//! packets.
mod burst;
mod learning;
mod ports;
mod probing;
mod series;

pub(crate) use burst::{CommandBurstOutcome, CompletionSign, EntryWatch};
pub(crate) use ports::packet_out;
pub(crate) use probing::PlannedProbe;
pub use series::CommandCompletion;

use crate::device::{DeviceEvent, DeviceUnderTest};
use crate::rules::{SHORTEST, TestFlowEntry, delete_group};
use crate::terms::CostTermCounts;
use crate::{MeasurementSettings, ProfilerError};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_device::{FlowCache, ProfiledTables};
use weir_model::switch::device::SwitchModel;
use weir_model::switch::policy::{EvictionAttribute, EvictionCriterion};
use weir_openflow::model::{FlowMod, PortNo};
use weir_openflow::{Body, Message};
use weir_profile::FlowCacheTiming;
use weir_units::Instant;

/// Commands sent at once while unmeasured entries are added or deleted.
const FILL: usize = 64;

/// Longest wait for the switch to delete the entries that an aborted measurement left in it.
const LEAVING: Duration = Duration::from_secs(10);
/// Lateness above which a packet counts as sent late.
const LATE: Duration = Duration::from_micros(500);

/// A change of flow entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestEntryChange {
    /// Adds an entry; its packets leave by the second interface.
    Add(TestFlowEntry),
    /// Changes where an entry's packets leave.
    Modify(TestFlowEntry, TestEntryOutput),
    /// Deletes one entry.
    Delete(TestFlowEntry),
    /// Deletes all entries of a group.
    DeleteGroup(u32),
}

/// Output of an entry's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestEntryOutput {
    /// Out of the second interface.
    On,
    /// Out of the third interface; back out of the first if there is no third.
    Aside,
}

/// Switch under test with the entries and levels known to be in it.
pub(crate) struct TestBench<'a> {
    pub(crate) device: &'a mut dyn DeviceUnderTest,
    pub(crate) settings: MeasurementSettings,
    pub(crate) random: fastrand::Rng,
    /// Port numbers of the switch behind the interfaces.
    ports: Vec<PortNo>,
    /// Entries in the switch by number, each with its output.
    rules: BTreeMap<u32, (TestFlowEntry, TestEntryOutput)>,
    /// Levels with the entries in them; none until the levels are known.
    tables: Option<ProfiledTables>,
    model: Option<SwitchModel>,
    xid: u32,
    run: u16,
    /// Forwarding time of each level, as far as known. Packets to an entry are not sent faster than this.
    forwarding: Vec<Duration>,
    /// Time that a packet without a matching entry occupies the switch, as far as known.
    missing: Duration,
    /// Flows that packets were sent to: those in the switch's cache, if `has_cache`.
    cache: FlowCache,
    has_cache: bool,
    /// Number of packets sent, and number of those sent late.
    sent: [u64; 2],
    /// True while completion times do not matter: packets are sent rarely then.
    is_coarse: bool,
    stop: &'a mut dyn FnMut() -> bool,
    /// Current activity, for error messages.
    pub(crate) during: String,
}

impl<'a> TestBench<'a> {
    pub(crate) fn new(
        device: &'a mut dyn DeviceUnderTest,
        settings: MeasurementSettings,
        stop: &'a mut dyn FnMut() -> bool,
    ) -> Self {
        TestBench {
            random: fastrand::Rng::with_seed(settings.seed),
            device,
            settings,
            ports: Vec::new(),
            rules: BTreeMap::new(),
            tables: None,
            model: None,
            // Sessions number their own messages from 1.
            xid: 1 << 16,
            run: 0,
            forwarding: Vec::new(),
            missing: Duration::ZERO,
            cache: FlowCache::endless(),
            has_cache: false,
            sent: [0; 2],
            is_coarse: false,
            stop,
            during: "shaking hands".to_owned(),
        }
    }

    /// Sets what is known of the switch's levels from now on, and deletes all its entries.
    pub(crate) fn know(&mut self, model: SwitchModel) -> Result<(), ProfilerError> {
        self.model = Some(model);
        self.clear()
    }

    /// Sets what is known of the switch's cache of flows.
    pub(crate) fn knows_cache(&mut self, cache: Option<&FlowCacheTiming>) {
        self.has_cache = cache.is_some();
        cache.into_iter().for_each(|cache| self.cache.limit(cache));
    }

    /// Sends a packet to each entry, so that the switch's cache has their flows. Does nothing without a cache.
    pub(crate) fn fill_cache(&mut self) -> Result<(), ProfilerError> {
        if !self.has_cache {
            return Ok(());
        }
        let gap = Duration::from_millis(1).max(self.forwarding() * 4);
        let packet = |(rule, _)| PlannedProbe { rule, bytes: SHORTEST, gap };
        let planned: Vec<PlannedProbe> = self.rules().map(packet).collect();
        self.delays(&planned).map(drop)
    }

    /// Records a packet of an entry in the known cache.
    fn note_flow(&mut self, rule: &TestFlowEntry) {
        let now = self.device.now();
        self.cache.packet_ns(now, rule.number.into());
    }

    /// Returns true if [`TestBench::fill`] sends packets to the entry with this index, of `all` entries.
    pub(crate) fn is_watched(at: usize, all: usize) -> bool {
        at % FILL == FILL - 1 || at + 1 == all
    }

    /// Counts a packet sent at `now` that was due at `due`.
    fn note_sent(&mut self, due: Instant, now: Instant) {
        self.sent[0] += 1;
        self.sent[1] += u64::from(now.since(due) > LATE);
    }

    /// Returns the share of packets sent late because the measuring machine was busy.
    pub(crate) fn late_share(&self) -> f64 {
        self.sent[1] as f64 / self.sent[0].max(1) as f64
    }

    /// Returns the levels with their entries; none until the levels are known.
    pub(crate) fn tables(&self) -> Option<&ProfiledTables> {
        self.tables.as_ref()
    }

    /// Returns true if packets decide which entries move to the next level. Watching entries then changes where they
    /// are.
    pub(crate) fn packets_decide(&self) -> bool {
        let by_packets =
            |rank: &EvictionCriterion| matches!(rank.attribute, EvictionAttribute::Used | EvictionAttribute::Traffic);
        self.model.as_ref().is_some_and(|model| model.levels.len() > 1 && model.policy.0.iter().any(by_packets))
    }

    pub(crate) fn model(&self) -> Option<&SwitchModel> {
        self.model.as_ref()
    }

    /// Returns the number of entries in the switch.
    pub(crate) fn entries(&self) -> usize {
        self.rules.len()
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = (TestFlowEntry, TestEntryOutput)> + '_ {
        self.rules.values().copied()
    }

    pub(crate) fn interface(&self, way: TestEntryOutput) -> usize {
        match way {
            TestEntryOutput::On => 1,
            TestEntryOutput::Aside if self.ports.len() > 2 => 2,
            TestEntryOutput::Aside => 0,
        }
    }

    pub(crate) fn port(&self, interface: usize) -> PortNo {
        self.ports.get(interface).copied().unwrap_or(PortNo::ANY)
    }

    fn out(&self, way: TestEntryOutput) -> PortNo {
        match way {
            TestEntryOutput::Aside if self.ports.len() < 3 => PortNo::IN_PORT,
            way => self.port(self.interface(way)),
        }
    }

    fn body(&self, change: &TestEntryChange) -> Body {
        let in_port = self.port(0);
        Body::FlowMod(match change {
            TestEntryChange::Add(rule) => rule.add(in_port, self.out(TestEntryOutput::On)),
            TestEntryChange::Modify(rule, way) => rule.modify(in_port, self.out(*way)),
            TestEntryChange::Delete(rule) => rule.delete(in_port),
            TestEntryChange::DeleteGroup(group) => delete_group(*group),
        })
    }

    pub(crate) fn message(&mut self, body: Body) -> Message {
        self.xid = self.xid.wrapping_add(1).max(1 << 16);
        Message { xid: self.xid, body }
    }

    /// Returns a run number for the marks of the next packets: packets of former runs carry other numbers.
    pub(crate) fn next_run(&mut self) -> u16 {
        self.run = self.run.wrapping_add(1);
        self.run
    }

    /// Returns an error if the user has asked to stop.
    ///
    /// # Errors
    /// [`ProfilerError::Stopped`] after such a request.
    pub(crate) fn check_stop(&mut self) -> Result<(), ProfilerError> {
        if (self.stop)() { Err(ProfilerError::Stopped) } else { Ok(()) }
    }

    /// Returns the terms of a burst of changes, and records the changes in the known state.
    fn account(&mut self, changes: &[TestEntryChange]) -> CostTermCounts {
        let together = u32::try_from(changes.len()).unwrap_or(u32::MAX);
        let most = self.model.as_ref().map_or(1, |model| model.batching.most);
        let mut terms = CostTermCounts::burst(most > 1 && together < most);
        // Without batching each command is carried out alone.
        let batch = if most > 1 { together } else { 1 };
        for change in changes {
            self.account_one(change, batch, &mut terms);
        }
        terms
    }

    fn account_one(&mut self, change: &TestEntryChange, batch: u32, terms: &mut CostTermCounts) {
        match change {
            TestEntryChange::Add(rule) => {
                if let Some(tables) = &mut self.tables {
                    terms.adding(tables, rule.priority, batch);
                    tables.added(rule.number.into(), rule.priority);
                }
                self.rules.insert(rule.number, (*rule, TestEntryOutput::On));
            }
            TestEntryChange::Modify(rule, way) => {
                if let Some(tables) = &mut self.tables {
                    terms.modifying(tables, rule.number.into(), batch);
                    tables.modified(&[rule.number.into()]);
                }
                self.rules.insert(rule.number, (*rule, *way));
            }
            TestEntryChange::Delete(rule) => self.account_deleted(&[rule.number], terms),
            TestEntryChange::DeleteGroup(group) => {
                let gone: Vec<u32> = self.group(*group).map(|rule| rule.number).collect();
                self.account_deleted(&gone, terms);
            }
        }
    }

    fn account_deleted(&mut self, gone: &[u32], terms: &mut CostTermCounts) {
        if let Some(tables) = &mut self.tables {
            terms.deleting(tables, gone.iter().map(|number| u64::from(*number)));
            gone.iter().for_each(|number| tables.removed(u64::from(*number)));
        }
        self.rules.retain(|number, _| !gone.contains(number));
    }

    /// Returns the entries of a group that are in the switch.
    pub(crate) fn group(&self, group: u32) -> impl Iterator<Item = TestFlowEntry> + '_ {
        let first = crate::rules::number(group, 0);
        self.rules.range(first..first + crate::rules::GROUP_ENTRIES).map(|(_, (rule, _))| *rule)
    }

    /// Removes an entry from the known state because the switch refused it.
    fn forget(&mut self, rule: &TestFlowEntry) {
        self.rules.remove(&rule.number);
        if let Some(tables) = &mut self.tables {
            tables.removed(rule.number.into());
        }
    }

    /// Adds entries, and returns how many the switch accepted before it reported a full table.
    pub(crate) fn fill(&mut self, rules: &[TestFlowEntry]) -> Result<usize, ProfilerError> {
        if !self.has_channel() {
            self.learn(rules)?;
            return Ok(rules.len());
        }
        let mut taken = 0;
        for chunk in rules.chunks(FILL) {
            let changes: Vec<TestEntryChange> = chunk.iter().copied().map(TestEntryChange::Add).collect();
            let watch =
                EntryWatch { command: chunk.len() - 1, rule: chunk[chunk.len() - 1], sign: CompletionSign::Leaves(1) };
            let outcome = self.coarsely(&changes, watch)?;
            taken += chunk.len() - outcome.refused.len();
            if !outcome.refused.is_empty() {
                break;
            }
        }
        Ok(taken)
    }

    /// Deletes entries without measuring.
    pub(crate) fn take_out(&mut self, rules: &[TestFlowEntry]) -> Result<(), ProfilerError> {
        for chunk in rules.chunks(FILL) {
            let changes: Vec<TestEntryChange> = chunk.iter().copied().map(TestEntryChange::Delete).collect();
            let watch =
                EntryWatch { command: chunk.len() - 1, rule: chunk[chunk.len() - 1], sign: CompletionSign::Gone };
            self.coarsely(&changes, watch)?;
        }
        Ok(())
    }

    /// Sends a burst whose completion times do not matter.
    fn coarsely(
        &mut self,
        changes: &[TestEntryChange],
        watch: EntryWatch,
    ) -> Result<CommandBurstOutcome, ProfilerError> {
        self.is_coarse = true;
        let outcome = self.burst(changes, &[], &[watch]);
        self.is_coarse = false;
        outcome
    }

    /// Deletes all entries of the switch, including those of others.
    pub(crate) fn clear(&mut self) -> Result<(), ProfilerError> {
        if !self.has_channel() {
            self.rules.clear();
            return Ok(());
        }
        let before = self.rules.values().next_back().map(|(rule, _)| *rule);
        let delete = self.message(Body::FlowMod(FlowMod::delete_all()));
        self.device.send(&[delete])?;
        self.barrier()?;
        if let Some(rule) = before {
            self.until_gone(rule)?;
        }
        self.rules.clear();
        self.tables = self.model.clone().map(ProfiledTables::new);
        Ok(())
    }

    /// Deletes all entries after a measurement that failed: waits a limited time for the switch to confirm, and
    /// ignores errors.
    pub(crate) fn leave(&mut self) {
        let delete = self.message(Body::FlowMod(FlowMod::delete_all()));
        let barrier = self.message(Body::BarrierRequest);
        let xid = barrier.xid;
        if !self.has_channel() || self.device.send(&[delete, barrier]).is_err() {
            return;
        }
        let until = self.device.now() + LEAVING.min(self.settings.patience);
        while self.device.now() < until {
            match self.device.wait(until) {
                Ok(Some(DeviceEvent::Message { message, .. })) if message.xid == xid => return,
                Ok(_) => {}
                // The channel has ended: no confirmation can come.
                Err(_) => return,
            }
        }
    }

    /// Sends a barrier request, and returns the time until its reply.
    pub(crate) fn barrier(&mut self) -> Result<Duration, ProfilerError> {
        let started = self.device.now();
        let (at, _) = self.ask(Body::BarrierRequest, "barrier reply")?;
        Ok(at.since(started))
    }

    /// Sends a request and waits for its reply; discards all other messages and frames meanwhile. `what` names the
    /// reply in errors.
    pub(crate) fn ask(&mut self, body: Body, what: &str) -> Result<(Instant, Body), ProfilerError> {
        let message = self.message(body);
        let xid = message.xid;
        self.device.send(&[message])?;
        let until = self.device.now() + self.settings.patience;
        loop {
            match self.device.wait(until)? {
                Some(DeviceEvent::Message { at, message }) if message.xid == xid => match message.body {
                    Body::Error(error) => {
                        return Err(ProfilerError::Refused {
                            what: format!("the request for a {what}"),
                            error: error.error,
                        });
                    }
                    body => return Ok((at, body)),
                },
                Some(_) => {}
                None if self.device.now() >= until => {
                    return Err(ProfilerError::silent(format!("{what} while {}", self.during), self.settings.patience));
                }
                None => {}
            }
        }
    }

    /// Waits for `time`; discards messages and frames meanwhile.
    pub(crate) fn rest(&mut self, time: Duration) -> Result<(), ProfilerError> {
        let until = self.device.now() + time;
        while self.device.now() < until {
            self.device.wait(until)?;
        }
        Ok(())
    }
}
