//! The OpenFlow agent: handles each message of a controller and answers it.
mod bundle;
mod commit;
mod delayed;
mod features;
mod groups;
mod incomplete_requests;
mod meters;
mod monitors;
mod multipart;
mod nicira;
mod packet_out;
mod port_mod;
mod settings;
mod sweeps;
mod unfinished_work;
mod walk;

pub(crate) use commit::BundleCommit;
pub(crate) use delayed::{bundle_subjects, refuse_bundle, subject};
pub(crate) use incomplete_requests::IncompleteRequests;
pub(crate) use sweeps::{RestOfSweep, SweepJob};
pub(crate) use unfinished_work::UnfinishedWork;
pub(crate) use walk::ReplySource;
pub use walk::{LongReply, ReplyProgress};

use crate::channels::{RequestForwardReason, refusal};
use crate::version_semantics::FlowModSemantics;
use crate::{ChannelId, Datapath, DatapathOutput};
use weir_openflow::Version;
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::multipart::RequestBody;
use weir_openflow::model::nicira::{NICIRA, NxMessage};
use weir_openflow::model::port::PortStatusReason;
use weir_openflow::model::role::Role;
use weir_openflow::model::{Body, BufferId, ErrorType, Experimenter, FlowCommand, FlowMod, Message};
use weir_packet::FramePool;
use weir_units::Instant;

/// The message being handled, with the state needed to answer it.
pub(crate) struct AgentRequest<'a> {
    pub(crate) now: Instant,
    pub(crate) channel: ChannelId,
    pub(crate) version: Version,
    xid: u32,
    pub(crate) pool: &'a mut FramePool,
    pub(crate) out: &'a mut DatapathOutput,
}

impl AgentRequest<'_> {
    /// Returns the message's channel and transaction id.
    fn by(&self) -> (ChannelId, u32) {
        (self.channel, self.xid)
    }

    fn reply(&mut self, body: Body) {
        self.out.messages.push((self.channel, Message { xid: self.xid, body }));
    }
}

impl<'a> AgentRequest<'a> {
    pub(crate) fn new(
        now: Instant,
        channel: ChannelId,
        version: Version,
        xid: u32,
        pool: &'a mut FramePool,
        out: &'a mut DatapathOutput,
    ) -> AgentRequest<'a> {
        AgentRequest { now, channel, version, xid, pool, out }
    }
}

/// Handles a message; see [`Datapath::handle`].
pub(crate) fn handle(
    datapath: &mut Datapath,
    now: Instant,
    channel: ChannelId,
    message: Message,
    pool: &mut FramePool,
    out: &mut DatapathOutput,
) {
    // A channel that is not up (any more) gets no answer.
    let Some(version) = datapath.plane.channels.version(channel) else { return };
    datapath.journal.by = Some((datapath.plane.channels.main_of(channel), message.xid));
    let mut request = AgentRequest::new(now, channel, version, message.xid, pool, out);
    match datapath.answer(&message.body, &mut request) {
        Err(error) => {
            request.out.messages.push((channel, refusal(&message, version, error)));
        }
        Ok(Some(rest)) => {
            datapath.work = UnfinishedWork::Job(Box::new(SweepJob::new(channel, version, message, rest)));
        }
        Ok(None) => {
            // The message is moved, because copying it would take longer than everything else.
            if let Body::BundleAdd(add) = message.body {
                datapath.bundles.keep(channel, add);
            }
        }
    }
    datapath.settle(now, out);
}

impl Datapath {
    /// Finishes the handling of a message: adds learned entries and sends the notices that its changes cause.
    pub(crate) fn settle(&mut self, now: Instant, out: &mut DatapathOutput) {
        if !self.plane.to_learn.is_empty() && !self.is_busy() {
            self.learn(now, out);
        }
        self.journal.by = None;
        self.monitors.tell(&mut self.journal, &self.plane.channels, out);
        self.tables.tell_vacancy(&self.plane.channels, out);
    }

    /// Answers a message. Returns the rest of the work if the message changes many entries.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn answer(
        &mut self,
        body: &Body,
        request: &mut AgentRequest<'_>,
    ) -> Result<Option<RestOfSweep>, ErrorType> {
        if changes_state(body) && self.plane.channels.role_of(request.channel) == Role::Slave {
            return Err(BadRequest::IsSlave.into());
        }
        match body {
            Body::FeaturesRequest => {
                let reply = features::features(&self.config, &self.plane, request.version, request.channel);
                request.reply(Body::FeaturesReply(reply));
            }
            Body::GetConfigRequest => {
                let config = settings::switch_config(self.drops_fragments, &self.plane.channels, request.channel);
                request.reply(Body::GetConfigReply(config));
            }
            Body::SetConfig(config) => {
                settings::set_switch_config(&mut self.drops_fragments, &mut self.plane.channels, *config, request)?;
            }
            Body::FlowMod(flow) => {
                return self.handle_flow_mod(flow, FlowModSemantics::of(flow, request.version), request);
            }
            Body::PacketOut(packet) => self.packet_out(packet, request)?,
            Body::PortMod(change) => {
                let changed = port_mod::port_mod(&mut self.plane.ports, &mut self.journal, change, request)?;
                if let Some(desc) = changed {
                    self.port_changed(PortStatusReason::Modify, desc, request.out);
                }
            }
            Body::TableMod(change) => self.tables.table_mod(change, request.version, &mut self.journal)?,
            Body::GroupMod(change) => {
                let rest = self.change_groups(request.now, change, request.version, request.out)?;
                self.plane.channels.forward_request(RequestForwardReason::GroupMod, request.by(), body, request.out);
                return Ok(rest);
            }
            Body::MeterMod(change) => {
                let rest = self.change_meters(request.now, change, request.out)?;
                self.plane.channels.forward_request(RequestForwardReason::MeterMod, request.by(), body, request.out);
                return Ok(rest);
            }
            Body::MultipartRequest(asked) => {
                if let Some(whole) = self.incomplete.complete(asked, request)? {
                    return self.multipart(&whole, request);
                }
            }
            // Every message is handled to its end before the next, so a barrier has nothing to wait for.
            Body::BarrierRequest => request.reply(Body::BarrierReply),
            Body::EchoRequest(data) => request.reply(Body::EchoReply(data.clone())),
            Body::QueueGetConfigRequest(port) => {
                let queues = self.plane.ports.queue_config(*port, request.version)?;
                request.reply(Body::QueueGetConfigReply(queues));
            }
            Body::RoleRequest(asked) => settings::role_request(&mut self.plane.channels, *asked, request)?,
            Body::GetAsyncRequest => {
                request.reply(Body::GetAsyncReply(self.plane.channels.async_config(request.channel)))
            }
            Body::SetAsync(config) => self.plane.channels.set_async_config(request.channel, config),
            Body::BundleControl(control) => self.bundle_control(control, request)?,
            Body::BundleAdd(add) => bundle::bundle_add(&mut self.bundles, add, request)?,
            Body::Nx(message) => return self.nicira(message, request),
            Body::Experimenter(Experimenter { id: NICIRA, .. }) => return Err(BadRequest::BadExpType.into()),
            Body::Experimenter(_) => return Err(BadRequest::BadExperimenter.into()),
            // These messages need no answer.
            Body::Hello(_) | Body::Error(_) | Body::EchoReply(_) => {}
            // Only switches send the other messages. A session refuses them before they get here.
            _ => return Err(BadRequest::BadType.into()),
        }
        Ok(None)
    }

    fn handle_flow_mod(
        &mut self,
        flow: &FlowMod,
        manner: FlowModSemantics,
        request: &mut AgentRequest<'_>,
    ) -> Result<Option<RestOfSweep>, ErrorType> {
        let rest = self.change_entries(flow, manner, request)?;
        // A packet is released after the last step of the change.
        if let Some(buffer) = released(flow).filter(|_| rest.is_none()) {
            self.release(buffer, request)?;
        }
        Ok(rest)
    }

    /// Applies a flow-mod but ignores its buffer id. Returns the rest of the work if many entries are concerned.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn change_entries(
        &mut self,
        flow: &FlowMod,
        manner: FlowModSemantics,
        request: &mut AgentRequest<'_>,
    ) -> Result<Option<RestOfSweep>, ErrorType> {
        let mut gone = Vec::new();
        let left = self.edit_tables().apply(request.now, flow, manner, &mut gone)?;
        self.plane.channels.tell_removed(gone, request.out);
        Ok(left.map(|sweep| Box::new(sweep.into_owned())))
    }
}

/// Returns the buffered packet that a flow-mod releases. Deletes release none.
pub(crate) fn released(flow: &FlowMod) -> Option<BufferId> {
    flow.buffer_id.filter(|_| !matches!(flow.command, FlowCommand::Delete | FlowCommand::DeleteStrict))
}

/// Returns true if a message changes the switch, which slaves may not do (OpenFlow 1.3.5, 6.3.6).
fn changes_state(body: &Body) -> bool {
    if let Body::MultipartRequest(request) = body {
        return matches!(&request.body, RequestBody::TableFeatures(tables) if !tables.is_empty());
    }
    matches!(
        body,
        Body::FlowMod(_)
            | Body::PacketOut(_)
            | Body::PortMod(_)
            | Body::TableMod(_)
            | Body::GroupMod(_)
            | Body::MeterMod(_)
            | Body::BundleControl(_)
            | Body::BundleAdd(_)
    ) || matches!(body, Body::Nx(message) if matches!(**message, NxMessage::FlowMod(_)))
}
