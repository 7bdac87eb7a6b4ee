//! Runs a lab from start to end.
use crate::dilate::Dilation;
use crate::fidelity::{self, LabEvidence, SlowingWay};
use crate::host_threads::HostThreads;
use crate::load_monitor::{LoadMonitor, MeasuredLoad};
use crate::netns::programs::ProgramRegistry;
use crate::network::LabNetwork;
use crate::streams::RunningStreams;
use crate::{CancelHandle, LabError, NeighbourResolution, check, files, netns};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use weir_network::TrafficMeasurement;
use weir_network::certificate::Certificate;
use weir_network::controller::{time_to_find_links, times_for_intents};
use weir_network::result::{DropCount, LabHostKind, LabResult, LabSetup, TrafficResult};
use weir_network::streams::{self, SparePortPeers, StreamCounters};
use weir_network::traffic::{length, traffic_result};
use weir_network::{LabProgress, NetworkError, VirtualSwitchApps, intents, memory_hosts, promises};
use weir_port::link::LinkControl;
use weir_scenario::{Scenario, TrafficItem};
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
    /// True to certify how far times can be trusted. Emulations always are.
    pub certify: bool,
    /// Factor by which everything is slower than the scenario says; used with `emulate`.
    pub dilation: Dilation,
    /// How hosts find each other's Ethernet addresses; used with `emulate`. Without it they always ask.
    pub neighbours: NeighbourResolution,
    /// Applications of virtual switches; by default those that the scenario names.
    pub apps: VirtualSwitchApps,
    /// Handle that stops the run early.
    pub cancel: CancelHandle,
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
    /// True if the lab is an emulation, which can be slowed down.
    is_emulation: bool,
    network: LabNetwork,
    hosts: LabHosts,
    /// Sender of streams, until it is used.
    rig: Option<SparePortPeers>,
    streams: Option<RunningStreams>,
    done: Sender<usize>,
    finished: Receiver<usize>,
    /// State of the last run of traffic.
    ran: TrafficRunState,
    /// Measurements of the last run's items so far.
    measured: Vec<TrafficMeasurement>,
    counted: Vec<StreamCounters>,
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
            let (hosts, ports) = memory_hosts(&scenario, None)?;
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
        let network = LabNetwork::start(&scenario, &options.apps, ports, spare, folder, options.certify)?;
        started.switches = clock.now() - Instant::ZERO - started.hosts;
        let mut lab = Lab {
            scenario,
            clock,
            dilation: options.dilation,
            is_emulation: options.emulate,
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
        if options.emulate || options.certify {
            lab.watch = Some((LoadMonitor::start(clock)?, clock.now()));
        }
        Ok(lab)
    }

    fn await_network(&self, cancel: &CancelHandle) -> Result<(), LabError> {
        let switches = u32::try_from(self.scenario.switches.len()).unwrap_or(u32::MAX);
        let patience = CONTROL_TIMEOUT + CONTROL_TIMEOUT_EACH * switches;
        let deadline = self.clock.now() + patience;
        while !self.network.is_ready(&self.scenario)? && !cancel.wait(LOOK_EVERY) {
            if self.clock.now() >= deadline {
                return Err(NetworkError::NotReady(patience).into());
            }
        }
        cancel.wait(time_to_find_links(&self.scenario));
        if let Some([find_hosts, carry_out]) = times_for_intents(&self.scenario) {
            if let LabHosts::Memory(hosts) = &self.hosts {
                hosts.announce();
            }
            cancel.wait(find_hosts);
            intents::submit(&self.scenario, |request| self.network.command(request))?;
            cancel.wait(carry_out);
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
            self.streams = Some(RunningStreams::begin(rig, &self.scenario, self.clock, begin, tell)?);
        }
        match &mut self.hosts {
            LabHosts::Memory(engines) => engines.begin(&self.scenario, begin),
            LabHosts::Netns(hosts) => {
                hosts.forget_programs();
                // Discards reports of a previous run.
                while self.finished.try_recv().is_ok() {}
                hosts.begin(&self.scenario, (self.clock, begin), cancel, &self.done);
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
        // Before threads end, because those that have ended no longer count.
        let load = self.watch.as_ref().map(|(watch, _)| watch.taken());
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
        let stops = load.as_ref().map(|load| &load.stops);
        let item = |((item, measured), through): ((&TrafficItem, &TrafficMeasurement), &bool)| {
            traffic_result(scenario, item, measured.clone(), *through, stops)
        };
        // Empty if no traffic has run yet.
        let traffic: Vec<TrafficResult> =
            scenario.traffic.iter().zip(&self.measured).zip(&ran.through).map(item).collect();
        let intents = intents::results(scenario, &traffic, |request| self.network.command(request));
        let promises = promises::results(scenario, &traffic, &drops);
        let mut result = LabResult {
            passed: !ran.is_cut_short && traffic.iter().all(|item| item.ok),
            partial: ran.is_cut_short,
            setup: LabSetup::new(scenario, mode, ran.elapsed),
            traffic,
            streams: streams::results(scenario, &self.counted),
            switches,
            virtual_switches: self.network.virtual_switches()?,
            controller: self.network.controller(),
            external_controller: None,
            virtual_external_controllers: Vec::new(),
            intents,
            promises,
            drops,
            certificate: None,
        };
        if let Some(load) = &load {
            let evidence = LabEvidence {
                senders: fidelity::of_senders(&result.traffic, &result.streams, self.dilation),
                overflows: fidelity::of_overflows(scenario, &result.switches, &result.drops),
                flows: fidelity::of_flows(scenario, &result.traffic, &result.drops, self.dilation),
                ..self.evidence()?
            };
            result.certificate = Some(self.certify(evidence, load));
        }
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
        let load = self.watch.as_ref().map_or_else(MeasuredLoad::default, |(watch, _)| watch.taken());
        Ok(self.certify(self.evidence()?, &load))
    }

    /// Returns the latenesses of links and switches until now.
    fn evidence(&self) -> Result<LabEvidence, LabError> {
        let links = self.network.controls().iter().flatten().chain(self.network.measured_links());
        Ok(LabEvidence {
            links: fidelity::of_links(links.chain(self.access_controls()), self.dilation),
            devices: fidelity::of_devices(&self.network.lateness()?, self.dilation),
            switches: self.scenario.switches.len(),
            way: match (self.scenario.streams.is_empty(), self.is_emulation) {
                (false, _) => SlowingWay::None,
                (true, true) => SlowingWay::Option,
                (true, false) => SlowingWay::Emulation,
            },
            ..LabEvidence::default()
        })
    }

    fn certify(&self, evidence: LabEvidence, load: &MeasuredLoad) -> Certificate {
        let begun = self.watch.as_ref().map_or(Instant::ZERO, |(_, begun)| *begun);
        fidelity::judge(evidence, load, self.clock.now() - begun, self.dilation)
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

/// Ends the hosts and takes over their measurements and drops.
fn take_memory(
    engines: &mut HostThreads,
    scenario: &Scenario,
    measured: &mut [TrafficMeasurement],
    drops: &mut Vec<DropCount>,
) {
    for (host, finished) in engines.stop() {
        finished.add_to(&scenario.hosts[host].name, measured, drops);
    }
}
