//! Tests of a switch whose threads each do everything for their ports: the tests of every live switch, and tests of
//! several threads.
#[path = "../live/auxiliary.rs"]
mod auxiliary;
#[path = "../live/bed.rs"]
mod bed;
#[path = "../live/channels.rs"]
mod channels;
#[path = "../live/control_socket.rs"]
mod control_socket;
#[path = "../live/forwarding.rs"]
mod forwarding;
mod held;
#[path = "../live/hostile.rs"]
mod hostile;
#[path = "../live/interfaces.rs"]
mod interfaces;
#[path = "../live/long_replies.rs"]
mod long_replies;
#[path = "../live/ports.rs"]
mod ports;
mod queues;
#[path = "../live/start_stop.rs"]
mod start_stop;
mod threads;
#[path = "../live/tls.rs"]
mod tls;

use weir_switch::threads::{ThreadingMode, ThreadsConfig};

/// Returns a configuration with two threads, or with one on a machine with a single core.
fn threads() -> ThreadsConfig {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(2);
    ThreadsConfig { mode: ThreadingMode::RunToCompletion, workers, ..ThreadsConfig::default() }
}
