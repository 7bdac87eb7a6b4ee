//! Answers of an emulated switch to what controllers ask while they set it up.
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::features::capability;
use weir_openflow::model::multipart::{AggregateStats, MultipartReply, ReplyBody, RequestBody, SwitchDesc};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::{Body, Bytes, ErrorMessage, FeaturesReply, PortDesc, PortNo, SwitchConfig};
use weir_openflow::{Version, split_reply};
use weir_packet::MacAddr;

/// Number of packets that an emulated switch says it can buffer.
const BUFFERS: u32 = 65_536;
/// Actions of 1.0 that an emulated switch says it supports: all twelve.
const ACTIONS: u32 = 0xfff;
/// Number of tables that an emulated switch says it has.
const TABLES: u8 = 64;

/// Identity of an emulated switch.
#[derive(Debug, Clone, Copy)]
pub(super) struct EmulatedIdentity {
    pub(super) version: Version,
    pub(super) datapath_id: u64,
    pub(super) ports: u32,
}

impl EmulatedIdentity {
    /// Returns the answers to a message; none if it asks nothing.
    pub(super) fn answers(&self, asked: &Body) -> Vec<Body> {
        match asked {
            Body::FeaturesRequest => vec![Body::FeaturesReply(self.features())],
            Body::GetConfigRequest => vec![Body::GetConfigReply(SwitchConfig { flags: 0, miss_send_len: 0xffff })],
            Body::BarrierRequest => vec![Body::BarrierReply],
            Body::RoleRequest(request) => {
                let role = if request.role == Role::NoChange { Role::Equal } else { request.role };
                vec![Body::RoleReply(RoleMessage { role, ..*request })]
            }
            Body::MultipartRequest(request) => self.multipart(&request.body),
            Body::Nx(_) | Body::Experimenter(_) => vec![refusal(BadRequest::BadExperimenter)],
            Body::GetAsyncRequest | Body::QueueGetConfigRequest(_) | Body::BundleControl(_) => {
                vec![refusal(BadRequest::BadType)]
            }
            _ => Vec::new(),
        }
    }

    fn multipart(&self, asked: &RequestBody) -> Vec<Body> {
        let reply = match asked {
            RequestBody::Desc => ReplyBody::Desc(SwitchDesc {
                mfr_desc: "weir".to_owned(),
                hw_desc: "emulated switch".to_owned(),
                sw_desc: env!("CARGO_PKG_VERSION").to_owned(),
                serial_num: String::new(),
                dp_desc: format!("switch {:x} of weir bench controller", self.datapath_id),
            }),
            RequestBody::PortDesc(_) => ReplyBody::PortDesc(self.port_list()),
            RequestBody::Flow(_) => ReplyBody::Flow(Vec::new()),
            RequestBody::Aggregate(_) => {
                ReplyBody::Aggregate(AggregateStats { packet_count: 0, byte_count: 0, flow_count: 0 })
            }
            RequestBody::Table => ReplyBody::Table(Vec::new()),
            RequestBody::PortStats(_) => ReplyBody::PortStats(Vec::new()),
            RequestBody::Group(_) => ReplyBody::Group(Vec::new()),
            RequestBody::GroupDesc(_) => ReplyBody::GroupDesc(Vec::new()),
            RequestBody::Meter(_) => ReplyBody::Meter(Vec::new()),
            RequestBody::MeterConfig(_) => ReplyBody::MeterConfig(Vec::new()),
            RequestBody::TableFeatures(_) => ReplyBody::TableFeatures(Vec::new()),
            _ => return vec![refusal(BadRequest::BadMultipart)],
        };
        let wrapped = |part: MultipartReply| Body::MultipartReply(part);
        split_reply(reply, self.version).into_iter().map(wrapped).collect()
    }

    fn features(&self) -> FeaturesReply {
        let is_10 = self.version == Version::V10;
        FeaturesReply {
            datapath_id: self.datapath_id,
            n_buffers: BUFFERS,
            n_tables: TABLES,
            auxiliary_id: 0,
            capabilities: capability::FLOW_STATS | capability::TABLE_STATS | capability::PORT_STATS,
            actions: if is_10 { ACTIONS } else { 0 },
            ports: if is_10 { self.port_list() } else { Vec::new() },
        }
    }

    fn port_list(&self) -> Vec<PortDesc> {
        let address =
            |port: u32| MacAddr::from_bits(0x0e00_0000_0000 | (self.datapath_id & 0xffff) << 16 | u64::from(port));
        (1..=self.ports).map(|port| PortDesc::new(PortNo(port), address(port), format!("p{port}"))).collect()
    }
}

fn refusal(reason: BadRequest) -> Body {
    Body::Error(ErrorMessage { error: reason.into(), data: Bytes::default() })
}
