//! Adds, resizes and removes virtual switches. A request is checked before anything changes.
use super::turns::ControlTimeAccount;
use super::{EngineFabric, EngineVirtualSwitch, EngineVirtualSwitches, VirtualId, VirtualPorts, no_such_switch};
use crate::engine::Engine;
use crate::engine::inbox::FromChannel;
use crate::engine::logical::LogicalSwitch;
use crate::engine::ports::PortSlot;
use crate::engine::workers::EngineThreads;
use crate::handle::SwitchError;
use tokio::sync::{mpsc, watch};
use weir_datapath::{Datapath, DatapathOutput};
use weir_device::DelayedDatapath;
use weir_fabric::VirtualSwitchConfig;
use weir_openflow::model::PortNo;
use weir_packet::FramePool;
use weir_slicing::{CpuShares, FabricPort, FabricSpec, TenantClassifier, VirtualPortState, VirtualSwitch};
use weir_units::Instant;

/// Specification, datapath and channels of a virtual switch to be added.
pub(crate) struct NewVirtualSwitch {
    pub(crate) id: VirtualId,
    pub(crate) spec: VirtualSwitch,
    pub(crate) datapath: Datapath,
    /// Receiver of the messages from its channels.
    pub(crate) messages: mpsc::Receiver<FromChannel>,
    /// Dropped when the virtual switch ends, which its control tasks observe.
    pub(crate) lives: watch::Sender<()>,
}

fn refused(name: &str, problem: impl std::fmt::Display) -> SwitchError {
    SwitchError::Virtual { name: name.to_owned(), problem: problem.to_string() }
}

impl Engine {
    /// Returns the fabric that virtual switches are cut from: the configured one, or all ports that have rates.
    pub(crate) fn fabric_shape(&self) -> FabricSpec {
        if let Some(virtuals) = &self.virtuals {
            return virtuals.fabric.shape.clone();
        }
        self.fabric.clone().unwrap_or_else(|| {
            let rated = |slot: &PortSlot| {
                slot.number.is_ordinary().then(|| Some(FabricPort { port: slot.number.0, rate: slot.rate()? }))?
            };
            FabricSpec { ports: self.io.ports.iter().filter_map(rated).collect(), ..FabricSpec::default() }
        })
    }

    /// Configures the fabric that virtual switches are cut from.
    pub(crate) fn set_fabric(&mut self, shape: FabricSpec) {
        self.fabric = Some(shape);
    }

    /// Adds a virtual switch.
    ///
    /// # Errors
    /// Fails if its name or datapath ID is taken, if a port is not available, or if a port or crosspoint has too
    /// little left; the error then says what is short and by how much. Nothing changes on an error.
    pub(crate) fn add_virtual(&mut self, coming: NewVirtualSwitch) -> Result<(), SwitchError> {
        let now = self.io.now();
        let NewVirtualSwitch { id, spec, mut datapath, messages, lives } = coming;
        let (name, fail_mode) = (spec.name.clone(), spec.fail_mode);
        self.check_names(&spec)?;
        self.check_virtual(&spec, None)?;
        // A new datapath has no channels, so this output stays empty.
        let mut nobody = DatapathOutput::default();
        for port in &spec.ports {
            let desc = self.io.ports.describe_virtual(port);
            datapath.add_port(now, desc, &mut nobody).map_err(|problem| refused(&name, problem))?;
        }
        let profile = self.profile.as_ref();
        let timed = profile.map(|config| DelayedDatapath::of_virtual_switch(config, spec.dpid, &mut datapath));
        let timed = timed.transpose()?.flatten();
        datapath.add_entries(now, &spec.entries).map_err(|problem| refused(&name, problem))?;
        let mut virtuals = match self.virtuals.take() {
            Some(virtuals) => virtuals,
            None => {
                let fabric = EngineFabric::new(self.fabric_shape()).map_err(|problem| refused(&name, problem))?;
                Box::new(EngineVirtualSwitches::new(fabric, now))
            }
        };
        let mut logical = LogicalSwitch::new(datapath, fail_mode, messages);
        logical.timed = timed.map(Box::new);
        let added = virtuals.add(now, id, spec, logical, lives);
        virtuals.follow_links(now, &mut self.io);
        self.virtuals = Some(virtuals);
        self.forget_virtuals_if_none();
        added
    }

    /// Changes the ports, rates, buffers, disciplines or selectors of a virtual switch. Queued frames that still fit
    /// stay in their queues.
    ///
    /// # Errors
    /// Fails for the reasons of [`Engine::add_virtual`], or if `spec` changes a property that is fixed.
    pub(crate) fn resize_virtual(&mut self, spec: VirtualSwitch) -> Result<(), SwitchError> {
        let now = self.io.now();
        let name = spec.name.clone();
        let place = self.find_virtual(&name)?;
        self.check_virtual(&spec, Some(place))?;
        let Some(virtuals) = &mut self.virtuals else { return Err(SwitchError::Ended) };
        let EngineVirtualSwitches { fabric, switches, .. } = &mut **virtuals;
        let switch = switches.get_mut(usize::from(place)).and_then(Option::as_deref_mut);
        let Some(switch) = switch else { return Err(SwitchError::Ended) };
        unchanged(&switch.ports.spec, &spec).map_err(|problem| refused(&name, problem))?;
        let config = in_fabric(&spec, &fabric.shape, now);
        let resized = fabric.fabric.resize(now, switch.ports.index, config, &mut fabric.dropped);
        resized.map_err(|problem| refused(&name, fabric.shape.numbered(problem)))?;
        fabric.give_back(&mut self.io.pool);
        let inlets = VirtualPortState::all(now, &spec, &fabric.shape);
        let before = std::mem::replace(&mut switch.ports.inlets, inlets);
        let LogicalSwitch { datapath, out, .. } = &mut switch.logical;
        datapath.get().set_fail_mode(spec.fail_mode);
        for old in &before {
            match switch.ports.inlets.iter_mut().find(|new| (new.number, new.physical) == (old.number, old.physical)) {
                Some(new) => new.keep(old),
                None => _ = datapath.get().remove_port(now, old.number, out),
            }
        }
        for port in &spec.ports {
            if !before.iter().any(|old| (old.number.0, old.physical.0) == (port.number, port.port)) {
                let desc = self.io.ports.describe_virtual(port);
                datapath.get().add_port(now, desc, out).map_err(|problem| refused(&name, problem))?;
            }
        }
        if let Some(lifetime) = spec.lifetime {
            switch.expires = Some(now + lifetime);
        }
        virtuals.shares.reweigh(place, spec.time_weight());
        if let Some(switch) = virtuals.switch(place) {
            switch.ports.spec = spec;
        }
        virtuals.compile();
        tracing::info!("virtual switch {name}: resized");
        virtuals.follow_links(now, &mut self.io);
        Ok(())
    }

    /// Returns the specification of a virtual switch.
    ///
    /// # Errors
    /// Fails if there is none of that name.
    pub(crate) fn virtual_spec(&self, name: &str) -> Result<VirtualSwitch, SwitchError> {
        let place = self.find_virtual(name)?;
        let switch = self.virtuals.as_ref().and_then(|virtuals| virtuals.switches[usize::from(place)].as_ref());
        switch.map(|switch| switch.ports.spec.clone()).ok_or(SwitchError::Ended)
    }

    /// Removes a virtual switch: closes its channels and drops its frames. Other virtual switches continue.
    ///
    /// # Errors
    /// Fails if there is none of that name.
    pub(crate) fn remove_virtual(&mut self, name: &str) -> Result<(), SwitchError> {
        let place = self.find_virtual(name)?;
        self.end_virtual(place, "removed");
        Ok(())
    }

    /// Removes virtual switches whose lifetime is over.
    pub(super) fn end_expired(&mut self, now: Instant) {
        let over = |virtuals: &EngineVirtualSwitches| {
            let mut switches = virtuals.all();
            switches.find(|switch| switch.expires.is_some_and(|at| at <= now)).map(EngineVirtualSwitch::place)
        };
        while let Some(place) = self.virtuals.as_deref().and_then(over) {
            self.end_virtual(place, "its lifetime is over; removed");
        }
    }

    fn end_virtual(&mut self, place: u16, why: &str) {
        let now = self.io.now();
        if let Some(virtuals) = &mut self.virtuals {
            let removed = virtuals.remove(now, place, &mut self.io.pool);
            if let Some(name) = removed {
                tracing::info!("virtual switch {name}: {why}");
            }
        }
        self.forget_virtuals_if_none();
    }

    /// Drops the state for virtual switches after the last one is removed, so that the packet path is as before the
    /// first.
    fn forget_virtuals_if_none(&mut self) {
        if let Some(virtuals) = self.virtuals.take_if(|virtuals| virtuals.order.is_empty()) {
            let mut virtuals = *virtuals;
            virtuals.fabric.lines.iter_mut().for_each(|line| line.forget_own(&mut self.io.pool));
        }
    }

    fn find_virtual(&self, name: &str) -> Result<u16, SwitchError> {
        self.virtuals.as_ref().map_or_else(|| Err(no_such_switch(name, "")), |virtuals| virtuals.find(name))
    }

    fn check_names(&mut self, spec: &VirtualSwitch) -> Result<(), SwitchError> {
        let wrong = |problem: String| Err(refused(&spec.name, problem));
        if self.physical.datapath.get().datapath_id() == spec.dpid {
            return wrong(format!("dpid: found {:#x}, which the switch itself has; expected another", spec.dpid));
        }
        for VirtualPorts { spec: other, .. } in self.virtual_ports() {
            if other.name == spec.name {
                return wrong("there is one of this name already; remove it, or resize it".to_owned());
            }
            if other.dpid == spec.dpid {
                return wrong(format!("dpid: found {:#x}, which {} has; expected another", spec.dpid, other.name));
            }
        }
        Ok(())
    }

    /// Returns the ports of all virtual switches.
    fn virtual_ports(&self) -> impl Iterator<Item = &VirtualPorts> {
        self.virtuals.iter().flat_map(|virtuals| virtuals.all()).map(|switch| &switch.ports)
    }

    /// Checks the ports and selectors of a virtual switch. `own` is the fabric index of the switch to be changed, if
    /// it exists.
    fn check_virtual(&self, spec: &VirtualSwitch, own: Option<u16>) -> Result<(), SwitchError> {
        let wrong = |problem: String| Err(refused(&spec.name, problem));
        if let EngineThreads::RunToCompletion(_) = self.workers.threads {
            return wrong(
                "the switch runs on several threads; virtual switches need --workers 1, or --mode pipeline".to_owned(),
            );
        }
        if self.physical.is_in_band {
            return wrong(format!("the switch has in-band control: {}", crate::in_band::VIRTUAL_SWITCHES));
        }
        for port in &spec.ports {
            let number = PortNo(port.port);
            let Some(place) = self.io.ports.place(number) else { return Err(self.no_port(number)) };
            if self.io.ports.slot(place).queues(|_| ()).is_some() {
                return wrong(format!("port {number} has queues; remove them first (weir ctl del-queue)"));
            }
        }
        for other in self.virtual_ports().filter(|ports| Some(ports.index.0) != own) {
            if let Some(twin) = spec.select.iter().find(|selector| other.spec.select.contains(selector)) {
                return wrong(format!("select: found {twin}, which {} has", other.spec.name));
            }
        }
        Ok(())
    }
}

impl EngineVirtualSwitches {
    /// Returns the state without virtual switches.
    fn new(fabric: EngineFabric, now: Instant) -> EngineVirtualSwitches {
        EngineVirtualSwitches {
            fabric,
            classifier: TenantClassifier::default(),
            switches: Vec::new(),
            order: Vec::new(),
            shares: CpuShares::default(),
            asked_at: 0,
            turn: Vec::new(),
            first: 0,
            turned_at: now,
        }
    }

    /// Adds a virtual switch, if the fabric has enough left.
    fn add(
        &mut self,
        now: Instant,
        id: VirtualId,
        spec: VirtualSwitch,
        logical: LogicalSwitch,
        lives: watch::Sender<()>,
    ) -> Result<(), SwitchError> {
        let EngineFabric { fabric, shape, .. } = &mut self.fabric;
        let added = fabric.add(now, in_fabric(&spec, shape, now));
        let index = added.map_err(|problem| refused(&spec.name, shape.numbered(problem)))?;
        tracing::info!("virtual switch {}: added, dpid {:#018x}", spec.name, spec.dpid);
        let place = usize::from(index.0);
        if self.switches.len() <= place {
            self.switches.resize_with(place + 1, || None);
        }
        self.shares.add(index.0, spec.time_weight());
        self.order.push(index.0);
        self.switches[place] = Some(Box::new(EngineVirtualSwitch {
            id,
            logical,
            turn: ControlTimeAccount::default(),
            expires: spec.lifetime.map(|lifetime| now + lifetime),
            ports: VirtualPorts { index, inlets: VirtualPortState::all(now, &spec, shape), spec },
            _lives: lives,
        }));
        self.compile();
        Ok(())
    }

    /// Removes the virtual switch of fabric index `place`: closes its channels and drops its frames. Returns its name.
    fn remove(&mut self, now: Instant, place: u16, pool: &mut FramePool) -> Option<String> {
        let switch = self.switches.get_mut(usize::from(place))?.take()?;
        self.order.retain(|other| *other != place);
        self.fabric.fabric.remove(now, switch.ports.index, &mut self.fabric.dropped);
        self.fabric.give_back(pool);
        self.shares.remove(place).for_each(|frame| pool.give(frame));
        self.compile();
        for channel in switch.logical.channels.channels() {
            if let Some(outbox) = switch.logical.channels.outbox(channel) {
                outbox.close("its virtual switch was removed");
            }
        }
        Some(switch.ports.spec.name)
    }

    /// Compiles the first lookup anew.
    fn compile(&mut self) {
        let EngineVirtualSwitches { classifier, order, switches, .. } = self;
        let all = order.iter().filter_map(|place| switches.get(usize::from(*place))?.as_deref());
        classifier.compile(all.map(|switch| (switch.place(), &switch.ports.spec)));
    }
}

/// Returns the fabric's configuration of a virtual switch. It has no lifetime, because the engine ends the switch.
fn in_fabric(spec: &VirtualSwitch, shape: &FabricSpec, now: Instant) -> VirtualSwitchConfig {
    VirtualSwitchConfig { expires: None, ..spec.config(shape, now) }
}

/// Returns an error if a property differs that cannot change while a virtual switch runs.
fn unchanged(old: &VirtualSwitch, new: &VirtualSwitch) -> Result<(), String> {
    let fixed = [
        ("dpid", old.dpid == new.dpid),
        ("tables", old.tables == new.tables),
        ("max_entries", old.max_entries == new.max_entries),
        ("max_packet_ins", old.max_packet_ins == new.max_packet_ins),
    ];
    match fixed.iter().find(|(_, is_same)| !is_same) {
        Some((what, _)) => Err(format!("{what} cannot change while it runs; remove it and add it anew")),
        None => Ok(()),
    }
}
