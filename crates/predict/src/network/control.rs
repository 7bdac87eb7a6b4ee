//! Builds the steps of packets that ask the controller.
use super::{QueueLocation, QueueingNetwork, RouteStep, StationVisit};
use crate::data_path::LevelDemand;
use crate::sizes::ServiceDemand;
use weir_model::{Law, ModelError};
use weir_scenario::{ControlPathTiming, ReturnDiscipline, SwitchTiming};

impl QueueingNetwork<'_> {
    pub(super) fn controller_trip(
        &mut self,
        switch: usize,
        timing: Option<&SwitchTiming>,
        level: Option<&LevelDemand>,
        lengths: &Law,
    ) -> Result<Option<RouteStep>, ModelError> {
        let Some(timing) = timing else { return Ok(None) };
        let scenario = self.scenario;
        if timing.control.is_unknown() && scenario.controller.service.is_none() {
            return Ok(None);
        }
        let (way, delay_s) = match &timing.control {
            ControlPathTiming::Measured { delay_s, capacity, scv, buffer } => {
                let name = format!("{} control path", scenario.switches[switch].name);
                let station = self.station(QueueLocation::Control(switch), || name, *buffer);
                let work = ServiceDemand { fixed: Some(Law::gamma(1.0 / capacity, *scv)?), per_byte_s: 0.0 };
                (Vec::from_iter(self.visit(station, &work, lengths)?), delay_s - 1.0 / capacity)
            }
            ControlPathTiming::Agents { .. } => {
                (self.agents(switch, timing, lengths)?, 2.0 * scenario.controller.delay.as_secs_f64())
            }
        };
        let back = match &timing.returns {
            ReturnDiscipline::Direct => None,
            ReturnDiscipline::Fifo => self.data(switch, Some(timing), level, lengths)?,
            ReturnDiscipline::Priority { service, .. } => {
                let again = self.data(switch, Some(timing), level, lengths)?;
                let own = service.as_ref().map(|service| ServiceDemand::of(Some(service)));
                let changed = match (&again, own) {
                    (Some(again), Some(own)) => self.visit(again.station, &own, lengths)?,
                    _ => again,
                };
                changed.map(|visit| StationVisit { first: true, ..visit })
            }
        };
        let length = timing.write.as_secs_f64();
        let data = QueueLocation::Data(switch, level.map_or(0, |level| level.level));
        let seizes = self.find(data).filter(|_| length > 0.0).map(|station| (station, length));
        Ok(Some(RouteStep::ControllerTrip { way, back, delay_s: delay_s.max(0.0), seizes }))
    }

    fn agents(&mut self, switch: usize, timing: &SwitchTiming, lengths: &Law) -> Result<Vec<StationVisit>, ModelError> {
        let ControlPathTiming::Agents { packet_in, packet_out, shared, buffer } = &timing.control else {
            return Ok(Vec::new());
        };
        let scenario = self.scenario;
        let name = scenario.switches[switch].name.as_str();
        let mut way = Vec::new();
        let agents: [(QueueLocation, &str, _); 2] = if *shared {
            [
                (QueueLocation::Agents(switch), "agents", packet_in),
                (QueueLocation::Agents(switch), "agents", packet_out),
            ]
        } else {
            [
                (QueueLocation::PacketIn(switch), "packet-in agent", packet_in),
                (QueueLocation::PacketOut(switch), "packet-out agent", packet_out),
            ]
        };
        for (at, (place, what, service)) in agents.into_iter().enumerate() {
            if at == 1 {
                way.extend(self.controller(lengths)?);
            }
            if service.is_some() {
                let station = self.station(place, || format!("{name} {what}"), *buffer);
                self.stations[station].memoryless = *shared;
                let visit = self.visit(station, &ServiceDemand::of(service.as_ref()), lengths)?;
                way.extend(visit.map(|visit| StationVisit { first: *shared && at == 1, ..visit }));
            }
        }
        Ok(way)
    }

    fn controller(&mut self, lengths: &Law) -> Result<Option<StationVisit>, ModelError> {
        let timing = &self.scenario.controller;
        let Some(service) = &timing.service else { return Ok(None) };
        let station = self.station(QueueLocation::Controller, || "controller".to_owned(), timing.buffer);
        self.visit(station, &ServiceDemand::of(Some(service)), lengths)
    }
}
