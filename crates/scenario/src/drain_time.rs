//! Estimates how long packets may be under way after the last sender has finished.
use crate::{LinkSpec, Scenario, ScenarioLink};
use std::time::Duration;
use weir_slicing::FabricSpec;
use weir_units::Bps;

/// Allowance for hosts, switches, and queues whose length no file gives.
const PROCESSING_ALLOWANCE: Duration = Duration::from_millis(50);

impl Scenario {
    /// Returns how long after the last sender has finished a packet may still be under way. Sums the delays of all
    /// links and the access links' longest delay twice, the longest queue of a link and of a fabric as far as files
    /// give their size, and 50 ms.
    pub fn max_drain_time(&self) -> Duration {
        let delay = |spec: &LinkSpec| spec.delay + spec.jitter.map_or(Duration::ZERO, |jitter| jitter.most());
        let delays: Duration = self.links.iter().map(|link| delay(&link.spec)).sum();
        let access = self.hosts.iter().map(|host| delay(&host.link)).max().unwrap_or_default();
        let links =
            self.links.iter().map(|ScenarioLink { spec, .. }| spec).chain(self.hosts.iter().map(|host| &host.link));
        let longest = links.filter_map(queue).max().unwrap_or_default();
        let fabrics = self.switches.iter().filter_map(|switch| switch.fabric.as_ref());
        PROCESSING_ALLOWANCE + delays + access * 2 + longest + fabrics.map(crosspoints).max().unwrap_or_default()
    }
}

/// Returns the time that a link's full buffer takes at its rate.
fn queue(spec: &LinkSpec) -> Option<Duration> {
    Some(time(spec.buffer?.0, spec.rate?))
}

/// Returns the time that all full crosspoints of an output take at its rate, at the slowest output.
fn crosspoints(fabric: &FabricSpec) -> Duration {
    let bytes = fabric.crosspoint.0.saturating_mul(fabric.ports.len() as u64);
    fabric.ports.iter().map(|port| time(bytes, port.rate)).max().unwrap_or_default()
}

fn time(bytes: u64, rate: Bps) -> Duration {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate.0.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "[[host]]\nname = \"a\"\nswitch = \"s\"\nip = \"10.0.0.1/24\"\ndelay = \"2ms\"\n[[host]]\nname = \"b\"\nswitch = \"s\"\nip = \"10.0.0.2/24\"\n";

    #[test]
    fn counts_delays_and_the_longest_queues() {
        let with = |rest: &str| Scenario::parse(&format!("{rest}{TWO}"), "test").unwrap().max_drain_time();
        assert_eq!(with("[[switch]]\nname = \"s\"\n"), Duration::from_millis(54));
        let varying = TWO.replacen("2ms\"", "2ms\"\njitter = \"1ms\"\njitter_law = \"pareto\"", 1);
        let varying = Scenario::parse(&format!("[[switch]]\nname = \"s\"\n{varying}"), "test").unwrap();
        assert_eq!(varying.max_drain_time(), Duration::from_millis(50 + 2 * 20));
        // A buffer of 125 kB takes a second at 1 Mbit/s. A buffer without a rate takes no time.
        let slow = "[[switch]]\nname = \"s\"\n[[host]]\nname = \"c\"\nswitch = \"s\"\nip = \"10.0.0.3/24\"\nrate = \"1Mbit/s\"\nbuffer = \"125kB\"\n";
        assert_eq!(with(slow), Duration::from_millis(1054));
    }
}
