//! Flow entries that a datapath starts with, as `ovs-ofctl` writes them.
use weir_datapath::Datapath;
use weir_openflow::model::FlowCommand;
use weir_openflow::text;
use weir_units::Instant;

/// Adds entries to a datapath that has its ports.
///
/// # Errors
/// The first that cannot be read, or that the datapath refuses: which, and why.
pub(crate) fn install(datapath: &mut Datapath, now: Instant, entries: &[String]) -> Result<(), String> {
    for entry in entries {
        let wrong = |problem: String| format!("entries: `{entry}`: {problem}");
        let flow = text::parse_flow(entry, FlowCommand::Add).map_err(|error| wrong(error.to_string()))?;
        let added = datapath.flow_mod(now, &flow);
        added.map_err(|error| wrong(format!("the switch refuses it: {}", text::error_name(error))))?;
    }
    Ok(())
}
