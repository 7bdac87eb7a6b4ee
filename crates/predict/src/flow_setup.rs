//! Solves networks in which packets of a flow arrive before its entry is installed. They ask the controller, too,
//! which makes it slower, so that more of them arrive. The fixed point is approached from below: starting with first
//! packets only, the share is increased until it no longer changes.
use crate::PredictError;
use crate::network::{QueueLocation, QueueingNetwork, RouteStep, StationVisit, UnidirectionalFlow};
use crate::station::StationSolution;
use std::collections::BTreeMap;
use weir_model::mechanism::NewFlows;
use weir_model::{Distribution, Law, ModelError, Warning};

/// Most rounds before the iteration is given up.
const MOST_ROUNDS: u32 = 500;
/// Relative change of a share below which it counts as constant.
const SHARE_TOLERANCE: f64 = 1e-7;

/// Solves the network with the shares of packets that ask. The warning says that a worse steady state is possible.
pub(crate) fn solve(
    network: &mut QueueingNetwork<'_>,
    flows: &mut [UnidirectionalFlow],
) -> Result<(Vec<Option<StationSolution>>, Option<Warning>), PredictError> {
    let is_known = |flow: &UnidirectionalFlow| flow.flows.is_some() && flow.first_ask().is_some();
    if !flows.iter().any(is_known) {
        return Ok((network.solve(flows)?, None));
    }
    let worst = overloaded(network, flows);
    for round in 0.. {
        let solved = network.solve(flows)?;
        let mut moved = 0.0f64;
        for flow in flows.iter_mut() {
            let (Some(of), Some((way, delay_s))) = (flow.flows, flow.first_ask()) else { continue };
            let share =
                asking(network, &solved, &of, way, delay_s).map_err(|error| PredictError::at("flows", error))?;
            moved = moved.max((share - flow.asking_share).abs() / share);
            flow.asking_share = share;
        }
        if moved < SHARE_TOLERANCE {
            let solved = in_groups(network, flows, solved).map_err(|error| PredictError::at("flows", error))?;
            let warning = worst.filter(|station| !network.stations[*station].is_overloaded());
            return Ok((solved, warning.map(|station| metastable(&network.stations[station].name))));
        }
        if round == MOST_ROUNDS {
            break;
        }
    }
    let what = "packets that come before their flow's entry".to_owned();
    Err(PredictError::at("the network", ModelError::NoConvergence { what, rounds: MOST_ROUNDS }))
}

/// Adds the waiting of packets that ask in groups: a flow's first packet, and those that arrive while it is in
/// progress. They wait for each other at the first queue that takes time, like groups of geometric size that arrive
/// at once (M\[X\]/G/1: Gross and Harris, Fundamentals of Queueing Theory, 1998, 5.1.9).
fn in_groups(
    network: &QueueingNetwork<'_>,
    flows: &[UnidirectionalFlow],
    mut solved: Vec<Option<StationSolution>>,
) -> Result<Vec<Option<StationSolution>>, ModelError> {
    let takes_time = |visit: &&StationVisit| visit.service.mean > 0.0;
    let mut followers: BTreeMap<usize, f64> = BTreeMap::new();
    for flow in flows {
        let (Some(of), Some((way, _))) = (flow.flows, flow.first_ask()) else { continue };
        let Some(visit) = way.iter().find(takes_time) else { continue };
        // Rate of asking packets that are not the first of their flow.
        *followers.entry(visit.station).or_default() += flow.rate * (flow.asking_share - 1.0 / of.packets).max(0.0);
    }
    for (station, rate) in followers {
        let (Some(own), state) = (&mut solved[station], &network.stations[station].state) else { continue };
        let Some(service) = own.service.as_ref().map(Law::mean) else { continue };
        let share = (rate / state.rate).min(1.0 - f64::EPSILON);
        if share <= 0.0 || own.utilisation >= 1.0 {
            continue;
        }
        // A packet waits for those before it in its group, whose number is geometric.
        let waits = Distribution::exponential(service / ((1.0 - share) * (1.0 - own.utilisation)))?;
        let more = Distribution::mixture(&[(1.0 - share, Distribution::zero()), (share, waits)])?;
        own.waiting = [0, 1].map(|class| Distribution::sum([&own.waiting[class], &more]));
        own.both = own.both.take().map(|both| Distribution::sum([&both, &more]));
    }
    Ok(solved)
}

/// Returns the share of a flow's packets that ask at the first switch that asks; 1 if a queue on the way has no
/// steady state.
fn asking(
    network: &QueueingNetwork<'_>,
    solved: &[Option<StationSolution>],
    flows: &NewFlows,
    way: &[StationVisit],
    delay_s: f64,
) -> Result<f64, ModelError> {
    let mut set_up = Distribution::constant(delay_s)?;
    let mut arrives = 1.0;
    for visit in way {
        let Some(solved) = &solved[visit.station] else { return Ok(1.0) };
        arrives *= network.stations[visit.station].delivery_share();
        let waiting = &solved.waiting[usize::from(!visit.first)];
        set_up = Distribution::sum([&set_up, waiting, &Distribution::law(&visit.service.law)]);
    }
    flows.asking(&set_up, (1.0 - arrives).clamp(0.0, 1.0))
}

/// Returns the station that would be overloaded if all packets asked, if there is one.
fn overloaded(network: &mut QueueingNetwork<'_>, flows: &mut [UnidirectionalFlow]) -> Option<usize> {
    let known = |flow: &&mut UnidirectionalFlow| flow.flows.is_some();
    flows.iter_mut().filter(known).for_each(|flow| flow.asking_share = 1.0);
    // If the iteration does not converge, its last round is sufficient.
    let _ = network.solve(flows);
    for flow in flows.iter_mut() {
        flow.asking_share = flow.flows.map_or(flow.asking_share, |of| 1.0 / of.packets);
    }
    let asked = |(_, place): &(usize, &QueueLocation)| {
        !matches!(place, QueueLocation::Line(_) | QueueLocation::Gate(..) | QueueLocation::Output(..))
    };
    let mut stations = network.locations.iter().enumerate().filter(asked).map(|(station, _)| station);
    stations.find(|station| network.stations[*station].is_overloaded())
}

fn metastable(station: &str) -> Warning {
    let text = format!(
        "if all packets of the flows asked the controller, {station} would get more than it serves: a disturbance can keep them all asking for good, \
         and this answer is of the better state"
    );
    Warning::new("METASTABLE", text)
}

impl UnidirectionalFlow {
    /// Returns the visits of packets that ask at the first switch that asks, and their constant delay in seconds.
    fn first_ask(&self) -> Option<(&[StationVisit], f64)> {
        self.steps.iter().find_map(|step| match step {
            RouteStep::ControllerTrip { way, delay_s, .. } => Some((&way[..], *delay_s)),
            RouteStep::Visit(_) => None,
        })
    }
}
