//! Compares the outcomes of a case on two switches, step by step.
use crate::outcome::Told;
use crate::{Answer, Outcome, normal};
use weir_openflow::Body;
use weir_openflow::model::Match;
use weir_openflow::model::multipart::{MultipartReply, ReplyBody};

/// Part of an answer in which switches differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
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
pub struct Difference {
    /// Index of the step.
    pub step: usize,
    /// First part of the answer that differs.
    pub part: Part,
    /// Answer of weir.
    pub ours: Answer,
    /// Answer of Open vSwitch.
    pub theirs: Answer,
    /// Notices of the whole case that only one switch sent: weir's, Open vSwitch's.
    pub told: (Vec<Told>, Vec<Told>),
}

impl Difference {
    /// Returns the difference that Open vSwitch exited during a case.
    pub fn ended(ours: &Outcome) -> Difference {
        let step = ours.answers.len().saturating_sub(1);
        let (ours, theirs) = (Answer::default(), Answer::default());
        Difference { step, part: Part::Ended, ours, theirs, told: Default::default() }
    }

    /// Splits the difference: one for each listed entry or group that differs, or for each notice that only one
    /// switch sent or that differs; otherwise returns this difference alone.
    pub fn parts(&self) -> Vec<Difference> {
        match self.part {
            Part::Told => self.notices(),
            Part::Replies => self.entries().unwrap_or_else(|| vec![self.clone()]),
            _ => vec![self.clone()],
        }
    }

    /// Returns a difference for each listed entry or group that differs, or `None` if the numbers of entries or
    /// groups differ.
    fn entries(&self) -> Option<Vec<Difference>> {
        let (ours, theirs) = (listed(&self.ours)?, listed(&self.theirs)?);
        let is_whole = ours.len() == theirs.len();
        let pairs = ours.into_iter().zip(theirs).filter(|(ours, theirs)| ours != theirs);
        let one = |body: ReplyBody| {
            let reply = MultipartReply { more: false, body };
            Answer { replies: vec![Ok(Body::MultipartReply(reply))], ..Answer::default() }
        };
        let all = pairs.map(|(ours, theirs)| Difference { ours: one(ours), theirs: one(theirs), ..self.clone() });
        is_whole.then(|| all.collect())
    }

    fn notices(&self) -> Vec<Difference> {
        let (ours, mut theirs) = self.told.clone();
        let mut pairs: Vec<(Vec<Told>, Vec<Told>)> = Vec::new();
        for notice in ours {
            // A match may be listed in different forms, so equal matches are preferred, not required.
            let same = |other: &Told| subject(other) == subject(&notice);
            let at = theirs.iter().position(|other| same(other) && matching(other) == matching(&notice));
            let at = at.or_else(|| theirs.iter().position(same));
            pairs.push((vec![notice], at.map(|at| theirs.remove(at)).into_iter().collect()));
        }
        pairs.extend(theirs.into_iter().map(|notice| (Vec::new(), vec![notice])));
        pairs.into_iter().map(|told| Difference { told, ..self.clone() }).collect()
    }
}

/// Returns the entries or groups that an answer lists, as one reply for each.
fn listed(answer: &Answer) -> Option<Vec<ReplyBody>> {
    let [Ok(Body::MultipartReply(reply))] = answer.replies.as_slice() else { return None };
    match &reply.body {
        ReplyBody::Flow(entries) => Some(entries.iter().map(|entry| ReplyBody::Flow(vec![entry.clone()])).collect()),
        ReplyBody::Group(groups) => Some(groups.iter().map(|group| ReplyBody::Group(vec![group.clone()])).collect()),
        _ => None,
    }
}

/// Identifies the entry that a notice is about; `None` for other notices.
fn subject(notice: &Told) -> Option<(u8, u16, u64)> {
    match notice {
        Ok(Body::FlowRemoved(removed)) => Some((removed.table.0, removed.priority, removed.cookie)),
        _ => None,
    }
}

/// Returns the match of the entry that a notice is about.
fn matching(notice: &Told) -> Option<&Match> {
    match notice {
        Ok(Body::FlowRemoved(removed)) => Some(&removed.matching),
        _ => None,
    }
}

/// Returns the first step in which two outcomes of a case differ. Notices are compared last, because the step of
/// their arrival is not known.
pub fn first_difference(ours: &Outcome, theirs: &Outcome) -> Option<Difference> {
    let answers = ours.answers.iter().zip(&theirs.answers).enumerate();
    let mut different = answers.filter(|(_, (ours, theirs))| ours != theirs);
    let in_answers = different.find_map(|(step, (ours, theirs))| {
        let (ours, theirs) = (normal::answer(ours), normal::answer(theirs));
        let part = part(&ours, &theirs)?;
        Some(Difference { step, part, ours, theirs, told: Default::default() })
    });
    in_answers.or_else(|| in_notices(ours, theirs))
}

fn part(ours: &Answer, theirs: &Answer) -> Option<Part> {
    let parts = [
        (Part::Replies, ours.replies != theirs.replies),
        (Part::PacketsIn, ours.packets_in != theirs.packets_in),
        (Part::Frames, ours.frames != theirs.frames),
    ];
    parts.into_iter().find(|(_, differs)| *differs).map(|(part, _)| part)
}

/// Compares notices. The step of the difference is the one in which weir sent the first of them, or the last step.
fn in_notices(ours: &Outcome, theirs: &Outcome) -> Option<Difference> {
    let told = |outcome: &Outcome| {
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
    let strip = |notices: Vec<(_, Told)>| notices.into_iter().map(|(_, told)| told).collect();
    Some(Difference {
        step,
        part: Part::Told,
        ours: Answer::default(),
        theirs: Answer::default(),
        told: (strip(only_ours), strip(only_theirs)),
    })
}
