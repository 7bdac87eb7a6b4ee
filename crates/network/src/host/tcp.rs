//! Runs a TCP connection that sends as fast as it can, and its receiving end.
use super::{HostStack, TaskWakeup, TrafficEndpoints, TrafficTask};
use crate::measured::TrafficMeasurement;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::wire::{IpAddress, IpEndpoint};
use std::time::Duration;
use weir_units::Instant;

/// Most bytes on their way. Fits a link's default buffer because the stack has no selective acknowledgements and
/// recovers slowly if a whole burst is lost. Bounds the rate of long links: 96 KiB in a round trip of 10 ms are 78
/// Mbit/s.
const WINDOW_BYTES: usize = weir_scenario::defaults::TCP_WINDOW_BYTES;
/// Payload written at once: zeros.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Time to wait for the connection's end after the item's time.
const PATIENCE: Duration = weir_scenario::defaults::TCP_LINGER;

/// Client: connects and sends.
pub(crate) struct TcpClientTask {
    ends: TrafficEndpoints,
    socket: SocketHandle,
    begin: Instant,
    end: Instant,
    started: bool,
    measured: TrafficMeasurement,
}

impl TcpClientTask {
    pub(crate) fn new(
        ends: TrafficEndpoints,
        begin: Instant,
        duration: Duration,
        stack: &mut HostStack,
    ) -> TcpClientTask {
        let socket = stack.sockets.add(new_socket());
        TcpClientTask {
            ends,
            socket,
            begin,
            end: begin + duration,
            started: false,
            measured: TrafficMeasurement::default(),
        }
    }

    fn connect(&mut self, stack: &mut HostStack) {
        self.started = true;
        let to = IpEndpoint::new(IpAddress::from(self.ends.remote), self.ends.server_port);
        let socket = stack.sockets.get_mut::<Socket<'_>>(self.socket);
        if let Err(error) = socket.connect(stack.interface.context(), to, self.ends.client_port) {
            self.measured.problem = Some(format!("cannot connect: {error}"));
        }
    }
}

impl TrafficTask for TcpClientTask {
    fn poll(&mut self, now: Instant, stack: &mut HostStack) -> TaskWakeup {
        if now < self.begin {
            return TaskWakeup::At(self.begin);
        }
        if !self.started {
            self.connect(stack);
        }
        let socket = stack.sockets.get_mut::<Socket<'_>>(self.socket);
        if now < self.end && socket.is_active() {
            while let Ok(taken @ 1..) = socket.send_slice(&ZEROS) {
                self.measured.sent += taken as u64;
            }
            return TaskWakeup::At(self.end);
        }
        if socket.state() == State::SynSent {
            self.measured.problem = Some("no answer to the connection request".into());
            socket.abort();
        } else if now >= self.end + PATIENCE {
            // Bytes still queued for a slow link are discarded: the receiver has counted those that arrived.
            socket.abort();
        }
        socket.close();
        if socket.is_active() && socket.state() != State::TimeWait {
            return TaskWakeup::At(self.end + PATIENCE);
        }
        if now < self.end && self.measured.problem.is_none() {
            self.measured.problem = Some("the connection was refused or reset".into());
        }
        TaskWakeup::Done
    }

    fn measured(&self) -> &TrafficMeasurement {
        &self.measured
    }

    fn finish(mut self: Box<Self>) -> TrafficMeasurement {
        self.measured.asked = self.measured.sent;
        self.measured
    }
}

/// Server: listens and receives.
pub(crate) struct TcpServerTask {
    socket: SocketHandle,
    first: Option<Instant>,
    measured: TrafficMeasurement,
}

impl TcpServerTask {
    pub(crate) fn new(ends: TrafficEndpoints, stack: &mut HostStack) -> TcpServerTask {
        let mut socket = new_socket();
        // Fails only for port 0 or a socket that is open already.
        let _ = socket.listen(ends.server_port);
        TcpServerTask { socket: stack.sockets.add(socket), first: None, measured: TrafficMeasurement::default() }
    }
}

impl TrafficTask for TcpServerTask {
    fn poll(&mut self, now: Instant, stack: &mut HostStack) -> TaskWakeup {
        let socket = stack.sockets.get_mut::<Socket<'_>>(self.socket);
        while let Ok(taken @ 1..) = socket.recv(|bytes| (bytes.len(), bytes.len())) {
            self.measured.received += taken as u64;
            self.measured.payload_bytes += taken as u64;
            self.measured.span = now - *self.first.get_or_insert(now);
        }
        if socket.state() == State::CloseWait {
            socket.close();
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

fn new_socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; WINDOW_BYTES]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_congestion_control(CongestionControl::Reno);
    socket.set_nagle_enabled(false);
    socket
}
