//! Reads the selection method of a select group: how the group chooses among its buckets. The method is a property of
//! 1.5's group-mods, an extension by Netronome that Open vSwitch has, too (`ovs-ofctl -O OpenFlow15 add-group ...
//! selection_method=hash,fields(ip_src)`).
use crate::model::error::BadProperty;
use crate::model::property::RawProperty;
use crate::model::{MatchField, Version};
use crate::v13::oxm;
use crate::wire::WireReader;
use weir_packet::Field;

/// Netronome's experimenter number.
const NETRONOME: u32 = 0x0000_154d;
/// Experimenter type of the property, `NTRT_SELECTION_METHOD`.
const SELECTION_METHOD: u32 = 1;
/// Length in bytes of the method's name, with at least one zero byte at the end.
const NAME_BYTES: usize = 16;

/// Selection method of a select group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectionMethod {
    /// Name of the method: `hash`, `dp_hash`, or empty for the switch's default.
    pub name: String,
    /// Parameter of the method. For `hash`, another number gives another distribution of flows.
    pub param: u64,
    /// Fields that distinguish flows, with the bits that count. Each field occurs at most once.
    pub fields: Vec<(Field, u128)>,
}

impl SelectionMethod {
    /// Reads the selection method from a property of a group-mod.
    ///
    /// # Errors
    /// The property is of another type or experimenter, or its content is malformed.
    pub fn from_property(property: &RawProperty) -> Result<SelectionMethod, BadProperty> {
        if property.kind != RawProperty::EXPERIMENTER {
            return Err(BadProperty::BadType);
        }
        match property.experimenter() {
            Some((NETRONOME, SELECTION_METHOD, content)) => read(content).ok_or(BadProperty::BadExpValue),
            Some((NETRONOME, _, _)) => Err(BadProperty::BadExpType),
            _ => Err(BadProperty::BadExperimenter),
        }
    }
}

fn read(content: &[u8]) -> Option<SelectionMethod> {
    let mut reader = WireReader::new(content, "selection method", BadProperty::BadExpValue);
    reader.set_version(Version::V15);
    reader.skip(4).ok()?;
    let name: [u8; NAME_BYTES] = reader.read_array().ok()?;
    let end = name.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&name[..end]).ok()?.to_owned();
    let param = reader.read_u64().ok()?;
    let mut fields: Vec<(Field, u128)> = Vec::new();
    while !reader.is_empty() {
        // The value itself marks the bits that count, so an entry with a mask is malformed.
        match oxm::decode_entry(&mut reader, BadProperty::BadExpValue.into()).ok()? {
            MatchField::Known { field, value, mask: None } if fields.iter().all(|(known, _)| *known != field) => {
                fields.push((field, value & field.all_ones()));
            }
            _ => return None,
        }
    }
    Some(SelectionMethod { name, param, fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Property data (after type and length) as Open vSwitch 3.1 sends it for
    /// `selection_method=hash,selection_method_param=5,fields(ip_src,ip_dst=255.255.0.0)`.
    fn hash() -> Vec<u8> {
        let mut bytes = vec![0, 0, 0x15, 0x4d, 0, 0, 0, 1, 0, 0, 0, 0];
        bytes.extend(b"hash\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend(5_u64.to_be_bytes());
        bytes.extend([0x80, 0, 0x16, 4, 255, 255, 255, 255, 0x80, 0, 0x18, 4, 255, 255, 0, 0]);
        bytes
    }

    fn from(data: Vec<u8>) -> Result<SelectionMethod, BadProperty> {
        SelectionMethod::from_property(&RawProperty { kind: RawProperty::EXPERIMENTER, data: data.into() })
    }

    #[test]
    fn name_parameter_and_fields() {
        let fields = vec![(Field::Ipv4Src, 0xffff_ffff), (Field::Ipv4Dst, 0xffff_0000)];
        assert_eq!(from(hash()), Ok(SelectionMethod { name: "hash".into(), param: 5, fields }));
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        let changed = |at: usize, byte: u8| {
            let mut bytes = hash();
            bytes[at] = byte;
            from(bytes)
        };
        assert_eq!(changed(3, 0), Err(BadProperty::BadExperimenter));
        assert_eq!(changed(7, 2), Err(BadProperty::BadExpType));
        // A repeated field, an unknown field, and a field with a mask.
        for (at, byte) in [(46, 0x16), (46, 0xf0), (46, 0x19)] {
            assert_eq!(changed(at, byte), Err(BadProperty::BadExpValue), "{at}");
        }
        for length in 8..hash().len() {
            if length != 36 && length != 44 {
                assert_eq!(from(hash()[..length].to_vec()), Err(BadProperty::BadExpValue), "{length}");
            }
        }
        assert_eq!(from(vec![0; 5]), Err(BadProperty::BadExperimenter));
        let property = RawProperty { kind: 7, data: hash().into() };
        assert_eq!(SelectionMethod::from_property(&property), Err(BadProperty::BadType));
    }
}
