//! A switch that is really there: its control channel, and network interfaces that lead to its ports.
use crate::connection::Connection;
use crate::device::{Device, Seen};
use crate::{ProfilerError, Target};
use std::collections::VecDeque;
use std::time::Duration;
use weir_openflow::{Message, Version};
use weir_packet::{Frame, FramePool};
use weir_port::{Port, PortSpec, Ready, event};
use weir_units::{Clock as _, Instant, SystemClock};

/// Frames taken from an interface at once.
const BURST: usize = 32;
/// How long before something is due sleeping ends: waking up takes the system some of it.
const AWAKE_BEFORE: Duration = Duration::from_micros(200);
/// How long is slept at most: stopping is to be seen.
const NAP: Duration = Duration::from_millis(20);

/// See the module's page.
pub struct Live {
    clock: SystemClock,
    connection: Connection,
    ports: Vec<Box<dyn Port>>,
    pool: FramePool,
    batch: Vec<Frame>,
    came: VecDeque<Seen>,
}

impl Live {
    /// Opens interfaces, then the channel. An interface is a name, or a port such as `af_xdp:eth0`.
    ///
    /// # Errors
    /// An interface is not there or down, or the switch does not answer.
    pub fn open(
        target: &Target,
        interfaces: &[String],
        versions: &[Version],
        patience: Duration,
    ) -> Result<Live, ProfilerError> {
        let ports = interfaces.iter().map(|name| open(name)).collect::<Result<Vec<_>, _>>()?;
        let clock = SystemClock::start();
        let connection = Connection::open(target, versions, patience, clock)?;
        let (pool, batch, came) = (FramePool::new(4096, 64), Vec::new(), VecDeque::new());
        Ok(Live { clock, connection, ports, pool, batch, came })
    }

    /// Takes in what is there.
    fn look(&mut self) -> Result<(), ProfilerError> {
        for (interface, port) in self.ports.iter_mut().enumerate() {
            port.receive(self.clock.now(), &mut self.pool, &mut self.batch, BURST)?;
            let at = self.clock.now();
            for frame in self.batch.drain(..) {
                self.came.push_back(Seen::Frame { at, interface, bytes: frame.bytes().to_vec() });
                self.pool.give(frame);
            }
        }
        while let Some((at, message)) = self.connection.poll()? {
            self.came.push_back(Seen::Message { at, message });
        }
        Ok(())
    }

    /// Sleeps if there is time to, until something comes.
    fn sleep(&mut self, until: Instant) {
        let time = until.since(self.clock.now()).saturating_sub(AWAKE_BEFORE).min(NAP);
        if time.is_zero() || self.connection.has_output() {
            std::hint::spin_loop();
            return;
        }
        if self.ports.iter_mut().any(|port| port.arm() == Ready::Now) {
            return;
        }
        let mut descriptors: Vec<_> = self.ports.iter().filter_map(|port| port.fd()).collect();
        descriptors.push(self.connection.fd());
        event::wait_any(&descriptors, Some(time));
    }
}

fn open(name: &str) -> Result<Box<dyn Port>, ProfilerError> {
    let text = if name.contains(':') { name.to_owned() } else { format!("af_packet:{name}") };
    let mut port = weir_port::open(&text.parse::<PortSpec>()?)?;
    if !port.link().up {
        let expected = format!("an interface that is up; set it up: ip link set {name} up, and so the other end");
        return Err(ProfilerError::wrong(format!("--data {name}"), "no link", expected));
    }
    Ok(port)
}

impl Device for Live {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn interfaces(&self) -> usize {
        self.ports.len()
    }

    fn version(&self) -> Version {
        self.connection.version()
    }

    fn send(&mut self, messages: &[Message]) -> Result<(), ProfilerError> {
        self.connection.send(messages)
    }

    fn transmit(&mut self, interface: usize, frame: &[u8]) -> Result<(), ProfilerError> {
        let Some(port) = self.ports.get_mut(interface) else { return Ok(()) };
        let mut made = self.pool.take(frame.len());
        made.assign(frame);
        self.batch.push(made);
        port.transmit(self.clock.now(), &mut self.pool, &mut self.batch)?;
        // What the interface did not take is lost, as the trait says.
        while let Some(left) = self.batch.pop() {
            self.pool.give(left);
        }
        Ok(())
    }

    fn wait(&mut self, until: Instant) -> Result<Option<Seen>, ProfilerError> {
        loop {
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
