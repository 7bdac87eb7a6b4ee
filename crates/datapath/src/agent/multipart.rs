//! Replies to requests for statistics and descriptions (OpenFlow 1.3.5, 7.3.5).
use super::{AgentRequest, RestOfSweep};
use crate::flow_mod::EntrySweep;
use crate::{Datapath, meter};
use weir_openflow::codec;
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::multipart::{ReplyBody, RequestBody, TableFeatures};
use weir_openflow::model::nicira::NICIRA;
use weir_openflow::model::{Body, ErrorType, Experimenter};

/// Number of places examined per part of flow statistics.
const PART_ENTRIES: usize = 256;

impl Datapath {
    /// Replies to a complete multipart request. Returns the rest of the work if the request changes many entries.
    pub(super) fn multipart(
        &mut self,
        asked: &RequestBody,
        request: &mut AgentRequest<'_>,
    ) -> Result<Option<RestOfSweep>, ErrorType> {
        let now = request.now;
        if let Some(reply) = self.begin_reply(request.channel, request.version, request.xid, asked) {
            let mut reply = reply?;
            while self.reply_on(now, &mut reply, PART_ENTRIES, request.out) {}
            return Ok(None);
        }
        let body = match asked {
            RequestBody::Desc => ReplyBody::Desc(self.desc()),
            // These requests have a long reply, which was sent above.
            RequestBody::Flow(_)
            | RequestBody::Aggregate(_)
            | RequestBody::NxFlow(_)
            | RequestBody::NxAggregate(_)
            | RequestBody::Group(_)
            | RequestBody::GroupDesc(_) => {
                return Ok(None);
            }
            RequestBody::Table => ReplyBody::Table(self.tables.table_stats()),
            RequestBody::PortStats(port) => ReplyBody::PortStats(self.plane.ports.stats(now, *port)?),
            RequestBody::PortDesc(port) => ReplyBody::PortDesc(self.plane.ports.descs_of(*port)?),
            RequestBody::FlowMonitor(asked) => {
                self.flow_monitors(asked, request)?;
                return Ok(None);
            }
            RequestBody::TableFeatures(wanted) => return self.table_features(wanted, request),
            RequestBody::Queue { port, queue } => ReplyBody::Queue(self.plane.ports.queue_stats(now, *port, *queue)?),
            RequestBody::QueueDesc { port, queue } => ReplyBody::QueueDesc(self.plane.ports.queue_desc(*port, *queue)?),
            RequestBody::GroupFeatures => ReplyBody::GroupFeatures(self.group_features(request.version)),
            RequestBody::TableDesc => ReplyBody::TableDesc(self.tables.table_descs()),
            RequestBody::ControllerStatus => ReplyBody::ControllerStatus(self.plane.channels.controller_statuses()),
            RequestBody::BundleFeatures(asked) => ReplyBody::BundleFeatures(self.bundle_features(now, asked)),
            RequestBody::Meter(meter) => ReplyBody::Meter(self.meter_stats(now, *meter)?),
            RequestBody::MeterConfig(meter) => ReplyBody::MeterConfig(self.meter_configs(*meter)?),
            RequestBody::MeterFeatures => ReplyBody::MeterFeatures(meter::FEATURES),
            RequestBody::Experimenter(Experimenter { id: NICIRA, .. }) => return Err(BadRequest::BadExpType.into()),
            RequestBody::Experimenter(_) => return Err(BadRequest::BadExperimenter.into()),
            _ => return Err(BadRequest::BadMultipart.into()),
        };
        for part in codec::split_reply(body, request.version) {
            request.reply(Body::MultipartReply(part));
        }
        Ok(None)
    }

    /// Answers a table features request. With tables in the request, the tables' features are first set to those
    /// requested. Returns the rest of the work if many entries become invalid.
    ///
    /// # Errors
    /// The request asks for a feature that does not exist; nothing has changed.
    fn table_features(
        &mut self,
        wanted: &[TableFeatures],
        request: &mut AgentRequest<'_>,
    ) -> Result<Option<RestOfSweep>, ErrorType> {
        let mut rest = None;
        if !wanted.is_empty() {
            let clear = self.tables.set_features(wanted, request.version)?;
            rest = self.sweep(request.now, EntrySweep::clear(clear), request.out);
        }
        let body = ReplyBody::TableFeatures(self.tables.features(request.version));
        for part in codec::split_reply(body, request.version) {
            request.reply(Body::MultipartReply(part));
        }
        Ok(rest)
    }
}
