//! Lists the parameters of a profile, for display, comparison and other programs.
use crate::number::show_seconds;
use crate::timing::{ControlPathTiming, ReleaseGate, ReturnDiscipline, ServiceTime, SwitchTiming};
use crate::{Evidence, FlowCacheTiming, LevelForwarding, MatchLayers, Profile};
use serde::Serialize;
use std::time::Duration;
use weir_model::switch::costs::PriorityCosts;
use weir_model::switch::device::TableLevel;
use weir_model::switch::speedup::{BatchSpeedup, PerEntryCost};
use weir_model::{Law, LawShape};

/// Value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ParameterValue {
    /// Number in the parameter's unit.
    Number(f64),
    /// Numbers in the parameter's unit.
    Numbers(Vec<f64>),
    /// Value in words.
    Text(String),
    /// Law of times.
    Law {
        /// Law; none if only `per_byte_s` takes time.
        law: Option<Law>,
        /// Seconds for each byte.
        per_byte_s: f64,
        /// Mean without the time for bytes, in seconds.
        mean_s: f64,
    },
}

impl ParameterValue {
    /// Returns the number, or the mean of a law in seconds; none for other values.
    pub fn number(&self) -> Option<f64> {
        match self {
            ParameterValue::Number(number) | ParameterValue::Law { mean_s: number, .. } => Some(*number),
            ParameterValue::Numbers(_) | ParameterValue::Text(_) => None,
        }
    }
}

/// Parameter of a profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileParameter {
    /// Position in the file, such as `level1.add.single.per_entry`.
    pub key: String,
    /// Unit: `s`, `entries`, `flows`, `packets`, `commands`, `1/s`, or empty.
    pub unit: &'static str,
    /// Value of the parameter.
    pub value: ParameterValue,
    /// Evidence for the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl ProfileParameter {
    /// Formats a number in the parameter's unit.
    pub fn show(&self, number: f64) -> String {
        match self.unit {
            "s" => show_seconds(number),
            "" => number.to_string(),
            unit => format!("{number} {unit}"),
        }
    }

    /// Formats the value.
    pub fn shown(&self) -> String {
        match &self.value {
            ParameterValue::Number(number) => self.show(*number),
            ParameterValue::Numbers(numbers) => {
                numbers.iter().map(|number| self.show(*number)).collect::<Vec<_>>().join(", ")
            }
            ParameterValue::Text(text) => text.clone(),
            ParameterValue::Law { law, per_byte_s, .. } => show_service(law.as_ref(), *per_byte_s),
        }
    }
}

fn show_service(law: Option<&Law>, per_byte_s: f64) -> String {
    let law = law.map(show_law);
    let bytes = (per_byte_s > 0.0).then(|| format!("{} a byte", show_seconds(per_byte_s)));
    [law, bytes].into_iter().flatten().collect::<Vec<_>>().join(" + ")
}

fn show_law(law: &Law) -> String {
    match law.parts() {
        [part] => show_shape(&part.shape),
        parts => {
            let part = |part: &weir_model::LawPart| format!("{:.4} {}", part.weight, show_shape(&part.shape));
            format!(
                "one of {} (mean {})",
                parts.iter().map(part).collect::<Vec<_>>().join(", "),
                show_seconds(law.mean())
            )
        }
    }
}

fn show_shape(shape: &LawShape) -> String {
    match shape {
        LawShape::Constant(value) => show_seconds(*value),
        LawShape::Exponential(mean) => format!("exponential {}", show_seconds(*mean)),
        LawShape::Gamma { mean, scv } => format!("gamma {}, scv {scv:.4}", show_seconds(*mean)),
        LawShape::Uniform { low, high } => format!("uniform {} to {}", show_seconds(*low), show_seconds(*high)),
    }
}

/// List of parameters under construction.
struct ParameterList<'a> {
    profile: &'a Profile,
    made: Vec<ProfileParameter>,
}

impl Profile {
    /// Returns all parameters, in the order of the file.
    pub fn parameters(&self) -> Vec<ProfileParameter> {
        let mut list = ParameterList { profile: self, made: Vec::new() };
        list.switch();
        if let Some(timing) = &self.timing {
            list.timing(timing);
        }
        list.made
    }
}

impl ParameterList<'_> {
    fn add(&mut self, key: String, unit: &'static str, value: ParameterValue) {
        let evidence = self.profile.evidence.get(&key).cloned();
        self.made.push(ProfileParameter { key, unit, value, evidence });
    }

    fn seconds(&mut self, key: String, seconds: f64) {
        self.add(key, "s", ParameterValue::Number(seconds));
    }

    fn service(&mut self, key: &str, service: Option<&ServiceTime>) {
        let Some(ServiceTime { law, per_byte_s }) = service else { return };
        let mean_s = law.as_ref().map_or(0.0, Law::mean);
        self.add(key.to_owned(), "s", ParameterValue::Law { law: law.clone(), per_byte_s: *per_byte_s, mean_s });
    }

    fn packets(&mut self, key: &str, packets: Option<u32>) {
        if let Some(packets) = packets {
            self.add(key.to_owned(), "packets", ParameterValue::Number(packets.into()));
        }
    }

    fn duration(&mut self, key: &str, time: Duration) {
        self.seconds(key.to_owned(), time.as_secs_f64());
    }

    fn switch(&mut self) {
        let profile = self.profile;
        self.service("barrier.lag", profile.barrier.lag.as_ref());
        if !profile.barrier.waits {
            self.add("barrier.waits".to_owned(), "", ParameterValue::Text("false".to_owned()));
        }
        self.service("effect", profile.effect.as_ref());
        if let Some(cache) = &profile.cache {
            self.cache(cache);
        }
        let Some(tables) = &profile.tables else { return };
        if tables.batching.most > 1 {
            self.seconds("batching.timeout".to_owned(), tables.batching.timeout_s);
            self.add("batching.most".to_owned(), "commands", ParameterValue::Number(tables.batching.most.into()));
        }
        if !tables.policy.0.is_empty() {
            let rank = |rank: &weir_model::switch::policy::EvictionCriterion| {
                format!("{:?} {:?}", rank.evicts, rank.attribute).to_lowercase()
            };
            let words = tables.policy.0.iter().map(rank).collect::<Vec<_>>().join(", then ");
            self.add("policy".to_owned(), "", ParameterValue::Text(format!("evicts {words}")));
        }
        for (at, (level, forwarding)) in tables.levels.iter().zip(&profile.forwarding).enumerate() {
            self.level(&format!("level{}", at + 1), &profile.levels[at], level, forwarding.as_ref());
        }
    }

    fn cache(&mut self, cache: &FlowCacheTiming) {
        self.seconds("cache.first".to_owned(), cache.first_s);
        if let Some(idle_s) = cache.idle_s {
            self.seconds("cache.idle".to_owned(), idle_s);
        }
        if let Some(flows) = cache.flows {
            self.add("cache.flows".to_owned(), "flows", ParameterValue::Number(flows as f64));
        }
        self.seconds("cache.revalidate".to_owned(), cache.revalidate_s);
    }

    fn level(&mut self, key: &str, name: &str, level: &TableLevel, forwarding: Option<&LevelForwarding>) {
        self.add(format!("{key}.name"), "", ParameterValue::Text(name.to_owned()));
        if let Some(size) = level.size {
            self.add(format!("{key}.size"), "entries", ParameterValue::Number(size as f64));
        }
        self.overheads(&format!("{key}.add"), &level.costs.add);
        self.overheads(&format!("{key}.modify"), &level.costs.modify);
        self.seconds(format!("{key}.shift"), level.costs.shift_s);
        self.seconds(format!("{key}.search"), level.costs.search_s);
        self.seconds(format!("{key}.write"), level.costs.write_s);
        if let Some(delete_s) = level.costs.delete_s {
            self.seconds(format!("{key}.delete"), delete_s);
        }
        if let Some(forwarding) = forwarding {
            self.forwarding(&format!("{key}.forward"), forwarding);
        }
    }

    fn overheads(&mut self, key: &str, costs: &PriorityCosts<PerEntryCost>) {
        for (name, overhead) in [("single", costs.single), ("several", costs.several)] {
            self.seconds(format!("{key}.{name}.per_entry"), overhead.per_entry_s);
            if overhead.speedup != BatchSpeedup::NONE {
                self.add(format!("{key}.{name}.speedup"), "", ParameterValue::Numbers(overhead.speedup.0.to_vec()));
            }
        }
    }

    fn forwarding(&mut self, key: &str, law: &LevelForwarding) {
        for (kind, base) in MatchLayers::ALL.into_iter().zip(law.base_s) {
            if let Some(base) = base {
                self.seconds(format!("{key}.base_{}", kind.name()), base);
            }
        }
        self.seconds(format!("{key}.per_byte"), law.slopes.per_byte_s);
        self.seconds(format!("{key}.per_entry"), law.slopes.per_entry_s);
        if !law.gap_levels_s.is_empty() {
            self.seconds(format!("{key}.per_gap_level"), law.slopes.per_level_s);
            self.add(format!("{key}.gap_levels"), "s", ParameterValue::Numbers(law.gap_levels_s.clone()));
        }
        self.seconds(format!("{key}.shortest"), law.measured.shortest_s);
        if let Some(busy_s) = law.busy_s {
            self.seconds(format!("{key}.busy"), busy_s);
        }
    }

    fn timing(&mut self, timing: &SwitchTiming) {
        self.service("timing.data", timing.data.as_ref());
        self.packets("timing.data_buffer", timing.data_buffer);
        self.control(&timing.control);
        match timing.gate {
            Some(ReleaseGate::Tick { every, most }) => {
                self.duration("timing.tick", every);
                self.packets("timing.tick_max", most);
            }
            Some(ReleaseGate::Batch { packets, timeout, stages }) => {
                self.packets("timing.batch.packets", Some(packets));
                self.duration("timing.batch.timeout", timeout);
                self.add("timing.batch.stages".to_owned(), "", ParameterValue::Number(stages.into()));
            }
            None => {}
        }
        match &timing.returns {
            ReturnDiscipline::Direct => {}
            ReturnDiscipline::Fifo => {
                self.add("timing.returns".to_owned(), "", ParameterValue::Text("fifo".to_owned()))
            }
            ReturnDiscipline::Priority { service, buffer } => {
                self.add("timing.returns.order".to_owned(), "", ParameterValue::Text("priority".to_owned()));
                self.service("timing.returns.service", service.as_ref());
                self.packets("timing.returns.buffer", *buffer);
            }
        }
        if !timing.write.is_zero() {
            self.duration("timing.write", timing.write);
        }
        self.duration("timing.slow", timing.slow);
    }

    fn control(&mut self, control: &ControlPathTiming) {
        match control {
            ControlPathTiming::Agents { packet_in, packet_out, shared, buffer } => {
                self.service("timing.packet_in", packet_in.as_ref());
                self.service("timing.packet_out", packet_out.as_ref());
                if *shared {
                    self.add("timing.agents".to_owned(), "", ParameterValue::Text("shared".to_owned()));
                }
                self.packets("timing.buffer", *buffer);
            }
            ControlPathTiming::Measured { delay_s, capacity, scv, buffer } => {
                self.seconds("timing.control.delay".to_owned(), *delay_s);
                self.add("timing.control.capacity".to_owned(), "1/s", ParameterValue::Number(*capacity));
                self.add("timing.control.scv".to_owned(), "", ParameterValue::Number(*scv));
                self.packets("timing.control.buffer", *buffer);
            }
        }
    }
}
