//! Handles group-mods and requests about groups (OpenFlow 1.3.5, 7.3.4.3 and 7.3.5.9 to 7.3.5.11).
use super::AgentRequest;
use crate::flow_mod::EntrySweep;
use crate::group::{GroupModContext, GroupWalk};
use crate::journal::UndoRecord;
use crate::{Datapath, DatapathOutput};
use weir_openflow::Version;
use weir_openflow::model::group::{GroupFeatures, GroupMod, GroupStats};
use weir_openflow::model::{ActionType, ErrorType};
use weir_units::Instant;

impl Datapath {
    /// Applies a controller's group-mod.
    pub(super) fn group_mod_of(&mut self, change: &GroupMod, request: &mut AgentRequest<'_>) -> Result<(), ErrorType> {
        self.change_groups(request.now, change, request.version, request.out)
    }

    /// Applies a group-mod as `version` defines it. Flow entries that use a deleted group are removed with it, and
    /// channels get flow-removed messages ([`Datapath::sweep`]).
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn change_groups(
        &mut self,
        now: Instant,
        change: &GroupMod,
        version: Version,
        out: &mut DatapathOutput,
    ) -> Result<(), ErrorType> {
        let plane = &mut self.plane;
        self.journal.note(|| UndoRecord::Groups(Box::new(self.groups.save(change.group, &plane.groups))));
        let around = GroupModContext { now, version, ports: &plane.ports, counters: &mut plane.groups };
        if let Some(group) = self.groups.apply(change, around)? {
            self.sweep(now, EntrySweep::with_group(group), out);
        }
        Ok(())
    }

    /// Continues a walk over groups. Returns the statistics of the groups visited, and true if groups remain.
    pub(super) fn group_stats(&self, now: Instant, walk: &mut GroupWalk, most: usize) -> (Vec<GroupStats>, bool) {
        let entries = |group| self.tables.iter().map(|table| table.entries_of_group(group)).sum();
        self.groups.stats(now, walk, most, &self.plane.groups, entries)
    }

    pub(super) fn group_features(&self, version: Version) -> GroupFeatures {
        let actions =
            super::table_features::actions_of(Some(version)).map(ActionType::number).filter(|number| *number < 32);
        self.groups.features(actions.fold(0, |bits, number| bits | 1 << number))
    }
}
