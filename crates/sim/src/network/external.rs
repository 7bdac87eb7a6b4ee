//! Talks to a controller outside of virtual time over its own sockets. Virtual time stands still until the controller
//! has answered. This is the only part of the simulation that touches the machine.
use super::VirtualTimeSettings;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_network::NetworkError;
use weir_network::result::ExternalController;
use weir_scenario::{Scenario, ServiceTime};
use weir_traffic::{LawSampler, RandomStream, TrafficError};
use weir_units::{Clock, Instant, SystemClock};

/// Longest wait without a look at the request to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Length of an OpenFlow header (OpenFlow 1.3.5, 7.1).
const HEADER: usize = 8;
/// Message types, equal in all versions.
const HELLO: u8 = 0;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const PACKET_IN: u8 = 10;
/// Length of an echo request with the payload [`MARK`].
const ECHO_LENGTH: u8 = 16;
/// Payload of the echo requests by which the controller shows that it has handled what came before.
const MARK: &[u8; 8] = b"weir-sim";

/// Socket to the controller.
trait Socket: Read + Write + AsFd + Send {}
impl Socket for TcpStream {}
impl Socket for UnixStream {}

/// Controller outside of virtual time, with a connection for each of its switches.
pub(super) struct RealController {
    channels: Vec<RealChannel>,
    clock: SystemClock,
    /// Real time of silence after which the controller counts as finished.
    settle: Duration,
    /// Real time for which virtual time waits for an answer.
    limit: Duration,
    /// Time of a packet-in by the scenario: its law, and the time of each byte of the message in nanoseconds.
    service: Option<(LawSampler, f64)>,
    random: RandomStream,
    /// Virtual time at which it has finished its work.
    free_at: Instant,
    took: Duration,
    result: ExternalController,
}

struct RealChannel {
    /// Name of the switch, with the kind of switch before it.
    switch: String,
    socket: Box<dyn Socket>,
    /// Bytes received that are no whole message yet.
    partial: Vec<u8>,
    /// Whole messages received for the switch.
    whole: Vec<u8>,
    /// Answers to the controller's echo requests that the socket has not taken yet.
    unsent: Vec<u8>,
    /// Version that switch and controller have agreed on; none before the switch has sent anything but HELLO.
    version: Option<u8>,
    /// True while an echo request is not answered.
    echo_pending: bool,
    has_answered: bool,
}

/// Messages that the controller sent in answer, by switch.
pub(super) struct ControllerAnswers {
    /// Virtual time at which they leave the controller.
    pub(super) leave: Instant,
    /// Numbers of switches, with the bytes for each.
    pub(super) messages: Vec<(usize, Vec<u8>)>,
}

impl RealController {
    /// Connects switches to the controller of `owner`. `names` are what errors call the switches.
    ///
    /// # Errors
    /// The address is not valid, or the controller does not accept connections.
    pub(super) fn connect(
        scenario: &Scenario,
        owner: &str,
        address: &str,
        names: Vec<String>,
        settings: &VirtualTimeSettings,
    ) -> Result<RealController, NetworkError> {
        let wrong = |problem: String| NetworkError::Scenario(format!("{owner}: connect: {address}: {problem}"));
        let sampler = |service: &ServiceTime| Ok((LawSampler::new(service.law.as_ref())?, service.per_byte_s * 1e9));
        let service = scenario.controller.service.as_ref().map(sampler).transpose();
        let service = service.map_err(|error: TrafficError| wrong(error.to_string()))?;
        let mut channels = Vec::new();
        for switch in names {
            let socket = open(address).map_err(|error| wrong(format!("{error}: is the controller running?")))?;
            channels.push(RealChannel {
                switch,
                socket,
                partial: Vec::new(),
                whole: Vec::new(),
                unsent: Vec::new(),
                version: None,
                echo_pending: false,
                has_answered: false,
            });
        }
        let result = ExternalController {
            address: address.to_owned(),
            turns: 0,
            messages: 0,
            took_s: 0.0,
            measured: service.is_none(),
            late: 0,
        };
        // The number sets the controller's draws apart from those of other parts of the network.
        let random = RandomStream::new(scenario.seed, 0, u64::from_le_bytes(*MARK));
        let (free_at, took) = (Instant::ZERO, Duration::ZERO);
        let clock = SystemClock::start();
        let (settle, limit) = (settings.settle, settings.answer_limit);
        Ok(RealController { channels, clock, settle, limit, service, random, free_at, took, result })
    }

    /// Hands bytes of a switch, which arrive at `now`, to the controller, and waits until it has handled them, or until
    /// `cancel` is set.
    ///
    /// # Errors
    /// The controller does not answer, does not fall silent, or closes a connection.
    pub(super) fn exchange(
        &mut self,
        now: Instant,
        number: usize,
        bytes: &[u8],
        cancel: &AtomicBool,
    ) -> Result<Vec<ControllerAnswers>, NetworkError> {
        // What comes without being asked for depends on real time.
        self.read()?;
        self.result.late += self.channels.iter().map(|channel| count_work(&channel.whole)).sum::<u64>();
        let late = self.answers();
        let begin = self.clock.now();
        self.send(number, bytes, begin, cancel)?;
        let finished = self.wait(number, begin, cancel)?;
        let work = match &self.service {
            Some((law, per_byte_ns)) => {
                let packet_ins = messages(bytes).filter(|header| header[1] == PACKET_IN);
                let ns: f64 =
                    packet_ins.map(|header| law.draw_ns(&mut self.random) + per_byte_ns * length(header) as f64).sum();
                Duration::from_secs_f64(ns.max(0.0) * 1e-9)
            }
            None => finished.since(begin),
        };
        self.took += finished.since(begin);
        self.result.turns += 1;
        self.result.messages += messages(bytes).count() as u64;
        self.free_at = self.free_at.max(now) + work;
        // What was late is finished, whatever the controller has to do since.
        Ok(vec![
            ControllerAnswers { leave: now, messages: late },
            ControllerAnswers { leave: self.free_at, messages: self.answers() },
        ])
    }

    /// Waits until the controller has been silent for this real time. Returns what it has sent, at `now`.
    ///
    /// # Errors
    /// The controller closes a connection.
    pub(super) fn listen(&mut self, now: Instant, silence: Duration) -> Result<ControllerAnswers, NetworkError> {
        let begin = self.clock.now();
        loop {
            self.read()?;
            let left = silence.saturating_sub(self.clock.now().since(begin));
            if left.is_zero() || self.channels.iter().any(|channel| !channel.whole.is_empty()) {
                return Ok(ControllerAnswers { leave: self.free_at.max(now), messages: self.answers() });
            }
            self.wait_for(left, None);
        }
    }

    /// Sends messages of a switch, and an echo request behind them if the version is known.
    fn send(&mut self, number: usize, bytes: &[u8], begin: Instant, cancel: &AtomicBool) -> Result<(), NetworkError> {
        let all = self.channels[number].with_echo(bytes);
        let mut rest = &all[..];
        loop {
            rest = self.channels[number].write(rest)?;
            if rest.is_empty() || cancel.load(Ordering::Relaxed) {
                return Ok(());
            }
            // The controller may wait for its own bytes to be read.
            self.read()?;
            let left = self.limit.saturating_sub(self.clock.now().since(begin));
            if left.is_zero() {
                return Err(self.channels[number].late(&self.result.address, self.limit, "to take more bytes"));
            }
            self.wait_for(left, Some(number));
        }
    }

    /// Waits until the controller has answered on this channel and all channels are silent. Returns the real time of
    /// its last message.
    fn wait(&mut self, number: usize, begin: Instant, cancel: &AtomicBool) -> Result<Instant, NetworkError> {
        let (mut last, mut heard) = (begin, begin);
        loop {
            let (before, asked) = (self.waiting_bytes(), self.channels[number].echo_pending);
            self.read()?;
            let now = self.clock.now();
            let channel = &self.channels[number];
            if self.waiting_bytes() != before {
                (last, heard) = (now, now);
            } else if asked && !channel.echo_pending {
                // Nothing but the echo: this is how long the controller took to look at the message.
                (last, heard) = (if last == begin { now } else { last }, now);
            }
            let finished = channel.has_answered && !channel.echo_pending;
            let silent = now.since(heard);
            if (finished && silent >= self.settle) || cancel.load(Ordering::Relaxed) {
                return Ok(last);
            }
            let left = self.limit.saturating_sub(now.since(begin));
            if left.is_zero() {
                let what = match (channel.has_answered, channel.echo_pending) {
                    (false, _) => "to say anything",
                    (true, true) => "to answer an echo request",
                    (true, false) => "to fall silent",
                };
                return Err(channel.late(&self.result.address, self.limit, what));
            }
            self.wait_for(if finished { left.min(self.settle - silent) } else { left }, None);
        }
    }

    /// Waits until a channel has bytes to read, or the channel `writes` takes some, at most for this time, and not so
    /// long that the caller's look at the request to stop is late.
    fn wait_for(&self, time: Duration, writes: Option<usize>) {
        let look = |(number, channel)| {
            let channel: &RealChannel = channel;
            let flags = if Some(number) == writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            PollFd::from_borrowed_fd(channel.socket.as_fd(), flags)
        };
        let mut sockets: Vec<PollFd<'_>> = self.channels.iter().enumerate().map(look).collect();
        // A signal ends the wait early: the caller looks again.
        let _ = poll(&mut sockets, Timespec::try_from(time.min(LOOK_EVERY)).ok().as_ref());
    }

    fn waiting_bytes(&self) -> usize {
        self.channels.iter().map(|channel| channel.whole.len() + channel.partial.len()).sum()
    }

    fn read(&mut self) -> Result<(), NetworkError> {
        self.channels.iter_mut().try_for_each(RealChannel::read)
    }

    /// Takes the messages that have come, with the number of the switch of each.
    fn answers(&mut self) -> Vec<(usize, Vec<u8>)> {
        let channels = self.channels.iter_mut().enumerate().filter(|(_, channel)| !channel.whole.is_empty());
        channels.map(|(number, channel)| (number, std::mem::take(&mut channel.whole))).collect()
    }

    /// Returns what is to be reported of the controller.
    pub(super) fn result(&self) -> ExternalController {
        ExternalController { took_s: self.took.as_secs_f64(), ..self.result.clone() }
    }
}

impl RealChannel {
    /// Returns messages of the switch with an echo request behind them if the version is known.
    fn with_echo(&mut self, bytes: &[u8]) -> Vec<u8> {
        if let Some(header) = messages(bytes).filter(|header| header[1] != HELLO).last() {
            self.version = Some(header[0]);
        }
        let mut all = std::mem::take(&mut self.unsent);
        all.extend(bytes);
        if let Some(version) = self.version {
            all.extend([version, ECHO_REQUEST, 0, ECHO_LENGTH]);
            all.extend(*b"weir");
            all.extend(MARK);
            self.echo_pending = true;
        }
        all
    }

    /// Writes as much as the socket takes. Returns the rest.
    fn write<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], NetworkError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.socket.write(rest) {
                Ok(0) => return Err(self.closed("it takes no more bytes")),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.closed(&error.to_string())),
            }
        }
        Ok(rest)
    }

    /// Reads what has come. Sets answers to echo requests aside, and answers those of the controller.
    fn read(&mut self) -> Result<(), NetworkError> {
        let mut chunk = [0; 16 << 10];
        loop {
            match self.socket.read(&mut chunk) {
                Ok(0) => return Err(self.closed("the controller closed the connection")),
                Ok(length) => self.partial.extend(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.closed(&error.to_string())),
            }
        }
        while let Some(header) = self.partial.first_chunk::<HEADER>().copied() {
            let length = length(header);
            if length < HEADER {
                return Err(self.closed(&format!("found a message of {length} bytes, expected at least {HEADER}")));
            }
            if self.partial.len() < length {
                break;
            }
            self.has_answered = true;
            let message: Vec<u8> = self.partial.drain(..length).collect();
            match header[1] {
                ECHO_REPLY if &message[HEADER..] == MARK => self.echo_pending = false,
                // The controller asks whether the switch is alive in real time, so virtual time must not delay this.
                ECHO_REQUEST => {
                    self.unsent.extend([header[0], ECHO_REPLY]);
                    self.unsent.extend(&message[2..]);
                }
                _ => self.whole.extend(message),
            }
        }
        let unsent = std::mem::take(&mut self.unsent);
        self.unsent = self.write(&unsent)?.to_vec();
        Ok(())
    }

    fn closed(&self, problem: &str) -> NetworkError {
        NetworkError::Scenario(format!("{}: its connection to the controller: {problem}", self.switch))
    }

    /// Returns the error of a controller that does not do what virtual time waits for.
    fn late(&self, address: &str, limit: Duration, what: &str) -> NetworkError {
        let switch = &self.switch;
        NetworkError::Scenario(format!(
            "{switch}: virtual time waited {limit:?} for the controller {address} {what}, and ended"
        ))
    }
}

/// Returns the length of a message in bytes, as its header has it.
fn length(header: [u8; HEADER]) -> usize {
    usize::from(u16::from_be_bytes([header[2], header[3]]))
}

/// Returns the headers of messages.
fn messages(bytes: &[u8]) -> impl Iterator<Item = [u8; HEADER]> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let header = *rest.first_chunk::<HEADER>()?;
        rest = rest.get(length(header).max(HEADER)..).unwrap_or_default();
        Some(header)
    })
}

/// Returns the number of messages that do something: all but greetings.
fn count_work(bytes: &[u8]) -> u64 {
    messages(bytes).filter(|header| header[1] != HELLO).count() as u64
}

/// Opens a connection to `tcp:HOST:PORT` or `unix:PATH`, which does not block.
fn open(address: &str) -> io::Result<Box<dyn Socket>> {
    if let Some(host) = address.strip_prefix("tcp:") {
        let socket = TcpStream::connect(host)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        return Ok(Box::new(socket));
    }
    let path = address.strip_prefix("unix:").ok_or_else(|| io::Error::other("expected tcp:HOST:PORT or unix:PATH"))?;
    let socket = UnixStream::connect(path)?;
    socket.set_nonblocking(true)?;
    Ok(Box::new(socket))
}
