//! Measures how much of the machine's processor time other programs used during a measurement, which they disturb.

/// Processor time since the start of the machine, in clock ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MachineCpuTicks {
    /// Time of all processors, including idle time.
    all: u64,
    idle: u64,
    /// Time of this process, and of those that it started and that have ended.
    own: u64,
}

/// Share of the machine's processor time above which other programs count as a disturbance.
pub(crate) const DISTURBED: f64 = 0.1;

impl MachineCpuTicks {
    /// Reads the current counters from /proc. Returns `None` if they are not available.
    pub(crate) fn now() -> Option<MachineCpuTicks> {
        let read = |path| std::fs::read_to_string(path).ok();
        MachineCpuTicks::of(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    fn of(machine: &str, process: &str) -> Option<MachineCpuTicks> {
        let line = machine.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // User, nice, system, idle, waiting for devices, interrupts, soft interrupts, stolen. Virtual machines are
        // part of user.
        let fields: Vec<u64> = line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        let idle = fields.get(3)? + fields.get(4)?;
        // After the name, which may contain any character, the state is field 3; user and system time are fields 14
        // and 15, those of children that have ended 16 and 17.
        let (_, behind) = process.rsplit_once(')')?;
        let times: Vec<u64> =
            behind.split_whitespace().skip(11).take(4).map_while(|field| field.parse().ok()).collect();
        Some(MachineCpuTicks { all: fields.iter().sum(), idle, own: times.iter().sum() })
    }

    /// Returns the share of the machine's processor time since `earlier` that was neither idle nor used by this
    /// process.
    pub(crate) fn others_since(self, earlier: MachineCpuTicks) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        let used = (self.idle - earlier.idle.min(self.idle)) + (self.own - earlier.own.min(self.own));
        if all == 0 { 0.0 } else { all.saturating_sub(used) as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "cpu  100 0 50 800 30 5 5 10 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
    const PROCESS: &str = "12 (a ) b) S 1 12 12 0 -1 4194560 1 0 0 0 40 20 7 3 20 0 1 0 5 6 7";

    #[test]
    fn what_neither_we_nor_nobody_used_is_others() {
        let before = MachineCpuTicks::of(MACHINE, PROCESS).unwrap();
        assert_eq!((before.all, before.idle, before.own), (1000, 830, 70));
        let after = MachineCpuTicks { all: 1200, idle: 900, own: 140 };
        assert!((after.others_since(before) - 0.3).abs() < 1e-9);
        assert!((before.others_since(before)).abs() < 1e-9);
    }

    #[test]
    fn this_machine_has_them() {
        let ticks = MachineCpuTicks::now().unwrap();
        assert!(ticks.all >= ticks.idle + ticks.own);
    }
}
