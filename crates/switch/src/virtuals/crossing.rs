//! Frames of a virtual switch on their way from its datapath into the fabric.
use super::edge;
use super::inlet::{self, Inlet};
use super::outlet::Outlet;
use weir_fabric::{Crosspoint, Dropped, Fabric, Packet, SwitchIndex};
use weir_openflow::model::PortNo;
use weir_packet::frame::DEFAULT_QUEUE;
use weir_packet::{Frame, FramePool, offload};
use weir_scenario::VirtualSwitch;
use weir_units::Instant;

/// What all virtual switches share behind their datapaths.
pub struct Crossing<'a> {
    /// The fabric.
    pub fabric: &'a mut Fabric<Frame>,
    /// Its outputs.
    pub outlets: &'a mut [Outlet],
    /// Gets what the fabric drops.
    pub dropped: &'a mut Vec<Dropped<Frame>>,
}

/// Whose frames they are.
#[derive(Debug)]
pub struct Whose<'a> {
    /// Its place in the fabric.
    pub index: SwitchIndex,
    /// What it was asked to be.
    pub spec: &'a VirtualSwitch,
    /// Its ports.
    pub inlets: &'a mut [Inlet],
    /// The place of the port that they came in by; none for those of controllers.
    pub input: Option<usize>,
}

impl Crossing<'_> {
    /// Puts frames into the fabric, given by the number of the port they are for.
    pub fn enqueue(
        &mut self,
        now: Instant,
        whose: Whose<'_>,
        lists: &mut [(PortNo, Vec<Frame>)],
        pool: &mut FramePool,
    ) {
        let Whose { index: switch, spec, inlets, input } = whose;
        for (port, frames) in lists.iter_mut().filter(|(_, frames)| !frames.is_empty()) {
            let Some(output) = inlets.iter().position(|inlet| inlet.number == *port) else {
                frames.drain(..).for_each(|frame| pool.give(frame));
                continue;
            };
            let to = inlets[output].index;
            let own = input.unwrap_or_else(|| inlet::for_output(spec, inlets, output));
            if let Some(vlan) = inlets[output].vlan {
                // A super-frame's packets each have a tag.
                if frames.iter().any(|frame| !frame.offload.is_none()) {
                    finish(frames, pool);
                }
                inlets[output].untagged += edge::tag(frames, vlan, pool);
            }
            if frames.iter().all(|frame| frame.offload.is_none() && frame.queue == DEFAULT_QUEUE) {
                let at = Crosspoint { switch, input: inlets[own].index, output: to };
                let packets = frames.drain(..).map(|frame| Packet::new(frame.bytes_len(), frame));
                self.fabric.enqueue_all(now, at, packets, self.dropped);
            } else {
                finish(frames, pool);
                for mut frame in frames.drain(..) {
                    let from = match frame.queue {
                        DEFAULT_QUEUE => own,
                        queue => inlet::of_queue(inlets, queue).unwrap_or(own),
                    };
                    frame.queue = DEFAULT_QUEUE;
                    let at = Crosspoint { switch, input: inlets[from].index, output: to };
                    self.fabric.enqueue(now, at, Packet::new(frame.bytes_len(), frame), self.dropped);
                }
            }
            if let Some(outlet) = self.outlets.get_mut(usize::from(to.0)) {
                outlet.expect(now);
            }
        }
        self.dropped.drain(..).for_each(|dropped| pool.give(dropped.packet.item));
    }
}

/// Does what senders left to be done: a super-frame would take its whole turn at a line for one packet, and not fit most buffers.
#[cold]
fn finish(frames: &mut Vec<Frame>, pool: &mut FramePool) {
    let mut finished = Vec::with_capacity(frames.len());
    for frame in frames.drain(..) {
        offload::finish(frame, pool, &mut finished);
    }
    *frames = finished;
}
