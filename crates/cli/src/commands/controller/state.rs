//! `weir controller --state FILE`: keeps what applications of a network need over a restart. The file is read at the
//! start, and written by a thread of its own, so that the controller does not wait for the disk. A lock beside it keeps
//! a second controller from writing the same file.
use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_routing::{KeptState, NetworkController};
use weir_terminal::output;
use weir_units::{Epoch, Instant};

/// Form of the file.
const FORM: u32 = 1;
/// Largest file in bytes.
const MAX_FILE: u64 = 64 << 20;
const NS_PER_S: u64 = 1_000_000_000;

/// Content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFile {
    weir_network_state: u32,
    /// Seconds from the start of 1970 to the time at which it was written.
    saved_unix_s: u64,
    applications: KeptState,
}

/// Fields that all forms of the file have.
#[derive(Debug, Deserialize)]
struct StateForm {
    weir_network_state: u32,
}

/// Writer of the file. Dropping it waits until the last state that the controller has handed out is written.
pub(super) struct StateWriter {
    thread: Option<JoinHandle<()>>,
    /// Released after the last write.
    _lock: StateLock,
}

/// Lock of the file: another file, since this one is replaced with each write. It is deleted when it is released.
struct StateLock {
    path: PathBuf,
    _file: File,
}

impl StateLock {
    /// Takes the lock of the state in `path`.
    ///
    /// # Errors
    /// Another controller has it, or the file of the lock cannot be made.
    fn take(path: &Path) -> anyhow::Result<StateLock> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        loop {
            let shown = path.display();
            let options = File::options().create(true).truncate(false).write(true).open(&path);
            let file = options.with_context(|| format!("cannot make the lock {shown}"))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    bail!("another controller writes this file ({shown} is locked); give each a file of its own")
                }
                Err(error) => return Err(error).with_context(|| format!("cannot lock {shown}")),
            }
            // The one that had it may have deleted the file meanwhile: then the next one would lock another.
            let is_same = std::fs::metadata(&path).is_ok_and(|at| file.metadata().is_ok_and(|of| of.ino() == at.ino()));
            if is_same {
                return Ok(StateLock { path, _file: file });
            }
        }
    }
}

impl Drop for StateLock {
    fn drop(&mut self) {
        // Without the permission, an empty file stays.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl StateWriter {
    /// Gives a network the state in the file, if it is there, and keeps the file up to date from now on.
    ///
    /// # Errors
    /// The file is damaged, cannot be read or replaced, or belongs to another controller that runs.
    pub(super) fn attach(path: &Path, network: &mut NetworkController) -> anyhow::Result<StateWriter> {
        let name = || format!("--state {}", path.display());
        let lock = StateLock::take(path).with_context(name)?;
        if let Some(file) = read(path).with_context(name)? {
            let elapsed = Duration::from_secs(now_s().saturating_sub(file.saved_unix_s));
            let restored = network.restore(Instant::ZERO, elapsed, file.applications);
            restored.map_err(|problem| damaged(&problem)).with_context(name)?;
        }
        output::check_file(path).with_context(name)?;
        let (sender, receiver) = channel();
        let target = path.to_owned();
        let thread = std::thread::Builder::new().name("state".to_owned());
        let thread = thread.spawn(move || write_all(&target, &receiver)).context("cannot start a thread")?;
        network.keep_state(Box::new(move |state| {
            // The thread ends after this sender only.
            let _ = sender.send(state);
        }));
        Ok(StateWriter { thread: Some(thread), _lock: lock })
    }
}

impl Drop for StateWriter {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads the file; `None` if there is none.
fn read(path: &Path) -> anyhow::Result<Option<StateFile>> {
    let length = match std::fs::metadata(path) {
        Ok(file) => file.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if length > MAX_FILE {
        bail!("found {length} bytes, expected at most {MAX_FILE}");
    }
    let text = weir_units::read_text(path)?;
    let wrong = |error: serde_json::Error| damaged(&error.to_string());
    // Another form may have other fields.
    let StateForm { weir_network_state: form } = serde_json::from_str(&text).map_err(wrong)?;
    if form != FORM {
        bail!("found form {form} of the file, expected {FORM}; another version of weir wrote it");
    }
    Ok(Some(serde_json::from_str(&text).map_err(wrong)?))
}

fn damaged(problem: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "the file is damaged ({problem}), expected what `weir controller --state` writes; move it away to start without \
         it"
    )
}

fn now_s() -> u64 {
    Epoch::Wall.now_ns() / NS_PER_S
}

/// Writes each state, or only the newest of several that wait.
fn write_all(path: &Path, states: &Receiver<KeptState>) {
    while let Ok(state) = states.recv() {
        let applications = states.try_iter().last().unwrap_or(state);
        let file = StateFile { weir_network_state: FORM, saved_unix_s: now_s(), applications };
        let text = serde_json::to_string(&file).map_err(std::io::Error::other);
        if let Err(error) = text.and_then(|text| output::write_file(path, &(text + "\n"))) {
            tracing::warn!("--state {}: cannot be written: {error}", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_routing::NetworkConfig;

    fn attached(path: &Path) -> anyhow::Result<()> {
        let mut network = NetworkController::new(NetworkConfig::default(), Vec::new());
        let writer = StateWriter::attach(path, &mut network)?;
        // The last state is handed out before the writer is waited for.
        drop(network);
        drop(writer);
        Ok(())
    }

    #[test]
    fn state_of_applications_that_do_not_run_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        attached(&path).unwrap();
        let mut file = read(&path).unwrap().unwrap();
        assert!(file.applications.0.is_empty() && file.saved_unix_s > 1_700_000_000);
        file.applications.0.insert("other".to_owned(), serde_json::json!({"a": 1}));
        std::fs::write(&path, serde_json::to_string(&file).unwrap()).unwrap();
        attached(&path).unwrap();
        assert_eq!(read(&path).unwrap().unwrap().applications, file.applications);
    }

    #[test]
    fn a_damaged_file_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        for (text, part) in [
            ("", "EOF while parsing"),
            ("{\"weir_network_state\": 1, \"saved_unix_s\": 5, \"applica", "line 1 column"),
            ("{\"weir_network_state\": 2, \"new\": 1}", "found form 2"),
            ("{\"weir_network_state\": 1, \"saved_unix_s\": -5, \"applications\": {}}", "-5"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", attached(&path).unwrap_err());
            assert!(error.starts_with("--state ") && error.contains(part), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let missing = folder.path().join("missing/state.json");
        assert!(format!("{:#}", attached(&missing).unwrap_err()).contains("missing/state.json"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no lock is left");
    }

    #[test]
    fn a_file_that_another_controller_writes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        let lock = StateLock::take(&path).unwrap();
        let error = format!("{:#}", attached(&path).unwrap_err());
        assert!(error.contains("another controller writes this file") && error.contains(".lock"), "{error}");
        assert!(!path.exists());
        drop(lock);
        attached(&path).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no lock is left");
    }
}
