//! Manages the folder of a lab: sockets of its switches, and a note that shows whether its process still runs.
//!
//! The folder is `/run/weir/labs/PID/`. Its file `started` has the start time of the process in the kernel's ticks
//! since boot, because process ids are reused.
use crate::LabError;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Parent folder of the labs' folders.
const LABS: &str = "/run/weir/labs";
/// Name of the note in each folder.
const STARTED: &str = "started";

/// Folder of this process, removed when dropped.
#[derive(Debug)]
pub(crate) struct LabFolder(PathBuf);

impl LabFolder {
    /// Makes the folder, empty but for the note.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn make() -> Result<LabFolder, LabError> {
        let pid = std::process::id();
        let folder = of(pid);
        let made = || -> io::Result<()> {
            remove(pid)?;
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            fs::write(folder.join(STARTED), started(pid).map_or(String::new(), |ticks| ticks.to_string()))
        };
        made().map_err(LabError::system(format!("make the lab's folder {}", folder.display())))?;
        Ok(LabFolder(folder))
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for LabFolder {
    fn drop(&mut self) {
        if let Err(error) = remove(std::process::id()) {
            tracing::warn!(folder = %self.0.display(), %error, "the lab's folder could not be removed");
        }
    }
}

/// Returns the path of a process's folder.
pub(crate) fn of(pid: u32) -> PathBuf {
    Path::new(LABS).join(pid.to_string())
}

/// Returns the processes that have a folder, whether they still run or not.
pub(crate) fn owners() -> Vec<u32> {
    let entries = fs::read_dir(LABS).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Removes a process's folder, if there is one.
///
/// # Errors
/// The system refuses.
pub(crate) fn remove(pid: u32) -> io::Result<()> {
    match fs::remove_dir_all(of(pid)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns true if the process that made a lab under this process id still runs. Without a note, any process with
/// that id counts.
pub(crate) fn lives(pid: u32) -> bool {
    let note = fs::read_to_string(of(pid).join(STARTED)).ok().and_then(|text| text.trim().parse::<u64>().ok());
    started(pid).is_some_and(|now| note.is_none_or(|then| then == now))
}

/// Returns the start time of a process; `None` if there is no such process, or it has ended but its parent has not
/// waited for it.
fn started(pid: u32) -> Option<u64> {
    read_started(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads the start time from the text of `/proc/PID/stat`.
fn read_started(stat: &str) -> Option<u64> {
    /// Index behind the state. The page proc_pid_stat(5) counts from 1 and has the state as field 3, the start time
    /// as 22.
    const PLACE: usize = 22 - 4;
    // A process name may contain anything, including brackets and spaces.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?;
    if matches!(state, "Z" | "X") { None } else { words.nth(PLACE)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_are_told_from_the_dead() {
        let own = std::process::id();
        assert!(started(own).is_some_and(|ticks| ticks > 0));
        assert!(lives(own));
        // Process id above the kernel's limit.
        assert!(!lives(4_194_998));
        let stat = |state| format!("7 (a) b) {state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20");
        assert_eq!(read_started(&stat("S")), Some(4711));
        assert_eq!(read_started(&stat("Z")), None, "only its parent has not looked yet");
        assert_eq!(read_started("7 (a) S 1 2"), None);
    }
}
