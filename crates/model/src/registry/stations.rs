//! Registers the single stations.
use super::{ModelOutcome, ModelOutput, ModelParameter, RegisteredModel, output, required};
use crate::ModelError;
use crate::answer::StationUtilisation;
use crate::station::{SteadyState, mg1, mg1k, mm1, mm1k};

const LAM: ModelParameter = required("lam", "1/s", "the rate of Poisson arrivals");
const MU: ModelParameter = required("mu", "1/s", "the service rate");
const K: ModelParameter = required("K", "packets", "the most there at a time, the one in service included");
const DIST: ModelParameter = required("dist", "s", "the law of service times");

const OUTPUTS: &[ModelOutput] = &[
    output("T", "s", "mean sojourn of served packets"),
    output("W", "s", "mean wait before service"),
    output("L", "", "mean number there, the one in service included"),
    output("rho", "", "share of the time in which it serves"),
    output("loss", "", "share of the packets that find no place"),
    output("sd", "s", "standard deviation of the sojourn"),
    output("p50", "s", "median sojourn"),
    output("p95", "s", "sojourn that 95 in 100 do not exceed"),
    output("p99", "s", "sojourn that 99 in 100 do not exceed"),
];

/// M/M/1, M/M/1/K, M/G/1, M/G/1/K.
pub(super) const MODELS: &[RegisteredModel] = &[
    RegisteredModel {
        name: "mm1",
        title: "M/M/1: one queue without limit, exponential service",
        assumes: "Poisson arrivals; exponential service times; no limit; first come, first served",
        validity: "exact",
        source: "Kleinrock, Queueing Systems I (1975), 3.2",
        parameters: &[LAM, MU],
        outputs: OUTPUTS,
        evaluate: |given| outcome(&mm1(given.positive("lam")?, given.positive("mu")?)?),
    },
    RegisteredModel {
        name: "mm1k",
        title: "M/M/1/K: one queue with K places, exponential service",
        assumes: "Poisson arrivals; exponential service times; what finds K packets there is lost; first come, first served; any load",
        validity: "exact",
        source: "Gross and Harris, Fundamentals of Queueing Theory (1998), 2.5",
        parameters: &[LAM, MU, K],
        outputs: OUTPUTS,
        evaluate: |given| outcome(&mm1k(given.positive("lam")?, given.positive("mu")?, given.count("K")?)?),
    },
    RegisteredModel {
        name: "mg1",
        title: "M/G/1: one queue without limit, service times of any law",
        assumes: "Poisson arrivals; independent service times; no limit; first come, first served",
        validity: "exact; percentiles by inversion of the Pollaczek-Khinchine transform, 1e-6 where the law has no jumps",
        source: "Kleinrock, Queueing Systems I (1975), 5.7; inversion: Abate and Whitt (1995)",
        parameters: &[LAM, DIST],
        outputs: OUTPUTS,
        evaluate: |given| outcome(&mg1(given.positive("lam")?, &given.law("dist")?)?),
    },
    RegisteredModel {
        name: "mg1k",
        title: "M/G/1/K: one queue with K places, service times of any law",
        assumes: "Poisson arrivals; independent service times; what finds K packets there is lost; first come, first served; any load",
        validity: "exact; percentiles by inversion of the transform, 1e-6 where the law has no jumps",
        source: "Gross and Harris, Fundamentals of Queueing Theory (1998), 5.1.8; inversion: Abate and Whitt (1995)",
        parameters: &[LAM, DIST, K],
        outputs: OUTPUTS,
        evaluate: |given| outcome(&mg1k(given.positive("lam")?, &given.law("dist")?, given.count("K")?)?),
    },
];

fn outcome(state: &SteadyState) -> Result<ModelOutcome, ModelError> {
    ModelOutcome::default()
        .with("T", "s", state.sojourn_s)
        .with("W", "s", state.waiting_s)
        .with("L", "", state.number)
        .with("rho", "", state.utilisation)
        .with("loss", "", state.loss)
        .with("sd", "s", state.sojourn.sd())
        .with_loads(&[StationUtilisation::new("the queue", state.utilisation)])
        .with_percentiles("", &state.sojourn)
}
