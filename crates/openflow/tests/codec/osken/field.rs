//! Writes match fields in os-ken's JSON format.
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
            json!({"OXMTlv": {"field": name(*field), "value": value(*field, *number), "mask": mask}})
        }
        MatchField::Raw(field) => raw(field),
    }
}

/// Returns os-ken's name of a field.
fn name(field: Field) -> &'static str {
    match field {
        Field::TunSrc => "tun_ipv4_src",
        Field::TunDst => "tun_ipv4_dst",
        field => field.name(),
    }
}

/// Writes Nicira fields that occur in the vectors and that weir does not know.
fn raw(field: &RawField) -> Value {
    assert_eq!(field.class, 1, "{field:?}");
    let name = match field.number {
        33 => "pkt_mark",
        37 => "conj_id",
        105 => "ct_state",
        number => panic!("a Nicira field {number}"),
    };
    let number = |bytes: &[u8]| json!(u32::from_be_bytes(bytes.try_into().unwrap()));
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
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa | Field::TunSrc | Field::TunDst => {
            json!(Ipv4Addr::from(value as u32))
        }
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6NdTarget => json!(Ipv6Addr::from(value)),
        _ => json!(value as u64),
    }
}

pub(super) fn id(id: &OxmId) -> Value {
    json!({"OFPOxmId": {"type": name(id.field().unwrap()), "hasmask": u8::from(id.has_mask)}})
}
