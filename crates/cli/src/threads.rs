//! How a switch spreads over threads, as users say it; docs/guide/threads.md says what the settings do.
use serde::Deserialize;
use weir_switch::threads::{Bursts, Class, Cpus, Deal, HandOver, Mode, Policy, ThreadsConfig};
use weir_units::Span;

/// What is not said is as [`ThreadsConfig::default`] has it.
#[derive(clap::Args, Deserialize, Default, Clone, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[command(next_help_heading = "Threads")]
pub(crate) struct ThreadsArgs {
    /// rtc: a thread does everything for its ports (run to completion); pipeline: one receives and transmits, workers do the rest
    /// [default: rtc]
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// When a pipeline hands frames over to workers: auto (when that is more than one thread does) or always [default: auto]
    #[arg(long, value_name = "WHEN")]
    hand_over: Option<HandOver>,
    /// Workers of a pipeline; in mode rtc threads that ports are dealt to, the engine's among them [default: 1]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Threads of ports in mode rtc, counted from 0, the engine's, as in 1=0,2=1; other ports go to the thread that has the fewest
    #[arg(long, value_name = "PORT=THREAD,...")]
    deal: Option<Deal>,
    /// Frames moved at once: read from ports, written to workers, read and written by them, read to be transmitted, written to
    /// ports; or one number for all [default: 32]
    #[arg(long, value_name = "A,B,C,D,E,F")]
    bursts: Option<Bursts>,
    /// Turns of the receiving and transmitting loops that a burst waits to be full [default: 100]
    #[arg(long, value_name = "N")]
    io_loop_count: Option<u32>,
    /// Turns of a worker's loop that a burst waits to be full [default: 100]
    #[arg(long, value_name = "N")]
    worker_loop_count: Option<u32>,
    /// Time that a burst waits to be full, in each of the three stages [default: 10us]
    #[arg(long, value_name = "TIME")]
    flush_time: Option<Span>,
    /// Frames that a ring between two threads holds, a power of two [default: 4096]
    #[arg(long, value_name = "N")]
    ring_size: Option<usize>,
    /// What frames of a flow, which go to one worker, have in common: port, mac (both addresses and the VLAN tag) or 5-tuple
    /// [default: 5-tuple]
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
    /// A class of traffic and its worker, counted from 0, as in udp,tp_dst=5060=>1; the first that fits counts, before the
    /// policy. Repeatable
    #[arg(long, value_name = "MATCH=>WORKER")]
    class: Vec<Class>,
    /// Frame buffers that there are from the start, on huge pages where Linux has them; frames beyond get theirs from the heap [default: 4096]
    #[arg(long, value_name = "N")]
    buffers: Option<usize>,
    /// CPUs that the threads are bound to: the engine's, then the workers', as in 2,4-6 [default: the system decides]
    #[arg(long, value_name = "LIST")]
    cpus: Option<Cpus>,
}

impl ThreadsArgs {
    /// These settings, and the file's where nothing is said.
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
