//! What one flow's packets meet on their way through a solved network: their delay as a sum of independent parts, and how many arrive.
use crate::network::{Flow, Network, Step, Visit};
use crate::station::Solved;
use crate::waking;
use weir_model::{Distribution, Law, ModelError};

/// Waiting times that stay apart in a sum; the smallest beyond them become one by mean and variance, so that a long way stays cheap.
const MOST_WAITS: usize = 5;
/// A part whose mean is a smaller share of all is taken as always the same.
const NEGLIGIBLE: f64 = 1e-4;

/// A flow's packets of one kind: those that no switch asks about, or those that all do.
#[derive(Debug, Clone)]
pub(crate) struct Passage {
    /// Share of the packets sent that arrive.
    pub(crate) arrives: f64,
    /// Their delay; the place of the queue that has no steady state if there is one.
    pub(crate) delay: Result<Distribution, usize>,
    /// The queue at which they wait longest, and how long.
    pub(crate) longest: Option<(usize, f64)>,
}

#[derive(Default)]
struct Parts {
    constant: f64,
    per_byte_s: f64,
    laws: Vec<Distribution>,
}

/// How packets of a flow fare; `asks`: those about which switches ask the controller.
pub(crate) fn passage(
    network: &Network<'_>,
    solved: &[Option<Solved>],
    flow: &Flow,
    asks: bool,
) -> Result<Passage, ModelError> {
    let mut walk = Walk { network, solved, parts: Parts::default(), arrives: 1.0, unstable: None, longest: None };
    for step in flow.steps.iter() {
        match step {
            Step::Visit(visit) => walk.visit(visit),
            Step::Ask { way, back, delay_s, .. } if asks => {
                way.iter().chain(back).for_each(|visit| walk.visit(visit));
                walk.parts.constant += delay_s;
            }
            Step::Ask { .. } => {}
        }
    }
    let delay = match walk.unstable {
        Some(station) => Err(station),
        None => Ok(walk.parts.sum(&flow.lengths)?),
    };
    Ok(Passage { arrives: walk.arrives, delay, longest: walk.longest })
}

struct Walk<'a> {
    network: &'a Network<'a>,
    solved: &'a [Option<Solved>],
    parts: Parts,
    arrives: f64,
    unstable: Option<usize>,
    longest: Option<(usize, f64)>,
}

impl Walk<'_> {
    fn visit(&mut self, visit: &Visit) {
        self.arrives *= self.network.stations[visit.station].keeps();
        let station = &self.network.stations[visit.station];
        self.parts.constant += visit.delay_s + waking::seconds(visit.wakes, station.state.rate, self.network);
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
        self.parts.laws.push(waiting);
    }
}

impl Parts {
    /// The sum: constants, the packet's own length on all lines together, and what is independent.
    fn sum(mut self, lengths: &Law) -> Result<Distribution, ModelError> {
        let own = (self.per_byte_s > 0.0).then(|| lengths.scaled(self.per_byte_s)).transpose()?;
        let total =
            self.constant + own.as_ref().map_or(0.0, Law::mean) + self.laws.iter().map(Distribution::mean).sum::<f64>();
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
        large.extend(own.as_ref().map(Distribution::law));
        large.push(Distribution::constant(self.constant)?);
        Ok(Distribution::sum(&large))
    }
}
