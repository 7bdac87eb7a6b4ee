//! Distributions of packet lengths.
use crate::{RandomStream, TrafficError};

/// Maximum packet length in bytes.
pub const MAX_BYTES: u32 = 65_535;
/// Maximum number of sizes in an empirical list.
pub const MAX_EMPIRICAL: usize = 65_536;

/// Description of packet lengths, in bytes of the Ethernet frame without FCS.
#[derive(Debug, Clone, PartialEq)]
pub enum PacketSizeLaw {
    /// All packets have this length.
    Fixed(u32),
    /// A mixture of short and long packets.
    Bimodal(BimodalSizes),
    /// The simple Internet mix: 7 of 60 bytes, 4 of 590 and 1 of 1514 (frames of 40, 576 and 1500 bytes of IP,
    /// padded).
    Imix,
    /// Exponential with this mean, rounded up to whole bytes: for comparison with formulas.
    Exponential(f64),
    /// Weighted list of lengths.
    Empirical(EmpiricalSizes),
}

/// Two uniform ranges of lengths, as in the literature on virtual switches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BimodalSizes {
    /// Share of short packets, `0.0..=1.0`.
    pub short: f64,
    /// Minimum and maximum length of short packets, both inclusive.
    pub short_bytes: [u32; 2],
    /// Minimum and maximum length of long packets, both inclusive.
    pub long_bytes: [u32; 2],
}

impl Default for BimodalSizes {
    /// Returns half from 64 to 100 bytes, half from 1350 to 1500.
    fn default() -> Self {
        BimodalSizes { short: 0.5, short_bytes: [64, 100], long_bytes: [1350, 1500] }
    }
}

/// Lengths in bytes with their weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EmpiricalSizes(pub Vec<(u32, f64)>);

impl EmpiricalSizes {
    /// Parses lines of `BYTES WEIGHT` or `BYTES,WEIGHT`. `#` begins a comment; a header line without digits is
    /// skipped.
    ///
    /// # Errors
    /// The first line that cannot be parsed; more than [`MAX_EMPIRICAL`] lines. An empty list is refused by
    /// [`PacketSizeSampler::new`].
    pub fn parse(text: &str) -> Result<EmpiricalSizes, TrafficError> {
        let mut sizes = Vec::new();
        for (number, line) in crate::trace::lines(text) {
            let wrong = || TrafficError::Line {
                line: number,
                found: line.chars().take(60).collect(),
                expected: "bytes (1 to 65535) and a weight, such as `1500 0.25`",
            };
            let [bytes, weight] = crate::trace::two(line).ok_or_else(wrong)?;
            let (bytes, weight): (u32, f64) =
                (bytes.parse().map_err(|_| wrong())?, weight.parse().map_err(|_| wrong())?);
            if !(1..=MAX_BYTES).contains(&bytes) || !weight.is_finite() || weight < 0.0 {
                return Err(wrong());
            }
            sizes.push((bytes, weight));
            if sizes.len() > MAX_EMPIRICAL {
                return Err(TrafficError::parameter("sizes", "more", format!("at most {MAX_EMPIRICAL} lines")));
            }
        }
        Ok(EmpiricalSizes(sizes))
    }
}

/// Draws packet lengths from a mixture of uniform ranges, or an exponential distribution.
#[derive(Debug, Clone)]
pub struct PacketSizeSampler {
    /// Ranges; a range is chosen if a random word is below its threshold and not below the previous ones.
    ranges: Box<[SizeRange]>,
    mean: f64,
    exponential: bool,
}

#[derive(Debug, Clone, Copy)]
struct SizeRange {
    /// Cumulative share of this range and the previous ones, times 2^64.
    threshold: u64,
    from: u32,
    /// Number of lengths in the range.
    count: u32,
}

impl PacketSizeSampler {
    /// Creates a distribution as described.
    ///
    /// # Errors
    /// A length of 0 or above [`MAX_BYTES`], an empty range or list, or an invalid share or weight.
    pub fn new(size: &PacketSizeLaw) -> Result<PacketSizeSampler, TrafficError> {
        match size {
            PacketSizeLaw::Fixed(bytes) => PacketSizeSampler::mixture(&[(1.0, *bytes, *bytes)]),
            PacketSizeLaw::Bimodal(BimodalSizes { short, short_bytes: [a, b], long_bytes: [c, d] }) => {
                if !(0.0..=1.0).contains(short) {
                    return Err(TrafficError::parameter("share of short packets", short, "0 to 1"));
                }
                PacketSizeSampler::mixture(&[(*short, *a, *b), (1.0 - short, *c, *d)])
            }
            PacketSizeLaw::Imix => PacketSizeSampler::mixture(&[(7.0, 60, 60), (4.0, 590, 590), (1.0, 1514, 1514)]),
            PacketSizeLaw::Exponential(mean) => {
                let mean = crate::positive("mean size", *mean)?;
                Ok(PacketSizeSampler { ranges: Box::default(), mean, exponential: true })
            }
            PacketSizeLaw::Empirical(EmpiricalSizes(sizes)) => {
                let ranges: Vec<_> = sizes.iter().map(|(bytes, weight)| (*weight, *bytes, *bytes)).collect();
                PacketSizeSampler::mixture(&ranges)
            }
        }
    }

    /// Creates a mixture of uniform ranges: (weight, from, to).
    fn mixture(parts: &[(f64, u32, u32)]) -> Result<PacketSizeSampler, TrafficError> {
        let total: f64 = parts.iter().map(|(weight, ..)| weight).sum();
        if !(total.is_finite() && total > 0.0) || parts.iter().any(|(weight, ..)| *weight < 0.0) {
            return Err(TrafficError::parameter("sizes", format!("weights of {total} in all"), "more than 0"));
        }
        let (mut below, mut mean) = (0.0, 0.0);
        let mut ranges = Vec::new();
        for &(weight, from, to) in parts {
            if from == 0 || to < from || to > MAX_BYTES {
                return Err(TrafficError::parameter("sizes", format!("{from} to {to} bytes"), "1 to 65535"));
            }
            below += weight / total;
            mean += weight / total * (f64::from(from) + f64::from(to)) / 2.0;
            ranges.push(SizeRange { threshold: share_of_word(below), from, count: to - from + 1 });
        }
        // Rounding must not leave a gap after the last range.
        if let Some(last) = ranges.last_mut() {
            last.threshold = u64::MAX;
        }
        Ok(PacketSizeSampler { ranges: ranges.into_boxed_slice(), mean, exponential: false })
    }

    /// Draws the next length in bytes.
    #[inline]
    pub fn draw(&self, random: &mut RandomStream) -> u32 {
        if self.exponential {
            return exponential(self.mean, random);
        }
        let at = match &*self.ranges {
            [_] => 0,
            ranges => {
                let word = random.below(u64::MAX);
                // A few ranges are searched linearly, many by bisection.
                if ranges.len() <= 8 {
                    ranges.iter().filter(|range| range.threshold <= word).count()
                } else {
                    ranges.partition_point(|range| range.threshold <= word)
                }
            }
        };
        let SizeRange { from, count, .. } = self.ranges[at.min(self.ranges.len() - 1)];
        match count {
            1 => from,
            _ => from + u32::try_from(random.below(u64::from(count))).unwrap_or(0),
        }
    }

    /// Returns the mean length in bytes.
    pub fn mean(&self) -> f64 {
        // Rounding up to whole bytes makes an exponential length geometric.
        if self.exponential { 1.0 / (1.0 - (-1.0 / self.mean).exp()) } else { self.mean }
    }

    /// Returns the longest length in bytes; [`MAX_BYTES`] for the unbounded exponential distribution.
    pub fn longest(&self) -> u32 {
        let last = |range: &SizeRange| range.from + (range.count - 1);
        if self.exponential { MAX_BYTES } else { self.ranges.iter().map(last).max().unwrap_or(MAX_BYTES) }
    }

    /// Returns the shortest length in bytes.
    pub fn shortest(&self) -> u32 {
        if self.exponential { 1 } else { self.ranges.iter().map(|range| range.from).min().unwrap_or(1) }
    }
}

#[cold]
fn exponential(mean: f64, random: &mut RandomStream) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never below 0")]
    let bytes = (mean * random.exponential()).ceil() as u32;
    bytes.max(1)
}

/// Converts a share, `0.0..=1.0`, to a multiple of 2^-64.
fn share_of_word(share: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let word = (share * (u64::MAX as f64)) as u64;
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(size: &PacketSizeLaw) -> (f64, f64) {
        let sizes = PacketSizeSampler::new(size).unwrap();
        let mut random = RandomStream::new(3, 1, 4);
        let n = 200_000;
        let sum: f64 = (0..n).map(|_| f64::from(sizes.draw(&mut random))).sum();
        (sum / f64::from(n), sizes.mean())
    }

    #[test]
    fn drawn_sizes_have_the_mean_that_is_said() {
        let list = EmpiricalSizes::parse("bytes,weight\n# long ones\n1500,1\n100,3 # short\n").unwrap();
        let many = EmpiricalSizes((1..=100).map(|bytes| (bytes * 10, 1.0)).collect());
        for size in [
            PacketSizeLaw::Fixed(700),
            PacketSizeLaw::Bimodal(BimodalSizes::default()),
            PacketSizeLaw::Imix,
            PacketSizeLaw::Exponential(1000.0),
            PacketSizeLaw::Empirical(list),
            PacketSizeLaw::Empirical(many),
        ] {
            let (found, said) = mean_of(&size);
            assert!((found / said - 1.0).abs() < 0.01, "{size:?}: {found} for {said}");
        }
        assert_eq!(
            PacketSizeSampler::new(&PacketSizeLaw::Bimodal(BimodalSizes::default())).unwrap().mean(),
            (82.0 + 1425.0) / 2.0
        );
    }

    #[test]
    fn sizes_stay_in_their_ranges() {
        let sizes =
            PacketSizeSampler::new(&PacketSizeLaw::Bimodal(BimodalSizes { short: 0.3, ..BimodalSizes::default() }))
                .unwrap();
        let mut random = RandomStream::new(1, 0, 0);
        let drawn: Vec<u32> = (0..50_000).map(|_| sizes.draw(&mut random)).collect();
        assert!(drawn.iter().all(|bytes| (64..=100).contains(bytes) || (1350..=1500).contains(bytes)));
        for edge in [64, 100, 1350, 1500] {
            assert!(drawn.contains(&edge), "{edge} never came");
        }
        let short = drawn.iter().filter(|bytes| **bytes <= 100).count();
        assert!((14_500..15_500).contains(&short), "{short} of 50000 are short");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for size in [
            PacketSizeLaw::Fixed(0),
            PacketSizeLaw::Fixed(70_000),
            PacketSizeLaw::Exponential(f64::NAN),
            PacketSizeLaw::Bimodal(BimodalSizes { short: 1.5, ..BimodalSizes::default() }),
            PacketSizeLaw::Bimodal(BimodalSizes { short_bytes: [100, 64], ..BimodalSizes::default() }),
            PacketSizeLaw::Empirical(EmpiricalSizes::default()),
        ] {
            assert!(PacketSizeSampler::new(&size).is_err(), "{size:?}");
        }
        let error = EmpiricalSizes::parse("100 1\n1500 x\n").unwrap_err().to_string();
        assert_eq!(error, "line 2: found `1500 x`, expected bytes (1 to 65535) and a weight, such as `1500 0.25`");
    }
}
