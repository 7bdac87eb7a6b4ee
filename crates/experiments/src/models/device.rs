//! Describes a switch with its controller, both as a scenario for simulation and as parameters of the formulas.
use std::fmt::Write;
use weir_model::control_path::{AgentProcessors, FourStations, LatencyCapacitySplit};
use weir_model::{Law, ModelError};

/// Distribution of times by mean and squared coefficient of variation: constant (0), exponential (1), gamma.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeanAndScv {
    /// Mean in seconds.
    pub(super) mean_s: f64,
    pub(super) scv: f64,
}

impl MeanAndScv {
    /// Returns the distribution for the formulas.
    pub(super) fn law(self) -> Result<Law, ModelError> {
        Law::gamma(self.mean_s, self.scv)
    }

    /// Returns the distribution in a scenario's syntax.
    fn text(self) -> String {
        let mean = in_ns(self.mean_s);
        match self.scv {
            0.0 => format!("\"{mean}\""),
            scv => format!("{{ law = \"gamma\", mean = \"{mean}\", scv = {scv:.6} }}"),
        }
    }
}

fn in_ns(seconds: f64) -> String {
    format!("{:.3}ns", seconds * 1e9)
}

/// Control path behind the data path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ModelledControlPath {
    /// Latency and capacity, as measured from outside, and the bottleneck's squared coefficient of variation.
    Measured { idle_s: f64, capacity: f64, scv: f64 },
    /// Packet-in agent, controller, packet-out agent.
    Stations { packet_in: MeanAndScv, controller: MeanAndScv, packet_out: MeanAndScv, shared: bool },
}

/// A device under one flow of Poisson packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ModelledDevice {
    pub(super) rate: f64,
    pub(super) p: f64,
    pub(super) data: MeanAndScv,
    pub(super) control: ModelledControlPath,
    /// Capacity of every queue behind the data path; `None` means unlimited.
    pub(super) places: Option<usize>,
    /// Time for which a table write blocks the data path, in seconds; 0 for none.
    pub(super) write_s: f64,
}

impl ModelledDevice {
    /// Returns a scenario with this device between two hosts.
    pub(super) fn scenario(&self) -> String {
        let buffer = self.places.map_or_else(String::new, |places| format!("buffer = {places}"));
        let (mut controller, mut timing) = (String::new(), format!("data = {}\n", self.data.text()));
        match self.control {
            ModelledControlPath::Measured { idle_s, capacity, scv } => {
                let delay = in_ns(idle_s);
                let buffer = self.places.map_or_else(String::new, |places| format!(", buffer = {places}"));
                let _ = writeln!(
                    timing,
                    "control = {{ delay = \"{delay}\", capacity = {capacity:.9}, scv = {scv:.6}{buffer} }}"
                );
            }
            ModelledControlPath::Stations { packet_in, controller: service, packet_out, shared } => {
                let agents = if shared { "shared" } else { "separate" };
                controller = format!("service = {}\n{buffer}", service.text());
                let (ain, aout) = (packet_in.text(), packet_out.text());
                let _ = writeln!(timing, "packet_in = {ain}\npacket_out = {aout}\nagents = \"{agents}\"\n{buffer}");
            }
        }
        if self.write_s > 0.0 {
            let _ = writeln!(timing, "write = \"{}\"", in_ns(self.write_s));
        }
        let host =
            |name: &str, at: u8| format!("[[host]]\nname = \"{name}\"\nswitch = \"s1\"\nip = \"10.0.0.{at}/24\"\n");
        format!(
            "[controller]\napp = \"learning\"\n{controller}\n[[switch]]\nname = \"s1\"\n[switch.timing]\n{timing}{}{}[[traffic]]\nkind = \"udp\"\nfrom = \
             \"h1\"\nto = \"h2\"\nrate = {:.9}\narrival = \"poisson\"\nnew_flows = {:.9}\n",
            host("h1", 1),
            host("h2", 2),
            self.rate,
            self.p
        )
    }

    /// Returns the parameters of the latency-capacity split.
    pub(super) fn split(&self, idle_s: f64, capacity: f64, scv: f64) -> Result<LatencyCapacitySplit, ModelError> {
        Ok(LatencyCapacitySplit {
            rate: self.rate,
            p: self.p,
            data: self.data.law()?,
            idle_s,
            capacity,
            scv,
            places: self.places,
            write_s: (self.write_s > 0.0).then_some(self.write_s),
        })
    }

    /// Returns the parameters of the four stations.
    ///
    /// # Errors
    /// The control path is known from outside only.
    pub(super) fn four_stations(&self) -> Result<FourStations, ModelError> {
        let ModelledControlPath::Stations { packet_in, controller, packet_out, shared } = self.control else {
            return Err(ModelError::Domain {
                parameter: "control path".to_owned(),
                found: "latency and capacity".to_owned(),
                expected: "stations".to_owned(),
            });
        };
        Ok(FourStations {
            rate: self.rate,
            p: self.p,
            data: self.data.law()?,
            packet_in: packet_in.law()?,
            controller: controller.law()?,
            packet_out: packet_out.law()?,
            agents: if shared { AgentProcessors::Returning } else { AgentProcessors::Separate },
            agent_places: self.places,
            controller_places: self.places,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::Scenario;

    #[test]
    fn devices_are_scenarios() {
        let time = MeanAndScv { mean_s: 0.005, scv: 0.5 };
        for control in [
            ModelledControlPath::Measured { idle_s: 0.019, capacity: 70.0, scv: 0.5 },
            ModelledControlPath::Stations { packet_in: time, controller: time, packet_out: time, shared: true },
        ] {
            for places in [None, Some(20)] {
                let data = MeanAndScv { mean_s: 9e-6, scv: 0.0 };
                let device = ModelledDevice { rate: 60.0, p: 0.25, data, control, places, write_s: 0.001 };
                let scenario = Scenario::parse(&device.scenario(), "scenario").unwrap();
                let timing = scenario.switches[0].timing.as_ref().unwrap();
                assert_eq!(timing.write, std::time::Duration::from_millis(1));
                assert!(weir_sim::stations::plan(&scenario).is_ok());
            }
        }
    }
}
