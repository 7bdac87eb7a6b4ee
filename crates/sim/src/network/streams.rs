//! Runs a scenario's streams in virtual time, through the spare ports of its switches.
use super::SimulatedNode;
use super::switch::SimulatedSwitch;
use weir_network::NetworkError;
use weir_network::result::StreamResult;
use weir_network::streams::{self, SparePortPeers, StreamTraffic};
use weir_scenario::Scenario;
use weir_units::Instant;

/// Streams of a network in virtual time.
pub(super) struct SimulatedStreams {
    /// Far ends of the ports, until the streams begin.
    peers: Option<SparePortPeers>,
    running: Option<StreamTraffic>,
}

/// Refuses streams that virtual time cannot send beside traffic between hosts.
///
/// # Errors
/// The first such stream, with what was expected.
pub(super) fn check(scenario: &Scenario) -> Result<(), NetworkError> {
    streams::check(scenario)?;
    for stream in &scenario.streams {
        let switch = &scenario.switches[stream.switch];
        // Without virtual switches, packets do not pass the fabric, whose ports have the rates.
        if switch.virtual_switches.is_empty() {
            return Err(NetworkError::Scenario(format!(
                "`weir simulate`: found [[stream]] {} beside [[traffic]], at switch {} without [[switch.virtual]]; expected \
                 virtual switches, which give the ports of streams their rates",
                stream.name, switch.name
            )));
        }
    }
    Ok(())
}

impl SimulatedStreams {
    /// Adds the ports of streams to the switches; none if the scenario has no streams.
    ///
    /// # Errors
    /// A port cannot be made, or its switch refuses it.
    pub(super) fn new(scenario: &Scenario, switches: &mut [SimulatedSwitch]) -> Result<SimulatedStreams, NetworkError> {
        if scenario.streams.is_empty() {
            return Ok(SimulatedStreams { peers: None, running: None });
        }
        let (ports, peers) = streams::ports(scenario)?;
        for (switch, number, port) in ports {
            switches[switch].add_port(number, port, SimulatedNode::Streams, "streams")?;
        }
        Ok(SimulatedStreams { peers: Some(peers), running: None })
    }

    /// Begins the streams at `now`. Returns the time of the first packet, [`Instant::FAR`] if there are no streams.
    ///
    /// # Errors
    /// Packets cannot be made for a stream's virtual switch.
    pub(super) fn begin(&mut self, scenario: &Scenario, now: Instant) -> Result<Instant, NetworkError> {
        let Some(peers) = self.peers.take() else { return Ok(Instant::FAR) };
        Ok(self.running.insert(StreamTraffic::new(scenario, peers, now)?).next_wake())
    }

    /// Receives what has arrived and sends what is due. Returns the time of the next call, [`Instant::FAR`] when all
    /// streams are over.
    pub(super) fn run(&mut self, now: Instant) -> Instant {
        let Some(streams) = &mut self.running else { return Instant::FAR };
        while streams.receive(|| now) {}
        // The switches at the other ends live as long as the network.
        let _ = streams.send(|| now);
        if streams.is_over(now) { Instant::FAR } else { streams.next_wake() }
    }

    /// Returns the results of the scenario's streams.
    pub(super) fn results(&self, scenario: &Scenario) -> Vec<StreamResult> {
        self.running.as_ref().map_or_else(Vec::new, |running| streams::results(scenario, running.counted()))
    }
}
