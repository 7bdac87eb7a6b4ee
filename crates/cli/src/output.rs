//! Writes what a command found, to standard output or a file, so that no result is lost without an error.
use anyhow::Context as _;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Prints `text` and makes sure that it left the process. A reader that closed its end (`weir ... | head`) has what it wanted: no
/// error.
///
/// # Errors
/// Standard output takes no more, such as on a full disk.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_to(std::io::stdout().lock(), text).context("cannot write the whole result to standard output")
}

/// Prints a line of a program that goes on, such as that it is ready. What cannot be written is told on standard error,
/// and is no reason to stop.
pub(crate) fn announce(line: &str) {
    if let Err(error) = print(&format!("{line}\n")) {
        tracing::warn!("{error:#}: {line}");
    }
}

/// Makes `path` a file that holds `text`. An older file stays whole until the new one is: the text is written beside it under
/// another name, which then replaces it. A device, such as `/dev/stdout`, is written to directly.
///
/// # Errors
/// The folder is missing, is not writable, or has no space left; the older file is as it was.
pub(crate) fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let Some(mut beside) = Beside::create(path)? else {
        return OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    };
    beside.file.write_all(text.as_bytes())?;
    beside.replace()
}

/// Whether [`write_file`] could write to `path` now: a long run that could not keep its result had better not begin.
///
/// # Errors
/// As of [`write_file`], but for space.
pub(crate) fn check_file(path: &Path) -> io::Result<()> {
    Beside::create(path).map(drop)
}

/// A new file in the folder of the one that it will replace; removed again if it does not.
struct Beside {
    file: File,
    name: PathBuf,
    target: PathBuf,
}

impl Beside {
    /// None for a path that is no regular file.
    fn create(path: &Path) -> io::Result<Option<Beside>> {
        // What a symbolic link leads to is replaced, not the link.
        let target = if path.is_symlink() { path.canonicalize()? } else { path.to_owned() };
        let old = target.metadata().ok();
        if old.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            return Err(ErrorKind::IsADirectory.into());
        }
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Ok(None);
        }
        let file_name = target.file_name().ok_or(ErrorKind::InvalidFilename)?.to_string_lossy();
        let name = target.with_file_name(format!(".{file_name}.{}", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&name)?;
        let beside = Beside { file, name, target };
        if let Some(old) = old {
            beside.file.set_permissions(old.permissions())?;
        }
        Ok(Some(beside))
    }

    fn replace(self) -> io::Result<()> {
        std::fs::rename(&self.name, &self.target)
    }
}

impl Drop for Beside {
    /// After a rename there is nothing left to remove.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.name);
    }
}

fn print_to(mut out: impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_a_reader_that_is_gone_is_no_error() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        // Small enough to be held back until the flush.
        let error = print_to(std::io::LineWriter::new(full), "without an end of line").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        print_to(writer, "text\n").unwrap();
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("report.html"), folder.path().join("link"));
        std::os::unix::fs::symlink("report.html", &link).unwrap();
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        check_file(&file).unwrap();
        drop(Beside::create(&file).unwrap()); // as if writing had failed
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        write_file(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        assert_eq!(write_file(Path::new("/dev/full"), "text").unwrap_err().kind(), ErrorKind::StorageFull);
        let missing = folder.path().join("missing/report.html");
        assert_eq!(check_file(&missing).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(check_file(folder.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
    }
}
