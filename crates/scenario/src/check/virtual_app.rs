//! Checks the application that controls a virtual switch.
use super::{ScenarioResult, SourceFile};
use crate::document::VirtualSwitchToml;
use crate::{EmbeddedApp, OpenFlowVersion};
use toml::Spanned;
use weir_openflow::Version;
use weir_slicing::VirtualSwitchApp;

/// Returns the application of a virtual switch; `None` if the file names none.
pub(super) fn app(
    source: &SourceFile<'_>,
    name: &str,
    item: &VirtualSwitchToml,
) -> ScenarioResult<Option<VirtualSwitchApp>> {
    let wrong = |span, problem: &str| Err(source.error(span, format!("virtual switch {name}: {problem}")));
    let Some(app) = &item.app else {
        let Some(version) = &item.openflow else { return Ok(None) };
        return wrong(version.span(), "openflow: found it without `app`, expected both, such as app = \"learning\"");
    };
    if item.connect.as_ref().is_some_and(|connect| !connect.0.is_empty()) {
        return wrong(
            app.span(),
            "app: found it with `connect`, expected one of them: the application is a controller",
        );
    }
    if *app.as_ref() != EmbeddedApp::Learning {
        let problem = "app: found \"forwarding\", which controls whole networks, expected \"learning\"";
        return wrong(app.span(), problem);
    }
    let openflow = match item.openflow.as_ref().map(Spanned::as_ref) {
        Some(OpenFlowVersion::V10) => Version::V10,
        Some(OpenFlowVersion::V13) | None => Version::V13,
    };
    Ok(Some(VirtualSwitchApp { name: "learning".to_owned(), openflow }))
}

/// Refuses an application for a virtual switch of a switch that runs on its own. `item` is the checked one.
pub(crate) fn refuse(app: Option<&VirtualSwitchApp>) -> Result<(), String> {
    let Some(app) = app else { return Ok(()) };
    Err(format!(
        "app: found \"{name}\" outside a scenario, where no application runs in the switch's program; expected \
         `connect`, such as connect = \"tcp:127.0.0.1:6653\" with `weir controller --app {name}` there",
        name = app.name
    ))
}
