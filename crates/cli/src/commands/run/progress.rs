//! Says how far a run of a scenario is: its step, or what has become of its traffic.
use std::time::Duration;
use weir_network::LabProgress;
use weir_terminal::progress::ProgressDisplay;

/// Progress of a run on standard error.
pub(crate) struct LabProgressDisplay(ProgressDisplay);

impl LabProgressDisplay {
    pub(crate) fn new() -> LabProgressDisplay {
        LabProgressDisplay(ProgressDisplay::start())
    }

    pub(crate) fn update(&mut self, progress: &LabProgress) {
        match progress {
            LabProgress::Step(step) => self.0.stage(step),
            LabProgress::Traffic { done, items, elapsed, expected } => {
                let ms = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                let s = Duration::as_secs_f64;
                let text =
                    format!("traffic: {done} of {items} through after {:.1} of {:.1} s", s(elapsed), s(expected));
                self.0.show("traffic", &text, ms(elapsed).min(ms(expected)), ms(expected));
            }
            LabProgress::Pings { done, pings, elapsed } => {
                let text = format!("{done} of {pings} pings are through after {:.1} s", elapsed.as_secs_f64());
                // They are no stage of their own, so that short ones print nothing.
                self.0.show("", &text, *done as u64, *pings as u64);
            }
        }
    }
}
