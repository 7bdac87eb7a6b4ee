//! Models a control path by two measurements: its latency and its capacity.
use super::DataAndControlPaths;
use crate::answer::{StationUtilisation, SwitchSteadyState};
use crate::check::{domain, not_negative, positive, share};
use crate::mechanism::WriteInterference;
use crate::station::{SteadyState, mg1, mg1k};
use crate::{Distribution, Law, ModelError};

/// Switch whose control path was measured: its latency when idle, and its capacity in packets a second.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyCapacitySplit {
    /// Arrival rate in packets a second, Poisson.
    pub rate: f64,
    /// Share of packets that go through the controller.
    pub p: f64,
    /// Service time of the data path.
    pub data: Law,
    /// Latency of the whole control path for a packet when it is idle, in seconds.
    pub idle_s: f64,
    /// Packets a second that the control path carries without loss.
    pub capacity: f64,
    /// Squared coefficient of variation of the bottleneck's service times: 0 constant, 1 exponential.
    pub scv: f64,
    /// Places at the bottleneck, including the one in service; none without a limit.
    pub places: Option<usize>,
    /// Time for which a table write seizes the data path, in seconds; none if it does not.
    pub write_s: Option<f64>,
}

/// Returns the steady state. The latency-capacity split is weir's own. Stages of a control path overlap, so its
/// latency exceeds the time between two packets at its capacity (Ansell 2017: 19.06 ms, but 70 packets a second, not
/// 52). The bottleneck is a station with a mean service of 1 / capacity; the remaining idle latency is constant.
///
/// Exact for Poisson packets whose control path has one bottleneck. With writes, means are 1 to 11 % too high, those
/// of packets that the switch forwards alone by up to 85 %: writes behind a bottleneck are more regular than Poisson.
/// Percentiles assume that data path and control path are independent.
///
/// # Errors
/// `DOMAIN` for invalid numbers or an idle latency below 1 / capacity; `UNSTABLE` if more packets come than are
/// carried, without a limit.
pub fn split(asked: &LatencyCapacitySplit) -> Result<SwitchSteadyState, ModelError> {
    let p = share("p", asked.p)?;
    let rest_s = rest_s(asked)?;
    let rate = positive("lam", asked.rate)?;
    let station = if p > 0.0 { Some(bottleneck(asked, p * rate)?) } else { None };
    let lost = station.as_ref().map_or(0.0, |station| station.loss);
    let mut loads = Vec::new();
    let (data_s, data) = data_path(asked, p * rate * (1.0 - lost), &mut loads)?;
    let control = match station {
        Some(station) => {
            loads.push(StationUtilisation::new("control path", station.utilisation));
            let rest = Distribution::constant(rest_s)?;
            Some((data_s + rest_s + station.sojourn_s, Distribution::sum([&data, &rest, &station.sojourn])))
        }
        None => None,
    };
    DataAndControlPaths { p, lost, data_s, data, control, loads }.together()
}

/// Returns the idle latency without the bottleneck's service, in seconds.
fn rest_s(asked: &LatencyCapacitySplit) -> Result<f64, ModelError> {
    let service_s = positive("cap", asked.capacity)?.recip();
    let rest_s = positive("D0", asked.idle_s)? - service_s;
    // Both may come from one measurement whose inverse was rounded.
    if rest_s < -1e-9 * service_s {
        let expected = format!(
            "1 / cap or more, which is {service_s} s: a path carries one packet at least while one is on its way"
        );
        return Err(domain("D0", asked.idle_s, expected));
    }
    Ok(rest_s.max(0.0))
}

fn bottleneck(asked: &LatencyCapacitySplit, rate: f64) -> Result<SteadyState, ModelError> {
    let service = Law::gamma(asked.capacity.recip(), not_negative("scv", asked.scv)?)?;
    match asked.places {
        Some(places) => mg1k(rate, &service, places),
        None => mg1(rate, &service).map_err(|error| at("control path", error)),
    }
}

/// Returns mean and distribution of the sojourn in the data path.
fn data_path(
    asked: &LatencyCapacitySplit,
    write_rate: f64,
    loads: &mut Vec<StationUtilisation>,
) -> Result<(f64, Distribution), ModelError> {
    match asked.write_s.map(|write_s| not_negative("B", write_s)).transpose()? {
        Some(write_s) if write_s > 0.0 => {
            let path = WriteInterference { rate: asked.rate, service: asked.data.clone(), write_rate, write_s };
            let state = path.solve()?;
            loads.push(StationUtilisation::new("data path", state.writing + state.forwarding));
            Ok((state.sojourn_s, state.sojourn))
        }
        _ => {
            let state = mg1(asked.rate, &asked.data).map_err(|error| at("data path", error))?;
            loads.push(StationUtilisation::new("data path", state.utilisation));
            Ok((state.sojourn_s, state.sojourn))
        }
    }
}

/// Returns the error with another place if it is `UNSTABLE`; other errors are unchanged.
pub(super) fn at(place: &str, error: ModelError) -> ModelError {
    match error {
        ModelError::Unstable { rho, .. } => ModelError::Unstable { place: place.to_owned(), rho },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> LatencyCapacitySplit {
        LatencyCapacitySplit {
            rate: 100.0,
            p: 0.5,
            data: Law::constant(9e-6).unwrap(),
            idle_s: 0.0190625,
            capacity: 70.0,
            scv: 0.5,
            places: Some(200),
            write_s: None,
        }
    }

    #[test]
    fn an_idle_path_takes_its_latency_and_a_full_one_its_buffer() {
        let idle = split(&LatencyCapacitySplit { rate: 0.001, ..asked() }).unwrap();
        assert!((idle.control_s.unwrap() / 0.0190715 - 1.0).abs() < 1e-4);
        let full = split(&LatencyCapacitySplit { rate: 1000.0, ..asked() }).unwrap();
        assert!((full.control_s.unwrap() / (200.0 / 70.0) - 1.0).abs() < 0.01);
        assert!((full.loss / (0.5 - 70.0 / 1000.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn without_new_flows_there_is_no_control_path() {
        let none = split(&LatencyCapacitySplit { p: 0.0, ..asked() }).unwrap();
        assert!(none.control_s.is_none() && none.control.is_none() && none.loss == 0.0 && none.control_share == 0.0);
        assert_eq!(none.sojourn_s.to_bits(), none.data_s.to_bits());
    }

    #[test]
    fn percentiles_have_the_mean() {
        for write_s in [None, Some(0.0093)] {
            let state = split(&LatencyCapacitySplit { write_s, ..asked() }).unwrap();
            assert!((state.sojourn.mean() / state.sojourn_s - 1.0).abs() < 1e-9);
            assert!((state.control.unwrap().mean() / state.control_s.unwrap() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_has_no_answer_is_refused() {
        let kind = |asked: LatencyCapacitySplit| split(&asked).unwrap_err();
        assert_eq!(kind(LatencyCapacitySplit { idle_s: 0.014, ..asked() }).kind(), "DOMAIN");
        assert_eq!(kind(LatencyCapacitySplit { p: 1.5, ..asked() }).kind(), "DOMAIN");
        assert_eq!(kind(LatencyCapacitySplit { places: Some(0), ..asked() }).kind(), "DOMAIN");
        let unstable = kind(LatencyCapacitySplit { rate: 200.0, places: None, ..asked() }).to_string();
        assert!(unstable.contains("control path"), "{unstable}");
        let written = kind(LatencyCapacitySplit { write_s: Some(0.02), ..asked() }).to_string();
        assert!(written.contains("table writes"), "{written}");
    }
}
