//! Models packets of a flow that arrive before its entry is installed: all of them go to the controller.
use crate::answer::Warning;
use crate::check::{domain, not_negative, positive, share};
use crate::{Distribution, ModelError};
use num_complex::Complex64;

/// New flows: a Poisson process of flows with a geometric number of packets, which arrive as a Poisson process after
/// the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewFlows {
    /// Rate of flows, per second.
    pub rate: f64,
    /// Mean packets of a flow, at least 1.
    pub packets: f64,
    /// Rate of packets within a flow, per second.
    pub packet_rate: f64,
}

/// Time until a flow's entry is installed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlowSetupTime {
    /// Exponential, with this mean in seconds.
    Exponential(f64),
    /// Constant, in seconds.
    Constant(f64),
    /// Sojourn in the control path: an M/M/1 station of this service rate per second, loaded by all packets that
    /// arrive before their entry.
    Station(f64),
}

/// Load of the controller.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSetupLoad {
    /// Mean packets of each flow that ask the controller.
    pub per_flow: f64,
    /// Share of all packets that ask: the effective share of new flows.
    pub share: f64,
    /// Rate of packets that ask, per second.
    pub rate: f64,
    /// Mean time until a flow's entry is installed, in seconds.
    pub set_up_s: f64,
    /// Warning that two steady states are possible, if so.
    pub warning: Option<Warning>,
}

impl NewFlows {
    /// Returns the load of the controller. The model is weir's own: exact for a given set-up time; with a station,
    /// whose sojourn is assumed independent of the flow's own packets, within 1.5 % of simulation.
    ///
    /// # Errors
    /// `DOMAIN` for invalid numbers; `UNSTABLE` if a station has no state in which it keeps up.
    pub fn before_entry(&self, set_up: FlowSetupTime) -> Result<FlowSetupLoad, ModelError> {
        self.check()?;
        match set_up {
            FlowSetupTime::Exponential(mean_s) => self.exponential(not_negative("D", mean_s)?),
            FlowSetupTime::Constant(delay_s) => self.constant(not_negative("D", delay_s)?),
            FlowSetupTime::Station(service_rate) => self.station(positive("mu_c", service_rate)?),
        }
    }

    fn check(&self) -> Result<(), ModelError> {
        positive("phi", self.rate)?;
        positive("r", self.packet_rate)?;
        if !self.packets.is_finite() || self.packets < 1.0 {
            return Err(domain("N", self.packets, "a number of packets, 1 or more"));
        }
        Ok(())
    }

    /// Returns the share of packets that ask the controller, if installing an entry takes `set_up` from the packet
    /// that asks for it, and a share `lost` of asking packets is lost, so that the flow's next packet is like the
    /// first.
    ///
    /// After the first packet, those of a flow are a Poisson process that ends at the rate r/N: n = 1 + (N - 1) (1 -
    /// D*(r/N)), with D* the transform of the set-up time. Exponential and constant set-up times are special cases.
    /// Exact without losses if the set-up time is independent of the flow's own packets.
    ///
    /// # Errors
    /// `DOMAIN` for invalid numbers.
    pub fn asking(&self, set_up: &Distribution, lost: f64) -> Result<f64, ModelError> {
        self.check()?;
        let lost = share("lost", lost)?;
        let within = 1.0 - set_up.lst(Complex64::from(self.packet_rate / self.packets)).re;
        let per_flow = (1.0 + (1.0 - lost) * (self.packets - 1.0) * within) / (1.0 - lost * self.another());
        Ok((per_flow / self.packets).clamp(1.0 / self.packets, 1.0))
    }

    /// Returns the probability that one more packet follows.
    fn another(&self) -> f64 {
        1.0 - 1.0 / self.packets
    }

    fn exponential(&self, mean_s: f64) -> Result<FlowSetupLoad, ModelError> {
        let met = self.packet_rate * mean_s;
        Ok(self.state(1.0 / (1.0 - self.another() * met / (1.0 + met)), mean_s))
    }

    fn constant(&self, delay_s: f64) -> Result<FlowSetupLoad, ModelError> {
        let (another, met) = (self.another(), self.packet_rate * delay_s);
        // (1 - exp(-m (1 - g))) / (1 - g), in a form that stays precise.
        let within = -(-met / self.packets).exp_m1() * self.packets;
        Ok(self.state(1.0 + another * within, delay_s))
    }

    /// Solves L² - L (r (1 - g) + mu + phi) + phi (r + mu) for the smaller root: as many packets ask as arrive before
    /// an entry after M/M/1 sojourns under this load.
    fn station(&self, service_rate: f64) -> Result<FlowSetupLoad, ModelError> {
        let NewFlows { rate: phi, packet_rate: r, packets } = *self;
        let (sum, product) = (r / packets + service_rate + phi, phi * (r + service_rate));
        let discriminant = sum * sum - 4.0 * product;
        let unstable = |rho| ModelError::Unstable { place: "control path".to_owned(), rho };
        if discriminant < 0.0 {
            return Err(unstable(phi * packets / service_rate));
        }
        // This form of the smaller root avoids subtraction.
        let asking = 2.0 * product / (sum + discriminant.sqrt());
        if asking >= service_rate {
            return Err(unstable(asking / service_rate));
        }
        let warning = (phi * packets >= service_rate).then(|| {
            let text = format!(
                "all packets together, {:.0} a second, are more than the control path serves: a disturbance can keep all of them going to the \
                 controller for good",
                phi * packets
            );
            Warning::new("METASTABLE", text)
        });
        Ok(FlowSetupLoad { warning, ..self.state(asking / phi, 1.0 / (service_rate - asking)) })
    }

    fn state(&self, per_flow: f64, set_up_s: f64) -> FlowSetupLoad {
        let per_flow = per_flow.clamp(1.0, self.packets);
        FlowSetupLoad { per_flow, share: per_flow / self.packets, rate: per_flow * self.rate, set_up_s, warning: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOWS: NewFlows = NewFlows { rate: 30.0, packets: 5.0, packet_rate: 50.0 };

    #[test]
    fn a_station_is_the_fixed_point_of_exponential_set_up() {
        let station = FLOWS.before_entry(FlowSetupTime::Station(200.0)).unwrap();
        let given = FLOWS.before_entry(FlowSetupTime::Exponential(station.set_up_s)).unwrap();
        assert!((station.rate / given.rate - 1.0).abs() < 1e-12);
        assert_eq!(station.warning, None);
    }

    #[test]
    fn any_law_of_the_set_up_time_will_do() {
        for (set_up, law) in [
            (FlowSetupTime::Exponential(0.03), Distribution::exponential(0.03).unwrap()),
            (FlowSetupTime::Constant(0.03), Distribution::constant(0.03).unwrap()),
        ] {
            let state = FLOWS.before_entry(set_up).unwrap();
            assert!((FLOWS.asking(&law, 0.0).unwrap() / state.share - 1.0).abs() < 1e-12);
        }
        // If every packet is lost, no flow gets an entry.
        let law = Distribution::constant(0.001).unwrap();
        assert!((FLOWS.asking(&law, 1.0).unwrap() - 1.0).abs() < 1e-12);
        assert!(FLOWS.asking(&law, 0.5).unwrap() > FLOWS.asking(&law, 0.0).unwrap());
        assert!(FLOWS.asking(&law, 1.5).is_err());
    }

    #[test]
    fn a_flow_of_one_packet_asks_once_and_slow_entries_let_all_ask() {
        let one = NewFlows { packets: 1.0, ..FLOWS };
        for set_up in [FlowSetupTime::Exponential(1.0), FlowSetupTime::Constant(1.0), FlowSetupTime::Station(100.0)] {
            assert!((one.before_entry(set_up).unwrap().per_flow - 1.0).abs() < 1e-12);
        }
        for set_up in [FlowSetupTime::Exponential(1e9), FlowSetupTime::Constant(1e9)] {
            assert!((FLOWS.before_entry(set_up).unwrap().share - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn two_states_are_warned_of_and_none_is_refused() {
        let two = NewFlows { rate: 60.0, packets: 10.0, packet_rate: 5.0 }
            .before_entry(FlowSetupTime::Station(200.0))
            .unwrap();
        assert_eq!(two.warning.unwrap().kind, "METASTABLE");
        let none =
            NewFlows { rate: 150.0, packets: 20.0, packet_rate: 500.0 }.before_entry(FlowSetupTime::Station(200.0));
        assert!(matches!(none, Err(ModelError::Unstable { rho, .. }) if rho >= 1.0));
        assert!(NewFlows { packets: 0.5, ..FLOWS }.before_entry(FlowSetupTime::Constant(1.0)).is_err());
    }
}
