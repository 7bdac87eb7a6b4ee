//! What a switch did with a case, step by step.
use weir_openflow::model::PacketIn;
use weir_openflow::{Body, decode};

/// A message from a switch, or its bytes in hexadecimal and why they cannot be decoded.
pub type Told = Result<Body, String>;

/// What a switch did in one step of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// Replies and errors to the step's message, in order.
    pub replies: Vec<Told>,
    /// Packet-ins.
    pub packets_in: Vec<PacketIn>,
    /// Frames sent, by port; those of a port in order.
    pub frames: Vec<(u32, Vec<u8>)>,
}

/// What a switch did with a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// By step.
    pub answers: Vec<Answer>,
    /// Messages of the switch's own accord, packet-ins left out, in any order; in which step, where that is known.
    pub told: Vec<(Option<usize>, Told)>,
}

/// Decodes a switch's message.
pub fn told(bytes: &[u8]) -> Told {
    decode(bytes).map(|message| message.body).map_err(|error| {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{error}: {digits}")
    })
}

/// Takes whole messages from the front of what a channel read: transaction id and bytes of each.
pub fn messages(input: &mut Vec<u8>) -> Vec<(u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(header) = weir_openflow::codec::Header::read(&input[at..]) {
        let length = usize::from(header.length).max(weir_openflow::codec::HEADER_BYTES);
        let Some(bytes) = input.get(at..at + length) else { break };
        found.push((header.xid, bytes.to_vec()));
        at += length;
    }
    input.drain(..at);
    found
}
