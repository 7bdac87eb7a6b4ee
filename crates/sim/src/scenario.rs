//! Scenarios with packets by rule as models.
use crate::model::{FabricModel, Group, Hop, LineModel, Model, Path, Source, Split, Window};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_fabric::{VirtualPort, VirtualSwitchConfig};
use weir_scenario::{Fabric, PacketStream, Scenario, Switch};
use weir_units::Instant;

/// Why a scenario cannot be simulated as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotSimulated(pub(crate) String);

/// When a scenario's runs count.
pub fn window(scenario: &Scenario) -> Window {
    Window { warm_up: scenario.simulate.warm_up, length: scenario.simulate.duration }
}

/// The model of a scenario's streams: the fabrics of the switches that they go through, and their sources, each behind the line of the port
/// that it comes in by.
///
/// # Errors
/// The scenario has host traffic beside its streams, or leaves open which virtual switch a stream is for.
pub fn model(scenario: &Scenario) -> Result<Model, NotSimulated> {
    if let Some(item) = scenario.traffic.first() {
        let (from, to) = (&scenario.hosts[item.from].name, &scenario.hosts[item.to].name);
        let problem = format!("found [[traffic]] from {from} to {to} beside [[stream]], expected one of the two kinds");
        return Err(NotSimulated(problem));
    }
    let mut builder = Builder { scenario, model: Model::default(), fabrics: BTreeMap::new(), lines: BTreeMap::new() };
    scenario.streams.iter().try_for_each(|stream| builder.add(stream))?;
    Ok(builder.model)
}

struct Builder<'a> {
    scenario: &'a Scenario,
    model: Model,
    /// By switch: its fabric.
    fabrics: BTreeMap<usize, usize>,
    /// By switch and port: its line.
    lines: BTreeMap<(usize, u16), usize>,
}

impl Builder<'_> {
    fn add(&mut self, stream: &PacketStream) -> Result<(), NotSimulated> {
        let switch = &self.scenario.switches[stream.switch];
        let Some(fabric) = &switch.fabric else {
            return Err(NotSimulated(format!("stream {}: switch {} has no [switch.fabric]", stream.name, switch.name)));
        };
        let cut = chosen(stream, switch)?;
        let group = self.group(stream, switch, cut);
        let index = |port: u32| {
            let unknown = || NotSimulated(format!("stream {}: port {port} is none of the fabric's", stream.name));
            fabric.index(port).map(|index| index.0).ok_or_else(unknown)
        };
        let output = index(stream.output)?;
        let number = self.fabric(stream.switch, switch, fabric);
        let start = Instant::ZERO + stream.start;
        for port in &stream.inputs {
            let input = index(*port)?;
            let hop = Hop { fabric: number, switch: cut, input, output, delay: Duration::ZERO };
            let path = Path { share: 1.0, group, class: stream.class, hops: vec![hop] };
            let source = Source {
                line: self.line(stream.switch, input, fabric),
                traffic: stream.source.clone(),
                start,
                stop: stream.duration.map_or(Instant::FAR, |duration| start + duration),
                split: Split::Random,
                paths: vec![path],
            };
            self.model.sources.push(source);
        }
        Ok(())
    }

    fn group(&mut self, stream: &PacketStream, switch: &Switch, cut: usize) -> usize {
        let own = switch.virtual_switches.get(cut).map_or(switch.name.as_str(), |cut| cut.name.as_str());
        let several = self.scenario.switches.iter().filter(|switch| switch.fabric.is_some()).count() > 1;
        let port = if several { format!("{}:{}", switch.name, stream.output) } else { stream.output.to_string() };
        let group = Group { switch: own.to_owned(), port, class: stream.class };
        let groups = &mut self.model.groups;
        groups.iter().position(|known| *known == group).unwrap_or_else(|| {
            groups.push(group);
            groups.len() - 1
        })
    }

    fn fabric(&mut self, place: usize, switch: &Switch, fabric: &Fabric) -> usize {
        let fabrics = &mut self.model.fabrics;
        *self.fabrics.entry(place).or_insert_with(|| {
            let cuts = switch.virtual_switches.iter().map(|cut| cut.config(fabric, Instant::ZERO));
            let mut switches: Vec<_> = cuts.collect();
            if switches.is_empty() {
                switches.push(whole(&switch.name, fabric));
            }
            // Asked in time: no slack is needed. Each replication draws with a seed of its own.
            fabrics.push(FabricModel { config: fabric.config(Duration::ZERO, 0), switches });
            fabrics.len() - 1
        })
    }

    fn line(&mut self, switch: usize, input: u16, fabric: &Fabric) -> usize {
        let lines = &mut self.model.lines;
        *self.lines.entry((switch, input)).or_insert_with(|| {
            lines.push(LineModel::Serial(fabric.ports[usize::from(input)].rate));
            lines.len() - 1
        })
    }
}

/// A switch that is not cut, as one virtual switch that has everything.
fn whole(name: &str, fabric: &Fabric) -> VirtualSwitchConfig {
    let port =
        |port: &weir_scenario::FabricPort| fabric.index(port.port).map(|index| VirtualPort::new(index, port.rate));
    VirtualSwitchConfig::new(name, fabric.ports.iter().filter_map(port).collect(), fabric.crosspoint.0)
}

/// The virtual switch that a stream is for.
fn chosen(stream: &PacketStream, switch: &Switch) -> Result<usize, NotSimulated> {
    let cuts = &switch.virtual_switches;
    match (stream.virtual_switch, cuts.len()) {
        (Some(cut), _) => Ok(cut),
        (None, 0 | 1) => Ok(0),
        (None, _) => {
            let names: Vec<&str> = cuts.iter().map(|cut| cut.name.as_str()).collect();
            let problem = "found no `virtual`, expected the virtual switch it is for, since lengths alone do not say";
            Err(NotSimulated(format!("stream {}: {problem}: one of {}", stream.name, names.join(", "))))
        }
    }
}
