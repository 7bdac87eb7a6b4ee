//! Runs a lab from start to end.
use crate::certificate::{self, Certificate, DeviceLatenessSummary, LinkLatenessSummary};
use crate::dilate::Dilation;
use crate::host::StackHost;
use crate::host::host_threads::HostThreads;
use crate::load_monitor::{LoadMonitor, MeasuredLoad};
use crate::measured::TrafficMeasurement;
use crate::netns::programs::ProgramRegistry;
use crate::network::{LabNetwork, LinkEndId, MEMORY_FRAMES, SwitchPorts, port_drops, random_stream_id, shaped};
use crate::result::{DropCount, LabHostKind, LabMachineInfo, LabResult, LabSetup, TrafficResult};
use crate::streams::{self, SparePortPeers};
use crate::{CancelHandle, LabError, NeighbourResolution, check, files, netns};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use weir_port::link::LinkControl;
use weir_port::memory;
use weir_scenario::{Scenario, TrafficExpectation, TrafficItem, TrafficKind};
use weir_switch::SwitchHandle;
use weir_units::{Clock, Instant, SystemClock};

/// Longest time for switches to come under control, and addition for each switch.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);
const CONTROL_TIMEOUT_EACH: Duration = Duration::from_millis(50);
/// Polling interval for conditions that cannot be waited for.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Time between two reports of progress.
pub(crate) const TELL_EVERY: Duration = Duration::from_millis(100);
/// Time to wait for traffic after its expected end. Hosts end their items by themselves before that.
const GRACE: Duration = Duration::from_secs(10);
/// Longest time to wait, after all traffic is over, for switches that still move frames. Frames of other origin may
/// never end.
const SETTLE: Duration = Duration::from_secs(2);

/// Options for running a scenario.
#[derive(Debug, Clone, Default)]
pub struct LabOptions {
    /// True if hosts are network namespaces instead of stacks in this process.
    pub netns: bool,
    /// True to emulate: hosts are network namespaces, links can be changed during the run, switches listen for tools,
    /// and the result has a certificate.
    pub emulate: bool,
    /// Factor by which everything is slower than the scenario says; used with `emulate`.
    pub dilation: Dilation,
    /// How hosts find each other's Ethernet addresses; used with `emulate`. Without it they always ask.
    pub neighbours: NeighbourResolution,
    /// Handle that stops the run early.
    pub cancel: CancelHandle,
}

/// Progress of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum LabProgress {
    /// Current step, before and after traffic.
    Step(&'static str),
    /// The scenario's traffic runs.
    Traffic {
        /// Items that have finished.
        done: usize,
        /// Number of all items.
        items: usize,
        /// Time since traffic began.
        elapsed: Duration,
        /// Expected length of the traffic.
        expected: Duration,
    },
    /// Hosts ping each other.
    Pings {
        /// Pings that were answered or timed out.
        done: usize,
        /// Number of all pings.
        pings: usize,
        /// Time since the pings began.
        elapsed: Duration,
    },
}

/// Runs a scenario. Calls `progress` about ten times a second. On return nothing of the lab is left: no thread,
/// process, interface or namespace.
///
/// # Errors
/// The lab could not be set up. Traffic that fails is no error but a result that did not pass.
pub fn run(
    scenario: &Scenario,
    options: &LabOptions,
    progress: &mut dyn FnMut(LabProgress),
) -> Result<LabResult, LabError> {
    let mut lab = Lab::start(scenario, options, progress)?;
    lab.traffic(&options.cancel, progress)?;
    progress(LabProgress::Step("cleaning up"));
    lab.finish()
}

/// Hosts of either kind.
enum LabHosts {
    Memory(HostThreads),
    Netns(netns::NamespaceHosts),
}

/// Lab that is set up. When it is dropped for any reason, its parts are taken down in the order of these fields.
pub struct Lab {
    scenario: Arc<Scenario>,
    clock: SystemClock,
    dilation: Dilation,
    network: LabNetwork,
    hosts: LabHosts,
    /// Sender of streams, until it is used.
    rig: Option<SparePortPeers>,
    streams: Option<streams::RunningStreams>,
    done: Sender<usize>,
    finished: Receiver<usize>,
    /// State of the last run of traffic.
    ran: TrafficRunState,
    /// Measurements of the last run's items so far.
    measured: Vec<TrafficMeasurement>,
    counted: Vec<streams::LabStreamCounters>,
    /// Watch of the machine and its start time, if times are certified.
    watch: Option<(LoadMonitor, Instant)>,
    started: LabStartup,
}

/// State of a run of traffic.
#[derive(Debug, Clone, Default)]
struct TrafficRunState {
    elapsed: Duration,
    /// True for each finished item. All streams together are one more item at the end.
    through: Vec<bool>,
    /// True if the run was cancelled before all items had finished.
    is_cut_short: bool,
}

impl Lab {
    /// Makes hosts, switches and links, and waits until all switches are under control.
    ///
    /// # Errors
    /// The lab could not be set up; nothing of it is left.
    pub fn start(
        scenario: &Scenario,
        options: &LabOptions,
        progress: &mut dyn FnMut(LabProgress),
    ) -> Result<Lab, LabError> {
        check::check(scenario, options)?;
        let mut scenario = scenario.clone();
        options.dilation.slow(&mut scenario)?;
        files::allow(&scenario)?;
        let scenario = Arc::new(scenario);
        progress(LabProgress::Step("making hosts"));
        let clock = SystemClock::start();
        let (done, finished) = unbounded();
        let mut started = LabStartup::default();
        let (hosts, ports) = if options.netns || options.emulate {
            started.neighbours_known = options.emulate && options.neighbours.are_known(&scenario.hosts);
            let (hosts, ports) = netns::NamespaceHosts::make(&scenario, options.emulate, started.neighbours_known)?;
            (LabHosts::Netns(hosts), ports)
        } else {
            let (hosts, ports) = memory_hosts(&scenario)?;
            let engines =
                HostThreads::start(hosts, clock, &done).map_err(LabError::system("start threads of hosts"))?;
            (LabHosts::Memory(engines), ports)
        };
        started.hosts = clock.now() - Instant::ZERO;
        progress(LabProgress::Step("starting switches"));
        let (spare, rig) = streams::ports(&scenario)?;
        let folder = match &hosts {
            LabHosts::Netns(hosts) if options.emulate => Some(hosts.folder()),
            _ => None,
        };
        let network = LabNetwork::start(&scenario, ports, spare, folder)?;
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
            ran: TrafficRunState::default(),
            measured: Vec::new(),
            counted: Vec::new(),
            watch: None,
            started,
        };
        lab.await_network(&options.cancel)?;
        lab.started.control = clock.now() - Instant::ZERO - lab.started.hosts - lab.started.switches;
        if options.emulate {
            lab.watch = Some((LoadMonitor::start()?, clock.now()));
        }
        Ok(lab)
    }

    fn await_network(&self, cancel: &CancelHandle) -> Result<(), LabError> {
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

    /// Runs the scenario's traffic until it has finished or `cancel` is cancelled. [`Lab::report`] returns the
    /// results. Streams are sent only the first time.
    ///
    /// # Errors
    /// The system has no thread left, or a switch has ended.
    pub fn traffic(&mut self, cancel: &CancelHandle, progress: &mut dyn FnMut(LabProgress)) -> Result<(), LabError> {
        let begin = self.clock.now();
        let streams = self.scenario.traffic.len();
        self.measured = vec![TrafficMeasurement::default(); streams];
        let rig = self.rig.take().filter(|_| !self.scenario.streams.is_empty());
        let mut through = vec![false; streams + usize::from(rig.is_some())];
        if cancel.is_cancelled() {
            self.ran = TrafficRunState { elapsed: Duration::ZERO, is_cut_short: through.contains(&false), through };
            return Ok(());
        }
        if let Some(rig) = rig {
            let done = self.done.clone();
            // Fails if the receiver is gone because the lab is ending.
            let tell = move || _ = done.send(streams);
            self.streams = Some(rig.begin(&self.scenario, self.clock, begin, tell)?);
        }
        match &mut self.hosts {
            LabHosts::Memory(engines) => engines.begin(&self.scenario, begin),
            LabHosts::Netns(hosts) => {
                hosts.forget_programs();
                // Discards reports of a previous run.
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
            progress(LabProgress::Traffic { done, items: through.len(), elapsed, expected });
        }
        self.settle(cancel)?;
        let is_cut_short = through.contains(&false) && cancel.is_cancelled();
        self.ran = TrafficRunState { elapsed: self.clock.now() - begin, through, is_cut_short };
        Ok(())
    }

    /// Waits until packets under way have arrived or are dropped. Waits as long as links and queues may keep them,
    /// and repeats this while switches still move frames, [`SETTLE`] longer at most. The repetition is needed because
    /// a busy machine may hold a switch's thread up for longer than any queue.
    ///
    /// # Errors
    /// A switch has ended.
    fn settle(&self, cancel: &CancelHandle) -> Result<(), LabError> {
        let under_way = self.scenario.max_drain_time().min(GRACE);
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

    /// Returns the results of the last run of traffic and the current state of the network. Ends traffic that still
    /// runs. Hosts in this process cannot run traffic afterwards.
    ///
    /// # Errors
    /// A switch has ended.
    pub fn report(&mut self) -> Result<LabResult, LabError> {
        let (switches, mut drops) = self.network.snapshot()?;
        if let Some(mut running) = self.streams.take() {
            self.counted = running.stop();
        }
        let mode = match &mut self.hosts {
            LabHosts::Memory(engines) => {
                take_memory(engines, &self.scenario, &mut self.measured, &mut drops);
                LabHostKind::Memory
            }
            LabHosts::Netns(hosts) => {
                hosts.stop().into_iter().for_each(|(item, end)| self.measured[item].merge(end));
                LabHostKind::Netns
            }
        };
        let (scenario, ran) = (&self.scenario, &self.ran);
        let item = |((item, measured), through): ((&TrafficItem, &TrafficMeasurement), &bool)| {
            traffic_result(scenario, item, measured.clone(), *through)
        };
        // Empty if no traffic has run yet.
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

    /// Takes the lab down. Returns what [`Lab::report`] returns, with the controller's counters up to the end.
    ///
    /// # Errors
    /// A switch has ended.
    pub fn finish(mut self) -> Result<LabResult, LabError> {
        let mut result = self.report()?;
        // Stops switches before the interfaces of their ports are removed.
        result.controller = self.network.stop();
        Ok(result)
    }

    /// Returns a certificate of the times measured until now.
    ///
    /// # Errors
    /// A switch has ended.
    pub fn certificate(&self) -> Result<Certificate, LabError> {
        let (taken, begun) = self
            .watch
            .as_ref()
            .map_or((MeasuredLoad::default(), Instant::ZERO), |(watch, begun)| (watch.taken(), *begun));
        let controls = self.network.controls().iter().flatten().chain(self.access_controls());
        let counts = controls.flat_map(|control| control.lateness().counts());
        let links = LinkLatenessSummary::of(counts, self.dilation);
        let devices = DeviceLatenessSummary::of(&self.network.lateness()?, self.dilation);
        Ok(certificate::judge(links, devices, &taken, self.clock.now() - begun, self.dilation))
    }

    /// Returns how long starting took.
    pub fn started(&self) -> LabStartup {
        self.started
    }
}

/// Access for the prompt.
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

    /// Returns the controls of links between switches, for both ends.
    pub(crate) fn link_controls(&self) -> &[[LinkControl; 2]] {
        self.network.controls()
    }

    /// Returns the controls of hosts' links.
    pub(crate) fn access_controls(&self) -> &[LinkControl] {
        self.netns().map_or(&[], netns::NamespaceHosts::controls)
    }

    pub(crate) fn namespaces(&self) -> &[String] {
        self.netns().map_or(&[], netns::NamespaceHosts::namespaces)
    }

    pub(crate) fn namespace(&self, host: usize) -> &str {
        &self.namespaces()[host]
    }

    /// Returns the registry of programs that run in hosts, ready for new ones; `None` for hosts in this process.
    pub(crate) fn programs(&mut self) -> Option<&ProgramRegistry> {
        match &mut self.hosts {
            LabHosts::Netns(hosts) => {
                hosts.forget_programs();
                Some(hosts.programs())
            }
            LabHosts::Memory(_) => None,
        }
    }

    /// Returns the folder of the lab's sockets.
    pub(crate) fn folder(&self) -> &Path {
        self.netns().map_or(Path::new(""), netns::NamespaceHosts::folder)
    }

    fn netns(&self) -> Option<&netns::NamespaceHosts> {
        match &self.hosts {
            LabHosts::Netns(hosts) => Some(hosts),
            LabHosts::Memory(_) => None,
        }
    }
}

/// Times that starting a lab took, and a choice made then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabStartup {
    /// Time to make hosts and their links.
    pub hosts: Duration,
    /// Time to start switches and the controller.
    pub switches: Duration,
    /// Time until all links were up and all switches under control.
    pub control: Duration,
    /// True if hosts know each other's Ethernet addresses from the start.
    pub neighbours_known: bool,
}

impl LabStartup {
    /// Returns the sum of the times.
    pub fn sum(&self) -> Duration {
        self.hosts + self.switches + self.control
    }
}

/// Returns how long a scenario's traffic takes.
fn expected(scenario: &Scenario) -> Duration {
    let items = scenario.traffic.iter().map(|item| item.start + length(item));
    let streams = scenario.streams.first().map(|_| scenario.simulate.warm_up + scenario.simulate.duration);
    items.chain(streams).max().unwrap_or_default()
}

/// Returns how long an item of traffic takes, from its start.
pub fn length(item: &TrafficItem) -> Duration {
    match item.kind {
        TrafficKind::Ping { count, interval } => interval.saturating_mul(count),
        TrafficKind::Tcp { duration } | TrafficKind::Udp { duration, .. } => duration,
    }
}

/// Makes hosts on memory ports. Returns them with the switches' ends of the ports.
fn memory_hosts(scenario: &Scenario) -> Result<(Vec<StackHost>, SwitchPorts), LabError> {
    let mut hosts = Vec::new();
    let mut ports = Vec::new();
    for (number, host) in scenario.hosts.iter().enumerate() {
        let (near, far) = memory::pair(MEMORY_FRAMES).map_err(LabError::system("make a memory port"))?;
        ports.push(shaped(near.named(&host.name), &host.link, random_stream_id(scenario, LinkEndId::ToHost(number))));
        let port = shaped(
            far.named(&format!("{}-eth0", host.name)),
            &host.link,
            random_stream_id(scenario, LinkEndId::OfHost(number)),
        );
        hosts.push(StackHost::new(port, host.mac, &host.ip, scenario.seed.wrapping_add(number as u64)));
    }
    Ok((hosts, ports))
}

/// Ends the hosts and takes over their measurements and drops.
fn take_memory(
    engines: &mut HostThreads,
    scenario: &Scenario,
    measured: &mut [TrafficMeasurement],
    drops: &mut Vec<DropCount>,
) {
    for (host, finished) in engines.stop() {
        let place = &scenario.hosts[host].name;
        port_drops(place, &finished.counters, drops);
        if finished.unresolved > 0 {
            let reason = "no answer to ARP or neighbour discovery".to_owned();
            drops.push(DropCount { place: place.clone(), reason, packets: finished.unresolved });
        }
        finished.measured.into_iter().for_each(|(item, end)| measured[item].merge(end));
    }
}

fn setup(scenario: &Scenario, mode: LabHostKind, elapsed: Duration) -> LabSetup {
    LabSetup {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        mode,
        version: env!("CARGO_PKG_VERSION"),
        release_build: !cfg!(debug_assertions),
        machine: LabMachineInfo::this(),
        duration_s: elapsed.as_secs_f64(),
    }
}

/// Returns the result of an item of traffic. `measured` are its ends' measurements; `through` is true if the item
/// finished.
pub fn traffic_result(
    scenario: &Scenario,
    item: &TrafficItem,
    measured: TrafficMeasurement,
    through: bool,
) -> TrafficResult {
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
        ok: reached == (item.expect == TrafficExpectation::Reach),
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
