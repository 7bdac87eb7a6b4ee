//! The ports of virtual switches: shares of physical ones, with numbers of their own. Their queues are their crosspoints' buffers,
//! each named after the port that packets come in by.
use super::{Cut, Virtuals};
use crate::engine::Engine;
use crate::engine::ports::Ports;
use crate::virtuals::inlet::Inlet;
use weir_datapath::{PortCounters, PortQueue, PortQueues};
use weir_fabric::{Crosspoint, CrosspointCounters};
use weir_openflow::model::port::bits;
use weir_openflow::model::{PortDesc, PortNo};
use weir_scenario::VirtualPort;
use weir_units::{Bps, Instant};

/// A rate in kbit/s, as descriptions of ports have it.
fn kbps(rate: Bps) -> u32 {
    u32::try_from(rate.0 / 1000).unwrap_or(u32::MAX)
}

impl Ports {
    /// Whether the physical port is there and has link.
    fn has_link(&self, port: PortNo) -> bool {
        self.place(port).is_some_and(|place| self.slot(place).is_up())
    }

    /// A virtual switch's port as its controllers see it.
    pub(super) fn describe_virtual(&self, port: &VirtualPort) -> PortDesc {
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

impl Virtuals {
    /// What happened at the crosspoints from one of a switch's ports to another.
    pub(super) fn crosspoint(&self, cut: &Cut, from: usize, to: usize) -> CrosspointCounters {
        let (input, output) = (cut.inlets[from].index, cut.inlets[to].index);
        self.fabric.counters(Crosspoint { switch: cut.index, input, output }).unwrap_or_default()
    }

    /// The same of all crosspoints that lead to a port.
    pub(super) fn to_port(&self, cut: &Cut, to: usize) -> CrosspointCounters {
        let mut sum = CrosspointCounters::default();
        (0..cut.inlets.len()).for_each(|from| sum += self.crosspoint(cut, from, to));
        sum
    }

    fn port_counters(&self, cut: &Cut, at: usize) -> PortCounters {
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

    fn port_queues(&self, cut: &Cut, to: usize) -> PortQueues {
        let port = &cut.spec.ports[to];
        let queue = |(from, inlet): (usize, &Inlet)| {
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
        let leads = |from: &Inlet| {
            cut.spec.paths.as_ref().is_none_or(|paths| paths.contains(&[from.number.0, cut.inlets[to].number.0]))
        };
        let mut queues: Vec<PortQueue> =
            cut.inlets.iter().enumerate().filter(|(_, from)| leads(from)).map(queue).collect();
        queues.sort_by_key(|queue| queue.id);
        PortQueues { rate: Some(port.rate_out), queues }
    }
}

impl Engine {
    /// The virtual switch that is served.
    fn served(&self) -> Option<(&Virtuals, &Cut)> {
        let virtuals = self.virtuals.as_deref()?;
        let cut = virtuals.cuts.get(usize::from(self.serving?))?.as_deref()?;
        Some((virtuals, cut))
    }

    /// What the served virtual switch's ports counted.
    pub(in crate::engine) fn count_virtual_ports(&mut self) {
        let Some((virtuals, cut)) = self.served() else { return };
        let counted: Vec<_> =
            (0..cut.inlets.len()).map(|at| (cut.inlets[at].number, virtuals.port_counters(cut, at))).collect();
        for (number, counters) in counted {
            self.logical.datapath.get().set_port_counters(number, counters);
        }
    }

    /// Tells its datapath of the served virtual switch's queues.
    pub(in crate::engine) fn tell_virtual_queues(&mut self) {
        let Some((virtuals, cut)) = self.served() else { return };
        let told: Vec<_> =
            (0..cut.inlets.len()).map(|at| (cut.inlets[at].number, virtuals.port_queues(cut, at))).collect();
        for (number, queues) in told {
            self.logical.datapath.get().set_port_queues(number, queues);
        }
    }

    /// The numbers and names of the served virtual switch's ports.
    pub(in crate::engine) fn virtual_ports(&self) -> Option<Vec<(PortNo, String)>> {
        let (_, cut) = self.served()?;
        let name = |physical: PortNo| match self.ports.place(physical) {
            Some(place) => self.ports.slot(place).name().to_owned(),
            None => format!("port{physical}"),
        };
        Some(cut.inlets.iter().map(|inlet| (inlet.number, name(inlet.physical))).collect())
    }

    /// Whether virtual switches have shares of a port.
    pub(in crate::engine) fn is_shared(&self, port: PortNo) -> bool {
        let mut cuts = self.virtuals.iter().flat_map(|virtuals| virtuals.all());
        cuts.any(|cut| cut.inlets.iter().any(|inlet| inlet.physical == port))
    }

    /// Virtual switches' ports follow the physical ones.
    pub(in crate::engine) fn follow_links(&mut self, now: Instant) {
        let Some(virtuals) = &mut self.virtuals else { return };
        if self.serving.is_some() {
            return;
        }
        for place in virtuals.order.clone() {
            let Some(cut) = self.virtuals.as_mut().and_then(|virtuals| virtuals.cut(place)) else { continue };
            let Cut { inlets, spec, logical, .. } = cut;
            for (inlet, port) in inlets.iter().zip(&spec.ports) {
                let (up, speed) = (self.ports.has_link(inlet.physical), kbps(port.rate_out));
                logical.datapath.get().set_link(now, inlet.number, up, speed, &mut logical.out);
            }
            self.serve_at(place, |engine| engine.deliver(now));
        }
    }
}
