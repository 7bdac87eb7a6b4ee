//! Known differences between weir and Open vSwitch, each explained by a clause of a specification.
//!
//! A difference that no kind recognises fails a run. A kind recognises only what its explanation covers, by the
//! request and both answers.
mod features;
mod packets;
mod refusals;
mod replies;

use crate::compare::{StepAnswerPart, StepDifference};
use crate::{CaseStep, DifferentialCase};
use weir_openflow::Body;
use weir_openflow::model::{Action, ErrorType, FlowMod};

/// Switch whose answer the specification does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviatingSwitch {
    /// The answer of Open vSwitch.
    Theirs,
    /// Neither answer: the specification leaves it to the switch.
    Free,
    /// The answer of weir, which is not fixed yet.
    Ours,
}

/// A kind of difference.
#[derive(Debug)]
pub struct DifferenceKind {
    /// Name in records.
    pub name: &'static str,
    /// Switch whose answer deviates from the specification.
    pub whose: DeviatingSwitch,
    /// Clause of the specification that explains the difference.
    pub clause: &'static str,
    /// Both answers in a sentence.
    pub why: &'static str,
    /// Returns true if a difference is of this kind.
    pub is: fn(&ObservedDifference<'_>) -> bool,
}

/// A difference with its case.
#[derive(Debug, Clone, Copy)]
pub struct ObservedDifference<'a> {
    /// The case that was run.
    pub case: &'a DifferentialCase,
    /// The difference to explain.
    pub difference: &'a StepDifference,
}

impl<'a> ObservedDifference<'a> {
    /// Returns true if the difference is in this part of the answer.
    fn is_in(&self, part: StepAnswerPart) -> bool {
        self.difference.part == part
    }

    /// Returns the message of the differing step.
    fn body(&self) -> Option<&'a Body> {
        match &self.case.steps[self.difference.step] {
            CaseStep::Message(body) => Some(body),
            _ => None,
        }
    }

    /// Returns the frame of the differing step.
    fn frame(&self) -> Option<&'a [u8]> {
        match &self.case.steps[self.difference.step] {
            CaseStep::Frame { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Returns the messages that may have caused the difference: those before the step, or all for notices.
    fn causes(&self) -> impl Iterator<Item = &'a Body> {
        let end = if self.is_in(StepAnswerPart::Told) { self.case.steps.len() } else { self.difference.step };
        self.case.messages_before(end)
    }

    /// Returns true if an action before the step, in an entry or a group, satisfies `is`.
    fn acts(&self, is: impl Fn(&Action) -> bool) -> bool {
        self.causes().any(|body| features::parts(body).has_action(&is))
    }

    /// Returns true if a flow-mod before the step satisfies `is`.
    fn has_flow(&self, is: impl Fn(&FlowMod) -> bool) -> bool {
        self.causes().any(|body| features::parts(body).flow.is_some_and(&is))
    }

    /// Returns true if a frame before the step satisfies `is`.
    fn has_frame(&self, is: impl Fn(&[u8]) -> bool) -> bool {
        self.case.steps[..self.difference.step]
            .iter()
            .any(|step| matches!(step, CaseStep::Frame { bytes, .. } if is(bytes)))
    }

    /// Returns true if frames or packet-ins differ.
    fn is_of_packets(&self) -> bool {
        matches!(self.difference.part, StepAnswerPart::Frames | StepAnswerPart::PacketsIn)
    }

    /// Returns the parts of the step's message; empty for other steps.
    fn parts(&self) -> features::MessageFeatures<'a> {
        self.body().map(features::parts).unwrap_or_default()
    }

    /// Returns the errors of weir and of Open vSwitch.
    fn errors(&self) -> (Option<ErrorType>, Option<ErrorType>) {
        (error(&self.difference.ours.replies), error(&self.difference.theirs.replies))
    }

    /// Returns true if Open vSwitch refuses with one of these errors, and weir does not or for another reason.
    fn they_refuse(&self, with: &[ErrorType]) -> bool {
        self.is_in(StepAnswerPart::Replies) && self.errors().1.is_some_and(|error| with.contains(&error))
    }

    /// Returns true if only weir refuses, with one of these errors.
    fn only_we_refuse(&self, with: &[ErrorType]) -> bool {
        let (ours, theirs) = self.errors();
        self.is_in(StepAnswerPart::Replies) && theirs.is_none() && ours.is_some_and(|error| with.contains(&error))
    }

    /// Returns true if both refuse, with errors of these lists.
    fn both_refuse(&self, ours: &[ErrorType], theirs: &[ErrorType]) -> bool {
        let (our, their) = self.errors();
        self.is_in(StepAnswerPart::Replies)
            && our.is_some_and(|error| ours.contains(&error))
            && their.is_some_and(|error| theirs.contains(&error))
    }
}

fn error(replies: &[crate::outcome::DecodedBody]) -> Option<ErrorType> {
    replies.iter().find_map(|reply| match reply {
        Ok(Body::Error(error)) => Some(error.error),
        _ => None,
    })
}

/// Returns every known kind. The first one that recognises a difference applies.
pub fn all() -> impl Iterator<Item = &'static DifferenceKind> {
    [refusals::THEIRS, refusals::OURS, replies::KINDS, packets::KINDS, refusals::BOTH].into_iter().flatten()
}

/// Returns the kinds of a difference, for notices one for each that differs, or `None` unless all are known.
pub fn kinds_of(case: &DifferentialCase, difference: &StepDifference) -> Option<Vec<&'static DifferenceKind>> {
    let parts = difference.parts();
    if parts.is_empty() {
        return None;
    }
    parts.iter().map(|difference| all().find(|kind| (kind.is)(&ObservedDifference { case, difference }))).collect()
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
