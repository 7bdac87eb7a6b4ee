//! Reports the state of virtual switches for snapshots.
use super::{EngineFabric, EngineVirtualSwitch, EngineVirtualSwitches, VirtualId, VirtualPorts};
use crate::engine::Engine;
use crate::engine::ports::PortSlots;
use crate::snapshot::{CpuShareSnapshot, CrosspointSnapshot, PortSnapshot, VirtualPortSnapshot, VirtualSwitchSnapshot};
use std::collections::BTreeMap;
use weir_fabric::{CrosspointCounters, FabricDropReason};
use weir_port::FrameCounters;
use weir_slicing::CpuShareUsage;
use weir_units::Instant;

impl Engine {
    /// Returns the state of all virtual switches, in the order of the first lookup.
    pub(crate) fn virtual_snapshots(&mut self) -> Vec<VirtualSwitchSnapshot> {
        let (now, cycles_per_ns) = (self.io.now(), self.io.cycles_per_ns());
        self.virtuals.as_mut().map(|virtuals| virtuals.snapshots(now, cycles_per_ns)).unwrap_or_default()
    }
}

impl EngineVirtualSwitches {
    fn snapshots(&mut self, now: Instant, cycles_per_ns: f64) -> Vec<VirtualSwitchSnapshot> {
        let EngineVirtualSwitches { fabric, switches, shares, order, .. } = self;
        let mut snapshots = Vec::with_capacity(order.len());
        for place in order {
            let Some(switch) = switches.get_mut(usize::from(*place)).and_then(Option::as_deref_mut) else { continue };
            let EngineVirtualSwitch { ports, logical, expires, .. } = switch;
            snapshots.push(VirtualSwitchSnapshot {
                spec: serde_json::json!(ports.spec),
                name: ports.spec.name.clone(),
                datapath_id: ports.spec.dpid,
                ends_in_s: expires.map(|at| at.since(now).as_secs_f64()),
                ports: (0..ports.inlets.len()).map(|at| fabric.port_snapshot(ports, at)).collect(),
                time: shares.had(*place).map(|had| cpu_share(&had, cycles_per_ns)).unwrap_or_default(),
                crosspoints: fabric.crosspoint_snapshots(ports),
                drops: logical.drops().into_iter().collect(),
            });
        }
        snapshots
    }

    /// Returns the number of packets dropped because too many waited for their virtual switch's turn: of the virtual
    /// switch `of`, or of all.
    pub(in crate::engine) fn unserved(&self, of: Option<VirtualId>) -> u64 {
        let switches = self.all().filter(|switch| of.is_none_or(|id| switch.id == id));
        switches.filter_map(|switch| self.shares.had(switch.place())).map(|had| had.dropped).sum()
    }

    /// Returns the ports of a virtual switch; `None` if it does not exist.
    pub(in crate::engine) fn port_snapshots(&self, of: VirtualId, physical: &PortSlots) -> Option<Vec<PortSnapshot>> {
        let ports = &self.all().find(|switch| switch.id == of)?.ports;
        let snapshots = ports.inlets.iter().enumerate().filter_map(|(at, inlet)| {
            let physical = physical.slot(physical.place(inlet.physical)?).snapshot();
            let sent = self.fabric.to_port(ports, at);
            Some(PortSnapshot {
                number: inlet.number,
                spec: format!("virtual:{}", inlet.physical),
                speed_bps: Some(ports.spec.ports[at].rate_out.0),
                counters: FrameCounters {
                    rx_packets: inlet.received.packets,
                    rx_bytes: inlet.received.bytes,
                    tx_packets: sent.departed.packets,
                    tx_bytes: sent.departed.bytes,
                    tx_full: sent.dropped().packets + inlet.untagged,
                    ..FrameCounters::default()
                },
                queues: Vec::new(),
                stray_packets: 0,
                ..physical
            })
        });
        Some(snapshots.collect())
    }

    /// Returns the number of frames from the physical switch's own tables that found no room behind the virtual
    /// switches' frames.
    pub(in crate::engine) fn own_dropped(&self) -> u64 {
        self.fabric.lines.iter().map(|line| line.own_dropped).sum()
    }
}

impl EngineFabric {
    fn port_snapshot(&self, ports: &VirtualPorts, at: usize) -> VirtualPortSnapshot {
        let (inlet, port, sent) = (&ports.inlets[at], &ports.spec.ports[at], self.to_port(ports, at));
        VirtualPortSnapshot {
            number: inlet.number,
            port: inlet.physical,
            rate_in: port.rate_in,
            rate_out: port.rate_out,
            ceiling: port.ceiling,
            vlan: inlet.vlan,
            rx_packets: inlet.received.packets,
            rx_bytes: inlet.received.bytes,
            tx_packets: sent.departed.packets,
            tx_bytes: sent.departed.bytes,
            dropped: sent.dropped().packets + inlet.untagged,
            queued_bytes: sent.queued.bytes,
        }
    }

    /// Returns the crosspoints at which packets have arrived.
    fn crosspoint_snapshots(&self, ports: &VirtualPorts) -> Vec<CrosspointSnapshot> {
        let places = 0..ports.inlets.len();
        let pairs = places.clone().flat_map(|from| places.clone().map(move |to| (from, to)));
        let seen = pairs.map(|(from, to)| (from, to, self.crosspoint(ports, from, to)));
        seen.filter(|(_, _, counters)| counters.arrived.packets > 0)
            .map(|(from, to, counters)| CrosspointSnapshot {
                from: ports.inlets[from].number,
                to: ports.inlets[to].number,
                packets: counters.departed.packets,
                bytes: counters.departed.bytes,
                queued_bytes: counters.queued.bytes,
                peak_bytes: counters.peak_bytes,
                dropped: drops(&counters),
            })
            .collect()
    }
}

/// Returns the time that a virtual switch had of the engine.
fn cpu_share(had: &CpuShareUsage, cycles_per_ns: f64) -> CpuShareSnapshot {
    CpuShareSnapshot {
        weight: had.weight,
        part: had.part,
        used_s: had.total as f64 / cycles_per_ns / 1e9,
        waiting: had.waiting as u64,
        dropped: had.dropped,
    }
}

/// Returns the packets dropped at a crosspoint, by reason; reasons without packets are left out.
fn drops(counters: &CrosspointCounters) -> BTreeMap<String, u64> {
    let counted = FabricDropReason::ALL.map(|reason| (reason.name().to_owned(), counters.dropped_for(reason).packets));
    counted.into_iter().filter(|(_, packets)| *packets > 0).collect()
}
