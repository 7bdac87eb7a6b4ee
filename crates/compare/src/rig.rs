//! The live rig's own delay: what a network of this process takes that consists of nothing.
use std::fmt;
use std::time::Duration;
use weir_emulator::{Cancel, Options};
use weir_scenario::Scenario;

/// Two hosts at a switch, on links that take no time. The pings are as far apart as those of most scenarios, so that everybody sleeps in between.
const NOTHING: &str = r#"
[[switch]]
name = "s1"
[[host]]
name = "a"
switch = "s1"
ip = "10.0.0.1/24"
[[host]]
name = "b"
switch = "s1"
ip = "10.0.0.2/24"
[[traffic]]
kind = "ping"
from = "a"
to = "b"
count = 60
interval = "20ms"
"#;

/// Threads that a ping wakes: the switch's and the receiver's, there and back.
const WAKE_UPS: u32 = 4;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rig {
    round_trip: Duration,
}

impl Rig {
    /// Measures it, in about a second. None if no ping came back.
    pub(crate) fn measure(cancel: &Cancel) -> Option<Rig> {
        let scenario = Scenario::parse(NOTHING, "nothing.toml").ok()?;
        let options = Options { cancel: cancel.clone(), ..Options::default() };
        let result = weir_emulator::run(&scenario, &options, &mut |_| ()).ok()?;
        // The median: the first ping waits for addresses, and others of the machine hold up some.
        let round_trip = Duration::from_secs_f64(result.traffic.first()?.rtt?.p50_us.max(0.0) / 1e6);
        Some(Rig { round_trip })
    }

    /// How long one thread takes to wake up.
    pub(crate) fn wake_up(self) -> Duration {
        self.round_trip / WAKE_UPS
    }
}

impl fmt::Display for Rig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        write!(
            f,
            "the rig's own delay: {:.1} us a ping between two hosts at one switch over links without delay, {:.1} us for each of {WAKE_UPS} threads that \
             it wakes",
            us(self.round_trip),
            us(self.wake_up())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_nothing_takes_some_time() {
        let rig = Rig::measure(&Cancel::new()).unwrap();
        assert!(rig.wake_up() > Duration::ZERO && rig.wake_up() < rig.round_trip, "{rig}");
        assert!(rig.to_string().starts_with("the rig's own delay: "), "{rig}");
    }
}
