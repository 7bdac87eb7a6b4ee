//! Watches the load of the machine during a run, from `/proc` and control groups.
use crate::LabError;
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_units::{Clock as _, Instant, StallLog, StallTotals, SystemClock};

/// Time between two samples. The kernel counts in ticks of 10 ms.
const EVERY: Duration = Duration::from_millis(200);
/// Time for which the watching thread sleeps: short beside the stops that disturb a measurement.
const SLEEP: Duration = Duration::from_millis(2);
/// Lateness of a wake-up from which on the thread was stopped, or waited for a processor that other threads had. An
/// idle machine wakes a thread in much less.
const STOP: Duration = Duration::from_millis(1);
/// Share of the time between two samples above which a processor counts as busy.
const SATURATED: f64 = 0.95;

/// Load of the machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct MeasuredLoad {
    /// Processors of the machine.
    pub(crate) processors: usize,
    /// Number of samples.
    pub(crate) looks: u64,
    /// Number of samples before which all processors were busy.
    pub(crate) saturated: u64,
    /// Share of the processors' time that they were busy or stolen, `0.0..=1.0`.
    pub(crate) busy: f64,
    /// Share of the processors' time that the hypervisor gave to other machines.
    pub(crate) stolen: f64,
    /// Share of the processors' time used by this process and by programs that it has waited for.
    pub(crate) own: f64,
    /// Time for which the process was not allowed to run because its control group had used up its quota.
    pub(crate) throttled: Duration,
    /// Waits of the process's threads for a processor.
    pub(crate) waits: ThreadWaits,
    /// Stops of the watching thread, by the clock that the monitor was given.
    pub(crate) stops: StallLog,
    /// Late wake-ups of the watching thread during which other threads had the processor. These are no stops of the
    /// machine, but of its own load.
    pub(crate) preempted: StallTotals,
}

/// Waits of ready threads for a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ThreadWaits {
    /// Sum of the waits.
    pub(crate) time: Duration,
    /// Number of times that threads got a processor.
    pub(crate) turns: u64,
}

/// Thread that watches the machine until this is dropped.
pub(crate) struct LoadMonitor {
    stop: Option<Sender<Sender<MeasuredLoad>>>,
    thread: Option<JoinHandle<()>>,
}

impl LoadMonitor {
    /// Starts watching. Stops are told by `clock`.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn start(clock: SystemClock) -> Result<LoadMonitor, LabError> {
        let (stop, asked) = bounded::<Sender<MeasuredLoad>>(1);
        let watch = move || {
            let mut watched = LoadMonitorState::start();
            let mut waits = ThreadWaitReader::start();
            let mut next_look = clock.now() + EVERY;
            loop {
                let slept = clock.now();
                match asked.recv_timeout(SLEEP) {
                    Ok(answer) => _ = answer.send(watched.taken()),
                    Err(RecvTimeoutError::Timeout) => {
                        let now = clock.now();
                        watched.woke(slept + SLEEP, now, waits.since_last());
                        if now >= next_look {
                            watched.look();
                            next_look = now + EVERY;
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let thread = std::thread::Builder::new().name("weir-watch".into()).spawn(watch);
        let thread = thread.map_err(LabError::system("start the thread that watches the machine"))?;
        Ok(LoadMonitor { stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the load since the start.
    pub(crate) fn taken(&self) -> MeasuredLoad {
        let (answer, answered) = bounded(1);
        let asked = self.stop.as_ref().is_some_and(|stop| stop.send(answer).is_ok());
        if asked { answered.recv().unwrap_or_default() } else { MeasuredLoad::default() }
    }
}

impl Drop for LoadMonitor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct LoadMonitorState {
    first: Vec<ProcessorTimes>,
    last: Vec<ProcessorTimes>,
    own_first: u64,
    waits_first: ThreadWaits,
    throttled_first: Duration,
    looks: u64,
    saturated: u64,
    stops: StallLog,
    preempted: StallLog,
}

impl LoadMonitorState {
    fn start() -> LoadMonitorState {
        let now = processors();
        LoadMonitorState {
            first: now.clone(),
            last: now,
            own_first: own(),
            waits_first: waits(),
            throttled_first: throttled(),
            looks: 0,
            saturated: 0,
            stops: StallLog::default(),
            preempted: StallLog::default(),
        }
    }

    /// Notes a stop if a wake-up was much later than `due`. If other threads had the processor for most of that time,
    /// for which the thread `waited`, the load is the reason, and not the machine.
    fn woke(&mut self, due: Instant, now: Instant, waited: Duration) {
        let late = now.since(due);
        if late >= STOP {
            let log = if waited >= late / 2 { &mut self.preempted } else { &mut self.stops };
            log.note(due, now);
        }
    }

    fn look(&mut self) {
        let now = processors();
        let is_busy = |(now, last): (&ProcessorTimes, &ProcessorTimes)| {
            now.since(last).busy_share().is_some_and(|share| share > SATURATED)
        };
        self.looks += 1;
        self.saturated += u64::from(!now.is_empty() && now.iter().zip(&self.last).all(is_busy));
        self.last = now;
    }

    fn taken(&self) -> MeasuredLoad {
        let now = processors();
        let sum = now
            .iter()
            .zip(&self.first)
            .map(|(now, first)| now.since(first))
            .fold(ProcessorTimes::default(), ProcessorTimes::and);
        let share = |ticks: u64| if sum.all() == 0 { 0.0 } else { ticks as f64 / sum.all() as f64 };
        MeasuredLoad {
            processors: now.len(),
            looks: self.looks,
            saturated: self.saturated,
            busy: sum.busy_share().unwrap_or_default(),
            stolen: share(sum.stolen),
            own: share(own().saturating_sub(self.own_first)).min(1.0),
            throttled: throttled().saturating_sub(self.throttled_first),
            waits: waits().since(self.waits_first),
            stops: self.stops.clone(),
            preempted: self.preempted.sum(),
        }
    }
}

/// Measures the time that a hypervisor gives to other machines.
#[derive(Debug)]
pub struct StealTimeSampler(ProcessorTimes);

impl StealTimeSampler {
    /// Starts measuring stolen time.
    pub fn start() -> StealTimeSampler {
        StealTimeSampler(all_processors())
    }

    /// Returns the stolen share of the processors' time since the start, `0.0..=1.0`; `None` if Linux does not report
    /// it. The kernel counts in ticks of 10 ms.
    pub fn share(&self) -> Option<f64> {
        let since = all_processors().since(&self.0);
        (since.all() > 0).then(|| since.stolen as f64 / since.all() as f64)
    }
}

/// Times of a processor, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ProcessorTimes {
    busy: u64,
    idle: u64,
    stolen: u64,
}

impl ProcessorTimes {
    fn all(self) -> u64 {
        self.busy + self.idle + self.stolen
    }

    /// Returns the share of time that was busy or stolen, because stolen time is not available either.
    fn busy_share(self) -> Option<f64> {
        (self.all() > 0).then(|| (self.busy + self.stolen) as f64 / self.all() as f64)
    }

    fn since(self, before: &ProcessorTimes) -> ProcessorTimes {
        ProcessorTimes {
            busy: self.busy.saturating_sub(before.busy),
            idle: self.idle.saturating_sub(before.idle),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }

    fn and(self, other: ProcessorTimes) -> ProcessorTimes {
        ProcessorTimes {
            busy: self.busy + other.busy,
            idle: self.idle + other.idle,
            stolen: self.stolen + other.stolen,
        }
    }
}

fn all_processors() -> ProcessorTimes {
    processors().into_iter().fold(ProcessorTimes::default(), ProcessorTimes::and)
}

fn processors() -> Vec<ProcessorTimes> {
    fs::read_to_string("/proc/stat").map_or(Vec::new(), |text| read_processors(&text))
}

/// Parses the lines `cpuN user nice system idle iowait irq softirq steal ...` of proc_stat(5). The time of virtual
/// machines is contained in `user`.
fn read_processors(text: &str) -> Vec<ProcessorTimes> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        words.next()?.strip_prefix("cpu")?.parse::<u32>().ok()?;
        let counts: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, stolen] = *counts.first_chunk::<8>()?;
        Some(ProcessorTimes { busy: user + nice + system + irq + softirq, idle: idle + iowait, stolen })
    };
    text.lines().filter_map(line).collect()
}

/// Returns the time used by this process and by programs that it has waited for, in ticks.
fn own() -> u64 {
    /// Indices of `utime`, `stime`, `cutime` and `cstime` behind the name in proc_pid_stat(5).
    const PLACES: std::ops::Range<usize> = 11..15;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(')') else { return 0 };
    let counts = rest.split_whitespace().skip(PLACES.start).take(PLACES.len());
    counts.filter_map(|count| count.parse::<u64>().ok()).sum()
}

/// Reads how long the calling thread, ready to run, waited for a processor.
struct ThreadWaitReader {
    file: Option<File>,
    last: Duration,
}

impl ThreadWaitReader {
    fn start() -> ThreadWaitReader {
        let mut reader =
            ThreadWaitReader { file: File::open("/proc/thread-self/schedstat").ok(), last: Duration::ZERO };
        reader.since_last();
        reader
    }

    /// Returns the wait since the last call; zero if Linux does not report it.
    fn since_last(&mut self) -> Duration {
        let mut text = [0; 128];
        let read = self.file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let now = std::str::from_utf8(&text[..read]).ok().and_then(read_waits).map_or(self.last, |waits| waits.time);
        now.saturating_sub(std::mem::replace(&mut self.last, now))
    }
}

impl ThreadWaits {
    fn since(self, before: ThreadWaits) -> ThreadWaits {
        ThreadWaits { time: self.time.saturating_sub(before.time), turns: self.turns.saturating_sub(before.turns) }
    }
}

/// Returns the waits of this process's threads that run now; zero if Linux does not report them.
fn waits() -> ThreadWaits {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let read = |thread: fs::DirEntry| read_waits(&fs::read_to_string(thread.path().join("schedstat")).ok()?);
    threads.filter_map(read).fold(ThreadWaits::default(), |sum, one| ThreadWaits {
        time: sum.time + one.time,
        turns: sum.turns + one.turns,
    })
}

/// Parses a thread's `schedstat`: nanoseconds run, nanoseconds waited for a processor, and times that it got one.
fn read_waits(text: &str) -> Option<ThreadWaits> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (_, waited, turns) = (numbers.next()??, numbers.next()??, numbers.next()??);
    Some(ThreadWaits { time: Duration::from_nanos(waited), turns })
}

/// Returns how long this process's control group has been throttled; zero without a quota.
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

/// Parses `throttled_usec` of control groups version 2, or `throttled_time` in ns of version 1.
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
        assert_eq!(
            read,
            [ProcessorTimes { busy: 33, idle: 65, stolen: 2 }, ProcessorTimes { busy: 1, idle: 9, stolen: 0 }]
        );
        assert_eq!((read[0].busy_share(), ProcessorTimes::default().busy_share()), (Some(0.35), None));
        assert!(read_processors("cpu0 1 2 3\n").is_empty(), "an old kernel's line lacks what is needed");
        assert_eq!(read_throttled("nr_throttled 3\nthrottled_usec 1500\n"), Duration::from_micros(1500));
        assert_eq!(read_throttled("nr_throttled 3\nthrottled_time 1500\n"), Duration::from_nanos(1500));
        assert_eq!(read_throttled("throttled_usec x\n"), Duration::ZERO);
        let waits = ThreadWaits { time: Duration::from_nanos(500), turns: 7 };
        assert_eq!((read_waits("9000 500 7\n"), read_waits("0 0\n")), (Some(waits), None));
    }

    #[test]
    fn late_wake_ups_are_stops() {
        let mut watched = LoadMonitorState::start();
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        for (due, woke, waited) in
            [(2_000, 2_999, 0), (6_000, 9_000, 100), (20_000, 21_500, 0), (30_000, 34_000, 3_900)]
        {
            watched.woke(at(due), at(woke), Duration::from_micros(waited));
        }
        let preempted = watched.taken().preempted;
        assert_eq!((preempted.count, preempted.time.as_micros()), (1, 4_000), "another thread had the processor");
        let stops = watched.taken().stops.sum();
        assert_eq!((stops.count, stops.time.as_micros(), stops.longest.as_micros()), (2, 4_500, 3_000));
    }

    #[test]
    fn a_machine_is_watched() {
        let watch = LoadMonitor::start(SystemClock::start()).unwrap();
        let taken = watch.taken();
        assert!(taken.processors >= 1 && taken.own <= 1.0 && taken.busy <= 1.0, "{taken:?}");
    }
}
