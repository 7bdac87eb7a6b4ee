//! Tracks a switch's tables as a profile sees them: the level of each entry, and the cost of changes.
//!
//! The laws are those of [`weir_model::switch::device::SwitchModelState`], for entries that have names, are added and
//! removed independently, and match packets. The cost of a command is returned before it is carried out.
use crate::commands::TableEffect;
use std::collections::HashMap;
use weir_model::ModelError;
use weir_model::switch::costs::{ChangeCostInputs, delete_s, modify_s};
use weir_model::switch::device::SwitchModel;
use weir_model::switch::policy::EntryAttributes;
use weir_model::switch::priorities::PriorityCounts;
use weir_model::switch::speedup::{CommandBatch, PerEntryCost};

/// Cost of a command.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CommandCost {
    /// Duration in seconds.
    pub duration_s: f64,
    /// Number of entries moved to the next level for it.
    pub moved: u32,
    /// True if all levels are full: the command is to be refused.
    pub full: bool,
    /// For a bundle to be refused: index of the message that finds the levels full.
    pub member: Option<usize>,
}

/// Write of an entry to a level when an entry is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelWrite {
    /// Level, from 0.
    pub level: usize,
    /// Priority of the entry that is written.
    pub priority: u16,
    /// Number of entries in the level before.
    pub entries: u64,
    /// Number of entries of strictly lower priority, which have to shift.
    pub shifts: u64,
    /// Number of different priorities, including that of the written entry.
    pub different: usize,
}

/// Entries by level. Each entry has a unique number as its name.
#[derive(Debug, Clone)]
pub struct ProfiledTables {
    model: SwitchModel,
    levels: Vec<LevelEntries>,
    level_of: HashMap<u64, usize>,
    clock: u64,
    beyond: u64,
}

#[derive(Debug, Clone, Default)]
struct LevelEntries {
    entries: HashMap<u64, EntryAttributes>,
    priorities: PriorityCounts,
}

/// Entry that leaves a full level.
enum DisplacedEntry {
    /// Entry that is being added.
    Coming,
    /// Present entry, by name.
    There(u64, EntryAttributes),
}

impl ProfiledTables {
    /// Creates empty tables.
    pub fn new(model: SwitchModel) -> ProfiledTables {
        let levels = model.levels.iter().map(|_| LevelEntries::default()).collect();
        ProfiledTables { model, levels, level_of: HashMap::new(), clock: 0, beyond: 0 }
    }

    /// Returns the level of an entry, from 0.
    pub fn level_of(&self, entry: u64) -> Option<usize> {
        self.level_of.get(&entry).copied()
    }

    /// Returns the number of entries in a level.
    pub fn entries(&self, level: usize) -> u64 {
        self.levels.get(level).map_or(0, |level| level.priorities.entries())
    }

    /// Returns the number of entries in each level.
    pub fn occupancy(&self) -> Vec<u64> {
        self.levels.iter().map(|level| level.priorities.entries()).collect()
    }

    /// Returns the number of entries that were added although all levels were full, by others than commands.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns the cost of a command in a batch, with the tables as they are.
    ///
    /// # Errors
    /// A cost has no value, which checked profiles exclude.
    pub fn charge(&self, work: &TableEffect, batch: CommandBatch) -> Result<CommandCost, ModelError> {
        let whole = |duration_s| CommandCost { duration_s, ..CommandCost::default() };
        match work {
            TableEffect::Nothing => Ok(CommandCost::default()),
            TableEffect::Add { priority } => self.charge_add(*priority, batch),
            TableEffect::Modify { entries } => modify_s(&self.changing(entries, true), batch).map(whole),
            TableEffect::Delete { entries } => delete_s(&self.changing(entries, false)).map(whole),
            TableEffect::Bundle { members, more } => self.charge_bundle(members, *more, batch.most),
        }
    }

    /// Returns the cost of a bundle: each message finds the tables as those before left them, in batches of the
    /// switch's largest size.
    fn charge_bundle(&self, members: &[TableEffect], more: usize, most: u32) -> Result<CommandCost, ModelError> {
        let (mut after, mut sum) = (self.clone(), CommandCost::default());
        let all = members.len() + more;
        for (number, work) in members.iter().enumerate() {
            let charge = after.charge(work, CommandBatch { commands: together(number, all, most), most })?;
            if charge.full {
                return Ok(CommandCost { full: true, member: Some(number), ..sum });
            }
            sum.duration_s += charge.duration_s;
            sum.moved = sum.moved.saturating_add(charge.moved);
            // Unused names: entries are named from one up.
            after.carry_out(work, u64::MAX - number as u64);
        }
        sum.duration_s *= all as f64 / members.len().max(1) as f64;
        Ok(sum)
    }

    /// Carries out the effect of a command that packets do not see yet, when its entries have no names. `name` is an
    /// unused name, and counts down.
    pub(crate) fn foresee(&mut self, work: &TableEffect, name: &mut u64) {
        let members = match work {
            TableEffect::Bundle { members, .. } => members.as_slice(),
            one => std::slice::from_ref(one),
        };
        for member in members {
            self.carry_out(member, *name);
            *name -= 1;
        }
    }

    /// Carries out the effect of a command; an added entry gets this name.
    fn carry_out(&mut self, work: &TableEffect, name: u64) {
        match work {
            TableEffect::Add { priority } => self.added(name, *priority),
            TableEffect::Modify { entries } => self.modified(entries),
            TableEffect::Delete { entries } => entries.iter().for_each(|entry| self.removed(*entry)),
            TableEffect::Bundle { .. } | TableEffect::Nothing => {}
        }
    }

    /// Returns the cost of adding an entry. A switch reports full tables before it moves anything: a present entry is
    /// never lost.
    fn charge_add(&self, priority: u16, batch: CommandBatch) -> Result<CommandCost, ModelError> {
        let Some(visits) = self.visits(priority) else {
            return Ok(CommandCost { full: true, ..CommandCost::default() });
        };
        let added_s = |visit: &LevelWrite| {
            let level = &self.levels[visit.level].priorities;
            self.model.levels[visit.level].added_s(level, visit.priority, batch)
        };
        let duration_s = visits.iter().map(added_s).sum::<Result<f64, _>>()?;
        let moved = u32::try_from(visits.len().saturating_sub(1)).unwrap_or(u32::MAX);
        Ok(CommandCost { duration_s, moved, ..CommandCost::default() })
    }

    /// Returns the levels where an added entry of this priority is written, and the entries written to lower levels
    /// because they are displaced; none if all levels are full.
    pub fn visits(&self, priority: u16) -> Option<Vec<LevelWrite>> {
        if (0..self.levels.len()).all(|level| !self.has_room(level)) {
            return None;
        }
        let mut visits = Vec::new();
        let mut coming = EntryAttributes { modified: self.clock + 1, used: 0, traffic: 0, priority };
        for level in 0..self.levels.len() {
            let next = match self.goes(level, coming) {
                None => None,
                Some(DisplacedEntry::Coming) => continue,
                Some(DisplacedEntry::There(_, standing)) => Some(standing),
            };
            let there = &self.levels[level].priorities;
            visits.push(LevelWrite {
                level,
                priority: coming.priority,
                entries: there.entries(),
                shifts: there.below(coming.priority),
                different: there.different_with(coming.priority),
            });
            let Some(next) = next else { break };
            coming = next;
        }
        Some(visits)
    }

    /// Returns the number of different priorities in a level.
    pub fn different(&self, level: usize) -> usize {
        self.levels.get(level).map_or(0, |level| level.priorities.different())
    }

    /// Returns the parameters of modifying or deleting in each level.
    fn changing(&self, entries: &[u64], modifying: bool) -> Vec<ChangeCostInputs> {
        let mut found = vec![0; self.levels.len()];
        entries.iter().filter_map(|entry| self.level_of(*entry)).for_each(|level| found[level] += 1);
        let levels = self.model.levels.iter().zip(&self.levels).zip(found);
        let one = |((model, level), matching): ((&weir_model::switch::device::TableLevel, &LevelEntries), u64)| {
            ChangeCostInputs {
                overhead: if modifying {
                    model.costs.modify.of(level.priorities.different())
                } else {
                    PerEntryCost::NONE
                },
                entries: level.priorities.entries(),
                matching,
                search_s: model.costs.search_s,
                write_s: if modifying { model.costs.write_s } else { model.costs.deleted_s() },
            }
        };
        levels.map(one).collect()
    }

    fn has_room(&self, level: usize) -> bool {
        self.model.levels[level].size.is_none_or(|size| self.entries(level) < size)
    }

    /// Returns the entry that leaves a level to make room for another; none if there is room. All entries of the
    /// level are compared, because only the policy defines an order, and packets change it.
    fn goes(&self, level: usize, coming: EntryAttributes) -> Option<DisplacedEntry> {
        if self.has_room(level) {
            return None;
        }
        if self.model.policy.0.is_empty()
            && self.levels[level].entries.values().all(|there| there.modified <= coming.modified)
        {
            return Some(DisplacedEntry::Coming);
        }
        let there = self.levels[level].entries.iter().map(|(name, standing)| (Some(*name), *standing));
        let first = there
            .chain([(None, coming)])
            .min_by(|left, right| self.model.policy.first_to_go(&left.1, &right.1).then(left.0.cmp(&right.0)));
        match first {
            Some((Some(name), standing)) => Some(DisplacedEntry::There(name, standing)),
            _ => Some(DisplacedEntry::Coming),
        }
    }

    /// Adds an entry to the first level. The policy decides which entry moves down if the level is full: a present
    /// one or the new one. An entry of the same name is replaced.
    pub fn added(&mut self, entry: u64, priority: u16) {
        self.removed(entry);
        self.clock += 1;
        let mut moving = (entry, EntryAttributes { modified: self.clock, used: 0, traffic: 0, priority });
        let last = self.levels.len().saturating_sub(1);
        for level in 0..self.levels.len() {
            let next = match self.goes(level, moving.1) {
                Some(_) if level == last => {
                    // The entry was not added by a command, which would have been refused.
                    self.beyond += 1;
                    None
                }
                Some(DisplacedEntry::Coming) => continue,
                Some(DisplacedEntry::There(name, standing)) => {
                    self.removed(name);
                    Some((name, standing))
                }
                None => None,
            };
            self.level_of.insert(moving.0, level);
            self.levels[level].priorities.add(moving.1.priority);
            self.levels[level].entries.insert(moving.0, moving.1);
            match next {
                Some(next) => moving = next,
                None => return,
            }
        }
    }

    /// Removes an entry.
    pub fn removed(&mut self, entry: u64) {
        let Some(level) = self.level_of.remove(&entry) else { return };
        if let Some(standing) = self.levels[level].entries.remove(&entry) {
            self.levels[level].priorities.remove(standing.priority);
        }
    }

    /// Records that one command modified these entries.
    pub fn modified(&mut self, entries: &[u64]) {
        self.clock += 1;
        let now = self.clock;
        for entry in entries {
            if let Some(standing) = self.standing(*entry) {
                standing.modified = now;
            }
        }
    }

    /// Records that a packet of `bytes` bytes matched an entry.
    pub fn matched(&mut self, entry: u64, bytes: u32) {
        self.clock += 1;
        let now = self.clock;
        if let Some(standing) = self.standing(entry) {
            standing.used = now;
            standing.traffic = standing.traffic.saturating_add(bytes.into());
        }
    }

    fn standing(&mut self, entry: u64) -> Option<&mut EntryAttributes> {
        let level = *self.level_of.get(&entry)?;
        self.levels[level].entries.get_mut(&entry)
    }
}

/// Returns the size of the batch that contains the bundle's message with index `number`.
fn together(number: usize, all: usize, most: u32) -> u32 {
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
    let of_batch = (all - number / most * most).min(most);
    u32::try_from(of_batch).unwrap_or(u32::MAX)
}
