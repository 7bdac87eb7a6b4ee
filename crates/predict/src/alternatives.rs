//! Evaluates other models for scenarios with one timed switch and its controller.
use crate::answer::{AlternativeAnswer, AlternativeModel, FlowPrediction};
use crate::{PredictError, PredictSettings};
use serde_json::{Map, Value, json};
use weir_model::registry;
use weir_scenario::{ControlPathTiming, ControllerTiming, Scenario, ServiceTime, SwitchTiming, TrafficKind};

/// Models that can be evaluated, in the order of their output.
const MODELS: [&str; 9] = ["mm1", "base_mm1", "base_mm1k", "mg1", "jarschel", "mahmood", "goto", "lcs", "sdn4q"];

/// Returns the names of the models that `all` stands for.
pub fn models() -> impl Iterator<Item = &'static str> {
    MODELS.into_iter().filter(|name| registry::find(name).is_ok())
}

/// Returns the answers of the requested models.
pub(crate) fn answers(
    scenario: &Scenario,
    settings: &PredictSettings,
    flows: &[FlowPrediction],
) -> Result<Vec<AlternativeModel>, PredictError> {
    let mut names: Vec<&'static str> = Vec::new();
    for name in &settings.models {
        match name.as_str() {
            "all" => names.extend(models()),
            found => {
                if let Some(known) = models().find(|known| *known == found) {
                    names.push(known);
                    continue;
                }
                let expected = models().collect::<Vec<_>>().join(", ");
                return Err(PredictError::UnknownModel { found: found.to_owned(), expected });
            }
        }
    }
    let asked = single_switch_inputs(scenario, flows);
    let answer = |name: &str| match &asked {
        Err(reason) => AlternativeAnswer::None { status: "NOT_COVERED", reason: reason.clone() },
        Ok(asked) => match asked.parameters(name) {
            Err(reason) => AlternativeAnswer::None { status: "NOT_COVERED", reason },
            Ok(parameters) => evaluate(name, parameters),
        },
    };
    Ok(names.into_iter().map(|name| AlternativeModel { model: name.to_owned(), answer: answer(name) }).collect())
}

fn evaluate(name: &str, parameters: Map<String, Value>) -> AlternativeAnswer {
    match registry::find(name).and_then(|model| model.evaluate(&parameters)) {
        Err(error) => AlternativeAnswer::None { status: error.kind(), reason: error.to_string() },
        Ok(outcome) => AlternativeAnswer::Numbers {
            mean_s: outcome.get("T").unwrap_or_default(),
            p50_s: outcome.get("p50"),
            p95_s: outcome.get("p95"),
            p99_s: outcome.get("p99"),
            loss: outcome.get("loss"),
        },
    }
}

/// Parameters of the single timed switch.
struct SingleSwitchInputs<'a> {
    timing: &'a SwitchTiming,
    controller: &'a ControllerTiming,
    /// Rate of all flows together, in packets a second.
    rate: f64,
    /// Share of the packets that ask the controller.
    share: f64,
    /// Mean packet length, in bytes.
    bytes: f64,
}

fn single_switch_inputs<'a>(
    scenario: &'a Scenario,
    flows: &[FlowPrediction],
) -> Result<SingleSwitchInputs<'a>, String> {
    let mut timed = scenario.switches.iter().filter_map(|switch| switch.timing.as_ref());
    let (Some(timing), None) = (timed.next(), timed.next()) else {
        return Err("this model is of one switch and its controller: it is asked where exactly one switch of a scenario has timing".into());
    };
    let (mut rate, mut asking, mut bytes) = (0.0, 0.0, 0.0);
    for (at, item) in scenario.traffic.iter().enumerate() {
        if let TrafficKind::Udp { offered, new_flows, .. } = &item.kind {
            let share = flows.iter().find(|flow| flow.item == Some(at)).and_then(|flow| flow.asks);
            rate += offered.per_second();
            asking += offered.per_second() * share.unwrap_or(*new_flows);
            bytes += offered.per_second() * offered.mean_bytes().map_err(|error| error.to_string())?;
        }
    }
    if rate <= 0.0 {
        return Err("there is no udp traffic".into());
    }
    Ok(SingleSwitchInputs { timing, controller: &scenario.controller, rate, share: asking / rate, bytes: bytes / rate })
}

impl SingleSwitchInputs<'_> {
    /// Returns the parameters for a model as JSON, or the reason why it does not apply.
    fn parameters(&self, name: &str) -> Result<Map<String, Value>, String> {
        let (lam, p) = (self.rate, self.share);
        let data = || self.mean(self.timing.data.as_ref(), "data");
        let given = match name {
            "mm1" | "mg1" if p > 0.0 => {
                return Err("it is of the data path alone, and packets ask the controller".into());
            }
            "mm1" => json!({"lam": lam, "mu": 1.0 / data()?}),
            "mg1" => json!({"lam": lam, "dist": self.law(self.timing.data.as_ref(), "data")?}),
            "base_mm1" => json!({"lam": lam, "p": p, "s_switch": data()?, "s_path": self.path()?, "combine": "time"}),
            "base_mm1k" => {
                json!({"lam": lam, "p": p, "s_switch": data()?, "s_path": self.path()?, "K": self.buffer()?, "combine": "time"})
            }
            "jarschel" => {
                json!({"lam": lam, "p": p, "mu_s": 1.0 / data()?, "mu_c": 1.0 / self.path()?, "S": self.buffer()?, "variant": "once"})
            }
            "mahmood" => json!({"lam": lam, "p": p, "mu_s": 1.0 / data()?, "mu_c": 1.0 / self.path()?}),
            "goto" => {
                let mu = 1.0 / data()?;
                let places = self.timing.data_buffer.ok_or("it needs a `data_buffer`")?;
                json!({"lam": lam, "p": p, "mu_l": mu, "mu_h": mu, "mu_c": 1.0 / self.path()?, "KL": places, "KH": places.min(100)})
            }
            "lcs" => {
                let ControlPathTiming::Measured { delay_s, capacity, scv, buffer } = &self.timing.control else {
                    return Err("it needs a control path as measured (`control`)".into());
                };
                let buffer = buffer.ok_or("it needs a `buffer` of the control path")?;
                json!({"lam": lam, "p": p, "dp": self.law(self.timing.data.as_ref(), "data")?, "D0": delay_s, "cap": capacity, "scv": scv,
                    "K": buffer})
            }
            "sdn4q" => self.stages(lam, p)?,
            _ => return Err("it has other parameters than a scenario".into()),
        };
        match given {
            Value::Object(map) => Ok(map),
            _ => Err("it has other parameters than a scenario".into()),
        }
    }

    fn stages(&self, lam: f64, p: f64) -> Result<Value, String> {
        let ControlPathTiming::Agents { packet_in, packet_out, shared: false, buffer: None } = &self.timing.control
        else {
            return Err(
                "it needs agents of their own without limit (the network's own answer covers the others)".into()
            );
        };
        Ok(json!({
            "lam": lam,
            "p": p,
            "dp": self.law(self.timing.data.as_ref(), "data")?,
            "ain": self.law(packet_in.as_ref(), "packet_in")?,
            "ctl": self.law(self.controller.service.as_ref(), "the controller's service")?,
            "aout": self.law(packet_out.as_ref(), "packet_out")?,
        }))
    }

    fn mean(&self, service: Option<&ServiceTime>, what: &str) -> Result<f64, String> {
        let mean = service.map_or(0.0, |service| service.mean_s(self.bytes));
        if mean > 0.0 { Ok(mean) } else { Err(format!("it needs `{what}` to take time")) }
    }

    /// Returns the mean time of the whole control path, in seconds.
    fn path(&self) -> Result<f64, String> {
        let mean = |service: &Option<ServiceTime>| service.as_ref().map_or(0.0, |service| service.mean_s(self.bytes));
        let path = match &self.timing.control {
            ControlPathTiming::Measured { delay_s, .. } => *delay_s,
            ControlPathTiming::Agents { packet_in, packet_out, .. } => {
                mean(packet_in) + mean(&self.controller.service) + mean(packet_out)
            }
        };
        if path > 0.0 { Ok(path) } else { Err("it needs a control path that takes time".into()) }
    }

    fn buffer(&self) -> Result<u32, String> {
        let agents = match &self.timing.control {
            ControlPathTiming::Measured { buffer, .. } | ControlPathTiming::Agents { buffer, .. } => *buffer,
        };
        self.controller
            .buffer
            .or(agents)
            .ok_or_else(|| "it needs a `buffer` of the controller or of the control path".into())
    }

    /// Returns a service law as models expect it, for packets of the mean length.
    fn law(&self, service: Option<&ServiceTime>, what: &str) -> Result<Value, String> {
        let mean = self.mean(service, what)?;
        Ok(match service {
            Some(ServiceTime { law: Some(law), per_byte_s: 0.0 }) => json!(law),
            Some(ServiceTime { law: Some(law), .. }) => json!(["gamma", mean, law.variance() / (mean * mean)]),
            _ => json!(["det", mean]),
        })
    }
}
