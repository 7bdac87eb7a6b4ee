//! Runs a scenario slower than it says, for machines that are too slow for it, and converts measured times back.
use crate::LabError;
use std::str::FromStr;
use std::time::Duration;
use weir_network::result::{LabResult, TrafficResult};
use weir_scenario::{LinkSpec, PortQueueSpec, Scenario, ScenarioSwitch, TrafficKind};
use weir_traffic::TimeStatistics;
use weir_units::Bps;

/// Largest dilation factor.
const MOST: f64 = 10_000.0;

/// Factor by which a lab runs slower than the scenario says: rates are divided by it, times are multiplied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dilation(f64);

impl Default for Dilation {
    fn default() -> Self {
        Dilation(1.0)
    }
}

impl Dilation {
    /// Returns a dilation by `factor`.
    ///
    /// # Errors
    /// The factor is less than 1 or more than 10,000.
    pub fn new(factor: f64) -> Result<Dilation, String> {
        if (1.0..=MOST).contains(&factor) {
            Ok(Dilation(factor))
        } else {
            Err(format!("found {factor}, expected how many times slower, 1 to {MOST}"))
        }
    }

    /// Returns the factor.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// Converts a time of this machine to the scenario's time, both in ns.
    pub(crate) fn told_ns(self, ns: u64) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no more than it was")]
        let told = (ns as f64 / self.0).round() as u64;
        told
    }

    /// Converts a time of this machine to the scenario's time.
    pub(crate) fn told(self, time: Duration) -> Duration {
        time.div_f64(self.0)
    }

    /// Converts a time of the scenario to this machine's time.
    pub(crate) fn slowed(self, time: Duration) -> Duration {
        Duration::try_from_secs_f64(time.as_secs_f64() * self.0).unwrap_or(Duration::MAX)
    }

    /// Converts a rate of the scenario to this machine's time; at least 1 bit/s.
    pub(crate) fn slower(self, rate: Bps) -> Bps {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no more than it was")]
        let slower = (rate.0 as f64 / self.0).round() as u64;
        Bps(slower.max(1))
    }

    /// Converts a rate of this machine to the scenario's time.
    pub(crate) fn faster(self, rate: Bps) -> Bps {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
        Bps((rate.0 as f64 * self.0).round() as u64)
    }

    /// Refuses scenarios that cannot be slowed down.
    ///
    /// # Errors
    /// The scenario has streams and the factor is above 1.
    pub(crate) fn check(self, scenario: &Scenario) -> Result<(), LabError> {
        if self.0 > 1.0 && !scenario.streams.is_empty() {
            let problem = "found [[stream]] with --dilate, expected traffic of hosts only: streams are sent at the machine's pace";
            return Err(LabError::Scenario(problem.into()));
        }
        Ok(())
    }

    /// Slows down all rates and times of a scenario.
    ///
    /// # Errors
    /// The slower times of a profile cannot be computed.
    pub(crate) fn slow(self, scenario: &mut Scenario) -> Result<(), LabError> {
        if self.0 == 1.0 {
            return Ok(());
        }
        for switch in &mut scenario.switches {
            let problem = |problem| LabError::Scenario(format!("switch {}: --dilate: {problem}", switch.name));
            if let Some(profile) = &mut switch.profile {
                **profile = profile.slowed(self.0).map_err(problem)?;
            }
        }
        for host in &mut scenario.hosts {
            self.slow_link(&mut host.link);
            host.queues.iter_mut().for_each(|queue| self.slow_queue(queue));
        }
        for link in &mut scenario.links {
            self.slow_link(&mut link.spec);
            link.queues.iter_mut().for_each(|queue| self.slow_queue(queue));
        }
        for intent in &mut scenario.network_control.intents {
            let constraints = &mut intent.spec.constraints;
            constraints.bandwidth = constraints.bandwidth.map(|rate| self.slower(rate));
            if let Some(bound) = &mut constraints.delay {
                bound.most.0 = self.slowed(bound.most.0);
            }
        }
        for switch in &mut scenario.switches {
            self.slow_virtual_switches(switch);
        }
        for network in &mut scenario.networks {
            network.slow(|rate| self.slower(rate), |time| self.slowed(time));
        }
        for item in &mut scenario.traffic {
            item.start = self.slowed(item.start);
            self.slow_traffic(&mut item.kind);
        }
        Ok(())
    }

    /// Converts a share of a port's rate to this machine's time. It is rounded down, so that all shares fit the port.
    /// Zero, which says that no packet passes, stays zero.
    fn slower_share(self, rate: Bps) -> Bps {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no more than it was")]
        let slower = (rate.0 as f64 / self.0) as u64;
        if rate == Bps(0) { rate } else { Bps(slower.max(1)) }
    }

    fn slow_virtual_switches(self, switch: &mut ScenarioSwitch) {
        let ports = switch.fabric.iter_mut().flat_map(|fabric| &mut fabric.ports);
        ports.for_each(|port| port.rate = self.slower(port.rate));
        for cut in &mut switch.virtual_switches {
            cut.lifetime = cut.lifetime.map(|lifetime| self.slowed(lifetime));
            for port in &mut cut.ports {
                (port.rate_in, port.rate_out) = (self.slower_share(port.rate_in), self.slower_share(port.rate_out));
                port.ceiling = port.ceiling.map(|ceiling| self.slower(ceiling));
            }
        }
    }

    fn slow_link(self, spec: &mut LinkSpec) {
        spec.rate = spec.rate.map(|rate| self.slower(rate));
        spec.delay = self.slowed(spec.delay);
        if let Some(jitter) = &mut spec.jitter {
            jitter.size = self.slowed(jitter.size);
        }
    }

    fn slow_queue(self, queue: &mut PortQueueSpec) {
        queue.min = queue.min.map(|rate| self.slower(rate));
        queue.max = queue.max.map(|rate| self.slower(rate));
    }

    fn slow_traffic(self, kind: &mut TrafficKind) {
        match kind {
            TrafficKind::Ping { interval, .. } => *interval = self.slowed(*interval),
            TrafficKind::Tcp { duration } => *duration = self.slowed(*duration),
            TrafficKind::Udp { duration, offered, .. } => {
                *duration = self.slowed(*duration);
                *offered = offered.slowed(self.0);
            }
        }
    }

    /// Converts the measurements of a result to the scenario's time.
    pub(crate) fn tell(self, result: &mut LabResult) {
        if self.0 == 1.0 {
            return;
        }
        result.setup.duration_s /= self.0;
        result.traffic.iter_mut().for_each(|item| self.tell_item(item));
        for intent in &mut result.intents {
            let delays = [&mut intent.bound_us, &mut intent.expected_us, &mut intent.measured_us];
            delays.into_iter().flatten().for_each(|us| *us /= self.0);
        }
        for promise in &mut result.promises {
            let delays = [&mut promise.promised_us, &mut promise.bound_us, &mut promise.measured_us];
            delays.into_iter().flatten().for_each(|us| *us /= self.0);
        }
    }

    fn tell_item(self, item: &mut TrafficResult) {
        let delays = [&mut item.rtt, &mut item.rtt_after_first, &mut item.delay, &mut item.undisturbed, &mut item.late];
        delays.into_iter().flatten().for_each(|delay| self.tell_delay(delay));
        item.quantiles_us.iter_mut().for_each(|(_, us)| *us /= self.0);
        item.goodput_bps = item.goodput_bps.map(|rate| rate * self.0);
    }

    fn tell_delay(self, delay: &mut TimeStatistics) {
        let TimeStatistics { samples: _, min_us, mean_us, sd_us, p50_us, p95_us, p99_us, p999_us, max_us } = delay;
        [min_us, mean_us, sd_us, p50_us, p95_us, p99_us, p999_us, max_us].into_iter().for_each(|us| *us /= self.0);
    }
}

impl FromStr for Dilation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let factor = text.parse().map_err(|_| format!("found `{text}`, expected a number such as 10"))?;
        Dilation::new(factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_slowed_and_told_back() {
        let text = r#"
            [[switch]]
            name = "s1"
            [[host]]
            name = "a"
            switch = "s1"
            ip = "10.0.0.1/24"
            rate = "100Mbit/s"
            delay = "2ms"
            [[host]]
            name = "b"
            switch = "s1"
            ip = "10.0.0.2/24"
            [[traffic]]
            kind = "ping"
            from = "a"
            to = "b"
            count = 3
            interval = "100ms"
        "#;
        let mut scenario = Scenario::parse(text, "slow").unwrap();
        let ten = Dilation::new(10.0).unwrap();
        ten.slow(&mut scenario).unwrap();
        let spec = scenario.hosts[0].link;
        assert_eq!((spec.rate, spec.delay), (Some(Bps(10_000_000)), Duration::from_millis(20)));
        assert!(
            matches!(scenario.traffic[0].kind, TrafficKind::Ping { count: 3, interval } if interval == Duration::from_secs(1))
        );
        assert_eq!(
            (ten.told_ns(20_000_000), ten.told(Duration::from_secs(1))),
            (2_000_000, Duration::from_millis(100))
        );
        for wrong in ["0", "0.5", "x", "nan", "inf", "1e9", "-3"] {
            assert!(wrong.parse::<Dilation>().is_err(), "{wrong}");
        }
    }
}
