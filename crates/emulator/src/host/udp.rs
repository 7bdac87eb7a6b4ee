//! Datagrams by rule, and counting them.
use super::ping::stamp;
use super::{Ends, Next, Stack, Task};
use crate::measured::Measured;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp;
use smoltcp::wire::{IpAddress, IpEndpoint};
use std::time::Duration;
use weir_scenario::udp_headers;
use weir_traffic::{Arrival, Flows, Generator, Offered, Size, Stream};
use weir_units::Instant;

/// Datagrams that a socket holds.
const QUEUE: usize = 256;
/// Longest payload, see the scenario's limits.
const MAX_PAYLOAD: usize = 1472;
/// How long after its end a sender that fell behind may still make up for it.
const CATCH_UP: Duration = Duration::from_millis(100);
/// Most datagrams sent in one call, so that a host that fell behind still takes frames in.
const MAX_BURST: u64 = 64;
/// What sums of fractions may be off by, as a share and in nanoseconds.
const ROUNDING: f64 = 1e-12;
const ROUNDING_NS: f64 = 1e-3;

/// Source ports of flows that begin on the way, one after the other: above those of items.
const FLOW_PORTS: std::ops::RangeInclusive<u16> = 42_000..=u16::MAX;

/// Sends datagrams, each with the time it was sent (8 bytes) and its number (8).
pub(crate) struct Client {
    ends: Ends,
    socket: SocketHandle,
    end: Instant,
    schedule: Schedule,
    ports: FlowPorts,
    payload: Vec<u8>,
    measured: Measured,
}

impl Client {
    /// Sends what is `offered` from `begin` on for `duration`. Datagrams that begin a flow have a source port of their own, those after them the
    /// same; `flows` says which do.
    pub(crate) fn new(
        ends: Ends,
        begin: Instant,
        duration: Duration,
        offered: &Offered,
        flows: Flows,
        random: [Stream; 2],
        stack: &mut Stack,
    ) -> Client {
        let [packets, of_flows] = random;
        Client {
            ends,
            socket: add_socket(stack, ends.client_port),
            end: begin + duration,
            schedule: Schedule::new(offered, begin, duration, udp_headers(ends.remote.is_ipv6()), packets),
            ports: FlowPorts::new(flows, of_flows, ends.client_port),
            payload: vec![0; MAX_PAYLOAD],
            measured: Measured::default(),
        }
    }

    /// Sends one datagram; whether the stack had room for it.
    fn send(&mut self, now: Instant, bytes: usize, stack: &mut Stack) -> bool {
        let payload = &mut self.payload[..bytes.clamp(16, MAX_PAYLOAD)];
        payload[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
        payload[8..16].copy_from_slice(&self.measured.sent.to_be_bytes());
        let to = IpEndpoint::new(IpAddress::from(self.ends.remote), self.ends.server_port);
        stack.sockets.get_mut::<udp::Socket<'_>>(self.socket).send_slice(payload, to).is_ok()
    }

    /// Gives the socket the port of the next datagram's flow; whether it could. What it was given to send has to be on its way before.
    fn change_port(&mut self, stack: &mut Stack) -> bool {
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

/// Which port datagrams are sent from.
struct FlowPorts {
    flows: Flows,
    random: Stream,
    /// By place of a flow among those of its time; the item's own until one begins there.
    of_place: Vec<u16>,
    /// The port of the flow that begins next.
    unused: u16,
    /// The next datagram's.
    next: u16,
    /// That which the socket has.
    bound: u16,
}

impl FlowPorts {
    fn new(flows: Flows, random: Stream, own: u16) -> FlowPorts {
        let of_place = vec![own; flows.places()];
        let mut ports = FlowPorts { flows, random, of_place, unused: *FLOW_PORTS.start(), next: own, bound: own };
        ports.draw();
        ports
    }

    /// From where is the next datagram?
    fn draw(&mut self) {
        let drawn = self.flows.draw(&mut self.random);
        if drawn.begins {
            self.of_place[drawn.place] = self.unused;
            self.unused = self.unused.checked_add(1).unwrap_or(*FLOW_PORTS.start());
        }
        self.next = self.of_place[drawn.place];
    }
}

/// When datagrams are due, however late the ones before were, and how long they are.
struct Schedule {
    law: Law,
    begin: Instant,
    end: Instant,
    headers: u32,
    /// The next one, with its payload.
    next: Option<(Instant, usize)>,
    /// Those before it, and itself.
    drawn: u64,
}

enum Law {
    /// Alike and at equal distances: from the start on, exactly at the rate.
    Paced {
        per_second: f64,
        bytes: u32,
    },
    Drawn(Box<Generator>),
    Nothing,
}

impl Schedule {
    fn new(offered: &Offered, begin: Instant, duration: Duration, headers: u32, random: Stream) -> Schedule {
        let law = match offered {
            Offered::Rule { arrival: Arrival::Constant, per_second, size: Size::Fixed(bytes) } => {
                Law::Paced { per_second: *per_second, bytes: *bytes }
            }
            // Laws were tried when the scenario was read.
            other => Generator::new(other, begin, random).map_or(Law::Nothing, |made| Law::Drawn(Box::new(made))),
        };
        let mut schedule = Schedule { law, begin, end: begin + duration, headers, next: None, drawn: 0 };
        schedule.advance();
        schedule
    }

    /// The next datagram was sent.
    fn advance(&mut self) {
        let last = self.next.map_or(self.begin, |(due, _)| due);
        let (due, bytes) = match &mut self.law {
            Law::Paced { per_second, bytes } => (self.begin + nth(self.drawn, *per_second), *bytes),
            Law::Drawn(generator) => {
                let due = generator.next_after(last);
                (due, if due < self.end { generator.bytes() } else { 0 })
            }
            Law::Nothing => (Instant::FAR, 0),
        };
        self.next = (due < self.end).then(|| (due, usize::try_from(bytes.saturating_sub(self.headers)).unwrap_or(0)));
        self.drawn += u64::from(self.next.is_some());
    }

    /// Datagrams that were to be sent until the end: of those drawn at random the ones that were drawn.
    fn asked(&self) -> u64 {
        match self.law {
            Law::Paced { per_second, .. } => count_by(self.end - self.begin, per_second),
            _ => self.drawn,
        }
    }
}

/// When the datagram with this number, from 0, is due after the start: rounded up, so that a rate is not exceeded.
fn nth(number: u64, per_second: f64) -> Duration {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
    let ns = (number as f64 * 1e9 / per_second - ROUNDING_NS).ceil() as u64;
    Duration::from_nanos(ns)
}

/// Datagrams that are due in `duration`: one at its start, then one each time.
fn count_by(duration: Duration, per_second: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
    let count = (duration.as_secs_f64() * per_second * (1.0 - ROUNDING)).ceil() as u64;
    count
}

impl Task for Client {
    fn poll(&mut self, now: Instant, stack: &mut Stack) -> Next {
        let is_through = self.schedule.next.is_none();
        if now >= if is_through { self.end } else { self.end + CATCH_UP } {
            return Next::Done;
        }
        for _ in 0..MAX_BURST {
            let Some((_, bytes)) = self.schedule.next.filter(|(due, _)| *due <= now) else { break };
            if self.ports.next != self.ports.bound && !self.change_port(stack) {
                return Next::At(now);
            }
            if !self.send(now, bytes, stack) {
                // The stack waits for something; what cannot be made up for until the end is reported as not sent.
                return Next::At(now + Duration::from_millis(1));
            }
            self.measured.sent += 1;
            self.schedule.advance();
            self.ports.draw();
        }
        Next::At(self.schedule.next.map_or(self.end, |(due, _)| due))
    }

    fn finish(mut self: Box<Self>) -> Measured {
        self.measured.asked = self.schedule.asked();
        self.measured
    }
}

/// Counts datagrams.
pub(crate) struct Server {
    socket: SocketHandle,
    first: Option<Instant>,
    measured: Measured,
}

impl Server {
    pub(crate) fn new(ends: Ends, stack: &mut Stack) -> Server {
        Server { socket: add_socket(stack, ends.server_port), first: None, measured: Measured::default() }
    }
}

impl Task for Server {
    fn poll(&mut self, now: Instant, stack: &mut Stack) -> Next {
        let socket = stack.sockets.get_mut::<udp::Socket<'_>>(self.socket);
        while let Ok((payload, _)) = socket.recv() {
            let Some((sent, _)) = stamp(payload) else { continue };
            self.measured.received += 1;
            self.measured.payload_bytes += payload.len() as u64;
            self.measured.span = now - *self.first.get_or_insert(now);
            self.measured.delays.record(now - sent);
        }
        Next::OnFrame
    }

    fn finish(self: Box<Self>) -> Measured {
        self.measured
    }
}

fn add_socket(stack: &mut Stack, port: u16) -> SocketHandle {
    let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; QUEUE], vec![0; QUEUE * MAX_PAYLOAD]);
    let mut socket = udp::Socket::new(buffer(), buffer());
    // Fails only for port 0 or a socket that is bound already.
    let _ = socket.bind(port);
    stack.sockets.add(socket)
}
