//! Writes a profile as the text of a file.
use crate::check::{DEFAULT_SLOW, at_base};
use crate::number::show_seconds;
use crate::timing::{ControlPathTiming, ReleaseGate, ReturnDiscipline, ServiceTime, SwitchTiming};
use crate::{Evidence, LevelForwarding, MatchLayers, Profile};
use std::fmt::Write as _;
use weir_model::switch::costs::PriorityCosts;
use weir_model::switch::device::{SwitchModel, TableLevel};
use weir_model::switch::forward::MeasuredRange;
use weir_model::switch::speedup::{BatchSpeedup, PerEntryCost};
use weir_model::{Law, LawPart, LawShape};

impl Profile {
    /// Returns the text of a file that reads as this profile. Times are rounded to a millionth of their unit. Laws
    /// without a name in files are written as the gamma law of equal mean and variation.
    pub fn to_toml(&self) -> String {
        let mut writer = ProfileWriter { profile: self, text: String::new() };
        writer.head();
        if let Some(tables) = &self.tables {
            writer.tables(tables);
        }
        if let Some(timing) = &self.timing {
            writer.timing(timing);
        }
        writer.text
    }
}

struct ProfileWriter<'a> {
    profile: &'a Profile,
    text: String,
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn time(seconds: f64) -> String {
    quoted(&show_seconds(seconds))
}

/// Formats a number that TOML reads as floating-point.
fn number(value: f64) -> String {
    toml::Value::Float(value).to_string()
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(", "))
}

/// Returns a value's evidence as additional keys.
fn keys(evidence: &Evidence, is_time: bool) -> Vec<String> {
    let end = |end: f64| if is_time { time(end) } else { number(end) };
    let Evidence { interval, r2, residual, samples, note } = evidence;
    let rounded = |share: f64| number((share * 1e6).round() / 1e6);
    [
        interval.map(|ends| format!("interval = {}", list(ends.map(end)))),
        r2.map(|r2| format!("r2 = {}", rounded(r2))),
        residual.map(|residual| format!("residual = {}", rounded(residual))),
        samples.map(|samples| format!("samples = {samples}")),
        note.as_ref().map(|note| format!("note = {}", quoted(note))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl ProfileWriter<'_> {
    fn line(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.text, "{key} = {value}");
    }

    /// Returns a value, with its evidence if there is some for its full key.
    fn with(&self, full: &str, value: String, is_time: bool) -> String {
        match self.profile.evidence.get(full) {
            Some(evidence) => {
                let parts: Vec<String> =
                    std::iter::once(format!("value = {value}")).chain(keys(evidence, is_time)).collect();
                format!("{{ {} }}", parts.join(", "))
            }
            None => value,
        }
    }

    fn seconds(&self, full: &str, seconds: f64) -> String {
        self.with(full, time(seconds), true)
    }

    fn count(&self, full: &str, count: impl std::fmt::Display) -> String {
        self.with(full, count.to_string(), false)
    }

    fn head(&mut self) {
        let profile = self.profile;
        self.line("name", &quoted(&profile.name));
        self.line("device", &quoted(&profile.device));
        let origin = format!("{:?}", profile.origin).to_lowercase();
        self.line("origin", &quoted(&origin));
        self.line("source", &quoted(&profile.source));
        let runs = profile.runs.as_ref().map(|runs| runs.display().to_string());
        let known = [("measured_with", &profile.measured_with), ("date", &profile.date), ("runs", &runs)];
        for (key, text) in known {
            if let Some(text) = text {
                self.line(key, &quoted(text));
            }
        }
        if let Some(tables) = profile.tables.as_ref().filter(|tables| !tables.policy.0.is_empty()) {
            let rank = |rank: &weir_model::switch::policy::EvictionCriterion| {
                format!("{{ attribute = \"{:?}\", evicts = \"{:?}\" }}", rank.attribute, rank.evicts).to_lowercase()
            };
            let value = self.with("policy", list(tables.policy.0.iter().map(rank)), false);
            self.line("policy", &value);
        }
        // A key of the top level has to precede all tables.
        self.service("effect", "effect", profile.effect.as_ref());
        self.cache();
        let barrier = &profile.barrier;
        if !barrier.waits || barrier.lag.is_some() {
            self.text.push_str("\n[barrier]\n");
            let waits = self.with("barrier.waits", barrier.waits.to_string(), false);
            // Waiting barriers are the default and no parameter, so they have no evidence.
            self.line("waits", if barrier.waits { "true" } else { &waits });
            self.service("barrier.lag", "lag", barrier.lag.as_ref());
        }
    }

    fn cache(&mut self) {
        let Some(cache) = self.profile.cache else { return };
        self.text.push_str("\n[cache]\n");
        for (key, seconds) in
            [("first", Some(cache.first_s)), ("idle", cache.idle_s), ("revalidate", Some(cache.revalidate_s))]
        {
            if let Some(seconds) = seconds {
                let value = self.seconds(&format!("cache.{key}"), seconds);
                self.line(key, &value);
            }
        }
        if let Some(flows) = cache.flows {
            let value = self.count("cache.flows", flows);
            self.line("flows", &value);
        }
    }

    fn tables(&mut self, tables: &SwitchModel) {
        if tables.batching.most > 1 {
            self.text.push_str("\n[batching]\n");
            let timeout = self.seconds("batching.timeout", tables.batching.timeout_s);
            self.line("timeout", &timeout);
            let most = self.count("batching.most", tables.batching.most);
            self.line("most", &most);
        }
        for (at, level) in tables.levels.iter().enumerate() {
            self.level(at, level);
        }
    }

    fn level(&mut self, at: usize, level: &TableLevel) {
        let key = format!("level{}", at + 1);
        self.text.push_str("\n[[level]]\n");
        let name = self.profile.levels.get(at).map_or(key.as_str(), String::as_str).to_owned();
        self.line("name", &quoted(&name));
        if let Some(size) = level.size {
            let size = self.count(&format!("{key}.size"), size);
            self.line("size", &size);
        }
        let costs = &level.costs;
        for (name, seconds) in [("shift", costs.shift_s), ("search", costs.search_s), ("write", costs.write_s)] {
            let value = self.seconds(&format!("{key}.{name}"), seconds);
            self.line(name, &value);
        }
        if let Some(seconds) = costs.delete_s {
            let value = self.seconds(&format!("{key}.delete"), seconds);
            self.line("delete", &value);
        }
        self.overheads(&key, "add", &costs.add);
        self.overheads(&key, "modify", &costs.modify);
        if let Some(forwarding) = self.profile.forwarding.get(at).and_then(Option::as_ref) {
            self.forwarding(&format!("{key}.forward"), forwarding);
        }
    }

    fn overheads(&mut self, level: &str, command: &str, costs: &PriorityCosts<PerEntryCost>) {
        if costs.single == PerEntryCost::NONE && costs.several == PerEntryCost::NONE {
            return;
        }
        let _ = writeln!(self.text, "[level.{command}]");
        for (name, overhead) in [("single", costs.single), ("several", costs.several)] {
            let key = format!("{level}.{command}.{name}");
            let mut parts =
                vec![format!("per_entry = {}", self.seconds(&format!("{key}.per_entry"), overhead.per_entry_s))];
            if overhead.speedup != BatchSpeedup::NONE {
                let speedup = list(overhead.speedup.0.map(number));
                parts.push(format!("speedup = {}", self.with(&format!("{key}.speedup"), speedup, false)));
            }
            self.line(name, &format!("{{ {} }}", parts.join(", ")));
        }
    }

    fn forwarding(&mut self, key: &str, law: &LevelForwarding) {
        self.text.push_str("[level.forward]\n");
        for (kind, base) in MatchLayers::ALL.into_iter().zip(law.base_s) {
            if let Some(base) = base {
                let name = format!("base_{}", kind.name());
                let value = self.seconds(&format!("{key}.{name}"), base);
                self.line(&name, &value);
            }
        }
        for (name, slope) in [("per_byte", law.slopes.per_byte_s), ("per_entry", law.slopes.per_entry_s)] {
            let value = self.seconds(&format!("{key}.{name}"), slope);
            self.line(name, &value);
        }
        if !law.gap_levels_s.is_empty() {
            let slope = self.seconds(&format!("{key}.per_gap_level"), law.slopes.per_level_s);
            self.line("per_gap_level", &slope);
            let levels = list(law.gap_levels_s.iter().map(|gap| time(*gap)));
            let levels = self.with(&format!("{key}.gap_levels"), levels, false);
            self.line("gap_levels", &levels);
        }
        let shortest = self.seconds(&format!("{key}.shortest"), law.measured.shortest_s);
        self.line("shortest", &shortest);
        if let Some(busy_s) = law.busy_s {
            let busy = self.seconds(&format!("{key}.busy"), busy_s);
            self.line("busy", &busy);
        }
        self.range(&law.measured);
    }

    fn range(&mut self, MeasuredRange { least, most, .. }: &MeasuredRange) {
        if !(most.gap_s.is_finite() && most.entries.is_finite() && most.bytes.is_finite()) {
            return;
        }
        let parts = [
            format!("gap = {}", list([least.gap_s, most.gap_s].map(time))),
            format!("entries = {}", list([least.entries, most.entries].map(number))),
            format!("bytes = {}", list([least.bytes, most.bytes].map(number))),
        ];
        self.line("range", &format!("{{ {} }}", parts.join(", ")));
    }
}

/// Writes the service times.
impl ProfileWriter<'_> {
    fn service(&mut self, full: &str, key: &str, service: Option<&ServiceTime>) {
        if let Some(service) = service {
            let value = self.service_table(full, service);
            self.line(key, &value);
        }
    }

    /// Returns a service time as a table, with its evidence if there is some for its full key.
    fn service_table(&self, full: &str, service: &ServiceTime) -> String {
        let mut parts = law(service.law.as_ref());
        if service.per_byte_s > 0.0 {
            parts.push(format!("per_byte = {}", time(service.per_byte_s)));
        }
        if let Some(evidence) = self.profile.evidence.get(full) {
            parts.extend(keys(evidence, true));
        }
        format!("{{ {} }}", parts.join(", "))
    }

    fn timing(&mut self, timing: &SwitchTiming) {
        let before = self.text.len();
        self.text.push_str("\n[timing]\n");
        let empty = self.text.len();
        // Values that follow from the first level are not written; reading derives them again.
        let first = self.profile.forwarding.first().and_then(Option::as_ref);
        if timing.data != first.and_then(at_base) {
            self.service("timing.data", "data", timing.data.as_ref());
        }
        self.packets("data_buffer", timing.data_buffer);
        self.control(&timing.control);
        self.gate(timing.gate);
        self.returns(&timing.returns);
        for (key, value, usual) in
            [("write", timing.write, std::time::Duration::ZERO), ("slow", timing.slow, DEFAULT_SLOW)]
        {
            if value != usual {
                let value = self.seconds(&format!("timing.{key}"), value.as_secs_f64());
                self.line(key, &value);
            }
        }
        if self.text.len() == empty {
            // Only the service of the first level's packets, which reading derives from the level.
            self.text.truncate(before);
        }
    }

    fn packets(&mut self, key: &str, packets: Option<u32>) {
        if let Some(packets) = packets {
            let value = self.count(&format!("timing.{key}"), packets);
            self.line(key, &value);
        }
    }

    fn control(&mut self, control: &ControlPathTiming) {
        match control {
            ControlPathTiming::Agents { packet_in, packet_out, shared, buffer } => {
                self.service("timing.packet_in", "packet_in", packet_in.as_ref());
                self.service("timing.packet_out", "packet_out", packet_out.as_ref());
                if *shared {
                    let value = self.with("timing.agents", quoted("shared"), false);
                    self.line("agents", &value);
                }
                self.packets("buffer", *buffer);
            }
            ControlPathTiming::Measured { delay_s, capacity, scv, buffer } => {
                let mut parts = vec![
                    format!("delay = {}", self.seconds("timing.control.delay", *delay_s)),
                    format!("capacity = {}", self.with("timing.control.capacity", number(*capacity), false)),
                    format!("scv = {}", self.with("timing.control.scv", number(*scv), false)),
                ];
                if let Some(buffer) = buffer {
                    parts.push(format!("buffer = {}", self.count("timing.control.buffer", buffer)));
                }
                self.line("control", &format!("{{ {} }}", parts.join(", ")));
            }
        }
    }

    fn gate(&mut self, gate: Option<ReleaseGate>) {
        match gate {
            Some(ReleaseGate::Tick { every, most }) => {
                let every = self.seconds("timing.tick", every.as_secs_f64());
                self.line("tick", &every);
                self.packets("tick_max", most);
            }
            Some(ReleaseGate::Batch { packets, timeout, stages }) => {
                let packets = self.count("timing.batch.packets", packets);
                let timeout = self.seconds("timing.batch.timeout", timeout.as_secs_f64());
                let stages = self.count("timing.batch.stages", stages);
                self.line("batch", &format!("{{ packets = {packets}, timeout = {timeout}, stages = {stages} }}"));
            }
            None => {}
        }
    }

    fn returns(&mut self, returns: &ReturnDiscipline) {
        match returns {
            ReturnDiscipline::Direct => {}
            ReturnDiscipline::Fifo => {
                let order = self.with("timing.returns", quoted("fifo"), false);
                self.line("returns", &order);
            }
            ReturnDiscipline::Priority { service, buffer } => {
                let order = self.with("timing.returns.order", quoted("priority"), false);
                let service = service.as_ref().map(|time| self.service_table("timing.returns.service", time));
                let buffer = buffer.map(|buffer| self.count("timing.returns.buffer", buffer));
                let parts = [Some(("order", order)), service.map(|v| ("service", v)), buffer.map(|v| ("buffer", v))];
                let parts: Vec<String> =
                    parts.into_iter().flatten().map(|(key, value)| format!("{key} = {value}")).collect();
                self.line("returns", &format!("{{ {} }}", parts.join(", ")));
            }
        }
    }
}

/// Returns the name and parameters of a law.
fn law(law: Option<&Law>) -> Vec<String> {
    let Some(law) = law else { return vec!["law = \"constant\"".to_owned(), "mean = \"0ns\"".to_owned()] };
    let named =
        |name: &str, parts: Vec<String>| std::iter::once(format!("law = \"{name}\"")).chain(parts).collect::<Vec<_>>();
    let mean = |mean: f64| format!("mean = {}", time(mean));
    let constant = |part: &LawPart| match part.shape {
        LawShape::Constant(value) => Some((part.weight, value)),
        _ => None,
    };
    match law.parts() {
        [LawPart { shape: LawShape::Constant(value), .. }] => named("constant", vec![mean(*value)]),
        [LawPart { shape: LawShape::Exponential(value), .. }] => named("exponential", vec![mean(*value)]),
        [LawPart { shape: LawShape::Gamma { mean: value, scv }, .. }] => {
            named("gamma", vec![mean(*value), format!("scv = {}", number(*scv))])
        }
        [LawPart { shape: LawShape::Uniform { low, high }, .. }] => {
            named("uniform", vec![format!("from = {}", time(*low)), format!("to = {}", time(*high))])
        }
        [
            LawPart { weight, shape: LawShape::Exponential(first) },
            LawPart { shape: LawShape::Exponential(second), .. },
        ] => {
            let means = list([*first, *second].map(time));
            named("hyperexponential", vec![format!("share = {}", number(*weight)), format!("means = {means}")])
        }
        parts => match parts.iter().map(constant).collect::<Option<Vec<_>>>() {
            Some(points) => {
                let values = list(points.iter().map(|(_, value)| time(*value)));
                let probs = list(points.iter().map(|(weight, _)| number(*weight)));
                named("lattice", vec![format!("values = {values}"), format!("probs = {probs}")])
            }
            None => named("gamma", vec![mean(law.mean()), format!("scv = {}", number(law.scv()))]),
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::{Profile, SHIPPED, differences};

    #[test]
    fn what_is_written_reads_as_it_was() {
        for (name, text) in SHIPPED {
            let profile = Profile::parse(text, name).unwrap();
            let written = profile.to_toml();
            let again = Profile::parse(&written, name).unwrap_or_else(|error| panic!("{error}\n{written}"));
            let apart: Vec<_> = differences(&profile, &again)
                .into_iter()
                .filter(|one| one.relative.is_none_or(|relative| relative.abs() > 1e-9))
                .collect();
            assert!(apart.is_empty(), "{apart:?}\n{written}");
            assert_eq!(
                profile.evidence.keys().collect::<Vec<_>>(),
                again.evidence.keys().collect::<Vec<_>>(),
                "{written}"
            );
            assert_eq!((profile.levels, profile.origin, profile.source), (again.levels, again.origin, again.source));
        }
    }

    #[test]
    fn data_that_differs_from_the_first_level_is_written() {
        let level = "[[level]]\nname = 'l'\n[level.forward]\nbase_l2l3 = '60us'\nper_byte = '8ns'\nshortest = '50us'\nrange = { gap = ['100us', '1s'], entries = [100, 2000], bytes = [64, 1024] }\n";
        for timing in ["", "[timing]\ndata = { law = 'gamma', mean = '6.19us', scv = 0.5, note = 'n' }\n"] {
            let text = format!("name = 'p'\ndevice = 'd'\norigin = 'assumed'\nsource = 's'\n{timing}{level}");
            let profile = Profile::parse(&text, "p").unwrap();
            let written = profile.to_toml();
            assert_eq!(written.contains("data = "), !timing.is_empty(), "{written}");
            let again = Profile::parse(&written, "p").unwrap_or_else(|error| panic!("{error}\n{written}"));
            assert_eq!((again.timing, again.evidence), (profile.timing, profile.evidence), "{written}");
        }
    }

    #[test]
    fn laws_of_every_shape_are_read_again() {
        for law in [
            "\"3ms\"",
            "{ law = \"exponential\", mean = \"3ms\" }",
            "{ law = \"gamma\", mean = \"3ms\", scv = 0.25, per_byte = \"2ns\", samples = 7, note = \"a \\\"b\\\"\" }",
            "{ law = \"uniform\", from = \"1ms\", to = \"2ms\" }",
            "{ law = \"hyperexponential\", share = 0.25, means = [\"1ms\", \"2ms\"] }",
            "{ law = \"lattice\", values = [\"4ms\", \"8ms\"], probs = [0.25, 0.75] }",
        ] {
            let text = format!(
                "name = 'p'\ndevice = 'd'\norigin = 'assumed'\nsource = 's'\nbarrier = {{ waits = false }}\n[timing]\npacket_in = {law}\nagents = 'shared'\nbuffer = 9\n"
            );
            let profile = Profile::parse(&text, "p").unwrap();
            let written = profile.to_toml();
            let again = Profile::parse(&written, "p").unwrap_or_else(|error| panic!("{error}\n{written}"));
            assert_eq!(profile, again, "{written}");
        }
    }
}
