//! Connecting to a controller, and again when it goes.
use super::channel::{self, ByteStream};
use super::{Control, stopped};
use crate::config::ControllerTarget;
use std::io;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// Wait after the first failure.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// Time a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(4);

/// Waits between attempts: doubled after each failure up to [`LONGEST_WAIT`], from [`FIRST_WAIT`] again after success.
/// Each is shortened at random by up to a quarter, so that switches that lost one controller do not all return at once.
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

    /// The channel had come up: the next failure is the first again.
    pub(crate) fn reset(&mut self) {
        self.wait = FIRST_WAIT;
    }

    /// How long to wait now.
    pub(crate) fn next(&mut self) -> Duration {
        // xorshift64: plenty for spreading attempts.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let wait = self.wait;
        self.wait = (wait * 2).min(LONGEST_WAIT);
        let quarter_ns = u64::try_from(wait.as_nanos() / 4).unwrap_or(u64::MAX);
        wait - Duration::from_nanos(self.random % (quarter_ns + 1))
    }
}

/// Keeps a channel to a controller until the switch stops.
pub(crate) async fn keep_connected(control: Control, target: ControllerTarget) {
    let info = control.registry.add(target.to_string());
    let mut stopping = control.stopping.clone();
    let mut backoff = Backoff::new();
    loop {
        let connected = tokio::select! {
            () = stopped(&mut stopping) => return,
            connected = tokio::time::timeout(CONNECT_TIME, connect(&target)) => connected,
        };
        match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(stream) => {
                let ended = channel::run(control.clone(), stream, info.clone(), control.registry.next_id(false)).await;
                if ended.was_up {
                    backoff.reset();
                }
            }
            Err(error) => {
                tracing::debug!("{target}: {error}");
                info.down(&error.to_string());
            }
        }
        tokio::select! {
            () = stopped(&mut stopping) => return,
            () = tokio::time::sleep(backoff.next()) => {}
        }
    }
}

async fn connect(target: &ControllerTarget) -> io::Result<Box<dyn ByteStream>> {
    match target {
        ControllerTarget::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            // Replies are short, and somebody waits for each.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        ControllerTarget::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
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
