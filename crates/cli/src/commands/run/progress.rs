//! Shows the progress of a run on standard error: a bar on a terminal, otherwise a line from time to time.
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::Duration;
use weir_network::LabProgress;

/// Time between lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Form in which progress is shown.
pub(crate) enum LabProgressDisplay {
    Bar(ProgressBar),
    /// Lines of text, with the time since the start of traffic at which the next line is due.
    Lines(Duration),
}

impl LabProgressDisplay {
    pub(crate) fn new() -> LabProgressDisplay {
        if !std::io::stderr().is_terminal() {
            return LabProgressDisplay::Lines(Duration::ZERO);
        }
        let bar = ProgressBar::new(1);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {wide_bar}") {
            bar.set_style(style);
        }
        LabProgressDisplay::Bar(bar)
    }

    pub(crate) fn update(&mut self, progress: &LabProgress) {
        match self {
            LabProgressDisplay::Bar(bar) => tell_bar(bar, progress),
            LabProgressDisplay::Lines(due) => tell_line(due, progress),
        }
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&self) {
        if let LabProgressDisplay::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn tell_bar(bar: &ProgressBar, progress: &LabProgress) {
    match progress {
        LabProgress::Step(step) => bar.set_message(*step),
        LabProgress::Traffic { done, items, elapsed, expected } => {
            let items = weir_units::counted(*items, "item", "items");
            let ms = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            bar.set_length(ms(expected));
            bar.set_position(ms(elapsed).min(ms(expected)));
            bar.set_message(format!("traffic: {done} of {items} are through"));
        }
        LabProgress::Pings { done, pings, .. } => {
            let count = |number: &usize| u64::try_from(*number).unwrap_or(u64::MAX);
            bar.set_length(count(pings));
            bar.set_position(count(done));
            bar.set_message(format!("{done} of {pings} pings are through"));
        }
    }
    bar.tick();
}

fn tell_line(due: &mut Duration, progress: &LabProgress) {
    match progress {
        LabProgress::Step(step) => eprintln!("weir: {step}"),
        LabProgress::Traffic { done, items, elapsed, expected } if elapsed >= due => {
            *due = *elapsed + LINE_EVERY;
            let (elapsed, expected) = (elapsed.as_secs_f64(), expected.as_secs_f64());
            let items = weir_units::counted(*items, "item", "items");
            eprintln!("weir: traffic: {done} of {items} are through after {elapsed:.1} of {expected:.1} s");
        }
        LabProgress::Pings { done, pings, elapsed } if elapsed >= due => {
            // The first line is omitted, so that short runs print none.
            if !due.is_zero() {
                eprintln!("weir: {done} of {pings} pings are through after {:.1} s", elapsed.as_secs_f64());
            }
            *due = *elapsed + LINE_EVERY;
        }
        LabProgress::Traffic { .. } | LabProgress::Pings { .. } => {}
    }
}
