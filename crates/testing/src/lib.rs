//! Helpers for tests of several crates: visible skipping, network namespaces, processes that end with the test,
//! certificates.
//!
//! A test that cannot run on this machine reports that on standard error, past the test runner's capture, and passes.
//! With `WEIR_REQUIRE=1` in the environment (as in CI) it fails instead. Tests on the reference data are still
//! skipped if `WEIR_WITHOUT=shared` is set as well.
#![allow(clippy::missing_panics_doc, reason = "panicking is how tests report")]
mod authority;
mod capture;
mod example;
mod namespace;
mod process;
pub mod rules;

pub use authority::{CertificateAuthority, KeyAndCertificate};
pub use capture::{CapturedFrame, pcap};
pub use example::run_example;
pub use namespace::Namespace;
pub use process::{Signal, TestProcess, cpus_of_thread, output_within, pattern_switch, run, wait_until};

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Reports that the calling test is skipped and why.
///
/// # Panics
/// Panics if `WEIR_REQUIRE` is set.
pub fn skip(reason: &str) {
    let test = test_name();
    assert!(std::env::var_os("WEIR_REQUIRE").is_none(), "{test} would be skipped, but WEIR_REQUIRE is set: {reason}");
    say_skipped(reason);
}

fn say_skipped(reason: &str) {
    // Written straight to standard error, because the runner captures the output of print macros.
    let _ = writeln!(std::io::stderr(), "skipped {}: {reason}", test_name());
}

fn test_name() -> String {
    std::thread::current().name().unwrap_or("test").to_owned()
}

/// Returns true if the process is root.
pub fn is_root() -> bool {
    // The owner of /proc/self is the effective user.
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// Returns true if the process is root; otherwise reports the test as skipped.
pub fn root() -> bool {
    let root = is_root();
    if !root {
        skip("needs root, for network namespaces and kernel interfaces");
    }
    root
}

/// Returns the path of a file or folder of the reference data beside the project. If it is missing, reports the test
/// as skipped and returns `None`.
pub fn shared(path: &str) -> Option<PathBuf> {
    let full = workspace().parent()?.join("shared").join(path);
    if full.exists() {
        return Some(full);
    }
    let reason = format!("needs {path} of the reference data in ../shared");
    if std::env::var_os("WEIR_WITHOUT").is_some_and(|without| without == "shared") {
        say_skipped(&reason);
    } else {
        skip(&reason);
    }
    None
}

/// Returns name and contents of each file in a folder whose name begins with `prefix` and has this extension, sorted
/// by name.
pub fn files(folder: &Path, prefix: &str, extension: &str) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("the folder is readable");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("the entry is readable").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path))
        .filter(|(name, _)| name.starts_with(prefix))
        .map(|(name, path)| (name, std::fs::read(path).expect("the file is readable")))
        .collect();
    files.sort();
    files
}

/// Returns the project's root folder.
pub fn workspace() -> PathBuf {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    crates.ancestors().nth(2).expect("the crate lies in crates/").to_path_buf()
}

/// Returns the Python of os-ken's virtual environment, where CI creates it; otherwise reports the test as skipped.
pub fn osken() -> Option<PathBuf> {
    let folder = std::env::var_os("OSKEN_VENV").map_or_else(|| "/tmp/osken-venv".into(), PathBuf::from);
    let python = folder.join("bin/python");
    if !python.exists() {
        skip("needs os-ken in the virtual environment that OSKEN_VENV names");
        return None;
    }
    Some(python)
}

/// Returns true if all these programs are installed; otherwise reports the test as skipped.
pub fn programs(names: &[&str]) -> bool {
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let missing: Vec<_> =
        names.iter().filter(|name| !folders.iter().any(|folder| folder.join(name).exists())).collect();
    if !missing.is_empty() {
        skip(&format!("needs programs that are not installed: {missing:?}"));
    }
    missing.is_empty()
}
