//! Receives frames from capture files and writes transmitted frames to capture files.
//!
//! `pcap:[NAME,]in=FILE,out=FILE[,loop=1][,pace=on]`, with `in`, `out` or both. Frames are received from `in` (pcap
//! or pcapng, Ethernet only), by default as fast as the engine reads them; with `pace=on` at the intervals of the
//! capture. With `loop=1` the capture starts again after its last frame, from memory, like DPDK's device of this
//! name. Transmitted frames are written to `out`, a pcap file with nanoseconds, which is complete once the port is
//! closed.
//!
//! A truncated capture delivers its readable frames; then `rx_errors` counts one error and the log says why.
mod reader;
mod writer;

pub use reader::PcapFileReader;
pub use writer::PcapFileWriter;

use crate::spec::{PortOptions, synthetic_mac};
use crate::{FrameCounters, LinkState, Port, PortError, PortInfo, PortResult, ReceiveReadiness};
use std::io;
use std::path::Path;
use std::time::Duration;
use weir_packet::{Frame, FramePool};
use weir_traffic::DamagedCaptureError;
use weir_units::Instant;

/// Maximum number of bytes of frames that `loop=1` keeps in memory.
pub const MAX_LOOP_BYTES: usize = 256 << 20;

/// Port that receives from a capture file, transmits to one, or both.
pub struct PcapPort {
    info: PortInfo,
    source: Option<PcapReplay>,
    sink: Option<PcapFileWriter>,
    counters: FrameCounters,
    /// Frames finished in software, on their way to the file; kept to reuse the allocation.
    finished: Vec<Frame>,
}

impl PcapPort {
    /// Opens a port as `options` specify.
    ///
    /// # Errors
    /// [`PortError::Spec`] for unknown options or a file that is no Ethernet capture, [`PortError::System`] for a
    /// file that cannot be opened.
    pub fn open(name: &str, options: &PortOptions) -> Result<Self, PortError> {
        options.expect_only(&["in", "out", "loop", "pace"])?;
        if options.text("in").is_none() && options.text("out").is_none() {
            return Err(options.error("expected in=FILE to receive from, out=FILE to transmit to, or both"));
        }
        let source = options.text("in").map(|file| PcapReplay::open(file, options)).transpose()?;
        let create =
            |file: &str| PcapFileWriter::create(Path::new(file)).map_err(|error| cannot("write", file, error, options));
        let sink = options.text("out").map(create).transpose()?;
        let name = if name.is_empty() { "pcap" } else { name };
        let spec = options.spec().to_owned();
        let info = PortInfo { mac: synthetic_mac(&spec), spec, name: name.to_owned(), mtu: 65_535 };
        Ok(PcapPort { info, source, sink, counters: FrameCounters::default(), finished: Vec::new() })
    }

    fn write(&mut self, now: Instant, pool: &mut FramePool, frame: Frame) {
        let written = self.sink.as_mut().map(|sink| sink.write(now, frame.bytes()));
        match written {
            Some(Ok(())) => {
                self.counters.tx_packets += 1;
                self.counters.tx_bytes += frame.len() as u64;
            }
            Some(Err(error)) => {
                if self.counters.tx_errors == 0 {
                    tracing::warn!(port = self.info.spec, %error, "frames are lost: the capture cannot be written");
                }
                self.counters.tx_errors += 1;
            }
            None => self.counters.tx_errors += 1,
        }
        pool.give(frame);
    }
}

impl Port for PcapPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let Some(source) = &mut self.source else { return Ok(()) };
        for _ in 0..max {
            let Some(frame) = source.next_due(now, pool, &mut self.counters) else { break };
            self.counters.rx_packets += 1;
            self.counters.rx_bytes += frame.len() as u64;
            batch.push(frame);
        }
        Ok(())
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        for frame in frames.drain(..) {
            if frame.offload.is_none() {
                self.write(now, pool, frame);
                continue;
            }
            let mut finished = std::mem::take(&mut self.finished);
            if !weir_packet::offload::finish(frame, pool, &mut finished) {
                self.counters.tx_errors += 1;
            }
            for frame in finished.drain(..) {
                self.write(now, pool, frame);
            }
            self.finished = finished;
        }
        Ok(())
    }

    fn arm(&mut self) -> ReceiveReadiness {
        let ready_now = self.source.as_ref().is_some_and(|source| source.ahead.is_some() && !source.pace);
        if ready_now { ReceiveReadiness::Now } else { ReceiveReadiness::OnDescriptor }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.source.as_ref().and_then(PcapReplay::next_wake)
    }

    /// Flushes the capture file so that its readers see recent frames. The link is always up.
    fn link(&mut self) -> LinkState {
        if let Some(sink) = &mut self.sink {
            sink.flush();
        }
        LinkState { up: true, speed: None }
    }

    fn counters(&self) -> FrameCounters {
        let skipped = self.source.as_ref().map_or(0, PcapReplay::skipped);
        FrameCounters { rx_errors: self.counters.rx_errors + skipped, ..self.counters }
    }
}

/// Source of received frames.
struct PcapReplay {
    capture: PcapReplayInput,
    pace: bool,
    /// Next frame with its time in the capture (ns); `None` at the end.
    ahead: Option<(u64, Frame)>,
    /// Offset in ns from a time in the capture to an instant; known once the first frame was requested.
    shift_ns: Option<i128>,
    /// Due time of the last received frame.
    last: Instant,
}

enum PcapReplayInput {
    File(PcapFileReader),
    Loop { frames: Vec<(u64, Frame)>, next: usize },
}

impl PcapReplay {
    fn open(file: &str, options: &PortOptions) -> Result<PcapReplay, PortError> {
        let pace = options.flag("pace", false)?;
        let mut reader = PcapFileReader::open(Path::new(file)).map_err(|error| cannot("read", file, error, options))?;
        let mut pool = FramePool::new(0, 0);
        let capture = if options.flag("loop", false)? {
            PcapReplayInput::Loop { frames: read_all(&mut reader, &mut pool, file, options)?, next: 0 }
        } else {
            PcapReplayInput::File(reader)
        };
        let mut source = PcapReplay { capture, pace, ahead: None, shift_ns: None, last: Instant::ZERO };
        let first = source.capture.next(&mut pool).map_err(|damaged| options.error(format!("{file}: {damaged}")))?;
        source.ahead = first;
        Ok(source)
    }

    /// Returns the next frame if it is due.
    fn next_due(&mut self, now: Instant, pool: &mut FramePool, counters: &mut FrameCounters) -> Option<Frame> {
        let time_ns = self.ahead.as_ref()?.0;
        if self.pace {
            let shift = *self.shift_ns.get_or_insert(i128::from(now.as_nanos()) - i128::from(time_ns));
            if shifted(time_ns, shift) > now {
                return None;
            }
            self.last = shifted(time_ns, shift).max(self.last);
        }
        let (_, frame) = self.ahead.take()?;
        self.ahead = self.capture.next(pool).unwrap_or_else(|damaged| {
            counters.rx_errors += 1;
            tracing::warn!(%damaged, "no more frames from the capture");
            None
        });
        self.restart_pace(time_ns);
        Some(frame)
    }

    /// Restarts the time scale when a looping capture starts again: its first frame follows its last immediately.
    fn restart_pace(&mut self, previous_ns: u64) {
        if let (Some((time_ns, _)), PcapReplayInput::Loop { next, .. }) = (&self.ahead, &self.capture)
            && *next == 1
            && self.pace
            && *time_ns <= previous_ns
        {
            self.shift_ns = Some(i128::from(self.last.as_nanos()) - i128::from(*time_ns));
        }
    }

    /// Returns the number of records in the file that are not usable frames.
    fn skipped(&self) -> u64 {
        if let PcapReplayInput::File(reader) = &self.capture { reader.skipped() } else { 0 }
    }

    fn next_wake(&self) -> Option<Instant> {
        let (time_ns, _) = self.ahead.as_ref()?;
        // Until the first frame was requested, the engine must receive at once.
        if self.pace { Some(self.shift_ns.map_or(Instant::ZERO, |shift| shifted(*time_ns, shift))) } else { None }
    }
}

fn shifted(time_ns: u64, shift_ns: i128) -> Instant {
    Instant::from_nanos(u64::try_from((i128::from(time_ns) + shift_ns).max(0)).unwrap_or(u64::MAX))
}

impl PcapReplayInput {
    fn next(&mut self, pool: &mut FramePool) -> Result<Option<(u64, Frame)>, DamagedCaptureError> {
        match self {
            PcapReplayInput::File(reader) => reader.next(pool),
            PcapReplayInput::Loop { frames, next } => {
                let Some((time_ns, frame)) = frames.get(*next % frames.len().max(1)) else { return Ok(None) };
                *next = *next % frames.len() + 1;
                Ok(Some((*time_ns, pool.copy(frame))))
            }
        }
    }
}

/// Reads all frames of a capture that is replayed from memory. A damaged file is an error here, because every round
/// would lack the same frames.
fn read_all(
    reader: &mut PcapFileReader,
    pool: &mut FramePool,
    file: &str,
    options: &PortOptions,
) -> Result<Vec<(u64, Frame)>, PortError> {
    let (mut frames, mut bytes) = (Vec::new(), 0);
    while let Some((time_ns, frame)) =
        reader.next(pool).map_err(|damaged| options.error(format!("{file}: {damaged}")))?
    {
        // A frame occupies at least a small buffer, whatever its length.
        bytes += frame.len().max(2048);
        if bytes > MAX_LOOP_BYTES {
            let limit = MAX_LOOP_BYTES >> 20;
            return Err(
                options.error(format!("{file} needs more than {limit} MiB in memory; cut it, or leave loop out"))
            );
        }
        frames.push((time_ns, frame));
    }
    if frames.is_empty() {
        return Err(options.error(format!("{file} holds no Ethernet frame to repeat")));
    }
    Ok(frames)
}

/// Returns the error for a file that cannot be opened (`error`) or does not have the expected format.
pub(crate) fn cannot(what: &str, file: &str, error: io::Error, options: &PortOptions) -> PortError {
    if error.kind() == io::ErrorKind::InvalidData {
        return options.error(format!("{file}: {error}"));
    }
    let (tried, advice) = (format!("{what} {file}"), String::new());
    PortError::System { spec: options.spec().to_owned(), tried, source: error, advice }
}

/// Returns the time since 1970 of a moment, for capture files.
fn since_epoch(time: std::time::SystemTime) -> Duration {
    time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests;
