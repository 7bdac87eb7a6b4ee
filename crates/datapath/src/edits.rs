//! Compiles the actions of entries that edit packets and then output them to one ordinary port, which covers most
//! routing and VLAN handling. The compiled [`Recipe`] makes such packets nearly as fast as unedited ones: no output
//! is deferred, nothing is parsed again, and the flow key is not updated.
use crate::burst::LookupResult;
use crate::program::EntryProgram;
use crate::table::FlowTable;
use weir_openflow::model::{Action, PortNo};
use weir_packet::edit::Recipe;
use weir_packet::{Frame, FrameBody, Layers, ParsedHeaders};

/// Compiled edits of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Edits {
    recipe: Recipe,
    /// Queue in which the packets wait at the port.
    queue: Option<u32>,
}

impl Edits {
    /// Compiles a program into edits and the output port. Returns `None` if it does more than that, or only outputs.
    pub(crate) fn of(program: &EntryProgram) -> Option<(Edits, PortNo)> {
        let apply = program.apply.as_deref().unwrap_or_default();
        let (edits, last) = match program.write.as_deref().unwrap_or_default() {
            [] => apply.split_last().map(|(last, edits)| (edits, last))?,
            [last] => (apply, last),
            _ => return None,
        };
        let Action::Output { port, .. } = *last else { return None };
        let only_outputs = program.meter.is_none() && program.goto.is_none() && program.metadata.is_none();
        if !only_outputs || port > PortNo::MAX || edits.is_empty() {
            return None;
        }
        let mut compiled = Edits::default();
        edits.iter().all(|action| compiled.add(action)).then_some((compiled, port))
    }

    /// Adds an action. Returns false if it cannot be compiled.
    fn add(&mut self, action: &Action) -> bool {
        match *action {
            Action::SetField { field, value } => self.recipe.set(field, value),
            Action::PushVlan(tpid) => self.recipe.push_vlan(tpid),
            Action::PopVlan => self.recipe.pop_vlan(),
            Action::DecNwTtl => self.recipe.dec_nw_ttl(),
            Action::SetQueue(queue) => {
                self.queue = Some(queue);
                true
            }
            _ => false,
        }
    }

    /// Returns true if the edits can be applied to a packet that begins with an Ethernet header. Otherwise the
    /// program must be run, which decides what happens to the packet.
    #[inline(always)]
    pub(crate) fn fit(&self, frame: &FrameBody, layers: &Layers) -> bool {
        self.recipe.fits(frame, layers)
    }

    /// Applies the edits to a packet that they [fit](Edits::fit).
    #[inline(always)]
    pub(crate) fn apply(&self, frame: &mut Frame, layers: &Layers) {
        self.recipe.apply(frame, layers);
        if let Some(queue) = self.queue {
            frame.queue = queue;
        }
    }
}

/// Returns the compiled edits of a fate's entry, if there are any.
#[inline(always)]
pub(crate) fn edits_at(tables: &[FlowTable], fate: LookupResult) -> Option<&Edits> {
    let entry = tables.get(usize::from(fate.table))?.get(fate.entry)?;
    entry.program.edits.as_deref().map(|(edits, _)| edits)
}

/// Edits the frames of one fate up to the first that does not fit. Returns the number of edited frames.
#[inline]
pub(crate) fn edit(tables: &[FlowTable], fate: LookupResult, frames: &mut [Frame], parsed: &[ParsedHeaders]) -> usize {
    let Some(edits) = edits_at(tables, fate) else { return 0 };
    let mut done = 0;
    for (frame, parsed) in frames.iter_mut().zip(parsed) {
        if !edits.fit(frame, &parsed.layers) {
            break;
        }
        edits.apply(frame, &parsed.layers);
        done += 1;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;
    use weir_openflow::model::{GroupId, Instruction, MeterId};
    use weir_packet::Field;

    fn port_of(instructions: &[Instruction]) -> Option<PortNo> {
        let program = EntryProgram::compile(instructions, 0, 2).unwrap();
        program.edits.as_ref().map(|edits| edits.1)
    }

    #[test]
    fn only_edits_before_one_ordinary_port_are_compiled() {
        use Instruction::{ApplyActions, GotoTable, Meter, WriteActions};
        let out = Action::output(PortNo(2));
        let set_to = |field, value| Action::SetField { field, value };
        let set = set_to(Field::UdpDst, 5);
        let apply = |list: &[Action]| ApplyActions(list.to_vec());
        for actions in [vec![set.clone()], vec![Action::DecNwTtl, Action::SetQueue(3)], vec![Action::PopVlan]] {
            let with_output = [&actions[..], from_ref(&out)].concat();
            assert_eq!(port_of(&[apply(&with_output)]), Some(PortNo(2)), "{actions:?}");
            assert_eq!(port_of(&[apply(&actions), WriteActions(vec![out.clone()])]), Some(PortNo(2)));
        }
        let others = [
            vec![apply(&[])],
            vec![apply(from_ref(&out))],
            vec![apply(&[out.clone(), set.clone()])],
            vec![apply(&[set.clone(), out.clone(), out.clone()])],
            vec![apply(&[set.clone(), Action::output(PortNo::NORMAL)])],
            vec![apply(&[set.clone(), Action::Group(GroupId(1)), out.clone()])],
            vec![apply(&[set_to(Field::Metadata, 5), out.clone()])],
            vec![apply(from_ref(&set)), WriteActions(vec![set.clone(), out.clone()])],
            vec![apply(&[set.clone(), out.clone()]), GotoTable(weir_openflow::model::TableId(1))],
            vec![apply(&[set.clone(), out.clone()]), Meter(MeterId(1))],
        ];
        for instructions in others {
            assert_eq!(port_of(&instructions), None, "{instructions:?}");
        }
    }
}
