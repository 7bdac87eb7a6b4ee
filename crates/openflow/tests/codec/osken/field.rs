//! Match fields as os-ken shows them.
use serde_json::{Value, json};
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_openflow::model::matching::RawField;
use weir_openflow::model::multipart::OxmId;
use weir_openflow::model::{Match, MatchField};
use weir_packet::{Field, MacAddr};

pub(super) fn matching(matching: &Match) -> Value {
    let fields: Vec<_> = matching.fields.iter().map(field).collect();
    json!({"OFPMatch": {"oxm_fields": fields, "type": 1}})
}

pub(super) fn field(entry: &MatchField) -> Value {
    match entry {
        MatchField::Known { field, value: number, mask } => {
            let mask = mask.map_or(Value::Null, |mask| value(*field, mask));
            json!({"OXMTlv": {"field": field.name(), "value": value(*field, *number), "mask": mask}})
        }
        MatchField::Raw(field) => raw(field),
    }
}

/// Nicira's fields that occur in the vectors.
fn raw(field: &RawField) -> Value {
    assert_eq!(field.class, 1, "{field:?}");
    let name = match field.number {
        number @ 0..=15 => format!("reg{number}"),
        31 => "tun_ipv4_src".to_owned(),
        32 => "tun_ipv4_dst".to_owned(),
        33 => "pkt_mark".to_owned(),
        37 => "conj_id".to_owned(),
        105 => "ct_state".to_owned(),
        number => panic!("a Nicira field {number}"),
    };
    let number = |bytes: &[u8]| {
        let number = u32::from_be_bytes(bytes.try_into().unwrap());
        if name.starts_with("tun_ipv4") { json!(Ipv4Addr::from(number)) } else { json!(number) }
    };
    let (value, mask) = field.payload.0.split_at(4);
    let mask = if field.has_mask { number(mask) } else { Value::Null };
    json!({"OXMTlv": {"field": name, "value": number(value), "mask": mask}})
}

#[expect(clippy::cast_possible_truncation, reason = "by the field's width")]
pub(super) fn value(field: Field, value: u128) -> Value {
    match field {
        Field::EthDst | Field::EthSrc | Field::ArpSha | Field::ArpTha | Field::Ipv6NdSll | Field::Ipv6NdTll => {
            json!(MacAddr::from_bits(value as u64))
        }
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => json!(Ipv4Addr::from(value as u32)),
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6NdTarget => json!(Ipv6Addr::from(value)),
        _ => json!(value as u64),
    }
}

pub(super) fn id(id: &OxmId) -> Value {
    json!({"OFPOxmId": {"type": id.field().unwrap().name(), "hasmask": u8::from(id.has_mask)}})
}
