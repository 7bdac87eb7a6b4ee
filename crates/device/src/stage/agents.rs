//! Delays packets on their way to the controller and back.
use super::ReleaseKind;
use super::build::stream_number::{PACKET_IN, PACKET_OUT};
use crate::TimingError;
use crate::server::{FifoServer, ServiceTimeSampler};
use weir_profile::{ControlPathTiming, ServiceTime, SwitchTiming};
use weir_traffic::RandomStream;
use weir_units::Instant;

/// Agents that carry packets to the controller and back.
#[derive(Debug)]
pub(super) struct AgentServers<T> {
    pub(super) servers: [Option<FifoServer<(ReleaseKind, T)>>; 2],
    services: [ServiceTimeSampler; 2],
    /// True if the first server does both jobs.
    shared: bool,
}

impl<T> AgentServers<T> {
    /// Creates the agents of a switch.
    pub(super) fn new(timing: Option<&SwitchTiming>, seed: u64) -> Result<AgentServers<T>, TimingError> {
        let (mut packet_in, mut packet_out, mut both, mut limit): (Option<&ServiceTime>, Option<&ServiceTime>, _, _) =
            (None, None, false, None);
        if let Some(ControlPathTiming::Agents { packet_in: up, packet_out: down, shared, buffer }) =
            timing.map(|timing| &timing.control)
        {
            (packet_in, packet_out, both, limit) = (up.as_ref(), down.as_ref(), *shared, *buffer);
        }
        let shared = both && (packet_in.is_some() || packet_out.is_some());
        let server = |is_there: bool| is_there.then(|| FifoServer::new(limit));
        Ok(AgentServers {
            servers: [server(packet_in.is_some() || shared), server(packet_out.is_some() && !shared)],
            services: [
                ServiceTimeSampler::new(packet_in, RandomStream::new(seed, 0, PACKET_IN))?,
                ServiceTimeSampler::new(packet_out, RandomStream::new(seed, 0, PACKET_OUT))?,
            ],
            shared,
        })
    }

    /// Returns for each server: time of its next item, its index, and true if the item may leave as a packet.
    pub(super) fn due(&self) -> impl Iterator<Item = (Instant, usize, bool)> {
        let servers = self.servers.iter().enumerate();
        servers.filter_map(|(place, server)| Some((server.as_ref()?.due(), place, self.sends(place))))
    }

    /// Returns true if items of a server may leave as packets. All items of one server then get the lead of packets,
    /// which bounds how early they are released.
    pub(super) fn sends(&self, place: usize) -> bool {
        self.shared || place == self.place(ReleaseKind::PacketOut)
    }

    fn place(&self, part: ReleaseKind) -> usize {
        usize::from(part == ReleaseKind::PacketOut && !self.shared)
    }

    /// Returns the mean service time of packet-ins of this length, in nanoseconds.
    pub(super) fn packet_in_ns(&self, bytes: u32) -> f64 {
        self.services[0].mean_ns(bytes)
    }

    /// Adds an item. It is returned with true if there is no room, with false if there is no agent.
    pub(super) fn offer(&mut self, now: Instant, part: ReleaseKind, bytes: u32, item: T) -> Result<(), (bool, T)> {
        let place = self.place(part);
        let service_ns = self.services[usize::from(part == ReleaseKind::PacketOut)].draw_ns(bytes);
        match &mut self.servers[place] {
            Some(server) => server.offer(now, service_ns, (part, item)).map_err(|(_, item)| (true, item)),
            None => Err((false, item)),
        }
    }
}
