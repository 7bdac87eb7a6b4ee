//! Order in which a generating port sends its flows.

/// Maximum number of flows of a generating port.
pub const MAX_FLOWS: u32 = 1 << 24;

/// Generator of flow numbers.
#[derive(Debug, Clone)]
pub struct FlowSequence {
    flows: u32,
    /// Distance from one flow to the next in a cycle. Coprime to `flows`, so that a cycle visits every flow once.
    step: u32,
    next: u32,
    /// Number of flows still to be sent in cycles before random draws begin; `None`: cycles only.
    cycled: Option<u64>,
    draw: u64,
}

impl FlowSequence {
    /// Repeats a cycle that visits every flow once, always in the same order. A switch that learns flows from traffic
    /// then sees them in the order in which it learned them, which flatters large tables.
    pub fn cycle(flows: u32) -> FlowSequence {
        let flows = flows.clamp(1, MAX_FLOWS);
        FlowSequence { flows, step: step(flows), next: 0, cycled: None, draw: 0 }
    }

    /// Sends two cycles, so that a switch that learns flows has seen them all, then draws every flow with equal
    /// probability. Equal seeds give equal sequences.
    pub fn random(flows: u32, seed: u64) -> FlowSequence {
        let cycle = FlowSequence::cycle(flows);
        // Zero is the only state that xorshift does not leave.
        FlowSequence { cycled: Some(2 * u64::from(cycle.flows)), draw: seed.max(1), ..cycle }
    }

    /// Fills `numbers` with the next flows.
    #[inline]
    pub(crate) fn fill(&mut self, numbers: &mut [u32]) {
        match &mut self.cycled {
            Some(0) => self.draw(numbers),
            Some(left) => {
                // The switch to draws happens at a burst boundary; its exact position does not matter.
                *left = left.saturating_sub(numbers.len() as u64);
                self.walk(numbers);
            }
            None => self.walk(numbers),
        }
    }

    #[inline]
    fn walk(&mut self, numbers: &mut [u32]) {
        let mut next = self.next;
        for number in numbers {
            *number = next;
            next += self.step;
            if next >= self.flows {
                next -= self.flows;
            }
        }
        self.next = next;
    }

    /// Draws with Marsaglia's xorshift (13, 7, 17), whose upper half is scaled to the number of flows.
    #[inline]
    fn draw(&mut self, numbers: &mut [u32]) {
        let mut x = self.draw;
        for number in numbers {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            *number = (((x >> 32) * u64::from(self.flows)) >> 32) as u32;
        }
        self.draw = x;
    }
}

/// Returns the first number, from the golden section of `flows` upwards, that is coprime to `flows`.
fn step(flows: u32) -> u32 {
    const GOLDEN: u64 = 0x9e37_79b9;
    let start = u32::try_from((u64::from(flows) * GOLDEN) >> 32).unwrap_or(0).max(1);
    (start..flows).find(|step| divisor(*step, flows) == 1).unwrap_or(0)
}

/// Returns the greatest common divisor (Euclid).
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn take(order: &mut FlowSequence, count: usize) -> Vec<u32> {
        let mut numbers = vec![0; count];
        numbers.chunks_mut(32).for_each(|burst| order.fill(burst));
        numbers
    }

    #[test]
    fn a_cycle_has_every_flow_once() {
        for flows in [1, 2, 3, 4, 6, 31, 32, 1000, 8192, 99_991, 100_000] {
            let mut order = FlowSequence::cycle(flows);
            let first = take(&mut order, flows as usize);
            assert_eq!(first.iter().collect::<HashSet<_>>().len(), flows as usize, "{flows}");
            assert!(first.iter().all(|number| *number < flows));
            assert_eq!(take(&mut order, flows as usize), first, "{flows}");
        }
    }

    #[test]
    fn a_step_is_far_and_at_most_a_cycle() {
        assert_eq!([step(1), step(2), step(3)], [0, 1, 1]);
        for flows in [100, 1000, 1_000_000, MAX_FLOWS] {
            assert!((flows / 2..flows).contains(&step(flows)), "{flows}");
        }
        assert_eq!(take(&mut FlowSequence::cycle(u32::MAX), 2)[1], step(MAX_FLOWS));
        assert_eq!(take(&mut FlowSequence::cycle(0), 2), [0, 0]);
    }

    #[test]
    fn draws_follow_two_cycles_and_reach_every_flow() {
        let mut order = FlowSequence::random(64, 7);
        let learned = take(&mut order, 128);
        assert_eq!(learned[..64], learned[64..]);
        let drawn = take(&mut order, 64_000);
        for flow in 0..64 {
            let times = drawn.iter().filter(|number| **number == flow).count();
            assert!((800..1200).contains(&times), "flow {flow} came {times} times of 1000 expected");
        }
        let mut same = FlowSequence::random(64, 7);
        assert_eq!((take(&mut same, 128), take(&mut same, 64_000)), (learned, drawn));
        let mut zero = FlowSequence::random(64, 0);
        assert_ne!(take(&mut zero, 192)[128..], [0; 64], "a seed of zero draws, too");
    }
}
