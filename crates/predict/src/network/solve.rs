//! Iterates rates and losses of the network until nothing changes.
use super::{QueueLocation, QueueingNetwork, RouteStep, StationVisit, UnidirectionalFlow};
use crate::station::{AnalyticStation, ArrivalStream, PassedStation, StationSolution};
use crate::{PredictError, controller_returns};
use weir_model::ModelError;

/// Maximum number of rounds; the iteration then fails.
const MOST_ROUNDS: u32 = 400;
/// Step by round: pairs of the first round and the step from that round on, latest first. A step below 1 moves rates
/// and losses only a part of the way to their new values. This ends oscillation between two states.
const DAMPING_SCHEDULE: [(u32, f64); 4] = [(250, 0.05), (100, 0.2), (20, 0.5), (0, 1.0)];
/// Largest change of a round below which the network counts as solved.
const CONVERGENCE_LIMIT: f64 = 1e-9;
/// Largest change that is accepted in the last round: far below the error of the formulas.
const ACCEPTED_CHANGE: f64 = 1e-3;

/// Time of a device with random times, as a share of the time on the slowest line before it, up to which it changes
/// nothing in how packets follow each other.
const NEGLIGIBLE_DEVICE: f64 = 0.1;

impl QueueingNetwork<'_> {
    /// Passes flows through the network until nothing changes, then solves each queue. The result has `None` for queues
    /// without a steady state.
    pub(crate) fn solve(&mut self, flows: &[UnidirectionalFlow]) -> Result<Vec<Option<StationSolution>>, PredictError> {
        for round in 0..MOST_ROUNDS {
            for station in &mut self.stations {
                station.arrivals.clear();
                station.seized = station.seized.map(|(length, _)| (length, 0.0));
            }
            flows.iter().enumerate().for_each(|(number, flow)| self.add_flow(number, flow));
            let damping = DAMPING_SCHEDULE.iter().find(|(from, _)| round >= *from).map_or(1.0, |(_, step)| *step);
            let mut moved = 0.0f64;
            for station in &mut self.stations {
                moved =
                    moved.max(station.update_load(damping).map_err(|error| PredictError::at(&station.name, error))?);
            }
            if (moved < CONVERGENCE_LIMIT && round > 0) || (moved < ACCEPTED_CHANGE && round + 1 == MOST_ROUNDS) {
                let solved = |one: &AnalyticStation| one.solve().map_err(|error| PredictError::at(&one.name, error));
                let mut solved = self.stations.iter().map(solved).collect::<Result<Vec<_>, _>>()?;
                controller_returns::solve_with_returns(self, &mut solved)?;
                self.solve_merging(&mut solved)?;
                return Ok(solved);
            }
        }
        Err(PredictError::at(
            "the network",
            ModelError::NoConvergence { what: "rates and losses".into(), rounds: MOST_ROUNDS },
        ))
    }

    /// Adds one flow, with its number, to all queues on its route, reduced by the losses before each.
    fn add_flow(&mut self, number: usize, flow: &UnidirectionalFlow) {
        let (mut data, mut asking) = (flow.rate * (1.0 - flow.asking_share), flow.rate * flow.asking_share);
        let mut scv = flow.scv;
        // Packets that ask the controller, and those behind them, are not followed over several lines.
        let followed = FollowedPackets { source_scv: flow.scv, passed: Vec::new() };
        let mut way = (flow.asking_share <= 0.0).then_some(followed);
        for step in flow.steps.iter() {
            match step {
                RouteStep::Visit(visit) => {
                    let rate = data + asking;
                    let place = self.locations[visit.station];
                    let is_line = matches!(place, QueueLocation::Line(_));
                    let behind = way.clone().filter(|way| is_line && !way.passed.is_empty());
                    scv = self.add_arrivals((number, flow), visit, rate, scv, behind);
                    if let Some(way) = &mut way {
                        way.pass(place, visit, scv);
                    }
                    let keeps = self.stations[visit.station].delivery_share();
                    data *= keeps;
                    asking *= keeps;
                }
                RouteStep::ControllerTrip { way, back, seizes, .. } => {
                    let share = if data + asking > 0.0 { asking / (data + asking) } else { 0.0 };
                    let mut own = share * scv + 1.0 - share;
                    for visit in way {
                        own = self.add_arrivals((number, flow), visit, asking, own, None);
                        asking *= self.stations[visit.station].delivery_share();
                    }
                    if let Some((station, length)) = seizes {
                        let known = self.stations[*station].seized.map_or(0.0, |(_, per_second)| per_second);
                        self.stations[*station].seized = Some((*length, known + asking));
                    }
                    if let Some(visit) = back {
                        self.add_arrivals((number, flow), visit, asking, own, None);
                        asking *= self.stations[visit.station].delivery_share();
                    }
                }
            }
        }
    }

    /// Adds a flow to a queue. `behind` is set at a line behind other stations. Returns the squared coefficient of
    /// variation (SCV) of the times between departures.
    fn add_arrivals(
        &mut self,
        (number, flow): (usize, &UnidirectionalFlow),
        visit: &StationVisit,
        rate: f64,
        scv: f64,
        behind: Option<FollowedPackets>,
    ) -> f64 {
        let station = &mut self.stations[visit.station];
        let (source_scv, passed) = behind.map_or((scv, Vec::new()), |way| (way.source_scv, way.passed));
        station.arrivals.push(ArrivalStream {
            flow: number,
            rate,
            scv,
            modulation: flow.modulation.clone(),
            source_scv,
            passed,
            service: visit.service.clone(),
            first: visit.first,
        });
        let share = if station.state.rate > 0.0 { (rate / station.state.rate).min(1.0) } else { 1.0 };
        share * station.state.departure_scv + 1.0 - share
    }

    /// Solves the lines again, with what packets have met before.
    fn solve_merging(&self, solved: &mut [Option<StationSolution>]) -> Result<(), PredictError> {
        for ((station, place), known) in self.stations.iter().zip(&self.locations).zip(solved) {
            let (Some(own), QueueLocation::Line(_)) = (known, place) else { continue };
            if let Some(better) = station.behind_lines(own).map_err(|error| PredictError::at(&station.name, error))? {
                *own = better;
            }
        }
        Ok(())
    }
}

/// Packets of a flow on their way over lines and devices.
#[derive(Debug, Clone)]
struct FollowedPackets {
    /// SCV of the times between packets where they were last independent of others: at the source, or behind a device
    /// whose times are random.
    source_scv: f64,
    /// Lines, and devices that are slower than all lines before, that they have passed since.
    passed: Vec<PassedStation>,
}

impl FollowedPackets {
    /// Notes that the packets have passed a station, which they leave with the SCV `scv`.
    fn pass(&mut self, place: QueueLocation, visit: &StationVisit, scv: f64) {
        let is_line = matches!(place, QueueLocation::Line(_) | QueueLocation::Output(..));
        let is_random = match place {
            QueueLocation::Gate(..) => true,
            _ => !is_line && visit.fixed.as_ref().is_some_and(|fixed| fixed.variance() > 0.0),
        };
        let own = visit.service.mean;
        let slowest = self.passed.iter().map(|passed| passed.service.mean).fold(0.0, f64::max);
        if is_random {
            if matches!(place, QueueLocation::Gate(..)) || own > NEGLIGIBLE_DEVICE * slowest {
                *self = FollowedPackets { source_scv: scv, passed: Vec::new() };
            }
        } else if is_line || own > slowest {
            self.passed.push(PassedStation { station: visit.station, service: visit.service.clone(), is_line });
        }
    }
}
