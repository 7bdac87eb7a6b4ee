//! Draws random devices at a given utilisation.
use super::device::{MeanAndScv, ModelledControlPath, ModelledDevice};
use weir_traffic::RandomStream;

/// Structure of the control path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlPathStructure {
    /// A bottleneck, and additional latency.
    Split,
    /// A bottleneck and additional latency, and table writes that block the data path for at most a tenth of the
    /// time.
    SplitWrites,
    /// Two agents and a controller.
    Separate,
    /// Two agents on one processor, and a controller.
    Shared,
}

/// All kinds, with their names.
pub(super) const KINDS: [(&str, ControlPathStructure); 4] = [
    ("latency-capacity split", ControlPathStructure::Split),
    ("latency-capacity split with writes", ControlPathStructure::SplitWrites),
    ("four stations", ControlPathStructure::Separate),
    ("four stations, agents on one processor", ControlPathStructure::Shared),
];

/// Draws a device. Its busiest station behind the data path has the given utilisation, if nothing is lost; its data
/// path has at most that.
pub(super) fn draw(random: &mut RandomStream, kind: ControlPathStructure, utilisation: f64) -> ModelledDevice {
    // At least a tenth of the packets go to the controller, so that the 95th percentile is one of theirs: between the
    // two paths it jumps by orders of magnitude.
    let p = between(random, 0.1_f64.ln(), 0.6_f64.ln()).exp();
    let mut time =
        || MeanAndScv { mean_s: between(random, 0.002_f64.ln(), 0.012_f64.ln()).exp(), scv: between(random, 0.1, 2.0) };
    let [first, second, third] = [time(), time(), time()];
    let (control, busy_s) = match kind {
        ControlPathStructure::Split | ControlPathStructure::SplitWrites => {
            let idle_s = first.mean_s * between(random, 1.0, 3.0);
            (ModelledControlPath::Measured { idle_s, capacity: 1.0 / first.mean_s, scv: first.scv }, first.mean_s)
        }
        ControlPathStructure::Separate | ControlPathStructure::Shared => {
            let shared = kind == ControlPathStructure::Shared;
            let agents = if shared { first.mean_s + third.mean_s } else { first.mean_s.max(third.mean_s) };
            let control =
                ModelledControlPath::Stations { packet_in: first, controller: second, packet_out: third, shared };
            (control, agents.max(second.mean_s))
        }
    };
    let rate = utilisation / (p * busy_s);
    let write_s = if kind == ControlPathStructure::SplitWrites { between(random, 0.01, 0.1) / (p * rate) } else { 0.0 };
    let left = utilisation - p * rate * write_s;
    let data_load = between(random, 0.01, 0.9) * left.max(0.02);
    let scv = if random.unit() < 0.5 { 0.0 } else { between(random, 0.1, 1.5) };
    let places = (random.unit() < 0.5).then(|| 20 + usize::try_from(random.below(180)).unwrap_or(0));
    ModelledDevice { rate, p, data: MeanAndScv { mean_s: data_load / rate, scv }, control, places, write_s }
}

fn between(random: &mut RandomStream, low: f64, high: f64) -> f64 {
    low + (high - low) * random.unit()
}
