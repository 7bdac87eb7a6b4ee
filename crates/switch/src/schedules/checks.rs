//! Checks the conditions that must hold for a switch at rest, and after it ended: frames, counters and entries are
//! accounted for, and nothing is leaked.
use super::controller::ScriptedController;
use super::run::{CableHost, ScheduleRun};
use super::scheduled_switch::ScheduledSwitch;
use super::tenant;
use crate::engine::ServedSwitch;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weir_openflow::Version;
use weir_openflow::model::multipart::{FlowRequest, FlowStats, ReplyBody, RequestBody};

/// Checks all conditions that must hold for a switch at rest. Returns a description of the first one that does not
/// hold.
pub(super) fn at_rest(world: &mut ScheduleRun) -> Result<(), String> {
    frames_add_up(world)?;
    entries_are_told(world)?;
    counters_add_up(world)
}

/// Checks that each flow entry that a connected controller added exists, was replaced, or was reported to that
/// controller by one flow-removed message.
fn entries_are_told(world: &mut ScheduleRun) -> Result<(), String> {
    let mut are_there: HashSet<u64> = flows(world.parts.engine.physical()).iter().map(|flow| flow.cookie).collect();
    if let Ok(tenant) = world.parts.engine.served_named(tenant::NAME) {
        are_there.extend(flows(tenant).iter().map(|flow| flow.cookie));
    }
    world.controllers.iter().try_for_each(|controller| controller.check_entries(&are_there))
}

/// Returns all flow entries of a logical switch.
fn flows(mut switch: ServedSwitch<'_>) -> Vec<FlowStats> {
    let parts = switch.ask(RequestBody::Flow(FlowRequest::all()));
    let flows = parts.into_iter().flat_map(|part| match part {
        ReplyBody::Flow(flows) => flows,
        _ => Vec::new(),
    });
    flows.collect()
}

/// Checks that no entry counts more packets than were sent for it, and that tables count as many lookups as packets
/// arrived and as many misses as were dropped.
fn counters_add_up(world: &mut ScheduleRun) -> Result<(), String> {
    for flow in flows(world.parts.engine.physical()) {
        let key = u16::try_from(flow.cookie >> 32).unwrap_or(0);
        let sent = world.ledger.sent_of(key);
        if flow.packet_count > sent {
            return Err(format!("an entry of key {key} counts {} packets, {sent} were sent", flow.packet_count));
        }
    }
    let tables = world.parts.engine.physical().ask(RequestBody::Table);
    let table = tables.into_iter().find_map(|part| match part {
        ReplyBody::Table(tables) => tables.into_iter().next(),
        _ => None,
    });
    let table = table.ok_or("there is no table 0")?;
    let drops: HashMap<String, u64> = drops(world).into_iter().collect();
    let dropped = |reason: &str| drops.get(reason).copied().unwrap_or(0);
    let misses = table.lookup_count - table.matched_count;
    let has_v10 = world.plan.versions.contains(&Version::V10);
    if !has_v10 && misses != dropped("table_miss") {
        return Err(format!("table 0 counts {misses} misses, {} were dropped", dropped("table_miss")));
    }
    let before = dropped("worker_ring_full") + dropped("port_gone") + dropped("port_down");
    let came: u64 = world.hosts.iter().map(|host| host.end.counters().rx_packets).sum();
    if !world.ports_failed && !world.plan.has_virtual && table.lookup_count + before != came {
        return Err(format!(
            "{came} frames came in, table 0 counts {} lookups, {before} were dropped before",
            table.lookup_count
        ));
    }
    Ok(())
}

/// Checks that no frame waits in a cable, that the ports received the frames that the hosts sent, and that each
/// received frame or packet-out was sent, refused by a port, dropped or punted, according to the counters.
fn frames_add_up(world: &mut ScheduleRun) -> Result<(), String> {
    let waiting: usize = world.hosts.iter().filter(|host| host.end.is_up()).map(|host| host.end.waiting()).sum();
    if waiting > 0 {
        return Err(format!("{waiting} frames wait in cables although all parts are at rest"));
    }
    let (mut received, mut sent, mut refused) = (0, 0, 0);
    for host in &world.hosts {
        let counters = host.end.counters();
        received += counters.rx_packets;
        sent += counters.tx_packets;
        refused += counters.tx_dropped();
    }
    if !world.ports_failed && received != world.sent {
        return Err(format!("hosts sent {} frames, ports received {received}", world.sent));
    }
    let dropped: u64 = drops(world).into_iter().map(|(_, count)| count).sum();
    let (_, packet_ins) = world.parts.control.registry.snapshot(&HashMap::new());
    let punted = packet_ins.taken + packet_ins.dropped;
    let all = || world.controllers.iter().chain(&world.gone);
    let sum = |of: fn(&ScriptedController) -> u64| all().map(of).sum::<u64>();
    let (asked, confirmed) = (sum(|one| one.packet_outs_sent), sum(|one| one.packet_outs_confirmed));
    let ends = sent + refused + dropped + punted;
    // The switch treats a controller that reconnects as another one, and may send a packet to both.
    let is_exact = world.plan.counts_exactly() && world.gone.is_empty();
    // Drop counters of a virtual switch vanish with it.
    let is_lost = !world.plan.has_virtual && ends < received + confirmed;
    if is_lost || is_exact && ends > received + asked {
        return Err(format!(
            "{received} frames received and {confirmed} to {asked} packet-outs: {sent} sent, {refused} refused by \
             ports, {dropped} dropped, {punted} for controllers; drops: {:?}",
            drops(world)
        ));
    }
    Ok(())
}

fn drops(world: &mut ScheduleRun) -> Vec<(String, u64)> {
    world.parts.engine.drops(None).unwrap_or_default()
}

/// Ends the switch. Checks that all frame buffers were returned to their pools, and that the control thread's state
/// was freed.
pub(super) fn at_end(parts: ScheduledSwitch, hosts: Vec<CableHost>) -> Result<(), String> {
    let slabs = parts.engine.buffers().0.slabs().to_vec();
    let control = Arc::downgrade(&parts.control.virtuals);
    parts.end();
    drop(hosts);
    if control.strong_count() > 0 {
        return Err("the control thread's state outlives the switch".to_owned());
    }
    let missing: usize = slabs.iter().map(|slab| slab.count() as usize - slab.free_count()).sum();
    if missing > 0 { Err(format!("{missing} frame buffers did not come back")) } else { Ok(()) }
}
