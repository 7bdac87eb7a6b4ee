//! Connects to a controller, and reconnects after the connection ends.
use super::auxiliary;
use super::channel::ByteStream;
use super::registry::ChannelInfo;
use super::{ControlContext, stopped};
use crate::targets::{ControllerSpec, ControllerTarget};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// Wait after the first failure.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// Time limit for making a connection.
const CONNECT_TIME: Duration = Duration::from_secs(4);

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
            Ok(stream) => {
                let ended = auxiliary::run_with(control, stream, info, spec).await;
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

/// Opens a stream to a controller within [`CONNECT_TIME`].
pub(super) async fn connect(control: &ControlContext, spec: &ControllerSpec) -> io::Result<ByteStream> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {CONNECT_TIME:?}"));
    tokio::time::timeout(CONNECT_TIME, open(control, spec)).await.unwrap_or_else(|_| Err(late()))
}

async fn open(control: &ControlContext, spec: &ControllerSpec) -> io::Result<ByteStream> {
    match &spec.target {
        ControllerTarget::Tcp(address) => control.tcp(TcpStream::connect(address).await?),
        ControllerTarget::Ssl(address) => {
            let credentials = control.credentials()?;
            let stream = control.tcp(TcpStream::connect(address).await?)?;
            let ByteStream { bytes, arrivals } = stream;
            let bytes = Box::new(credentials.connect(bytes, address.ip(), spec.peer_name.as_ref()).await?);
            Ok(ByteStream { bytes, arrivals })
        }
        ControllerTarget::Unix(path) => Ok(ByteStream::new(UnixStream::connect(path).await?)),
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
