//! Prints the results next to the promised values.
use super::tenant_ports::LARGEST;
use super::{TenantBenchArgs, overload};
use crate::machine::BenchMachineInfo;
use serde::Serialize;
use std::io::Write as _;
use std::time::Duration;
use weir_fabric::{drr_bound, strict_priority_bound};
use weir_units::Bps;

/// Number of windows in a measurement of costs; the best counts.
const WINDOWS: u32 = 5;

#[derive(Serialize)]
pub(super) struct TenantBenchReport {
    pub(super) machine: BenchMachineInfo,
    pub(super) rate: Bps,
    pub(super) time_s: f64,
    pub(super) shares: Vec<OutputShares>,
    pub(super) storms: Vec<OverloadResult>,
    pub(super) busy: Vec<EngineTimeShares>,
    pub(super) delays: Vec<TenantDelays>,
    pub(super) costs: Vec<VirtualSwitchCost>,
}

/// Shares of an output.
#[derive(Serialize)]
pub(super) struct OutputShares {
    switches: usize,
    is_equal: bool,
    /// Size in bytes of the flooding switch's frames.
    flood_bytes: usize,
    /// Largest difference between a tenant's throughput and its share, in percentage points.
    worst_error_points: f64,
    /// Jain's fairness index of throughput over weight.
    jain: f64,
    /// Used share of the output's rate.
    used: f64,
}

impl OutputShares {
    pub(super) fn of(
        weights: &[u32],
        is_equal: bool,
        flood_bytes: usize,
        sent: &[u64],
        args: &TenantBenchArgs,
    ) -> OutputShares {
        let (total, weight): (u64, u32) = (sent.iter().sum(), weights.iter().sum());
        let total = (total as f64).max(1.0);
        let error = |(sent, its): (&u64, &u32)| (*sent as f64 / total - f64::from(*its) / f64::from(weight)).abs();
        let per_weight = sent.iter().zip(weights).map(|(sent, weight)| *sent as f64 / f64::from(*weight));
        OutputShares {
            switches: weights.len(),
            is_equal,
            flood_bytes,
            worst_error_points: sent.iter().zip(weights).map(error).fold(0.0, f64::max) * 100.0,
            jain: jain(per_weight),
            used: total * 8.0 / args.time.0.as_secs_f64() / args.rate.0 as f64,
        }
    }
}

/// Shares of the time of an overloaded engine.
#[derive(Serialize)]
pub(super) struct EngineTimeShares {
    /// True if the other tenant's packets are expensive and exceed the engine's capacity.
    pub(super) is_hostile: bool,
    /// Share of the victim's packets that were forwarded.
    pub(super) got: f64,
    /// Packets of the other tenant that were forwarded, per second.
    pub(super) other_per_second: f64,
    /// Shares of the measured time, the victim's first; zeros if the engine was not overloaded.
    pub(super) parts: [f64; 2],
    /// Packets of the other tenant dropped because its queue was full.
    pub(super) dropped: u64,
}

/// Computes the fairness index of Jain, Chiu and Hawe (1984): 1 if all values are equal.
fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    values.for_each(|value| (sum, squares, count) = (sum + value, squares + value * value, count + 1.0));
    if squares == 0.0 { 0.0 } else { sum * sum / (count * squares) }
}

/// Throughput of the other tenants while one overloads the switch.
#[derive(Serialize)]
pub(super) struct OverloadResult {
    kind: overload::OverloadKind,
    /// Forwarded share of the others' offered traffic, which is 90 % of their promised rate.
    got: f64,
    /// Flow-mods executed, or packet-ins delivered, per second.
    messages_per_second: f64,
}

impl OverloadResult {
    pub(super) fn of(kind: overload::OverloadKind, got: f64, messages_per_second: f64) -> OverloadResult {
        OverloadResult { kind, got, messages_per_second }
    }
}

/// Delays of a virtual switch that sends less than its promised rate, while the others offer more than theirs.
#[derive(Serialize)]
pub(super) struct TenantDelays {
    discipline: &'static str,
    switches: usize,
    packets: usize,
    median_us: f64,
    p99_us: f64,
    worst_us: f64,
    /// Upper bound that the discipline guarantees, in microseconds.
    bound_us: f64,
}

impl TenantDelays {
    /// Computes the figures from `delays` in nanoseconds. The bounds are for a packet that finds its own queue empty,
    /// with quanta of one largest packet.
    pub(super) fn of(discipline: &'static str, switches: usize, rate: Bps, delays: &mut [u32]) -> TenantDelays {
        delays.sort_unstable();
        let at = |part: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in the list")]
            let place = ((delays.len() as f64 * part) as usize).min(delays.len().saturating_sub(1));
            delays.get(place).map_or(f64::NAN, |ns| f64::from(*ns) / 1000.0)
        };
        let packet = LARGEST as u64;
        let bound = match discipline {
            "drr" => drr_bound(switches as u64 * packet, packet, packet, rate),
            _ => strict_priority_bound(packet, packet, rate),
        };
        TenantDelays {
            discipline,
            switches,
            packets: delays.len(),
            median_us: at(0.5),
            p99_us: at(0.99),
            worst_us: at(1.0),
            bound_us: bound.as_secs_f64() * 1e6,
        }
    }
}

/// Cost of a packet. There are as many sending ports and datapaths as virtual switches.
#[derive(Serialize)]
pub(super) struct VirtualSwitchCost {
    switches: u16,
    ns_per_packet: f64,
    /// Nanoseconds per packet with the same ports on a switch without virtual switches.
    ns_without: f64,
}

impl VirtualSwitchCost {
    pub(super) fn new(switches: u16, ns_per_packet: f64, ns_without: f64) -> VirtualSwitchCost {
        VirtualSwitchCost { switches, ns_per_packet, ns_without }
    }

    /// Returns nanoseconds per packet, the best of several windows that together last `time`; `look` returns the
    /// packets and the processor time so far.
    pub(super) fn best_of(time: Duration, look: impl Fn() -> anyhow::Result<(u64, Duration)>) -> anyhow::Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..WINDOWS {
            let (packets, used) = look()?;
            super::testbed::pause(time / WINDOWS);
            let (more, later) = look()?;
            let ns = later.saturating_sub(used).as_nanos() as f64 / (more.saturating_sub(packets)).max(1) as f64;
            best = best.min(ns);
        }
        Ok(best)
    }
}

impl TenantBenchReport {
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string_pretty(self)?)?;
            return Ok(());
        }
        writeln!(out, "shares of {}, all wanting twice theirs, the last ten times\n", self.rate)?;
        writeln!(out, " switches  weights  flood of  worst error  Jain index  used")?;
        for row in &self.shares {
            let weights = if row.is_equal { "equal" } else { "1:2:3:4" };
            writeln!(
                out,
                " {:>8}  {weights:<7}  {:>6} B  {:>6.3} pts  {:>10.5}  {:>4.1}%",
                row.switches,
                row.flood_bytes,
                row.worst_error_points,
                row.jain,
                row.used * 100.0
            )?;
        }
        writeln!(out, "\nfour switches, three of which send 90 % of what they are promised\n")?;
        writeln!(out, " the fourth's storm  the others get  messages/s")?;
        for row in &self.storms {
            writeln!(out, " {:<18}  {:>13.2}%  {:>10.0}", name(row.kind), row.got * 100.0, row.messages_per_second)?;
        }
        writeln!(out, "\na million packets a second of one switch beside another, same weight, on one core\n")?;
        writeln!(out, " the other            gets through  the other/s  parts of the time")?;
        for row in &self.busy {
            let what = if row.is_hostile { "dear, without end" } else { "as many, plain" };
            let [own, other] = row.parts.map(|part| part * 100.0);
            let got = row.got * 100.0;
            writeln!(out, " {what:<18}  {got:>12.2}%  {:>11.0}  {own:.0}%, {other:.0}%", row.other_per_second)?;
        }
        writeln!(out, "\ndelay of a switch that sends 30 % of what it is promised, us\n")?;
        writeln!(out, " discipline       switches  median     p99   worst   bound")?;
        for row in &self.delays {
            writeln!(
                out,
                " {:<15}  {:>8}  {:>6.0}  {:>6.0}  {:>6.0}  {:>6.0}",
                row.discipline, row.switches, row.median_us, row.p99_us, row.worst_us, row.bound_us
            )?;
        }
        writeln!(out, "\nprocessor time of a packet, beside the same ports on a switch that is not cut\n")?;
        writeln!(out, " virtual switches       with     without      more")?;
        for row in &self.costs {
            let more = row.ns_per_packet - row.ns_without;
            writeln!(
                out,
                " {:>16}  {:>5.1} ns  {:>7.1} ns  {more:>5.1} ns",
                row.switches, row.ns_per_packet, row.ns_without
            )?;
        }
        Ok(())
    }
}

/// Returns the kind's name as in records.
fn name(kind: overload::OverloadKind) -> String {
    serde_json::to_value(kind).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_when_all_have_the_same() {
        assert!((jain([3.0, 3.0, 3.0].into_iter()) - 1.0).abs() < 1e-12);
        assert!((jain([1.0, 0.0].into_iter()) - 0.5).abs() < 1e-12);
        assert_eq!(jain([0.0, 0.0].into_iter()), 0.0);
    }

    #[test]
    fn delays_are_read_off_in_order() {
        let mut delays: Vec<u32> = (1..=1000).rev().map(|us| us * 1000).collect();
        let delay = TenantDelays::of("strict-priority", 4, Bps(200_000_000), &mut delays);
        assert_eq!((delay.median_us, delay.p99_us, delay.worst_us), (501.0, 991.0, 1000.0));
        assert!((delay.bound_us - 2.0 * 60.56).abs() < 0.01);
    }
}
