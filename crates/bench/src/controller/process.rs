//! Processor time and memory of the controller's process, as Linux counts them.
use serde::Serialize;
use std::fs::{read_dir, read_to_string};
use weir_units::Epoch;

/// Use of a process: since its start, or between two readings.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ProcessUse {
    /// Seconds of processor time of all threads that live.
    pub(super) cpu_s: f64,
    /// Seconds between the readings.
    pub(super) wall_s: f64,
    /// Resident memory in bytes at the last reading.
    pub(super) resident_bytes: u64,
}

impl ProcessUse {
    /// Reads the use of a process since its start; `None` if there is no such process.
    pub(super) fn read(pid: u32) -> Option<ProcessUse> {
        let tasks = read_dir(format!("/proc/{pid}/task")).ok()?;
        let time = |task: std::fs::DirEntry| -> Option<f64> {
            let text = read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse().ok()
        };
        let cpu_ns: f64 = tasks.flatten().filter_map(time).sum();
        let resident_bytes = crate::machine::resident_bytes_of(&pid.to_string())?;
        Some(ProcessUse { cpu_s: cpu_ns / 1e9, wall_s: Epoch::Boot.now_ns() as f64 / 1e9, resident_bytes })
    }

    /// Returns the use since an earlier reading.
    pub(super) fn since(&self, earlier: &ProcessUse) -> ProcessUse {
        ProcessUse { cpu_s: self.cpu_s - earlier.cpu_s, wall_s: self.wall_s - earlier.wall_s, ..*self }
    }

    /// Returns the processors in use on average.
    pub(super) fn cores(&self) -> f64 {
        self.cpu_s / self.wall_s.max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_time_and_memory() {
        let own = ProcessUse::read(std::process::id()).unwrap();
        assert!(own.resident_bytes > 100_000 && own.cpu_s >= 0.0);
        assert!(own.since(&own).cpu_s.abs() < 1e-9);
        assert!(ProcessUse::read(u32::MAX).is_none());
    }
}
