//! Programs that entries share: of equal ones there is one in memory, so that a million entries that output to a few ports keep a few
//! programs and a pointer each.
//!
//! Programs that no entry has any more go in small steps, a few for each flow-mod and each entry that goes.
use crate::program::Program;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Programs to choose from; beyond them, programs are not shared. Where there are so many they mostly differ.
const MOST: usize = 1 << 16;
/// With so many there is made room for all at once: later, making room means moving tens of thousands, which packets would wait for.
const FEW: usize = 1024;
/// Programs looked at in a step, whether they are still in use: more than one comes with a flow-mod.
const STEP: usize = 2;

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    /// With their hashes.
    all: Vec<(u64, Arc<Program>)>,
    /// Where in `all` they are, by their hashes.
    places: HashTable<usize>,
    hasher: RandomState,
    /// Where the next step begins.
    next: usize,
}

impl Programs {
    /// A program equal to this one, shared with the other entries that have it.
    pub(crate) fn share(&mut self, program: Program) -> Arc<Program> {
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

    /// Looks at a few programs and lets those go that nothing else has.
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

    fn output(port: u32) -> Program {
        Program::compile(&[Instruction::ApplyActions(vec![Action::output(PortNo(port))])], 0, 2).unwrap()
    }

    #[test]
    fn equal_programs_are_one() {
        let mut programs = Programs::default();
        let kept: Vec<_> = (0..100).map(|number| programs.share(output(number % 10))).collect();
        assert_eq!(programs.all.len(), 10);
        assert!((10..100).all(|number| Arc::ptr_eq(&kept[number], &kept[number % 10])));
        assert!((0..10).all(|port| *kept[port as usize] == output(port)));
    }

    #[test]
    fn those_without_entries_go_and_the_others_are_still_found() {
        let mut programs = Programs::default();
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
        let mut programs = Programs::default();
        let more = u32::try_from(MOST).unwrap() + 10;
        let kept: Vec<_> = (0..more).map(|port| programs.share(output(port))).collect();
        assert_eq!((programs.all.len(), kept.len()), (MOST, MOST + 10));
        assert_eq!(programs.all.capacity(), MOST, "moved no more");
        drop(kept);
        (0..MOST).for_each(|_| programs.step());
        assert_eq!((programs.all.capacity(), programs.places.capacity()), (0, 0), "nothing stays");
    }
}
