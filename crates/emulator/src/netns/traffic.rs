//! An item of traffic, carried out by ping or by iperf3.
use super::parse;
use super::programs::Programs;
use crate::Cancel;
use crate::measured::Measured;
use std::sync::Arc;
use std::time::Duration;
use weir_scenario::{Scenario, Traffic, TrafficKind};
use weir_units::Bps;

/// Port of the first item's server; the others follow.
const FIRST_PORT: usize = 5201;

/// An item of traffic with what it needs.
pub(super) struct Item {
    pub(super) scenario: Arc<Scenario>,
    pub(super) number: usize,
    pub(super) namespaces: Arc<Vec<String>>,
    pub(super) programs: Arc<Programs>,
    pub(super) cancel: Cancel,
}

impl Item {
    /// Carries it out, from its start to its end.
    pub(super) fn run(&self) -> Measured {
        let item = &self.scenario.traffic[self.number];
        let run = match item.kind {
            TrafficKind::Ping { count, interval } => self.ping(item, count, interval),
            TrafficKind::Tcp { duration } => self.iperf(item, duration, None),
            TrafficKind::Udp { duration, rate, payload_bytes } => {
                self.iperf(item, duration, Some((rate, payload_bytes)))
            }
        };
        run.unwrap_or_else(|error| Measured { problem: Some(error.to_string()), ..Measured::default() })
    }

    fn ping(&self, item: &Traffic, count: u32, interval: Duration) -> std::io::Result<Measured> {
        let mut measured = Measured { asked: u64::from(count), ..Measured::default() };
        if self.cancel.wait(item.start) {
            return Ok(measured);
        }
        let interval = format!("{:.3}", interval.as_secs_f64());
        let arguments = ["ping", "-n", "-W", "1", "-c", &count.to_string(), "-i", &interval, &item.address.to_string()];
        let (output, errors) = self.programs.run(&self.namespaces[item.from], &arguments.map(str::to_owned))?;
        parse::ping(&output, &errors, &mut measured);
        Ok(measured)
    }

    /// `udp`: rate of the frames and payload of a datagram.
    fn iperf(&self, item: &Traffic, duration: Duration, udp: Option<(Bps, u16)>) -> std::io::Result<Measured> {
        let port = (FIRST_PORT + self.number).to_string();
        let serve = ["iperf3", "--server", "--one-off", "--forceflush", "--port", &port].map(str::to_owned);
        let server = self.programs.start_until(&self.namespaces[item.to], &serve, "listening")?;
        let stopped = self.cancel.wait(item.start);
        if server.is_none() && !stopped {
            return Err(std::io::Error::other("the iperf3 server did not start"));
        }
        if stopped {
            return Ok(Measured::default());
        }
        // iperf3 counts whole seconds.
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
        if let Some((rate, payload)) = udp {
            arguments.extend(["--udp", "--length", &payload.to_string(), "--bitrate"].map(str::to_owned));
            arguments.push(payload_rate(rate, payload, item.address.is_ipv6()).to_string());
        }
        let (output, errors) = self.programs.run(&self.namespaces[item.from], &arguments)?;
        Ok(parse::iperf(&output, &errors, udp.is_some()))
    }
}

/// iperf3 counts payload, a scenario frames.
fn payload_rate(rate: Bps, payload: u16, ipv6: bool) -> u64 {
    let frame = u64::from(payload) + if ipv6 { 14 + 40 + 8 } else { 14 + 20 + 8 };
    let rate = u128::from(rate.0) * u128::from(payload) / u128::from(frame);
    u64::try_from(rate).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_frames_become_rates_of_payload() {
        assert_eq!(payload_rate(Bps(10_420_000), 1000, false), 10_000_000);
        assert_eq!(payload_rate(Bps(10_620_000), 1000, true), 10_000_000);
    }
}
