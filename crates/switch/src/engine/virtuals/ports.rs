//! Presents the ports of virtual switches to their controllers. A port is a share of a physical port and has its own
//! number. The queues of an output port are its crosspoints in the fabric, each with the number of the crosspoint's
//! input port.
use super::EngineVirtualSwitches;
use crate::engine::io::EngineIo;
use crate::engine::ports::PortSlots;
use weir_fabric::VirtualSwitchIndex;
use weir_openflow::model::port::bits;
use weir_openflow::model::{PortDesc, PortNo};
use weir_packet::Frame;
use weir_slicing::{FabricIngressSource, VirtualPortSpec, VirtualPortState, VirtualSwitch, edge};
use weir_units::{Bps, Instant};

/// The ports of a virtual switch, and its part of the fabric.
pub(crate) struct VirtualPorts {
    /// Index of the virtual switch in the fabric.
    pub(super) index: VirtualSwitchIndex,
    pub(super) spec: VirtualSwitch,
    pub(in crate::engine) inlets: Vec<VirtualPortState>,
}

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
        let mac = slot.as_ref().map(|desc| desc.hw_addr).unwrap_or_default();
        let name = slot.map_or_else(|| format!("port{}", port.port), |desc| desc.name);
        PortDesc {
            state: if self.has_link(PortNo(port.port)) { bits::LIVE } else { bits::LINK_DOWN },
            curr_speed: kbps(port.rate_out),
            max_speed: kbps(port.ceiling.unwrap_or(port.rate_out)),
            ..PortDesc::new(PortNo(port.number), mac, name)
        }
    }
}

impl VirtualPorts {
    /// Counts received frames on the port at index `input`, removes their VLAN tag if the port has one, and returns
    /// the port's number.
    #[inline]
    pub(super) fn arrive(&mut self, input: usize, frames: &mut [Frame]) -> Option<PortNo> {
        let inlet = self.inlets.get_mut(input)?;
        inlet.count(frames);
        if inlet.vlan.is_some() {
            edge::strip(frames);
        }
        Some(inlet.number)
    }

    /// Returns the source of frames that entered by the port at index `input`; `None` for packets from controllers.
    #[inline]
    pub(in crate::engine) fn source(&mut self, input: Option<usize>) -> FabricIngressSource<'_> {
        FabricIngressSource { index: self.index, spec: &self.spec, inlets: &mut self.inlets, input }
    }

    /// Returns the numbers and names of the ports.
    pub(in crate::engine) fn named(&self, physical: &PortSlots) -> Vec<(PortNo, String)> {
        let name = |number: PortNo| match physical.place(number) {
            Some(place) => physical.slot(place).name().to_owned(),
            None => format!("port{number}"),
        };
        self.inlets.iter().map(|inlet| (inlet.number, name(inlet.physical))).collect()
    }
}

impl EngineVirtualSwitches {
    /// Sets the link states of all virtual switches' ports to those of their physical ports.
    pub(in crate::engine) fn follow_links(&mut self, now: Instant, io: &mut EngineIo) {
        for place in self.order.clone() {
            let Some(switch) = self.switch(place) else { continue };
            for (inlet, port) in switch.ports.inlets.iter().zip(&switch.ports.spec.ports) {
                let (up, speed) = (io.ports.has_link(inlet.physical), kbps(port.rate_out));
                let logical = &mut switch.logical;
                logical.datapath.get().set_link(now, inlet.number, up, speed, &mut logical.out);
            }
            self.deliver(now, place, io);
        }
    }
}
