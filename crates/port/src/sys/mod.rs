//! The system calls that kernel ports need and no safe crate offers: the only `unsafe` code of the crate, in small
//! functions that own or borrow every pointer they hand to the kernel.
pub(crate) mod bpf;
pub(crate) mod datagrams;
pub(crate) mod ioctl;
pub(crate) mod messages;
pub(crate) mod ring;
pub(crate) mod slice;
pub(crate) mod socket;

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// Plain data of fixed layout that the kernel may read or fill in.
///
/// # Safety
/// Every pattern of bytes is a value of the type, and it holds no pointer that outlives the call.
pub(crate) unsafe trait Plain: Copy {
    /// All bytes zero.
    fn zeroed() -> Self {
        // SAFETY: the trait promises that every pattern of bytes is a value.
        unsafe { std::mem::zeroed() }
    }
}

// SAFETY: an integer.
unsafe impl Plain for i32 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}

/// Turns what a system call gave back into a result.
pub(crate) fn check(result: libc::c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Takes a descriptor that a system call just made.
pub(crate) fn owned(result: libc::c_int) -> io::Result<OwnedFd> {
    check(result)?;
    // SAFETY: the call succeeded, so the descriptor is open, and nobody else has seen it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

/// Tries until it succeeds, or fails with another error than `EBUSY`, for at most a second: the kernel lets go of a device in
/// its own time after a close, and a process that is just being started holds copies of all descriptors for a moment.
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

/// The error number of a system call's error.
pub(crate) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// `size_of::<T>()` as the kernel takes lengths.
pub(crate) fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(libc::socklen_t::MAX)
}
