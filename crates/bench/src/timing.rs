//! `weir bench timing`: measures from outside how exactly a switch with a profile keeps its times: packets pass a
//! data path with the same service time for each. Packets delayed by stops of the machine are counted separately
//! ([`super::stalls`]).
use super::machine::BenchMachineInfo;
use super::stalls::{StallRecord, StallSummary, StallWatch, lateness_s};
use anyhow::ensure;
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;
use weir_device::{LatenessSnapshot, ProfileConfig};
use weir_packet::craft::FrameBuilder;
use weir_packet::{Frame, FramePool, MacAddr, PortNo};
use weir_port::Port as _;
use weir_port::memory::{self, MemoryPort};
use weir_profile::Profile;
use weir_switch::{PortConfig, SoftwareSwitch, SoftwareSwitchConfig, Spin};
use weir_units::{Clock as _, Instant, SystemClock, TimeSpan};

/// Offset of the send time in a frame.
const TIME_AT: usize = 42;
/// Time to wait for the last packets.
const GRACE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct TimingBenchArgs {
    /// Service time of the data path for each packet
    #[arg(long, value_name = "TIME", default_value = "200us")]
    delay: TimeSpan,
    /// Packets per second; the data path serves one after the other, so this times the delay must be below 1
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "5s")]
    length: TimeSpan,
    /// How long the switch polls before it sleeps: auto, 0, or a time such as 50us
    #[arg(long, value_name = "TIME", default_value = "auto")]
    spin: Spin,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Distribution of delays.
#[derive(Debug, Default, Serialize)]
struct TimingDelayStats {
    packets: u64,
    p50_s: f64,
    p99_s: f64,
    max_s: f64,
}

#[derive(Serialize)]
struct TimingBenchReport {
    machine: BenchMachineInfo,
    release_build: bool,
    delay_s: f64,
    rate: u32,
    /// Delays without a profile: those of this machine itself.
    without: TimingDelayStats,
    /// Delays with the profile, minus its service times.
    error: TimingDelayStats,
    /// Errors of packets that were not in transit when the machine stopped the switch or the measuring thread.
    untouched: TimingDelayStats,
    /// Lateness as reported by the switch.
    lateness: LatenessSnapshot,
    /// Stops of the machine during the measurement with the profile.
    stood: StallSummary,
}

pub(crate) fn run(args: &TimingBenchArgs) -> anyhow::Result<ExitCode> {
    let (delay, length) = (args.delay.0, args.length.0);
    let used = delay.as_secs_f64() * f64::from(args.rate);
    ensure!(
        used < 1.0,
        "found {} a packet at {} packets a second, expected less than all of the data path's time",
        args.delay,
        args.rate
    );
    ensure!(!length.is_zero(), "found a length of 0s, expected more");
    let without = measure(None, args)?;
    let with = measure(Some(delay), args)?;
    let untouched = |passed: &PassedPacket| !with.watched.stalled_during(passed.sent, passed.received_at);
    let result = TimingBenchReport {
        machine: BenchMachineInfo::detect(),
        release_build: weir_units::IS_RELEASE_BUILD,
        delay_s: delay.as_secs_f64(),
        rate: args.rate,
        without: sum(&without.packets, Duration::ZERO, |_| true)?,
        error: sum(&with.packets, delay, |_| true)?,
        untouched: sum(&with.packets, delay, untouched).unwrap_or_default(),
        lateness: with.lateness.unwrap_or_default(),
        stood: with.watched.sum(),
    };
    let text = if args.json { serde_json::to_string_pretty(&result)? + "\n" } else { lines(&result) };
    weir_terminal::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Results of one switch.
struct TimingBenchRun {
    packets: Vec<PassedPacket>,
    /// Lateness as reported by the switch.
    lateness: Option<LatenessSnapshot>,
    watched: StallRecord,
}

/// A packet that passed the switch.
struct PassedPacket {
    sent: Instant,
    received_at: Instant,
}

fn measure(delay: Option<Duration>, args: &TimingBenchArgs) -> anyhow::Result<TimingBenchRun> {
    let (inside, mut left) = memory::pair(1024)?;
    let (outside, mut right) = memory::pair(1024)?;
    let clock = SystemClock::start();
    let switch = SoftwareSwitch::start(SoftwareSwitchConfig {
        ports: vec![PortConfig::new(PortNo(1), Box::new(inside)), PortConfig::new(PortNo(2), Box::new(outside))],
        entries: vec!["in_port=1,actions=output:2".to_owned()],
        profile: delay.map(profile).transpose()?,
        spin: args.spin,
        notes_stops: true,
        clock,
        ..SoftwareSwitchConfig::default()
    })?;
    let mut watch = StallWatch::start(clock.now());
    let packets = pass(&clock, (&mut left, &mut right), args, &mut watch)?;
    let watched = watch.end(clock.now(), &switch)?;
    let lateness = switch.snapshot()?.timing.map(|timing| timing.lateness);
    Ok(TimingBenchRun { packets, lateness, watched })
}

/// Returns a profile whose data path takes `delay` for each packet.
fn profile(delay: Duration) -> anyhow::Result<ProfileConfig> {
    let text = format!(
        "name = \"bench\"\ndevice = \"A data path\"\norigin = \"assumed\"\nsource = \"weir bench timing\"\n[timing]\ndata = \"{}ns\"\n",
        delay.as_nanos()
    );
    Ok(ProfileConfig { profile: Box::new(Profile::parse(&text, "bench.toml")?), seed: 1 })
}

/// Sends packets at equal intervals to one port and receives them from the other, polling without sleep.
fn pass(
    clock: &SystemClock,
    (left, right): (&mut MemoryPort, &mut MemoryPort),
    args: &TimingBenchArgs,
    watch: &mut StallWatch,
) -> anyhow::Result<Vec<PassedPacket>> {
    let gap = Duration::from_secs(1) / args.rate;
    let begin = clock.now();
    let (mut next, end) = (begin, begin + args.length.0);
    let (mut pool, mut batch, mut passed) = (FramePool::default(), Vec::new(), Vec::new());
    let mut count = 0;
    loop {
        let now = clock.now();
        watch.look(now);
        if next <= now && next < end {
            let sent = clock.now();
            left.transmit(now, &mut pool, &mut vec![stamped(sent)])?;
            watch.note_send(sent, clock.now());
            (next, count) = (next + gap, count + 1);
        }
        right.receive(now, &mut pool, &mut batch, 32)?;
        let came = clock.now();
        watch.look(came);
        for frame in batch.drain(..) {
            watch.note_work();
            passed.extend(stamp(&frame).map(|sent| PassedPacket { sent, received_at: came }));
            pool.give(frame);
        }
        if now >= end && (passed.len() == count || now >= end + GRACE) {
            break;
        }
        std::hint::spin_loop();
    }
    Ok(passed)
}

fn stamped(now: Instant) -> Frame {
    let craft = FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    let craft = craft.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2);
    craft.payload(&now.as_nanos().to_be_bytes()).frame()
}

fn stamp(frame: &Frame) -> Option<Instant> {
    let bytes = frame.bytes().get(TIME_AT..TIME_AT + 8)?;
    Some(Instant::from_nanos(u64::from_be_bytes(bytes.try_into().ok()?)))
}

/// Computes the lateness of the packets for which `counts` is true. The data path serves one packet after the other:
/// after a stop of the machine, packets wait for each other as they would in the device.
fn sum(
    packets: &[PassedPacket],
    service: Duration,
    counts: impl Fn(&PassedPacket) -> bool,
) -> anyhow::Result<TimingDelayStats> {
    let mut due = Instant::ZERO;
    let mut late: Vec<f64> = Vec::new();
    for packet in packets {
        due = due.max(packet.sent) + service;
        if counts(packet) {
            late.push(lateness_s(packet.received_at, due));
        }
    }
    late.sort_by(f64::total_cmp);
    let (Some(longest), count) = (late.last(), late.len()) else { anyhow::bail!("no packet came through the switch") };
    let at = |part: usize| late[(count * part / 100).min(count - 1)];
    Ok(TimingDelayStats { packets: count as u64, p50_s: at(50), p99_s: at(99), max_s: *longest })
}

fn lines(result: &TimingBenchReport) -> String {
    let line = |what: &str, delays: &TimingDelayStats| {
        let us = [delays.p50_s, delays.p99_s, delays.max_s].map(|seconds| seconds * 1e6);
        format!(
            "{what}: {:.1} us (p50), {:.1} us (p99), {:.1} us at most, {} packets\n",
            us[0], us[1], us[2], delays.packets
        )
    };
    let LatenessSnapshot { count, p50_s, p99_s, max_s, late } = result.lateness;
    let share = 100.0 * late as f64 / count.max(1) as f64;
    let [p50, p99, most] = [p50_s, p99_s, max_s].map(|seconds| seconds * 1e6);
    let says = format!(
        "releases, as the switch says: {p50:.1} us late (p50), {p99:.1} us (p99), {most:.1} us at most, {share:.2} % by more than 20 us\n"
    );
    line("a switch without profile", &result.without)
        + &line("beyond the profile's delay", &result.error)
        + &line("the same, of packets that the machine did not touch", &result.untouched)
        + &says
        + &result.stood.line()
}
