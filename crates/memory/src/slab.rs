//! A fixed number of buffers of one size, mapped and populated at once. Huge pages are used if Linux has them, so
//! that many buffers need few entries of the processor's page table. A lack of memory is reported at once, not when a
//! packet arrives.
use crate::AlignedBuffer;
use crate::region::{HUGE, map_aligned};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::io::{self, BufReader};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Size in bytes of the smallest page: writing one byte of each populates all pages.
const SMALLEST_PAGE: usize = 4096;

/// A fixed number of buffers of one size. Each buffer keeps the slab alive.
#[derive(Debug)]
pub struct BufferSlab {
    start: NonNull<u8>,
    /// Number of bytes mapped.
    bytes: usize,
    /// Size of a buffer in bytes.
    each: usize,
    count: u32,
    pages: SlabPageKind,
    /// Numbers of free places; the last is taken first.
    free: Mutex<Vec<u32>>,
}

/// Kind of pages requested for a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlabPageKind {
    /// Huge pages reserved by an administrator (`vm.nr_hugepages`).
    SetAside,
    /// Huge pages if Linux finds some (transparent huge pages).
    Transparent,
    /// Ordinary pages, for slabs smaller than a huge page.
    Ordinary,
}

/// Error: the system refused address space or memory for a slab.
#[derive(Debug, thiserror::Error)]
#[error("{} {bytes} bytes: {error}", if *.is_mapped { "filling" } else { "mapping" })]
pub struct SlabError {
    /// Number of bytes requested.
    pub bytes: usize,
    /// True if address space was given, but no memory for it.
    pub is_mapped: bool,
    /// Error from the system.
    #[source]
    pub error: io::Error,
}

// SAFETY: a place belongs to the one buffer made of it; everything else is behind a lock.
unsafe impl Send for BufferSlab {}
// SAFETY: as above.
unsafe impl Sync for BufferSlab {}

impl BufferSlab {
    /// Maps `count` buffers of at least `each` bytes (rounded up to whole cache lines) and populates all their pages,
    /// on the NUMA node of the calling thread.
    ///
    /// # Errors
    /// Fails if the system refuses address space or memory.
    pub fn new(count: u32, each: usize) -> Result<Arc<BufferSlab>, SlabError> {
        let each = each.max(1).next_multiple_of(64);
        let wanted = each.saturating_mul(count.max(1) as usize);
        let refused = |error: Errno, bytes, is_mapped| SlabError { bytes, is_mapped, error: error.into() };
        if wanted > isize::MAX as usize / 2 {
            return Err(refused(Errno::NOMEM, wanted, false));
        }
        if let Some(slab) = BufferSlab::set_aside(count, each, wanted) {
            return Ok(Arc::new(slab));
        }
        let slab = BufferSlab::map(count, each, wanted).map_err(|error| refused(error, wanted, false))?;
        slab.fill().map_err(|error| refused(error, wanted, true))?;
        Ok(Arc::new(slab))
    }

    /// Maps a slab on reserved huge pages; `None` if too few of them are free.
    fn set_aside(count: u32, each: usize, wanted: usize) -> Option<BufferSlab> {
        if wanted < HUGE || cfg!(miri) {
            return None;
        }
        let bytes = wanted.next_multiple_of(HUGE);
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        // SAFETY: a new mapping wherever there is space overlaps nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let slab = BufferSlab::of(NonNull::new(start.ok()?.cast())?, bytes, each, count, SlabPageKind::SetAside);
        // Populated only by this call: if the pages are refused after all, writing to them would kill the process.
        slab.populate().is_ok().then_some(slab)
    }

    fn map(count: u32, each: usize, wanted: usize) -> Result<BufferSlab, Errno> {
        if cfg!(miri) {
            return Err(Errno::NOSYS);
        }
        let pages = if wanted < HUGE { SlabPageKind::Ordinary } else { SlabPageKind::Transparent };
        let bytes = wanted.next_multiple_of(if pages == SlabPageKind::Ordinary { SMALLEST_PAGE } else { HUGE });
        // Mapped without `MAP_NORESERVE`, so that a system which does not overcommit memory refuses here.
        let start = map_aligned(bytes, MapFlags::PRIVATE)?;
        if pages == SlabPageKind::Transparent {
            // SAFETY: the mapping is our own, and the advice changes no content. Without huge pages the advice is
            // refused, and ordinary pages are used.
            let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        }
        Ok(BufferSlab::of(start, bytes, each, count, pages))
    }

    fn of(start: NonNull<u8>, bytes: usize, each: usize, count: u32, pages: SlabPageKind) -> BufferSlab {
        BufferSlab { start, bytes, each, count, pages, free: Mutex::new((0..count).rev().collect()) }
    }

    /// Populates all pages.
    fn fill(&self) -> Result<(), Errno> {
        match self.populate() {
            // Linux before 5.14 does not know the advice.
            Err(Errno::INVAL) => {
                self.touch();
                Ok(())
            }
            result => result,
        }
    }

    fn populate(&self) -> Result<(), Errno> {
        // SAFETY: the mapping is our own, and the advice changes no content.
        unsafe { madvise(self.start.as_ptr().cast(), self.bytes, Advice::LinuxPopulateWrite) }
    }

    /// Writes to each page, before any buffer is taken.
    fn touch(&self) {
        for at in (0..self.bytes).step_by(SMALLEST_PAGE) {
            // SAFETY: the byte is within the mapping, which is zero and has no other user yet.
            unsafe { self.start.add(at).write_volatile(0) };
        }
    }

    /// Takes a buffer, if one is left. It contains what its last user wrote.
    pub fn take(self: &Arc<BufferSlab>) -> Option<AlignedBuffer> {
        let number = self.free().pop()?;
        // SAFETY: places with a number below `count` are in the mapping, and a number taken off the list gives its
        // place to one buffer only.
        Some(unsafe {
            AlignedBuffer::of_slab(self.start.add(number as usize * self.each), self.each, Arc::clone(self))
        })
    }

    /// Takes a place back.
    pub(crate) fn give(&self, at: NonNull<u8>) {
        let number = (at.addr().get() - self.start.addr().get()) / self.each;
        if let Ok(number) = u32::try_from(number) {
            // The list once had `count` numbers, so this allocates nothing.
            self.free().push(number);
        }
    }

    /// Returns the number of buffers in the slab.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of free buffers.
    pub fn free_count(&self) -> usize {
        self.free().len()
    }

    /// Returns the size of its memory in bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of its bytes on huge pages at present; none if the system does not report it. Reads a file,
    /// so the packet path must not call it.
    pub fn huge_bytes(&self) -> Option<usize> {
        match self.pages {
            SlabPageKind::SetAside => Some(self.bytes),
            SlabPageKind::Ordinary => Some(0),
            SlabPageKind::Transparent => {
                let maps = std::fs::File::open("/proc/self/smaps").ok()?;
                huge_bytes_of(BufReader::new(maps), self.start.addr().get()).map(|bytes| bytes.min(self.bytes))
            }
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<u32>> {
        // A list of numbers is valid after a panic while it was locked.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BufferSlab {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no buffer in it is left, because each keeps the slab.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Returns the number of bytes on huge pages of the mapping that contains an address, from a list as in
/// `/proc/self/smaps`.
fn huge_bytes_of(maps: impl io::BufRead, address: usize) -> Option<usize> {
    let mut is_it = false;
    for line in maps.lines() {
        let line = line.ok()?;
        if let Some((from, to)) = range(&line) {
            is_it = (from..to).contains(&address);
        } else if is_it && let Some(kib) = line.strip_prefix("AnonHugePages:") {
            let kib: usize = kib.trim().strip_suffix("kB")?.trim().parse().ok()?;
            return kib.checked_mul(1024);
        }
    }
    None
}

/// Parses the address range at the beginning of a mapping's first line.
fn range(line: &str) -> Option<(usize, usize)> {
    let (from, rest) = line.split_once('-')?;
    let (to, _) = rest.split_once(' ')?;
    Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn each_buffer_is_had_once_and_comes_back() {
        for count in [1, 7, 2000] {
            let slab = BufferSlab::new(count, 2240).expect("there is memory");
            let mut all: Vec<AlignedBuffer> = std::iter::from_fn(|| slab.take()).collect();
            assert_eq!((all.len(), slab.free_count()), (count as usize, 0));
            let places: HashSet<usize> = all.iter().map(|buffer| buffer.as_ptr().addr()).collect();
            assert_eq!(places.len(), all.len());
            for (number, buffer) in (0_u8..=255).cycle().zip(&mut all) {
                assert!(buffer.len() == 2240 && buffer.is_of_slab() && buffer.as_ptr().addr().is_multiple_of(64));
                buffer.fill(number);
            }
            let numbers = (0_u8..=255).cycle();
            assert!(numbers.zip(&all).all(|(number, buffer)| buffer.iter().all(|byte| *byte == number)), "no overlap");
            std::thread::spawn(move || all.truncate(0)).join().expect("dropped on another thread");
            assert_eq!((slab.free_count(), slab.take().is_some()), (count as usize, true));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn the_last_buffer_keeps_the_memory() {
        let slab = BufferSlab::new(3, 100).expect("there is memory");
        let mut last = slab.take().expect("there are three");
        drop(slab);
        last.fill(5);
        assert!(last.len() == 128 && last.iter().all(|byte| *byte == 5));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn pages_are_there_from_the_start() {
        let slab = BufferSlab::new(2000, 2240).expect("there is memory");
        assert!(slab.bytes() >= 2000 * 2240);
        let huge = slab.huge_bytes().expect("Linux tells");
        assert!(huge <= slab.bytes() && huge.is_multiple_of(HUGE));
        assert_eq!(BufferSlab::new(10, 2240).expect("there is memory").huge_bytes(), Some(0));
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        for count in [1 << 24, u32::MAX] {
            let error = BufferSlab::new(count, 1 << 40).expect_err("nobody has that");
            assert!(!error.is_mapped && error.to_string().contains("mapping"), "{error}");
        }
    }

    #[test]
    fn what_the_system_says_of_pages_is_found() {
        let maps = "55d0-55e0 r--p 00000000 fe:00 1 /bin/x\nAnonHugePages:     4 kB\n7f00-7f40 rw-p 00000000 00:00 0 \n\
                    Size: 64 kB\nAnonHugePages:      2048 kB\nVmFlags: rd wr\n";
        let at = |address| huge_bytes_of(maps.as_bytes(), address);
        assert_eq!((at(0x7f3f), at(0x55d0), at(0x7f40)), (Some(2048 << 10), Some(4096), None));
        assert_eq!(huge_bytes_of("7f00-7f40 rw\nAnonHugePages: x kB".as_bytes(), 0x7f00), None);
    }
}
