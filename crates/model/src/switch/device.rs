//! Models a switch with one or several table levels that carries out commands one after the other: the complete model
//! of Cheng (2015), chapter 4.
use super::batch::CommandBatching;
use super::costs::{AddCostInputs, ChangeCostInputs, TableCosts, add_s, delete_s, modify_s};
use super::policy::{EntryAttributes, EvictionPolicy};
use super::priorities::PriorityCounts;
use super::speedup::{CommandBatch, PerEntryCost};
use crate::ModelError;
use crate::check::domain;
use serde::{Deserialize, Serialize};

/// Most entries: ten million.
pub const ENTRIES_MAX: usize = 10_000_000;

/// Level of a switch's tables.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TableLevel {
    /// Number of entries it holds, N; none without a limit.
    #[serde(default)]
    pub size: Option<u64>,
    /// Costs of changes.
    pub costs: TableCosts,
}

impl TableLevel {
    /// Returns the duration of adding an entry of this priority beside the present entries, in seconds.
    ///
    /// # Errors
    /// `DOMAIN` for invalid costs or an invalid batch.
    pub fn added_s(&self, there: &PriorityCounts, priority: u16, batch: CommandBatch) -> Result<f64, ModelError> {
        let costs = &self.costs;
        add_s(&AddCostInputs {
            overhead: costs.add.of(there.different_with(priority)),
            entries: there.entries(),
            shifts: there.below(priority),
            batch,
            shift_s: costs.shift_s,
            write_s: costs.write_s,
        })
    }
}

/// Switch with measured parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchModel {
    /// Table levels, the fastest first.
    pub levels: Vec<TableLevel>,
    /// Batches of commands.
    pub batching: CommandBatching,
    /// Policy that selects the entry to leave a full table.
    #[serde(default)]
    pub policy: EvictionPolicy,
}

/// Flow-mod, with the entries it matches.
#[derive(Debug, Clone, PartialEq)]
pub enum ResolvedFlowMod {
    /// Adds an entry. Entries are numbered from 0 in the order of these commands, including refused ones.
    Add {
        /// Priority of the entry.
        priority: u16,
    },
    /// Modifies the matching entries.
    Modify {
        /// Numbers of the entries, each once; missing ones are ignored.
        matching: Vec<usize>,
    },
    /// Deletes the matching entries.
    Delete {
        /// Numbers of the entries, each once; missing ones are ignored.
        matching: Vec<usize>,
    },
}

/// Cost of a command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowModCost {
    /// Duration of the command in its batch, in seconds.
    pub duration_s: f64,
    /// Number of entries moved to the next table.
    pub moved: u32,
    /// True if all tables were full, so that an entry is lost.
    pub full: bool,
}

/// Switch with entries in its tables.
#[derive(Debug, Clone)]
pub struct SwitchModelState<'a> {
    model: &'a SwitchModel,
    /// Entries by number; none if it is missing.
    entries: Vec<Option<PlacedEntry>>,
    priorities: Vec<PriorityCounts>,
    now: u64,
}

#[derive(Debug, Clone, Copy)]
struct PlacedEntry {
    level: usize,
    standing: EntryAttributes,
}

impl<'a> SwitchModelState<'a> {
    /// Returns a switch without entries.
    ///
    /// # Errors
    /// The model has no table.
    pub fn new(model: &'a SwitchModel) -> Result<SwitchModelState<'a>, ModelError> {
        if model.levels.is_empty() {
            return Err(domain("levels", "none", "one table or more"));
        }
        Ok(SwitchModelState {
            model,
            entries: Vec::new(),
            priorities: vec![PriorityCounts::default(); model.levels.len()],
            now: 0,
        })
    }

    /// Returns the number of entries in each table.
    pub fn entries(&self) -> Vec<u64> {
        self.priorities.iter().map(PriorityCounts::entries).collect()
    }

    /// Returns the table that an entry is in.
    pub fn level_of(&self, number: usize) -> Option<usize> {
        Some((*self.entries.get(number)?)?.level)
    }

    /// Carries out commands that arrive at these times, in seconds. Commands of a batch are charged as such.
    ///
    /// # Errors
    /// Times that are not in order, invalid costs, or more than [`ENTRIES_MAX`] entries.
    pub fn run(&mut self, commands: &[(f64, ResolvedFlowMod)]) -> Result<Vec<FlowModCost>, ModelError> {
        let times: Vec<f64> = commands.iter().map(|(time, _)| *time).collect();
        let mut charges = Vec::with_capacity(commands.len());
        for range in self.model.batching.batches(&times)? {
            let together = u32::try_from(range.len()).unwrap_or(u32::MAX);
            let batch = CommandBatch { commands: together, most: self.model.batching.most };
            for (_, command) in &commands[range] {
                charges.push(self.apply(command, batch)?);
            }
        }
        Ok(charges)
    }

    /// Carries out one command of a batch.
    ///
    /// # Errors
    /// See [`SwitchModelState::run`].
    pub fn apply(&mut self, command: &ResolvedFlowMod, batch: CommandBatch) -> Result<FlowModCost, ModelError> {
        self.now += 1;
        match command {
            ResolvedFlowMod::Add { priority } => self.add(*priority, batch),
            ResolvedFlowMod::Modify { matching } => {
                let tables = self.changing(matching, true);
                let now = self.now;
                for number in matching {
                    if let Some(Some(entry)) = self.entries.get_mut(*number) {
                        entry.standing.modified = now;
                    }
                }
                Ok(FlowModCost { duration_s: modify_s(&tables, batch)?, moved: 0, full: false })
            }
            ResolvedFlowMod::Delete { matching } => {
                let tables = self.changing(matching, false);
                matching.iter().filter_map(|number| self.take(*number)).for_each(drop);
                Ok(FlowModCost { duration_s: delete_s(&tables)?, moved: 0, full: false })
            }
        }
    }

    /// Records that a packet of `bytes` bytes matches an entry.
    pub fn packet(&mut self, number: usize, bytes: u64) {
        self.now += 1;
        if let Some(Some(PlacedEntry { standing, .. })) = self.entries.get_mut(number) {
            standing.used = self.now;
            standing.traffic = standing.traffic.saturating_add(bytes);
        }
    }

    /// Adds an entry to the first table. If it is full, the policy selects the entry that moves to the next table,
    /// where it is added in the same way. This may be the new entry.
    fn add(&mut self, priority: u16, batch: CommandBatch) -> Result<FlowModCost, ModelError> {
        if self.entries.len() >= ENTRIES_MAX {
            return Err(domain("entries", self.entries.len(), format!("{ENTRIES_MAX} at most")));
        }
        let standing = EntryAttributes { modified: self.now, used: 0, traffic: 0, priority };
        let mut charge = FlowModCost { duration_s: 0.0, moved: 0, full: false };
        let mut moving = self.entries.len();
        self.entries.push(None);
        let mut entry = PlacedEntry { level: 0, standing };
        for level in 0..self.model.levels.len() {
            entry.level = level;
            let evicted =
                if self.has_room(level) { None } else { Some(self.first_to_go(level, moving, entry.standing)) };
            if evicted == Some(moving) {
                continue;
            }
            charge.duration_s += self.added_s(level, entry.standing.priority, batch)?;
            let next = evicted.and_then(|number| self.take(number).map(|entry| (number, entry)));
            self.priorities[level].add(entry.standing.priority);
            self.entries[moving] = Some(entry);
            let Some(next) = next else { return Ok(charge) };
            (moving, entry) = next;
            charge.moved += 1;
        }
        Ok(FlowModCost { full: true, ..charge })
    }

    fn added_s(&self, level: usize, priority: u16, batch: CommandBatch) -> Result<f64, ModelError> {
        self.model.levels[level].added_s(&self.priorities[level], priority, batch)
    }

    fn has_room(&self, level: usize) -> bool {
        self.model.levels[level].size.is_none_or(|size| self.priorities[level].entries() < size)
    }

    /// Returns the number of the entry to leave the table: a present one, or the new one.
    fn first_to_go(&self, level: usize, coming: usize, standing: EntryAttributes) -> usize {
        let there = self.entries.iter().enumerate().filter_map(|(number, entry)| Some((number, (*entry)?)));
        there
            .filter(|(_, entry)| entry.level == level)
            .map(|(number, entry)| (number, entry.standing))
            .chain([(coming, standing)])
            .min_by(|left, right| self.model.policy.first_to_go(&left.1, &right.1))
            .map_or(coming, |(number, _)| number)
    }

    /// Removes an entry from its table.
    fn take(&mut self, number: usize) -> Option<PlacedEntry> {
        let entry = self.entries.get_mut(number)?.take()?;
        self.priorities[entry.level].remove(entry.standing.priority);
        Some(entry)
    }

    fn present<'m>(&'m self, matching: &'m [usize]) -> impl Iterator<Item = PlacedEntry> + 'm {
        matching.iter().filter_map(|number| *self.entries.get(*number)?)
    }

    /// Returns the parameters of modifying or deleting in each table.
    fn changing(&self, matching: &[usize], modifying: bool) -> Vec<ChangeCostInputs> {
        let mut found = vec![0; self.model.levels.len()];
        self.present(matching).for_each(|entry| found[entry.level] += 1);
        let level = |(at, level): (usize, &TableLevel)| {
            let overhead = level.costs.modify.of(self.priorities[at].different());
            ChangeCostInputs {
                overhead: if modifying { overhead } else { PerEntryCost::NONE },
                entries: self.priorities[at].entries(),
                matching: found[at],
                search_s: level.costs.search_s,
                write_s: if modifying { level.costs.write_s } else { level.costs.deleted_s() },
            }
        };
        self.model.levels.iter().enumerate().map(level).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::{EvictedEnd, EvictionAttribute, EvictionCriterion};
    use super::super::speedup::BatchSpeedup;
    use super::*;
    use crate::switch::costs::PriorityCosts;

    fn costs(per_entry_s: f64, shift_s: f64, write_s: f64) -> TableCosts {
        let overhead = PerEntryCost { per_entry_s, speedup: BatchSpeedup([0.5, 0.5, 0.0]) };
        let overheads = PriorityCosts { single: overhead, several: overhead };
        TableCosts { add: overheads, modify: overheads, shift_s, search_s: 0.01, write_s, delete_s: None }
    }

    /// Returns four places in front of an unlimited table.
    fn model(policy: Vec<EvictionCriterion>) -> SwitchModel {
        SwitchModel {
            levels: vec![
                TableLevel { size: Some(4), costs: costs(1e-3, 1e-2, 1.0) },
                TableLevel { size: None, costs: costs(0.0, 0.0, 0.1) },
            ],
            batching: CommandBatching { timeout_s: 0.001, most: 10 },
            policy: EvictionPolicy(policy),
        }
    }

    fn add(priority: u16) -> ResolvedFlowMod {
        ResolvedFlowMod::Add { priority }
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    }

    #[test]
    fn without_a_policy_what_finds_no_room_goes_to_the_next_table() {
        let model = model(vec![]);
        let mut device = SwitchModelState::new(&model).unwrap();
        let charges = device.run(&(0..5).map(|at| (f64::from(at), add(10 + at))).collect::<Vec<_>>()).unwrap();
        near(charges[3].duration_s, 3.0 * 1e-3 + 3.0 * 1e-2 + 1.0);
        near(charges[4].duration_s, 0.1);
        assert_eq!((device.entries(), device.level_of(4), device.level_of(5)), (vec![4, 1], Some(1), None));
        assert!(charges.iter().all(|charge| charge.moved == 0 && !charge.full));
    }

    #[test]
    fn the_policy_says_who_goes_and_adding_it_again_is_charged() {
        let used = EvictionCriterion { attribute: EvictionAttribute::Used, evicts: EvictedEnd::Lowest };
        let model = model(vec![used]);
        let mut device = SwitchModelState::new(&model).unwrap();
        (0..4).for_each(|_| assert!(!device.apply(&add(7), CommandBatch::ALONE).unwrap().full));
        [0, 1, 3].into_iter().for_each(|number| device.packet(number, 64));
        // The new entry is unused, too, and newer.
        assert_eq!(device.apply(&add(7), CommandBatch::ALONE).unwrap().moved, 0);
        assert_eq!(device.level_of(4), Some(1));
        let model =
            self::model(vec![EvictionCriterion { attribute: EvictionAttribute::Priority, evicts: EvictedEnd::Lowest }]);
        let mut device = SwitchModelState::new(&model).unwrap();
        [5, 3, 4, 6]
            .into_iter()
            .for_each(|priority| assert!(!device.apply(&add(priority), CommandBatch::ALONE).unwrap().full));
        let charge = device.apply(&add(9), CommandBatch::ALONE).unwrap();
        near(charge.duration_s, 4.0 * 1e-3 + 4.0 * 1e-2 + 1.0 + 0.1);
        assert_eq!((charge.moved, device.level_of(1), device.level_of(4)), (1, Some(1), Some(0)));
    }

    #[test]
    fn batches_make_entries_cheaper_and_changes_are_charged_by_table() {
        let model = model(vec![]);
        let mut device = SwitchModelState::new(&model).unwrap();
        let commands: Vec<(f64, ResolvedFlowMod)> = (0..6).map(|at| (f64::from(at) * 1e-4, add(1))).collect();
        let charges = device.run(&commands).unwrap();
        near(charges[3].duration_s, 3.0 * 1e-3 / 3.5 + 1.0);
        let modify = ResolvedFlowMod::Modify { matching: vec![0, 5, 99] };
        near(device.apply(&modify, CommandBatch::ALONE).unwrap().duration_s, 4.0 * 1e-3 + 0.02 + 1.0 + 0.1);
        let delete = ResolvedFlowMod::Delete { matching: vec![0, 1, 5, 99] };
        near(device.apply(&delete, CommandBatch::ALONE).unwrap().duration_s, 0.02 + 2.0 + 0.1);
        assert_eq!(device.entries(), [2, 1]);
    }

    #[test]
    fn an_entry_without_room_anywhere_is_lost_and_said_to_be() {
        let mut model = model(vec![]);
        model.levels.pop();
        let mut device = SwitchModelState::new(&model).unwrap();
        let charges = device.run(&(0..6).map(|at| (f64::from(at), add(1))).collect::<Vec<_>>()).unwrap();
        assert_eq!(charges.iter().filter(|charge| charge.full).count(), 2);
        assert_eq!((device.entries(), device.level_of(5)), (vec![4], None));
        model.levels.clear();
        assert!(SwitchModelState::new(&model).is_err());
    }
}
