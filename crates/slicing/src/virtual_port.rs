//! Keeps the input ports of virtual switches, and selects the input that packets from controllers count for.
use crate::{FabricSpec, VirtualPortSpec, VirtualSwitch};
use weir_fabric::{PacketByteCount, PortIndex};
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_units::Instant;

/// Port of a virtual switch: a share of a physical port.
#[derive(Debug)]
pub struct VirtualPortState {
    /// Port number on the virtual switch.
    pub number: PortNo,
    /// Number of the physical port.
    pub physical: PortNo,
    /// Index of the physical port in the fabric.
    pub index: PortIndex,
    /// VLAN id of the port's packets on the physical port; `None` if they are untagged there.
    pub vlan: Option<u16>,
    /// Number of packets dropped because they cannot carry the VLAN tag.
    pub untagged: u64,
    /// Packets and bytes received.
    pub received: PacketByteCount,
    /// Number of packets dropped because too many waited for their virtual switch's turn at the engine's time.
    pub unserved: u64,
    /// Time at which the port was added.
    pub since: Instant,
}

impl VirtualPortState {
    fn new(now: Instant, port: &VirtualPortSpec, index: PortIndex) -> VirtualPortState {
        let (number, physical) = (PortNo(port.number), PortNo(port.port));
        let received = PacketByteCount::default();
        VirtualPortState { number, physical, index, vlan: port.vlan, untagged: 0, received, unserved: 0, since: now }
    }

    /// Returns the ports of a virtual switch that is cut from `fabric`.
    pub fn all(now: Instant, spec: &VirtualSwitch, fabric: &FabricSpec) -> Vec<VirtualPortState> {
        // The ports of a virtual switch were checked to belong to the fabric.
        let index = |port: &VirtualPortSpec| fabric.index(port.port).unwrap_or(PortIndex(u16::MAX));
        spec.ports.iter().map(|port| VirtualPortState::new(now, port, index(port))).collect()
    }

    /// Takes over the counters of the port that this one replaces.
    pub fn keep(&mut self, before: &VirtualPortState) {
        (self.received, self.since, self.untagged) = (before.received, before.since, before.untagged);
        self.unserved = before.unserved;
    }

    /// Counts received frames.
    #[inline]
    pub fn count(&mut self, frames: &[Frame]) {
        self.received.packets += frames.len() as u64;
        self.received.bytes += frames.iter().map(|frame| u64::from(frame.bytes_len())).sum::<u64>();
    }
}

/// Returns true if packets may pass from one port of the virtual switch to another.
fn leads(spec: &VirtualSwitch, from: &VirtualPortState, to: &VirtualPortState) -> bool {
    spec.paths.as_ref().is_none_or(|paths| paths.contains(&[from.number.0, to.number.0]))
}

/// Returns the input whose crosspoints carry a controller's packets for `output`: the output's own port, or the first
/// port with a path to it.
pub(crate) fn for_output(spec: &VirtualSwitch, inlets: &[VirtualPortState], output: usize) -> usize {
    let leads = |from: &usize| leads(spec, &inlets[*from], &inlets[output]);
    if leads(&output) { output } else { (0..inlets.len()).find(leads).unwrap_or(output) }
}

/// Returns the index of the port whose number a queue has as its number.
pub(crate) fn of_queue(inlets: &[VirtualPortState], queue: u32) -> Option<usize> {
    inlets.iter().position(|inlet| inlet.number.0 == queue)
}
