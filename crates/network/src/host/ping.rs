//! Sends echo requests and measures round trips.
use super::{HostStack, TaskWakeup, TrafficEndpoints, TrafficTask};
use crate::datagrams;
use crate::measured::TrafficMeasurement;
use smoltcp::iface::SocketHandle;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp;
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpAddress};
use std::net::IpAddr;
use std::time::Duration;
use weir_units::Instant;

/// Payload length of a request: send time (8 bytes), full number (8), and zeros up to the length that ping sends.
const PAYLOAD_BYTES: usize = 56;
/// Requests and answers that a socket holds.
const QUEUE: usize = 64;
/// Time to wait for answers after the last request.
const PATIENCE: Duration = Duration::from_secs(1);

/// Series of echo requests.
pub(crate) struct PingTask {
    ends: TrafficEndpoints,
    socket: SocketHandle,
    begin: Instant,
    count: u32,
    interval: Duration,
    /// Requests made so far.
    made: u32,
    /// Numbers already answered, so that duplicate answers are not counted.
    seen: PingSequenceSet,
    measured: TrafficMeasurement,
}

impl PingTask {
    pub(crate) fn new(
        ends: TrafficEndpoints,
        begin: Instant,
        count: u32,
        interval: Duration,
        keeps_times: bool,
        stack: &mut HostStack,
    ) -> PingTask {
        let buffer = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY; QUEUE], vec![0; QUEUE * 128]);
        let mut socket = icmp::Socket::new(buffer(), buffer());
        // Fails only for a socket that is bound already.
        let _ = socket.bind(icmp::Endpoint::Ident(ends.server_port));
        let measured = TrafficMeasurement { asked: u64::from(count), ..TrafficMeasurement::keeping_times(keeps_times) };
        let socket = stack.sockets.add(socket);
        PingTask { ends, socket, begin, count, interval, made: 0, seen: PingSequenceSet::new(count), measured }
    }

    fn due(&self) -> Instant {
        self.begin + self.interval.saturating_mul(self.made)
    }

    /// Sends a request. Like ping, counts the request as sent and lost if the stack has no room for it (most likely
    /// because the receiver's address is unresolved).
    fn send(&mut self, now: Instant, stack: &mut HostStack) {
        let number = self.made;
        self.made += 1;
        self.measured.sent += 1;
        let mut payload = [0; PAYLOAD_BYTES];
        payload[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
        payload[8..16].copy_from_slice(&u64::from(number).to_be_bytes());
        let request = self.request(stack, number, &payload);
        let socket = stack.sockets.get_mut::<icmp::Socket<'_>>(self.socket);
        // A full queue counts as loss.
        let _ = socket.send_slice(&request, IpAddress::from(self.ends.remote));
    }

    /// Returns the ICMP message of a request.
    fn request(&self, stack: &HostStack, number: u32, payload: &[u8]) -> Vec<u8> {
        let (ident, seq_no) = (self.ends.server_port, u16::try_from(number & 0xffff).unwrap_or(0));
        let mut bytes = vec![0; 8 + payload.len()];
        let checksum = ChecksumCapabilities::default();
        match self.ends.remote {
            IpAddr::V4(_) => Icmpv4Repr::EchoRequest { ident, seq_no, data: payload }
                .emit(&mut Icmpv4Packet::new_unchecked(&mut bytes), &checksum),
            IpAddr::V6(remote) => {
                let own = stack.interface.get_source_address_ipv6(&remote);
                let repr = Icmpv6Repr::EchoRequest { ident, seq_no, data: payload };
                repr.emit(&own, &remote, &mut Icmpv6Packet::new_unchecked(&mut bytes), &checksum);
            }
        }
        bytes
    }

    fn take_answers(&mut self, now: Instant, stack: &mut HostStack) {
        let socket = stack.sockets.get_mut::<icmp::Socket<'_>>(self.socket);
        while let Ok((answer, from)) = socket.recv() {
            if from != IpAddress::from(self.ends.remote) {
                continue;
            }
            // The stack has checked the message; the payload follows its 8 bytes of header.
            let Some((sent, number)) = datagrams::stamp(answer.get(8..).unwrap_or_default()) else { continue };
            if self.seen.first_time(number) {
                self.measured.answered_at(number, sent, now);
            }
        }
    }
}

impl TrafficTask for PingTask {
    fn poll(&mut self, now: Instant, stack: &mut HostStack) -> TaskWakeup {
        self.take_answers(now, stack);
        while self.made < self.count && self.due() <= now {
            self.send(now, stack);
        }
        let all = self.measured.received == u64::from(self.count);
        let patience = self.due() + PATIENCE;
        match self.made < self.count {
            true => TaskWakeup::At(self.due()),
            false if all || now >= patience => TaskWakeup::Done,
            false => TaskWakeup::At(patience),
        }
    }

    fn measured(&self) -> &TrafficMeasurement {
        &self.measured
    }

    fn finish(self: Box<Self>) -> TrafficMeasurement {
        self.measured
    }
}

/// Set of seen numbers, a bit for each.
struct PingSequenceSet(Vec<u64>);

impl PingSequenceSet {
    fn new(count: u32) -> PingSequenceSet {
        PingSequenceSet(vec![0; usize::try_from(count.div_ceil(64)).unwrap_or(0)])
    }

    fn first_time(&mut self, number: u64) -> bool {
        let word = usize::try_from(number / 64).ok().and_then(|at| self.0.get_mut(at));
        word.is_some_and(|word| {
            let new = *word & (1 << (number % 64)) == 0;
            *word |= 1 << (number % 64);
            new
        })
    }
}
