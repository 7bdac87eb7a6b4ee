//! Sets how long a thread runs at a time.
use super::check;
use std::io;
use std::time::Duration;

/// `SCHED_FLAG_KEEP_POLICY`: keeps a scheduling policy that was set from outside.
const KEEP_POLICY: u64 = 0x08;

/// Requests that the scheduler runs the calling thread for at most `slice` at a time. A thread with a shorter slice
/// runs sooner after it wakes up, even if all processors are busy (Linux 6.12 and later; no effect before).
///
/// # Errors
/// The kernel does not know the call.
pub fn ask_for_slices_of(slice: Duration) -> io::Result<()> {
    // SAFETY: the call takes integers; process 0 is the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = libc::sched_attr {
        size: u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0),
        sched_policy: 0,
        sched_flags: KEEP_POLICY,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX),
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the attributes outlive the call, which reads as many bytes as they say; thread 0 is the calling one.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    check(libc::c_int::try_from(result).unwrap_or(-1)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_ask_for_less() {
        // A separate thread: the other threads of this process keep their slices.
        std::thread::spawn(|| ask_for_slices_of(Duration::from_micros(100)).unwrap()).join().unwrap();
    }
}
