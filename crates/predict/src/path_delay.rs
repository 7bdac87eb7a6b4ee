//! Computes the delay of one flow's packets through a solved network as a sum of parts, and the share that arrives.
use crate::line_delays::LineDelays;
use crate::network::{QueueingNetwork, RouteStep, StationVisit, UnidirectionalFlow};
use crate::station::{StationSolution, WaitingDoubt};
use crate::wakeup;
use weir_model::{Distribution, Law, ModelError};

/// Most waiting times kept separate in a sum; the smallest ones beyond are combined by mean and variance, so that
/// long routes stay cheap.
const MOST_WAITS: usize = 5;
/// Share of the whole mean below which a part counts as constant.
const NEGLIGIBLE: f64 = 1e-4;

/// Result of a flow's packets of one kind: those that no switch asks about, or those that switches ask about.
#[derive(Debug, Clone)]
pub(crate) struct PathDelay {
    /// Share of the packets sent that arrive.
    pub(crate) arrives: f64,
    /// Delay, or the index of a queue without a steady state.
    pub(crate) delay: Result<Distribution, usize>,
    /// Queue with the longest stay, and its length in seconds.
    pub(crate) longest: Option<(usize, f64)>,
    /// Queues whose waiting is known only roughly, with the mean waiting time in seconds.
    pub(crate) doubts: Vec<(WaitingDoubt, usize, f64)>,
}

#[derive(Default)]
struct DelayTerms {
    constant: f64,
    per_byte_s: f64,
    laws: Vec<Distribution>,
    lines: LineDelays,
}

/// Computes the result of a flow's packets, given its number. `asks` selects those that switches ask the controller
/// about.
pub(crate) fn delay_on_path(
    network: &QueueingNetwork<'_>,
    solved: &[Option<StationSolution>],
    (number, flow): (usize, &UnidirectionalFlow),
    asks: bool,
) -> Result<PathDelay, ModelError> {
    let mut walk = PathDelayBuilder {
        network,
        solved,
        flow: number,
        parts: DelayTerms::default(),
        arrives: 1.0,
        unstable: None,
        longest: None,
        doubts: Vec::new(),
    };
    for step in flow.steps.iter() {
        match step {
            RouteStep::Visit(visit) => walk.visit(visit),
            RouteStep::ControllerTrip { way, back, delay_s, .. } if asks => {
                way.iter().chain(back).for_each(|visit| walk.visit(visit));
                walk.parts.constant += delay_s;
            }
            RouteStep::ControllerTrip { .. } => {}
        }
    }
    let delay = match walk.unstable {
        Some(station) => Err(station),
        None => Ok(walk.parts.sum(&flow.lengths)?),
    };
    Ok(PathDelay { arrives: walk.arrives, delay, longest: walk.longest, doubts: walk.doubts })
}

struct PathDelayBuilder<'a> {
    network: &'a QueueingNetwork<'a>,
    solved: &'a [Option<StationSolution>],
    flow: usize,
    parts: DelayTerms,
    arrives: f64,
    unstable: Option<usize>,
    longest: Option<(usize, f64)>,
    doubts: Vec<(WaitingDoubt, usize, f64)>,
}

impl PathDelayBuilder<'_> {
    fn visit(&mut self, visit: &StationVisit) {
        self.arrives *= self.network.stations[visit.station].delivery_share();
        let station = &self.network.stations[visit.station];
        self.parts.constant += visit.delay_s + wakeup::seconds(visit.wakes, station.state.rate, self.network);
        self.parts.per_byte_s += visit.per_byte_s;
        self.parts.laws.extend(visit.fixed.as_ref().map(Distribution::law));
        let Some(solved) = &self.solved[visit.station] else {
            self.unstable = self.unstable.or(Some(visit.station));
            return;
        };
        let waiting = solved.wait(visit.first);
        let stays = waiting.mean() + visit.service.mean;
        if self.longest.is_none_or(|(_, most)| stays > most) {
            self.longest = Some((visit.station, stays));
        }
        self.doubts.extend(station.doubt().map(|doubt| (doubt, visit.station, waiting.mean())));
        if !self.parts.lines.pass(solved.line.as_ref(), self.flow, visit.per_byte_s) {
            self.parts.laws.push(waiting);
        }
    }
}

impl DelayTerms {
    /// Returns the sum of the constants, of the packet's own transmission on all lines together, and of independent
    /// parts.
    fn sum(mut self, lengths: &Law) -> Result<Distribution, ModelError> {
        self.laws.extend(self.lines.waits()?);
        let own = self.lines.own(lengths, self.per_byte_s)?;
        let total = self.constant + own.mean() + self.laws.iter().map(Distribution::mean).sum::<f64>();
        let mut large = Vec::new();
        for law in self.laws {
            if law.mean() < NEGLIGIBLE * total || law.variance() <= 0.0 {
                self.constant += law.mean();
            } else {
                large.push(law);
            }
        }
        large.sort_by(|a, b| b.variance().total_cmp(&a.variance()));
        let small = large.split_off(large.len().min(MOST_WAITS));
        let (mean, variance) =
            small.iter().fold((0.0, 0.0), |(mean, variance), law| (mean + law.mean(), variance + law.variance()));
        if mean > 0.0 {
            large.push(Distribution::law(&Law::gamma(mean, variance / (mean * mean))?));
        }
        large.push(own);
        large.push(Distribution::constant(self.constant)?);
        Ok(Distribution::sum(&large))
    }
}
