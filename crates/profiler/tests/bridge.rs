//! Measures a device without a control channel, in virtual time: a learning bridge of known speed.
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use weir_openflow::{Message, Version};
use weir_profile::{Profile, differences};
use weir_profiler::{
    DeviceEvent, DeviceUnderTest, Measurement, MeasurementGrid, MeasurementOptions, MeasurementParts,
    MeasurementSettings, ProfileMetadata, ProfilerError, ProgressReporter, RawDataStore, RigDelayTable,
};
use weir_units::Instant;

/// Most packets in the bridge's queue.
const BUFFER: usize = 16;
/// Constant delay of each packet in addition to waiting and service, in nanoseconds.
const LATENCY_NS: u64 = 4000;

/// Returns the service time of a packet: 1 us and 2 ns a byte. Packets are served one after the other.
fn service(bytes: usize) -> Duration {
    Duration::from_nanos(1000 + 2 * bytes as u64)
}

struct Bridge {
    now: Instant,
    ports: usize,
    /// True if the bridge forwards at all.
    forwards: bool,
    learned: BTreeMap<[u8; 6], usize>,
    free: Instant,
    waiting: VecDeque<Instant>,
    came: VecDeque<(Instant, usize, Vec<u8>)>,
    flooded: u64,
    /// Arrival time of the last packet.
    last: Instant,
    /// Step: packets that come at least the first time after the previous one take longer by the second.
    step: (Duration, Duration),
    /// Number of packets, about 7.7 ms after the previous one, that take less by a varying amount.
    disturbed: u32,
}

impl Bridge {
    fn new(ports: usize) -> Bridge {
        Bridge {
            now: Instant::ZERO,
            ports,
            forwards: true,
            learned: BTreeMap::new(),
            free: Instant::ZERO,
            waiting: VecDeque::new(),
            came: VecDeque::new(),
            flooded: 0,
            last: Instant::ZERO,
            step: (Duration::MAX, Duration::ZERO),
            disturbed: 0,
        }
    }
}

impl DeviceUnderTest for Bridge {
    fn now(&self) -> Instant {
        self.now
    }

    fn interfaces(&self) -> usize {
        self.ports
    }

    fn version(&self) -> Option<Version> {
        None
    }

    fn send(&mut self, messages: &[Message]) -> Result<(), ProfilerError> {
        panic!("it has no channel, and is told {messages:?}");
    }

    fn transmit(&mut self, interface: usize, frame: &[u8]) -> Result<Option<Instant>, ProfilerError> {
        let address = |at: usize| frame[at..at + 6].try_into().unwrap();
        self.learned.insert(address(6), interface);
        self.waiting.retain(|end| *end > self.now);
        if !self.forwards || self.waiting.len() >= BUFFER {
            return Ok(Some(self.now));
        }
        self.free = self.free.max(self.now) + service(frame.len());
        self.waiting.push_back(self.free);
        let gap = self.now.since(self.last);
        self.last = self.now;
        let mut at = self.free + Duration::from_nanos(LATENCY_NS);
        if gap >= self.step.0 {
            at += self.step.1;
        }
        if self.disturbed > 0 && gap.as_micros() / 100 == 77 {
            self.disturbed -= 1;
            at = at - self.step.1 * (self.disturbed % 4) / 3;
        }
        match self.learned.get(&address(0)) {
            Some(out) if *out == interface => {}
            Some(out) => self.came.push_back((at, *out, frame.to_vec())),
            None => {
                self.flooded += 1;
                let others = (0..self.ports).filter(|port| *port != interface);
                self.came.extend(others.map(|port| (at, port, frame.to_vec())));
            }
        }
        Ok(Some(self.now))
    }

    fn wait(&mut self, until: Instant) -> Result<Option<DeviceEvent>, ProfilerError> {
        match self.came.pop_front_if(|(at, ..)| *at <= until) {
            Some((at, interface, bytes)) => {
                self.now = self.now.max(at);
                Ok(Some(DeviceEvent::Frame { at, interface, bytes }))
            }
            None => {
                self.now = self.now.max(until);
                Ok(None)
            }
        }
    }
}

fn grid() -> MeasurementGrid {
    MeasurementGrid {
        packets: 20,
        bytes: vec![64, 512, 1500],
        gaps_us: vec![100, 1000, 10_000],
        idle_ms: 33_000,
        trial_ms: 10,
        ..MeasurementGrid::quick()
    }
}

const DATA: MeasurementParts = MeasurementParts { control: false, tables: false, data: true };

fn measured(
    bridge: &mut Bridge,
    parts: MeasurementParts,
    store: &mut RawDataStore,
) -> (Measurement, Result<(), ProfilerError>) {
    let mut tell = |_: &weir_profiler::MeasurementProgress<'_>| ();
    let mut stop = || false;
    let settings = MeasurementSettings { patience: Duration::from_secs(3), ..MeasurementSettings::default() };
    let progress = ProgressReporter::new(&mut tell);
    let options = MeasurementOptions { settings, grid: grid(), parts, ports: Vec::new(), stop: &mut stop, progress };
    weir_profiler::measure(bridge, options, store)
}

fn profile(found: &Measurement) -> Profile {
    let about =
        ProfileMetadata { name: "bridge".to_owned(), source: "a test".to_owned(), ..ProfileMetadata::default() };
    found.profile(&about).unwrap()
}

fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "{found}, expected {expected}");
}

#[test]
fn a_bridge_is_measured_by_packets_alone() {
    let mut bridge = Bridge::new(2);
    let (found, ended) = measured(&mut bridge, DATA, &mut RawDataStore::none());
    ended.unwrap();
    assert!(bridge.flooded < 5, "it was told where addresses are: {}", bridge.flooded);
    let made = profile(&found);
    assert_eq!((made.levels.len(), made.timing.as_ref().is_some_and(|timing| timing.data.is_some())), (1, true));
    let forward = made.forwarding[0].as_ref().unwrap();
    let delay_s = |bytes: f64| (LATENCY_NS as f64 + 1000.0 + 2.0 * bytes) * 1e-9;
    near(forward.base_s[0].unwrap(), delay_s(128.0), 0.01);
    assert_eq!(forward.base_s[1..], [None, None], "it looks at Ethernet addresses alone");
    near(forward.slopes.per_byte_s, 2e-9, 0.01);
    assert!(forward.slopes.per_entry_s.abs() < 1e-13 && forward.gap_levels_s.is_empty());
    for rate in &found.throughput {
        near(rate.pps, 1.0 / service(rate.bytes as usize).as_secs_f64(), 0.03);
        assert!(!rate.sender_bound && rate.loss_below < 0.1, "{rate:?}");
    }
    // The profile says everywhere which parameters were not measured.
    assert!(found.notes().iter().any(|note| note.starts_with("control plane: not measured")), "{:?}", found.notes());
    let parameters = made.parameters();
    let write = parameters.iter().find(|one| one.key == "level1.write").unwrap();
    assert_eq!(write.value.number(), Some(0.0));
    let note = write.evidence.as_ref().and_then(|evidence| evidence.note.clone());
    assert_eq!(note.as_deref(), Some("not measured: taken for no time"));
    let text = found.summary().text();
    assert!(text.starts_with("A device without OpenFlow: its data plane alone\n"), "{text}");
    let again = Profile::parse(&made.to_toml(), "bridge.toml").unwrap();
    assert_eq!(differences(&made, &again), []);
}

#[test]
fn what_the_rig_takes_is_no_part_of_the_device() {
    let mut bridge = Bridge::new(2);
    let (mut found, ended) = measured(&mut bridge, DATA, &mut RawDataStore::none());
    ended.unwrap();
    let with = profile(&found);
    found.rig = RigDelayTable {
        how: "a test".to_owned(),
        by_bytes: vec![(64, 1.0e-6), (1500, 2.436e-6)],
        by_gap_us: vec![(100, 1.1e-6)],
        message_s: 0.0,
        has_sending: false,
    };
    let without = profile(&found);
    let base = |profile: &Profile| profile.forwarding[0].clone().unwrap();
    // 1 ns a byte is the rig's part.
    near(base(&with).slopes.per_byte_s - base(&without).slopes.per_byte_s, 1e-9, 0.01);
    let rig_s = found.rig.packet_s(128, 100);
    near(base(&with).base_s[0].unwrap() - base(&without).base_s[0].unwrap(), rig_s, 0.01);
    let parameters = without.parameters();
    let told = parameters.iter().find(|one| one.key == "level1.forward.base_l2").unwrap();
    let note = told.evidence.as_ref().and_then(|evidence| evidence.note.clone()).unwrap();
    assert!(note.ends_with("of the rig's own taken off"), "{note}");
    let text = found.summary().text();
    assert!(text.contains("\nrig            ") && text.contains("(a test): taken off"), "{text}");
}

/// Returns the thresholds, the step's height and the number of packets near 7.7 ms, measured on a bridge that is slower
/// from 6 ms between packets on, with some disturbed packets near 7.7 ms.
fn step(disturbed: u32) -> (Vec<f64>, f64, usize) {
    let mut bridge = Bridge::new(2);
    (bridge.step, bridge.disturbed) = ((Duration::from_millis(6), Duration::from_micros(60)), disturbed);
    let (found, ended) = measured(&mut bridge, DATA, &mut RawDataStore::none());
    ended.unwrap();
    let forward = profile(&found).forwarding.remove(0).unwrap();
    let packets = found.delays().iter().filter(|row| row.gap_us / 100 == 77).count();
    (forward.gap_levels_s, forward.slopes.per_level_s, packets)
}

#[test]
fn what_disturbs_the_packets_of_one_case_hides_no_step() {
    let (undisturbed, by_s, packets) = step(0);
    assert!(undisturbed.len() == 1 && (6e-3..6.3e-3).contains(&undisturbed[0]), "{undisturbed:?}");
    near(by_s, 60e-6, 0.01);
    let (disturbed, by_s, more) = step(26);
    assert_eq!((&disturbed, packets, more), (&undisturbed, 20, 60));
    near(by_s, 60e-6, 0.01);
}

#[test]
fn a_device_that_does_not_forward_is_told() {
    let mut dead = Bridge { forwards: false, ..Bridge::new(2) };
    let error = measured(&mut dead, DATA, &mut RawDataStore::none()).1.unwrap_err().to_string();
    assert!(
        error
            .starts_with("packets at the second interface (--data): found 0 of 20 packets that were sent by the first"),
        "{error}"
    );
    let error =
        measured(&mut Bridge::new(2), MeasurementParts::ALL, &mut RawDataStore::none()).1.unwrap_err().to_string();
    assert!(error.starts_with("a device without a control channel: found more to measure"), "{error}");
    let error = measured(&mut Bridge::new(1), DATA, &mut RawDataStore::none()).1.unwrap_err().to_string();
    assert!(error.starts_with("interfaces (--data): found 1"), "{error}");
}

#[test]
fn what_was_measured_is_not_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = RawDataStore::folder(folder.path(), &grid()).unwrap();
    store.of("one bridge").unwrap();
    let (first, ended) = measured(&mut Bridge::new(3), DATA, &mut store);
    ended.unwrap();
    drop(store);
    let mut store = RawDataStore::folder(folder.path(), &grid()).unwrap();
    store.of("one bridge").unwrap();
    let rows = || std::fs::read_to_string(folder.path().join("delays.csv")).unwrap();
    let before = rows();
    let (second, ended) = measured(&mut Bridge::new(3), DATA, &mut store);
    ended.unwrap();
    assert_eq!((rows(), profile(&second)), (before, profile(&first)));
    let error = store.of("another bridge").unwrap_err().to_string();
    assert!(error.contains("found runs of one bridge, expected those of another bridge"), "{error}");
}
