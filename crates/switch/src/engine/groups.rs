//! Changes and reads groups for the control socket.
use super::Engine;
use crate::handle::SwitchError;
use weir_openflow::model::GroupId;
use weir_openflow::model::group::{GroupDesc, GroupMod, GroupStats};
use weir_openflow::model::multipart::{ReplyBody, RequestBody};
use weir_units::Clock;

impl Engine {
    /// Adds, modifies or deletes groups. Channels are notified of flow entries that are removed with a group.
    ///
    /// # Errors
    /// Returns the OpenFlow error that a controller would receive.
    pub(crate) fn group_mod(&mut self, change: &GroupMod) -> Result<(), SwitchError> {
        let now = self.clock.now();
        let changed = self.logical.datapath.get().group_mod(now, change, &mut self.logical.out);
        self.deliver(now);
        changed.map_err(SwitchError::GroupMod)
    }

    /// Returns all groups, ordered by number.
    pub(crate) fn groups(&mut self) -> Vec<GroupDesc> {
        let parts = self.ask(RequestBody::GroupDesc(GroupId::ALL));
        let groups = |part| if let ReplyBody::GroupDesc(groups) = part { groups } else { Vec::new() };
        parts.into_iter().flat_map(groups).collect()
    }

    /// Returns the counters of one group, or of all.
    pub(crate) fn group_stats(&mut self, wanted: GroupId) -> Vec<GroupStats> {
        let parts = self.ask(RequestBody::Group(wanted));
        let groups = |part| if let ReplyBody::Group(groups) = part { groups } else { Vec::new() };
        parts.into_iter().flat_map(groups).collect()
    }
}
