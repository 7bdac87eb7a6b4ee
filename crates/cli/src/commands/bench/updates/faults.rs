//! How often a thread had to wait for memory to be put to a page.
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The figure of Linux for the thread that asks first; 0 where it does not say.
#[derive(Debug, Default)]
pub(super) struct Faults(Option<File>);

/// Where the figure is behind the name of the thread: minor faults, of which the major ones are no part.
const MINOR: usize = 7;

impl Faults {
    pub(super) fn count(&mut self) -> u64 {
        if self.0.is_none() {
            self.0 = File::open("/proc/thread-self/stat").ok();
        }
        let mut bytes = [0; 512];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut bytes, 0).ok()).unwrap_or(0);
        minor(&String::from_utf8_lossy(&bytes[..read])).unwrap_or(0)
    }
}

/// The name is in brackets and may have anything in it.
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
        let mut faults = Faults::default();
        let before = faults.count();
        let pages = vec![1_u8; 8 << 20];
        assert!(faults.count() > before, "{} bytes", pages.len());
    }
}
