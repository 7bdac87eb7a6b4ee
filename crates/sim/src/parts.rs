//! Sources and lines while a run goes on.
use crate::model::{LineModel, ModelError, Path, Source, Split};
use std::collections::VecDeque;
use weir_fabric::{Line, Splitter};
use weir_traffic::{Generator, Stream};
use weir_units::Instant;

/// A packet on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    /// When it arrived at its first fabric.
    pub(crate) entered: Instant,
    /// Its number among its source's.
    pub(crate) number: u64,
    /// Its path, among all paths of the model.
    pub(crate) path: u32,
    pub(crate) bytes: u32,
    /// The hop it is at.
    pub(crate) hop: u8,
    /// Whether it counts.
    pub(crate) counts: bool,
}

/// Packets under way, in the order in which they arrive.
#[derive(Debug, Default)]
pub(crate) struct UnderWay(VecDeque<(Instant, Item)>);

impl UnderWay {
    /// Puts a packet on; whether it is the first to arrive.
    #[inline]
    pub(crate) fn push(&mut self, arrives: Instant, item: Item) -> bool {
        self.0.push_back((arrives, item));
        self.0.len() == 1
    }

    /// Takes the packet that arrives; gives the time of the next.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Item, Instant)> {
        let (_, item) = self.0.pop_front()?;
        Some((item, self.0.front().map_or(Instant::FAR, |(arrives, _)| *arrives)))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The line of sources.
#[derive(Debug)]
pub(crate) struct LineState {
    /// None: packets are there at once.
    pub(crate) line: Option<Line>,
    pub(crate) under_way: UnderWay,
}

impl LineState {
    pub(crate) fn new(model: LineModel) -> LineState {
        let line = match model {
            LineModel::Serial(rate) => Some(Line::new(rate, std::time::Duration::ZERO)),
            LineModel::Point => None,
        };
        LineState { line, under_way: UnderWay::default() }
    }
}

/// A source with what it draws from.
pub(crate) struct SourceState {
    generator: Generator,
    pub(crate) line: u32,
    stop: Instant,
    share_out: ShareOut,
    /// Of the next packet.
    number: u64,
    /// Number of its first path among all.
    first_path: u32,
}

/// Who chooses a packet's path.
enum ShareOut {
    /// There is only one.
    One,
    /// By path: the share of all that it and those before have.
    Random(Box<[f64]>),
    Link(Box<Splitter>),
}

impl SourceState {
    /// The source, number `index` of its model, and when its first packet comes.
    pub(crate) fn new(
        source: &Source,
        index: usize,
        first_path: u32,
        end: Instant,
        random: Stream,
    ) -> Result<(SourceState, Instant), ModelError> {
        let wrong = |error| ModelError::Traffic { source_index: index, error };
        let mut generator = Generator::new(&source.traffic, source.start, random).map_err(wrong)?;
        let share_out = match source.split {
            _ if source.paths.len() == 1 => ShareOut::One,
            Split::Random => ShareOut::Random(shares(source)),
            Split::Link(by) => {
                let weights: Vec<u32> = source.paths.iter().map(|path| weight(path.share)).collect();
                let splitter = Splitter::new(&weights, by, generator.random().below(u64::MAX));
                ShareOut::Link(Box::new(splitter.map_err(|error| ModelError::Split { source_index: index, error })?))
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

    /// When the packet after one at `now` comes.
    #[inline]
    pub(crate) fn next_time(&mut self, now: Instant) -> Instant {
        let next = self.generator.next_after(now);
        if next < self.stop { next } else { Instant::FAR }
    }

    /// The packet that comes now; `entered` and whether it counts are not known yet.
    #[inline]
    pub(crate) fn make(&mut self) -> Item {
        let bytes = self.generator.bytes();
        let path = match &mut self.share_out {
            ShareOut::One => 0,
            ShareOut::Random(shares) => {
                let point = self.generator.random().unit();
                shares.iter().position(|below| point < *below).unwrap_or(shares.len() - 1)
            }
            ShareOut::Link(splitter) => splitter.split(bytes).0,
        };
        let number = self.number;
        self.number += 1;
        let path = self.first_path + u32::try_from(path).unwrap_or(u32::MAX);
        Item { entered: Instant::ZERO, number, path, bytes, hop: 0, counts: false }
    }
}

/// By path: the share of all that it and those before have.
fn shares(source: &Source) -> Box<[f64]> {
    let total: f64 = source.paths.iter().map(|path| path.share).sum();
    let mut below = 0.0;
    let up_to = |path: &Path| {
        below += path.share / total;
        below
    };
    source.paths.iter().map(up_to).collect()
}

/// A share that is a whole number; 0, which is no weight, for any other.
fn weight(share: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "compared after")]
    let whole = share as u32;
    if f64::from(whole) == share { whole } else { 0 }
}
