//! A switch with workers: the tests of every live switch, and tests of workers.
#[path = "../live/auxiliary.rs"]
mod auxiliary;
#[path = "../live/bed.rs"]
mod bed;
#[path = "../live/channels.rs"]
mod channels;
#[path = "../live/control_socket.rs"]
mod control_socket;
#[path = "../live/edge.rs"]
mod edge;
#[path = "../live/forwarding.rs"]
mod forwarding;
#[path = "../live/hostile.rs"]
mod hostile;
#[path = "../live/interfaces.rs"]
mod interfaces;
#[path = "../live/long_replies.rs"]
mod long_replies;
#[path = "../live/ports.rs"]
mod ports;
#[path = "../live/start_stop.rs"]
mod start_stop;
#[path = "../live/tls.rs"]
mod tls;
#[path = "../live/virtuals.rs"]
mod virtuals;
mod workers;

use weir_switch::threads::{HandOver, ThreadingMode, ThreadsConfig};

/// Two workers, where there are two cores; workers handle all frames.
fn threads() -> ThreadsConfig {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(2);
    ThreadsConfig { mode: ThreadingMode::Pipeline, hand_over: HandOver::Always, workers, ..ThreadsConfig::default() }
}
