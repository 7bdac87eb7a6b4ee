//! Carries out requests about groups.
use super::flows::{numbered, run_blocking, wrong};
use super::{CtlRequest, DumpedGroup, GroupDump, GroupVerb};
use crate::engine::inbox::EngineClient;
use crate::handle::SwitchError;
use serde_json::{Value, json};
use weir_openflow::model::GroupId;
use weir_openflow::model::group::{GroupCommand, GroupDesc, GroupStats};
use weir_openflow::text;

/// Carries out a request about groups.
///
/// # Errors
/// Fails if the text is wrong or the switch refuses.
pub(super) async fn carry_out(engine: &EngineClient, request: CtlRequest) -> Result<Value, SwitchError> {
    match request {
        CtlRequest::GroupMod { command, group } => {
            let group = numbered(engine, group).await?;
            let change = text::parse_group(&group, command.of_group_mod()).map_err(wrong)?;
            engine.call_served_async(move |served| served.group_mod(&change)).await??;
            Ok(json!({}))
        }
        CtlRequest::DumpGroupStats { group } => {
            let wanted = group.map_or(GroupId::ALL, GroupId);
            let stats = engine.call_served_async(move |served| served.group_stats(wanted)).await?;
            let text = |group: &GroupStats| DumpedGroup { text: text::format_group_stats(group), group: json!(group) };
            run_blocking(move || json!(GroupDump { groups: stats.iter().map(text).collect() })).await
        }
        _ => {
            let groups = engine.call_served_async(|served| served.groups()).await?;
            let text = |group: &GroupDesc| DumpedGroup { text: text::format_group(group), group: json!(group) };
            run_blocking(move || json!(GroupDump { groups: groups.iter().map(text).collect() })).await
        }
    }
}

impl GroupVerb {
    /// Returns the command of the group-mod.
    fn of_group_mod(self) -> GroupCommand {
        match self {
            GroupVerb::Add => GroupCommand::Add,
            GroupVerb::Modify => GroupCommand::Modify,
            GroupVerb::Delete => GroupCommand::Delete,
        }
    }
}
