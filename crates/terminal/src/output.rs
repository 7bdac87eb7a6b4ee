//! Writes a command's result to standard output or a file, and reports every result that cannot be written.
use anyhow::Context as _;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Prints `text` and flushes standard output. A reader that closed its end early (`weir ... | head`) is no error.
///
/// # Errors
/// Standard output accepts no more bytes, for example on a full disk.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_to(std::io::stdout().lock(), text).context("cannot write the whole result to standard output")
}

/// Prints a line of a command that prints until it is ended. Returns false if the reader of standard output is gone.
///
/// # Errors
/// Standard output accepts no more bytes, for example on a full disk.
pub fn print_line(line: &str) -> anyhow::Result<bool> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

/// Prints a line of a program that goes on running, such as its ready line. If the line cannot be written, a warning
/// with the line is logged and the program goes on.
pub fn announce(line: &str) {
    if let Err(error) = print(&format!("{line}\n")) {
        tracing::warn!("{error:#}: {line}");
    }
}

/// Writes `text` to the file `path`, replacing an older file in one step: the text is written to a temporary file in
/// the same folder, which is then renamed to `path`. A device, such as `/dev/stdout`, is written to directly.
///
/// # Errors
/// The folder is missing, is not writable, or has no space left; the older file is unchanged.
pub fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let Some(mut beside) = ReplacementFile::create(path)? else {
        return OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    };
    beside.file.write_all(text.as_bytes())?;
    beside.replace()
}

/// Checks that [`write_file`] could write to `path` now. Long runs call it first, so that no result is lost at the
/// end.
///
/// # Errors
/// The errors of [`write_file`], except for missing space.
pub fn check_file(path: &Path) -> io::Result<()> {
    ReplacementFile::create(path).map(drop)
}

/// Temporary file in the folder of the file that it will replace. Dropping it removes it, unless it was renamed.
struct ReplacementFile {
    file: File,
    name: PathBuf,
    target: PathBuf,
}

impl ReplacementFile {
    /// Creates the temporary file. Returns `None` if `path` exists and is not a regular file.
    fn create(path: &Path) -> io::Result<Option<ReplacementFile>> {
        // A symbolic link stays: the file that it points to is replaced.
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
        let beside = ReplacementFile { file, name, target };
        if let Some(old) = old {
            beside.file.set_permissions(old.permissions())?;
        }
        Ok(Some(beside))
    }

    fn replace(self) -> io::Result<()> {
        std::fs::rename(&self.name, &self.target)
    }
}

impl Drop for ReplacementFile {
    /// After a rename, no file has this name and the removal fails silently.
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
        // Without a newline: `LineWriter` buffers the text until the flush.
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
        drop(ReplacementFile::create(&file).unwrap()); // as if writing had failed
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
