//! Adds the time to wake up sleeping threads: those of weir's own switches, and of hosts in this process.
use crate::network::QueueingNetwork;
use std::time::Duration;

/// Shortest time for which an idle switch polls before it sleeps, and the time if polling was successful lately.
const SHORT_POLL_TIME: Duration = Duration::from_micros(30);
const LONG_POLL_TIME: Duration = Duration::from_millis(2);

/// Wake-ups for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PacketWakeUps {
    /// True if the packet visits a switch's thread, which packets of all flows wake up.
    pub(crate) switch: bool,
    /// Number of threads that a timer or a packet of this flow alone wakes up: those that delay a link's packets, and
    /// receivers.
    pub(crate) others: u8,
}

/// Returns true if a line's delay is long enough for the thread that delays its packets to sleep.
pub(crate) fn sleeps_through(delay: Duration) -> bool {
    delay > SHORT_POLL_TIME
}

/// Returns the mean time of these wake-ups in seconds, at a switch with packets at this rate. The switch sleeps
/// unless it polls for long enough: for the longer time if more than half of the packets arrive within it, which
/// keeps it polling.
pub(crate) fn seconds(wakes: PacketWakeUps, rate: f64, network: &QueueingNetwork<'_>) -> f64 {
    let one = network.settings.wake_up.as_secs_f64();
    if one <= 0.0 {
        return 0.0;
    }
    let none_within = |time: Duration| (-rate * time.as_secs_f64()).exp();
    let asleep =
        if none_within(LONG_POLL_TIME) < 0.5 { none_within(LONG_POLL_TIME) } else { none_within(SHORT_POLL_TIME) };
    one * (f64::from(wakes.others) + if wakes.switch { asleep } else { 0.0 })
}
