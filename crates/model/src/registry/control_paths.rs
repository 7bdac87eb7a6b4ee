//! Registers the models of control paths.
use super::{ModelArguments, ModelOutcome, ModelOutput, ModelParameter, RegisteredModel, optional, output, required};
use crate::ModelError;
use crate::control_path::{AgentProcessors, FourStations, LatencyCapacitySplit, four_stations, split};

const LAM: ModelParameter = required("lam", "1/s", "the rate of packets, Poisson");
const P: ModelParameter = required("p", "", "share of packets that go by the controller");
const DP: ModelParameter = required("dp", "s", "the law of what the data path takes");

const OUTPUTS: &[ModelOutput] = &[
    output("T", "s", "mean sojourn of delivered packets"),
    output("T_data", "s", "mean sojourn of those that the switch forwards itself"),
    output("T_ctrl", "s", "mean sojourn of those that go by the controller"),
    output("loss", "", "share of the packets that are lost"),
    output("f", "", "share of the delivered packets that went by the controller"),
    output("p50", "s", "median sojourn"),
    output("p95", "s", "sojourn that 95 in 100 do not exceed"),
    output("p99", "s", "sojourn that 99 in 100 do not exceed"),
    output("rho_<place>", "", "share of the time in which a place is busy"),
];

/// Latency-capacity split and four stations.
pub(super) const MODELS: &[RegisteredModel] = &[
    RegisteredModel {
        name: "lcs",
        title: "Latency-capacity split: a measured control path",
        assumes: "Poisson packets; one bottleneck of mean service 1/cap on the control path, the rest of the idle latency constant",
        validity: "exact under these assumptions; with B, means 1 to 11 % high, T_data up to 85 %; percentiles: paths independent",
        source: "weir's own, after measurements of Ansell (2017), 4 and 5.1",
        parameters: &[
            LAM,
            P,
            DP,
            required("D0", "s", "what the idle control path takes in all"),
            required("cap", "1/s", "packets that it carries without loss"),
            required("scv", "", "squared coefficient of variation of services at its bottleneck"),
            optional("K", "packets", "the most at the bottleneck, the one in service included", "no limit"),
            optional("B", "s", "how long a table write seizes the data path", "not at all"),
        ],
        outputs: OUTPUTS,
        evaluate: |given| {
            ModelOutcome::of_switch(&split(&LatencyCapacitySplit {
                rate: given.number("lam")?,
                p: given.number("p")?,
                data: given.law("dp")?,
                idle_s: given.number("D0")?,
                capacity: given.number("cap")?,
                scv: given.number("scv")?,
                places: given.optional_count("K")?,
                write_s: given.optional_number("B")?,
            })?)
        },
    },
    RegisteredModel {
        name: "sdn4q",
        title: "Four stations: data path, packet-in agent, controller, packet-out agent",
        assumes: "Poisson packets; independent services; each stage first come, first served",
        validity: "approximate: means within 3 % of simulation up to a load of 0.8 (shared: 21 %, returning: 6 %), percentiles within 6 % (26 %, 14 %); loss within a percentage point up to 1.1",
        source: "weir's own; Whitt (1983), Krämer and Langenbach-Belz (1976), Reiman and Simon (1988)",
        parameters: &[
            LAM,
            P,
            DP,
            required("ain", "s", "the law of what a packet-in takes the switch"),
            required("ctl", "s", "the law of what the controller takes"),
            required("aout", "s", "the law of what carrying out the answer takes the switch"),
            optional("shared", "", "whether one processor of the switch does both", "false"),
            optional("returning", "", "the same, and what comes back is not taken for new arrivals", "false"),
            optional("K_agent", "packets", "the most at each agent, the one in service included", "no limit"),
            optional("K_ctl", "packets", "the most at the controller, the one in service included", "no limit"),
        ],
        outputs: OUTPUTS,
        evaluate: stations,
    },
];

fn stations(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    ModelOutcome::of_switch(&four_stations(&FourStations {
        rate: given.number("lam")?,
        p: given.number("p")?,
        data: given.law("dp")?,
        packet_in: given.law("ain")?,
        controller: given.law("ctl")?,
        packet_out: given.law("aout")?,
        agents: match (given.flag("shared")?, given.flag("returning")?) {
            (_, true) => AgentProcessors::Returning,
            (true, false) => AgentProcessors::Shared,
            (false, false) => AgentProcessors::Separate,
        },
        agent_places: given.optional_count("K_agent")?,
        controller_places: given.optional_count("K_ctl")?,
    })?)
}
