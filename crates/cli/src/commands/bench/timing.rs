//! `weir bench timing`: how exactly a switch with a profile keeps its times, seen from outside: packets through a data path that takes the same time for
//! each.
use super::machine::Machine;
use anyhow::ensure;
use serde::Serialize;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;
use weir_packet::craft::Craft;
use weir_packet::{Frame, FramePool, MacAddr, PortNo};
use weir_port::Port as _;
use weir_port::memory::{self, MemoryPort};
use weir_profile::Profile;
use weir_switch::timed::LatenessSnapshot;
use weir_switch::{PortConfig, ProfileConfig, Switch, SwitchConfig};
use weir_units::{Clock as _, Instant, Span, SystemClock};

/// Where a frame says when it was sent.
const TIME_AT: usize = 42;
/// How long the last packets are waited for.
const GRACE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Time that the data path takes for each packet
    #[arg(long, value_name = "TIME", default_value = "200us")]
    delay: Span,
    /// Packets a second; the data path takes one after the other, so this times the delay is below 1
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "5s")]
    length: Span,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Delays of a switch.
#[derive(Debug, Serialize)]
struct Delays {
    packets: u64,
    p50_s: f64,
    p99_s: f64,
    max_s: f64,
}

#[derive(Serialize)]
struct Result {
    machine: Machine,
    release_build: bool,
    delay_s: f64,
    rate: u32,
    /// Without a profile: what this machine takes by itself.
    without: Delays,
    /// With it, after the delay is taken off.
    error: Delays,
    /// What the switch says.
    lateness: LatenessSnapshot,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (delay, length) = (args.delay.0, args.length.0);
    let used = delay.as_secs_f64() * f64::from(args.rate);
    ensure!(
        used < 1.0,
        "found {} a packet at {} packets a second, expected less than all of the data path's time",
        args.delay,
        args.rate
    );
    ensure!(!length.is_zero(), "found a length of 0s, expected more");
    let (without, _) = measure(None, args.rate, length)?;
    let (with, lateness) = measure(Some(delay), args.rate, length)?;
    let result = Result {
        machine: Machine::look(),
        release_build: !cfg!(debug_assertions),
        delay_s: delay.as_secs_f64(),
        rate: args.rate,
        without: sum(without, Duration::ZERO)?,
        error: sum(with, delay)?,
        lateness: lateness.unwrap_or_default(),
    };
    let text = if args.json { serde_json::to_string_pretty(&result)? + "\n" } else { lines(&result) };
    // A reader that has gone away misses the report, nothing else.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// Delays of packets in order of their length, and what the switch says of its times.
fn measure(
    delay: Option<Duration>,
    rate: u32,
    length: Duration,
) -> anyhow::Result<(Vec<Duration>, Option<LatenessSnapshot>)> {
    let (inside, mut left) = memory::pair(1024)?;
    let (outside, mut right) = memory::pair(1024)?;
    let clock = SystemClock::start();
    let switch = Switch::start(SwitchConfig {
        ports: vec![PortConfig::new(PortNo(1), Box::new(inside)), PortConfig::new(PortNo(2), Box::new(outside))],
        entries: vec!["in_port=1,actions=output:2".to_owned()],
        profile: delay.map(profile).transpose()?,
        ..SwitchConfig::default()
    })?;
    let delays = pass(&clock, (&mut left, &mut right), rate, length)?;
    Ok((delays, switch.snapshot()?.timing.map(|timing| timing.lateness)))
}

/// A device whose data path takes that long.
fn profile(delay: Duration) -> anyhow::Result<ProfileConfig> {
    let text = format!(
        "name = \"bench\"\ndevice = \"A data path\"\norigin = \"assumed\"\nsource = \"weir bench timing\"\n[timing]\ndata = \"{}ns\"\n",
        delay.as_nanos()
    );
    Ok(ProfileConfig { profile: Box::new(Profile::parse(&text, "bench.toml")?), seed: 1 })
}

/// Sends packets at even gaps into one port and takes them from the other, awake all the time.
fn pass(
    clock: &SystemClock,
    (left, right): (&mut MemoryPort, &mut MemoryPort),
    rate: u32,
    length: Duration,
) -> anyhow::Result<Vec<Duration>> {
    let gap = Duration::from_secs(1) / rate;
    let begin = clock.now();
    let (mut next, end) = (begin, begin + length);
    let (mut pool, mut batch, mut delays) = (FramePool::default(), Vec::new(), Vec::new());
    let mut sent = 0;
    loop {
        let now = clock.now();
        if next <= now && next < end {
            left.transmit(now, &mut pool, &mut vec![stamped(clock.now())])?;
            (next, sent) = (next + gap, sent + 1);
        }
        right.receive(now, &mut pool, &mut batch, 32)?;
        let arrived = clock.now();
        for frame in batch.drain(..) {
            delays.extend(stamp(&frame).map(|at| arrived.since(at)));
            pool.give(frame);
        }
        if now >= end && (delays.len() == sent || now >= end + GRACE) {
            break;
        }
        std::hint::spin_loop();
    }
    delays.sort();
    Ok(delays)
}

fn stamped(now: Instant) -> Frame {
    let craft = Craft::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    let craft = craft.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2);
    craft.payload(&now.as_nanos().to_be_bytes()).frame()
}

fn stamp(frame: &Frame) -> Option<Instant> {
    let bytes = frame.bytes().get(TIME_AT..TIME_AT + 8)?;
    Some(Instant::from_nanos(u64::from_be_bytes(bytes.try_into().ok()?)))
}

fn sum(delays: Vec<Duration>, expected: Duration) -> anyhow::Result<Delays> {
    let (Some(longest), count) = (delays.last(), delays.len()) else {
        anyhow::bail!("no packet came through the switch")
    };
    let over = |delay: Duration| delay.as_secs_f64() - expected.as_secs_f64();
    let at = |part: usize| over(delays[(count * part / 100).min(count - 1)]);
    Ok(Delays { packets: count as u64, p50_s: at(50), p99_s: at(99), max_s: over(*longest) })
}

fn lines(result: &Result) -> String {
    let line = |what: &str, delays: &Delays| {
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
    line("a switch without profile", &result.without) + &line("beyond the profile's delay", &result.error) + &says
}
