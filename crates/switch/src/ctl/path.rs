//! Finds control sockets: `$XDG_RUNTIME_DIR/weir`, `/run/weir` for root, `/tmp/weir-UID` for other users, with the
//! switch's name and `.sock`.
use crate::handle::SwitchError;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

const SUFFIX: &str = "sock";

/// Returns the path of a switch's control socket; creates its directory if needed.
///
/// # Errors
/// Fails if the name cannot be a file name, or if the directory cannot be created or belongs to another user.
pub fn default_path(name: &str) -> Result<PathBuf, SwitchError> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
        return Err(SwitchError::Request(format!(
            "the switch name `{name}` cannot name a socket; choose another, or say --control-socket PATH"
        )));
    }
    let directory = directory();
    make(&directory).map_err(|error| SwitchError::System {
        tried: format!("making the directory {} for the control socket", directory.display()),
        error,
        advice: "; say --control-socket PATH".to_owned(),
    })?;
    Ok(directory.join(format!("{name}.{SUFFIX}")))
}

/// Returns the control socket for `weir ctl`: `wanted` is a path or a switch's name; without it, the only running
/// switch is taken.
///
/// # Errors
/// Fails without `wanted` if no switch runs or several do.
pub fn find(wanted: Option<&str>) -> Result<PathBuf, String> {
    let directory = directory();
    match wanted {
        Some(path) if path.contains('/') => Ok(path.into()),
        Some(name) => Ok(directory.join(format!("{name}.{SUFFIX}"))),
        None => only(&directory),
    }
}

fn only(directory: &Path) -> Result<PathBuf, String> {
    let mut alive = running(directory);
    match (alive.pop(), alive.is_empty()) {
        (Some(path), true) => Ok(path),
        (None, _) => Err(format!(
            "no switch runs here (no socket in {} answers); start one with `weir switch`, or say --socket PATH",
            directory.display()
        )),
        (Some(last), false) => {
            let names =
                alive.iter().chain([&last]).filter_map(|path| path.file_stem()).map(|name| name.to_string_lossy());
            Err(format!("several switches run here; name one: --switch {}", names.collect::<Vec<_>>().join(" | ")))
        }
    }
}

/// Returns the sockets on which a process listens, in order of their names.
fn running(directory: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|file| file.path());
    let sockets = files.filter(|path| path.extension().is_some_and(|extension| extension == SUFFIX));
    let mut alive: Vec<_> = sockets.filter(|path| UnixStream::connect(path).is_ok()).collect();
    alive.sort();
    alive
}

fn directory() -> PathBuf {
    let user = rustix::process::geteuid();
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(path) if path.is_dir() => path.join("weir"),
        _ if user.is_root() => "/run/weir".into(),
        _ => format!("/tmp/weir-{}", user.as_raw()).into(),
    }
}

/// Creates a directory for this user only. If it exists, checks that it is a directory of this user: in /tmp another
/// user may have created it.
fn make(directory: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => return done,
    }
    let found = std::fs::symlink_metadata(directory)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a directory of this user"));
    }
    Ok(())
}
