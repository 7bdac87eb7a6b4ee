//! A packet's way through the tables (OpenFlow 1.3.5, 5.1 to 5.11).
use crate::DropReason;
use crate::action_set::ActionSet;
use crate::burst::Fate;
use crate::effects::{Effects, Forwarder, NO_COOKIE, Origin};
use crate::execute;
use crate::nicira;
use crate::packet::Packet;
use crate::program::Program;
use crate::shape::EntryId;
use crate::table::{FlowEntry, FlowTable};
use std::ops::ControlFlow;
use weir_openflow::model::{Action, PacketInReason, PortNo};
use weir_packet::{Field, Parsed};

/// Runs a packet through `tables` from the first on. `set` is memory to work with.
///
/// 1. Look the packet up in the table.
/// 2. Without an entry the packet is dropped, unless a controller takes misses.
/// 3. The entry's instructions, in the specification's order: meter, apply, clear, write, metadata, goto.
/// 4. Without a goto, the action set is run.
#[inline]
pub(crate) fn run(tables: &[FlowTable], packet: &mut Packet, set: &mut ActionSet, fx: &mut impl Effects) {
    set.clear();
    packet.note_output(None);
    go_through(tables, 0, packet, set, fx);
}

/// The same for a packet that was looked up already, and counted, in a table that only gotos led to.
#[inline]
pub(crate) fn run_from(
    tables: &[FlowTable],
    fate: Fate,
    packet: &mut Packet,
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

/// Runs a packet that was output to `port` through the tables from the first for egress on (OpenFlow 1.5.1, 5.1): its action set
/// begins with that output, and outputs of egress tables leave at once.
#[cold]
pub(crate) fn egress(tables: &[FlowTable], first: u8, port: PortNo, packet: &mut Packet, fx: &mut impl Effects) {
    let mut set = ActionSet::default();
    // An output to where the packet came from is one to IN_PORT.
    set.write(&[Action::output(if port == packet.in_port { PortNo::IN_PORT } else { port })]);
    packet.note_output(Some(port));
    go_through(tables, first, packet, &mut set, fx);
}

/// Runs a packet through tables from one on.
#[inline(always)]
fn go_through(tables: &[FlowTable], first: u8, packet: &mut Packet, set: &mut ActionSet, fx: &mut impl Effects) {
    let entry = look_up(tables, first, packet, fx);
    go_on(tables, first, entry, packet, set, fx);
}

/// Runs a packet through tables from one on, where `found` is its entry.
#[inline(always)]
fn go_on(
    tables: &[FlowTable],
    first: u8,
    found: Option<&FlowEntry>,
    packet: &mut Packet,
    set: &mut ActionSet,
    fx: &mut impl Effects,
) {
    let (mut table, mut found) = (first, found);
    loop {
        // 2.
        let Some(entry) = found else { return miss(table, packet, fx) };
        // 3.
        let ControlFlow::Continue(goto) = instructions(entry, table, packet, set, fx) else { return };
        // Later tables only, as compiling has checked: this ends.
        let Some(next) = goto else { break };
        table = next;
        found = look_up(tables, table, packet, fx);
    }
    // 4.
    if !set.is_empty() {
        // No entry in particular put the output into the set (OpenFlow 1.3.5, 7.4.1).
        let origin = Origin { table, cookie: NO_COOKIE, reason: PacketInReason::Action };
        let _ = execute::run(set.actions(), packet, origin, fx);
    }
}

/// Looks a packet up in a table (1.).
#[inline(always)]
fn look_up<'a>(
    tables: &'a [FlowTable],
    table: u8,
    packet: &mut Packet,
    fx: &mut impl Effects,
) -> Option<&'a FlowEntry> {
    fx.looking_up();
    let found = tables.get(usize::from(table)).and_then(|table| table.lookup(packet.key()));
    fx.looked_up(table, found, packet.frame.len());
    found.map(|(_, entry)| entry)
}

/// Runs an entry's instructions; the table that comes next, if any.
#[inline(always)]
fn instructions(
    entry: &FlowEntry,
    table: u8,
    packet: &mut Packet,
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
        let origin = Origin { table, cookie: entry.cookie, reason };
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

/// Runs the instructions that only later tables, or the pipeline's end, see: clear, write, metadata.
#[inline(never)]
fn prepare(program: &Program, packet: &mut Packet, set: &mut ActionSet, fx: &mut impl Effects) {
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

/// Looks a packet up in a table as if it had come in on `port`, and runs what is found and what that leads to. Without an
/// entry nothing happens. The action set is run by whoever began.
#[cold]
pub(crate) fn resubmit(
    tables: &[FlowTable],
    table: u8,
    port: PortNo,
    packet: &mut Packet,
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

/// Output TABLE: runs a copy of a packet through the tables from the first on.
#[cold]
pub(crate) fn again<F: Forwarder>(tables: &[FlowTable], packet: &mut Packet, fx: &mut F) {
    let mut frame = fx.copy(packet.frame);
    // It was parsed when it came; edits leave at least the Ethernet header.
    let Ok(mut parsed) = Parsed::of(&frame, packet.in_port) else {
        return fx.refuse(&mut frame, DropReason::TooShort);
    };
    parsed.key.carry_pipeline_fields(packet.key());
    let mut copy = Packet::new(&mut frame, &mut parsed, packet.in_port);
    run(tables, &mut copy, &mut ActionSet::default(), fx);
    copy.finish(fx);
}

fn miss(table: u8, packet: &mut Packet, fx: &mut impl Effects) {
    match fx.punt_miss(packet, table) {
        Ok(()) => packet.punted(),
        Err(reason) => packet.dropped(reason, fx),
    }
}
