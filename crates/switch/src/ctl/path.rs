//! Finds control sockets: `$XDG_RUNTIME_DIR/weir`, `/run/weir` for root, `/tmp/weir-UID` for other users, with the
//! program's name, and `.sock` for a switch, `.controller` for a controller.
use crate::handle::SwitchError;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Kind of program that has a control socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CtlProgram {
    /// `weir switch`.
    Switch,
    /// `weir controller`.
    Controller,
}

impl CtlProgram {
    /// Returns the kind's name, for display, which is also the command that starts one.
    pub(super) fn name(self) -> &'static str {
        match self {
            CtlProgram::Switch => "switch",
            CtlProgram::Controller => "controller",
        }
    }

    /// Returns the word that names one for `weir ctl`.
    fn flag(self) -> &'static str {
        match self {
            CtlProgram::Switch => "--switch",
            CtlProgram::Controller => "weir ctl controller",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            CtlProgram::Switch => "sock",
            CtlProgram::Controller => "controller",
        }
    }

    fn path(self, directory: &Path, name: &str) -> PathBuf {
        directory.join(format!("{name}.{}", self.extension()))
    }
}

/// Returns the path of a program's control socket; creates its directory if needed.
///
/// # Errors
/// Fails if the name cannot be a file name, or if the directory cannot be created or belongs to another user.
pub fn default_path(program: CtlProgram, name: &str) -> Result<PathBuf, SwitchError> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
        return Err(SwitchError::Request(format!(
            "the {} name `{name}` cannot name a socket; choose another, or say --control-socket PATH",
            program.name()
        )));
    }
    let directory = directory();
    make(&directory).map_err(|error| SwitchError::System {
        tried: format!("making the directory {} for the control socket", directory.display()),
        error,
        advice: "; say --control-socket PATH".to_owned(),
    })?;
    Ok(program.path(&directory, name))
}

/// Returns the control socket for `weir ctl`: `wanted` is a path or a program's name; without it, the only running
/// program of the kind is taken.
///
/// # Errors
/// Fails without `wanted` if none runs or several do.
pub fn find(program: CtlProgram, wanted: Option<&str>) -> Result<PathBuf, String> {
    let directory = directory();
    match wanted {
        Some(path) if path.contains('/') => Ok(path.into()),
        Some(name) => Ok(program.path(&directory, name)),
        None => only(program, &directory),
    }
}

fn only(program: CtlProgram, directory: &Path) -> Result<PathBuf, String> {
    let mut alive = running(program, directory);
    let kind = program.name();
    match (alive.pop(), alive.is_empty()) {
        (Some(path), true) => Ok(path),
        (None, _) => Err(format!(
            "no {kind} runs here (no socket in {} answers); start one with `weir {kind}`, or say --socket PATH",
            directory.display()
        )),
        (Some(last), false) => {
            let names =
                alive.iter().chain([&last]).filter_map(|path| path.file_stem()).map(|name| name.to_string_lossy());
            let plural = if program == CtlProgram::Switch { "switches" } else { "controllers" };
            let names = names.collect::<Vec<_>>().join(" | ");
            Err(format!("several {plural} run here; name one: {} {names}", program.flag()))
        }
    }
}

/// Returns the sockets on which a process listens, in order of the programs' names.
fn running(program: CtlProgram, directory: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|file| file.path());
    let sockets = files.filter(|path| path.extension().is_some_and(|extension| extension == program.extension()));
    let mut alive: Vec<_> = sockets.filter(|path| UnixStream::connect(path).is_ok()).collect();
    // The extension would put `weir` behind `weir-2`.
    alive.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn switches_and_controllers_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let only = |program| only(program, dir.path());
        let none = only(CtlProgram::Controller).unwrap_err();
        assert!(none.starts_with("no controller runs here") && none.contains("`weir controller`"), "{none}");
        let bind = |program: CtlProgram, name| UnixListener::bind(program.path(dir.path(), name)).unwrap();
        let _switch = bind(CtlProgram::Switch, "weir");
        let _first = bind(CtlProgram::Controller, "weir");
        assert_eq!(only(CtlProgram::Switch), Ok(dir.path().join("weir.sock")));
        assert_eq!(only(CtlProgram::Controller), Ok(dir.path().join("weir.controller")));
        // One that is dead does not count.
        drop(bind(CtlProgram::Controller, "dead"));
        assert_eq!(only(CtlProgram::Controller), Ok(dir.path().join("weir.controller")));
        let _second = bind(CtlProgram::Controller, "weir-2");
        let several = only(CtlProgram::Controller).unwrap_err();
        assert_eq!(several, "several controllers run here; name one: weir ctl controller weir | weir-2");
    }
}
