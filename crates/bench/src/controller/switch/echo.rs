//! Echo requests of an emulated switch, one at a time: how long the controller takes to answer what is urgent.
use super::EmulatedSwitch;
use crate::controller::tally::Tally;
use std::time::Duration;
use weir_openflow::{Body, Message};
use weir_units::Instant;

/// Transaction id of the first echo request; packet-ins count from 0.
const FIRST_XID: u32 = 1 << 31;

/// Echo requests: the one that waits for its reply, and the time of the next.
pub(super) struct EchoRequests {
    interval: Duration,
    xid: u32,
    /// Time at which the request with `xid` was sent, until it is answered or given up.
    sent: Option<Instant>,
    next: Instant,
}

impl EchoRequests {
    pub(super) fn new(interval: Duration) -> EchoRequests {
        EchoRequests { interval, xid: FIRST_XID, sent: None, next: Instant::ZERO }
    }

    /// Returns the time at which a request is to be sent, or given up.
    pub(super) fn deadline(&self, timeout: Duration) -> Instant {
        self.sent.map_or(self.next, |sent| sent + timeout)
    }
}

impl EmulatedSwitch {
    /// Sends the next echo request if it is time for it, and gives up one that waits for too long.
    pub(super) fn send_echo(&mut self, now: Instant, tally: &Tally) {
        let timeout = self.settings.timeout;
        let Some(echo) = self.echo.as_mut().filter(|echo| now >= echo.deadline(timeout)) else { return };
        self.figures.echo_lost += u64::from(echo.sent.is_some_and(|sent| tally.measures(sent)));
        echo.xid += 1;
        (echo.sent, echo.next) = (Some(now), now + echo.interval);
        let request = Message { xid: echo.xid, body: Body::EchoRequest(Default::default()) };
        // A request that finds no room is given up when its time is over.
        let _ = self.session.send(&request);
    }

    pub(super) fn take_echo_reply(&mut self, now: Instant, xid: u32, tally: &mut Tally) {
        let Some(echo) = self.echo.as_mut().filter(|echo| echo.xid == xid) else { return };
        if let Some(sent) = echo.sent.take().filter(|sent| tally.measures(*sent)) {
            tally.echo.record(now.since(sent));
        }
    }
}
