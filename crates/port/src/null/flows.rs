//! The frames of a generating port: what a flow's number makes of the headers.
use super::order::MAX_FLOWS;
use weir_memory::prefetch;
use weir_packet::{Frame, FramePool};

/// Bytes at a frame's start that are written for each frame; what follows is whatever its buffer held.
pub const HEADER: usize = 64;
/// The first bytes of a frame.
pub type Header = [u8; HEADER];
/// Lengths of frames with headers: the shortest that Ethernet has to the longest without a tag.
pub const SIZES: std::ops::RangeInclusive<usize> = 60..=1514;

/// What makes flows differ. Numbers are those of flows, `r` is a flow's number modulo the spread; all but the last kind are UDP
/// over IPv4 from 10.0.0.1 port 1024 to 192.168.0.1 port 2048 where nothing else is said. Checksums are zero: what needs them
/// right is not for such a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Headers {
    /// Source 10.0.0.0 + r, destination 192.168.0.0 + r modulo 2^16, source port 1024 + flow / spread (the flow itself where
    /// each has its own r) modulo 2^15.
    Udp,
    /// Destination 02:00:00:00:00:00 + r, source 10.0.0.0 + flow.
    Mac,
    /// MPLS label r modulo 2^20, source 10.0.0.0 + flow behind it.
    Mpls,
    /// Class c = flow modulo 32: source (10+c).c.c.c, destination (100+c).c.c.c, destination port 1000 + c, source port flow / 32.
    Masks,
    /// To the flow's destination.
    Destinations(Box<[u32]>),
    /// The flow's own headers.
    Listed(Box<[Header]>),
}

/// Flows, and the frames they are made of.
#[derive(Debug, Clone)]
pub struct Flows {
    headers: Headers,
    count: u32,
    spread: u32,
    size: usize,
    template: Header,
}

impl Flows {
    /// `count` flows in frames of `size` bytes. `spread` values share their flows out among entries; none: as many as flows.
    ///
    /// # Errors
    /// A number is out of its range; a list is shorter than the number of flows.
    pub fn new(headers: Headers, count: u32, spread: Option<u32>, size: usize) -> Result<Flows, String> {
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
        Ok(Flows { headers, count, spread, size, template })
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Values that entries tell apart, where the kind has such.
    pub fn spread(&self) -> u32 {
        self.spread
    }

    /// Length of every frame.
    pub fn size(&self) -> usize {
        self.size
    }

    /// What makes them differ.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The headers of a flow.
    pub fn header(&self, flow: u32) -> Header {
        let (mut pool, mut frames) = (FramePool::new(0, 0), Vec::with_capacity(1));
        self.make(&[flow % self.count], &mut pool, &mut frames);
        let bytes = frames.first().map_or(&[][..], |frame| frame.bytes());
        let mut header = [0; HEADER];
        let written = bytes.len().min(HEADER);
        header[..written].copy_from_slice(&bytes[..written]);
        header
    }

    /// Appends a frame of each of the flows, written here and now.
    #[inline]
    pub(super) fn make(&self, flows: &[u32], pool: &mut FramePool, frames: &mut Vec<Frame>) {
        let template = &self.template;
        match &self.headers {
            Headers::Udp if self.spread == self.count => self.each(flows, pool, frames, |header, flow| {
                *header = *template;
                put_udp(header, flow, flow);
            }),
            Headers::Udp => self.each(flows, pool, frames, |header, flow| {
                *header = *template;
                put_udp(header, flow % self.spread, flow / self.spread);
            }),
            Headers::Mac => self.each(flows, pool, frames, |header, flow| {
                *header = *template;
                put(header, 2, self.value_of(flow));
                put(header, SOURCE, SOURCES + flow);
            }),
            Headers::Mpls => self.each(flows, pool, frames, |header, flow| {
                *header = *template;
                put(header, 14, (self.value_of(flow) & 0xf_ffff) << 12 | BOTTOM_AND_TTL);
                put(header, SOURCE + 4, SOURCES + flow);
            }),
            Headers::Masks => self.each(flows, pool, frames, |header, flow| {
                *header = *template;
                put_class(header, flow);
            }),
            Headers::Destinations(list) => {
                flows.iter().for_each(|flow| prefetch(list, *flow as usize));
                self.each(flows, pool, frames, |header, flow| {
                    *header = *template;
                    put(header, DESTINATION, list.get(flow as usize).copied().unwrap_or_default());
                });
            }
            Headers::Listed(list) => {
                flows.iter().for_each(|flow| prefetch(list, *flow as usize));
                self.each(flows, pool, frames, |header, flow| {
                    *header = *list.get(flow as usize).unwrap_or(template);
                });
            }
        }
    }

    #[inline(always)]
    fn each(&self, flows: &[u32], pool: &mut FramePool, frames: &mut Vec<Frame>, write: impl Fn(&mut Header, u32)) {
        let before = frames.len();
        pool.take_burst(self.size, flows.len(), frames);
        for (frame, flow) in frames[before..].iter_mut().zip(flows) {
            if let Some(header) = frame.receive_buffer().first_chunk_mut() {
                write(header, *flow);
            }
            frame.received(self.size);
        }
    }

    #[inline(always)]
    fn value_of(&self, flow: u32) -> u32 {
        // Most often each flow has a value of its own: no division then.
        if self.spread == self.count { flow } else { flow % self.spread }
    }
}

impl Headers {
    /// How many flows a list is for; none if any number.
    pub fn listed(&self) -> Option<usize> {
        match self {
            Headers::Destinations(list) => Some(list.len()),
            Headers::Listed(list) => Some(list.len()),
            Headers::Udp | Headers::Mac | Headers::Mpls | Headers::Masks => None,
        }
    }
}

/// Where fields lie in an untagged frame.
const SOURCE: usize = 26;
const DESTINATION: usize = 30;
const SOURCE_PORT: usize = 34;
const DESTINATION_PORT: usize = 36;
/// The first source address.
const SOURCES: u32 = 0x0a00_0000;
/// The first destination address.
const DESTINATIONS: u32 = 0xc0a8_0000;
const FIRST_PORT: u32 = 1024;
/// In a label stack entry.
const BOTTOM_AND_TTL: u32 = 0x140;

#[inline(always)]
fn put(header: &mut Header, at: usize, value: u32) {
    header[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

#[inline(always)]
fn put_port(header: &mut Header, at: usize, value: u32) {
    let [_, _, high, low] = value.to_be_bytes();
    header[at..at + 2].copy_from_slice(&[high, low]);
}

#[inline(always)]
fn put_udp(header: &mut Header, value: u32, port: u32) {
    put(header, SOURCE, SOURCES + value);
    put(header, DESTINATION, DESTINATIONS + (value & 0xffff));
    put_port(header, SOURCE_PORT, FIRST_PORT + (port & 0x7fff));
}

#[inline(always)]
fn put_class(header: &mut Header, flow: u32) {
    let class = flow & 31;
    put(header, SOURCE, class * 0x0101_0101 + (10 << 24));
    put(header, DESTINATION, class * 0x0101_0101 + (100 << 24));
    put_port(header, SOURCE_PORT, flow >> 5);
    put_port(header, DESTINATION_PORT, 1000 + class);
}

/// What all frames have in common.
fn template(headers: &Headers, size: usize) -> Header {
    let mut header = [0; HEADER];
    header[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 2]);
    let (ether_type, ip) = if *headers == Headers::Mpls { (0x8847, 18) } else { (0x0800, 14) };
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
