//! Asynchronous messages of the emulated switches (RFC 8456, sections 5.1.2 and 5.1.3): packet-ins that are made for
//! the test, and the responses to them. The switches do not act on these responses, so that nothing else is asked.
use super::frames::{FrameNumber, HostPlace, TestHost, number, traffic};
use super::topology::{EDGE_PORT, SECOND_EDGE_PORT};
use std::collections::HashMap;
use std::time::Duration;
use weir_openflow::model::{BufferId, Bytes, Match, PacketIn, PacketInReason, TableId};
use weir_openflow::{Body, Version};
use weir_packet::{Field, MacAddr};
use weir_units::Instant;

/// Time after which a message that is sent one at a time counts as unsuccessful.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most unanswered messages of all switches, if they are sent as fast as possible or at a rate.
pub(super) const MOST_WAITING: usize = 1 << 10;
/// Stream number of asynchronous messages; those of the generators are below.
const STREAM: u32 = u32::MAX;

/// Times of the messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RequestTimes {
    /// A message at a time, switch after switch.
    InSeries,
    /// Messages as fast as the controller reads.
    Flood,
    /// Messages a second of all switches together.
    Rate(f64),
}

/// Messages of a trial with their responses.
#[derive(Debug)]
pub(super) struct AsyncRequests {
    version: Version,
    times: RequestTimes,
    frame_bytes: usize,
    begin: Instant,
    end: Instant,
    /// Time until which responses count for the loss ratio.
    late_end: Instant,
    next: u32,
    waiting: HashMap<u32, Instant>,
    /// Messages that were sent (Ntx), responses within the trial (Nrx), and after its end.
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) received_late: u64,
    /// Sum of the times from a message to its response within the trial.
    pub(super) delays_s: f64,
    /// Messages that were due at a rate but had no room.
    pub(super) unsent: u64,
    due: u64,
}

impl AsyncRequests {
    /// Returns the messages of a trial of `time` from `begin` on. Serial numbers start from `first`, which should not
    /// have been used before. Responses count until `grace` after the end.
    pub(super) fn new(
        version: Version,
        times: RequestTimes,
        frame_bytes: usize,
        (begin, time, grace): (Instant, Duration, Duration),
        first: u32,
    ) -> AsyncRequests {
        AsyncRequests {
            version,
            times,
            frame_bytes,
            begin,
            end: begin + time,
            late_end: begin + time + grace,
            next: first,
            waiting: HashMap::new(),
            sent: 0,
            received: 0,
            received_late: 0,
            delays_s: 0.0,
            unsent: 0,
            due: 0,
        }
    }

    /// Returns the switch of the next message.
    pub(super) fn next_node(&self, nodes: usize) -> usize {
        (self.next & 0xff_ffff) as usize % nodes.max(1)
    }

    /// Returns the next message if one is due, for a switch of `nodes`.
    pub(super) fn next(&mut self, now: Instant, nodes: usize) -> Option<(usize, Body)> {
        if now >= self.end {
            return None;
        }
        match self.times {
            RequestTimes::InSeries => {
                self.waiting.retain(|_, at| now.since(*at) < PATIENCE);
                if !self.waiting.is_empty() {
                    return None;
                }
            }
            RequestTimes::Flood => {
                if self.waiting.len() >= MOST_WAITING {
                    return None;
                }
            }
            RequestTimes::Rate(rate) => {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of messages")]
                let due = (now.since(self.begin).as_secs_f64() * rate) as u64;
                if self.due >= due {
                    return None;
                }
                self.due += 1;
                if self.waiting.len() >= MOST_WAITING {
                    self.unsent += 1;
                    return None;
                }
            }
        }
        let (serial, node) = (self.next & 0xff_ffff, self.next_node(nodes));
        self.next = self.next.wrapping_add(1);
        self.waiting.insert(serial, now);
        self.sent += 1;
        Some((node, request(self.version, node, serial, self.frame_bytes)))
    }

    /// Returns the time at which the next message may be due.
    pub(super) fn due(&self) -> Option<Instant> {
        let next = match self.times {
            RequestTimes::InSeries => self.waiting.values().min().map_or(self.begin, |at| *at + PATIENCE),
            RequestTimes::Flood => self.begin,
            RequestTimes::Rate(rate) => self.begin + Duration::from_secs_f64((self.due + 1) as f64 / rate.max(1e-3)),
        };
        (next < self.end).then_some(next)
    }

    /// Notes a response. Returns true if it answers a message that waits.
    pub(super) fn answered(&mut self, now: Instant, node: usize, response: &Body) -> bool {
        let Some(serial) = answered_serial(node, response) else { return false };
        let Some(sent) = self.waiting.remove(&serial) else { return false };
        if now < self.end {
            self.received += 1;
            self.delays_s += now.since(sent).as_secs_f64();
        } else if now < self.late_end {
            self.received_late += 1;
        }
        true
    }

    /// Returns the number of messages without a response.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the serial number for the next trial.
    pub(super) fn next_serial(&self) -> u32 {
        self.next
    }

    /// Returns the mean time of a message that was answered in seconds, (SUM(Ri) - SUM(Ti)) / Nrx (section 5.1.2).
    pub(super) fn processing_s(&self) -> Option<f64> {
        (self.received > 0).then(|| self.delays_s / self.received as f64)
    }
}

/// Returns the packet-in by which the target of a switch is made known.
pub(super) fn target_announcement(version: Version, node: usize) -> Body {
    let frame = super::frames::announcement(TestHost { place: HostPlace::Target(node), number: 0 });
    packet_in(version, None, SECOND_EDGE_PORT, frame)
}

fn request(version: Version, node: usize, serial: u32, bytes: usize) -> Body {
    let from = TestHost { place: HostPlace::Source(node), number: serial };
    let to = TestHost { place: HostPlace::Target(node), number: 0 };
    let frame = traffic(from, to, FrameNumber { stream: STREAM, sequence: serial }, bytes);
    packet_in(version, Some(BufferId(serial)), EDGE_PORT, frame)
}

fn packet_in(version: Version, buffer_id: Option<BufferId>, port: u32, frame: Vec<u8>) -> Body {
    Body::PacketIn(PacketIn {
        buffer_id,
        total_len: u16::try_from(frame.len()).unwrap_or(u16::MAX),
        reason: PacketInReason::NoMatch,
        table: TableId(0),
        cookie: if version == Version::V10 { u64::MAX } else { 0 },
        matching: Match::any().with(Field::InPort, port),
        data: Bytes(frame),
    })
}

/// Returns the serial number of the message that a response answers: by the buffer's number, by the number in the
/// packet-out's frame, or by the source address in the flow-mod's match.
fn answered_serial(node: usize, response: &Body) -> Option<u32> {
    match response {
        Body::PacketOut(out) => match out.buffer_id {
            Some(buffer) => Some(buffer.0),
            None => number(&out.data.0).filter(|number| number.stream == STREAM).map(|number| number.sequence),
        },
        Body::FlowMod(flow) => match flow.buffer_id {
            Some(buffer) => Some(buffer.0),
            None => {
                let (source, _) = flow.matching.get(Field::EthSrc)?;
                let [_, _, bytes @ ..] = u64::try_from(source).ok()?.to_be_bytes();
                TestHost::source_number(MacAddr(bytes), node)
            }
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::{Action, FlowMod, Instruction, PacketOut, PortNo};

    const SECOND: Duration = Duration::from_secs(1);

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn requests(times: RequestTimes) -> AsyncRequests {
        AsyncRequests::new(Version::V13, times, 128, (at(0), SECOND, Duration::from_millis(50)), 7)
    }

    fn packet_out(buffer_id: Option<BufferId>, data: Vec<u8>) -> Body {
        Body::PacketOut(PacketOut {
            buffer_id,
            in_port: PortNo(1),
            matching: Match::any(),
            actions: vec![Action::output(PortNo(2))],
            data: Bytes(data),
        })
    }

    #[test]
    fn messages_in_series_have_their_times_added_up_by_hand() {
        let mut series = requests(RequestTimes::InSeries);
        let (node, Body::PacketIn(asked)) = series.next(at(10), 3).unwrap() else { panic!() };
        assert_eq!((node, asked.buffer_id), (7 % 3, Some(BufferId(7))));
        assert!(series.next(at(11), 3).is_none(), "one at a time");
        assert!(series.answered(at(14), node, &packet_out(None, asked.data.0)));
        assert_eq!(series.next(at(20), 3).unwrap().0, 8 % 3);
        assert!(series.answered(at(22), 2, &packet_out(Some(BufferId(8)), Vec::new())));
        assert!(!series.answered(at(23), 2, &packet_out(Some(BufferId(8)), Vec::new())), "counts once");
        // (14 - 10 + 22 - 20) / 2 ms.
        assert!((series.processing_s().unwrap() - 0.003).abs() < 1e-12);
        assert_eq!((series.sent, series.received), (2, 2));
    }

    #[test]
    fn a_flow_mod_answers_by_its_source() {
        let mut series = requests(RequestTimes::InSeries);
        let node = series.next(at(0), 3).unwrap().0;
        let source = TestHost { place: HostPlace::Source(node), number: 7 }.mac().to_bits();
        let flow = |node| {
            let actions = vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])];
            (node, Body::FlowMod(FlowMod::add(1, Match::any().with(Field::EthSrc, source), actions)))
        };
        let (other, body) = flow(node + 1);
        assert!(!series.answered(at(1), other, &body), "from another switch");
        let (node, body) = flow(node);
        assert!(series.answered(at(1), node, &body));
    }

    #[test]
    fn a_rate_is_kept_and_late_responses_are_told_apart() {
        let mut rate = requests(RequestTimes::Rate(100.0));
        let sent = std::iter::from_fn(|| rate.next(at(95), 2)).count();
        assert_eq!((sent, rate.due()), (9, Some(at(100))));
        for (when, serial) in [(500, 7), (1001, 8), (1060, 9)] {
            assert!(rate.answered(at(when), 0, &packet_out(Some(BufferId(serial)), Vec::new())));
        }
        assert_eq!((rate.received, rate.received_late), (1, 1));
        assert!(rate.next(at(1000), 2).is_none(), "the trial is over");
    }
}
