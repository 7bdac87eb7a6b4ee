//! Connects to a controller, and reconnects after the connection ends.
use super::auxiliary;
use super::channel::ByteStream;
use super::registry::ChannelInfo;
use super::{ControlContext, stopped};
use crate::targets::{ControllerHost, ControllerSpec, ControllerTarget};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// Wait after the first failure.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// Time limit for making a connection to an address.
const CONNECT_TIME: Duration = Duration::from_secs(4);
/// Maximum number of addresses of a name that are tried.
const MAX_ADDRESSES: usize = 16;

/// Waits between attempts: doubled after each failure up to [`LONGEST_WAIT`], reset to [`FIRST_WAIT`] after success.
/// Each wait is shortened at random by up to a quarter, so that switches that lost one controller do not all return
/// at the same time.
#[derive(Debug)]
pub(crate) struct Backoff {
    wait: Duration,
    random: u64,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        use std::hash::{BuildHasher, RandomState};
        Backoff { wait: FIRST_WAIT, random: RandomState::new().hash_one(0) | 1 }
    }

    /// Resets the wait, after a channel had come up.
    pub(crate) fn reset(&mut self) {
        self.wait = FIRST_WAIT;
    }

    /// Returns the time to wait now, and doubles the next one.
    pub(crate) fn next(&mut self) -> Duration {
        // xorshift64 is random enough to spread attempts.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let wait = self.wait;
        self.wait = (wait * 2).min(LONGEST_WAIT);
        let quarter_ns = u64::try_from(wait.as_nanos() / 4).unwrap_or(u64::MAX);
        wait - Duration::from_nanos(self.random % (quarter_ns + 1))
    }
}

/// Keeps a channel to a controller until the switch stops or no longer connects to it.
pub(crate) async fn keep_connected(control: ControlContext, spec: ControllerSpec) {
    let info = control.registry.add(spec.to_string());
    keep_channel(&control, &spec, &info).await;
    control.registry.remove(&info);
}

async fn keep_channel(control: &ControlContext, spec: &ControllerSpec, info: &Arc<ChannelInfo>) {
    let mut stopping = control.stopping.clone();
    let mut backoff = Backoff::new();
    loop {
        let connected = tokio::select! {
            () = stopped(&mut stopping) => return,
            connected = connect(control, spec) => connected,
        };
        match connected {
            Ok((stream, reached)) => {
                let ended = auxiliary::run_with(control, stream, info, spec, reached).await;
                if ended.was_up {
                    backoff.reset();
                }
                report(control, info, &ended.reason);
            }
            Err(error) => report(control, info, &weir_tls::explain(&error)),
        }
        tokio::select! {
            () = stopped(&mut stopping) => return,
            () = tokio::time::sleep(backoff.next()) => {}
        }
    }
}

/// Records why a connection to a controller ended or could not be made. Logs a warning if the reason is new and the
/// switch is not stopping; otherwise a debug message.
pub(super) fn report(control: &ControlContext, info: &ChannelInfo, reason: &str) {
    if info.down(reason) && !*control.stopping.borrow() {
        tracing::warn!("{}: {reason}", info.target());
    } else {
        tracing::debug!("{}: {reason}", info.target());
    }
}

/// Opens a stream to a controller. All addresses of a name are tried in turn, each within [`CONNECT_TIME`]. Returns the
/// stream and the target that was reached, with its address if it was given by name.
///
/// # Errors
/// The name does not resolve, or no address can be connected to; each address has its reason then.
pub(super) async fn connect(
    control: &ControlContext,
    spec: &ControllerSpec,
) -> io::Result<(ByteStream, ControllerTarget)> {
    let (name, port) = match &spec.target {
        ControllerTarget::Tcp(ControllerHost::Name(name, port))
        | ControllerTarget::Ssl(ControllerHost::Name(name, port)) => (name, *port),
        target => return Ok((open(control, spec, target).await?, target.clone())),
    };
    let mut problems = Vec::new();
    for address in resolve(name, port).await?.into_iter().take(MAX_ADDRESSES) {
        let target = if spec.target.is_tls() { ControllerTarget::Ssl } else { ControllerTarget::Tcp }(address.into());
        match open(control, spec, &target).await {
            Ok(stream) => return Ok((stream, target)),
            Err(error) => problems.push(format!("{address}: {}", weir_tls::explain(&error))),
        }
    }
    Err(io::Error::other(problems.join("; ")))
}

/// Looks up the addresses of a host, each once.
///
/// # Errors
/// The name does not resolve, or has no address.
async fn resolve(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let wrong = |problem: String| io::Error::other(format!("cannot resolve `{name}`: {problem}"));
    // Waits for the resolver on another thread. The resolver itself gives up after a time (resolv.conf), so that no
    // more look-ups run than there are controllers.
    let found = tokio::net::lookup_host((name, port)).await.map_err(|error| wrong(error.to_string()))?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(wrong("it has no address".to_owned())) } else { Ok(addresses) }
}

/// Opens a stream to a target that is not a name, within [`CONNECT_TIME`].
async fn open(control: &ControlContext, spec: &ControllerSpec, target: &ControllerTarget) -> io::Result<ByteStream> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {CONNECT_TIME:?}"));
    tokio::time::timeout(CONNECT_TIME, open_stream(control, spec, target)).await.unwrap_or_else(|_| Err(late()))
}

async fn open_stream(
    control: &ControlContext,
    spec: &ControllerSpec,
    target: &ControllerTarget,
) -> io::Result<ByteStream> {
    match target {
        ControllerTarget::Tcp(ControllerHost::Address(address)) => control.tcp(TcpStream::connect(address).await?),
        ControllerTarget::Ssl(ControllerHost::Address(address)) => {
            let credentials = control.credentials()?;
            let stream = control.tcp(TcpStream::connect(address).await?)?;
            let ByteStream { bytes, arrivals } = stream;
            let bytes = Box::new(credentials.connect(bytes, address.ip(), spec.peer_name.as_ref()).await?);
            Ok(ByteStream { bytes, arrivals })
        }
        ControllerTarget::Unix(path) => Ok(ByteStream::new(UnixStream::connect(path).await?)),
        ControllerTarget::Tcp(ControllerHost::Name(name, _)) | ControllerTarget::Ssl(ControllerHost::Name(name, _)) => {
            Err(io::Error::other(format!("`{name}` is not resolved")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_again() {
        let mut backoff = Backoff::new();
        let mut nominal = FIRST_WAIT;
        for _ in 0..10 {
            let wait = backoff.next();
            assert!(wait <= nominal && wait >= nominal * 3 / 4, "{wait:?} for {nominal:?}");
            nominal = (nominal * 2).min(LONGEST_WAIT);
        }
        backoff.reset();
        assert!(backoff.next() <= FIRST_WAIT);
    }
}
