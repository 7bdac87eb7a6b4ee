//! What is sent where and what is looked at, by one thread: packets are sent at their times, and taken in between.
use crate::frames::Template;
use crate::taps::Taps;
use crate::{Epoch, FrameSpec, GeneratorError, Replay, Report, SentReport, StampClock};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_packet::{Frame, FramePool};
use weir_port::{Port, Ready, event};
use weir_traffic::recorder::{Interval, Recording, Series};
use weir_traffic::{Delays, GapLaw, Gaps, Offer, Planned, Probe, Recorder, Schedule};
use weir_units::Instant;

/// Packets sent, and frames taken in, at once.
const BURST: usize = 32;
/// How long before a packet is due sleeping ends: waking up takes the system some of it.
const AWAKE_BEFORE: Duration = Duration::from_micros(200);
/// How long is slept at most: stopping is to be seen.
const NAP: Duration = Duration::from_millis(20);
/// How often it is asked whether to stop.
const ASK_EVERY: Duration = Duration::from_millis(1);
/// From opening the ports to the first packet: the other ends may have to see the link come up.
const LEAD: Duration = Duration::from_millis(2);
/// Packets are late from here on, for the share that is reported.
const LATE: Duration = Duration::from_micros(10);
/// Packets that were due and not sent are counted up to this number.
const MAX_COUNTED: u64 = 20_000_000;

/// What is sent.
#[derive(Debug, Clone)]
pub struct Source {
    /// When, how long, of which flows.
    pub offer: Offer,
    /// Frames of a capture, sent instead of packets by rule: only their times are then the offer's.
    pub replay: Option<Replay>,
    /// Headers of packets.
    pub frames: FrameSpec,
    /// What random numbers come from.
    pub seed: u64,
}

impl Source {
    /// Whether it ends by itself: a list is sent once.
    pub fn ends(&self) -> bool {
        matches!(self.offer, Offer::Packets { offered: weir_traffic::Offered::Trace(_), .. })
    }
}

/// How a run goes.
#[derive(Debug, Clone)]
pub struct RigConfig {
    /// How long is sent, or recorded; none: until stopped, or the list is through.
    pub duration: Option<Duration>,
    /// How long is sent before packets count.
    pub warm_up: Duration,
    /// How long is waited for packets after the last one was sent, or had come.
    pub drain: Duration,
    /// The run's number, in the header of its packets; for recording alone the one that counts, or that of the first packet.
    pub run: Option<u16>,
    /// From when stamps count.
    pub epoch: Epoch,
    /// From which delay on packets count as having gone through the controller.
    pub threshold: Option<Duration>,
    /// Length of the intervals of the time series.
    pub every: Option<Duration>,
}

impl Default for RigConfig {
    fn default() -> Self {
        RigConfig {
            duration: Some(Duration::from_secs(10)),
            warm_up: Duration::ZERO,
            drain: Duration::from_millis(300),
            run: None,
            epoch: Epoch::Boot,
            threshold: None,
            every: None,
        }
    }
}

/// Ports, what is sent by them and what came.
pub struct Rig {
    config: RigConfig,
    clock: StampClock,
    pool: FramePool,
    batch: Vec<Frame>,
    /// Frames that came to the sink.
    arrived: Vec<Frame>,
    sender: Option<Sender>,
    sink: Option<Sink>,
    taps: Taps,
    /// The law that times between packets are tested against.
    law: Option<GapLaw>,
    run: Option<u16>,
    others: u64,
    series: Option<Series>,
}

struct Sink {
    port: Box<dyn Port>,
    /// Whether its frames say when they came.
    is_stamped: bool,
    recorder: Recorder,
}

impl Rig {
    /// A run that sends by `source` and its port, if there is one, and takes packets in from `sink` and taps (with their names).
    ///
    /// # Errors
    /// What is to be sent cannot be as described.
    pub fn new(
        config: RigConfig,
        source: Option<(Source, Box<dyn Port>)>,
        sink: Option<Box<dyn Port>>,
        taps: Vec<(String, Box<dyn Port>)>,
    ) -> Result<Rig, GeneratorError> {
        let clock = StampClock::start(config.epoch);
        let law = source.as_ref().and_then(|(source, _)| source.offer.gap_law());
        let run = match (&source, config.run) {
            // The time is as good as any number that other runs do not have.
            (Some(_), None) => Some(u16::try_from(clock.stamp(clock.now()) >> 10 & 0xffff).unwrap_or(0)),
            (_, run) => run,
        };
        let begin = clock.now() + LEAD;
        let sender =
            source.map(|(source, port)| Sender::new(source, port, &config, begin, run.unwrap_or(0))).transpose()?;
        let sink = sink.map(|mut port| {
            let is_stamped = port.stamp_arrivals(clock.clock());
            Sink { port, is_stamped, recorder: Recorder::default() }
        });
        let series = config.every.map(|every| Series::new(every, begin + config.warm_up));
        let (pool, batch, taps) = (FramePool::new(4096, 64), Vec::new(), Taps::new(taps, clock));
        let arrived = Vec::new();
        Ok(Rig { config, clock, pool, batch, arrived, sender, sink, taps, law, run, others: 0, series })
    }

    /// Sends and records until the end, or until `stop` says so. Rows of the time series are given to `row` when they are over.
    ///
    /// # Errors
    /// A port's device is gone: then there is no report.
    pub fn run(
        mut self,
        stop: &mut dyn FnMut() -> bool,
        row: &mut dyn FnMut(Interval),
    ) -> Result<Report, GeneratorError> {
        let started = self.clock.now();
        let (mut asked, mut last_came, mut partial) = (started, started, false);
        loop {
            let now = self.clock.now();
            if now.since(asked) >= ASK_EVERY {
                asked = now;
                if stop() {
                    partial = self.is_before_end(now, started);
                    break;
                }
                self.tell(now, row);
            }
            let sent = self.send(now)?;
            let came = self.receive()?;
            let now = self.clock.now();
            if sent > 0 || came {
                last_came = now;
            } else if self.is_over(now, started, last_came) {
                break;
            } else {
                self.wait(now);
            }
        }
        let now = self.clock.now();
        self.tell(now, row);
        if let Some(series) = &mut self.series {
            row(series.rest());
        }
        Ok(self.report(partial.then_some(now)))
    }

    /// Whether stopping at `now` cuts the run short.
    fn is_before_end(&self, now: Instant, started: Instant) -> bool {
        match &self.sender {
            Some(sender) => sender.due().is_some(),
            None => self.config.duration.is_some_and(|duration| now.since(started) < duration),
        }
    }

    fn is_over(&self, now: Instant, started: Instant, last_came: Instant) -> bool {
        match &self.sender {
            Some(sender) if sender.due().is_some() => false,
            Some(sender) => {
                let all_came = self.sink.as_ref().is_none_or(|sink| sink.recorder.received() >= sender.expected());
                all_came || now.since(last_came) >= self.config.drain
            }
            None => self.config.duration.is_some_and(|duration| now.since(started) >= duration),
        }
    }

    fn send(&mut self, now: Instant) -> Result<usize, GeneratorError> {
        let Some(sender) = &mut self.sender else { return Ok(0) };
        sender.send(now, &self.clock, &mut self.pool, &mut self.batch, self.series.as_mut())
    }

    /// Takes in what came; whether anything did.
    fn receive(&mut self) -> Result<bool, GeneratorError> {
        let mut came = false;
        if let Some(sink) = &mut self.sink {
            sink.port.receive(self.clock.now(), &mut self.pool, &mut self.arrived, BURST)?;
        }
        let now = self.clock.now();
        // Whatever has come passed the taps before: they are to say so before it counts as ended.
        came |= self.taps.receive(self.run, &mut self.pool, &mut self.batch)?;
        if let Some(sink) = &mut self.sink {
            for frame in self.arrived.drain(..) {
                came = true;
                let at = if sink.is_stamped { Instant::from_nanos(frame.arrived()).min(now) } else { now };
                let now_ns = self.clock.stamp(at);
                match Probe::find(frame.bytes(), self.run) {
                    Some(probe) => {
                        self.run = Some(probe.run);
                        let recording = sink.recorder.record(now_ns, &probe, frame.bytes_len());
                        if let Some(series) = &mut self.series {
                            series.came(recording, frame.bytes_len());
                        }
                        if matches!(recording, Recording::Fresh(_)) && self.taps.ports().next().is_some() {
                            self.taps.path.ended(&probe, now_ns);
                        }
                    }
                    None => self.others += 1,
                }
                self.pool.give(frame);
            }
        }
        Ok(came)
    }

    /// Sleeps if there is time to, until something comes.
    fn wait(&mut self, now: Instant) {
        let due = self.sender.as_ref().and_then(|sender| sender.due());
        let time = due.map_or(NAP, |due| due.since(now).saturating_sub(AWAKE_BEFORE)).min(NAP);
        if time.is_zero() {
            std::hint::spin_loop();
            return;
        }
        let sink = self.sink.as_mut().map(|sink| &mut sink.port);
        let mut ports: Vec<&mut Box<dyn Port>> = sink.into_iter().chain(self.taps.ports()).collect();
        if ports.iter_mut().any(|port| port.arm() == Ready::Now) {
            return;
        }
        let wakes = ports.iter().filter_map(|port| port.next_wake()).min();
        let time = wakes.map_or(time, |wake| wake.since(now).min(time));
        let descriptors: Vec<_> = ports.iter().filter_map(|port| port.fd()).collect();
        event::wait_any(&descriptors, Some(time));
    }

    /// Gives rows of the time series that are over.
    fn tell(&mut self, now: Instant, row: &mut dyn FnMut(Interval)) {
        while let Some(over) = self.series.as_mut().and_then(|series| series.next_over(now)) {
            row(over);
        }
    }

    /// `stopped`: when, if it was before the end.
    fn report(mut self, stopped: Option<Instant>) -> Report {
        let sent = self.sender.as_mut().map(|sender| sender.report(self.law.as_ref(), stopped));
        let replay = self.sender.as_ref().and_then(|sender| sender.source.replay.as_ref());
        let has_headers = replay.is_none_or(Replay::has_headers);
        // Between packets with headers there may be others.
        let law = self.law.as_ref().filter(|_| replay.is_none_or(Replay::is_whole));
        let count = self.sender.as_ref().map(Sender::expected);
        let recorded = self.sink.as_ref().map(|sink| sink.recorder.report(count, law, self.config.threshold));
        let mut ports = BTreeMap::new();
        let own = self.sender.iter().map(|sender| &sender.port).chain(self.sink.iter().map(|sink| &sink.port));
        ports.extend(own.map(|port| (port.info().spec.clone(), port.counters())));
        let is_tapped = self.taps.ports().next().is_some();
        self.taps.counters(&mut ports);
        Report {
            partial: stopped.is_some(),
            sent,
            received: recorded.filter(|_| has_headers),
            path: is_tapped.then(|| self.taps.path.report()),
            net: None,
            others: self.others,
            ports,
        }
    }
}

/// Sends packets at their times.
struct Sender {
    source: Source,
    port: Box<dyn Port>,
    schedule: Schedule,
    template: Template,
    run: u16,
    is_wall: bool,
    /// When packets begin to count, and when it ends.
    counts_from: Instant,
    until: Instant,
    /// The next packet; none: all were sent.
    next: Option<Planned>,
    /// Whether the end has come, also if packets that were due are left.
    is_over: bool,
    /// When the last packet was to be sent.
    last: Instant,
    /// Numbers of packets given so far.
    number: u64,
    sent: u64,
    bytes: u64,
    new_flows: u64,
    /// Packets that count and carry a header, where not all do.
    marked: u64,
    late: Delays,
    gaps: Gaps,
}

impl Sender {
    fn new(
        source: Source,
        port: Box<dyn Port>,
        config: &RigConfig,
        begin: Instant,
        run: u16,
    ) -> Result<Sender, GeneratorError> {
        let mut schedule = Schedule::new(&source.offer, begin, source.seed)?;
        let template = Template::new(&source.frames)?;
        if source.replay.is_none() {
            check_lengths(&source.offer, &template, &*port)?;
        }
        let counts_from = begin + config.warm_up;
        let until = config.duration.map_or(Instant::FAR, |duration| counts_from + duration);
        let next = schedule.next_packet().filter(|packet| packet.at < until);
        let (late, gaps, is_wall) = (Delays::default(), Gaps::default(), config.epoch == Epoch::Wall);
        let (number, sent, bytes, new_flows, marked) = (0, 0, 0, 0, 0);
        let (is_over, last) = (false, begin);
        Ok(Sender {
            source,
            port,
            schedule,
            template,
            run,
            is_wall,
            counts_from,
            until,
            next,
            is_over,
            number,
            sent,
            bytes,
            new_flows,
            marked,
            late,
            gaps,
            last,
        })
    }

    /// Packets whose recorder is to see them.
    fn expected(&self) -> u64 {
        if self.source.replay.as_ref().is_some_and(Replay::has_headers) { self.marked } else { self.sent }
    }

    /// When the next packet is to be sent; none: no more are.
    fn due(&self) -> Option<Instant> {
        self.next.filter(|_| !self.is_over).map(|next| next.at)
    }

    /// Sends what is due; how many.
    fn send(
        &mut self,
        mut now: Instant,
        clock: &StampClock,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        mut series: Option<&mut Series>,
    ) -> Result<usize, GeneratorError> {
        while batch.len() < BURST
            && let Some(planned) = self.next.filter(|planned| planned.at <= now && !self.is_over)
        {
            now = clock.now();
            let counts = planned.at >= self.counts_from;
            batch.push(self.frame(&planned, clock.stamp(now), counts, pool));
            if counts {
                self.account(&planned, now, batch.last().map_or(0, |frame| frame.len() as u64));
                series.iter_mut().for_each(|series| series.sent());
            }
            self.last = planned.at;
            self.next = self.schedule.next_packet().filter(|packet| packet.at < self.until);
        }
        self.is_over |= now >= self.until;
        let count = batch.len();
        self.port.transmit(now, pool, batch)?;
        Ok(count)
    }

    fn frame(&mut self, planned: &Planned, sent_ns: u64, counts: bool, pool: &mut FramePool) -> Frame {
        let number = self.number;
        self.number += 1;
        // Packets that count are numbered from 0, so that their recorder knows how many there are.
        let counted = if self.source.replay.is_some() { self.marked } else { self.sent };
        #[expect(clippy::cast_possible_truncation, reason = "numbers begin again after 2^32")]
        let sequence = if counts { counted as u32 } else { number as u32 };
        if let Some(replay) = &self.source.replay {
            let probe = Probe { run: self.run, sequence, sent_ns, is_new_flow: false, counts, is_wall: self.is_wall };
            let mut frame = replay.frame(number, pool);
            replay.mark(number, &mut frame, &probe);
            self.marked += u64::from(counts && replay.place(number).is_some());
            return frame;
        }
        let is_new_flow = planned.is_new_flow;
        let probe = Probe { run: self.run, sequence, sent_ns, is_new_flow, counts, is_wall: self.is_wall };
        self.template.frame(planned, &probe, pool)
    }

    fn account(&mut self, planned: &Planned, now: Instant, bytes: u64) {
        self.sent += 1;
        self.bytes += bytes;
        self.new_flows += u64::from(planned.is_new_flow);
        self.late.record(now.since(planned.at));
        self.gaps.record(planned.at.as_nanos(), now.as_nanos());
    }

    /// Packets that were due before `end` and were not sent.
    fn missed(&mut self, end: Instant) -> u64 {
        let mut missed = 0;
        while missed < MAX_COUNTED && self.next.is_some_and(|packet| packet.at < end) {
            missed += u64::from(self.next.is_some_and(|packet| packet.at >= self.counts_from));
            self.next = self.schedule.next_packet();
        }
        missed
    }

    /// `stopped`: when, if it was before the end.
    fn report(&mut self, law: Option<&GapLaw>, stopped: Option<Instant>) -> SentReport {
        let planned = if self.until == Instant::FAR { self.last } else { self.until };
        let end = stopped.map_or(planned, |at| at.min(self.until));
        let duration_s = end.since(self.counts_from).as_secs_f64();
        let missed = self.missed(end);
        SentReport {
            offered: self.sent + missed,
            sent: self.sent,
            bytes: self.bytes,
            without_header: self.sent - self.expected(),
            refused: self.port.counters().tx_dropped(),
            new_flows: self.new_flows,
            refused_flows: self.schedule.refused_flows(),
            duration_s,
            offered_pps: self.source.offer.per_second(),
            sent_pps: if duration_s > 0.0 { self.sent as f64 / duration_s } else { 0.0 },
            late: self.late.summary(),
            late_share: self.late.share_above(LATE),
            gaps: self.gaps.quality(law),
            seed: self.source.seed,
            run: self.run,
        }
    }
}

/// Packets must have room for their headers, and fit the port.
fn check_lengths(offer: &Offer, template: &Template, port: &dyn Port) -> Result<(), GeneratorError> {
    let Some([shortest, longest]) = offer.lengths()? else { return Ok(()) };
    let least = template.least();
    // Exponential sizes begin at one byte and have no end: they are rounded to what can be sent.
    if shortest == 1 && longest == weir_traffic::MAX_BYTES {
        return Ok(());
    }
    if (shortest as usize) < least {
        let expected = format!("at least {least}: what its headers take");
        return Err(GeneratorError::wrong("sizes", format!("packets of {shortest} bytes"), expected));
    }
    let most = port.info().mtu.saturating_add(18);
    if longest > most {
        let expected = format!("at most {most}, what port {} carries with its headers", port.info().spec);
        return Err(GeneratorError::wrong("sizes", format!("packets of {longest} bytes"), expected));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
