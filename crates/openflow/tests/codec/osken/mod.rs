//! Compares the content of decoded messages with os-ken's decoding of the same bytes.
//!
//! Messages are written in os-ken's JSON format and compared as values. Three things are left out on both sides:
//! lengths (tested by comparing re-encoded bytes), the content of Nicira's actions except for experimenter, number
//! and subtype, and packet data that os-ken shows as parsed protocols.
mod field;
mod newer;
mod v10;
mod v13;

use base64::Engine;
use serde_json::{Map, Value, json};
use weir_openflow::model::{Action, Body, Bytes, Match, Message, PacketOut, PortNo, Version};
use weir_openflow::{decode, encode};
use weir_testing::shared;

/// Nicira's experimenter number.
const NICIRA: u32 = 0x2320;

fn base64(bytes: &Bytes) -> Value {
    base64::engine::general_purpose::STANDARD.encode(&bytes.0).into()
}

/// Writes bytes as os-ken shows uninterpreted words.
fn words(bytes: &Bytes) -> Value {
    bytes.0.chunks(4).map(|word| word.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))).collect()
}

/// Returns the subtype of an action that 1.0 encodes as a Nicira action.
fn nicira_subtype(action: &Action) -> Option<u16> {
    let message = PacketOut {
        buffer_id: None,
        in_port: PortNo::CONTROLLER,
        matching: Match::any(),
        actions: vec![action.clone()],
        data: Bytes::default(),
    };
    let mut bytes = Vec::new();
    encode(&Message { xid: 0, body: Body::PacketOut(message) }, Version::V10, &mut bytes).ok()?;
    let action = bytes.get(16..26)?;
    (action[..2] == [0xff, 0xff] && action[4..8] == NICIRA.to_be_bytes())
        .then(|| u16::from_be_bytes([action[8], action[9]]))
}

/// Writes an experimenter action, or the compared part of a Nicira action.
fn experimenter_action(action: &Action) -> Option<Value> {
    if let Some(subtype) = nicira_subtype(action) {
        return Some(json!({"Nicira": {"experimenter": NICIRA, "subtype": subtype}}));
    }
    let Action::Experimenter { id, data } = action else { return None };
    if *id == NICIRA {
        let subtype = data.0.iter().take(2).fold(0, |number, byte| number << 8 | u32::from(*byte));
        return Some(json!({"Nicira": {"experimenter": id, "subtype": subtype}}));
    }
    Some(json!({"OFPActionExperimenterUnknown": {"experimenter": id, "data": base64(data), "type": 65535}}))
}

/// Removes the parts of os-ken's JSON that are not compared.
fn compared(value: Value) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(compared).collect(),
        Value::Object(map) => Value::Object(map.into_iter().filter_map(compared_entry).collect()),
        value => value,
    }
}

fn compared_entry((name, value): (String, Value)) -> Option<(String, Value)> {
    if name.starts_with("NXAction") {
        let experimenter = value.get("experimenter").or(value.get("vendor")).unwrap();
        return Some(("Nicira".to_owned(), json!({"experimenter": experimenter, "subtype": value["subtype"]})));
    }
    let is_length =
        ["len", "actions_len", "bucket_array_len", "action_array_len"].contains(&&*name) || name == "length";
    (!is_length).then(|| (name, compared(value)))
}

/// Removes packet data on both sides if os-ken shows it as protocols.
fn without_protocols(ours: &mut Value, theirs: &mut Value) {
    let body = |value: &mut Value| value.as_object_mut().and_then(|map| map.values_mut().next()).map(Value::take);
    let shows_protocols = theirs["OFPPacketOut"]["data"].is_object();
    if shows_protocols {
        for side in [ours, theirs] {
            let mut fields: Map<_, _> = body(side).unwrap().as_object().unwrap().clone();
            fields.remove("data");
            *side = json!({"OFPPacketOut": fields});
        }
    }
}

/// Corrects lengths in two messages that os-ken does not check: an instruction's and a header's.
fn repaired(name: &str, mut bytes: Vec<u8>) -> Vec<u8> {
    match name {
        "libofproto-OFP15-flow_desc_reply.packet" => {
            let instruction = bytes.len() - 8;
            bytes[instruction + 2..].copy_from_slice(&[0, 8, 2, 0, 0, 0]);
        }
        "libofproto-OFP15-meter_features_reply.packet" => {
            bytes[3] = 40;
        }
        _ => (),
    }
    bytes
}

#[test]
fn messages_say_what_os_ken_reads() {
    let sets =
        [("of10", Version::V10, 9), ("of13", Version::V13, 73), ("of14", Version::V14, 51), ("of15", Version::V15, 54)];
    for (directory, version, least) in sets {
        let Some(directory) = shared(&format!("conformance/os-ken-packets/{directory}")) else { return };
        let messages = weir_testing::files(&directory, "", "packet");
        assert!(messages.len() >= least, "{} messages in {}", messages.len(), directory.display());
        for (name, bytes) in messages {
            let bytes = repaired(&name, bytes);
            let text = std::fs::read_to_string(directory.join(format!("{name}.json"))).unwrap();
            let mut theirs = compared(serde_json::from_str(&text).unwrap());
            let message = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut ours = match version {
                Version::V10 => v10::message(&message.body),
                Version::V13 => v13::message(&message.body),
                version => newer::message(&message.body, version),
            };
            without_protocols(&mut ours, &mut theirs);
            assert_eq!(ours, theirs, "{name}\nours   {ours}\ntheirs {theirs}");
        }
    }
}
