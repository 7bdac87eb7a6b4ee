//! Runs the virtual switches of a switch in virtual time, using the live switch's parts without its threads.
use super::agent::{SimulatedAgent, TakeOutput};
use super::switch::{delay_drops, name_of};
use weir_datapath::{Datapath, DatapathOutput, LookupMethod};
use weir_device::{DelayedDatapath, ProfileConfig};
use weir_fabric::{Crosspoint, Fabric, FabricDrop, FabricDropReason, VirtualSwitchConfig, VirtualSwitchIndex};
use weir_network::NetworkError;
use weir_network::datapath;
use weir_network::result::{ControllerResult, DropCount, VirtualSwitchResult};
use weir_openflow::model::PortDesc;
use weir_packet::{Frame, FramePool, PortNo};
use weir_scenario::{Scenario, ScenarioSwitch};
use weir_slicing::{
    FabricEgressLine, FabricIngress, FabricIngressSource, TenantClassifier, VirtualPortState, VirtualSwitch, edge,
};
use weir_units::Instant;

/// Virtual switches of a switch, and the parts they share.
pub(super) struct VirtualSwitchSet {
    sorter: TenantClassifier,
    shared: SharedFabric,
    cuts: Vec<SimulatedVirtualSwitch>,
}

/// Fabric between the ports, with the lines behind it.
struct SharedFabric {
    fabric: Fabric<Frame>,
    outlets: Vec<FabricEgressLine>,
    dropped: Vec<FabricDrop<Frame>>,
}

struct SimulatedVirtualSwitch {
    spec: VirtualSwitch,
    index: VirtualSwitchIndex,
    inlets: Vec<VirtualPortState>,
    agent: SimulatedAgent,
    /// End of the lifetime, at which the virtual switch is removed.
    ends: Instant,
}

/// Makes the virtual switches of a switch; `None` if the switch has none.
///
/// # Errors
/// The fabric has no room for all of them, an entry of one is wrong, or the profile cannot be simulated.
pub(super) fn of(scenario: &Scenario, switch: &ScenarioSwitch) -> Result<Option<VirtualSwitchSet>, NetworkError> {
    let Some(shape) = switch.fabric.as_ref().filter(|_| !switch.virtual_switches.is_empty()) else { return Ok(None) };
    let wrong = |problem: String| NetworkError::Scenario(format!("switch {}: {problem}", switch.name));
    let mut fabric =
        Fabric::new(shape.config(std::time::Duration::ZERO, 0)).map_err(|problem| wrong(problem.to_string()))?;
    let profile = datapath::profile(scenario, switch).map(|(profile, seed)| ProfileConfig { profile, seed });
    let mut cuts = Vec::new();
    for spec in &switch.virtual_switches {
        let wrong = |problem: String| wrong(format!("virtual switch {}: {problem}", spec.name));
        let config = VirtualSwitchConfig { expires: None, ..spec.config(shape, Instant::ZERO) };
        let index = fabric.add(Instant::ZERO, config).map_err(|problem| wrong(shape.numbered(problem).to_string()))?;
        let mut datapath = Datapath::new(spec.datapath_config(LookupMethod::default()));
        datapath.set_fail_mode(spec.fail_mode);
        let delayed =
            profile.as_ref().map(|config| DelayedDatapath::of_virtual_switch(config, spec.dpid, &mut datapath));
        let delayed = delayed.transpose().map_err(|error| wrong(error.to_string()))?.flatten();
        datapath.add_entries(Instant::ZERO, &spec.entries).map_err(wrong)?;
        cuts.push(SimulatedVirtualSwitch {
            index,
            inlets: VirtualPortState::all(Instant::ZERO, spec, shape),
            agent: SimulatedAgent::new(datapath, delayed),
            ends: spec.lifetime.map_or(Instant::FAR, |lifetime| Instant::ZERO + lifetime),
            spec: spec.clone(),
        });
    }
    let shared = SharedFabric { fabric, outlets: FabricEgressLine::all(shape), dropped: Vec::new() };
    let mut cuts = VirtualSwitchSet { sorter: TenantClassifier::default(), shared, cuts };
    cuts.compile(Instant::ZERO);
    Ok(Some(cuts))
}

impl VirtualSwitchSet {
    /// Compiles the first lookup for the virtual switches whose lifetime has not ended.
    fn compile(&mut self, now: Instant) {
        let there = (0..).zip(&self.cuts).filter(move |(_, cut)| now < cut.ends);
        self.sorter.compile(there.map(|(place, cut)| (place, &cut.spec)));
    }

    /// Adds a port of the switch to the virtual switches that have a share of it.
    ///
    /// # Errors
    /// A virtual switch's datapath refuses the port.
    pub(super) fn add_port(&mut self, desc: &PortDesc) -> Result<(), String> {
        for cut in &mut self.cuts {
            let shares = cut.spec.ports.iter().filter(|port| PortNo(port.port) == desc.port_no);
            for port in shares {
                let speed = u32::try_from(port.rate_out.0 / 1000).unwrap_or(u32::MAX);
                let desc =
                    PortDesc { port_no: PortNo(port.number), curr_speed: speed, max_speed: speed, ..desc.clone() };
                let SimulatedAgent { datapath, out, .. } = &mut cut.agent;
                datapath.add_port(Instant::ZERO, desc, out)?;
            }
        }
        Ok(())
    }

    /// Removes from `batch` the frames received on `port` that belong to virtual switches, processes them and
    /// enqueues them in the fabric.
    pub(super) fn take(&mut self, now: Instant, port: PortNo, batch: &mut Vec<Frame>, pool: &mut FramePool) {
        for at in 0..self.sorter.sort(port, batch) {
            let (target, frames) = &mut self.sorter.lists[at];
            let (cut, input) = (&mut self.cuts[usize::from(target.switch)], usize::from(target.input));
            let inlet = &mut cut.inlets[input];
            inlet.count(frames);
            if inlet.vlan.is_some() {
                edge::strip(frames);
            }
            let number = inlet.number;
            cut.with_agent(Some(input), &mut self.shared, |agent, take| {
                agent.forward(now, number, frames, pool, take);
                agent.expect_expiry(now);
            });
        }
    }

    /// Takes frames that the switch itself sends to a shared port. They wait behind the frames of virtual switches.
    pub(super) fn take_own(&mut self, now: Instant, port: PortNo, frames: &mut Vec<Frame>, pool: &mut FramePool) {
        let Some(outlet) = self.shared.outlets.iter_mut().find(|outlet| outlet.port == port) else { return };
        frames.drain(..).for_each(|frame| outlet.take_own(now, frame, pool));
    }

    /// Ends lifetimes, serves controllers, expires entries and drives the outlets. Calls `send` with the frames due to
    /// leave by each port.
    pub(super) fn run(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        mut send: impl FnMut(PortNo, &mut Vec<Frame>, &mut FramePool),
    ) {
        self.end_lifetimes(now, pool);
        for cut in &mut self.cuts {
            if !cut.is_there(&self.shared) {
                continue;
            }
            cut.with_agent(None, &mut self.shared, |agent, take| {
                agent.receive_control_bytes(now, pool, take);
                agent.release(now, pool, take);
                agent.expire(now, pool, take);
            });
        }
        let SharedFabric { fabric, outlets, .. } = &mut self.shared;
        for outlet in outlets {
            outlet.drive(now, fabric);
            if !outlet.leaving.is_empty() {
                send(outlet.port, &mut outlet.leaving, pool);
            }
        }
    }

    fn end_lifetimes(&mut self, now: Instant, pool: &mut FramePool) {
        let mut has_ended = false;
        for cut in &mut self.cuts {
            if cut.ends > now || !cut.is_there(&self.shared) {
                continue;
            }
            cut.agent.disconnect();
            self.shared.fabric.remove(now, cut.index, &mut self.shared.dropped);
            has_ended = true;
        }
        if has_ended {
            self.shared.dropped.drain(..).for_each(|dropped| pool.give(dropped.packet.item));
            self.compile(now);
        }
    }

    /// Returns the time at which to call [`VirtualSwitchSet::run`] next.
    pub(super) fn due(&self) -> Instant {
        let lines = self.shared.outlets.iter().map(FabricEgressLine::due);
        let there = self.cuts.iter().filter(|cut| cut.is_there(&self.shared));
        lines.chain(there.map(|cut| cut.agent.next_wake().min(cut.ends))).fold(Instant::FAR, Instant::min)
    }

    /// Returns the agent of the virtual switch at this index.
    pub(super) fn agent_mut(&mut self, cut: usize) -> &mut SimulatedAgent {
        &mut self.cuts[cut].agent
    }

    /// Returns the results of the virtual switches of `switch`; `controllers` has the counters of their embedded
    /// controllers, by index.
    pub(super) fn results(
        &mut self,
        now: Instant,
        switch: &str,
        pool: &mut FramePool,
        mut controllers: impl FnMut(usize) -> Option<ControllerResult>,
    ) -> Vec<VirtualSwitchResult> {
        let result = |(index, cut): (usize, &mut SimulatedVirtualSwitch)| VirtualSwitchResult {
            switch: switch.to_owned(),
            name: cut.spec.name.clone(),
            dpid: cut.spec.dpid,
            channels_up: usize::from(cut.agent.is_up()),
            entries: cut.agent.entries(now, pool),
            controller: controllers(index),
        };
        self.cuts.iter_mut().enumerate().map(result).collect()
    }

    /// Appends the packets dropped by virtual switches, at places that begin with the switch's name.
    pub(super) fn drops(&self, switch: &str, drops: &mut Vec<DropCount>) {
        let own: u64 = self.shared.outlets.iter().map(|outlet| outlet.own_dropped).sum();
        if own > 0 {
            drops.push(DropCount {
                place: switch.to_owned(),
                reason: "behind virtual switches".to_owned(),
                packets: own,
            });
        }
        for cut in &self.cuts {
            let place = format!("{switch} {}", cut.spec.name);
            let mut add = |reason: String, packets: u64| {
                if packets > 0 {
                    drops.push(DropCount { place: place.clone(), reason, packets });
                }
            };
            for reason in FabricDropReason::ALL {
                let of = |at: Crosspoint| {
                    self.shared.fabric.counters(at).map_or(0, |found| found.dropped_for(reason).packets)
                };
                add(reason.name().replace('_', " "), cut.crosspoints().map(of).sum());
            }
            add("no room for its tag".to_owned(), cut.inlets.iter().map(|inlet| inlet.untagged).sum());
            for (reason, packets) in cut.agent.datapath.drops().counted() {
                add(name_of(reason), packets);
            }
            drops.extend(delay_drops(&cut.agent, &place));
        }
    }
}

impl SharedFabric {
    fn ingress(&mut self) -> FabricIngress<'_> {
        FabricIngress { fabric: &mut self.fabric, outlets: &mut self.outlets, dropped: &mut self.dropped }
    }
}

impl SimulatedVirtualSwitch {
    /// Returns false once the lifetime has ended.
    fn is_there(&self, shared: &SharedFabric) -> bool {
        shared.fabric.switch(self.index).is_some()
    }

    /// Runs `what` on the agent, with the receiver of its output: frames wait in the fabric, at the crosspoints of the
    /// port at index `input`; `None` for packets that entered by no port.
    fn with_agent<R>(
        &mut self,
        input: Option<usize>,
        shared: &mut SharedFabric,
        what: impl FnOnce(&mut SimulatedAgent, &mut TakeOutput<'_>) -> R,
    ) -> R {
        let SimulatedVirtualSwitch { index, spec, inlets, agent, .. } = self;
        // With a profile, frames of all inputs come out together, and each is marked with its input.
        let input = input.filter(|_| agent.delays().is_none());
        let mut take = |now: Instant, out: &mut DatapathOutput, pool: &mut FramePool| {
            let whose = FabricIngressSource { index: *index, spec, inlets, input };
            shared.ingress().enqueue(now, whose, &mut out.frames, pool);
            // A port that a virtual switch sets down is down for that virtual switch only.
            out.port_admin.clear();
        };
        what(agent, &mut take)
    }

    fn crosspoints(&self) -> impl Iterator<Item = Crosspoint> {
        let switch = self.index;
        let to = move |input| self.inlets.iter().map(move |to| Crosspoint { switch, input, output: to.index });
        self.inlets.iter().flat_map(move |from| to(from.index))
    }
}
