//! Registers the models of effects that queues omit.
use super::{ModelArguments, ModelOutcome, ModelParameter, RegisteredModel, optional, output, required};
use crate::answer::StationUtilisation;
use crate::check::{at_least_one, domain};
use crate::mechanism::{
    BatchStage, FlowSetupTime, NewFlows, PollingSwitch, TcpBulkTransfer, WriteInterference, effective_share, tick_s,
};
use crate::{Law, ModelError};

const OURS: &str = "weir's own";
const LAM: ModelParameter = required("lam", "1/s", "the rate of packets, Poisson");

/// Models of interference, packets before their entry, batches, polling, ticks and TCP.
pub(super) const MODELS: &[RegisteredModel] = &[
    RegisteredModel {
        name: "interference",
        title: "Table writes that seize the data path, and the share that seems to ask the controller",
        assumes: "Poisson packets and writes, independent of each other; writes of constant length that go first, packets resumed",
        validity: "exact under these assumptions; writes behind a bottleneck are more regular: then too high; x / B at most 20",
        source: "weir's own; M/G/1 with preemptive priority; Erlang's M/D/1 work",
        parameters: &[
            LAM,
            required("sd", "s", "what the data path takes for a packet, constant"),
            required("lam_b", "1/s", "the rate of writes"),
            required("B", "s", "the length of a write"),
            optional("x", "s", "packets delayed by more than this are taken for such that asked", "no p_eff"),
            optional("p", "", "share of packets that ask the controller", "0"),
        ],
        outputs: &[
            output("T_data", "s", "mean sojourn in the data path"),
            output("p50", "s", "median sojourn"),
            output("p95", "s", "sojourn that 95 in 100 do not exceed"),
            output("p99", "s", "sojourn that 99 in 100 do not exceed"),
            output("rho", "", "share of the time in which the path forwards or writes"),
            output("p_block", "", "share of packets that writes delay by more than x"),
            output("p_eff", "", "share of packets that seem to ask the controller"),
        ],
        evaluate: interference,
    },
    RegisteredModel {
        name: "udp_burst",
        title: "Packets of a flow that come before its entry is there",
        assumes: "Poisson flows of geometrically many packets, Poisson within a flow; all packets before the entry ask",
        validity: "exact for a given set-up time; with mu_c within 1.5 % of simulation; METASTABLE: a worse state is possible, too",
        source: OURS,
        parameters: &[
            required("phi", "1/s", "the rate of flows"),
            required("N", "packets", "mean packets of a flow"),
            required("r", "1/s", "the rate of packets within a flow"),
            optional("D", "s", "time until the entry is there", "what mu_c gives"),
            optional("kind", "", "exp or det: the law of D", "exp"),
            optional("mu_c", "1/s", "the service rate of an M/M/1 control path, instead of D", "D"),
        ],
        outputs: &[
            output("n_ctrl", "packets", "of each flow that ask, on average"),
            output("p_eff", "", "share of all packets that ask"),
            output("rate_c", "1/s", "packets that ask"),
            output("D", "s", "mean time until the entry is there"),
        ],
        evaluate: before_entry,
    },
    RegisteredModel {
        name: "batch_stage",
        title: "A stage that passes packets on in batches, or after a time",
        assumes: "Poisson packets; B packets, or theta after the last batch",
        validity: "exact",
        source: OURS,
        parameters: &[
            LAM,
            required("B", "packets", "those of a full batch"),
            required("theta", "s", "the time after which a batch goes that is not full"),
        ],
        outputs: &[
            output("T", "s", "mean delay"),
            output("p50", "s", "median delay"),
            output("p95", "s", "delay that 95 in 100 do not exceed"),
            output("p99", "s", "delay that 99 in 100 do not exceed"),
            output("batch", "packets", "of a batch on average, empty ones included"),
            output("p_full", "", "share of batches that are full"),
        ],
        evaluate: batch,
    },
    RegisteredModel {
        name: "poll_rtt",
        title: "Delay of a software switch that passes packets on every F rounds of its loop, at light load",
        assumes: "k stages, each a uniform time from 0 to F tau, independent",
        validity: "light load; its parameters are fitted",
        source: "weir's own; checked with Rahimi et al., A High-Performance OpenFlow Software Switch (2016), table II",
        parameters: &[
            required("F", "rounds", "rounds between two batches"),
            required("tau", "s", "time of a round"),
            required("stages", "", "stages that a packet passes, there and back"),
            required("base", "s", "what the rest takes"),
        ],
        outputs: &[output("mean", "s", "mean delay"), output("sd", "s", "its standard deviation")],
        evaluate: polling,
    },
    RegisteredModel {
        name: "tick",
        title: "A device that passes packets on at regular times only",
        assumes: "Poisson packets; up to m of those waiting are released every delta",
        validity: "exact",
        source: "weir's own; bulk service, Bailey (1954)",
        parameters: &[
            LAM,
            required("delta", "s", "time between releases"),
            required("m", "packets", "released at a time, at most"),
        ],
        outputs: &[
            output("T", "s", "mean delay"),
            output("rho", "", "packets that come over those that can be released"),
        ],
        evaluate: tick,
    },
    RegisteredModel {
        name: "tcp_bulk",
        title: "A TCP connection from its first segment on, through a line with a buffer",
        assumes: "Reno without selective acknowledgements, one for two segments; nothing is lost but what the buffer does not take",
        validity: "approximate: 11 % off simulation in the middle, within a factor of two in 95 of 100 cases; worst with buffers of ten frames",
        source: "weir's own; slow start after Cardwell, Savage and Anderson (2000), congestion avoidance after Jacobson (1988)",
        parameters: &[
            required("share", "bytes/s", "what others leave of the line, frames"),
            optional("line", "bytes/s", "what the line sends of all traffic", "share"),
            required("rtt", "s", "a round trip while nothing waits"),
            required("buffer", "bytes", "what may wait for the line, frames"),
            required("duration", "s", "from the connection's beginning to its end"),
            optional("window", "bytes", "the receiver's window, payload", "98304"),
            optional("first", "bytes", "the first window, payload", "2048"),
            optional("timeout", "s", "the least time after which segments are sent again", "1"),
        ],
        outputs: &[
            output("bytes", "bytes", "payload that arrives"),
            output("rate", "bytes/s", "the same a second, from the first byte's arrival on"),
            output("queue", "s", "what waits for the line on average"),
            output("lost", "frames", "that the buffer does not take"),
            output("timeouts", "", "waits for the timer"),
        ],
        evaluate: bulk,
    },
];

fn small(given: &ModelArguments, name: &str) -> Result<u32, ModelError> {
    let count = given.count(name)?;
    at_least_one(name, u32::try_from(count).map_err(|_| domain(name, count, "fewer than 2^32"))?)
}

fn interference(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let (write_rate, write_s) = (given.number("lam_b")?, given.positive("B")?);
    let service = Law::constant(given.number("sd")?)?;
    let state = WriteInterference { rate: given.positive("lam")?, service, write_rate, write_s }.solve()?;
    let rho = state.writing + state.forwarding;
    let mut outcome = ModelOutcome::default()
        .with("T_data", "s", state.sojourn_s)
        .with("rho", "", rho)
        .with_loads(&[StationUtilisation::new("data path", rho)])
        .with_percentiles("", &state.sojourn)?;
    let p = given.optional_number("p")?.unwrap_or(0.0);
    if let Some(x) = given.optional_number("x")? {
        let (effective, delayed) = effective_share(p, x, write_rate, write_s)?;
        outcome = outcome.with("p_block", "", delayed).with("p_eff", "", effective);
    }
    Ok(outcome)
}

fn before_entry(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let set_up = match (given.optional_number("D")?, given.optional_number("mu_c")?) {
        (Some(delay), None) => given
            .choice("kind", &[("exp", FlowSetupTime::Exponential(delay)), ("det", FlowSetupTime::Constant(delay))])?,
        (None, Some(rate)) => FlowSetupTime::Station(rate),
        (given, _) => {
            let found = if given.is_some() { "both D and mu_c" } else { "neither D nor mu_c" };
            return Err(domain("set-up time", found, "one of them"));
        }
    };
    let flows =
        NewFlows { rate: given.positive("phi")?, packets: given.number("N")?, packet_rate: given.positive("r")? };
    let state = flows.before_entry(set_up)?;
    let outcome = ModelOutcome::default()
        .with("n_ctrl", "packets", state.per_flow)
        .with("p_eff", "", state.share)
        .with("rate_c", "1/s", state.rate)
        .with("D", "s", state.set_up_s);
    Ok(state.warning.into_iter().fold(outcome, ModelOutcome::with_warning))
}

fn batch(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let stage =
        BatchStage { rate: given.positive("lam")?, packets: small(given, "B")?, timeout_s: given.positive("theta")? };
    let state = stage.solve()?;
    Ok(ModelOutcome::default()
        .with("T", "s", state.delay_s)
        .with("p50", "s", state.quantile(0.5)?)
        .with("p95", "s", state.quantile(0.95)?)
        .with("p99", "s", state.quantile(0.99)?)
        .with("batch", "packets", state.packets)
        .with("p_full", "", state.full))
}

fn polling(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let polling = PollingSwitch {
        rounds: given.number("F")?,
        round_s: given.positive("tau")?,
        stages: small(given, "stages")?,
        base_s: given.number("base")?,
    };
    let delay = polling.delay()?;
    Ok(ModelOutcome::default().with("mean", "s", delay.mean_s).with("sd", "s", delay.sd_s))
}

fn tick(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let (rate, interval_s, packets) = (given.positive("lam")?, given.positive("delta")?, small(given, "m")?);
    let rho = rate * interval_s / f64::from(packets);
    let delay_s = tick_s(rate, interval_s, packets)?;
    Ok(ModelOutcome::default()
        .with("T", "s", delay_s)
        .with("rho", "", rho)
        .with_loads(&[StationUtilisation::new("tick", rho)]))
}

fn bulk(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let share = given.positive("share")?;
    let transfer = TcpBulkTransfer {
        share,
        line: given.optional_number("line")?.unwrap_or(share),
        round_trip_s: given.positive("rtt")?,
        buffer_bytes: given.number("buffer")?,
        window_bytes: given.optional_number("window")?.unwrap_or(98_304.0),
        first_bytes: given.optional_number("first")?.unwrap_or(2048.0),
        segment_bytes: 1460.0,
        frame_bytes: 1514.0,
        timeout_s: given.optional_number("timeout")?.unwrap_or(1.0),
        duration_s: given.number("duration")?,
        patience_s: 0.0,
    }
    .solve()?;
    Ok(ModelOutcome::default()
        .with("bytes", "bytes", transfer.payload_bytes)
        .with("rate", "bytes/s", transfer.payload_rate)
        .with("queue", "s", transfer.queue_s())
        .with("lost", "frames", transfer.lost)
        .with("timeouts", "", f64::from(transfer.timeouts)))
}
