//! Memory limits and input readers for all fuzz targets.
pub mod fake_network;
mod messages;
pub mod pipeline;

use cap::Cap;
use std::alloc::System;
use std::panic;
use std::sync::Once;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Memory in bytes that a parser may hold in addition to its share for the input.
const BASE_BYTES: usize = 4 << 20;
/// Memory in bytes that a parser may hold for each byte of its input.
const BYTES_PER_BYTE: usize = 4096;

/// Runs a parser on `input`. A parser that allocates more than its input allows ends the process, which libFuzzer
/// reports.
pub fn bounded<T>(input: &[u8], parser: impl FnOnce() -> T) -> T {
    bounded_by(BASE_BYTES + BYTES_PER_BYTE * input.len(), parser)
}

/// Runs `what`, which may hold at most `bytes` more memory than the process holds now.
pub fn bounded_by<T>(bytes: usize, what: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    // The report of a panic takes megabytes; without memory for it the process hangs instead of ending.
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let _ = MEMORY.set_limit(usize::MAX);
            report(info);
        }));
    });
    MEMORY.set_limit(MEMORY.allocated().saturating_add(bytes)).expect("the limit lies above what is allocated");
    let result = what();
    MEMORY.set_limit(usize::MAX).expect("no limit");
    result
}

/// Splits an input into the byte that chooses, and the text that follows it. Returns `None` if that is not UTF-8.
pub fn choice_and_text(input: &[u8]) -> Option<(u8, &str)> {
    let (choice, text) = input.split_first()?;
    Some((*choice, std::str::from_utf8(text).ok()?))
}
