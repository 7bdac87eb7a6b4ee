//! Plans when packets are sent: sources make them by rule, and each port's line sends them one after the other.
use super::stamp::{self, StreamStamp};
use super::template::{self, StreamFrameTemplate};
use crate::NetworkError;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use weir_packet::{Frame, FramePool};
use weir_scenario::Scenario;
use weir_traffic::{PacketSampler, RandomStream};
use weir_units::{Bps, Instant};

/// All sources, and the lines on which they send.
pub(super) struct StreamSources {
    sources: Vec<StreamInputSource>,
    lines: Vec<InputPortLine>,
    /// Next event of each source and line, earliest first.
    agenda: BinaryHeap<Reverse<(Instant, StreamSendEvent)>>,
    /// Window in which sent packets count.
    counts: [Instant; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StreamSendEvent {
    /// The first packet of a line has been sent, including its last bit.
    Sent(usize),
    /// A source makes a packet.
    Made(usize),
}

struct StreamInputSource {
    stream: usize,
    line: usize,
    template: Arc<StreamFrameTemplate>,
    generator: PacketSampler,
    until: Instant,
}

struct InputPortLine {
    port: (usize, u32),
    rate: Bps,
    free_at: Instant,
    /// Packets: time at which the last bit is sent, source, bytes.
    waiting: VecDeque<(Instant, usize, u32)>,
}

/// Packet that is due.
pub(super) struct DueStreamPacket {
    pub(super) stream: usize,
    pub(super) port: (usize, u32),
    pub(super) bytes: u32,
    pub(super) at: Instant,
    pub(super) counts: bool,
    template: Arc<StreamFrameTemplate>,
}

impl DueStreamPacket {
    /// Returns the packet's frame, stamped as sent `now`.
    pub(super) fn frame(&self, now: Instant, pool: &mut FramePool) -> Frame {
        let mut frame = self.template.frame(self.bytes, pool);
        let stream = u16::try_from(self.stream).unwrap_or(u16::MAX);
        stamp::write(frame.bytes_mut(), StreamStamp { stream, counts: self.counts, sent: now });
        frame
    }
}

impl StreamSources {
    /// Returns the scenario's sources; their times count from `start`.
    ///
    /// # Errors
    /// The traffic is not possible, or packets cannot be made for a stream's virtual switch.
    pub(super) fn new(scenario: &Scenario, start: Instant) -> Result<StreamSources, NetworkError> {
        let begin = start + scenario.simulate.warm_up;
        let end = begin + scenario.simulate.duration;
        let mut all =
            StreamSources { sources: Vec::new(), lines: Vec::new(), agenda: BinaryHeap::new(), counts: [begin, end] };
        let mut lines: HashMap<(usize, u32), usize> = HashMap::new();
        for (index, stream) in scenario.streams.iter().enumerate() {
            let from = start + stream.start;
            let until = stream.duration.map_or(end, |duration| (from + duration).min(end));
            for input in &stream.inputs {
                let port = (stream.switch, *input);
                let line = *lines.entry(port).or_insert_with(|| {
                    all.lines.push(InputPortLine {
                        port,
                        rate: rate(scenario, port),
                        free_at: start,
                        waiting: VecDeque::new(),
                    });
                    all.lines.len() - 1
                });
                let number = all.sources.len();
                let random = RandomStream::new(scenario.seed, 0, number as u64);
                let generator = PacketSampler::new(&stream.source, from, random);
                let generator = generator.map_err(|error| NetworkError::Scenario(error.to_string()))?;
                let template = Arc::new(template::template(scenario, stream, *input)?);
                all.sources.push(StreamInputSource { stream: index, line, template, generator, until });
                all.plan(number, from);
            }
        }
        Ok(all)
    }

    /// Returns the time of the next event, at which a packet may be due; [`Instant::FAR`] if there is none.
    pub(super) fn next_event(&self) -> Instant {
        self.agenda.peek().map_or(Instant::FAR, |Reverse((at, _))| *at)
    }

    /// Returns true if no more packets are planned.
    pub(super) fn is_over(&self) -> bool {
        self.agenda.is_empty()
    }

    /// Returns the next packet whose sending time is not after `now`.
    pub(super) fn due(&mut self, now: Instant) -> Option<DueStreamPacket> {
        while let Some(Reverse((at, event))) = self.agenda.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.agenda.pop();
            match event {
                StreamSendEvent::Made(source) => self.make(source, at),
                StreamSendEvent::Sent(line) => {
                    if let Some(due) = self.sent(line) {
                        return Some(due);
                    }
                }
            }
        }
        None
    }

    /// Plans the source's next packet after `last`.
    fn plan(&mut self, number: usize, last: Instant) {
        let source = &mut self.sources[number];
        let next = source.generator.next_after(last);
        if next < source.until {
            self.agenda.push(Reverse((next, StreamSendEvent::Made(number))));
        }
    }

    fn make(&mut self, number: usize, at: Instant) {
        let source = &mut self.sources[number];
        let bytes = source.generator.bytes();
        let line = &mut self.lines[source.line];
        line.free_at = line.free_at.max(at) + line.rate.time_of(bytes.into());
        if line.waiting.is_empty() {
            self.agenda.push(Reverse((line.free_at, StreamSendEvent::Sent(source.line))));
        }
        line.waiting.push_back((line.free_at, number, bytes));
        self.plan(number, at);
    }

    fn sent(&mut self, number: usize) -> Option<DueStreamPacket> {
        let line = &mut self.lines[number];
        let (at, source, bytes) = line.waiting.pop_front()?;
        if let Some((next, ..)) = line.waiting.front() {
            self.agenda.push(Reverse((*next, StreamSendEvent::Sent(number))));
        }
        let [begin, end] = self.counts;
        let counts = begin <= at && at < end;
        let StreamInputSource { stream, template, .. } = &self.sources[source];
        Some(DueStreamPacket { stream: *stream, port: line.port, bytes, at, counts, template: Arc::clone(template) })
    }
}

/// Returns the rate of a switch's port.
fn rate(scenario: &Scenario, (switch, port): (usize, u32)) -> Bps {
    let ports = scenario.switches[switch].fabric.iter().flat_map(|fabric| &fabric.ports);
    ports.filter(|known| known.port == port).map(|known| known.rate).next().unwrap_or(Bps(u64::MAX))
}
