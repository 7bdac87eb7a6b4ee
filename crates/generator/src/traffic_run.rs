//! Runs a measurement in one thread: sends packets at their times, and receives from sink and taps in between.
use crate::frames::ProbeFrameTemplate;
use crate::taps::PathTaps;
use crate::{CaptureReplay, Epoch, FrameSpec, GeneratorError, SentReport, StampClock, TrafficRunReport};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_packet::{Frame, FramePool};
use weir_port::{Port, ReceiveReadiness, event};
use weir_traffic::recorder::{IntervalSeries, IntervalStatistics, ReceptionKind};
use weir_traffic::{
    GapLaw, GapRecorder, OfferedTraffic, PacketSchedule, ProbeHeader, ProbeRecorder, ScheduledPacket, TimeHistogram,
};
use weir_units::Instant;

/// Maximum number of packets sent, and of frames received, at a time.
const BURST: usize = 32;
/// Time before a due packet at which sleeping ends, because waking up takes the system part of it.
const AWAKE_BEFORE: Duration = Duration::from_micros(200);
/// Maximum duration of a sleep, so that a stop is noticed.
const NAP: Duration = Duration::from_millis(20);
/// Interval of checking whether to stop.
const ASK_EVERY: Duration = Duration::from_millis(1);
/// Time from opening the ports to the first packet: the peers may have to notice that the link is up.
const LEAD: Duration = Duration::from_millis(2);
/// Delay behind plan from which packets count as late in `late_share`.
const LATE: Duration = Duration::from_micros(10);
/// Maximum number of due but unsent packets that are counted.
const MAX_COUNTED: u64 = 20_000_000;

/// Traffic to send.
#[derive(Debug, Clone)]
pub struct TrafficSenderConfig {
    /// Arrival times, lengths and flows of the packets.
    pub offer: OfferedTraffic,
    /// Frames of a capture, sent instead of generated packets; only the times are then taken from `offer`.
    pub replay: Option<CaptureReplay>,
    /// Header fields of generated packets.
    pub frames: FrameSpec,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl TrafficSenderConfig {
    /// Returns true if the traffic ends by itself: a trace is sent once.
    pub fn ends(&self) -> bool {
        matches!(self.offer, OfferedTraffic::Packets { offered: weir_traffic::OfferedPackets::Trace(_), .. })
    }
}

/// Parameters of a run.
#[derive(Debug, Clone)]
pub struct TrafficRunConfig {
    /// Duration of sending or recording; `None`: until stopped, or until the trace ends.
    pub duration: Option<Duration>,
    /// Duration of sending before packets count.
    pub warm_up: Duration,
    /// Time to wait for packets after the last one was sent or received.
    pub drain: Duration,
    /// Number of the run, in the header of its packets. When only recording: the run to record; `None`: that of the
    /// first packet.
    pub run: Option<u16>,
    /// Epoch of the timestamps.
    pub epoch: Epoch,
    /// Delay above which packets count as having gone through the controller.
    pub threshold: Option<Duration>,
    /// Length of the intervals of the time series; `None`: no series.
    pub every: Option<Duration>,
}

impl Default for TrafficRunConfig {
    fn default() -> Self {
        TrafficRunConfig {
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

/// A run: its ports, sender, recorder and taps.
pub struct TrafficRun {
    config: TrafficRunConfig,
    clock: StampClock,
    pool: FramePool,
    batch: Vec<Frame>,
    /// Frames received by the sink.
    arrived: Vec<Frame>,
    sender: Option<TrafficSender>,
    sink: Option<RecordingPort>,
    taps: PathTaps,
    /// Law that times between packets are tested against.
    law: Option<GapLaw>,
    run: Option<u16>,
    others: u64,
    series: Option<IntervalSeries>,
}

struct RecordingPort {
    port: Box<dyn Port>,
    /// True if the port's frames carry their arrival time.
    is_stamped: bool,
    recorder: ProbeRecorder,
}

impl TrafficRun {
    /// Creates a run that sends `source` on its port, if given, and receives packets from `sink` and from the named
    /// taps.
    ///
    /// # Errors
    /// The traffic description is not valid.
    pub fn new(
        config: TrafficRunConfig,
        source: Option<(TrafficSenderConfig, Box<dyn Port>)>,
        sink: Option<Box<dyn Port>>,
        taps: Vec<(String, Box<dyn Port>)>,
    ) -> Result<TrafficRun, GeneratorError> {
        let clock = StampClock::start(config.epoch);
        let law = source.as_ref().and_then(|(source, _)| source.offer.gap_law());
        let run = match (&source, config.run) {
            // The time serves as a number that other runs are unlikely to have.
            (Some(_), None) => Some(u16::try_from(clock.stamp(clock.now()) >> 10 & 0xffff).unwrap_or(0)),
            (_, run) => run,
        };
        let begin = clock.now() + LEAD;
        let sender = source
            .map(|(source, port)| TrafficSender::new(source, port, &config, begin, run.unwrap_or(0)))
            .transpose()?;
        let sink = sink.map(|mut port| {
            let is_stamped = port.stamp_arrivals(clock.clock());
            RecordingPort { port, is_stamped, recorder: ProbeRecorder::default() }
        });
        let series = config.every.map(|every| IntervalSeries::new(every, begin + config.warm_up));
        let (pool, batch, taps) = (FramePool::new(4096, 64), Vec::new(), PathTaps::new(taps, clock));
        let arrived = Vec::new();
        Ok(TrafficRun { config, clock, pool, batch, arrived, sender, sink, taps, law, run, others: 0, series })
    }

    /// Sends and records until the end, or until `stop` returns true. Passes rows of the time series to `row` when
    /// they are complete.
    ///
    /// # Errors
    /// A port's device is gone: then there is no report.
    pub fn run(
        mut self,
        stop: &mut dyn FnMut() -> bool,
        row: &mut dyn FnMut(IntervalStatistics),
    ) -> Result<TrafficRunReport, GeneratorError> {
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

    /// Returns true if stopping at `now` cuts the run short.
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

    /// Receives from the sink and the taps. Returns true if any frame arrived.
    fn receive(&mut self) -> Result<bool, GeneratorError> {
        let mut came = false;
        if let Some(sink) = &mut self.sink {
            sink.port.receive(self.clock.now(), &mut self.pool, &mut self.arrived, BURST)?;
        }
        let now = self.clock.now();
        // Received packets passed the taps earlier, so the taps are read before packets count as arrived.
        came |= self.taps.receive(self.run, &mut self.pool, &mut self.batch)?;
        if let Some(sink) = &mut self.sink {
            for frame in self.arrived.drain(..) {
                came = true;
                let at = if sink.is_stamped { Instant::from_nanos(frame.arrived()).min(now) } else { now };
                let now_ns = self.clock.stamp(at);
                match ProbeHeader::find(frame.bytes(), self.run) {
                    Some(probe) => {
                        self.run = Some(probe.run);
                        let recording = sink.recorder.record(now_ns, &probe, frame.bytes_len());
                        if let Some(series) = &mut self.series {
                            series.came(recording, frame.bytes_len());
                        }
                        if matches!(recording, ReceptionKind::Fresh(_)) && self.taps.ports().next().is_some() {
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

    /// Sleeps, if there is time before the next packet, until a frame arrives.
    fn wait(&mut self, now: Instant) {
        let due = self.sender.as_ref().and_then(|sender| sender.due());
        let time = due.map_or(NAP, |due| due.since(now).saturating_sub(AWAKE_BEFORE)).min(NAP);
        if time.is_zero() {
            std::hint::spin_loop();
            return;
        }
        let sink = self.sink.as_mut().map(|sink| &mut sink.port);
        let mut ports: Vec<&mut Box<dyn Port>> = sink.into_iter().chain(self.taps.ports()).collect();
        if ports.iter_mut().any(|port| port.arm() == ReceiveReadiness::Now) {
            return;
        }
        let wakes = ports.iter().filter_map(|port| port.next_wake()).min();
        let time = wakes.map_or(time, |wake| wake.since(now).min(time));
        let descriptors: Vec<_> = ports.iter().filter_map(|port| port.fd()).collect();
        event::wait_any(&descriptors, Some(time));
    }

    /// Passes completed rows of the time series to `row`.
    fn tell(&mut self, now: Instant, row: &mut dyn FnMut(IntervalStatistics)) {
        while let Some(over) = self.series.as_mut().and_then(|series| series.next_over(now)) {
            row(over);
        }
    }

    /// Returns the report. `stopped` is the time of an early stop.
    fn report(mut self, stopped: Option<Instant>) -> TrafficRunReport {
        let sent = self.sender.as_mut().map(|sender| sender.report(self.law.as_ref(), stopped));
        let replay = self.sender.as_ref().and_then(|sender| sender.source.replay.as_ref());
        let has_headers = replay.is_none_or(CaptureReplay::has_headers);
        // Frames without a header may lie between those with one, so the law does not apply.
        let law = self.law.as_ref().filter(|_| replay.is_none_or(CaptureReplay::is_whole));
        let count = self.sender.as_ref().map(TrafficSender::expected);
        let recorded = self.sink.as_ref().map(|sink| sink.recorder.report(count, law, self.config.threshold));
        let mut ports = BTreeMap::new();
        let own = self.sender.iter().map(|sender| &sender.port).chain(self.sink.iter().map(|sink| &sink.port));
        ports.extend(own.map(|port| (port.info().spec.clone(), port.counters())));
        let is_tapped = self.taps.ports().next().is_some();
        self.taps.counters(&mut ports);
        TrafficRunReport {
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
struct TrafficSender {
    source: TrafficSenderConfig,
    port: Box<dyn Port>,
    schedule: PacketSchedule,
    template: ProbeFrameTemplate,
    run: u16,
    is_wall: bool,
    /// Time at which packets begin to count, then the time at which sending ends.
    counts_from: Instant,
    until: Instant,
    /// Next packet; `None` if all packets were sent.
    next: Option<ScheduledPacket>,
    /// True if the end has been reached, even if due packets are left.
    is_over: bool,
    /// Planned time of the last packet sent.
    last: Instant,
    /// Number of packets sent so far, warm-up included.
    number: u64,
    sent: u64,
    bytes: u64,
    new_flows: u64,
    /// Counted packets that carry a header, where not all do.
    marked: u64,
    late: TimeHistogram,
    gaps: GapRecorder,
}

impl TrafficSender {
    fn new(
        source: TrafficSenderConfig,
        port: Box<dyn Port>,
        config: &TrafficRunConfig,
        begin: Instant,
        run: u16,
    ) -> Result<TrafficSender, GeneratorError> {
        let mut schedule = PacketSchedule::new(&source.offer, begin, source.seed)?;
        let template = ProbeFrameTemplate::new(&source.frames)?;
        if source.replay.is_none() {
            check_lengths(&source.offer, &template, &*port)?;
        }
        let counts_from = begin + config.warm_up;
        let until = config.duration.map_or(Instant::FAR, |duration| counts_from + duration);
        let next = schedule.next_packet().filter(|packet| packet.at < until);
        let (late, gaps, is_wall) = (TimeHistogram::default(), GapRecorder::default(), config.epoch == Epoch::Wall);
        let (number, sent, bytes, new_flows, marked) = (0, 0, 0, 0, 0);
        let (is_over, last) = (false, begin);
        Ok(TrafficSender {
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

    /// Returns the number of packets that the recorder should receive.
    fn expected(&self) -> u64 {
        if self.source.replay.as_ref().is_some_and(CaptureReplay::has_headers) { self.marked } else { self.sent }
    }

    /// Returns when the next packet is due; `None` if there is none.
    fn due(&self) -> Option<Instant> {
        self.next.filter(|_| !self.is_over).map(|next| next.at)
    }

    /// Sends the packets that are due. Returns their number.
    fn send(
        &mut self,
        mut now: Instant,
        clock: &StampClock,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        mut series: Option<&mut IntervalSeries>,
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

    fn frame(&mut self, planned: &ScheduledPacket, sent_ns: u64, counts: bool, pool: &mut FramePool) -> Frame {
        let number = self.number;
        self.number += 1;
        // Counted packets are numbered from 0, so that their recorder knows how many there are.
        let counted = if self.source.replay.is_some() { self.marked } else { self.sent };
        #[expect(clippy::cast_possible_truncation, reason = "numbers begin again after 2^32")]
        let sequence = if counts { counted as u32 } else { number as u32 };
        if let Some(replay) = &self.source.replay {
            let probe =
                ProbeHeader { run: self.run, sequence, sent_ns, is_new_flow: false, counts, is_wall: self.is_wall };
            let mut frame = replay.frame(number, pool);
            replay.mark(number, &mut frame, &probe);
            self.marked += u64::from(counts && replay.place(number).is_some());
            return frame;
        }
        let is_new_flow = planned.is_new_flow;
        let probe = ProbeHeader { run: self.run, sequence, sent_ns, is_new_flow, counts, is_wall: self.is_wall };
        self.template.frame(planned, &probe, pool)
    }

    fn account(&mut self, planned: &ScheduledPacket, now: Instant, bytes: u64) {
        self.sent += 1;
        self.bytes += bytes;
        self.new_flows += u64::from(planned.is_new_flow);
        self.late.record(now.since(planned.at));
        self.gaps.record(planned.at.as_nanos(), now.as_nanos());
    }

    /// Returns the number of packets due before `end` that were not sent.
    fn missed(&mut self, end: Instant) -> u64 {
        let mut missed = 0;
        while missed < MAX_COUNTED && self.next.is_some_and(|packet| packet.at < end) {
            missed += u64::from(self.next.is_some_and(|packet| packet.at >= self.counts_from));
            self.next = self.schedule.next_packet();
        }
        missed
    }

    /// Returns the report. `stopped` is the time of an early stop.
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

/// Checks that packets have room for their headers and fit the port.
fn check_lengths(offer: &OfferedTraffic, template: &ProbeFrameTemplate, port: &dyn Port) -> Result<(), GeneratorError> {
    let Some([shortest, longest]) = offer.lengths()? else { return Ok(()) };
    let least = template.least();
    // Exponential lengths begin at one byte and are unbounded: they are clamped to valid lengths when sent.
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
