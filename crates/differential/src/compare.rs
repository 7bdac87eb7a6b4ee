//! Compares the outcomes of a case on two switches, step by step.
use crate::outcome::DecodedBody;
use crate::{CaseOutcome, StepAnswer, normal};
use weir_openflow::Body;
use weir_openflow::model::Match;
use weir_openflow::model::multipart::{MultipartReply, ReplyBody};

/// Part of an answer in which switches differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepAnswerPart {
    /// Replies and errors.
    Replies,
    /// Messages that the switch sends unasked (notices).
    Told,
    /// Packet-ins sent to the controller.
    PacketsIn,
    /// Frames sent by ports.
    Frames,
    /// Open vSwitch exited or stopped answering.
    Ended,
}

/// A step in which two switches differ, with both answers in normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDifference {
    /// Index of the step.
    pub step: usize,
    /// First part of the answer that differs.
    pub part: StepAnswerPart,
    /// Answer of weir.
    pub ours: StepAnswer,
    /// Answer of Open vSwitch.
    pub theirs: StepAnswer,
    /// Notices of the whole case that only one switch sent: weir's, Open vSwitch's.
    pub told: (Vec<DecodedBody>, Vec<DecodedBody>),
}

impl StepDifference {
    /// Returns the difference that Open vSwitch exited during a case.
    pub fn ended(ours: &CaseOutcome) -> StepDifference {
        let step = ours.answers.len().saturating_sub(1);
        let (ours, theirs) = (StepAnswer::default(), StepAnswer::default());
        StepDifference { step, part: StepAnswerPart::Ended, ours, theirs, told: Default::default() }
    }

    /// Splits the difference: one for each listed entry or group that differs, or for each notice that only one
    /// switch sent or that differs; otherwise returns this difference alone.
    pub fn parts(&self) -> Vec<StepDifference> {
        match self.part {
            StepAnswerPart::Told => self.notices(),
            StepAnswerPart::Replies => self.entries().unwrap_or_else(|| vec![self.clone()]),
            _ => vec![self.clone()],
        }
    }

    /// Returns a difference for each listed entry or group that differs, or `None` if the numbers of entries or
    /// groups differ.
    fn entries(&self) -> Option<Vec<StepDifference>> {
        let (ours, theirs) = (listed(&self.ours)?, listed(&self.theirs)?);
        let is_whole = ours.len() == theirs.len();
        let pairs = ours.into_iter().zip(theirs).filter(|(ours, theirs)| ours != theirs);
        let one = |body: ReplyBody| {
            let reply = MultipartReply { more: false, body };
            StepAnswer { replies: vec![Ok(Body::MultipartReply(reply))], ..StepAnswer::default() }
        };
        let all = pairs.map(|(ours, theirs)| StepDifference { ours: one(ours), theirs: one(theirs), ..self.clone() });
        is_whole.then(|| all.collect())
    }

    fn notices(&self) -> Vec<StepDifference> {
        let (ours, mut theirs) = self.told.clone();
        let mut pairs: Vec<(Vec<DecodedBody>, Vec<DecodedBody>)> = Vec::new();
        for notice in ours {
            // A match may be listed in different forms, so equal matches are preferred, not required.
            let same = |other: &DecodedBody| subject(other) == subject(&notice);
            let at = theirs.iter().position(|other| same(other) && matching(other) == matching(&notice));
            let at = at.or_else(|| theirs.iter().position(same));
            pairs.push((vec![notice], at.map(|at| theirs.remove(at)).into_iter().collect()));
        }
        pairs.extend(theirs.into_iter().map(|notice| (Vec::new(), vec![notice])));
        pairs.into_iter().map(|told| StepDifference { told, ..self.clone() }).collect()
    }
}

/// Returns the entries or groups that an answer lists, as one reply for each.
fn listed(answer: &StepAnswer) -> Option<Vec<ReplyBody>> {
    let [Ok(Body::MultipartReply(reply))] = answer.replies.as_slice() else { return None };
    match &reply.body {
        ReplyBody::Flow(entries) => Some(entries.iter().map(|entry| ReplyBody::Flow(vec![entry.clone()])).collect()),
        ReplyBody::Group(groups) => Some(groups.iter().map(|group| ReplyBody::Group(vec![group.clone()])).collect()),
        _ => None,
    }
}

/// Identifies the entry that a notice is about; `None` for other notices.
fn subject(notice: &DecodedBody) -> Option<(u8, u16, u64)> {
    match notice {
        Ok(Body::FlowRemoved(removed)) => Some((removed.table.0, removed.priority, removed.cookie)),
        _ => None,
    }
}

/// Returns the match of the entry that a notice is about.
fn matching(notice: &DecodedBody) -> Option<&Match> {
    match notice {
        Ok(Body::FlowRemoved(removed)) => Some(&removed.matching),
        _ => None,
    }
}

/// Returns the first step in which two outcomes of a case differ. Notices are compared last, because the step of
/// their arrival is not known.
pub fn first_difference(ours: &CaseOutcome, theirs: &CaseOutcome) -> Option<StepDifference> {
    let answers = ours.answers.iter().zip(&theirs.answers).enumerate();
    let mut different = answers.filter(|(_, (ours, theirs))| ours != theirs);
    let in_answers = different.find_map(|(step, (ours, theirs))| {
        let (ours, theirs) = (normal::answer(ours), normal::answer(theirs));
        let part = part(&ours, &theirs)?;
        Some(StepDifference { step, part, ours, theirs, told: Default::default() })
    });
    in_answers.or_else(|| in_notices(ours, theirs))
}

fn part(ours: &StepAnswer, theirs: &StepAnswer) -> Option<StepAnswerPart> {
    let parts = [
        (StepAnswerPart::Replies, ours.replies != theirs.replies),
        (StepAnswerPart::PacketsIn, ours.packets_in != theirs.packets_in),
        (StepAnswerPart::Frames, ours.frames != theirs.frames),
    ];
    parts.into_iter().find(|(_, differs)| *differs).map(|(part, _)| part)
}

/// Compares notices. The step of the difference is the one in which weir sent the first of them, or the last step.
fn in_notices(ours: &CaseOutcome, theirs: &CaseOutcome) -> Option<StepDifference> {
    let told = |outcome: &CaseOutcome| {
        let notices = outcome.told.iter().cloned();
        notices
            .map(|(step, mut told)| {
                (step, {
                    normal::message(&mut told);
                    told
                })
            })
            .collect::<Vec<_>>()
    };
    let mut only_theirs = told(theirs);
    let mut only_ours = told(ours);
    only_ours.retain(|(_, notice)| match only_theirs.iter().position(|(_, other)| other == notice) {
        Some(at) => {
            let _ = only_theirs.remove(at);
            false
        }
        None => true,
    });
    if only_ours.is_empty() && only_theirs.is_empty() {
        return None;
    }
    let last = ours.answers.len().checked_sub(1)?;
    let step = only_ours.first().and_then(|(step, _)| *step).unwrap_or(last);
    let strip = |notices: Vec<(_, DecodedBody)>| notices.into_iter().map(|(_, told)| told).collect();
    Some(StepDifference {
        step,
        part: StepAnswerPart::Told,
        ours: StepAnswer::default(),
        theirs: StepAnswer::default(),
        told: (strip(only_ours), strip(only_theirs)),
    })
}
