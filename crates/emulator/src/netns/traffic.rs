//! Runs an item of traffic with ping or iperf3.
use super::parse;
use super::programs::ProgramRegistry;
use crate::CancelHandle;
use std::sync::Arc;
use std::time::Duration;
use weir_network::TrafficMeasurement;
use weir_scenario::{Scenario, TrafficItem, TrafficKind, udp_headers};
use weir_traffic::{ArrivalProcess, OfferedPackets, PacketSizeLaw};

/// Port of the first item's server; items after it have the following ports.
const FIRST_PORT: usize = 5201;

/// Item of traffic with the objects it needs.
pub(super) struct NetnsTrafficItem {
    pub(super) scenario: Arc<Scenario>,
    pub(super) number: usize,
    pub(super) namespaces: Arc<Vec<String>>,
    pub(super) programs: Arc<ProgramRegistry>,
    pub(super) cancel: CancelHandle,
}

impl NetnsTrafficItem {
    /// Runs the item from its start to its end.
    pub(super) fn run(&self) -> TrafficMeasurement {
        let item = &self.scenario.traffic[self.number];
        let run = match &item.kind {
            TrafficKind::Ping { count, interval } => self.ping(item, *count, *interval),
            TrafficKind::Tcp { duration } => self.iperf(item, *duration, None),
            TrafficKind::Udp { duration, offered, .. } => {
                self.iperf(item, *duration, constant(offered, item.address.is_ipv6()))
            }
        };
        run.unwrap_or_else(|error| TrafficMeasurement {
            problem: Some(error.to_string()),
            ..TrafficMeasurement::default()
        })
    }

    fn ping(&self, item: &TrafficItem, count: u32, interval: Duration) -> std::io::Result<TrafficMeasurement> {
        let mut measured = TrafficMeasurement { asked: u64::from(count), ..TrafficMeasurement::default() };
        if self.cancel.wait(item.start) {
            return Ok(measured);
        }
        let interval = format!("{:.3}", interval.as_secs_f64());
        let arguments = ["ping", "-n", "-W", "1", "-c", &count.to_string(), "-i", &interval, &item.address.to_string()];
        let (output, errors) = self.programs.run(&self.namespaces[item.from], &arguments.map(str::to_owned))?;
        parse::ping(&output, &errors, &mut measured);
        Ok(measured)
    }

    /// Runs an item with iperf3. `udp`: datagrams per second and payload bytes of each; `None` for TCP.
    fn iperf(
        &self,
        item: &TrafficItem,
        duration: Duration,
        udp: Option<(f64, u32)>,
    ) -> std::io::Result<TrafficMeasurement> {
        let port = (FIRST_PORT + self.number).to_string();
        let serve = ["iperf3", "--server", "--one-off", "--forceflush", "--port", &port].map(str::to_owned);
        let server = self.programs.start_until(&self.namespaces[item.to], &serve, "listening")?;
        let stopped = self.cancel.wait(item.start);
        if server.is_none() && !stopped {
            return Err(std::io::Error::other("the iperf3 server did not start"));
        }
        if stopped {
            return Ok(TrafficMeasurement::default());
        }
        // iperf3 accepts only whole seconds.
        let seconds = duration.as_millis().div_ceil(1000).max(1).to_string();
        let address = item.address.to_string();
        let mut arguments = [
            "iperf3",
            "--client",
            &address,
            "--port",
            &port,
            "--time",
            &seconds,
            "--json",
            "--connect-timeout",
            "3000",
        ]
        .map(str::to_owned)
        .to_vec();
        if let Some((per_second, payload)) = udp {
            arguments.extend(["--udp", "--length", &payload.to_string(), "--bitrate"].map(str::to_owned));
            arguments.push(payload_rate(per_second, payload).to_string());
        }
        let (output, errors) = self.programs.run(&self.namespaces[item.from], &arguments)?;
        Ok(parse::iperf(&output, &errors, udp.is_some()))
    }
}

/// Returns datagrams per second and payload bytes of each, if all have one size and a constant rate; `None` for
/// traffic that iperf3 cannot send.
pub(super) fn constant(offered: &OfferedPackets, ipv6: bool) -> Option<(f64, u32)> {
    match offered {
        OfferedPackets::Rule { arrival: ArrivalProcess::Constant, per_second, size: PacketSizeLaw::Fixed(bytes) } => {
            Some((*per_second, bytes.saturating_sub(udp_headers(ipv6))))
        }
        _ => None,
    }
}

/// Returns the bit rate for iperf3, which counts payload bits; at least 1 bit/s.
fn payload_rate(per_second: f64, payload: u32) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
    let bits = (per_second * f64::from(payload) * 8.0).round() as u64;
    bits.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_frames_become_rates_of_payload() {
        let offered =
            |arrival, per_second| OfferedPackets::Rule { arrival, per_second, size: PacketSizeLaw::Fixed(1062) };
        assert_eq!(constant(&offered(ArrivalProcess::Constant, 1250.0), true), Some((1250.0, 1000)));
        assert_eq!(constant(&offered(ArrivalProcess::Constant, 1250.0), false), Some((1250.0, 1020)));
        assert_eq!(constant(&offered(ArrivalProcess::Poisson, 1250.0), false), None);
        assert_eq!(payload_rate(1250.0, 1000), 10_000_000);
    }
}
