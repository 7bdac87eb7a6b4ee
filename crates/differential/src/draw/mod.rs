//! Draws cases from seeds.
//!
//! The parts of a case fit together: a few frames, matches on fields of these frames, actions on headers that the
//! matches guarantee. A share of all parts is drawn without such restrictions.
mod actions;
mod entries;
mod frames;
mod groups;
mod matching;
mod requests;
mod rng;

use crate::case::bytes_of;
use crate::{CaseStep, DifferentialCase};
use frames::SampleFrame;
use rng::CaseRng;
use weir_openflow::model::Match;
use weir_openflow::{Body, Version};

/// Returns true if the case of a seed has pauses: one in eight.
fn has_pauses(seed: u64) -> bool {
    seed / 64 % 8 == 7
}

/// State while a case is drawn.
struct CaseGenerator {
    dice: CaseRng,
    version: Version,
    samples: Vec<SampleFrame>,
    has_pauses: bool,
    /// Numbers of groups and of meters that were added, as far as is known.
    groups: Vec<u32>,
    meters: Vec<u32>,
    /// Table of the entry that is being drawn.
    table: u8,
    /// Table, priority and match of the entries drawn so far.
    entries: Vec<(u8, u16, Match)>,
    /// True if entries have hard timeouts and are not modified, false for the reverse; only for cases with pauses. Open
    /// vSwitch restarts hard timeouts with a modify (OpenFlow 1.3.5, 6.4, does not), so that everything after a pause
    /// would differ.
    has_hard_timeouts: bool,
}

/// Draws the case of a seed. The version depends on the seed, all versions in turn.
pub fn case(seed: u64) -> DifferentialCase {
    let mut dice = CaseRng::new(seed);
    let version = Version::ALL[usize::try_from(seed % 4).unwrap_or(0)];
    let samples = (0..dice.between(1, 3)).map(|_| frames::sample(&mut dice)).collect();
    let mut world = CaseGenerator {
        dice,
        version,
        samples,
        has_pauses: has_pauses(seed),
        groups: Vec::new(),
        meters: Vec::new(),
        table: 0,
        entries: Vec::new(),
        has_hard_timeouts: (seed / 512).is_multiple_of(2),
    };
    let mut steps = world.steps();
    // Messages that the version cannot encode are dropped.
    steps.retain(|step| match step {
        CaseStep::Message(body) => bytes_of(body, 1, version).is_some(),
        _ => true,
    });
    DifferentialCase { seed, version, steps }
}

impl CaseGenerator {
    fn steps(&mut self) -> Vec<CaseStep> {
        let mut steps = Vec::new();
        let has_groups = self.version > Version::V10 && self.dice.one_in(3);
        if has_groups {
            steps.extend(self.groups());
        }
        if self.version > Version::V10 && self.dice.one_in(6) {
            steps.extend(self.meters());
        }
        for _ in 0..self.dice.between(1, 5) {
            let flow = self.add();
            steps.push(CaseStep::Message(Body::FlowMod(flow)));
        }
        for part in 0..if self.has_pauses { 3 } else { 1 } {
            if part > 0 {
                steps.push(CaseStep::Pause);
            }
            for _ in 0..self.dice.between(1, 4) {
                steps.push(self.frame());
            }
            for _ in 0..self.dice.between(0, 3) {
                let change = self.change(has_groups);
                steps.extend(change);
            }
        }
        steps.extend(self.frame_after_changes());
        steps.extend(self.questions());
        steps
    }

    fn frame(&mut self) -> CaseStep {
        let sample = self.dice.pick(&self.samples).clone();
        let bytes = if self.dice.one_in(6) { frames::sample(&mut self.dice).bytes } else { sample.bytes };
        let bytes = frames::damaged(&mut self.dice, bytes);
        CaseStep::Frame { port: if self.dice.one_in(5) { self.dice.between(1, 4) } else { sample.port }, bytes }
    }

    /// Draws a group's number, most often of a group that was added. Returns `None` if none was.
    fn known_group(&mut self) -> Option<u32> {
        self.known(|world| &world.groups)
    }

    /// Draws a meter's number, most often of a meter that was added. Returns `None` if none was.
    fn known_meter(&mut self) -> Option<u32> {
        self.known(|world| &world.meters)
    }

    fn known(&mut self, all: fn(&CaseGenerator) -> &Vec<u32>) -> Option<u32> {
        if self.dice.one_in(25) {
            return Some(self.dice.between(1, groups::NUMBERS));
        }
        let all = all(self).clone();
        (!all.is_empty()).then(|| *self.dice.pick(&all))
    }

    fn frame_after_changes(&mut self) -> Option<CaseStep> {
        self.dice.one_in(2).then(|| self.frame())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_seed_is_a_case() {
        assert_eq!(super::case(5), super::case(5));
        assert_ne!(super::case(5).steps, super::case(9).steps);
    }
}
