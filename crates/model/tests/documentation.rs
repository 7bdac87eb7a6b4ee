//! Checks that docs/models.md describes every model.
use weir_model::registry::models;

#[test]
fn every_model_is_on_the_page() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models.md");
    let page = std::fs::read_to_string(path).expect("docs/models.md is there");
    let missing: Vec<&str> =
        models().map(|model| model.name).filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "models that the page lacks: {missing:?}");
}
