//! Settings of mimalloc, for programs whose global allocator it is.
use libmimalloc_sys as _;
use std::ffi::{c_int, c_long};
use std::time::Duration;

/// Number of mimalloc's option `purge_delay` (`mimalloc.h` of version 2).
const PURGE_DELAY: c_int = 15;

unsafe extern "C" {
    /// Sets an option of mimalloc, unless the environment has set it.
    fn mi_option_set_default(option: c_int, value: c_long);
}

/// Sets the time for which freed memory is kept before the system gets it back, in whole milliseconds; mimalloc's own
/// is 10 ms. The environment variable `MIMALLOC_PURGE_DELAY` goes before it. To be called at the start of a program.
///
/// Memory that comes back from the system is cleared first, which a program that frees and allocates much pays again
/// and again.
pub fn keep_freed(time: Duration) {
    let ms = c_long::try_from(time.as_millis()).unwrap_or(c_long::MAX);
    // SAFETY: the option exists, and any number of milliseconds is allowed.
    unsafe { mi_option_set_default(PURGE_DELAY, ms) };
}
