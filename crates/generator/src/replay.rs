//! Replays the frames of a capture.
use crate::GeneratorError;
use crate::frames::probe_position::ProbePosition;
use std::path::Path;
use std::sync::Arc;
use weir_packet::{Frame, FramePool};
use weir_port::pcap::PcapFileReader;
use weir_traffic::{MAX_TRACE, ProbeHeader, TracePacket, TrafficTrace};

/// Maximum number of bytes of frames kept in memory.
pub const MAX_REPLAY_BYTES: usize = 1 << 30;

/// Frames of a capture with their times.
#[derive(Debug, Clone)]
pub struct CaptureReplay {
    frames: Arc<[Box<[u8]>]>,
    trace: TrafficTrace,
    /// Position in each frame for a header; `None`: frames are sent unchanged.
    places: Option<Arc<[Option<ProbePosition>]>>,
}

impl CaptureReplay {
    /// Reads a capture (pcap or pcapng, Ethernet). A frame with an earlier time than the previous one gets that one's
    /// time.
    ///
    /// # Errors
    /// The file cannot be read, contains no frame, or exceeds the limits.
    pub fn read(file: &Path) -> Result<CaptureReplay, GeneratorError> {
        let wrong = |problem: String| GeneratorError::Capture { file: file.display().to_string(), problem };
        let mut reader = PcapFileReader::open(file).map_err(|error| wrong(error.to_string()))?;
        let mut pool = FramePool::new(1, 1);
        let (mut frames, mut packets, mut bytes) = (Vec::new(), Vec::new(), 0);
        let (mut first_ns, mut last_ns) = (None, 0);
        while let Some((time_ns, frame)) = reader.next(&mut pool).map_err(|damaged| wrong(damaged.to_string()))? {
            let at_ns = time_ns.saturating_sub(*first_ns.get_or_insert(time_ns)).max(last_ns);
            last_ns = at_ns;
            bytes += frame.len();
            if bytes > MAX_REPLAY_BYTES || frames.len() == MAX_TRACE {
                let most = MAX_REPLAY_BYTES >> 20;
                return Err(wrong(format!("found more than {most} MiB or {MAX_TRACE} frames; cut it")));
            }
            packets.push(TracePacket { at_ns, bytes: frame.bytes_len() });
            frames.push(frame.bytes().into());
            pool.give(frame);
        }
        if frames.is_empty() {
            return Err(wrong("found no Ethernet frame, expected one or more".into()));
        }
        Ok(CaptureReplay { frames: frames.into(), trace: TrafficTrace::once(packets), places: None })
    }

    /// Writes a header that a recorder recognises at the end of the payload of complete TCP and UDP packets. Frames
    /// without room for it are sent unchanged.
    ///
    /// # Errors
    /// No frame has room for a header.
    pub fn with_headers(self) -> Result<CaptureReplay, GeneratorError> {
        let places: Arc<[Option<ProbePosition>]> = self.frames.iter().map(|frame| ProbePosition::find(frame)).collect();
        if places.iter().all(Option::is_none) {
            let expected = "one at least of TCP or UDP, whole, with 18 bytes of payload";
            return Err(GeneratorError::wrong("frames of the capture", "none with room for a header", expected));
        }
        Ok(CaptureReplay { places: Some(places), ..self })
    }

    /// Returns true if frames get a header.
    pub(crate) fn has_headers(&self) -> bool {
        self.places.is_some()
    }

    /// Returns true if all frames get a header.
    pub(crate) fn is_whole(&self) -> bool {
        self.places.as_ref().is_some_and(|places| places.iter().all(Option::is_some))
    }

    /// Returns the position of the header in the frame with this number, if it has one.
    pub(crate) fn place(&self, number: u64) -> Option<&ProbePosition> {
        let places = self.places.as_ref()?;
        places.get(usize::try_from(number % places.len().max(1) as u64).ok()?)?.as_ref()
    }

    /// Writes a header into the frame with this number, if it has room.
    pub(crate) fn mark(&self, number: u64, frame: &mut Frame, probe: &ProbeHeader) {
        if let Some(place) = self.place(number) {
            place.write(frame.bytes_mut(), probe);
        }
    }

    /// Returns times and lengths of the frames.
    pub fn trace(&self) -> &TrafficTrace {
        &self.trace
    }

    /// Returns the mean number of frames per second; `None` if all frames have the same time.
    pub fn per_second(&self) -> Option<f64> {
        let last_ns = self.trace.packets().last()?.at_ns;
        (last_ns > 0).then(|| (self.trace.packets().len() - 1) as f64 / (last_ns as f64 / 1e9))
    }

    /// Returns a copy of the frame with this number, counted from 0 and modulo the number of frames.
    pub(crate) fn frame(&self, number: u64, pool: &mut FramePool) -> Frame {
        let at = usize::try_from(number % self.frames.len().max(1) as u64).unwrap_or(0);
        let bytes = self.frames.get(at).map_or(&[][..], |bytes| bytes);
        let mut frame = pool.take(bytes.len());
        frame.assign(bytes);
        frame
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns true if there are no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}
