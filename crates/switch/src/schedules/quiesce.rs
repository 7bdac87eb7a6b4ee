//! Brings a switch to rest.
use super::controller::ScriptedController;
#[cfg(test)]
use super::plan::SchedulePlan;
use super::run::ScheduleRun;
#[cfg(test)]
use super::schedule_rng::ScheduleRng;
use super::scheduled_switch::PartStepOutcome;
use crate::clock::virtual_time::ThreadVirtualTime;
use std::time::Duration;
#[cfg(test)]
use weir_openflow::Version;

/// Rounds of all parts in which a switch must come to rest while only reading the clock advances the time.
const RESTLESS: usize = 10_000;
/// Virtual time in which a switch comes to rest, and the pieces in which it passes. Entries expire after two seconds
/// at most.
const CALM: Duration = Duration::from_secs(6);
const CALM_PIECE: Duration = Duration::from_millis(200);

impl ScheduleRun {
    /// Brings everything to rest: no faults, no new input, and time passes until all due work has been done.
    pub(super) fn calm(&mut self) -> Result<(), String> {
        self.note(|| "calm".to_owned());
        ThreadVirtualTime::set_reading(Duration::from_micros(1));
        self.controllers.iter_mut().for_each(|controller| {
            controller.hurry();
            controller.barrier();
        });
        let mut passed = Duration::ZERO;
        while passed < CALM {
            self.settle()?;
            ThreadVirtualTime::advance(CALM_PIECE);
            passed += CALM_PIECE;
        }
        self.settle()
    }

    /// Steps all parts until none has work at the present time.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..RESTLESS {
            let engine = self.parts.step_engine();
            let mut is_at_rest = engine == PartStepOutcome::Asleep;
            for worker in 0..self.parts.workers.len() {
                is_at_rest &= self.parts.step_worker(worker) == PartStepOutcome::Asleep;
            }
            self.parts.step_control(16);
            for place in 0..self.hosts.len() {
                self.receive(place, usize::MAX)?;
            }
            for place in (0..self.controllers.len()).rev() {
                self.controllers[place].step(ThreadVirtualTime::now(), &mut self.ledger)?;
                is_at_rest &= self.controllers[place].is_at_rest();
                if self.controllers[place].is_over {
                    let over = self.controllers.remove(place);
                    self.gone.push(over);
                }
            }
            self.report.steps += 1;
            if is_at_rest && self.parts.are_asleep() {
                return Ok(());
            }
        }
        let open = self.controllers.iter().find_map(ScriptedController::unanswered).unwrap_or_default();
        Err(format!("the switch does not come to rest: engine and workers asleep {}; {open}", self.parts.are_asleep()))
    }
}

/// Switches for tests of one aspect: one controller, wide connections, no faults.
#[cfg(test)]
impl ScheduleRun {
    /// Makes a switch with four ports on `workers` threads.
    pub(super) fn plain(mode: crate::threads::ThreadingMode, workers: usize) -> ScheduleRun {
        ThreadVirtualTime::start();
        let plan = SchedulePlan {
            mode,
            workers,
            cores: workers + 1,
            ports: 4,
            cable: 256,
            versions: vec![Version::V13],
            wire: 65536,
            piece: 65536,
            spin: crate::spin::Spin::For(Duration::ZERO),
            ring_size: 64,
            faults: 0,
            ..SchedulePlan::draw(&mut ScheduleRng::new(0, 0))
        };
        ScheduleRun::new(plan, ScheduleRng::new(0, 1))
    }

    /// Steps all parts until none has work.
    ///
    /// # Panics
    /// Panics if the switch does not come to rest.
    pub(super) fn rest(&mut self) {
        self.settle().expect("it comes to rest");
    }
}
