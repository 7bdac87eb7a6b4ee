//! Options for the threads of a switch; docs/guide/threads.md explains the settings.
use serde::Deserialize;
use weir_switch::threads::{
    BurstSizes, CpuList, HandOver, PortAssignment, ReceivePolicy, ThreadingMode, ThreadsConfig, TrafficClass,
};
use weir_units::TimeSpan;

/// Thread settings from the command line or a file. Unset values default to [`ThreadsConfig::default`].
#[derive(clap::Args, Deserialize, Default, Clone, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[command(next_help_heading = "Threads")]
pub(crate) struct ThreadsArgs {
    /// rtc: each thread does all the work for its ports (run to completion); pipeline: one thread receives and
    /// transmits, workers process packets [default: rtc]
    #[arg(long, value_name = "MODE")]
    mode: Option<ThreadingMode>,
    /// Pass frames to a pipeline's workers: auto (only while this gives more throughput than one thread) or always
    /// [default: auto]
    #[arg(long, value_name = "WHEN")]
    hand_over: Option<HandOver>,
    /// Number of workers of a pipeline; in mode rtc the number of threads that serve ports, including the engine's
    /// [default: 1]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// In mode rtc: the thread of each port, counted from 0 (the engine's), as in 1=0,2=1; a port that is not named
    /// gets the thread with the fewest ports
    #[arg(long, value_name = "PORT=THREAD,...")]
    deal: Option<PortAssignment>,
    /// Frames per burst at each stage: read from ports, written to workers, read by workers, written by workers, read
    /// for transmission, written to ports; or one number for all [default: 32]
    #[arg(long, value_name = "A,B,C,D,E,F")]
    bursts: Option<BurstSizes>,
    /// Loop iterations of the receiving and transmitting thread after which an incomplete burst is passed on
    /// [default: 100]
    #[arg(long, value_name = "N")]
    io_loop_count: Option<u32>,
    /// Loop iterations of a worker after which an incomplete burst is passed on [default: 100]
    #[arg(long, value_name = "N")]
    worker_loop_count: Option<u32>,
    /// Longest time that an incomplete burst waits to fill, in each of the three stages [default: 10us]
    #[arg(long, value_name = "TIME")]
    flush_time: Option<TimeSpan>,
    /// Capacity in frames of a ring between two threads, a power of two [default: 4096]
    #[arg(long, value_name = "N")]
    ring_size: Option<usize>,
    /// Fields that identify a flow, all frames of which go to one worker: port, mac (both addresses and the VLAN tag)
    /// or 5-tuple [default: 5-tuple]
    #[arg(long, value_name = "POLICY")]
    policy: Option<ReceivePolicy>,
    /// Worker (counted from 0) for a class of traffic, as in udp,tp_dst=5060=>1; the first class that matches a frame
    /// applies, before the policy. Repeatable
    #[arg(long, value_name = "MATCH=>WORKER")]
    class: Vec<TrafficClass>,
    /// Frame buffers allocated at the start, on huge pages where Linux has them; further frames use the heap
    /// [default: 4096]
    #[arg(long, value_name = "N")]
    buffers: Option<usize>,
    /// CPUs that the threads are bound to: first the engine's, then the workers', as in 2,4-6 [default: the system
    /// decides]
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,
}

impl ThreadsArgs {
    /// Returns these settings, with unset ones taken from `file`.
    pub(crate) fn over(self, file: ThreadsArgs) -> ThreadsArgs {
        ThreadsArgs {
            mode: self.mode.or(file.mode),
            hand_over: self.hand_over.or(file.hand_over),
            workers: self.workers.or(file.workers),
            deal: self.deal.or(file.deal),
            bursts: self.bursts.or(file.bursts),
            io_loop_count: self.io_loop_count.or(file.io_loop_count),
            worker_loop_count: self.worker_loop_count.or(file.worker_loop_count),
            flush_time: self.flush_time.or(file.flush_time),
            ring_size: self.ring_size.or(file.ring_size),
            policy: self.policy.or(file.policy),
            class: if self.class.is_empty() { file.class } else { self.class },
            buffers: self.buffers.or(file.buffers),
            cpus: self.cpus.or(file.cpus),
        }
    }

    pub(crate) fn config(&self) -> ThreadsConfig {
        let default = ThreadsConfig::default();
        ThreadsConfig {
            mode: self.mode.unwrap_or(default.mode),
            hand_over: self.hand_over.unwrap_or(default.hand_over),
            workers: self.workers.unwrap_or(default.workers),
            deal: self.deal.clone().unwrap_or(default.deal),
            bursts: self.bursts.unwrap_or(default.bursts),
            io_loop_count: self.io_loop_count.unwrap_or(default.io_loop_count),
            worker_loop_count: self.worker_loop_count.unwrap_or(default.worker_loop_count),
            flush_time: self.flush_time.map_or(default.flush_time, |time| time.0),
            ring_size: self.ring_size.unwrap_or(default.ring_size),
            policy: self.policy.unwrap_or(default.policy),
            classes: self.class.clone(),
            buffers: self.buffers.unwrap_or(default.buffers),
            cpus: self.cpus.clone().unwrap_or(default.cpus),
        }
    }
}
