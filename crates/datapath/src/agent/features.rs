//! Describes the switch: features reply and description.
use crate::engine_effects::PipelineState;
use crate::{ChannelId, DatapathConfig};
use weir_openflow::Version;
use weir_openflow::model::FeaturesReply;
use weir_openflow::model::features::capability;
use weir_openflow::model::multipart::SwitchDesc;

/// Bitmap of the actions of 1.0: all twelve (OpenFlow 1.0.0, 5.2.4).
const V10_ACTIONS: u32 = 0xfff;

/// Capabilities that versions from 1.4 on have besides.
const LATER: u32 = capability::BUNDLES | capability::FLOW_MONITORING;

/// Returns the features reply to a channel of a version.
pub(super) fn features(
    config: &DatapathConfig,
    plane: &PipelineState,
    version: Version,
    channel: ChannelId,
) -> FeaturesReply {
    let shared = capability::FLOW_STATS | capability::TABLE_STATS | capability::PORT_STATS | capability::QUEUE_STATS;
    let reply = FeaturesReply {
        datapath_id: config.datapath_id,
        n_buffers: config.n_buffers,
        n_tables: config.n_tables,
        auxiliary_id: plane.channels.auxiliaries().number_of(channel),
        capabilities: shared,
        ..FeaturesReply::default()
    };
    match version {
        Version::V10 => FeaturesReply {
            capabilities: shared | capability::ARP_MATCH_IP,
            actions: V10_ACTIONS,
            ports: plane.ports.descs(),
            ..reply
        },
        Version::V13 => FeaturesReply { capabilities: shared | capability::GROUP_STATS, ..reply },
        _ => FeaturesReply { capabilities: shared | capability::GROUP_STATS | LATER, ..reply },
    }
}

/// Returns the description of the switch.
pub(super) fn desc(config: &DatapathConfig) -> SwitchDesc {
    SwitchDesc {
        mfr_desc: "weir project".into(),
        hw_desc: "weir software switch".into(),
        sw_desc: concat!("weir ", env!("CARGO_PKG_VERSION")).into(),
        serial_num: "None".into(),
        dp_desc: config.name.clone(),
    }
}
