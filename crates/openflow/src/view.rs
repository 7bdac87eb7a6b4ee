//! Views of the messages that arrive most often, packet-in and echo request: read in place, without copying.
//!
//! A view accepts exactly the bytes that [`decode`] accepts, and gives the same values: what is not of the usual form
//! is decoded by [`decode`] itself.
use crate::codec::{HEADER_BYTES, MessageHeader, decode, kind};
use crate::model::{Body, BufferId, PacketIn, PacketInReason, PortNo, TableId, Version};
use crate::{DecodeError, wire};

/// Match of a packet-in that has nothing but an input port (OpenFlow 1.3.5, 7.2.2 and 7.2.3): its type, its length
/// without padding, and the header of the field. The port's number and four bytes of padding follow.
const ONLY_IN_PORT: [u8; 8] = [0, 1, 0, 12, 0x80, 0, 0, 4];
/// Offset of the packet in a packet-in of 1.0 (OpenFlow 1.0.0, 5.4.1).
const DATA_V10: usize = 18;
/// Highest port number of 1.0 that is the same in later versions.
const MAX_PORT_V10: u16 = 0xff00;
/// Offset of the match in a packet-in since 1.3 (OpenFlow 1.3.5, 7.4.1).
const MATCH: usize = 24;
/// Offset of the packet in a packet-in since 1.3 whose match has the input port only.
const DATA: usize = MATCH + 16 + 2;

/// A packet-in, read in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketInView<'a> {
    message: &'a [u8],
    version: Version,
    in_port: Option<PortNo>,
    reason: PacketInReason,
    /// Offset of the packet in the message.
    data_at: usize,
}

impl<'a> PacketInView<'a> {
    /// Reads one whole message. Returns `None` if it is not a packet-in of a version that weir implements.
    ///
    /// # Errors
    /// The error of [`decode`], for a packet-in that it refuses.
    pub fn read(message: &'a [u8]) -> Result<Option<PacketInView<'a>>, DecodeError> {
        let header = MessageHeader::read(message).filter(|header| header.kind == kind::PACKET_IN);
        let Some((header, version)) = header.and_then(|found| Some((found, Version::from_number(found.version)?)))
        else {
            return Ok(None);
        };
        let usual = match version {
            _ if usize::from(header.length) != message.len() => None,
            Version::V10 => read_v10(message),
            _ => read_v13(message, version),
        };
        match usual {
            Some(view) => Ok(Some(view)),
            None => read_slowly(message, version),
        }
    }

    /// Returns the message's transaction id.
    pub fn xid(&self) -> u32 {
        self.word(4)
    }

    /// Returns the version of the message.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the number of the buffered packet, if the switch keeps it.
    pub fn buffer_id(&self) -> Option<BufferId> {
        Some(self.word(HEADER_BYTES)).filter(|id| *id != wire::NO_BUFFER_ID).map(BufferId)
    }

    /// Returns the length of the whole packet in bytes; [`PacketInView::data`] may be shorter.
    pub fn total_len(&self) -> u16 {
        u16::from_be_bytes([self.message[12], self.message[13]])
    }

    /// Returns the reason for sending the packet.
    pub fn reason(&self) -> PacketInReason {
        self.reason
    }

    /// Returns the table of the last lookup; 0 in 1.0.
    pub fn table(&self) -> TableId {
        TableId(if self.version == Version::V10 { 0 } else { self.message[15] })
    }

    /// Returns the cookie of the flow entry that sent the packet; all ones for none, and in 1.0.
    pub fn cookie(&self) -> u64 {
        match self.version {
            Version::V10 => u64::MAX,
            _ => u64::from(self.word(16)) << 32 | u64::from(self.word(20)),
        }
    }

    /// Returns the packet's input port; `None` if the message does not carry it.
    pub fn in_port(&self) -> Option<PortNo> {
        self.in_port
    }

    /// Returns the packet, or its first bytes.
    pub fn data(&self) -> &'a [u8] {
        &self.message[self.data_at..]
    }

    /// Returns the whole message as on the wire.
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Returns the message as [`decode`] does, with all pipeline fields.
    pub fn to_packet_in(&self) -> PacketIn {
        match decode(self.message).map(|message| message.body) {
            Ok(Body::PacketIn(packet)) => packet,
            // Views are made of messages that can be decoded.
            other => unreachable!("{other:?}"),
        }
    }

    /// Returns a number of 32 bits. Every view has the bytes of the fixed part.
    fn word(&self, at: usize) -> u32 {
        let bytes = &self.message[at..at + 4];
        u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

fn read_v10(message: &[u8]) -> Option<PacketInView<'_>> {
    let fixed = message.first_chunk::<DATA_V10>()?;
    let (version, port) = (Version::V10, u16::from_be_bytes([fixed[14], fixed[15]]));
    let reason = *PacketInReason::ALL.get(usize::from(fixed[16])).filter(|_| fixed[16] < 2)?;
    // The decoder translates the numbers of reserved ports.
    let in_port = (port <= MAX_PORT_V10).then_some(PortNo(port.into()))?;
    Some(PacketInView { message, version, in_port: Some(in_port), reason, data_at: DATA_V10 })
}

fn read_v13(message: &[u8], version: Version) -> Option<PacketInView<'_>> {
    let fixed = message.first_chunk::<DATA>()?;
    let matching = fixed[MATCH..].first_chunk::<12>()?;
    if matching[..8] != ONLY_IN_PORT {
        return None;
    }
    let port = PortNo(u32::from_be_bytes([matching[8], matching[9], matching[10], matching[11]]));
    // Reasons above those of 1.3 are left to the decoder.
    let reason = *PacketInReason::ALL.get(usize::from(fixed[14])).filter(|_| fixed[14] < 3)?;
    Some(PacketInView { message, version, in_port: Some(port), reason, data_at: DATA })
}

/// Reads a packet-in of an unusual form by decoding it.
fn read_slowly(message: &[u8], version: Version) -> Result<Option<PacketInView<'_>>, DecodeError> {
    Ok(match decode(message)?.body {
        Body::PacketIn(packet) => {
            let data_at = message.len() - packet.data.0.len();
            let (in_port, reason) = (packet.in_port(), packet.reason);
            Some(PacketInView { message, version, in_port, reason, data_at })
        }
        _ => None,
    })
}

/// An echo request, read in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoRequestView<'a>(&'a [u8]);

impl<'a> EchoRequestView<'a> {
    /// Reads one whole message. Returns `None` if it is not an echo request that [`decode`] accepts.
    pub fn read(message: &'a [u8]) -> Option<EchoRequestView<'a>> {
        let header = MessageHeader::read(message).filter(|header| header.kind == kind::ECHO_REQUEST)?;
        let whole = usize::from(header.length) == message.len() && Version::from_number(header.version).is_some();
        whole.then_some(EchoRequestView(message))
    }

    /// Returns the data, which the reply has to carry.
    pub fn data(&self) -> &'a [u8] {
        &self.0[HEADER_BYTES..]
    }

    /// Appends the reply to `out`: the request with another type.
    pub fn write_reply(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(self.0);
        out[start + 1] = kind::ECHO_REPLY;
    }
}

/// Returns the packet of a packet-in without reading what is before it, for a quick look; `None` if the message is too
/// short. Of a message that [`decode`] accepts this is the packet; whether it does has not been looked at.
pub fn peek_packet(message: &[u8]) -> Option<&[u8]> {
    let header = MessageHeader::read(message).filter(|header| header.kind == kind::PACKET_IN)?;
    let data_at = match Version::from_number(header.version)? {
        Version::V10 => DATA_V10,
        _ => {
            let [high, low] = *message.get(MATCH + 2..)?.first_chunk()?;
            MATCH + usize::from(u16::from_be_bytes([high, low])).next_multiple_of(8) + 2
        }
    };
    message.get(data_at..)
}
