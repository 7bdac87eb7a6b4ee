//! Simulates a network step by step: in between the caller changes links, asks the controller, and reads how many
//! packets have arrived.
use super::{SimulatedNetwork, VirtualTimeSettings, check};
use crate::engine::SimulationMonitor;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_network::{NetworkError, VirtualSwitchApps};
use weir_packet::PortNo;
use weir_port::link::LinkControl;
use weir_scenario::Scenario;
use weir_traffic::TimeHistogram;
use weir_traffic::impair::LinkLoss;
use weir_units::Instant;

/// State of a link between two switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedLinkState {
    /// Frames pass as the scenario says.
    Up,
    /// The link is unplugged: its switches report it, and frames on it are lost.
    Down,
    /// All frames are lost, and no switch notices.
    Silent,
}

/// Packets of an item of traffic so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrafficCount {
    /// Packets (TCP: bytes) sent.
    pub sent: u64,
    /// Packets (TCP: bytes) that arrived, each copy by itself.
    pub received: u64,
}

/// Network in virtual time whose traffic has begun.
///
/// In order: [`NetworkSimulation::start`], then [`NetworkSimulation::run_for`] and the other methods in any order.
pub struct NetworkSimulation<'a> {
    network: SimulatedNetwork<'a>,
    begin: Instant,
}

impl<'a> NetworkSimulation<'a> {
    /// Connects the switches of a scenario to their controller, and begins the traffic.
    ///
    /// # Errors
    /// The scenario needs something that virtual time does not have, or its switches do not come under control.
    pub fn start(
        scenario: &'a Scenario,
        settings: &VirtualTimeSettings,
        watch: &'a SimulationMonitor,
    ) -> Result<NetworkSimulation<'a>, NetworkError> {
        NetworkSimulation::start_with_apps(scenario, &VirtualSwitchApps::default(), settings, watch)
    }

    /// Begins as [`NetworkSimulation::start`] does, with virtual switches that the given applications control.
    ///
    /// # Errors
    /// As [`NetworkSimulation::start`], or there is no application for a virtual switch that needs one.
    pub fn start_with_apps(
        scenario: &'a Scenario,
        apps: &VirtualSwitchApps,
        settings: &VirtualTimeSettings,
        watch: &'a SimulationMonitor,
    ) -> Result<NetworkSimulation<'a>, NetworkError> {
        check(scenario)?;
        let mut network = SimulatedNetwork::new(scenario, apps, settings, watch, true)?;
        let begin = network.begin()?;
        Ok(NetworkSimulation { network, begin })
    }

    /// Returns the time since the traffic began.
    pub fn elapsed(&self) -> Duration {
        self.network.now - self.begin
    }

    /// Returns the time since the switches began to connect, which is the time of the controller's events.
    pub fn controller_time(&self) -> Duration {
        self.network.now - Instant::ZERO
    }

    /// Lets time pass, or stops earlier if the simulation is cancelled.
    ///
    /// # Errors
    /// A controller outside of virtual time does not answer.
    pub fn run_for(&mut self, time: Duration) -> Result<(), NetworkError> {
        let until = self.network.now + time;
        while !self.network.watch.cancel.load(Ordering::Relaxed) {
            if !self.network.step(until)? {
                self.network.now = until;
                break;
            }
        }
        Ok(())
    }

    /// Changes a link between switches, by its place in the scenario. A number that no link has changes nothing.
    pub fn set_link(&mut self, number: usize, state: SimulatedLinkState) {
        let network = &mut self.network;
        let (Some(controls), Some(link)) = (network.link_controls.get(number), network.scenario.links.get(number))
        else {
            return;
        };
        let loss = match state {
            SimulatedLinkState::Silent => Some(LinkLoss { share: 1.0, burst: None }),
            _ => link.spec.loss,
        };
        for control in controls {
            control.change(|wanted| {
                wanted.up = state != SimulatedLinkState::Down;
                wanted.egress.loss = loss;
            });
        }
        // A link is up once both its ends are: the end that is examined first sees it only in the second round.
        for end in link.ends.iter().chain(&link.ends) {
            network.switches[end.switch].look_at_link(network.now, PortNo(end.port));
            let part = network.hosts.len() + end.switch;
            network.agenda.set(part, network.now);
        }
        network.exchange_control();
    }

    /// Passes a request to the embedded application, as a controller's control socket does. Returns its reply; `None`
    /// if it knows no such request, or the controller is outside of virtual time.
    pub fn ask(&mut self, request: &str) -> Option<String> {
        let now = self.network.now;
        let reply = self.network.controllers.command(now, request);
        self.network.exchange_control();
        reply
    }

    /// Returns the packets of each item of traffic so far, in the order of [`Scenario::traffic`].
    pub fn counts(&self) -> Vec<TrafficCount> {
        let mut counts = vec![TrafficCount::default(); self.network.scenario.traffic.len()];
        for (item, measured) in self.network.hosts.iter().flat_map(weir_network::StackHost::measured) {
            let count = &mut counts[item];
            count.sent += measured.sent;
            count.received += measured.received;
        }
        counts
    }

    /// Returns the delays of all packets so far, of pings and datagrams.
    pub fn delays(&self) -> TimeHistogram {
        let mut delays = TimeHistogram::default();
        self.item_delays().iter().for_each(|one| delays.merge(one));
        delays
    }

    /// Returns the delays of each item's packets so far (pings and datagrams), in the order of [`Scenario::traffic`].
    pub fn item_delays(&self) -> Vec<TimeHistogram> {
        let mut delays = vec![TimeHistogram::default(); self.network.scenario.traffic.len()];
        for (item, measured) in self.network.hosts.iter().flat_map(weir_network::StackHost::measured) {
            delays[item].merge(&measured.delays);
        }
        delays
    }
}

/// Controls of both ends of a link.
pub(super) type LinkControls = [LinkControl; 2];
