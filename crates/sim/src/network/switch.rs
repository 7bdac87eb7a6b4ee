//! Simulates a switch in virtual time: the datapath between its ports, and its end of the control channel.
use super::agent::{SimulatedAgent, TakeOutput};
use super::virtual_switches::{self, VirtualSwitchSet};
use super::{Peers, SimulatedNode};
use weir_datapath::{Datapath, DatapathOutput};
use weir_device::DelayedDatapath;
use weir_network::NetworkError;
use weir_network::datapath;
use weir_network::result::{ControllerResult, DropCount, SwitchResult, VirtualSwitchResult, port_drops};
use weir_openflow::model::PortDesc;
use weir_openflow::model::port::bits;
use weir_packet::{Frame, FramePool, PortNo};
use weir_port::{FrameCounters, LinkState, Port};
use weir_scenario::Scenario;
use weir_units::Instant;

/// Frames taken from a port at once; equals the live burst.
const BURST: usize = 32;
/// Frames that the pool keeps.
const POOL_FRAMES: usize = 4096;

/// Switch with its ports and its end of the control channel.
pub(super) struct SimulatedSwitch {
    name: String,
    dpid: u64,
    agent: SimulatedAgent,
    /// Virtual switches; `None` if the switch is not cut.
    cuts: Option<VirtualSwitchSet>,
    ports: Vec<WiredPort>,
    peers: Peers,
    pool: FramePool,
    batch: Vec<Frame>,
    /// True if a port may have more frames than were taken.
    more: bool,
}

struct WiredPort {
    number: PortNo,
    port: Box<dyn Port>,
    peer: SimulatedNode,
}

impl SimulatedSwitch {
    /// Returns a switch without ports.
    ///
    /// # Errors
    /// The switch's virtual switches or its profile cannot be simulated.
    pub(super) fn new(
        scenario: &Scenario,
        spec: &weir_scenario::ScenarioSwitch,
    ) -> Result<SimulatedSwitch, NetworkError> {
        let (config, fail_mode) = datapath::config(spec);
        let mut datapath = Datapath::new(config);
        datapath.set_fail_mode(fail_mode);
        let timed = timed(scenario, spec, &mut datapath)?;
        Ok(SimulatedSwitch {
            name: spec.name.clone(),
            dpid: spec.dpid,
            agent: SimulatedAgent::new(datapath, timed),
            cuts: virtual_switches::of(scenario, spec)?,
            ports: Vec::new(),
            peers: Peers::new(),
            pool: FramePool::new(POOL_FRAMES, BURST),
            batch: Vec::new(),
            more: false,
        })
    }

    /// Adds the flow entries of the scenario.
    ///
    /// # Errors
    /// An entry cannot be parsed, or is refused.
    pub(super) fn add_entries(&mut self, entries: &[String]) -> Result<(), NetworkError> {
        let name = &self.name;
        let wrong = |problem| NetworkError::Scenario(format!("switch {name}: {problem}"));
        self.agent.datapath.add_entries(Instant::ZERO, entries).map_err(wrong)
    }

    /// Adds a port, with the device and the name at its other end.
    pub(super) fn add_port(
        &mut self,
        number: PortNo,
        mut port: Box<dyn Port>,
        peer: SimulatedNode,
        peer_name: &str,
    ) -> Result<(), NetworkError> {
        let (info, speed) = (port.info().clone(), speed_kbps(port.link()));
        let desc = PortDesc {
            state: bits::LIVE,
            curr_speed: speed,
            max_speed: speed,
            ..PortDesc::new(number, info.mac, info.name)
        };
        let refused = |problem: String| NetworkError::Scenario(format!("switch {}: {problem}", self.name));
        if let Some(cuts) = &mut self.cuts {
            cuts.add_port(&desc).map_err(refused)?;
        }
        let SimulatedAgent { datapath, out, .. } = &mut self.agent;
        datapath.add_port(Instant::ZERO, desc, out).map_err(refused)?;
        self.peers.insert(number, format!("to {peer_name}"));
        self.ports.push(WiredPort { number, port, peer });
        Ok(())
    }

    /// Tells the datapath whether a port's link is up.
    pub(super) fn look_at_link(&mut self, now: Instant, number: PortNo) {
        let Some(wired) = self.ports.iter_mut().find(|wired| wired.number == number) else { return };
        let link = wired.port.link();
        let SimulatedAgent { datapath, out, .. } = &mut self.agent;
        datapath.set_link(now, number, link.up, speed_kbps(link), out);
        self.with_agent(|agent, pool, take| agent.deliver(now, pool, take));
    }

    /// Returns the agent of the switch, or of a virtual switch by its index.
    pub(super) fn agent_mut(&mut self, cut: Option<usize>) -> &mut SimulatedAgent {
        match (cut, &mut self.cuts) {
            (Some(cut), Some(cuts)) => cuts.agent_mut(cut),
            _ => &mut self.agent,
        }
    }

    /// Runs `what` on the agent, with the pool and the receiver of its output: frames go to ports, or wait behind the
    /// frames of virtual switches.
    fn with_agent<R>(&mut self, what: impl FnOnce(&mut SimulatedAgent, &mut FramePool, &mut TakeOutput<'_>) -> R) -> R {
        let SimulatedSwitch { agent, pool, ports, cuts, .. } = self;
        let mut take = |now: Instant, out: &mut DatapathOutput, pool: &mut FramePool| {
            for (number, frames) in out.frames.iter_mut().filter(|(_, frames)| !frames.is_empty()) {
                if let Some(cuts) = cuts {
                    cuts.take_own(now, *number, frames, pool);
                }
                send(ports, now, *number, frames, pool);
            }
            for (number, up) in std::mem::take(&mut out.port_admin) {
                if let Some(wired) = ports.iter_mut().find(|wired| wired.number == number) {
                    let _ = wired.port.set_admin(up);
                }
            }
        };
        what(agent, pool, &mut take)
    }

    pub(super) fn has_more(&self) -> bool {
        self.more
    }

    /// Handles all work due at `now`. Returns the devices that have received frames.
    pub(super) fn run(&mut self, now: Instant) -> Vec<SimulatedNode> {
        let sent = |wired: &WiredPort| wired.port.counters().tx_packets;
        let before: Vec<u64> = self.ports.iter().map(sent).collect();
        self.with_agent(|agent, pool, take| {
            agent.receive_control_bytes(now, pool, take);
            agent.release(now, pool, take);
        });
        self.more = false;
        self.run_cuts(now);
        for place in 0..self.ports.len() {
            self.forward_from(place, now);
        }
        self.with_agent(|agent, pool, take| {
            agent.expire(now, pool, take);
            agent.release(now, pool, take);
        });
        self.run_cuts(now);
        let reached = self.ports.iter().zip(before).filter(|(wired, before)| sent(wired) != *before);
        reached.map(|(wired, _)| wired.peer).collect()
    }

    fn forward_from(&mut self, place: usize, now: Instant) {
        let WiredPort { number, port, .. } = &mut self.ports[place];
        let number = *number;
        // Receiving from a memory port does not fail.
        let _ = port.receive(now, &mut self.pool, &mut self.batch, BURST);
        if port.next_wake().is_some_and(|at| at <= now) {
            let _ = port.transmit(now, &mut self.pool, &mut Vec::new());
        }
        self.more |= self.batch.len() >= BURST;
        if let Some(cuts) = &mut self.cuts {
            cuts.take(now, number, &mut self.batch, &mut self.pool);
        }
        let mut batch = std::mem::take(&mut self.batch);
        self.with_agent(|agent, pool, take| agent.forward(now, number, &mut batch, pool, take));
        self.batch = batch;
    }

    /// Runs the virtual switches, and sends their frames that are due.
    fn run_cuts(&mut self, now: Instant) {
        let Some(cuts) = &mut self.cuts else { return };
        let ports = &mut self.ports;
        cuts.run(now, &mut self.pool, |number, frames, pool| send(ports, now, number, frames, pool));
    }

    /// Returns the time at which to call [`SimulatedSwitch::run`] next if nothing arrives before.
    pub(super) fn next_wake(&self) -> Instant {
        let ports = self.ports.iter().filter_map(|wired| wired.port.next_wake());
        let cuts = self.cuts.as_ref().map(VirtualSwitchSet::due);
        ports.chain(cuts).fold(self.agent.next_wake(), Instant::min)
    }

    /// Returns the number of flow entries in all tables of the switch itself.
    pub(super) fn entries(&mut self, now: Instant) -> u64 {
        self.agent.entries(now, &mut self.pool)
    }

    /// Returns the results of the virtual switches. `controllers` returns the counters of a virtual switch's embedded
    /// controller, by its index.
    pub(super) fn virtual_results(
        &mut self,
        now: Instant,
        controllers: impl FnMut(usize) -> Option<ControllerResult>,
    ) -> Vec<VirtualSwitchResult> {
        let SimulatedSwitch { name, cuts, pool, .. } = self;
        cuts.as_mut().map(|cuts| cuts.results(now, name, pool, controllers)).unwrap_or_default()
    }

    /// Returns the counters of the switch, and appends its drops to `drops`.
    pub(super) fn result(&mut self, now: Instant, drops: &mut Vec<DropCount>) -> SwitchResult {
        for wired in &self.ports {
            let peer = self.peers.get(&wired.number).map_or("", String::as_str);
            let place = format!("{} port {} {peer}", self.name, wired.number);
            port_drops(&place, &wired.port.counters(), drops);
        }
        for (reason, packets) in self.agent.datapath.drops().counted() {
            drops.push(DropCount { place: self.name.clone(), reason: name_of(reason), packets });
        }
        drops.extend(delay_drops(&self.agent, &self.name));
        if let Some(cuts) = &self.cuts {
            cuts.drops(&self.name, drops);
        }
        let tables = self.agent.tables(now, &mut self.pool);
        let sum = |what: fn(&FrameCounters) -> u64| self.ports.iter().map(|wired| what(&wired.port.counters())).sum();
        SwitchResult {
            name: self.name.clone(),
            dpid: self.dpid,
            channels_up: usize::from(self.agent.is_up()),
            entries: tables.iter().map(|table| u64::from(table.active_count)).sum(),
            packets: tables.iter().find(|table| table.table.0 == 0).map_or(0, |table| table.lookup_count),
            rx_packets: sum(|counters| counters.rx_packets),
            tx_packets: sum(|counters| counters.tx_packets),
        }
    }
}

/// Sends frames by a port; they are dropped if the switch does not have the port.
fn send(ports: &mut [WiredPort], now: Instant, number: PortNo, frames: &mut Vec<Frame>, pool: &mut FramePool) {
    match ports.iter_mut().find(|wired| wired.number == number) {
        // Sending to a memory port does not fail.
        Some(wired) => drop(wired.port.transmit(now, pool, frames)),
        None => frames.drain(..).for_each(|frame| pool.give(frame)),
    }
}

/// Returns the packets that the delays of a profile have dropped at `place`.
pub(super) fn delay_drops(agent: &SimulatedAgent, place: &str) -> Vec<DropCount> {
    let lost = agent.delays().into_iter().flat_map(DelayedDatapath::drops).filter(|(_, packets)| *packets > 0);
    let count = |(reason, packets): (&str, u64)| DropCount {
        place: place.to_owned(),
        reason: reason.replace('_', " "),
        packets,
    };
    lost.map(count).collect()
}

/// Returns a link's speed as a port's description has it, in kbit/s; 0 if it is not known.
fn speed_kbps(link: LinkState) -> u32 {
    link.speed.map_or(0, |rate| u32::try_from(rate.0 / 1000).unwrap_or(u32::MAX))
}

/// Returns the delays of the switch's profile; `None` if it has no profile.
fn timed(
    scenario: &Scenario,
    spec: &weir_scenario::ScenarioSwitch,
    datapath: &mut Datapath,
) -> Result<Option<DelayedDatapath>, NetworkError> {
    let Some((profile, seed)) = datapath::profile(scenario, spec) else { return Ok(None) };
    let wrong = |problem: String| NetworkError::Scenario(format!("switch {}: {problem}", spec.name));
    DelayedDatapath::new(&profile, seed, datapath).map_err(|error| wrong(error.to_string()))
}

/// Returns a drop reason as labs name it: the counter's name in words.
pub(super) fn name_of(reason: weir_datapath::DropReason) -> String {
    let name = serde_json::to_value(reason).ok();
    name.as_ref()
        .and_then(serde_json::Value::as_str)
        .map_or_else(|| reason.text().to_owned(), |name| name.replace('_', " "))
}
