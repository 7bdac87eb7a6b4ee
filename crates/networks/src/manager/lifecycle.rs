//! Changes of states by time, and by what was found on switches.
use super::{EventKind, LifecycleState, ManagerError, NetworkManager};
use std::time::Duration;
use weir_units::Instant;
use weir_vnet::service::{HeldNetwork, SliceRole};

/// Latest begin of a stage after its time that is not mentioned.
const LATE: Duration = Duration::from_secs(1);

/// Virtual switch that is, or was, on a switch because of a network.
#[derive(Debug, Clone, Copy)]
pub struct ManagedSlice<'a> {
    /// The network with its design.
    pub held: &'a HeldNetwork,
    /// Index in [`weir_vnet::service::NetworkDesign::slices`].
    pub slice: usize,
    /// True if the switch should have it, false if it should be removed.
    pub is_wanted: bool,
    /// True if the network was never active.
    pub is_new: bool,
}

impl ManagedSlice<'_> {
    /// Returns true if packets of hosts enter here.
    pub fn is_end(&self) -> bool {
        let slice = &self.held.design.slices[self.slice];
        let links = || self.held.design.links.iter();
        match &slice.role {
            SliceRole::Node(_) => links().any(|link| {
                let is_of_slice = |port: &weir_vnet::service::PortName| port.switch == slice.switch;
                let has_link = slice.ports.iter().any(|port| port.link == link.name);
                has_link && link.host_ports.iter().flatten().any(is_of_slice)
            }),
            SliceRole::Transit(name) => links().any(|link| {
                link.name == *name && link.host_ports.iter().flatten().any(|port| port.switch == slice.switch)
            }),
        }
    }
}

impl NetworkManager {
    /// Carries out what is due: ends of holds, offers and lifetimes, begins of stages. Committed networks become
    /// *provisioning*: switches may be asked once this is written to the store.
    pub fn advance(&mut self, wall: Instant) {
        let now = self.time(wall);
        let names: Vec<String> = self.networks.keys().cloned().collect();
        for name in names {
            self.advance_one(now, &name);
        }
        self.forget_ended();
    }

    fn advance_one(&mut self, now: Instant, name: &str) {
        let Some(record) = self.networks.get(name) else { return };
        let expires = self.book.network(name).and_then(|held| held.expires);
        let is_over = record.until.is_some_and(|until| until <= now);
        match record.state {
            LifecycleState::Offered if is_over => {
                self.networks.remove(name);
                self.changed.insert(name.to_owned());
            }
            LifecycleState::Held if is_over => {
                let text = "not committed in time".to_owned();
                self.note(now, name, EventKind::HoldExpired, text);
                self.begin_release(now, name, "not committed in time", None);
            }
            state if state.is_reserved() && state != LifecycleState::Releasing => {
                if expires.is_some_and(|expires| expires <= now) {
                    self.begin_release(now, name, "its lifetime is over", None);
                } else if state == LifecycleState::Committed {
                    let text = "switches are asked".to_owned();
                    self.enter(now, name, LifecycleState::Provisioning, EventKind::Provisioning, text);
                } else {
                    self.begin_due_stages(now, name);
                }
            }
            _ => {}
        }
    }

    /// Begins all stages whose time has come, those that were missed included.
    fn begin_due_stages(&mut self, now: Instant, name: &str) {
        loop {
            let Some((record, held)) = self.networks.get(name).zip(self.book.network(name)) else { return };
            let Some((stage, activated)) = record.request.stages.get(held.stage).zip(record.activated) else { return };
            let start = activated + stage.start.0;
            if start > now || !record.state.is_wanted() {
                return;
            }
            let (stage, late) = (held.stage + 1, now - start);
            let why = if late > LATE { format!("{late:?} after its time") } else { "at its time".to_owned() };
            if let Err(error) = self.begin_stage(now, name, stage, &why) {
                tracing::error!("{error}");
                return;
            }
        }
    }

    pub(super) fn begin_stage(
        &mut self,
        now: Instant,
        name: &str,
        stage: usize,
        why: &str,
    ) -> Result<(), ManagerError> {
        let change = self.book.next_stage(name)?;
        self.note(now, name, EventKind::Stage, format!("stage {stage} begins, {why}"));
        self.note_resized(change);
        Ok(())
    }

    /// Begins to release a network. One that no switch knows ends at once.
    pub(super) fn begin_release(&mut self, now: Instant, name: &str, why: &str, fails: Option<String>) {
        let Some(record) = self.networks.get_mut(name) else { return };
        record.until = None;
        if let Some(problem) = fails {
            (record.fails, record.problem) = (true, Some(problem));
        }
        match record.state {
            LifecycleState::Offered => {
                record.offers.clear();
                self.enter(now, name, LifecycleState::Released, EventKind::Released, why.to_owned());
            }
            LifecycleState::Held | LifecycleState::Committed => self.end(now, name, why),
            state if state.is_wanted() => {
                self.enter(now, name, LifecycleState::Releasing, EventKind::Releasing, why.to_owned());
            }
            _ => {}
        }
    }

    /// Ends a network of which no switch has anything: what it has reserved is free.
    fn end(&mut self, now: Instant, name: &str, why: &str) {
        if let Ok((_, change)) = self.book.release(name) {
            self.note_resized(change);
        }
        let Some(record) = self.networks.get(name) else { return };
        let (state, kind) = match record.fails {
            true => (LifecycleState::Failed, EventKind::Failed),
            false => (LifecycleState::Released, EventKind::Released),
        };
        let text = record.problem.clone().filter(|_| record.fails).unwrap_or_else(|| why.to_owned());
        self.enter(now, name, state, kind, text);
    }

    /// Returns the virtual switches that switches may have because of networks, in the order of admission.
    pub fn slices(&self) -> Vec<ManagedSlice<'_>> {
        let mut records: Vec<_> = self.networks.values().filter(|record| record.state.is_on_switches()).collect();
        records.sort_by_key(|record| record.order);
        let held = records.into_iter().filter_map(|record| Some((record, self.book.network(&record.request.name)?)));
        held.flat_map(|(record, held)| {
            (0..held.design.slices.len()).map(move |slice| ManagedSlice {
                held,
                slice,
                is_wanted: record.state.is_wanted(),
                is_new: record.state == LifecycleState::Provisioning,
            })
        })
        .collect()
    }

    /// Returns true if switches may not have what they should have.
    pub fn has_work(&self) -> bool {
        self.networks.values().any(|record| match record.state {
            LifecycleState::Committed | LifecycleState::Provisioning => true,
            LifecycleState::Degraded | LifecycleState::Releasing => true,
            LifecycleState::Active => !record.is_settled,
            _ => false,
        })
    }

    /// Returns the machine's time at which [`NetworkManager::advance`] has something to do; `None` for never.
    pub fn due(&self) -> Option<Instant> {
        let times = self.networks.values().filter(|record| !record.state.has_ended()).flat_map(|record| {
            let held = self.book.network(&record.request.name).filter(|_| record.state != LifecycleState::Releasing);
            let stage = held.and_then(|held| record.request.stages.get(held.stage));
            let stage = stage.and_then(|stage| Some(record.activated? + stage.start.0));
            [record.until, held.and_then(|held| held.expires), stage]
        });
        times.flatten().min().map(|time| self.clock.wall(time))
    }

    /// Notes that all virtual switches of a network were read back, with its present rates.
    pub fn confirmed(&mut self, name: &str, wall: Instant) {
        let now = self.time(wall);
        let Some(record) = self.networks.get_mut(name) else { return };
        let was_settled = std::mem::replace(&mut record.is_settled, true);
        let had_problem = record.problem.is_some();
        record.problem = None;
        let read_back = "read back from all switches".to_owned();
        match record.state {
            LifecycleState::Provisioning => {
                record.activated = Some(now);
                self.enter(now, name, LifecycleState::Active, EventKind::Active, read_back);
            }
            LifecycleState::Degraded => self.enter(now, name, LifecycleState::Active, EventKind::Recovered, read_back),
            LifecycleState::Active if !was_settled || had_problem => {
                self.note(now, name, EventKind::Resized, "new rates were read back from all switches".to_owned());
            }
            _ => {}
        }
    }

    /// Notes that a network cannot be carried out at present: a switch does not answer, or has something else.
    pub fn troubled(&mut self, name: &str, problem: String, wall: Instant) {
        let now = self.time(wall);
        let Some(record) = self.networks.get_mut(name) else { return };
        if record.problem.as_ref() == Some(&problem) || !record.state.is_on_switches() {
            return;
        }
        record.problem = Some(problem.clone());
        match record.state {
            LifecycleState::Active => self.enter(now, name, LifecycleState::Degraded, EventKind::Degraded, problem),
            _ => self.note(now, name, EventKind::Degraded, problem),
        }
    }

    /// Notes that a network cannot be carried out at all: what switches have of it is removed.
    pub fn refused(&mut self, name: &str, problem: String, wall: Instant) {
        let now = self.time(wall);
        let why = format!("it cannot be carried out: {problem}");
        self.begin_release(now, name, &why, Some(problem));
    }

    /// Notes that no switch has anything of a network that is being released.
    pub fn removed(&mut self, name: &str, wall: Instant) {
        let now = self.time(wall);
        if self.networks.get(name).is_some_and(|record| record.state == LifecycleState::Releasing) {
            self.end(now, name, "nothing of it is left on switches");
        }
    }
}
