//! Tests on a switch in virtual time whose machine is noisy.
use super::*;
use crate::measurement::SURELY_IDLE;
use crate::{DeviceEvent, DeviceUnderTest, MeasurementSettings, VirtualTimeSwitch};
use std::time::Duration;
use weir_openflow::{Message, Version};
use weir_profile::Profile;
use weir_units::Instant;

/// Delay of packets of known flows, and what first ones take more.
const KNOWN_S: f64 = 60e-6;
const FIRST_S: f64 = 25e-6;

/// Machine with noise: each frame arrives later by a random time with a long tail, and now and then the machine stops,
/// so that everything in the stop arrives at its end.
struct NoisyMachine {
    switch: VirtualTimeSwitch,
    random: fastrand::Rng,
    /// Median of the additional delays; the mean is about twice as large.
    noise_s: f64,
    /// Start and end of the next stop.
    stop: [Instant; 2],
}

/// Mean time between stops, and longest stop.
const BETWEEN_S: f64 = 0.3;
const STOP_S: f64 = 20e-3;

impl NoisyMachine {
    fn new(profile: &Profile, noise_s: f64, seed: u64) -> NoisyMachine {
        let switch = VirtualTimeSwitch::new(profile, 3, seed).unwrap();
        let random = fastrand::Rng::with_seed(seed ^ 0x6e);
        NoisyMachine { switch, random, noise_s, stop: [Instant::ZERO; 2] }
    }

    /// Returns when something that is due at `at` happens.
    fn happens(&mut self, at: Instant) -> Instant {
        while at >= self.stop[1] {
            let after = Duration::from_secs_f64(-BETWEEN_S * (1.0 - self.random.f64()).ln());
            let length = Duration::from_secs_f64(STOP_S * self.random.f64().powi(2));
            self.stop = [self.stop[1] + after, self.stop[1] + after + length];
        }
        if at >= self.stop[0] { self.stop[1] } else { at }
    }
}

impl DeviceUnderTest for NoisyMachine {
    fn now(&self) -> Instant {
        self.switch.now()
    }

    fn interfaces(&self) -> usize {
        self.switch.interfaces()
    }

    fn version(&self) -> Option<Version> {
        self.switch.version()
    }

    fn send(&mut self, messages: &[Message]) -> Result<(), ProfilerError> {
        self.switch.send(messages)
    }

    fn transmit(&mut self, interface: usize, frame: &[u8]) -> Result<Option<Instant>, ProfilerError> {
        self.switch.transmit(interface, frame)
    }

    fn wait(&mut self, until: Instant) -> Result<Option<DeviceEvent>, ProfilerError> {
        let seen = self.switch.wait(until)?;
        Ok(match seen {
            Some(DeviceEvent::Frame { at, interface, bytes }) => {
                // A law with index 1.5: its mean is there, its variance is not.
                let late_s = self.noise_s * ((1.0 - self.random.f64()).powf(-1.0 / 1.5) - 0.59);
                let at = self.happens(at + Duration::from_secs_f64(late_s.max(0.0)));
                Some(DeviceEvent::Frame { at, interface, bytes })
            }
            other => other,
        })
    }
}

fn profile(cache: &str) -> Profile {
    let text = format!(
        "name = \"x\"\ndevice = \"x\"\norigin = \"assumed\"\nsource = \"x\"\n{cache}\
         [[level]]\nname = \"table\"\nwrite = \"9us\"\nforward = {{ base_l2l3 = \"{}us\" }}\n",
        KNOWN_S * 1e6
    );
    Profile::parse(&text, "x.toml").unwrap()
}

/// Measures the cache of a switch.
fn measured(profile: &Profile, noise_s: f64, entries_max: u32, seed: u64) -> MeasuredFlowCache {
    let mut machine = NoisyMachine::new(profile, noise_s, seed);
    let mut stop = || false;
    let settings = MeasurementSettings { seed, ..MeasurementSettings::default() };
    let mut bench = TestBench::new(&mut machine, settings, &mut stop);
    bench.learn_ports(&[]).unwrap();
    bench.knows_forwarding(&[KNOWN_S], None);
    bench.clear().unwrap();
    let grid = MeasurementGrid { entries_max, ..MeasurementGrid::quick() };
    let levels = MeasuredLevels { entries: entries_max.into(), ..MeasuredLevels::unknown() };
    measure(&mut bench, &grid, &levels, &RawDataStore::none()).unwrap()
}

/// Noise as large as what first packets take more.
const NOISE_S: f64 = 25e-6;

#[test]
fn idle_times_are_found_in_noise() {
    let (mut right, seeds) = (0, 0..100);
    for seed in seeds {
        // From 1 to 20 s.
        let idle_s = 20_f64.powf(f64::from(seed) / 99.0);
        let cache = format!("[cache]\nfirst = \"{}us\"\nidle = \"{idle_s}s\"\n", FIRST_S * 1e6);
        let found = measured(&profile(&cache), NOISE_S, 600, u64::try_from(seed).unwrap());
        let idle = found.timing().and_then(|timing| timing.idle_s);
        let is_right = idle.is_some_and(|found| (found / idle_s - 1.0).abs() < 0.1);
        if !is_right {
            eprintln!("seed {seed}: {idle_s} s, found {found:?}");
        }
        right += u32::from(is_right && found.flows.is_none());
    }
    assert!(right >= 95, "{right}");
}

#[test]
fn nothing_is_found_in_noise_where_there_is_nothing() {
    let (mut caches, mut idle_times, mut limits) = (0, 0, 0);
    for seed in 0..100 {
        let none = measured(&profile(""), NOISE_S, 600, seed);
        caches += u32::from(none.timing().is_some());
        let cache = format!("[cache]\nfirst = \"{}us\"\n", FIRST_S * 1e6);
        let endless = measured(&profile(&cache), NOISE_S, 600, seed);
        idle_times += u32::from(endless.idle_s.is_some());
        limits += u32::from(endless.flows.is_some());
    }
    assert!(caches <= 5 && idle_times <= 5 && limits <= 5, "{caches} {idle_times} {limits}");
}

#[test]
fn room_is_found_in_noise() {
    let mut right = 0;
    for seed in 0..100 {
        let room = 50 + 4 * seed;
        let cache = format!("[cache]\nfirst = \"{}us\"\nflows = {room}\n", FIRST_S * 1e6);
        let found = measured(&profile(&cache), NOISE_S, 600, seed);
        let is_right = found.flows.is_some_and(|flows| flows.abs_diff(room) <= 5.max(room / 20));
        if !is_right {
            eprintln!("seed {seed}: {room} flows, found {found:?}");
        }
        right += u32::from(is_right);
    }
    assert!(right >= 95, "{right}");
}

#[test]
fn without_noise_limits_are_exact() {
    let cache = format!("[cache]\nfirst = \"{}us\"\nidle = \"7s\"\nflows = 333\n", FIRST_S * 1e6);
    let found = measured(&profile(&cache), 0.0, 600, 3);
    let timing = found.timing().unwrap();
    assert!((timing.first_s / FIRST_S - 1.0).abs() < 1e-3 && found.unknown.is_empty(), "{found:?}");
    let idle_s = timing.idle_s.unwrap();
    assert!((idle_s / 7.0 - 1.0).abs() < 0.04 && idle_s * SURELY_IDLE > 7.0, "{found:?}");
    assert_eq!(timing.flows, Some(333), "{found:?}");
}
