//! Counts the page faults of a thread.
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Reader of Linux's counter for the thread that asks first; counts 0 if Linux does not report it.
#[derive(Debug, Default)]
pub(super) struct PageFaultCounter(Option<File>);

/// Position of the minor faults after the thread's name. Major faults are counted separately.
const MINOR: usize = 7;

impl PageFaultCounter {
    pub(super) fn count(&mut self) -> u64 {
        if self.0.is_none() {
            self.0 = File::open("/proc/thread-self/stat").ok();
        }
        let mut bytes = [0; 512];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut bytes, 0).ok()).unwrap_or(0);
        minor(&String::from_utf8_lossy(&bytes[..read])).unwrap_or(0)
    }
}

/// Parses the minor faults. The name is in brackets and may contain any character.
fn minor(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(MINOR)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_behind_the_name() {
        let text = "12 (a (b) 1) S 1 12 12 0 -1 4194304 4321 0 7 0 1 2";
        assert_eq!((minor(text), minor("12"), minor("")), (Some(4321), None, None));
    }

    #[test]
    fn touching_new_memory_is_seen() {
        let mut faults = PageFaultCounter::default();
        let before = faults.count();
        let pages = vec![1_u8; 8 << 20];
        assert!(faults.count() > before, "{} bytes", pages.len());
    }
}
