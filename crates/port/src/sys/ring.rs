//! Memory shared with the kernel: the frames of an AF_XDP socket and the rings that pass their addresses back and
//! forth.
use super::{PlainData, socket};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use weir_memory::prefetch;

// SAFETY: integers.
unsafe impl PlainData for libc::xdp_umem_reg {}
// SAFETY: integers.
unsafe impl PlainData for libc::xdp_mmap_offsets {}
// SAFETY: integers.
unsafe impl PlainData for libc::xdp_statistics {}
// SAFETY: integers.
unsafe impl PlainData for libc::xdp_desc {}
// SAFETY: an integer.
unsafe impl PlainData for u64 {}

/// A memory mapping, unmapped when dropped.
struct SharedMapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: memory may be used from any thread; access is governed by the owners below, which are not shared.
unsafe impl Send for SharedMapping {}

impl SharedMapping {
    fn new(length: usize, flags: i32, file: i32, offset: libc::off_t) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that is in use.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, file, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(SharedMapping { start, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the address of `count` values of `T` at `offset` in bytes.
    fn at<T>(&self, offset: u64, count: usize) -> io::Result<NonNull<T>> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        if end.is_none_or(|end| end > self.length) || offset % align_of::<T>() != 0 {
            return Err(io::Error::other("the kernel's ring offsets lie outside the ring"));
        }
        // SAFETY: the range was just checked to lie inside the mapping.
        Ok(unsafe { self.start.byte_add(offset) }.cast())
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and the owner that lent all pointers into it is being dropped.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Frame memory of a socket, in chunks of one size.
pub(crate) struct XdpUmem {
    mapping: SharedMapping,
}

impl XdpUmem {
    /// Allocates `bytes` of memory, a multiple of the page size.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Ok(XdpUmem { mapping: SharedMapping::new(bytes, flags, -1, 0)? })
    }

    /// Registers the memory with a socket, in chunks of `chunk` bytes.
    pub(crate) fn register(&self, socket: BorrowedFd<'_>, chunk: u32) -> io::Result<()> {
        let mut request = libc::xdp_umem_reg::zeroed();
        request.addr = self.mapping.start.as_ptr() as u64;
        request.len = self.mapping.length as u64;
        request.chunk_size = chunk;
        socket::set(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &request)
    }

    /// Returns the bytes at an address that the kernel returned or that is free; `None` if they are outside the
    /// memory.
    pub(crate) fn bytes(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let start = self.mapping.at::<u8>(address, length).ok()?;
        // SAFETY: inside the mapping, and borrowed through `self`. The kernel writes to frames in the fill ring and
        // reads from those in the transmit ring only; a frame whose address the caller has is in neither.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) })
    }
}

/// Ring shared with the kernel, one of a socket's four.
pub(crate) struct XdpRing<T> {
    _mapping: SharedMapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
    _entries: PhantomData<T>,
}

// SAFETY: the pointers refer to the mapping, which moves with the ring.
unsafe impl<T: Send> Send for XdpRing<T> {}

/// Kind of ring: selects the socket option for its size and the offset of its mapping.
#[derive(Clone, Copy)]
pub(crate) enum XdpRingKind {
    Receive,
    Transmit,
    Fill,
    Completion,
}

impl<T: PlainData> XdpRing<T> {
    /// Creates a ring of `size` entries, a power of two.
    pub(crate) fn new(socket: BorrowedFd<'_>, kind: XdpRingKind, size: u32) -> io::Result<Self> {
        let (option, page) = match kind {
            XdpRingKind::Receive => (libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING),
            XdpRingKind::Transmit => (libc::XDP_TX_RING, libc::XDP_PGOFF_TX_RING),
            XdpRingKind::Fill => {
                (libc::XDP_UMEM_FILL_RING, libc::off_t::try_from(libc::XDP_UMEM_PGOFF_FILL_RING).unwrap_or(0))
            }
            XdpRingKind::Completion => (
                libc::XDP_UMEM_COMPLETION_RING,
                libc::off_t::try_from(libc::XDP_UMEM_PGOFF_COMPLETION_RING).unwrap_or(0),
            ),
        };
        socket::set(socket, libc::SOL_XDP, option, &size)?;
        let offsets: libc::xdp_mmap_offsets = socket::get(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let offsets = match kind {
            XdpRingKind::Receive => offsets.rx,
            XdpRingKind::Transmit => offsets.tx,
            XdpRingKind::Fill => offsets.fr,
            XdpRingKind::Completion => offsets.cr,
        };
        let bytes = usize::try_from(offsets.desc).unwrap_or(usize::MAX).saturating_add(size as usize * size_of::<T>());
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let mapping = SharedMapping::new(bytes, flags, socket.as_raw_fd(), page)?;
        Ok(XdpRing {
            producer: mapping.at(offsets.producer, 1)?,
            consumer: mapping.at(offsets.consumer, 1)?,
            entries: mapping.at(offsets.desc, size as usize)?,
            _mapping: mapping,
            size,
            _entries: PhantomData,
        })
    }

    fn counter(&self, at: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: `at` is one of the ring's two counters, checked to be in the mapping; the kernel uses it atomically
        // too.
        unsafe { at.as_ref() }
    }

    fn entry(&self, number: u32) -> *mut T {
        // SAFETY: the number is taken modulo the size (a power of two), for which room was checked.
        unsafe { self.entries.as_ptr().add((number & (self.size - 1)) as usize) }
    }
}

/// A ring that weir writes and the kernel reads.
pub(crate) struct XdpProducer<T> {
    ring: XdpRing<T>,
    /// Number of entries written so far, published or not.
    written: u32,
}

impl<T: PlainData> XdpProducer<T> {
    pub(crate) fn new(ring: XdpRing<T>) -> Self {
        XdpProducer { ring, written: 0 }
    }

    /// Returns the number of entries that the kernel has taken.
    pub(crate) fn taken(&self) -> u32 {
        self.ring.counter(self.ring.consumer).load(Ordering::Acquire)
    }

    /// Returns the number of entries that the kernel has not taken yet.
    pub(crate) fn waiting(&self) -> u32 {
        self.written.wrapping_sub(self.taken())
    }

    /// Returns the number of free entries.
    pub(crate) fn free(&self) -> u32 {
        self.ring.size.saturating_sub(self.waiting())
    }

    /// Writes an entry; the caller has checked that one is free.
    pub(crate) fn push(&mut self, entry: T) {
        // SAFETY: inside the ring; the kernel does not read it before it is published.
        unsafe { self.ring.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
    }

    /// Makes the written entries visible to the kernel.
    pub(crate) fn publish(&mut self) {
        self.ring.counter(self.ring.producer).store(self.written, Ordering::Release);
    }

    /// Returns the entry that the kernel took last.
    pub(crate) fn last_taken(&self) -> T {
        // SAFETY: inside the ring, plain data whatever is there, and the kernel only reads it.
        unsafe { self.ring.entry(self.taken().wrapping_sub(1)).read() }
    }
}

/// A ring that the kernel writes and weir reads.
pub(crate) struct XdpConsumer<T> {
    ring: XdpRing<T>,
    /// Number of entries read so far, released or not.
    read: u32,
    /// Number of entries available at the last load of the kernel's counter, which is loaded once per batch, not per
    /// entry.
    seen: u32,
    /// Number of entries read or looked at ahead of reading.
    looked_at: u32,
}

impl<T: PlainData> XdpConsumer<T> {
    pub(crate) fn new(ring: XdpRing<T>) -> Self {
        XdpConsumer { ring, read: 0, seen: 0, looked_at: 0 }
    }

    /// Returns true if there is an entry to read.
    pub(crate) fn has_entry(&self) -> bool {
        self.ring.counter(self.ring.producer).load(Ordering::Acquire) != self.read
    }

    /// Reads an entry, if there is one.
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.read == self.seen {
            self.seen = self.ring.counter(self.ring.producer).load(Ordering::Acquire);
            if self.read == self.seen {
                return None;
            }
        }
        // SAFETY: inside the ring, plain data; the kernel does not write it before it is released.
        let entry = unsafe { self.ring.entry(self.read).read() };
        self.read = self.read.wrapping_add(1);
        Some(entry)
    }

    /// Returns the next entry that was neither read nor looked at, among the next `most` entries known to be
    /// available. Prefetches the ring's memory after them.
    pub(crate) fn look_ahead(&mut self, most: u32) -> Option<T> {
        let known = self.seen.wrapping_sub(self.read);
        let ahead = self.looked_at.wrapping_sub(self.read);
        // Entries were read without being looked at: the difference wrapped below zero.
        let ahead = if ahead > known { 0 } else { ahead };
        if ahead >= known.min(most) {
            return None;
        }
        self.looked_at = self.read.wrapping_add(ahead + 1);
        // SAFETY: a slice of no entries, at an address inside the ring; the kernel may own the memory there.
        let behind = unsafe { std::slice::from_raw_parts(self.ring.entry(self.looked_at.wrapping_add(most)), 0) };
        prefetch(behind, 0);
        // SAFETY: inside the ring, plain data; the kernel does not write it before it is released.
        Some(unsafe { self.ring.entry(self.looked_at.wrapping_sub(1)).read() })
    }

    /// Releases the entries read so far to the kernel.
    pub(crate) fn release(&mut self) {
        self.ring.counter(self.ring.consumer).store(self.read, Ordering::Release);
    }
}
