//! Writes messages of 1.4 and 1.5 in os-ken's JSON format, where it differs from 1.3's.
use super::field::{self, matching};
use super::v13::{self, each};
use super::{base64, words};
use serde_json::{Value, json};
use weir_openflow::model::bundle::*;
use weir_openflow::model::config::{TableMod, VacancyThresholds};
use weir_openflow::model::flow::{FlowMod, FlowRemoved};
use weir_openflow::model::group::{Bucket, GroupDesc, GroupMod};
use weir_openflow::model::monitor::{FlowMonitor, FlowUpdate, MonitorCommand};
use weir_openflow::model::multipart::*;
use weir_openflow::model::port::*;
use weir_openflow::model::property::RawProperty;
use weir_openflow::model::queue::{QueueConfig, QueueProperty, QueueStats};
use weir_openflow::model::role::{AsyncConfig, RoleMessage};
use weir_openflow::model::stats::{OxsExtraStats, OxsStats};
use weir_openflow::model::*;

pub(super) fn message(body: &Body, version: Version) -> Value {
    let is_15 = version == Version::V15;
    match body {
        Body::EchoRequest(_) => json!({"OFPEchoRequest": {"data": null}}),
        Body::BarrierRequest => json!({"OFPBarrierRequest": {}}),
        Body::Experimenter(one) => json!({"OFPExperimenter": {
            "data": base64(&one.data), "exp_type": one.kind, "experimenter": one.id,
        }}),
        Body::FlowMod(flow) => flow_mod(flow, body),
        Body::FlowRemoved(removed) if is_15 => flow_removed(removed),
        Body::GroupMod(group) if is_15 => group_mod(group),
        Body::PortMod(port) => port_mod(port),
        Body::PortStatus(status) => {
            json!({"OFPPortStatus": {"reason": status.reason as u8, "desc": port_desc(&status.desc)}})
        }
        Body::TableMod(table) => json!({"OFPTableMod": table_fields(table)}),
        Body::RoleRequest(role) if is_15 => json!({"OFPRoleRequest": role_fields(role)}),
        Body::RoleReply(role) if is_15 => json!({"OFPRoleReply": role_fields(role)}),
        Body::GetAsyncReply(config) => json!({"OFPGetAsyncReply": {"properties": asynchronous(config)}}),
        Body::SetAsync(config) => json!({"OFPSetAsync": {"properties": asynchronous(config)}}),
        Body::RoleStatus(status) => json!({"OFPRoleStatus": {
            "role": v13::role_number(status.role), "reason": status.reason as u8, "generation_id": status.generation_id,
            "properties": each(&status.properties, |one| property("OFPRolePropExperimenter", one)),
        }}),
        Body::TableStatus(status) => json!({"OFPTableStatus": {
            "reason": status.reason as u8, "table": {"OFPTableDesc": table_fields(&status.table)},
        }}),
        Body::RequestForward(request) => json!({"OFPRequestForward": {"request": message(&request.body, version)}}),
        Body::BundleControl(control) => json!({"OFPBundleCtrlMsg": {
            "bundle_id": control.bundle, "type": control.command as u16, "flags": control.flags,
            "properties": each(&control.properties, bundle_property),
        }}),
        Body::BundleAdd(add) => json!({"OFPBundleAddMsg": {
            "bundle_id": add.bundle, "flags": add.flags, "message": message(&add.message.body, version),
            "properties": each(&add.properties, bundle_property),
        }}),
        Body::MultipartRequest(request) => multipart_request(request, version).unwrap_or_else(|| v13::message(body)),
        Body::MultipartReply(reply) => multipart_reply(reply, version).unwrap_or_else(|| v13::message(body)),
        other => v13::message(other),
    }
}

/// Writes an experimenter property; its name depends on the message.
fn property(name: &str, one: &RawProperty) -> Value {
    let data = &one.data.0;
    let word = |at: usize| u32::from_be_bytes(*data[at..].first_chunk().unwrap());
    let rest = words(&Bytes(data[8..].to_vec()));
    json!({name: {"type": one.kind, "experimenter": word(0), "exp_type": word(4), "data": rest}})
}

fn bundle_property(one: &BundleProperty) -> Value {
    match one {
        BundleProperty::Other(other) => property("OFPBundlePropExperimenter", other),
        other => panic!("no vector has {other:?}"),
    }
}

fn flow_mod(flow: &FlowMod, body: &Body) -> Value {
    let mut shown = v13::message(body);
    shown["OFPFlowMod"]["importance"] = flow.importance.into();
    shown
}

fn stats(stats: &OxsStats) -> Value {
    let OxsStats {
        flow_count: Some(count), duration: None, idle_time: None, packet_count: None, byte_count: None, ..
    } = stats
    else {
        panic!("no vector has {stats:?}")
    };
    json!({"OFPStats": {"oxs_fields": [{"OXSTlv": {"field": "flow_count", "value": count}}]}})
}

/// Writes the statistics of a flow entry that has only a flow count.
fn more_stats(counts: (u64, u64), more: &OxsExtraStats) -> Value {
    assert_eq!(counts, (u64::MAX, u64::MAX));
    stats(&OxsStats { flow_count: more.flow_count, ..OxsStats::default() })
}

fn flow_removed(removed: &FlowRemoved) -> Value {
    json!({"OFPFlowRemoved": {
        "cookie": removed.cookie, "hard_timeout": removed.hard_timeout, "idle_timeout": removed.idle_timeout,
        "match": matching(&removed.matching), "priority": removed.priority, "reason": removed.reason as u8,
        "stats": more_stats((removed.packet_count, removed.byte_count), &removed.more), "table_id": removed.table,
    }})
}

fn bucket(bucket: &Bucket) -> Value {
    let watch = |kind: u16, number: u32| json!({"OFPGroupBucketPropWatch": {"type": kind, "watch": number}});
    let weight = json!({"OFPGroupBucketPropWeight": {"type": 0, "weight": bucket.weight}});
    let port = (bucket.watch_port != PortNo::ANY).then(|| watch(1, bucket.watch_port.0));
    let group = (bucket.watch_group != GroupId::ANY).then(|| watch(2, bucket.watch_group.0));
    let properties: Vec<_> = [Some(weight), port, group].into_iter().flatten().collect();
    json!({"OFPBucket": {
        "bucket_id": bucket.id, "actions": each(&bucket.actions, v13::action), "properties": properties,
    }})
}

fn group_mod(group: &GroupMod) -> Value {
    json!({"OFPGroupMod": {
        "command": group.command, "type": group.kind, "group_id": group.group,
        "command_bucket_id": group.command_bucket, "buckets": each(&group.buckets, bucket),
        "properties": each(&group.properties, |one| property("OFPGroupPropExperimenter", one)),
    }})
}

fn group_desc(group: &GroupDesc) -> Value {
    json!({"OFPGroupDescStats": {
        "type": group.kind, "group_id": group.group, "buckets": each(&group.buckets, bucket),
        "properties": each(&group.properties, |one| property("OFPGroupPropExperimenter", one)),
    }})
}

fn role_fields(role: &RoleMessage) -> Value {
    json!({
        "role": v13::role_number(role.role), "short_id": role.short_id, "generation_id": role.generation_id,
    })
}

fn asynchronous(config: &AsyncConfig) -> Value {
    let reasons = |kind: usize, mask: u32| json!({"OFPAsyncConfigPropReasons": {"type": kind, "mask": mask}});
    let mut list = Vec::new();
    for (kind, [ours, slaves]) in config.kinds().into_iter().enumerate() {
        list.extend(slaves.map(|mask| reasons(2 * kind, mask)));
        list.extend(ours.map(|mask| reasons(2 * kind + 1, mask)));
    }
    list.extend(config.properties.iter().map(|one| property("OFPAsyncConfigPropExperimenter", one)));
    list.into()
}

fn table_fields(table: &TableMod) -> Value {
    let eviction = table.eviction.map(|flags| json!({"OFPTableModPropEviction": {"type": 2, "flags": flags}}));
    let vacancy = table.vacancy.map(|VacancyThresholds { down, up, now }| {
        json!({"OFPTableModPropVacancy": {"type": 3, "vacancy_down": down, "vacancy_up": up, "vacancy": now}})
    });
    let others = table.properties.iter().map(|one| property("OFPTableModPropExperimenter", one));
    let properties: Vec<_> = eviction.into_iter().chain(vacancy).chain(others).collect();
    json!({"table_id": table.table, "config": table.config, "properties": properties})
}

fn port_mod(port: &PortMod) -> Value {
    let mut properties = vec![json!({"OFPPortModPropEthernet": {"type": 0, "advertise": port.advertise}})];
    properties.extend(port.properties.iter().map(|one| match one {
        PortModProperty::Optical { configure, freq_lmda, fl_offset, grid_span, tx_pwr } => {
            json!({"OFPPortModPropOptical": {
                "type": 1, "configure": configure, "freq_lmda": freq_lmda, "fl_offset": fl_offset,
                "grid_span": grid_span, "tx_pwr": tx_pwr,
            }})
        }
        PortModProperty::Other(other) => property("OFPPortModPropExperimenter", other),
    }));
    json!({"OFPPortMod": {
        "port_no": port.port_no, "hw_addr": port.hw_addr, "config": port.config, "mask": port.mask,
        "properties": properties,
    }})
}

fn port_desc(port: &PortDesc) -> Value {
    let mut properties = vec![json!({"OFPPortDescPropEthernet": {
        "type": 0, "curr": port.curr, "advertised": port.advertised, "supported": port.supported, "peer": port.peer,
        "curr_speed": port.curr_speed, "max_speed": port.max_speed,
    }})];
    properties.extend(port.properties.iter().map(|one| match one {
        PortProperty::Optical(optical) => {
            let mut fields = json!(optical);
            fields["type"] = 1.into();
            json!({"OFPPortDescPropOptical": fields})
        }
        PortProperty::Other(other) => property("OFPPortDescPropExperimenter", other),
        other => panic!("no vector has {other:?}"),
    }));
    json!({"OFPPort": {
        "port_no": port.port_no, "hw_addr": port.hw_addr, "name": port.name, "config": port.config,
        "state": port.state, "properties": properties,
    }})
}

fn port_stats(stats: &PortStats) -> Value {
    let mut properties = vec![json!({"OFPPortStatsPropEthernet": {
        "type": 0, "collisions": stats.collisions, "rx_crc_err": stats.rx_crc_err, "rx_frame_err": stats.rx_frame_err,
        "rx_over_err": stats.rx_over_err,
    }})];
    properties.extend(stats.properties.iter().map(|one| match one {
        PortStatsProperty::Optical(optical) => {
            let mut fields = json!(optical);
            fields["type"] = 1.into();
            json!({"OFPPortStatsPropOptical": fields})
        }
        PortStatsProperty::Other(other) => property("OFPPortStatsPropExperimenter", other),
    }));
    json!({"OFPPortStats": {
        "duration_nsec": stats.duration_nsec, "duration_sec": stats.duration_sec, "port_no": stats.port_no,
        "properties": properties, "rx_bytes": stats.rx_bytes, "rx_dropped": stats.rx_dropped,
        "rx_errors": stats.rx_errors, "rx_packets": stats.rx_packets, "tx_bytes": stats.tx_bytes,
        "tx_dropped": stats.tx_dropped, "tx_errors": stats.tx_errors, "tx_packets": stats.tx_packets,
    }})
}

fn queue_stats(stats: &QueueStats) -> Value {
    let mut shown = v13::queue_stats(stats);
    let properties = each(&stats.properties, |one| property("OFPQueueStatsPropExperimenter", one));
    shown["OFPQueueStats"]["properties"] = properties;
    shown
}

fn queue_desc(queue: &QueueConfig) -> Value {
    let properties = each(&queue.properties, |one| match one {
        QueueProperty::MinRate(rate) => json!({"OFPQueueDescPropMinRate": {"type": 1, "rate": rate}}),
        QueueProperty::MaxRate(rate) => json!({"OFPQueueDescPropMaxRate": {"type": 2, "rate": rate}}),
        QueueProperty::Experimenter { id, data } => {
            let data = [&id.to_be_bytes()[..], &data.0].concat();
            property(
                "OFPQueueDescPropExperimenter",
                &RawProperty { kind: RawProperty::EXPERIMENTER, data: data.into() },
            )
        }
        other => panic!("no vector has {other:?}"),
    });
    json!({"OFPQueueDesc": {"port_no": queue.port, "queue_id": queue.queue, "properties": properties}})
}

fn monitor(monitor: &FlowMonitor) -> Value {
    assert_eq!(monitor.command, MonitorCommand::Add, "no vector has another");
    json!({
        "monitor_id": monitor.id, "out_port": monitor.out_port, "out_group": monitor.out_group,
        "monitor_flags": monitor.flags, "table_id": monitor.table, "command": 0, "match": matching(&monitor.matching),
    })
}

fn flow_update(update: &FlowUpdate) -> Value {
    match update {
        FlowUpdate::Full(full) => json!({"OFPFlowUpdateFull": {
            "event": full.event as u16, "table_id": full.table, "reason": full.reason.map_or(0, |reason| reason as u8),
            "idle_timeout": full.idle_timeout, "hard_timeout": full.hard_timeout, "priority": full.priority,
            "cookie": full.cookie, "match": matching(&full.matching),
            "instructions": each(&full.instructions, v13::instruction),
        }}),
        FlowUpdate::Abbrev { xid } => json!({"OFPFlowUpdateAbbrev": {"event": 4, "xid": xid}}),
        FlowUpdate::Paused => json!({"OFPFlowUpdatePaused": {"event": 5}}),
        FlowUpdate::Resumed => json!({"OFPFlowUpdatePaused": {"event": 6}}),
    }
}

fn table_features(table: &TableFeatures) -> Value {
    let values = |one: &TableProperty| match one {
        TableProperty::PacketTypes(values) => {
            json!({"OFPTableFeaturePropOxmValues": {"type": 22, "oxm_values": each(values, field::field)}})
        }
        other => panic!("no vector has {other:?}"),
    };
    json!({"OFPTableFeaturesStats": {
        "table_id": table.table, "command": table.command, "features": table.features, "name": table.name,
        "metadata_match": table.metadata_match, "metadata_write": table.metadata_write, "capabilities": table.config,
        "max_entries": table.max_entries, "properties": each(&table.properties, values),
    }})
}

/// Writes a multipart request that differs from 1.3's: its name, type and fields.
fn multipart_request(request: &MultipartRequest, version: Version) -> Option<Value> {
    let is_15 = version == Version::V15;
    let (name, kind, mut fields) = match &request.body {
        RequestBody::Flow(asked) if is_15 => ("FlowDesc", 1, v13::flow_request(asked)),
        RequestBody::GroupDesc(group) if is_15 => ("GroupDesc", 7, json!({"group_id": group})),
        RequestBody::Meter(meter) => ("Meter", 9, json!({"meter_id": meter})),
        RequestBody::MeterConfig(meter) if is_15 => ("MeterDesc", 10, json!({"meter_id": meter})),
        RequestBody::TableFeatures(tables) if is_15 => {
            ("TableFeatures", 12, json!({"body": each(tables, table_features)}))
        }
        RequestBody::PortDesc(port) if is_15 => ("PortDesc", 13, json!({"port_no": port})),
        RequestBody::TableDesc => ("TableDesc", 14, json!({})),
        RequestBody::Queue { port, queue } => ("Queue", 5, json!({"port_no": port, "queue_id": queue})),
        RequestBody::QueueDesc { port, queue } => ("QueueDesc", 15, json!({"port_no": port, "queue_id": queue})),
        RequestBody::FlowMonitor(monitors) => {
            let [only] = &monitors[..] else { panic!("no vector has {monitors:?}") };
            return Some(with_head("FlowMonitorRequest", 16, request.more, monitor(only)));
        }
        RequestBody::FlowCounters(asked) => ("Flow", 17, v13::flow_request(asked)),
        RequestBody::ControllerStatus => ("ControllerStatus", 18, json!({})),
        RequestBody::BundleFeatures(asked) => ("BundleFeatures", 19, bundle_features(asked)),
        _ => return None,
    };
    Some(with_head(&format!("{name}StatsRequest"), kind, request.more, fields.take()))
}

fn with_head(name: &str, kind: u16, more: bool, mut fields: Value) -> Value {
    fields["type"] = kind.into();
    fields["flags"] = u16::from(more).into();
    json!({format!("OFP{name}"): fields})
}

fn bundle_features(asked: &BundleFeaturesRequest) -> Value {
    let time = |time: &BundleTime| json!({"OFPTime": {"seconds": time.seconds, "nanoseconds": time.nanoseconds}});
    let properties = each(&asked.properties, |one| match one {
        BundleFeaturesProperty::Time { accuracy, max_future, max_past, timestamp } => {
            json!({"OFPBundleFeaturesPropTime": {
                "type": 1, "sched_accuracy": time(accuracy), "sched_max_future": time(max_future),
                "sched_max_past": time(max_past), "timestamp": time(timestamp),
            }})
        }
        other => panic!("no vector has {other:?}"),
    });
    json!({"feature_request_flags": asked.flags, "properties": properties})
}

/// Writes a multipart reply that differs from 1.3's.
fn multipart_reply(reply: &MultipartReply, version: Version) -> Option<Value> {
    let is_15 = version == Version::V15;
    let (name, kind, body) = match &reply.body {
        ReplyBody::Desc(desc) => ("DescStats", 0, json!({"OFPDescStats": desc})),
        ReplyBody::Flow(list) if is_15 => ("FlowDescStats", 1, each(list, flow_desc)),
        ReplyBody::Flow(list) => ("FlowStats", 1, each(list, flow_stats)),
        ReplyBody::Table(list) => ("TableStats", 3, each(list, table_stats)),
        ReplyBody::PortStats(list) => ("PortStats", 4, each(list, port_stats)),
        ReplyBody::Queue(list) => ("QueueStats", 5, each(list, queue_stats)),
        ReplyBody::GroupDesc(list) if is_15 => ("GroupDescStats", 7, each(list, group_desc)),
        ReplyBody::GroupDesc(list) => ("GroupDescStats", 7, each(list, v13::group_desc)),
        ReplyBody::GroupFeatures(features) => ("GroupFeaturesStats", 8, json!({"OFPGroupFeaturesStats": features})),
        ReplyBody::Meter(list) => ("MeterStats", 9, each(list, meter_stats)),
        ReplyBody::MeterFeatures(features) if is_15 => {
            ("MeterFeaturesStats", 11, json!([{"OFPMeterFeaturesStats": features}]))
        }
        ReplyBody::PortDesc(list) => ("PortDescStats", 13, each(list, port_desc)),
        ReplyBody::TableDesc(list) => {
            ("TableDescStats", 14, each(list, |table| json!({"OFPTableDesc": table_fields(table)})))
        }
        ReplyBody::QueueDesc(list) => ("QueueDescStats", 15, each(list, queue_desc)),
        ReplyBody::FlowMonitor(list) => ("FlowMonitor", 16, each(list, flow_update)),
        ReplyBody::FlowCounters(list) => ("FlowStats", 17, each(list, flow_counters)),
        ReplyBody::ControllerStatus(list) => ("ControllerStatusStats", 18, each(list, controller_status)),
        _ => return None,
    };
    Some(with_head(&format!("{name}Reply"), kind, reply.more, json!({"body": body})))
}

fn table_stats(table: &TableStats) -> Value {
    json!({"OFPTableStats": {
        "table_id": table.table, "active_count": table.active_count, "lookup_count": table.lookup_count,
        "matched_count": table.matched_count,
    }})
}

fn meter_stats(stats: &weir_openflow::model::meter::MeterStats) -> Value {
    let mut shown = v13::meter_stats(stats);
    let fields = shown["OFPMeterStats"].as_object_mut().unwrap();
    let count = fields.remove("flow_count").unwrap();
    fields.insert("ref_count".to_owned(), count);
    shown
}

fn flow_stats(entry: &FlowStats) -> Value {
    let mut shown = v13::flow_stats(entry);
    shown["OFPFlowStats"]["importance"] = entry.importance.into();
    shown
}

fn flow_desc(entry: &FlowStats) -> Value {
    json!({"OFPFlowDesc": {
        "table_id": entry.table, "priority": entry.priority, "idle_timeout": entry.idle_timeout,
        "hard_timeout": entry.hard_timeout, "flags": entry.flags, "importance": entry.importance,
        "cookie": entry.cookie, "match": matching(&entry.matching),
        "stats": more_stats((entry.packet_count, entry.byte_count), &entry.more),
        "instructions": each(&entry.instructions, v13::instruction),
    }})
}

fn flow_counters(entry: &FlowCounters) -> Value {
    json!({"OFPFlowStats": {
        "table_id": entry.table, "reason": entry.reason as u8, "priority": entry.priority,
        "match": matching(&entry.matching), "stats": stats(&entry.stats),
    }})
}

fn controller_status(status: &weir_openflow::model::status::ControllerStatus) -> Value {
    json!({"OFPControllerStatusStats": {
        "short_id": status.short_id, "role": v13::role_number(status.role), "reason": status.reason as u8,
        "channel_status": u8::from(!status.is_up),
        "properties": [{"OFPControllerStatusPropUri": {"type": 0, "uri": status.uri}}],
    }})
}
