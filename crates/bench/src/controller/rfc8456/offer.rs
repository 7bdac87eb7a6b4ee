//! Traffic of the test traffic generators: hosts that make themselves known, and streams of frames by rule.
use super::frames::{self, FrameNumber, HostPlace, TestHost};
use super::seen::ArrivalLog;
use std::time::Duration;
use weir_units::Instant;

/// Time without an arrival after which the frames on the way count as lost, so that a window opens again.
const STUCK: Duration = Duration::from_secs(1);
/// Time without an arrival after which announcements count as lost, which some controllers do not pass on.
const STUCK_ANNOUNCEMENTS: Duration = Duration::from_millis(200);

/// Addresses of the frames of a stream, by sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfferedHosts {
    /// A new source and a new destination for each frame (sections 5.1.4 and 5.1.6).
    NewPairs,
    /// New sources, one destination (section 5.4.1).
    NewSources,
    /// A single source and destination (section 5.4.2).
    OnePair,
    /// Pairs, so many in turn (section 5.1.7).
    Pairs(u32),
    /// Announcements of hosts instead of test traffic (G-ARP of Appendix A).
    Announcements,
}

/// Times of the frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum OfferedPace {
    /// A frame after each interval, whatever arrives.
    Every(Duration),
    /// Frames on the way, so many at once.
    Window(u32),
}

/// A stream of frames.
#[derive(Debug, Clone)]
pub(super) struct OfferedStream {
    /// Sending generator: TP1 (0) or TP2 (1).
    pub(super) generator: usize,
    pub(super) stream: u32,
    pub(super) hosts: OfferedHosts,
    /// Number of the first host of the stream.
    pub(super) base: u32,
    pub(super) frame_bytes: usize,
    pub(super) pace: OfferedPace,
    /// Most frames.
    pub(super) count: u32,
    /// Frames that were sent.
    pub(super) sent: u32,
    due: Instant,
    /// Arrivals at the last progress, and its time; frames given up.
    arrived: u32,
    progressed: Instant,
    given_up: u32,
}

impl OfferedStream {
    /// Returns a stream that begins at `now`.
    pub(super) fn new(
        now: Instant,
        (generator, stream): (usize, u32),
        (hosts, base): (OfferedHosts, u32),
        (pace, count): (OfferedPace, u32),
        frame_bytes: usize,
    ) -> OfferedStream {
        OfferedStream {
            generator,
            stream,
            hosts,
            base,
            frame_bytes,
            pace,
            count,
            sent: 0,
            due: now,
            arrived: 0,
            progressed: now,
            given_up: 0,
        }
    }

    /// Returns the next frame if one is due. `arrivals` is the log of the other generator.
    pub(super) fn next(&mut self, now: Instant, arrivals: &ArrivalLog) -> Option<Vec<u8>> {
        if self.sent >= self.count {
            return None;
        }
        match self.pace {
            OfferedPace::Every(interval) => {
                if now < self.due {
                    return None;
                }
                self.due += interval;
            }
            OfferedPace::Window(window) => {
                let arrived = self.progress(arrivals);
                if arrived != self.arrived {
                    self.arrived = arrived;
                    self.progressed = now;
                }
                let waiting = self.sent.saturating_sub(arrived.max(self.given_up));
                if waiting >= window {
                    if now.since(self.progressed) < self.stuck() {
                        return None;
                    }
                    self.given_up = self.sent;
                    self.progressed = now;
                }
            }
        }
        self.sent += 1;
        Some(self.frame(self.sent - 1))
    }

    fn stuck(&self) -> Duration {
        if self.hosts == OfferedHosts::Announcements { STUCK_ANNOUNCEMENTS } else { STUCK }
    }

    fn progress(&self, arrivals: &ArrivalLog) -> u32 {
        let count = match self.hosts {
            OfferedHosts::Announcements => arrivals.announcements,
            _ => arrivals.unique() as u64,
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Returns the time at which the next frame may be due; `None` after the last one.
    pub(super) fn due(&self) -> Option<Instant> {
        let at = match self.pace {
            OfferedPace::Every(_) => self.due,
            OfferedPace::Window(_) => self.progressed + self.stuck(),
        };
        (self.sent < self.count).then_some(at)
    }

    /// Returns the hosts of a frame: its source and its destination.
    pub(super) fn pair(&self, sequence: u32) -> [TestHost; 2] {
        let (source, destination) = match self.hosts {
            OfferedHosts::NewPairs | OfferedHosts::Announcements => (sequence, sequence),
            OfferedHosts::NewSources => (sequence, 0),
            OfferedHosts::OnePair => (0, 0),
            OfferedHosts::Pairs(count) => (sequence % count.max(1), sequence % count.max(1)),
        };
        let host = |generator, number| TestHost {
            place: HostPlace::Generator(generator),
            number: self.base.wrapping_add(number) & 0xff_ffff,
        };
        [host(self.generator, source), host(1 - self.generator, destination)]
    }

    fn frame(&self, sequence: u32) -> Vec<u8> {
        let [from, to] = self.pair(sequence);
        if self.hosts == OfferedHosts::Announcements {
            return frames::announcement(from);
        }
        // Of repeated pairs the pair's number counts: a path is provisioned once its first frame arrives.
        let sequence = match self.hosts {
            OfferedHosts::Pairs(count) => sequence % count.max(1),
            _ => sequence,
        };
        frames::traffic(from, to, FrameNumber { stream: self.stream, sequence }, self.frame_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn stream(hosts: OfferedHosts, pace: OfferedPace, count: u32) -> OfferedStream {
        OfferedStream::new(at(0), (0, 5), (hosts, 100), (pace, count), 128)
    }

    #[test]
    fn a_paced_stream_sends_what_is_due() {
        let mut paced = stream(OfferedHosts::NewSources, OfferedPace::Every(Duration::from_millis(10)), 3);
        let none = ArrivalLog::default();
        let mut sent = |now| std::iter::from_fn(|| paced.next(at(now), &none)).count();
        assert_eq!([sent(0), sent(9), sent(10), sent(1000)], [1, 0, 1, 1]);
        assert_eq!(paced.due(), None);
    }

    #[test]
    fn a_window_waits_for_arrivals_and_gives_up_what_is_stuck() {
        let mut window = stream(OfferedHosts::NewPairs, OfferedPace::Window(2), 10);
        let mut log = ArrivalLog::default();
        log.expect(5);
        let frames: Vec<_> = std::iter::from_fn(|| window.next(at(0), &log)).collect();
        assert_eq!(frames.len(), 2);
        log.take(at(1), &frames[1]);
        assert_eq!(std::iter::from_fn(|| window.next(at(1), &log)).count(), 1);
        assert_eq!(window.due(), Some(at(1001)));
        assert_eq!(std::iter::from_fn(|| window.next(at(1001), &log)).count(), 2, "both are given up");
    }

    #[test]
    fn pairs_of_hosts() {
        let number = |hosts, sequence| {
            let stream = stream(hosts, OfferedPace::Window(1), 1);
            stream.pair(sequence).map(|host| host.number)
        };
        assert_eq!(number(OfferedHosts::NewPairs, 7), [107, 107]);
        assert_eq!(number(OfferedHosts::NewSources, 7), [107, 100]);
        assert_eq!(number(OfferedHosts::OnePair, 7), [100, 100]);
        assert_eq!(number(OfferedHosts::Pairs(4), 7), [103, 103]);
    }
}
