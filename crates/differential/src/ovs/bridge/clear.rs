//! Clears a bridge after a case.
use super::{ASIDE, MARKER, OvsBridge, PART_ENDS};
use crate::case::bytes_of;
use crate::outcome;
use anyhow::Context as _;
use std::io::Write as _;
use weir_openflow::Body;
use weir_openflow::model::bundle::{BundleCommand, BundleControl, BundleFlags, BundleId};
use weir_openflow::model::group::{BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::meter::{MeterCommand, MeterMod};
use weir_openflow::model::{FlowCommand, FlowFlags, FlowMod, GroupId, Match, MeterId};
use weir_packet::Field;

/// Cookie of the entry that is added and deleted after a case.
const CASE_TOLD: u64 = 0xfeed_0000_0000_0001;

/// Maximum number of barriers sent while notices are missing.
const PATIENCE: usize = 100;

/// Highest number of a bundle that cases open.
const BUNDLES: u32 = 2;

impl OvsBridge {
    /// Sends the messages that clear the bridge after a case.
    pub(in crate::ovs) fn send_clear(&mut self) -> anyhow::Result<()> {
        if self.case.is_none() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for bundle in 0..=BUNDLES {
            let (command, flags) = (BundleCommand::DiscardRequest, BundleFlags::default());
            let discard = BundleControl { bundle: BundleId(bundle), command, flags, properties: Vec::new() };
            bytes.extend(bytes_of(&Body::BundleControl(discard), ASIDE, self.version).unwrap_or_default());
        }
        // The case's last step has deleted the entries.
        bytes.extend(self.sentinel());
        bytes.extend(bytes_of(&Body::GroupMod(every_group()), ASIDE, self.version).unwrap_or_default());
        bytes.extend(bytes_of(&Body::MeterMod(every_meter()), ASIDE, self.version).unwrap_or_default());
        bytes.extend(self.bytes(&Body::BarrierRequest, PART_ENDS));
        self.channel.write_all(&bytes).context("sending to Open vSwitch")
    }

    /// Waits until the bridge is clear, and for the last notices of the case, `expected` in total.
    ///
    /// Notices of removed entries arrive later than answers: most often, but not always, before the notice of an
    /// entry that was removed after them. If fewer than expected have arrived, the wait is extended.
    pub(in crate::ovs) fn receive_clear(&mut self, expected: usize) -> anyhow::Result<()> {
        if self.case.is_none() {
            return Ok(());
        }
        let (mut is_told, mut is_over) = (false, false);
        let mut patience = PATIENCE;
        loop {
            if is_told && is_over {
                if self.outcome.told.len() >= expected || patience == 0 {
                    return Ok(());
                }
                (patience, is_over) = (patience - 1, false);
                self.channel.write_all(&self.bytes(&Body::BarrierRequest, PART_ENDS))?;
            }
            for (xid, bytes) in self.read()? {
                match outcome::told(&bytes) {
                    Ok(Body::BarrierReply) if xid == PART_ENDS => is_over = true,
                    Ok(Body::FlowRemoved(removed)) if removed.cookie == CASE_TOLD => is_told = true,
                    told if xid != ASIDE => self.outcome.told.push((None, told)),
                    _ => {}
                }
            }
        }
    }

    /// Returns messages that add an entry and delete it, which causes a notice.
    fn sentinel(&self) -> Vec<u8> {
        let cookie = CASE_TOLD;
        let matching = Match::any().with(Field::EthType, MARKER);
        let add = FlowMod { cookie, flags: FlowFlags::SEND_FLOW_REM, ..FlowMod::add(0xffff, matching, Vec::new()) };
        let delete = FlowMod { command: FlowCommand::DeleteStrict, ..add.clone() };
        [add, delete].into_iter().flat_map(|flow| self.bytes(&Body::FlowMod(flow), ASIDE)).collect()
    }
}

fn every_group() -> GroupMod {
    GroupMod {
        command: GroupCommand::Delete,
        kind: GroupKind::All,
        group: GroupId::ALL,
        command_bucket: BucketId::ALL,
        buckets: Vec::new(),
        properties: Vec::new(),
    }
}

fn every_meter() -> MeterMod {
    MeterMod { command: MeterCommand::Delete, flags: 0, meter: MeterId::ALL, bands: Vec::new() }
}
