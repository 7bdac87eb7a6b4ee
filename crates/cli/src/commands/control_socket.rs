//! Names a program and binds its control socket.
use std::path::Path;
use weir_switch::ctl::{self, CtlProgram};
use weir_switch::{SocketFile, SwitchError};

/// Name of a program that was given none; further ones have a number behind it.
const NAME: &str = "weir";
/// Maximum number of such programs of one user.
const MAX_UNNAMED: u32 = 1000;

/// Returns a program's name and its bound control socket: at `path`, or at the place that belongs to the name. Without
/// a name, the first one is taken that no running program of the kind has.
///
/// # Errors
/// A running program has the socket, or it cannot be made.
pub(super) fn bind(
    program: CtlProgram,
    name: Option<&str>,
    path: Option<&Path>,
) -> Result<(String, SocketFile), SwitchError> {
    if let Some(path) = path {
        return Ok((name.unwrap_or(NAME).to_owned(), SocketFile::bind(path)?));
    }
    if let Some(name) = name {
        return Ok((name.to_owned(), SocketFile::bind(&ctl::default_path(program, name)?)?));
    }
    let names = (2..=MAX_UNNAMED).map(|number| format!("{NAME}-{number}"));
    let mut last = Err(SwitchError::Busy);
    for name in std::iter::once(NAME.to_owned()).chain(names) {
        last = SocketFile::bind(&ctl::default_path(program, &name)?).map(|socket| (name, socket));
        if !matches!(last, Err(SwitchError::SocketInUse { .. })) {
            break;
        }
    }
    last
}
