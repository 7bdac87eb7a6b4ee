//! Draws numbers that experiments need.
use weir_traffic::RandomStream;

/// Draws a number from 0 to `count` - 1.
pub(crate) fn below(random: &mut RandomStream, count: usize) -> usize {
    usize::try_from(random.below(count as u64)).unwrap_or(0)
}
