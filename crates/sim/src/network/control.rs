//! Simulates the controller and its control channels: bytes arrive after a constant delay.
use super::VirtualTimeSettings;
use super::agent::SimulatedAgent;
use super::external::{ControllerAnswers, RealController};
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_controller::{ConnectionId, ControllerApp, ControllerHub};
use weir_network::NetworkError;
use weir_network::result::{ControllerResult, ExternalController};
use weir_openflow::session::SessionConfig;
use weir_traffic::RandomStream;
use weir_units::Instant;

/// Number that sets the draws of control delays apart from those of other parts of the network.
const DELAY_DRAWS: u64 = u64::from_le_bytes(*b"control ");

/// Time that control messages take, each way.
#[derive(Debug)]
pub(super) struct ControlDelay {
    least: Duration,
    jitter: Duration,
    random: RandomStream,
}

impl ControlDelay {
    /// Returns the delays of a controller, by its index. Each has draws of its own.
    pub(super) fn new(settings: &VirtualTimeSettings, seed: u64, controller: usize) -> ControlDelay {
        let random = RandomStream::new(seed, controller as u64, DELAY_DRAWS);
        ControlDelay { least: settings.control_delay, jitter: settings.control_jitter, random }
    }

    fn draw(&mut self) -> Duration {
        if self.jitter.is_zero() { self.least } else { self.least + self.jitter.mul_f64(self.random.unit()) }
    }
}

/// Bytes on their way, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct DelayedByteQueue(VecDeque<(Instant, Vec<u8>)>);

impl DelayedByteQueue {
    /// Puts bytes on their way. They arrive no earlier than those before them.
    pub(super) fn send(&mut self, arrive: Instant, bytes: &mut Vec<u8>) {
        if !bytes.is_empty() {
            let arrive = self.0.back().map_or(arrive, |(before, _)| arrive.max(*before));
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

/// Real time for which a controller outside of virtual time must be silent before traffic begins.
const START_SILENCE: Duration = Duration::from_millis(500);

/// Controller with its control channels.
pub(super) struct SimulatedController {
    end: ControllerSide,
    delay: ControlDelay,
    channels: Vec<SimulatedChannel>,
}

/// Controller, with its side of the control channels.
enum ControllerSide {
    /// Application in virtual time, with the identifier of each channel.
    Embedded(Box<ControllerHub>, Vec<Option<ConnectionId>>),
    /// Program outside of virtual time.
    Real(Box<RealController>),
}

struct SimulatedChannel {
    to_controller: DelayedByteQueue,
    /// Bytes that leave the controller at these times.
    from_controller: Vec<(Instant, Vec<u8>)>,
    /// Latest of these times so far: bytes of a connection stay in order.
    last_leave: Instant,
}

impl SimulatedController {
    /// Returns a controller running `app`, with this number of switches connected at time 0.
    pub(super) fn new(
        app: Box<dyn ControllerApp>,
        session: SessionConfig,
        delay: ControlDelay,
        count: usize,
    ) -> SimulatedController {
        let mut hub = ControllerHub::new(app, session, count, Box::new(|_| {}));
        // The hub was made with room for every switch.
        let connect = |_| hub.connect(Instant::ZERO, "in-process".to_owned()).ok();
        let ids = (0..count).map(connect).collect();
        SimulatedController::with_side(ControllerSide::Embedded(Box::new(hub), ids), delay, count)
    }

    /// Returns a controller outside of virtual time, to which this number of switches connect at time 0.
    pub(super) fn external(controller: RealController, delay: ControlDelay, count: usize) -> SimulatedController {
        SimulatedController::with_side(ControllerSide::Real(Box::new(controller)), delay, count)
    }

    fn with_side(end: ControllerSide, delay: ControlDelay, count: usize) -> SimulatedController {
        let channel = |_| SimulatedChannel {
            to_controller: DelayedByteQueue::default(),
            from_controller: Vec::new(),
            last_leave: Instant::ZERO,
        };
        SimulatedController { end, delay, channels: (0..count).map(channel).collect() }
    }

    /// Ends a channel whose switch is gone. A controller outside of virtual time only hears nothing more.
    pub(super) fn disconnect(&mut self, now: Instant, number: usize) {
        self.channels[number].to_controller = DelayedByteQueue::default();
        self.channels[number].from_controller.clear();
        if let ControllerSide::Embedded(hub, ids) = &mut self.end
            && let Some(id) = ids[number].take()
        {
            hub.disconnect(now, id, "its virtual switch was removed");
        }
    }

    /// Passes bytes of one channel that have arrived to the controller, and runs its due work. `cancel` ends the wait
    /// for a controller outside of virtual time.
    ///
    /// # Errors
    /// A controller outside of virtual time does not answer.
    pub(super) fn receive_from_switch(
        &mut self,
        now: Instant,
        number: usize,
        cancel: &AtomicBool,
    ) -> Result<(), NetworkError> {
        match &mut self.end {
            ControllerSide::Embedded(hub, ids) => {
                let Some(id) = ids[number] else { return Ok(()) };
                while let Some(bytes) = self.channels[number].to_controller.arrived(now) {
                    hub.receive(now, id, &bytes);
                }
                hub.poll(now, id);
                hub.wake_app(now);
            }
            ControllerSide::Real(controller) => {
                while let Some(bytes) = self.channels[number].to_controller.arrived(now) {
                    let answers = controller.exchange(now, number, &bytes, cancel)?;
                    answers.into_iter().for_each(|answers| take_answers(&mut self.channels, answers));
                }
            }
        }
        Ok(())
    }

    /// Sends the pending output of both ends of a channel; it arrives after the delay.
    pub(super) fn exchange_bytes(&mut self, now: Instant, number: usize, switch: &mut SimulatedAgent) {
        let channel = &mut self.channels[number];
        if let Some(output) = switch.session_output().filter(|output| !output.is_empty()) {
            channel.to_controller.send(now + self.delay.draw(), output);
        }
        match &mut self.end {
            ControllerSide::Embedded(hub, ids) => {
                if let Some(output) = ids[number].and_then(|id| hub.output(id)).filter(|output| !output.is_empty()) {
                    switch.queue_control_bytes(now + self.delay.draw(), output);
                }
            }
            ControllerSide::Real(_) => {
                for (leave, mut bytes) in channel.from_controller.drain(..) {
                    switch.queue_control_bytes(leave + self.delay.draw(), &mut bytes);
                }
            }
        }
    }

    /// Returns the time at which to call [`SimulatedController::receive_from_switch`] for a channel.
    pub(super) fn next_wake(&self, number: usize) -> Instant {
        let arrival = self.channels[number].to_controller.next();
        match &self.end {
            ControllerSide::Embedded(hub, ids) => {
                let Some(id) = ids[number] else { return Instant::FAR };
                // The first channel's part of the agenda wakes the application, too.
                let app_wake = if number == 0 { hub.app_wake() } else { None };
                let wakes = [hub.deadline(id), app_wake].into_iter().flatten();
                wakes.fold(arrival, Instant::min)
            }
            ControllerSide::Real(_) => arrival,
        }
    }

    /// Returns true if no messages are on their way to the controller.
    pub(super) fn is_idle(&self) -> bool {
        self.channels.iter().all(|channel| channel.to_controller.next() == Instant::FAR)
    }

    /// Waits in real time for what a controller outside of virtual time sends when all switches are connected. Returns
    /// false if it sends nothing more.
    ///
    /// # Errors
    /// The controller closes a connection.
    pub(super) fn listen(&mut self, now: Instant) -> Result<bool, NetworkError> {
        let ControllerSide::Real(controller) = &mut self.end else { return Ok(false) };
        let answers = controller.listen(now, START_SILENCE)?;
        let some = !answers.messages.is_empty();
        take_answers(&mut self.channels, answers);
        Ok(some)
    }

    /// Returns true if the controller is outside of virtual time.
    pub(super) fn is_external(&self) -> bool {
        matches!(self.end, ControllerSide::Real(_))
    }

    /// Passes a request to the application of the embedded controller. Returns its answer; `None` if there is none.
    pub(super) fn command(&mut self, now: Instant, request: &str) -> Option<String> {
        match &mut self.end {
            ControllerSide::Embedded(hub, _) => hub.command(now, request),
            ControllerSide::Real(_) => None,
        }
    }

    /// Returns the counters of the embedded controller, or what is to be reported of the one outside of virtual time.
    pub(super) fn result(&self) -> (Option<ControllerResult>, Option<ExternalController>) {
        match &self.end {
            ControllerSide::Embedded(hub, _) => (Some(ControllerResult::from(&hub.snapshot())), None),
            ControllerSide::Real(controller) => (None, Some(controller.result())),
        }
    }
}

/// Puts answers into the channels of their switches.
fn take_answers(channels: &mut [SimulatedChannel], answers: ControllerAnswers) {
    for (switch, messages) in answers.messages {
        let channel = &mut channels[switch];
        channel.last_leave = channel.last_leave.max(answers.leave);
        channel.from_controller.push((channel.last_leave, messages));
    }
}
