//! Reads and writes numbers in network byte order with bounds checks, for frames of any length.

/// Returns the `N` bytes at offset `at`; `None` if they exceed the slice.
#[inline]
pub(crate) fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Returns the 16-bit number at offset `at`; `None` if it exceeds the slice.
#[inline]
pub(crate) fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    read(bytes, at).map(u16::from_be_bytes)
}

/// Returns the 32-bit number at offset `at`; `None` if it exceeds the slice.
#[inline]
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    read(bytes, at).map(u32::from_be_bytes)
}

/// Writes `new` at offset `at` if all of it fits; returns true if it did.
#[inline]
pub(crate) fn write(bytes: &mut [u8], at: usize, new: &[u8]) -> bool {
    let place = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..new.len()));
    place.map(|place| place.copy_from_slice(new)).is_some()
}
