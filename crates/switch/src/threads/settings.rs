//! Defines the thread settings, [`ThreadsConfig`]. docs/guide/threads.md explains what they do and how to choose
//! them.
use super::policy::{ReceivePolicy, TrafficClass};
use super::run_to_completion::PortAssignment;
use serde::Deserialize;
use std::str::FromStr;
use std::time::Duration;

/// Settings of a switch's threads; checked when the switch starts ([`ThreadsConfig::check`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadsConfig {
    /// Division of the work among threads.
    pub mode: ThreadingMode,
    /// Condition under which frames are handed over to workers.
    pub hand_over: HandOver,
    /// Number of threads that run frames through the flow tables. In a pipeline the engine's thread is not counted;
    /// in run to completion it is.
    pub workers: usize,
    /// Assignment of ports to threads, if several run to completion.
    pub deal: PortAssignment,
    /// Numbers of frames moved at once.
    pub bursts: BurstSizes,
    /// Maximum number of turns of the receiving and transmitting loops that a burst waits to fill.
    pub io_loop_count: u32,
    /// Maximum number of turns of a worker's loop that a burst waits to fill.
    pub worker_loop_count: u32,
    /// Maximum time that a burst waits to fill, in each stage.
    pub flush_time: Duration,
    /// Number of frames that a ring between two threads holds; a power of two.
    pub ring_size: usize,
    /// Definition of a flow; all frames of a flow go to one worker.
    pub policy: ReceivePolicy,
    /// Classes of traffic with a fixed worker. The first match counts, before the policy.
    pub classes: Vec<TrafficClass>,
    /// Number of frame buffers allocated at the start, for all threads together. Further frames get buffers from the
    /// heap.
    pub buffers: usize,
    /// CPUs of the threads: the engine's first, then the workers'. If empty, the system places the threads.
    pub cpus: CpuList,
}

impl Default for ThreadsConfig {
    fn default() -> Self {
        ThreadsConfig {
            mode: ThreadingMode::RunToCompletion,
            hand_over: HandOver::default(),
            workers: 1,
            deal: PortAssignment::default(),
            bursts: BurstSizes::default(),
            io_loop_count: 100,
            worker_loop_count: 100,
            flush_time: Duration::from_micros(10),
            ring_size: 4096,
            policy: ReceivePolicy::default(),
            classes: Vec::new(),
            buffers: 4096,
            cpus: CpuList::default(),
        }
    }
}

/// Division of the work among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ThreadingMode {
    /// Each thread does everything for its ports: no frame is handed over, and none waits for a burst to fill.
    #[default]
    #[serde(rename = "rtc")]
    RunToCompletion,
    /// The engine's thread receives and transmits; workers do the rest.
    #[serde(rename = "pipeline")]
    Pipeline,
}

impl FromStr for ThreadingMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "rtc" => Ok(ThreadingMode::RunToCompletion),
            "pipeline" => Ok(ThreadingMode::Pipeline),
            _ => Err(format!("found mode `{text}`, expected rtc (run to completion) or pipeline")),
        }
    }
}

/// Condition under which a pipeline's engine hands frames over to workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandOver {
    /// While the workers achieve more than the engine's thread alone.
    #[default]
    Auto,
    /// Always, as in Lagopus.
    Always,
}

impl FromStr for HandOver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(HandOver::Auto),
            "always" => Ok(HandOver::Always),
            _ => Err(format!("found hand-over `{text}`, expected auto (when it pays) or always")),
        }
    }
}

/// Vector of the six burst sizes {(A, B), (C, D), (E, F)} in frames (Rahimi et al., HPSR 2016, III-D).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstSizes {
    /// A: frames read from a port at once.
    pub rx_read: usize,
    /// B: frames written to a worker's ring at once.
    pub rx_write: usize,
    /// C: frames read by a worker at once.
    pub worker_read: usize,
    /// D: frames written by a worker at once.
    pub worker_write: usize,
    /// E: frames read from a worker's output ring at once.
    pub tx_read: usize,
    /// F: frames written to a port at once.
    pub tx_write: usize,
}

impl BurstSizes {
    /// Returns six equal burst sizes.
    pub const fn all(frames: usize) -> BurstSizes {
        let [rx_read, rx_write, worker_read, worker_write, tx_read, tx_write] = [frames; 6];
        BurstSizes { rx_read, rx_write, worker_read, worker_write, tx_read, tx_write }
    }

    /// Returns the six sizes with their letters.
    pub(super) fn named(&self) -> [(char, usize); 6] {
        let BurstSizes { rx_read, rx_write, worker_read, worker_write, tx_read, tx_write } = *self;
        [('A', rx_read), ('B', rx_write), ('C', worker_read), ('D', worker_write), ('E', tx_read), ('F', tx_write)]
    }
}

impl Default for BurstSizes {
    /// Returns 32 for all: enough to share the cost of a burst, few enough to stay in the first-level cache.
    fn default() -> Self {
        BurstSizes::all(32)
    }
}

impl FromStr for BurstSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            format!("found bursts `{text}`, expected six numbers A,B,C,D,E,F as in 32,32,32,32,32,32, or one for all")
        };
        let sizes = text.split(',').map(|size| size.trim().parse()).collect::<Result<Vec<usize>, _>>();
        match sizes.map_err(|_| wrong())?[..] {
            [all] => Ok(BurstSizes::all(all)),
            [rx_read, rx_write, worker_read, worker_write, tx_read, tx_write] => {
                Ok(BurstSizes { rx_read, rx_write, worker_read, worker_write, tx_read, tx_write })
            }
            _ => Err(wrong()),
        }
    }
}

/// A list of CPUs, written as `0,2-4`. The order counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuList(pub Vec<usize>);

/// Number of CPUs that a list may name: the size of the system's CPU sets.
const MAX_CPUS: usize = 1024;

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("found CPUs `{text}`, expected numbers below {MAX_CPUS} and ranges as in 0,2-4");
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|cpu| *cpu < MAX_CPUS).ok_or_else(wrong);
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last || cpus.len() > MAX_CPUS {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        Ok(CpuList(cpus))
    }
}

/// Implements `Deserialize` through `FromStr` for types that files write as text.
macro_rules! deserialize_from_text {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
deserialize_from_text!(BurstSizes, CpuList);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read() {
        let bursts: BurstSizes = "1, 2,3,4,5,6".parse().unwrap();
        let letters: String = bursts.named().iter().map(|(letter, size)| format!("{letter}{size}")).collect();
        assert_eq!(letters, "A1B2C3D4E5F6");
        assert_eq!("64".parse(), Ok(BurstSizes::all(64)));
        assert_eq!("3,0-1".parse(), Ok(CpuList(vec![3, 0, 1])));
        assert_eq!("pipeline".parse(), Ok(ThreadingMode::Pipeline));
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in ["", "1,2,3,4,5", "1,2,3,4,5,6,7", "a", "-1", "1,,1,1,1,1"] {
            assert!(text.parse::<BurstSizes>().unwrap_err().contains("A,B,C,D,E,F"), "{text}");
        }
        for text in ["", "a", "1-", "3-1", "0,,1", "1024", "0-99999999999", "-1"] {
            assert!(text.parse::<CpuList>().unwrap_err().contains("0,2-4"), "{text}");
        }
        assert!("both".parse::<ThreadingMode>().unwrap_err().contains("rtc"));
    }
}
