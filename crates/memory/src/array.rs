//! Implements an array for tables that grow to millions of elements and shrink again. A large array never copies its
//! elements.
use crate::region::ReservedRegion;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{align_of, needs_drop, size_of};
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use zerocopy::FromZeros;

/// Maximum size in bytes of an array on the heap, where growing copies the elements (some microseconds at most).
const MAX_HEAP: usize = 64 << 10;

/// First reservation of address space for a larger array, in bytes. Only the used part has pages.
const FIRST_RESERVATION: usize = 256 << 20;

/// Alignment of the first element in bytes: a cache line.
const ALIGN: usize = 64;

/// Maximum number of huge pages given back by one call of [`HugePageArray::forget`]: some microseconds each.
const MAX_HOLLOWED: usize = 1;

/// An array whose new elements are zero. A small array is on the heap. A large one has its own address space on huge
/// pages, grows and shrinks without copying, and gives memory back as it shrinks. Without address space it stays on
/// the heap; without huge pages it uses ordinary ones. An empty array has no memory.
pub struct HugePageArray<T> {
    data: NonNull<T>,
    len: usize,
    /// Number of elements for which memory is ready; growing up to it needs no call of the system.
    capacity: usize,
    /// Index from which on all elements up to `capacity` are zero.
    zero_from: usize,
    place: ArrayStorage,
    elements: PhantomData<T>,
}

/// Location of an array's elements.
#[derive(Debug)]
enum ArrayStorage {
    /// The array has no memory.
    None,
    Heap(Layout),
    Mapped(ReservedRegion),
}

/// Error: no memory for more elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {bytes} bytes of a table; let the process have more, or use fewer entries")]
pub struct OutOfMemory {
    /// Total size in bytes that the array would have needed.
    pub bytes: usize,
}

// SAFETY: the array owns its elements alone.
unsafe impl<T: Send> Send for HugePageArray<T> {}
// SAFETY: `&HugePageArray<T>` gives `&T` only.
unsafe impl<T: Sync> Sync for HugePageArray<T> {}

impl<T> HugePageArray<T> {
    /// Returns an empty array, without memory.
    pub const fn new() -> HugePageArray<T> {
        const { assert!(!needs_drop::<T>() && size_of::<T>() != 0 && align_of::<T>() <= ALIGN) };
        HugePageArray {
            data: NonNull::dangling(),
            len: 0,
            capacity: 0,
            zero_from: 0,
            place: ArrayStorage::None,
            elements: PhantomData,
        }
    }

    /// Returns the size of the array's memory in bytes.
    pub fn held(&self) -> usize {
        match &self.place {
            ArrayStorage::None => 0,
            ArrayStorage::Heap(layout) => layout.size(),
            ArrayStorage::Mapped(region) => region.held(self.zero_from * size_of::<T>()),
        }
    }

    /// Shortens the array to `len` elements, if it has more. Gives unused memory back.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.len = len;
        if len == 0 {
            *self = HugePageArray::new();
        } else if let ArrayStorage::Mapped(region) = &mut self.place
            && let Some(zero_from) = region.use_only(len * size_of::<T>())
        {
            // An element may lie across the border.
            self.zero_from = self.zero_from.min(zero_from.div_ceil(size_of::<T>()));
            self.capacity = self.capacity.min(self.zero_from);
        }
    }
}

impl<T: FromZeros> HugePageArray<T> {
    /// Declares that the contents of `elements` are no longer needed. The elements may become zero. Releases memory
    /// that only they use, a bounded amount per call. Returns true if nothing is left to release. Call
    /// [`HugePageArray::use_again`] before writing to the elements.
    pub fn forget(&mut self, elements: Range<usize>) -> bool {
        let size = size_of::<T>();
        match &mut self.place {
            ArrayStorage::Mapped(region) => {
                region.hollow(elements.start * size, elements.end.min(self.len) * size, MAX_HOLLOWED)
            }
            ArrayStorage::None | ArrayStorage::Heap(_) => true,
        }
    }

    /// Prepares for writing the element at `index` and later ones: makes memory available again that
    /// [`HugePageArray::forget`] released.
    #[inline]
    pub fn use_again(&mut self, index: usize) {
        if let ArrayStorage::Mapped(region) = &mut self.place {
            region.use_again(index * size_of::<T>());
        }
    }

    /// Adds an element at the end.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the array is unchanged.
    #[inline]
    pub fn push(&mut self, element: T) -> Result<(), OutOfMemory> {
        let at = self.len;
        self.lengthen(at + 1)?;
        self[at] = element;
        Ok(())
    }

    /// Makes sure that `more` elements can be added without an error.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the array is unchanged.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let len = self.len.saturating_add(more);
        if len > self.capacity { self.grow(len) } else { Ok(()) }
    }

    /// Lengthens the array to `len` elements, if it has fewer; the new ones are zero.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the array is unchanged.
    #[inline]
    pub fn lengthen(&mut self, len: usize) -> Result<(), OutOfMemory> {
        if len <= self.len {
            return Ok(());
        }
        self.reserve(len - self.len)?;
        if self.zero_from > self.len {
            let used = self.zero_from.min(len) - self.len;
            // SAFETY: these elements lie within the capacity, and all zero bytes are a `T`.
            unsafe { self.data.add(self.len).write_bytes(0, used) };
        }
        self.zero_from = self.zero_from.max(len);
        self.len = len;
        Ok(())
    }

    /// Makes the capacity at least `len`.
    #[cold]
    fn grow(&mut self, len: usize) -> Result<(), OutOfMemory> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or(OutOfMemory { bytes: usize::MAX })?;
        if bytes > MAX_HEAP && self.grow_mapped(bytes) {
            return Ok(());
        }
        let wanted = bytes.max((self.capacity * size_of::<T>()).saturating_mul(2)).max(ALIGN);
        self.grow_on_heap(wanted).or_else(|_| self.grow_on_heap(bytes))
    }

    /// Makes room for `bytes` in the array's own address space. Returns false if that fails.
    fn grow_mapped(&mut self, bytes: usize) -> bool {
        if let ArrayStorage::Mapped(region) = &mut self.place {
            if bytes > region.bytes() && region.enlarge(bytes.max(region.bytes() * 2)).is_err() {
                return false;
            }
            self.data = region.start().cast();
            self.capacity = region.use_up_to(bytes) / size_of::<T>();
            return true;
        }
        let Ok(mut region) = ReservedRegion::reserve(bytes.max(FIRST_RESERVATION)) else { return false };
        let (data, capacity) = (region.start().cast(), region.use_up_to(bytes) / size_of::<T>());
        self.move_to(data, capacity, ArrayStorage::Mapped(region));
        true
    }

    fn grow_on_heap(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_| OutOfMemory { bytes })?;
        // SAFETY: the layout's size is not zero.
        let data = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(OutOfMemory { bytes })?;
        self.move_to(data.cast(), bytes / size_of::<T>(), ArrayStorage::Heap(layout));
        Ok(())
    }

    /// Moves the elements to other memory, which is zero and has room for them.
    fn move_to(&mut self, data: NonNull<T>, capacity: usize, place: ArrayStorage) {
        // SAFETY: both have room for `len` elements and do not overlap; what is moved needs no drop.
        unsafe { data.copy_from_nonoverlapping(self.data, self.len) };
        let len = self.len;
        *self = HugePageArray { data, len, capacity, zero_from: len, place, elements: PhantomData };
    }
}

impl<T> Deref for HugePageArray<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` elements were zeroed or written since the memory was obtained, and `&self` keeps it.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for HugePageArray<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }
}

impl<T> Drop for HugePageArray<T> {
    fn drop(&mut self) {
        // A region unmaps its memory itself.
        if let ArrayStorage::Heap(layout) = self.place {
            // SAFETY: the memory is from the global allocator, with this layout.
            unsafe { dealloc(self.data.as_ptr().cast(), layout) };
        }
    }
}

impl<T> Default for HugePageArray<T> {
    fn default() -> HugePageArray<T> {
        HugePageArray::new()
    }
}

impl<T> fmt::Debug for HugePageArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array").field("len", &self.len).field("held", &self.held()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_one_has_no_memory() {
        let mut array = HugePageArray::<u64>::new();
        assert_eq!((array.len(), array.held()), (0, 0));
        array.push(1).expect("there is memory");
        assert!(array.held() >= 8);
        array.truncate(0);
        assert_eq!((array.len(), array.held()), (0, 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn memory_is_given_back() {
        let mut array = HugePageArray::<[u64; 4]>::new();
        for _ in 0..1 << 20 {
            array.push([7; 4]).expect("there is memory");
        }
        assert!(array.held() >= 32 << 20);
        for len in (1..1 << 20).rev() {
            array.truncate(len);
        }
        assert!(array.held() <= 256 << 10, "{} bytes for one element", array.held());
        assert_eq!(array[0], [7; 4]);
        array.lengthen(1 << 17).expect("there is memory");
        assert!(array[1..].iter().all(|element| *element == [0; 4]), "new elements are zero");
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn memory_of_forgotten_elements_is_given_back() {
        let mut array = HugePageArray::<[u64; 4]>::new();
        (0..1 << 20).for_each(|_| array.push([7; 4]).expect("there is memory"));
        let full = array.held();
        while !array.forget(100..(1 << 20) - 1) {}
        assert!(array.held() <= 6 << 20, "{} bytes of {full}", array.held());
        assert_eq!((array[99], array[1 << 19], array[(1 << 20) - 1]), ([7; 4], [0; 4], [7; 4]));
        for index in 0..1 << 20 {
            array.use_again(index);
            array[index] = [8; 4];
        }
        assert_eq!(array.held(), full);
        assert!(array.iter().all(|element| *element == [8; 4]));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn elements_begin_at_cache_lines() {
        let mut array = HugePageArray::<[u8; 64]>::new();
        for len in [1, 100, 10_000] {
            array.lengthen(len).expect("there is memory");
            assert!(array.as_ptr().addr().is_multiple_of(64), "with {len}");
        }
    }

    #[test]
    fn more_than_there_is_is_refused() {
        let mut array = HugePageArray::<u64>::new();
        array.push(5).expect("there is memory");
        for len in [usize::MAX, usize::MAX / 8, 1 << 58] {
            let refused = array.lengthen(len).expect_err("no machine has that");
            assert!(refused.bytes >= 1 << 58);
            assert_eq!(*array, [5]);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn it_grows_beyond_its_first_reservation() {
        let mut array = HugePageArray::<[u64; 8]>::new();
        let first = FIRST_RESERVATION / 64;
        array.lengthen(first).expect("there is memory");
        (array[0], array[first - 1]) = ([1; 8], [2; 8]);
        array.lengthen(first + 1).expect("there is memory");
        assert_eq!((array[0], array[first - 1], array[first]), ([1; 8], [2; 8], [0; 8]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 64 }, failure_persistence: None, ..ProptestConfig::default() })]

        /// An array has the contents of a `Vec` after any sequence of operations. Elements of 12 bytes lie across
        /// pages.
        #[test]
        fn it_is_like_a_vec(changes in proptest::collection::vec((any::<bool>(), 0..if cfg!(miri) { 100_usize } else { 300_000 }, any::<u32>()), 1..12)) {
            let (mut array, mut model) = (HugePageArray::<[u32; 3]>::new(), Vec::new());
            for (is_push, len, value) in changes {
                if is_push {
                    array.push([value; 3]).expect("there is memory");
                    model.push([value; 3]);
                } else if len < model.len() {
                    array.truncate(len);
                    model.truncate(len);
                } else {
                    let from = model.len();
                    array.lengthen(len).expect("there is memory");
                    model.resize(len, [0; 3]);
                    prop_assert!(array[from..] == model[from..], "new elements are zero");
                    array[from..].fill([value; 3]);
                    model[from..].fill([value; 3]);
                }
                prop_assert!(*array == *model);
            }
        }
    }
}
