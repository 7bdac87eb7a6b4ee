//! Address space for one large array, filled with pages as it is used.
use crate::prefault;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap_fixed, munmap};
use std::ptr::NonNull;

/// Size of a huge page in bytes. Linux fills a whole one when its first byte is written, which takes a quarter of a
/// millisecond.
pub(crate) const HUGE: usize = 2 << 20;

/// Granularity of giving back in bytes, a multiple of the machine's page size.
const PAGE: usize = 64 << 10;

/// Largest distance in bytes from the end of the pages in use at which another thread prepares the next huge page.
const LEAD: usize = HUGE / 4;

/// Returns that distance with `bytes` in use: a small array may not grow much more.
fn lead(bytes: usize) -> usize {
    (bytes / 8).min(LEAD)
}

/// Address space that is readable and writable, and zero where it was never written. Only written parts have pages.
///
/// The first 2 MiB are on ordinary pages, so that an array of medium size does not take more than it needs. The rest
/// is on huge pages if Linux has them.
#[derive(Debug)]
pub(crate) struct ReservedRegion {
    start: NonNull<u8>,
    /// Size of the address space in bytes, a multiple of [`HUGE`].
    bytes: usize,
    /// Offset from which on all bytes were never used or have been given back.
    held: usize,
    /// End of the part last requested to be prepared.
    prepared: usize,
    /// Ends of the mappings, in order: Linux moves one mapping at a time.
    ends: Vec<usize>,
    /// Blocks of [`HUGE`] bytes below `held` that have been given back nevertheless.
    holes: Vec<usize>,
}

// SAFETY: the region belongs to its owner alone, which reads and writes it through its own borrows.
unsafe impl Send for ReservedRegion {}
// SAFETY: as above; `&ReservedRegion` gives no access to its bytes.
unsafe impl Sync for ReservedRegion {}

impl ReservedRegion {
    /// Reserves at least `bytes`.
    pub(crate) fn reserve(bytes: usize) -> Result<ReservedRegion, Errno> {
        if cfg!(miri) {
            return Err(Errno::NOSYS);
        }
        let bytes = bytes.checked_next_multiple_of(HUGE).ok_or(Errno::NOMEM)?;
        let start = map_aligned(bytes, MapFlags::PRIVATE | MapFlags::NORESERVE)?;
        let mut ends = vec![HUGE];
        if bytes > HUGE {
            // SAFETY: the range is in the mapping just made; the advice changes no content. Without huge pages the
            // advice is refused, and ordinary pages are used.
            let _ = unsafe { madvise(start.add(HUGE).as_ptr().cast(), bytes - HUGE, Advice::LinuxHugepage) };
            ends.push(bytes);
        }
        Ok(ReservedRegion { start, bytes, held: 0, prepared: HUGE, ends, holes: Vec::new() })
    }

    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the size of its memory in bytes if the first `written` bytes were written.
    pub(crate) fn held(&self, written: usize) -> usize {
        let written = written.next_multiple_of(if written > HUGE { HUGE } else { PAGE });
        let all = if self.prepared > HUGE { written.max(self.prepared) } else { written };
        all.saturating_sub(self.holes.len() * HUGE)
    }

    /// Declares that the first `bytes` are about to be used, and has the next huge page prepared if it is near.
    /// Returns the number of bytes, at least `bytes`, that may be used before the next call.
    pub(crate) fn use_up_to(&mut self, bytes: usize) -> usize {
        let next = (bytes + lead(bytes)).next_multiple_of(HUGE).min(self.bytes);
        if next > self.prepared {
            // Preparing more than one page is not ahead of use: the array became that long in one step, and its owner
            // waits in any case.
            let from = self.prepared.max(next - HUGE);
            prefault::prepare(self.start.addr().get() + from, next - from);
            self.prepared = next;
        }
        let soon = (bytes + PAGE).min(self.prepared);
        let usable = (self.prepared - LEAD).max(soon).max(bytes).min(self.bytes);
        self.held = self.held.max(self.prepared).max(usable).min(self.bytes);
        usable
    }

    /// Declares that only the first `bytes` are still used, and gives pages back once there are many. Returns the
    /// offset from which on bytes are zero, if pages were given back.
    pub(crate) fn use_only(&mut self, bytes: usize) -> Option<usize> {
        let slack = (bytes / 2).clamp(PAGE, HUGE);
        if self.held - bytes <= 2 * slack {
            return None;
        }
        let keep = (bytes + slack).next_multiple_of(if bytes + slack > HUGE { HUGE } else { PAGE });
        if keep >= self.held {
            return None;
        }
        // SAFETY: the range is in the mapping (`held` never exceeds `bytes`), and the owner uses nothing beyond
        // `keep`.
        let given = unsafe { madvise(self.start.add(keep).as_ptr().cast(), self.held - keep, Advice::LinuxDontNeed) };
        given.ok()?;
        self.held = keep;
        self.holes.retain(|hole| (hole + 1) * HUGE <= keep);
        self.prepared = keep.next_multiple_of(HUGE).max(HUGE);
        Some(keep)
    }

    /// Has another thread populate pages in a part that may have none.
    pub(crate) fn prepare(&self, from: usize, bytes: usize) {
        if from.checked_add(bytes).is_some_and(|to| to <= self.bytes) {
            prefault::prepare(self.start.addr().get() + from, bytes);
        }
    }

    /// Gives the pages of a part back. The content is lost: bytes read later are zero.
    ///
    /// # Errors
    /// Fails if the part is not in the region, or if Linux keeps the pages.
    pub(crate) fn give_back(&mut self, from: usize, bytes: usize) -> Result<(), Errno> {
        from.checked_add(bytes).filter(|to| *to <= self.bytes).ok_or(Errno::INVAL)?;
        // SAFETY: the part is in the mapping, and by calling this its owner declares that it does not use the part
        // any more.
        unsafe { madvise(self.start.add(from).as_ptr().cast(), bytes, Advice::LinuxDontNeed) }
    }

    /// Gives whole blocks between two offsets back, `most` at most; they become zero. Returns true if none is left to
    /// give back.
    pub(crate) fn hollow(&mut self, from: usize, to: usize, most: usize) -> bool {
        let mut left = most;
        for block in from.div_ceil(HUGE)..to.min(self.held) / HUGE {
            if self.holes.contains(&block) {
                continue;
            }
            if left == 0 {
                return false;
            }
            left -= 1;
            if self.give_back(block * HUGE, HUGE).is_ok() {
                self.holes.push(block);
            }
        }
        true
    }

    /// Declares that the byte at this offset, below `held`, and later ones are about to be used. Has the next hole
    /// prepared if it is near.
    #[inline]
    pub(crate) fn use_again(&mut self, byte: usize) {
        if !self.holes.is_empty() {
            self.fill(byte);
        }
    }

    #[cold]
    fn fill(&mut self, byte: usize) {
        let (own, next) = (byte / HUGE, (byte + LEAD) / HUGE);
        if next != own && self.holes.contains(&next) {
            self.prepare(next * HUGE, HUGE);
        }
        self.holes.retain(|hole| *hole != own && *hole != next);
    }

    /// Moves to a larger reservation: pages change their address, nothing is copied unless Linux refuses the move.
    pub(crate) fn enlarge(&mut self, bytes: usize) -> Result<(), Errno> {
        let mut larger = ReservedRegion::reserve(bytes)?;
        let mut from = 0;
        for end in &self.ends {
            // SAFETY: the part ends within both regions, which are ours and do not overlap.
            unsafe { move_pages(self.start.add(from), larger.start.add(from), end - from) };
            from = *end;
        }
        let last = larger.bytes;
        larger.ends.clone_from(&self.ends);
        if from < last {
            larger.ends.push(last);
        }
        (larger.held, larger.prepared) = (self.held, self.prepared);
        larger.holes = std::mem::take(&mut self.holes);
        *self = larger;
        Ok(())
    }
}

/// Moves a mapping to the address of another one; copies its bytes if Linux refuses.
///
/// # Safety
/// Both ranges of this many bytes, multiples of [`HUGE`], are mapped, do not overlap, and belong to the caller alone.
/// The caller does not use the first range's content any more.
unsafe fn move_pages(from: NonNull<u8>, to: NonNull<u8>, bytes: usize) {
    let (old, new) = (from.as_ptr().cast(), to.as_ptr().cast());
    // The old range stays mapped, without pages, until its owner unmaps it: otherwise another thread's mapping could
    // be placed there.
    let flags = MremapFlags::MAYMOVE | MremapFlags::DONTUNMAP;
    // SAFETY: stated by the caller; the mapping replaced at `to` belongs to the caller as well.
    if unsafe { mremap_fixed(old, bytes, bytes, flags, new) }.is_err() {
        // SAFETY: stated by the caller; a refused move has changed neither range.
        unsafe { to.copy_from_nonoverlapping(from, bytes) };
    }
}

impl Drop for ReservedRegion {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and its owner, whose arrays lay in it, is being dropped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Maps this many bytes (a multiple of the smallest page) at a multiple of [`HUGE`].
pub(crate) fn map_aligned(bytes: usize, flags: MapFlags) -> Result<NonNull<u8>, Errno> {
    let all = bytes.checked_add(HUGE).ok_or(Errno::NOMEM)?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping wherever there is space overlaps nothing.
    let raw = unsafe { mmap_anonymous(std::ptr::null_mut(), all, access, flags)? };
    let before = raw.addr().next_multiple_of(HUGE) - raw.addr();
    // SAFETY: the parts cut off lie within the mapping just made, which has no user yet.
    unsafe {
        if before != 0 {
            let _ = munmap(raw, before);
        }
        if before != HUGE {
            let _ = munmap(raw.wrapping_byte_add(before + bytes), HUGE - before);
        }
    }
    NonNull::new(raw.wrapping_byte_add(before).cast()).ok_or(Errno::NOMEM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn what_was_moved_is_still_there() {
        let mut region = ReservedRegion::reserve(2 * HUGE).expect("there is address space");
        region.use_up_to(2 * HUGE);
        let marks = [0, HUGE - 1, HUGE, 2 * HUGE - 1];
        // SAFETY: all within the region.
        marks.iter().for_each(|at| unsafe { region.start().add(*at).write(7) });
        for n_pages in [8, 16] {
            region.enlarge(n_pages * HUGE).expect("there is address space");
            assert!(region.start().addr().get().is_multiple_of(HUGE) && region.bytes() == n_pages * HUGE);
        }
        assert_eq!(region.ends, [1, 2, 8, 16].map(|pages| pages * HUGE));
        for at in marks {
            // SAFETY: as above.
            assert_eq!(unsafe { region.start().add(at).read() }, 7, "byte {at}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn what_was_given_back_is_zero() {
        let mut region = ReservedRegion::reserve(8 * HUGE).expect("there is address space");
        region.use_up_to(8 * HUGE);
        // SAFETY: within the region.
        unsafe { region.start().add(7 * HUGE).write(7) };
        assert_eq!(region.use_only(7 * HUGE), None, "a little slack is kept");
        let keep = region.use_only(HUGE + 1).expect("that is much");
        assert!((HUGE + 1..=3 * HUGE).contains(&keep) && region.held(HUGE + 1) == keep);
        // SAFETY: within the region.
        assert_eq!(unsafe { region.start().add(7 * HUGE).read() }, 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn holes_are_zero_and_are_filled_again() {
        let mut region = ReservedRegion::reserve(8 * HUGE).expect("there is address space");
        region.use_up_to(8 * HUGE);
        let full = region.held(8 * HUGE);
        // SAFETY: all within the region.
        (0..8).for_each(|block| unsafe { region.start().add(block * HUGE + 5).write(7) });
        assert!(!region.hollow(HUGE + 1, 7 * HUGE - 1, 3) && region.hollow(HUGE + 1, 7 * HUGE - 1, 3));
        assert_eq!((region.held(8 * HUGE), &*region.holes), (full - 4 * HUGE, &[2, 3, 4, 5][..]));
        // SAFETY: as above.
        let bytes = [0, 1, 2, 3, 4, 5, 6, 7].map(|block| unsafe { region.start().add(block * HUGE + 5).read() });
        assert_eq!(bytes, [7, 7, 0, 0, 0, 0, 7, 7]);
        region.use_again(HUGE);
        assert_eq!(region.holes, [2, 3, 4, 5], "it is far away");
        region.use_again(3 * HUGE - 1);
        assert_eq!((region.held(8 * HUGE), &*region.holes), (full - 2 * HUGE, &[4, 5][..]));
        region.enlarge(16 * HUGE).expect("there is address space");
        assert_eq!(region.holes, [4, 5]);
        region.use_only(HUGE);
        assert_eq!(region.holes, []);
    }

    #[test]
    fn more_than_there_is_is_refused() {
        assert!(ReservedRegion::reserve(usize::MAX).is_err());
        assert!(ReservedRegion::reserve(1 << 60).is_err());
    }
}
