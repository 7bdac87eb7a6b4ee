//! Shows on standard error how far a long command is: as a bar on a terminal, otherwise as a line now and then, so
//! that the logs of automatic runs show that it lives.
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_units::{Clock as _, Instant, SystemClock};

/// Time after which a line is due, if nothing was printed since.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// True if no progress is shown.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Hides all progress of this process from now on. Errors, warnings and results are not hidden.
pub fn silence() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Prints a line on what a command does, unless progress is hidden.
pub fn tell(line: &str) {
    if !IS_QUIET.load(Ordering::Relaxed) {
        eprintln!("weir: {line}");
    }
}

/// Progress of a long command. Dropping it removes the bar from the terminal.
pub enum ProgressDisplay {
    /// A bar on a terminal.
    Bar(ProgressBar),
    /// Lines of text.
    Lines(ProgressLines),
}

impl ProgressDisplay {
    /// Shows progress as a bar if standard error is a terminal, otherwise as lines.
    pub fn start() -> ProgressDisplay {
        if !std::io::stderr().is_terminal() || IS_QUIET.load(Ordering::Relaxed) {
            return ProgressDisplay::lines();
        }
        let bar = ProgressBar::new(1);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {wide_bar}") {
            bar.set_style(style);
        }
        ProgressDisplay::Bar(bar)
    }

    /// Shows progress as lines: one for each stage, and, if standard error is no terminal, one now and then.
    pub fn lines() -> ProgressDisplay {
        ProgressDisplay::Lines(ProgressLines::start(!std::io::stderr().is_terminal()))
    }

    /// Begins a stage.
    pub fn stage(&mut self, text: &str) {
        self.show(text, text, 0, 0);
    }

    /// Shows how far the stage is: `done` steps of `all`, or of an unknown number if that is 0. A new stage gets a line
    /// at once, the same stage when a line is due.
    pub fn show(&mut self, stage: &str, text: &str, done: u64, all: u64) {
        match self {
            ProgressDisplay::Bar(bar) => {
                bar.set_length(all.max(1));
                bar.set_position(done.min(all));
                bar.set_message(text.to_owned());
                bar.tick();
            }
            ProgressDisplay::Lines(lines) => lines.show(stage, text),
        }
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        if let ProgressDisplay::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Progress as lines. A thread prints a line when one is due and the command says nothing.
pub struct ProgressLines {
    clock: SystemClock,
    plan: Arc<Mutex<LinePlan>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressLines {
    fn start(prints_now_and_then: bool) -> ProgressLines {
        let clock = SystemClock::start();
        let plan = Arc::new(Mutex::new(LinePlan::new(LINE_EVERY, clock.now())));
        let (stop, stopped) = mpsc::channel::<()>();
        let (own, own_clock) = (Arc::clone(&plan), clock);
        let is_wanted = prints_now_and_then && !IS_QUIET.load(Ordering::Relaxed);
        let work = move || {
            let mut wait = LINE_EVERY;
            while stopped.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout) {
                let (now, mut plan) = (own_clock.now(), lock(&own));
                plan.when_due(now).inspect(|line| tell(line));
                wait = plan.due.since(now);
            }
        };
        // Without a thread there are fewer lines, which is no reason to fail.
        let builder = std::thread::Builder::new().name("weir-progress".into());
        let thread = is_wanted.then(|| builder.spawn(work).ok()).flatten();
        ProgressLines { clock, plan, stop: Some(stop), thread }
    }

    fn show(&self, stage: &str, text: &str) {
        lock(&self.plan).show(self.clock.now(), stage, text).inspect(|line| tell(line));
    }
}

impl Drop for ProgressLines {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(plan: &Mutex<LinePlan>) -> MutexGuard<'_, LinePlan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Decides when a line is due, without a clock.
struct LinePlan {
    every: Duration,
    stage: String,
    /// Beginning of the stage.
    began: Instant,
    /// Text that was said last of the stage.
    text: String,
    /// True if a line has the text.
    is_printed: bool,
    /// Time at which the next line is due.
    due: Instant,
}

impl LinePlan {
    /// Returns a plan without a stage. The first line without one is due after the time `every`.
    fn new(every: Duration, now: Instant) -> LinePlan {
        LinePlan { every, stage: String::new(), began: now, text: String::new(), is_printed: false, due: now + every }
    }

    /// Returns `text` if it begins a stage, or if a line is due.
    fn show(&mut self, now: Instant, stage: &str, text: &str) -> Option<String> {
        let is_new = self.stage != stage;
        if is_new {
            (self.stage, self.began) = (stage.to_owned(), now);
        }
        (self.text, self.is_printed) = (text.to_owned(), is_new || now >= self.due);
        if !self.is_printed {
            return None;
        }
        self.due = now + self.every;
        Some(self.text.clone())
    }

    /// Returns a line if one is due: what was said last. If a line has it already, how long the stage has taken
    /// follows.
    fn when_due(&mut self, now: Instant) -> Option<String> {
        if now < self.due {
            return None;
        }
        self.due = now + self.every;
        let took = now.since(self.began).as_secs_f64();
        let for_long = if self.is_printed { format!(" (for {took:.0} s)") } else { String::new() };
        self.is_printed = true;
        (!self.text.is_empty()).then(|| format!("{}{for_long}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_begins_with_a_line_and_has_one_when_it_is_due() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut plan = LinePlan::new(Duration::from_millis(100), at(0));
        assert_eq!(plan.show(at(10), "traffic", "0 of 2").as_deref(), Some("0 of 2"));
        assert_eq!(plan.show(at(50), "traffic", "1 of 2"), None);
        assert_eq!(plan.when_due(at(109)), None);
        assert_eq!(plan.show(at(110), "traffic", "1 of 2").as_deref(), Some("1 of 2"));
        assert_eq!(plan.show(at(120), "ending", "ending").as_deref(), Some("ending"));
    }

    #[test]
    fn a_command_that_says_nothing_has_lines_too() {
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let mut plan = LinePlan::new(Duration::from_secs(1), at(0));
        assert_eq!(plan.when_due(at(1)), None, "nothing was begun");
        plan.show(at(1), "loading", "loading");
        assert_eq!(plan.when_due(at(2)).as_deref(), Some("loading (for 1 s)"));
        assert_eq!(plan.when_due(at(2)), None);
        assert_eq!(plan.when_due(at(9)).as_deref(), Some("loading (for 8 s)"));
        assert_eq!(plan.show(at(9), "loading", "half of it is loaded"), None);
        assert_eq!(plan.when_due(at(10)).as_deref(), Some("half of it is loaded"));
        assert_eq!(plan.when_due(at(11)).as_deref(), Some("half of it is loaded (for 10 s)"));
    }

    #[test]
    fn short_work_without_a_stage_has_no_line() {
        let mut plan = LinePlan::new(Duration::from_secs(1), Instant::ZERO);
        assert_eq!(plan.show(Instant::ZERO, "", "0 of 2 pings"), None);
    }

    #[test]
    fn the_thread_ends_with_the_display() {
        let mut display = ProgressDisplay::Lines(ProgressLines::start(true));
        display.show("", "nothing is due", 1, 2);
        drop(display);
    }
}
