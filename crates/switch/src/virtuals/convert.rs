//! What files say of virtual switches, as the fabric and the datapath take it.
use std::time::Duration;
use weir_datapath::{DatapathConfig, FailMode, PacketInLimit};
use weir_fabric::{
    Buffers, FabricConfig, Forwarding, InputConfig, InterDiscipline, IntraDiscipline, OutputConfig, PortIndex,
    QueueConfig, RedConfig, Refused, Sharing, VirtualPort, VirtualSwitchConfig,
};
use weir_scenario::{QueueManager, VirtualSwitch};
use weir_units::ByteSize;

/// What a fabric is of which nothing is said, without its ports.
pub(crate) fn unsaid_fabric() -> weir_scenario::Fabric {
    weir_scenario::Fabric {
        ports: Vec::new(),
        crosspoint: ByteSize(192_000),
        max_packet: ByteSize(1514),
        discipline: weir_scenario::InterDiscipline::Drr,
        sharing: weir_scenario::Sharing::Strict,
    }
}

/// A fabric. Its outputs are asked in time, since their lines keep their own.
pub(crate) fn fabric(shape: &weir_scenario::Fabric) -> FabricConfig {
    let discipline = match shape.discipline {
        weir_scenario::InterDiscipline::Drr => InterDiscipline::Drr,
        weir_scenario::InterDiscipline::StrictPriority => InterDiscipline::StrictPriority,
    };
    let output = |port: &weir_scenario::FabricPort| OutputConfig {
        rate: port.rate,
        discipline,
        crosspoint_bytes: shape.crosspoint.0,
        ceiling_slack: Duration::ZERO,
    };
    FabricConfig {
        inputs: shape.ports.iter().map(|port| InputConfig { rate: port.rate }).collect(),
        outputs: shape.ports.iter().map(output).collect(),
        sharing: match shape.sharing {
            weir_scenario::Sharing::Strict => Sharing::Strict,
            weir_scenario::Sharing::Flexible => Sharing::Flexible,
        },
        max_packet: small(shape.max_packet),
        seed: 0,
    }
}

/// A virtual switch of a fabric, which has all its ports. It ends when the engine says so.
pub(crate) fn switch(spec: &VirtualSwitch, shape: &weir_scenario::Fabric) -> VirtualSwitchConfig {
    // A port that is not there is refused by its index.
    let index = |port: u32| {
        let place = shape.ports.iter().position(|known| known.port == port).and_then(|place| u16::try_from(place).ok());
        PortIndex(place.unwrap_or(u16::MAX))
    };
    let by_number = |number: u32| {
        let port = spec.ports.iter().find(|port| port.number == number);
        port.map_or(PortIndex(u16::MAX), |port| index(port.port))
    };
    let ports = spec.ports.iter().map(|port| VirtualPort {
        physical: index(port.port),
        rate_in: port.rate_in,
        rate_out: port.rate_out,
        ceiling: port.ceiling,
        quantum: small(port.quantum),
    });
    let certain = spec.buffers.iter().map(|at| (by_number(at.from), by_number(at.to), at.buffer.0));
    let paths = spec.paths.as_ref().map(|paths| paths.iter().map(|[from, to]| (by_number(*from), by_number(*to))));
    VirtualSwitchConfig {
        name: spec.name.clone(),
        ports: ports.collect(),
        forwarding: paths.map_or(Forwarding::All, |paths| Forwarding::Paths(paths.collect())),
        buffers: Buffers { default: spec.buffer.0, certain: certain.collect() },
        queue: queue(spec),
        intra: match spec.discipline {
            weir_scenario::IntraDiscipline::RoundRobin => IntraDiscipline::RoundRobin,
            weir_scenario::IntraDiscipline::Drr => IntraDiscipline::Drr { quantum: small(spec.intra_quantum) },
            weir_scenario::IntraDiscipline::Fcfs => IntraDiscipline::Fcfs,
            weir_scenario::IntraDiscipline::Lqf => IntraDiscipline::Lqf,
        },
        priority: spec.priority,
        expires: None,
    }
}

fn queue(spec: &VirtualSwitch) -> QueueConfig {
    match spec.queue {
        QueueManager::TailDrop => QueueConfig::TailDrop,
        QueueManager::DropHead => QueueConfig::DropHead,
        QueueManager::Red => {
            let unsaid = RedConfig::default();
            QueueConfig::Red(RedConfig {
                min: spec.red.min.map(|size| size.0),
                max: spec.red.max.map(|size| size.0),
                probability: spec.red.probability.unwrap_or(unsaid.probability),
                weight: spec.red.weight.unwrap_or(unsaid.weight),
                gentle: unsaid.gentle,
            })
        }
    }
}

/// A size that was checked to be far below 4 GiB.
fn small(size: ByteSize) -> u32 {
    u32::try_from(size.0).unwrap_or(u32::MAX)
}

/// A virtual switch's datapath: with room for what one tenant needs, not for what exhausts the others.
pub(crate) fn datapath(spec: &VirtualSwitch, lookup: weir_datapath::Lookup) -> DatapathConfig {
    DatapathConfig {
        datapath_id: spec.dpid,
        name: spec.name.clone(),
        n_tables: spec.tables,
        max_entries: spec.max_entries,
        packet_in_limit: Some(PacketInLimit { per_second: spec.max_packet_ins, burst: None }),
        lookup,
        ..DatapathConfig::default()
    }
}

pub(crate) fn fail_mode(mode: weir_scenario::FailMode) -> FailMode {
    match mode {
        weir_scenario::FailMode::Secure => FailMode::Secure,
        weir_scenario::FailMode::Standalone => FailMode::Standalone,
    }
}

/// Why the fabric refuses, with the numbers that ports have on the switch.
pub(crate) fn refusal(refused: &Refused, shape: &weir_scenario::Fabric) -> String {
    let port = |index: &u16| shape.ports.get(usize::from(*index)).map_or(0, |port| port.port);
    match refused {
        Refused::InputRate { port: at, asked, free, capacity } => {
            format!(
                "port {}: rate_in: found {asked}, expected at most {free}: what others leave of its {capacity}",
                port(at)
            )
        }
        Refused::OutputRate { port: at, asked, free, capacity } => {
            format!(
                "port {}: rate_out: found {asked}, expected at most {free}: what others leave of its {capacity}",
                port(at)
            )
        }
        Refused::Buffer { input, output, asked, free, capacity } => format!(
            "buffer from port {} to port {}: found {}, expected at most {}: what others leave of its {}",
            port(input),
            port(output),
            ByteSize(*asked),
            ByteSize(*free),
            ByteSize(*capacity)
        ),
        other => other.to_string(),
    }
}
