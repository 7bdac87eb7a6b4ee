//! Keeps networks in a file, as the log of what is about to be done.
//!
//! Each change is one transaction: it is in the file as a whole or not at all, also if the machine fails. The file is
//! a database of redb with three tables: `about` (version, time), `networks` (JSON by name) and `events` (JSON by
//! number).
mod error;

pub use error::StoreError;

use crate::manager::{KeptManager, ManagerChanges, ServiceClock};
use error::{damaged, explained};
use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Version of the form of kept networks. A file with another one is refused.
const VERSION: u64 = 1;

const ABOUT: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("about");
const NETWORKS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("networks");
const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");

/// Place where the state of a manager is kept.
pub trait StateStore {
    /// Returns all that is kept.
    ///
    /// # Errors
    /// The state cannot be read, or is not understood.
    fn load(&self) -> Result<KeptManager, StoreError>;

    /// Writes changes, all or none of them. They are safe when it returns.
    ///
    /// # Errors
    /// The changes cannot be written. Nothing has changed then.
    fn write(&mut self, changes: &ManagerChanges) -> Result<(), StoreError>;
}

/// File that keeps networks.
#[derive(Debug)]
pub struct NetworkStore {
    path: PathBuf,
    /// Database; `None` after a failed write, which makes it useless until it is opened again.
    database: Option<Database>,
}

impl NetworkStore {
    /// Opens the file, or makes it. Only one process can have it open.
    ///
    /// # Errors
    /// The file cannot be read or made, is damaged, is in use, or is of another version.
    pub fn open(path: &Path) -> Result<NetworkStore, StoreError> {
        NetworkStore::of(path, opened(path)?)
    }

    fn of(path: &Path, database: Database) -> Result<NetworkStore, StoreError> {
        let store = NetworkStore { path: path.to_owned(), database: Some(database) };
        let found = store.about::<u64>("version")?;
        if let Some(found) = found.filter(|found| *found != VERSION) {
            return Err(StoreError::Version { file: store.path, found, expected: VERSION });
        }
        Ok(store)
    }

    fn database(&self) -> Result<&Database, StoreError> {
        self.database.as_ref().ok_or_else(|| StoreError::Failed {
            file: self.path.clone(),
            problem: "it could not be opened again after a failed write".to_owned(),
        })
    }

    /// Returns a value of the table `about`.
    fn about<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StoreError> {
        let failed = |error: redb::Error| explained(&self.path, error);
        let transaction = self.database()?.begin_read().map_err(|error| failed(error.into()))?;
        let table = match transaction.open_table(ABOUT) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(failed(error.into())),
        };
        let value = table.get(key).map_err(|error| failed(error.into()))?;
        value.map(|value| self.decoded("about", key, value.value())).transpose()
    }

    fn decoded<T: DeserializeOwned>(&self, table: &str, key: &str, bytes: &[u8]) -> Result<T, StoreError> {
        serde_json::from_slice(bytes).map_err(|error| damaged(&self.path, format!("table {table}, {key}: {error}")))
    }

    fn read(&self) -> Result<KeptManager, StoreError> {
        let Some(clock) = self.about::<ServiceClock>("clock")? else { return Ok(KeptManager::default()) };
        let admitted = self.about("admitted")?.unwrap_or(0);
        let mut kept = KeptManager { clock, admitted, ..KeptManager::default() };
        let failed = |error: redb::Error| explained(&self.path, error);
        let transaction = self.database()?.begin_read().map_err(|error| failed(error.into()))?;
        let networks = transaction.open_table(NETWORKS).map_err(|error| failed(error.into()))?;
        for item in networks.iter().map_err(|error| failed(error.into()))? {
            let (name, value) = item.map_err(|error| failed(error.into()))?;
            let network = self.decoded("networks", name.value(), value.value())?;
            kept.networks.insert(name.value().to_owned(), network);
        }
        let events = transaction.open_table(EVENTS).map_err(|error| failed(error.into()))?;
        for item in events.iter().map_err(|error| failed(error.into()))? {
            let (number, value) = item.map_err(|error| failed(error.into()))?;
            kept.events.push(self.decoded("events", &number.value().to_string(), value.value())?);
        }
        Ok(kept)
    }
}

fn opened(path: &Path) -> Result<Database, StoreError> {
    // Without the check, a damaged file could end the process later.
    let database = Builder::new().set_check_integrity_on_open(true).create(path);
    database.map_err(|error| explained(path, error.into()))
}

impl StateStore for NetworkStore {
    fn load(&self) -> Result<KeptManager, StoreError> {
        self.read()
    }

    fn write(&mut self, changes: &ManagerChanges) -> Result<(), StoreError> {
        let database = match self.database.take() {
            Some(database) => database,
            None => opened(&self.path)?,
        };
        match written(&database, changes) {
            Ok(()) => {
                self.database = Some(database);
                Ok(())
            }
            // After an error of the disk, a database refuses everything until it is opened again.
            Err(error) => {
                drop(database);
                self.database = opened(&self.path).ok();
                Err(explained(&self.path, error))
            }
        }
    }
}

/// Writes changes in one transaction.
fn written(database: &Database, changes: &ManagerChanges) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut about = transaction.open_table(ABOUT)?;
        about.insert("version", encoded(&VERSION).as_slice())?;
        about.insert("clock", encoded(&changes.clock).as_slice())?;
        about.insert("admitted", encoded(&changes.admitted).as_slice())?;
        let mut networks = transaction.open_table(NETWORKS)?;
        for (name, network) in &changes.networks {
            match network {
                Some(network) => networks.insert(name.as_str(), encoded(network).as_slice())?,
                None => networks.remove(name.as_str())?,
            };
        }
        let mut events = transaction.open_table(EVENTS)?;
        for event in &changes.events {
            events.insert(event.sequence, encoded(event).as_slice())?;
        }
        events.retain(|number, _| number >= changes.first_event)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Returns the JSON of a value. The kept types have no maps with keys that JSON cannot have.
fn encoded(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
