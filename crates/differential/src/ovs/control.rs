//! Control socket of a daemon of Open vSwitch: sends commands as `ovs-appctl` does (JSON-RPC 1.0).
use anyhow::{Context as _, ensure};
use serde::Deserialize as _;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest time to wait for the answer to a command.
const ANSWER: Duration = Duration::from_secs(30);

/// A connection to a control socket.
pub(super) struct OvsControlSocket(UnixStream);

impl OvsControlSocket {
    pub(super) fn open(path: &Path) -> anyhow::Result<OvsControlSocket> {
        let stream = UnixStream::connect(path).with_context(|| format!("connecting to {}", path.display()))?;
        stream.set_read_timeout(Some(ANSWER))?;
        Ok(OvsControlSocket(stream))
    }

    /// Executes a command and waits until it is done.
    pub(super) fn run(&mut self, method: &str, parameters: &[&str]) -> anyhow::Result<()> {
        let request = serde_json::json!({ "id": 0, "method": method, "params": parameters });
        self.0.write_all(request.to_string().as_bytes())?;
        let mut answers = serde_json::Deserializer::from_reader(&self.0);
        let answer = serde_json::Value::deserialize(&mut answers).context("waiting for the control socket")?;
        ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        Ok(())
    }
}
