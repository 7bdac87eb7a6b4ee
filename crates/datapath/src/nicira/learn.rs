//! Builds the flow entry that the action `learn` adds.
use super::port_of;
use weir_openflow::model::nicira::{LearnAction, LearnDst, LearnSrc, NxAction};
use weir_openflow::model::{Action, FlowFlags, FlowMod, Instruction, Match, MatchField, Subfield};
use weir_packet::{Field, FlowKey};

/// Flag `NX_LEARN_F_SEND_FLOW_REM` of `learn`.
const SEND_FLOW_REM: u16 = 1;

/// Returns the flow-mod for a packet with the flow key `key`.
pub(crate) fn learned_entry(learn: &LearnAction, key: &FlowKey) -> FlowMod {
    let (mut fields, mut actions) = (Vec::new(), Vec::new());
    for spec in &learn.specs {
        let value = match spec.src {
            LearnSrc::Field(src) => (key.get(src.field) & src.mask()) >> src.offset,
            LearnSrc::Value(value) => value,
        };
        match spec.dst {
            LearnDst::Match(dst) => add(&mut fields, dst, value),
            LearnDst::Load(dst) => actions.push(load(dst, value)),
            LearnDst::Output => actions.push(Action::output(port_of(value))),
        }
    }
    let known = fields.into_iter().map(|(field, value, mask)| MatchField::Known {
        field,
        value,
        mask: (mask != field.all_ones()).then_some(mask),
    });
    let instructions = if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] };
    let flags = if learn.flags & SEND_FLOW_REM != 0 { FlowFlags::SEND_FLOW_REM } else { FlowFlags::default() };
    FlowMod {
        cookie: learn.cookie,
        table: learn.table,
        idle_timeout: learn.idle_timeout,
        hard_timeout: learn.hard_timeout,
        flags,
        ..FlowMod::add(learn.priority, Match { fields: known.collect() }, instructions)
    }
}

/// Adds bits to a match, which has one element per field.
fn add(fields: &mut Vec<(Field, u128, u128)>, dst: Subfield, value: u128) {
    let (value, mask) = (value << dst.offset & dst.mask(), dst.mask());
    match fields.iter_mut().find(|(field, ..)| *field == dst.field) {
        Some((_, old, bits)) => {
            *old = *old & !mask | value;
            *bits |= mask;
        }
        None => fields.push((dst.field, value, mask)),
    }
}

fn load(dst: Subfield, value: u128) -> Action {
    match u64::try_from(value) {
        Ok(value) if dst.bits <= 64 => NxAction::Load { dst, value }.into_action(),
        _ => Action::SetFieldMasked { field: dst.field, value: value << dst.offset & dst.mask(), mask: dst.mask() },
    }
}
