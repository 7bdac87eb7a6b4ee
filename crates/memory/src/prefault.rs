//! Prepares huge pages before they are needed. Linux clears 2 MiB when the first byte of a huge page is written. On
//! the packet path that would be a gap, so another thread does it in advance. If it cannot, the page is made at the
//! first write.
use rustix::mm::{Advice, madvise};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Maximum number of waiting requests; further ones are dropped.
const MAX_WAITING: usize = 64;

/// First address and number of bytes.
type AddressRange = (usize, usize);

/// Requests pages for a range; returns at once. The range may be unmapped before the request is carried out.
pub(crate) fn prepare(start: usize, bytes: usize) {
    static REQUESTS: OnceLock<Option<SyncSender<AddressRange>>> = OnceLock::new();
    if let Some(requests) = REQUESTS.get_or_init(start_thread) {
        // With too many requests or without a thread, the first write to the page waits instead.
        let _ = requests.try_send((start, bytes));
    }
}

fn start_thread() -> Option<SyncSender<AddressRange>> {
    let (sender, receiver) = sync_channel(MAX_WAITING);
    let thread = std::thread::Builder::new().name("weir-memory".to_owned());
    thread.spawn(move || serve(&receiver)).ok().map(|_| sender)
}

fn serve(requests: &Receiver<AddressRange>) {
    // This thread inherits the CPU of the first caller, which may need that CPU for itself.
    let mut anywhere = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| anywhere.set(cpu));
    let _ = sched_setaffinity(None, &anywhere);
    for (start, bytes) in requests {
        // SAFETY: the advice populates pages where a mapping has none. That changes no content, not even of a mapping
        // made there since the request. Without a mapping, and on Linux before 5.14, it is refused.
        let _ = unsafe { madvise(std::ptr::without_provenance_mut(start), bytes, Advice::LinuxPopulateWrite) };
    }
}
