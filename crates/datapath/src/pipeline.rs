//! Runs a packet through the flow tables (OpenFlow 1.3.5, 5.1 to 5.11).
use crate::DropReason;
use crate::action_set::ActionSet;
use crate::effects::{BurstEffects, Effects, NO_COOKIE, PuntOrigin};
use crate::execute;
use crate::nicira;
use crate::packet::PipelinePacket;
use crate::program::EntryProgram;
use crate::shape::EntryId;
use crate::table::{FlowEntry, FlowTable};
use crate::verdict::LookupResult;
use std::ops::ControlFlow;
use weir_openflow::model::{Action, PacketInReason, PortNo};
use weir_packet::{Field, ParsedHeaders};

/// Runs a packet through `tables`, beginning at the first. `set` is reused memory for the action set.
///
/// 1. Look the packet up in the table.
/// 2. Without an entry (a table miss) drop the packet, or punt it to controllers that take misses.
/// 3. Run the entry's instructions in the specification's order: meter, apply, clear, write, metadata, goto.
/// 4. Without a goto, run the action set.
#[inline]
pub(crate) fn run(tables: &[FlowTable], packet: &mut PipelinePacket, set: &mut ActionSet, fx: &mut impl Effects) {
    set.clear();
    packet.note_output(None);
    go_through(tables, 0, packet, set, fx);
}

/// Runs a packet whose lookup is already done and counted: continues at the table and entry of `fate`. Only goto
/// instructions led to that table, so no earlier action has to be run.
#[inline]
pub(crate) fn run_from(
    tables: &[FlowTable],
    fate: LookupResult,
    packet: &mut PipelinePacket,
    set: &mut ActionSet,
    fx: &mut impl Effects,
) {
    set.clear();
    packet.note_output(None);
    let table = tables.get(usize::from(fate.table)).filter(|_| fate.entry != EntryId::NONE);
    let found = table.and_then(|table| table.seen(fate.entry, packet.key()));
    if table.is_some_and(|table| table.miscounts(fate.entry)) {
        fx.recount(fate.table, fate.entry, found.map(|(id, _)| id), packet.frame.len());
    }
    let entry = found.map(|(_, entry)| entry);
    go_on(tables, fate.table, entry, packet, set, fx);
}

/// Runs a packet that was output to `port` through the egress tables, beginning at `first` (OpenFlow 1.5.1, 5.1). Its
/// action set initially holds that output; outputs of egress tables leave the switch at once.
#[cold]
pub(crate) fn egress(
    tables: &[FlowTable],
    first: u8,
    port: PortNo,
    packet: &mut PipelinePacket,
    fx: &mut impl Effects,
) {
    let mut set = ActionSet::default();
    // The input port itself can only be reached through IN_PORT.
    set.write(&[Action::output(if port == packet.in_port { PortNo::IN_PORT } else { port })]);
    packet.note_output(Some(port));
    go_through(tables, first, packet, &mut set, fx);
}

/// Runs a packet through the tables, beginning with the lookup in table `first`.
#[inline(always)]
fn go_through(
    tables: &[FlowTable],
    first: u8,
    packet: &mut PipelinePacket,
    set: &mut ActionSet,
    fx: &mut impl Effects,
) {
    let entry = look_up(tables, first, packet, fx);
    go_on(tables, first, entry, packet, set, fx);
}

/// Runs a packet through the tables, beginning with the entry `found` of table `first`.
#[inline(always)]
fn go_on(
    tables: &[FlowTable],
    first: u8,
    found: Option<&FlowEntry>,
    packet: &mut PipelinePacket,
    set: &mut ActionSet,
    fx: &mut impl Effects,
) {
    let (mut table, mut found) = (first, found);
    loop {
        // Step 2.
        let Some(entry) = found else { return miss(table, packet, fx) };
        // Step 3.
        let ControlFlow::Continue(goto) = instructions(entry, table, packet, set, fx) else { return };
        // The loop ends because goto leads only to later tables, which compiling has checked.
        let Some(next) = goto else { break };
        table = next;
        found = look_up(tables, table, packet, fx);
    }
    // Step 4.
    if !set.is_empty() {
        // The action set has no cookie, because several entries may have written it (OpenFlow 1.3.5, 7.4.1).
        let origin = PuntOrigin { table, cookie: NO_COOKIE, reason: PacketInReason::Action };
        let _ = execute::run(set.actions(), packet, origin, fx);
    }
}

/// Looks a packet up in a table (step 1).
#[inline(always)]
fn look_up<'a>(
    tables: &'a [FlowTable],
    table: u8,
    packet: &mut PipelinePacket,
    fx: &mut impl Effects,
) -> Option<&'a FlowEntry> {
    fx.looking_up();
    let found = tables.get(usize::from(table)).and_then(|table| table.lookup(packet.key()));
    fx.looked_up(table, found, packet.frame.len());
    found.map(|(_, entry)| entry)
}

/// Runs an entry's instructions. Returns the number of the next table if there is a goto, and `Break` if the packet
/// ends here.
#[inline(always)]
fn instructions(
    entry: &FlowEntry,
    table: u8,
    packet: &mut PipelinePacket,
    set: &mut ActionSet,
    fx: &mut impl Effects,
) -> ControlFlow<(), Option<u8>> {
    let program = &*entry.program;
    if let Some(meter) = program.meter
        && execute::meter(meter, packet, fx) == ControlFlow::Break(())
    {
        return ControlFlow::Break(());
    }
    if let Some(actions) = &program.apply {
        let reason = if entry.is_table_miss() { PacketInReason::NoMatch } else { PacketInReason::Action };
        let origin = PuntOrigin { table, cookie: entry.cookie, reason };
        let ran = if program.looks_up {
            nicira::run(actions.iter(), packet, origin, set, fx)
        } else {
            execute::run(actions.iter(), packet, origin, fx)
        };
        if ran == ControlFlow::Break(()) {
            return ControlFlow::Break(());
        }
    }
    if program.prepares {
        prepare(program, packet, set, fx);
    }
    ControlFlow::Continue(program.goto)
}

/// Runs the instructions that matter only to later tables or the pipeline's end: clear, write, metadata.
#[inline(never)]
fn prepare(program: &EntryProgram, packet: &mut PipelinePacket, set: &mut ActionSet, fx: &mut impl Effects) {
    if program.clear {
        set.clear();
    }
    if let Some(actions) = &program.write {
        set.write(actions);
    }
    if program.clear || program.write.is_some() {
        packet.note_output(set.output());
    }
    if let Some((value, mask)) = program.metadata {
        packet.write_metadata(value, mask, fx);
    }
}

/// Looks a packet up in a table as if it had arrived on `port`, and runs the entry found and the tables it leads to.
/// A table miss does nothing. The caller runs the action set.
#[cold]
pub(crate) fn resubmit(
    tables: &[FlowTable],
    table: u8,
    port: PortNo,
    packet: &mut PipelinePacket,
    set: &mut ActionSet,
    fx: &mut impl Effects,
) -> ControlFlow<()> {
    if !packet.enters_resubmit() {
        packet.dropped(DropReason::Resubmits, fx);
        return ControlFlow::Break(());
    }
    let mut key = *packet.key();
    key.set(Field::InPort, port.0.into());
    let mut next = Some(table);
    while let Some(table) = next {
        fx.looking_up();
        let found = tables.get(usize::from(table)).and_then(|table| table.lookup(&key));
        fx.looked_up(table, found, packet.frame.len());
        let Some((_, entry)) = found else { break };
        next = instructions(entry, table, packet, set, fx)?;
        key = *packet.key();
    }
    packet.leaves_resubmit();
    ControlFlow::Continue(())
}

/// Runs a copy of a packet through the tables, beginning at the first (output TABLE).
#[cold]
pub(crate) fn again<F: BurstEffects>(tables: &[FlowTable], packet: &mut PipelinePacket, fx: &mut F) {
    let mut frame = fx.copy(packet.frame);
    // The original frame could be parsed, and edits leave at least the Ethernet header.
    let Ok(mut parsed) = ParsedHeaders::of(&frame, packet.in_port) else {
        return fx.refuse(&mut frame, DropReason::TooShort);
    };
    parsed.key.carry_pipeline_fields(packet.key());
    let mut copy = PipelinePacket::new(&mut frame, &mut parsed, packet.in_port);
    run(tables, &mut copy, &mut ActionSet::default(), fx);
    copy.finish(fx);
}

fn miss(table: u8, packet: &mut PipelinePacket, fx: &mut impl Effects) {
    match fx.punt_miss(packet, table) {
        Ok(()) => packet.punted(),
        Err(reason) => packet.dropped(reason, fx),
    }
}
