//! `weir bench tenants`: measures what virtual switches get while one of them overloads the switch. Loads and the
//! output are in memory, on the switch's own thread.
mod overload;
mod report;
mod tenant_ports;
mod testbed;

use super::machine::BenchMachineInfo;
use report::{OutputShares, OverloadResult, TenantBenchReport, TenantDelays, VirtualSwitchCost};
use std::process::ExitCode;
use std::time::Duration;
use tenant_ports::{LARGEST, SMALLEST};
use testbed::{TenantTestbed, TenantTraffic, pause};
use weir_units::{Bps, TimeSpan};

/// Time for queues to fill before a measurement.
const WARM_UP: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub(crate) struct TenantBenchArgs {
    /// Rate of the output that the virtual switches share
    #[arg(long, default_value = "200Mbit/s")]
    rate: Bps,
    /// Time of each measurement
    #[arg(long, value_name = "TIME", default_value = "1s")]
    time: TimeSpan,
    /// Numbers of virtual switches that share the output, 2 to 200
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2,4,8,16,32",
          value_parser = clap::value_parser!(u16).range(2..=200))]
    switches: Vec<u16>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TenantBenchArgs) -> anyhow::Result<ExitCode> {
    let report = TenantBenchReport {
        machine: BenchMachineInfo::detect(),
        rate: args.rate,
        time_s: args.time.0.as_secs_f64(),
        shares: shares(args)?,
        storms: storms(args)?,
        busy: overload::engine_time_shares(args.time.0)?,
        delays: delays(args)?,
        costs: costs(args)?,
    };
    report.print(args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures how the output is shared while all offer more than their share and the last one floods.
fn shares(args: &TenantBenchArgs) -> anyhow::Result<Vec<OutputShares>> {
    let mut found = Vec::new();
    for count in &args.switches {
        for is_equal in [true, false] {
            for flood in [SMALLEST, LARGEST] {
                let weight = |number: u16| if is_equal { 1 } else { 1 + u32::from(number % 4) };
                let mut tenants: Vec<TenantTraffic> = (0..*count)
                    .map(|number| TenantTraffic { weight: weight(number), ..TenantTraffic::PLAIN })
                    .collect();
                if let Some(hostile) = tenants.last_mut() {
                    (hostile.size, hostile.offers) = (flood, 10.0);
                }
                let bed = TenantTestbed::start(args.rate, "drr", &tenants)?;
                pause(WARM_UP);
                let sent = bed.measure(args.time.0);
                let weights: Vec<u32> = tenants.iter().map(|tenant| tenant.weight).collect();
                found.push(OutputShares::of(&weights, is_equal, flood, &sent, args));
                bed.switch.stop();
            }
        }
    }
    Ok(found)
}

/// Measures how much of their rate the others lose while one tenant overloads the switch.
fn storms(args: &TenantBenchArgs) -> anyhow::Result<Vec<OverloadResult>> {
    overload::OverloadKind::ALL.into_iter().map(|kind| overload::measure(kind, args.rate, args.time.0)).collect()
}

/// Measures the delay of a tenant that sends little, for comparison with the bound of its discipline.
fn delays(args: &TenantBenchArgs) -> anyhow::Result<Vec<TenantDelays>> {
    let mut found = Vec::new();
    for (discipline, count) in [("drr", 4), ("drr", 16), ("strict-priority", 4), ("strict-priority", 16)] {
        let modest = TenantTraffic { offers: 0.3, ..TenantTraffic::PLAIN };
        let greedy = TenantTraffic { priority: 1, ..TenantTraffic::PLAIN };
        let tenants: Vec<TenantTraffic> =
            std::iter::once(modest).chain(std::iter::repeat_n(greedy, count - 1)).collect();
        let bed = TenantTestbed::start(args.rate, discipline, &tenants)?;
        pause(WARM_UP);
        bed.watch(0);
        pause(args.time.0);
        let mut delays = std::mem::take(&mut bed.sink_counters().delays);
        found.push(TenantDelays::of(discipline, count, args.rate, &mut delays));
        bed.switch.stop();
    }
    Ok(found)
}

/// Measures the cost of a packet with the fabric and without.
fn costs(args: &TenantBenchArgs) -> anyhow::Result<Vec<VirtualSwitchCost>> {
    let mut found = Vec::new();
    for count in [1, 2, 8, 32] {
        let with = overload::cost(count, true, args.time.0)?;
        found.push(VirtualSwitchCost::new(count, with, overload::cost(count, false, args.time.0)?));
    }
    Ok(found)
}
