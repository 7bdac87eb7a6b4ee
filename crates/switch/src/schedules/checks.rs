//! What must hold when a switch has come to rest, and when it has ended.
use super::controller::Controller;
use super::parts::Parts;
use super::run::{Host, World};
use std::collections::HashMap;

/// All frames are where they should be, all counters add up, and nothing waits.
pub(super) fn at_rest(world: &mut World) -> Result<(), String> {
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
    let sum = |of: fn(&Controller) -> u64| all().map(of).sum::<u64>();
    let (asked, confirmed) = (sum(|one| one.packet_outs_sent), sum(|one| one.packet_outs_confirmed));
    let ends = sent + refused + dropped + punted;
    // A controller that comes back is another one to the switch, which may give a packet to both.
    let is_exact = world.plan.counts_exactly() && world.gone.is_empty();
    if ends < received + confirmed || is_exact && ends > received + asked {
        return Err(format!(
            "{received} frames received and {confirmed} to {asked} packet-outs: {sent} sent, {refused} refused by ports, {dropped} dropped, \
             {punted} for controllers; drops: {:?}",
            drops(world)
        ));
    }
    Ok(())
}

fn drops(world: &mut World) -> Vec<(String, u64)> {
    world.parts.engine.drops()
}

/// All frame buffers came back.
pub(super) fn at_end(parts: Parts, hosts: Vec<Host>) -> Result<(), String> {
    let slabs = parts.engine.buffers().0.slabs().to_vec();
    parts.end();
    drop(hosts);
    let missing: usize = slabs.iter().map(|slab| slab.count() as usize - slab.free_count()).sum();
    if missing > 0 { Err(format!("{missing} frame buffers did not come back")) } else { Ok(()) }
}
