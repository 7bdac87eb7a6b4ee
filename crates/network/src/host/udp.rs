//! Sends UDP datagrams by the arrival times and lengths that a scenario describes, and counts them at the receiver.
use super::ping::stamp;
use super::{HostStack, TaskWakeup, TrafficEndpoints, TrafficTask};
use crate::measured::TrafficMeasurement;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp;
use smoltcp::wire::{IpAddress, IpEndpoint};
use std::time::Duration;
use weir_scenario::udp_headers;
use weir_traffic::{ArrivalProcess, ConcurrentFlows, OfferedPackets, PacketSampler, PacketSizeLaw, RandomStream};
use weir_units::Instant;

/// Number of datagrams that a socket can queue.
const QUEUE: usize = 256;
/// Maximum payload in bytes, equal to the limit that scenarios have.
const MAX_PAYLOAD: usize = 1472;
/// Time after the end of an item during which a sender that is late may still send the item's datagrams.
const CATCH_UP: Duration = Duration::from_millis(100);
/// Maximum number of datagrams sent in one call, so that a late host still receives frames in between.
const MAX_BURST: u64 = 64;
/// Tolerances for rounding errors when datagrams are counted (as a share of the count) and when due times are computed
/// (in ns): without them, a result just above an integer would be rounded up to the next one.
const ROUNDING: f64 = 1e-12;
const ROUNDING_NS: f64 = 1e-3;

/// Source ports for flows that begin during an item, used in turn. They are above the ports assigned to items.
const FLOW_PORTS: std::ops::RangeInclusive<u16> = 42_000..=u16::MAX;

/// Task that sends datagrams. Each payload begins with the send time (8 bytes) and the number of the datagram (8
/// bytes).
pub(crate) struct UdpClientTask {
    ends: TrafficEndpoints,
    socket: SocketHandle,
    end: Instant,
    schedule: DatagramSchedule,
    ports: FlowPorts,
    payload: Vec<u8>,
    measured: TrafficMeasurement,
}

impl UdpClientTask {
    /// Creates a task that sends the `offered` datagrams from `begin` on for `duration`. `flows` assigns datagrams to
    /// flows; each new flow gets its own source port.
    pub(crate) fn new(
        ends: TrafficEndpoints,
        begin: Instant,
        duration: Duration,
        offered: &OfferedPackets,
        flows: ConcurrentFlows,
        random: [RandomStream; 2],
        stack: &mut HostStack,
    ) -> UdpClientTask {
        let [packets, of_flows] = random;
        UdpClientTask {
            ends,
            socket: add_socket(stack, ends.client_port),
            end: begin + duration,
            schedule: DatagramSchedule::new(offered, begin, duration, udp_headers(ends.remote.is_ipv6()), packets),
            ports: FlowPorts::new(flows, of_flows, ends.client_port),
            payload: vec![0; MAX_PAYLOAD],
            measured: TrafficMeasurement::default(),
        }
    }

    /// Sends one datagram. Returns false if the stack had no room for it.
    fn send(&mut self, now: Instant, bytes: usize, stack: &mut HostStack) -> bool {
        let payload = &mut self.payload[..bytes.clamp(16, MAX_PAYLOAD)];
        payload[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
        payload[8..16].copy_from_slice(&self.measured.sent.to_be_bytes());
        let to = IpEndpoint::new(IpAddress::from(self.ends.remote), self.ends.server_port);
        stack.sockets.get_mut::<udp::Socket<'_>>(self.socket).send_slice(payload, to).is_ok()
    }

    /// Binds the socket to the source port of the next datagram's flow. Returns false and does nothing while datagrams
    /// with the previous port are queued.
    fn change_port(&mut self, stack: &mut HostStack) -> bool {
        let socket = stack.sockets.get_mut::<udp::Socket<'_>>(self.socket);
        if socket.send_queue() > 0 {
            return false;
        }
        socket.close();
        // Fails only for port 0 or a socket that is bound already.
        let _ = socket.bind(self.ports.next);
        self.ports.bound = self.ports.next;
        true
    }
}

/// Assignment of source ports to datagrams, by flow.
struct FlowPorts {
    flows: ConcurrentFlows,
    random: RandomStream,
    /// Port by slot among the concurrent flows; the item's own port until a flow begins in the slot.
    of_place: Vec<u16>,
    /// Port of the flow that begins next.
    unused: u16,
    /// Port of the next datagram.
    next: u16,
    /// Port to which the socket is bound.
    bound: u16,
}

impl FlowPorts {
    fn new(flows: ConcurrentFlows, random: RandomStream, own: u16) -> FlowPorts {
        let of_place = vec![own; flows.places()];
        let mut ports = FlowPorts { flows, random, of_place, unused: *FLOW_PORTS.start(), next: own, bound: own };
        ports.draw();
        ports
    }

    /// Draws the flow of the next datagram, and sets `next` to its port.
    fn draw(&mut self) {
        let drawn = self.flows.draw(&mut self.random);
        if drawn.begins {
            self.of_place[drawn.place] = self.unused;
            self.unused = self.unused.checked_add(1).unwrap_or(*FLOW_PORTS.start());
        }
        self.next = self.of_place[drawn.place];
    }
}

/// Schedule of datagrams: due times and lengths. Due times do not depend on how late earlier datagrams were sent.
struct DatagramSchedule {
    law: DatagramPattern,
    begin: Instant,
    end: Instant,
    /// Length of the headers in front of the payload, in bytes.
    headers: u32,
    /// Due time and payload bytes of the next datagram.
    next: Option<(Instant, usize)>,
    /// Number of datagrams drawn so far, including the next one.
    drawn: u64,
}

/// Rule for the due times and lengths of datagrams.
enum DatagramPattern {
    /// Frames of `bytes` bytes each, the first at the start, then one every 1 / `per_second` seconds.
    Paced { per_second: f64, bytes: u32 },
    /// Times and lengths drawn at random or read from a trace.
    Drawn(Box<PacketSampler>),
    /// No datagrams.
    Nothing,
}

impl DatagramSchedule {
    fn new(
        offered: &OfferedPackets,
        begin: Instant,
        duration: Duration,
        headers: u32,
        random: RandomStream,
    ) -> DatagramSchedule {
        let law = match offered {
            OfferedPackets::Rule {
                arrival: ArrivalProcess::Constant,
                per_second,
                size: PacketSizeLaw::Fixed(bytes),
            } => DatagramPattern::Paced { per_second: *per_second, bytes: *bytes },
            // Cannot fail: laws were checked when the scenario was parsed.
            other => PacketSampler::new(other, begin, random)
                .map_or(DatagramPattern::Nothing, |made| DatagramPattern::Drawn(Box::new(made))),
        };
        let mut schedule = DatagramSchedule { law, begin, end: begin + duration, headers, next: None, drawn: 0 };
        schedule.advance();
        schedule
    }

    /// Moves on to the following datagram.
    fn advance(&mut self) {
        let last = self.next.map_or(self.begin, |(due, _)| due);
        let (due, bytes) = match &mut self.law {
            DatagramPattern::Paced { per_second, bytes } => (self.begin + nth(self.drawn, *per_second), *bytes),
            DatagramPattern::Drawn(generator) => {
                let due = generator.next_after(last);
                (due, if due < self.end { generator.bytes() } else { 0 })
            }
            DatagramPattern::Nothing => (Instant::FAR, 0),
        };
        self.next = (due < self.end).then(|| (due, usize::try_from(bytes.saturating_sub(self.headers)).unwrap_or(0)));
        self.drawn += u64::from(self.next.is_some());
    }

    /// Returns the number of datagrams due until the end; for random times, the number drawn so far.
    fn asked(&self) -> u64 {
        match self.law {
            DatagramPattern::Paced { per_second, .. } => count_by(self.end - self.begin, per_second),
            _ => self.drawn,
        }
    }
}

/// Returns the time from the start until datagram `number` (from 0) is due. It is rounded up, so that the rate is not
/// exceeded.
fn nth(number: u64, per_second: f64) -> Duration {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
    let ns = (number as f64 * 1e9 / per_second - ROUNDING_NS).ceil() as u64;
    Duration::from_nanos(ns)
}

/// Returns the number of datagrams due in `duration`; the first is due at its start.
fn count_by(duration: Duration, per_second: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
    let count = (duration.as_secs_f64() * per_second * (1.0 - ROUNDING)).ceil() as u64;
    count
}

impl TrafficTask for UdpClientTask {
    fn poll(&mut self, now: Instant, stack: &mut HostStack) -> TaskWakeup {
        let is_through = self.schedule.next.is_none();
        if now >= if is_through { self.end } else { self.end + CATCH_UP } {
            return TaskWakeup::Done;
        }
        for _ in 0..MAX_BURST {
            let Some((_, bytes)) = self.schedule.next.filter(|(due, _)| *due <= now) else { break };
            if self.ports.next != self.ports.bound && !self.change_port(stack) {
                return TaskWakeup::At(now);
            }
            if !self.send(now, bytes, stack) {
                // The stack has no room: try again later. Datagrams not sent by the end are reported as not sent.
                return TaskWakeup::At(now + Duration::from_millis(1));
            }
            self.measured.sent += 1;
            self.schedule.advance();
            self.ports.draw();
        }
        TaskWakeup::At(self.schedule.next.map_or(self.end, |(due, _)| due))
    }

    fn finish(mut self: Box<Self>) -> TrafficMeasurement {
        self.measured.asked = self.schedule.asked();
        self.measured
    }
}

/// Task that receives and counts datagrams, and measures their delays.
pub(crate) struct UdpServerTask {
    socket: SocketHandle,
    first: Option<Instant>,
    measured: TrafficMeasurement,
}

impl UdpServerTask {
    pub(crate) fn new(ends: TrafficEndpoints, stack: &mut HostStack) -> UdpServerTask {
        UdpServerTask {
            socket: add_socket(stack, ends.server_port),
            first: None,
            measured: TrafficMeasurement::default(),
        }
    }
}

impl TrafficTask for UdpServerTask {
    fn poll(&mut self, now: Instant, stack: &mut HostStack) -> TaskWakeup {
        let socket = stack.sockets.get_mut::<udp::Socket<'_>>(self.socket);
        while let Ok((payload, _)) = socket.recv() {
            let Some((sent, _)) = stamp(payload) else { continue };
            self.measured.received += 1;
            self.measured.payload_bytes += payload.len() as u64;
            self.measured.span = now - *self.first.get_or_insert(now);
            self.measured.delays.record(now - sent);
        }
        TaskWakeup::OnFrame
    }

    fn finish(self: Box<Self>) -> TrafficMeasurement {
        self.measured
    }
}

fn add_socket(stack: &mut HostStack, port: u16) -> SocketHandle {
    let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; QUEUE], vec![0; QUEUE * MAX_PAYLOAD]);
    let mut socket = udp::Socket::new(buffer(), buffer());
    // Fails only for port 0 or a socket that is bound already.
    let _ = socket.bind(port);
    stack.sockets.add(socket)
}
