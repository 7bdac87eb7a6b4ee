//! The channel itself: bytes go in and out where that is possible without waiting.
use crate::{ClientError, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use weir_openflow::session::{Event, SendError, Session, SessionConfig};
use weir_openflow::{Message, Version};
use weir_units::{Clock as _, Instant, SystemClock};

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// How long one wait for the other end lasts at most.
const NAP: Duration = Duration::from_millis(20);

pub(crate) trait Stream: Read + Write + AsFd + Send {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

/// See the crate's page.
pub struct Client {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) session: Session,
    version: Version,
    pub(crate) clock: SystemClock,
    pub(crate) patience: Duration,
    piece: Vec<u8>,
    pub(crate) came: VecDeque<(Instant, Message)>,
    /// Why it ended.
    ended: Option<String>,
}

impl Client {
    /// Connects, or waits to be connected to, and shakes hands. The switch may take as long as `patience` over anything; it is asked whether it is still there
    /// when it has said nothing for so long.
    ///
    /// # Errors
    /// Nobody is there in time, or does not speak one of the versions.
    pub fn open(
        target: &Target,
        versions: &[Version],
        patience: Duration,
        clock: SystemClock,
    ) -> Result<Client, ClientError> {
        let deadline = clock.now() + patience;
        let failed = |problem: String| ClientError::Unreachable { target: target.to_string(), problem };
        let stream = connect(target, patience, deadline, clock).map_err(&failed)?;
        let config = SessionConfig {
            versions: versions.to_vec(),
            echo_interval: patience,
            handshake_timeout: patience,
            ..SessionConfig::default()
        };
        let mut made = Client {
            stream,
            session: Session::controller(config, clock.now()),
            version: Version::V13,
            clock,
            patience,
            piece: vec![0; READ_BYTES],
            came: VecDeque::new(),
            ended: None,
        };
        loop {
            match made.exchange() {
                Ok(()) => {}
                Err(ClientError::Ended { reason }) => return Err(failed(format!("the handshake failed: {reason}"))),
                Err(error) => return Err(failed(format!("the handshake failed: {error}"))),
            }
            if let Some(version) = made.session.version() {
                made.version = version;
                return Ok(made);
            }
            if clock.now() >= deadline {
                return Err(failed(format!("no OpenFlow handshake within {patience:?}")));
            }
            made.wait(PollFlags::IN, NAP);
        }
    }

    /// The version that both speak.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What is readable when something came.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Sends messages in one piece, as far as the switch reads; what is left goes with the next call of anything.
    ///
    /// # Errors
    /// The channel has ended, or a message cannot be said in its version.
    pub fn send(&mut self, messages: &[Message]) -> Result<(), ClientError> {
        for message in messages {
            loop {
                match self.session.send(message) {
                    Ok(()) => break,
                    // It reads slowly: what waits goes first.
                    Err(SendError::Full(_)) => {
                        self.exchange()?;
                        self.wait(PollFlags::IN | PollFlags::OUT, Duration::from_millis(1));
                    }
                    Err(SendError::NotUp) => {
                        self.check()?;
                        return Err(ClientError::ended("the session is not up"));
                    }
                    Err(error) => return Err(ClientError::Unsayable(error.to_string())),
                }
            }
        }
        self.flush()
    }

    /// Reads and writes what can be without waiting; the next message, and when it came.
    ///
    /// # Errors
    /// The channel has ended.
    pub fn poll(&mut self) -> Result<Option<(Instant, Message)>, ClientError> {
        if let Some(next) = self.came.pop_front() {
            return Ok(Some(next));
        }
        self.exchange()?;
        Ok(self.came.pop_front())
    }

    /// Whether something waits to be written.
    pub fn has_output(&mut self) -> bool {
        !self.session.output().is_empty()
    }

    /// Waits until the channel is as `flags` say, at most so long.
    pub(crate) fn wait(&self, flags: PollFlags, time: Duration) {
        let mut descriptors = [PollFd::from_borrowed_fd(self.stream.as_fd(), flags)];
        // A wait that ends early is one more turn of the caller's loop.
        let _ = poll(&mut descriptors, Timespec::try_from(time).ok().as_ref());
    }

    pub(crate) fn exchange(&mut self) -> Result<(), ClientError> {
        self.flush()?;
        self.take_in()?;
        self.flush()
    }

    /// Reads once, without writing anything.
    pub(crate) fn take_in(&mut self) -> Result<(), ClientError> {
        match self.stream.read(&mut self.piece) {
            Ok(0) => self.ended = Some("the switch closed the connection".to_owned()),
            Ok(bytes) => {
                let now = self.clock.now();
                self.session.receive(now, &self.piece[..bytes]);
                self.take_events(now);
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
    fn check(&self) -> Result<(), ClientError> {
        match &self.ended {
            Some(reason) if self.came.is_empty() => Err(ClientError::ended(reason)),
            _ => Ok(()),
        }
    }

    pub(crate) fn flush(&mut self) -> Result<(), ClientError> {
        let output = self.session.output();
        while !output.is_empty() {
            match self.stream.write(output) {
                Ok(written) => drop(output.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    // What it said before it ended may say why.
                    self.ended.get_or_insert_with(|| format!("writing to it: {error}"));
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
            accept(&listener, patience, deadline, clock)
        }
    }
}

fn accept(
    listener: &TcpListener,
    patience: Duration,
    deadline: Instant,
    clock: SystemClock,
) -> Result<Box<dyn Stream>, String> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return ready(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock && clock.now() < deadline => {
                let mut descriptors = [PollFd::new(listener, PollFlags::IN)];
                let _ = poll(&mut descriptors, Timespec::try_from(NAP).ok().as_ref());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(format!("no switch connected within {patience:?}"));
            }
            Err(error) => return Err(format!("accepting a connection: {error}")),
        }
    }
}

fn ready(stream: TcpStream) -> Result<Box<dyn Stream>, String> {
    let set = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
    set.map_err(|error| error.to_string())?;
    Ok(Box::new(stream))
}
