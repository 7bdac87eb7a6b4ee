//! Shows the progress of a run on standard error: a bar on a terminal, otherwise a line from time to time.
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::Duration;
use weir_emulator::Progress;

/// Time between lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Form in which progress is shown.
pub(crate) enum Shown {
    Bar(ProgressBar),
    /// Lines of text, with the time since the start of traffic at which the next line is due.
    Lines(Duration),
}

impl Shown {
    pub(crate) fn new() -> Shown {
        if !std::io::stderr().is_terminal() {
            return Shown::Lines(Duration::ZERO);
        }
        let bar = ProgressBar::new(1);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {wide_bar}") {
            bar.set_style(style);
        }
        Shown::Bar(bar)
    }

    pub(crate) fn tell(&mut self, progress: &Progress) {
        match self {
            Shown::Bar(bar) => tell_bar(bar, progress),
            Shown::Lines(due) => tell_line(due, progress),
        }
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&self) {
        if let Shown::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn tell_bar(bar: &ProgressBar, progress: &Progress) {
    match progress {
        Progress::Step(step) => bar.set_message(*step),
        Progress::Traffic { done, items, elapsed, expected } => {
            let ms = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            bar.set_length(ms(expected));
            bar.set_position(ms(elapsed).min(ms(expected)));
            bar.set_message(format!("traffic: {done} of {items} items are through"));
        }
        Progress::Pings { done, pings, .. } => {
            let count = |number: &usize| u64::try_from(*number).unwrap_or(u64::MAX);
            bar.set_length(count(pings));
            bar.set_position(count(done));
            bar.set_message(format!("{done} of {pings} pings are through"));
        }
    }
    bar.tick();
}

fn tell_line(due: &mut Duration, progress: &Progress) {
    match progress {
        Progress::Step(step) => eprintln!("weir: {step}"),
        Progress::Traffic { done, items, elapsed, expected } if elapsed >= due => {
            *due = *elapsed + LINE_EVERY;
            let (elapsed, expected) = (elapsed.as_secs_f64(), expected.as_secs_f64());
            eprintln!("weir: traffic: {done} of {items} items are through after {elapsed:.1} of {expected:.1} s");
        }
        Progress::Pings { done, pings, elapsed } if elapsed >= due => {
            // The first line is omitted, so that short runs print none.
            if !due.is_zero() {
                eprintln!("weir: {done} of {pings} pings are through after {:.1} s", elapsed.as_secs_f64());
            }
            *due = *elapsed + LINE_EVERY;
        }
        Progress::Traffic { .. } | Progress::Pings { .. } => {}
    }
}
