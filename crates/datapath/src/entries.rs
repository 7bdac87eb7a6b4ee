//! Flow entries that a datapath starts with, as `ovs-ofctl` writes them.
use crate::Datapath;
use weir_openflow::model::FlowCommand;
use weir_openflow::text;
use weir_units::Instant;

impl Datapath {
    /// Adds flow entries, such as `in_port=1,actions=output:2`, from configuration. Ports that they name are to be there.
    ///
    /// # Errors
    /// The first that cannot be read, or that is refused: which, and why. Those before it are added.
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
