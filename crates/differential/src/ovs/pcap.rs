//! Reads the frames that dummy ports send: each port writes a capture file into a named pipe.
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Bytes of a capture file's header and of a record's header.
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// Size of a pipe in bytes: more than the frames of a case at one port.
const PIPE_BYTES: usize = 1 << 20;

/// The reading end of a port's capture.
pub(super) struct PortCapturePipe {
    pipe: File,
    rest: Vec<u8>,
    /// True if the file's header has been read.
    is_begun: bool,
}

impl PortCapturePipe {
    /// Creates the pipe and opens it for reading and writing, so that it never reports an end of file.
    pub(super) fn create(path: &Path) -> anyhow::Result<PortCapturePipe> {
        rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let pipe = File::options().read(true).write(true).custom_flags(flags).open(path)?;
        // Only root may exceed the system's limit; the usual size suffices for most cases.
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_BYTES);
        Ok(PortCapturePipe { pipe, rest: Vec::new(), is_begun: false })
    }

    /// Returns the frames sent since the last call.
    pub(super) fn frames(&mut self) -> anyhow::Result<Vec<Vec<u8>>> {
        self.read()?;
        let mut at = 0;
        if !self.is_begun && self.rest.len() >= FILE_HEADER {
            (at, self.is_begun) = (FILE_HEADER, true);
        }
        let mut frames = Vec::new();
        while self.is_begun
            && let Some(header) = self.rest.get(at..at + RECORD_HEADER)
            && let Some(length) = header[8..].first_chunk().map(|length| u32::from_ne_bytes(*length) as usize)
            && let Some(frame) = self.rest.get(at + RECORD_HEADER..at + RECORD_HEADER + length)
        {
            frames.push(frame.to_vec());
            at += RECORD_HEADER + length;
        }
        self.rest.drain(..at);
        Ok(frames)
    }

    fn read(&mut self) -> anyhow::Result<()> {
        let mut piece = [0; 1 << 16];
        loop {
            match self.pipe.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => self.rest.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
