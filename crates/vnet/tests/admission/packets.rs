//! Sends packets of greedy sources through links, packet by packet, in an order that the bounds must allow.
use std::collections::BTreeMap;
use weir_vnet::admission::bound::PS_PER_S;
use weir_vnet::admission::{LinkDemand, Multiplexing, QueuedLink};

/// Longest times and most bytes that packets were seen to need.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// Longest delay of each virtual link, in picoseconds.
    pub(crate) delays: Vec<u128>,
    /// Longest delay of each virtual link at each of its hops.
    pub(crate) hops: Vec<Vec<u128>>,
    /// Most bytes that were held at once for each link.
    pub(crate) held: Vec<u64>,
}

struct Packet {
    flow: usize,
    bytes: u64,
    entered: u128,
    at: u128,
}

/// Returns the packets of a source that sends as early as its rate and burst allow, from `phase` on.
fn greedy(flow: usize, demand: &LinkDemand, phase: u128, random: &mut fastrand::Rng) -> Vec<Packet> {
    let is_long = random.bool();
    let mut sent = 0;
    let packet = |_| {
        let [least, most] = [demand.shortest_packet.0, demand.longest_packet.0];
        let bytes = if is_long { most } else { random.u64(least..=most) };
        sent += bytes;
        let wait = u128::from(8 * sent.saturating_sub(demand.burst.0)) * PS_PER_S;
        let at = phase + wait.div_ceil(u128::from(demand.rate.0));
        Packet { flow, bytes, entered: at, at }
    };
    (0..30).map(packet).collect()
}

/// Sends packets through links that are sorted so that none feeds an earlier one.
pub(crate) fn send(
    links: &[QueuedLink],
    demands: &[LinkDemand],
    overhead: u64,
    phases: &[u128],
    random: &mut fastrand::Rng,
) -> Needed {
    let sources = demands.iter().zip(phases).enumerate();
    let mut packets: Vec<Packet> =
        sources.flat_map(|(flow, (demand, phase))| greedy(flow, demand, *phase, random)).collect();
    let mut needed = Needed { hops: vec![Vec::new(); demands.len()], ..Needed::default() };
    for link in links {
        let is_through = |packet: &&mut Packet| demands[packet.flow].path.contains(&link.name);
        let mut through: Vec<&mut Packet> = packets.iter_mut().filter(is_through).collect();
        let mut ranks: Vec<usize> = (0..demands.len()).collect();
        random.shuffle(&mut ranks);
        through.sort_by_key(|packet| (packet.at, ranks[packet.flow]));
        let arrived: Vec<(usize, u64, u128)> =
            through.iter().map(|packet| (packet.flow, packet.bytes, packet.at)).collect();
        let sent = serve(link, &arrived, overhead, &ranks, random);
        needed.held.push(most_held(&arrived, &sent));
        let mut longest = BTreeMap::new();
        for ((packet, sent), (flow, _, at)) in through.iter_mut().zip(sent).zip(arrived) {
            packet.at = sent + link.propagation.as_nanos() * 1000;
            let delay = longest.entry(flow).or_insert(0);
            *delay = (packet.at - at).max(*delay);
        }
        longest.into_iter().for_each(|(flow, delay)| needed.hops[flow].push(delay));
    }
    for flow in 0..demands.len() {
        let delays = packets.iter().filter(|packet| packet.flow == flow).map(|packet| packet.at - packet.entered);
        needed.delays.push(delays.max().unwrap());
    }
    needed
}

/// Returns when each packet is sent. The latencies of the switch are drawn, as are those of other traffic. Without
/// FIFO, the virtual link with the lowest rank is sent first, and the last one waits for all others.
fn serve(
    link: &QueuedLink,
    arrived: &[(usize, u64, u128)],
    overhead: u64,
    ranks: &[usize],
    random: &mut fastrand::Rng,
) -> Vec<u128> {
    let is_fifo = link.multiplexing == Multiplexing::Fifo;
    let time_of = |bytes: u64| u128::from(8 * (bytes + overhead)) * PS_PER_S / u128::from(link.capacity.0);
    let latency = link.switch_latency.as_nanos() * 1000;
    let mut last_queued = BTreeMap::new();
    let mut waiting: Vec<(usize, u128)> = Vec::new();
    for (index, (flow, _, at)) in arrived.iter().enumerate() {
        let last = last_queued.entry(if is_fifo { 0 } else { *flow }).or_insert(0);
        *last = (at + [0, latency, random.u128(0..=latency)][random.usize(0..3)]).max(*last);
        waiting.push((index, *last));
    }
    let mut sent = vec![0; arrived.len()];
    let mut now = 0;
    while let Some(earliest) = waiting.iter().map(|(_, queued)| *queued).min() {
        if earliest > now {
            let other = if link.other_packet.0 > 0 && random.bool() { time_of(link.other_packet.0) } else { 0 };
            now = earliest + other;
        }
        let rank = |index: usize| if is_fifo { 0 } else { ranks[arrived[index].0] };
        let queued = waiting.iter().enumerate().filter(|(_, (_, queued))| *queued <= now);
        let (place, _) = queued.min_by_key(|(_, (index, _))| (rank(*index), *index)).unwrap();
        let (index, _) = waiting.remove(place);
        now += time_of(arrived[index].1);
        sent[index] = now;
    }
    sent
}

/// Returns the most bytes that have arrived and are not sent.
fn most_held(arrived: &[(usize, u64, u128)], sent: &[u128]) -> u64 {
    let held_at = |now: u128| {
        let held = arrived.iter().zip(sent).filter(|((_, _, at), sent)| *at <= now && **sent > now);
        held.map(|((_, bytes, _), _)| bytes).sum()
    };
    arrived.iter().map(|(_, _, at)| held_at(*at)).max().unwrap_or(0)
}
