//! Groups: packets in groups, group-mods, errors and statistics.
mod buckets;
mod changes;
mod errors;
mod insert_remove;
mod random;
mod selection;
mod shares;
mod statistics;

use crate::bench::*;
use weir_openflow::model::group::GroupCommand::{Add, Delete, Modify};
use weir_openflow::model::group::GroupKind::{All, FastFailover, Indirect, Select};
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::{Action, Body, ErrorType, GroupId, Match, PortNo};

/// Returns a bucket that watches nothing.
fn bucket(actions: Vec<Action>) -> Bucket {
    Bucket::new(BucketId(0), actions)
}

/// Returns a bucket that watches the port it outputs to.
fn watching(port: u32) -> Bucket {
    Bucket { watch_port: PortNo(port), ..bucket(output(port)) }
}

/// Returns a bucket of a select group.
fn weighing(weight: u16, actions: Vec<Action>) -> Bucket {
    Bucket { weight, ..bucket(actions) }
}

fn to_group(group: u32) -> Vec<Action> {
    vec![Action::Group(GroupId(group))]
}

fn group_mod(command: GroupCommand, group: u32, kind: GroupKind, buckets: Vec<Bucket>) -> GroupMod {
    let buckets = numbered(buckets);
    GroupMod { command, kind, group: GroupId(group), command_bucket: BucketId::ALL, buckets, properties: vec![] }
}

/// Numbers buckets by their position, as 1.3 does.
fn numbered(buckets: Vec<Bucket>) -> Vec<Bucket> {
    (0..).map(BucketId).zip(buckets).map(|(id, bucket)| Bucket { id, ..bucket }).collect()
}

impl Bench {
    /// Sends a group-mod. Returns the error that answers it, if there is one.
    fn group(&mut self, command: GroupCommand, group: u32, kind: GroupKind, buckets: Vec<Bucket>) -> Option<ErrorType> {
        self.error_of(CONTROLLER, Body::GroupMod(group_mod(command, group, kind, buckets)))
    }

    /// Adds a group.
    fn add_group(&mut self, group: u32, kind: GroupKind, buckets: Vec<Bucket>) {
        assert_eq!(self.group(Add, group, kind, buckets), None);
    }

    /// Sends all packets to a group.
    fn all_to_group(&mut self, group: u32) {
        self.add(1, Match::any(), to_group(group));
    }

    /// Sets whether a port has link.
    fn link(&mut self, port: u32, up: bool) {
        self.datapath.set_link(self.now, PortNo(port), up, 1_000_000, &mut self.out);
        self.told(CONTROLLER);
    }
}
