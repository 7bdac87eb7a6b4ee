//! The channel itself: reads and writes bytes as far as possible without waiting.
use crate::{ClientError, SwitchAddress};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use weir_openflow::session::{SendError, Session, SessionConfig, SessionEvent};
use weir_openflow::{Message, Version};
use weir_units::{Clock as _, Instant, SystemClock};

/// Maximum number of bytes of one read.
const READ_BYTES: usize = 64 * 1024;
/// Longest single wait for the peer.
const NAP: Duration = Duration::from_millis(20);

pub(crate) trait PollableStream: Read + Write + AsFd + Send {}
impl PollableStream for TcpStream {}
impl PollableStream for UnixStream {}

/// A control channel to a switch, without threads or a runtime.
pub struct OpenFlowClient {
    pub(crate) stream: Box<dyn PollableStream>,
    pub(crate) session: Session,
    version: Version,
    pub(crate) clock: SystemClock,
    pub(crate) patience: Duration,
    read_buffer: Vec<u8>,
    pub(crate) received: VecDeque<(Instant, Message)>,
    /// Reason of the channel's end.
    ended: Option<String>,
}

impl OpenFlowClient {
    /// Connects, or waits for the switch to connect, and performs the handshake. `patience` limits each wait for the
    /// switch; after a silence of that length the switch receives an echo request.
    ///
    /// # Errors
    /// Fails if no switch is reached in time, or if it speaks none of the versions.
    pub fn open(
        target: &SwitchAddress,
        versions: &[Version],
        patience: Duration,
        clock: SystemClock,
    ) -> Result<OpenFlowClient, ClientError> {
        let deadline = clock.now() + patience;
        let failed = |problem: String| ClientError::Unreachable { target: target.to_string(), problem };
        let stream = connect(target, patience, deadline, clock).map_err(&failed)?;
        OpenFlowClient::shake_hands(stream, &[], versions, patience, deadline, clock).map_err(failed)
    }

    /// Performs the handshake of [`OpenFlowClient::open`] over a connected stream, of which `read` has
    /// been read already.
    ///
    /// # Errors
    /// The switch does not answer in time, or it speaks none of the versions.
    pub fn over(
        stream: UnixStream,
        read: &[u8],
        versions: &[Version],
        patience: Duration,
        clock: SystemClock,
    ) -> Result<OpenFlowClient, ClientError> {
        let failed = |problem: String| ClientError::Unreachable { target: "the connected switch".to_owned(), problem };
        stream.set_nonblocking(true).map_err(|error| failed(error.to_string()))?;
        let deadline = clock.now() + patience;
        OpenFlowClient::shake_hands(Box::new(stream), read, versions, patience, deadline, clock).map_err(failed)
    }

    fn shake_hands(
        stream: Box<dyn PollableStream>,
        read: &[u8],
        versions: &[Version],
        patience: Duration,
        deadline: Instant,
        clock: SystemClock,
    ) -> Result<OpenFlowClient, String> {
        let config = SessionConfig {
            versions: versions.to_vec(),
            echo_interval: patience,
            handshake_timeout: patience,
            ..SessionConfig::default()
        };
        let mut made = OpenFlowClient {
            stream,
            session: Session::controller(config, clock.now()),
            version: Version::V13,
            clock,
            patience,
            read_buffer: vec![0; READ_BYTES],
            received: VecDeque::new(),
            ended: None,
        };
        made.session.receive(clock.now(), read);
        made.take_events(clock.now());
        loop {
            match made.exchange() {
                Ok(()) => {}
                Err(ClientError::Ended { reason }) => return Err(format!("the handshake failed: {reason}")),
                Err(error) => return Err(format!("the handshake failed: {error}")),
            }
            if let Some(version) = made.session.version() {
                made.version = version;
                return Ok(made);
            }
            if clock.now() >= deadline {
                return Err(format!("no OpenFlow handshake within {patience:?}"));
            }
            made.wait(PollFlags::IN, NAP);
        }
    }

    /// Returns the negotiated OpenFlow version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the descriptor, which is readable when input has arrived.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Sends messages together, as far as the switch reads. The rest is sent by the next call of any method.
    ///
    /// # Errors
    /// Fails if the channel has ended, or if a message cannot be expressed in its version.
    pub fn send(&mut self, messages: &[Message]) -> Result<(), ClientError> {
        for message in messages {
            loop {
                match self.session.send(message) {
                    Ok(()) => break,
                    // The switch reads slowly: pending output is sent first.
                    Err(SendError::Full(_)) => {
                        self.exchange()?;
                        self.wait(PollFlags::IN | PollFlags::OUT, Duration::from_millis(1));
                    }
                    Err(SendError::NotUp) => {
                        self.check()?;
                        return Err(ClientError::ended("the session is not up"));
                    }
                    Err(error) => return Err(ClientError::Unencodable(error.to_string())),
                }
            }
        }
        self.flush()
    }

    /// Reads and writes without waiting. Returns the next message and its arrival time.
    ///
    /// # Errors
    /// Fails if the channel has ended.
    pub fn poll(&mut self) -> Result<Option<(Instant, Message)>, ClientError> {
        if let Some(next) = self.received.pop_front() {
            return Ok(Some(next));
        }
        self.exchange()?;
        Ok(self.received.pop_front())
    }

    /// Returns true if output waits to be written.
    pub fn has_output(&mut self) -> bool {
        !self.session.output().is_empty()
    }

    /// Waits until input has arrived, at most `time`.
    pub fn wait_for_input(&self, time: Duration) {
        self.wait(PollFlags::IN, time);
    }

    /// Waits until the channel is ready for `flags`, at most `time`.
    pub(crate) fn wait(&self, flags: PollFlags, time: Duration) {
        let mut descriptors = [PollFd::from_borrowed_fd(self.stream.as_fd(), flags)];
        // A wait that ends early costs one more turn of the caller's loop.
        let _ = poll(&mut descriptors, Timespec::try_from(time).ok().as_ref());
    }

    pub(crate) fn exchange(&mut self) -> Result<(), ClientError> {
        self.flush()?;
        self.read_once()?;
        self.flush()
    }

    /// Reads once, without writing.
    pub(crate) fn read_once(&mut self) -> Result<(), ClientError> {
        match self.stream.read(&mut self.read_buffer) {
            Ok(0) => self.ended = Some("the switch closed the connection".to_owned()),
            Ok(bytes) => {
                let now = self.clock.now();
                self.session.receive(now, &self.read_buffer[..bytes]);
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
        while let Some(event) = self.session.take_event() {
            match event {
                SessionEvent::Message(message) => self.received.push_back((now, message)),
                SessionEvent::Closed { reason } => self.ended = Some(reason),
                SessionEvent::Up { .. } => {}
            }
        }
    }

    /// Checks that the channel is usable.
    ///
    /// # Errors
    /// Fails if the channel has ended and all messages received before have been taken.
    fn check(&self) -> Result<(), ClientError> {
        match &self.ended {
            Some(reason) if self.received.is_empty() => Err(ClientError::ended(reason)),
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
                    // Messages received before the end may state the reason.
                    self.ended.get_or_insert_with(|| format!("writing to it: {error}"));
                    break;
                }
            }
        }
        self.check()
    }
}

fn connect(
    target: &SwitchAddress,
    patience: Duration,
    deadline: Instant,
    clock: SystemClock,
) -> Result<Box<dyn PollableStream>, String> {
    match target {
        SwitchAddress::Tcp(address) => {
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
        SwitchAddress::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(|error| format!("connecting: {error}"))?;
            stream.set_nonblocking(true).map_err(|error| error.to_string())?;
            Ok(Box::new(stream))
        }
        SwitchAddress::Listen(address) => {
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
) -> Result<Box<dyn PollableStream>, String> {
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

fn ready(stream: TcpStream) -> Result<Box<dyn PollableStream>, String> {
    let set = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
    set.map_err(|error| error.to_string())?;
    Ok(Box::new(stream))
}
