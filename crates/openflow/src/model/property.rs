//! Properties: what messages of 1.4 and later carry behind their fixed part (OpenFlow 1.4.1, 7.2.1).
use super::Bytes;
use serde::Serialize;

/// A property that is not looked into: an experimenter's, or of a type weir does not know.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Property {
    /// Its type; [`Property::EXPERIMENTER`] for an experimenter's.
    pub kind: u16,
    /// All behind its type and length, padding left out.
    pub data: Bytes,
}

impl Property {
    /// `OFP*PT_EXPERIMENTER`: the data begins with the experimenter's number and its type number.
    pub const EXPERIMENTER: u16 = 0xffff;

    /// An experimenter's number, its type number and what follows; `None` for other properties.
    pub fn experimenter(&self) -> Option<(u32, u32, &[u8])> {
        let (id, rest) = self.data.0.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        (self.kind == Property::EXPERIMENTER).then_some((u32::from_be_bytes(*id), u32::from_be_bytes(*kind), rest))
    }
}
