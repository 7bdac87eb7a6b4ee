//! Sources and lines while a run goes on.
use crate::model::{Generated, LineModel, Source, Split};
use std::collections::VecDeque;
use weir_fabric::Line;
use weir_traffic::{Arrivals, Sizes, Stream, Trace, TrafficError};
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
    traffic: Traffic,
    random: Stream,
    pub(crate) line: u32,
    stop: Instant,
    split: Split,
    /// Of the next packet.
    number: u64,
    /// Number of its first path among all.
    first_path: u32,
    /// By path: its share of all and of those before, and for [`Split::Bytes`] the bytes it has had, over its share.
    paths: Box<[(f64, f64, f64)]>,
    turn: u32,
}

enum Traffic {
    Rule { arrivals: Box<Arrivals>, sizes: Sizes },
    Trace { trace: Trace, next: usize, start: Instant },
}

impl SourceState {
    /// The source and when its first packet comes.
    pub(crate) fn new(
        source: &Source,
        first_path: u32,
        end: Instant,
        mut random: Stream,
    ) -> Result<(SourceState, Instant), TrafficError> {
        let traffic = match &source.traffic {
            Generated::Rule { arrival, per_second, size } => {
                let arrivals = Box::new(Arrivals::new(arrival, *per_second, &mut random)?);
                Traffic::Rule { arrivals, sizes: Sizes::new(size)? }
            }
            Generated::Trace(trace) => Traffic::Trace { trace: trace.clone(), next: 0, start: source.start },
        };
        let total: f64 = source.paths.iter().map(|path| path.share).sum();
        let mut below = 0.0;
        let paths = source.paths.iter().map(|path| {
            below += path.share / total;
            (below, path.share / total, 0.0)
        });
        let mut state = SourceState {
            traffic,
            random,
            line: u32::try_from(source.line).unwrap_or(u32::MAX),
            stop: source.stop.min(end),
            split: source.split,
            number: 0,
            first_path,
            paths: paths.collect(),
            turn: 0,
        };
        let first = state.next_time(source.start);
        Ok((state, first))
    }

    /// When the packet after one at `now` comes.
    #[inline]
    pub(crate) fn next_time(&mut self, now: Instant) -> Instant {
        let next = match &mut self.traffic {
            Traffic::Rule { arrivals, .. } => {
                Instant::from_nanos(now.as_nanos().saturating_add(arrivals.next(&mut self.random)))
            }
            Traffic::Trace { trace, next, start } => trace
                .0
                .get(*next)
                .map_or(Instant::FAR, |packet| Instant::from_nanos(start.as_nanos().saturating_add(packet.at_ns))),
        };
        if next < self.stop { next } else { Instant::FAR }
    }

    /// The packet that comes now; `entered` and whether it counts are not known yet.
    #[inline]
    pub(crate) fn make(&mut self) -> Item {
        let bytes = match &mut self.traffic {
            Traffic::Rule { sizes, .. } => sizes.draw(&mut self.random),
            Traffic::Trace { trace, next, .. } => {
                *next += 1;
                trace.0.get(*next - 1).map_or(0, |packet| packet.bytes)
            }
        };
        let path = self.first_path + if self.paths.len() == 1 { 0 } else { self.choose(bytes) };
        let number = self.number;
        self.number += 1;
        Item { entered: Instant::ZERO, number, path, bytes, hop: 0, counts: false }
    }

    fn choose(&mut self, bytes: u32) -> u32 {
        let count = u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
        let chosen = match self.split {
            Split::Random => {
                let point = self.random.unit();
                self.paths.iter().position(|(below, ..)| point < *below)
            }
            Split::Alternate => {
                let turn = self.turn;
                self.turn = (turn + 1) % count;
                return turn;
            }
            Split::Bytes => {
                let open = self.paths.iter().enumerate().filter(|(_, (_, share, _))| *share > 0.0);
                let least = open.min_by(|(_, a), (_, b)| a.2.total_cmp(&b.2)).map(|(at, _)| at);
                if let Some((_, share, had)) = least.and_then(|at| self.paths.get_mut(at)) {
                    *had += f64::from(bytes) / *share;
                }
                least
            }
        };
        chosen.and_then(|at| u32::try_from(at).ok()).unwrap_or(count - 1)
    }
}
