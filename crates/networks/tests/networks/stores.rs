//! Stores that are full, damaged, in use, or of another version.
use super::{Bench, OPERATOR, active, at, link, settle, store};
use redb::{Database, TableDefinition};
use std::path::Path;
use std::process::Command;
use weir_networks::service::NetworkServiceError;
use weir_networks::store::{NetworkStore, StoreError};

#[test]
fn a_store_that_is_no_store_or_in_use_is_refused() {
    let bench = Bench::new();
    let first = store(&bench.file());
    let error = NetworkStore::open(&bench.file()).unwrap_err().to_string();
    assert!(error.contains("networks.store: another process has it open"), "{error}");
    drop(first);
    let text = bench.folder.path().join("notes");
    std::fs::write(&text, "These are notes, and no store at all.\n".repeat(300)).unwrap();
    let error = NetworkStore::open(&text).unwrap_err().to_string();
    assert!(error.contains("notes: it is damaged, or no store") && error.contains("put a copy of it back"), "{error}");
    let missing = bench.folder.path().join("no/such/folder");
    let error = NetworkStore::open(&missing).unwrap_err().to_string();
    assert!(error.contains("check that its folder exists"), "{error}");
}

#[test]
fn a_damaged_store_is_refused() {
    let bench = Bench::new();
    let mut service = bench.open();
    active(&mut service, &link("gold", ["a1", "a3"], "'20Mbit/s'"), at(0));
    drop(service);
    let mut bytes = std::fs::read(bench.file()).unwrap();
    // Earlier versions of a page stay in the file; each is damaged.
    let found: Vec<usize> = (0..bytes.len() - 5).filter(|at| bytes[*at..].starts_with(b"gold-")).collect();
    assert!(!found.is_empty());
    found.into_iter().for_each(|at| bytes[at] ^= 1);
    std::fs::write(bench.file(), bytes).unwrap();
    let error = NetworkStore::open(&bench.file()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("it is damaged"), "{error}");
}

#[test]
fn a_store_of_another_version_is_refused() {
    let bench = Bench::new();
    active(&mut bench.open(), &link("gold", ["a1", "a3"], "'20Mbit/s'"), at(0));
    let database = Database::create(bench.file()).unwrap();
    let transaction = database.begin_write().unwrap();
    let about = TableDefinition::<&str, &[u8]>::new("about");
    transaction.open_table(about).unwrap().insert("version", b"2".as_slice()).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = NetworkStore::open(&bench.file()).unwrap_err().to_string();
    assert!(error.contains("networks.store: found version 2, expected 1: use the weir that made it"), "{error}");
}

/// File system of a few megabytes in memory, unmounted when it is dropped.
struct SmallDisk<'a>(&'a Path);

impl SmallDisk<'_> {
    fn mounted(at: &Path) -> SmallDisk<'_> {
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(at).status().unwrap();
        assert!(done.success());
        SmallDisk(at)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_store_refuses_requests_and_changes_nothing() {
    if !weir_testing::root() || !weir_testing::programs(&["mount", "umount"]) {
        return;
    }
    let bench = Bench::new();
    let _disk = SmallDisk::mounted(bench.folder.path());
    let mut service = bench.open();
    active(&mut service, &link("gold", ["a1", "a3"], "'20Mbit/s'"), at(0));
    let before = bench.switches.all();
    let filler = bench.folder.path().join("filler");
    assert!(std::fs::write(&filler, vec![1; 8 << 20]).is_err(), "the disk is full now");
    let mut refused = None;
    for round in 0..200 {
        let request = link("tin", ["b1", "b2"], "'1Mbit/s'");
        let asked = service.change(|manager| manager.request(&OPERATOR, &request, at(round)));
        let asked = asked.and_then(|()| service.change(|manager| manager.release(&OPERATOR, "tin", at(round))));
        if let Err(error) = asked {
            refused = Some(error);
            break;
        }
    }
    let refused = refused.expect("the store needs room at some time");
    assert!(matches!(refused, NetworkServiceError::Store(StoreError::Full { .. })), "{refused:?}");
    assert!(refused.to_string().contains("networks.store: No space left on device"), "{refused}");
    assert!(refused.to_string().ends_with("nothing was changed: make room on its disk, and ask again"), "{refused}");
    assert_eq!(bench.switches.all(), before);
    std::fs::remove_file(filler).unwrap();
    settle(&mut service, at(1000));
    let more = link("more", ["b2", "b3"], "'1Mbit/s'");
    active(&mut service, &more, at(1000));
}
