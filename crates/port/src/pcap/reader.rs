//! Reads frames from pcap and pcapng files.
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, InterfaceDescriptionBlock, Linktype, PcapBlockOwned, PcapError};
use std::fs::File;
use std::io;
use std::path::Path;
use weir_packet::frame::MAX_FRAME;
use weir_packet::{Frame, FramePool};

/// Maximum length in bytes of a readable block.
const BUFFER: usize = 1 << 20;
/// Maximum number of interfaces in a section of a pcapng file.
const MAX_INTERFACES: usize = 4096;
const NS_PER_S: u64 = 1_000_000_000;

/// Sequential reader of a capture file, with constant memory.
pub struct PcapFileReader {
    blocks: Box<dyn PcapReaderIterator + Send>,
    /// Interfaces of the section being read; a pcap file has one.
    interfaces: Vec<PcapFileInterface>,
    skipped: u64,
    ended: bool,
}

#[derive(Clone, Copy)]
struct PcapFileInterface {
    ethernet: bool,
    /// Timestamp units per second.
    resolution: u64,
    /// Seconds to add to timestamps.
    offset_s: i64,
}

/// Error of a file that is truncated or not a valid capture; frames before the damage were delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("damaged capture: {0}")]
pub struct DamagedCaptureError(String);

impl PcapFileReader {
    /// Opens a capture file.
    ///
    /// # Errors
    /// The file cannot be opened, is no capture, or (kind [`io::ErrorKind::InvalidData`]) its first interface is not
    /// Ethernet.
    pub fn open(path: &Path) -> io::Result<PcapFileReader> {
        PcapFileReader::new(File::open(path)?)
    }

    /// Reads a capture from its first byte on.
    ///
    /// # Errors
    /// The bytes cannot be read, are no capture, or (kind [`io::ErrorKind::InvalidData`]) the first interface is not
    /// Ethernet.
    pub fn new(bytes: impl io::Read + Send + 'static) -> io::Result<PcapFileReader> {
        let blocks = pcap_parser::create_reader(BUFFER, bytes).map_err(|error| not_a_capture(&error))?;
        let mut reader = PcapFileReader { blocks, interfaces: Vec::new(), skipped: 0, ended: false };
        reader.expect_ethernet()?;
        Ok(reader)
    }

    /// Returns the next Ethernet frame and its time in nanoseconds since 1970, or `None` at the end. Skips frames
    /// longer than [`MAX_FRAME`] or of other kinds, see [`PcapFileReader::skipped`].
    ///
    /// # Errors
    /// [`DamagedCaptureError`] once; afterwards the reader returns `None`.
    pub fn next(&mut self, pool: &mut FramePool) -> Result<Option<(u64, Frame)>, DamagedCaptureError> {
        while !self.ended {
            if let Some(found) = self.step(Some(pool))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the number of records skipped so far: not Ethernet, or too long.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Reads up to the first interface's description and checks that its link type is Ethernet.
    fn expect_ethernet(&mut self) -> io::Result<()> {
        let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
        while self.interfaces.is_empty() && !self.ended {
            self.step(None).map_err(|damaged| invalid(damaged.to_string()))?;
        }
        match self.interfaces.first() {
            Some(interface) if !interface.ethernet => Err(invalid(
                "found a capture of another link type, expected Ethernet (link type 1); capture on an Ethernet interface, \
                 not on `any`"
                    .into(),
            )),
            _ => Ok(()),
        }
    }

    /// Reads one block. Returns its frame, if it holds one and `pool` is given.
    fn step(&mut self, pool: Option<&mut FramePool>) -> Result<Option<(u64, Frame)>, DamagedCaptureError> {
        let (consumed, found) = match self.blocks.next() {
            Ok((consumed, block)) => (consumed, read_block(block, &mut self.interfaces, &mut self.skipped, pool)),
            Err(PcapError::Eof) => {
                self.ended = true;
                return Ok(None);
            }
            Err(PcapError::Incomplete(_)) => return self.refill().map(|()| None),
            Err(error) => {
                self.ended = true;
                return Err(damaged(&error));
            }
        };
        self.blocks.consume(consumed);
        Ok(found)
    }

    /// Reads more of the file. If no bytes are added although the file has not ended, a block is longer than the
    /// buffer.
    fn refill(&mut self) -> Result<(), DamagedCaptureError> {
        let before = self.blocks.data().len();
        let refilled = self.blocks.refill().map_err(|error| damaged(&error));
        let stuck = self.blocks.data().len() == before && !self.blocks.reader_exhausted();
        self.ended = stuck || refilled.is_err();
        if stuck { Err(DamagedCaptureError(format!("a block is longer than {BUFFER} bytes"))) } else { refilled }
    }
}

/// Processes a block. Returns its frame, if it holds a usable one.
fn read_block(
    block: PcapBlockOwned<'_>,
    interfaces: &mut Vec<PcapFileInterface>,
    skipped: &mut u64,
    pool: Option<&mut FramePool>,
) -> Option<(u64, Frame)> {
    let frame = |interface: Option<PcapFileInterface>, units: u64, bytes: &[u8]| {
        let usable = interface.filter(|interface| interface.ethernet && bytes.len() <= MAX_FRAME);
        let (Some(interface), Some(pool)) = (usable, pool) else {
            *skipped += 1;
            return None;
        };
        let mut frame = pool.take(bytes.len());
        frame.assign(bytes);
        Some((interface.time_ns(units), frame))
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution = if header.is_nanosecond_precision() { NS_PER_S } else { 1_000_000 };
            interfaces.push(PcapFileInterface {
                ethernet: header.network == Linktype::ETHERNET,
                resolution,
                offset_s: 0,
            });
            None
        }
        PcapBlockOwned::Legacy(record) => {
            let interface = interfaces.first().copied();
            let resolution = interface.map_or(1, |interface| interface.resolution);
            let units = u64::from(record.ts_sec) * resolution + u64::from(record.ts_usec);
            frame(interface, units, record.data)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            None
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            if interfaces.len() < MAX_INTERFACES {
                interfaces.push(PcapFileInterface::new(&description));
            }
            None
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = usize::try_from(packet.if_id).ok().and_then(|id| interfaces.get(id)).copied();
            let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            frame(interface, units, packet.packet_data())
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => frame(interfaces.first().copied(), 0, packet.packet_data()),
        PcapBlockOwned::NG(_) => None,
    }
}

impl PcapFileInterface {
    fn new(description: &InterfaceDescriptionBlock<'_>) -> PcapFileInterface {
        PcapFileInterface {
            ethernet: description.linktype == Linktype::ETHERNET,
            resolution: description.ts_resolution().filter(|units| *units > 0).unwrap_or(1_000_000),
            offset_s: description.ts_offset(),
        }
    }

    /// Converts a timestamp in this interface's units to nanoseconds since 1970.
    fn time_ns(&self, units: u64) -> u64 {
        let ns = i128::from(units) * i128::from(NS_PER_S) / i128::from(self.resolution);
        let ns = ns + i128::from(self.offset_s) * i128::from(NS_PER_S);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

fn not_a_capture(error: &PcapError<&[u8]>) -> io::Error {
    match error {
        PcapError::ReadError => io::Error::other("the file cannot be read"),
        _ => io::Error::new(io::ErrorKind::InvalidData, "found no pcap or pcapng header, expected a capture file"),
    }
}

fn damaged(error: &PcapError<&[u8]>) -> DamagedCaptureError {
    DamagedCaptureError(match error {
        PcapError::UnexpectedEof => "the file ends in the middle of a record".into(),
        PcapError::ReadError => "the file cannot be read".into(),
        PcapError::BufferTooSmall => format!("a record claims to be longer than {BUFFER} bytes"),
        _ => "a record has a wrong header".into(),
    })
}
