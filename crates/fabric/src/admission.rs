//! Admission control: checks a virtual switch's request against conditions (4.1) and (4.2) and all other limits.
use crate::{
    DropPolicy, FabricConfig, ForwardingMatrix, IntraDiscipline, MAX_CROSSPOINT_BYTES, MAX_PORTS, MAX_QUANTUM,
    MAX_QUEUES, MAX_SWITCHES, PortIndex, RedConfig, VirtualSwitchConfig, VirtualSwitchIndex,
};
use std::collections::BTreeSet;
use weir_units::{Bps, Instant};

/// Error for an invalid fabric configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// Number of ports out of range: inputs, then outputs.
    #[error("fabric: found {0} inputs and {1} outputs, expected 1 to {MAX_PORTS} of each")]
    Ports(usize, usize),
    /// A port without capacity: its direction, then its index.
    #[error("fabric: {0} {1}: found no rate, expected one above zero")]
    NoRate(&'static str, u16),
    /// A crosspoint buffer smaller than a packet, or too large.
    #[error(
        "fabric: output {output}: found crosspoints of {found} bytes, expected {least} (one packet) to {MAX_CROSSPOINT_BYTES}"
    )]
    Crosspoint {
        /// Index of the output.
        output: u16,
        /// Buffer of its crosspoints in bytes.
        found: u64,
        /// Length of the longest packet in bytes.
        least: u32,
    },
    /// The longest packet has no length.
    #[error("fabric: found a longest packet of 0 bytes, expected at least 1")]
    NoPacket,
}

/// Reason why a virtual switch is refused. A refusal changes nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AdmissionError {
    /// Condition (4.1) is violated for an input.
    #[error("input {port}: asked for {asked}, {free} of {capacity} are free: {} short", Bps(asked.0 - free.0))]
    InputRate {
        /// Index of the input.
        port: u16,
        /// Rate that was requested.
        asked: Bps,
        /// Rate that no other virtual switch has.
        free: Bps,
        /// Total rate of the input.
        capacity: Bps,
    },
    /// Condition (4.1) is violated for an output.
    #[error("output {port}: asked for {asked}, {free} of {capacity} are free: {} short", Bps(asked.0 - free.0))]
    OutputRate {
        /// Index of the output.
        port: u16,
        /// Rate that was requested.
        asked: Bps,
        /// Rate that no other virtual switch has.
        free: Bps,
        /// Total rate of the output.
        capacity: Bps,
    },
    /// Condition (4.2) is violated for a crosspoint.
    #[error("crosspoint {input} to {output}: asked for {asked} bytes, {free} of {capacity} are free: {} short", asked - free)]
    Buffer {
        /// Input of the crosspoint.
        input: u16,
        /// Output of the crosspoint.
        output: u16,
        /// Bytes that were requested.
        asked: u64,
        /// Bytes that no other virtual switch has.
        free: u64,
        /// Total buffer of the crosspoint in bytes.
        capacity: u64,
    },
    /// A buffer that cannot hold the longest packet.
    #[error("crosspoint {input} to {output}: found {found} bytes, expected at least one packet of {least}")]
    BelowOnePacket {
        /// Input of the crosspoint.
        input: u16,
        /// Output of the crosspoint.
        output: u16,
        /// Buffer that was requested, in bytes.
        found: u64,
        /// Length of the longest packet in bytes.
        least: u32,
    },
    /// A port that the fabric does not have.
    #[error("port {port}: there is no such {direction}, expected 0 to {}", known - 1)]
    UnknownPort {
        /// Index of the port.
        port: u16,
        /// Direction: `input` or `output`.
        direction: &'static str,
        /// Number of ports in this direction.
        known: usize,
    },
    /// A port that is listed twice.
    #[error("port {0}: found twice, expected each once")]
    PortTwice(u16),
    /// No input or no output.
    #[error("found no port to come in or none to leave by, expected both")]
    NoPorts,
    /// A path or buffer between ports that the virtual switch does not have.
    #[error("{what} {input} to {output}: found no such input or output of its own")]
    UnknownPath {
        /// Kind of entry: `path` or `buffer`.
        what: &'static str,
        /// Input of the entry.
        input: u16,
        /// Output of the entry.
        output: u16,
    },
    /// A quantum of zero, or above the maximum.
    #[error("quantum: found {0} bytes, expected 1 to {MAX_QUANTUM}")]
    Quantum(u32),
    /// A ceiling below the guaranteed rate.
    #[error("output {port}: ceiling: found {ceiling}, expected at least the guaranteed {rate}")]
    Ceiling {
        /// Index of the output.
        port: u16,
        /// Ceiling that was requested.
        ceiling: Bps,
        /// Guaranteed rate of the port.
        rate: Bps,
    },
    /// Contradictory settings of RED.
    #[error("red: found {0:?}, expected min below max, a probability and a weight above 0 and at most 1")]
    Red(RedConfig),
    /// A lifetime that has already ended.
    #[error("expires: found {found:?}, which is not after now, {now:?}")]
    Expired {
        /// Requested end of the lifetime.
        found: Instant,
        /// Time of the request.
        now: Instant,
    },
    /// The fabric already has the maximum number of virtual switches.
    #[error("found {MAX_SWITCHES} virtual switches, expected fewer to add another")]
    TooManySwitches,
    /// The fabric would exceed the maximum number of queues.
    #[error("asked for {asked} queues beside {there} that there are, expected at most {MAX_QUEUES} in all")]
    TooManyQueues {
        /// Number of additional queues.
        asked: usize,
        /// Number of existing queues.
        there: usize,
    },
    /// No virtual switch has this index.
    #[error("virtual switch {}: there is none", .0.0)]
    NoSuchSwitch(VirtualSwitchIndex),
}

impl AdmissionError {
    /// Replaces the fabric's port indices, which count from 0, by the caller's port numbers; except in
    /// [`AdmissionError::UnknownPort`], which names the fabric's range.
    #[must_use]
    pub fn numbered(mut self, number: impl Fn(PortIndex) -> u16) -> AdmissionError {
        let change = |port: &mut u16| *port = number(PortIndex(*port));
        match &mut self {
            AdmissionError::InputRate { port, .. }
            | AdmissionError::OutputRate { port, .. }
            | AdmissionError::Ceiling { port, .. }
            | AdmissionError::PortTwice(port) => change(port),
            AdmissionError::Buffer { input, output, .. }
            | AdmissionError::BelowOnePacket { input, output, .. }
            | AdmissionError::UnknownPath { input, output, .. } => {
                change(input);
                change(output);
            }
            _ => {}
        }
        self
    }
}

/// Resources of a fabric that are promised to virtual switches.
pub(crate) struct CommittedResources {
    inputs: Vec<u64>,
    outputs: Vec<u64>,
    /// Promised bytes of each crosspoint, by output, then input.
    buffers: Vec<u64>,
    queues: usize,
}

pub(crate) fn check_fabric(config: &FabricConfig) -> Result<(), FabricError> {
    let (inputs, outputs) = (config.inputs.len(), config.outputs.len());
    if !(1..=MAX_PORTS).contains(&inputs) || !(1..=MAX_PORTS).contains(&outputs) {
        return Err(FabricError::Ports(inputs, outputs));
    }
    if config.max_packet == 0 {
        return Err(FabricError::NoPacket);
    }
    if let Some((port, _)) = (0..).zip(&config.inputs).find(|(_, input)| input.rate.0 == 0) {
        return Err(FabricError::NoRate("input", port));
    }
    for (port, output) in (0..).zip(&config.outputs) {
        if output.rate.0 == 0 {
            return Err(FabricError::NoRate("output", port));
        }
        if !(u64::from(config.max_packet)..=MAX_CROSSPOINT_BYTES).contains(&output.crosspoint_bytes) {
            let found = output.crosspoint_bytes;
            return Err(FabricError::Crosspoint { output: port, found, least: config.max_packet });
        }
    }
    Ok(())
}

impl CommittedResources {
    pub(crate) fn new(config: &FabricConfig) -> CommittedResources {
        let (inputs, outputs) = (config.inputs.len(), config.outputs.len());
        CommittedResources {
            inputs: vec![0; inputs],
            outputs: vec![0; outputs],
            buffers: vec![0; inputs * outputs],
            queues: 0,
        }
    }

    /// Promises the resources of a virtual switch, which must have been checked.
    pub(crate) fn add(&mut self, switch: &VirtualSwitchConfig) {
        self.change(switch, |sum, asked| *sum += asked);
        self.queues += self.queues_of(switch);
    }

    /// Releases the resources of a virtual switch.
    pub(crate) fn remove(&mut self, switch: &VirtualSwitchConfig) {
        self.change(switch, |sum, asked| *sum -= asked);
        self.queues -= self.queues_of(switch);
    }

    fn change(&mut self, switch: &VirtualSwitchConfig, change: impl Fn(&mut u64, u64)) {
        for port in switch.inputs() {
            change(&mut self.inputs[usize::from(port.physical.0)], port.rate_in.0);
        }
        for port in switch.outputs() {
            change(&mut self.outputs[usize::from(port.physical.0)], port.rate_out.0);
        }
        for (input, output, bytes) in switch.crosspoints() {
            let place = self.place(input, output);
            change(&mut self.buffers[place], bytes);
        }
    }

    /// Returns the number of queues of a virtual switch: one per input, for each output that it uses.
    fn queues_of(&self, switch: &VirtualSwitchConfig) -> usize {
        switch.outputs().count() * self.inputs.len()
    }

    fn place(&self, input: PortIndex, output: PortIndex) -> usize {
        usize::from(output.0) * self.inputs.len() + usize::from(input.0)
    }

    /// Checks whether a virtual switch can be granted; returns the first violation otherwise.
    pub(crate) fn check(
        &self,
        fabric: &FabricConfig,
        now: Instant,
        switch: &VirtualSwitchConfig,
    ) -> Result<(), AdmissionError> {
        self.check_ports(switch)?;
        check_disciplines(now, switch)?;
        self.check_rates(fabric, switch)?;
        self.check_buffers(fabric, switch)?;
        let asked = self.queues_of(switch);
        if asked > MAX_QUEUES - self.queues {
            return Err(AdmissionError::TooManyQueues { asked, there: self.queues });
        }
        Ok(())
    }

    fn check_ports(&self, switch: &VirtualSwitchConfig) -> Result<(), AdmissionError> {
        let known = |port: u16, direction, known| {
            if usize::from(port) < known { Ok(()) } else { Err(AdmissionError::UnknownPort { port, direction, known }) }
        };
        switch.inputs().try_for_each(|port| known(port.physical.0, "input", self.inputs.len()))?;
        switch.outputs().try_for_each(|port| known(port.physical.0, "output", self.outputs.len()))?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = switch.ports.iter().find(|port| !seen.insert(port.physical)) {
            return Err(AdmissionError::PortTwice(twice.physical.0));
        }
        if switch.inputs().next().is_none() || switch.outputs().next().is_none() {
            return Err(AdmissionError::NoPorts);
        }
        let inputs: BTreeSet<_> = switch.inputs().map(|port| port.physical).collect();
        let outputs: BTreeSet<_> = switch.outputs().map(|port| port.physical).collect();
        let path = |what, input: PortIndex, output: PortIndex| {
            let known = inputs.contains(&input) && outputs.contains(&output);
            if known { Ok(()) } else { Err(AdmissionError::UnknownPath { what, input: input.0, output: output.0 }) }
        };
        if let ForwardingMatrix::Paths(paths) = &switch.forwarding {
            paths.iter().try_for_each(|(input, output)| path("path", *input, *output))?;
        }
        switch.buffers.per_crosspoint.iter().try_for_each(|(input, output, _)| path("buffer", *input, *output))
    }

    fn check_rates(&self, fabric: &FabricConfig, switch: &VirtualSwitchConfig) -> Result<(), AdmissionError> {
        for VirtualPort { physical: PortIndex(port), rate_in: asked, .. } in switch.inputs().copied() {
            let capacity = fabric.inputs[usize::from(port)].rate;
            let free = Bps(capacity.0 - self.inputs[usize::from(port)]);
            if asked > free {
                return Err(AdmissionError::InputRate { port, asked, free, capacity });
            }
        }
        for VirtualPort { physical: PortIndex(port), rate_out: asked, .. } in switch.outputs().copied() {
            let capacity = fabric.outputs[usize::from(port)].rate;
            let free = Bps(capacity.0 - self.outputs[usize::from(port)]);
            if asked > free {
                return Err(AdmissionError::OutputRate { port, asked, free, capacity });
            }
        }
        Ok(())
    }

    fn check_buffers(&self, fabric: &FabricConfig, switch: &VirtualSwitchConfig) -> Result<(), AdmissionError> {
        for (input, output, asked) in switch.crosspoints() {
            let capacity = fabric.outputs[usize::from(output.0)].crosspoint_bytes;
            let free = capacity - self.buffers[self.place(input, output)];
            let (input, output) = (input.0, output.0);
            if asked < u64::from(fabric.max_packet) {
                return Err(AdmissionError::BelowOnePacket { input, output, found: asked, least: fabric.max_packet });
            }
            if asked > free {
                return Err(AdmissionError::Buffer { input, output, asked, free, capacity });
            }
        }
        Ok(())
    }
}

use crate::VirtualPort;

fn check_disciplines(now: Instant, switch: &VirtualSwitchConfig) -> Result<(), AdmissionError> {
    let intra = (switch.intra == IntraDiscipline::Drr).then_some(switch.intra_quantum);
    let quanta = switch.outputs().map(|port| port.quantum).chain(intra);
    if let Some(wrong) = quanta.into_iter().find(|quantum| !(1..=MAX_QUANTUM).contains(quantum)) {
        return Err(AdmissionError::Quantum(wrong));
    }
    for port in switch.outputs() {
        if let Some(ceiling) = port.ceiling.filter(|ceiling| *ceiling < port.rate_out) {
            return Err(AdmissionError::Ceiling { port: port.physical.0, ceiling, rate: port.rate_out });
        }
    }
    if let DropPolicy::Red(red) = switch.drop_policy {
        let share = |value: f64| value > 0.0 && value <= 1.0;
        let (min, max) = red.thresholds(MAX_CROSSPOINT_BYTES);
        if !share(red.probability) || !share(red.weight) || min >= max {
            return Err(AdmissionError::Red(red));
        }
    }
    match switch.expires {
        Some(found) if found <= now => Err(AdmissionError::Expired { found, now }),
        _ => Ok(()),
    }
}

impl VirtualSwitchConfig {
    /// Returns true if the lifetime has ended by `now`.
    pub(crate) fn ends_by(&self, now: Instant) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// Returns the index of a free place for a virtual switch.
pub(crate) fn free_index<S>(switches: &[Option<S>]) -> Result<usize, AdmissionError> {
    let place = switches.iter().position(Option::is_none).unwrap_or(switches.len());
    if place < MAX_SWITCHES { Ok(place) } else { Err(AdmissionError::TooManySwitches) }
}
