//! Represents the times between packets at a level of a data path: of one stream, and of independent streams together.
use std::rc::Rc;
use weir_scenario::{TrafficItem, TrafficKind};
use weir_traffic::{ArrivalProcess, ArrivalSampler, OfferedPackets, RandomStream};

/// Number of times that are drawn to represent an arrival process without a formula.
const DRAWN: usize = 20_000;
/// Relative difference of times that count as equal.
const ROUNDING: f64 = 1e-9;

/// Packets of a ping in one direction at a switch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PingPass {
    /// Time from the request to its reply, in seconds.
    pub(crate) reply_s: f64,
    /// True for replies.
    pub(crate) back: bool,
    /// True if requests and replies pass the same level.
    pub(crate) is_pair: bool,
}

/// Times between packets in ascending order.
#[derive(Debug)]
pub(crate) struct SortedGaps {
    times: Vec<f64>,
    /// Sum of each time and all longer ones.
    sums: Vec<f64>,
}

impl SortedGaps {
    fn new(mut times: Vec<f64>) -> Rc<SortedGaps> {
        times.sort_by(f64::total_cmp);
        let mut sums = times.clone();
        for at in (1..sums.len()).rev() {
            sums[at - 1] += sums[at];
        }
        Rc::new(SortedGaps { times, sums })
    }

    /// Returns the times between packets of an item's source, as a sample; none if they are exponential. The times of
    /// TCP count as exponential, those of pings are known from their interval ([`PingPass`]).
    pub(crate) fn of_source(item: &TrafficItem) -> Option<Rc<SortedGaps>> {
        let TrafficKind::Udp { offered, .. } = &item.kind else { return None };
        between(offered).map(SortedGaps::new)
    }
}

/// Packets of one item in one direction at a level. Requests and replies of a ping that pass the same level are one
/// stream, with a long time before each request and a short one before each reply.
#[derive(Debug, Clone)]
pub(crate) struct PassingStream {
    rate: f64,
    /// Times before these packets; none for exponential ones.
    own: Option<Rc<SortedGaps>>,
    /// Times between all packets of the stream; none for exponential ones.
    all: Option<Rc<SortedGaps>>,
    both: bool,
}

impl PassingStream {
    /// Returns the stream of an item with `rate` packets a second in each direction, from a source with these times
    /// between packets.
    pub(crate) fn new(item: &TrafficItem, rate: f64, source: Option<&Rc<SortedGaps>>, ping: PingPass) -> PassingStream {
        let TrafficKind::Ping { interval, .. } = &item.kind else {
            return PassingStream { rate, own: source.cloned(), all: source.cloned(), both: false };
        };
        let interval = interval.as_secs_f64();
        if !ping.is_pair {
            let times = Some(SortedGaps::new(vec![interval]));
            return PassingStream { rate, own: times.clone(), all: times, both: false };
        }
        let short = ping.reply_s.min(interval);
        let own = SortedGaps::new(vec![if ping.back { short } else { interval - short }]);
        let all = SortedGaps::new(vec![short, interval - short]);
        PassingStream { rate: 2.0 * rate, own: Some(own), all: Some(all), both: true }
    }

    /// Returns the number of packets a second, of requests and replies together if both pass.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns true if the stream has requests and replies of a ping.
    pub(crate) fn has_both(&self) -> bool {
        self.both
    }

    /// Returns the share of these packets that come `t` seconds or more after the packet of the stream before.
    pub(crate) fn at_least(&self, t: f64) -> f64 {
        let Some(SortedGaps { times, .. }) = self.own.as_deref() else { return (-self.rate * t).exp() };
        let shorter = times.partition_point(|time| *time < t * (1.0 - ROUNDING));
        (times.len() - shorter) as f64 / times.len().max(1) as f64
    }

    /// Returns the share of times at which no packet of the stream has come for `t` seconds.
    pub(crate) fn none_within(&self, t: f64) -> f64 {
        let Some(SortedGaps { times, sums }) = self.all.as_deref() else { return (-self.rate * t).exp() };
        let at = times.partition_point(|time| *time < t);
        let (Some(longer), Some(total)) = (sums.get(at), sums.first()) else { return 0.0 };
        (longer - t * (times.len() - at) as f64) / total.max(f64::MIN_POSITIVE)
    }
}

/// Returns times between packets of a source, as a sample; none if they are exponential.
fn between(offered: &OfferedPackets) -> Option<Vec<f64>> {
    match offered {
        OfferedPackets::Trace(trace) => Some(trace.gaps_ns().map(|ns| ns as f64 / 1e9).collect()),
        OfferedPackets::Rule { arrival: ArrivalProcess::Poisson, .. } => None,
        OfferedPackets::Rule { arrival: ArrivalProcess::Constant, per_second, .. } => Some(vec![1.0 / per_second]),
        OfferedPackets::Rule { arrival, per_second, .. } => {
            let mut random = RandomStream::new(1, 0, 0);
            let mut arrivals = ArrivalSampler::new(arrival, *per_second, &mut random).ok()?;
            Some((0..DRAWN).map(|_| arrivals.next(&mut random) as f64 / 1e9).collect())
        }
    }
}
