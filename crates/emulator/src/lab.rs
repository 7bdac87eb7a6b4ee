//! A run from its start to its end.
use crate::certificate::{self, Certificate, Late, LateDevices};
use crate::dilate::Dilation;
use crate::host::Host;
use crate::host::engine::Engines;
use crate::measured::Measured;
use crate::netns::programs::Programs;
use crate::network::{At, MEMORY_FRAMES, Network, SwitchPorts, dice, port_drops, shaped};
use crate::result::{Drop, LabResult, Machine, Mode, Setup, TrafficResult};
use crate::streams::{self, Rig};
use crate::watch::{Taken, Watch};
use crate::{Cancel, LabError, Neighbours, check, files, netns};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use weir_port::memory;
use weir_port::shaper::LinkControl;
use weir_scenario::{Expect, Scenario, Traffic, TrafficKind};
use weir_switch::SwitchHandle;
use weir_units::{Clock, Instant, SystemClock};

/// How long switches may take to come under control, and for each of them.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);
const CONTROL_TIMEOUT_EACH: Duration = Duration::from_millis(50);
/// How often something is looked at that cannot be waited for.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How often progress is told.
pub(crate) const TELL_EVERY: Duration = Duration::from_millis(100);
/// How long after its expected end traffic is waited for: hosts end their items by themselves before that.
const GRACE: Duration = Duration::from_secs(10);
/// Longest time for which switches that still move frames are waited for once all traffic is over; others than the
/// traffic's may never end.
const SETTLE: Duration = Duration::from_secs(2);

/// How a scenario is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Hosts are network namespaces instead of stacks in this process.
    pub netns: bool,
    /// Hosts are network namespaces, links can be changed while they are used, switches listen for tools, and the result has a certificate.
    pub emulate: bool,
    /// How many times slower than the scenario says everything is, with `emulate`.
    pub dilation: Dilation,
    /// How hosts find each other's Ethernet addresses, with `emulate`; otherwise they ask.
    pub neighbours: Neighbours,
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
    /// Hosts ping each other.
    Pings {
        /// Pings that were answered or given up.
        done: usize,
        /// All pings.
        pings: usize,
        /// Time since they began.
        elapsed: Duration,
    },
}

/// Runs a scenario. `progress` is told how far it is, about ten times a second. When this returns, nothing of the lab is
/// left: no thread, process, interface or namespace.
///
/// # Errors
/// The lab could not be set up. Traffic that fails is no error but a result that did not pass.
pub fn run(scenario: &Scenario, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<LabResult, LabError> {
    let mut lab = Lab::start(scenario, options, progress)?;
    lab.traffic(&options.cancel, progress)?;
    progress(Progress::Step("cleaning up"));
    lab.finish()
}

/// Hosts of one of the two kinds.
enum AnyHosts {
    Memory(Engines),
    Netns(netns::Hosts),
}

/// A lab that is set up. Its parts are taken down in this order when it is dropped, whatever the reason.
pub struct Lab {
    scenario: Arc<Scenario>,
    clock: SystemClock,
    dilation: Dilation,
    network: Network,
    hosts: AnyHosts,
    /// What sends streams, until it was used.
    rig: Option<Rig>,
    streams: Option<streams::Running>,
    done: Sender<usize>,
    finished: Receiver<usize>,
    /// What traffic there was.
    ran: Ran,
    /// What was measured of it so far.
    measured: Vec<Measured>,
    counted: Vec<streams::Counted>,
    /// With when it began, if times are certified.
    watch: Option<(Watch, Instant)>,
    started: Started,
}

/// How traffic ran.
#[derive(Debug, Clone, Default)]
struct Ran {
    elapsed: Duration,
    /// Which items are through: all streams together are one behind the others.
    through: Vec<bool>,
    /// It was ended early.
    is_cut_short: bool,
}

impl Lab {
    /// Makes hosts, switches and links, and waits until all is under control.
    ///
    /// # Errors
    /// The lab could not be set up; nothing of it is left.
    pub fn start(scenario: &Scenario, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Lab, LabError> {
        check::check(scenario, options)?;
        let mut scenario = scenario.clone();
        options.dilation.slow(&mut scenario)?;
        files::allow(&scenario)?;
        let scenario = Arc::new(scenario);
        progress(Progress::Step("making hosts"));
        let clock = SystemClock::start();
        let (done, finished) = unbounded();
        let mut started = Started::default();
        let (hosts, ports) = if options.netns || options.emulate {
            started.neighbours_known = options.emulate && options.neighbours.are_known(&scenario.hosts);
            let (hosts, ports) = netns::Hosts::make(&scenario, options.emulate, started.neighbours_known)?;
            (AnyHosts::Netns(hosts), ports)
        } else {
            let (hosts, ports) = memory_hosts(&scenario)?;
            let engines = Engines::start(hosts, clock, &done).map_err(LabError::system("start threads of hosts"))?;
            (AnyHosts::Memory(engines), ports)
        };
        started.hosts = clock.now() - Instant::ZERO;
        progress(Progress::Step("starting switches"));
        let (spare, rig) = streams::ports(&scenario)?;
        let folder = match &hosts {
            AnyHosts::Netns(hosts) if options.emulate => Some(hosts.folder()),
            _ => None,
        };
        let network = Network::start(&scenario, ports, spare, folder)?;
        started.switches = clock.now() - Instant::ZERO - started.hosts;
        let mut lab = Lab {
            scenario,
            clock,
            dilation: options.dilation,
            network,
            hosts,
            rig: Some(rig),
            streams: None,
            done,
            finished,
            ran: Ran::default(),
            measured: Vec::new(),
            counted: Vec::new(),
            watch: None,
            started,
        };
        lab.await_network(&options.cancel)?;
        lab.started.control = clock.now() - Instant::ZERO - lab.started.hosts - lab.started.switches;
        if options.emulate {
            lab.watch = Some((Watch::start()?, clock.now()));
        }
        Ok(lab)
    }

    fn await_network(&self, cancel: &Cancel) -> Result<(), LabError> {
        let switches = u32::try_from(self.scenario.switches.len()).unwrap_or(u32::MAX);
        let patience = CONTROL_TIMEOUT + CONTROL_TIMEOUT_EACH * switches;
        let deadline = self.clock.now() + patience;
        while !self.network.is_ready(&self.scenario)? && !cancel.wait(LOOK_EVERY) {
            if self.clock.now() >= deadline {
                return Err(LabError::NotReady(patience));
            }
        }
        Ok(())
    }

    /// Runs the scenario's traffic, until it is through or `cancel` says so; [`Lab::report`] says what became of it. Streams are sent the first time.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn traffic(&mut self, cancel: &Cancel, progress: &mut dyn FnMut(Progress)) -> Result<(), LabError> {
        let begin = self.clock.now();
        let streams = self.scenario.traffic.len();
        self.measured = vec![Measured::default(); streams];
        let rig = self.rig.take().filter(|_| !self.scenario.streams.is_empty());
        let mut through = vec![false; streams + usize::from(rig.is_some())];
        if cancel.is_cancelled() {
            self.ran = Ran { elapsed: Duration::ZERO, is_cut_short: through.contains(&false), through };
            return Ok(());
        }
        if let Some(rig) = rig {
            let done = self.done.clone();
            // Nobody listens any more: the lab is ending.
            let tell = move || _ = done.send(streams);
            self.streams = Some(rig.begin(&self.scenario, self.clock, begin, tell)?);
        }
        match &mut self.hosts {
            AnyHosts::Memory(engines) => engines.begin(&self.scenario, begin),
            AnyHosts::Netns(hosts) => {
                hosts.forget_programs();
                // What a run before had to say.
                while self.finished.try_recv().is_ok() {}
                hosts.begin(&self.scenario, cancel, &self.done);
            }
        }
        let expected = expected(&self.scenario);
        while through.contains(&false) && !cancel.is_cancelled() && self.clock.now() < begin + expected + GRACE {
            if let Some(item) = cancel.receive(&self.finished, TELL_EVERY) {
                through[item] = true;
            }
            let done = through.iter().filter(|done| **done).count();
            let elapsed = self.clock.now() - begin;
            progress(Progress::Traffic { done, items: through.len(), elapsed, expected });
        }
        self.settle(cancel)?;
        let is_cut_short = through.contains(&false) && cancel.is_cancelled();
        self.ran = Ran { elapsed: self.clock.now() - begin, through, is_cut_short };
        Ok(())
    }

    /// Waits until packets that are under way have arrived or are dropped: as long as links and queues may keep them,
    /// and as long again while switches still moved frames meanwhile, [`SETTLE`] at most. A busy machine may keep a
    /// switch's thread from them for longer than any queue.
    ///
    /// # Errors
    /// A switch has ended.
    fn settle(&self, cancel: &Cancel) -> Result<(), LabError> {
        let under_way = self.scenario.under_way().min(GRACE);
        let latest = self.clock.now() + under_way + SETTLE;
        let mut before = self.network.frames()?;
        loop {
            cancel.wait(under_way);
            let now = self.network.frames()?;
            if now == before || cancel.is_cancelled() || self.clock.now() >= latest {
                return Ok(());
            }
            before = now;
        }
    }

    /// What became of the traffic that was run last, and how everything is now. Traffic that still runs is ended; of hosts in this process no more can
    /// be run afterwards.
    ///
    /// # Errors
    /// A switch has ended.
    pub fn report(&mut self) -> Result<LabResult, LabError> {
        let (switches, mut drops) = self.network.snapshot()?;
        if let Some(mut running) = self.streams.take() {
            self.counted = running.stop();
        }
        let mode = match &mut self.hosts {
            AnyHosts::Memory(engines) => {
                take_memory(engines, &self.scenario, &mut self.measured, &mut drops);
                Mode::Memory
            }
            AnyHosts::Netns(hosts) => {
                hosts.stop().into_iter().for_each(|(item, end)| self.measured[item].merge(end));
                Mode::Netns
            }
        };
        let (scenario, ran) = (&self.scenario, &self.ran);
        let item = |((item, measured), through): ((&Traffic, &Measured), &bool)| {
            traffic_result(scenario, item, measured.clone(), *through)
        };
        // Without any run yet there is nothing to tell.
        let traffic: Vec<TrafficResult> =
            scenario.traffic.iter().zip(&self.measured).zip(&ran.through).map(item).collect();
        let mut result = LabResult {
            passed: !ran.is_cut_short && traffic.iter().all(|item| item.ok),
            partial: ran.is_cut_short,
            setup: setup(scenario, mode, ran.elapsed),
            traffic,
            streams: streams::results(scenario, &self.counted),
            switches,
            controller: self.network.controller(),
            drops,
            certificate: None,
        };
        result.certificate = self.watch.is_some().then(|| self.certificate()).transpose()?;
        self.dilation.tell(&mut result);
        Ok(result)
    }

    /// Takes the lab down; as [`Lab::report`], with what was counted until the very end.
    ///
    /// # Errors
    /// A switch has ended.
    pub fn finish(mut self) -> Result<LabResult, LabError> {
        let mut result = self.report()?;
        // Switches stop before the interfaces of their ports are removed.
        result.controller = self.network.stop();
        Ok(result)
    }

    /// How far times can be trusted that were measured until now.
    ///
    /// # Errors
    /// A switch has ended.
    pub fn certificate(&self) -> Result<Certificate, LabError> {
        let (taken, begun) =
            self.watch.as_ref().map_or((Taken::default(), Instant::ZERO), |(watch, begun)| (watch.taken(), *begun));
        let controls = self.network.controls().iter().flatten().chain(self.access_controls());
        let counts = controls.flat_map(|control| control.lateness().counts());
        let links = Late::of(counts, self.dilation);
        let devices = LateDevices::of(&self.network.lateness()?, self.dilation);
        Ok(certificate::judge(links, devices, &taken, self.clock.now() - begun, self.dilation))
    }

    /// How long starting took.
    pub fn started(&self) -> Started {
        self.started
    }
}

/// What a prompt needs to know.
impl Lab {
    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub(crate) fn clock(&self) -> SystemClock {
        self.clock
    }

    pub(crate) fn dilation(&self) -> Dilation {
        self.dilation
    }

    pub(crate) fn switch(&self, index: usize) -> &SwitchHandle {
        self.network.switch(index)
    }

    /// Of links between switches, at both ends.
    pub(crate) fn link_controls(&self) -> &[[LinkControl; 2]] {
        self.network.controls()
    }

    /// Of links of hosts.
    pub(crate) fn access_controls(&self) -> &[LinkControl] {
        self.netns().map_or(&[], netns::Hosts::controls)
    }

    pub(crate) fn namespaces(&self) -> &[String] {
        self.netns().map_or(&[], netns::Hosts::namespaces)
    }

    pub(crate) fn namespace(&self, host: usize) -> &str {
        &self.namespaces()[host]
    }

    /// Programs that run in hosts, new ones being started.
    pub(crate) fn programs(&mut self) -> Option<&Programs> {
        match &mut self.hosts {
            AnyHosts::Netns(hosts) => {
                hosts.forget_programs();
                Some(hosts.programs())
            }
            AnyHosts::Memory(_) => None,
        }
    }

    /// Where the lab's sockets are.
    pub(crate) fn folder(&self) -> &Path {
        self.netns().map_or(Path::new(""), netns::Hosts::folder)
    }

    fn netns(&self) -> Option<&netns::Hosts> {
        match &self.hosts {
            AnyHosts::Netns(hosts) => Some(hosts),
            AnyHosts::Memory(_) => None,
        }
    }
}

/// How long starting a lab took, and what was decided then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Started {
    /// Making hosts and their links.
    pub hosts: Duration,
    /// Starting switches and the controller.
    pub switches: Duration,
    /// Waiting until all links are up and all switches under control.
    pub control: Duration,
    /// Hosts know each other's Ethernet addresses from the start.
    pub neighbours_known: bool,
}

impl Started {
    /// All together.
    pub fn sum(&self) -> Duration {
        self.hosts + self.switches + self.control
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
