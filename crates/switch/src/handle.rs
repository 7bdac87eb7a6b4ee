//! A running switch, as its owner sees it.
use crate::config::{ListenTarget, PortConfig, SwitchConfig};
use crate::snapshot::Snapshot;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use weir_datapath::Trace;
use weir_openflow::model::multipart::{FlowRequest, FlowStats};
use weir_openflow::model::{ErrorType, FlowMod, PortNo};
use weir_port::PortError;

/// Why a switch could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SwitchError {
    #[error("{tried}: {source}{advice}")]
    System { tried: String, source: io::Error, advice: String },
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("port {number}: {problem}")]
    PortNumber { number: PortNo, problem: String },
    #[error("control socket {path}: a switch that is running uses it; stop it or choose another --control-socket")]
    SocketInUse { path: String },
    #[error("flow-mod refused: {0:?}")]
    FlowMod(ErrorType),
    #[error("the switch has stopped")]
    Stopped,
}

/// See [`Switch::start`].
pub struct Switch;

impl Switch {
    /// Starts a switch; on return its ports forward, and its listeners and control socket accept.
    ///
    /// # Errors
    /// A port number is taken, a listener's address is in use, the system has no thread left; nothing stays behind.
    pub fn start(_config: SwitchConfig) -> Result<SwitchHandle, SwitchError> {
        todo!()
    }
}

/// A running switch. Its methods wait for the engine (microseconds) and may be called from any thread; when it is dropped
/// the switch stops.
pub struct SwitchHandle {}

impl SwitchHandle {
    /// The switch's name.
    pub fn name(&self) -> &str {
        todo!()
    }

    /// Where it listens, with the TCP ports it got.
    pub fn listeners(&self) -> &[ListenTarget] {
        todo!()
    }

    /// Adds a port and tells controllers; gives its number.
    ///
    /// # Errors
    /// The number is taken or not that of an ordinary port.
    pub fn add_port(&self, _port: PortConfig) -> Result<PortNo, SwitchError> {
        todo!()
    }

    /// Removes a port, closes it and tells controllers.
    ///
    /// # Errors
    /// There is no such port.
    pub fn remove_port(&self, _number: PortNo) -> Result<(), SwitchError> {
        todo!()
    }

    /// Makes a control channel of a stream to a controller, in this process (`tokio::io::duplex`) or anywhere. It ends with
    /// the stream.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn connect_stream<S>(&self, _stream: S) -> Result<(), SwitchError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        todo!()
    }

    /// The switch as it is now.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn snapshot(&self) -> Result<Snapshot, SwitchError> {
        todo!()
    }

    /// Flow entries with their counters.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn flows(&self, _request: FlowRequest) -> Result<Vec<FlowStats>, SwitchError> {
        todo!()
    }

    /// Adds, modifies or deletes flow entries.
    ///
    /// # Errors
    /// What a controller would be answered.
    pub fn flow_mod(&self, _flow: FlowMod) -> Result<(), SwitchError> {
        todo!()
    }

    /// What would happen to a frame that came in on a port; changes nothing.
    ///
    /// # Errors
    /// [`SwitchError::Stopped`].
    pub fn trace(&self, _in_port: PortNo, _frame: &[u8]) -> Result<Trace, SwitchError> {
        todo!()
    }

    /// Waits until somebody asks the switch to stop through its control socket.
    pub async fn stop_requested(&self) {
        todo!()
    }

    /// Stops the switch: closes channels, closes ports (which restores their devices), removes sockets, joins its threads.
    pub fn stop(self) {}
}
