//! Damages frames of any port on purpose: drops, corrupts and duplicates them in both directions, at random from a
//! seed so that a run can be repeated.
use crate::{FrameCounters, LinkState, Port, PortResult};
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Probabilities of faults, in `0.0..=1.0`, each drawn independently. Default: no faults.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FaultProbabilities {
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability that one bit of a frame is flipped.
    pub corrupt: f64,
    /// Probability that a frame is sent twice.
    pub duplicate: f64,
}

/// Wrapper that applies faults to a port's frames.
pub struct FaultyPort {
    port: Box<dyn Port>,
    faults: FaultProbabilities,
    chance: FaultRng,
    done: FaultCounts,
    /// Number and bytes of lost frames that the inner port counted as received.
    lost_rx: (u64, u64),
    held: Vec<Frame>,
}

/// Numbers of faults applied so far, both directions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "each counts what its name says")]
pub struct FaultCounts {
    pub lost: u64,
    pub corrupted: u64,
    pub duplicated: u64,
}

impl FaultyPort {
    /// Applies `faults` to `port`'s frames; equal `seed` and frames give equal faults.
    pub fn new(port: Box<dyn Port>, faults: FaultProbabilities, seed: u64) -> FaultyPort {
        let done = FaultCounts::default();
        FaultyPort { port, faults, chance: FaultRng(seed), done, lost_rx: (0, 0), held: Vec::new() }
    }

    /// Returns the numbers of faults applied so far.
    pub fn done(&self) -> FaultCounts {
        self.done
    }

    /// Moves frames to `self.held` and applies faults. Returns number and bytes of the frames lost.
    fn pass(&mut self, pool: &mut FramePool, frames: impl Iterator<Item = Frame>) -> (u64, u64) {
        let mut lost = (0, 0);
        for mut frame in frames {
            if self.chance.hits(self.faults.loss) {
                lost = (lost.0 + 1, lost.1 + frame.len() as u64);
                pool.give(frame);
                continue;
            }
            if self.chance.hits(self.faults.corrupt) {
                self.done.corrupted += 1;
                self.chance.turn_a_bit(frame.bytes_mut());
            }
            if self.chance.hits(self.faults.duplicate) {
                self.done.duplicated += 1;
                self.held.push(pool.copy(&frame));
            }
            self.held.push(frame);
        }
        self.done.lost += lost.0;
        lost
    }
}

impl Port for FaultyPort {
    crate::traits::inner_port!();

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let before = batch.len();
        // Half of `max`, so that the batch stays within the limit even if every frame is duplicated.
        self.port.receive(now, pool, batch, max.div_ceil(2))?;
        let mut received = std::mem::take(batch);
        let lost = self.pass(pool, received.drain(before..));
        self.lost_rx = (self.lost_rx.0 + lost.0, self.lost_rx.1 + lost.1);
        *batch = received;
        batch.append(&mut self.held);
        Ok(())
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.pass(pool, frames.drain(..));
        self.port.transmit(now, pool, &mut self.held)
    }

    fn link(&mut self) -> LinkState {
        self.port.link()
    }

    /// Lost received frames count as missed. Lost transmitted frames are not counted, as on a real wire.
    fn counters(&self) -> FrameCounters {
        let mut counters = self.port.counters();
        counters.rx_packets = counters.rx_packets.saturating_sub(self.lost_rx.0);
        counters.rx_bytes = counters.rx_bytes.saturating_sub(self.lost_rx.1);
        counters.rx_missed += self.lost_rx.0;
        counters
    }
}

/// Random number generator (SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
struct FaultRng(u64);

impl FaultRng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns true with the given probability. A probability of zero draws no random number.
    fn hits(&mut self, probability: f64) -> bool {
        probability > 0.0 && ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    fn turn_a_bit(&mut self, bytes: &mut [u8]) {
        let bits = bytes.len() as u64 * 8;
        if bits > 0 {
            let bit = self.next() % bits;
            let at = usize::try_from(bit / 8).unwrap_or_default();
            bytes[at] ^= 1 << (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    const FRAMES: usize = 1000;

    /// Sends through a faulty port; returns the frames that arrived and the numbers of faults.
    fn run(faults: FaultProbabilities, seed: u64) -> (Vec<Vec<u8>>, FaultCounts) {
        let (near, mut far) = memory::pair(4 * FRAMES).unwrap();
        let mut port = FaultyPort::new(Box::new(near), faults, seed);
        let mut pool = FramePool::default();
        let mut frames: Vec<_> = (0..FRAMES).map(|_| Frame::from_bytes(&[0; 60])).collect();
        port.transmit(Instant::ZERO, &mut pool, &mut frames).unwrap();
        far.receive(Instant::ZERO, &mut pool, &mut frames, usize::MAX).unwrap();
        (frames.iter().map(|frame| frame.bytes().to_vec()).collect(), port.done())
    }

    #[test]
    fn the_seed_decides() {
        let faults = FaultProbabilities { loss: 0.1, corrupt: 0.2, duplicate: 0.3 };
        assert_eq!(run(faults, 1), run(faults, 1));
        assert_ne!(run(faults, 1), run(faults, 2));
        assert_eq!(run(FaultProbabilities::default(), 1).0, vec![vec![0; 60]; FRAMES]);
    }

    #[test]
    fn faults_have_their_probability_and_add_up() {
        let (arrived, done) = run(FaultProbabilities { loss: 0.1, corrupt: 0.2, duplicate: 0.3 }, 7);
        assert_eq!(arrived.len() as u64, FRAMES as u64 - done.lost + done.duplicated);
        // Five standard deviations around the mean of a binomial distribution of 1000 draws.
        assert!((50..150).contains(&done.lost), "{done:?}");
        assert!((110..250).contains(&done.corrupted), "{done:?}");
        assert!((190..350).contains(&done.duplicated), "{done:?}");
        let bits = |frame: &Vec<u8>| frame.iter().map(|byte| byte.count_ones()).sum::<u32>();
        assert!(arrived.iter().all(|frame| bits(frame) <= 1));
        assert!(arrived.iter().filter(|frame| bits(frame) == 1).count() as u64 >= done.corrupted);
    }

    #[test]
    fn losses_on_receipt_are_counted_and_batches_keep_their_limit() {
        let (near, mut far) = memory::pair(64).unwrap();
        let mut pool = FramePool::default();
        let mut send = |count: usize, pool: &mut FramePool| {
            let mut frames: Vec<_> = (0..count).map(|_| Frame::from_bytes(&[0; 60])).collect();
            far.transmit(Instant::ZERO, pool, &mut frames).unwrap();
        };
        let mut batch = vec![Frame::from_bytes(&[9; 14])];
        send(3, &mut pool);
        let mut port =
            FaultyPort::new(Box::new(near), FaultProbabilities { loss: 1.0, ..FaultProbabilities::default() }, 1);
        port.receive(Instant::ZERO, &mut pool, &mut batch, 6).unwrap();
        assert_eq!(batch.len(), 1, "what the batch held before is not touched");
        assert_eq!((port.counters().rx_packets, port.counters().rx_missed), (0, 3));
        send(6, &mut pool);
        port.faults = FaultProbabilities { duplicate: 1.0, ..FaultProbabilities::default() };
        port.receive(Instant::ZERO, &mut pool, &mut batch, 6).unwrap();
        assert_eq!(batch.len(), 7);
    }
}
