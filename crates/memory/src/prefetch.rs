//! Prefetches memory before it is needed: bursts of packets read tables far larger than the caches, and prefetching
//! overlaps their waits.

/// Starts to load the cache line with the beginning of the element at `index` into the first-level cache. An index
/// beyond the slice's end is harmless. Does nothing on a processor without such an instruction.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // Beyond the end the hint concerns other memory, which is useless but harmless, because prefetching never
        // faults.
        let address = slice.as_ptr().wrapping_add(index);
        // SAFETY: a prefetch does not access memory as far as the program can tell: whatever the address is, it
        // neither faults nor changes anything.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_index_is_harmless() {
        let slice = [1_u64, 2, 3];
        for index in [0, 2, 3, 1 << 40, usize::MAX] {
            prefetch(&slice, index);
        }
        prefetch::<[u8; 64]>(&[], 0);
        assert_eq!(slice, [1, 2, 3]);
    }
}
