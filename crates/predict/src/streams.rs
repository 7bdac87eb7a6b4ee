//! Predicts streams through virtual switches, each with its guaranteed rate only.
use crate::PredictError;
use crate::answer::{FlowPrediction, PredictedDelay, PredictionStatus, PredictionValidity, StreamExpectation};
use crate::arrivals::arrival_variability;
use crate::sizes::lengths;
use crate::station::{AnalyticStation, ArrivalStream, ServiceMoments};
use std::time::Duration;
use weir_fabric::{InterDiscipline, drr_bound, strict_priority_bound};
use weir_model::ModelError;
use weir_scenario::{PacketStream, Scenario, ScenarioSwitch};
use weir_slicing::{FabricSpec, VirtualPortSpec, VirtualSwitch};
use weir_units::Bps;

/// Rounds to settle a single queue.
const ROUNDS: u32 = 3;

/// Streams of one virtual switch to one output.
struct OutputStreams<'a> {
    switch: &'a ScenarioSwitch,
    fabric: &'a FabricSpec,
    virtual_switch: Option<&'a VirtualSwitch>,
    output: u32,
    streams: Vec<&'a PacketStream>,
    /// Indices of the streams in the scenario.
    places: Vec<usize>,
}

/// Returns the answers of all streams, one for each virtual switch and output.
pub(crate) fn answers(scenario: &Scenario) -> Result<Vec<FlowPrediction>, PredictError> {
    let mut groups: Vec<OutputStreams<'_>> = Vec::new();
    for (place, stream) in scenario.streams.iter().enumerate() {
        let switch = &scenario.switches[stream.switch];
        let Some(fabric) = &switch.fabric else { continue };
        let virtual_switch = stream.virtual_switch.and_then(|at| switch.virtual_switches.get(at));
        let same = |group: &&mut OutputStreams<'_>| {
            std::ptr::eq(group.switch, switch)
                && group.output == stream.output
                && group.virtual_switch.map(|one| &one.name) == virtual_switch.map(|one| &one.name)
        };
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.streams.push(stream);
                group.places.push(place);
            }
            None => groups.push(OutputStreams {
                switch,
                fabric,
                virtual_switch,
                output: stream.output,
                streams: vec![stream],
                places: vec![place],
            }),
        }
    }
    let answer = |group: &OutputStreams<'_>| group.answer(residual_rate(&groups, group)?);
    groups.iter().map(|group| answer(group).map_err(|error| PredictError::at(&group.name(), error))).collect()
}

/// Returns the rate that others leave a group of its port, at least its guaranteed one. Under strict priority only
/// virtual switches with higher priority count.
fn residual_rate(groups: &[OutputStreams<'_>], group: &OutputStreams<'_>) -> Result<Bps, ModelError> {
    let (port, guaranteed) = group.rates();
    let place = |one: &OutputStreams<'_>| one.virtual_switch.map_or(0, |own| own.priority);
    let strict = group.fabric.discipline == InterDiscipline::StrictPriority;
    let mut others = 0.0;
    for other in groups {
        let same_port = std::ptr::eq(other.switch, group.switch) && other.output == group.output;
        if same_port && !std::ptr::eq(other, group) && (!strict || place(other) < place(group)) {
            others += other.offered_bps()?;
        }
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
    let left = (port.0 as f64 - others).max(0.0) as u64;
    let ceiling = group.share().and_then(|share| share.ceiling).unwrap_or(port);
    Ok(Bps(left.clamp(guaranteed.0.min(port.0), port.0).min(ceiling.0)))
}

impl OutputStreams<'_> {
    fn name(&self) -> String {
        let owner = self.virtual_switch.map_or(&self.switch.name, |one| &one.name);
        format!("{owner} to port {}", self.output)
    }

    /// Returns the rate of the port, and the guaranteed rate.
    fn rates(&self) -> (Bps, Bps) {
        let port = self.fabric.ports.iter().find(|port| port.port == self.output).map_or(Bps(1), |port| port.rate);
        (port, self.share().map_or(port, |share| share.rate_out))
    }

    fn share(&self) -> Option<&VirtualPortSpec> {
        self.virtual_switch?.ports.iter().find(|share| share.port == self.output)
    }

    /// Returns the offered load, in bit/s.
    fn offered_bps(&self) -> Result<f64, ModelError> {
        let mut sum = 0.0;
        for stream in &self.streams {
            sum += stream.source.per_second() * stream.inputs.len() as f64 * lengths(&stream.source)?.mean() * 8.0;
        }
        Ok(sum)
    }

    /// Returns the total size of the inputs' buffers to this output, in bytes.
    fn buffer_bytes(&self) -> u64 {
        let inputs = self.streams.iter().flat_map(|stream| &stream.inputs);
        let mut inputs: Vec<u32> = inputs.copied().collect();
        inputs.sort_unstable();
        inputs.dedup();
        let Some(owner) = self.virtual_switch else { return self.fabric.crosspoint.0 * inputs.len() as u64 };
        let number = |physical: u32| owner.ports.iter().find(|port| port.port == physical).map(|port| port.number);
        let of = |input: &u32| {
            let own = owner
                .buffers
                .iter()
                .find(|one| Some(one.from) == number(*input) && Some(one.to) == number(self.output));
            own.map_or(owner.buffer.0, |one| one.buffer.0)
        };
        inputs.iter().map(of).sum()
    }

    /// Returns the answer; `left` is the rate that others leave of the port.
    fn answer(&self, left: Bps) -> Result<FlowPrediction, ModelError> {
        let (port, guaranteed) = self.rates();
        let mut notes: Vec<String> = Vec::new();
        let alone = self.solve(port, &mut notes)?;
        let beside = self.solve(left, &mut notes)?;
        let own = self.solve(guaranteed, &mut notes)?;
        notes.dedup();
        let validity = PredictionValidity::of(!notes.is_empty());
        let rate: f64 = self.streams.iter().map(|stream| stream.source.per_second() * stream.inputs.len() as f64).sum();
        if let (Some(own), Some(alone)) = (&own, &alone) {
            notes.push(format!(
                "with no more than the {guaranteed} it is guaranteed; had it the whole port, mean {:.1} us and loss {:.3}%",
                alone.delay.mean() * 1e6,
                alone.loss * 100.0
            ));
            if let Some(beside) = &beside {
                notes.push(format!(
                    "with the {left} that others leave, mean {:.1} us and loss {:.3}%",
                    beside.delay.mean() * 1e6,
                    beside.loss * 100.0
                ));
            }
            notes.push(format!("waits for {:.1} us on average in buffers of its inputs taken as one; delays are to the start of transmission", own.delay.mean() * 1e6));
        }
        notes.extend(self.bound(port).map(|bound| {
            format!(
                "a packet that finds none of its own before it has left after {:.1} us at most",
                bound.as_secs_f64() * 1e6
            )
        }));
        let delay = own.as_ref().map(|own| PredictedDelay::of(&own.delay)).transpose()?;
        let expected = |beside: StreamSolution| {
            let delay = PredictedDelay::of(&beside.delay)?;
            Ok(StreamExpectation { rate_bps: left.0, delay, loss: beside.loss, distribution: beside.delay })
        };
        Ok(FlowPrediction {
            item: None,
            streams: self.places.clone(),
            expected: beside.map(expected).transpose()?,
            kind: "stream",
            from: format!("{} inputs", self.streams.iter().map(|stream| stream.inputs.len()).sum::<usize>()),
            to: self.name(),
            status: if own.is_some() { PredictionStatus::Ok } else { PredictionStatus::Unstable },
            packets_per_s: rate,
            delay,
            data: None,
            control: None,
            asks: None,
            loss: own.as_ref().map(|own| own.loss),
            goodput_bps: None,
            validity,
            bottleneck: Some(format!("{} port {}", self.switch.name, self.output)),
            notes,
            distribution: own.map(|own| own.delay),
        })
    }

    fn solve(&self, rate: Bps, notes: &mut Vec<String>) -> Result<Option<StreamSolution>, ModelError> {
        let per_byte_s = 8.0 / rate.0.max(1) as f64;
        let mut station = AnalyticStation::new(self.name(), None);
        station.buffer_s = Some(self.buffer_bytes() as f64 * per_byte_s);
        for stream in &self.streams {
            let uneven = arrival_variability(&stream.source);
            notes.extend(uneven.doubt.map(str::to_owned));
            let service = ServiceMoments::new(lengths(&stream.source)?.scaled(per_byte_s)?);
            let one = ArrivalStream {
                flow: 0,
                rate: stream.source.per_second(),
                scv: uneven.scv,
                source_scv: uneven.scv,
                modulation: uneven.modulation,
                passed: Vec::new(),
                service,
                first: false,
            };
            station.arrivals.extend(std::iter::repeat_n(one, stream.inputs.len()));
        }
        for _ in 0..ROUNDS {
            station.update_load(1.0)?;
        }
        notes.extend(station.doubt().map(|doubt| format!("approximate: {}", doubt.text())));
        let solved = station.solve()?;
        Ok(solved.map(|solved| StreamSolution { delay: solved.waiting[1].clone(), loss: station.state.loss }))
    }

    /// Returns the delay that the discipline between virtual switches guarantees, if it does.
    fn bound(&self, port: Bps) -> Option<Duration> {
        let owner = self.virtual_switch?;
        let share =
            |one: &VirtualSwitch| one.ports.iter().find(|share| share.port == self.output).map(|share| share.quantum.0);
        let packet = self.fabric.max_packet.0;
        match self.fabric.discipline {
            InterDiscipline::Drr => {
                let round = self.switch.virtual_switches.iter().filter_map(share).sum();
                Some(drr_bound(round, share(owner)?, packet, port))
            }
            InterDiscipline::StrictPriority => {
                let first = self.switch.virtual_switches.iter().map(|one| one.priority).min()?;
                (owner.priority == first).then(|| strict_priority_bound(packet, packet, port))
            }
        }
    }
}

/// Solution of a group with a given rate.
struct StreamSolution {
    delay: weir_model::Distribution,
    loss: f64,
}
