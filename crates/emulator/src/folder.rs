//! The folder of a lab: sockets of its switches, and a note by which others can tell whether its process still lives.
//!
//! `/run/weir/labs/PID/`, with the time at which the process was started (in the kernel's ticks since it booted) in `started`: process ids are given again.
use crate::LabError;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Where the folders of labs are.
const LABS: &str = "/run/weir/labs";
/// The note in each.
const STARTED: &str = "started";

/// This process's folder; removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes it, empty.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn make() -> Result<Folder, LabError> {
        let pid = std::process::id();
        let folder = of(pid);
        let made = || -> io::Result<()> {
            remove(pid)?;
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            fs::write(folder.join(STARTED), started(pid).map_or(String::new(), |ticks| ticks.to_string()))
        };
        made().map_err(LabError::system(format!("make the lab's folder {}", folder.display())))?;
        Ok(Folder(folder))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = remove(std::process::id()) {
            tracing::warn!(folder = %self.0.display(), %error, "the lab's folder could not be removed");
        }
    }
}

/// The folder of a process's lab.
pub(crate) fn of(pid: u32) -> PathBuf {
    Path::new(LABS).join(pid.to_string())
}

/// The processes that have a folder, living or not.
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

/// Whether the process that made a lab under this process id still runs. Without a note, any process of that id counts.
pub(crate) fn lives(pid: u32) -> bool {
    let note = fs::read_to_string(of(pid).join(STARTED)).ok().and_then(|text| text.trim().parse::<u64>().ok());
    started(pid).is_some_and(|now| note.is_none_or(|then| then == now))
}

/// When a process was started; none: there is no such process, or it has ended and only its parent has not looked yet.
fn started(pid: u32) -> Option<u64> {
    read_started(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The same from what the kernel says in `/proc/PID/stat`.
fn read_started(stat: &str) -> Option<u64> {
    /// Its place behind the state in proc_pid_stat(5), which counts from 1 and has the state third.
    const PLACE: usize = 22 - 4;
    // A name may hold anything, also brackets and spaces.
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
        // A process id that the kernel never gives.
        assert!(!lives(4_194_998));
        let stat = |state| format!("7 (a) b) {state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20");
        assert_eq!(read_started(&stat("S")), Some(4711));
        assert_eq!(read_started(&stat("Z")), None, "only its parent has not looked yet");
        assert_eq!(read_started("7 (a) S 1 2"), None);
    }
}
