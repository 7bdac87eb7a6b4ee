//! A virtual switch's ports, and which of them packets count as coming in by.
use weir_fabric::{Count, PortIndex};
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_scenario::{Fabric, VirtualPort, VirtualSwitch};
use weir_units::Instant;

/// A virtual switch's port: a share of a physical one.
#[derive(Debug)]
pub struct Inlet {
    /// Its number on the virtual switch.
    pub number: PortNo,
    /// The physical port.
    pub physical: PortNo,
    /// That port in the fabric.
    pub index: PortIndex,
    /// The VLAN that its packets are in outside.
    pub vlan: Option<u16>,
    /// Packets that could not have its tag and were dropped.
    pub untagged: u64,
    /// What came in.
    pub received: Count,
    /// Packets that came while too many waited for their virtual switch's turn at the engine's time.
    pub(crate) unserved: u64,
    pub(crate) since: Instant,
}

impl Inlet {
    fn new(now: Instant, port: &VirtualPort, index: PortIndex) -> Inlet {
        let (number, physical) = (PortNo(port.number), PortNo(port.port));
        let received = Count::default();
        Inlet { number, physical, index, vlan: port.vlan, untagged: 0, received, unserved: 0, since: now }
    }

    /// The ports of a virtual switch that is cut from a fabric.
    pub fn all(now: Instant, spec: &VirtualSwitch, fabric: &Fabric) -> Vec<Inlet> {
        // Checked: a virtual switch's ports are the fabric's.
        let index = |port: &VirtualPort| fabric.index(port.port).unwrap_or(PortIndex(u16::MAX));
        spec.ports.iter().map(|port| Inlet::new(now, port, index(port))).collect()
    }

    /// Goes on counting where the port before it left off.
    pub(crate) fn keep(&mut self, before: &Inlet) {
        (self.received, self.since, self.untagged) = (before.received, before.since, before.untagged);
        self.unserved = before.unserved;
    }

    /// Frames came in.
    #[inline]
    pub fn count(&mut self, frames: &[Frame]) {
        self.received.packets += frames.len() as u64;
        self.received.bytes += frames.iter().map(|frame| u64::from(frame.bytes_len())).sum::<u64>();
    }
}

/// Whether packets may go from one of its ports to another.
fn leads(spec: &VirtualSwitch, from: &Inlet, to: &Inlet) -> bool {
    spec.paths.as_ref().is_none_or(|paths| paths.contains(&[from.number.0, to.number.0]))
}

/// The port whose crosspoints a controller's packets for an output go through: the output's own, or the first that leads there.
pub(super) fn for_output(spec: &VirtualSwitch, inlets: &[Inlet], output: usize) -> usize {
    let leads = |from: &usize| leads(spec, &inlets[*from], &inlets[output]);
    if leads(&output) { output } else { (0..inlets.len()).find(leads).unwrap_or(output) }
}

/// The port that a queue is named after.
pub(super) fn of_queue(inlets: &[Inlet], queue: u32) -> Option<usize> {
    inlets.iter().position(|inlet| inlet.number.0 == queue)
}
