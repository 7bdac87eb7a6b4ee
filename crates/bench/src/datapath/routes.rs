//! Defines the case of longest prefix match: one entry for each route in a file, and a random address for each flow.
use super::case::{BenchCaseName, BenchCaseSettings, DatapathBenchCase};
use super::entry::{self, prefix_mask};
use super::split_mix::SplitMix64;
use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use weir_packet::Field;
use weir_port::null::FlowHeaderKind;

/// Default number of flows.
const FLOWS: u32 = 1_000_000;
/// Maximum number of routes.
const MAX_ROUTES: usize = 1 << 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ipv4Route {
    address: u32,
    length: u32,
}

/// Creates one entry for each route, with the prefix length as priority. Flows have addresses drawn within drawn
/// routes.
pub(super) fn case(wanted: &BenchCaseSettings) -> anyhow::Result<DatapathBenchCase> {
    let mut routes = read(wanted.file("prefixes, one in each line")?)?;
    if let Some(entries) = wanted.entries {
        routes = thinned(&routes, entries)?;
    }
    let count = wanted.flows.unwrap_or(FLOWS);
    let mut dice = SplitMix64::new(wanted.seed);
    let destinations = (0..count).map(|_| drawn(&mut dice, &routes)).collect();
    let flows = wanted.flows(FlowHeaderKind::Destinations(destinations), count, None)?;
    let entries = routes.into_iter().map(|route| {
        let matching = entry::with_prefix(entry::ipv4(), Field::Ipv4Dst, route.address, route.length);
        entry::output(1 + u16::try_from(route.length).unwrap_or(32), matching)
    });
    Ok(DatapathBenchCase { name: BenchCaseName::Lpm, entries: Box::new(entries), flows, tables: 1 })
}

fn drawn(dice: &mut SplitMix64, routes: &[Ipv4Route]) -> u32 {
    let route = dice.pick(routes);
    route.address | dice.word() & !prefix_mask(route.length)
}

/// Returns `count` of the routes, evenly spread over the list.
fn thinned(routes: &[Ipv4Route], count: u32) -> anyhow::Result<Vec<Ipv4Route>> {
    let all = routes.len() as u64;
    ensure!(u64::from(count) <= all, "--entries: found {count}, but the file has {all} IPv4 prefixes");
    let place = |number: u32| usize::try_from(u64::from(number) * all / u64::from(count)).unwrap_or(0);
    Ok((0..count).map(|number| routes[place(number)]).collect())
}

/// Reads IPv4 prefixes. IPv6 prefixes, empty lines, lines that start with `#`, and repeated prefixes are skipped.
fn read(path: &Path) -> anyhow::Result<Vec<Ipv4Route>> {
    let file = File::open(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let mut routes = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let at = || format!("{}:{}", path.display(), number + 1);
        let line = line.with_context(at)?;
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') || text.contains(':') {
            continue;
        }
        let Some(route) = parse(text) else {
            bail!("{}: found `{text:.40}`, expected a prefix such as 10.0.0.0/8", at())
        };
        if seen.insert((route.address, route.length)) {
            routes.push(route);
        }
        ensure!(routes.len() <= MAX_ROUTES, "{}: more than {MAX_ROUTES} prefixes", path.display());
    }
    ensure!(!routes.is_empty(), "{}: no IPv4 prefix", path.display());
    Ok(routes)
}

fn parse(text: &str) -> Option<Ipv4Route> {
    let (address, length) = text.split_once('/').unwrap_or((text, "32"));
    let length = length.parse().ok().filter(|length| *length <= 32)?;
    let address: Ipv4Addr = address.parse().ok()?;
    Some(Ipv4Route { address: address.to_bits() & prefix_mask(length), length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_read_once_each() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "10.1.2.3/8\n2001:db8::/32\n\n# x\n10.0.0.0/8\n192.0.2.1\n").unwrap();
        let routes = read(file.path()).unwrap();
        assert_eq!(
            routes,
            [Ipv4Route { address: 10 << 24, length: 8 }, Ipv4Route { address: 0xc000_0201, length: 32 }]
        );
        assert_eq!(thinned(&routes, 1).unwrap(), routes[..1]);
        assert!(thinned(&routes, 3).unwrap_err().to_string().contains("the file has 2 IPv4 prefixes"));
        for wrong in ["10.0.0.0/33", "10.0.0/8", "x", "10.0.0.0/-1"] {
            std::fs::write(file.path(), format!("10.0.0.0/8\n{wrong}\n")).unwrap();
            let error = read(file.path()).unwrap_err().to_string();
            assert!(error.contains(&format!(":2: found `{wrong}`, expected a prefix")), "{error}");
        }
    }

    #[test]
    fn addresses_lie_within_a_route() {
        let routes = [Ipv4Route { address: 10 << 24, length: 8 }, Ipv4Route { address: 0xc000_0200, length: 24 }];
        let mut dice = SplitMix64::new(3);
        for _ in 0..100 {
            let address = drawn(&mut dice, &routes);
            assert!(routes.iter().any(|route| address & prefix_mask(route.length) == route.address));
        }
    }
}
