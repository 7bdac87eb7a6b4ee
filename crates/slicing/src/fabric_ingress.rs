//! Moves a virtual switch's frames from its datapath into the fabric.
use crate::VirtualSwitch;
use crate::edge;
use crate::fabric_egress::FabricEgressLine;
use crate::virtual_port::{self, VirtualPortState};
use weir_fabric::{Crosspoint, Fabric, FabricDrop, FabricPacket, VirtualSwitchIndex};
use weir_openflow::model::PortNo;
use weir_packet::frame::DEFAULT_QUEUE;
use weir_packet::{Frame, FramePool, offload};
use weir_units::Instant;

/// Parts behind the datapaths that all virtual switches share.
pub struct FabricIngress<'a> {
    /// Fabric that carries the frames.
    pub fabric: &'a mut Fabric<Frame>,
    /// Outlets of the fabric, by port index.
    pub outlets: &'a mut [FabricEgressLine],
    /// List that receives the frames dropped by the fabric.
    pub dropped: &'a mut Vec<FabricDrop<Frame>>,
}

/// Virtual switch that frames belong to, and their input port.
#[derive(Debug)]
pub struct FabricIngressSource<'a> {
    /// Index of the virtual switch in the fabric.
    pub index: VirtualSwitchIndex,
    /// Specification of the virtual switch.
    pub spec: &'a VirtualSwitch,
    /// Ports of the virtual switch.
    pub inlets: &'a mut [VirtualPortState],
    /// Index of the input port; `None` for packets from controllers.
    pub input: Option<usize>,
}

impl FabricIngress<'_> {
    /// Puts frames into the fabric. `lists` gives the frames by the virtual switch's number of their output port.
    pub fn enqueue(
        &mut self,
        now: Instant,
        whose: FabricIngressSource<'_>,
        lists: &mut [(PortNo, Vec<Frame>)],
        pool: &mut FramePool,
    ) {
        let FabricIngressSource { index: switch, spec, inlets, input } = whose;
        for (port, frames) in lists.iter_mut().filter(|(_, frames)| !frames.is_empty()) {
            let Some(output) = inlets.iter().position(|inlet| inlet.number == *port) else {
                frames.drain(..).for_each(|frame| pool.give(frame));
                continue;
            };
            let to = inlets[output].index;
            let own = input.unwrap_or_else(|| virtual_port::for_output(spec, inlets, output));
            if let Some(vlan) = inlets[output].vlan {
                // Each packet of a super-frame needs its own tag.
                if frames.iter().any(|frame| !frame.offload.is_none()) {
                    finish(frames, pool);
                }
                inlets[output].untagged += edge::tag(frames, vlan, pool);
            }
            if frames.iter().all(|frame| frame.offload.is_none() && frame.queue == DEFAULT_QUEUE) {
                let at = Crosspoint { switch, input: inlets[own].index, output: to };
                let packets = frames.drain(..).map(|frame| FabricPacket::new(frame.bytes_len(), frame));
                self.fabric.enqueue_all(now, at, packets, self.dropped);
            } else {
                finish(frames, pool);
                for mut frame in frames.drain(..) {
                    let from = match frame.queue {
                        DEFAULT_QUEUE => own,
                        queue => virtual_port::of_queue(inlets, queue).unwrap_or(own),
                    };
                    frame.queue = DEFAULT_QUEUE;
                    let at = Crosspoint { switch, input: inlets[from].index, output: to };
                    self.fabric.enqueue(now, at, FabricPacket::new(frame.bytes_len(), frame), self.dropped);
                }
            }
            if let Some(outlet) = self.outlets.get_mut(usize::from(to.0)) {
                outlet.expect(now);
            }
        }
        self.dropped.drain(..).for_each(|dropped| pool.give(dropped.packet.item));
    }
}

/// Completes the frames' offloaded work, such as segmentation. A super-frame would take a turn at the line as one
/// packet, and would not fit into most buffers.
#[cold]
fn finish(frames: &mut Vec<Frame>, pool: &mut FramePool) {
    let mut finished = Vec::with_capacity(frames.len());
    for frame in frames.drain(..) {
        offload::finish(frame, pool, &mut finished);
    }
    *frames = finished;
}
