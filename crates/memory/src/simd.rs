//! Selects wide instructions at run time: work is compiled once for each instruction set, and the version for the best
//! set that the processor has is run. [`SimdInstructions`] offers the operations beyond ordinary code; each has a
//! portable version.
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// An instruction set of the processor.
pub trait SimdInstructions: Copy {
    /// True if [`SimdInstructions::pick`] is one instruction.
    const PICKS: bool;

    /// Writes to byte `n` of `to` (little-endian words) the byte of `from` with the index in the low six bits of
    /// `which[n]`, if bit `n` of `keep` is set; otherwise zero. The result is written to memory at once where this is
    /// one instruction: a returned value could be split into words first, if the caller goes on with some of them.
    fn pick(self, from: &[u8; 64], which: &[u8; 64], keep: u64, to: &mut [u64; 8]);
}

/// Work that is compiled for each instruction set. Functions it calls are compiled with it only if they are inlined.
pub trait SimdOperation {
    /// Result of the work.
    type Output;
    /// Performs the work with the given instruction set.
    fn run<W: SimdInstructions>(self, wide: W) -> Self::Output;
}

/// Instructions of every processor.
#[derive(Debug, Clone, Copy)]
pub struct PortableSimd;

impl SimdInstructions for PortableSimd {
    const PICKS: bool = false;

    #[inline(always)]
    fn pick(self, from: &[u8; 64], which: &[u8; 64], keep: u64, to: &mut [u64; 8]) {
        let byte = |n: usize| if keep >> n & 1 != 0 { from[usize::from(which[n] & 63)] } else { 0 };
        *to = std::array::from_fn(|word| u64::from_le_bytes(std::array::from_fn(|n| byte(word * 8 + n))));
    }
}

/// Performs `work` with the best instruction set of this processor.
#[inline(always)]
pub fn run_simd<T: SimdOperation>(work: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the level says that the processor has these instructions.
        AVX512 => return unsafe { x86::avx512(work) },
        // SAFETY: as above.
        AVX2 => return unsafe { x86::avx2(work) },
        _ => {}
    }
    work.run(PortableSimd)
}

/// Returns the name of the best instruction set of this processor: `AVX-512`, `AVX2` or `portable`.
pub fn best_simd_name() -> &'static str {
    match level() {
        AVX512 => "AVX-512",
        AVX2 => "AVX2",
        _ => "portable",
    }
}

const UNKNOWN: u8 = 0;
const PORTABLE: u8 = 1;
const AVX2: u8 = 2;
const AVX512: u8 = 3;

/// Instruction set found by `find_level`, detected once.
static LEVEL: AtomicU8 = AtomicU8::new(UNKNOWN);

#[inline(always)]
fn level() -> u8 {
    match LEVEL.load(Relaxed) {
        UNKNOWN => find_level(),
        level => level,
    }
}

#[cold]
fn find_level() -> u8 {
    let level = detect();
    LEVEL.store(level, Relaxed);
    level
}

#[cfg(target_arch = "x86_64")]
fn detect() -> u8 {
    macro_rules! has { ($($feature:tt)*) => { true $(&& std::is_x86_feature_detected!($feature))* } }
    if !has!("avx2" "bmi1" "bmi2" "popcnt" "lzcnt" "movbe") {
        PORTABLE
    } else if !has!("avx512f" "avx512bw" "avx512vl" "avx512dq" "avx512vbmi") {
        AVX2
    } else {
        AVX512
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> u8 {
    PORTABLE
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{PortableSimd, SimdInstructions, SimdOperation};
    use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_maskz_permutexvar_epi8, _mm512_storeu_si512};

    /// AVX-512 with byte permutations; values exist only on processors that have both.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Avx512(());

    impl SimdInstructions for Avx512 {
        const PICKS: bool = true;

        #[inline(always)]
        fn pick(self, from: &[u8; 64], which: &[u8; 64], keep: u64, to: &mut [u64; 8]) {
            // SAFETY: a value of this type is made only where the processor has AVX-512F and VBMI; the pointers are to
            // 64 bytes each, and unaligned access is allowed.
            unsafe {
                let from: __m512i = _mm512_loadu_si512(from.as_ptr().cast());
                let which: __m512i = _mm512_loadu_si512(which.as_ptr().cast());
                let bytes = _mm512_maskz_permutexvar_epi8(keep, which, from);
                _mm512_storeu_si512(to.as_mut_ptr().cast(), bytes);
            }
        }
    }

    /// Performs `work` compiled with AVX-512.
    ///
    /// # Safety
    /// The processor has these instructions.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt,movbe")]
    pub(super) unsafe fn avx512<T: SimdOperation>(work: T) -> T::Output {
        work.run(Avx512(()))
    }

    /// Performs `work` compiled with AVX2.
    ///
    /// # Safety
    /// The processor has these instructions.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,movbe")]
    pub(super) unsafe fn avx2<T: SimdOperation>(work: T) -> T::Output {
        work.run(PortableSimd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pick<'a>(&'a [u8; 64], &'a [u8; 64], u64);

    impl SimdOperation for Pick<'_> {
        type Output = ([u64; 8], bool);
        fn run<W: SimdInstructions>(self, wide: W) -> ([u64; 8], bool) {
            let mut picked = [7; 8];
            wide.pick(self.0, self.1, self.2, &mut picked);
            (picked, W::PICKS)
        }
    }

    #[test]
    fn every_set_of_instructions_picks_the_same() {
        let from: [u8; 64] = std::array::from_fn(|n| u8::try_from(n * 37 % 251).unwrap());
        for step in [1, 7, 11, 63] {
            let which: [u8; 64] = std::array::from_fn(|n| u8::try_from(n * step % 256).unwrap());
            for keep in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
                let (picked, picks) = run_simd(Pick(&from, &which, keep));
                let mut expected = [9; 8];
                PortableSimd.pick(&from, &which, keep, &mut expected);
                assert_eq!(picked, expected, "step {step}, keep {keep:x}");
                assert_eq!(picks, best_simd_name() == "AVX-512");
            }
        }
    }
}
