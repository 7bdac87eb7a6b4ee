//! Connects the measurement to a real device: network interfaces connected to its ports, and its control channel if
//! it has one.
use crate::device::{DeviceEvent, DeviceUnderTest};
use crate::{ProfilerError, SwitchAddress};
use std::collections::VecDeque;
use std::time::Duration;
use weir_client::OpenFlowClient;
use weir_openflow::{Message, Version};
use weir_packet::{Frame, FramePool};
use weir_port::{Port, PortSpec, ReceiveReadiness, event};
use weir_units::{Clock as _, Instant, StallLog, SystemClock};

/// Most frames received from an interface in one call.
const BURST: usize = 32;
/// Sleeping ends this long before the next due time, because waking up takes time.
const AWAKE_BEFORE: Duration = Duration::from_micros(200);
/// Time without sleeping after something was sent, so that waking up does not add to the measured delay.
const AWAKE_AFTER: Duration = Duration::from_millis(50);
/// Longest normal duration of sending a frame that closely follows others; longer ones mean that the process was
/// suspended.
const SHORT: Duration = Duration::from_micros(10);
/// Time between two looks at the clock from which on the thread was stopped, unless it slept.
const STOP: Duration = Duration::from_micros(200);
/// Longest sleep, so that stop requests are seen.
const NAP: Duration = Duration::from_millis(20);
/// Longest wait for the link of an interface that was just set up: the kernel reports it with a delay.
const LINK: Duration = Duration::from_secs(2);

/// Real device, with all times from one system clock.
pub struct LiveDevice {
    clock: SystemClock,
    channel: Option<OpenFlowClient>,
    /// Ports, each with the hardware or kernel timestamps that it provides.
    ports: Vec<(Box<dyn Port>, InterfaceTimestamps)>,
    pool: FramePool,
    batch: Vec<Frame>,
    came: VecDeque<DeviceEvent>,
    /// Time at which something was last sent.
    sent: Instant,
    /// Stops of the measuring thread.
    stops: StallLog,
    /// True if delays start before sending a frame, even if the interface reports its departure.
    counts_sending: bool,
}

/// Timestamps that an interface provides.
#[derive(Debug, Clone, Copy)]
struct InterfaceTimestamps {
    arrivals: bool,
    departures: bool,
}

impl LiveDevice {
    /// Opens the interfaces, then the channel. An interface is a name, or a port such as `af_xdp:eth0`.
    ///
    /// # Errors
    /// An interface is missing, down or named twice, or the switch does not answer.
    pub fn open(
        target: &SwitchAddress,
        interfaces: &[String],
        versions: &[Version],
        patience: Duration,
    ) -> Result<LiveDevice, ProfilerError> {
        let mut made = LiveDevice::without_channel(interfaces)?;
        made.channel = Some(OpenFlowClient::open(target, versions, patience, made.clock)?);
        Ok(made)
    }

    /// Opens interfaces connected to a device without a control channel, or only to each other.
    ///
    /// # Errors
    /// An interface is missing, down or named twice.
    pub fn without_channel(interfaces: &[String]) -> Result<LiveDevice, ProfilerError> {
        if let Some(twice) = interfaces.iter().enumerate().find(|(at, name)| interfaces[..*at].contains(name)) {
            return Err(ProfilerError::wrong(format!("--data {}", twice.1), "it twice", "an interface for each port"));
        }
        let clock = SystemClock::start();
        let ports = interfaces.iter().map(|name| open(name, clock)).collect::<Result<Vec<_>, _>>()?;
        let (pool, batch, came) = (FramePool::new(4096, 64), Vec::new(), VecDeque::new());
        let (sent, stops) = (Instant::ZERO, StallLog::default());
        Ok(LiveDevice { clock, channel: None, ports, pool, batch, came, sent, stops, counts_sending: false })
    }

    /// Sets whether delays start before sending a frame even where interfaces report its departure. Use it if the
    /// rig's delay, which is subtracted, includes sending ([`crate::RigDelayTable::has_sending`]).
    pub fn count_sending(&mut self, does_count: bool) {
        self.counts_sending = does_count;
    }

    /// Receives the frames and messages that have arrived.
    fn look(&mut self) -> Result<(), ProfilerError> {
        for (interface, (port, stamps)) in self.ports.iter_mut().enumerate() {
            port.receive(self.clock.now(), &mut self.pool, &mut self.batch, BURST)?;
            let now = self.clock.now();
            for frame in self.batch.drain(..) {
                // After a sleep this code runs late; the timestamp of the frame is earlier.
                let at = if stamps.arrivals { Instant::from_nanos(frame.arrived()).min(now) } else { now };
                self.came.push_back(DeviceEvent::Frame { at, interface, bytes: frame.bytes().to_vec() });
                self.pool.give(frame);
            }
        }
        let Some(channel) = &mut self.channel else { return Ok(()) };
        while let Some((at, message)) = channel.poll()? {
            self.came.push_back(DeviceEvent::Message { at, message });
        }
        Ok(())
    }

    /// Records that something was sent since `began`. What the caller did before that is no stop.
    fn worked(&mut self, began: Instant) {
        self.stops.look_away();
        if self.sent.since(began) >= STOP {
            self.stops.note(began, self.sent);
        }
    }

    /// Sleeps until something arrives, if there is enough time before `until`.
    fn sleep(&mut self, until: Instant) {
        let now = self.clock.now();
        let time = until.since(now).saturating_sub(AWAKE_BEFORE).min(NAP);
        let is_under_way = now.since(self.sent) < AWAKE_AFTER;
        if time.is_zero() || is_under_way || self.channel.as_mut().is_some_and(OpenFlowClient::has_output) {
            std::hint::spin_loop();
            return;
        }
        if self.ports.iter_mut().any(|(port, _)| port.arm() == ReceiveReadiness::Now) {
            return;
        }
        let mut descriptors: Vec<_> = self.ports.iter().filter_map(|(port, _)| port.fd()).collect();
        descriptors.extend(self.channel.as_ref().map(OpenFlowClient::fd));
        event::wait_any(&descriptors, Some(time));
        self.stops.look_away();
    }
}

fn open(name: &str, clock: SystemClock) -> Result<(Box<dyn Port>, InterfaceTimestamps), ProfilerError> {
    let text = if name.contains(':') { name.to_owned() } else { format!("af_packet:{name}") };
    let mut port = weir_port::open(&text.parse::<PortSpec>()?)?;
    if !is_up_soon(port.as_mut(), clock) {
        let expected = format!("an interface that is up; set it up: ip link set {name} up, and so the other end");
        return Err(ProfilerError::wrong(format!("--data {name}"), "no link", expected));
    }
    let stamps = InterfaceTimestamps { arrivals: port.stamp_arrivals(clock), departures: port.stamp_departures(clock) };
    Ok((port, stamps))
}

/// Returns true if a port has its link, or gets it within [`LINK`].
fn is_up_soon(port: &mut dyn Port, clock: SystemClock) -> bool {
    let end = clock.now() + LINK;
    loop {
        if port.link().up {
            return true;
        }
        if clock.now() >= end {
            return false;
        }
        event::wait_any(&[], Some(LINK / 20));
    }
}

impl DeviceUnderTest for LiveDevice {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn interfaces(&self) -> usize {
        self.ports.len()
    }

    fn version(&self) -> Option<Version> {
        self.channel.as_ref().map(OpenFlowClient::version)
    }

    fn was_stopped(&self, from: Instant, until: Instant) -> bool {
        self.stops.touch(from, until)
    }

    fn send(&mut self, messages: &[Message]) -> Result<(), ProfilerError> {
        let Some(channel) = &mut self.channel else { return Ok(()) };
        let began = self.clock.now();
        channel.send(messages)?;
        self.sent = self.clock.now();
        self.worked(began);
        Ok(())
    }

    fn transmit(&mut self, interface: usize, frame: &[u8]) -> Result<Option<Instant>, ProfilerError> {
        let Some((port, stamps)) = self.ports.get_mut(interface) else { return Ok(None) };
        let mut made = self.pool.take(frame.len());
        made.assign(frame);
        self.batch.push(made);
        let began = self.clock.now();
        port.transmit(began, &mut self.pool, &mut self.batch)?;
        // Frames that the interface did not accept are lost, as [`DeviceUnderTest::transmit`] says.
        while let Some(left) = self.batch.pop() {
            self.pool.give(left);
        }
        let reports = stamps.departures && !self.counts_sending;
        let departed = if reports { port.departed() } else { None };
        self.sent = self.clock.now();
        self.worked(began);
        // Interfaces report no departure for frames that follow each other closely. In a short call the frame leaves
        // about half-way.
        let took = self.sent.since(began);
        let half_way = (reports && took < SHORT).then_some(began + took / 2);
        Ok(departed.or(half_way))
    }

    fn wait(&mut self, until: Instant) -> Result<Option<DeviceEvent>, ProfilerError> {
        loop {
            self.stops.look(self.clock.now(), STOP);
            if let Some(seen) = self.came.pop_front() {
                return Ok(Some(seen));
            }
            self.look()?;
            if self.came.is_empty() {
                if self.clock.now() >= until {
                    return Ok(None);
                }
                self.sleep(until);
            }
        }
    }
}
