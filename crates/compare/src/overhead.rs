//! Measures the delay that live emulation itself adds (the rig's own delay): the round-trip time of pings through a
//! small, otherwise idle network in this process.
use std::fmt;
use std::time::Duration;
use weir_emulator::{CancelHandle, LabOptions};
use weir_scenario::Scenario;

/// Maximum number of switches of the measured network.
const MOST_SWITCHES: usize = 16;
/// Delay of the measured network's one delaying link, used if the scenario has links with delays; typical of a data
/// centre.
const MEASURED_LINK_DELAY: Duration = Duration::from_micros(100);
/// Link delay above which the thread that delays packets sleeps meanwhile.
const SLEEP_THRESHOLD: Duration = Duration::from_micros(30);

/// Network for the measurement: two hosts at the ends of a row of switches. One host's link delays packets if the
/// scenario has links with delays. The row has one switch if the scenario has fewer switches than there are cores;
/// otherwise switches do not poll between pings, and the row has one switch per core. Pings are far enough apart for
/// all threads to sleep in between, as in most scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CalibrationNetwork {
    switches: usize,
    held: Duration,
}

impl CalibrationNetwork {
    fn like(scenario: &Scenario, cores: usize) -> CalibrationNetwork {
        let links = scenario.links.iter().map(|link| link.spec).chain(scenario.hosts.iter().map(|host| host.link));
        let held = links.into_iter().any(|link| link.delay > SLEEP_THRESHOLD);
        CalibrationNetwork {
            switches: if scenario.switches.len() < cores { 1 } else { cores.clamp(1, MOST_SWITCHES) },
            held: if held { MEASURED_LINK_DELAY } else { Duration::ZERO },
        }
    }

    fn scenario(self) -> String {
        let last = self.switches;
        let switch = |number| format!("[[switch]]\nname = \"s{number}\"\nfail_mode = \"standalone\"\n");
        let link = |number| format!("[[link]]\nends = [\"s{number}\", \"s{}\"]\n", number + 1);
        let mut text = String::from("[controller]\nconnect = \"none\"\n");
        text += &(1..=last).map(switch).chain((1..last).map(link)).collect::<String>();
        text += "[[host]]\nname = \"a\"\nswitch = \"s1\"\nip = \"10.0.0.1/24\"\n";
        if !self.held.is_zero() {
            text += &format!("delay = \"{}us\"\n", self.held.as_micros());
        }
        text += &format!("[[host]]\nname = \"b\"\nswitch = \"s{last}\"\nip = \"10.0.0.2/24\"\n");
        text + "[[traffic]]\nkind = \"ping\"\nfrom = \"a\"\nto = \"b\"\ncount = 60\ninterval = \"20ms\"\n"
    }

    /// Returns the number of threads that a ping wakes on its way there and back: one for each switch, one for the
    /// receiver, and one for the link that delays packets, if there is one.
    fn wake_ups(self) -> u32 {
        let switches = u32::try_from(self.switches).unwrap_or(u32::MAX);
        2 * (switches + 1 + u32::from(!self.held.is_zero()))
    }
}

/// Measured delay of live emulation itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EmulationOverhead {
    network: CalibrationNetwork,
    /// Median round-trip time of a ping, minus the configured delays of the links.
    round_trip: Duration,
}

impl EmulationOverhead {
    /// Measures the round-trip time of pings in a small network similar to the scenario `like` (see
    /// [`CalibrationNetwork`]). Takes about a second. Returns `None` if the network could not be run or no ping was
    /// answered.
    pub(crate) fn measure(like: &Scenario, cancel: &CancelHandle) -> Option<EmulationOverhead> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let nothing = CalibrationNetwork::like(like, cores);
        let scenario = Scenario::parse(&nothing.scenario(), "nothing.toml").ok()?;
        let options = LabOptions { cancel: cancel.clone(), ..LabOptions::default() };
        let result = weir_emulator::run(&scenario, &options, &mut |_| ()).ok()?;
        // Uses the median because the first ping waits for address resolution, and the machine delays some others.
        let found = Duration::from_secs_f64(result.traffic.first()?.rtt?.p50_us.max(0.0) / 1e6);
        Some(EmulationOverhead { network: nothing, round_trip: found.saturating_sub(2 * nothing.held) })
    }

    /// Returns the time that one thread takes to wake up: the round-trip time divided by the number of threads woken.
    pub(crate) fn wake_up(self) -> Duration {
        self.round_trip / self.network.wake_ups()
    }
}

impl fmt::Display for EmulationOverhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let CalibrationNetwork { switches, held } = self.network;
        write!(
            f,
            "the rig's own delay: {:.1} us a ping between two hosts over {switches} {} beside {:.0} us that its links hold it, {:.1} us for each of {} threads that it wakes",
            us(self.round_trip),
            if switches == 1 { "switch" } else { "switches" },
            us(2 * held),
            us(self.wake_up()),
            self.network.wake_ups()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(switches: usize, delay: &str) -> Scenario {
        let switch = |number| format!("[[switch]]\nname = \"s{number}\"\n");
        let host = format!("[[host]]\nname = \"a\"\nswitch = \"s0\"\nip = \"10.0.0.1/24\"\ndelay = \"{delay}\"\n");
        Scenario::parse(&((0..switches).map(switch).collect::<String>() + &host), "like.toml").unwrap()
    }

    #[test]
    fn it_is_like_the_scenario() {
        let of = |switches, delay, cores| CalibrationNetwork::like(&like(switches, delay), cores);
        assert_eq!(of(3, "0s", 4), CalibrationNetwork { switches: 1, held: Duration::ZERO });
        assert_eq!(of(4, "0s", 4), CalibrationNetwork { switches: 4, held: Duration::ZERO });
        assert_eq!(of(3, "2ms", 2), CalibrationNetwork { switches: 2, held: MEASURED_LINK_DELAY });
        assert_eq!(of(64, "20us", 64), CalibrationNetwork { switches: MOST_SWITCHES, held: Duration::ZERO });
        assert_eq!([of(1, "0s", 4), of(3, "2ms", 2)].map(CalibrationNetwork::wake_ups), [4, 8]);
        for nothing in [of(1, "0s", 4), of(3, "2ms", 2)] {
            let scenario = Scenario::parse(&nothing.scenario(), "nothing.toml").unwrap();
            assert_eq!((scenario.switches.len(), scenario.hosts[0].link.delay), (nothing.switches, nothing.held));
        }
    }

    #[test]
    fn a_network_of_nothing_takes_some_time() {
        for delay in ["0s", "1ms"] {
            let rig = EmulationOverhead::measure(&like(2, delay), &CancelHandle::new()).unwrap();
            assert!(rig.wake_up() > Duration::ZERO && rig.wake_up() < rig.round_trip, "{rig}");
            assert!(rig.to_string().starts_with("the rig's own delay: "), "{rig}");
        }
    }
}
