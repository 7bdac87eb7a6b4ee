//! `weir bench link`: measures how exactly a live link keeps its rate and its delay.
//!
//! A switch in this process sends what it receives on one port out of another, which has the link. This thread is at
//! the far ends of both memory ports and reads the switch's clock. The delay of the setup itself is measured first,
//! with a link without rate and delay. Frames that were delayed by stops of the machine are counted separately
//! ([`super::stalls`]).
use super::machine::BenchMachineInfo;
use super::stalls::{StallRecord, StallSummary, StallWatch, lateness_s};
use anyhow::{Context as _, ensure};
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;
use weir_network::link::shaped;
use weir_packet::{Frame, FramePool, PortNo};
use weir_port::Port as _;
use weir_port::memory::{self, MemoryPort};
use weir_scenario::LinkSpec;
use weir_switch::{PortConfig, SoftwareSwitch, SoftwareSwitchConfig, Spin, SwitchHandle};
use weir_units::{Bps, ByteSize, Clock as _, Instant, SystemClock, TimeSpan};

/// Minimum number of frames that wait for the link while its rate is measured, and the time for which they occupy it.
/// The link must not become idle while this thread or the switch is stopped by the machine.
const AHEAD: u64 = 64;
const AHEAD_TIME: Duration = Duration::from_millis(20);
/// Capacity of a memory port in frames.
const RING: u64 = 16_384;
/// Time to wait for outstanding frames after the last one was sent.
const GRACE: Duration = Duration::from_millis(200);
/// Ethernet addresses and an EtherType for experiments (IEEE 802); the frame's number follows.
const HEADER: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];

#[derive(clap::Args)]
pub(crate) struct LinkBenchArgs {
    /// The link's rate
    #[arg(long, default_value = "100Mbit/s")]
    rate: Bps,
    /// The link's delay
    #[arg(long, default_value = "5ms")]
    delay: TimeSpan,
    /// Length of the frames
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(60..=1514))]
    bytes: u16,
    /// Time between two frames while delays are measured
    #[arg(long, default_value = "1ms")]
    gap: TimeSpan,
    /// Duration of each of the three measurements
    #[arg(long, default_value = "5s")]
    time: TimeSpan,
    /// How long the switch polls before it sleeps: auto, 0, or a time such as 50us
    #[arg(long, value_name = "TIME", default_value = "auto")]
    spin: Spin,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct LinkBenchReport {
    machine: BenchMachineInfo,
    release_build: bool,
    rate_bps: u64,
    delay_s: f64,
    bytes: u16,
    gap_s: f64,
    /// Delay of the setup alone, from sending to receiving.
    rig: FrameLateness,
    /// Lateness beyond the link's delay and the frame's time at its rate.
    late: FrameLateness,
    /// Lateness of frames that were not in transit when the machine stopped the switch or the measuring thread;
    /// `None` if there are none.
    untouched: Option<FrameLateness>,
    /// Stops of the machine while `late` was measured.
    stood: StallSummary,
    /// Measured rate over configured rate, minus one.
    rate_error: f64,
    /// Longest time without a look by this thread while the rate was measured, in microseconds.
    longest_stop_us: f64,
    /// Number of times that such a gap exceeded the time of the waiting frames, so that the link may have been idle.
    starved: u64,
}

/// Distribution of the frames' lateness.
#[derive(Serialize)]
struct FrameLateness {
    frames: usize,
    lost: u64,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
}

pub(crate) fn run(args: &LinkBenchArgs) -> anyhow::Result<ExitCode> {
    let line = args.rate.time_of(u64::from(args.bytes));
    ensure!(
        args.gap.0 > line,
        "--gap: found {}, expected more than the frame's time at the rate, {}",
        args.gap,
        TimeSpan(line)
    );
    ensure!(args.time.0 > args.delay.0, "--time: found {}, expected more than the delay, {}", args.time, args.delay);
    ensure!(
        ahead(args) < RING,
        "--delay: found {}, expected less: at this rate more than {RING} frames are under way",
        args.delay
    );
    let machine = BenchMachineInfo::detect();
    // The buffer holds all frames that are sent ahead, so that none is lost.
    let buffer = Some(ByteSize(RING * u64::from(args.bytes)));
    let spec = LinkSpec { rate: Some(args.rate), delay: args.delay.0, buffer, ..LinkSpec::default() };
    let (rig, _) = LinkTestbed::start(&LinkSpec::default(), args.spin)?.delays(args, Duration::ZERO)?;
    let times = [line, args.delay.0];
    let (link, watched) = LinkTestbed::start(&spec, args.spin)?.delays(args, line + args.delay.0)?;
    let rate = LinkTestbed::start(&spec, args.spin)?.rate(args)?;
    let untouched =
        |frame: &LinkFrameTimes| frame.arrived_at.is_none_or(|came| !watched.stalled_during(frame.sent_at, came));
    let result = LinkBenchReport {
        machine,
        release_build: weir_units::IS_RELEASE_BUILD,
        rate_bps: args.rate.0,
        delay_s: args.delay.0.as_secs_f64(),
        bytes: args.bytes,
        gap_s: args.gap.0.as_secs_f64(),
        rig: FrameLateness::of(&rig, [Duration::ZERO; 2], |_| true)?,
        late: FrameLateness::of(&link, times, |_| true)?,
        untouched: FrameLateness::of(&link, times, untouched).ok(),
        stood: watched.sum(),
        rate_error: rate.bps / args.rate.0 as f64 - 1.0,
        longest_stop_us: rate.longest_stop.as_secs_f64() * 1e6,
        starved: rate.starved,
    };
    let text = if args.json { serde_json::to_string_pretty(&result)? + "\n" } else { lines(args, &result) };
    weir_terminal::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Number of frames that are outstanding while the rate is measured: in transit and waiting.
fn ahead(args: &LinkBenchArgs) -> u64 {
    let under_way = frames_of(args, args.delay.0);
    // At a high rate, limited by the capacity of the port.
    under_way + frames_of(args, AHEAD_TIME).min((RING - 1).saturating_sub(under_way)).max(AHEAD)
}

/// Returns the number of frames that the link sends in `time`.
fn frames_of(args: &LinkBenchArgs, time: Duration) -> u64 {
    let frames = time.as_secs_f64() * args.rate.0 as f64 / 8.0 / f64::from(args.bytes);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held within limits")]
    let whole = frames.min(1e6) as u64;
    whole
}

fn lines(args: &LinkBenchArgs, result: &LinkBenchReport) -> String {
    let row = |what: &str, late: &FrameLateness| {
        let FrameLateness { frames, lost, p50_us, p99_us, max_us } = late;
        format!(
            "{what:22}  p50 {p50_us:8.1} us   p99 {p99_us:8.1} us   max {max_us:8.1} us   ({frames} frames, {lost} lost)\n"
        )
    };
    format!("a link of {} and {}, frames of {} bytes\n", args.rate, args.delay, args.bytes)
        + &row("the rig by itself", &result.rig)
        + &row("later than the link", &result.late)
        + &result.untouched.as_ref().map_or_else(String::new, |late| row("  untouched by stops", late))
        + &result.stood.line()
        + &format!(
            "{:22}  {:+.4} %   (this thread was stopped for {:.1} us at most, {} times for longer than the link had frames)\n",
            "rate",
            result.rate_error * 100.0,
            result.longest_stop_us,
            result.starved
        )
}

/// A frame that was sent.
#[derive(Debug, Clone, Copy)]
struct LinkFrameTimes {
    sent_at: Instant,
    /// Arrival time; `None` if it did not arrive.
    arrived_at: Option<Instant>,
}

/// Result of a measurement of the rate.
struct MeasuredLinkRate {
    bps: f64,
    longest_stop: Duration,
    starved: u64,
}

/// A switch with the link at its port 2, and the far ends of both ports.
struct LinkTestbed {
    clock: SystemClock,
    switch: SwitchHandle,
    pool: FramePool,
    to: MemoryPort,
    from: MemoryPort,
    batch: Vec<Frame>,
    sent: u64,
}

impl LinkTestbed {
    fn start(spec: &LinkSpec, spin: Spin) -> anyhow::Result<LinkTestbed> {
        let ring = usize::try_from(RING).unwrap_or(usize::MAX);
        let pair = || memory::pair(ring).context("making a memory port");
        let ((near, to), (out, from)) = (pair()?, pair()?);
        let clock = SystemClock::start();
        let ports = vec![
            PortConfig::new(PortNo(1), Box::new(near.named("in"))),
            PortConfig::new(PortNo(2), shaped(out.named("out"), spec, (1, 0))),
        ];
        let entries = vec!["in_port=1,actions=output:2".to_owned()];
        let switch = SoftwareSwitch::start(SoftwareSwitchConfig {
            ports,
            entries,
            clock,
            spin,
            notes_stops: true,
            ..SoftwareSwitchConfig::default()
        })?;
        Ok(LinkTestbed { clock, switch, pool: FramePool::default(), to, from, batch: Vec::new(), sent: 0 })
    }

    fn send(&mut self, now: Instant, bytes: u16) -> anyhow::Result<()> {
        let mut content = vec![0; usize::from(bytes)];
        content[..14].copy_from_slice(&HEADER);
        content[14..22].copy_from_slice(&self.sent.to_be_bytes());
        self.sent += 1;
        Ok(self.to.transmit(now, &mut self.pool, &mut vec![Frame::from_bytes(&content)])?)
    }

    /// Receives frames and returns their numbers.
    fn take(&mut self) -> anyhow::Result<Vec<u64>> {
        let now = self.clock.now();
        self.from.receive(now, &mut self.pool, &mut self.batch, 64)?;
        let number =
            |frame: &Frame| frame.bytes().get(14..22).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let numbers = self.batch.iter().filter_map(number).collect();
        for frame in self.batch.drain(..) {
            self.pool.give(frame);
        }
        Ok(numbers)
    }

    /// Sends frames and records when each is sent and received. `expected` is the delay to expect. Returns the stops
    /// of the machine, too.
    fn delays(
        mut self,
        args: &LinkBenchArgs,
        expected: Duration,
    ) -> anyhow::Result<(Vec<LinkFrameTimes>, StallRecord)> {
        let begin = self.clock.now();
        let (end, mut next) = (begin + args.time.0, begin);
        let (mut frames, mut came) = (Vec::<LinkFrameTimes>::new(), 0);
        let mut watch = StallWatch::start(begin);
        loop {
            let now = self.clock.now();
            watch.look(now);
            if now >= next && now < end {
                frames.push(LinkFrameTimes { sent_at: now, arrived_at: None });
                self.send(now, args.bytes)?;
                watch.note_send(now, self.clock.now());
                next += args.gap.0;
            }
            let numbers = self.take()?;
            let now = self.clock.now();
            watch.look(now);
            for number in numbers {
                watch.note_work();
                let frame = usize::try_from(number).ok().and_then(|number| frames.get_mut(number));
                frame.context("a frame of nobody")?.arrived_at = Some(now);
                came += 1;
            }
            if now >= end && (came == self.sent || now >= end + expected + GRACE) {
                break;
            }
        }
        let watched = watch.end(self.clock.now(), &self.switch)?;
        self.switch.stop();
        Ok((frames, watched))
    }

    /// Measures the bits per second that leave the link while it is never idle.
    fn rate(mut self, args: &LinkBenchArgs) -> anyhow::Result<MeasuredLinkRate> {
        let begin = self.clock.now();
        let (mut came, mut at_first, mut first, mut last) = (0_u64, 0, begin, begin);
        let ahead = ahead(args);
        let lasts = args.rate.time_of(ahead.saturating_sub(frames_of(args, args.delay.0)) * u64::from(args.bytes));
        let (mut looked, mut longest_stop, mut starved) = (begin, Duration::ZERO, 0);
        while last < begin + args.time.0 {
            let now = self.clock.now();
            longest_stop = longest_stop.max(now.since(looked));
            starved += u64::from(now.since(looked) > lasts);
            looked = now;
            while self.sent < came + ahead {
                self.send(now, args.bytes)?;
            }
            let now = self.clock.now();
            let numbers = self.take()?;
            if !numbers.is_empty() {
                last = now;
                came += numbers.len() as u64;
                // Frames received at the first look arrived before it, so they do not count.
                (first, at_first) = if at_first == 0 { (now, came) } else { (first, at_first) };
            }
            ensure!(
                now < begin + args.time.0 + args.delay.0 + GRACE * 5,
                "found {came} frames of {}, expected more",
                self.sent
            );
        }
        self.switch.stop();
        let bps = ((came - at_first) * u64::from(args.bytes) * 8) as f64 / last.since(first).as_secs_f64();
        Ok(MeasuredLinkRate { bps, longest_stop, starved })
    }
}

impl FrameLateness {
    /// Computes the lateness of the frames for which `counts` is true. A frame is due after its time at the rate,
    /// which starts after the frames before it, plus the delay.
    fn of(
        frames: &[LinkFrameTimes],
        [line, delay]: [Duration; 2],
        counts: impl Fn(&LinkFrameTimes) -> bool,
    ) -> anyhow::Result<FrameLateness> {
        let (mut free, mut sent, mut seconds) = (Instant::ZERO, 0, Vec::new());
        for frame in frames {
            free = free.max(frame.sent_at) + line;
            if counts(frame) {
                sent += 1;
                seconds.extend(frame.arrived_at.map(|came| lateness_s(came, free + delay)));
            }
        }
        ensure!(!seconds.is_empty(), "found none of {sent} frames behind the link");
        seconds.sort_by(f64::total_cmp);
        let at = |share: usize| seconds[(seconds.len() - 1) * share / 100] * 1e6;
        let lost = sent - seconds.len() as u64;
        Ok(FrameLateness { frames: seconds.len(), lost, p50_us: at(50), p99_us: at(99), max_us: at(100) })
    }
}
