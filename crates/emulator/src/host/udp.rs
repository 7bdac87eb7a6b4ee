//! Datagrams at a constant rate, and counting them.
use super::ping::stamp;
use super::{Ends, Next, Stack, Task};
use crate::measured::Measured;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp;
use smoltcp::wire::{IpAddress, IpEndpoint};
use std::time::Duration;
use weir_units::{Bps, Instant};

/// Datagrams that a socket holds.
const QUEUE: usize = 256;
/// Longest payload, see the scenario's limits.
const MAX_PAYLOAD: usize = 1472;
/// How long after its end a sender that fell behind may still make up for it.
const CATCH_UP: Duration = Duration::from_millis(100);
/// Most datagrams sent in one call, so that a host that fell behind still takes frames in.
const MAX_BURST: u64 = 64;

/// Sends datagrams, each with the time it was sent (8 bytes) and its number (8).
pub(crate) struct Client {
    ends: Ends,
    socket: SocketHandle,
    begin: Instant,
    end: Instant,
    rate: Bps,
    frame_bytes: u64,
    payload: Vec<u8>,
    measured: Measured,
}

impl Client {
    pub(crate) fn new(
        ends: Ends,
        begin: Instant,
        duration: Duration,
        rate: Bps,
        payload_bytes: u16,
        stack: &mut Stack,
    ) -> Client {
        // Ethernet, IP and UDP headers.
        let headers = if ends.remote.is_ipv4() { 14 + 20 + 8 } else { 14 + 40 + 8 };
        let frame_bytes = u64::from(payload_bytes) + headers;
        let asked = count_by(duration, rate, frame_bytes);
        Client {
            ends,
            socket: add_socket(stack, ends.client_port),
            begin,
            end: begin + duration,
            rate,
            frame_bytes,
            payload: vec![0; usize::from(payload_bytes)],
            measured: Measured { asked, ..Measured::default() },
        }
    }

    /// When the next datagram is due: exactly at the rate, however late the ones before were.
    fn due(&self) -> Instant {
        self.begin + self.rate.time_of(self.measured.sent.saturating_mul(self.frame_bytes))
    }

    /// Sends one datagram; whether the stack had room for it.
    fn send(&mut self, now: Instant, stack: &mut Stack) -> bool {
        self.payload[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
        self.payload[8..16].copy_from_slice(&self.measured.sent.to_be_bytes());
        let to = IpEndpoint::new(IpAddress::from(self.ends.remote), self.ends.server_port);
        stack.sockets.get_mut::<udp::Socket<'_>>(self.socket).send_slice(&self.payload, to).is_ok()
    }
}

/// Datagrams that are due in `duration`: one at its start, then one each frame time.
fn count_by(duration: Duration, rate: Bps, frame_bytes: u64) -> u64 {
    let bits = duration.as_nanos() * u128::from(rate.0);
    u64::try_from(bits.div_ceil(u128::from(frame_bytes) * 8 * 1_000_000_000)).unwrap_or(u64::MAX)
}

impl Task for Client {
    fn poll(&mut self, now: Instant, stack: &mut Stack) -> Next {
        let all = self.measured.sent >= self.measured.asked;
        if now >= if all { self.end } else { self.end + CATCH_UP } {
            return Next::Done;
        }
        for _ in 0..MAX_BURST {
            if self.due() > now || self.measured.sent >= self.measured.asked {
                break;
            }
            if !self.send(now, stack) {
                // The stack waits for something; what cannot be made up for until the end is reported as not sent.
                return Next::At(now + Duration::from_millis(1));
            }
            self.measured.sent += 1;
        }
        if self.measured.sent >= self.measured.asked { Next::At(self.end) } else { Next::At(self.due()) }
    }

    fn finish(self: Box<Self>) -> Measured {
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
