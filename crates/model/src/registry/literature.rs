//! Registers the models of the literature.
use super::{ModelArguments, ModelOutcome, ModelOutput, ModelParameter, RegisteredModel, optional, output, required};
use crate::answer::StationUtilisation;
use crate::check::domain;
use crate::literature::{
    ControllerVisits, GotoModel, JacksonSwitch, JarschelModel, ModulatedPoisson, ServiceAveraging, base_service_rate,
    goto, jarschel, mahmood, mahmood_network, mmpp2_m1,
};
use crate::station::{mm1, mm1k};
use crate::{Distribution, ModelError};

const LAM: ModelParameter = required("lam", "1/s", "the rate of Poisson arrivals at the switch");
const P: ModelParameter = required("p", "", "the share of packets without an entry, 0 to 1");
const MU_S: ModelParameter = required("mu_s", "1/s", "the service rate of the switch");
const MU_C: ModelParameter = required("mu_c", "1/s", "the service rate of the controller");

const BASE: [ModelParameter; 4] = [
    LAM,
    P,
    required("s_switch", "s", "the service time of the switch"),
    required("s_path", "s", "the sum of the service times of packet-in, controller and packet-out"),
];
const COMBINE: ModelParameter =
    optional("combine", "", "time: mean of the times; rate: mean of the rates, for comparison only", "time");

/// Outputs common to all models of a switch and its controller.
pub(super) const SWITCH_OUTPUTS: &[ModelOutput] = &[
    output("T", "s", "mean sojourn of delivered packets"),
    output("T_data", "s", "mean sojourn of those that the switch forwards itself"),
    output("T_ctrl", "s", "mean sojourn of those that go by the controller"),
    output("Tc", "s", "mean time at the controller"),
    output("loss", "", "share of all packets that are lost"),
    output("f", "", "share of the delivered packets that went by the controller"),
    output("p50", "s", "median sojourn"),
    output("p95", "s", "sojourn that 95 in 100 do not exceed"),
    output("p99", "s", "sojourn that 99 in 100 do not exceed"),
    output("rho_<station>", "", "share of the time in which a station serves"),
];

const ANSELL: &str = "Ansell, Assessing the Accuracy of Performance Modelling in Software Defined Networks (2017), 7.1";

/// Base models, MMPP/M/1, Jarschel, Mahmood, Goto.
pub(super) const MODELS: &[RegisteredModel] = &[
    RegisteredModel {
        name: "base_mm1",
        title: "switch and controller as one M/M/1 queue",
        assumes: "Poisson arrivals; one exponential server for both ways; no limit",
        validity: "exact for what it assumes, which no switch does: it overstates the delay of packets that have an entry",
        source: ANSELL,
        parameters: &[BASE[0], BASE[1], BASE[2], BASE[3], COMBINE],
        outputs: BASE_OUTPUTS,
        evaluate: |given| base(given, &mm1(given.positive("lam")?, service_rate(given)?)?),
    },
    RegisteredModel {
        name: "base_mm1k",
        title: "switch and controller as one M/M/1/K queue",
        assumes: "Poisson arrivals; one exponential server for both ways; what finds K packets there is lost",
        validity: "exact for what it assumes, which no switch does: it overstates the delay of packets that have an entry",
        source: ANSELL,
        parameters: &[
            BASE[0],
            BASE[1],
            BASE[2],
            BASE[3],
            required("K", "packets", "the most there at a time, the one in service included"),
            COMBINE,
        ],
        outputs: BASE_OUTPUTS,
        evaluate: |given| base(given, &mm1k(given.positive("lam")?, service_rate(given)?, given.count("K")?)?),
    },
    RegisteredModel {
        name: "mmpp2_m1",
        title: "MMPP(2)/M/1: one queue without limit, arrivals in two moods",
        assumes: "Poisson arrivals whose rate changes between two values after exponential times; exponential service; no limit",
        validity: "exact",
        source: "Neuts, Matrix-Geometric Solutions in Stochastic Models (1981), chapter 6",
        parameters: &[
            required("r0", "1/s", "the arrival rate in the first mood"),
            required("r1", "1/s", "the arrival rate in the second mood"),
            required("q01", "1/s", "how often the first mood changes to the second"),
            required("q10", "1/s", "how often the second mood changes to the first"),
            required("mu", "1/s", "the service rate"),
        ],
        outputs: &[
            output("T", "s", "mean sojourn"),
            output("L", "", "mean number there, the one in service included"),
            output("rho", "", "share of the time in which it serves"),
        ],
        evaluate: |given| {
            let arrivals = ModulatedPoisson {
                rates: [given.number("r0")?, given.number("r1")?],
                changes: [given.number("q01")?, given.number("q10")?],
            };
            let service_rate = given.positive("mu")?;
            let (sojourn_s, number) = mmpp2_m1(&arrivals, service_rate)?;
            let rho = arrivals.mean_rate() / service_rate;
            let outcome = ModelOutcome::default().with("T", "s", sojourn_s).with("L", "", number).with("rho", "", rho);
            Ok(outcome.with_loads(&[StationUtilisation::new("the queue", rho)]))
        },
    },
    RegisteredModel {
        name: "jarschel",
        title: "Jarschel: M/M/1 switch, M/M/1/S controller",
        assumes: "Poisson arrivals; exponential service; packets without an entry ask the controller, where S find a place, and pass the switch once more",
        validity: "approximate where the controller loses packets: against simulation within 0.5 % (once) or 3 % (geometric) in T; loss up to 2 % (once) or \
                   32 % (geometric) too high; percentiles take visits as independent",
        source: "Jarschel and others, Modeling and Performance Evaluation of an OpenFlow Architecture (2011), by the assumptions in Ansell (2017), 2.2.1",
        parameters: &[
            LAM,
            P,
            MU_S,
            MU_C,
            required("S", "packets", "the most at the controller, the one in service included"),
            optional(
                "variant",
                "",
                "once: packets that come back find their entry; geometric: they may miss again",
                "once",
            ),
        ],
        outputs: SWITCH_OUTPUTS,
        evaluate: |given| {
            let model = JarschelModel {
                arrival_rate: given.positive("lam")?,
                p: given.share("p")?,
                switch_rate: given.positive("mu_s")?,
                controller_rate: given.positive("mu_c")?,
                controller_places: given.count("S")?,
                returning: given.choice(
                    "variant",
                    &[("once", ControllerVisits::Once), ("geometric", ControllerVisits::Geometric)],
                )?,
            };
            let state = jarschel(&model)?;
            let rounds =
                if model.returning == ControllerVisits::Once { 1.0 } else { 1.0 / (1.0 - state.control_share) };
            // T_ctrl consists of the first visit to the switch, and of `rounds` rounds through the controller.
            let controller_s = state.control_s.map(|control| (control - state.data_s) / rounds - state.data_s);
            Ok(ModelOutcome::of_switch(&state)?.with_some("Tc", "s", controller_s))
        },
    },
    RegisteredModel {
        name: "mahmood",
        title: "Mahmood: M/M/1 switch, M/M/1 controller",
        assumes: "Poisson arrivals; exponential service; packets without an entry ask the controller once and pass the switch once more; no limits",
        validity: "means exact; percentiles take visits as independent: within 1 % up to a utilisation of 0.6, 10 % low at 0.9 with p = 0.5",
        source: "Mahmood and others, On the Modeling of OpenFlow-based SDNs (2014), by the assumptions in Ansell (2017), 2.2.2",
        parameters: &[LAM, P, MU_S, MU_C],
        outputs: SWITCH_OUTPUTS,
        evaluate: |given| {
            let state =
                mahmood(given.positive("lam")?, given.share("p")?, given.positive("mu_s")?, given.positive("mu_c")?)?;
            let controller_s = state.control_s.map(|control| control - 2.0 * state.data_s);
            Ok(ModelOutcome::of_switch(&state)?.with_some("Tc", "s", controller_s))
        },
    },
    RegisteredModel {
        name: "mahmood_multi",
        title: "Mahmood: several M/M/1 switches with one M/M/1 controller",
        assumes: "Poisson arrivals; exponential service; random routing; at each switch, packets without an entry ask the controller once and pass it once more; \
                  no limits",
        validity: "means exact; percentiles of paths take visits as independent",
        source: "Mahmood and others (2015), by the assumptions in Ansell (2017), 1.4.1",
        parameters: &[
            required("lam", "1/s", "a list: Poisson arrivals at each switch from outside"),
            required("R", "", "a list of lists: the share of each switch's packets that go on to each switch"),
            required("p", "", "a list: the share of packets without an entry at each switch"),
            required("mu", "1/s", "a list: the service rate of each switch"),
            MU_C,
            optional("paths", "", "lists of switches, from 0, for whose packets delays are wanted", "none"),
        ],
        outputs: &[
            output("T", "s", "mean time in the network"),
            output("rho_c", "", "share of the time in which the controller serves"),
            output("path<i>_T", "s", "mean time along a path"),
            output("path<i>_p50", "s", "median time along a path"),
            output("path<i>_p95", "s", "time along a path that 95 in 100 do not exceed"),
            output("path<i>_p99", "s", "time along a path that 99 in 100 do not exceed"),
            output("rho_switch <i>", "", "share of the time in which a switch serves"),
        ],
        evaluate: network,
    },
    RegisteredModel {
        name: "goto",
        title: "Goto: finite queues, priority to packets that come back from the controller",
        assumes: "Poisson arrivals; exponential service; two finite queues at the switch, those from the controller first without interrupting; \
                  controller without limit; flows of geometric length, whose first packet asks the controller",
        validity: "exact, but that a packet's loss on its way back is taken as independent of its way there",
        source: "Goto and others, Queueing analysis of software defined network with realistic OpenFlow-based switch model (2016), by the assumptions in \
                 Ansell (2017), 2.2.3",
        parameters: &[
            LAM,
            required("p", "", "the share of packets that begin a flow, 0 to 1"),
            required("mu_l", "1/s", "the switch's service rate for packets from outside"),
            required("mu_h", "1/s", "the switch's service rate for packets from the controller"),
            MU_C,
            required("KL", "packets", "how many packets from outside can wait, without the one in service"),
            required("KH", "packets", "how many packets from the controller can wait, without the one in service"),
        ],
        outputs: &[
            output("T", "s", "mean sojourn of delivered packets"),
            output("TL", "s", "mean time of a packet's first visit to the switch"),
            output("Tc", "s", "mean time at the controller"),
            output("TH", "s", "mean time of a packet's second visit to the switch"),
            output("loss", "", "share of all packets that are lost"),
            output("loss_in", "", "share of the arriving packets that find no place"),
            output("loss_ret", "", "share of the packets coming back that find no place"),
            output("f", "", "share of the delivered packets that went by the controller"),
            output("rho_s", "", "share of the time in which the switch serves"),
            output("rho_c", "", "share of the time in which the controller serves"),
        ],
        evaluate: priority,
    },
];

const BASE_OUTPUTS: &[ModelOutput] = &[
    output("T", "s", "mean sojourn of served packets"),
    output("mu", "1/s", "the service rate"),
    output("rho", "", "share of the time in which it serves"),
    output("loss", "", "share of the packets that find no place"),
    output("p50", "s", "median sojourn"),
    output("p95", "s", "sojourn that 95 in 100 do not exceed"),
    output("p99", "s", "sojourn that 99 in 100 do not exceed"),
];

fn service_rate(given: &ModelArguments) -> Result<f64, ModelError> {
    let combine = given.choice("combine", &[("time", ServiceAveraging::Time), ("rate", ServiceAveraging::Rate)])?;
    base_service_rate(given.share("p")?, given.positive("s_switch")?, given.positive("s_path")?, combine)
}

fn base(given: &ModelArguments, state: &crate::station::SteadyState) -> Result<ModelOutcome, ModelError> {
    ModelOutcome::default()
        .with("T", "s", state.sojourn_s)
        .with("mu", "1/s", service_rate(given)?)
        .with("rho", "", state.utilisation)
        .with("loss", "", state.loss)
        .with_loads(&[StationUtilisation::new("the queue", state.utilisation)])
        .with_percentiles("", &state.sojourn)
}

fn network(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let list = |name| given.read::<Vec<f64>>(name, "a list of numbers");
    let (arriving, misses, rates) = (list("lam")?, list("p")?, list("mu")?);
    let routing: Vec<Vec<f64>> = given.read("R", "a list of lists of numbers")?;
    for (name, length) in [("p", misses.len()), ("mu", rates.len()), ("R", routing.len())] {
        if length != arriving.len() {
            return Err(domain(name, format!("{length} entries"), format!("as many as in lam, {}", arriving.len())));
        }
    }
    let switches: Vec<JacksonSwitch> = (arriving.into_iter().zip(misses).zip(rates).zip(routing))
        .map(|(((arrival_rate, p), service_rate), routing)| JacksonSwitch { arrival_rate, p, service_rate, routing })
        .collect();
    let state = mahmood_network(&switches, given.positive("mu_c")?)?;
    let mut outcome = ModelOutcome::default().with("T", "s", state.sojourn_s).with_loads(&state.loads);
    for load in &state.loads {
        let name = if load.place == "controller" { "rho_c".to_owned() } else { format!("rho_{}", load.place) };
        outcome = outcome.with(name, "", load.utilisation);
    }
    let paths: Vec<Vec<usize>> = given.optional("paths", "lists of whole numbers")?.unwrap_or_default();
    for (index, path) in paths.iter().enumerate() {
        let delay: Distribution = state.path(path)?;
        outcome = outcome.with(format!("path{index}_T"), "s", delay.mean());
        outcome = outcome.with_percentiles(&format!("path{index}_"), &delay)?;
    }
    Ok(outcome)
}

fn priority(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let state = goto(&GotoModel {
        arrival_rate: given.positive("lam")?,
        p: given.share("p")?,
        low_rate: given.positive("mu_l")?,
        high_rate: given.positive("mu_h")?,
        controller_rate: given.positive("mu_c")?,
        low_waiting: given.count("KL")?,
        high_waiting: given.count("KH")?,
    })?;
    let mut outcome = ModelOutcome::default()
        .with("T", "s", state.sojourn_s)
        .with("TL", "s", state.low_s)
        .with_some("Tc", "s", state.controller_s)
        .with_some("TH", "s", state.high_s)
        .with("loss", "", state.loss)
        .with("loss_in", "", state.loss_in)
        .with("loss_ret", "", state.loss_return)
        .with("f", "", state.control_share)
        .with_loads(&state.loads);
    for load in &state.loads {
        outcome = outcome.with(if load.place == "switch" { "rho_s" } else { "rho_c" }, "", load.utilisation);
    }
    Ok(outcome)
}
