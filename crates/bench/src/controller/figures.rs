//! Figures of fairness and of courses: relative deviation, Jain's index, time until a joining switch is served fairly.
use super::tally::WINDOW;
use std::time::Duration;

/// Successive windows in which a switch has to be served like the others.
const IN_A_ROW: usize = 5;
/// Distance from the others' mean up to which a switch is served like them.
const FAIR: f64 = 0.05;
/// Lengths of windows that are tried, as multiples of [`WINDOW`].
const LENGTHS: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];
/// Share of the other switches' windows that have to be within [`FAIR`] of their mean.
const ALIKE: f64 = 0.95;

/// Returns the standard deviation divided by the mean, in percent; `None` without two values or with a mean of zero.
pub(super) fn relative_deviation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (values.len() > 1 && mean > 0.0).then(|| 100.0 * variance.sqrt() / mean)
}

/// Returns Jain's index: 1 if all values are equal, one by their number if one switch gets all (Jain, Chiu and Hawe
/// 1984). `None` if all are zero.
pub(super) fn jain(values: &[f64]) -> Option<f64> {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| values.iter().sum::<f64>().powi(2) / (values.len() as f64 * squares))
}

/// Time until a joining switch was served fairly.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(super) struct JoinFairness {
    /// Milliseconds from the beginning of the connection to the first of five windows in a row in which the switch was
    /// within 5 % of the others' mean. `None` if there were none, or if windows tell nothing.
    pub(super) after_ms: Option<f64>,
    /// Length of the windows: the shortest that is long enough for [`ALIKE`], at least 10 ms.
    pub(super) window_ms: f64,
    /// Share of the windows of the others that were within 5 % of their mean. Below [`ALIKE`], windows tell nothing.
    pub(super) others_alike: f64,
}

impl JoinFairness {
    /// Returns true if the others are served so evenly that a window tells whether one more switch is.
    pub(super) fn is_telling(&self) -> bool {
        self.others_alike >= ALIKE
    }
}

/// Returns the time from window `from` on until the joining switch was served like the mean of the others. All values
/// are responses of single switches by windows of [`WINDOW`].
///
/// A controller serves switches in rounds. In windows shorter than a round a switch gets nothing or too much, however
/// fairly it is served. So windows are as long as the others need to be within 5 % themselves.
pub(super) fn join_fairness(joined: &[u32], others: &[&[u32]], from: usize) -> JoinFairness {
    let last = others.iter().map(|own| own.len()).max().unwrap_or(0).max(joined.len());
    let sum = |own: &[u32], from: usize, length: usize| -> f64 {
        (from..from + length).map(|at| f64::from(own.get(at).copied().unwrap_or(0))).sum()
    };
    let is_fair = |own: f64, mean: f64| mean > 0.0 && (own / mean - 1.0).abs() <= FAIR;
    let mut found = JoinFairness { after_ms: None, window_ms: milliseconds(WINDOW), others_alike: 0.0 };
    for length in LENGTHS {
        let windows = last.saturating_sub(from) / length;
        if windows < IN_A_ROW {
            break;
        }
        let (mut alike, mut fair) = (0, Vec::new());
        for window in 0..windows {
            let at = from + window * length;
            let each: Vec<f64> = others.iter().map(|own| sum(own, at, length)).collect();
            let mean = each.iter().sum::<f64>() / each.len().max(1) as f64;
            alike += each.iter().filter(|own| is_fair(**own, mean)).count();
            fair.push(is_fair(sum(joined, at, length), mean));
        }
        let first = fair.windows(IN_A_ROW).position(|in_a_row| in_a_row.iter().all(|is_fair| *is_fair));
        found.window_ms = milliseconds(WINDOW) * length as f64;
        found.others_alike = alike as f64 / (windows * others.len()).max(1) as f64;
        if found.is_telling() {
            found.after_ms = first.map(|first| first as f64 * found.window_ms);
            break;
        }
    }
    found
}

/// Returns a time in milliseconds.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_of_known_shares() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!((jain(&[0.0]), relative_deviation(&[1.0])), (None, None));
        assert_eq!(relative_deviation(&[1.0, 3.0]), Some(50.0));
    }

    #[test]
    fn a_joining_switch_is_fair_from_the_first_of_five_windows_on() {
        let other = [100; 40];
        let others = [&other[..]; 3];
        let mut joined = vec![0; 40];
        joined[12..].fill(97);
        joined[14] = 80;
        let expected = JoinFairness { after_ms: Some(50.0), window_ms: 10.0, others_alike: 1.0 };
        assert_eq!(join_fairness(&joined, &others, 10), expected);
        joined.truncate(19);
        assert_eq!(join_fairness(&joined, &others, 10).after_ms, None);
        assert!(!join_fairness(&[1; 4], &[&[1; 4]], 0).is_telling(), "too few windows");
    }

    #[test]
    fn windows_are_at_least_as_long_as_a_round() {
        // Each switch has its turn in another window of four.
        let served = |turn: usize| (0..400).map(|at| if at % 4 == turn { 100 } else { 0 }).collect::<Vec<u32>>();
        let each = [0, 1, 2, 3].map(served);
        let others: Vec<&[u32]> = each[..3].iter().map(Vec::as_slice).collect();
        let found = join_fairness(&each[3], &others, 0);
        assert_eq!((found.after_ms, found.window_ms, found.others_alike), (Some(0.0), 200.0, 1.0));
        // Switches that differ for longer than any window tell nothing.
        let (much, little) = ([200; 400], [100; 400]);
        let found = join_fairness(&[150; 400], &[&much, &little], 0);
        assert!(!found.is_telling() && found.others_alike == 0.0, "{found:?}");
    }
}
