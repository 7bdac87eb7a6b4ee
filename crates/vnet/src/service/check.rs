//! Checks a request by itself and against the names of the substrate.
use super::{LinkRequest, NetworkServiceRequest, NetworkSubstrate, NodeKind, ServiceError, ShareSettings};
use crate::admission::MAX_DELAY;
use crate::allocation::MAX_CAPACITY;
use std::collections::BTreeSet;
use weir_units::{Bps, known_names};

/// Most nodes of a network.
pub const MAX_NODES: usize = 100;
/// Most links of a network.
pub const MAX_LINKS: usize = 400;
/// Most stages of a network.
pub const MAX_STAGES: usize = 100;
/// Longest name of a network, a node or a link. Names of virtual switches consist of several.
pub const MAX_NAME: usize = 20;

/// Checks a request. The error says what was found at which key.
pub(super) fn check(
    request: &NetworkServiceRequest,
    substrate: &NetworkSubstrate,
    settings: &ShareSettings,
) -> Result<(), ServiceError> {
    let wrong = |problem: String| ServiceError::Malformed { network: request.name.clone(), problem };
    check_name("name", &request.name).map_err(wrong)?;
    for (what, found, most) in [
        ("nodes", request.nodes.len(), MAX_NODES),
        ("links", request.links.len(), MAX_LINKS),
        ("stages", request.stages.len(), MAX_STAGES),
    ] {
        if found > most {
            return Err(wrong(format!("found {found} {what}, expected at most {most}")));
        }
    }
    if request.links.is_empty() {
        return Err(wrong("found no link, expected at least one".to_owned()));
    }
    if request.lifetime.is_some_and(|lifetime| lifetime.0.is_zero()) {
        return Err(wrong("lifetime: found 0s, expected more, or leave it out for a network that stays".to_owned()));
    }
    let mut names = BTreeSet::new();
    for node in &request.nodes {
        check_name("node", &node.name).map_err(wrong)?;
        let wrong = |problem: String| wrong(format!("node {}: {problem}", node.name));
        if !names.insert(node.name.as_str()) || substrate.hosts.contains_key(&node.name) {
            return Err(wrong("found another node or a host of this name, expected a name of its own".to_owned()));
        }
        if let Some(place) = node.place.as_ref().filter(|place| substrate.place(place).is_none()) {
            let known: Vec<&str> = substrate.switches.iter().map(String::as_str).collect();
            return Err(wrong(format!("place: found `{place}`, expected one of {}", known_names(place, &known))));
        }
        let is_own = node.kind == NodeKind::Controller;
        if is_own == node.connect.is_empty() {
            let problem = "expected `connect` with kind = \"controller\", and only with it";
            return Err(wrong(problem.to_owned()));
        }
        if node.kind != NodeKind::Router && !node.routes.is_empty() {
            return Err(wrong("found routes, expected them only with kind = \"router\"".to_owned()));
        }
    }
    let mut links = BTreeSet::new();
    for link in &request.links {
        let name = link.name();
        let wrong = |problem: String| wrong(format!("link {name}: {problem}"));
        check_link(request, substrate, settings, link).map_err(wrong)?;
        if !links.insert(name.clone()) {
            return Err(wrong("found twice, expected each name once: give one of them a `name`".to_owned()));
        }
    }
    check_bridges(request).map_err(wrong)?;
    check_stages(request).map_err(wrong)
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(allowed) || name.starts_with('-') {
        return Err(format!("{what}: found `{name}`, expected 1 to {MAX_NAME} characters of a-z, 0-9 and -"));
    }
    Ok(())
}

fn check_link(
    request: &NetworkServiceRequest,
    substrate: &NetworkSubstrate,
    settings: &ShareSettings,
    link: &LinkRequest,
) -> Result<(), String> {
    if link.name.is_some() {
        check_name("name", &link.name())?;
    }
    let node = |name: &String| request.nodes.iter().find(|node| node.name == *name);
    let is_host = |name: &String| substrate.hosts.contains_key(name);
    for (end, addresses) in link.ends.iter().zip(&link.addresses) {
        if node(end).is_none() && !is_host(end) {
            let nodes = request.nodes.iter().map(|node| node.name.as_str());
            let known: Vec<&str> = nodes.chain(substrate.hosts.keys().map(String::as_str)).take(20).collect();
            return Err(format!("ends: found `{end}`, expected a node or a host: {}", known_names(end, &known)));
        }
        let is_router = node(end).is_some_and(|node| node.kind == NodeKind::Router);
        if is_router == addresses.is_empty() {
            let problem = "expected `addresses` at each end that is a node of kind \"router\", and only there";
            return Err(format!("addresses: end {end}: {problem}"));
        }
    }
    if link.ends[0] == link.ends[1] {
        return Err(format!("ends: found {} twice, expected two ends", link.ends[0]));
    }
    if let Some(vlan) = link.vlan {
        if !(1..=4094).contains(&vlan) {
            return Err(format!("vlan: found {vlan}, expected 1 to 4094"));
        }
        if !link.ends.iter().any(is_host) {
            return Err("vlan: found without a host at an end: between nodes, the service chooses it".to_owned());
        }
    }
    for bandwidth in link.bandwidths() {
        check_bandwidth(bandwidth.minimum(), bandwidth.maximum())?;
    }
    let longest = settings.longest_packet;
    if let Some(burst) = link.burst.filter(|burst| *burst < longest || burst.0 > 1_000_000_000) {
        return Err(format!("burst: found {burst}, expected {longest} to 1GB"));
    }
    if let Some(buffer) = link.buffer.filter(|buffer| buffer.0 > 1_000_000_000) {
        return Err(format!("buffer: found {buffer}, expected at most 1GB"));
    }
    if let Some(delay) = &link.delay {
        if delay.bound.0.is_zero() || delay.bound.0 > MAX_DELAY {
            return Err(format!("delay: bound: found {}, expected more than 0 and at most 1000s", delay.bound));
        }
        if let Some(percentile) = delay.percentile.filter(|percentile| !(*percentile > 0.0 && *percentile < 100.0)) {
            return Err(format!(
                "delay: percentile: found {percentile}, expected above 0 and below 100; leave it out for all packets"
            ));
        }
        if link.bandwidths().iter().any(|bandwidth| bandwidth.minimum() == Bps(0)) {
            return Err("delay: found without a guaranteed minimum of bandwidth in each direction".to_owned());
        }
    }
    match link.avoid.iter().find(|switch| substrate.place(switch).is_none()) {
        Some(unknown) => {
            let known: Vec<&str> = substrate.switches.iter().map(String::as_str).collect();
            Err(format!("avoid: found `{unknown}`, expected one of {}", known_names(unknown, &known)))
        }
        None => Ok(()),
    }
}

fn check_bandwidth(minimum: Bps, maximum: Option<Bps>) -> Result<(), String> {
    if minimum == Bps(0) && maximum == Some(Bps(0)) || minimum > MAX_CAPACITY {
        return Err(format!("bandwidth: found {minimum}, expected more than 0 and at most {MAX_CAPACITY}"));
    }
    match maximum {
        Some(maximum) if maximum < minimum || maximum == Bps(0) => Err(format!(
            "bandwidth: found a maximum of {maximum} and a minimum of {minimum}, expected the maximum to be at least \
             the minimum and more than 0"
        )),
        _ => Ok(()),
    }
}

/// Refuses bridges whose links form a ring, in which broadcasts would circle.
fn check_bridges(request: &NetworkServiceRequest) -> Result<(), String> {
    let bridge =
        |name: &String| request.nodes.iter().position(|node| node.name == *name && node.kind == NodeKind::Bridge);
    let mut part: Vec<usize> = (0..request.nodes.len()).collect();
    for link in &request.links {
        let [Some(a), Some(b)] = [bridge(&link.ends[0]), bridge(&link.ends[1])] else { continue };
        let [from, to] = [part[a], part[b]];
        if from == to {
            return Err(format!(
                "link {}: found a ring of bridges, in which broadcasts would circle; leave a link out, or use routers",
                link.name()
            ));
        }
        part.iter_mut().filter(|one| **one == from).for_each(|one| *one = to);
    }
    Ok(())
}

fn check_stages(request: &NetworkServiceRequest) -> Result<(), String> {
    let mut before = None;
    for stage in &request.stages {
        let wrong = |problem: String| format!("stage at {}: {problem}", stage.start);
        if before.is_some_and(|before| before >= stage.start.0) || stage.start.0.is_zero() {
            return Err(wrong("expected times after 0, each later than the one before".to_owned()));
        }
        if let Some(lifetime) = request.lifetime.filter(|lifetime| lifetime.0 <= stage.start.0) {
            return Err(wrong(format!("expected a time within the lifetime of {lifetime}")));
        }
        before = Some(stage.start.0);
        for link in &stage.links {
            if !request.links.iter().any(|one| one.name() == link.name) {
                return Err(wrong(format!("found link `{}`, expected one of the network", link.name)));
            }
            for bandwidth in [link.bandwidth, link.backward.unwrap_or(link.bandwidth)] {
                check_bandwidth(bandwidth.minimum(), bandwidth.maximum()).map_err(wrong)?;
            }
        }
    }
    Ok(())
}
