//! Measures the rig's own delay: the time that packets and messages take in the measuring machine without a device.
//! It is subtracted from the times measured with the device.
//!
//! Packets are sent by one of two joined interfaces and received by the other, by the same code as for the device,
//! for each length and each time between packets. If the interfaces report departures and arrivals, as the kernel's
//! do, almost no delay remains.
//!
//! A message is written at one end of a local TCP connection and read at the other. A packet-in or packet-out also
//! contains half of a packet's delay, because its packet is only sent or only received.
use crate::bench::{PlannedProbe, TestBench};
use crate::live::LiveDevice;
use crate::rules::{SHORTEST, TestFlowEntry};
use crate::{DeviceUnderTest, MeasurementGrid, MeasurementSettings, ProfilerError};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_profile::MatchLayers;
use weir_units::{Clock as _, Instant, Seconds, SystemClock};

/// Most packets of each case.
const PACKETS: u32 = 20;
/// Passes over all cases; the least value counts, because other programs delay some packets.
const LOOKS: usize = 2;
/// Packets sent before the measured ones of each case, to warm up the caches.
const WARM: u32 = 5;
/// Packet length (bytes) while the gap varies, and gap (us) while the length varies.
const BYTES: u32 = 128;
const GAP_US: u32 = 100;
/// Longest frame of the pair of interfaces, in bytes.
const LONGEST: u32 = 1514;
/// Number of messages, and their length in bytes.
const MESSAGES: usize = 200;
const MESSAGE_BYTES: usize = 128;
/// Longest time of a message; later ones count as lost.
const MESSAGE_LIMIT: Duration = Duration::from_secs(1);
/// Longest time until the link of a new pair is up, and interval at which it is checked. The kernel sets it up some
/// time after the request.
const SETTLED: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Longest report that is read, in bytes.
const MAX_REPORT: u64 = 1 << 24;
/// Numbers in the names of the pair's interfaces, after the process identifier. Labs of the same process use lower
/// numbers.
const NUMBERS: [u32; 2] = [90, 91];

/// Source of the rig's own delay.
#[derive(Debug, Clone, PartialEq)]
pub enum RigSource {
    /// Measured on a veth pair if the interfaces are veths; otherwise unknown.
    Auto,
    /// Unknown: nothing is subtracted.
    None,
    /// Measured on a temporary veth pair.
    Veth,
    /// Measured on two interfaces joined by a cable.
    Joined([String; 2]),
    /// Given, in seconds.
    Given(f64),
    /// Read from a report of `weir traffic --json` without the device.
    Report(PathBuf),
}

impl FromStr for RigSource {
    type Err = String;

    fn from_str(text: &str) -> Result<RigSource, String> {
        match text {
            "" => Err("found nothing, expected auto, none, veth, two interfaces, a time, or a file".to_owned()),
            "auto" => Ok(RigSource::Auto),
            "none" => Ok(RigSource::None),
            "veth" => Ok(RigSource::Veth),
            _ => match (text.split_once(','), text.parse::<Seconds>()) {
                (_, Ok(time)) => Ok(RigSource::Given(time.0)),
                (Some((first, second)), _) if !first.contains(':') => {
                    Ok(RigSource::Joined([first, second].map(str::to_owned)))
                }
                _ => Ok(RigSource::Report(PathBuf::from(text))),
            },
        }
    }
}

/// Delay of the rig itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RigDelayTable {
    /// Source of the values; empty if nothing is known.
    pub how: String,
    /// Pairs of packet length (bytes) and delay from interface to interface (s), rising.
    pub by_bytes: Vec<(u32, f64)>,
    /// Pairs of time between packets (us) and delay from interface to interface (s), rising.
    pub by_gap_us: Vec<(u32, f64)>,
    /// Time of a message in one direction, in seconds.
    pub message_s: f64,
    /// True if the delays include sending a packet. Measured delays must then start before sending, too
    /// ([`LiveDevice::count_sending`]). Files of former versions lack the field and include sending.
    #[serde(default = "yes")]
    pub has_sending: bool,
}

fn yes() -> bool {
    true
}

impl RigDelayTable {
    /// Obtains the rig's delay, for interfaces as given to [`LiveDevice::open`].
    ///
    /// # Errors
    /// The source cannot be created or read, or the user stopped.
    pub fn find(
        source: &RigSource,
        interfaces: &[String],
        grid: &MeasurementGrid,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<RigDelayTable, ProfilerError> {
        match source {
            RigSource::None => Ok(RigDelayTable::default()),
            RigSource::Auto if !are_veths(interfaces) => Ok(RigDelayTable::default()),
            RigSource::Auto | RigSource::Veth => RigDelayTable::of_veth(interfaces, grid, stop),
            RigSource::Joined(names) => RigDelayTable::over(
                &mut LiveDevice::without_channel(names)?,
                format!("{} and {}, joined", names[0], names[1]),
                grid,
                stop,
            ),
            RigSource::Given(s) => Ok(RigDelayTable::constant(*s, "as given".to_owned())),
            RigSource::Report(path) => RigDelayTable::read(path),
        }
    }

    /// Returns true if the delay is known.
    pub fn is_known(&self) -> bool {
        !self.how.is_empty()
    }

    fn constant(s: f64, how: String) -> RigDelayTable {
        RigDelayTable {
            how,
            by_bytes: vec![(BYTES, s)],
            by_gap_us: vec![(GAP_US, s)],
            message_s: 0.0,
            has_sending: true,
        }
    }

    fn of_veth(
        interfaces: &[String],
        grid: &MeasurementGrid,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<RigDelayTable, ProfilerError> {
        let names = NUMBERS.map(|number| format!("weir{}p{number}", std::process::id()));
        let pair = weir_port::veth::VethPair::make(names).map_err(|error| {
            let expected = "root, or --rig none, a time, or a report of weir traffic";
            ProfilerError::wrong("a veth pair to measure the rig's own delay (--rig)", error, expected)
        })?;
        let like = interfaces.first().map_or("", String::as_str);
        let names = [0, 1].map(|at| with_name(like, &pair.names()[at]));
        let clock = SystemClock::start();
        let until = clock.now() + SETTLED;
        loop {
            match LiveDevice::without_channel(&names) {
                Err(ProfilerError::Wrong { .. }) if clock.now() < until => std::thread::park_timeout(LOOK_AGAIN),
                opened => return RigDelayTable::over(&mut opened?, "a veth pair".to_owned(), grid, stop),
            }
        }
    }

    fn over(
        live: &mut LiveDevice,
        how: String,
        grid: &MeasurementGrid,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<RigDelayTable, ProfilerError> {
        let rig = RigDelayTable::measure(live, how, grid, stop)?;
        Ok(RigDelayTable { message_s: message_delay(SystemClock::start()).unwrap_or(0.0), ..rig })
    }

    /// Measures the delay over two joined interfaces.
    pub(crate) fn measure(
        device: &mut dyn DeviceUnderTest,
        how: String,
        grid: &MeasurementGrid,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<RigDelayTable, ProfilerError> {
        let settings = MeasurementSettings { patience: Duration::from_secs(1), ..MeasurementSettings::default() };
        let mut bench = TestBench::new(device, settings, stop);
        bench.during = "measuring the rig's own delay".to_owned();
        let packets = grid.packets.min(PACKETS);
        let mut lengths: Vec<u32> = grid.bytes.iter().map(|bytes| (*bytes).clamp(SHORTEST, LONGEST)).collect();
        lengths.push(BYTES);
        let mut gaps = grid.gaps_us.clone();
        gaps.push(GAP_US);
        let mut rig = RigDelayTable { how, ..RigDelayTable::default() };
        for list in [&mut lengths, &mut gaps] {
            list.sort_unstable();
            list.dedup();
        }
        for _ in 0..LOOKS {
            for bytes in &lengths {
                least(&mut rig.by_bytes, *bytes, median(&mut bench, *bytes, GAP_US, packets)?);
            }
            for gap_us in &gaps {
                least(&mut rig.by_gap_us, *gap_us, median(&mut bench, BYTES, *gap_us, packets)?);
            }
        }
        Ok(rig)
    }

    /// Reads the median delay from a report of `weir traffic --json`.
    fn read(path: &Path) -> Result<RigDelayTable, ProfilerError> {
        let wrong = |problem: String| ProfilerError::File { path: path.display().to_string(), problem };
        let reading = |error: std::io::Error| wrong(format!("--rig: reading it: {error}"));
        let length = std::fs::metadata(path).map_err(reading)?.len();
        if length > MAX_REPORT {
            return Err(wrong(format!("--rig: found {length} bytes, expected at most {MAX_REPORT}")));
        }
        let text = std::fs::read_to_string(path).map_err(reading)?;
        let report: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| wrong(format!("--rig: {error}; expected JSON")))?;
        let median = report["received"]["delay"]["p50_us"].as_f64().filter(|us| (0.0..1e9).contains(us));
        let missing = "--rig: found no received.delay.p50_us, expected a report of weir traffic --json with delays";
        let us = median.ok_or_else(|| wrong(missing.to_owned()))?;
        Ok(RigDelayTable::constant(us * 1e-6, format!("{}", path.display())))
    }

    /// Returns the rig's delay of a packet of `bytes` bytes, sent `gap_us` microseconds after the previous one, in
    /// seconds.
    pub fn packet_s(&self, bytes: u32, gap_us: u32) -> f64 {
        let base = at(&self.by_bytes, BYTES);
        (at(&self.by_bytes, bytes) + at(&self.by_gap_us, gap_us) - base).max(0.0)
    }

    /// Returns the rig's delay of a packet-in or packet-out with a packet of `bytes` bytes, in seconds.
    pub fn message_s(&self, bytes: u32) -> f64 {
        self.message_s + at(&self.by_bytes, bytes) / 2.0
    }

    /// Returns the delay of a packet without the rig's part, in seconds.
    pub(crate) fn off(&self, delay_s: f64, bytes: u32, gap_us: u32) -> f64 {
        // The remaining delay stays above 0.
        if self.is_known() { (delay_s - self.packet_s(bytes, gap_us)).max(1e-9) } else { delay_s }
    }

    /// Returns a remark on how much was subtracted; none if nothing was.
    pub(crate) fn note(&self, s: f64) -> Option<String> {
        self.is_known().then(|| format!("{} of the rig's own taken off", Seconds(s)))
    }
}

fn are_veths(interfaces: &[String]) -> bool {
    let name = |spec: &String| {
        let name = spec.split_once(':').map_or(spec.as_str(), |(_, name)| name);
        name.split(',').next().unwrap_or_default().to_owned()
    };
    !interfaces.is_empty() && interfaces.iter().map(name).all(|name| weir_port::veth::is_veth(&name))
}

/// Returns the port specification with another interface: `af_xdp:eth0` becomes `af_xdp:NAME`.
fn with_name(spec: &str, name: &str) -> String {
    let Some((kind, rest)) = spec.split_once(':') else { return name.to_owned() };
    let options = rest.split_once(',').map_or_else(String::new, |(_, options)| format!(",{options}"));
    format!("{kind}:{name}{options}")
}

/// Returns the value at `place`, interpolated linearly between known places; beyond them the nearest value.
fn at(known: &[(u32, f64)], place: u32) -> f64 {
    let next = known.partition_point(|(at, _)| *at < place);
    match (next.checked_sub(1).and_then(|before| known.get(before)), known.get(next)) {
        (Some((low, left)), Some((high, right))) => {
            left + (right - left) * f64::from(place - low) / f64::from(high - low)
        }
        (Some((_, value)), None) | (None, Some((_, value))) => *value,
        (None, None) => 0.0,
    }
}

/// Keeps the smaller of the known and the new value of a place.
fn least(known: &mut Vec<(u32, f64)>, place: u32, value: f64) {
    match known.iter_mut().find(|(at, _)| *at == place) {
        Some((_, least)) => *least = least.min(value),
        None => known.push((place, value)),
    }
}

fn median(bench: &mut TestBench<'_>, bytes: u32, gap_us: u32, packets: u32) -> Result<f64, ProfilerError> {
    let rule = TestFlowEntry { number: 0, priority: 0, kind: MatchLayers::L2 };
    let planned =
        vec![PlannedProbe { rule, bytes, gap: Duration::from_micros(gap_us.into()) }; (packets + WARM) as usize];
    let delays: Vec<f64> = bench.delays(&planned)?.into_iter().skip(WARM as usize).flatten().collect();
    if delays.len() * 2 < packets as usize {
        let found = format!("{} of {packets} packets", delays.len());
        return Err(ProfilerError::wrong(
            "what comes out of joined interfaces (--rig)",
            found,
            "all of them: two interfaces that a cable joins",
        ));
    }
    Ok(MedianAndSpread::of(&delays)?.median)
}

/// Returns the median time of a message through a local TCP connection, in seconds; none if no connection can be
/// made.
fn message_delay(clock: SystemClock) -> Option<f64> {
    let listener = TcpListener::bind("127.0.0.1:0").ok()?;
    let mut near = TcpStream::connect(listener.local_addr().ok()?).ok()?;
    let (mut far, _) = listener.accept().ok()?;
    near.set_nodelay(true).ok()?;
    far.set_nonblocking(true).ok()?;
    let mut times = Vec::with_capacity(MESSAGES);
    for _ in 0..MESSAGES {
        let started = clock.now();
        near.write_all(&[0; MESSAGE_BYTES]).ok()?;
        times.push(came(&mut far, clock, started)?.as_secs_f64());
    }
    MedianAndSpread::of(&times).ok().map(|middle| middle.median)
}

/// Returns the time from `started` until a whole message has arrived.
fn came(far: &mut TcpStream, clock: SystemClock, started: Instant) -> Option<Duration> {
    let mut left = [0; MESSAGE_BYTES];
    let mut bytes = 0;
    while bytes < MESSAGE_BYTES {
        match far.read(&mut left[bytes..]) {
            Ok(0) => return None,
            Ok(some) => bytes += some,
            Err(error) if error.kind() == ErrorKind::WouldBlock && clock.now().since(started) < MESSAGE_LIMIT => {
                std::hint::spin_loop();
            }
            Err(_) => return None,
        }
    }
    Some(clock.now().since(started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read() {
        let read = |text: &str| text.parse::<RigSource>();
        assert_eq!(read("auto"), Ok(RigSource::Auto));
        assert_eq!(read("2.5us"), Ok(RigSource::Given(2.5e-6)));
        assert_eq!(read("eth0,eth1"), Ok(RigSource::Joined(["eth0".to_owned(), "eth1".to_owned()])));
        assert_eq!(read("rig.json"), Ok(RigSource::Report("rig.json".into())));
        assert!(read("").is_err());
    }

    #[test]
    fn ports_of_the_pair_are_of_the_same_kind() {
        assert_eq!(with_name("eth0", "x"), "x");
        assert_eq!(with_name("af_xdp:eth0", "x"), "af_xdp:x");
        assert_eq!(with_name("af_packet:eth0,offload=off", "x"), "af_packet:x,offload=off");
    }

    #[test]
    fn what_is_between_is_interpolated() {
        let rig = RigDelayTable {
            how: "a test".to_owned(),
            by_bytes: vec![(64, 1e-6), (128, 1.5e-6), (1500, 4e-6)],
            by_gap_us: vec![(100, 1.5e-6), (1000, 2.5e-6)],
            message_s: 5e-6,
            has_sending: false,
        };
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(near(rig.packet_s(64, 100), 1e-6) && near(rig.packet_s(60, 10), 1e-6));
        assert!(near(rig.packet_s(96, 550), 1.25e-6 + 0.5e-6) && near(rig.packet_s(9000, 5000), 5e-6));
        assert!(near(rig.message_s(128), 5.75e-6));
        assert!(near(rig.off(11e-6, 64, 100), 10e-6) && rig.off(1e-7, 64, 100) > 0.0, "never less than nothing");
        assert_eq!(RigDelayTable::default().off(1e-6, 64, 100), 1e-6);
        let mut known = Vec::new();
        for (place, value) in [(64, 3.0), (128, 2.0), (64, 1.0), (128, 9.0)] {
            least(&mut known, place, value);
        }
        assert_eq!(known, [(64, 1.0), (128, 2.0)], "what others held up does not count");
        assert_eq!(
            (rig.note(1e-6).as_deref(), RigDelayTable::default().note(1.0)),
            (Some("1us of the rig's own taken off"), None)
        );
    }

    #[test]
    fn reports_of_traffic_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rig.json");
        let read = || RigDelayTable::read(&file).map_err(|error| error.to_string());
        assert!(read().unwrap_err().contains("rig.json: --rig: reading it"));
        std::fs::write(&file, "{\"received\": {\"delay\": {\"p50_us\": 2.5}}}").unwrap();
        assert!((read().unwrap().packet_s(700, 3) - 2.5e-6).abs() < 1e-12);
        assert!(read().unwrap().has_sending, "weir traffic counts from before");
        let kept: RigDelayTable =
            serde_json::from_str(r#"{"how": "x", "by_bytes": [], "by_gap_us": [], "message_s": 0}"#).unwrap();
        assert!(kept.has_sending && !RigDelayTable::default().has_sending, "so did who measured before");
        for wrong in ["{}", "nothing", "{\"received\": {\"delay\": {\"p50_us\": -1}}}"] {
            std::fs::write(&file, wrong).unwrap();
            assert!(read().unwrap_err().contains("--rig: "), "{wrong}");
        }
    }

    #[test]
    fn messages_take_some_time() {
        let s = message_delay(SystemClock::start()).unwrap();
        assert!(s > 0.0 && s < MESSAGE_LIMIT.as_secs_f64());
    }
}
