//! A network in memory, behind a server: a ring of switches with a host at each.
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use weir_api::access::{RequestRate, Tokens};
use weir_api::client::{ApiClient, ClientAddress};
use weir_api::{ApiAddress, ApiConfig, ApiServer, EventWaker, NetworkBackend, RequestCounts};
use weir_packet::{MacAddr, PortNo};
use weir_routing::SwitchPort;
use weir_routing::intents::{IntentOutcome, IntentSpec, IntentState, IntentStatus, WhatIf, WhatIfAnswer};
use weir_routing::request::{ErrorKind, IntentAnswer, NetworkReply, NetworkRequest, PathState};
use weir_routing::state::{EventRecord, HostState, NetworkLink, NetworkPort, NetworkState, SwitchState};

/// Switches of the ring.
pub(crate) const SWITCHES: u64 = 4;
/// Most events that the network keeps.
const KEPT_EVENTS: usize = 50;

pub(crate) const READ: &str = "read-0123456789abcdef";
pub(crate) const OPERATE: &str = "operate-0123456789abcdef";
pub(crate) const ADMIN: &str = "admin-0123456789abcdef";

/// Network that does as it is told, and remembers intents and events.
#[derive(Default)]
pub(crate) struct RingNetwork {
    state: Mutex<RingState>,
}

#[derive(Default)]
struct RingState {
    intents: BTreeMap<String, IntentStatus>,
    events: Vec<EventRecord>,
    number: u64,
    broken: Option<String>,
    waker: Option<EventWaker>,
    /// Questions for events so far, without those that only look whether the network answers.
    asked_for_events: u64,
}

impl RingState {
    fn event(&mut self, kind: &str, text: String) {
        self.number += 1;
        let alarm = kind.ends_with("-down");
        self.events.push(EventRecord { number: self.number, time_s: 1.5, kind: kind.to_owned(), text, alarm });
        let excess = self.events.len().saturating_sub(KEPT_EVENTS);
        self.events.drain(..excess);
        if let Some(waker) = &self.waker {
            waker.wake(self.number);
        }
    }
}

impl RingState {
    /// Adds an intent. A bandwidth that no way has is refused.
    fn set(&mut self, intent: IntentSpec) -> Result<IntentStatus, &'static str> {
        if intent.constraints.bandwidth.is_some_and(|rate| rate.0 > 1 << 30) {
            return Err("no way has so much bandwidth left");
        }
        let status = status(intent);
        let key = status.intent.key.clone();
        if self.intents.insert(key.clone(), status.clone()).as_ref() != Some(&status) {
            self.event("intent-installed", format!("intent {key} installed"));
        }
        Ok(status)
    }
}

impl RingNetwork {
    /// Adds an event.
    pub(crate) fn tell(&self, kind: &str, text: &str) {
        self.state.lock().unwrap().event(kind, text.to_owned());
    }

    /// Returns how often events were asked for.
    pub(crate) fn asked_for_events(&self) -> u64 {
        self.state.lock().unwrap().asked_for_events
    }

    /// Makes further requests fail.
    pub(crate) fn break_down(&self, why: &str) {
        self.state.lock().unwrap().broken = Some(why.to_owned());
    }

    /// Makes requests succeed again.
    pub(crate) fn repair(&self) {
        self.state.lock().unwrap().broken = None;
    }
}

/// Returns the port of a switch to the next one of the ring (1), to the one before (2), or to its host (3).
fn port(switch: u64, number: u32) -> SwitchPort {
    SwitchPort::new(switch, PortNo(number))
}

fn switch(dpid: u64) -> SwitchState {
    let port = |number: u32| NetworkPort {
        number: PortNo(number),
        name: format!("s{dpid}-eth{number}"),
        up: true,
        rate_kbps: 1_000_000,
    };
    SwitchState { dpid, ports: (1..=3).map(port).collect() }
}

fn link(from: u64) -> NetworkLink {
    let to = from % SWITCHES + 1;
    let (from, to) = (port(from, 1), port(to, 2));
    NetworkLink {
        delay_us: Some(250.0),
        load_bps: Some([9e8, 1e6]),
        reserved_bps: Some([10_000_000, 0]),
        ..NetworkLink::between(from.min(to), from.max(to))
    }
}

fn host(number: u8) -> HostState {
    HostState {
        mac: MacAddr([2, 0, 0, 0, 0, number]),
        at: port(u64::from(number), 3),
        ips: vec![[10, 0, 0, number].into()],
        name: (number == 1).then(|| "alice".to_owned()),
        seen_s: 0.5,
    }
}

/// Returns the ring as node-link JSON.
fn graph() -> serde_json::Value {
    let nodes: Vec<_> = (1..=SWITCHES).map(|dpid| serde_json::json!({"id": dpid, "dpid": dpid})).collect();
    let edge = |from| serde_json::json!({"source": from, "target": from % SWITCHES + 1, "ports": [1, 2]});
    let edges: Vec<_> = (1..=SWITCHES).map(edge).collect();
    serde_json::json!({"directed": false, "multigraph": true, "graph": {}, "nodes": nodes, "edges": edges})
}

fn way() -> PathState {
    let ports = vec![port(1, 3), port(1, 1), port(2, 2), port(2, 3)];
    PathState { ports, delay_us: Some(250.0), free_bps: Some(990_000_000) }
}

fn status(intent: IntentSpec) -> IntentStatus {
    let failed = intent.to.iter().any(|end| end == "nowhere");
    let state = if failed { IntentState::Failed } else { IntentState::Installed };
    let reason = if failed { "no host is called nowhere".to_owned() } else { String::new() };
    let paths = if failed { Vec::new() } else { vec![way()] };
    IntentStatus { intent, state, reason, paths, expected_delay_us: None, confirmed: u64::from(!failed) }
}

impl NetworkBackend for RingNetwork {
    fn request(&self, request: NetworkRequest) -> Result<NetworkReply, String> {
        let mut state = self.state.lock().unwrap();
        if let Some(why) = &state.broken {
            return Err(why.clone());
        }
        let error = |kind, message: &str| NetworkReply::Error { kind, message: message.to_owned() };
        Ok(match request {
            NetworkRequest::Show => NetworkReply::State(NetworkState {
                time_s: 12.5,
                last_event: state.number,
                switches: (1..=SWITCHES).map(switch).collect(),
                links: (1..=SWITCHES).map(link).collect(),
                hosts: (1..=4).map(host).collect(),
                intents: state.intents.values().cloned().collect(),
                counters: BTreeMap::from([("packet_ins".to_owned(), 7)]),
            }),
            NetworkRequest::Topology => NetworkReply::Topology { network: graph() },
            NetworkRequest::Paths { from, .. } if from == "nobody" => {
                error(ErrorKind::NotFound, "no host is called nobody")
            }
            NetworkRequest::Paths { most, .. } => NetworkReply::Paths { paths: vec![way(); most.min(2)] },
            NetworkRequest::SetIntent { intent } => match state.set(intent) {
                Ok(status) => NetworkReply::Intent(status),
                Err(why) => error(ErrorKind::Refused, why),
            },
            NetworkRequest::SetIntents { intents } => {
                let mut set = |intent| match state.set(intent) {
                    // Installed by the time at which the batch is asked for.
                    Ok(IntentStatus { intent, .. }) => IntentAnswer::Done(IntentOutcome {
                        key: intent.key,
                        state: IntentState::Compiling,
                        reason: String::new(),
                    }),
                    Err(why) => IntentAnswer::Error { kind: ErrorKind::Refused, message: why.to_owned() },
                };
                NetworkReply::Intents { batch: 7, answers: intents.into_iter().map(&mut set).collect() }
            }
            NetworkRequest::RemoveIntents { keys } => {
                let keys = keys.unwrap_or_else(|| state.intents.keys().cloned().collect());
                let mut remove = |key: String| match state.intents.remove(&key) {
                    Some(_) => {
                        let (state, reason) = (IntentState::Withdrawn, String::new());
                        IntentAnswer::Done(IntentOutcome { key, state, reason })
                    }
                    None => IntentAnswer::Error { kind: ErrorKind::NotFound, message: format!("no intent {key}") },
                };
                NetworkReply::Intents { batch: 8, answers: keys.into_iter().map(&mut remove).collect() }
            }
            NetworkRequest::IntentBatch { batch, .. } if batch == 7 || batch == 8 => {
                let others = state.intents.values().filter(|status| status.state != IntentState::Installed);
                let outcome = |status: &IntentStatus| IntentOutcome {
                    key: status.intent.key.clone(),
                    state: status.state,
                    reason: status.reason.clone(),
                };
                NetworkReply::IntentBatch { left: 0, others: others.map(outcome).collect() }
            }
            NetworkRequest::IntentBatch { .. } => error(ErrorKind::NotFound, "no such batch"),
            NetworkRequest::Intent { key } => match state.intents.get(&key) {
                Some(status) => NetworkReply::Intent(status.clone()),
                None => error(ErrorKind::NotFound, &format!("there is no intent with the key `{key}`")),
            },
            NetworkRequest::RemoveIntent { key } => match state.intents.remove(&key) {
                Some(_) => NetworkReply::Removed,
                None => error(ErrorKind::NotFound, &format!("there is no intent with the key `{key}`")),
            },
            NetworkRequest::WhatIf { case: WhatIf::SwitchFails { dpid } } if dpid == "ff" => {
                error(ErrorKind::Invalid, "there is no switch ff")
            }
            NetworkRequest::WhatIf { .. } => NetworkReply::WhatIf(WhatIfAnswer {
                intents: state.intents.values().cloned().collect(),
                cut_off: vec![host(3).mac.to_string()],
                overloaded: vec![port(2, 1)],
            }),
            NetworkRequest::Summary => panic!("the server does not ask for it"),
            NetworkRequest::Events { after, most } => {
                state.asked_for_events += u64::from(after != u64::MAX);
                let newer = state.events.iter().filter(|event| event.number > after);
                NetworkReply::Events { events: newer.take(most).cloned().collect() }
            }
        })
    }

    fn wake_on_events(&self, waker: EventWaker) {
        self.state.lock().unwrap().waker = Some(waker);
    }
}

/// A server in front of a [`RingNetwork`], on a Unix socket and on a port of 127.0.0.1.
pub(crate) struct ServedNetwork {
    pub(crate) network: Arc<RingNetwork>,
    pub(crate) requests: Arc<RequestCounts>,
    pub(crate) server: ApiServer,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) runtime: tokio::runtime::Runtime,
}

impl ServedNetwork {
    pub(crate) fn start() -> ServedNetwork {
        ServedNetwork::with_rate(RequestRate::default())
    }

    pub(crate) fn with_rate(rate: RequestRate) -> ServedNetwork {
        let folder = tempfile::tempdir().unwrap();
        let tokens = write_tokens(&folder, &format!("read {READ} viewer\noperate {OPERATE}\nadmin {ADMIN}\n"));
        let network = Arc::new(RingNetwork::default());
        let socket = ApiAddress::Unix(folder.path().join("ring.api"));
        let listen = vec![socket, "127.0.0.1:0".parse().unwrap()];
        let requests = Arc::<RequestCounts>::default();
        let tokens = Tokens::read(&tokens).unwrap();
        let config = ApiConfig { listen, tokens, tls: None, rate, requests: Arc::clone(&requests) };
        let server = ApiServer::start(config, Arc::clone(&network) as Arc<dyn NetworkBackend>).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        ServedNetwork { network, requests, server, folder, runtime }
    }

    /// Returns a client over the Unix socket.
    pub(crate) fn owner(&self) -> ApiClient {
        client(&self.server.addresses()[0], None)
    }

    /// Returns a client over TCP with a token.
    pub(crate) fn holder(&self, token: &str) -> ApiClient {
        client(&self.server.addresses()[1], Some(token))
    }

    /// Returns `IP:PORT` of the server.
    pub(crate) fn place(&self) -> String {
        self.server.addresses()[1].to_string().trim_start_matches("http://").to_owned()
    }

    /// Returns status and JSON of the answer to a request; of a problem, too.
    pub(crate) fn ask(&self, client: &ApiClient, request: &str, body: Option<&str>) -> (u16, serde_json::Value) {
        let (method, path) = request.split_once(' ').unwrap();
        match self.wait(client.ask(method, path, body.map(str::to_owned))) {
            Ok(answer) if answer.body.is_empty() => (answer.status, serde_json::Value::Null),
            Ok(answer) => (answer.status, serde_json::from_slice(&answer.body).unwrap()),
            Err(weir_api::client::ApiClientError::Refused(problem)) => {
                (problem.status, serde_json::to_value(problem).unwrap())
            }
            Err(error) => panic!("{request}: {error}"),
        }
    }

    /// Waits for the end of a future.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let limited = async { tokio::time::timeout(std::time::Duration::from_secs(30), future).await };
        self.runtime.block_on(limited).expect("an answer in time")
    }
}

pub(crate) fn client(address: &ApiAddress, token: Option<&str>) -> ApiClient {
    let address: ClientAddress = address.to_string().parse().unwrap();
    ApiClient::new(address, token.map(str::to_owned), None)
}

/// Writes a file with tokens, for its owner alone.
pub(crate) fn write_tokens(folder: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("tokens");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}
