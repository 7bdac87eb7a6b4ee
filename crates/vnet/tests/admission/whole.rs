//! Compares bounds that are kept up to date with those of a calculation of all links and all virtual links.
use super::drawn::draw;
use super::*;
use weir_vnet::admission::bound::{ArrivalCurve, MAX_PS, PS_PER_S, ServiceCurve};
use weir_vnet::admission::{BoundMethod, PathBound, PromiseError};

fn ns(time_ps: u128) -> Duration {
    Duration::from_nanos(u64::try_from(time_ps.div_ceil(1000)).unwrap())
}

fn wire(bits: u64, demand: &LinkDemand, overhead: u64) -> u128 {
    let shortest = u128::from(demand.shortest_packet.0);
    (u128::from(bits) * (shortest + u128::from(overhead))).div_ceil(shortest)
}

/// Returns the bounds of all virtual links by the module's rules, link by link; `None` if a rate or a buffer is
/// missing. Links are sorted so that none feeds an earlier one.
fn calculate(links: &[QueuedLink], overhead: u64, demands: &[&LinkDemand]) -> Option<Vec<PathBound>> {
    let entering = |demand: &&LinkDemand| ArrivalCurve {
        rate: wire(demand.rate.0, demand, overhead),
        burst: wire(8 * demand.burst.0, demand, overhead),
    };
    let packet = |size: ByteSize| u128::from(8 * (size.0 + overhead));
    let mut arrivals: Vec<ArrivalCurve> = demands.iter().map(entering).collect();
    let mut whole: Vec<Option<ServiceCurve>> = vec![None; demands.len()];
    let mut hops = vec![Vec::new(); demands.len()];
    for link in links {
        let other = if link.other_packet.0 == 0 { 0 } else { packet(link.other_packet) };
        let latency_ps = link.switch_latency.as_nanos() * 1000;
        let service = ServiceCurve { rate: link.capacity.0.into(), latency_ps }.packetised(other);
        let through: Vec<usize> = (0..demands.len()).filter(|one| demands[*one].path.contains(&link.name)).collect();
        let sum = |but: Option<usize>| {
            let added = through.iter().filter(|one| Some(**one) != but);
            added.fold(ArrivalCurve::default(), |sum, one| sum.plus(arrivals[*one]))
        };
        let backlog = service.backlog(sum(None))?;
        if let Some(longest) = through.iter().map(|one| packet(demands[*one].longest_packet)).max() {
            let frames = ((backlog + longest) * (longest - u128::from(8 * overhead))).div_ceil(longest).div_ceil(8);
            if frames > link.buffer.0.into() {
                return None;
            }
        }
        let mut sent = arrivals.clone();
        for one in through.iter().copied() {
            let (own, others) = (arrivals[one], sum(Some(one)));
            let delay = service.shared_delay_ps(own, others, link.multiplexing)?;
            let left = service.left_over(others, link.multiplexing)?;
            let is_last = demands[one].path.last() == Some(&link.name);
            let left = if is_last { left } else { left.packetised(packet(demands[one].longest_packet)) };
            whole[one] = Some(whole[one].map_or(left, |before| before.then(left)));
            hops[one].push(delay + link.propagation.as_nanos() * 1000);
            let least = packet(demands[one].shortest_packet) * PS_PER_S / service.rate;
            sent[one] = own.after_jitter(delay.saturating_sub(least));
        }
        arrivals = sent;
    }
    let bound = |(one, demand): (usize, &&LinkDemand)| {
        let of_path = links.iter().filter(|link| demand.path.contains(&link.name));
        let propagation: u128 = of_path.map(|link| link.propagation.as_nanos() * 1000).sum();
        let once = whole[one]?.delay_ps(entering(demand))? + propagation;
        let sum = hops[one].iter().sum::<u128>();
        assert!(sum.max(once) < MAX_PS, "drawn networks have short delays");
        let method = if once < sum { BoundMethod::PayBurstsOnce } else { BoundMethod::SumOfHops };
        Some(PathBound { delay: ns(once.min(sum)), method, hops: hops[one].iter().copied().map(ns).collect() })
    };
    demands.iter().enumerate().map(bound).collect()
}

fn keeps_promises(demands: &[&LinkDemand], bounds: &[PathBound]) -> bool {
    let is_kept =
        |(demand, bound): (&&LinkDemand, &PathBound)| demand.promised_delay.is_none_or(|most| bound.delay <= most);
    demands.iter().zip(bounds).all(is_kept)
}

#[test]
fn kept_bounds_are_those_of_a_calculation_of_everything() {
    let mut random = fastrand::Rng::with_seed(31);
    let (mut admitted, mut refused, mut released) = (0, 0, 0);
    for round in 0..400 {
        let mut network = draw(&mut random);
        network.links.iter_mut().for_each(|link| link.buffer = ByteSize(random.u64(10_000..120_000)));
        let mut admission = network.admission(None);
        let mut absent = network.demands;
        for _ in 0..20 {
            let held: Vec<LinkDemand> = admission.admitted().map(|(demand, _)| demand.clone()).collect();
            if !held.is_empty() && (absent.is_empty() || random.u8(0..3) == 0) {
                absent.push(admission.release(&held[random.usize(0..held.len())].name).unwrap());
                released += 1;
            } else {
                let mut demand = absent.swap_remove(random.usize(0..absent.len()));
                demand.promised_delay = random.bool().then(|| random.u32(1000..40_000) * US);
                let all: Vec<&LinkDemand> = held.iter().chain([&demand]).collect();
                let expected = calculate(&network.links, network.overhead, &all);
                let expected = expected.filter(|bounds| keeps_promises(&all, bounds));
                match admission.request(demand.clone()) {
                    Ok(bound) => assert_eq!(Some(&bound), expected.unwrap().last(), "{round}"),
                    Err(PromiseError::Refused { .. }) => assert_eq!(expected, None, "{round}"),
                    Err(error) => panic!("{round}: {error}"),
                }
                if admission.bound(&demand.name).is_some() {
                    admitted += 1;
                } else {
                    absent.push(demand);
                    refused += 1;
                }
            }
            let (demands, bounds): (Vec<&LinkDemand>, Vec<PathBound>) =
                admission.admitted().map(|(demand, bound)| (demand, bound.clone())).unzip();
            assert_eq!(Some(bounds), calculate(&network.links, network.overhead, &demands), "{round}");
        }
    }
    assert!([admitted, refused, released].iter().all(|number| *number > 500), "{admitted} {refused} {released}");
}
