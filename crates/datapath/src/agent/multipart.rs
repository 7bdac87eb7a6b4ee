//! Replies to requests for statistics and descriptions (OpenFlow 1.3.5, 7.3.5).
use super::features::desc;
use super::groups::group_features;
use super::{AgentRequest, LongReply, RestOfSweep};
use crate::flow_mod::EntrySweep;
use crate::{Datapath, meter};
use weir_openflow::codec;
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::multipart::{ReplyBody, RequestBody};
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
        if let Some(reply) = LongReply::begin(&self.tables, request.channel, request.version, request.xid, asked) {
            let mut reply = reply?;
            while self.reply_on(now, &mut reply, PART_ENTRIES, request.out) {}
            return Ok(None);
        }
        let mut rest = None;
        let body = match asked {
            RequestBody::Desc => ReplyBody::Desc(desc(&self.config)),
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
                let main = self.plane.channels.main_of(request.channel);
                ReplyBody::FlowMonitor(self.monitors.change(main, asked, &self.tables, &mut self.journal)?)
            }
            RequestBody::TableFeatures(wanted) => {
                // With tables in the request, the tables' features are first set to those requested.
                if !wanted.is_empty() {
                    let invalid = self.tables.set_features(wanted, request.version)?;
                    rest = self.sweep(now, EntrySweep::clear(invalid), request.out);
                }
                ReplyBody::TableFeatures(self.tables.features(request.version))
            }
            RequestBody::Queue { port, queue } => ReplyBody::Queue(self.plane.ports.queue_stats(now, *port, *queue)?),
            RequestBody::QueueDesc { port, queue } => ReplyBody::QueueDesc(self.plane.ports.queue_desc(*port, *queue)?),
            RequestBody::GroupFeatures => ReplyBody::GroupFeatures(group_features(&self.groups, request.version)),
            RequestBody::TableDesc => ReplyBody::TableDesc(self.tables.table_descs()),
            RequestBody::ControllerStatus => ReplyBody::ControllerStatus(self.plane.channels.controller_statuses()),
            RequestBody::BundleFeatures(asked) => ReplyBody::BundleFeatures(self.schedule.bundle_features(now, asked)),
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
        Ok(rest)
    }
}
