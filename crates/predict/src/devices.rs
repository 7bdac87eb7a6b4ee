//! Collects devices over all phases, each in the phase with its highest load.
use crate::PredictError;
use crate::answer::{DevicePrediction, PredictedDelay, PredictionStatus};
use crate::network::{QueueLocation, QueueingNetwork};
use crate::phase::TrafficPhase;
use crate::station::{AnalyticStation, StationSolution};
use weir_model::{Distribution, Warning};

/// Utilisation above which an error in the load is ten times as large in the delay.
const NEAR_SATURATION: f64 = 0.9;

/// Devices in their busiest phase.
#[derive(Default)]
pub(crate) struct DevicePeaks {
    found: Vec<DevicePeak>,
}

struct DevicePeak {
    name: String,
    place: QueueLocation,
    /// Offered load over capacity.
    load: f64,
    utilisation: f64,
    rate: f64,
    loss: f64,
    full: bool,
    solved: Option<StationSolution>,
}

impl DevicePeaks {
    /// Adds the devices of a solved phase.
    pub(crate) fn add(
        &mut self,
        network: &QueueingNetwork<'_>,
        solved: &[Option<StationSolution>],
        _phase: &TrafficPhase,
    ) {
        for ((station, place), solved) in network.stations.iter().zip(&network.locations).zip(solved) {
            if station.state.rate <= 0.0 {
                continue;
            }
            let found = DevicePeak::new(station, *place, solved.clone());
            match self.found.iter_mut().find(|known| known.place == found.place) {
                Some(known) if known.load >= found.load => {}
                Some(known) => *known = found,
                None => self.found.push(found),
            }
        }
    }

    /// Returns the name of the device that would saturate first if everything grew in proportion.
    pub(crate) fn bottleneck(&self) -> Option<String> {
        let most = self.found.iter().max_by(|a, b| a.load.total_cmp(&b.load))?;
        Some(most.name.clone())
    }

    /// Returns the answers of all devices, the busiest first.
    pub(crate) fn answers(mut self) -> Result<Vec<DevicePrediction>, PredictError> {
        self.found.sort_by(|a, b| b.load.total_cmp(&a.load));
        self.found.into_iter().map(DevicePeak::answer).collect()
    }
}

impl DevicePeak {
    fn new(station: &AnalyticStation, place: QueueLocation, solved: Option<StationSolution>) -> DevicePeak {
        let utilisation = solved.as_ref().map_or(station.state.offered, |solved| solved.utilisation);
        // A limited queue that gets more than it can serve is full, too: what finds no place is lost.
        let full = station.is_full() || station.is_overloaded() && !station.is_unstable();
        DevicePeak {
            name: station.name.clone(),
            place,
            load: if full { station.state.offered.max(1.0) } else { station.state.offered },
            utilisation,
            rate: station.state.rate,
            loss: station.state.loss,
            full,
            solved,
        }
    }

    fn answer(self) -> Result<DevicePrediction, PredictError> {
        let wrong = |error| PredictError::at(&self.name, error);
        let delay = match &self.solved {
            Some(StationSolution { waiting, service, .. }) => {
                let service = service.as_ref().map_or_else(Distribution::zero, Distribution::law);
                Some(PredictedDelay::of(&Distribution::sum([&waiting[1], &service])).map_err(wrong)?)
            }
            None => None,
        };
        let status = match (&self.solved, self.full) {
            (None, _) => PredictionStatus::Unstable,
            (Some(_), true) => PredictionStatus::Full,
            (Some(_), false) => PredictionStatus::Ok,
        };
        Ok(DevicePrediction {
            advice: self.solved.is_none().then(|| self.advice()),
            loss: self.solved.is_some().then_some(self.loss),
            status,
            packets_per_s: self.rate,
            utilisation: self.utilisation,
            delay,
            model: self.solved.map_or_else(|| "none: no steady state".to_owned(), |solved| solved.formula.to_owned()),
            device: self.name,
        })
    }

    fn advice(&self) -> String {
        let most = self.rate / self.load;
        let less = match self.place {
            QueueLocation::Line(_) | QueueLocation::Data(..) | QueueLocation::Output(..) => "send less",
            QueueLocation::Gate(..) => "send less",
            _ => "send less or lower new_flows",
        };
        let what = match self.place {
            QueueLocation::Line(_) => "raise its rate",
            QueueLocation::Output(..) => "guarantee it more (`rate_out`)",
            QueueLocation::Data(..) => {
                "make its `data` shorter, or give it a `data_buffer` (packets are then lost, and the rest has an answer)"
            }
            QueueLocation::Gate(..) => "make `tick` shorter, or `tick_max` larger",
            QueueLocation::Control(_) => {
                "raise its `capacity`, or give it a `buffer` (packets are then lost, and the rest has an answer)"
            }
            _ => "make its service shorter, or give it a `buffer` (packets are then lost, and the rest has an answer)",
        };
        format!("{:.4} packets a second come, it serves {most:.4}: {less}, {what}", self.rate)
    }
}

/// Returns a warning for a device near its limit.
pub(crate) fn warning(device: &DevicePrediction) -> Option<Warning> {
    let DevicePrediction { device: name, utilisation, .. } = device;
    if device.status == PredictionStatus::Unstable {
        let advice = device.advice.as_deref().unwrap_or_default();
        return Some(Warning::new(
            "UNSTABLE",
            format!("utilisation {utilisation:.3} at {name}: no steady state; {advice}"),
        ));
    }
    let has_loss = device.loss.is_some_and(|loss| loss > 0.0);
    // TCP fills its queue without losing packets by this, and adapts to it: its load has no error.
    let counts = device.status == PredictionStatus::Ok || device.status == PredictionStatus::Full && has_loss;
    let near = counts && *utilisation > NEAR_SATURATION;
    near.then(|| {
        let text =
            format!("utilisation {utilisation:.3} at {name}: a small error in its load is a large one in its delay");
        Warning::new("NEAR_SATURATION", text)
    })
}
