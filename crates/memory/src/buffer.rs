//! Bytes of one frame or message, in a [`BufferSlab`] or on the heap.
use crate::BufferSlab;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Size of a cache line in bytes; every buffer begins at one.
const LINE: usize = 64;

/// A fixed number of bytes that begin at a cache line. Dropping the buffer returns the memory to the slab or the
/// heap.
///
/// The size is three words, like that of a `Vec<u8>`, so that types holding a buffer do not grow.
pub struct AlignedBuffer {
    at: NonNull<u8>,
    len: usize,
    /// Slab that the memory returns to; none: the heap.
    slab: Option<Arc<BufferSlab>>,
}

const _: () = assert!(size_of::<AlignedBuffer>() == 3 * size_of::<usize>());

// SAFETY: the bytes belong to the buffer alone, as those of a box.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above; `&AlignedBuffer` gives `&[u8]` only.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A buffer without bytes and memory.
    pub const EMPTY: AlignedBuffer = AlignedBuffer { at: NonNull::dangling(), len: 0, slab: None };

    /// Allocates `len` bytes on the heap, all zero.
    pub fn zeroed(len: usize) -> AlignedBuffer {
        if len == 0 {
            return AlignedBuffer::EMPTY;
        }
        let Some(layout) = layout(len) else { handle_alloc_error(Layout::new::<u8>()) };
        // SAFETY: the layout has more than no bytes.
        let Some(at) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
        AlignedBuffer { at, len, slab: None }
    }

    /// Makes a buffer of memory in a slab.
    ///
    /// # Safety
    /// The `len` bytes at `at` lie in the slab, have been written or mapped, and have no other user until
    /// [`BufferSlab`] has them back.
    pub(crate) unsafe fn of_slab(at: NonNull<u8>, len: usize, slab: Arc<BufferSlab>) -> AlignedBuffer {
        AlignedBuffer { at, len, slab: Some(slab) }
    }

    /// Returns true if its memory is in a slab.
    pub const fn is_of_slab(&self) -> bool {
        self.slab.is_some()
    }
}

fn layout(len: usize) -> Option<Layout> {
    Layout::from_size_align(len, LINE).ok()
}

impl Drop for AlignedBuffer {
    #[inline]
    fn drop(&mut self) {
        if let Some(slab) = self.slab.take() {
            slab.give(self.at);
        } else if self.len != 0
            && let Some(layout) = layout(self.len)
        {
            // SAFETY: the memory was allocated with this very layout, and nothing refers to it any more.
            unsafe { dealloc(self.at.as_ptr(), layout) };
        }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are there, all of them were zero once, and `&self` keeps others from changing them.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuffer {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Clone for AlignedBuffer {
    /// Returns a copy on the heap.
    fn clone(&self) -> AlignedBuffer {
        let mut copy = AlignedBuffer::zeroed(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl Default for AlignedBuffer {
    fn default() -> AlignedBuffer {
        AlignedBuffer::EMPTY
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.is_of_slab() { "of a slab" } else { "on the heap" };
        write!(f, "Buffer({} bytes {place})", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_is_written() {
        for len in [0, 1, 63, 64, 2240, 70_000] {
            let mut buffer = AlignedBuffer::zeroed(len);
            assert!(buffer.len() == len && buffer.iter().all(|byte| *byte == 0));
            assert!(len == 0 || buffer.as_ptr().addr().is_multiple_of(LINE));
            buffer.fill(7);
            let copy = buffer.clone();
            buffer.fill(9);
            assert!(copy.iter().all(|byte| *byte == 7) && copy.len() == len);
        }
    }

    #[test]
    fn an_empty_one_has_no_memory() {
        let mut empty = AlignedBuffer::default();
        assert!(empty.is_empty() && empty.clone().is_empty() && empty.iter_mut().count() == 0);
    }
}
