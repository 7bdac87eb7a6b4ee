//! Hosts in this process: a network stack on a port, that answers ARP, neighbour discovery and ping, and does its share of
//! the scenario's traffic.
//!
//! The stack above Ethernet is smoltcp's. A [`Host`] has no socket, thread or clock: [`Host::poll`] is told the time, does what is due and
//! says when to be called again. [`engine`] drives hosts on threads.
mod device;
pub(crate) mod engine;
mod neighbours;
mod ping;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use crate::measured::Measured;
use device::Device;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use weir_port::{Counters, Port, PortError, Ready};
use weir_scenario::{IpNet, Scenario, TrafficKind};
use weir_traffic::{Flows, Stream};
use weir_units::Instant;

/// Most addresses of a host: what the network stack is built for.
pub const MAX_ADDRESSES: usize = 8;
/// Port of the first item of traffic at its receiver; the others follow.
const FIRST_SERVER_PORT: u16 = 5001;
/// Port of the first item of traffic at its sender.
const FIRST_CLIENT_PORT: u16 = 40_001;

/// A host.
pub struct Host {
    device: Device,
    stack: Stack,
    tasks: Vec<Running>,
    /// There may be more frames than were taken in.
    more: bool,
    gone: bool,
}

/// The network stack, as tasks use it.
pub(crate) struct Stack {
    pub(crate) interface: Interface,
    pub(crate) sockets: SocketSet<'static>,
}

/// A host's share of an item of traffic.
pub(crate) trait Task: Send {
    /// Does what is due.
    fn poll(&mut self, now: Instant, stack: &mut Stack) -> Next;
    /// What was measured, at the end.
    fn finish(self: Box<Self>) -> Measured;
}

/// When a task acts next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// At this time, or when a frame comes.
    At(Instant),
    /// When a frame comes.
    OnFrame,
    /// Never again: a sender that is through.
    Done,
}

/// What is left of a host.
pub struct Finished {
    /// What it measured, per item of traffic.
    pub measured: Vec<(usize, Measured)>,
    /// Its port's counters.
    pub counters: Counters,
    /// Packets dropped since nobody answered for their receiver's address.
    pub unresolved: u64,
}

struct Running {
    item: usize,
    task: Box<dyn Task>,
    done: bool,
}

/// The ends of a task's item of traffic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    /// Address that is sent to.
    pub(crate) remote: IpAddr,
    /// Port that is listened on; for pings the number that tells their answers apart.
    pub(crate) server_port: u16,
    /// Port that is sent from.
    pub(crate) client_port: u16,
}

impl Host {
    /// A host on `port` with these addresses (at most [`MAX_ADDRESSES`]); `seed` makes its choices repeatable.
    pub fn new(port: Box<dyn Port>, mac: weir_packet::MacAddr, addresses: &[IpNet], seed: u64) -> Host {
        let mut device = Device::new(port, mac, addresses);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut device, smoltcp::time::Instant::ZERO);
        interface.update_ip_addrs(|own| {
            for net in addresses.iter().take(MAX_ADDRESSES) {
                // Cannot fail: not more than there is room for.
                let _ = own.push(IpCidr::new(IpAddress::from(net.addr), net.prefix));
            }
        });
        let stack = Stack { interface, sockets: SocketSet::new(Vec::new()) };
        Host { device, stack, tasks: Vec::new(), more: false, gone: false }
    }

    /// Takes on this host's share of the scenario's traffic, whose times count from `start`.
    pub fn start(&mut self, scenario: &Scenario, host: usize, start: Instant) {
        for (item, traffic) in scenario.traffic.iter().enumerate() {
            let offset = u16::try_from(item).unwrap_or(0);
            let ends = Ends {
                remote: traffic.address,
                server_port: FIRST_SERVER_PORT + offset,
                client_port: FIRST_CLIENT_PORT + offset,
            };
            let begin = start + traffic.start;
            let task = if traffic.from == host {
                client(&traffic.kind, ends, begin, [scenario.seed, item as u64], &mut self.stack)
            } else if traffic.to == host {
                server(&traffic.kind, ends, &mut self.stack)
            } else {
                None
            };
            self.tasks.extend(task.map(|task| Running { item, task, done: false }));
        }
    }

    /// Takes frames in from the port. To be followed by [`Host::poll`] with a later time, so that no frame is measured
    /// as if it had come before it did.
    pub fn receive(&mut self, now: Instant) {
        match self.device.receive(now) {
            Ok(more) => self.more = more,
            Err(error) => self.lose(&error),
        }
    }

    /// Does what is due at `now`; items of traffic that were sent to their end go to `done`. Gives the time to be called
    /// again, if no frame comes before.
    pub fn poll(&mut self, now: Instant, done: &mut Vec<usize>) -> Instant {
        let time = smoltcp_time(now);
        self.stack.interface.poll(time, &mut self.device, &mut self.stack.sockets);
        let task_next = self.poll_tasks(now, done);
        self.stack.interface.poll(time, &mut self.device, &mut self.stack.sockets);
        if let Err(error) = self.device.flush(now) {
            self.lose(&error);
        }
        let stack_next = self.stack.interface.poll_at(time, &self.stack.sockets).map(weir_time);
        let wakes = [Some(task_next), stack_next, self.device.next_wake(), self.more.then_some(now)];
        wakes.into_iter().flatten().min().unwrap_or(Instant::FAR)
    }

    /// The port is gone: nothing comes any more, what is sent is lost.
    fn lose(&mut self, error: &PortError) {
        self.more = false;
        if !std::mem::replace(&mut self.gone, true) {
            tracing::warn!(%error, "a host lost its port");
        }
    }

    fn poll_tasks(&mut self, now: Instant, done: &mut Vec<usize>) -> Instant {
        let mut next = Instant::FAR;
        for running in self.tasks.iter_mut().filter(|running| !running.done) {
            match running.task.poll(now, &mut self.stack) {
                Next::At(at) => next = next.min(at),
                Next::OnFrame => {}
                Next::Done => {
                    running.done = true;
                    done.push(running.item);
                }
            }
        }
        next
    }

    /// Its port's counters so far.
    pub fn counters(&self) -> Counters {
        self.device.port.counters()
    }

    /// Ends all tasks; what each measured, and what the host dropped.
    pub fn finish(self) -> Finished {
        let measured = self.tasks.into_iter().map(|running| (running.item, running.task.finish())).collect();
        Finished { measured, counters: self.device.port.counters(), unresolved: self.device.unresolved() }
    }

    /// As [`Port::arm`].
    pub(crate) fn arm(&mut self) -> Ready {
        if self.gone { Ready::OnDescriptor } else { self.device.port.arm() }
    }

    /// As [`Port::fd`].
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.device.port.fd().filter(|_| !self.gone)
    }
}

/// `seed` is the scenario's, with the item's number.
fn client(
    kind: &TrafficKind,
    ends: Ends,
    begin: Instant,
    [seed, item]: [u64; 2],
    stack: &mut Stack,
) -> Option<Box<dyn Task>> {
    Some(match kind {
        TrafficKind::Ping { count, interval } => Box::new(ping::Ping::new(ends, begin, *count, *interval, stack)),
        TrafficKind::Tcp { duration } => Box::new(tcp::Client::new(ends, begin, *duration, stack)),
        TrafficKind::Udp { duration, offered, new_flows, flows } => {
            let random = [0, 1].map(|part| Stream::new(seed, item, part));
            Box::new(udp::Client::new(ends, begin, *duration, offered, Flows::new(*new_flows, *flows), random, stack))
        }
    })
}

/// Pings are answered by the stack itself.
fn server(kind: &TrafficKind, ends: Ends, stack: &mut Stack) -> Option<Box<dyn Task>> {
    match kind {
        TrafficKind::Ping { .. } => None,
        TrafficKind::Tcp { .. } => Some(Box::new(tcp::Server::new(ends, stack))),
        TrafficKind::Udp { .. } => Some(Box::new(udp::Server::new(ends, stack))),
    }
}

/// smoltcp counts microseconds; a time in between is told as the one before.
fn smoltcp_time(now: Instant) -> smoltcp::time::Instant {
    smoltcp::time::Instant::from_micros(i64::try_from(now.as_nanos() / 1000).unwrap_or(i64::MAX))
}

fn weir_time(time: smoltcp::time::Instant) -> Instant {
    Instant::from_nanos(u64::try_from(time.total_micros()).unwrap_or(0).saturating_mul(1000))
}
