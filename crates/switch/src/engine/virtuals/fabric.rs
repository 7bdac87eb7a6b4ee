//! Keeps the fabric between the ports of virtual switches, and transmits the frames that it schedules.
use super::VirtualPorts;
use crate::engine::io::EngineIo;
use std::time::Duration;
use weir_datapath::{PortCounters, PortQueue, PortQueues};
use weir_fabric::{Crosspoint, CrosspointCounters, Fabric, FabricDrop};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_slicing::{FabricEgressLine, FabricIngress, FabricSpec, VirtualPortState};
use weir_units::Instant;

/// The fabric of an engine, with the lines from it to the ports.
pub(crate) struct EngineFabric {
    pub(super) fabric: Fabric<Frame>,
    /// Configuration of the fabric: its ports and capacities.
    pub(super) shape: FabricSpec,
    /// Lines to the ports, by port of the fabric.
    pub(super) lines: Vec<FabricEgressLine>,
    /// Frames that the fabric dropped last.
    pub(super) dropped: Vec<FabricDrop<Frame>>,
}

impl EngineFabric {
    /// Returns an empty fabric.
    ///
    /// # Errors
    /// Fails if no port has a rate, or if the fabric refuses the configuration.
    pub(super) fn new(shape: FabricSpec) -> Result<EngineFabric, String> {
        if shape.ports.is_empty() {
            return Err(
                "no port has a rate that could be shared: give ports one (--port 1=memory:a,rate=1Gbit/s), or say \
                        `rate` in [fabric] of the file with virtual switches"
                    .to_owned(),
            );
        }
        let fabric = Fabric::new(shape.config(Duration::ZERO, 0)).map_err(|problem| problem.to_string())?;
        let lines = FabricEgressLine::all(&shape);
        Ok(EngineFabric { fabric, shape, lines, dropped: Vec::new() })
    }

    /// Returns the entrance for frames of virtual switches.
    #[inline]
    pub(in crate::engine) fn ingress(&mut self) -> FabricIngress<'_> {
        FabricIngress { fabric: &mut self.fabric, outlets: &mut self.lines, dropped: &mut self.dropped }
    }

    /// Queues frames that the physical switch's own tables output to `port`, if the port belongs to the fabric. The
    /// frames are sent when virtual switches leave capacity. Returns false and leaves `frames` unchanged if the port
    /// does not belong to the fabric.
    pub(in crate::engine) fn queue_own(
        &mut self,
        now: Instant,
        port: PortNo,
        frames: &mut Vec<Frame>,
        pool: &mut FramePool,
    ) -> bool {
        let Some(line) = self.lines.iter_mut().find(|line| line.port == port) else { return false };
        frames.drain(..).for_each(|frame| line.take_own(now, frame, pool));
        true
    }

    /// Transmits the frames that the fabric schedules up to `now`. Returns true if there were any.
    pub(super) fn drive(&mut self, now: Instant, io: &mut EngineIo) -> bool {
        let mut any = false;
        for line in &mut self.lines {
            line.drive(now, &mut self.fabric);
            if line.leaving.is_empty() {
                continue;
            }
            any = true;
            if !io.transmit_if_open(now, line.port, &mut line.leaving) {
                // Without its device the line keeps running, so that the virtual switches' frames do not pile up.
                line.leaving.drain(..).for_each(|frame| io.pool.give(frame));
            }
        }
        any
    }

    /// Time at which a line sends its next frame.
    pub(super) fn due(&self) -> Instant {
        self.lines.iter().map(FabricEgressLine::due).fold(Instant::FAR, Instant::min)
    }

    /// Returns to the pool the buffers of frames that the fabric dropped.
    pub(super) fn give_back(&mut self, pool: &mut FramePool) {
        self.dropped.drain(..).for_each(|dropped| pool.give(dropped.packet.item));
    }

    /// Returns the counters of the crosspoint from port index `from` to port index `to`.
    pub(super) fn crosspoint(&self, ports: &VirtualPorts, from: usize, to: usize) -> CrosspointCounters {
        let (input, output) = (ports.inlets[from].index, ports.inlets[to].index);
        self.fabric.counters(Crosspoint { switch: ports.index, input, output }).unwrap_or_default()
    }

    /// Returns the summed counters of all crosspoints to port index `to`.
    pub(super) fn to_port(&self, ports: &VirtualPorts, to: usize) -> CrosspointCounters {
        let mut sum = CrosspointCounters::default();
        (0..ports.inlets.len()).for_each(|from| sum += self.crosspoint(ports, from, to));
        sum
    }

    /// Returns the counters of the port at index `at`, in the datapath's form.
    pub(in crate::engine) fn port_counters(&self, ports: &VirtualPorts, at: usize) -> PortCounters {
        let (inlet, sent) = (&ports.inlets[at], self.to_port(ports, at));
        PortCounters {
            rx_packets: inlet.received.packets,
            rx_bytes: inlet.received.bytes,
            rx_dropped: inlet.unserved,
            tx_packets: sent.departed.packets,
            tx_bytes: sent.departed.bytes,
            tx_dropped: sent.dropped().packets + inlet.untagged,
            ..PortCounters::default()
        }
    }

    /// Returns the queues of the port at index `to`: its crosspoints, numbered by their input ports.
    pub(in crate::engine) fn port_queues(&self, ports: &VirtualPorts, to: usize) -> PortQueues {
        let port = &ports.spec.ports[to];
        let queue = |(from, inlet): (usize, &VirtualPortState)| {
            let counters = self.crosspoint(ports, from, to);
            PortQueue {
                id: inlet.number.0,
                min: None,
                max: port.ceiling,
                tx_packets: counters.departed.packets,
                tx_bytes: counters.departed.bytes,
                tx_dropped: counters.dropped().packets,
                since: inlet.since.max(ports.inlets[to].since),
            }
        };
        let leads = |from: &VirtualPortState| {
            let paths = ports.spec.paths.as_ref();
            paths.is_none_or(|paths| paths.contains(&[from.number.0, ports.inlets[to].number.0]))
        };
        let inputs = ports.inlets.iter().enumerate();
        let mut queues: Vec<PortQueue> = inputs.filter(|(_, from)| leads(from)).map(queue).collect();
        queues.sort_by_key(|queue| queue.id);
        PortQueues { rate: Some(port.rate_out), queues }
    }
}
