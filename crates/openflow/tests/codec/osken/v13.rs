//! Writes messages of 1.3 in os-ken's JSON format, for the types in the vectors.
use super::field::{self, matching};
use super::{base64, experimenter_action, words};
use serde::Serialize;
use serde_json::{Value, json};
use weir_openflow::model::error::ErrorType;
use weir_openflow::model::flow::{FlowMod, FlowRemoved};
use weir_openflow::model::group::{Bucket, GroupDesc, GroupStats};
use weir_openflow::model::matching::MatchField;
use weir_openflow::model::meter::{Band, BandKind, MeterStats};
use weir_openflow::model::multipart::*;
use weir_openflow::model::port::PortStats;
use weir_openflow::model::queue::{QueueConfig, QueueProperty, QueueStats};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::*;

pub(super) fn each<T>(list: &[T], show: impl Fn(&T) -> Value) -> Value {
    list.iter().map(show).collect()
}

pub(super) fn message(body: &Body) -> Value {
    match body {
        Body::Hello(Hello { versions: Some(versions) }) => json!({"OFPHello": {"elements": [
            {"OFPHelloElemVersionBitmap": {"type": 1, "versions": versions}},
        ]}}),
        Body::Error(message) => error(message),
        Body::EchoReply(data) => json!({"OFPEchoReply": {"data": base64(data)}}),
        Body::FeaturesRequest => json!({"OFPFeaturesRequest": {}}),
        Body::FeaturesReply(features) => json!({"OFPSwitchFeatures": {
            "auxiliary_id": features.auxiliary_id, "capabilities": features.capabilities,
            "datapath_id": features.datapath_id, "n_buffers": features.n_buffers, "n_tables": features.n_tables,
        }}),
        Body::GetConfigRequest => json!({"OFPGetConfigRequest": {}}),
        Body::GetConfigReply(config) => json!({"OFPGetConfigReply": switch_config(config)}),
        Body::SetConfig(config) => json!({"OFPSetConfig": switch_config(config)}),
        Body::PacketIn(packet) => json!({"OFPPacketIn": {
            "buffer_id": buffer(packet.buffer_id), "cookie": packet.cookie, "data": base64(&packet.data),
            "match": matching(&packet.matching), "reason": packet.reason as u8, "table_id": packet.table,
            "total_len": packet.total_len,
        }}),
        Body::PacketOut(packet) => json!({"OFPPacketOut": {
            "actions": each(&packet.actions, action), "buffer_id": buffer(packet.buffer_id),
            "data": base64(&packet.data), "in_port": packet.in_port,
        }}),
        Body::FlowMod(flow) => flow_mod(flow),
        Body::FlowRemoved(removed) => flow_removed(removed),
        Body::PortStatus(status) => {
            json!({"OFPPortStatus": {"reason": status.reason as u8, "desc": port_desc(&status.desc)}})
        }
        Body::PortMod(port) => json!({"OFPPortMod": {
            "advertise": port.advertise, "config": port.config, "hw_addr": port.hw_addr, "mask": port.mask,
            "port_no": port.port_no,
        }}),
        Body::GroupMod(group) => json!({"OFPGroupMod": {
            "buckets": each(&group.buckets, bucket), "command": group.command, "group_id": group.group,
            "type": group.kind,
        }}),
        Body::MeterMod(meter) => json!({"OFPMeterMod": {
            "bands": each(&meter.bands, band), "command": meter.command, "flags": meter.flags,
            "meter_id": meter.meter,
        }}),
        Body::BarrierReply => json!({"OFPBarrierReply": {}}),
        Body::QueueGetConfigRequest(port) => json!({"OFPQueueGetConfigRequest": {"port": port}}),
        Body::QueueGetConfigReply(reply) => {
            json!({"OFPQueueGetConfigReply": {"port": reply.port, "queues": each(&reply.queues, queue)}})
        }
        Body::RoleRequest(message) => json!({"OFPRoleRequest": role(message)}),
        Body::RoleReply(message) => json!({"OFPRoleReply": role(message)}),
        Body::GetAsyncRequest => json!({"OFPGetAsyncRequest": {}}),
        Body::MultipartRequest(request) => multipart_request(request),
        Body::MultipartReply(reply) => multipart_reply(reply),
        other => panic!("no vector has {other:?}"),
    }
}

fn buffer(id: Option<BufferId>) -> u32 {
    id.map_or(u32::MAX, |id| id.0)
}

fn switch_config(config: &SwitchConfig) -> Value {
    json!({"flags": config.flags, "miss_send_len": config.miss_send_len})
}

pub(super) fn role_number(role: Role) -> u32 {
    match role {
        Role::NoChange => 0,
        Role::Equal => 1,
        Role::Master => 2,
        Role::Slave => 3,
        Role::Unknown(number) => number,
    }
}

fn role(message: &RoleMessage) -> Value {
    json!({"role": role_number(message.role), "generation_id": message.generation_id})
}

fn error(message: &ErrorMessage) -> Value {
    let data = base64(&message.data);
    let (kind, code) = match message.error {
        ErrorType::Experimenter { kind, id } => {
            return json!({"OFPErrorMsg": {
                "type": 65535, "code": null, "exp_type": kind, "experimenter": id, "data": data,
            }});
        }
        ErrorType::BadAction(code) => (2, code.number()),
        ErrorType::BadMatch(code) => (4, code.number()),
        other => panic!("no vector has {other:?}"),
    };
    json!({"OFPErrorMsg": {"type": kind, "code": code, "data": data}})
}

fn flow_mod(flow: &FlowMod) -> Value {
    json!({"OFPFlowMod": {
        "buffer_id": buffer(flow.buffer_id), "command": flow.command as u8, "cookie": flow.cookie,
        "cookie_mask": flow.cookie_mask, "flags": flow.flags, "hard_timeout": flow.hard_timeout,
        "idle_timeout": flow.idle_timeout, "instructions": each(&flow.instructions, instruction),
        "match": matching(&flow.matching), "out_group": flow.out_group, "out_port": flow.out_port,
        "priority": flow.priority, "table_id": flow.table,
    }})
}

fn flow_removed(removed: &FlowRemoved) -> Value {
    json!({"OFPFlowRemoved": {
        "byte_count": removed.byte_count, "cookie": removed.cookie, "duration_nsec": removed.duration_nsec,
        "duration_sec": removed.duration_sec, "hard_timeout": removed.hard_timeout,
        "idle_timeout": removed.idle_timeout, "match": matching(&removed.matching),
        "packet_count": removed.packet_count, "priority": removed.priority, "reason": removed.reason as u8,
        "table_id": removed.table,
    }})
}

pub(super) fn instruction(instruction: &Instruction) -> Value {
    let actions =
        |kind, actions: &[Action]| json!({"OFPInstructionActions": {"actions": each(actions, action), "type": kind}});
    match instruction {
        Instruction::GotoTable(table) => json!({"OFPInstructionGotoTable": {"table_id": table, "type": 1}}),
        Instruction::WriteActions(list) => actions(3, list),
        Instruction::ApplyActions(list) => actions(4, list),
        other => panic!("no vector has {other:?}"),
    }
}

pub(super) fn action(action: &Action) -> Value {
    let set_field = |entry: &MatchField| json!({"OFPActionSetField": {"field": field::field(entry), "type": 25}});
    match action {
        Action::Output { port, max_len } => {
            json!({"OFPActionOutput": {"max_len": max_len, "port": port, "type": 0}})
        }
        Action::CopyTtlOut => json!({"OFPActionCopyTtlOut": {"type": 11}}),
        Action::CopyTtlIn => json!({"OFPActionCopyTtlIn": {"type": 12}}),
        Action::SetMplsTtl(ttl) => json!({"OFPActionSetMplsTtl": {"mpls_ttl": ttl, "type": 15}}),
        Action::DecMplsTtl => json!({"OFPActionDecMplsTtl": {"type": 16}}),
        Action::PushVlan(kind) => json!({"OFPActionPushVlan": {"ethertype": kind, "type": 17}}),
        Action::PopVlan => json!({"OFPActionPopVlan": {"type": 18}}),
        Action::PushMpls(kind) => json!({"OFPActionPushMpls": {"ethertype": kind, "type": 19}}),
        Action::PopMpls(kind) => json!({"OFPActionPopMpls": {"ethertype": kind, "type": 20}}),
        Action::SetQueue(queue) => json!({"OFPActionSetQueue": {"queue_id": queue, "type": 21}}),
        Action::Group(group) => json!({"OFPActionGroup": {"group_id": group, "type": 22}}),
        Action::SetNwTtl(ttl) => json!({"OFPActionSetNwTtl": {"nw_ttl": ttl, "type": 23}}),
        Action::DecNwTtl => json!({"OFPActionDecNwTtl": {"type": 24}}),
        Action::SetField { field, value } => set_field(&MatchField::Known { field: *field, value: *value, mask: None }),
        Action::SetFieldRaw(raw) => set_field(&MatchField::Raw(raw.clone())),
        Action::PushPbb(kind) => json!({"OFPActionPushPbb": {"ethertype": kind, "type": 26}}),
        Action::PopPbb => json!({"OFPActionPopPbb": {"type": 27}}),
        other => experimenter_action(other).unwrap_or_else(|| panic!("1.3 has no {other:?}")),
    }
}

fn bucket(bucket: &Bucket) -> Value {
    json!({"OFPBucket": {
        "actions": each(&bucket.actions, action), "watch_group": bucket.watch_group, "watch_port": bucket.watch_port,
        "weight": bucket.weight,
    }})
}

fn band(band: &Band) -> Value {
    let (rate, burst_size) = (band.rate, band.burst_size);
    match &band.kind {
        BandKind::Drop => json!({"OFPMeterBandDrop": {"burst_size": burst_size, "rate": rate, "type": 1}}),
        BandKind::DscpRemark { prec_level } => json!({"OFPMeterBandDscpRemark": {
            "burst_size": burst_size, "rate": rate, "type": 2, "prec_level": prec_level,
        }}),
        BandKind::Experimenter { id, .. } => json!({"OFPMeterBandExperimenter": {
            "burst_size": burst_size, "rate": rate, "type": 65535, "experimenter": id,
        }}),
        other => panic!("no vector has {other:?}"),
    }
}

fn port_desc(port: &PortDesc) -> Value {
    json!({"OFPPort": {
        "advertised": port.advertised, "config": port.config, "curr": port.curr, "curr_speed": port.curr_speed,
        "hw_addr": port.hw_addr, "max_speed": port.max_speed, "name": port.name, "peer": port.peer,
        "port_no": port.port_no, "state": port.state, "supported": port.supported,
    }})
}

fn queue(queue: &QueueConfig) -> Value {
    json!({"OFPPacketQueue": {
        "port": queue.port, "queue_id": queue.queue, "properties": each(&queue.properties, queue_property),
    }})
}

fn queue_property(property: &QueueProperty) -> Value {
    match property {
        QueueProperty::MinRate(rate) => json!({"OFPQueuePropMinRate": {"property": 1, "rate": rate}}),
        QueueProperty::MaxRate(rate) => json!({"OFPQueuePropMaxRate": {"property": 2, "rate": rate}}),
        QueueProperty::Experimenter { id, data } => {
            json!({"OFPQueuePropExperimenter": {"property": 65535, "experimenter": id, "data": data.0}})
        }
        other => panic!("no vector has {other:?}"),
    }
}

fn multipart_request(request: &MultipartRequest) -> Value {
    let (name, kind, mut fields) = match &request.body {
        RequestBody::Desc => ("Desc", 0, json!({})),
        RequestBody::Flow(request) => ("Flow", 1, flow_request(request)),
        RequestBody::Aggregate(request) => ("Aggregate", 2, flow_request(request)),
        RequestBody::Table => ("Table", 3, json!({})),
        RequestBody::PortStats(port) => ("Port", 4, json!({"port_no": port})),
        RequestBody::Group(group) => ("Group", 6, json!({"group_id": group})),
        RequestBody::GroupDesc(_) => ("GroupDesc", 7, json!({})),
        RequestBody::GroupFeatures => ("GroupFeatures", 8, json!({})),
        RequestBody::MeterConfig(meter) => ("MeterConfig", 10, json!({"meter_id": meter})),
        RequestBody::MeterFeatures => ("MeterFeatures", 11, json!({})),
        RequestBody::TableFeatures(tables) => ("TableFeatures", 12, json!({"body": each(tables, table_features)})),
        RequestBody::PortDesc(_) => ("PortDesc", 13, json!({})),
        RequestBody::Experimenter(experimenter) => ("Experimenter", 65535, experimenter_body(experimenter)),
        other => panic!("no vector has {other:?}"),
    };
    fields["flags"] = u16::from(request.more).into();
    fields["type"] = kind.into();
    json!({format!("OFP{name}StatsRequest"): fields})
}

pub(super) fn flow_request(request: &FlowRequest) -> Value {
    json!({
        "cookie": request.cookie, "cookie_mask": request.cookie_mask, "match": matching(&request.matching),
        "out_group": request.out_group, "out_port": request.out_port, "table_id": request.table,
    })
}

fn experimenter_body(experimenter: &Experimenter) -> Value {
    json!({
        "data": base64(&experimenter.data), "exp_type": experimenter.kind.unwrap(),
        "experimenter": experimenter.id,
    })
}

fn multipart_reply(reply: &MultipartReply) -> Value {
    let (name, kind, body) = match &reply.body {
        ReplyBody::Flow(list) => ("Flow", 1, each(list, flow_stats)),
        ReplyBody::Aggregate(stats) => (
            "Aggregate",
            2,
            json!({"OFPAggregateStats": {
                "byte_count": stats.byte_count, "flow_count": stats.flow_count, "packet_count": stats.packet_count,
            }}),
        ),
        ReplyBody::PortStats(list) => ("Port", 4, each(list, port_stats)),
        ReplyBody::Queue(list) => ("Queue", 5, each(list, queue_stats)),
        ReplyBody::Group(list) => ("Group", 6, each(list, group_stats)),
        ReplyBody::Meter(list) => ("Meter", 9, each(list, meter_stats)),
        ReplyBody::MeterConfig(list) => (
            "MeterConfig",
            10,
            each(list, |config| {
                json!({"OFPMeterConfigStats": {
                    "bands": each(&config.bands, band), "flags": config.flags, "meter_id": config.meter,
                }})
            }),
        ),
        ReplyBody::MeterFeatures(features) => (
            "MeterFeatures",
            11,
            json!([{"OFPMeterFeaturesStats": {
                "band_types": features.band_types, "capabilities": features.capabilities, "max_bands": features.max_bands,
                "max_color": features.max_color, "max_meter": features.max_meter,
            }}]),
        ),
        ReplyBody::TableFeatures(list) => ("TableFeatures", 12, each(list, table_features)),
        ReplyBody::PortDesc(list) => ("PortDesc", 13, each(list, port_desc)),
        ReplyBody::Experimenter(experimenter) => {
            ("Experimenter", 65535, json!({"OFPExperimenterMultipart": experimenter_body(experimenter)}))
        }
        other => panic!("no vector has {other:?}"),
    };
    json!({format!("OFP{name}StatsReply"): {"body": body, "flags": u16::from(reply.more), "type": kind}})
}

pub(super) fn flow_stats(stats: &FlowStats) -> Value {
    json!({"OFPFlowStats": {
        "byte_count": stats.byte_count, "cookie": stats.cookie, "duration_nsec": stats.duration_nsec,
        "duration_sec": stats.duration_sec, "flags": stats.flags, "hard_timeout": stats.hard_timeout,
        "idle_timeout": stats.idle_timeout, "instructions": each(&stats.instructions, instruction),
        "match": matching(&stats.matching), "packet_count": stats.packet_count, "priority": stats.priority,
        "table_id": stats.table,
    }})
}

fn port_stats(stats: &PortStats) -> Value {
    json!({"OFPPortStats": {
        "collisions": stats.collisions, "duration_nsec": stats.duration_nsec, "duration_sec": stats.duration_sec,
        "port_no": stats.port_no, "rx_bytes": stats.rx_bytes, "rx_crc_err": stats.rx_crc_err,
        "rx_dropped": stats.rx_dropped, "rx_errors": stats.rx_errors, "rx_frame_err": stats.rx_frame_err,
        "rx_over_err": stats.rx_over_err, "rx_packets": stats.rx_packets, "tx_bytes": stats.tx_bytes,
        "tx_dropped": stats.tx_dropped, "tx_errors": stats.tx_errors, "tx_packets": stats.tx_packets,
    }})
}

pub(super) fn queue_stats(stats: &QueueStats) -> Value {
    json!({"OFPQueueStats": {
        "duration_nsec": stats.duration_nsec, "duration_sec": stats.duration_sec, "port_no": stats.port,
        "queue_id": stats.queue, "tx_bytes": stats.tx_bytes, "tx_errors": stats.tx_errors,
        "tx_packets": stats.tx_packets,
    }})
}

pub(super) fn group_desc(group: &GroupDesc) -> Value {
    json!({"OFPGroupDescStats": {
        "buckets": each(&group.buckets, bucket), "group_id": group.group, "type": group.kind,
    }})
}

fn group_stats(stats: &GroupStats) -> Value {
    let counters =
        |(packets, bytes): &(u64, u64)| json!({"OFPBucketCounter": {"packet_count": packets, "byte_count": bytes}});
    json!({"OFPGroupStats": {
        "bucket_stats": each(&stats.buckets, counters), "byte_count": stats.byte_count,
        "duration_nsec": stats.duration_nsec, "duration_sec": stats.duration_sec, "group_id": stats.group,
        "packet_count": stats.packet_count, "ref_count": stats.ref_count,
    }})
}

pub(super) fn meter_stats(stats: &MeterStats) -> Value {
    let counters = |(packets, bytes): &(u64, u64)| json!({"OFPMeterBandStats": {"packet_band_count": packets, "byte_band_count": bytes}});
    json!({"OFPMeterStats": {
        "band_stats": each(&stats.bands, counters), "byte_in_count": stats.byte_in_count,
        "duration_nsec": stats.duration_nsec, "duration_sec": stats.duration_sec, "flow_count": stats.flow_count,
        "meter_id": stats.meter, "packet_in_count": stats.packet_in_count,
    }})
}

fn table_features(table: &TableFeatures) -> Value {
    json!({"OFPTableFeaturesStats": {
        "config": table.config, "max_entries": table.max_entries, "metadata_match": table.metadata_match,
        "metadata_write": table.metadata_write, "name": table.name,
        "properties": each(&table.properties, table_property), "table_id": table.table,
    }})
}

fn table_property(property: &TableProperty) -> Value {
    let number = |kind: u16, miss: &bool| kind + u16::from(*miss);
    let actions = |kind, ids| json!({"OFPTableFeaturePropActions": {"type": kind, "action_ids": each(ids, |id| type_id("OFPActionId", id))}});
    let fields = |kind, ids| json!({"OFPTableFeaturePropOxm": {"type": kind, "oxm_ids": each(ids, field::id)}});
    match property {
        TableProperty::Instructions { miss, ids } => json!({"OFPTableFeaturePropInstructions": {
            "type": number(0, miss), "instruction_ids": each(ids, |id| type_id("OFPInstructionId", id)),
        }}),
        TableProperty::NextTables { miss, tables } => {
            json!({"OFPTableFeaturePropNextTables": {"type": number(2, miss), "table_ids": tables}})
        }
        TableProperty::WriteActions { miss, ids } => actions(number(4, miss), ids),
        TableProperty::ApplyActions { miss, ids } => actions(number(6, miss), ids),
        TableProperty::Match(ids) => fields(8, ids),
        TableProperty::Wildcards(ids) => fields(10, ids),
        TableProperty::WriteSetField { miss, fields: ids } => fields(number(12, miss), ids),
        TableProperty::ApplySetField { miss, fields: ids } => fields(number(14, miss), ids),
        TableProperty::Experimenter { miss, id, kind, data } => json!({"OFPTableFeaturePropExperimenter": {
            "type": number(0xfffe, miss), "experimenter": id, "exp_type": kind, "data": words(data),
        }}),
        other => panic!("no vector has {other:?}"),
    }
}

fn type_id<T: Serialize + std::fmt::Debug>(name: &str, id: &FeatureTypeId<T>) -> Value {
    let FeatureTypeId::Standard(kind) = id else { panic!("no vector has {id:?}") };
    json!({name: {"type": kind}})
}
