//! A packet's way through the tables (OpenFlow 1.3.5, 5.1 to 5.11).
use crate::action_set::ActionSet;
use crate::effects::{Effects, NO_COOKIE, Origin};
use crate::execute;
use crate::packet::Packet;
use crate::table::FlowTable;
use std::ops::ControlFlow;
use weir_openflow::model::PacketInReason;

/// Runs a packet through `tables` from the first on. `set` is memory to work with.
///
/// 1. Look the packet up in the table.
/// 2. Without an entry the packet is dropped, unless a controller takes misses.
/// 3. The entry's instructions, in the specification's order: meter, apply, clear, write, metadata, goto.
/// 4. Without a goto, the action set is run.
pub(crate) fn run(tables: &[FlowTable], packet: &mut Packet, set: &mut ActionSet, fx: &mut impl Effects) {
    set.clear();
    let mut table = 0_u8;
    loop {
        // 1.
        let found = tables.get(usize::from(table)).and_then(|table| table.lookup(packet.key()));
        fx.looked_up(table, found, packet.frame.len());
        // 2.
        let Some((_, entry)) = found else { return miss(table, packet, fx) };
        // 3.
        let program = &*entry.program;
        if let Some(meter) = program.meter
            && execute::meter(meter, packet, fx) == ControlFlow::Break(())
        {
            return;
        }
        if let Some(actions) = &program.apply {
            let reason = if entry.is_table_miss() { PacketInReason::NoMatch } else { PacketInReason::Action };
            let origin = Origin { table, cookie: entry.cookie, reason };
            if execute::run(actions.iter(), packet, origin, fx) == ControlFlow::Break(()) {
                return;
            }
        }
        if program.clear {
            set.clear();
        }
        if let Some(actions) = &program.write {
            set.write(actions);
        }
        if let Some((value, mask)) = program.metadata {
            packet.write_metadata(value, mask, fx);
        }
        match program.goto {
            // Later tables only, as compiling has checked: this ends.
            Some(next) => table = next,
            None => break,
        }
    }
    // 4.
    if !set.is_empty() {
        // No entry in particular put the output into the set (OpenFlow 1.3.5, 7.4.1).
        let origin = Origin { table, cookie: NO_COOKIE, reason: PacketInReason::Action };
        let _ = execute::run(set.actions(), packet, origin, fx);
    }
}

fn miss(table: u8, packet: &mut Packet, fx: &mut impl Effects) {
    match fx.punt_miss(packet, table) {
        Ok(()) => packet.punted(),
        Err(reason) => packet.dropped(reason, fx),
    }
}
