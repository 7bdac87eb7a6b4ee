//! Models control paths of real devices: latency and capacity as independent parameters, or a station for each stage.
mod choice;
mod four_stations;
mod returning;
mod split;

pub use choice::{ModelCriteria, SelectedModel, choose};
pub use four_stations::{AgentProcessors, FourStations, four_stations};
pub use returning::{ReentrantProcessor, WaitFactors};
pub use split::{LatencyCapacitySplit, split};

use crate::answer::{StationUtilisation, SwitchSteadyState};
use crate::{Distribution, ModelError};

/// Direct packets and packets through the controller, to be combined.
struct DataAndControlPaths {
    /// Share of packets that ask the controller.
    p: f64,
    /// Share of these packets that are lost.
    lost: f64,
    data_s: f64,
    data: Distribution,
    /// Mean and distribution of the whole way through the controller; none if no packet takes it.
    control: Option<(f64, Distribution)>,
    loads: Vec<StationUtilisation>,
}

impl DataAndControlPaths {
    fn together(self) -> Result<SwitchSteadyState, ModelError> {
        let DataAndControlPaths { p, lost, data_s, data, control, loads } = self;
        let delivered = 1.0 - p * lost;
        // If all packets ask and all are lost, nothing is delivered.
        let control_share = if delivered > 0.0 { (p * (1.0 - lost) / delivered).clamp(0.0, 1.0) } else { 0.0 };
        let (sojourn_s, sojourn, control_s, control) = match control {
            Some((control_s, control)) => {
                let parts = [(1.0 - control_share, data.clone()), (control_share, control.clone())];
                let mean = (1.0 - control_share) * data_s + control_share * control_s;
                (mean, Distribution::mixture(&parts)?, Some(control_s), Some(control))
            }
            None => (data_s, data.clone(), None, None),
        };
        Ok(SwitchSteadyState {
            sojourn_s,
            data_s,
            control_s,
            loss: p * lost,
            control_share,
            loads,
            sojourn,
            data,
            control,
        })
    }
}
