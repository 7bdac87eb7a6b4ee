//! Carries out those requests on the control socket whose arguments are texts to parse: adding a port, listing and
//! changing flow entries, and tracing a packet.
use super::{CtlRequest, DumpedFlow, FlowDump, FlowVerb, MAX_FLOWS, TraceReply};
use crate::config::{PortArgument, PortConfig};
use crate::engine::inbox::EngineClient;
use crate::handle::SwitchError;
use serde_json::{Value, json};
use std::sync::Arc;
use weir_datapath::{TraceCycles, TraceTimes};
use weir_openflow::model::multipart::{FlowRequest, FlowStats};
use weir_openflow::model::{FlowCommand, PortNo, Version};
use weir_openflow::text::{self, PortNames};
use weir_packet::Frame;

/// Number of calls to the engine in which the steps of a traced packet are timed. Each call has a time limit, so that
/// the engine forwards packets in between.
const TRACE_SLICES: usize = 16;

/// Carries out a request: adds a port, lists or changes flow entries, or traces a packet. Returns the answer as JSON.
///
/// # Errors
/// A text cannot be parsed, the switch refuses the request, or the request is of another kind.
pub(super) async fn carry_out(engine: &EngineClient, request: CtlRequest) -> Result<Value, SwitchError> {
    match request {
        CtlRequest::AddPort { port } => add_port(engine, &port).await,
        CtlRequest::DumpFlows { filter } => dump(engine, &filter).await,
        CtlRequest::FlowMod { command, flow } => {
            let flow = numbered(engine, flow).await?;
            let flow = text::parse_flow(&flow, command.into()).map_err(wrong)?;
            engine.call_served_async(move |served| served.flow_mod(&flow)).await??;
            Ok(json!({}))
        }
        CtlRequest::Trace { in_port, packet } => trace(engine, in_port, packet).await,
        _ => Err(wrong("not about flow entries")),
    }
}

/// Returns a text with the numbers of the switch's ports in place of their names.
///
/// # Errors
/// No port has the name that stands in the place of a port, or the switch stops.
pub(super) async fn numbered(engine: &EngineClient, text: String) -> Result<String, SwitchError> {
    let names = PortNames::find(&text);
    if names.is_empty() {
        return Ok(text);
    }
    engine.call_served_async(move |served| names.replaced(text, |name| served.find_port(name))).await?
}

async fn add_port(engine: &EngineClient, port: &str) -> Result<Value, SwitchError> {
    let argument: PortArgument = port.parse().map_err(wrong::<String>)?;
    // Opening a device may take the kernel a while.
    let opened = tokio::task::spawn_blocking(move || PortConfig::open(argument)).await;
    let port = opened.map_err(wrong)??;
    let number = engine.call_async(move |engine| engine.add_port(port)).await??;
    Ok(json!({ "added": number }))
}

async fn dump(engine: &EngineClient, filter: &str) -> Result<Value, SwitchError> {
    let request =
        if filter.is_empty() { FlowRequest::all() } else { request(&numbered(engine, filter.to_owned()).await?)? };
    let mut next = Some(engine.call_served_async(move |served| served.flow_walk(&request)).await??);
    let (mut found, mut left_out) = (Vec::new(), 0);
    while let Some(walk) = next {
        let (part, more) = engine.call_served_async(|served| served.walk(walk)).await?;
        found.extend(part);
        left_out += found.len().saturating_sub(MAX_FLOWS);
        found.truncate(MAX_FLOWS);
        next = more;
    }
    let text = |flow: &FlowStats| DumpedFlow { text: text::format_stats(flow, Version::V13), entry: json!(flow) };
    run_blocking(move || json!(FlowDump { flows: found.iter().map(text).collect(), left_out })).await
}

/// Runs a long computation on another thread, so that the control thread continues to serve channels. Used to format
/// many entries, groups or meters as text.
///
/// # Errors
/// `what` panics, or the switch stops.
pub(super) async fn run_blocking<R: Send + 'static>(
    what: impl FnOnce() -> R + Send + 'static,
) -> Result<R, SwitchError> {
    tokio::task::spawn_blocking(what).await.map_err(wrong)
}

/// Parses a filter for flow entries, which has the text syntax of a flow-mod that deletes entries.
fn request(filter: &str) -> Result<FlowRequest, SwitchError> {
    let flow = text::parse_flow(filter, FlowCommand::Delete).map_err(wrong)?;
    Ok(FlowRequest {
        table: flow.table,
        out_port: flow.out_port,
        out_group: flow.out_group,
        cookie: flow.cookie,
        cookie_mask: flow.cookie_mask,
        matching: flow.matching,
    })
}

async fn trace(engine: &EngineClient, in_port: String, packet: String) -> Result<Value, SwitchError> {
    let packet = numbered(engine, packet).await?;
    let described = super::packet::described(&packet).map_err(wrong)?;
    let frame = Arc::new(described.frame);
    let traced = Arc::clone(&frame);
    let traced = engine.call_served_async(move |served| {
        let number = served.find_port(&in_port)?;
        if let Some(other) = described.in_port.filter(|other| *other != number) {
            return Err(wrong(format!(
                "found in_port={other} in the packet, expected {number}, the port named before it"
            )));
        }
        Ok::<_, SwitchError>((number, served.trace(number, &traced)?))
    });
    let (number, mut trace) = traced.await??;
    trace.times = times(engine, number, frame).await?.filter(|times| times.steps_ns.len() == trace.steps.len());
    Ok(json!(TraceReply { text: trace.to_string(), trace: json!(trace) }))
}

/// Measures the time that each step of a traced packet takes. Measures in several calls to the engine, so that it
/// forwards packets in between. Returns `None` if the packet's path changes meanwhile.
async fn times(engine: &EngineClient, port: PortNo, frame: Arc<Frame>) -> Result<Option<TraceTimes>, SwitchError> {
    let (mut best, mut rate) = (TraceCycles::default(), 1.0);
    for _ in 0..TRACE_SLICES {
        let frame = Arc::clone(&frame);
        let timed = engine.call_served_async(move |served| served.time_trace(port, &frame));
        let (took, cycles_per_ns) = timed.await??;
        if !best.merge(&took) {
            return Ok(None);
        }
        rate = cycles_per_ns;
    }
    Ok(Some(best.times(rate)))
}

pub(super) fn wrong<E: std::fmt::Display>(error: E) -> SwitchError {
    SwitchError::Request(error.to_string())
}

impl From<FlowVerb> for FlowCommand {
    fn from(verb: FlowVerb) -> FlowCommand {
        match verb {
            FlowVerb::Add => FlowCommand::Add,
            FlowVerb::Modify => FlowCommand::Modify,
            FlowVerb::ModifyStrict => FlowCommand::ModifyStrict,
            FlowVerb::Delete => FlowCommand::Delete,
            FlowVerb::DeleteStrict => FlowCommand::DeleteStrict,
        }
    }
}
