//! Preparing huge pages before they are needed. Linux clears 2 MiB when the first byte of one is written; on the packet path
//! that would be a gap, so a thread of its own has it done beforehand. Where it cannot, the page is made when it is first written.
use rustix::mm::{Advice, madvise};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Requests that wait; more are left out.
const MAX_WAITING: usize = 64;

/// First address and number of bytes.
type Range = (usize, usize);

/// Has pages put where there are none yet; returns at once. The range may be given up before that is done.
pub(crate) fn prepare(start: usize, bytes: usize) {
    static REQUESTS: OnceLock<Option<SyncSender<Range>>> = OnceLock::new();
    if let Some(requests) = REQUESTS.get_or_init(start_thread) {
        // Too many requests, or no thread: whoever writes there first waits.
        let _ = requests.try_send((start, bytes));
    }
}

fn start_thread() -> Option<SyncSender<Range>> {
    let (sender, receiver) = sync_channel(MAX_WAITING);
    let thread = std::thread::Builder::new().name("weir-memory".to_owned());
    thread.spawn(move || serve(&receiver)).ok().map(|_| sender)
}

fn serve(requests: &Receiver<Range>) {
    // The thread that asked first may be bound to a processor that it wants for itself.
    let mut anywhere = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| anywhere.set(cpu));
    let _ = sched_setaffinity(None, &anywhere);
    for (start, bytes) in requests {
        // SAFETY: the advice puts pages where a mapping has none, which changes no content: not even that of a mapping which has
        // come to be there since the request was made. Where there is none, and on Linux before 5.14, it is refused.
        let _ = unsafe { madvise(std::ptr::without_provenance_mut(start), bytes, Advice::LinuxPopulateWrite) };
    }
}
