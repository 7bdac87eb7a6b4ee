//! Reads the processor's time stamp counter: the cheapest clock there is, for parts of the packet path that take
//! nanoseconds.

/// Returns the time stamp counter. It grows at a fixed rate, whatever the processor's frequency. The rate in counts
/// per nanosecond is measured against a clock. Counters of two processors may differ a little.
#[inline(always)]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction; it reads a register and touches no memory.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    by_clock()
}

/// Returns nanoseconds of the monotonic clock, for processors without a known counter.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn by_clock() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow() {
        for counter in [cycles, by_clock] {
            let first = counter();
            let mut spins = 0_u64;
            while counter() == first {
                spins += 1;
                assert!(spins < 1_000_000_000, "it stands still");
            }
            assert!(counter() > first);
        }
    }
}
