//! Checked reads and writes of numbers in network byte order, for frames whose lengths nobody has promised.

/// The `N` bytes at `at`.
#[inline]
pub(crate) fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The 16-bit number at `at`.
#[inline]
pub(crate) fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    read(bytes, at).map(u16::from_be_bytes)
}

/// The 32-bit number at `at`.
#[inline]
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    read(bytes, at).map(u32::from_be_bytes)
}

/// Writes `new` at `at` if all of it fits; whether it did.
#[inline]
pub(crate) fn write(bytes: &mut [u8], at: usize, new: &[u8]) -> bool {
    let place = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..new.len()));
    place.map(|place| place.copy_from_slice(new)).is_some()
}
