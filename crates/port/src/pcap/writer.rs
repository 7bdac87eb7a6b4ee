//! Writing pcap files.
use super::since_epoch;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};
use weir_units::Instant;

/// A pcap file being written: version 2.4, nanoseconds, Ethernet. It is complete once the writer is dropped.
#[derive(Debug)]
pub struct Writer {
    file: BufWriter<File>,
    /// Time of day at [`Instant::ZERO`]; known once the first frame came.
    zero: Option<Duration>,
    failed: bool,
}

/// First field of the file: the order of its bytes, and nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
/// More than the longest frame.
const SNAPLEN: u32 = 262_144;

impl Writer {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// It cannot be made or written.
    pub fn create(path: &Path) -> io::Result<Writer> {
        let mut file = BufWriter::with_capacity(64 << 10, File::create(path)?);
        file.write_all(&MAGIC.to_le_bytes())?;
        file.write_all(&[2, 0, 4, 0])?;
        file.write_all(&[0; 8])?;
        file.write_all(&SNAPLEN.to_le_bytes())?;
        file.write_all(&ETHERNET.to_le_bytes())?;
        file.flush()?;
        Ok(Writer { file, zero: None, failed: false })
    }

    /// Appends a frame that passed at `now`. The first frame gets the time of day, the others follow it at the distances
    /// that `now` says.
    ///
    /// # Errors
    /// The file cannot be written, for example since the disk is full. After that nothing more is written, so that the file
    /// stays readable up to there.
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

    /// Hands everything to the system, so that readers of the file see it.
    pub fn flush(&mut self) {
        if let Err(error) = self.file.flush()
            && !std::mem::replace(&mut self.failed, true)
        {
            tracing::warn!(%error, "a capture cannot be written");
        }
    }

    /// Record header: seconds (until 2106), nanoseconds, captured and original length.
    fn record(&mut self, time: Duration, frame: &[u8]) -> io::Result<()> {
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        for field in [seconds, time.subsec_nanos(), len, len] {
            self.file.write_all(&field.to_le_bytes())?;
        }
        self.file.write_all(frame)
    }
}
