//! Runs an item of traffic: pings with ping, TCP with iperf3, datagrams by the scenario's arrival times and lengths.
use super::datagrams::{DatagramEnds, DatagramRun};
use super::parse;
use super::programs::ProgramRegistry;
use crate::CancelHandle;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use weir_network::TrafficMeasurement;
use weir_network::datagrams::DatagramPlan;
use weir_scenario::{Scenario, TrafficItem, TrafficKind};
use weir_units::{Instant, SystemClock};

/// Port of the first item's server; items after it have the following ports.
const FIRST_PORT: u16 = 5201;
/// Source port of the first item's datagrams; items after it have the following ports.
const FIRST_SOURCE_PORT: u16 = 20_001;

/// Item of traffic with the objects it needs.
pub(super) struct NetnsTrafficItem {
    pub(super) scenario: Arc<Scenario>,
    pub(super) number: usize,
    pub(super) namespaces: Arc<Vec<String>>,
    pub(super) programs: Arc<ProgramRegistry>,
    pub(super) cancel: CancelHandle,
    pub(super) clock: SystemClock,
    /// Time from which the scenario's traffic counts.
    pub(super) begin: Instant,
}

impl NetnsTrafficItem {
    /// Runs the item from its start to its end. Calls `sent` when all has been sent: datagrams are then received until
    /// the programs are ended.
    pub(super) fn run(&self, sent: impl FnOnce()) -> TrafficMeasurement {
        let item = &self.scenario.traffic[self.number];
        let run = match &item.kind {
            TrafficKind::Ping { count, interval } => self.ping(item, *count, *interval),
            TrafficKind::Tcp { duration } => self.iperf(item, *duration),
            TrafficKind::Udp { .. } => return self.datagrams(item, sent).unwrap_or_else(failed),
        };
        sent();
        run.unwrap_or_else(failed)
    }

    fn datagrams(&self, item: &TrafficItem, sent: impl FnOnce()) -> std::io::Result<TrafficMeasurement> {
        let port = |first: u16| first.wrapping_add(u16::try_from(self.number).unwrap_or(0));
        let ends = DatagramEnds {
            namespaces: [item.from, item.to].map(|host| self.namespaces[host].as_str()),
            to: SocketAddr::new(item.address, port(FIRST_PORT)),
            own_port: port(FIRST_SOURCE_PORT),
        };
        let run = DatagramRun::open(&ends, self.clock);
        let plan = DatagramPlan::of(&self.scenario, self.number, self.begin + item.start, ends.own_port);
        let done = match (run, plan) {
            (Ok(mut run), Some(plan)) => run.send(plan, &self.cancel).map(|()| run),
            (Ok(run), None) => Ok(run),
            (Err(error), _) => Err(error),
        };
        sent();
        done?.finish(|| self.programs.is_ending())
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

    /// Runs a TCP connection with iperf3.
    fn iperf(&self, item: &TrafficItem, duration: Duration) -> std::io::Result<TrafficMeasurement> {
        let port = (usize::from(FIRST_PORT) + self.number).to_string();
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
        let arguments = [
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
        .map(str::to_owned);
        let (output, errors) = self.programs.run(&self.namespaces[item.from], &arguments)?;
        Ok(parse::iperf(&output, &errors))
    }
}

/// Returns the measurement of an item that failed.
fn failed(error: std::io::Error) -> TrafficMeasurement {
    TrafficMeasurement { problem: Some(error.to_string()), ..TrafficMeasurement::default() }
}
