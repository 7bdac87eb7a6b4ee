//! Runs chains and rings of switches with in-band control in this process. Links are cables in memory with a delay.
//! Each switch is on threads in a network namespace of its own, with the local port as its only interface, and so is
//! the controller.
use super::app::{ChainApp, SharedLog};
use crate::{ExperimentError, ExperimentRun};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use weir_controller::{Controller, ControllerConfig, ListenAddress};
use weir_datapath::DatapathConfig;
use weir_emulator::CancelHandle;
use weir_openflow::model::PortNo;
use weir_packet::craft::FrameBuilder;
use weir_packet::{Frame, FramePool, MacAddr};
use weir_port::Port;
use weir_port::kernel::{NetlinkConnection, enter_new_namespace};
use weir_switch::{ControllerSpec, InBandSettings, PortConfig, SoftwareSwitch, SoftwareSwitchConfig, SwitchHandle};
use weir_units::{Clock as _, Instant, SystemClock};

/// Delay of each link, as published.
const LINK_DELAY: &str = "delay=100us";
/// Address of the controller.
const CONTROLLER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 100));
const CONTROLLER_PORT: u16 = 6653;
/// Length of the network's prefix.
const PREFIX: u8 = 24;
// Ports of a switch: to the controller or the switch before it, to the switch after it, to a host, and the one that
// closes a ring.
const BEFORE: PortNo = PortNo(1);
const AFTER: PortNo = PortNo(2);
const HOST: PortNo = PortNo(3);
const CLOSING: PortNo = PortNo(4);
/// Time after which sessions or a packet count as lost.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two looks for what is expected.
const LOOK: Duration = Duration::from_millis(1);

/// Arrangement of the switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// Switches in a row, the controller at the first, hosts at both ends.
    Chain,
    /// Chain with a link from the last switch to the first.
    Ring,
}

/// A running network. Everything ends when it is dropped.
pub(super) struct InBandNetwork {
    pub(super) log: SharedLog,
    pub(super) clock: SystemClock,
    /// Time at which the first switch was started.
    pub(super) started: Instant,
    /// Switches, that with the number 1 first.
    switches: Vec<SwitchHandle>,
    _controller: Controller,
    hosts: [Box<dyn Port>; 2],
    pool: FramePool,
    sent: u16,
}

/// Returns why such networks cannot run here; `None` if they can.
pub(super) fn missing() -> Option<&'static str> {
    // The namespace ends with the thread.
    let made = std::thread::spawn(enter_new_namespace).join();
    if matches!(made, Ok(Ok(()))) { None } else { Some("network namespaces need root: use sudo") }
}

impl InBandNetwork {
    /// Starts the controller, then the switches from the first to the last.
    ///
    /// # Errors
    /// The system refuses namespaces, interfaces or threads.
    pub(super) fn start(arrangement: Arrangement, count: u32) -> Result<InBandNetwork, ExperimentError> {
        let (clock, log) = (SystemClock::start(), SharedLog::default());
        let (controller, uplink) = start_controller(clock, log.clone())?;
        let mut ports: Vec<Vec<PortConfig>> = (0..count).map(|_| Vec::new()).collect();
        ports[0].push(PortConfig::new(BEFORE, uplink));
        let last = ports.len() - 1;
        for place in 0..last {
            let [near, far] = cable()?;
            ports[place].push(PortConfig::new(AFTER, near));
            ports[place + 1].push(PortConfig::new(BEFORE, far));
        }
        if arrangement == Arrangement::Ring {
            let [near, far] = cable()?;
            ports[last].push(PortConfig::new(AFTER, near));
            ports[0].push(PortConfig::new(CLOSING, far));
        }
        let ([first, mut near], [end, mut far]) = (cable()?, cable()?);
        ports[0].push(PortConfig::new(HOST, first));
        // A single switch has both hosts.
        ports[last].push(PortConfig::new(if last == 0 { AFTER } else { HOST }, end));
        [&mut near, &mut far].into_iter().for_each(|host| _ = host.stamp_arrivals(clock));
        let started = clock.now();
        let mut switches = Vec::new();
        for (number, ports) in (1..).zip(ports) {
            let onward = if number == count && count > 1 { HOST } else { AFTER };
            log.lock().onward.insert(number.into(), onward);
            switches.push(start_switch(number, ports, clock)?);
        }
        let (hosts, pool) = ([near, far], FramePool::default());
        Ok(InBandNetwork { log, clock, started, switches, _controller: controller, hosts, pool, sent: 0 })
    }

    /// Waits until all switches have a session. Returns the time from the start of the first switch to the last
    /// session; `None` if one did not come up in time, or the run was stopped.
    pub(super) fn all_up(&self, run: &ExperimentRun<'_>) -> Option<Duration> {
        let all = || self.log.lock().up.len() == self.switches.len();
        self.wait(&run.options.cancel, all)?;
        let up = self.log.lock().up.values().copied().max()?;
        Some(up.since(self.started))
    }

    /// Sends the first packet of a new flow from the first host. Returns the time after which the second has it; `None`
    /// if it was lost, or the run was stopped.
    pub(super) fn first_packet(&mut self, run: &ExperimentRun<'_>) -> Option<Duration> {
        self.sent += 1;
        let [high, low] = self.sent.to_be_bytes();
        let (from, to) = (MacAddr([2, 0, 0, 1, high, low]), MacAddr([2, 0, 0, 2, 0, 0]));
        let bytes = FrameBuilder::ethernet(to, from).ipv4([10, 9, 1, 1].into(), [10, 9, 1, 2].into()).udp(9, 9).build();
        let [near, far] = &mut self.hosts;
        let sent = self.clock.now();
        near.transmit(sent, &mut self.pool, &mut vec![Frame::from_bytes(&bytes)]).ok()?;
        let mut frames = Vec::new();
        while !run.options.cancel.wait(LOOK) && self.clock.now().since(sent) < PATIENCE {
            far.receive(self.clock.now(), &mut self.pool, &mut frames, 32).ok()?;
            let arrived =
                frames.iter().find(|frame| frame.bytes().get(6..12) == Some(&from.0)).map(|frame| frame.arrived());
            frames.drain(..).for_each(|frame| self.pool.give(frame));
            if let Some(arrived) = arrived {
                return Some(Instant::from_nanos(arrived).since(sent));
            }
        }
        None
    }

    /// Cuts the link after a switch, whose number is given: one end vanishes, and the other loses its carrier. Returns
    /// the time.
    ///
    /// # Errors
    /// The switch has no such port.
    pub(super) fn cut_after(&self, number: usize) -> Result<Instant, ExperimentError> {
        let [one, other] = [number - 1, number % self.switches.len()].map(|place| &self.switches[place]);
        let cut = self.clock.now();
        one.remove_port(AFTER)?;
        // The kernel reports a lost carrier of an interface at once; a cable in memory has to be looked at.
        other.look_at_links()?;
        Ok(cut)
    }

    /// Returns the number of hidden entries of the first switch.
    ///
    /// # Errors
    /// The switch has stopped.
    pub(super) fn hidden_entries(&self) -> Result<usize, ExperimentError> {
        Ok(self.switches[0].snapshot()?.in_band.map_or(0, |in_band| in_band.entries.len()))
    }

    /// Waits until something is true. Returns `None` if it does not become true in time, or the run was stopped.
    pub(super) fn wait(&self, cancel: &CancelHandle, is_true: impl Fn() -> bool) -> Option<()> {
        let start = self.clock.now();
        while !is_true() {
            if cancel.wait(LOOK) || self.clock.now().since(start) > PATIENCE {
                return None;
            }
        }
        Some(())
    }
}

/// Opens the two ends of a link.
fn cable() -> Result<[Box<dyn Port>; 2], ExperimentError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("memory:inband-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Ok([open(&format!("{name},{LINK_DELAY}"))?, open(&name)?])
}

fn open(spec: &str) -> Result<Box<dyn Port>, ExperimentError> {
    let wrong = |error: weir_port::PortError| ExperimentError::Case(error.to_string());
    weir_port::open(&spec.parse().map_err(wrong)?).map_err(wrong)
}

/// Runs `work` on a thread in a network namespace of its own, with an interface that has this address. `work` is given
/// the switch's end of the interface.
fn in_namespace<T: Send>(
    interface: &str,
    address: IpAddr,
    work: impl FnOnce(Box<dyn Port>) -> Result<T, ExperimentError> + Send,
) -> Result<T, ExperimentError> {
    let failed = |tried: &'static str| move |error| ExperimentError::Case(format!("{tried}: {error}"));
    let inside = || {
        enter_new_namespace().map_err(failed("making a network namespace"))?;
        let port = open(interface)?;
        let mut kernel = NetlinkConnection::here().map_err(failed("opening a netlink socket"))?;
        let index = kernel.index(&port.info().name).map_err(failed("finding the interface"))?;
        kernel.add_address(index, address, PREFIX).map_err(failed("adding an address"))?;
        work(port)
    };
    let panicked = || ExperimentError::Case("a thread in a network namespace panicked".to_owned());
    std::thread::scope(|scope| scope.spawn(inside).join()).unwrap_or_else(|_| Err(panicked()))
}

/// Starts the controller. Returns it and the first switch's port to it.
fn start_controller(clock: SystemClock, log: SharedLog) -> Result<(Controller, Box<dyn Port>), ExperimentError> {
    in_namespace(&format!("tap:controller,{LINK_DELAY}"), CONTROLLER, move |port| {
        let listen = vec![ListenAddress::Tcp((CONTROLLER, CONTROLLER_PORT).into())];
        let config = ControllerConfig { listen, ..ControllerConfig::default() };
        let started = Controller::start(Box::new(ChainApp::new(clock, log)), config);
        let started = started.map_err(|error| ExperimentError::Case(format!("starting a controller: {error}")))?;
        Ok((started, port))
    })
}

fn start_switch(number: u32, mut ports: Vec<PortConfig>, clock: SystemClock) -> Result<SwitchHandle, ExperimentError> {
    let place = u8::try_from(number).unwrap_or(u8::MAX);
    in_namespace("tap:local", Ipv4Addr::new(10, 9, 0, place).into(), move |local| {
        ports.push(PortConfig::new(PortNo::LOCAL, local));
        let controller = format!("tcp:{CONTROLLER}:{CONTROLLER_PORT}").parse::<ControllerSpec>();
        let controller = controller.map_err(ExperimentError::Case)?;
        let config = SoftwareSwitchConfig {
            datapath: DatapathConfig {
                name: format!("s{number}"),
                datapath_id: number.into(),
                ..DatapathConfig::default()
            },
            ports,
            controllers: vec![controller],
            in_band: Some(InBandSettings::default()),
            clock,
            ..SoftwareSwitchConfig::default()
        };
        Ok(SoftwareSwitch::start(config)?)
    })
}
