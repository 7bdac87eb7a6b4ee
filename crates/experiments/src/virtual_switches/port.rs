//! Model of one output of a switch with 32 ports, and of the virtual switches that share it.
use super::{BURSTS, LINE, packets_per_second, sizes};
use std::time::Duration;
use weir_fabric::{
    BufferSharing, FabricConfig, InputConfig, InterDiscipline, OutputConfig, PortIndex, VirtualPort,
    VirtualSwitchConfig,
};
use weir_sim::{
    FabricHop, FabricModel, FabricNetwork, FabricPath, FabricSource, LineModel, MeasurementGroup, PathSplit,
};
use weir_traffic::OfferedPackets;
use weir_units::{Bps, Instant};

/// Number of ports, as published.
const PORTS: u16 = 32;

/// An output and how it is shared.
pub(super) struct SharedOutputPort {
    pub(super) discipline: InterDiscipline,
    pub(super) sharing: BufferSharing,
    /// Buffer of each physical crosspoint, in bytes.
    pub(super) crosspoint: u64,
    pub(super) switches: Vec<VirtualOutputShare>,
}

/// A virtual switch.
pub(super) struct VirtualOutputShare {
    /// Share of the output's rate and of the offered load.
    pub(super) part: f64,
    /// Buffer at each crosspoint, in bytes.
    pub(super) buffer: u64,
    pub(super) quantum: u32,
    pub(super) priority: u8,
}

impl SharedOutputPort {
    /// Returns the model of the output. The offered load equals its rate, 1/32 from each input. Each virtual switch
    /// is a group.
    pub(super) fn model(&self) -> FabricNetwork {
        let output = OutputConfig { discipline: self.discipline, ..OutputConfig::new(LINE, self.crosspoint) };
        let config = FabricConfig {
            inputs: vec![InputConfig { rate: LINE }; PORTS.into()],
            outputs: vec![output],
            sharing: self.sharing,
            ..FabricConfig::default()
        };
        let switches = self.switches.iter().map(VirtualOutputShare::config).collect();
        let group = |index| MeasurementGroup { switch: format!("VS{}", index + 1), port: "1".into(), class: 0 };
        FabricNetwork {
            fabrics: vec![FabricModel { config, switches }],
            lines: vec![LineModel::Serial(LINE); PORTS.into()],
            sources: (0..PORTS).flat_map(|input| self.sources(input)).collect(),
            groups: (0..self.switches.len()).map(group).collect(),
        }
    }

    /// Returns the sources of an input, one for each virtual switch.
    fn sources(&self, input: u16) -> impl Iterator<Item = FabricSource> {
        self.switches.iter().enumerate().map(move |(switch, share)| FabricSource {
            line: input.into(),
            traffic: OfferedPackets::Rule {
                arrival: BURSTS,
                per_second: packets_per_second(share.part / f64::from(PORTS)),
                size: sizes(),
            },
            start: Instant::ZERO,
            stop: Instant::FAR,
            split: PathSplit::Random,
            paths: vec![FabricPath {
                share: 1.0,
                group: switch,
                class: 0,
                hops: vec![FabricHop { fabric: 0, switch, input, output: 0, delay: Duration::ZERO }],
            }],
        })
    }
}

impl VirtualOutputShare {
    fn config(&self) -> VirtualSwitchConfig {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a rate")]
        let rate = Bps((LINE.0 as f64 * self.part) as u64);
        let port = |input| VirtualPort {
            rate_out: if input == 0 { rate } else { Bps(0) },
            quantum: self.quantum,
            ..VirtualPort::new(PortIndex(input), rate)
        };
        VirtualSwitchConfig {
            priority: self.priority,
            ..VirtualSwitchConfig::new("virtual", (0..PORTS).map(port).collect(), self.buffer)
        }
    }
}
