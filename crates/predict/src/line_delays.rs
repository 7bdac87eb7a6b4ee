//! Computes what packets of a flow wait on the lines of their path together. The waits on lines in a row are not
//! independent of each other, nor of the packet's own size.
use crate::station::{LineWaits, LongerWaits, QueueWait};
use std::sync::Arc;
use weir_model::{Distribution, Law, LawShape, ModelError};

/// Parts into which a uniform law of lengths is divided, each with waits of its own.
const SLICES: u32 = 4;
/// Most waits of packets of one length behind longer ones that are kept apart.
const MOST_TIMES: usize = 6;

/// Lines of a path, in the order in which packets pass them.
#[derive(Debug, Default)]
pub(crate) struct LineDelays {
    /// Lines with the mean time that packets wait, as far as this time has the law of this line's queue, in seconds.
    chain: Vec<(Arc<LineWaits>, f64)>,
    /// Lines before packets last became independent of earlier ones, likewise.
    ended: Vec<(Arc<LineWaits>, f64)>,
    /// Waits behind longer packets by service time, with the time for a byte in seconds, of each line.
    longer: Vec<(Arc<Vec<LongerWaits>>, f64)>,
}

impl LineDelays {
    /// Notes that packets of a flow pass a station. Returns false if it is no line whose waiting is known by flow.
    ///
    /// On lines of a tree, a packet's waits sum up to that of a single queue of all flows at the last line, which has a
    /// known law. So the sum gets this law, and a rest has the laws of the lines before: waits behind packets of flows
    /// that have left the path.
    pub(crate) fn pass(&mut self, line: Option<&Arc<LineWaits>>, flow: usize, per_byte_s: f64) -> bool {
        let Some((line, own)) = line.and_then(|line| Some((line, line.of(flow)?))) else { return false };
        if own.independent {
            self.ended.append(&mut self.chain);
        }
        let before: f64 = self.chain.iter().map(|(_, mean)| mean).sum();
        let total = before + own.mean;
        let direct = own.direct.min(total);
        let kept = if before > 0.0 { (total - direct) / before } else { 0.0 };
        self.chain.iter_mut().for_each(|(_, mean)| *mean *= kept);
        self.chain.push((Arc::clone(line), direct));
        if !own.longer.is_empty() {
            self.longer.push((Arc::clone(&own.longer), per_byte_s));
        }
        true
    }

    /// Returns the waits for packets of other inputs, as independent parts.
    pub(crate) fn waits(&self) -> Result<Vec<Distribution>, ModelError> {
        let waits = self.ended.iter().chain(&self.chain);
        QueueWait::independent(waits.map(|(line, mean)| (&line.direct, *mean)))
    }

    /// Returns the sum of what depends on the packet's own length: the transmission of these lengths, at `per_byte_s`
    /// seconds per byte on all lines together, and the waits behind longer packets. A packet that waits behind a long
    /// one on a line is behind it on the next lines, too.
    pub(crate) fn own(&self, lengths: &Law, per_byte_s: f64) -> Result<Distribution, ModelError> {
        if per_byte_s <= 0.0 {
            return Ok(Distribution::zero());
        }
        if self.longer.is_empty() {
            return Ok(Distribution::law(&lengths.scaled(per_byte_s)?));
        }
        let mut all = Vec::new();
        for (weight, length) in slices(lengths)? {
            let own = Distribution::law(&length.scaled(per_byte_s)?);
            let times = fewer(&self.behind_longer(length.mean()));
            let waits = times.iter().map(|(_, share)| share).sum::<f64>().min(1.0);
            all.push((weight * (1.0 - waits), own.clone()));
            for (time, share) in times {
                let later = Distribution::sum([&own, &Distribution::constant(time)?]);
                all.push((weight * share, later));
            }
        }
        let sum: f64 = all.iter().map(|(weight, _)| weight).sum();
        all.iter_mut().for_each(|(weight, _)| *weight = (*weight / sum).min(1.0));
        Distribution::mixture(&all)
    }

    /// Returns what packets of this length wait behind longer ones on all lines together: times in seconds, longest
    /// first, with the share of the packets. The packets that wait longest on one line do so on the others.
    fn behind_longer(&self, length: f64) -> Vec<(f64, f64)> {
        let lists = self.longer.iter().filter_map(|(longer, per_byte_s)| {
            let away = |one: &LongerWaits| (one.own - length * per_byte_s).abs();
            let times = &longer.iter().min_by(|a, b| away(a).total_cmp(&away(b)))?.times;
            Some(times.iter().rev().copied().filter(|(time, share)| *time > 0.0 && *share > 0.0).collect::<Vec<_>>())
        });
        let mut lists: Vec<std::vec::IntoIter<(f64, f64)>> = lists.map(Vec::into_iter).collect();
        let mut next: Vec<Option<(f64, f64)>> = lists.iter_mut().map(Iterator::next).collect();
        let mut sums = Vec::new();
        while let Some(step) = next.iter().flatten().map(|(_, share)| *share).min_by(f64::total_cmp) {
            sums.push((next.iter().flatten().map(|(time, _)| time).sum(), step));
            for (at, list) in lists.iter_mut().enumerate() {
                if let Some((_, share)) = &mut next[at] {
                    *share -= step;
                    if *share <= 0.0 {
                        next[at] = list.next();
                    }
                }
            }
        }
        sums
    }
}

/// Returns the lengths of a law with their probabilities: constants each, uniform laws in slices.
fn slices(lengths: &Law) -> Result<Vec<(f64, Law)>, ModelError> {
    let mut slices = Vec::new();
    for part in lengths.parts() {
        match part.shape {
            LawShape::Constant(value) => slices.push((part.weight, Law::constant(value)?)),
            LawShape::Exponential(mean) => slices.push((part.weight, Law::exponential(mean)?)),
            LawShape::Gamma { mean, scv } => slices.push((part.weight, Law::gamma(mean, scv)?)),
            LawShape::Uniform { low, high } => {
                let width = (high - low) / f64::from(SLICES);
                for slice in 0..SLICES {
                    let from = low + f64::from(slice) * width;
                    slices.push((part.weight / f64::from(SLICES), Law::uniform(from, from + width)?));
                }
            }
        }
    }
    Ok(slices)
}

/// Returns fewer times, each the mean of some in a row, so that each of them contributes about as much to the mean.
fn fewer(times: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if times.len() <= MOST_TIMES {
        return times.to_vec();
    }
    let most = times.iter().map(|(time, share)| time * share).sum::<f64>() / MOST_TIMES as f64;
    let mut fewer = Vec::new();
    let (mut sum, mut shares) = (0.0, 0.0);
    for (at, (time, share)) in times.iter().enumerate() {
        (sum, shares) = (sum + time * share, shares + share);
        if sum >= most || at + 1 == times.len() {
            fewer.push((sum / shares, shares));
            (sum, shares) = (0.0, 0.0);
        }
    }
    fewer
}
