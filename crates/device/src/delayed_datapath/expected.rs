//! Adds to a traced packet the times that the profile gives for its steps.
use super::DelayedDatapath;
use weir_datapath::{Datapath, ExpectedTimes, PipelineTrace, TraceStep};

impl DelayedDatapath {
    /// Adds to a trace the times of a packet of `bytes` bytes that waits for no other. The time of the data path stands
    /// at the lookup that decides it: the first one that found an entry in the slowest level of all that the packet
    /// matched, or the first lookup of a packet that matched none. Each packet-in has the mean time of its agent.
    pub fn expect(&mut self, trace: &mut PipelineTrace, bytes: u32, datapath: &mut Datapath) {
        self.follow(datapath);
        let stamp = |step: &TraceStep| if let TraceStep::Matched { stamp, .. } = step { Some(*stamp) } else { None };
        let met: Vec<u64> = trace.steps.iter().filter_map(stamp).collect();
        let passing = self.passing(&met, bytes);
        let level = |step: &TraceStep| self.stage.present_tables()?.level_of(stamp(step)?);
        let is_lookup = |step: &TraceStep| {
            matches!(step, TraceStep::Matched { .. } | TraceStep::Missed { .. } | TraceStep::Standalone)
        };
        let decides = |step: &TraceStep| level(step) == Some(passing.level);
        let decisive = trace.steps.iter().position(decides).or_else(|| trace.steps.iter().position(is_lookup));
        // A profile that does not have a time gives none, rather than 0.
        let some = |ns: f64| Some(ns).filter(|ns| *ns > 0.0);
        let time = |(at, step): (usize, &TraceStep)| match step {
            _ if Some(at) == decisive => some(self.stage.lone_packet_ns(passing)),
            TraceStep::Punted { .. } => some(self.stage.lone_packet_in_ns(bytes)),
            _ => None,
        };
        let steps_ns: Vec<Option<f64>> = trace.steps.iter().enumerate().map(time).collect();
        let total_ns = steps_ns.iter().flatten().sum();
        trace.expected = Some(ExpectedTimes { profile: self.profile.clone(), steps_ns, total_ns });
    }
}
