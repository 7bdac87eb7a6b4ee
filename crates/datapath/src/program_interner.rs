//! Shares programs between entries: equal programs exist once in memory, so that a million entries that output to a
//! few ports need a few programs and a pointer each.
//!
//! Programs without an entry are removed in small steps, a few for each flow-mod and each removed entry.
use crate::program::EntryProgram;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Maximum number of programs in the pool. Beyond it programs are not shared, because that many programs mostly
/// differ.
const MOST: usize = 1 << 16;
/// At this number the pool allocates room for [`MOST`] programs at once. Growing later would move tens of thousands,
/// which packets would wait for.
const FEW: usize = 1024;
/// Programs examined per step: more than one, because each flow-mod may add one.
const STEP: usize = 2;

/// The pool of shared programs.
#[derive(Debug, Default)]
pub(crate) struct ProgramInterner {
    /// The programs with their hashes.
    all: Vec<(u64, Arc<EntryProgram>)>,
    /// Indexes into `all`, by hash.
    places: HashTable<usize>,
    hasher: RandomState,
    /// Index at which the next step begins.
    next: usize,
}

impl ProgramInterner {
    /// Returns a shared program equal to `program`.
    pub(crate) fn share(&mut self, program: EntryProgram) -> Arc<EntryProgram> {
        self.step();
        let hash = self.hasher.hash_one(&program);
        if let Some(at) = self.places.find(hash, |at| *self.all[*at].1 == program) {
            return self.all[*at].1.clone();
        }
        let program = Arc::new(program);
        if self.all.len() < MOST {
            if self.all.len() == FEW {
                self.places.reserve(MOST - FEW, |at| self.all[*at].0);
                self.all.reserve_exact(MOST - FEW);
            }
            self.places.insert_unique(hash, self.all.len(), |at| self.all[*at].0);
            self.all.push((hash, program.clone()));
        }
        program
    }

    /// Examines a few programs and removes those that no entry uses.
    pub(crate) fn step(&mut self) {
        for _ in 0..STEP.min(self.all.len()) {
            match self.all.get(self.next) {
                Some((_, program)) if Arc::strong_count(program) == 1 => self.forget(self.next),
                Some(_) => self.next += 1,
                None => self.next = 0,
            }
        }
    }

    fn forget(&mut self, at: usize) {
        let last = self.all.len() - 1;
        if let Ok(place) = self.places.find_entry(self.all[at].0, |place| *place == at) {
            place.remove();
        }
        if let Some(place) = self.places.find_mut(self.all[last].0, |place| *place == last) {
            *place = at;
        }
        self.all.swap_remove(at);
        if self.all.is_empty() {
            (self.all, self.places) = Default::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::{Action, Instruction, PortNo};

    fn output(port: u32) -> EntryProgram {
        EntryProgram::compile(&[Instruction::ApplyActions(vec![Action::output(PortNo(port))])], 0, 2).unwrap()
    }

    #[test]
    fn equal_programs_are_one() {
        let mut programs = ProgramInterner::default();
        let kept: Vec<_> = (0..100).map(|number| programs.share(output(number % 10))).collect();
        assert_eq!(programs.all.len(), 10);
        assert!((10..100).all(|number| Arc::ptr_eq(&kept[number], &kept[number % 10])));
        assert!((0..10).all(|port| *kept[port as usize] == output(port)));
    }

    #[test]
    fn those_without_entries_go_and_the_others_are_still_found() {
        let mut programs = ProgramInterner::default();
        let mut kept: Vec<_> = (0..1000).map(|port| Some(programs.share(output(port)))).collect();
        (0..1000).filter(|port| port % 3 != 0).for_each(|port| kept[port] = None);
        (0..1000).for_each(|_| programs.step());
        assert_eq!((programs.all.len(), programs.places.len()), (334, 334));
        for port in (0..1000).step_by(3) {
            let again = programs.share(output(u32::try_from(port).unwrap()));
            assert!(Arc::ptr_eq(&again, kept[port].as_ref().unwrap()), "port {port}");
        }
        assert_eq!(programs.all.len(), 334);
    }

    #[test]
    fn there_is_a_most() {
        let mut programs = ProgramInterner::default();
        let more = u32::try_from(MOST).unwrap() + 10;
        let kept: Vec<_> = (0..more).map(|port| programs.share(output(port))).collect();
        assert_eq!((programs.all.len(), kept.len()), (MOST, MOST + 10));
        assert_eq!(programs.all.capacity(), MOST, "moved no more");
        drop(kept);
        (0..MOST).for_each(|_| programs.step());
        assert_eq!((programs.all.capacity(), programs.places.capacity()), (0, 0), "nothing stays");
    }
}
