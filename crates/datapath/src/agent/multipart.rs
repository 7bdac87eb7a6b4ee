//! Replies to requests for statistics and descriptions (OpenFlow 1.3.5, 7.3.5).
use super::{AgentRequest, RestOfSweep};
use crate::{Datapath, meter};
use weir_openflow::codec;
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::multipart::{ReplyBody, RequestBody, TableStats};
use weir_openflow::model::nicira::NICIRA;
use weir_openflow::model::{Body, ErrorType, Experimenter, PortDesc, PortNo, TableId};
use weir_units::Instant;

/// All wildcards of 1.0 (`OFPFW_ALL`).
const V10_WILDCARDS: u32 = (1 << 22) - 1;

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
            RequestBody::Table => ReplyBody::Table(self.table_stats()),
            RequestBody::PortStats(port) => ReplyBody::PortStats(self.port_stats(now, *port)?),
            RequestBody::PortDesc(port) => ReplyBody::PortDesc(self.port_descs(*port)?),
            RequestBody::FlowMonitor(asked) => {
                self.flow_monitors(asked, request)?;
                return Ok(None);
            }
            RequestBody::TableFeatures(wanted) => return self.table_features(wanted, request),
            RequestBody::Queue { port, queue } => ReplyBody::Queue(self.queue_stats(now, *port, *queue)?),
            RequestBody::QueueDesc { port, queue } => ReplyBody::QueueDesc(self.queue_desc(*port, *queue)?),
            RequestBody::GroupFeatures => ReplyBody::GroupFeatures(self.group_features(request.version)),
            RequestBody::TableDesc => ReplyBody::TableDesc(self.table_descs()),
            RequestBody::ControllerStatus => ReplyBody::ControllerStatus(self.controller_statuses()),
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

    fn table_stats(&self) -> Vec<TableStats> {
        let tables = (0..).map(TableId).zip(&self.tables);
        let stats = tables.filter(|(table, _)| self.has_table(*table)).map(|(table, entries)| TableStats {
            table,
            name: self.settings[usize::from(table.0)].name.clone(),
            wildcards: V10_WILDCARDS,
            max_entries: self.settings[usize::from(table.0)].max_entries,
            active_count: u32::try_from(entries.len()).unwrap_or(u32::MAX),
            lookup_count: entries.counted().0,
            matched_count: entries.counted().1,
        });
        stats.collect()
    }

    fn port_descs(&self, wanted: PortNo) -> Result<Vec<PortDesc>, ErrorType> {
        let ports = self.ports().into_iter().filter(|port| wanted == PortNo::ANY || wanted == port.port_no);
        let ports: Vec<_> = ports.collect();
        if ports.is_empty() && wanted != PortNo::ANY { Err(BadRequest::BadPort.into()) } else { Ok(ports) }
    }

    fn port_stats(
        &self,
        now: Instant,
        wanted: PortNo,
    ) -> Result<Vec<weir_openflow::model::port::PortStats>, ErrorType> {
        if wanted == PortNo::ANY {
            return Ok(self.plane.ports.iter().map(|port| port.stats(now)).collect());
        }
        let port = self.plane.ports.get(wanted).ok_or(BadRequest::BadPort)?;
        Ok(vec![port.stats(now)])
    }
}
