//! Serves the packets of one table level in the data path.
use crate::server::{Drawn, Server};
use weir_model::switch::forward::{At, Forwarding};
use weir_profile::{LevelForwarding, MatchKind};
use weir_units::Instant;

/// Server of the data path for one level.
#[derive(Debug)]
pub(crate) struct Lane<T> {
    pub(crate) server: Server<T>,
    service: Drawn,
    /// Forwarding laws by kind of match; none if all packets are served by the profile's service law.
    laws: Option<[Forwarding; 3]>,
    /// Arrival time of the previous packet.
    last: Option<Instant>,
}

impl<T> Lane<T> {
    pub(crate) fn new(service: Drawn, forwarding: Option<&LevelForwarding>, limit: Option<u32>) -> Lane<T> {
        let laws = forwarding.map(|law| MatchKind::ALL.map(|kind| law.of(kind)));
        Lane { server: Server::new(limit), service, laws, last: None }
    }

    /// Adds a packet. Returns it if there is no room.
    pub(crate) fn offer(&mut self, now: Instant, kind: MatchKind, bytes: u32, entries: u64, item: T) -> Result<(), T> {
        let gap_s = self.last.replace(now).map_or(f64::MAX, |last| now.since(last).as_secs_f64());
        let service_ns = match &self.laws {
            Some(laws) => {
                let at = At { gap_s, entries: entries as f64, bytes: bytes.into() };
                // Laws of checked profiles have a value everywhere.
                laws[kind as usize].forward(at).map_or(0.0, |law| law.delay_s * 1e9)
            }
            None => self.service.draw_ns(bytes),
        };
        self.server.offer(now, service_ns, item)
    }
}
