//! Reads the groups and entries of a switch that has connected, and compares them with what it should have.
use super::batch::hop_instructions;
use super::entry::{EntryContent, EntryKey, EntryWork};
use super::entry_table::Present;
use super::groups::{GroupContent, SharedGroups};
use super::switch::{COOKIE, SERIAL_BITS, SwitchTables};
use std::sync::Arc;
use weir_openflow::model::group::GroupDesc;
use weir_openflow::model::multipart::{FlowRequest, FlowStats, MultipartRequest, RequestBody};
use weir_openflow::model::{Body, GroupId};

/// How far the tables of a switch are known.
#[derive(Debug, Default)]
pub(super) enum SyncStage {
    /// The switch is not connected.
    #[default]
    Away,
    /// The switch was asked for its groups and entries.
    Reading {
        groups: Vec<GroupDesc>,
        flows: Vec<FlowStats>,
        groups_end: bool,
        flows_end: bool,
    },
    Ready,
}

impl SwitchTables {
    /// Asks a switch that has connected for its groups and entries.
    pub(super) fn connect(&mut self) -> [Body; 2] {
        let (groups, flows, groups_end, flows_end) = Default::default();
        self.stage = SyncStage::Reading { groups, flows, groups_end, flows_end };
        self.forget_present();
        for handle in self.entries.handles() {
            if let Some(desired) = self.entries.get_mut(handle).and_then(|entry| entry.desired.as_mut()) {
                desired.is_refused = false;
                self.enqueue(handle);
            }
        }
        let ask = |body| Body::MultipartRequest(MultipartRequest { more: false, body });
        [ask(RequestBody::GroupDesc(GroupId::ALL)), ask(RequestBody::Flow(FlowRequest::all()))]
    }

    /// Notes that the switch is gone. What it should have is kept.
    pub(super) fn disconnect(&mut self) {
        self.stage = SyncStage::Away;
        self.forget_present();
    }

    fn forget_present(&mut self) {
        self.by_serial.clear();
        self.batches.clear();
        self.queue.clear();
        self.is_urgent = false;
        self.groups = SharedGroups::default();
        (self.confirmed, self.done) = (self.sent, self.queued);
        for handle in self.entries.handles() {
            if let Some(entry) = self.entries.get_mut(handle) {
                (entry.present, entry.leaving, entry.is_queued) = (None, None, false);
            }
            self.entries.forget_if_idle(handle);
        }
    }

    /// Returns true while the switch's tables are read.
    pub(super) fn is_reading(&self) -> bool {
        matches!(self.stage, SyncStage::Reading { .. })
    }

    /// Takes a part of the groups that the switch has.
    pub(super) fn read_groups(&mut self, found: &[GroupDesc], more: bool) {
        if let SyncStage::Reading { groups, groups_end, .. } = &mut self.stage {
            groups.extend(found.iter().cloned());
            *groups_end |= !more;
            self.compare();
        }
    }

    /// Takes a part of the entries that the switch has.
    pub(super) fn read_flows(&mut self, found: &[FlowStats], more: bool) {
        if let SyncStage::Reading { flows, flows_end, .. } = &mut self.stage {
            flows.extend(found.iter().cloned());
            *flows_end |= !more;
            self.compare();
        }
    }

    /// Goes on without groups: the switch has refused to describe them, so it has none.
    pub(super) fn has_no_groups(&mut self) {
        self.read_groups(&[], false);
    }

    /// Compares what the switch has with what it should have, once all is read.
    fn compare(&mut self) {
        let SyncStage::Reading { groups_end: true, flows_end: true, .. } = self.stage else { return };
        let SyncStage::Reading { groups, flows, .. } = std::mem::replace(&mut self.stage, SyncStage::Ready) else {
            return;
        };
        self.groups.adopt(&groups);
        for found in flows {
            let key = EntryKey { table: found.table.0, priority: found.priority, matching: found.matching.clone() };
            let handle = self.entries.track(key.canonical());
            let desired = self.entries.get(handle).and_then(|entry| entry.desired.as_ref());
            let content = desired.map(|desired| Arc::clone(&desired.content));
            let content =
                content.filter(|content| found.cookie & !SERIAL_BITS == COOKIE && self.is_as(&found, content));
            let group = content.as_ref().and_then(|content| self.group_of(content));
            if let Some(group) = group {
                // It exists, since the entry leads to it.
                self.groups.acquire_existing(group);
            }
            let serial = found.cookie & SERIAL_BITS;
            if content.is_some() {
                self.last_serial = self.last_serial.max(serial);
                self.by_serial.insert(serial, handle);
            }
            if let Some(entry) = self.entries.get_mut(handle) {
                entry.present = Some(Present { content, group, serial, batch: self.confirmed });
            }
            self.enqueue(handle);
        }
    }

    fn group_of(&self, content: &EntryContent) -> Option<GroupId> {
        match &content.work {
            EntryWork::Hop(hop) => GroupContent::of(hop).and_then(|content| self.groups.find(&content)),
            EntryWork::Instructions(_) => None,
        }
    }

    fn is_as(&self, found: &FlowStats, content: &EntryContent) -> bool {
        let wanted = match &content.work {
            EntryWork::Instructions(instructions) => instructions.clone(),
            EntryWork::Hop(hop) => match GroupContent::of(hop).map(|content| self.groups.find(&content)) {
                Some(None) => return false,
                group => hop_instructions(hop, group.flatten()),
            },
        };
        let timeouts = (found.idle_timeout, found.hard_timeout);
        wanted == found.instructions && timeouts == (content.idle_timeout, content.hard_timeout)
    }
}
