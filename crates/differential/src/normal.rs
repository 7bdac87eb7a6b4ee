//! Converts the messages of switches to a normal form: entries in one order, one form of each match.
use crate::outcome::{DecodedBody, StepAnswer};
use weir_openflow::Body;
use weir_openflow::model::multipart::ReplyBody;
use weir_openflow::model::{Bytes, Instruction, Match, MatchField, PacketInReason};
use weir_packet::Field;

/// Converts an answer to normal form.
#[must_use]
pub fn answer(answer: &StepAnswer) -> StepAnswer {
    let mut answer = answer.clone();
    answer.replies = merged(answer.replies);
    answer.replies.iter_mut().for_each(message);
    for packet in &mut answer.packets_in {
        matching(&mut packet.matching);
        // Open vSwitch gets frames in packet-outs, and therefore does not report which kind of entry sent them to the
        // controller (OpenFlow 1.4.1, 7.4.1).
        if packet.reason != PacketInReason::InvalidTtl {
            packet.reason = PacketInReason::Action;
        }
    }
    answer
}

/// Joins the parts of multipart replies.
fn merged(replies: Vec<DecodedBody>) -> Vec<DecodedBody> {
    let mut all: Vec<DecodedBody> = Vec::new();
    for reply in replies {
        if let Ok(Body::MultipartReply(next)) = &reply
            && let Some(Ok(Body::MultipartReply(so_far))) = all.last_mut()
            && so_far.more
            && append(&mut so_far.body, &next.body)
        {
            so_far.more = next.more;
            continue;
        }
        all.push(reply);
    }
    all
}

/// Splits a match on a whole tag into its parts. For packets without tag, no priority is matched.
fn tag_parts(value: u128, mask: u128) -> Vec<MatchField> {
    let vid = MatchField::Known { field: Field::VlanVid, value: value & 0x1fff, mask: Some(mask & 0x1fff) };
    let pcp = MatchField::Known { field: Field::VlanPcp, value: value >> 13, mask: Some(mask >> 13) };
    let is_untagged = value == 0 && mask & 0x1000 != 0;
    if is_untagged { vec![vid] } else { vec![vid, pcp] }
}

/// Splits wide registers into 32-bit registers, the highest bits first.
fn narrowed(entry: &MatchField) -> Vec<MatchField> {
    let MatchField::Known { field, value, mask } = entry else { return vec![entry.clone()] };
    if *field == Field::VlanTci {
        return tag_parts(*value, mask.unwrap_or(field.all_ones()));
    }
    let wide = |first: Field| (*field as u8).checked_sub(first as u8);
    let (first, count) = match (wide(Field::Xreg0), wide(Field::Xxreg0)) {
        (_, Some(at @ 0..4)) => (at * 4, 4_u8),
        (Some(at @ 0..8), _) => (at * 2, 2),
        _ => return vec![entry.clone()],
    };
    let mask = mask.unwrap_or(field.all_ones());
    let part = |at: u8| {
        let shift = 32 * u32::from(count - 1 - at);
        let bits = |of: u128| of >> shift & u128::from(u32::MAX);
        let field = Field::ALL.into_iter().find(|field| *field as u8 == Field::Reg0 as u8 + first + at);
        field.map(|field| MatchField::Known { field, value: bits(*value), mask: Some(bits(mask)) })
    };
    (0..count).filter_map(part).collect()
}

/// Converts a message to normal form.
pub fn message(told: &mut DecodedBody) {
    match told {
        Ok(Body::Error(error)) => error.data = Bytes::default(),
        Ok(Body::FlowRemoved(removed)) => {
            matching(&mut removed.matching);
            removed.more.idle_time = None;
        }
        Ok(Body::MultipartReply(reply)) => {
            reply.more = false;
            list(&mut reply.body);
        }
        _ => {}
    }
}

/// Appends a part's entries to those before. Returns false if they are of another kind.
fn append(so_far: &mut ReplyBody, next: &ReplyBody) -> bool {
    match (so_far, next) {
        (ReplyBody::Flow(all), ReplyBody::Flow(more)) => all.extend(more.iter().cloned()),
        (ReplyBody::FlowCounters(all), ReplyBody::FlowCounters(more)) => all.extend(more.iter().cloned()),
        _ => return false,
    }
    true
}

fn list(body: &mut ReplyBody) {
    match body {
        ReplyBody::Flow(entries) => {
            for entry in entries.iter_mut() {
                matching(&mut entry.matching);
                // An empty action list or set equals none.
                entry.instructions.retain(|one| {
                    !matches!(one, Instruction::ApplyActions(list) | Instruction::WriteActions(list) if list.is_empty())
                });
                entry.instructions.sort_by_key(Instruction::execution_order);
                // Optional (OpenFlow 1.5.1, 7.2.4.4): only Open vSwitch keeps it.
                entry.more.idle_time = None;
            }
            entries.sort_by_cached_key(|entry| (entry.table, entry.priority, format!("{:?}", entry.matching)));
        }
        ReplyBody::FlowCounters(entries) => {
            for entry in entries.iter_mut() {
                matching(&mut entry.matching);
                entry.stats.idle_time = None;
            }
            entries.sort_by_cached_key(|entry| (entry.table, entry.priority, format!("{:?}", entry.matching)));
        }
        ReplyBody::Table(tables) => {
            for table in tables.iter_mut() {
                // These counters include earlier cases of the bridge, and names depend on the switch.
                (table.lookup_count, table.matched_count) = (0, 0);
                table.name.clear();
            }
        }
        ReplyBody::Group(groups) => groups.sort_by_key(|group| group.group),
        ReplyBody::GroupDesc(groups) => groups.sort_by_key(|group| group.group),
        ReplyBody::Meter(meters) => meters.sort_by_key(|meter| meter.meter),
        ReplyBody::MeterConfig(meters) => meters.sort_by_key(|meter| meter.meter),
        _ => {}
    }
}

/// Converts a match to one form: no mask of all ones, no field with a zero mask, fields in order.
fn matching(matching: &mut Match) {
    matching.fields = matching.fields.iter().flat_map(narrowed).collect();
    for entry in &mut matching.fields {
        if let MatchField::Known { field, mask, .. } = entry {
            *mask = mask.filter(|mask| *mask != field.all_ones());
        }
    }
    matching.fields.retain(|entry| !matches!(entry, MatchField::Known { mask: Some(0), .. }));
    matching.fields.sort_by_key(|entry| match entry {
        MatchField::Known { field, .. } => (false, Some(*field)),
        MatchField::Raw(_) => (true, None::<Field>),
    });
}
