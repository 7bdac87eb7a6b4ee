//! Sockets of the emulated switches: one thread, one epoll, writes and reads as far as possible without waiting.
use anyhow::{Context as _, bail};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_units::{Clock as _, Instant, SystemClock};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Most writes to one socket in a turn.
const WRITES: u32 = 8;
/// Most events of one call.
const EVENTS: usize = 256;
/// Usual time before the next request is due from which on the thread no longer sleeps: epoll counts in milliseconds.
const AWAKE: Duration = Duration::from_millis(2);
/// Longest sleep, after which Ctrl-C is looked for.
const NAP: Duration = Duration::from_millis(20);
/// Longest wait for one attempt to connect before Ctrl-C is looked for.
const CONNECT_NAP: Duration = Duration::from_millis(500);
/// Time that the controller has to accept a connection.
const ACCEPT: Duration = Duration::from_secs(10);

/// Ends of channels that sockets serve, by number: emulated switches without sockets and clock.
pub(super) trait ServedChannels {
    /// Passes on bytes from the controller.
    fn receive(&mut self, number: usize, now: Instant, bytes: &[u8]);
    /// Notes that a connection ended.
    fn close(&mut self, number: usize, now: Instant, reason: &str);
    /// Lets a channel continue, because its output was written.
    fn refill(&mut self, number: usize, now: Instant);
    /// Does what is due.
    fn step(&mut self, now: Instant);
    /// Returns the time of the next call of [`ServedChannels::step`].
    fn next_wake(&self) -> Option<Instant>;
    /// Returns the channels that may have output or have ended, and forgets them.
    fn take_touched(&mut self) -> Vec<usize>;
    /// Returns the bytes to write. What was written is removed from the front.
    fn output(&mut self, number: usize) -> &mut Vec<u8>;
    /// Returns true if the connection is to be closed once the output is written.
    fn is_ended(&self, number: usize) -> bool;
}

/// Sockets of all switches, by number.
pub(super) struct SwitchSockets {
    address: SocketAddr,
    epoll: rustix::fd::OwnedFd,
    streams: Vec<Option<TcpStream>>,
    /// True if a socket took not all of the output: it is watched for room.
    is_full: Vec<bool>,
    pub(super) clock: SystemClock,
    cancel: CancelHandle,
    /// Time before the next request is due from which on the thread no longer sleeps.
    awake: Duration,
    read_buffer: Vec<u8>,
    events: Vec<epoll::Event>,
}

impl SwitchSockets {
    /// Returns no sockets yet.
    ///
    /// # Errors
    /// The system gives no epoll.
    pub(super) fn new(address: SocketAddr, cancel: CancelHandle) -> anyhow::Result<SwitchSockets> {
        Ok(SwitchSockets {
            address,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot wait for sockets")?,
            streams: Vec::new(),
            is_full: Vec::new(),
            clock: SystemClock::start(),
            cancel,
            awake: AWAKE,
            read_buffer: vec![0; READ_BYTES],
            events: Vec::with_capacity(EVENTS),
        })
    }

    /// Returns what makes sockets to the same controller, with the same clock, on another thread. They always sleep
    /// until the next request, which may then be sent a millisecond late.
    pub(super) fn beside(&self) -> impl FnOnce() -> anyhow::Result<SwitchSockets> + Send + use<> {
        let (address, clock, cancel) = (self.address, self.clock, self.cancel.clone());
        move || Ok(SwitchSockets { clock, awake: Duration::ZERO, ..SwitchSockets::new(address, cancel)? })
    }

    /// Returns true if Ctrl-C was pressed.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Connects one more channel to the controller. Returns the time at which the connection was begun. The caller then
    /// adds the channel with the next number, and calls [`SwitchSockets::flush`].
    ///
    /// # Errors
    /// The controller does not listen or does not accept in time, or descriptors are used up.
    pub(super) fn open(&mut self) -> anyhow::Result<Instant> {
        self.open_to(self.address)
    }

    /// Connects one more channel to another controller, as [`SwitchSockets::open`].
    ///
    /// # Errors
    /// Fails for the reasons of [`SwitchSockets::open`].
    pub(super) fn open_to(&mut self, address: SocketAddr) -> anyhow::Result<Instant> {
        let begun = self.clock.now();
        let number = self.streams.len() + 1;
        let stream = loop {
            match TcpStream::connect_timeout(&address, CONNECT_NAP) {
                Ok(stream) => break stream,
                Err(error) if error.kind() == ErrorKind::TimedOut && !self.is_cancelled() => {
                    if self.clock.now().since(begun) >= ACCEPT {
                        bail!("{address}: connection {number} was not accepted within {ACCEPT:?}");
                    }
                }
                Err(error) => {
                    let advice = if error.kind() == ErrorKind::ConnectionRefused {
                        "; does the controller listen there?"
                    } else {
                        ""
                    };
                    bail!("cannot connect switch {number} to {address}: {error}{advice}");
                }
            }
        };
        stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).context("cannot prepare a socket")?;
        let number = self.streams.len() as u64;
        epoll::add(&self.epoll, &stream, epoll::EventData::new_u64(number), epoll::EventFlags::IN)
            .context("cannot watch a socket")?;
        self.streams.push(Some(stream));
        self.is_full.push(false);
        Ok(begun)
    }

    /// Sends and receives until `until`, or until `is_done` holds, or until Ctrl-C.
    ///
    /// # Errors
    /// The system cannot wait for sockets.
    pub(super) fn run<C: ServedChannels>(
        &mut self,
        fleet: &mut C,
        until: Instant,
        mut is_done: impl FnMut(&C) -> bool,
    ) -> anyhow::Result<()> {
        loop {
            let now = self.clock.now();
            fleet.step(now);
            self.flush(fleet);
            if now >= until || self.is_cancelled() || is_done(fleet) {
                return Ok(());
            }
            let wake = fleet.next_wake().unwrap_or(Instant::FAR).min(until);
            self.wait(fleet, wake.since(self.clock.now()).min(NAP))?;
        }
    }

    fn wait(&mut self, fleet: &mut impl ServedChannels, time: Duration) -> anyhow::Result<()> {
        let time = time.checked_sub(self.awake).unwrap_or_default();
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => bail!("cannot wait for sockets: {error}"),
        }
        for event in &events {
            let Ok(number) = usize::try_from(event.data.u64()) else { continue };
            let flags = event.flags;
            if flags.contains(epoll::EventFlags::OUT) {
                self.write(fleet, number);
            }
            if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::ERR | epoll::EventFlags::HUP) {
                self.read(fleet, number);
            }
        }
        self.events = events;
        Ok(())
    }

    fn read(&mut self, fleet: &mut impl ServedChannels, number: usize) {
        let Some(stream) = &mut self.streams[number] else { return };
        match stream.read(&mut self.read_buffer) {
            Ok(0) => self.end(fleet, number, "the controller closed the connection"),
            Ok(length) => fleet.receive(number, self.clock.now(), &self.read_buffer[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => self.end(fleet, number, &format!("reading: {error}")),
        }
    }

    /// Writes the output of all channels that may have some.
    pub(super) fn flush(&mut self, fleet: &mut impl ServedChannels) {
        for number in fleet.take_touched() {
            if !self.is_full[number] {
                self.write(fleet, number);
            }
        }
    }

    /// Writes until a socket is full or a switch has no more to say.
    fn write(&mut self, fleet: &mut impl ServedChannels, number: usize) {
        let is_ended = fleet.is_ended(number);
        let mut is_full = false;
        let mut problem = None;
        let mut turns = WRITES;
        while let Some(stream) = &mut self.streams[number] {
            // A switch that always has more to say lets the others have their turn.
            turns -= 1;
            is_full = turns == 0;
            let output = fleet.output(number);
            if output.is_empty() || is_full {
                is_full &= !output.is_empty();
                break;
            }
            match stream.write(output) {
                Ok(written) => {
                    output.drain(..written);
                    fleet.refill(number, self.clock.now());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    is_full = true;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    problem = Some(format!("writing: {error}"));
                    break;
                }
            }
        }
        self.watch(number, is_full);
        match problem {
            Some(problem) => self.end(fleet, number, &problem),
            None if is_ended => self.streams[number] = None,
            None => {}
        }
    }

    /// Watches a socket for room, or no longer.
    fn watch(&mut self, number: usize, is_full: bool) {
        if std::mem::replace(&mut self.is_full[number], is_full) == is_full {
            return;
        }
        let Some(stream) = &self.streams[number] else { return };
        let room = if is_full { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        // A socket that is not watched for room any more is at worst written too late.
        let _ =
            epoll::modify(&self.epoll, stream, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN | room);
    }

    /// Closes a channel.
    pub(super) fn end(&mut self, fleet: &mut impl ServedChannels, number: usize, reason: &str) {
        self.streams[number] = None;
        fleet.close(number, self.clock.now(), reason);
    }
}
