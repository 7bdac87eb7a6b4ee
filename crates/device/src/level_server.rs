//! Serves the packets of one table level in the data path.
use crate::server::{FifoServer, ServiceTimeSampler};
use weir_model::switch::forward::{ForwardingLaw, PacketConditions};
use weir_profile::{LevelForwarding, MatchLayers};
use weir_units::Instant;

/// Server of the data path for one level.
#[derive(Debug)]
pub(crate) struct LevelServer<T> {
    pub(crate) server: FifoServer<T>,
    service: ServiceTimeSampler,
    /// Forwarding laws by kind of match; none if all packets are served by the profile's service law.
    laws: Option<[ForwardingLaw; 3]>,
    /// Time of a packet behind another, in nanoseconds, if it differs.
    busy_ns: Option<f64>,
    /// Arrival time of the previous packet.
    last: Option<Instant>,
}

impl<T> LevelServer<T> {
    pub(crate) fn new(
        service: ServiceTimeSampler,
        forwarding: Option<&LevelForwarding>,
        limit: Option<u32>,
    ) -> LevelServer<T> {
        let laws = forwarding.map(|law| MatchLayers::ALL.map(|kind| law.of(kind)));
        let busy_ns = forwarding.and_then(|law| law.busy_s).map(|s| s * 1e9);
        LevelServer { server: FifoServer::new(limit), service, laws, busy_ns, last: None }
    }

    /// Adds a packet, which takes `more_ns` nanoseconds more than others. Returns it if there is no room.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        kind: MatchLayers,
        bytes: u32,
        (entries, more_ns): (u64, f64),
        item: T,
    ) -> Result<(), T> {
        let gap_s = self.last.replace(now).map_or(f64::MAX, |last| now.since(last).as_secs_f64());
        let at = PacketConditions { gap_s, entries: entries as f64, bytes: bytes.into() };
        let service_ns = match self.busy_ns.filter(|_| self.server.is_busy(now)) {
            Some(busy_ns) => busy_ns,
            None => self.law_ns(kind, at).unwrap_or_else(|| self.service.draw_ns(bytes)),
        };
        self.server.offer(now, service_ns + more_ns, item)
    }

    /// Returns the mean service time of a packet that comes long after the one before it.
    pub(crate) fn lone_ns(&self, kind: MatchLayers, bytes: u32, entries: u64) -> f64 {
        let at = PacketConditions { gap_s: f64::MAX, entries: entries as f64, bytes: bytes.into() };
        self.law_ns(kind, at).unwrap_or_else(|| self.service.mean_ns(bytes))
    }

    /// Returns the service time by the forwarding law, if the level has one.
    fn law_ns(&self, kind: MatchLayers, at: PacketConditions) -> Option<f64> {
        // Laws of checked profiles have a value everywhere.
        self.laws.as_ref().map(|laws| laws[kind as usize].forward(at).map_or(0.0, |law| law.delay_s * 1e9))
    }
}
