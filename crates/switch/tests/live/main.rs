//! Tests of a whole live switch: its two threads, on memory ports, with scripted controllers. Tests wait for events,
//! never for time.
mod auxiliary;
mod bed;
mod channels;
mod control_socket;
mod edge;
mod forwarding;
mod hostile;
mod interfaces;
mod long_replies;
mod ports;
mod profile;
mod start_stop;
mod tls;
mod virtual_profile;
mod virtuals;

use weir_switch::threads::ThreadsConfig;

/// Runs all work on the engine's thread; the same tests run with workers in `pipeline`.
fn threads() -> ThreadsConfig {
    ThreadsConfig::default()
}
