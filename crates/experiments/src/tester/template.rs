//! Frames that a tester sends: headers made once, and what differs from frame to frame.
use weir_packet::Frame;
use weir_units::Instant;

/// Bytes of a frame that are written: headers, then what says which frame it is and when it was due.
pub(super) const WRITTEN: usize = 64;
/// Where its kind lies.
const KIND: std::ops::Range<usize> = 48..56;
/// Where the time lies at which it was due.
const DUE: std::ops::Range<usize> = 56..64;
/// Marks a tester's frames; the kind is in the low bits.
const MARK: u64 = 0x7765_6972_7465_7300;

/// What a frame is to the tester.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One of a bulk flow.
    Bulk,
    /// An echo request.
    Request,
    /// Its answer.
    Reply,
}

const KINDS: [Kind; 3] = [Kind::Bulk, Kind::Request, Kind::Reply];

/// Frames of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    headers: [u8; WRITTEN],
    bytes: usize,
    vary: Vary,
}

/// What differs from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vary {
    /// Nothing.
    Nothing,
    /// The MPLS label: one of this many from 0 on, in random order.
    MplsLabel(u32),
}

impl Template {
    /// Frames of `bytes` (at least 64) that begin like `frame`, whose headers take at most 48 bytes.
    pub(crate) fn new(frame: &Frame, bytes: usize, vary: Vary) -> Template {
        let mut headers = [0; WRITTEN];
        let known = frame.bytes().len().min(KIND.start);
        headers[..known].copy_from_slice(&frame.bytes()[..known]);
        Template { headers, bytes: bytes.max(WRITTEN), vary }
    }

    /// How long its frames are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many flows it has.
    pub(super) fn flows(&self) -> u32 {
        match self.vary {
            Vary::Nothing => 1,
            Vary::MplsLabel(labels) => labels.max(1),
        }
    }

    /// Writes a frame of a flow. What lies behind the written bytes is what the buffer held: nothing reads it, and writing it would
    /// be measured as the switch's work.
    pub(super) fn write(&self, frame: &mut Frame, flow: u32, kind: Kind, due: Instant) {
        let buffer = frame.receive_buffer();
        let bytes = self.bytes.min(buffer.len());
        buffer[..WRITTEN].copy_from_slice(&self.headers);
        if let Vary::MplsLabel(_) = self.vary {
            // Label, class, bottom of the stack, time to live (RFC 3032, 2.1).
            buffer[14..18].copy_from_slice(&(flow << 12 | 1 << 8 | 64).to_be_bytes());
        }
        buffer[KIND].copy_from_slice(&(MARK | kind as u64).to_be_bytes());
        buffer[DUE].copy_from_slice(&due.as_nanos().to_be_bytes());
        frame.received(bytes);
    }
}

/// What a frame that arrived is, and when it was due; nothing for one that no tester made.
pub(super) fn read(bytes: &[u8]) -> Option<(Kind, Instant)> {
    let word = |range| bytes.get(range).and_then(|word: &[u8]| word.try_into().ok()).map(u64::from_be_bytes);
    let kind = word(KIND)?.checked_sub(MARK).and_then(|kind| KINDS.get(usize::try_from(kind).ok()?))?;
    Some((*kind, Instant::from_nanos(word(DUE)?)))
}
