//! Watching what a lab takes of the machine while it runs, from what Linux says in `/proc` and of its control groups.
use crate::LabError;
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::fs;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it is looked. The kernel counts in ticks of 10 ms.
const EVERY: Duration = Duration::from_millis(200);
/// A processor that is busy for more than this share of the time between two looks has nothing left.
const SATURATED: f64 = 0.95;

/// What a lab took of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Taken {
    /// Processors of the machine.
    pub(crate) processors: usize,
    /// Time between two looks, all together.
    pub(crate) looks: u64,
    /// Looks between which all processors were busy.
    pub(crate) saturated: u64,
    /// Share of the processors' time that they were busy, `0.0..=1.0`.
    pub(crate) busy: f64,
    /// Share of the processors' time that whoever runs this machine as one of several gave to another.
    pub(crate) stolen: f64,
    /// Share of the processors' time that this process and programs that it waited for took.
    pub(crate) own: f64,
    /// Time for which the process was not allowed to run, since its control group had used up its quota.
    pub(crate) throttled: Duration,
}

/// Watches until it is dropped.
pub(crate) struct Watch {
    stop: Option<Sender<Sender<Taken>>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn start() -> Result<Watch, LabError> {
        let (stop, asked) = bounded::<Sender<Taken>>(1);
        let watch = move || {
            let mut watched = Watched::start();
            loop {
                match asked.recv_timeout(EVERY) {
                    Ok(answer) => _ = answer.send(watched.taken()),
                    Err(RecvTimeoutError::Timeout) => watched.look(),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let thread = std::thread::Builder::new().name("weir-watch".into()).spawn(watch);
        let thread = thread.map_err(LabError::system("start the thread that watches the machine"))?;
        Ok(Watch { stop: Some(stop), thread: Some(thread) })
    }

    /// What was taken since the start.
    pub(crate) fn taken(&self) -> Taken {
        let (answer, answered) = bounded(1);
        let asked = self.stop.as_ref().is_some_and(|stop| stop.send(answer).is_ok());
        if asked { answered.recv().unwrap_or_default() } else { Taken::default() }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Watched {
    first: Vec<Ticks>,
    last: Vec<Ticks>,
    own_first: u64,
    throttled_first: Duration,
    looks: u64,
    saturated: u64,
}

impl Watched {
    fn start() -> Watched {
        let now = processors();
        Watched {
            first: now.clone(),
            last: now,
            own_first: own(),
            throttled_first: throttled(),
            looks: 0,
            saturated: 0,
        }
    }

    fn look(&mut self) {
        let now = processors();
        let is_busy =
            |(now, last): (&Ticks, &Ticks)| now.since(last).busy_share().is_some_and(|share| share > SATURATED);
        self.looks += 1;
        self.saturated += u64::from(!now.is_empty() && now.iter().zip(&self.last).all(is_busy));
        self.last = now;
    }

    fn taken(&self) -> Taken {
        let now = processors();
        let sum = now.iter().zip(&self.first).map(|(now, first)| now.since(first)).fold(Ticks::default(), Ticks::and);
        let share = |ticks: u64| if sum.all() == 0 { 0.0 } else { ticks as f64 / sum.all() as f64 };
        Taken {
            processors: now.len(),
            looks: self.looks,
            saturated: self.saturated,
            busy: sum.busy_share().unwrap_or_default(),
            stolen: share(sum.stolen),
            own: share(own().saturating_sub(self.own_first)).min(1.0),
            throttled: throttled().saturating_sub(self.throttled_first),
        }
    }
}

/// Looks what whoever runs this machine as one of several gives to the others.
#[derive(Debug)]
pub struct Stolen(Ticks);

impl Stolen {
    /// From now on.
    pub fn start() -> Stolen {
        Stolen(all_processors())
    }

    /// The share of the processors' time since the start, `0.0..=1.0`; none where Linux does not say. The kernel counts in ticks of 10 ms.
    pub fn share(&self) -> Option<f64> {
        let since = all_processors().since(&self.0);
        (since.all() > 0).then(|| since.stolen as f64 / since.all() as f64)
    }
}

/// What a processor did, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Ticks {
    busy: u64,
    idle: u64,
    stolen: u64,
}

impl Ticks {
    fn all(self) -> u64 {
        self.busy + self.idle + self.stolen
    }

    /// Stolen time is no more to be had than used.
    fn busy_share(self) -> Option<f64> {
        (self.all() > 0).then(|| (self.busy + self.stolen) as f64 / self.all() as f64)
    }

    fn since(self, before: &Ticks) -> Ticks {
        Ticks {
            busy: self.busy.saturating_sub(before.busy),
            idle: self.idle.saturating_sub(before.idle),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }

    fn and(self, other: Ticks) -> Ticks {
        Ticks { busy: self.busy + other.busy, idle: self.idle + other.idle, stolen: self.stolen + other.stolen }
    }
}

fn all_processors() -> Ticks {
    processors().into_iter().fold(Ticks::default(), Ticks::and)
}

fn processors() -> Vec<Ticks> {
    fs::read_to_string("/proc/stat").map_or(Vec::new(), |text| read_processors(&text))
}

/// The lines `cpuN user nice system idle iowait irq softirq steal ...` of proc_stat(5); guests' time is part of users'.
fn read_processors(text: &str) -> Vec<Ticks> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        words.next()?.strip_prefix("cpu")?.parse::<u32>().ok()?;
        let counts: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, stolen] = *counts.first_chunk::<8>()?;
        Some(Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, stolen })
    };
    text.lines().filter_map(line).collect()
}

/// What this process and the programs that it waited for took, in ticks.
fn own() -> u64 {
    /// Places of `utime`, `stime`, `cutime` and `cstime` in proc_pid_stat(5), behind the name.
    const PLACES: std::ops::Range<usize> = 11..15;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(')') else { return 0 };
    let counts = rest.split_whitespace().skip(PLACES.start).take(PLACES.len());
    counts.filter_map(|count| count.parse::<u64>().ok()).sum()
}

/// For how long this process's control group was throttled; nothing if it has no quota.
fn throttled() -> Duration {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let stats = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let folder = match controllers {
            "" => "/sys/fs/cgroup",
            _ if controllers.split(',').any(|controller| controller == "cpu") => "/sys/fs/cgroup/cpu",
            _ => return None,
        };
        fs::read_to_string(format!("{folder}{path}/cpu.stat")).ok()
    });
    stats.map(|text| read_throttled(&text)).max().unwrap_or_default()
}

/// `throttled_usec` of version 2 of control groups, `throttled_time` in nanoseconds of version 1.
fn read_throttled(text: &str) -> Duration {
    let time = |line: &str| match line.split_once(' ')? {
        ("throttled_usec", us) => Some(Duration::from_micros(us.trim().parse().ok()?)),
        ("throttled_time", ns) => Some(Duration::from_nanos(ns.trim().parse().ok()?)),
        _ => None,
    };
    text.lines().find_map(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let text = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 10 0 20 60 5 1 2 2 0 0\ncpu1 1 0 0 9 0 0 0 0 0 0\nintr 5\ncpuX 1\n";
        let read = read_processors(text);
        assert_eq!(read, [Ticks { busy: 33, idle: 65, stolen: 2 }, Ticks { busy: 1, idle: 9, stolen: 0 }]);
        assert_eq!((read[0].busy_share(), Ticks::default().busy_share()), (Some(0.35), None));
        assert!(read_processors("cpu0 1 2 3\n").is_empty(), "an old kernel's line lacks what is needed");
        assert_eq!(read_throttled("nr_throttled 3\nthrottled_usec 1500\n"), Duration::from_micros(1500));
        assert_eq!(read_throttled("nr_throttled 3\nthrottled_time 1500\n"), Duration::from_nanos(1500));
        assert_eq!(read_throttled("throttled_usec x\n"), Duration::ZERO);
    }

    #[test]
    fn a_machine_is_watched() {
        let watch = Watch::start().unwrap();
        let taken = watch.taken();
        assert!(taken.processors >= 1 && taken.own <= 1.0 && taken.busy <= 1.0, "{taken:?}");
    }
}
