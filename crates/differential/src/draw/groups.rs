//! Draws group-mods, meter-mods and bundles.
use super::CaseGenerator;
use crate::CaseStep;
use weir_openflow::model::bundle::{BundleAdd, BundleCommand, BundleControl, BundleFlags, BundleId};
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterMod, flags};
use weir_openflow::model::{Action, GroupId, Match, Message, MeterId, NxAction, PortNo};
use weir_openflow::{Body, Version};

/// Highest number of groups and meters; the lowest is 1.
pub(super) const NUMBERS: u32 = 3;

impl CaseGenerator {
    /// Draws group-mods that add groups.
    pub(super) fn groups(&mut self) -> Vec<CaseStep> {
        let count = self.dice.between(1, NUMBERS);
        let groups: Vec<_> = (0..count).map(|_| self.group(GroupCommand::Add)).collect();
        self.groups.extend(groups.iter().map(|group| group.group.0));
        groups.into_iter().map(Body::GroupMod).map(CaseStep::Message).collect()
    }

    fn group(&mut self, command: GroupCommand) -> GroupMod {
        use GroupKind::{All, FastFailover, Indirect, Select};
        let number = GroupId(self.dice.between(1, NUMBERS));
        // Select groups have at most one bucket, because each switch selects by its own hash.
        let kind = *self.dice.pick(&[All, All, Select, Indirect, Indirect, FastFailover]);
        let most = if matches!(kind, Select | Indirect) { 1 } else { 3 };
        let few = if kind == Indirect { 1 } else { 0 };
        let buckets = (0..self.dice.between(few, most)).map(|id| self.bucket(id, kind)).collect();
        let group = if self.dice.one_in(60) { GroupId(self.dice.word()) } else { number };
        GroupMod { command, kind, group, command_bucket: BucketId::ALL, buckets, properties: Vec::new() }
    }

    fn bucket(&mut self, id: u32, kind: GroupKind) -> Bucket {
        let mut actions = self.entry_actions(&Match::any());
        // Few chains of groups, because the length at which a chain is stopped depends on the switch.
        actions.retain(|action| !matches!(action, Action::Group(_)) || self.dice.one_in(4));
        // The effect of a copy in a bucket is not specified.
        actions.retain(|action| !matches!(action, Action::Nx(nx) if matches!(**nx, NxAction::Clone(_))));
        let mut bucket = Bucket::new(BucketId(id), actions);
        if kind == GroupKind::Select || self.dice.one_in(60) {
            bucket.weight = u16::from(self.dice.byte() & 3);
        }
        if kind == GroupKind::FastFailover || self.dice.one_in(60) {
            bucket.watch_port = if self.dice.one_in(20) { PortNo::ANY } else { PortNo(self.dice.between(1, 5)) };
        }
        if kind == GroupKind::FastFailover && self.dice.one_in(10) {
            bucket.watch_group = GroupId(self.dice.between(1, NUMBERS));
        }
        bucket
    }

    /// Draws a group-mod with any command.
    pub(super) fn group_change(&mut self) -> GroupMod {
        use GroupCommand as G;
        let command = match self.dice.between(0, 9) {
            0..=2 => G::Add,
            3..=5 => G::Modify,
            8 if self.version >= Version::V15 => G::InsertBucket,
            9 if self.version >= Version::V15 => G::RemoveBucket,
            _ => G::Delete,
        };
        let mut change = self.group(command);
        if command == G::InsertBucket && change.buckets.is_empty() {
            // Open vSwitch 3.1 stops answering after an insertion of no bucket.
            change.buckets.push(self.bucket(7, change.kind));
        }
        if matches!(command, G::InsertBucket | G::RemoveBucket) {
            change.command_bucket = *self.dice.pick(&[BucketId::FIRST, BucketId::LAST, BucketId(0), BucketId(1)]);
            if command == G::RemoveBucket && self.dice.one_in(4) {
                change.command_bucket = BucketId::ALL;
            }
        }
        if matches!(command, G::Delete | G::RemoveBucket) {
            change.buckets.clear();
            if self.dice.one_in(6) && command == G::Delete {
                change.group = GroupId::ALL;
            }
        }
        change
    }

    /// Draws meter-mods that add meters.
    pub(super) fn meters(&mut self) -> Vec<CaseStep> {
        let count = self.dice.between(1, 2);
        let meters: Vec<_> = (0..count).map(|_| self.meter(MeterCommand::Add)).collect();
        self.meters.extend(meters.iter().map(|meter| meter.meter.0));
        meters.into_iter().map(Body::MeterMod).map(CaseStep::Message).collect()
    }

    fn meter(&mut self, command: MeterCommand) -> MeterMod {
        let meter = MeterId(if self.dice.one_in(60) { self.dice.word() } else { self.dice.between(1, NUMBERS) });
        let unit = *self.dice.pick(&[flags::KBPS, flags::PKTPS]);
        let mut bits = unit | flags::BURST;
        if self.dice.one_in(4) {
            bits |= flags::STATS;
        }
        if self.dice.one_in(40) {
            bits = self.dice.short() & 0x1f;
        }
        let bands = (0..if self.dice.one_in(8) { self.dice.between(0, 2) } else { 1 }).map(|_| self.band()).collect();
        MeterMod { command, flags: bits, meter, bands }
    }

    fn band(&mut self) -> Band {
        // The rate is never reached: the size of a burst that a meter lets through depends on the switch.
        let (rate, burst_size) = (1_000_000 + self.dice.between(0, 9), 1_000_000);
        let kind = if self.dice.one_in(12) { BandKind::DscpRemark { prec_level: 1 } } else { BandKind::Drop };
        Band { rate, burst_size, kind }
    }

    /// Draws a meter-mod with any command.
    pub(super) fn meter_change(&mut self) -> MeterMod {
        let command = *self.dice.pick(&[MeterCommand::Add, MeterCommand::Modify, MeterCommand::Delete]);
        let mut change = self.meter(command);
        if command == MeterCommand::Delete {
            change.bands.clear();
            change.flags = 0;
            if self.dice.one_in(4) {
                change.meter = MeterId::ALL;
            }
        }
        change
    }

    /// Draws a complete bundle, from opening to commit or discard.
    pub(super) fn bundle(&mut self, has_groups: bool) -> Vec<CaseStep> {
        use BundleCommand::{CloseRequest, CommitRequest, DiscardRequest, OpenRequest};
        let bundle = BundleId(self.dice.between(1, 2));
        let flags = BundleFlags(if self.dice.one_in(3) { *self.dice.pick(&[0, 1, 2]) } else { 3 });
        let mut bodies = vec![control(bundle, OpenRequest, flags)];
        // Members of an unordered bundle may be executed in any order (OpenFlow 1.4.1, 7.3.9.5), so there is at most
        // one.
        let most = if flags.contains(BundleFlags::ORDERED) { 3 } else { 1 };
        for _ in 0..self.dice.between(0, most) {
            let body = self.member(has_groups);
            let message = Box::new(Message { xid: 0, body });
            bodies.push(Body::BundleAdd(BundleAdd { bundle, flags, message, properties: Vec::new() }));
        }
        if self.dice.one_in(2) {
            bodies.push(control(bundle, CloseRequest, flags));
        }
        bodies.push(control(bundle, if self.dice.one_in(5) { DiscardRequest } else { CommitRequest }, flags));
        if self.dice.one_in(6) {
            // A message is missing or repeated.
            let at = self.dice.index(bodies.len());
            if self.dice.one_in(2) {
                bodies.remove(at);
            } else {
                let again = bodies[at].clone();
                bodies.insert(at, again);
            }
        }
        bodies.into_iter().map(CaseStep::Message).collect()
    }

    fn member(&mut self, has_groups: bool) -> Body {
        loop {
            let body = match self.change_of_bundle(has_groups) {
                Some(body) => body,
                None => continue,
            };
            if crate::case::bytes_of(&body, 1, self.version).is_some() {
                return body;
            }
        }
    }

    fn change_of_bundle(&mut self, has_groups: bool) -> Option<Body> {
        use weir_openflow::model::FlowCommand::{Delete, Modify};
        match self.dice.between(0, 9) {
            0..=4 => Some(Body::FlowMod(self.add())),
            5 if !(self.has_pauses && self.has_hard_timeouts) => Some(Body::FlowMod(self.with_command(Modify))),
            6 => Some(Body::FlowMod(self.with_command(Delete))),
            // No deletes: Open vSwitch 3.1 exits with a failed assertion (`group != NULL`) if a later member fails
            // and the entries deleted with a group must be restored.
            7 | 8 if has_groups => {
                Some(self.group_change()).filter(|change| change.command != GroupCommand::Delete).map(Body::GroupMod)
            }
            9 if self.dice.one_in(4) => Some(Body::BarrierRequest),
            _ => None,
        }
    }
}

fn control(bundle: BundleId, command: BundleCommand, flags: BundleFlags) -> Body {
    Body::BundleControl(BundleControl { bundle, command, flags, properties: Vec::new() })
}
