//! Simulates hosts in this process: a network stack on a port that answers ARP, neighbour discovery and ping, and
//! sends and receives its part of the scenario's traffic.
//!
//! The stack above Ethernet is smoltcp's. A [`StackHost`] has no kernel socket, thread or clock. [`StackHost::poll`] is
//! given the time, handles what is due, and returns the time of the next call.
mod device;
mod neighbours;
mod ping;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use crate::NetworkError;
use crate::datagrams::DatagramPlan;
use crate::link::{LinkEndId, MEMORY_FRAMES, SwitchPorts, random_stream_id, rated, shaped};
use crate::measured::TrafficMeasurement;
use crate::result::{DropCount, port_drops};
use device::StackDevice;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use weir_packet::IpNet;
use weir_port::{FrameCounters, Port, PortError, ReceiveReadiness, memory};
use weir_scenario::{Scenario, TrafficKind, interface_name, link_interface_name};
use weir_units::{Bps, Instant};

/// Most addresses of a host: the network stack's compiled-in limit.
pub const MAX_ADDRESSES: usize = 8;
/// Reason of packets that a host dropped because the receiver's Ethernet address stayed unknown.
pub(crate) const NO_ANSWER: &str = "no answer to ARP or neighbour discovery";
/// Server port of the first item of traffic; items after it have the following ports.
const FIRST_SERVER_PORT: u16 = 5001;
/// Client port of the first item of traffic; items after it have the following ports.
const FIRST_CLIENT_PORT: u16 = 40_001;

/// Host with its network stack on a port.
pub struct StackHost {
    device: StackDevice,
    stack: HostStack,
    tasks: Vec<RunningTask>,
    /// True if there may be more frames than were received.
    more: bool,
    gone: bool,
    /// True if measurements keep the times of each delay.
    keeps_times: bool,
}

/// Network stack, as tasks use it.
pub(crate) struct HostStack {
    pub(crate) interface: Interface,
    pub(crate) sockets: SocketSet<'static>,
}

/// Part of a host in an item of traffic.
pub(crate) trait TrafficTask: Send {
    /// Handles what is due.
    fn poll(&mut self, now: Instant, stack: &mut HostStack) -> TaskWakeup;
    /// Returns its measurements so far.
    fn measured(&self) -> &TrafficMeasurement;
    /// Ends the task and returns its measurements.
    fn finish(self: Box<Self>) -> TrafficMeasurement;
}

/// Time of a task's next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskWakeup {
    /// Acts at this time, or earlier if a frame arrives.
    At(Instant),
    /// Acts when a frame arrives.
    OnFrame,
    /// Acts never again: the sender has finished.
    Done,
}

/// Results of a host.
pub struct HostResult {
    /// Measurements by item of traffic.
    pub measured: Vec<(usize, TrafficMeasurement)>,
    /// Counters of its port.
    pub counters: FrameCounters,
    /// Packets dropped because the receiver's Ethernet address stayed unknown.
    pub unresolved: u64,
}

impl HostResult {
    /// Adds the measurements to those of the items in `measured`, and the drops of the host `name` to `drops`.
    pub fn add_to(self, name: &str, measured: &mut [TrafficMeasurement], drops: &mut Vec<DropCount>) {
        port_drops(name, &self.counters, drops);
        if self.unresolved > 0 {
            let reason = NO_ANSWER.to_owned();
            drops.push(DropCount { place: name.to_owned(), reason, packets: self.unresolved });
        }
        self.measured.into_iter().for_each(|(item, end)| measured[item].merge(end));
    }
}

struct RunningTask {
    item: usize,
    task: Box<dyn TrafficTask>,
    done: bool,
}

/// Addresses and ports of a task's item of traffic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrafficEndpoints {
    /// Address of the receiving host.
    pub(crate) remote: IpAddr,
    /// Port of the receiver; for pings the ICMP identifier.
    pub(crate) server_port: u16,
    /// Source port of the sender.
    pub(crate) client_port: u16,
}

impl StackHost {
    /// Returns a host on `port` with these addresses (at most [`MAX_ADDRESSES`]). `seed` makes its random choices
    /// repeatable.
    pub fn new(port: Box<dyn Port>, mac: weir_packet::MacAddr, addresses: &[IpNet], seed: u64) -> StackHost {
        let mut device = StackDevice::new(port, mac, addresses);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut device, smoltcp::time::Instant::ZERO);
        interface.update_ip_addrs(|own| {
            for net in addresses.iter().take(MAX_ADDRESSES) {
                // Cannot fail: `take` leaves no more addresses than there is room for.
                let _ = own.push(IpCidr::new(IpAddress::from(net.addr), net.prefix));
            }
        });
        let stack = HostStack { interface, sockets: SocketSet::new(Vec::new()) };
        StackHost { device, stack, tasks: Vec::new(), more: false, gone: false, keeps_times: false }
    }

    /// Keeps the times of each delay that is measured from now on, so that those in stops of the machine can be told
    /// ([`TrafficMeasurement::undisturbed`]).
    pub fn keep_times(&mut self) {
        self.keeps_times = true;
    }

    /// Starts the parts of host number `host` in the scenario's traffic; their times count from `start`.
    pub fn start(&mut self, scenario: &Scenario, host: usize, start: Instant) {
        for (item, traffic) in scenario.traffic.iter().enumerate() {
            let offset = u16::try_from(item).unwrap_or(0);
            let ends = TrafficEndpoints {
                remote: traffic.address,
                server_port: FIRST_SERVER_PORT + offset,
                client_port: FIRST_CLIENT_PORT + offset,
            };
            let begin = start + traffic.start;
            let task = if traffic.from == host {
                client(scenario, item, ends, begin, self.keeps_times, &mut self.stack)
            } else if traffic.to == host {
                server(&traffic.kind, ends, self.keeps_times, &mut self.stack)
            } else {
                None
            };
            self.tasks.extend(task.map(|task| RunningTask { item, task, done: false }));
        }
    }

    /// Tells all neighbours the host's addresses, so that a controller knows the host before its traffic begins. The
    /// frames leave with the next call of [`StackHost::poll`].
    pub fn announce(&mut self) {
        self.device.announce();
    }

    /// Receives frames from the port. Call [`StackHost::poll`] afterwards with a later time, so that no frame is
    /// measured as arriving before it did.
    pub fn receive(&mut self, now: Instant) {
        match self.device.receive(now) {
            Ok(more) => self.more = more,
            Err(error) => self.lose(&error),
        }
    }

    /// Handles what is due at `now`. Appends to `done` the items of traffic that have been sent completely. Returns
    /// the time of the next call if no frame arrives before.
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

    /// Marks the port as gone: frames are no longer received, and sent ones are lost.
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
                TaskWakeup::At(at) => next = next.min(at),
                TaskWakeup::OnFrame => {}
                TaskWakeup::Done => {
                    running.done = true;
                    done.push(running.item);
                }
            }
        }
        next
    }

    /// Returns the counters of its port.
    pub fn counters(&self) -> FrameCounters {
        self.device.port.counters()
    }

    /// Returns the measurements so far by item of traffic.
    pub fn measured(&self) -> impl Iterator<Item = (usize, &TrafficMeasurement)> {
        self.tasks.iter().map(|running| (running.item, running.task.measured()))
    }

    /// Ends all tasks. Returns their measurements and the host's drops.
    pub fn finish(self) -> HostResult {
        let measured = self.tasks.into_iter().map(|running| (running.item, running.task.finish())).collect();
        HostResult { measured, counters: self.device.port.counters(), unresolved: self.device.unresolved() }
    }

    /// Arms the port for sleeping as [`Port::arm`] does.
    pub fn arm(&mut self) -> ReceiveReadiness {
        if self.gone { ReceiveReadiness::OnDescriptor } else { self.device.port.arm() }
    }

    /// Returns the port's descriptor as [`Port::fd`] does; `None` if the port is gone.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.device.port.fd().filter(|_| !self.gone)
    }
}

/// Makes a scenario's hosts on memory ports. Returns them with the switches' ends of the ports. Links without a rate
/// in the scenario get the rate `unsaid`.
///
/// # Errors
/// The operating system refuses the descriptors of a memory port.
pub fn memory_hosts(scenario: &Scenario, unsaid: Option<Bps>) -> Result<(Vec<StackHost>, SwitchPorts), NetworkError> {
    let mut hosts = Vec::new();
    let mut ports = Vec::new();
    for (number, host) in scenario.hosts.iter().enumerate() {
        let (near, far) = memory::pair(MEMORY_FRAMES).map_err(NetworkError::MemoryPort)?;
        let spec = rated(&host.link, unsaid);
        ports.push(shaped(
            near.named(&interface_name(&host.name)),
            &spec,
            random_stream_id(scenario, LinkEndId::ToHost(number)),
        ));
        let port = far.named(&link_interface_name(&host.name, "eth0"));
        let port = shaped(port, &spec, random_stream_id(scenario, LinkEndId::OfHost(number)));
        hosts.push(StackHost::new(port, host.mac, &host.ip, scenario.seed.wrapping_add(number as u64)));
    }
    Ok((hosts, ports))
}

/// Refuses a scenario that has a host with more addresses than [`MAX_ADDRESSES`].
///
/// # Errors
/// A host has more addresses.
pub fn check_addresses(scenario: &Scenario) -> Result<(), NetworkError> {
    let Some(host) = scenario.hosts.iter().find(|host| host.ip.len() > MAX_ADDRESSES) else { return Ok(()) };
    let (name, found) = (&host.name, host.ip.len());
    let problem = format!("host {name}: found {found} addresses, expected at most {MAX_ADDRESSES}");
    Err(NetworkError::Scenario(problem))
}

/// Returns the sending task of an item. The random numbers depend on the scenario's seed and the item's number.
fn client(
    scenario: &Scenario,
    item: usize,
    ends: TrafficEndpoints,
    begin: Instant,
    keeps_times: bool,
    stack: &mut HostStack,
) -> Option<Box<dyn TrafficTask>> {
    Some(match &scenario.traffic[item].kind {
        TrafficKind::Ping { count, interval } => {
            Box::new(ping::PingTask::new(ends, begin, *count, *interval, keeps_times, stack))
        }
        TrafficKind::Tcp { duration } => Box::new(tcp::TcpClientTask::new(ends, begin, *duration, stack)),
        TrafficKind::Udp { .. } => {
            Box::new(udp::UdpClientTask::new(ends, DatagramPlan::of(scenario, item, begin, ends.client_port)?, stack))
        }
    })
}

/// Returns the receiving task of an item; `None` for pings, which the stack answers itself.
fn server(
    kind: &TrafficKind,
    ends: TrafficEndpoints,
    keeps_times: bool,
    stack: &mut HostStack,
) -> Option<Box<dyn TrafficTask>> {
    match kind {
        TrafficKind::Ping { .. } => None,
        TrafficKind::Tcp { .. } => Some(Box::new(tcp::TcpServerTask::new(ends, stack))),
        TrafficKind::Udp { .. } => Some(Box::new(udp::UdpServerTask::new(ends, keeps_times, stack))),
    }
}

/// Converts a time to smoltcp's, rounding down to microseconds.
fn smoltcp_time(now: Instant) -> smoltcp::time::Instant {
    smoltcp::time::Instant::from_micros(i64::try_from(now.as_nanos() / 1000).unwrap_or(i64::MAX))
}

fn weir_time(time: smoltcp::time::Instant) -> Instant {
    Instant::from_nanos(u64::try_from(time.total_micros()).unwrap_or(0).saturating_mul(1000))
}
