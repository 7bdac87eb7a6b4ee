//! Builds the steps of packets that ask the controller.
use super::{Network, Place, Step, Visit};
use crate::sizes::Work;
use weir_model::{Law, ModelError};
use weir_scenario::{ControlPath, Returns, SwitchTiming};

impl Network<'_> {
    pub(super) fn ask(
        &mut self,
        switch: usize,
        timing: Option<&SwitchTiming>,
        lengths: &Law,
    ) -> Result<Option<Step>, ModelError> {
        let Some(timing) = timing else { return Ok(None) };
        let scenario = self.scenario;
        if timing.control.is_unknown() && scenario.controller.service.is_none() {
            return Ok(None);
        }
        let (way, delay_s) = match &timing.control {
            ControlPath::Measured { delay_s, capacity, scv, buffer } => {
                let name = format!("{} control path", scenario.switches[switch].name);
                let station = self.station(Place::Control(switch), || name, *buffer);
                let work = Work { fixed: Some(Law::gamma(1.0 / capacity, *scv)?), per_byte_s: 0.0 };
                (Vec::from_iter(self.visit(station, &work, lengths)?), delay_s - 1.0 / capacity)
            }
            ControlPath::Agents { .. } => {
                (self.agents(switch, timing, lengths)?, 2.0 * scenario.controller.delay.as_secs_f64())
            }
        };
        let back = match &timing.returns {
            Returns::Direct => None,
            Returns::Fifo => self.data(switch, Some(timing), lengths)?,
            Returns::Priority { service, .. } => {
                let again = self.data(switch, Some(timing), lengths)?;
                let own = service.as_ref().map(|service| Work::of(Some(service)));
                let changed = match (&again, own) {
                    (Some(again), Some(own)) => self.visit(again.station, &own, lengths)?,
                    _ => again,
                };
                changed.map(|visit| Visit { first: true, ..visit })
            }
        };
        let length = timing.write.as_secs_f64();
        let seizes = self.find(Place::Data(switch)).filter(|_| length > 0.0).map(|station| (station, length));
        Ok(Some(Step::Ask { way, back, delay_s: delay_s.max(0.0), seizes }))
    }

    fn agents(&mut self, switch: usize, timing: &SwitchTiming, lengths: &Law) -> Result<Vec<Visit>, ModelError> {
        let ControlPath::Agents { packet_in, packet_out, shared, buffer } = &timing.control else {
            return Ok(Vec::new());
        };
        let scenario = self.scenario;
        let name = scenario.switches[switch].name.as_str();
        let mut way = Vec::new();
        let agents: [(Place, &str, _); 2] = if *shared {
            [(Place::Agents(switch), "agents", packet_in), (Place::Agents(switch), "agents", packet_out)]
        } else {
            [
                (Place::PacketIn(switch), "packet-in agent", packet_in),
                (Place::PacketOut(switch), "packet-out agent", packet_out),
            ]
        };
        for (at, (place, what, service)) in agents.into_iter().enumerate() {
            if at == 1 {
                way.extend(self.controller(lengths)?);
            }
            if service.is_some() {
                let station = self.station(place, || format!("{name} {what}"), *buffer);
                self.stations[station].memoryless = *shared;
                let visit = self.visit(station, &Work::of(service.as_ref()), lengths)?;
                way.extend(visit.map(|visit| Visit { first: *shared && at == 1, ..visit }));
            }
        }
        Ok(way)
    }

    fn controller(&mut self, lengths: &Law) -> Result<Option<Visit>, ModelError> {
        let timing = &self.scenario.controller;
        let Some(service) = &timing.service else { return Ok(None) };
        let station = self.station(Place::Controller, || "controller".to_owned(), timing.buffer);
        self.visit(station, &Work::of(Some(service)), lengths)
    }
}
