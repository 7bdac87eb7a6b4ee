//! Keeps the state of sources and lines during a run.
use crate::model::{FabricNetworkError, FabricPath, FabricSource, LineModel, PathSplit};
use std::collections::VecDeque;
use weir_fabric::{OutputLine, PathSplitter};
use weir_traffic::{PacketSampler, RandomStream};
use weir_units::Instant;

/// Packet between its source and its last output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransitPacket {
    /// Arrival time at its first fabric.
    pub(crate) entered: Instant,
    /// Number among the packets of its source.
    pub(crate) number: u64,
    /// Index of its path among all paths of the model.
    pub(crate) path: u32,
    pub(crate) bytes: u32,
    /// Index of its current hop on the path.
    pub(crate) hop: u8,
    /// True if the packet arrived in the counting window.
    pub(crate) counts: bool,
}

/// Packets on one line, in the order in which they arrive at its far end.
#[derive(Debug, Default)]
pub(crate) struct InFlightQueue(VecDeque<(Instant, TransitPacket)>);

impl InFlightQueue {
    /// Appends a packet. Returns true if it is the first to arrive.
    #[inline]
    pub(crate) fn push(&mut self, arrives: Instant, item: TransitPacket) -> bool {
        self.0.push_back((arrives, item));
        self.0.len() == 1
    }

    /// Removes the packet that arrives. Returns it with the arrival time of the next packet.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(TransitPacket, Instant)> {
        let (_, item) = self.0.pop_front()?;
        Some((item, self.0.front().map_or(Instant::FAR, |(arrives, _)| *arrives)))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// State of the line of one or more sources.
#[derive(Debug)]
pub(crate) struct LineState {
    /// Line that serialises packets; `None` if packets arrive at once.
    pub(crate) line: Option<OutputLine>,
    pub(crate) under_way: InFlightQueue,
}

impl LineState {
    pub(crate) fn new(model: LineModel) -> LineState {
        let line = match model {
            LineModel::Serial(rate) => Some(OutputLine::new(rate, std::time::Duration::ZERO)),
            LineModel::Point => None,
        };
        LineState { line, under_way: InFlightQueue::default() }
    }
}

/// State of a source.
pub(crate) struct SourceState {
    generator: PacketSampler,
    pub(crate) line: u32,
    stop: Instant,
    share_out: PathChooser,
    /// Number of the next packet.
    number: u64,
    /// Index of its first path among all paths of the model.
    first_path: u32,
}

/// Chooser of a packet's path.
enum PathChooser {
    /// The source has a single path.
    One,
    /// Random choice. For each path, the sum of its own and all previous shares.
    Random(Box<[f64]>),
    Link(Box<PathSplitter>),
}

impl SourceState {
    /// Returns the state of source number `index` of the model, and the time of its first packet. The source stops at
    /// `end` at the latest.
    pub(crate) fn new(
        source: &FabricSource,
        index: usize,
        first_path: u32,
        end: Instant,
        random: RandomStream,
    ) -> Result<(SourceState, Instant), FabricNetworkError> {
        let wrong = |error| FabricNetworkError::Traffic { source_index: index, error };
        let mut generator = PacketSampler::new(&source.traffic, source.start, random).map_err(wrong)?;
        let share_out = match source.split {
            _ if source.paths.len() == 1 => PathChooser::One,
            PathSplit::Random => PathChooser::Random(shares(source)),
            PathSplit::Link(by) => {
                let weights: Vec<u32> = source.paths.iter().map(|path| weight(path.share)).collect();
                let splitter = PathSplitter::new(&weights, by, generator.random().below(u64::MAX));
                PathChooser::Link(Box::new(
                    splitter.map_err(|error| FabricNetworkError::Split { source_index: index, error })?,
                ))
            }
        };
        let mut state = SourceState {
            generator,
            line: u32::try_from(source.line).unwrap_or(u32::MAX),
            stop: source.stop.min(end),
            share_out,
            number: 0,
            first_path,
        };
        let first = state.next_time(source.start);
        Ok((state, first))
    }

    /// Returns the time of the packet after the one at `now`; [`Instant::FAR`] if the source stops before.
    #[inline]
    pub(crate) fn next_time(&mut self, now: Instant) -> Instant {
        let next = self.generator.next_after(now);
        if next < self.stop { next } else { Instant::FAR }
    }

    /// Makes the packet due now. The caller sets `entered` and `counts`.
    #[inline]
    pub(crate) fn make(&mut self) -> TransitPacket {
        let bytes = self.generator.bytes();
        let path = match &mut self.share_out {
            PathChooser::One => 0,
            PathChooser::Random(shares) => {
                let point = self.generator.random().unit();
                shares.iter().position(|below| point < *below).unwrap_or(shares.len() - 1)
            }
            PathChooser::Link(splitter) => splitter.split(bytes).0,
        };
        let number = self.number;
        self.number += 1;
        let path = self.first_path + u32::try_from(path).unwrap_or(u32::MAX);
        TransitPacket { entered: Instant::ZERO, number, path, bytes, hop: 0, counts: false }
    }
}

/// Returns for each path the sum of its own and all previous shares, as a fraction of the total.
fn shares(source: &FabricSource) -> Box<[f64]> {
    let total: f64 = source.paths.iter().map(|path| path.share).sum();
    let mut below = 0.0;
    let up_to = |path: &FabricPath| {
        below += path.share / total;
        below
    };
    source.paths.iter().map(up_to).collect()
}

/// Converts a share to a weight. Returns 0, which is not a valid weight, if the share is not a whole number.
fn weight(share: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "compared after")]
    let whole = share as u32;
    if f64::from(whole) == share { whole } else { 0 }
}
