//! Threads that sleep between packets and have to be woken: those of weir's own switches, and of hosts in this process.
use crate::network::Network;
use std::time::Duration;

/// A switch that waits looks for packets for this long at least before it sleeps, and for as long as the other if that met packets lately.
const SHORT: Duration = Duration::from_micros(30);
const LONG: Duration = Duration::from_millis(2);

/// How often a thread has to wake up for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wakes {
    /// A switch's, by which packets of all flows are met.
    pub(crate) switch: bool,
    /// Those that a timer or a packet of this flow alone wakes: who holds packets of a link with a delay, who receives.
    pub(crate) others: u8,
}

/// Whether a line's delay is long enough for the thread that holds its packets to sleep.
pub(crate) fn sleeps_through(delay: Duration) -> bool {
    delay > SHORT
}

/// Seconds that these wake-ups take in the mean at a switch with packets at this rate. It sleeps unless it looks for long enough: for the longer time
/// where more than half of the packets come within it, which keeps it looking.
pub(crate) fn seconds(wakes: Wakes, rate: f64, network: &Network<'_>) -> f64 {
    let one = network.settings.wake_up.as_secs_f64();
    if one <= 0.0 {
        return 0.0;
    }
    let none_within = |time: Duration| (-rate * time.as_secs_f64()).exp();
    let asleep = if none_within(LONG) < 0.5 { none_within(LONG) } else { none_within(SHORT) };
    one * (f64::from(wakes.others) + if wakes.switch { asleep } else { 0.0 })
}
