//! Known differences between weir and Open vSwitch, each explained by a clause of a specification.
//!
//! A difference that no kind recognises fails a run. A kind recognises no more than its explanation covers: what was
//! asked for, and both answers.
mod features;
mod packets;
mod refusals;
mod replies;

use crate::compare::{Difference, Part};
use crate::{Case, Step};
use weir_openflow::Body;
use weir_openflow::model::{Action, ErrorType, FlowMod};

/// Whose answer a specification does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// Open vSwitch's.
    Theirs,
    /// Nobody's: the specification leaves it to the switch.
    Free,
    /// weir's, and not mended.
    Ours,
}

/// A kind of difference.
#[derive(Debug)]
pub struct Kind {
    /// Its name in records.
    pub name: &'static str,
    /// Whose answer is not as specified.
    pub whose: Whose,
    /// The clause that explains it.
    pub clause: &'static str,
    /// Both answers in a sentence.
    pub why: &'static str,
    /// Whether a difference is of this kind.
    pub is: fn(&Seen<'_>) -> bool,
}

/// A difference in its case.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The case.
    pub case: &'a Case,
    /// The difference.
    pub difference: &'a Difference,
}

impl<'a> Seen<'a> {
    /// Whether the difference is in a part of the answer.
    fn is_in(&self, part: Part) -> bool {
        self.difference.part == part
    }

    /// The step's message.
    fn body(&self) -> Option<&'a Body> {
        match &self.case.steps[self.difference.step] {
            Step::Message(body) => Some(body),
            _ => None,
        }
    }

    /// The step's frame.
    fn frame(&self) -> Option<&'a [u8]> {
        match &self.case.steps[self.difference.step] {
            Step::Frame { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Messages that may have caused the difference: those before the step, for notices all.
    fn causes(&self) -> impl Iterator<Item = &'a Body> {
        let end = if self.is_in(Part::Told) { self.case.steps.len() } else { self.difference.step };
        self.case.messages_before(end)
    }

    /// Whether an action before the step, in an entry or a group, is one of these.
    fn acts(&self, is: impl Fn(&Action) -> bool) -> bool {
        self.causes().any(|body| features::parts(body).has_action(&is))
    }

    /// Whether a flow-mod before the step is one of these.
    fn has_flow(&self, is: impl Fn(&FlowMod) -> bool) -> bool {
        self.causes().any(|body| features::parts(body).flow.is_some_and(&is))
    }

    /// Whether a frame before the step is one of these.
    fn has_frame(&self, is: impl Fn(&[u8]) -> bool) -> bool {
        self.case.steps[..self.difference.step]
            .iter()
            .any(|step| matches!(step, Step::Frame { bytes, .. } if is(bytes)))
    }

    /// Whether frames or packet-ins differ.
    fn is_of_packets(&self) -> bool {
        matches!(self.difference.part, Part::Frames | Part::PacketsIn)
    }

    /// The step's message in parts; nothing for other steps.
    fn parts(&self) -> features::Parts<'a> {
        self.body().map(features::parts).unwrap_or_default()
    }

    /// The errors with which weir and Open vSwitch answer.
    fn errors(&self) -> (Option<ErrorType>, Option<ErrorType>) {
        (error(&self.difference.ours.replies), error(&self.difference.theirs.replies))
    }

    /// Whether only Open vSwitch refuses, or both for different reasons.
    fn they_refuse(&self, with: &[ErrorType]) -> bool {
        self.is_in(Part::Replies) && self.errors().1.is_some_and(|error| with.contains(&error))
    }

    /// Whether only weir refuses.
    fn only_we_refuse(&self, with: &[ErrorType]) -> bool {
        let (ours, theirs) = self.errors();
        self.is_in(Part::Replies) && theirs.is_none() && ours.is_some_and(|error| with.contains(&error))
    }

    /// Whether both refuse, with these errors.
    fn both_refuse(&self, ours: &[ErrorType], theirs: &[ErrorType]) -> bool {
        let (our, their) = self.errors();
        self.is_in(Part::Replies)
            && our.is_some_and(|error| ours.contains(&error))
            && their.is_some_and(|error| theirs.contains(&error))
    }
}

fn error(replies: &[crate::outcome::Told]) -> Option<ErrorType> {
    replies.iter().find_map(|reply| match reply {
        Ok(Body::Error(error)) => Some(error.error),
        _ => None,
    })
}

/// Every known kind; of those that recognise a difference the first counts.
pub fn all() -> impl Iterator<Item = &'static Kind> {
    [refusals::THEIRS, refusals::OURS, replies::KINDS, packets::KINDS, refusals::BOTH].into_iter().flatten()
}

/// The kinds of a difference, of notices one for each that differs; none unless all are known.
pub fn kinds_of(case: &Case, difference: &Difference) -> Option<Vec<&'static Kind>> {
    let parts = difference.parts();
    if parts.is_empty() {
        return None;
    }
    parts.iter().map(|difference| all().find(|kind| (kind.is)(&Seen { case, difference }))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn names_are_different_and_clauses_are_there() {
        let names: BTreeSet<_> = super::all().map(|kind| kind.name).collect();
        assert_eq!(names.len(), super::all().count());
        for kind in super::all() {
            assert!(kind.clause.starts_with("1."), "{} has the clause `{}`", kind.name, kind.clause);
        }
    }
}
