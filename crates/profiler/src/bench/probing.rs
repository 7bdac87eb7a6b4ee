//! Sends packets and measures their delays.
use super::TestBench;
use crate::device::DeviceEvent;
use crate::rules::{SHORTEST, TestFlowEntry};
use crate::{MeasurementSettings, ProfilerError};
use std::time::Duration;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_traffic::ProbeHeader;
use weir_units::Instant;

/// Time to wait for the last packets.
const DRAIN: Duration = Duration::from_millis(100);

/// Time to wait for the first packets, while their delay is unknown.
const FIRST: Duration = Duration::from_millis(500);
/// Packets after which sending ends if none came back.
const ALL_LOST: usize = 20;
/// Largest delay of sending that is made up for.
const HELD_UP: Duration = Duration::from_millis(1);

/// Packets without an entry that are sent before one with an entry, and repetitions.
const WITHOUT: u32 = 8;
const WITHOUT_RUNS: usize = 5;

/// Packet to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedProbe {
    pub(crate) rule: TestFlowEntry,
    pub(crate) bytes: u32,
    /// Time after the previous packet.
    pub(crate) gap: Duration,
}

impl TestBench<'_> {
    /// Sends packets by the first interface. Returns their delays in seconds; none for packets that did not come
    /// back.
    pub(crate) fn delays(&mut self, packets: &[PlannedProbe]) -> Result<Vec<Option<f64>>, ProfilerError> {
        Ok(self.offered(packets)?.0)
    }

    /// Sends packets one at a time: each after the previous one has come back, and not before its due time. No packet
    /// waits for another, however long they take. Returns delays in seconds; none for packets that did not come back.
    pub(crate) fn one_by_one(&mut self, packets: &[PlannedProbe]) -> Result<Vec<Option<f64>>, ProfilerError> {
        let mut found: Vec<Option<f64>> = Vec::with_capacity(packets.len());
        let (mut slowest, mut lost) = (Duration::ZERO, 0);
        for packet in packets {
            let started = self.device.now();
            // The delay is unknown until a first packet has come back.
            let drain = if slowest.is_zero() { FIRST } else { FIRST.min(DRAIN * 3).max(slowest * 8) };
            let delay = self.offer(std::slice::from_ref(packet), drain)?.0.pop().flatten();
            match delay {
                Some(s) => slowest = slowest.max(Duration::try_from_secs_f64(s).unwrap_or_default()),
                None => lost += 1,
            }
            found.push(delay);
            if lost >= ALL_LOST && slowest.is_zero() {
                break;
            }
            self.rest(packet.gap.saturating_sub(self.device.now().since(started)))?;
        }
        found.resize(packets.len(), None);
        Ok(found)
    }

    /// Sends packets by the first interface. Returns their delays in seconds, none for packets that did not come back,
    /// and their sending times.
    pub(crate) fn timed_delays(
        &mut self,
        packets: &[PlannedProbe],
    ) -> Result<(Vec<Option<f64>>, Vec<Instant>), ProfilerError> {
        self.offer(packets, DRAIN.max(self.forwarding() * 8))
    }

    /// Sends packets by the first interface. Returns their delays in seconds and the sending time of the last one.
    fn offered(&mut self, packets: &[PlannedProbe]) -> Result<(Vec<Option<f64>>, Instant), ProfilerError> {
        let (delays, sent) = self.timed_delays(packets)?;
        Ok((delays, sent.last().copied().unwrap_or(self.device.now())))
    }

    /// Sends packets at once. Returns the mean time between the arrivals of those that came back, in seconds: the time
    /// for which each occupies the switch, or the time that sending takes. None if fewer than two came back.
    pub(crate) fn together(&mut self, packets: &[PlannedProbe]) -> Result<Option<f64>, ProfilerError> {
        let counted = self.sent;
        let (delays, sent) = self.timed_delays(packets)?;
        self.sent = counted;
        let Some(first) = sent.first() else { return Ok(None) };
        let arrived = |(delay, sent): (&Option<f64>, &Instant)| delay.map(|s| sent.since(*first).as_secs_f64() + s);
        let mut came: Vec<f64> = delays.iter().zip(&sent).filter_map(arrived).collect();
        came.sort_by(f64::total_cmp);
        let (Some(from), Some(to), 2..) = (came.first(), came.last(), came.len()) else { return Ok(None) };
        Ok(Some((to - from) / (came.len() - 1) as f64))
    }

    /// Sends packets as a trial of RFC 2544. Its rate may exceed what the machine can send, so late packets do not
    /// count as a sign of a busy machine.
    pub(crate) fn trial(&mut self, packets: &[PlannedProbe]) -> Result<(Vec<Option<f64>>, Instant), ProfilerError> {
        let counted = self.sent;
        let made = self.offered(packets);
        self.sent = counted;
        made
    }

    /// Sends packets, and waits `drain` for the last ones to come back. Returns their delays and sending times.
    fn offer(
        &mut self,
        packets: &[PlannedProbe],
        drain: Duration,
    ) -> Result<(Vec<Option<f64>>, Vec<Instant>), ProfilerError> {
        self.check_stop()?;
        let run = self.next_run();
        let mut found: Vec<Option<f64>> = vec![None; packets.len()];
        let mut sent: Vec<Instant> = Vec::with_capacity(packets.len());
        let mut due = self.device.now();
        let (mut came, mut over) = (0, Instant::FAR);
        while came < packets.len() {
            let now = self.device.now();
            if let Some(packet) = packets.get(sent.len()).filter(|_| now >= due) {
                self.note_sent(due, now);
                let sequence = u32::try_from(sent.len()).unwrap_or(u32::MAX);
                let mark = ProbeHeader {
                    run,
                    sequence,
                    sent_ns: now.as_nanos(),
                    is_new_flow: false,
                    counts: true,
                    is_wall: false,
                };
                let frame = packet.rule.packet(packet.bytes, &mark);
                let at = self.device.now();
                sent.push(self.device.transmit(0, &frame)?.unwrap_or(at));
                self.note(packet.rule, frame.len());
                self.note_flow(&packet.rule);
                due += packets.get(sent.len()).map_or(Duration::ZERO, |next| next.gap);
                // After a delay, missed packets are not sent all at once.
                due = due.max(now - HELD_UP);
                if sent.len() == packets.len() {
                    over = now + drain;
                }
                continue;
            }
            if now >= over {
                break;
            }
            let until = if sent.len() < packets.len() { due } else { over };
            if let Some(DeviceEvent::Frame { at, bytes, .. }) = self.device.wait(until)?
                && let Some(mark) = ProbeHeader::find(&bytes, Some(run))
                && let (Some(delay), Some(sent)) =
                    (found.get_mut(mark.sequence as usize), sent.get(mark.sequence as usize))
                && delay.is_none()
            {
                *delay = Some(at.since(*sent).as_secs_f64());
                came += 1;
            }
        }
        Ok((found, sent))
    }

    /// Records a matched entry in the tables. Packets match entries in sending order, however long each takes.
    fn note(&mut self, rule: TestFlowEntry, bytes: usize) {
        if let Some(tables) = &mut self.tables {
            tables.matched(rule.number.into(), u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    /// Sets the forwarding time of each level, and the time that a packet without an entry occupies the switch, both
    /// in seconds. Without the latter, the time of the slowest level is used.
    pub(crate) fn knows_forwarding(&mut self, delays_s: &[f64], missing_s: Option<f64>) {
        let time = |s: f64| Duration::try_from_secs_f64(s).unwrap_or_default().min(self.settings.patience);
        self.forwarding = delays_s.iter().copied().map(time).collect();
        self.missing = missing_s.map_or_else(|| self.forwarding(), time);
    }

    /// Measures how long a packet without an entry occupies the switch, in seconds: packets of `rule` are sent alone,
    /// and behind some packets without an entry. Returns none if the packets of `rule` do not come back.
    pub(crate) fn missing(&mut self, rule: TestFlowEntry) -> Result<Option<f64>, ProfilerError> {
        let one = |rule| PlannedProbe { rule, bytes: SHORTEST, gap: Duration::ZERO };
        let behind: Vec<PlannedProbe> =
            [vec![one(MeasurementSettings::any_rule()); WITHOUT as usize], vec![one(rule)]].concat();
        let mut kept = Vec::with_capacity(WITHOUT_RUNS);
        for _ in 0..WITHOUT_RUNS {
            let alone = self.delays(&[one(rule)])?.pop().flatten();
            let behind = self.offer(&behind, DRAIN.max(self.forwarding() * 4 * WITHOUT))?.0.pop().flatten();
            kept.extend(alone.zip(behind).map(|(alone, behind)| (behind - alone).max(0.0) / f64::from(WITHOUT)));
        }
        Ok(if kept.is_empty() { None } else { Some(MedianAndSpread::of(&kept)?.median) })
    }

    /// Returns the longest forwarding time of all levels.
    pub(crate) fn forwarding(&self) -> Duration {
        self.forwarding.iter().max().copied().unwrap_or_default()
    }

    /// Returns the forwarding time of the entry's level.
    pub(crate) fn forwarding_of(&self, rule: &TestFlowEntry) -> Duration {
        let level = self.tables.as_ref().and_then(|tables| tables.level_of(rule.number.into()));
        level.and_then(|level| self.forwarding.get(level).copied()).unwrap_or_else(|| self.forwarding())
    }
}
