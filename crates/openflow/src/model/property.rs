//! Defines properties: type-length-value entries after the fixed part of messages in 1.4 and later (OpenFlow 1.4.1,
//! 7.2.1).
use super::Bytes;
use serde::Serialize;

/// A property that weir does not interpret: an experimenter's, or one of unknown type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct RawProperty {
    /// Property type; [`RawProperty::EXPERIMENTER`] for an experimenter's.
    pub kind: u16,
    /// Content after type and length, without padding.
    pub data: Bytes,
}

impl RawProperty {
    /// `OFP*PT_EXPERIMENTER`: the data starts with the experimenter number and the experimenter type.
    pub const EXPERIMENTER: u16 = 0xffff;

    /// Returns the experimenter number, the experimenter type and the remaining data; `None` for other properties.
    pub fn experimenter(&self) -> Option<(u32, u32, &[u8])> {
        let (id, rest) = self.data.0.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        (self.kind == RawProperty::EXPERIMENTER).then_some((u32::from_be_bytes(*id), u32::from_be_bytes(*kind), rest))
    }
}
