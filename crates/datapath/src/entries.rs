//! Adds the flow entries a datapath starts with, in the syntax of `ovs-ofctl`.
use crate::Datapath;
use weir_openflow::model::FlowCommand;
use weir_openflow::text;
use weir_units::Instant;

impl Datapath {
    /// Adds flow entries, such as `in_port=1,actions=output:2`, from configuration. The ports they name should exist
    /// already.
    ///
    /// # Errors
    /// The message names the first entry that cannot be parsed or is refused, and the reason. Entries before it have
    /// been added.
    pub fn add_entries(&mut self, now: Instant, entries: &[String]) -> Result<(), String> {
        for entry in entries {
            let wrong = |problem: String| format!("entries: `{entry}`: {problem}");
            let flow = text::parse_flow(entry, FlowCommand::Add).map_err(|error| wrong(error.to_string()))?;
            let added = self.flow_mod(now, &flow);
            added.map_err(|error| wrong(format!("the switch refuses it: {}", text::error_name(error))))?;
        }
        Ok(())
    }
}
