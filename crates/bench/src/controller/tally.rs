//! Counts of a measurement over all switches: replies by kind, delays, connections.
use serde::Serialize;
use std::ops::Range;
use std::time::Duration;
use weir_traffic::TimeHistogram;
use weir_units::Instant;

/// Length of the windows in which responses are counted for courses and for fairness.
pub(super) const WINDOW: Duration = Duration::from_millis(10);

/// Replies by kind, while requests are measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct ReplyCounts {
    pub(super) flow_mods: u64,
    pub(super) packet_outs: u64,
    /// Messages traced to their request by the buffer's number.
    pub(super) by_buffer: u64,
    /// Messages traced by the addresses in the flow-mod's match.
    pub(super) by_addresses: u64,
    /// Messages traced by the serial number in the packet-out's frame.
    pub(super) by_frame: u64,
    /// Second messages of answers: a packet-out besides a flow-mod, or the other way round.
    pub(super) second: u64,
    /// Further messages of a kind for a request that was answered by this kind.
    pub(super) repeated: u64,
    /// Replies to requests that had been given up.
    pub(super) late: u64,
    /// Replies with a request's buffer whose addresses are those of other packets.
    pub(super) wrong: u64,
    /// Flow-mods and packet-outs that answer no request: set-up, discovery.
    pub(super) unasked: u64,
    /// Flow-mods that delete.
    pub(super) deletes: u64,
    /// Messages that the codec or the views cannot read.
    pub(super) malformed: u64,
    /// Errors that the controller sent.
    pub(super) errors: u64,
}

/// Counts of a measurement.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) counts: ReplyCounts,
    /// Delays of the ordinary switches, before and after the event at half time; without an event all are before.
    pub(super) ordinary: [TimeHistogram; 2],
    /// Delays of the switch that comes at half time.
    pub(super) special: TimeHistogram,
    /// Round trips of echo requests.
    pub(super) echo: TimeHistogram,
    /// Times from the beginning of a connection to the answered features request.
    pub(super) handshakes: TimeHistogram,
    /// Time in which requests that are due count; `None` before the measurement.
    pub(super) measured: Option<Range<Instant>>,
    /// Time of the event, if there is one.
    pub(super) event: Option<Instant>,
}

impl Tally {
    /// Returns true if a request that is due at `due` counts.
    pub(super) fn measures(&self, due: Instant) -> bool {
        self.measured.as_ref().is_some_and(|measured| measured.contains(&due))
    }

    /// Returns true if a time is behind the event.
    pub(super) fn is_after_event(&self, at: Instant) -> bool {
        self.event.is_some_and(|event| at >= event)
    }

    /// Returns the number of the window in which a time is; `None` outside the measurement.
    pub(super) fn window(&self, at: Instant) -> Option<usize> {
        let measured = self.measured.as_ref().filter(|measured| measured.contains(&at))?;
        usize::try_from(at.since(measured.start).as_nanos() / WINDOW.as_nanos()).ok()
    }

    /// Records the delay of an answer.
    pub(super) fn answer(&mut self, now: Instant, due: Instant, is_special: bool) {
        if !self.measures(due) {
            return;
        }
        let after = usize::from(self.is_after_event(due));
        let delays = if is_special { &mut self.special } else { &mut self.ordinary[after] };
        delays.record(now.since(due));
    }
}
