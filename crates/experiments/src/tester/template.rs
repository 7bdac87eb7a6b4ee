//! Creates the tester's frames from prepared headers and the varying fields.
use weir_packet::Frame;
use weir_units::Instant;

/// Written bytes of a frame: headers, then kind and due time.
pub(super) const WRITTEN: usize = 64;
/// Position of the kind.
const KIND: std::ops::Range<usize> = 48..56;
/// Position of the due time.
const DUE: std::ops::Range<usize> = 56..64;
/// Mark of the tester's frames; the low bits hold the kind.
const MARK: u64 = 0x7765_6972_7465_7300;

/// Purpose of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Frame of a bulk flow.
    Bulk,
    /// An echo request.
    Request,
    /// An echo reply.
    Reply,
}

const KINDS: [Kind; 3] = [Kind::Bulk, Kind::Request, Kind::Reply];

/// Template for all frames of a bulk flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    headers: [u8; WRITTEN],
    bytes: usize,
    vary: Vary,
}

/// Field that varies from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vary {
    /// All frames are equal, except for kind and due time.
    Nothing,
    /// The MPLS label: below this number, in random order.
    MplsLabel(u32),
}

impl Template {
    /// Creates a template for frames of `bytes` (at least 64) that begin like `frame`, whose headers take at most 48
    /// bytes.
    pub(crate) fn new(frame: &Frame, bytes: usize, vary: Vary) -> Template {
        let mut headers = [0; WRITTEN];
        let known = frame.bytes().len().min(KIND.start);
        headers[..known].copy_from_slice(&frame.bytes()[..known]);
        Template { headers, bytes: bytes.max(WRITTEN), vary }
    }

    /// Returns the length of the frames.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of flows.
    pub(super) fn flows(&self) -> u32 {
        match self.vary {
            Vary::Nothing => 1,
            Vary::MplsLabel(labels) => labels.max(1),
        }
    }

    /// Writes a frame of a flow. Bytes after the written ones keep the buffer's contents: nothing reads them, and
    /// writing them would be measured as the switch's work.
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

/// Returns a frame's kind and due time, or `None` if no tester made it.
pub(super) fn read(bytes: &[u8]) -> Option<(Kind, Instant)> {
    let word = |range| bytes.get(range).and_then(|word: &[u8]| word.try_into().ok()).map(u64::from_be_bytes);
    let kind = word(KIND)?.checked_sub(MARK).and_then(|kind| KINDS.get(usize::try_from(kind).ok()?))?;
    Some((*kind, Instant::from_nanos(word(DUE)?)))
}
