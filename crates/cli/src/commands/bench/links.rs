//! `weir bench link`: how exactly a link keeps its rate and its delay, live.
//!
//! A switch in this process sends what comes in by one port out by another, behind which the link is; this thread is at both far ends, in memory, and looks at
//! the clock that the switch has, too. What the rig takes by itself is measured first, with a link that does nothing; what the machine did to frames meanwhile is
//! told apart ([`super::stood`]).
use super::machine::Machine;
use super::stood::{Stood, Watch, Watched, after};
use anyhow::{Context as _, ensure};
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;
use weir_emulator::parts;
use weir_packet::{Frame, FramePool, PortNo};
use weir_port::Port as _;
use weir_port::memory::{self, MemoryPort};
use weir_scenario::LinkSpec;
use weir_switch::{PortConfig, Spin, Switch, SwitchConfig, SwitchHandle};
use weir_units::{Bps, ByteSize, Clock as _, Instant, Span, SystemClock};

/// Frames that wait for the link while its rate is measured, at least, and for how long they occupy it: it is not to be idle while this thread, or the switch,
/// is stopped by others.
const AHEAD: u64 = 64;
const AHEAD_TIME: Duration = Duration::from_millis(20);
/// Frames that a port in memory holds.
const RING: u64 = 16_384;
/// How long after the last frame one is waited for.
const GRACE: Duration = Duration::from_millis(200);
/// Ethernet addresses and an EtherType for experiments (IEEE 802); behind them the frame's number.
const HEADER: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The link's rate
    #[arg(long, default_value = "100Mbit/s")]
    rate: Bps,
    /// The link's delay
    #[arg(long, default_value = "5ms")]
    delay: Span,
    /// Length of the frames
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(60..=1514))]
    bytes: u16,
    /// Time between two frames while delays are measured
    #[arg(long, default_value = "1ms")]
    gap: Span,
    /// How long each of the three measurements takes
    #[arg(long, default_value = "5s")]
    time: Span,
    /// How long the switch polls before it sleeps: auto, 0, or a time such as 50us
    #[arg(long, value_name = "TIME", default_value = "auto")]
    spin: Spin,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Result {
    machine: Machine,
    release_build: bool,
    rate_bps: u64,
    delay_s: f64,
    bytes: u16,
    gap_s: f64,
    /// The rig alone: from being sent to having come.
    rig: Late,
    /// Later than the link's delay and the frame's time at its rate.
    late: Late,
    /// The same of frames that were not on their way when the machine stopped the switch, or who measures; none if all were.
    untouched: Option<Late>,
    /// While `late` was measured.
    stood: Stood,
    /// Measured over set, less one.
    rate_error: f64,
    /// While that was measured: the longest time for which this thread did not look.
    longest_stop_us: f64,
    /// How often that was longer than what waited for the link lasted: it may have been idle.
    starved: u64,
}

/// How late frames were.
#[derive(Serialize)]
struct Late {
    frames: usize,
    lost: u64,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let line = args.rate.time_of(u64::from(args.bytes));
    ensure!(
        args.gap.0 > line,
        "--gap: found {}, expected more than the frame's time at the rate, {}",
        args.gap,
        Span(line)
    );
    ensure!(args.time.0 > args.delay.0, "--time: found {}, expected more than the delay, {}", args.time, args.delay);
    ensure!(
        ahead(args) < RING,
        "--delay: found {}, expected less: at this rate more than {RING} frames are under way",
        args.delay
    );
    let machine = Machine::look();
    // Room for all that is sent ahead: nothing is to be lost.
    let buffer = Some(ByteSize(RING * u64::from(args.bytes)));
    let spec = LinkSpec { rate: Some(args.rate), delay: args.delay.0, buffer, ..LinkSpec::default() };
    let (rig, _) = Rig::start(&LinkSpec::default(), args.spin)?.delays(args, Duration::ZERO)?;
    let times = [line, args.delay.0];
    let (link, watched) = Rig::start(&spec, args.spin)?.delays(args, line + args.delay.0)?;
    let rate = Rig::start(&spec, args.spin)?.rate(args)?;
    let untouched = |frame: &Sent| frame.came.is_none_or(|came| !watched.touch(frame.at, came));
    let result = Result {
        machine,
        release_build: !cfg!(debug_assertions),
        rate_bps: args.rate.0,
        delay_s: args.delay.0.as_secs_f64(),
        bytes: args.bytes,
        gap_s: args.gap.0.as_secs_f64(),
        rig: Late::of(&rig, [Duration::ZERO; 2], |_| true)?,
        late: Late::of(&link, times, |_| true)?,
        untouched: Late::of(&link, times, untouched).ok(),
        stood: watched.sum(),
        rate_error: rate.bps / args.rate.0 as f64 - 1.0,
        longest_stop_us: rate.longest_stop.as_secs_f64() * 1e6,
        starved: rate.starved,
    };
    let text = if args.json { serde_json::to_string_pretty(&result)? + "\n" } else { lines(args, &result) };
    crate::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Frames that are sent and have not come while the rate is measured: what is under way, and what waits.
fn ahead(args: &Args) -> u64 {
    let under_way = frames_of(args, args.delay.0);
    // As many as there is room for, where the rate is high.
    under_way + frames_of(args, AHEAD_TIME).min((RING - 1).saturating_sub(under_way)).max(AHEAD)
}

/// Frames that the link sends in a time.
fn frames_of(args: &Args, time: Duration) -> u64 {
    let frames = time.as_secs_f64() * args.rate.0 as f64 / 8.0 / f64::from(args.bytes);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held within limits")]
    let whole = frames.min(1e6) as u64;
    whole
}

fn lines(args: &Args, result: &Result) -> String {
    let row = |what: &str, late: &Late| {
        let Late { frames, lost, p50_us, p99_us, max_us } = late;
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

/// A frame.
#[derive(Debug, Clone, Copy)]
struct Sent {
    at: Instant,
    /// None: it has not come.
    came: Option<Instant>,
}

/// What a rate came to.
struct Rate {
    bps: f64,
    longest_stop: Duration,
    starved: u64,
}

/// A switch with the link behind its port 2, and the far ends of both ports.
struct Rig {
    clock: SystemClock,
    switch: SwitchHandle,
    pool: FramePool,
    to: MemoryPort,
    from: MemoryPort,
    batch: Vec<Frame>,
    sent: u64,
}

impl Rig {
    fn start(spec: &LinkSpec, spin: Spin) -> anyhow::Result<Rig> {
        let ring = usize::try_from(RING).unwrap_or(usize::MAX);
        let pair = || memory::pair(ring).context("making a memory port");
        let ((near, to), (out, from)) = (pair()?, pair()?);
        let clock = SystemClock::start();
        let ports = vec![
            PortConfig::new(PortNo(1), Box::new(near.named("in"))),
            PortConfig::new(PortNo(2), parts::shaped(out.named("out"), spec, (1, 0))),
        ];
        let entries = vec!["in_port=1,actions=output:2".to_owned()];
        let switch =
            Switch::start(SwitchConfig { ports, entries, clock, spin, notes_stops: true, ..SwitchConfig::default() })?;
        Ok(Rig { clock, switch, pool: FramePool::default(), to, from, batch: Vec::new(), sent: 0 })
    }

    fn send(&mut self, now: Instant, bytes: u16) -> anyhow::Result<()> {
        let mut content = vec![0; usize::from(bytes)];
        content[..14].copy_from_slice(&HEADER);
        content[14..22].copy_from_slice(&self.sent.to_be_bytes());
        self.sent += 1;
        Ok(self.to.transmit(now, &mut self.pool, &mut vec![Frame::from_bytes(&content)])?)
    }

    /// Numbers of the frames that have come.
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

    /// When frames are sent and come, `expected` later, and what the machine did meanwhile.
    fn delays(mut self, args: &Args, expected: Duration) -> anyhow::Result<(Vec<Sent>, Watched)> {
        let begin = self.clock.now();
        let (end, mut next) = (begin + args.time.0, begin);
        let (mut frames, mut came) = (Vec::<Sent>::new(), 0);
        let mut watch = Watch::start(begin);
        loop {
            let now = self.clock.now();
            watch.look(now);
            if now >= next && now < end {
                frames.push(Sent { at: now, came: None });
                self.send(now, args.bytes)?;
                watch.sent(now, self.clock.now());
                next += args.gap.0;
            }
            let numbers = self.take()?;
            let now = self.clock.now();
            watch.look(now);
            for number in numbers {
                watch.worked();
                let frame = usize::try_from(number).ok().and_then(|number| frames.get_mut(number));
                frame.context("a frame of nobody")?.came = Some(now);
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

    /// Bits per second that come out of the link while it is never idle.
    fn rate(mut self, args: &Args) -> anyhow::Result<Rate> {
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
                // Those that are there at the first look came before it.
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
        Ok(Rate { bps, longest_stop, starved })
    }
}

impl Late {
    /// How much later than due those of the frames came that count. A frame takes its time at the rate, after those before it, and then the delay.
    fn of(frames: &[Sent], [line, delay]: [Duration; 2], counts: impl Fn(&Sent) -> bool) -> anyhow::Result<Late> {
        let (mut free, mut sent, mut seconds) = (Instant::ZERO, 0, Vec::new());
        for frame in frames {
            free = free.max(frame.at) + line;
            if counts(frame) {
                sent += 1;
                seconds.extend(frame.came.map(|came| after(came, free + delay)));
            }
        }
        ensure!(!seconds.is_empty(), "found none of {sent} frames behind the link");
        seconds.sort_by(f64::total_cmp);
        let at = |share: usize| seconds[(seconds.len() - 1) * share / 100] * 1e6;
        let lost = sent - seconds.len() as u64;
        Ok(Late { frames: seconds.len(), lost, p50_us: at(50), p99_us: at(99), max_us: at(100) })
    }
}
