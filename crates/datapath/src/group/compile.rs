//! Checks the group that a group-mod describes and prepares it for running.
use super::select::SelectHash;
use super::{CompiledBucket, GroupEntry, GroupTable, select};
use crate::action_set::ActionSet;
use crate::validate::{self, ActionListKind, KnownFields};
use std::collections::HashSet;
use weir_openflow::Version;
use weir_openflow::model::error::{BadProperty, GroupModFailed};
use weir_openflow::model::group::{self, BucketId, GroupKind, GroupMod};
use weir_openflow::model::property::RawProperty;
use weir_openflow::model::{Action, ErrorType, GroupId, PortNo};
use weir_openflow::selection::SelectionMethod;
use weir_packet::{FlowKey, FlowMask};
use weir_units::Instant;

/// Properties that a new group takes over from the group it replaces; zero for a group that replaces none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReplacedGroup {
    created: Instant,
    forwarders: u32,
    watchers: u32,
    is_live: bool,
    buckets: usize,
}

impl ReplacedGroup {
    pub(super) fn nothing(now: Instant) -> ReplacedGroup {
        ReplacedGroup { created: now, ..ReplacedGroup::default() }
    }

    pub(super) fn of(group: &GroupEntry) -> ReplacedGroup {
        let (forwarders, watchers, buckets) = (group.forwarders, group.watchers, group.buckets.len());
        ReplacedGroup { created: group.created, forwarders, watchers, is_live: group.is_live, buckets }
    }
}

impl GroupTable {
    /// Compiles the group that a group-mod describes.
    ///
    /// # Errors
    /// The error to reply with.
    pub(super) fn compile(
        &self,
        change: &GroupMod,
        version: Version,
        replaced: ReplacedGroup,
    ) -> Result<GroupEntry, ErrorType> {
        let kind = change.kind;
        if let GroupKind::Unknown(_) = kind {
            return Err(GroupModFailed::BadType.into());
        }
        let count = change.buckets.len();
        if count > self.limits.buckets || self.n_buckets - replaced.buckets + count > self.limits.buckets_in_all {
            return Err(GroupModFailed::OutOfBuckets.into());
        }
        if kind == GroupKind::Indirect && count > 1 {
            return Err(GroupModFailed::InvalidGroup.into());
        }
        let hashed = self.selection(&change.properties, kind)?;
        check_numbers(&change.buckets)?;
        change.buckets.iter().try_for_each(|bucket| check(bucket, kind, version))?;
        let seeds = select::seeds(change.group, &change.buckets);
        let buckets: Box<[CompiledBucket]> =
            change.buckets.iter().zip(seeds).map(|(bucket, seed)| CompiledBucket::new(bucket, seed)).collect();
        let weights = || buckets.iter().map(|bucket| bucket.asked.weight).filter(|weight| *weight > 0);
        let is_even = weights().min() == weights().max();
        let mut group = GroupEntry {
            id: change.group,
            kind,
            buckets,
            properties: change.properties.clone(),
            created: replaced.created,
            level: 0,
            forwarders: replaced.forwarders,
            watchers: replaced.watchers,
            is_live: replaced.is_live,
            is_even,
            hashed,
        };
        self.check_chain(&mut group)?;
        Ok(group)
    }

    /// Returns the hash that a group's properties set, if any. Other properties are refused.
    fn selection(&self, properties: &[RawProperty], kind: GroupKind) -> Result<Option<Box<SelectHash>>, ErrorType> {
        let Some((property, others)) = properties.split_first() else { return Ok(None) };
        let method = SelectionMethod::from_property(property)?;
        if !others.is_empty() {
            return Err(BadProperty::TooMany.into());
        }
        let is_known = match method.name.as_str() {
            "hash" => true,
            "dp_hash" | "" => method.fields.is_empty(),
            _ => false,
        };
        if !is_known || kind != GroupKind::Select {
            return Err(BadProperty::BadExpValue.into());
        }
        Ok(Some(Box::new(self.hashed.with(&method.fields, method.param))))
    }
}

/// Refuses all properties of buckets, because weir supports none.
fn check_properties(properties: &[RawProperty]) -> Result<(), ErrorType> {
    match properties.first() {
        None => Ok(()),
        Some(property) if property.kind == RawProperty::EXPERIMENTER => Err(BadProperty::BadExperimenter.into()),
        Some(_) => Err(BadProperty::BadType.into()),
    }
}

/// Checks that bucket ids are valid and unique.
fn check_numbers(buckets: &[group::Bucket]) -> Result<(), ErrorType> {
    let mut seen = HashSet::new();
    for bucket in buckets {
        if bucket.id > BucketId::MAX {
            return Err(GroupModFailed::BadBucket.into());
        }
        if !seen.insert(bucket.id) {
            return Err(GroupModFailed::BucketExists.into());
        }
    }
    Ok(())
}

/// Checks a bucket's own fields.
fn check(bucket: &group::Bucket, kind: GroupKind, version: Version) -> Result<(), ErrorType> {
    // A group is invalid if it sets fields that its type does not define (OpenFlow 1.3.5, 6.5).
    if bucket.weight != 0 && kind != GroupKind::Select {
        return Err(GroupModFailed::InvalidGroup.into());
    }
    // The port need not exist yet, but its number must be one that a port can have.
    let port = bucket.watch_port;
    let watches = port != PortNo::ANY || bucket.watch_group != GroupId::ANY;
    let is_port = port == PortNo::ANY || port == PortNo::LOCAL || port.is_ordinary();
    if !is_port || kind == GroupKind::FastFailover && !watches {
        return Err(GroupModFailed::BadWatch.into());
    }
    check_properties(&bucket.properties)?;
    // The group's packets are not known, so no action is refused for its packets.
    let known = KnownFields::new(FlowKey::EMPTY, FlowMask::EMPTY);
    validate::actions(&bucket.actions, &known, ActionListKind::Bucket, version)
}

/// Returns a bucket's actions in the order of execution, with only the last action of each type.
fn in_order(bucket: &group::Bucket) -> Box<[Action]> {
    let mut set = ActionSet::default();
    set.write(&bucket.actions);
    set.actions().cloned().collect()
}

impl CompiledBucket {
    fn new(asked: &group::Bucket, seed: u64) -> CompiledBucket {
        CompiledBucket {
            actions: in_order(asked),
            is_live: false,
            seed,
            inverse_weight: 1.0 / f64::from(asked.weight.max(1)),
            asked: asked.clone(),
        }
    }
}
