//! Reads whole frames from captures.
use std::io;
use std::path::Path;
use weir_packet::frame::MAX_FRAME;
use weir_packet::{Frame, FramePool};
use weir_traffic::{CaptureReader, DamagedCaptureError};

/// Sequential reader of a capture's frames, with constant memory.
pub struct PcapFileReader {
    records: CaptureReader,
    too_long: u64,
}

impl PcapFileReader {
    /// Opens a capture file.
    ///
    /// # Errors
    /// The file cannot be opened, is no capture, or (kind [`io::ErrorKind::InvalidData`]) its first interface is not
    /// Ethernet.
    pub fn open(path: &Path) -> io::Result<PcapFileReader> {
        Ok(PcapFileReader { records: CaptureReader::open(path)?, too_long: 0 })
    }

    /// Reads a capture from its first byte on.
    ///
    /// # Errors
    /// The bytes cannot be read, are no capture, or (kind [`io::ErrorKind::InvalidData`]) the first interface is not
    /// Ethernet.
    pub fn new(bytes: impl io::Read + Send + 'static) -> io::Result<PcapFileReader> {
        Ok(PcapFileReader { records: CaptureReader::new(bytes)?, too_long: 0 })
    }

    /// Returns the next Ethernet frame and its time in nanoseconds since 1970, or `None` at the end. Skips frames
    /// longer than [`MAX_FRAME`] or of other kinds, see [`PcapFileReader::skipped`].
    ///
    /// # Errors
    /// [`DamagedCaptureError`] once; afterwards the reader returns `None`.
    pub fn next(&mut self, pool: &mut FramePool) -> Result<Option<(u64, Frame)>, DamagedCaptureError> {
        loop {
            let found = self.records.next(|record| {
                if record.bytes.len() > MAX_FRAME {
                    return None;
                }
                let mut frame = pool.take(record.bytes.len());
                frame.assign(record.bytes);
                Some((record.time_ns.unwrap_or(0), frame))
            })?;
            match found {
                Some(Some(frame)) => return Ok(Some(frame)),
                Some(None) => self.too_long += 1,
                None => return Ok(None),
            }
        }
    }

    /// Returns the number of records skipped so far: not Ethernet, or too long.
    pub fn skipped(&self) -> u64 {
        self.records.skipped() + self.too_long
    }
}
