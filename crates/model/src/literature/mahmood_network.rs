//! Solves Mahmood's model of several switches with one controller: a Jackson network.
use crate::check::{domain, not_negative, positive, share, stable};
use crate::{Distribution, ModelError, StationUtilisation};
use nalgebra::{DMatrix, DVector};

/// Most switches in a network.
pub const MAX_SWITCHES: usize = 1000;
/// Largest deviation of the sum of traffic shares from 1, as decimal notation may cause.
const SUM_TOLERANCE: f64 = 1e-9;

/// Switch of the network. Rates per second.
#[derive(Debug, Clone, PartialEq)]
pub struct JacksonSwitch {
    /// Rate of Poisson arrivals from outside; 0 for none.
    pub arrival_rate: f64,
    /// Share of packets without an entry. If the controller installs whole paths, 0 beyond the first switch.
    pub p: f64,
    /// Exponential service rate.
    pub service_rate: f64,
    /// Share of the switch's packets that continue to each switch; the others leave the network.
    pub routing: Vec<f64>,
}

/// Steady state of the network.
#[derive(Debug, Clone)]
pub struct JacksonNetworkState {
    /// Mean time of a packet in the network, in seconds.
    pub sojourn_s: f64,
    /// Mean time of a visit to each switch, in seconds.
    pub switch_s: Vec<f64>,
    /// Mean time of a visit to the controller, in seconds; none if no packet asks it.
    pub controller_s: Option<f64>,
    /// Utilisations of the switches and the controller.
    pub loads: Vec<StationUtilisation>,
    misses: Vec<f64>,
}

/// Solves the model of Mahmood and others (2015): M/M/1 switches; a packet on its first visit to a switch may have no
/// entry there and asks the controller, M/M/1, once. Means are exact (a Jackson network); distributions along a path
/// treat the visits as independent.
///
/// # Errors
/// `DOMAIN`, also if packets would never leave; `UNSTABLE` at `switch <i>` or the controller.
pub fn mahmood_network(switches: &[JacksonSwitch], controller_rate: f64) -> Result<JacksonNetworkState, ModelError> {
    check(switches)?;
    let controller_rate = positive("mu_c", controller_rate)?;
    let first_visits = first_visits(switches)?;
    let (mut loads, mut switch_s, mut present, mut asked) = (Vec::new(), Vec::new(), 0.0, 0.0);
    for (index, (switch, first)) in switches.iter().zip(&first_visits).enumerate() {
        let place = format!("switch {index}");
        let rate = first * (1.0 + switch.p);
        let rho = stable(&place, rate / switch.service_rate)?;
        switch_s.push(1.0 / (switch.service_rate - rate));
        present += rho / (1.0 - rho);
        asked += first * switch.p;
        loads.push(StationUtilisation::new(place, rho));
    }
    let mut controller_s = None;
    if asked > 0.0 {
        let rho = stable("controller", asked / controller_rate)?;
        controller_s = Some(1.0 / (controller_rate - asked));
        present += rho / (1.0 - rho);
        loads.push(StationUtilisation::new("controller", rho));
    }
    let arriving: f64 = switches.iter().map(|switch| switch.arrival_rate).sum();
    let misses = switches.iter().map(|switch| switch.p).collect();
    Ok(JacksonNetworkState { sojourn_s: present / arriving, switch_s, controller_s, loads, misses })
}

impl JacksonNetworkState {
    /// Returns the delay of packets along a path of switches, given by their indices.
    ///
    /// # Errors
    /// `DOMAIN` for an index without a switch.
    pub fn path(&self, path: &[usize]) -> Result<Distribution, ModelError> {
        let at = |index: &usize| {
            let expected = || domain("path", index, format!("indexes of switches, below {}", self.switch_s.len()));
            let mean = *self.switch_s.get(*index).ok_or_else(expected)?;
            let (visit, p) = (Distribution::exponential(mean)?, self.misses[*index]);
            let Some(controller_s) = self.controller_s.filter(|_| p > 0.0) else { return Ok(visit) };
            let asking = Distribution::sum([&visit, &Distribution::exponential(controller_s)?, &visit]);
            Distribution::mixture(&[(1.0 - p, visit), (p, asking)])
        };
        Ok(Distribution::sum(&path.iter().map(at).collect::<Result<Vec<_>, _>>()?))
    }
}

fn check(switches: &[JacksonSwitch]) -> Result<(), ModelError> {
    if switches.is_empty() || switches.len() > MAX_SWITCHES {
        return Err(domain("number of switches", switches.len(), format!("1 to {MAX_SWITCHES}")));
    }
    for switch in switches {
        not_negative("lam", switch.arrival_rate)?;
        share("p", switch.p)?;
        positive("mu", switch.service_rate)?;
        switch.routing.iter().try_for_each(|part| share("R", *part).map(drop))?;
        if switch.routing.len() != switches.len() {
            let expected = format!("as many as switches, {}", switches.len());
            return Err(domain("length of a row of R", switch.routing.len(), expected));
        }
        let sum: f64 = switch.routing.iter().sum();
        if sum > 1.0 + SUM_TOLERANCE {
            return Err(domain("sum of a row of R", sum, "1 at most"));
        }
    }
    if !switches.iter().any(|switch| switch.arrival_rate > 0.0) {
        return Err(domain("sum of lam", 0.0, "a number above 0"));
    }
    leaves(switches)
}

/// Checks that packets can leave the network from everywhere: the spectral radius of the routing is then below 1.
fn leaves(switches: &[JacksonSwitch]) -> Result<(), ModelError> {
    let leaks = |switch: &JacksonSwitch| switch.routing.iter().sum::<f64>() < 1.0 - SUM_TOLERANCE;
    let mut leaving: Vec<bool> = switches.iter().map(leaks).collect();
    let mut found = leaving.iter().filter(|leaves| **leaves).count();
    loop {
        for (index, switch) in switches.iter().enumerate() {
            leaving[index] |= switch.routing.iter().zip(&leaving).any(|(part, leaves)| *part > 0.0 && *leaves);
        }
        let now = leaving.iter().filter(|leaves| **leaves).count();
        match leaving.iter().position(|leaves| !leaves) {
            None => return Ok(()),
            Some(index) if now == found => {
                let expected = "a way out of the network for its packets";
                return Err(domain("R", format!("switch {index} with no way out"), expected));
            }
            Some(_) => found = now,
        }
    }
}

/// Returns the rates per second of first visits to each switch: a = lambda + R' a.
fn first_visits(switches: &[JacksonSwitch]) -> Result<Vec<f64>, ModelError> {
    let count = switches.len();
    let matrix = DMatrix::from_fn(count, count, |row, column| {
        let own = if row == column { 1.0 } else { 0.0 };
        own - switches[column].routing[row]
    });
    let arriving = DVector::from_iterator(count, switches.iter().map(|switch| switch.arrival_rate));
    let solution = matrix.lu().solve(&arriving).filter(|solution| solution.iter().all(|rate| rate.is_finite()));
    let solution =
        solution.ok_or(ModelError::NoConvergence { what: "traffic between the switches".into(), rounds: 1 })?;
    Ok(solution.iter().map(|rate| rate.max(0.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(arrival_rate: f64, routing: &[f64]) -> JacksonSwitch {
        JacksonSwitch { arrival_rate, p: 0.1, service_rate: 1000.0, routing: routing.to_vec() }
    }

    #[test]
    fn packets_that_never_leave_are_refused() {
        let error = mahmood_network(&[switch(1.0, &[0.0, 1.0]), switch(1.0, &[1.0, 0.0])], 10.0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "R: found switch 0 with no way out, expected a way out of the network for its packets"
        );
        // A loop with a way out is allowed.
        assert!(mahmood_network(&[switch(1.0, &[0.0, 1.0]), switch(1.0, &[0.9, 0.0])], 10.0).is_ok());
    }

    #[test]
    fn one_switch_is_the_single_model() {
        let network = mahmood_network(&[switch(500.0, &[0.0])], 150.0).unwrap();
        let single = super::super::mahmood(500.0, 0.1, 1000.0, 150.0).unwrap();
        assert!((network.sojourn_s / single.sojourn_s - 1.0).abs() < 1e-12);
        let path = network.path(&[0]).unwrap();
        assert!((path.mean() / single.sojourn_s - 1.0).abs() < 1e-12);
        assert!((path.quantile(0.95).unwrap() / single.sojourn.quantile(0.95).unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_place_that_cannot_keep_up_is_named() {
        let error = mahmood_network(&[switch(10.0, &[0.0, 1.0]), switch(950.0, &[0.0, 0.0])], 150.0).unwrap_err();
        assert!(matches!(&error, ModelError::Unstable { place, .. } if place == "switch 1"), "{error}");
        let error = mahmood_network(&[switch(500.0, &[0.0])], 40.0).unwrap_err();
        assert!(matches!(&error, ModelError::Unstable { place, .. } if place == "controller"), "{error}");
    }
}
