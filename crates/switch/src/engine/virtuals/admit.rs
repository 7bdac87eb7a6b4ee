//! Adds, resizes and removes virtual switches. A request is checked before anything changes.
use super::turns::ControlTimeAccount;
use super::{EngineVirtualSwitch, EngineVirtualSwitches, VirtualId};
use crate::engine::Engine;
use crate::engine::inbox::FromChannel;
use crate::engine::logical::LogicalSwitch;
use crate::handle::SwitchError;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use weir_datapath::Datapath;
use weir_fabric::{Fabric, VirtualSwitchConfig};
use weir_openflow::model::PortNo;
use weir_slicing::{
    CpuShares, FabricEgressLine, FabricPort, FabricSpec, TenantClassifier, VirtualPortState, VirtualSwitch,
};
use weir_units::{Clock, Instant};

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
            return virtuals.shape.clone();
        }
        self.fabric.clone().unwrap_or_else(|| {
            let rated = |slot: &crate::engine::ports::PortSlot| {
                slot.number.is_ordinary().then(|| Some(FabricPort { port: slot.number.0, rate: slot.rate()? }))?
            };
            FabricSpec { ports: self.ports.iter().filter_map(rated).collect(), ..FabricSpec::default() }
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
        let now = self.clock.now();
        let NewVirtualSwitch { id, spec, mut datapath, messages, lives } = coming;
        let name = spec.name.clone();
        self.check_names(&spec)?;
        self.check_virtual(&spec, None)?;
        // A new datapath has no channels, so this output stays empty.
        let mut nobody = weir_datapath::DatapathOutput::default();
        for port in &spec.ports {
            let desc = self.ports.describe_virtual(port);
            datapath.add_port(now, desc, &mut nobody).map_err(|problem| refused(&name, problem))?;
        }
        datapath.add_entries(now, &spec.entries).map_err(|problem| refused(&name, problem))?;
        let is_new = self.virtuals.is_none();
        if is_new {
            let shape = self.fabric_shape();
            self.virtuals =
                Some(Box::new(EngineVirtualSwitches::new(shape, now).map_err(|problem| refused(&name, problem))?));
        }
        let added = self.virtuals.as_mut().map(|virtuals| {
            let added = virtuals.fabric.add(now, in_fabric(&spec, &virtuals.shape, now));
            added.map_err(|problem| virtuals.shape.numbered(problem))
        });
        let index = match added {
            Some(Ok(index)) => index,
            Some(Err(problem)) => {
                self.forget_virtuals_if_none();
                return Err(refused(&name, problem));
            }
            None => return Err(SwitchError::Stopped),
        };
        let fail_mode = spec.fail_mode;
        let Some(virtuals) = &mut self.virtuals else { return Err(SwitchError::Stopped) };
        let cut = EngineVirtualSwitch {
            id,
            inlets: VirtualPortState::all(now, &spec, &virtuals.shape),
            expires: spec.lifetime.map(|lifetime| now + lifetime),
            index,
            logical: Box::new(LogicalSwitch::new(datapath, fail_mode, messages)),
            turn: ControlTimeAccount::default(),
            _lives: lives,
            spec,
        };
        tracing::info!("virtual switch {name}: added, dpid {:#018x}", cut.spec.dpid);
        let place = usize::from(index.0);
        if virtuals.switches.len() <= place {
            virtuals.switches.resize_with(place + 1, || None);
        }
        virtuals.shares.add(index.0, cut.spec.time_weight());
        virtuals.switches[place] = Some(Box::new(cut));
        virtuals.order.push(index.0);
        virtuals.compile();
        self.follow_links(now);
        Ok(())
    }

    /// Changes the ports, rates, buffers, disciplines or selectors of a virtual switch. Queued frames that still fit
    /// stay in their queues.
    ///
    /// # Errors
    /// Fails for the reasons of [`Engine::add_virtual`], or if `spec` changes a property that is fixed.
    pub(crate) fn resize_virtual(&mut self, spec: VirtualSwitch) -> Result<(), SwitchError> {
        let now = self.clock.now();
        let name = spec.name.clone();
        let place = self.find_virtual(&name)?;
        self.check_virtual(&spec, Some(place))?;
        let Some(virtuals) = &mut self.virtuals else { return Err(SwitchError::Stopped) };
        let config = in_fabric(&spec, &virtuals.shape, now);
        let EngineVirtualSwitches { fabric, switches: cuts, dropped, shape, .. } = &mut **virtuals;
        let Some(cut) = cuts[usize::from(place)].as_deref_mut() else { return Err(SwitchError::Stopped) };
        unchanged(&cut.spec, &spec).map_err(|problem| refused(&name, problem))?;
        let resized = fabric.resize(now, cut.index, config, dropped);
        resized.map_err(|problem| refused(&name, shape.numbered(problem)))?;
        virtuals.give_back(&mut self.pool);
        let inlets = VirtualPortState::all(now, &spec, &virtuals.shape);
        let Some(cut) = virtuals.cut(place) else { return Err(SwitchError::Stopped) };
        let before = std::mem::replace(&mut cut.inlets, inlets);
        for old in &before {
            match cut.inlets.iter_mut().find(|new| (new.number, new.physical) == (old.number, old.physical)) {
                Some(new) => new.keep(old),
                None => _ = cut.logical.datapath.get().remove_port(now, old.number, &mut cut.logical.out),
            }
        }
        for port in &spec.ports {
            if !before.iter().any(|old| (old.number.0, old.physical.0) == (port.number, port.port)) {
                let desc = self.ports.describe_virtual(port);
                let added = cut.logical.datapath.get().add_port(now, desc, &mut cut.logical.out);
                added.map_err(|problem| refused(&name, problem))?;
            }
        }
        if let Some(lifetime) = spec.lifetime {
            cut.expires = Some(now + lifetime);
        }
        let weight = spec.time_weight();
        cut.spec = spec;
        virtuals.shares.reweigh(place, weight);
        virtuals.compile();
        tracing::info!("virtual switch {name}: resized");
        self.follow_links(now);
        Ok(())
    }

    /// Returns the specification of a virtual switch.
    ///
    /// # Errors
    /// Fails if there is none of that name.
    pub(crate) fn virtual_spec(&self, name: &str) -> Result<VirtualSwitch, SwitchError> {
        let place = self.find_virtual(name)?;
        let cut = self.virtuals.as_ref().and_then(|virtuals| virtuals.switches[usize::from(place)].as_ref());
        cut.map(|cut| cut.spec.clone()).ok_or(SwitchError::Ended)
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
            let mut cuts = virtuals.all();
            cuts.find(|cut| cut.expires.is_some_and(|at| at <= now)).map(|cut| cut.index.0)
        };
        while let Some(place) = self.virtuals.as_deref().and_then(over) {
            self.end_virtual(place, "its lifetime is over; removed");
        }
    }

    fn end_virtual(&mut self, place: u16, why: &str) {
        let now = self.clock.now();
        let Some(virtuals) = &mut self.virtuals else { return };
        let Some(cut) = virtuals.switches.get_mut(usize::from(place)).and_then(Option::take) else { return };
        virtuals.order.retain(|other| *other != place);
        virtuals.fabric.remove(now, cut.index, &mut virtuals.dropped);
        virtuals.give_back(&mut self.pool);
        virtuals.shares.remove(place).for_each(|frame| self.pool.give(frame));
        virtuals.compile();
        tracing::info!("virtual switch {}: {why}", cut.spec.name);
        for channel in cut.logical.channels.channels() {
            if let Some(outbox) = cut.logical.channels.outbox(channel) {
                outbox.close("its virtual switch was removed");
            }
        }
        self.forget_virtuals_if_none();
    }

    /// Drops the state for virtual switches after the last one is removed, so that the packet path is as before the
    /// first.
    fn forget_virtuals_if_none(&mut self) {
        if let Some(virtuals) = self.virtuals.take_if(|virtuals| virtuals.order.is_empty()) {
            let mut virtuals = *virtuals;
            virtuals.outlets.iter_mut().for_each(|outlet| outlet.forget_own(&mut self.pool));
        }
    }

    pub(super) fn find_virtual(&self, name: &str) -> Result<u16, SwitchError> {
        let all = self.virtuals.as_ref().map(|virtuals| virtuals.all());
        let found = all.clone().into_iter().flatten().find(|cut| cut.spec.name == name).map(|cut| cut.index.0);
        found.ok_or_else(|| {
            let names: Vec<&str> = all.into_iter().flatten().map(|cut| cut.spec.name.as_str()).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            SwitchError::Request(format!("no virtual switch `{name}`; there are: {there}"))
        })
    }

    fn check_names(&mut self, spec: &VirtualSwitch) -> Result<(), SwitchError> {
        let wrong = |problem: String| Err(refused(&spec.name, problem));
        if self.logical.datapath.get().datapath_id() == spec.dpid {
            return wrong(format!("dpid: found {:#x}, which the switch itself has; expected another", spec.dpid));
        }
        for other in self.virtuals.iter().flat_map(|virtuals| virtuals.all()) {
            if other.spec.name == spec.name {
                return wrong("there is one of this name already; remove it, or resize it".to_owned());
            }
            if other.spec.dpid == spec.dpid {
                return wrong(format!("dpid: found {:#x}, which {} has; expected another", spec.dpid, other.spec.name));
            }
        }
        Ok(())
    }

    /// Checks the ports and selectors of a virtual switch. `own` is the fabric index of the switch to be changed, if
    /// it exists.
    fn check_virtual(&self, spec: &VirtualSwitch, own: Option<u16>) -> Result<(), SwitchError> {
        let wrong = |problem: String| Err(refused(&spec.name, problem));
        if self.workers.several.is_some() {
            return wrong(
                "the switch runs on several threads; virtual switches need --workers 1, or --mode pipeline".to_owned(),
            );
        }
        if self.logical.timed.is_some() {
            return wrong(
                "the switch has a profile, which is of one switch: expected one without --profile".to_owned(),
            );
        }
        for port in &spec.ports {
            let number = PortNo(port.port);
            let Some(place) = self.ports.place(number) else { return Err(self.no_port(number)) };
            if self.ports.slot(place).queues(|_| ()).is_some() {
                return wrong(format!("port {number} has queues; remove them first (weir ctl del-queue)"));
            }
        }
        let others = self.virtuals.iter().flat_map(|virtuals| virtuals.all()).filter(|cut| Some(cut.index.0) != own);
        for other in others {
            if let Some(twin) = spec.select.iter().find(|selector| other.spec.select.contains(selector)) {
                return wrong(format!("select: found {twin}, which {} has", other.spec.name));
            }
        }
        Ok(())
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
        ("connect", old.connect == new.connect),
        ("listen", old.listen == new.listen),
        ("tables", old.tables == new.tables),
        ("max_entries", old.max_entries == new.max_entries),
        ("max_packet_ins", old.max_packet_ins == new.max_packet_ins),
        ("fail_mode", old.fail_mode == new.fail_mode),
    ];
    match fixed.iter().find(|(_, is_same)| !is_same) {
        Some((what, _)) => Err(format!("{what} cannot change while it runs; remove it and add it anew")),
        None => Ok(()),
    }
}

impl EngineVirtualSwitches {
    fn new(shape: FabricSpec, now: Instant) -> Result<EngineVirtualSwitches, String> {
        if shape.ports.is_empty() {
            return Err(
                "no port has a rate that could be shared: give ports one (--port 1=memory:a,rate=1Gbit/s), or say \
                        `rate` in [fabric] of the file with virtual switches"
                    .to_owned(),
            );
        }
        let fabric = Fabric::new(shape.config(Duration::ZERO, 0)).map_err(|problem| problem.to_string())?;
        let outlets = FabricEgressLine::all(&shape);
        Ok(EngineVirtualSwitches {
            fabric,
            shape,
            sorter: TenantClassifier::default(),
            switches: Vec::new(),
            order: Vec::new(),
            outlets,
            shares: CpuShares::default(),
            asked_at: 0,
            turn: Vec::new(),
            dropped: Vec::new(),
            first: 0,
            turned_at: now,
        })
    }

    fn compile(&mut self) {
        let EngineVirtualSwitches { sorter, order, switches: cuts, .. } = self;
        let all = order.iter().filter_map(|place| cuts.get(usize::from(*place))?.as_deref());
        sorter.compile(all.map(|cut| (cut.index.0, &cut.spec)));
    }
}
