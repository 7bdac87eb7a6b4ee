//! Makes the ends of links: memory ports that shape what they send, and queues in front of switches' ports.
use crate::NetworkError;
use std::io;
use weir_port::link::{LinkControl, LinkEmulator, LinkShape};
use weir_port::queues::{self, PortQueueConfig};
use weir_port::{Port, memory};
use weir_scenario::{LinkSpec, PortQueueSpec, Scenario};
use weir_units::Bps;

/// Frames that a memory port holds on their way: several bursts of 64 kB of small frames.
pub const MEMORY_FRAMES: usize = 4096;

/// Switches' ends of hosts' links, one for each host.
pub type SwitchPorts = Vec<Box<dyn Port>>;

/// Ends of a link, and the control of each.
pub type ControlledEnds = ([Box<dyn Port>; 2], [LinkControl; 2]);

/// Seed, and number of the stream of random numbers.
pub type RandomStreamId = (u64, u64);

/// End of a link.
#[derive(Debug, Clone, Copy)]
pub enum LinkEndId {
    /// Switch's end of a host's link, by the host's index.
    ToHost(usize),
    /// Host's end of its link, by the host's index.
    OfHost(usize),
    /// End (0 or 1) of a link between switches, by the link's index.
    Link(usize, usize),
}

/// Returns the shape of a link, for an end that shapes the frames it sends.
pub fn shape(spec: &LinkSpec) -> LinkShape {
    LinkShape { rate: spec.rate, delay: spec.delay, buffer: spec.buffer, jitter: spec.jitter, loss: spec.loss }
}

/// Returns the link with the rate `unsaid` if it has none.
pub fn rated(spec: &LinkSpec, unsaid: Option<Bps>) -> LinkSpec {
    LinkSpec { rate: spec.rate.or(unsaid), ..*spec }
}

/// Wraps `port` so that sent frames are shaped, if the link has a rate, delay, jitter or loss. The last argument
/// seeds the random numbers.
pub fn shaped(port: impl Port + 'static, spec: &LinkSpec, (seed, number): RandomStreamId) -> Box<dyn Port> {
    let shape = shape(spec);
    if shape.is_none() {
        return Box::new(port);
    }
    Box::new(LinkEmulator::new(Box::new(port), shape, LinkShape::default()).seeded(seed, number))
}

/// Returns the seed and number for the random numbers of a link's end, which are equal in every engine.
pub fn random_stream_id(scenario: &Scenario, at: LinkEndId) -> RandomStreamId {
    let hosts = scenario.hosts.len();
    let number = match at {
        LinkEndId::ToHost(host) => 2 * host,
        LinkEndId::OfHost(host) => 2 * host + 1,
        LinkEndId::Link(link, end) => 2 * (hosts + link) + end,
    };
    (scenario.seed, number as u64)
}

/// Puts a scenario's queues in front of a switch's port.
///
/// # Errors
/// The port cannot provide the queues.
pub fn queued(port: Box<dyn Port>, queues: &[PortQueueSpec]) -> Result<Box<dyn Port>, NetworkError> {
    let config = |queue: &PortQueueSpec| PortQueueConfig {
        id: queue.queue,
        min: queue.min,
        max: queue.max,
        buffer: queue.buffer,
        priority: queue.priority,
    };
    let name = port.info().name.clone();
    let queued = queues::queued(port, queues.iter().map(config).collect());
    queued.map_err(|problem| NetworkError::Scenario(format!("port {name}: {problem}")))
}

/// Returns the two ends of a link between switches, shaped. `names` are of the ports
/// ([`Scenario::link_port_names`]).
///
/// # Errors
/// The operating system refuses the descriptors of a memory port.
pub fn link_ports(
    names: &[String; 2],
    spec: &LinkSpec,
    stream_ids: [RandomStreamId; 2],
) -> io::Result<[Box<dyn Port>; 2]> {
    let (a, b) = memory::pair(MEMORY_FRAMES)?;
    let [one, two] = names;
    let [first, second] = stream_ids;
    let (a, b) = (a.named(one), b.named(two));
    Ok([shaped(a, spec, first), shaped(b, spec, second)])
}

/// Returns what [`link_ports`] returns, with a control for each end.
///
/// # Errors
/// Fails for the reason of [`link_ports`].
pub fn controlled_ports(
    names: &[String; 2],
    spec: &LinkSpec,
    stream_ids: [RandomStreamId; 2],
) -> io::Result<ControlledEnds> {
    let (a, b) = memory::pair(MEMORY_FRAMES)?;
    let [one, two] = names;
    let controls = [(); 2].map(|()| LinkControl::new(shape(spec), LinkShape::default()));
    let controlled = |port, control: &LinkControl, (seed, number): RandomStreamId| -> Box<dyn Port> {
        Box::new(LinkEmulator::controlled(Box::new(port), control.clone()).seeded(seed, number))
    };
    let [first, second] = stream_ids;
    let (a, b) = (a.named(one), b.named(two));
    let ends = [controlled(a, &controls[0], first), controlled(b, &controls[1], second)];
    Ok((ends, controls))
}
