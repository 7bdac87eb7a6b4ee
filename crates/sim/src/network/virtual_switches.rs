//! Runs the virtual switches of a switch in virtual time, using the live switch's parts without its threads and
//! controllers.
use weir_datapath::{Datapath, DatapathOutput, LookupMethod};
use weir_fabric::{Crosspoint, Fabric, FabricDrop, FabricDropReason, VirtualSwitchConfig, VirtualSwitchIndex};
use weir_network::NetworkError;
use weir_network::result::DropCount;
use weir_openflow::model::PortDesc;
use weir_packet::{Frame, FramePool, PortNo};
use weir_slicing::{
    FabricEgressLine, FabricIngress, FabricIngressSource, TenantClassifier, VirtualPortState, VirtualSwitch, edge,
};
use weir_units::Instant;

/// Virtual switches of a switch, and the parts they share.
pub(super) struct VirtualSwitchSet {
    sorter: TenantClassifier,
    fabric: Fabric<Frame>,
    outlets: Vec<FabricEgressLine>,
    cuts: Vec<SimulatedVirtualSwitch>,
    dropped: Vec<FabricDrop<Frame>>,
}

struct SimulatedVirtualSwitch {
    spec: VirtualSwitch,
    index: VirtualSwitchIndex,
    inlets: Vec<VirtualPortState>,
    datapath: Datapath,
    out: DatapathOutput,
    expire_at: Instant,
    /// End of the lifetime, at which the virtual switch is removed.
    ends: Instant,
}

/// Makes the virtual switches of a switch; `None` if the switch has none.
///
/// # Errors
/// The fabric has no room for all of them, an entry of one is wrong, or one has a controller of its own.
pub(super) fn of(switch: &weir_scenario::ScenarioSwitch) -> Result<Option<VirtualSwitchSet>, NetworkError> {
    let Some(shape) = switch.fabric.as_ref().filter(|_| !switch.virtual_switches.is_empty()) else { return Ok(None) };
    let wrong = |problem: String| NetworkError::Scenario(format!("switch {}: {problem}", switch.name));
    let mut fabric =
        Fabric::new(shape.config(std::time::Duration::ZERO, 0)).map_err(|problem| wrong(problem.to_string()))?;
    let mut cuts = Vec::new();
    for spec in &switch.virtual_switches {
        let wrong = |problem: String| wrong(format!("virtual switch {}: {problem}", spec.name));
        if let Some(address) = spec.connect.first() {
            let expected =
                "virtual time has no controllers elsewhere, expected `entries`, or fail_mode = \"standalone\"";
            return Err(wrong(format!("connect: found {address}: {expected}")));
        }
        let config = VirtualSwitchConfig { expires: None, ..spec.config(shape, Instant::ZERO) };
        let index = fabric.add(Instant::ZERO, config).map_err(|problem| wrong(shape.numbered(problem).to_string()))?;
        let mut datapath = Datapath::new(spec.datapath_config(LookupMethod::default()));
        datapath.set_fail_mode(spec.fail_mode);
        datapath.add_entries(Instant::ZERO, &spec.entries).map_err(wrong)?;
        cuts.push(SimulatedVirtualSwitch {
            index,
            inlets: VirtualPortState::all(Instant::ZERO, spec, shape),
            datapath,
            out: DatapathOutput::default(),
            expire_at: Instant::ZERO,
            ends: spec.lifetime.map_or(Instant::FAR, |lifetime| Instant::ZERO + lifetime),
            spec: spec.clone(),
        });
    }
    let (sorter, outlets, dropped) = (TenantClassifier::default(), FabricEgressLine::all(shape), Vec::new());
    let mut cuts = VirtualSwitchSet { sorter, fabric, outlets, cuts, dropped };
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
                cut.datapath.add_port(Instant::ZERO, desc, &mut cut.out)?;
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
            cut.datapath.process(now, inlet.number, frames, pool, &mut cut.out);
            let mut crossing =
                FabricIngress { fabric: &mut self.fabric, outlets: &mut self.outlets, dropped: &mut self.dropped };
            cut.cross(now, Some(input), &mut crossing, pool);
            // Processing may have added flow entries (learned as a bridge) that end before the known ones.
            cut.expire_at = cut.expire_at.min(now);
        }
    }

    /// Takes frames that the switch itself sends to a shared port. They wait behind the frames of virtual switches.
    pub(super) fn take_own(&mut self, now: Instant, port: PortNo, frames: &mut Vec<Frame>, pool: &mut FramePool) {
        let Some(outlet) = self.outlets.iter_mut().find(|outlet| outlet.port == port) else { return };
        frames.drain(..).for_each(|frame| outlet.take_own(now, frame, pool));
    }

    /// Ends lifetimes, expires entries and drives the outlets. Calls `send` with the frames due to leave by each
    /// port.
    pub(super) fn run(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        mut send: impl FnMut(PortNo, &mut Vec<Frame>, &mut FramePool),
    ) {
        self.end_lifetimes(now, pool);
        for cut in self.cuts.iter_mut().filter(|cut| cut.expire_at <= now) {
            cut.expire_at = cut.datapath.expire(now, &mut cut.out).unwrap_or(Instant::FAR);
            let mut crossing =
                FabricIngress { fabric: &mut self.fabric, outlets: &mut self.outlets, dropped: &mut self.dropped };
            cut.cross(now, None, &mut crossing, pool);
        }
        for outlet in &mut self.outlets {
            outlet.drive(now, &mut self.fabric);
            if !outlet.leaving.is_empty() {
                send(outlet.port, &mut outlet.leaving, pool);
            }
        }
    }

    fn end_lifetimes(&mut self, now: Instant, pool: &mut FramePool) {
        let over = |cut: &SimulatedVirtualSwitch| cut.ends <= now && self.fabric.switch(cut.index).is_some();
        let over: Vec<VirtualSwitchIndex> = self.cuts.iter().filter(|cut| over(cut)).map(|cut| cut.index).collect();
        if over.is_empty() {
            return;
        }
        for index in over {
            self.fabric.remove(now, index, &mut self.dropped);
        }
        self.dropped.drain(..).for_each(|dropped| pool.give(dropped.packet.item));
        self.compile(now);
    }

    /// Returns the time at which to call [`VirtualSwitchSet::run`] next.
    pub(super) fn due(&self) -> Instant {
        let lines = self.outlets.iter().map(FabricEgressLine::due);
        let there = |cut: &&SimulatedVirtualSwitch| self.fabric.switch(cut.index).is_some();
        let cuts = self.cuts.iter().filter(there).map(|cut| cut.expire_at.min(cut.ends));
        lines.chain(cuts).fold(Instant::FAR, Instant::min)
    }

    /// Appends the packets dropped by virtual switches, at places that begin with the switch's name.
    pub(super) fn drops(&self, switch: &str, drops: &mut Vec<DropCount>) {
        let own: u64 = self.outlets.iter().map(|outlet| outlet.own_dropped).sum();
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
                let of = |at: Crosspoint| self.fabric.counters(at).map_or(0, |found| found.dropped_for(reason).packets);
                add(reason.name().replace('_', " "), cut.crosspoints().map(of).sum());
            }
            add("no room for its tag".to_owned(), cut.inlets.iter().map(|inlet| inlet.untagged).sum());
            for (reason, packets) in cut.datapath.drops().counted() {
                add(super::switch::name_of(reason), packets);
            }
        }
    }
}

impl SimulatedVirtualSwitch {
    /// Enqueues in the fabric the frames that the datapath has sent. Discards its messages because virtual switches
    /// have no controller in virtual time.
    fn cross(&mut self, now: Instant, input: Option<usize>, crossing: &mut FabricIngress<'_>, pool: &mut FramePool) {
        let whose = FabricIngressSource { index: self.index, spec: &self.spec, inlets: &mut self.inlets, input };
        crossing.enqueue(now, whose, &mut self.out.frames, pool);
        self.out.messages.clear();
        self.out.limited.clear();
        self.out.port_admin.clear();
    }

    fn crosspoints(&self) -> impl Iterator<Item = Crosspoint> {
        let switch = self.index;
        let to = move |input| self.inlets.iter().map(move |to| Crosspoint { switch, input, output: to.index });
        self.inlets.iter().flat_map(move |from| to(from.index))
    }
}
