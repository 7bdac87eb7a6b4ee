//! Holds what all logical switches of an engine share: its clock, its frame buffers and its ports.
use super::idle::IdlePorts;
use super::links::LinkStateWatcher;
use super::perf::TscCalibration;
use super::ports::PortSlots;
use crate::clock::SwitchClock;
use crate::control::AbsentPorts;
use crate::handle::SwitchError;
use crate::threads::removed_ports::RemovedPortDrops;
use std::sync::Arc;
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_port::{Port, PortError};
use weir_units::{Clock, Instant};

/// Default number of frames taken from a port at once: enough to share the cost of a round, few enough to stay in the
/// first-level cache.
const BURST: usize = 32;

/// Clock, frame buffers and ports of an engine.
pub(crate) struct EngineIo {
    pub(super) clock: SwitchClock,
    pub(super) calibration: TscCalibration,
    pub(super) pool: FramePool,
    pub(super) ports: PortSlots,
    pub(super) links: LinkStateWatcher,
    pub(super) idle: IdlePorts,
    /// Number of ports whose device is missing, which the control thread reopens.
    pub(super) absent: Arc<AbsentPorts>,
    /// Counts frames dropped because their port was removed.
    pub(super) removed: RemovedPortDrops,
    /// Frames that were received from one port and are not looked up yet.
    pub(super) batch: Vec<Frame>,
    /// Maximum number of frames taken from a port at once.
    pub(super) burst: usize,
    /// Events that the engine has not handled yet.
    events: Vec<PortEvent>,
}

/// A change of a port that its datapath has not been told yet.
#[derive(Debug)]
pub(super) enum PortEvent {
    /// The port's device failed.
    Lost(PortNo, PortError),
    /// A controller sets the port administratively up (true) or down.
    Admin(PortNo, bool),
    /// The port's link went up (true) or down, or has another rate, in kbit/s.
    Link(PortNo, bool, u32),
}

impl EngineIo {
    /// Returns the state of an engine without ports. It keeps `absent` at the number of ports whose device is missing.
    pub(super) fn new(clock: SwitchClock, absent: Arc<AbsentPorts>) -> EngineIo {
        EngineIo {
            clock,
            calibration: TscCalibration::start(clock),
            pool: FramePool::default(),
            ports: PortSlots::default(),
            links: LinkStateWatcher::default(),
            idle: IdlePorts::default(),
            absent,
            removed: RemovedPortDrops::default(),
            batch: Vec::with_capacity(BURST),
            burst: BURST,
            events: Vec::new(),
        }
    }

    /// Returns the current time.
    #[inline]
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns the rate of the time stamp counter, in counts per nanosecond.
    pub(crate) fn cycles_per_ns(&self) -> f64 {
        self.calibration.cycles_per_ns(self.clock)
    }

    /// Receives at most one burst from the port at index `place` into the batch, and transmits frames that the port
    /// delayed. `is_held` is true if the port must not be read now.
    #[inline]
    pub(super) fn receive(&mut self, now: Instant, place: usize, is_held: bool) {
        let slot = self.ports.at(place);
        let Some(port) = slot.port.as_mut() else { return };
        let mut result = if is_held { Ok(()) } else { port.receive(now, &mut self.pool, &mut self.batch, self.burst) };
        if result.is_ok() && port.next_wake().is_some_and(|at| at <= now) {
            result = port.transmit(now, &mut self.pool, &mut Vec::new());
        }
        if !is_held {
            self.idle.asked(slot, !self.batch.is_empty());
        }
        if let Err(error) = result {
            self.events.push(PortEvent::Lost(slot.number, error));
        }
    }

    /// Transmits frames on the port `number`; drops them if the port was removed in this round.
    #[inline]
    pub(super) fn transmit(&mut self, now: Instant, number: PortNo, frames: &mut Vec<Frame>) {
        if !self.transmit_if_open(now, number, frames) {
            self.removed.drop_frames(frames, &mut self.pool);
        }
    }

    /// Transmits frames on the port `number`. Returns false and leaves `frames` unchanged if the port is not open.
    #[inline]
    pub(super) fn transmit_if_open(&mut self, now: Instant, number: PortNo, frames: &mut Vec<Frame>) -> bool {
        let Some(port) = self.ports.open_port(number) else { return false };
        if let Err(error) = port.transmit(now, &mut self.pool, frames) {
            self.events.push(PortEvent::Lost(number, error));
        }
        true
    }

    /// Earliest time at which a port has delayed frames to release.
    pub(super) fn frames_due(&self) -> Instant {
        self.ports.open().filter_map(Port::next_wake).fold(Instant::FAR, Instant::min)
    }

    /// Records an event for the engine, which handles it before the next control message.
    pub(super) fn note(&mut self, event: PortEvent) {
        self.events.push(event);
    }

    /// Returns true if the engine has events to handle.
    #[inline]
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Removes and returns the events, in their order.
    pub(super) fn take_events(&mut self) -> Vec<PortEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the error for a number that no port has.
    pub(super) fn no_port(&self, number: PortNo) -> SwitchError {
        SwitchError::NoPort { found: number.to_string(), ports: port_list(&self.ports.named()) }
    }
}

/// Returns ports with their names as a list for error messages.
pub(super) fn port_list(ports: &[(PortNo, String)]) -> String {
    let ports: Vec<String> = ports.iter().map(|(number, name)| format!("{number}={name}")).collect();
    if ports.is_empty() { "none".to_owned() } else { ports.join(", ") }
}
