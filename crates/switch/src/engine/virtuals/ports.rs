//! Presents the ports of virtual switches to their controllers. A port is a share of a physical port and has its own
//! number. The queues of an output port are its crosspoints in the fabric, each with the number of the crosspoint's
//! input port.
use super::{EngineVirtualSwitch, EngineVirtualSwitches};
use crate::engine::Engine;
use crate::engine::ports::PortSlots;
use weir_datapath::{PortCounters, PortQueue, PortQueues};
use weir_fabric::{Crosspoint, CrosspointCounters};
use weir_openflow::model::port::bits;
use weir_openflow::model::{PortDesc, PortNo};
use weir_slicing::{VirtualPortSpec, VirtualPortState};
use weir_units::{Bps, Instant};

/// Converts a rate to kbit/s, the unit of port descriptions.
fn kbps(rate: Bps) -> u32 {
    u32::try_from(rate.0 / 1000).unwrap_or(u32::MAX)
}

impl PortSlots {
    /// Returns true if the physical port is present and its link is up.
    fn has_link(&self, port: PortNo) -> bool {
        self.place(port).is_some_and(|place| self.slot(place).is_up())
    }

    /// Returns the description of a virtual switch's port for its controllers.
    pub(super) fn describe_virtual(&self, port: &VirtualPortSpec) -> PortDesc {
        let slot = self.place(PortNo(port.port)).map(|place| self.slot(place).desc());
        PortDesc {
            port_no: PortNo(port.number),
            hw_addr: slot.as_ref().map(|desc| desc.hw_addr).unwrap_or_default(),
            name: slot.map_or_else(|| format!("port{}", port.port), |desc| desc.name),
            config: 0,
            state: if self.has_link(PortNo(port.port)) { bits::LIVE } else { bits::LINK_DOWN },
            curr: 0,
            advertised: 0,
            supported: 0,
            peer: 0,
            curr_speed: kbps(port.rate_out),
            max_speed: kbps(port.ceiling.unwrap_or(port.rate_out)),
            properties: Vec::new(),
        }
    }
}

impl EngineVirtualSwitches {
    /// Returns the counters of the crosspoint from port index `from` to port index `to`.
    pub(super) fn crosspoint(&self, cut: &EngineVirtualSwitch, from: usize, to: usize) -> CrosspointCounters {
        let (input, output) = (cut.inlets[from].index, cut.inlets[to].index);
        self.fabric.counters(Crosspoint { switch: cut.index, input, output }).unwrap_or_default()
    }

    /// Returns the summed counters of all crosspoints to port index `to`.
    pub(super) fn to_port(&self, cut: &EngineVirtualSwitch, to: usize) -> CrosspointCounters {
        let mut sum = CrosspointCounters::default();
        (0..cut.inlets.len()).for_each(|from| sum += self.crosspoint(cut, from, to));
        sum
    }

    fn port_counters(&self, cut: &EngineVirtualSwitch, at: usize) -> PortCounters {
        let (received, sent) = (cut.inlets[at].received, self.to_port(cut, at));
        PortCounters {
            rx_packets: received.packets,
            rx_bytes: received.bytes,
            rx_dropped: cut.inlets[at].unserved,
            tx_packets: sent.departed.packets,
            tx_bytes: sent.departed.bytes,
            tx_dropped: sent.dropped().packets + cut.inlets[at].untagged,
            ..PortCounters::default()
        }
    }

    fn port_queues(&self, cut: &EngineVirtualSwitch, to: usize) -> PortQueues {
        let port = &cut.spec.ports[to];
        let queue = |(from, inlet): (usize, &VirtualPortState)| {
            let counters = self.crosspoint(cut, from, to);
            PortQueue {
                id: inlet.number.0,
                min: None,
                max: port.ceiling,
                tx_packets: counters.departed.packets,
                tx_bytes: counters.departed.bytes,
                tx_dropped: counters.dropped().packets,
                since: inlet.since.max(cut.inlets[to].since),
            }
        };
        let leads = |from: &VirtualPortState| {
            cut.spec.paths.as_ref().is_none_or(|paths| paths.contains(&[from.number.0, cut.inlets[to].number.0]))
        };
        let mut queues: Vec<PortQueue> =
            cut.inlets.iter().enumerate().filter(|(_, from)| leads(from)).map(queue).collect();
        queues.sort_by_key(|queue| queue.id);
        PortQueues { rate: Some(port.rate_out), queues }
    }
}

impl Engine {
    /// Returns the virtual switch that the engine is serving now; `None` if it serves the physical switch.
    fn served(&self) -> Option<(&EngineVirtualSwitches, &EngineVirtualSwitch)> {
        let virtuals = self.virtuals.as_deref()?;
        let cut = virtuals.switches.get(usize::from(self.serving?))?.as_deref()?;
        Some((virtuals, cut))
    }

    /// Copies the port counters of the virtual switch being served into its datapath. Does nothing if the physical
    /// switch is served.
    pub(in crate::engine) fn count_virtual_ports(&mut self) {
        let Some((virtuals, cut)) = self.served() else { return };
        let counted: Vec<_> =
            (0..cut.inlets.len()).map(|at| (cut.inlets[at].number, virtuals.port_counters(cut, at))).collect();
        for (number, counters) in counted {
            self.logical.datapath.get().set_port_counters(number, counters);
        }
    }

    /// Copies the configuration and counters of the queues of the virtual switch being served into its datapath. Does
    /// nothing if the physical switch is served.
    pub(in crate::engine) fn tell_virtual_queues(&mut self) {
        let Some((virtuals, cut)) = self.served() else { return };
        let told: Vec<_> =
            (0..cut.inlets.len()).map(|at| (cut.inlets[at].number, virtuals.port_queues(cut, at))).collect();
        for (number, queues) in told {
            self.logical.datapath.get().set_port_queues(number, queues);
        }
    }

    /// Returns the numbers and names of the ports of the virtual switch being served; `None` if the physical switch is
    /// served.
    pub(in crate::engine) fn virtual_ports(&self) -> Option<Vec<(PortNo, String)>> {
        let (_, cut) = self.served()?;
        let name = |physical: PortNo| match self.ports.place(physical) {
            Some(place) => self.ports.slot(place).name().to_owned(),
            None => format!("port{physical}"),
        };
        Some(cut.inlets.iter().map(|inlet| (inlet.number, name(inlet.physical))).collect())
    }

    /// Returns true if any virtual switch has a share of `port`.
    pub(in crate::engine) fn is_shared(&self, port: PortNo) -> bool {
        let mut cuts = self.virtuals.iter().flat_map(|virtuals| virtuals.all());
        cuts.any(|cut| cut.inlets.iter().any(|inlet| inlet.physical == port))
    }

    /// Sets the link states of all virtual switches' ports to those of their physical ports. Does nothing while a
    /// virtual switch is being served.
    pub(in crate::engine) fn follow_links(&mut self, now: Instant) {
        let Some(virtuals) = &mut self.virtuals else { return };
        if self.serving.is_some() {
            return;
        }
        for place in virtuals.order.clone() {
            let Some(cut) = self.virtuals.as_mut().and_then(|virtuals| virtuals.cut(place)) else { continue };
            let EngineVirtualSwitch { inlets, spec, logical, .. } = cut;
            for (inlet, port) in inlets.iter().zip(&spec.ports) {
                let (up, speed) = (self.ports.has_link(inlet.physical), kbps(port.rate_out));
                logical.datapath.get().set_link(now, inlet.number, up, speed, &mut logical.out);
            }
            self.serve_at(place, |engine| engine.deliver(now));
        }
    }
}
