//! Compares many bytes with one.

/// Compares 16 bytes with `byte`. The first byte is in the lowest bits of the first word. Returns a mask with bit `n`
/// set if byte `n` is equal.
#[inline(always)]
#[must_use]
pub fn equal_bytes(words: [u64; 2], byte: u8) -> u32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
        // SAFETY: these instructions work on registers only, and the whole program is compiled for processors that
        // have them.
        unsafe {
            let bytes = _mm_set_epi64x(words[1].cast_signed(), words[0].cast_signed());
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()))).cast_unsigned()
        }
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    equal_bytes_scalar(words, byte)
}

/// Computes [`equal_bytes`] without wide instructions.
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
fn equal_bytes_scalar(words: [u64; 2], byte: u8) -> u32 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    (0..).zip(bytes).fold(0, |equal, (place, one)| equal | u32::from(one == byte) << place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn wide_and_scalar_agree(low: u64, high: u64, byte: u8, place in 0..8_usize) {
            let own = low.to_le_bytes()[place];
            for byte in [byte, own] {
                prop_assert_eq!(equal_bytes([low, high], byte), equal_bytes_scalar([low, high], byte));
            }
            prop_assert!(equal_bytes([high, low], own) >> (8 + place) & 1 == 1);
        }
    }
}
