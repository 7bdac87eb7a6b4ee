//! Intents of a scenario: given to the controller of its network, and what became of them.
use crate::NetworkError;
use crate::result::TrafficResult;
use serde::Serialize;
use weir_routing::SwitchPort;
use weir_routing::intents::{DelayKind, IntentKind, IntentSpec, IntentStatus};
use weir_routing::request::{NetworkReply, NetworkRequest};
use weir_scenario::{Scenario, ScenarioIntent};

pub use weir_routing::intents::IntentState;

/// State of an intent at the end of traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntentResult {
    /// Key of the intent.
    pub key: String,
    /// Sources as the scenario names them.
    pub from: Vec<String>,
    /// Destinations as the scenario names them.
    pub to: Vec<String>,
    /// State.
    pub state: IntentState,
    /// Reason for which it is degraded or failed; empty otherwise.
    pub reason: String,
    /// Ways in use, then ways kept ready: ports in the order in which packets pass them.
    pub ways: Vec<Vec<SwitchPort>>,
    /// Delay that the bound is about: `p99` for 99 of 100 packets, `worst case`; `None` without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_of: Option<String>,
    /// Bound of the delay in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_us: Option<f64>,
    /// Delay that the controller expects on the worst way, in microseconds, if there is a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_us: Option<f64>,
    /// Delay that the datagrams between its hosts had, in microseconds, of the item of traffic that took longest.
    /// `None` without a bound, and without datagrams that the intent is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_us: Option<f64>,
}

/// Texts of an intent's traffic that are about all datagrams between its ends.
const ALL_DATAGRAMS: [&str; 5] = ["", "ip", "udp", "ipv6", "udp6"];

/// Gives a scenario's intents to the controller of its network. `ask` passes a request to it and returns its reply,
/// both in JSON.
///
/// # Errors
/// The controller refuses an intent, although the scenario was checked, or does not answer.
pub fn submit(scenario: &Scenario, mut ask: impl FnMut(&str) -> Option<String>) -> Result<(), NetworkError> {
    for ScenarioIntent { spec, .. } in &scenario.network_control.intents {
        let request = serde_json::to_string(&NetworkRequest::SetIntent { intent: spec.clone() }).unwrap_or_default();
        let why = match ask(&request).map(|reply| serde_json::from_str(&reply)) {
            Some(Ok(NetworkReply::Intent(_))) => continue,
            Some(Ok(NetworkReply::Error { message, .. })) => message,
            Some(Ok(_) | Err(_)) | None => "the controller does not answer as expected".to_owned(),
        };
        return Err(NetworkError::Scenario(format!("intent `{}`: {why}", spec.key)));
    }
    Ok(())
}

/// Returns the states of a scenario's intents, in its order. `ask` passes a request to the controller of the network
/// and returns its reply, both in JSON; without an answer there are no states.
pub fn results(
    scenario: &Scenario,
    traffic: &[TrafficResult],
    ask: impl FnOnce(&str) -> Option<String>,
) -> Vec<IntentResult> {
    let intents = &scenario.network_control.intents;
    if intents.is_empty() {
        return Vec::new();
    }
    let request = serde_json::to_string(&NetworkRequest::Show).unwrap_or_default();
    let Some(Ok(NetworkReply::State(state))) = ask(&request).map(|reply| serde_json::from_str(&reply)) else {
        return Vec::new();
    };
    let known = |intent: &ScenarioIntent| state.intents.iter().find(|status| status.intent.key == intent.spec.key);
    let result = |intent| Some(result(scenario, intent, known(intent)?, traffic));
    intents.iter().filter_map(result).collect()
}

fn result(
    scenario: &Scenario,
    intent: &ScenarioIntent,
    status: &IntentStatus,
    traffic: &[TrafficResult],
) -> IntentResult {
    let bound = intent.spec.constraints.delay.as_ref();
    let [from, to] = intent.ends.clone();
    IntentResult {
        key: intent.spec.key.clone(),
        from,
        to,
        state: status.state,
        reason: status.reason.clone(),
        ways: status.paths.iter().map(|way| way.ports.clone()).collect(),
        delay_of: bound.map(|bound| match bound.kind {
            DelayKind::Percentile(percent) => format!("p{percent}"),
            DelayKind::WorstCase => "worst case".to_owned(),
        }),
        bound_us: bound.map(|bound| bound.most.0.as_secs_f64() * 1e6),
        expected_us: status.expected_delay_us,
        measured_us: bound.and_then(|bound| measured(scenario, &intent.spec, bound.kind, traffic)),
    }
}

/// Returns the delay of the datagrams that the intent is about, of the item that took longest.
fn measured(scenario: &Scenario, intent: &IntentSpec, kind: DelayKind, traffic: &[TrafficResult]) -> Option<f64> {
    if !ALL_DATAGRAMS.contains(&intent.traffic.trim()) {
        return None;
    }
    let is_end = |ends: &[String], name: &str| {
        let host = scenario.hosts.iter().find(|host| host.name == name);
        host.is_some_and(|host| {
            let ips = || host.ip.iter().map(|net| net.addr.to_string());
            ends.iter().any(|end| *end == host.mac.to_string() || ips().any(|ip| ip == *end))
        })
    };
    let is_about = |item: &&TrafficResult| {
        let goes = |from: &[String], to: &[String]| is_end(from, &item.from) && is_end(to, &item.to);
        goes(&intent.from, &intent.to) || intent.kind == IntentKind::HostToHost && goes(&intent.to, &intent.from)
    };
    let delay = |item: &TrafficResult| {
        let delays = item.delay.as_ref()?;
        match kind {
            DelayKind::WorstCase => Some(delays.max_us),
            DelayKind::Percentile(percent) => {
                let share = percent / 100.0;
                item.quantiles_us.iter().find(|(reached, _)| *reached >= share).map(|(_, us)| *us)
            }
        }
    };
    traffic.iter().filter(is_about).filter_map(delay).reduce(f64::max)
}
