//! Single measurements for the project's experiments: a controller that runs already, or another project's.
use super::event::HalfTimeEvent;
use super::measure::{MeasureSettings, MeasuredController, MeasuredPace, measure};
use super::peers::{ComparedController, StartedController};
use super::request::{AskedFrames, AskedSources};
use super::{AskedArrivals, FLOOD_TIMEOUT_S, TIMEOUT_S, ensure_descriptors};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::net::SocketAddr;
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_openflow::Version;
use weir_traffic::TimeStatistics;

/// Hosts of each emulated switch.
const HOSTS: u32 = 64;

/// Rule by which the emulated switches send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrialPace {
    /// A single unanswered packet-in of each switch.
    OneAtATime,
    /// Packet-ins as fast as possible.
    Flood,
    /// Poisson arrivals, so many a second of all switches together, whatever is answered.
    Rate(f64),
}

/// Measurement of a controller by emulated switches of OpenFlow 1.0, as `weir bench controller` makes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ControllerTrial {
    /// Number of emulated switches, `1..=4096`.
    pub switches: u32,
    /// Rule by which they send.
    pub pace: TrialPace,
    /// True if one more switch connects at half time.
    pub joins: bool,
    /// Time to measure; a quarter of it is spent under load before.
    pub time: Duration,
    /// Seed of everything that is drawn.
    pub seed: u64,
}

/// Result of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialFigures {
    /// Packet-ins answered, a second; each counts once, however many messages answer it.
    pub answered_per_second: f64,
    /// Packet-ins answered in all.
    pub answered: u64,
    /// Delays from when a packet-in was due to the first message that answers it.
    pub delay: Option<TimeStatistics>,
    /// Standard deviation of the responses of all switches, divided by their mean, in percent; `None` for one switch.
    pub deviation_percent: Option<f64>,
    /// Share of the packet-ins without an answer in time, or that could not be sent when they were due.
    pub lost: f64,
    /// Seconds after which the joining switch was served like the others; `None` if it never was, or none joined.
    pub fair_after_s: Option<f64>,
    /// True if the measurement was stopped early.
    pub is_partial: bool,
}

impl ControllerTrial {
    /// Measures the controller at `address`.
    ///
    /// # Errors
    /// The controller is not reached, sets up no switch or answers nothing, or the process has too few descriptors.
    pub fn measure(&self, address: SocketAddr, cancel: &CancelHandle) -> Result<TrialFigures, String> {
        // The controller may be in this process, which then has both ends of each connection.
        let measured = ensure_descriptors(self.switches, 2)
            .and_then(|()| measure("controller", address, &self.settings(), None, cancel));
        measured.map(|found| TrialFigures::of(&found)).map_err(|error| format!("{error:#}"))
    }

    fn settings(&self) -> MeasureSettings {
        let pace = match self.pace {
            TrialPace::OneAtATime => MeasuredPace::Window(1),
            TrialPace::Flood => MeasuredPace::Flood,
            TrialPace::Rate(per_second) => {
                MeasuredPace::Rate { per_second, arrivals: AskedArrivals::Poisson, burst: 1 }
            }
        };
        let time_s = self.time.as_secs_f64();
        MeasureSettings {
            version: Version::V10,
            switches: self.switches,
            hosts: HOSTS,
            frames: AskedFrames::L2,
            sources: AskedSources::Known,
            pace,
            weights: Vec::new(),
            event: self.joins.then_some(HalfTimeEvent::Join),
            joins: 1,
            storms: 0,
            time_s,
            warm_up_s: time_s / 4.0,
            timeout_s: if self.pace == TrialPace::Flood { FLOOD_TIMEOUT_S } else { TIMEOUT_S },
            seed: self.seed,
        }
    }
}

impl TrialFigures {
    fn of(found: &MeasuredController) -> TrialFigures {
        let fairness = found.event.as_ref().and_then(|event| event.fairness.first());
        TrialFigures {
            answered_per_second: found.rate(),
            answered: found.answered,
            delay: found.delay,
            deviation_percent: found.deviation_percent,
            lost: (found.lost + found.unsent) as f64 / found.asked.max(1) as f64,
            fair_after_s: fairness.and_then(|fairness| fairness.after_ms).map(|ms| ms / 1e3),
            is_partial: found.is_partial,
        }
    }
}

/// Calls `start` on the processor `core`, if it is given: threads that it starts stay there. The calling thread may run
/// where it might before.
pub fn start_on_core<T>(core: Option<usize>, start: impl FnOnce() -> T) -> T {
    let before = core.and_then(|_| sched_getaffinity(None).ok());
    let pinned = before.zip(core).map(|(before, core)| {
        let mut set = CpuSet::new();
        set.set(core);
        // Without the right to it, the controller runs where it likes.
        let _ = sched_setaffinity(None, &set);
        before
    });
    let started = start();
    if let Some(before) = pinned {
        let _ = sched_setaffinity(None, &before);
    }
    started
}

/// A running controller of another project. It ends when dropped.
pub struct PeerController(StartedController);

impl PeerController {
    /// Starts a controller by its name, `ovs-testcontroller` or `os-ken`, on the processor `core` if it is given, and
    /// waits until it listens.
    ///
    /// # Errors
    /// The program is missing, ends at once, or does not listen in time.
    pub fn start(name: &str, core: Option<usize>, cancel: &CancelHandle) -> Result<PeerController, String> {
        let controller: ComparedController = name.parse()?;
        let started = controller.start(Version::V10, core, cancel);
        started.map(PeerController).map_err(|error| format!("{error:#}"))
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }
}

#[cfg(test)]
mod tests {
    use super::super::reflector::Reflector;
    use super::*;

    #[test]
    fn every_pace_has_its_figures() {
        let reflector = Reflector::start(Version::V10).unwrap();
        let cancel = CancelHandle::new();
        for pace in [TrialPace::OneAtATime, TrialPace::Flood, TrialPace::Rate(500.0)] {
            let trial = ControllerTrial { switches: 2, pace, joins: true, time: Duration::from_millis(200), seed: 1 };
            let found = trial.measure(reflector.address, &cancel).unwrap();
            assert!(found.answered > 0 && found.answered_per_second > 0.0 && !found.is_partial, "{found:?}");
            assert!(found.delay.is_some() && found.deviation_percent.is_some(), "{found:?}");
        }
        let started = start_on_core(Some(0), || std::thread::spawn(|| sched_getaffinity(None).unwrap().count()));
        assert_eq!(started.join().unwrap(), 1);
        let missing = PeerController::start("mine=nothing-of-this-name {port}", None, &cancel).err().unwrap();
        assert!(missing.contains("mine: "), "{missing}");
    }
}
