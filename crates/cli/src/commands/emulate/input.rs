//! Where commands come from: a line editor on a terminal, plain lines from anywhere else. Read on a thread of its own, so that a signal ends the lab
//! while a line is waited for.
use anyhow::Context as _;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::io::{BufRead as _, IsTerminal as _, Read as _, stdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use weir_emulator::Cancel;

/// What stands before what is typed.
const PROMPT: &str = "weir> ";
/// Longest line that is read.
const MAX_LINE: u64 = 64 * 1024;
/// How often it is looked whether the lab is to end while a line is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A line of input.
pub(super) enum Line {
    Text(String),
    /// Ctrl-C while typing: the line is given up.
    Interrupted,
    End,
}

/// Where lines come from.
pub(super) struct Input {
    ask: Sender<()>,
    lines: Receiver<anyhow::Result<Line>>,
    cancel: Cancel,
    /// How the terminal was before it was edited on.
    terminal: Option<Termios>,
}

impl Input {
    pub(super) fn open(cancel: Cancel) -> anyhow::Result<Input> {
        let terminal = stdin().is_terminal().then(|| tcgetattr(stdin()).ok()).flatten();
        let (ask, asked) = channel();
        let (tell, lines) = channel();
        let mut read = reader()?;
        let work = move || {
            while asked.recv().is_ok() {
                if tell.send(read()).is_err() {
                    return;
                }
            }
        };
        // It is left behind where it waits for a line: the process is about to end.
        std::thread::Builder::new().name("weir-input".into()).spawn(work).context("cannot start a thread for input")?;
        Ok(Input { ask, lines, cancel, terminal })
    }

    /// The next line; the end also when the lab is to end.
    pub(super) fn next_line(&mut self) -> anyhow::Result<Line> {
        // Only now: while a command runs the terminal is its own.
        if self.cancel.is_cancelled() || self.ask.send(()).is_err() {
            return Ok(Line::End);
        }
        loop {
            match self.lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => return line,
                Err(RecvTimeoutError::Timeout) if !self.cancel.is_cancelled() => {}
                Err(_) => return Ok(Line::End),
            }
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Some(terminal) = &self.terminal {
            // A signal may have come while a line was being edited.
            let _ = tcsetattr(stdin(), OptionalActions::Now, terminal);
        }
    }
}

type Read = Box<dyn FnMut() -> anyhow::Result<Line> + Send>;

fn reader() -> anyhow::Result<Read> {
    if !stdin().is_terminal() {
        return Ok(Box::new(plain_line));
    }
    let mut editor = DefaultEditor::new().context("cannot edit lines on this terminal")?;
    Ok(Box::new(move || match editor.readline(PROMPT) {
        Ok(line) => {
            // A history that is full forgets its oldest.
            let _ = editor.add_history_entry(&line);
            Ok(Line::Text(line))
        }
        Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
        Err(ReadlineError::Eof) => Ok(Line::End),
        Err(error) => Err(error).context("cannot read from the terminal"),
    }))
}

fn plain_line() -> anyhow::Result<Line> {
    let mut line = String::new();
    let read = stdin().lock().take(MAX_LINE).read_line(&mut line);
    let length = read.context("cannot read commands from standard input")?;
    let is_cut = length as u64 == MAX_LINE && !line.ends_with('\n');
    anyhow::ensure!(!is_cut, "found a line of more than {MAX_LINE} bytes on standard input, expected commands");
    Ok(if length == 0 { Line::End } else { Line::Text(line) })
}
