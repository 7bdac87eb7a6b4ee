//! Sends UDP datagrams by the arrival times and lengths that a scenario describes, and counts them at the receiver.
use super::{HostStack, TaskWakeup, TrafficEndpoints, TrafficTask};
use crate::datagrams::{self, CATCH_UP, DatagramPlan, MAX_PAYLOAD};
use crate::measured::TrafficMeasurement;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp;
use smoltcp::wire::{IpAddress, IpEndpoint};
use std::time::Duration;
use weir_units::Instant;

/// Number of datagrams that a socket can queue.
const QUEUE: usize = 256;
/// Maximum number of datagrams sent in one call, so that a late host still receives frames in between.
const MAX_BURST: u64 = 64;

/// Task that sends datagrams.
pub(crate) struct UdpClientTask {
    ends: TrafficEndpoints,
    socket: SocketHandle,
    plan: DatagramPlan,
    payload: Vec<u8>,
    measured: TrafficMeasurement,
}

impl UdpClientTask {
    /// Creates a task that sends the datagrams of a plan.
    pub(crate) fn new(ends: TrafficEndpoints, plan: DatagramPlan, stack: &mut HostStack) -> UdpClientTask {
        UdpClientTask {
            ends,
            socket: add_socket(stack, ends.client_port),
            plan,
            payload: vec![0; MAX_PAYLOAD],
            measured: TrafficMeasurement::default(),
        }
    }

    /// Sends one datagram. Returns false if the stack had no room for it.
    fn send(&mut self, now: Instant, bytes: usize, stack: &mut HostStack) -> bool {
        let payload = datagrams::stamped(&mut self.payload, bytes, now, self.measured.sent);
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
        let _ = socket.bind(self.plan.ports.next);
        self.plan.ports.bound = self.plan.ports.next;
        true
    }
}

impl TrafficTask for UdpClientTask {
    fn poll(&mut self, now: Instant, stack: &mut HostStack) -> TaskWakeup {
        let is_through = self.plan.schedule.next.is_none();
        if now >= if is_through { self.plan.end } else { self.plan.end + CATCH_UP } {
            return TaskWakeup::Done;
        }
        for _ in 0..MAX_BURST {
            let Some((due, bytes)) = self.plan.schedule.next.filter(|(due, _)| *due <= now) else { break };
            if self.plan.ports.next != self.plan.ports.bound && !self.change_port(stack) {
                return TaskWakeup::At(now);
            }
            if !self.send(now, bytes, stack) {
                // The stack has no room: try again later. Datagrams not sent by the end are reported as not sent.
                return TaskWakeup::At(now + Duration::from_millis(1));
            }
            self.measured.sent += 1;
            self.measured.late.record(now - due);
            self.plan.schedule.advance();
            self.plan.ports.draw();
        }
        TaskWakeup::At(self.plan.schedule.next.map_or(self.plan.end, |(due, _)| due))
    }

    fn measured(&self) -> &TrafficMeasurement {
        &self.measured
    }

    fn finish(mut self: Box<Self>) -> TrafficMeasurement {
        self.measured.asked = self.plan.schedule.asked();
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
    pub(crate) fn new(ends: TrafficEndpoints, keeps_times: bool, stack: &mut HostStack) -> UdpServerTask {
        UdpServerTask {
            socket: add_socket(stack, ends.server_port),
            first: None,
            measured: TrafficMeasurement::keeping_times(keeps_times),
        }
    }
}

impl TrafficTask for UdpServerTask {
    fn poll(&mut self, now: Instant, stack: &mut HostStack) -> TaskWakeup {
        let socket = stack.sockets.get_mut::<udp::Socket<'_>>(self.socket);
        while let Ok((payload, _)) = socket.recv() {
            let Some((sent, _)) = datagrams::stamp(payload) else { continue };
            self.measured.received += 1;
            self.measured.payload_bytes += payload.len() as u64;
            self.measured.span = now - *self.first.get_or_insert(now);
            self.measured.delayed(sent, now);
        }
        TaskWakeup::OnFrame
    }

    fn measured(&self) -> &TrafficMeasurement {
        &self.measured
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
