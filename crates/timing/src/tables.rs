//! A switch's tables as a profile sees them: which level holds which entry, and what changes cost.
//!
//! The same laws as of [`weir_model::switch::device::Device`], for entries that have names, come and go by themselves, and see packets; what a command would
//! cost is told before it is carried out.
use crate::commands::Work;
use std::collections::HashMap;
use weir_model::ModelError;
use weir_model::switch::costs::{Changing, delete_s, modify_s};
use weir_model::switch::device::SwitchModel;
use weir_model::switch::policy::Standing;
use weir_model::switch::priorities::Priorities;
use weir_model::switch::speedup::{Batch, Overhead};

/// What a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Charge {
    /// Seconds.
    pub duration_s: f64,
    /// Entries that move to the next level for it.
    pub moved: u32,
    /// All levels are full: the command is to be refused.
    pub full: bool,
    /// Of a bundle to be refused: the message that finds them full.
    pub member: Option<usize>,
}

/// An entry that is written to a level when one is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// The level, from 0.
    pub level: usize,
    /// The entry's priority.
    pub priority: u16,
    /// Entries there before.
    pub entries: u64,
    /// Those of strictly lower priority: they have to make place.
    pub shifts: u64,
    /// Different priorities there with it.
    pub different: usize,
}

/// Entries by level. An entry's name is any number that no other entry has.
#[derive(Debug, Clone)]
pub struct Tables {
    model: SwitchModel,
    levels: Vec<Level>,
    level_of: HashMap<u64, usize>,
    clock: u64,
    beyond: u64,
}

#[derive(Debug, Clone, Default)]
struct Level {
    entries: HashMap<u64, Standing>,
    priorities: Priorities,
}

/// Who goes from a full level.
enum Goes {
    /// The one that comes.
    Coming,
    /// One that is there.
    There(u64, Standing),
}

impl Tables {
    /// Empty tables.
    pub fn new(model: SwitchModel) -> Tables {
        let levels = model.levels.iter().map(|_| Level::default()).collect();
        Tables { model, levels, level_of: HashMap::new(), clock: 0, beyond: 0 }
    }

    /// The level that holds an entry, from 0.
    pub fn level_of(&self, entry: u64) -> Option<usize> {
        self.level_of.get(&entry).copied()
    }

    /// Entries of a level.
    pub fn entries(&self, level: usize) -> u64 {
        self.levels.get(level).map_or(0, |level| level.priorities.entries())
    }

    /// Entries of each level.
    pub fn occupancy(&self) -> Vec<u64> {
        self.levels.iter().map(|level| level.priorities.entries()).collect()
    }

    /// Entries that were added though all levels were full, by others than commands.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// What a command of a batch will take, as the tables are.
    ///
    /// # Errors
    /// A cost that has no value, which checked profiles do not have.
    pub fn charge(&self, work: &Work, batch: Batch) -> Result<Charge, ModelError> {
        let whole = |duration_s| Charge { duration_s, ..Charge::default() };
        match work {
            Work::Nothing => Ok(Charge::default()),
            Work::Add { priority } => self.charge_add(*priority, batch),
            Work::Modify { entries } => modify_s(&self.changing(entries, true), batch).map(whole),
            Work::Delete { entries } => delete_s(&self.changing(entries, false)).map(whole),
            Work::Bundle { members, more } => self.charge_bundle(members, *more, batch.most),
        }
    }

    /// Each message finds what those before it left, in batches of as many as the switch takes together.
    fn charge_bundle(&self, members: &[Work], more: usize, most: u32) -> Result<Charge, ModelError> {
        let (mut after, mut sum) = (self.clone(), Charge::default());
        let all = members.len() + more;
        for (number, work) in members.iter().enumerate() {
            let charge = after.charge(work, Batch { commands: together(number, all, most), most })?;
            if charge.full {
                return Ok(Charge { full: true, member: Some(number), ..sum });
            }
            sum.duration_s += charge.duration_s;
            sum.moved = sum.moved.saturating_add(charge.moved);
            // Names that no entry has: they are counted from one up.
            after.carry_out(work, u64::MAX - number as u64);
        }
        sum.duration_s *= all as f64 / members.len().max(1) as f64;
        Ok(sum)
    }

    /// What a command does that is on its way, when entries have no names yet: as if it had been done. `name` is one that no entry has, and counts down.
    pub(crate) fn foresee(&mut self, work: &Work, name: &mut u64) {
        let members = match work {
            Work::Bundle { members, .. } => members.as_slice(),
            one => std::slice::from_ref(one),
        };
        for member in members {
            self.carry_out(member, *name);
            *name -= 1;
        }
    }

    /// What a command does; what it adds has this name.
    fn carry_out(&mut self, work: &Work, name: u64) {
        match work {
            Work::Add { priority } => self.added(name, *priority),
            Work::Modify { entries } => self.modified(entries),
            Work::Delete { entries } => entries.iter().for_each(|entry| self.removed(*entry)),
            Work::Bundle { .. } | Work::Nothing => {}
        }
    }

    /// A switch says that its tables are full before it moves anything: an entry that is there is never lost.
    fn charge_add(&self, priority: u16, batch: Batch) -> Result<Charge, ModelError> {
        let Some(visits) = self.visits(priority) else { return Ok(Charge { full: true, ..Charge::default() }) };
        let added_s = |visit: &Visit| {
            let level = &self.levels[visit.level].priorities;
            self.model.levels[visit.level].added_s(level, visit.priority, batch)
        };
        let duration_s = visits.iter().map(added_s).sum::<Result<f64, _>>()?;
        let moved = u32::try_from(visits.len().saturating_sub(1)).unwrap_or(u32::MAX);
        Ok(Charge { duration_s, moved, ..Charge::default() })
    }

    /// Where an added entry of this priority is written, and who is written in the levels below since it had to go for that; none if all levels are full.
    pub fn visits(&self, priority: u16) -> Option<Vec<Visit>> {
        if (0..self.levels.len()).all(|level| !self.has_room(level)) {
            return None;
        }
        let mut visits = Vec::new();
        let mut coming = Standing { modified: self.clock + 1, used: 0, traffic: 0, priority };
        for level in 0..self.levels.len() {
            let next = match self.goes(level, coming) {
                None => None,
                Some(Goes::Coming) => continue,
                Some(Goes::There(_, standing)) => Some(standing),
            };
            let there = &self.levels[level].priorities;
            visits.push(Visit {
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

    /// Different priorities of a level's entries.
    pub fn different(&self, level: usize) -> usize {
        self.levels.get(level).map_or(0, |level| level.priorities.different())
    }

    /// What a command finds in each level.
    fn changing(&self, entries: &[u64], modifying: bool) -> Vec<Changing> {
        let mut found = vec![0; self.levels.len()];
        entries.iter().filter_map(|entry| self.level_of(*entry)).for_each(|level| found[level] += 1);
        let levels = self.model.levels.iter().zip(&self.levels).zip(found);
        let one = |((model, level), matching): ((&weir_model::switch::device::Level, &Level), u64)| Changing {
            overhead: if modifying { model.costs.modify.of(level.priorities.different()) } else { Overhead::NONE },
            entries: level.priorities.entries(),
            matching,
            search_s: model.costs.search_s,
            write_s: if modifying { model.costs.write_s } else { model.costs.deleted_s() },
        };
        levels.map(one).collect()
    }

    fn has_room(&self, level: usize) -> bool {
        self.model.levels[level].size.is_none_or(|size| self.entries(level) < size)
    }

    /// Who goes from a level so that another can come; none if there is room. It looks at all entries of the level: only the policy knows an order, and
    /// packets change it.
    fn goes(&self, level: usize, coming: Standing) -> Option<Goes> {
        if self.has_room(level) {
            return None;
        }
        if self.model.policy.0.is_empty()
            && self.levels[level].entries.values().all(|there| there.modified <= coming.modified)
        {
            return Some(Goes::Coming);
        }
        let there = self.levels[level].entries.iter().map(|(name, standing)| (Some(*name), *standing));
        let first = there
            .chain([(None, coming)])
            .min_by(|left, right| self.model.policy.first_to_go(&left.1, &right.1).then(left.0.cmp(&right.0)));
        match first {
            Some((Some(name), standing)) => Some(Goes::There(name, standing)),
            _ => Some(Goes::Coming),
        }
    }

    /// An entry is there now: it goes to the first level, and moves others down, or is moved itself, as the policy says. One of that name is replaced.
    pub fn added(&mut self, entry: u64, priority: u16) {
        self.removed(entry);
        self.clock += 1;
        let mut moving = (entry, Standing { modified: self.clock, used: 0, traffic: 0, priority });
        let last = self.levels.len().saturating_sub(1);
        for level in 0..self.levels.len() {
            let next = match self.goes(level, moving.1) {
                Some(_) if level == last => {
                    // Not by a command, which would have been refused.
                    self.beyond += 1;
                    None
                }
                Some(Goes::Coming) => continue,
                Some(Goes::There(name, standing)) => {
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

    /// An entry is gone.
    pub fn removed(&mut self, entry: u64) {
        let Some(level) = self.level_of.remove(&entry) else { return };
        if let Some(standing) = self.levels[level].entries.remove(&entry) {
            self.levels[level].priorities.remove(standing.priority);
        }
    }

    /// Entries were modified, by one command.
    pub fn modified(&mut self, entries: &[u64]) {
        self.clock += 1;
        let now = self.clock;
        for entry in entries {
            if let Some(standing) = self.standing(*entry) {
                standing.modified = now;
            }
        }
    }

    /// A packet of that many bytes matched an entry.
    pub fn matched(&mut self, entry: u64, bytes: u32) {
        self.clock += 1;
        let now = self.clock;
        if let Some(standing) = self.standing(entry) {
            standing.used = now;
            standing.traffic = standing.traffic.saturating_add(bytes.into());
        }
    }

    fn standing(&mut self, entry: u64) -> Option<&mut Standing> {
        let level = *self.level_of.get(&entry)?;
        self.levels[level].entries.get_mut(&entry)
    }
}

/// How many of a bundle's messages are handled with the one of that number.
fn together(number: usize, all: usize, most: u32) -> u32 {
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
    let of_batch = (all - number / most * most).min(most);
    u32::try_from(of_batch).unwrap_or(u32::MAX)
}
