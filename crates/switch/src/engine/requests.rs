//! Carries out requests of the switch's owner and of the control socket on a logical switch: flow entries, groups,
//! meters, and traces of packets.
use super::channel_table::PART_ENTRIES;
use super::logical::LogicalSwitch;
use super::served::ServedSwitch;
use crate::handle::SwitchError;
use crate::snapshot::TableSnapshot;
use std::time::Duration;
use weir_datapath::{ChannelId, FlowWalk, PipelineTrace, TraceCycles};
use weir_openflow::model::group::{GroupDesc, GroupMod, GroupStats};
use weir_openflow::model::meter::{MeterConfig, MeterMod, MeterStats};
use weir_openflow::model::multipart::{FlowRequest, FlowStats, ReplyBody, RequestBody};
use weir_openflow::model::{FlowMod, GroupId, MeterId, MultipartRequest, PortNo};
use weir_openflow::{Body, Message};
use weir_packet::Frame;

/// Maximum time that one trace measurement takes from forwarding.
const TRACE_SLICE: Duration = Duration::from_micros(40);

/// Flow entries.
impl ServedSwitch<'_> {
    /// Starts a walk through flow entries; [`ServedSwitch::walk`] continues it.
    ///
    /// # Errors
    /// Returns the OpenFlow error that a controller would receive.
    pub(crate) fn flow_walk(&mut self, request: &FlowRequest) -> Result<FlowWalk, SwitchError> {
        let walk = self.logical.datapath.get().flow_walk(request);
        walk.map_err(|error| SwitchError::Request(format!("refused: {error:?}")))
    }

    /// Returns the next flow entries of a walk with their counters, a bounded number, and the walk if there are more.
    pub(crate) fn walk(&mut self, mut walk: FlowWalk) -> (Vec<FlowStats>, Option<FlowWalk>) {
        let mut found = Vec::new();
        let more = self.logical.datapath.get().walk_flows(self.io.now(), &mut walk, PART_ENTRIES, &mut found);
        (found, more.then_some(walk))
    }

    /// Adds, modifies or deletes flow entries.
    ///
    /// # Errors
    /// Returns the OpenFlow error that a controller would receive.
    pub(crate) fn flow_mod(&mut self, flow: &FlowMod) -> Result<(), SwitchError> {
        let now = self.io.now();
        self.logical.datapath.get().flow_mod(now, flow).map_err(SwitchError::FlowMod)?;
        self.logical.expire_at = now;
        Ok(())
    }

    /// Adds the flow entries that the switch starts with.
    ///
    /// # Errors
    /// Fails if an entry cannot be parsed or is refused.
    pub(crate) fn install(&mut self, entries: &[String]) -> Result<(), SwitchError> {
        let now = self.io.now();
        self.logical.datapath.get().add_entries(now, entries).map_err(SwitchError::Request)?;
        self.logical.expire_at = now;
        Ok(())
    }

    /// Returns the tables that hold flow entries or have looked up packets.
    pub(super) fn tables(&mut self) -> Vec<TableSnapshot> {
        let parts = self.ask(RequestBody::Table);
        let tables = parts.into_iter().flat_map(|part| match part {
            ReplyBody::Table(tables) => tables,
            _ => Vec::new(),
        });
        let seen = tables.filter(|table| table.active_count > 0 || table.lookup_count > 0);
        seen.map(|table| TableSnapshot {
            table: table.table.0,
            entries: table.active_count,
            lookups: table.lookup_count,
            matches: table.matched_count,
        })
        .collect()
    }

    /// Sends the datapath a multipart request as a controller would, and returns the parts of the reply.
    pub(crate) fn ask(&mut self, body: RequestBody) -> Vec<ReplyBody> {
        let now = self.io.now();
        let request = Message { xid: 0, body: Body::MultipartRequest(MultipartRequest { more: false, body }) };
        self.logical.datapath.get().handle(now, ChannelId::LOCAL, request, &mut self.io.pool, &mut self.logical.out);
        let (local, others): (Vec<_>, Vec<_>) =
            self.logical.out.messages.drain(..).partition(|(channel, _)| *channel == ChannelId::LOCAL);
        self.logical.out.messages = others;
        self.deliver(now);
        let replies = local.into_iter().filter_map(|(_, message)| match message.body {
            Body::MultipartReply(reply) => Some(reply.body),
            _ => None,
        });
        replies.collect()
    }
}

/// Groups and meters.
impl ServedSwitch<'_> {
    /// Adds, modifies or deletes groups. Channels are notified of flow entries that are removed with a group.
    ///
    /// # Errors
    /// Returns the OpenFlow error that a controller would receive.
    pub(crate) fn group_mod(&mut self, change: &GroupMod) -> Result<(), SwitchError> {
        let now = self.io.now();
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

    /// Adds, modifies or deletes meters. Channels are notified of flow entries that are removed with a meter.
    ///
    /// # Errors
    /// Returns the OpenFlow error that a controller would receive.
    pub(crate) fn meter_mod(&mut self, change: &MeterMod) -> Result<(), SwitchError> {
        let now = self.io.now();
        let changed = self.logical.datapath.get().meter_mod(now, change, &mut self.logical.out);
        self.deliver(now);
        changed.map_err(SwitchError::MeterMod)
    }

    /// Returns the configuration of one meter, or of all, ordered by number.
    ///
    /// # Errors
    /// Fails if there is no such meter.
    pub(crate) fn meters(&mut self, wanted: MeterId) -> Result<Vec<MeterConfig>, SwitchError> {
        self.logical.datapath.get().meter_configs(wanted).map_err(SwitchError::MeterMod)
    }

    /// Returns the counters of one meter, or of all.
    ///
    /// # Errors
    /// Fails if there is no such meter.
    pub(crate) fn meter_stats(&mut self, wanted: MeterId) -> Result<Vec<MeterStats>, SwitchError> {
        self.logical.datapath.get().meter_stats(self.io.now(), wanted).map_err(SwitchError::MeterMod)
    }
}

/// Traces of packets.
impl ServedSwitch<'_> {
    /// Returns what would happen to a frame: tables, flow entries, actions and outputs, with the times of the switch's
    /// profile if it has one. Counters and learned entries do not change.
    ///
    /// # Errors
    /// Fails if there is no such port.
    pub(crate) fn trace(&mut self, in_port: PortNo, frame: &Frame) -> Result<PipelineTrace, SwitchError> {
        self.has_port(in_port)?;
        let LogicalSwitch { timed, datapath, .. } = &mut *self.logical;
        let mut trace = datapath.get().trace(self.io.now(), in_port, frame.bytes());
        if let Some(timed) = timed {
            timed.expect(&mut trace, frame.bytes_len(), datapath.get());
        }
        Ok(trace)
    }

    /// Runs a traced frame's steps repeatedly for a bounded time. Returns how long the steps took, and the rate of
    /// the time stamp counter in counts per nanosecond.
    ///
    /// # Errors
    /// Fails if there is no such port.
    pub(crate) fn time_trace(&mut self, in_port: PortNo, frame: &Frame) -> Result<(TraceCycles, f64), SwitchError> {
        let cycles_per_ns = self.io.cycles_per_ns();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousands")]
        let budget = (TRACE_SLICE.as_nanos() as f64 * cycles_per_ns) as u64;
        self.has_port(in_port)?;
        let took = self.logical.datapath.get().time_trace(self.io.now(), in_port, frame.bytes(), budget);
        Ok((took, cycles_per_ns))
    }
}
