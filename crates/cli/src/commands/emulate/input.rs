//! Reads commands of the prompt: with a line editor on a terminal, as plain lines otherwise. Reading runs on a
//! separate thread, so that a signal can end the lab while the thread waits for a line.
use anyhow::Context as _;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::io::{BufRead as _, IsTerminal as _, Read as _, stdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_emulator::prompt::PromptCompleter;

/// Prompt of the line editor.
const PROMPT: &str = "weir> ";
/// Maximum length of a line in bytes.
const MAX_LINE: u64 = 64 * 1024;
/// Interval for checking whether the lab was cancelled, while waiting for a line.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A line of input.
pub(super) enum PromptLine {
    Text(String),
    /// Ctrl-C during input: the line is discarded.
    Interrupted,
    End,
}

/// Source of command lines.
pub(super) struct PromptInput {
    ask: Sender<()>,
    lines: Receiver<anyhow::Result<PromptLine>>,
    cancel: CancelHandle,
    /// Terminal settings before the line editor changed them.
    terminal: Option<Termios>,
}

impl PromptInput {
    pub(super) fn open(cancel: CancelHandle, completer: PromptCompleter) -> anyhow::Result<PromptInput> {
        let terminal = stdin().is_terminal().then(|| tcgetattr(stdin()).ok()).flatten();
        let (ask, asked) = channel();
        let (tell, lines) = channel();
        let mut read = reader(completer)?;
        let work = move || {
            while asked.recv().is_ok() {
                if tell.send(read()).is_err() {
                    return;
                }
            }
        };
        // The thread is never joined: it may block in a read, and the process is about to end.
        std::thread::Builder::new().name("weir-input".into()).spawn(work).context("cannot start a thread for input")?;
        Ok(PromptInput { ask, lines, cancel, terminal })
    }

    /// Returns the next line, or [`PromptLine::End`] at the end of input or when the lab is cancelled.
    pub(super) fn next_line(&mut self) -> anyhow::Result<PromptLine> {
        // Reading starts only now, because a running command uses the terminal itself.
        if self.cancel.is_cancelled() || self.ask.send(()).is_err() {
            return Ok(PromptLine::End);
        }
        loop {
            match self.lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => return line,
                Err(RecvTimeoutError::Timeout) if !self.cancel.is_cancelled() => {}
                Err(_) => return Ok(PromptLine::End),
            }
        }
    }
}

impl Drop for PromptInput {
    fn drop(&mut self) {
        if let Some(terminal) = &self.terminal {
            // A signal may have interrupted the editor, which leaves the terminal in its editing mode.
            let _ = tcsetattr(stdin(), OptionalActions::Now, terminal);
        }
    }
}

type PromptReader = Box<dyn FnMut() -> anyhow::Result<PromptLine> + Send>;

fn reader(completer: PromptCompleter) -> anyhow::Result<PromptReader> {
    if !stdin().is_terminal() {
        return Ok(Box::new(plain_line));
    }
    // As in a shell: TAB completes as far as the candidates agree, and a second TAB lists them.
    let config = Config::builder().completion_type(CompletionType::List).build();
    let editor = Editor::<PromptHelper, DefaultHistory>::with_config(config);
    let mut editor = editor.context("cannot edit lines on this terminal")?;
    editor.set_helper(Some(PromptHelper(completer)));
    Ok(Box::new(move || match editor.readline(PROMPT) {
        Ok(line) => {
            // Adding to a full history removes its oldest line.
            let _ = editor.add_history_entry(&line);
            Ok(PromptLine::Text(line))
        }
        Err(ReadlineError::Interrupted) => Ok(PromptLine::Interrupted),
        Err(ReadlineError::Eof) => Ok(PromptLine::End),
        Err(error) => Err(error).context("cannot read from the terminal"),
    }))
}

/// Completer of the prompt, as the line editor wants it.
struct PromptHelper(PromptCompleter);

impl Completer for PromptHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, names) = self.0.complete(line.get(..position).unwrap_or(line));
        let pair = |name: String| Pair { replacement: format!("{name} "), display: name };
        Ok((start, names.into_iter().map(pair).collect()))
    }
}

impl Hinter for PromptHelper {
    type Hint = String;
}

impl Highlighter for PromptHelper {}
impl Validator for PromptHelper {}
impl Helper for PromptHelper {}

fn plain_line() -> anyhow::Result<PromptLine> {
    let mut line = String::new();
    let read = stdin().lock().take(MAX_LINE).read_line(&mut line);
    let length = read.context("cannot read commands from standard input")?;
    let is_cut = length as u64 == MAX_LINE && !line.ends_with('\n');
    anyhow::ensure!(!is_cut, "found a line of more than {MAX_LINE} bytes on standard input, expected commands");
    Ok(if length == 0 { PromptLine::End } else { PromptLine::Text(line) })
}
