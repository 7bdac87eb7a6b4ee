//! Makes hosts as network namespaces, each with a veth pair to its switch, and runs real programs inside: ping and
//! iperf3. Datagrams are sent by this process, over sockets in the namespaces.
//!
//! Names contain the process id (`weir-4711-red-a`, `weir4711p0`). They distinguish what a killed run left behind
//! from what another run uses. The next run or [`crate::cleanup`] removes leftovers. Everything is removed when
//! [`NamespaceHosts`] is dropped for any reason.
mod datagrams;
pub(crate) mod echo;
mod inside;
pub(crate) mod leftovers;
mod namespaces;
pub(crate) mod neighbours;
pub(crate) mod pairs;
pub(crate) mod parse;
pub(crate) mod programs;
mod traffic;

use crate::CancelHandle;
use crate::LabError;
use crossbeam_channel::Sender;
use namespaces::HostNamespaces;
use programs::ProgramRegistry;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_network::TrafficMeasurement;
use weir_network::link::{LinkEndId, SwitchPorts, random_stream_id, shape};
use weir_port::PortSpec;
use weir_port::link::{LinkControl, LinkEmulator};
use weir_scenario::{Scenario, TrafficKind};
use weir_units::{Instant, SystemClock};

/// Longest time for programs to end after an interrupt.
const PATIENCE: Duration = Duration::from_secs(2);

/// Checks that the programs and privileges for the scenario's hosts and traffic are available.
pub(crate) fn check(scenario: &Scenario) -> Result<(), LabError> {
    programs::check(scenario.traffic.iter().any(|item| matches!(item.kind, TrafficKind::Tcp { .. })))
}

/// Hosts as network namespaces.
pub(crate) struct NamespaceHosts {
    namespaces: HostNamespaces,
    programs: Arc<ProgramRegistry>,
    threads: Vec<JoinHandle<(usize, TrafficMeasurement)>>,
    /// Controls of their links; empty if links cannot be changed.
    controls: Vec<LinkControl>,
}

impl NamespaceHosts {
    /// Makes the scenario's hosts. If `known`, they know each other's Ethernet addresses from the start. Also returns
    /// the switches' ends of their links, which can be changed later if `controlled`.
    ///
    /// # Errors
    /// The system refuses; nothing is left behind.
    pub(crate) fn make(
        scenario: &Scenario,
        controlled: bool,
        known: bool,
    ) -> Result<(NamespaceHosts, SwitchPorts), LabError> {
        let namespaces = HostNamespaces::make(&scenario.hosts, known)?;
        let mut ports = SwitchPorts::new();
        let mut controls = Vec::new();
        for (host, device) in scenario.hosts.iter().zip(namespaces.devices()) {
            let port = weir_port::open(&format!("af_packet:{device}").parse::<PortSpec>()?)?;
            let shape = shape(&host.link);
            let (seed, number) = random_stream_id(scenario, LinkEndId::ToHost(ports.len()));
            if controlled {
                let control = LinkControl::new(shape, shape);
                controls.push(control.clone());
                ports.push(Box::new(LinkEmulator::controlled(port, control).seeded(seed, number)));
            } else {
                ports.push(if shape.is_none() {
                    port
                } else {
                    Box::new(LinkEmulator::new(port, shape, shape).seeded(seed, number))
                });
            }
        }
        Ok((NamespaceHosts { namespaces, programs: Arc::default(), threads: Vec::new(), controls }, ports))
    }

    /// Returns the names of the namespaces, in the scenario's order of hosts.
    pub(crate) fn namespaces(&self) -> &[String] {
        self.namespaces.names()
    }

    /// Returns the controls of the links, in the scenario's order of hosts; empty if links cannot be changed.
    pub(crate) fn controls(&self) -> &[LinkControl] {
        &self.controls
    }

    /// Returns the lab's folder.
    pub(crate) fn folder(&self) -> &Path {
        self.namespaces.folder()
    }

    /// Returns the registry of running programs.
    pub(crate) fn programs(&self) -> &ProgramRegistry {
        &self.programs
    }

    /// Ends the programs of a previous run, so that new ones can be started.
    pub(crate) fn forget_programs(&mut self) {
        if !self.threads.is_empty() || self.programs.is_ending() {
            self.stop();
            self.programs = Arc::default();
        }
    }

    /// Begins the scenario's traffic at time `begin` of the clock, each item on a thread of its own. Sends an item's
    /// number to `done` when all of it has been sent.
    pub(crate) fn begin(
        &mut self,
        scenario: &Arc<Scenario>,
        (clock, begin): (SystemClock, Instant),
        cancel: &CancelHandle,
        done: &Sender<usize>,
    ) {
        for number in 0..scenario.traffic.len() {
            let item = traffic::NetnsTrafficItem {
                scenario: Arc::clone(scenario),
                number,
                namespaces: self.namespaces.names().clone(),
                programs: Arc::clone(&self.programs),
                cancel: cancel.clone(),
                clock,
                begin,
            };
            let done = done.clone();
            let name = format!("weir-item-{number}");
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                // Fails if the receiver is gone because the lab is ending.
                let measured = item.run(|| _ = done.send(number));
                (number, measured)
            });
            match thread {
                Ok(thread) => self.threads.push(thread),
                Err(error) => tracing::error!(%error, "traffic item {number} is left out: no thread for it"),
            }
        }
    }

    /// Ends the programs. Returns the measurements of each item.
    pub(crate) fn stop(&mut self) -> Vec<(usize, TrafficMeasurement)> {
        self.programs.interrupt();
        // Interrupted programs write their results; one that does not end in time is killed.
        let mut waited = Duration::ZERO;
        const STEP: Duration = Duration::from_millis(10);
        while waited < PATIENCE && self.threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::park_timeout(STEP);
            waited += STEP;
        }
        self.programs.kill();
        self.threads.drain(..).filter_map(|thread| thread.join().ok()).collect()
    }
}

impl Drop for NamespaceHosts {
    fn drop(&mut self) {
        self.stop();
    }
}
