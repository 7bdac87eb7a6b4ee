//! Simulates the controller and its control channels: bytes arrive after a constant delay.
use super::switch::SimulatedSwitch;
use std::collections::VecDeque;
use std::time::Duration;
use weir_controller::{ConnectionId, ControllerApp, ControllerHub};
use weir_network::result::ControllerResult;
use weir_openflow::session::SessionConfig;
use weir_units::Instant;

/// Bytes on their way, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct DelayedByteQueue(VecDeque<(Instant, Vec<u8>)>);

impl DelayedByteQueue {
    pub(super) fn send(&mut self, arrive: Instant, bytes: &mut Vec<u8>) {
        if !bytes.is_empty() {
            self.0.push_back((arrive, std::mem::take(bytes)));
        }
    }

    /// Removes and returns the next piece that has arrived by `now`.
    pub(super) fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.0.pop_front_if(|(at, _)| *at <= now).map(|(_, bytes)| bytes)
    }

    pub(super) fn next(&self) -> Instant {
        self.0.front().map_or(Instant::FAR, |(at, _)| *at)
    }
}

/// Controller with one control channel for each switch.
pub(super) struct SimulatedController {
    hub: ControllerHub,
    delay: Duration,
    channels: Vec<SimulatedChannel>,
}

struct SimulatedChannel {
    id: Option<ConnectionId>,
    to_controller: DelayedByteQueue,
}

impl SimulatedController {
    /// Returns a controller running `app`, with all switches connected at time 0.
    pub(super) fn new(
        app: Box<dyn ControllerApp>,
        session: SessionConfig,
        delay: Duration,
        switches: &mut [SimulatedSwitch],
    ) -> SimulatedController {
        let mut hub = ControllerHub::new(app, session.clone(), switches.len(), Box::new(|_| {}));
        let mut channels = Vec::new();
        for switch in switches {
            switch.connect(session.clone());
            // The hub was made with room for every switch.
            let id = hub.connect(Instant::ZERO, "in-process".to_owned(), Box::new(|| {})).ok();
            channels.push(SimulatedChannel { id, to_controller: DelayedByteQueue::default() });
        }
        SimulatedController { hub, delay, channels }
    }

    /// Passes bytes of one channel that have arrived to the controller, and runs its due work.
    pub(super) fn receive_from_switch(&mut self, now: Instant, number: usize) {
        let SimulatedChannel { id: Some(id), to_controller } = &mut self.channels[number] else { return };
        while let Some(bytes) = to_controller.arrived(now) {
            self.hub.receive(now, *id, &bytes);
        }
        self.hub.poll(now, *id);
    }

    /// Sends the pending output of both ends of a channel; it arrives after the delay.
    pub(super) fn exchange_bytes(&mut self, now: Instant, number: usize, switch: &mut SimulatedSwitch) {
        let SimulatedChannel { id: Some(id), to_controller } = &mut self.channels[number] else { return };
        let arrive = now + self.delay;
        if let Some(output) = switch.session_output() {
            to_controller.send(arrive, output);
        }
        if let Some(output) = self.hub.output(*id) {
            switch.queue_control_bytes(arrive, output);
        }
    }

    /// Returns the time at which to call [`SimulatedController::receive_from_switch`] for a channel.
    pub(super) fn next_wake(&self, number: usize) -> Instant {
        let SimulatedChannel { id: Some(id), to_controller } = &self.channels[number] else { return Instant::FAR };
        to_controller.next().min(self.hub.deadline(*id).unwrap_or(Instant::FAR))
    }

    /// Returns the controller's counters.
    pub(super) fn result(self) -> ControllerResult {
        ControllerResult::from(&self.hub.snapshot())
    }
}
