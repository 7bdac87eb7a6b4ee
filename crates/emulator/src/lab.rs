//! A run from its start to its end.
use crate::host::Host;
use crate::host::engine::Engines;
use crate::measured::Measured;
use crate::network::{At, MEMORY_FRAMES, Network, SwitchPorts, dice, port_drops, shaped};
use crate::result::{Drop, LabResult, Machine, Mode, Setup, TrafficResult};
use crate::streams::{self, Rig};
use crate::{Cancel, LabError, check, netns};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::Arc;
use std::time::Duration;
use weir_port::memory;
use weir_scenario::{Expect, Scenario, Traffic, TrafficKind};
use weir_units::{Clock, SystemClock};

/// How long switches may take to come under control.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);
/// How often something is looked at that cannot be waited for.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// How long after its expected end traffic is waited for: hosts end their items by themselves before that.
const GRACE: Duration = Duration::from_secs(10);

/// How a scenario is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Hosts are network namespaces instead of stacks in this process.
    pub netns: bool,
    /// Stops the run early.
    pub cancel: Cancel,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// What is being done, before and after traffic.
    Step(&'static str),
    /// Traffic runs.
    Traffic {
        /// Items that are through.
        done: usize,
        /// All items.
        items: usize,
        /// Time since traffic began.
        elapsed: Duration,
        /// Time it will take.
        expected: Duration,
    },
}

/// Runs a scenario. `progress` is told how far it is, about ten times a second. When this returns, nothing of the lab is
/// left: no thread, process, interface or namespace.
///
/// # Errors
/// The lab could not be set up. Traffic that fails is no error but a result that did not pass.
pub fn run(scenario: &Scenario, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<LabResult, LabError> {
    check::check(scenario, options)?;
    progress(Progress::Step("making hosts"));
    let clock = SystemClock::start();
    let (done, finished) = unbounded();
    let scenario = Arc::new(scenario.clone());
    let (hosts, ports) = if options.netns {
        let (hosts, ports) = netns::Hosts::make(&scenario)?;
        (AnyHosts::Netns(hosts), ports)
    } else {
        let (hosts, ports) = memory_hosts(&scenario)?;
        (
            AnyHosts::Memory(Engines::start(hosts, clock, &done).map_err(LabError::system("start threads of hosts"))?),
            ports,
        )
    };
    progress(Progress::Step("starting switches"));
    let (spare, rig) = streams::ports(&scenario)?;
    let network = Network::start(&scenario, ports, spare)?;
    let cancel = options.cancel.clone();
    let mut lab = Lab { scenario, clock, cancel, network, hosts, streams: None, done, finished };
    lab.await_network()?;
    let (elapsed, through) = lab.traffic(rig, progress)?;
    progress(Progress::Step("cleaning up"));
    lab.finish(elapsed, &through)
}

/// Hosts of one of the two kinds.
enum AnyHosts {
    Memory(Engines),
    Netns(netns::Hosts),
}

/// A lab that is set up. Its parts are taken down in this order.
struct Lab {
    scenario: Arc<Scenario>,
    clock: SystemClock,
    cancel: Cancel,
    network: Network,
    hosts: AnyHosts,
    streams: Option<streams::Running>,
    done: Sender<usize>,
    finished: Receiver<usize>,
}

impl Lab {
    fn await_network(&self) -> Result<(), LabError> {
        let deadline = self.clock.now() + CONTROL_TIMEOUT;
        while !self.network.is_ready(&self.scenario)? && !self.cancel.wait(LOOK_EVERY) {
            if self.clock.now() >= deadline {
                return Err(LabError::NotReady(CONTROL_TIMEOUT));
            }
        }
        Ok(())
    }

    /// Runs the traffic; how long it took, and which items are through: all streams together are one behind the others.
    fn traffic(&mut self, rig: Rig, progress: &mut dyn FnMut(Progress)) -> Result<(Duration, Vec<bool>), LabError> {
        let begin = self.clock.now();
        let streams = self.scenario.traffic.len();
        let mut through = vec![false; streams + usize::from(!self.scenario.streams.is_empty())];
        if self.cancel.is_cancelled() {
            return Ok((Duration::ZERO, through));
        }
        if through.len() > streams {
            let done = self.done.clone();
            // Nobody listens any more: the lab is ending.
            let tell = move || _ = done.send(streams);
            self.streams = Some(rig.begin(&self.scenario, self.clock, begin, tell)?);
        }
        match &mut self.hosts {
            AnyHosts::Memory(engines) => engines.begin(&self.scenario, begin),
            AnyHosts::Netns(hosts) => hosts.begin(&self.scenario, &self.cancel, &self.done),
        }
        let expected = expected(&self.scenario);
        while through.contains(&false) && !self.cancel.is_cancelled() && self.clock.now() < begin + expected + GRACE {
            if let Some(item) = self.cancel.receive(&self.finished, TELL_EVERY) {
                through[item] = true;
            }
            let done = through.iter().filter(|done| **done).count();
            let elapsed = self.clock.now() - begin;
            progress(Progress::Traffic { done, items: through.len(), elapsed, expected });
        }
        self.cancel.wait(self.scenario.under_way().min(GRACE));
        Ok((self.clock.now() - begin, through))
    }

    fn finish(mut self, elapsed: Duration, through: &[bool]) -> Result<LabResult, LabError> {
        let (switches, mut drops) = self.network.snapshot()?;
        let streams = self.streams.as_mut().map(streams::Running::stop).unwrap_or_default();
        let mut measured: Vec<Measured> = self.scenario.traffic.iter().map(|_| Measured::default()).collect();
        let mode = match &mut self.hosts {
            AnyHosts::Memory(engines) => {
                take_memory(engines, &self.scenario, &mut measured, &mut drops);
                Mode::Memory
            }
            AnyHosts::Netns(hosts) => {
                hosts.stop().into_iter().for_each(|(item, end)| measured[item].merge(end));
                Mode::Netns
            }
        };
        // Switches stop before the interfaces of their ports are removed.
        let controller = self.network.stop();
        drop(self.hosts);
        let scenario = &self.scenario;
        let item = |((item, measured), through): ((&Traffic, Measured), &bool)| {
            traffic_result(scenario, item, measured, *through)
        };
        let traffic: Vec<TrafficResult> = scenario.traffic.iter().zip(measured).zip(through).map(item).collect();
        let partial = through.contains(&false) && self.cancel.is_cancelled();
        Ok(LabResult {
            passed: !partial && traffic.iter().all(|item| item.ok),
            partial,
            setup: setup(scenario, mode, elapsed),
            traffic,
            streams: streams::results(scenario, &streams),
            switches,
            controller,
            drops,
        })
    }
}

/// How long a scenario's traffic takes.
fn expected(scenario: &Scenario) -> Duration {
    let items = scenario.traffic.iter().map(|item| item.start + length(item));
    let streams = scenario.streams.first().map(|_| scenario.simulate.warm_up + scenario.simulate.duration);
    items.chain(streams).max().unwrap_or_default()
}

/// How long an item of traffic takes, from its start.
pub fn length(item: &Traffic) -> Duration {
    match item.kind {
        TrafficKind::Ping { count, interval } => interval.saturating_mul(count),
        TrafficKind::Tcp { duration } | TrafficKind::Udp { duration, .. } => duration,
    }
}

/// Hosts on memory ports, and the switches' ends of these.
fn memory_hosts(scenario: &Scenario) -> Result<(Vec<Host>, SwitchPorts), LabError> {
    let mut hosts = Vec::new();
    let mut ports = Vec::new();
    for (number, host) in scenario.hosts.iter().enumerate() {
        let (near, far) = memory::pair(MEMORY_FRAMES).map_err(LabError::system("make a memory port"))?;
        ports.push(shaped(near.named(&host.name), &host.link, dice(scenario, At::ToHost(number))));
        let port = shaped(far.named(&format!("{}-eth0", host.name)), &host.link, dice(scenario, At::OfHost(number)));
        hosts.push(Host::new(port, host.mac, &host.ip, scenario.seed.wrapping_add(number as u64)));
    }
    Ok((hosts, ports))
}

/// Ends the hosts and takes over what they measured and dropped.
fn take_memory(engines: &mut Engines, scenario: &Scenario, measured: &mut [Measured], drops: &mut Vec<Drop>) {
    for (host, finished) in engines.stop() {
        let place = &scenario.hosts[host].name;
        port_drops(place, &finished.counters, drops);
        if finished.unresolved > 0 {
            let reason = "no answer to ARP or neighbour discovery".to_owned();
            drops.push(Drop { place: place.clone(), reason, packets: finished.unresolved });
        }
        finished.measured.into_iter().for_each(|(item, end)| measured[item].merge(end));
    }
}

fn setup(scenario: &Scenario, mode: Mode, elapsed: Duration) -> Setup {
    Setup {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        mode,
        version: env!("CARGO_PKG_VERSION"),
        release_build: !cfg!(debug_assertions),
        machine: Machine::this(),
        duration_s: elapsed.as_secs_f64(),
    }
}

/// What became of an item of traffic, from what its ends measured, and whether it was through.
pub fn traffic_result(scenario: &Scenario, item: &Traffic, measured: Measured, through: bool) -> TrafficResult {
    let reached = measured.received > 0;
    let tcp = matches!(item.kind, TrafficKind::Tcp { .. });
    let ping = matches!(item.kind, TrafficKind::Ping { .. });
    let packets = |count: u64| (!tcp).then_some(count);
    let lost = measured.sent.saturating_sub(measured.received);
    let seconds = measured.span.as_secs_f64();
    let delays = measured.delays.summary();
    let after_first = measured.after_first.summary();
    TrafficResult {
        kind: if tcp {
            "tcp"
        } else if ping {
            "ping"
        } else {
            "udp"
        },
        from: scenario.hosts[item.from].name.clone(),
        to: scenario.hosts[item.to].name.clone(),
        address: item.address,
        expect: item.expect,
        reached,
        ok: reached == (item.expect == Expect::Reach),
        partial: !through,
        asked: packets(measured.asked),
        sent: packets(measured.sent),
        received: measured.received,
        loss: packets(measured.sent).filter(|sent| *sent > 0).map(|sent| lost as f64 / sent as f64),
        rtt: delays.filter(|_| ping),
        rtt_after_first: after_first,
        delay: delays.filter(|_| !ping),
        quantiles_us: if after_first.is_some() { &measured.after_first } else { &measured.delays }.quantiles_us(),
        goodput_bps: (!ping && seconds > 0.0).then(|| measured.payload_bytes as f64 * 8.0 / seconds),
        problem: measured.problem,
    }
}
