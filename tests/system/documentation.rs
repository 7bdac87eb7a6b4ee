//! Tests docs/openflow.md, which lists the supported features and the tests that show them: the named tests exist,
//! and no field or error is missing.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use weir_openflow::model::error::{
    AsyncConfigFailed, BadAction, BadInstruction, BadMatch, BadProperty, BadRequest, BundleFailed, FlowModFailed,
    FlowMonitorFailed, GroupModFailed, HelloFailed, MeterModFailed, PortModFailed, QueueOpFailed, RoleRequestFailed,
    SwitchConfigFailed, TableFeaturesFailed, TableModFailed,
};
use weir_packet::Field;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/openflow.md")).expect("docs/openflow.md is there")
}

/// Returns the texts between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_test_named_is_there() {
    let page = page();
    let references: BTreeSet<&str> = quoted(&page).filter(|word| word.contains("::")).collect();
    assert!(references.len() > 100, "only {} tests are named", references.len());
    let missing: Vec<&str> = references.into_iter().filter(|reference| !is_there(reference)).collect();
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}

/// Returns true if a test exists. It is written as crate (or `system`, `conformance`), names in its path, function.
fn is_there(reference: &str) -> bool {
    let mut parts: Vec<&str> = reference.split("::").collect();
    let (Some(function), krate) = (parts.pop(), parts.remove(0)) else { return false };
    let folder = match krate {
        "system" => root().join("tests/system"),
        "conformance" => root().join("tests"),
        krate => root().join("crates").join(krate),
    };
    let mut files = Vec::new();
    rust_files(&folder, &mut files);
    let has_function = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.contains(&format!("fn {function}("))
    };
    let names = |file: &Path| file.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    files.iter().any(|file| {
        let names: BTreeSet<String> = names(file);
        parts.iter().all(|part| *part == "tests" || names.contains(*part)) && has_function(file)
    })
}

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn every_field_is_there() {
    let page = page();
    let words: BTreeSet<&str> = quoted(&page).collect();
    let missing: Vec<&str> = Field::ALL.into_iter().map(Field::name).filter(|name| !words.contains(name)).collect();
    assert!(missing.is_empty(), "fields that the page lacks: {missing:?}");
}

#[test]
fn every_error_is_there() {
    let page = page();
    let words: BTreeSet<&str> = quoted(&page).collect();
    let mut missing = Vec::new();
    macro_rules! look {
        ($($kind:ident),*) => {$(
            let names = (0..64).filter_map($kind::from_number).map($kind::name);
            missing.extend(names.filter(|name| !words.contains(name)));
        )*};
    }
    look!(
        HelloFailed,
        BadRequest,
        BadAction,
        BadInstruction,
        BadMatch,
        FlowModFailed,
        GroupModFailed,
        PortModFailed,
        TableModFailed,
        QueueOpFailed,
        SwitchConfigFailed,
        RoleRequestFailed,
        MeterModFailed,
        TableFeaturesFailed,
        BadProperty,
        AsyncConfigFailed,
        FlowMonitorFailed,
        BundleFailed
    );
    assert!(missing.is_empty(), "errors that the page lacks: {missing:?}");
}
