//! A control channel to a switch that is measured: no threads, no waiting but until a given time.
use crate::ProfilerError;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::time::Duration;
use weir_openflow::session::{Event, SendError, Session, SessionConfig};
use weir_openflow::{Message, Version};
use weir_port::event;
use weir_units::{Clock as _, Instant, SystemClock};

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// How long one wait for the other end lasts at most.
const NAP: Duration = Duration::from_millis(20);

/// Where a switch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// It listens there: host and port.
    Tcp(String),
    /// It listens there: a socket's path.
    Unix(String),
    /// It connects to us, there: an address and port, or a port of all addresses.
    Listen(String),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        match text.split_once(':') {
            Some(("tcp", address)) if address.contains(':') => Ok(Target::Tcp(address.to_owned())),
            Some(("unix", path)) if !path.is_empty() => Ok(Target::Unix(path.to_owned())),
            Some(("ptcp", port)) if port.parse::<u16>().is_ok() => Ok(Target::Listen(format!("[::]:{port}"))),
            Some(("ptcp", address)) if address.contains(':') => Ok(Target::Listen(address.to_owned())),
            _ => Err(format!(
                "found `{text}`, expected tcp:HOST:PORT or unix:PATH of a switch that listens, or ptcp:PORT for one that connects to us"
            )),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Tcp(address) => write!(f, "tcp:{address}"),
            Target::Unix(path) => write!(f, "unix:{path}"),
            Target::Listen(address) => write!(f, "ptcp:{address}"),
        }
    }
}

trait Stream: Read + Write + AsFd + Send {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

/// See the module's page.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    session: Session,
    version: Version,
    clock: SystemClock,
    piece: Vec<u8>,
    came: VecDeque<(Instant, Message)>,
    /// Why it ended.
    ended: Option<String>,
}

impl Connection {
    /// Connects, or waits to be connected to, and shakes hands.
    ///
    /// # Errors
    /// Nobody is there in time, or does not speak one of the versions.
    pub(crate) fn open(
        target: &Target,
        versions: &[Version],
        patience: Duration,
        clock: SystemClock,
    ) -> Result<Connection, ProfilerError> {
        let deadline = clock.now() + patience;
        let failed = |problem: String| ProfilerError::Channel { target: target.to_string(), problem };
        let stream = connect(target, patience, deadline, clock).map_err(&failed)?;
        let config = SessionConfig {
            versions: versions.to_vec(),
            echo_interval: patience,
            handshake_timeout: patience,
            ..SessionConfig::default()
        };
        let mut made = Connection {
            stream,
            session: Session::controller(config, clock.now()),
            version: Version::V13,
            clock,
            piece: vec![0; READ_BYTES],
            came: VecDeque::new(),
            ended: None,
        };
        loop {
            made.exchange().map_err(|error| failed(format!("the handshake failed: {error}")))?;
            if let Some(version) = made.session.version() {
                made.version = version;
                return Ok(made);
            }
            if clock.now() >= deadline {
                return Err(failed(format!("no OpenFlow handshake within {patience:?}")));
            }
            event::wait_any(&[made.stream.as_fd()], Some(NAP));
        }
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Sends messages in one piece.
    ///
    /// # Errors
    /// The channel has ended, or a message cannot be said in its version.
    pub(crate) fn send(&mut self, messages: &[Message]) -> Result<(), ProfilerError> {
        for message in messages {
            loop {
                match self.session.send(message) {
                    Ok(()) => break,
                    // It reads slowly: what waits goes first.
                    Err(SendError::Full(_)) => {
                        self.exchange()?;
                        event::wait_any(&[self.stream.as_fd()], Some(Duration::from_millis(1)));
                    }
                    Err(error) => {
                        return Err(ProfilerError::Channel {
                            target: "control channel".to_owned(),
                            problem: error.to_string(),
                        });
                    }
                }
            }
        }
        self.flush()
    }

    /// Reads and writes what can be without waiting; the next message, and when it came.
    ///
    /// # Errors
    /// The channel has ended.
    pub(crate) fn poll(&mut self) -> Result<Option<(Instant, Message)>, ProfilerError> {
        if let Some(next) = self.came.pop_front() {
            return Ok(Some(next));
        }
        self.exchange()?;
        Ok(self.came.pop_front())
    }

    /// Whether something waits to be written.
    pub(crate) fn has_output(&mut self) -> bool {
        !self.session.output().is_empty()
    }

    fn exchange(&mut self) -> Result<(), ProfilerError> {
        self.flush()?;
        match self.stream.read(&mut self.piece) {
            Ok(0) => self.ended = Some("the switch closed the connection".to_owned()),
            Ok(bytes) => {
                let now = self.clock.now();
                self.session.receive(now, &self.piece[..bytes]);
                self.take_events(now);
                self.flush()?;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                let now = self.clock.now();
                self.session.poll(now);
                self.take_events(now);
            }
            Err(error) => self.ended = Some(error.to_string()),
        }
        self.check()
    }

    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.session.next_event() {
            match event {
                Event::Message(message) => self.came.push_back((now, message)),
                Event::Closed { reason } => self.ended = Some(reason),
                Event::Up { .. } => {}
            }
        }
    }

    /// # Errors
    /// It has ended, and everything that came before has been taken.
    fn check(&self) -> Result<(), ProfilerError> {
        match &self.ended {
            Some(reason) if self.came.is_empty() => {
                Err(ProfilerError::Ended { during: "measuring".to_owned(), reason: reason.clone() })
            }
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), ProfilerError> {
        let output = self.session.output();
        while !output.is_empty() {
            match self.stream.write(output) {
                Ok(written) => drop(output.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = Some(format!("writing to it: {error}"));
                    break;
                }
            }
        }
        self.check()
    }
}

fn connect(
    target: &Target,
    patience: Duration,
    deadline: Instant,
    clock: SystemClock,
) -> Result<Box<dyn Stream>, String> {
    match target {
        Target::Tcp(address) => {
            let found: Vec<_> = address.to_socket_addrs().map_err(|error| format!("looking it up: {error}"))?.collect();
            let mut problem = "no address".to_owned();
            for address in found {
                match TcpStream::connect_timeout(&address, patience) {
                    Ok(stream) => return ready(stream),
                    Err(error) => problem = format!("connecting to {address}: {error}; does the switch listen there?"),
                }
            }
            Err(problem)
        }
        Target::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(|error| format!("connecting: {error}"))?;
            stream.set_nonblocking(true).map_err(|error| error.to_string())?;
            Ok(Box::new(stream))
        }
        Target::Listen(address) => {
            let listener = TcpListener::bind(address).map_err(|error| format!("listening: {error}"))?;
            listener.set_nonblocking(true).map_err(|error| error.to_string())?;
            loop {
                match listener.accept() {
                    Ok((stream, _)) => return ready(stream),
                    Err(error) if error.kind() == ErrorKind::WouldBlock && clock.now() < deadline => {
                        event::wait_any(&[listener.as_fd()], Some(NAP));
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        return Err(format!("no switch connected within {patience:?}"));
                    }
                    Err(error) => return Err(format!("accepting a connection: {error}")),
                }
            }
        }
    }
}

fn ready(stream: TcpStream) -> Result<Box<dyn Stream>, String> {
    let set = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
    set.map_err(|error| error.to_string())?;
    Ok(Box::new(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        assert_eq!("tcp:10.0.0.1:6653".parse(), Ok(Target::Tcp("10.0.0.1:6653".to_owned())));
        assert_eq!("ptcp:6653".parse(), Ok(Target::Listen("[::]:6653".to_owned())));
        assert_eq!("ptcp:127.0.0.1:6653".parse(), Ok(Target::Listen("127.0.0.1:6653".to_owned())));
        for wrong in ["tcp:host", "udp:1:2", "ptcp:", "6653", "unix:"] {
            let error = wrong.parse::<Target>().unwrap_err();
            assert!(error.contains(wrong) && error.contains("tcp:HOST:PORT"), "{error}");
        }
    }

    #[test]
    fn nobody_is_told_in_time() {
        let patience = Duration::from_millis(50);
        let clock = SystemClock::start();
        let open = |target: &str| {
            let opened = Connection::open(&target.parse().unwrap(), &Version::ALL, patience, clock);
            opened.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let error = open("ptcp:127.0.0.1:0");
        assert_eq!(error, "ptcp:127.0.0.1:0: no switch connected within 50ms");
        // One that listens and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = open(&format!("tcp:{}", silent.local_addr().unwrap()));
        assert!(error.contains("no hello within") || error.contains("no OpenFlow handshake within"), "{error}");
        let closed = silent.local_addr().unwrap();
        drop(silent);
        let error = open(&format!("tcp:{closed}"));
        assert!(error.contains("does the switch listen there?"), "{error}");
    }
}
