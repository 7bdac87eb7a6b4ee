//! Draws sets of virtual networks with their traffic, as scenario files.
use crate::draw::below;
use std::fmt::Write as _;
use weir_scenario::Scenario;
use weir_traffic::RandomStream;

/// Most networks that a set asks for.
const MOST_NETWORKS: usize = 14;

/// A set of virtual networks of which all that were refused are left out.
pub(super) struct DrawnSet {
    pub(super) scenario: Scenario,
    /// Networks that were asked for, and those that were admitted.
    pub(super) asked: usize,
    pub(super) admitted: usize,
}

/// Draws a set whose traffic lasts so many milliseconds.
pub(super) fn draw(random: &mut RandomStream, milliseconds: u128) -> Result<DrawnSet, weir_scenario::ScenarioError> {
    let (kind, least) = [("linear", 2), ("ring", 3)][below(random, 2)];
    let switches = least + below(random, 3);
    let per_switch = 2 + below(random, 4);
    let delay = [10, 100, 1000][below(random, 3)];
    let base = format!(
        "duration = \"{milliseconds}ms\"\n[controller]\nconnect = \"none\"\n[topology]\nkind = \"{kind}\"\nswitches = \
         {switches}\nhosts = {per_switch}\nrate = \"100Mbit/s\"\ndelay = \"{delay}us\"\nhost_rate = \"100Mbit/s\"\n"
    );
    let empty = Scenario::parse(&base, "network-promises")?;
    let mut hosts: Vec<String> = empty.hosts.iter().map(|host| host.name.clone()).collect();
    let (mut text, mut asked, mut admitted) = (base, 0, 0);
    let mut scenario = empty;
    while hosts.len() >= 2 && asked < MOST_NETWORKS {
        let from = hosts.swap_remove(below(random, hosts.len()));
        let to = hosts.swap_remove(below(random, hosts.len()));
        asked += 1;
        let more = format!("{text}{}", network(random, asked, &from, &to));
        if let Ok(parsed) = Scenario::parse(&more, "network-promises") {
            (text, scenario, admitted) = (more, parsed, admitted + 1);
        }
    }
    Ok(DrawnSet { scenario, asked, admitted })
}

/// Returns a network between two hosts, with its traffic.
fn network(random: &mut RandomStream, number: usize, from: &str, to: &str) -> String {
    let rate = 1 + below(random, 40);
    let bandwidth = match below(random, 2) {
        0 => format!("\"{rate}Mbit/s\""),
        _ => format!("{{ minimum = \"{rate}Mbit/s\", maximum = \"{}Mbit/s\" }}", rate + below(random, 60)),
    };
    let mut terms = format!("bandwidth = {bandwidth}\nbackward = \"1Mbit/s\"\n");
    if below(random, 2) == 0 {
        let _ = writeln!(terms, "delay = {{ bound = \"{}ms\" }}", 5 + below(random, 56));
    }
    let mut text = format!("[[network]]\nname = \"n{number}\"\n");
    let links = if below(random, 2) == 0 {
        vec![[from, to]]
    } else {
        text += "[[network.node]]\nname = \"bridge\"\n";
        vec![[from, "bridge"], ["bridge", to]]
    };
    for [a, b] in links {
        let _ = write!(text, "[[network.link]]\nends = [\"{a}\", \"{b}\"]\n{terms}");
    }
    let payload = [22, 100, 500, 1000, 1472][below(random, 5)];
    let is_in_profile = below(random, 2) == 0;
    let (rate, arrival) = match (is_in_profile, below(random, 2)) {
        (true, _) => (rate, "constant"),
        (false, 0) => (95, "constant"),
        (false, _) => (95, "poisson"),
    };
    text += &addresses_known(from, to);
    let _ = write!(text, "rate = \"{rate}Mbit/s\"\npayload = \"{payload}B\"\narrival = \"{arrival}\"\n");
    text
}

/// Returns a ping and the beginning of datagrams after it: hosts drop datagrams of which too many wait for an address.
fn addresses_known(from: &str, to: &str) -> String {
    let ends = format!("from = \"{from}\"\nto = \"{to}\"\n");
    format!(
        "[[traffic]]\nkind = \"ping\"\n{ends}count = 1\ninterval = \"1ms\"\n[[traffic]]\nkind = \"udp\"\n{ends}start = \
         \"50ms\"\n"
    )
}

/// Returns a line of two switches with so many networks of 5 Mbit/s, each in profile.
pub(super) fn line(networks: usize, milliseconds: u128) -> String {
    let mut text = format!(
        "duration = \"{milliseconds}ms\"\n[controller]\nconnect = \"none\"\n[topology]\nkind = \"linear\"\nswitches = \
         2\nhosts = 24\nrate = \"100Mbit/s\"\nhost_rate = \"100Mbit/s\"\n"
    );
    for at in 1..=networks {
        let (from, to) = (format!("h{at}"), format!("h{}", at + 24));
        let _ = write!(
            text,
            "[[network]]\nname = \"n{at}\"\n[[network.link]]\nends = [\"{from}\", \"{to}\"]\nbandwidth = \"5Mbit/s\"\n\
             backward = \"1Mbit/s\"\n[[traffic]]\nkind = \"udp\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"5Mbit/s\"\n\
             payload = \"1472B\"\n"
        );
    }
    text
}
