//! Converts fabrics and virtual switches to configurations of `weir_fabric`.
use crate::{FabricSpec, QueueManager, RedSpec, VirtualSwitch};
use std::time::Duration;
use weir_fabric::{
    AdmissionError, CrosspointBuffers, DropPolicy, FabricConfig, ForwardingMatrix, InputConfig, OutputConfig,
    PortIndex, RedConfig, VirtualSwitchConfig,
};
use weir_units::{ByteSize, Instant};

impl FabricSpec {
    /// Returns the configuration of the fabric. Its ports are [`FabricSpec::ports`] in their order. `ceiling_slack` is
    /// the slack of output ceilings, `seed` the seed of random numbers.
    pub fn config(&self, ceiling_slack: Duration, seed: u64) -> FabricConfig {
        let output = |rate| OutputConfig {
            discipline: self.discipline,
            ceiling_slack,
            ..OutputConfig::new(rate, self.crosspoint.0)
        };
        FabricConfig {
            inputs: self.ports.iter().map(|port| InputConfig { rate: port.rate }).collect(),
            outputs: self.ports.iter().map(|port| output(port.rate)).collect(),
            sharing: self.sharing,
            max_packet: saturated(self.max_packet),
            seed,
        }
    }

    /// Returns the index in the fabric of the physical port with this number.
    pub fn index(&self, number: u32) -> Option<PortIndex> {
        let place = self.ports.iter().position(|port| port.port == number)?;
        u16::try_from(place).ok().map(PortIndex)
    }

    /// Converts the port indices in a refusal to the physical ports' numbers.
    pub fn numbered(&self, refused: AdmissionError) -> AdmissionError {
        let number = |index: PortIndex| self.ports.get(usize::from(index.0)).map(|port| port.port);
        refused.numbered(|index| number(index).and_then(|number| u16::try_from(number).ok()).unwrap_or(index.0))
    }
}

impl VirtualSwitch {
    /// Returns the configuration of this virtual switch in a fabric. A fabric without its ports refuses the
    /// configuration. The lifetime begins at `now`.
    pub fn config(&self, fabric: &FabricSpec, now: Instant) -> VirtualSwitchConfig {
        let ports = self.ports.iter().map(|port| weir_fabric::VirtualPort {
            physical: fabric.index(port.port).unwrap_or(INVALID_PORT),
            rate_in: port.rate_in,
            rate_out: port.rate_out,
            ceiling: port.ceiling,
            ceiling_burst: saturated(port.ceiling_burst),
            uncounted: if port.vlan.is_some() { VLAN_TAG_BYTES } else { 0 },
            quantum: saturated(port.quantum),
        });
        let index = |number| self.index(fabric, number).unwrap_or(INVALID_PORT);
        let certain = self.buffers.iter().map(|at| (index(at.from), index(at.to), at.buffer.0));
        let forwarding = self.paths.iter().map(|paths| paths.iter().map(|[from, to]| (index(*from), index(*to))));
        let forwarding = forwarding.map(Iterator::collect).next();
        VirtualSwitchConfig {
            name: self.name.clone(),
            ports: ports.collect(),
            forwarding: forwarding.map_or(ForwardingMatrix::All, ForwardingMatrix::Paths),
            buffers: CrosspointBuffers { default: self.buffer.0, per_crosspoint: certain.collect() },
            drop_policy: queue(self.queue, &self.red),
            intra: self.discipline,
            intra_quantum: saturated(self.intra_quantum),
            priority: self.priority,
            expires: self.lifetime.map(|lifetime| now + lifetime),
        }
    }

    /// Returns the index in the fabric of this virtual switch's port with this number.
    pub fn index(&self, fabric: &FabricSpec, number: u32) -> Option<PortIndex> {
        fabric.index(self.ports.iter().find(|port| port.number == number)?.port)
    }
}

/// Bytes of a VLAN tag (IEEE 802.1Q).
const VLAN_TAG_BYTES: u32 = 4;

/// Index of a port that no fabric has, so that the fabric refuses it.
const INVALID_PORT: PortIndex = PortIndex(u16::MAX);

fn queue(queue: QueueManager, red: &RedSpec) -> DropPolicy {
    let default = RedConfig::default();
    match queue {
        QueueManager::TailDrop => DropPolicy::TailDrop,
        QueueManager::DropHead => DropPolicy::DropHead,
        QueueManager::Red => DropPolicy::Red(RedConfig {
            min: red.min.map(|min| min.0),
            max: red.max.map(|max| max.0),
            probability: red.probability.unwrap_or(default.probability),
            weight: red.weight.unwrap_or(default.weight),
            gentle: red.gentle,
        }),
    }
}

fn saturated(size: ByteSize) -> u32 {
    u32::try_from(size.0).unwrap_or(u32::MAX)
}
