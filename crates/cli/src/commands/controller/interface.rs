//! Serves the interface of the network (`weir net`, REST, the page): options, addresses, and the way to the controller.
use anyhow::{Context as _, bail};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use weir_api::access::Tokens;
use weir_api::{ApiAddress, ApiConfig, ApiServer, EventWaker, NetworkBackend, RequestCounts};
use weir_controller::Controller;
use weir_metrics::MetricFamily;
use weir_routing::EventSignal;
use weir_routing::request::{NetworkReply, NetworkRequest};
use weir_tls::TlsFiles;

/// Options of the interface.
#[derive(clap::Args)]
pub(super) struct InterfaceArgs {
    /// With --app forwarding, also serve the network's interface and page at this address: http:IP:PORT,
    /// https:IP:PORT or a port of 127.0.0.1; may be repeated. HTTPS uses --private-key and --certificate. `weir net`
    /// on this machine needs no address
    #[arg(long, value_name = "ADDRESS")]
    api: Vec<ApiAddress>,
    /// File with a line ROLE TOKEN [NAME] for each client of --api; the roles are read, operate and admin. Without it,
    /// a token is made and printed at the start
    #[arg(long, value_name = "FILE")]
    api_tokens: Option<PathBuf>,
}

/// Controller of a network as the interface's backend.
pub(super) struct ControlledNetwork {
    /// Weak, because the controller ends while requests may still be on their way.
    controller: Weak<Controller>,
    events: EventSignal,
    /// Requests to the interface.
    requests: Arc<RequestCounts>,
}

impl ControlledNetwork {
    /// Returns the network of a running controller, with the signal of its events.
    pub(super) fn new(controller: &Arc<Controller>, events: EventSignal) -> ControlledNetwork {
        ControlledNetwork { controller: Arc::downgrade(controller), events, requests: Arc::default() }
    }

    /// Returns the metrics of the network and of its interface.
    pub(super) fn metrics(&self) -> Result<Vec<MetricFamily>, String> {
        match self.request(NetworkRequest::Summary)? {
            NetworkReply::Summary(summary) => Ok(weir_metrics::network::families(&summary, &self.requests.by_status())),
            _ => Err("the network's answer is not as expected".to_owned()),
        }
    }
}

impl NetworkBackend for ControlledNetwork {
    fn request(&self, request: NetworkRequest) -> Result<NetworkReply, String> {
        let command = serde_json::to_string(&request).map_err(|error| error.to_string())?;
        let controller = self.controller.upgrade().ok_or("the controller stops")?;
        let reply = controller.command(&command).into_iter().next().ok_or("the controller stops")?;
        serde_json::from_str(&reply).map_err(|error| format!("the network's answer is not as expected: {error}"))
    }

    fn wake_on_events(&self, waker: EventWaker) {
        self.events.subscribe(move |newest| waker.wake(newest));
    }
}

/// The interface of a running controller.
pub(super) struct ServedInterface {
    /// Held for its drop, which stops it.
    _server: ApiServer,
    /// Addresses for display; those of HTTP have the token if it was made at the start.
    pub(super) addresses: Vec<String>,
}

impl InterfaceArgs {
    /// Checks that no option is given without effect.
    pub(super) fn refuse_unused(&self) -> anyhow::Result<()> {
        if !self.api.is_empty() || self.api_tokens.is_some() {
            bail!("--api and --api-tokens go with --app forwarding: a learning switch has no interface");
        }
        Ok(())
    }

    /// Serves the interface at these addresses, and on a Unix socket beside the control socket.
    pub(super) fn serve(
        &self,
        control_socket: &Path,
        tls: Option<TlsFiles>,
        network: Arc<ControlledNetwork>,
    ) -> anyhow::Result<ServedInterface> {
        let is_tcp = |address: &&ApiAddress| !matches!(address, ApiAddress::Unix(_));
        let (tokens, made) = match &self.api_tokens {
            Some(path) => (Tokens::read(path).context("--api-tokens")?, None),
            None if self.api.iter().any(|address| is_tcp(&address)) => {
                let (tokens, text) = Tokens::make().context("cannot make a token")?;
                (tokens, Some(text))
            }
            None => (Tokens::default(), None),
        };
        let socket = ApiAddress::Unix(control_socket.with_extension("api"));
        let listen = [socket].into_iter().chain(self.api.iter().cloned()).collect();
        let requests = Arc::clone(&network.requests);
        let server = ApiServer::start(ApiConfig { listen, tokens, tls, requests, ..ApiConfig::default() }, network);
        let server = server.context("--api")?;
        let shown = |address: &ApiAddress| match &made {
            Some(token) if is_tcp(&address) => format!("{address}/#token={token}"),
            _ => address.to_string(),
        };
        let addresses = server.addresses().iter().map(shown).collect();
        Ok(ServedInterface { _server: server, addresses })
    }
}
