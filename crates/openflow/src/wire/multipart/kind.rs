//! Types of multipart messages (statistics in 1.0): their numbers, which are the same in all versions that have them
//! (OpenFlow 1.3.5, 7.3.5; OpenFlow 1.0.0, 5.3.5), and the messages that have them.
use crate::model::Version;
use crate::model::multipart::{ReplyBody, RequestBody};

pub(crate) const DESC: u16 = 0;
pub(crate) const FLOW: u16 = 1;
pub(crate) const AGGREGATE: u16 = 2;
pub(crate) const TABLE: u16 = 3;
pub(crate) const PORT_STATS: u16 = 4;
/// Last type of 1.0.
pub(crate) const QUEUE: u16 = 5;
pub(crate) const GROUP: u16 = 6;
pub(crate) const GROUP_DESC: u16 = 7;
pub(crate) const GROUP_FEATURES: u16 = 8;
pub(crate) const METER: u16 = 9;
pub(crate) const METER_CONFIG: u16 = 10;
pub(crate) const METER_FEATURES: u16 = 11;
pub(crate) const TABLE_FEATURES: u16 = 12;
/// Last type of 1.3.
pub(crate) const PORT_DESC: u16 = 13;
pub(crate) const TABLE_DESC: u16 = 14;
pub(crate) const QUEUE_DESC: u16 = 15;
/// Last type of 1.4.
pub(crate) const FLOW_MONITOR: u16 = 16;
/// `OFPMP_FLOW_STATS` of 1.5: statistics without instructions. 1.5 calls `FLOW` "flow description".
pub(crate) const FLOW_COUNTERS: u16 = 17;
pub(crate) const CONTROLLER_STATUS: u16 = 18;
/// Last type of 1.5.
pub(crate) const BUNDLE_FEATURES: u16 = 19;
/// Called "vendor" in 1.0.
pub(crate) const EXPERIMENTER: u16 = 0xffff;

/// Returns the type of a request if `version` has it.
pub(crate) const fn of_request(body: &RequestBody, version: Version) -> Option<u16> {
    let kind = match body {
        RequestBody::Desc => DESC,
        RequestBody::Flow(_) => FLOW,
        RequestBody::Aggregate(_) => AGGREGATE,
        RequestBody::Table => TABLE,
        RequestBody::PortStats(_) => PORT_STATS,
        RequestBody::Queue { .. } => QUEUE,
        RequestBody::Group(_) => GROUP,
        RequestBody::GroupDesc(_) => GROUP_DESC,
        RequestBody::GroupFeatures => GROUP_FEATURES,
        RequestBody::Meter(_) => METER,
        RequestBody::MeterConfig(_) => METER_CONFIG,
        RequestBody::MeterFeatures => METER_FEATURES,
        RequestBody::TableFeatures(_) => TABLE_FEATURES,
        RequestBody::PortDesc(_) => PORT_DESC,
        RequestBody::TableDesc => TABLE_DESC,
        RequestBody::QueueDesc { .. } => QUEUE_DESC,
        RequestBody::FlowMonitor(_) => FLOW_MONITOR,
        RequestBody::FlowCounters(_) => FLOW_COUNTERS,
        RequestBody::ControllerStatus => CONTROLLER_STATUS,
        RequestBody::BundleFeatures(_) => BUNDLE_FEATURES,
        RequestBody::Experimenter(_) => EXPERIMENTER,
        RequestBody::NxFlow(_) | RequestBody::NxAggregate(_) => return of_nicira(version),
    };
    in_version(kind, version)
}

/// Returns the type of a reply if `version` has it.
pub(crate) const fn of_reply(body: &ReplyBody, version: Version) -> Option<u16> {
    let kind = match body {
        ReplyBody::Desc(_) => DESC,
        ReplyBody::Flow(_) => FLOW,
        ReplyBody::Aggregate(_) => AGGREGATE,
        ReplyBody::Table(_) => TABLE,
        ReplyBody::PortStats(_) => PORT_STATS,
        ReplyBody::Queue(_) => QUEUE,
        ReplyBody::Group(_) => GROUP,
        ReplyBody::GroupDesc(_) => GROUP_DESC,
        ReplyBody::GroupFeatures(_) => GROUP_FEATURES,
        ReplyBody::Meter(_) => METER,
        ReplyBody::MeterConfig(_) => METER_CONFIG,
        ReplyBody::MeterFeatures(_) => METER_FEATURES,
        ReplyBody::TableFeatures(_) => TABLE_FEATURES,
        ReplyBody::PortDesc(_) => PORT_DESC,
        ReplyBody::TableDesc(_) => TABLE_DESC,
        ReplyBody::QueueDesc(_) => QUEUE_DESC,
        ReplyBody::FlowMonitor(_) => FLOW_MONITOR,
        ReplyBody::FlowCounters(_) => FLOW_COUNTERS,
        ReplyBody::ControllerStatus(_) => CONTROLLER_STATUS,
        ReplyBody::BundleFeatures(_) => BUNDLE_FEATURES,
        ReplyBody::Experimenter(_) => EXPERIMENTER,
        ReplyBody::NxFlow(_) | ReplyBody::NxAggregate(_) => return of_nicira(version),
    };
    in_version(kind, version)
}

/// Nicira's statistics of flow entries are only in 1.0.
const fn of_nicira(version: Version) -> Option<u16> {
    if matches!(version, Version::V10) { Some(EXPERIMENTER) } else { None }
}

const fn in_version(kind: u16, version: Version) -> Option<u16> {
    let last = match version {
        Version::V10 => QUEUE,
        Version::V13 => PORT_DESC,
        Version::V14 => FLOW_MONITOR,
        Version::V15 => BUNDLE_FEATURES,
    };
    match kind {
        // An experimenter's message before 1.4.
        FLOW_MONITOR if last < FLOW_MONITOR => Some(EXPERIMENTER),
        EXPERIMENTER => Some(kind),
        kind if kind <= last => Some(kind),
        _ => None,
    }
}
