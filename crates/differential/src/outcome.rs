//! Outcome of a case on a switch, step by step.
use weir_openflow::model::PacketIn;
use weir_openflow::{Body, decode};

/// A message from a switch, or the decoding error with the bytes in hexadecimal.
pub type DecodedBody = Result<Body, String>;

/// Actions of a switch in one step of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepAnswer {
    /// Replies and errors to the step's message, in order.
    pub replies: Vec<DecodedBody>,
    /// Packet-ins sent to the controller.
    pub packets_in: Vec<PacketIn>,
    /// Frames sent, with their port; frames of a port are in order.
    pub frames: Vec<(u32, Vec<u8>)>,
}

/// Actions of a switch in a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaseOutcome {
    /// Answers by step.
    pub answers: Vec<StepAnswer>,
    /// Messages that the switch sent unasked, without packet-ins, in any order, each with its step if known.
    pub told: Vec<(Option<usize>, DecodedBody)>,
}

/// Decodes a switch's message.
pub fn told(bytes: &[u8]) -> DecodedBody {
    decode(bytes).map(|message| message.body).map_err(|error| {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{error}: {digits}")
    })
}

/// Removes complete messages from the front of `input`. Returns transaction id and bytes of each.
pub fn messages(input: &mut Vec<u8>) -> Vec<(u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(header) = weir_openflow::codec::MessageHeader::read(&input[at..]) {
        let length = usize::from(header.length).max(weir_openflow::codec::HEADER_BYTES);
        let Some(bytes) = input.get(at..at + length) else { break };
        found.push((header.xid, bytes.to_vec()));
        at += length;
    }
    input.drain(..at);
    found
}
