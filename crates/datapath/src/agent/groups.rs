//! Handles group-mods and requests about groups (OpenFlow 1.3.5, 7.3.4.2 and 7.3.5.9 to 7.3.5.11).
use super::RestOfSweep;
use crate::flow_mod::EntrySweep;
use crate::group::{GroupModContext, GroupTable};
use crate::journal::UndoRecord;
use crate::{Datapath, DatapathOutput, flow_tables};
use weir_openflow::Version;
use weir_openflow::model::group::{GroupFeatures, GroupMod};
use weir_openflow::model::{ActionType, ErrorType};
use weir_units::Instant;

impl Datapath {
    /// Applies a group-mod as `version` defines it. Flow entries that use a deleted group are removed with it, and
    /// channels get flow-removed messages. Returns the rest of that work if there are many.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn change_groups(
        &mut self,
        now: Instant,
        change: &GroupMod,
        version: Version,
        out: &mut DatapathOutput,
    ) -> Result<Option<RestOfSweep>, ErrorType> {
        let plane = &mut self.plane;
        self.journal.note(|| UndoRecord::Groups(Box::new(self.groups.save(change.group, &plane.groups))));
        let around = GroupModContext { now, version, ports: &plane.ports, counters: &mut plane.groups };
        let deleted = self.groups.apply(change, around)?;
        Ok(deleted.and_then(|group| self.sweep(now, EntrySweep::with_group(group), out)))
    }
}

/// Returns the features of groups as a version describes them.
pub(super) fn group_features(groups: &GroupTable, version: Version) -> GroupFeatures {
    let actions = flow_tables::actions_of(Some(version)).map(ActionType::number).filter(|number| *number < 32);
    groups.features(actions.fold(0, |bits, number| bits | 1 << number))
}
