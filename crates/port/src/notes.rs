//! Records which interface features ports switched off, so that they can be restored after a process was killed: by
//! `weir cleanup`, or by the next port on the interface.
//!
//! A note is a file `/run/weir/features/PID-NUMBER`, locked by its process (flock(2)) until the process ends. If weir
//! does not run as root and may not write there, no note is written.
use crate::ethtool;
use crate::interface::KernelInterface;
use crate::peer;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Folder of the notes.
const FOLDER: &str = "/run/weir/features";
/// First character in the names of notes that are being written.
const UNFINISHED: char = '.';
/// Maximum size of a note in bytes; more than the names of all features of Linux.
const NOTE_MAX: u64 = 16 << 10;

/// Contents of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FeatureNoteContents {
    /// Inode number of the network namespace that `index` and `name` refer to.
    namespace: u64,
    index: i32,
    name: String,
    features: Vec<String>,
}

/// A note of this process; dropping it erases the note.
#[derive(Debug)]
pub(crate) struct FeatureNote {
    path: PathBuf,
    file: File,
}

impl FeatureNote {
    /// Writes a note that features of an interface are being switched off.
    ///
    /// # Errors
    /// The system refuses: the process is not root, or `/run` is read-only.
    pub(crate) fn write(interface: &KernelInterface, features: Vec<String>) -> io::Result<FeatureNote> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let said = FeatureNoteContents {
            namespace: interface.namespace(),
            index: interface.index(),
            name: interface.name().to_owned(),
            features,
        };
        let name = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let (path, unfinished) = (Path::new(FOLDER).join(&name), Path::new(FOLDER).join(format!("{UNFINISHED}{name}")));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(FOLDER)?;
        let mut file = File::create(&unfinished)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(said.text().as_bytes())?;
        // Readers ignore notes under the temporary name; at the rename the lock is already held.
        fs::rename(&unfinished, &path)?;
        Ok(FeatureNote { path, file })
    }
}

impl Drop for FeatureNote {
    fn drop(&mut self) {
        // A process that gave up root may not delete in the folder, but it may empty a file that it has open.
        if fs::remove_file(&self.path).is_err() {
            let _ = self.file.set_len(0);
        }
    }
}

/// Features that a killed process left switched off.
#[derive(Debug)]
pub struct OrphanedFeatures {
    /// Identifier of the killed process.
    pub pid: u32,
    said: FeatureNoteContents,
    path: PathBuf,
    /// Locked file: no other process restores these features at the same time.
    _file: File,
}

/// Returns the features left switched off by processes that are gone.
pub fn left_off() -> Vec<OrphanedFeatures> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    entries.filter_map(|entry| OrphanedFeatures::read(entry.path())).collect()
}

/// Returns the features that processes which are gone left switched off at an interface, for a port that takes over
/// the interface and will restore them. The notes stay locked until the result is dropped.
pub(crate) fn left_off_at(interface: &KernelInterface) -> SupersededNotes {
    let is_it = |left: &OrphanedFeatures| left.said.is_of(interface) && interface.namespace() != 0;
    SupersededNotes(left_off().into_iter().filter(is_it).collect())
}

/// Notes of killed processes that a new note replaces.
pub(crate) struct SupersededNotes(Vec<OrphanedFeatures>);

impl SupersededNotes {
    /// Returns the features named in the notes.
    pub(crate) fn features(&self) -> Vec<&str> {
        self.0.iter().flat_map(|left| left.said.features.iter().map(String::as_str)).collect()
    }

    /// Deletes the notes; called when another note holds their contents.
    pub(crate) fn erase(self) {
        self.0.iter().for_each(|left| _ = fs::remove_file(&left.path));
    }
}

impl OrphanedFeatures {
    /// Reads a note, unless its process still runs. Deletes a note that cannot be parsed.
    fn read(path: PathBuf) -> Option<OrphanedFeatures> {
        let name = path.file_name()?.to_str()?;
        let pid = name.trim_start_matches(UNFINISHED).split_once('-')?.0.parse().ok()?;
        let file = File::options().read(true).write(true).open(&path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        let mut text = String::new();
        (&file).take(NOTE_MAX).read_to_string(&mut text).ok()?;
        let said = if name.starts_with(UNFINISHED) { None } else { FeatureNoteContents::read(&text) };
        if said.is_none() {
            let _ = fs::remove_file(&path);
        }
        Some(OrphanedFeatures { pid, said: said?, path, _file: file })
    }

    /// Returns a readable description: the interface and the features.
    pub fn describe(&self) -> String {
        format!("{}: {}", self.said.name, self.said.features.join(", "))
    }

    /// Switches the features on again, if the interface still exists, and deletes the note.
    ///
    /// # Errors
    /// The system refuses; the note stays.
    pub fn restore(&self) -> io::Result<()> {
        match peer::interface_in(self.said.namespace, self.said.index) {
            Ok(interface) if self.said.is_of(&interface) => ethtool::switch_on(&interface, &self.said.features)?,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            // The interface is gone, or its index now belongs to another interface.
            _ => {}
        }
        fs::remove_file(&self.path)
    }
}

impl FeatureNoteContents {
    fn is_of(&self, interface: &KernelInterface) -> bool {
        (self.namespace, self.index) == (interface.namespace(), interface.index()) && self.name == interface.name()
    }

    fn text(&self) -> String {
        let FeatureNoteContents { namespace, index, name, features } = self;
        format!("namespace {namespace}\nindex {index}\nname {name}\nfeatures {}\n", features.join(" "))
    }

    fn read(text: &str) -> Option<FeatureNoteContents> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        Some(FeatureNoteContents {
            namespace: value("namespace")?.parse().ok()?,
            index: value("index")?.parse().ok()?,
            name: value("name")?.to_owned(),
            features: value("features")?.split(' ').map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_say_what_was_written() {
        let features = vec!["tx-vlan-hw-insert".to_owned(), "rx-lro".to_owned()];
        let said = FeatureNoteContents { namespace: 4_026_531_840, index: 7, name: "h 0".to_owned(), features };
        assert_eq!(FeatureNoteContents::read(&said.text()), Some(said));
        for wrong in ["", "namespace x\n", "namespace 1\nindex 2\nname a\n"] {
            assert_eq!(FeatureNoteContents::read(wrong), None, "{wrong:?}");
        }
    }
}
