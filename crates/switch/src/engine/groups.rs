//! Groups, for the control socket.
use super::Engine;
use crate::handle::SwitchError;
use weir_openflow::model::GroupId;
use weir_openflow::model::group::{GroupDesc, GroupMod, GroupStats};
use weir_openflow::model::multipart::{ReplyBody, RequestBody};
use weir_units::Clock;

impl Engine {
    /// Adds, modifies or deletes groups; channels are told of flow entries that go with one.
    ///
    /// # Errors
    /// What a controller would be answered.
    pub(crate) fn group_mod(&mut self, change: &GroupMod) -> Result<(), SwitchError> {
        let now = self.clock.now();
        let changed = self.logical.datapath.get().group_mod(now, change, &mut self.logical.out);
        self.deliver(now);
        changed.map_err(SwitchError::GroupMod)
    }

    /// All groups, in order of their numbers.
    pub(crate) fn groups(&mut self) -> Vec<GroupDesc> {
        let parts = self.ask(RequestBody::GroupDesc(GroupId::ALL));
        let groups = |part| if let ReplyBody::GroupDesc(groups) = part { groups } else { Vec::new() };
        parts.into_iter().flat_map(groups).collect()
    }

    /// The counters of a group, or of all.
    pub(crate) fn group_stats(&mut self, wanted: GroupId) -> Vec<GroupStats> {
        let parts = self.ask(RequestBody::Group(wanted));
        let groups = |part| if let ReplyBody::Group(groups) = part { groups } else { Vec::new() };
        parts.into_iter().flat_map(groups).collect()
    }
}
