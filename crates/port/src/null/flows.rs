//! Builds the frames that a generating port offers: maps the number of a flow to header fields.
use super::flow_sequence::MAX_FLOWS;
use weir_memory::prefetch;
use weir_packet::{Frame, FramePool};

/// Number of bytes at the start of a frame that are written. Further bytes keep the buffer's previous contents.
pub const HEADER: usize = 64;
/// First bytes of a frame.
pub type HeaderBytes = [u8; HEADER];
/// Allowed lengths of frames with headers, in bytes without FCS: Ethernet's minimum to its maximum without a tag.
pub const SIZES: std::ops::RangeInclusive<usize> = 60..=1514;

/// Kind of the frames' headers: it determines in which fields flows differ. `flow` is the number of a flow; `r` is this
/// number modulo the spread. All kinds but the last are UDP over IPv4 from 10.0.0.1 port 1024 to 192.168.0.1 port 2048,
/// except as stated. Checksums are zero, so these frames do not suit receivers that verify checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowHeaderKind {
    /// Source 10.0.0.0 + r, destination 192.168.0.0 + r modulo 2^16, source port 1024 + flow / spread modulo 2^15. If
    /// each flow has its own r, the source port is 1024 + flow modulo 2^15.
    Udp,
    /// Destination 02:00:00:00:00:00 + r, source 10.0.0.0 + flow.
    Mac,
    /// MPLS label r modulo 2^20, then IPv4 with source 10.0.0.0 + flow.
    Mpls,
    /// Class c = flow modulo 32: source (10+c).c.c.c, destination (100+c).c.c.c, destination port 1000 + c, source
    /// port flow / 32.
    Masks,
    /// Destination from the list, one address per flow.
    Destinations(Box<[u32]>),
    /// Whole headers from the list, one per flow.
    Listed(Box<[HeaderBytes]>),
}

/// Set of flows, and builder of their frames.
#[derive(Debug, Clone)]
pub struct GeneratedFlows {
    headers: FlowHeaderKind,
    /// Number of flows.
    count: u32,
    /// Number of distinct values of the varied field.
    spread: u32,
    /// Length of the frames in bytes.
    size: usize,
    /// Header bytes that all frames have in common.
    template: HeaderBytes,
}

impl GeneratedFlows {
    /// Creates `count` flows in frames of `size` bytes. `spread` is the number of distinct values of the varied field
    /// (`r`), which the flows share; `None`: one value per flow.
    ///
    /// # Errors
    /// A number is out of its range, or a list is shorter than the number of flows.
    pub fn new(
        headers: FlowHeaderKind,
        count: u32,
        spread: Option<u32>,
        size: usize,
    ) -> Result<GeneratedFlows, String> {
        if !(1..=MAX_FLOWS).contains(&count) {
            return Err(format!("found {count} flows, expected 1 to {MAX_FLOWS}"));
        }
        let spread = spread.unwrap_or(count);
        if !(1..=count).contains(&spread) {
            return Err(format!("found a spread of {spread}, expected 1 to the number of flows, {count}"));
        }
        if !SIZES.contains(&size) {
            return Err(format!("found frames of {size} bytes, expected {} to {}", SIZES.start(), SIZES.end()));
        }
        if let Some(listed) = headers.listed().filter(|listed| *listed < count as usize) {
            return Err(format!("found a list of {listed} for {count} flows, expected at least as many"));
        }
        let template = template(&headers, size);
        Ok(GeneratedFlows { headers, count, spread, size, template })
    }

    /// Returns the number of flows.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of distinct values of the varied field, for kinds that use a spread.
    pub fn spread(&self) -> u32 {
        self.spread
    }

    /// Returns the length of every frame in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the kind of the frames' headers.
    pub fn headers(&self) -> &FlowHeaderKind {
        &self.headers
    }

    /// Returns the first bytes of a frame of the flow with number `flow` modulo the number of flows.
    pub fn header(&self, flow: u32) -> HeaderBytes {
        let (mut pool, mut frames) = (FramePool::new(0, 0), Vec::with_capacity(1));
        self.make(&[flow % self.count], &mut pool, &mut frames);
        let bytes = frames.first().map_or(&[][..], |frame| frame.bytes());
        let mut header = [0; HEADER];
        let written = bytes.len().min(HEADER);
        header[..written].copy_from_slice(&bytes[..written]);
        header
    }

    /// Appends a frame to `frames` for each flow number in `flows`. Buffers come from `pool`.
    #[inline]
    pub(super) fn make(&self, flows: &[u32], pool: &mut FramePool, frames: &mut Vec<Frame>) {
        let template = &self.template;
        match &self.headers {
            FlowHeaderKind::Udp if self.spread == self.count => self.each(flows, pool, frames, |header, flow| {
                *header = *template;
                put_udp(header, flow, flow);
            }),
            FlowHeaderKind::Udp => self.each(flows, pool, frames, |header, flow| {
                *header = *template;
                put_udp(header, flow % self.spread, flow / self.spread);
            }),
            FlowHeaderKind::Mac => self.each(flows, pool, frames, |header, flow| {
                *header = *template;
                put(header, 2, self.value_of(flow));
                put(header, SOURCE, SOURCES + flow);
            }),
            FlowHeaderKind::Mpls => self.each(flows, pool, frames, |header, flow| {
                *header = *template;
                put(header, 14, (self.value_of(flow) & 0xf_ffff) << 12 | BOTTOM_AND_TTL);
                put(header, SOURCE + 4, SOURCES + flow);
            }),
            FlowHeaderKind::Masks => self.each(flows, pool, frames, |header, flow| {
                *header = *template;
                put_class(header, flow);
            }),
            FlowHeaderKind::Destinations(list) => {
                flows.iter().for_each(|flow| prefetch(list, *flow as usize));
                self.each(flows, pool, frames, |header, flow| {
                    *header = *template;
                    put(header, DESTINATION, list.get(flow as usize).copied().unwrap_or_default());
                });
            }
            FlowHeaderKind::Listed(list) => {
                flows.iter().for_each(|flow| prefetch(list, *flow as usize));
                self.each(flows, pool, frames, |header, flow| {
                    *header = *list.get(flow as usize).unwrap_or(template);
                });
            }
        }
    }

    #[inline(always)]
    fn each(
        &self,
        flows: &[u32],
        pool: &mut FramePool,
        frames: &mut Vec<Frame>,
        write: impl Fn(&mut HeaderBytes, u32),
    ) {
        let before = frames.len();
        pool.take_burst(self.size, flows.len(), frames);
        for (frame, flow) in frames[before..].iter_mut().zip(flows) {
            if let Some(header) = frame.begin_receive().first_chunk_mut() {
                write(header, *flow);
            }
            frame.finish_receive(self.size);
        }
    }

    #[inline(always)]
    fn value_of(&self, flow: u32) -> u32 {
        // Usually each flow has its own value; the branch then avoids a division.
        if self.spread == self.count { flow } else { flow % self.spread }
    }
}

impl FlowHeaderKind {
    /// Returns the number of flows for which the list has values; `None` for kinds without a list.
    pub fn listed(&self) -> Option<usize> {
        match self {
            FlowHeaderKind::Destinations(list) => Some(list.len()),
            FlowHeaderKind::Listed(list) => Some(list.len()),
            FlowHeaderKind::Udp | FlowHeaderKind::Mac | FlowHeaderKind::Mpls | FlowHeaderKind::Masks => None,
        }
    }
}

/// Offsets of fields in an untagged frame, in bytes.
const SOURCE: usize = 26;
const DESTINATION: usize = 30;
const SOURCE_PORT: usize = 34;
const DESTINATION_PORT: usize = 36;
/// First source address: 10.0.0.0.
const SOURCES: u32 = 0x0a00_0000;
/// First destination address: 192.168.0.0.
const DESTINATIONS: u32 = 0xc0a8_0000;
const FIRST_PORT: u32 = 1024;
/// MPLS label stack entry without its label: bottom of the stack, and a time to live of 64.
const BOTTOM_AND_TTL: u32 = 0x140;

#[inline(always)]
fn put(header: &mut HeaderBytes, at: usize, value: u32) {
    header[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

#[inline(always)]
fn put_port(header: &mut HeaderBytes, at: usize, value: u32) {
    let [_, _, high, low] = value.to_be_bytes();
    header[at..at + 2].copy_from_slice(&[high, low]);
}

#[inline(always)]
fn put_udp(header: &mut HeaderBytes, value: u32, port: u32) {
    put(header, SOURCE, SOURCES + value);
    put(header, DESTINATION, DESTINATIONS + (value & 0xffff));
    put_port(header, SOURCE_PORT, FIRST_PORT + (port & 0x7fff));
}

#[inline(always)]
fn put_class(header: &mut HeaderBytes, flow: u32) {
    let class = flow & 31;
    put(header, SOURCE, class * 0x0101_0101 + (10 << 24));
    put(header, DESTINATION, class * 0x0101_0101 + (100 << 24));
    put_port(header, SOURCE_PORT, flow >> 5);
    put_port(header, DESTINATION_PORT, 1000 + class);
}

/// Returns the header bytes that all frames have in common.
fn template(headers: &FlowHeaderKind, size: usize) -> HeaderBytes {
    let mut header = [0; HEADER];
    header[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 2]);
    let (ether_type, ip) = if *headers == FlowHeaderKind::Mpls { (0x8847, 18) } else { (0x0800, 14) };
    header[14..18].copy_from_slice(&BOTTOM_AND_TTL.to_be_bytes());
    put_port(&mut header, 12, ether_type);
    let length = u32::try_from(size - ip).unwrap_or(0);
    put(&mut header, ip, 0x4500 << 16 | length);
    put(&mut header, ip + 4, 0);
    // Time to live 64, UDP.
    put(&mut header, ip + 8, 0x4011 << 16);
    put(&mut header, ip + 12, SOURCES + 1);
    put(&mut header, ip + 16, DESTINATIONS + 1);
    put(&mut header, ip + 20, FIRST_PORT << 16 | 2048);
    put(&mut header, ip + 24, (length - 20) << 16);
    header
}
