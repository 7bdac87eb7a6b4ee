//! The data path as packets of one level meet it.
use crate::server::{Drawn, Server};
use weir_model::switch::forward::{At, Forwarding};
use weir_profile::{LevelForwarding, MatchKind};
use weir_units::Instant;

/// One level's part of the data path.
#[derive(Debug)]
pub(crate) struct Lane<T> {
    pub(crate) server: Server<T>,
    service: Drawn,
    /// By kind of match; none: all packets are served by the law.
    laws: Option<[Forwarding; 3]>,
    /// When the packet before came.
    last: Option<Instant>,
}

impl<T> Lane<T> {
    pub(crate) fn new(service: Drawn, forwarding: Option<&LevelForwarding>, limit: Option<u32>) -> Lane<T> {
        let laws = forwarding.map(|law| MatchKind::ALL.map(|kind| law.of(kind)));
        Lane { server: Server::new(limit), service, laws, last: None }
    }

    /// A packet comes.
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
