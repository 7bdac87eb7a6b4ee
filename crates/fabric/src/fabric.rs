//! The fabric: combines inputs, outputs and virtual switches behind one interface.
use crate::admission::{CommittedResources, check_fabric, free_index};
use crate::buffer_admission::FabricArrival;
use crate::output::{FabricOutput, OutputDecision};
use crate::resize::plan_shares;
use crate::slab::PacketSlab;
use crate::{
    AdmissionError, Crosspoint, CrosspointCounters, DequeueResult, DequeueStop, FabricConfig, FabricDeparture,
    FabricDrop, FabricDropReason, FabricError, FabricPacket, MergeCounters, PacketByteCount, PortIndex,
    VirtualSwitchConfig, VirtualSwitchIndex,
};
use weir_units::Instant;

/// A crosspoint-queued fabric and the virtual switches that share it. `T` is the item that a queue holds: a frame's
/// handle or an index.
///
/// `now` must not decrease from one call to the next.
pub struct Fabric<T> {
    config: FabricConfig,
    outputs: Vec<FabricOutput>,
    switches: Vec<Option<VirtualSwitchConfig>>,
    committed: CommittedResources,
    slab: PacketSlab<T>,
    random: fastrand::Rng,
    stray: PacketByteCount,
}

impl<T> Fabric<T> {
    /// Creates a fabric without virtual switches.
    ///
    /// # Errors
    /// Ports, rates or buffers are out of bounds.
    pub fn new(config: FabricConfig) -> Result<Fabric<T>, FabricError> {
        check_fabric(&config)?;
        let output = |output| FabricOutput::new(output, config.sharing, config.inputs.len());
        Ok(Fabric {
            outputs: config.outputs.iter().copied().map(output).collect(),
            switches: Vec::new(),
            committed: CommittedResources::new(&config),
            slab: PacketSlab::new(),
            random: fastrand::Rng::with_seed(config.seed),
            stray: PacketByteCount::default(),
            config,
        })
    }

    /// Returns the configuration that the fabric was created with.
    pub fn config(&self) -> &FabricConfig {
        &self.config
    }

    /// Checks whether a virtual switch could be added now.
    ///
    /// # Errors
    /// The first request that cannot be granted: which port or crosspoint is short, and by how much.
    pub fn check(&self, now: Instant, switch: &VirtualSwitchConfig) -> Result<(), AdmissionError> {
        free_index(&self.switches)?;
        self.committed.check(&self.config, now, switch)
    }

    /// Adds a virtual switch. Other virtual switches are not affected.
    ///
    /// # Errors
    /// Fails for the reasons of [`Fabric::check`].
    pub fn add(&mut self, now: Instant, switch: VirtualSwitchConfig) -> Result<VirtualSwitchIndex, AdmissionError> {
        self.check(now, &switch)?;
        let place = free_index(&self.switches)?;
        let index = u16::try_from(place).map_err(|_| AdmissionError::TooManySwitches)?;
        for (output, part) in self.outputs.iter_mut().zip(plan_shares(&self.config, &switch)) {
            output.set_outlet(index, part);
        }
        self.committed.add(&switch);
        if place == self.switches.len() {
            self.switches.push(None);
        }
        self.switches[place] = Some(switch);
        Ok(VirtualSwitchIndex(index))
    }

    /// Changes a virtual switch. Other virtual switches are not affected. Its packets stay as far as its new buffers
    /// have room; the youngest are dropped. Round-robin positions are reset. A merge keeps the number it expects next
    /// and its finished inputs, RED keeps its averages, and a ceiling keeps its history.
    ///
    /// # Errors
    /// Fails for the reasons of [`Fabric::check`], where the switch's own resources count as free, or if the switch
    /// does not exist.
    pub fn resize(
        &mut self,
        now: Instant,
        index: VirtualSwitchIndex,
        switch: VirtualSwitchConfig,
        dropped: &mut Vec<FabricDrop<T>>,
    ) -> Result<(), AdmissionError> {
        let before = self.switch(index).cloned().ok_or(AdmissionError::NoSuchSwitch(index))?;
        self.committed.remove(&before);
        if let Err(refused) = self.committed.check(&self.config, now, &switch) {
            self.committed.add(&before);
            return Err(refused);
        }
        self.committed.add(&switch);
        let parts = plan_shares(&self.config, &switch);
        for ((number, output), part) in (0..).zip(&mut self.outputs).zip(parts) {
            output.replace(now, index.0, number, part, &mut self.slab, dropped);
        }
        self.switches[usize::from(index.0)] = Some(switch);
        Ok(())
    }

    /// Removes a virtual switch with all its packets and counters. Does nothing if it does not exist.
    pub fn remove(&mut self, now: Instant, index: VirtualSwitchIndex, dropped: &mut Vec<FabricDrop<T>>) {
        let Some(place) = self.switches.get_mut(usize::from(index.0)) else { return };
        let Some(switch) = place.take() else { return };
        self.committed.remove(&switch);
        for (number, output) in (0..).zip(&mut self.outputs) {
            output.drain(now, index.0, number, FabricDropReason::Removed, &mut self.slab, dropped);
        }
    }

    /// Removes the virtual switches whose lifetime has ended and returns their indices.
    pub fn expire(&mut self, now: Instant, dropped: &mut Vec<FabricDrop<T>>) -> Vec<VirtualSwitchIndex> {
        let ended: Vec<VirtualSwitchIndex> =
            self.switches().filter(|(_, switch)| switch.ends_by(now)).map(|(index, _)| index).collect();
        ended.iter().for_each(|index| self.remove(now, *index, dropped));
        ended
    }

    /// Returns the earliest end of a virtual switch's lifetime.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.switches().filter_map(|(_, switch)| switch.expires).min()
    }

    /// Returns the configuration of a virtual switch.
    pub fn switch(&self, index: VirtualSwitchIndex) -> Option<&VirtualSwitchConfig> {
        self.switches.get(usize::from(index.0))?.as_ref()
    }

    /// Iterates over all virtual switches.
    pub fn switches(&self) -> impl Iterator<Item = (VirtualSwitchIndex, &VirtualSwitchConfig)> {
        (0..).zip(&self.switches).filter_map(|(index, switch)| Some((VirtualSwitchIndex(index), switch.as_ref()?)))
    }

    /// Puts a packet into its queue. Returns true if it is queued. Appends the packets dropped for it, the packet
    /// itself or others, to `dropped`.
    #[inline]
    pub fn enqueue(
        &mut self,
        now: Instant,
        at: Crosspoint,
        packet: FabricPacket<T>,
        dropped: &mut Vec<FabricDrop<T>>,
    ) -> bool {
        let arrival = FabricArrival { now, at, packet };
        let input_known = usize::from(at.input.0) < self.config.inputs.len();
        let output = self.outputs.get_mut(usize::from(at.output.0)).filter(|_| input_known);
        let Some(output) = output.filter(|output| output.outlet(at.switch.0).is_some()) else {
            self.stray.add(arrival.packet.bytes);
            dropped.push(arrival.drop(FabricDropReason::NoPath));
            return false;
        };
        let random = &mut self.random;
        output.enqueue(arrival, &mut self.slab, || random.f64(), dropped)
    }

    /// Returns the packet that an output sends now. Call it when the output's line is free.
    #[inline]
    pub fn dequeue(&mut self, now: Instant, output: PortIndex) -> DequeueResult<T> {
        let Some(from) = self.outputs.get_mut(usize::from(output.0)) else { return DequeueResult::Empty };
        let (switch, input) = match from.decide(now, &self.slab) {
            OutputDecision::Serve(switch, input) => (switch, input),
            OutputDecision::Wait(until) => return DequeueResult::Wait(until),
            OutputDecision::Empty => return DequeueResult::Empty,
        };
        let Some(taken) = from.serve(now, switch, input, &mut self.slab) else { return DequeueResult::Empty };
        DequeueResult::Packet(taken.depart(switch, input))
    }

    /// Puts several packets that arrive at once into one queue, and appends dropped packets to `dropped`. Equivalent
    /// to [`Fabric::enqueue`] for each packet, but cheaper.
    #[inline]
    pub fn enqueue_all(
        &mut self,
        now: Instant,
        at: Crosspoint,
        packets: impl Iterator<Item = FabricPacket<T>>,
        dropped: &mut Vec<FabricDrop<T>>,
    ) {
        let mut packets = packets;
        let input_known = usize::from(at.input.0) < self.config.inputs.len();
        loop {
            let output = self.outputs.get_mut(usize::from(at.output.0)).filter(|_| input_known);
            let careful = match output {
                Some(output) => output.enqueue_plain(now, at, &mut packets, &mut self.slab),
                None => packets.next(),
            };
            let Some(packet) = careful else { return };
            self.enqueue(now, at, packet, dropped);
        }
    }

    /// Sends packets of an output one after the other, the first now. Call it when the output's line is free. `send`
    /// takes each packet and returns when the next one may start, or `None` to stop. Equivalent to
    /// [`Fabric::dequeue`] for each packet, but cheaper.
    #[inline]
    pub fn dequeue_run(
        &mut self,
        now: Instant,
        output: PortIndex,
        mut send: impl FnMut(FabricDeparture<T>) -> Option<Instant>,
    ) -> DequeueStop {
        let Some(from) = self.outputs.get_mut(usize::from(output.0)) else { return DequeueStop::Empty };
        let mut now = now;
        loop {
            let (switch, input) = match from.decide(now, &self.slab) {
                OutputDecision::Serve(switch, input) => (switch, input),
                OutputDecision::Wait(until) => return DequeueStop::Wait(until),
                OutputDecision::Empty => return DequeueStop::Empty,
            };
            match from.serve_turn(now, switch, input, &mut self.slab, &mut send) {
                Some(then) => now = then,
                None => return DequeueStop::Stopped,
            }
        }
    }

    /// Declares that no more packets will arrive at this crosspoint, so that a [merge](crate::IntraDiscipline::Merge)
    /// does not wait for them.
    pub fn finish(&mut self, at: Crosspoint) {
        let Some(output) = self.outputs.get_mut(usize::from(at.output.0)) else { return };
        let Some(outlet) = output.outlet_mut(at.switch.0) else { return };
        outlet.finish(at.input.0);
        output.update_readiness(at.switch.0);
    }

    /// Returns the counters of a crosspoint's queue since its virtual switch was added; `None` if the switch has no
    /// such queue.
    pub fn counters(&self, at: Crosspoint) -> Option<CrosspointCounters> {
        self.outputs.get(usize::from(at.output.0))?.outlet(at.switch.0)?.counters(at.input.0)
    }

    /// Returns the sum of the counters over all queues of a virtual switch to an output.
    pub fn output_counters(&self, switch: VirtualSwitchIndex, output: PortIndex) -> CrosspointCounters {
        let inputs = (0..).take(self.config.inputs.len()).map(PortIndex);
        let mut sum = CrosspointCounters::default();
        inputs.filter_map(|input| self.counters(Crosspoint { switch, input, output })).for_each(|queue| sum += queue);
        sum
    }

    /// Returns the sum of the counters over all queues of a virtual switch.
    pub fn switch_counters(&self, switch: VirtualSwitchIndex) -> CrosspointCounters {
        let outputs = (0..).take(self.config.outputs.len()).map(PortIndex);
        let mut sum = CrosspointCounters::default();
        outputs.map(|output| self.output_counters(switch, output)).for_each(|output| sum += output);
        sum
    }

    /// Returns the counters of a merge; `None` if the switch does not merge at this output.
    pub fn merge_counters(&self, switch: VirtualSwitchIndex, output: PortIndex) -> Option<MergeCounters> {
        self.outputs.get(usize::from(output.0))?.outlet(switch.0)?.merge_counters()
    }

    /// Returns the packets dropped because their virtual switch does not exist or has no such output.
    pub fn stray(&self) -> PacketByteCount {
        self.stray
    }

    /// Returns the number of packets in all queues.
    pub fn queued(&self) -> u32 {
        self.slab.used()
    }
}
