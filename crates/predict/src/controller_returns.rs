//! Solves processors that create packet-ins and carry out packet-outs: packets that return from the controller are no
//! new arrivals.
use crate::PredictError;
use crate::network::{QueueLocation, QueueingNetwork};
use crate::station::{AnalyticStation, StationSolution};
use weir_model::control_path::{ReentrantProcessor, WaitFactors};
use weir_model::{Distribution, Law, ModelError};

/// Share of lost packets below which a limit counts as unlimited.
const NEGLIGIBLE_LOSS: f64 = 1e-6;

/// Solves processors again together with the controller, where both have a steady state without loss. Other
/// processors keep their solution, in which returns count as new arrivals.
pub(crate) fn solve_with_returns(
    network: &QueueingNetwork<'_>,
    solved: &mut [Option<StationSolution>],
) -> Result<(), PredictError> {
    let Some(controller) = network.find(QueueLocation::Controller) else { return Ok(()) };
    let mut longer = 0.0;
    for (at, place) in network.locations.iter().enumerate() {
        let station = &network.stations[at];
        if !matches!(place, QueueLocation::Agents(_))
            || station.state.loss > NEGLIGIBLE_LOSS
            || solved[controller].is_none()
        {
            continue;
        }
        let Some(own) = &mut solved[at] else { continue };
        let wrong = |error| PredictError::at(&station.name, error);
        let Some((rate, factors)) = factors(station, &network.stations[controller]).map_err(wrong)? else { continue };
        waits(station, factors, own).map_err(wrong)?;
        longer += (factors.controller - 1.0) * rate / network.stations[controller].state.rate;
    }
    if let Some(own) = solved[controller].as_mut().filter(|_| longer != 0.0) {
        let station = &network.stations[controller];
        if station.state.loss <= NEGLIGIBLE_LOSS {
            let waiting = scaled(station, 1.0 + longer).map_err(|error| PredictError::at(&station.name, error))?;
            own.waiting = [waiting.clone(), waiting];
            own.formula = "M/G/1 behind a processor";
        }
    }
    Ok(())
}

/// Returns the rate of first visits to the processor, in packets a second, and the factors of the waits; none if
/// nothing returns.
fn factors(
    processor: &AnalyticStation,
    controller: &AnalyticStation,
) -> Result<Option<(f64, WaitFactors)>, ModelError> {
    let rate =
        |again: bool| -> f64 { processor.arrivals.iter().filter(|one| one.first == again).map(|one| one.rate).sum() };
    let (first, again) = (rate(false), rate(true));
    if first <= 0.0 || again <= 0.0 || controller.state.rate <= 0.0 {
        return Ok(None);
    }
    let [packet_in, packet_out] = [false, true].map(|again| processor.service_of(|one| one.first == again));
    let returning = ReentrantProcessor::new(&packet_in?, &controller.service_of(|_| true)?, &packet_out?);
    Ok(Some((first, returning.factors(first, (again / first).min(1.0))?)))
}

fn waits(station: &AnalyticStation, factors: WaitFactors, solved: &mut StationSolution) -> Result<(), ModelError> {
    let WaitFactors { first, again, correlation, .. } = factors;
    let (first_waiting, again_waiting) = (scaled(station, first)?, scaled(station, again)?);
    let apart = Distribution::sum([&first_waiting, &again_waiting]);
    let both = Distribution::mixture(&[(correlation, scaled(station, first + again)?), (1.0 - correlation, apart)])?;
    solved.waiting = [again_waiting, first_waiting];
    solved.both = Some(both);
    solved.formula = "M/G/1 with returns";
    Ok(())
}

/// Returns the waiting time of Poisson arrivals, multiplied by `factor`.
fn scaled(station: &AnalyticStation, factor: f64) -> Result<Distribution, ModelError> {
    let service: Law = station.service_of(|_| true)?;
    if factor < f64::EPSILON {
        return Ok(Distribution::zero());
    }
    weir_model::station::mg1_waiting(station.state.rate / factor, &service.scaled(factor)?)
}
