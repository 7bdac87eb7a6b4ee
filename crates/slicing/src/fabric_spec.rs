//! Describes the fabric that virtual switches are cut from.
use serde::Serialize;
use weir_fabric::{BufferSharing, InterDiscipline};
use weir_units::{Bps, ByteSize};

/// Fabric of a physical switch: capacities and buffers that virtual switches share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FabricSpec {
    /// Ports with their capacity, in the order of their numbers.
    pub ports: Vec<FabricPort>,
    /// Buffer of each crosspoint, that is, of each pair of an input and an output.
    pub crosspoint: ByteSize,
    /// Longest packet. No buffer may be smaller.
    pub max_packet: ByteSize,
    /// Discipline that picks the virtual switch that sends next on an output.
    pub discipline: InterDiscipline,
    /// Policy by which a virtual switch may use buffer that others do not use.
    pub sharing: BufferSharing,
}

impl Default for FabricSpec {
    /// Returns the defaults of a fabric, without ports: crosspoints as large as the largest in the literature's
    /// figures (Anhalt, 2011, chapter 4), and whole Ethernet frames without tags.
    fn default() -> Self {
        FabricSpec {
            ports: Vec::new(),
            crosspoint: ByteSize(192_000),
            max_packet: ByteSize(1514),
            discipline: InterDiscipline::default(),
            sharing: BufferSharing::default(),
        }
    }
}

/// Port of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FabricPort {
    /// Port number on the physical switch.
    pub port: u32,
    /// Capacity in each direction.
    pub rate: Bps,
}
