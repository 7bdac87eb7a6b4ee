//! Reports the state of virtual switches for snapshots.
use super::{EngineVirtualSwitch, EngineVirtualSwitches};
use crate::engine::Engine;
use crate::snapshot::{CpuShareSnapshot, CrosspointSnapshot, PortSnapshot, VirtualPortSnapshot, VirtualSwitchSnapshot};
use std::collections::BTreeMap;
use weir_fabric::{CrosspointCounters, FabricDropReason};
use weir_port::FrameCounters;
use weir_units::Clock;

impl Engine {
    /// Returns the state of all virtual switches, in the order of the first lookup.
    pub(crate) fn virtual_snapshots(&self) -> Vec<VirtualSwitchSnapshot> {
        let now = self.clock.now();
        let all = self.virtuals.iter().flat_map(|virtuals| virtuals.all().map(move |cut| (virtuals, cut)));
        all.map(|(virtuals, cut)| VirtualSwitchSnapshot {
            spec: serde_json::json!(cut.spec),
            name: cut.spec.name.clone(),
            datapath_id: cut.spec.dpid,
            ends_in_s: cut.expires.map(|at| at.since(now).as_secs_f64()),
            ports: (0..cut.inlets.len()).map(|at| virtuals.port_snapshot(cut, at)).collect(),
            time: self.time_of(virtuals, cut),
            crosspoints: virtuals.crosspoint_snapshots(cut),
        })
        .collect()
    }

    fn time_of(&self, virtuals: &EngineVirtualSwitches, cut: &EngineVirtualSwitch) -> CpuShareSnapshot {
        let Some(had) = virtuals.shares.had(cut.index.0) else { return CpuShareSnapshot::default() };
        CpuShareSnapshot {
            weight: had.weight,
            part: had.part,
            used_s: had.total as f64 / self.cycles_per_ns() / 1e9,
            waiting: had.waiting as u64,
            dropped: had.dropped,
        }
    }

    /// Returns the number of packets dropped because too many waited for their virtual switch's turn: of the served
    /// switch, or of all.
    pub(in crate::engine) fn unserved(&self) -> u64 {
        let of = |virtuals: &EngineVirtualSwitches, place| virtuals.shares.had(place).map_or(0, |had| had.dropped);
        let Some(virtuals) = self.virtuals.as_deref() else { return 0 };
        match self.serving {
            Some(place) => of(virtuals, place),
            None => virtuals.order.iter().map(|place| of(virtuals, *place)).sum(),
        }
    }

    /// Returns the ports of the served virtual switch; `None` if the physical switch is served.
    pub(in crate::engine) fn virtual_port_snapshots(&self) -> Option<Vec<PortSnapshot>> {
        let virtuals = self.virtuals.as_deref()?;
        let cut = virtuals.switches.get(usize::from(self.serving?))?.as_deref()?;
        let ports = (0..cut.inlets.len()).filter_map(|at| {
            let inlet = &cut.inlets[at];
            let physical = self.ports.slot(self.ports.place(inlet.physical)?).snapshot();
            let sent = virtuals.to_port(cut, at);
            Some(PortSnapshot {
                number: inlet.number,
                spec: format!("virtual:{}", inlet.physical),
                speed_bps: Some(cut.spec.ports[at].rate_out.0),
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
        Some(ports.collect())
    }

    /// Returns the number of frames from the physical switch's own tables that found no room behind the virtual
    /// switches' frames.
    pub(in crate::engine) fn own_dropped(&self) -> u64 {
        self.virtuals.iter().flat_map(|virtuals| &virtuals.outlets).map(|outlet| outlet.own_dropped).sum()
    }
}

impl EngineVirtualSwitches {
    fn port_snapshot(&self, cut: &EngineVirtualSwitch, at: usize) -> VirtualPortSnapshot {
        let (inlet, port, sent) = (&cut.inlets[at], &cut.spec.ports[at], self.to_port(cut, at));
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
    fn crosspoint_snapshots(&self, cut: &EngineVirtualSwitch) -> Vec<CrosspointSnapshot> {
        let places = 0..cut.inlets.len();
        let pairs = places.clone().flat_map(|from| places.clone().map(move |to| (from, to)));
        let seen = pairs.map(|(from, to)| (from, to, self.crosspoint(cut, from, to)));
        seen.filter(|(_, _, counters)| counters.arrived.packets > 0)
            .map(|(from, to, counters)| CrosspointSnapshot {
                from: cut.inlets[from].number,
                to: cut.inlets[to].number,
                packets: counters.departed.packets,
                bytes: counters.departed.bytes,
                queued_bytes: counters.queued.bytes,
                peak_bytes: counters.peak_bytes,
                dropped: drops(&counters),
            })
            .collect()
    }
}

/// Returns the packets dropped at a crosspoint, by reason; reasons without packets are left out.
fn drops(counters: &CrosspointCounters) -> BTreeMap<String, u64> {
    let counted = FabricDropReason::ALL.map(|reason| (reason.name().to_owned(), counters.dropped_for(reason).packets));
    counted.into_iter().filter(|(_, packets)| *packets > 0).collect()
}
