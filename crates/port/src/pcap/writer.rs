//! Writes frames to pcap files.
use super::since_epoch;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};
use weir_units::Instant;

/// Writer of a pcap file: version 2.4, nanoseconds, Ethernet. The file is complete once the writer is dropped.
#[derive(Debug)]
pub struct PcapFileWriter {
    file: BufWriter<File>,
    /// Wall-clock time (since 1970) at [`Instant::ZERO`]; known once the first frame was written.
    zero: Option<Duration>,
    failed: bool,
}

/// First field of the file: marks byte order and nanosecond timestamps.
const MAGIC: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
/// Maximum frame length stated in the file; exceeds every frame.
const SNAPLEN: u32 = 262_144;

impl PcapFileWriter {
    /// Creates the file or truncates an existing one.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(path: &Path) -> io::Result<PcapFileWriter> {
        let mut file = BufWriter::with_capacity(64 << 10, File::create(path)?);
        file.write_all(&MAGIC.to_le_bytes())?;
        file.write_all(&[2, 0, 4, 0])?;
        file.write_all(&[0; 8])?;
        file.write_all(&SNAPLEN.to_le_bytes())?;
        file.write_all(&ETHERNET.to_le_bytes())?;
        file.flush()?;
        Ok(PcapFileWriter { file, zero: None, failed: false })
    }

    /// Appends a frame that passed at `now`. The first frame gets the current time of day; later frames keep the
    /// distances of their `now`.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full. Later calls write nothing, so that the file
    /// stays readable up to that point.
    pub fn write(&mut self, now: Instant, frame: &[u8]) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        let elapsed = now.since(Instant::ZERO);
        let zero = *self.zero.get_or_insert_with(|| since_epoch(SystemTime::now()).saturating_sub(elapsed));
        let written = self.record(zero + elapsed, frame);
        self.failed = written.is_err();
        written
    }

    /// Flushes buffered frames to the system, so that readers of the file see them.
    pub fn flush(&mut self) {
        if let Err(error) = self.file.flush()
            && !std::mem::replace(&mut self.failed, true)
        {
            tracing::warn!(%error, "a capture cannot be written");
        }
    }

    /// Writes a record: seconds (until 2106), nanoseconds, captured length, original length, then the frame.
    fn record(&mut self, time: Duration, frame: &[u8]) -> io::Result<()> {
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        for field in [seconds, time.subsec_nanos(), len, len] {
            self.file.write_all(&field.to_le_bytes())?;
        }
        self.file.write_all(frame)
    }
}
