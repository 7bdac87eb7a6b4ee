//! Errors of the store: which file, what happened, what to do.
use std::io;
use std::path::{Path, PathBuf};

/// Error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has the file.
    #[error("store {}: another process has it open; stop that one, or choose another file", file.display())]
    InUse {
        /// The file.
        file: PathBuf,
    },
    /// The disk is full.
    #[error("store {}: {error}; nothing was changed: make room on its disk, and ask again", file.display())]
    Full {
        /// The file.
        file: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The file is no store, or has changed by itself.
    #[error(
        "store {}: it is damaged, or no store: {problem}; put a copy of it back, or move it away to start without \
         networks (virtual switches that are left then are not touched: `weir ctl vs remove`)",
        file.display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Description of what was found.
        problem: String,
    },
    /// The file has another version.
    #[error(
        "store {}: found version {found}, expected {expected}: use the weir that made it, or move the file away",
        file.display()
    )]
    Version {
        /// The file.
        file: PathBuf,
        /// Version of the file.
        found: u64,
        /// Version of this program.
        expected: u64,
    },
    /// The file cannot be read or written.
    #[error("store {}: {problem}; check that its folder exists and that this user may write there", file.display())]
    Failed {
        /// The file.
        file: PathBuf,
        /// Description of what happened.
        problem: String,
    },
}

pub(super) fn damaged(file: &Path, problem: String) -> StoreError {
    StoreError::Damaged { file: file.to_owned(), problem }
}

/// Returns the error of a store for one of its database.
pub(super) fn explained(file: &Path, error: redb::Error) -> StoreError {
    let path = file.to_owned();
    match error {
        redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => StoreError::InUse { file: path },
        redb::Error::Io(error) => match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StoreError::Full { file: path, error }
            }
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => damaged(file, error.to_string()),
            _ => StoreError::Failed { file: path, problem: error.to_string() },
        },
        redb::Error::Corrupted(problem) => damaged(file, problem),
        redb::Error::UpgradeRequired(version) => damaged(file, format!("its database has version {version}")),
        error @ (redb::Error::TableTypeMismatch { .. }
        | redb::Error::TableDoesNotExist(_)
        | redb::Error::RepairAborted) => damaged(file, error.to_string()),
        error => StoreError::Failed { file: path, problem: error.to_string() },
    }
}
