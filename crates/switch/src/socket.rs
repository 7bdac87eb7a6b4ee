//! Unix sockets in the file system: accessible to their owner only, replaced if their process has died, removed on
//! drop.
use crate::handle::SwitchError;
use rustix::fs::{FlockOperation, Mode, flock};
use std::fs::File;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A listening Unix socket and its file. Dropping it removes the file.
#[derive(Debug)]
pub struct SocketFile {
    listener: Option<UnixListener>,
    path: PathBuf,
}

impl SocketFile {
    /// Listens on `path`, for the process's user only. Replaces a socket whose process has died.
    ///
    /// # Errors
    /// [`SwitchError::SocketInUse`] if another process listens there. Also fails if the directory does not exist or
    /// is not writable.
    pub fn bind(path: &Path) -> Result<SocketFile, SwitchError> {
        let refused = |error: io::Error| SwitchError::System {
            tried: format!("making the socket {}", path.display()),
            advice: match error.kind() {
                io::ErrorKind::NotFound => "; its directory does not exist".to_owned(),
                io::ErrorKind::PermissionDenied => "; choose a directory you may write to".to_owned(),
                io::ErrorKind::AddrInUse => "; a file that is not a socket is in the way".to_owned(),
                _ => String::new(),
            },
            error,
        };
        // Held until the socket listens: otherwise another switch that starts could remove it as dead.
        let _alone = lock(path).map_err(refused)?;
        remove_dead(path)?;
        // The umask keeps other users from connecting between the bind and a later change of permissions.
        let umask = rustix::process::umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(path);
        rustix::process::umask(umask);
        let listener = bound.map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(SocketFile { listener: Some(listener), path: path.to_owned() })
    }

    /// Returns the socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the listener for tokio and the file, which the caller keeps as long as the listener.
    ///
    /// # Errors
    /// Fails if there is no tokio runtime or the listener was taken before.
    pub(crate) fn into_tokio(mut self) -> io::Result<(tokio::net::UnixListener, SocketFile)> {
        let listener = self.listener.take().ok_or(io::ErrorKind::NotConnected)?;
        Ok((tokio::net::UnixListener::from_std(listener)?, self))
    }
}

/// Locks the directory of `path` until the result is dropped.
fn lock(path: &Path) -> io::Result<File> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = File::open(directory)?;
    flock(&directory, FlockOperation::LockExclusive)?;
    Ok(directory)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes a socket that refuses connections: its process died without removing it.
///
/// # Errors
/// [`SwitchError::SocketInUse`] if a process listens on it.
fn remove_dead(path: &Path) -> Result<(), SwitchError> {
    match UnixStream::connect(path) {
        Ok(_) => Err(SwitchError::SocketInUse { path: path.display().to_string() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && is_socket(path) => {
            let _ = std::fs::remove_file(path);
            Ok(())
        }
        // The backlog is full, so a process listens.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(SwitchError::SocketInUse { path: path.display().to_string() })
        }
        Err(_) => Ok(()),
    }
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_living_are_left_alone_and_the_dead_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.sock");
        let first = SocketFile::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = SocketFile::bind(&path).unwrap_err().to_string();
        assert!(error.contains("a switch or controller that is running uses it"), "{error}");
        drop(first);
        assert!(!path.exists());
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a killed process leaves its socket");
        SocketFile::bind(&path).unwrap();
    }

    #[test]
    fn files_that_are_not_sockets_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes");
        std::fs::write(&path, "mine").unwrap();
        assert!(SocketFile::bind(&path).unwrap_err().to_string().contains("not a socket"));
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }
}
