//! Adds, changes and removes virtual switches while others are served.
use crate::outlet::{OutputShare, OutputShareParams};
use crate::output::FabricOutput;
use crate::rate_limit::GcraLimiter;
use crate::red::RedParams;
use crate::slab::PacketSlab;
use crate::{
    BufferSharing, Crosspoint, DropPolicy, FabricConfig, FabricDrop, FabricDropReason, PortIndex, VirtualPort,
    VirtualSwitchConfig, VirtualSwitchIndex,
};
use weir_units::Instant;

/// Returns each output's outlet for a virtual switch; `None` where the switch has no port.
pub(crate) fn plan_shares(fabric: &FabricConfig, switch: &VirtualSwitchConfig) -> Vec<Option<OutputShare>> {
    let mut capacities: Vec<Option<Vec<u32>>> = vec![None; fabric.outputs.len()];
    switch.outputs().for_each(|port| capacities[usize::from(port.physical.0)] = Some(vec![0; fabric.inputs.len()]));
    for (input, output, bytes) in switch.crosspoints() {
        if let Some(inputs) = &mut capacities[usize::from(output.0)] {
            inputs[usize::from(input.0)] = u32::try_from(bytes).unwrap_or(u32::MAX);
        }
    }
    let outlet = |(output, capacities): (u16, Option<Vec<u32>>)| {
        let port = switch.outputs().find(|port| port.physical.0 == output)?;
        Some(OutputShare::new(plan_outlet(fabric, switch, port, capacities?)))
    };
    (0..).zip(capacities).map(outlet).collect()
}

fn plan_outlet(
    fabric: &FabricConfig,
    switch: &VirtualSwitchConfig,
    port: &VirtualPort,
    capacities: Vec<u32>,
) -> OutputShareParams {
    let slack = fabric.outputs[usize::from(port.physical.0)].ceiling_slack;
    let law = match switch.drop_policy {
        DropPolicy::Red(red) => Some(RedParams::new(red, port.rate_out, fabric.max_packet)),
        DropPolicy::TailDrop | DropPolicy::DropHead => None,
    };
    let limiter = |rate: weir_units::Bps| {
        let slack = slack + rate.time_of(port.ceiling_burst.into());
        GcraLimiter::new(rate, slack).not_counting(port.uncounted)
    };
    OutputShareParams {
        capacities,
        intra: switch.intra,
        intra_quantum: switch.intra_quantum,
        manager: switch.drop_policy,
        law,
        quantum: port.quantum,
        priority: switch.priority,
        ceiling: port.ceiling.map(limiter),
        sharing: fabric.sharing,
    }
}

impl FabricOutput {
    /// Replaces the outlet of a virtual switch: queued packets stay as far as they have room.
    pub(crate) fn replace<T>(
        &mut self,
        now: Instant,
        switch: u16,
        output: u16,
        part: Option<OutputShare>,
        slab: &mut PacketSlab<T>,
        dropped: &mut Vec<FabricDrop<T>>,
    ) {
        let Some(mut part) = part else {
            return self.drain(now, switch, output, FabricDropReason::Resized, slab, dropped);
        };
        if let Some(before) = self.set_outlet(switch, None) {
            part.resume(before, slab);
        }
        self.set_outlet(switch, Some(part));
        self.trim(now, switch, output, slab, dropped);
    }

    /// Removes the outlet of a virtual switch with all packets queued in it.
    pub(crate) fn drain<T>(
        &mut self,
        now: Instant,
        switch: u16,
        output: u16,
        reason: FabricDropReason,
        slab: &mut PacketSlab<T>,
        dropped: &mut Vec<FabricDrop<T>>,
    ) {
        let Some(outlet) = self.outlet(switch) else { return };
        for input in outlet.active.iter() {
            let at = crosspoint(switch, input, output);
            while self.evict(now, at, true, reason, slab, dropped) {}
        }
        self.set_outlet(switch, None);
    }

    /// Drops packets for which the queues have no room, the youngest first. Borrowed buffer space may be kept: its
    /// owners reclaim it when they need it.
    fn trim<T>(
        &mut self,
        now: Instant,
        switch: u16,
        output: u16,
        slab: &mut PacketSlab<T>,
        dropped: &mut Vec<FabricDrop<T>>,
    ) {
        let Some(outlet) = self.outlet(switch) else { return };
        for input in outlet.active.iter() {
            let at = crosspoint(switch, input, output);
            while self.is_too_full(switch, input)
                && self.evict(now, at, false, FabricDropReason::Resized, slab, dropped)
            {}
        }
    }

    fn is_too_full(&self, switch: u16, input: u16) -> bool {
        let strict = self.sharing == BufferSharing::Strict;
        self.outlet(switch).is_some_and(|outlet| {
            let queue = &outlet.queues[usize::from(input)];
            queue.bytes > queue.capacity && (strict || queue.capacity == 0)
        })
    }
}

fn crosspoint(switch: u16, input: u16, output: u16) -> Crosspoint {
    Crosspoint { switch: VirtualSwitchIndex(switch), input: PortIndex(input), output: PortIndex(output) }
}
