//! Finds the interface of a controller, and sends requests to it.
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_api::client::{ApiClient, ApiClientError, ClientAddress};
use weir_switch::ctl::{self, CtlProgram};
use weir_tls::ServerTrust;

/// Path under which all requests are.
const BASE: &str = "/api/v1";
/// Largest file with a token in bytes.
const MAX_TOKEN_FILE: usize = 4096;

#[derive(clap::Args)]
pub(super) struct ConnectionArgs {
    /// Interface of the controller: unix:PATH, http://HOST:PORT, https://HOST:PORT, or the name of a controller of this
    /// machine [default: the only one that runs]
    #[arg(long, value_name = "ADDRESS|NAME", global = true)]
    api: Option<String>,
    /// File with the token for http: and https:, and nothing else
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
    /// For https:, PEM file with the certificates of the CAs that sign for controllers
    #[arg(short = 'C', long, value_name = "FILE", global = true)]
    ca_cert: Option<PathBuf>,
}

/// Connection to a controller's interface.
pub(super) struct NetClient {
    client: ApiClient,
    pub(super) runtime: tokio::runtime::Runtime,
}

impl ConnectionArgs {
    pub(super) fn client(&self) -> anyhow::Result<NetClient> {
        let address = self.address()?;
        let token = self.token_file.as_deref().map(read_token).transpose()?;
        if token.is_none() && !matches!(address, ClientAddress::Unix(_)) {
            bail!("{address} needs a token; give a file that has it with --token-file");
        }
        if self.ca_cert.is_none() && matches!(address, ClientAddress::Https { .. }) {
            bail!(
                "{address} needs the certificates of the CAs that sign for controllers; give their file with --ca-cert"
            );
        }
        let trust = self.ca_cert.as_deref().map(ServerTrust::load).transpose()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot connect to a controller")?;
        Ok(NetClient { client: ApiClient::new(address, token, trust), runtime })
    }

    fn address(&self) -> anyhow::Result<ClientAddress> {
        match self.api.as_deref() {
            Some(address) if address.contains(':') => address.parse().map_err(anyhow::Error::msg).context("--api"),
            name => of_controller(name),
        }
    }
}

/// Returns the socket of a controller's interface, which lies beside its control socket.
fn of_controller(name: Option<&str>) -> anyhow::Result<ClientAddress> {
    let control = ctl::find(CtlProgram::Controller, name).map_err(|error| {
        // What it says is meant for `weir ctl`.
        let error = error.replace("`weir controller`", "`weir controller --app forwarding`");
        anyhow::anyhow!("{}", error.replace("--socket PATH", "--api ADDRESS").replace("weir ctl controller", "--api"))
    })?;
    let socket = control.with_extension("api");
    if !socket.exists() {
        bail!(
            "no interface of a controller at {}; start one with `weir controller --app forwarding`, or say --api \
             ADDRESS",
            socket.display()
        );
    }
    Ok(ClientAddress::Unix(socket))
}

fn read_token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("--token-file {}", path.display()))?;
    let token = text.trim();
    if token.is_empty() || token.len() > MAX_TOKEN_FILE || token.contains(char::is_whitespace) {
        bail!("--token-file {}: expected one token and nothing else", path.display());
    }
    Ok(token.to_owned())
}

impl NetClient {
    /// Reads what is at a path, which begins behind `/api/v1`.
    pub(super) fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send("GET", path, None)
    }

    /// Sends a request, and returns the JSON of the answer; null if there is none.
    pub(super) fn send(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let path = format!("{BASE}{path}");
        let asking = self.client.ask(method, &path, body.map(Value::to_string));
        let answer = self.runtime.block_on(asking).map_err(explained)?;
        if answer.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer.body).context("the controller's answer is no JSON")
    }

    /// Waits for a time.
    pub(super) fn pause(&self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }

    /// Returns the client for requests that take long.
    pub(super) fn client(&self) -> &ApiClient {
        &self.client
    }
}

/// Adds to an error what its reader can do.
pub(super) fn explained(error: ApiClientError) -> anyhow::Error {
    let advice = match &error {
        ApiClientError::Refused(problem) => match problem.status {
            401 => "; give the file with a valid token by --token-file",
            403 => "; use a token with that role",
            _ => "",
        },
        ApiClientError::Connect { address: ClientAddress::Unix(_), .. } => {
            "; does the controller run, and as this user? `weir controller --app forwarding` starts one"
        }
        ApiClientError::Connect { .. } => "; does a controller serve it? `weir controller --app forwarding --api` does",
        ApiClientError::NoTrust(_) | ApiClientError::Broken { .. } => "",
    };
    anyhow::anyhow!("{error}{advice}")
}
