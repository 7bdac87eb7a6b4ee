//! System calls that kernel ports need and no safe crate offers. All `unsafe` code of the crate is here, in small
//! functions that own or borrow every pointer they pass to the kernel.
pub(crate) mod bpf;
pub(crate) mod datagrams;
pub(crate) mod ioctl;
pub(crate) mod messages;
pub(crate) mod ring;
pub(crate) mod slice;
pub(crate) mod socket;

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// Converts a number to the type that the system's C library has in its place: musl's types differ from glibc's. The
/// numbers are small constants and lengths, which fit.
#[inline]
pub(crate) fn fitted<T: TryFrom<U> + Default, U>(number: U) -> T {
    T::try_from(number).unwrap_or_default()
}

/// Plain data of fixed layout that the kernel may read or fill in.
///
/// # Safety
/// Every pattern of bytes must be a value of the type, and the type must hold no pointer that outlives the call.
pub(crate) unsafe trait PlainData: Copy {
    /// Returns a value of zero bytes.
    fn zeroed() -> Self {
        // SAFETY: the trait promises that every pattern of bytes is a value.
        unsafe { std::mem::zeroed() }
    }
}

// SAFETY: an integer.
unsafe impl PlainData for i32 {}
// SAFETY: an integer.
unsafe impl PlainData for u32 {}

/// Converts the return value of a system call to a result.
pub(crate) fn check(result: libc::c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Moves the calling thread into a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: the thread goes on to share its descriptors with the others; only `UnshareFlags::FILES` would end that.
    Ok(unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }?)
}

/// Takes ownership of a descriptor that a system call just created.
pub(crate) fn owned(result: libc::c_int) -> io::Result<OwnedFd> {
    check(result)?;
    // SAFETY: the call succeeded, so the descriptor is open, and no other code has seen it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

/// Retries an operation while it fails with `EBUSY`, for at most a second. The kernel releases a device some time
/// after a close, and a process that is being started briefly holds copies of all descriptors.
pub(crate) fn while_busy<T>(operation: impl Fn() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..BUSY_RETRIES {
        match operation() {
            Err(error) if errno(&error) == libc::EBUSY => pause(BUSY_WAIT_MS),
            result => return result,
        }
    }
    operation()
}

const BUSY_WAIT_MS: i32 = 20;
const BUSY_RETRIES: u32 = 50;

fn pause(ms: i32) {
    // SAFETY: no descriptors are given, so the pointer is not read.
    unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
}

/// Moves the calling thread into the network namespace that `file` is open on.
pub(crate) fn enter_network_namespace(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: setns(2) takes integers, and changes the calling thread only.
    check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Returns the error number of a system call's error; 0 if it has none.
pub(crate) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// Returns `size_of::<T>()` as the kernel's length type.
pub(crate) fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(libc::socklen_t::MAX)
}
