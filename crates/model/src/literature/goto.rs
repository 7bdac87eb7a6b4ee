//! Solves the model of Goto and others (2016): a switch with finite queues that gives priority to packets from the
//! controller, and flows of geometric length.
use super::levels::{LevelTransitions, PhaseTransition};
use super::qbd::{QbdSteadyState, QuasiBirthDeath};
use crate::check::{domain, positive, share, stable};
use crate::{ModelError, StationUtilisation};
use nalgebra::DMatrix;

/// Maximum number of phases. Memory grows with this number, and with its square if the solution by levels fails.
pub const MAX_PHASES: usize = 3000;
/// Maximum number of phases for the solution by matrices of all phases, whose cost grows with the cube of this number.
/// Processes with more phases are solved level by level.
const FEW_PHASES: usize = 60;

/// Parameters of Goto's model. Rates are per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GotoModel {
    /// Rate of Poisson arrivals at the switch.
    pub arrival_rate: f64,
    /// Share of packets that begin a flow: the inverse of the flows' mean length.
    pub p: f64,
    /// Exponential service rate of packets from outside.
    pub low_rate: f64,
    /// Exponential service rate of packets from the controller, which have priority.
    pub high_rate: f64,
    /// Exponential service rate of the controller, whose queue is unlimited.
    pub controller_rate: f64,
    /// Places for waiting packets from outside, without the place of the packet in service.
    pub low_waiting: usize,
    /// Places for waiting packets from the controller, without the place of the packet in service.
    pub high_waiting: usize,
}

/// Steady state of Goto's model. Times are in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct GotoModelState {
    /// Mean time from arrival to departure of delivered packets.
    pub sojourn_s: f64,
    /// Mean time of a packet's first visit to the switch, on arrival from outside.
    pub low_s: f64,
    /// Mean time of a packet at the controller; `None` if no packet is sent there.
    pub controller_s: Option<f64>,
    /// Mean time of a packet's second visit to the switch, on return from the controller; `None` if no packet returns.
    pub high_s: Option<f64>,
    /// Share of arriving packets lost on arrival or on their return.
    pub loss: f64,
    /// Share of packets from outside that are lost because no place is free.
    pub loss_in: f64,
    /// Share of packets from the controller that are lost because no place is free.
    pub loss_return: f64,
    /// Share of delivered packets that went through the controller.
    pub control_share: f64,
    /// Utilisations of switch and controller.
    pub loads: Vec<StationUtilisation>,
}

/// Solves the model of Goto and others (2016) exactly. The switch has two finite queues; the queue of packets from the
/// controller has priority without preemption. The controller is an unlimited M/M/1 queue. This is a quasi-birth-death
/// process whose level is the number of packets at the controller.
///
/// # Errors
/// `DOMAIN` for an invalid parameter, and for queues that need more than [`MAX_PHASES`] phases; `UNSTABLE` if the
/// controller has no steady state.
pub fn goto(model: &GotoModel) -> Result<GotoModelState, ModelError> {
    positive("lam", model.arrival_rate)?;
    share("p", model.p)?;
    positive("mu_l", model.low_rate)?;
    positive("mu_h", model.high_rate)?;
    positive("mu_c", model.controller_rate)?;
    let phases = GotoPhases::new(model.low_waiting, model.high_waiting)?;
    let transitions = transitions(model, &phases);
    let load = controller_load(&transitions)?;
    stable("controller", load)?;
    // Without new flows the level never rises: there are no levels.
    let by_levels = (phases.count() > FEW_PHASES && model.p > 0.0).then(|| transitions.solve()).flatten();
    let found = match by_levels {
        Some(found) => found,
        None => dense(&transitions).solve()?,
    };
    Ok(state(model, &phases, &found))
}

/// State of the switch: origin of the packet in service (`Low`: outside, `High`: controller), and numbers of waiting
/// packets of both origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GotoPhase {
    Idle,
    Low { low: usize, high: usize },
    High { low: usize, high: usize },
}

/// Numbering of all phases: idle first, then ascending by the number of waiting packets from the controller.
struct GotoPhases {
    low_waiting: usize,
    high_waiting: usize,
}

impl GotoPhases {
    fn new(low_waiting: usize, high_waiting: usize) -> Result<GotoPhases, ModelError> {
        let half = low_waiting.saturating_add(1).saturating_mul(high_waiting.saturating_add(1));
        let count = half.saturating_mul(2).saturating_add(1);
        if count > MAX_PHASES {
            let expected = format!("at most {MAX_PHASES}: choose a smaller KH");
            return Err(domain("1 + 2 (KH + 1) (KL + 1)", count, expected));
        }
        Ok(GotoPhases { low_waiting, high_waiting })
    }

    fn half(&self) -> usize {
        (self.low_waiting + 1) * (self.high_waiting + 1)
    }

    fn count(&self) -> usize {
        1 + 2 * self.half()
    }

    fn index(&self, phase: GotoPhase) -> usize {
        // Phases with equal numbers from the controller are adjacent, so transitions within a level stay close to the
        // diagonal.
        let row = |high: usize| 1 + 2 * high * (self.low_waiting + 1);
        match phase {
            GotoPhase::Idle => 0,
            GotoPhase::Low { low, high } => row(high) + low,
            GotoPhase::High { low, high } => row(high) + self.low_waiting + 1 + low,
        }
    }

    fn all(&self) -> impl Iterator<Item = (usize, GotoPhase)> + '_ {
        let of = |high: usize| {
            let low = (0..=self.low_waiting).map(move |low| GotoPhase::Low { low, high });
            low.chain((0..=self.low_waiting).map(move |low| GotoPhase::High { low, high }))
        };
        std::iter::once(GotoPhase::Idle).chain((0..=self.high_waiting).flat_map(of)).enumerate()
    }
}

impl GotoPhase {
    /// Returns the phase after a service ends while `low` packets from outside and `high` packets from the controller
    /// wait.
    fn next(low: usize, high: usize) -> GotoPhase {
        match (low, high) {
            (_, 1..) => GotoPhase::High { low, high: high - 1 },
            (1.., 0) => GotoPhase::Low { low: low - 1, high },
            (0, 0) => GotoPhase::Idle,
        }
    }

    /// Returns the phase with one more packet from outside; `None` if all `most` places are taken.
    fn with_low(self, most: usize) -> Option<GotoPhase> {
        match self {
            GotoPhase::Idle => Some(GotoPhase::Low { low: 0, high: 0 }),
            GotoPhase::Low { low, high } => (low < most).then_some(GotoPhase::Low { low: low + 1, high }),
            GotoPhase::High { low, high } => (low < most).then_some(GotoPhase::High { low: low + 1, high }),
        }
    }

    /// Returns the phase with one more packet from the controller; `None` if all `most` places are taken.
    fn with_high(self, most: usize) -> Option<GotoPhase> {
        match self {
            GotoPhase::Idle => Some(GotoPhase::High { low: 0, high: 0 }),
            GotoPhase::Low { low, high } => (high < most).then_some(GotoPhase::Low { low, high: high + 1 }),
            GotoPhase::High { low, high } => (high < most).then_some(GotoPhase::High { low, high: high + 1 }),
        }
    }

    /// Returns the numbers of packets from outside and from the controller, in service or waiting.
    fn present(self) -> (usize, usize) {
        match self {
            GotoPhase::Idle => (0, 0),
            GotoPhase::Low { low, high } => (low + 1, high),
            GotoPhase::High { low, high } => (low, high + 1),
        }
    }
}

fn transitions(model: &GotoModel, phases: &GotoPhases) -> LevelTransitions {
    let mut all = LevelTransitions { phases: phases.count(), ..LevelTransitions::default() };
    for (from, phase) in phases.all() {
        let rate = |to: GotoPhase, per_second| PhaseTransition { from, to: phases.index(to), per_second };
        if let Some(to) = phase.with_low(phases.low_waiting) {
            all.within.push(rate(to, model.arrival_rate));
        }
        match phase {
            GotoPhase::Idle => {}
            GotoPhase::Low { low, high } => {
                let next = GotoPhase::next(low, high);
                all.up.push(rate(next, model.low_rate * model.p));
                all.within.push(rate(next, model.low_rate * (1.0 - model.p)));
            }
            GotoPhase::High { low, high } => all.within.push(rate(GotoPhase::next(low, high), model.high_rate)),
        }
        // If no place is free, the packet is dropped, and the controller continues.
        let to = phase.with_high(phases.high_waiting).unwrap_or(phase);
        all.down.push(rate(to, model.controller_rate));
    }
    all
}

/// Returns the ratio of the rates at which the level rises and falls, far from level 0.
fn controller_load(transitions: &LevelTransitions) -> Result<f64, ModelError> {
    let (rising, falling) = match transitions.drift() {
        Some(drift) => drift,
        None => dense(transitions).drift()?,
    };
    Ok(rising / falling)
}

/// Returns the transitions as matrices.
fn dense(transitions: &LevelTransitions) -> QuasiBirthDeath {
    let matrix = |rates: &[PhaseTransition]| {
        let mut matrix = DMatrix::zeros(transitions.phases, transitions.phases);
        rates.iter().for_each(|rate| matrix[(rate.from, rate.to)] += rate.per_second);
        matrix
    };
    QuasiBirthDeath {
        up: matrix(&transitions.up),
        within: matrix(&transitions.within),
        down: matrix(&transitions.down),
    }
}

/// Computes mean times by Little's law. Losses are shares of time in which no place is free, because Poisson arrivals
/// see time averages: of all time for packets from outside, of the controller's busy time for returning packets.
fn state(model: &GotoModel, phases: &GotoPhases, found: &QbdSteadyState) -> GotoModelState {
    let (mut low, mut high, mut full, mut full_return, mut asking) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (index, phase) in phases.all() {
        let p = found.phases[index];
        let (low_there, high_there) = phase.present();
        low += p * low_there as f64;
        high += p * high_there as f64;
        if phase.with_low(phases.low_waiting).is_none() {
            full += p;
        }
        let busy = (p - found.ground[index]).max(0.0);
        asking += busy;
        if phase.with_high(phases.high_waiting).is_none() {
            full_return += busy;
        }
    }
    let loss_in = full.min(1.0);
    let loss_return = if asking > 0.0 { full_return / asking } else { 0.0 };
    let taken = model.arrival_rate * (1.0 - loss_in);
    let (asked, returned) = (taken * model.p, taken * model.p * (1.0 - loss_return));
    let low_s = low / taken;
    let controller_s = (asked > 0.0).then(|| found.level / asked);
    let high_s = (returned > 0.0).then(|| high / returned);
    let control_share = model.p * (1.0 - loss_return) / (1.0 - model.p * loss_return);
    let by_controller = controller_s.zip(high_s).map_or(0.0, |(controller_s, high_s)| controller_s + high_s);
    GotoModelState {
        sojourn_s: low_s + control_share * by_controller,
        low_s,
        controller_s,
        high_s,
        loss: 1.0 - (1.0 - loss_in) * (1.0 - model.p * loss_return),
        loss_in,
        loss_return,
        control_share,
        loads: vec![
            StationUtilisation::new("switch", (1.0 - found.phases[0]).max(0.0)),
            StationUtilisation::new("controller", asking),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_new_flows_it_is_mm1k() {
        let model = GotoModel {
            arrival_rate: 900.0,
            p: 0.0,
            low_rate: 1000.0,
            high_rate: 1000.0,
            controller_rate: 100.0,
            low_waiting: 9,
            high_waiting: 3,
        };
        let (state, plain) = (goto(&model).unwrap(), crate::station::mm1k(900.0, 1000.0, 10).unwrap());
        assert!((state.sojourn_s / plain.sojourn_s - 1.0).abs() < 1e-9 && (state.loss / plain.loss - 1.0).abs() < 1e-9);
        assert_eq!((state.controller_s, state.high_s), (None, None));
    }

    #[test]
    fn levels_are_what_matrices_say() {
        for (arrival_rate, p, low_rate, high_rate, controller_rate, low_waiting, high_waiting) in [
            (500.0, 0.2, 1000.0, 1000.0, 150.0, 10, 5),
            (900.0, 0.05, 1000.0, 1200.0, 80.0, 20, 3),
            (1100.0, 0.1, 1000.0, 1000.0, 150.0, 8, 8),
            (300.0, 1.0, 1000.0, 5000.0, 350.0, 6, 6),
            (50.0, 0.5, 1e5, 1e5, 26.0, 12, 4),
            (980.0, 0.09, 1000.0, 1000.0, 90.0, 15, 2),
        ] {
            let model = GotoModel { arrival_rate, p, low_rate, high_rate, controller_rate, low_waiting, high_waiting };
            let phases = GotoPhases::new(low_waiting, high_waiting).unwrap();
            let transitions = transitions(&model, &phases);
            let by_levels = state(&model, &phases, &transitions.solve().unwrap());
            let by_matrices = state(&model, &phases, &dense(&transitions).solve().unwrap());
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-8 * a.abs().max(1e-3);
            for (a, b) in [
                (by_levels.sojourn_s, by_matrices.sojourn_s),
                (by_levels.controller_s.unwrap(), by_matrices.controller_s.unwrap()),
                (by_levels.high_s.unwrap(), by_matrices.high_s.unwrap()),
                (by_levels.loss_in, by_matrices.loss_in),
                (by_levels.loss_return, by_matrices.loss_return),
            ] {
                assert!(near(a, b), "{model:?}: {by_levels:?}, {by_matrices:?}");
            }
            let (rising, falling) = dense(&transitions).drift().unwrap();
            assert!(near(controller_load(&transitions).unwrap(), rising / falling), "{model:?}");
        }
    }

    #[test]
    fn more_than_a_thousand_phases_have_an_answer() {
        let model = GotoModel {
            arrival_rate: 800.0,
            p: 0.05,
            low_rate: 1000.0,
            high_rate: 2000.0,
            controller_rate: 60.0,
            low_waiting: 48,
            high_waiting: 14,
        };
        let state = goto(&model).unwrap();
        // Almost nothing is lost: Little's law at the controller, which serves 40 of 60 packets a second.
        let controller = state.loads.iter().find(|load| load.place == "controller").unwrap();
        assert!((controller.utilisation - 40.0 / 60.0).abs() < 1e-3, "{state:?}");
        assert!(state.loss < 1e-3 && state.sojourn_s > state.low_s, "{state:?}");
    }

    #[test]
    fn too_many_phases_are_refused_with_advice() {
        let model = GotoModel {
            arrival_rate: 1.0,
            p: 0.1,
            low_rate: 10.0,
            high_rate: 10.0,
            controller_rate: 10.0,
            low_waiting: usize::MAX,
            high_waiting: 1000,
        };
        assert!(goto(&model).unwrap_err().to_string().contains("choose a smaller KH"));
    }
}
