//! The rig's own delay: what packets and messages take in the machine that measures, with no device in between. It is taken off what the device is said to take.
//!
//! Packets are sent by one of two interfaces that are joined and taken in by the other, by the same code as those of the device, for each length and each time between packets.
//! Where interfaces say when packets leave and come, as those of the kernel do, nearly nothing is left of it.
//! A message is written at one end of a connection of this machine and read at the other. Of what a packet takes from interface to interface a packet-in or a packet-out has half:
//! it is only sent, or only taken in.
use crate::bench::{Bench, Planned};
use crate::live::Live;
use crate::rules::{Rule, SHORTEST};
use crate::{Device, Grid, ProfilerError, Settings};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use weir_model::fit::order::Middle;
use weir_profile::MatchKind;
use weir_units::{Clock as _, Instant, Seconds, SystemClock};

/// Packets of each case at most.
const PACKETS: u32 = 20;
/// How often each case is looked at: others of the machine hold up some, so the least counts.
const LOOKS: usize = 2;
/// Packets before them: the first ones meet cold caches.
const WARM: u32 = 5;
/// What lengths are measured at, and what times between packets are.
const BYTES: u32 = 128;
const GAP_US: u32 = 100;
/// The longest frame of the pair of interfaces.
const LONGEST: u32 = 1514;
/// Messages, and their length.
const MESSAGES: usize = 200;
const MESSAGE_BYTES: usize = 128;
/// How long one of them may take: a second is as good as never.
const MESSAGE_LIMIT: Duration = Duration::from_secs(1);
/// How long a new pair may take until its link is up, which the kernel sees to some time after it was told, and how often it is looked at.
const SETTLED: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Longest report that is read.
const MAX_REPORT: u64 = 1 << 24;
/// Names of the pair's interfaces begin with the process; these numbers follow. Labs of the same process have lower ones.
const NUMBERS: [u32; 2] = [90, 91];

/// Where the rig's own delay is known from.
#[derive(Debug, Clone, PartialEq)]
pub enum RigSource {
    /// A veth pair if the interfaces are such, else nothing is known.
    Auto,
    /// Nothing is taken off.
    None,
    /// A veth pair that is made for the moment.
    Veth,
    /// Two interfaces that a cable joins.
    Joined([String; 2]),
    /// So many seconds.
    Given(f64),
    /// A report of `weir traffic --json` without the device.
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

/// What the rig itself takes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Rig {
    /// How it is known; nothing is if empty.
    pub how: String,
    /// A packet from interface to interface, in seconds, by its length in bytes: rising.
    pub by_bytes: Vec<(u32, f64)>,
    /// The same by microseconds between packets: rising.
    pub by_gap_us: Vec<(u32, f64)>,
    /// A message, one way, in seconds.
    pub message_s: f64,
    /// Whether what sending a packet takes is in it, so that delays are to count from before that, too ([`Live::count_sending`]); it is in those of former versions.
    #[serde(default = "yes")]
    pub has_sending: bool,
}

fn yes() -> bool {
    true
}

impl Rig {
    /// Finds out, for interfaces as they are given to [`Live::open`].
    ///
    /// # Errors
    /// What was asked for cannot be made or read; someone wants it to end.
    pub fn find(
        source: &RigSource,
        interfaces: &[String],
        grid: &Grid,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Rig, ProfilerError> {
        match source {
            RigSource::None => Ok(Rig::default()),
            RigSource::Auto if !are_veths(interfaces) => Ok(Rig::default()),
            RigSource::Auto | RigSource::Veth => Rig::of_veth(interfaces, grid, stop),
            RigSource::Joined(names) => Rig::over(
                &mut Live::without_channel(names)?,
                format!("{} and {}, joined", names[0], names[1]),
                grid,
                stop,
            ),
            RigSource::Given(s) => Ok(Rig::constant(*s, "as given".to_owned())),
            RigSource::Report(path) => Rig::read(path),
        }
    }

    /// Whether anything is known of it.
    pub fn is_known(&self) -> bool {
        !self.how.is_empty()
    }

    fn constant(s: f64, how: String) -> Rig {
        Rig { how, by_bytes: vec![(BYTES, s)], by_gap_us: vec![(GAP_US, s)], message_s: 0.0, has_sending: true }
    }

    fn of_veth(interfaces: &[String], grid: &Grid, stop: &mut dyn FnMut() -> bool) -> Result<Rig, ProfilerError> {
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
            match Live::without_channel(&names) {
                Err(ProfilerError::Wrong { .. }) if clock.now() < until => std::thread::park_timeout(LOOK_AGAIN),
                opened => return Rig::over(&mut opened?, "a veth pair".to_owned(), grid, stop),
            }
        }
    }

    fn over(live: &mut Live, how: String, grid: &Grid, stop: &mut dyn FnMut() -> bool) -> Result<Rig, ProfilerError> {
        let rig = Rig::measure(live, how, grid, stop)?;
        Ok(Rig { message_s: message_delay(SystemClock::start()).unwrap_or(0.0), ..rig })
    }

    /// Measures two interfaces that are joined.
    pub(crate) fn measure(
        device: &mut dyn Device,
        how: String,
        grid: &Grid,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Rig, ProfilerError> {
        let settings = Settings { patience: Duration::from_secs(1), ..Settings::default() };
        let mut bench = Bench::new(device, settings, stop);
        bench.during = "measuring the rig's own delay".to_owned();
        let packets = grid.packets.min(PACKETS);
        let mut lengths: Vec<u32> = grid.bytes.iter().map(|bytes| (*bytes).clamp(SHORTEST, LONGEST)).collect();
        lengths.push(BYTES);
        let mut gaps = grid.gaps_us.clone();
        gaps.push(GAP_US);
        let mut rig = Rig { how, ..Rig::default() };
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

    /// Takes the median of a report of `weir traffic --json`.
    fn read(path: &Path) -> Result<Rig, ProfilerError> {
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
        Ok(Rig::constant(us * 1e-6, format!("{}", path.display())))
    }

    /// What a packet takes of itself, in seconds.
    pub fn packet_s(&self, bytes: u32, gap_us: u32) -> f64 {
        let base = at(&self.by_bytes, BYTES);
        (at(&self.by_bytes, bytes) + at(&self.by_gap_us, gap_us) - base).max(0.0)
    }

    /// What a packet-in or a packet-out takes of itself, in seconds.
    pub fn message_s(&self, bytes: u32) -> f64 {
        self.message_s + at(&self.by_bytes, bytes) / 2.0
    }

    /// A delay of a packet without the rig's.
    pub(crate) fn off(&self, delay_s: f64, bytes: u32, gap_us: u32) -> f64 {
        // What is left is never less than no time.
        if self.is_known() { (delay_s - self.packet_s(bytes, gap_us)).max(1e-9) } else { delay_s }
    }

    /// How much was taken off, in words; nothing if nothing was.
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

/// The same kind of port on another interface: `af_xdp:eth0` becomes `af_xdp:NAME`.
fn with_name(spec: &str, name: &str) -> String {
    let Some((kind, rest)) = spec.split_once(':') else { return name.to_owned() };
    let options = rest.split_once(',').map_or_else(String::new, |(_, options)| format!(",{options}"));
    format!("{kind}:{name}{options}")
}

/// The value at a place: between two that are known by a line, beyond them the nearest.
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

/// Keeps the least value of each place.
fn least(known: &mut Vec<(u32, f64)>, place: u32, value: f64) {
    match known.iter_mut().find(|(at, _)| *at == place) {
        Some((_, least)) => *least = least.min(value),
        None => known.push((place, value)),
    }
}

fn median(bench: &mut Bench<'_>, bytes: u32, gap_us: u32, packets: u32) -> Result<f64, ProfilerError> {
    let rule = Rule { number: 0, priority: 0, kind: MatchKind::L2 };
    let planned = vec![Planned { rule, bytes, gap: Duration::from_micros(gap_us.into()) }; (packets + WARM) as usize];
    let delays: Vec<f64> = bench.delays(&planned)?.into_iter().skip(WARM as usize).flatten().collect();
    if delays.len() * 2 < packets as usize {
        let found = format!("{} of {packets} packets", delays.len());
        return Err(ProfilerError::wrong(
            "what comes out of joined interfaces (--rig)",
            found,
            "all of them: two interfaces that a cable joins",
        ));
    }
    Ok(Middle::of(&delays)?.median)
}

/// What a message takes through a connection of this machine, in the median; none if there can be none.
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
    Middle::of(&times).ok().map(|middle| middle.median)
}

/// How long it took until a whole message was there.
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
        let rig = Rig {
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
        assert_eq!(Rig::default().off(1e-6, 64, 100), 1e-6);
        let mut known = Vec::new();
        for (place, value) in [(64, 3.0), (128, 2.0), (64, 1.0), (128, 9.0)] {
            least(&mut known, place, value);
        }
        assert_eq!(known, [(64, 1.0), (128, 2.0)], "what others held up does not count");
        assert_eq!(
            (rig.note(1e-6).as_deref(), Rig::default().note(1.0)),
            (Some("1us of the rig's own taken off"), None)
        );
    }

    #[test]
    fn reports_of_traffic_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rig.json");
        let read = || Rig::read(&file).map_err(|error| error.to_string());
        assert!(read().unwrap_err().contains("rig.json: --rig: reading it"));
        std::fs::write(&file, "{\"received\": {\"delay\": {\"p50_us\": 2.5}}}").unwrap();
        assert!((read().unwrap().packet_s(700, 3) - 2.5e-6).abs() < 1e-12);
        assert!(read().unwrap().has_sending, "weir traffic counts from before");
        let kept: Rig =
            serde_json::from_str(r#"{"how": "x", "by_bytes": [], "by_gap_us": [], "message_s": 0}"#).unwrap();
        assert!(kept.has_sending && !Rig::default().has_sending, "so did who measured before");
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
