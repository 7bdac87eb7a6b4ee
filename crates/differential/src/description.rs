//! Describes a difference as a short text, by which a survey groups differences of no known kind.
use crate::compare::{StepAnswerPart, StepDifference};
use crate::{CaseStep, DifferentialCase, StepAnswer, attributes};
use weir_openflow::Body;
use weir_openflow::model::multipart::ReplyBody;

/// Returns the kind of step, the part of the answer, and what differs in it.
pub fn of(case: &DifferentialCase, difference: &StepDifference) -> String {
    let what = match difference.part {
        StepAnswerPart::Replies => replies(&difference.ours, &difference.theirs),
        StepAnswerPart::Told => format!("{:?}", attributes::of_notices(&difference.told.0, &difference.told.1)),
        StepAnswerPart::Frames => frames(&difference.ours, &difference.theirs),
        StepAnswerPart::Ended => String::new(),
        StepAnswerPart::PacketsIn => packets_in(&difference.ours, &difference.theirs),
    };
    format!("{} {:?}: {what}", name(&case.steps[difference.step]), difference.part)
}

fn name(step: &CaseStep) -> String {
    let text = match step {
        CaseStep::Message(Body::MultipartRequest(request)) => format!("{:?}", request.body),
        CaseStep::Message(body) => format!("{body:?}"),
        CaseStep::Frame { .. } => "frame".to_owned(),
        CaseStep::Pause => "pause".to_owned(),
    };
    let end = text.find(['(', '{']).unwrap_or(text.len());
    text[..end].trim().to_owned()
}

fn replies(ours: &StepAnswer, theirs: &StepAnswer) -> String {
    if let ([Ok(Body::MultipartReply(ours))], [Ok(Body::MultipartReply(theirs))]) =
        (&ours.replies[..], &theirs.replies[..])
        && let (ReplyBody::Flow(ours), ReplyBody::Flow(theirs)) = (&ours.body, &theirs.body)
    {
        return format!("{:?}", attributes::of_entries(ours, theirs));
    }
    let side = |answer: &StepAnswer| {
        let replies = answer.replies.iter().map(|reply| match reply {
            Ok(Body::Error(error)) => format!("{:?}", error.error),
            Ok(body) => format!("{body:?}").chars().take(14).collect(),
            Err(text) => text.chars().take(40).collect(),
        });
        replies.collect::<Vec<_>>().join(", ")
    };
    format!("{} | {}", side(ours), side(theirs))
}

fn frames(ours: &StepAnswer, theirs: &StepAnswer) -> String {
    let ports = |answer: &StepAnswer| answer.frames.iter().map(|(port, _)| *port).collect::<Vec<_>>();
    if ports(ours) != ports(theirs) {
        let order = ports(ours).len().cmp(&ports(theirs).len());
        return format!("ports, {order:?}");
    }
    let pairs = ours.frames.iter().zip(&theirs.frames);
    let first = pairs.map(|((_, ours), (_, theirs))| bytes(ours, theirs)).find(Option::is_some).flatten();
    first.unwrap_or_default()
}

fn packets_in(ours: &StepAnswer, theirs: &StepAnswer) -> String {
    if ours.packets_in.len() != theirs.packets_in.len() {
        return format!("count, {:?}", ours.packets_in.len().cmp(&theirs.packets_in.len()));
    }
    let mut all = Vec::new();
    for (ours, theirs) in ours.packets_in.iter().zip(&theirs.packets_in) {
        all.extend((ours.reason != theirs.reason).then(|| format!("reason {:?} {:?}", ours.reason, theirs.reason)));
        all.extend((ours.table != theirs.table).then(|| "table".to_owned()));
        all.extend((ours.cookie != theirs.cookie).then(|| "cookie".to_owned()));
        all.extend((ours.total_len != theirs.total_len).then(|| "length".to_owned()));
        all.extend((ours.matching != theirs.matching).then(|| "match".to_owned()));
        all.extend(bytes(&ours.data.0, &theirs.data.0));
    }
    all.sort();
    all.dedup();
    all.join(", ")
}

/// Returns the position of the first differing byte of two frames, and the EtherType.
fn bytes(ours: &[u8], theirs: &[u8]) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!("lengths, {:?}", ours.len().cmp(&theirs.len())));
    }
    let at = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs)?;
    Some(format!("byte {at} behind {:02x?}", ours.get(12..14).unwrap_or_default()))
}
