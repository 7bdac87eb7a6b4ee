//! Writes the frames that the tester sends: prepared headers, the field that varies, the frame's kind and its due time.
use weir_packet::Frame;
use weir_units::Instant;

/// Number of bytes that are written at the start of a frame: headers, kind and due time.
pub(super) const WRITTEN: usize = 64;
/// Bytes of a frame that hold its kind.
const KIND: std::ops::Range<usize> = 48..56;
/// Bytes of a frame that hold its due time, in nanoseconds.
const DUE: std::ops::Range<usize> = 56..64;
/// Number in the bytes [`KIND`] that marks a frame as the tester's; the frame's kind is added to it.
const MARK: u64 = 0x7765_6972_7465_7300;

/// Purpose of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TesterFrameKind {
    /// Frame of a bulk flow.
    Bulk,
    /// Echo request (a ping).
    Request,
    /// Reply to an echo request.
    Reply,
}

const KINDS: [TesterFrameKind; 3] = [TesterFrameKind::Bulk, TesterFrameKind::Request, TesterFrameKind::Reply];

/// Template for frames that differ only in the varying field, the kind and the due time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TesterFrameTemplate {
    headers: [u8; WRITTEN],
    /// Length of the frames.
    bytes: usize,
    vary: VaryingHeaderField,
}

/// Header field that varies from flow to flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VaryingHeaderField {
    /// No field varies: there is one flow.
    Nothing,
    /// MPLS label, which is the flow's number. There are this many flows.
    MplsLabel(u32),
}

impl TesterFrameTemplate {
    /// Creates a template for frames of `bytes` bytes, at least 64. They begin with the first 48 bytes of `frame`,
    /// which hold its headers.
    pub(crate) fn new(frame: &Frame, bytes: usize, vary: VaryingHeaderField) -> TesterFrameTemplate {
        let mut headers = [0; WRITTEN];
        let known = frame.bytes().len().min(KIND.start);
        headers[..known].copy_from_slice(&frame.bytes()[..known]);
        TesterFrameTemplate { headers, bytes: bytes.max(WRITTEN), vary }
    }

    /// Returns the length of the frames in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of flows.
    pub(super) fn flows(&self) -> u32 {
        match self.vary {
            VaryingHeaderField::Nothing => 1,
            VaryingHeaderField::MplsLabel(labels) => labels.max(1),
        }
    }

    /// Writes a frame of the flow with number `flow`. Bytes after the first 64 keep the buffer's previous contents:
    /// nothing reads them, and the time to write them would be measured as the switch's.
    pub(super) fn write(&self, frame: &mut Frame, flow: u32, kind: TesterFrameKind, due: Instant) {
        let buffer = frame.begin_receive();
        let bytes = self.bytes.min(buffer.len());
        buffer[..WRITTEN].copy_from_slice(&self.headers);
        if let VaryingHeaderField::MplsLabel(_) = self.vary {
            // Label, class, bottom of the stack, time to live (RFC 3032, 2.1).
            buffer[14..18].copy_from_slice(&(flow << 12 | 1 << 8 | 64).to_be_bytes());
        }
        buffer[KIND].copy_from_slice(&(MARK | kind as u64).to_be_bytes());
        buffer[DUE].copy_from_slice(&due.as_nanos().to_be_bytes());
        frame.finish_receive(bytes);
    }
}

/// Returns the kind and the due time of a frame that the tester sent; `None` for other frames.
pub(super) fn read(bytes: &[u8]) -> Option<(TesterFrameKind, Instant)> {
    let word = |range| bytes.get(range).and_then(|word: &[u8]| word.try_into().ok()).map(u64::from_be_bytes);
    let kind = word(KIND)?.checked_sub(MARK).and_then(|kind| KINDS.get(usize::try_from(kind).ok()?))?;
    Some((*kind, Instant::from_nanos(word(DUE)?)))
}
