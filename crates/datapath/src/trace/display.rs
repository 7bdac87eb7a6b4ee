//! Writes a traced packet for people: a line for each step, behind the times that it took and is expected to take.
use super::{PipelineTrace, TraceStep};
use std::fmt;

impl fmt::Display for PipelineTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (times, expected) = (self.times.as_ref(), self.expected.as_ref());
        let measured = |ns: Option<f64>| times.map(|times| times.text(ns)).unwrap_or_default();
        let by_profile = |ns: Option<f64>| ns.map(|ns| format!("{ns:.1} ns")).unwrap_or_default();
        if expected.is_some() {
            self.line(f, "measured", "profile", format_args!("step"))?;
        }
        let parse = measured(times.and_then(|times| times.parse_ns));
        self.line(f, &parse, "", format_args!("packet: {}", self.packet))?;
        for (at, step) in self.steps.iter().enumerate() {
            let of = |steps: &[Option<f64>]| steps.get(at).copied().flatten();
            let took = measured(times.and_then(|times| of(&times.steps_ns)));
            let takes = by_profile(expected.and_then(|expected| of(&expected.steps_ns)));
            self.line(f, &took, &takes, format_args!("{step}"))?;
        }
        let total = by_profile(expected.map(|expected| expected.total_ns));
        if let Some(times) = times {
            let about = "in all, for a packet alone whose way is in the cache: the best of";
            self.line(f, &measured(Some(times.total_ns)), &total, format_args!("{about} {} runs", times.runs))?;
            let resolution = times.resolution_ns;
            let clock = times.text(Some(times.clock_ns).filter(|clock| *clock >= resolution));
            let taken_off = "which is subtracted";
            let text = format_args!("resolution {resolution:.1} ns; reading the clock took {clock}, {taken_off}");
            self.line(f, "", "", text)?;
        }
        if let Some(expected) = expected {
            let total = if times.is_some() { "" } else { &total };
            let waits = "in all, for a packet that waits for no other, no tick and no batch";
            self.line(f, "", total, format_args!("profile {}: {waits}", expected.profile))?;
        }
        Ok(())
    }
}

impl PipelineTrace {
    /// Writes a line behind its times, in columns for those that there are.
    fn line(
        &self,
        f: &mut fmt::Formatter<'_>,
        measured: &str,
        expected: &str,
        text: fmt::Arguments<'_>,
    ) -> fmt::Result {
        if self.times.is_some() {
            write!(f, "{measured:>10}  ")?;
        }
        if self.expected.is_some() {
            write!(f, "{expected:>13}  ")?;
        }
        writeln!(f, "{text}")
    }
}

impl fmt::Display for TraceStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceStep::Matched { table, entry, .. } => write!(f, "table {table}: {entry}"),
            TraceStep::Missed { table } => write!(f, "table {table}: no entry matches"),
            TraceStep::InBand(entry) => write!(f, "in-band control: {entry}: past the tables, by learned ports"),
            TraceStep::Standalone => write!(f, "no controller: forwarded as by NORMAL"),
            TraceStep::Egress { port } => write!(f, "  to port {port} through the egress tables"),
            TraceStep::Metered { meter, verdict } => write!(f, "  meter {meter}: {verdict}"),
            TraceStep::Action(action) => write!(f, "  {action}"),
            TraceStep::Bucket { group, kind, bucket } => write!(f, "  group {} ({kind}): bucket {bucket}", group.0),
            TraceStep::Sent { port, queue: 0, packet } => write!(f, "  -> port {port}: {packet}"),
            TraceStep::Sent { port, queue, packet } => write!(f, "  -> port {port} queue {queue}: {packet}"),
            TraceStep::Punted { reason } => write!(f, "  -> controller: {}", reason.name()),
            TraceStep::Dropped(reason) => write!(f, "  dropped: {reason}"),
        }
    }
}
