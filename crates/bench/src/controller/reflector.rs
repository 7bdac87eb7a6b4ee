//! The built-in reflector: a controller that does nothing but answer each packet-in with one flow-mod. It shows what
//! the generator itself can do on this machine.
use super::reply::message_type;
use super::request::MAX_HOSTS;
use anyhow::Context as _;
use rustix::event::{Timespec, epoll};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use weir_openflow::codec::{HEADER_BYTES, MessageHeader};
use weir_openflow::model::{Action, BufferId, FlowMod, Hello, Instruction, Match, PortNo};
use weir_openflow::{Body, Message, Version, codec};
use weir_packet::Field;

/// Longest sleep before the end is looked for.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Number of the listener among the events.
const LISTENER: u64 = u64::MAX;
const READ_BYTES: usize = 64 << 10;

/// A running reflector; it ends when dropped.
pub(super) struct Reflector {
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reflector {
    /// Starts a reflector on a thread of its own.
    ///
    /// # Errors
    /// The system gives no socket or no thread.
    pub(super) fn start(version: Version) -> anyhow::Result<Reflector> {
        let cannot = "cannot start the reflector";
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context(cannot)?;
        listener.set_nonblocking(true).context(cannot)?;
        let address = listener.local_addr().context(cannot)?;
        let stop = Arc::new(AtomicBool::new(false));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context(cannot)?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN).context(cannot)?;
        let answer = ReflectorAnswer::new(version)?;
        let is_stopped = Arc::clone(&stop);
        let work = move || serve(&epoll, &listener, &answer, &is_stopped);
        let thread = std::thread::Builder::new().name("weir-reflector".into()).spawn(work).context(cannot)?;
        Ok(Reflector { address, stop, thread: Some(thread) })
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Messages of the reflector, encoded once.
struct ReflectorAnswer {
    hello: Vec<u8>,
    features_request: Vec<u8>,
    flow_mod: Vec<u8>,
    /// Position of the buffer's number in the flow-mod.
    buffer_at: usize,
    version: Version,
}

impl ReflectorAnswer {
    fn new(version: Version) -> anyhow::Result<ReflectorAnswer> {
        let encode = |body| {
            let mut bytes = Vec::new();
            codec::encode(&Message { xid: 1, body }, version, &mut bytes).map(|()| bytes)
        };
        let output = vec![Instruction::ApplyActions(vec![Action::output(PortNo(1))])];
        let entry = FlowMod::add(1, Match::any().with(Field::InPort, MAX_HOSTS), output);
        let flow = FlowMod { buffer_id: Some(BufferId(0)), ..entry };
        let buffer_at = if version == Version::V10 { 64 } else { 32 };
        Ok(ReflectorAnswer {
            hello: encode(Body::Hello(Hello::default()))?,
            features_request: encode(Body::FeaturesRequest)?,
            flow_mod: encode(Body::FlowMod(flow))?,
            buffer_at,
            version,
        })
    }

    /// Appends the answer to a message.
    fn reply(&self, header: MessageHeader, message: &[u8], out: &mut Vec<u8>) {
        match header.kind {
            message_type::PACKET_IN => {
                let at = out.len() + self.buffer_at;
                out.extend_from_slice(&self.flow_mod);
                out[at..at + 4].copy_from_slice(&message[8..12]);
            }
            message_type::HELLO => out.extend_from_slice(&self.features_request),
            message_type::ECHO_REQUEST => {
                let at = out.len();
                out.extend_from_slice(message);
                out[at..at + 2].copy_from_slice(&[self.version as u8, message_type::ECHO_REPLY]);
            }
            _ => {}
        }
    }
}

/// Connection of a switch to the reflector.
struct ReflectorChannel {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// True if the socket took not all of the output: it is watched for room instead of input.
    is_full: bool,
}

impl ReflectorChannel {
    /// Reads, answers and writes. Returns false at the end of the connection.
    fn serve(&mut self, answer: &ReflectorAnswer, buffer: &mut [u8]) -> bool {
        // Output is written first: a peer that does not read is not read from either.
        if !self.write() {
            return false;
        }
        if !self.output.is_empty() {
            return true;
        }
        match self.stream.read(buffer) {
            Ok(0) => return false,
            Ok(length) => self.input.extend_from_slice(&buffer[..length]),
            Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
        let mut at = 0;
        while let Some(header) = MessageHeader::read(&self.input[at..]) {
            let length = usize::from(header.length);
            if length < HEADER_BYTES {
                return false;
            }
            let Some(message) = self.input.get(at..at + length) else { break };
            answer.reply(header, message, &mut self.output);
            at += length;
        }
        self.input.drain(..at);
        self.write()
    }

    fn write(&mut self) -> bool {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(written) => drop(self.output.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

fn serve(epoll: &rustix::fd::OwnedFd, listener: &TcpListener, answer: &ReflectorAnswer, stop: &AtomicBool) {
    let mut channels: Vec<Option<ReflectorChannel>> = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
    while !stop.load(Ordering::Relaxed) {
        events.clear();
        let _ = epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), Some(&NAP));
        for event in &events {
            let data = event.data.u64();
            if data == LISTENER {
                accept(epoll, listener, answer, &mut channels);
            } else if let Some(slot) = usize::try_from(data).ok().and_then(|number| channels.get_mut(number))
                && let Some(channel) = slot
            {
                if !channel.serve(answer, &mut buffer) {
                    *slot = None;
                    continue;
                }
                let is_full = !channel.output.is_empty();
                if std::mem::replace(&mut channel.is_full, is_full) != is_full {
                    let room = if is_full { epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
                    let _ = epoll::modify(epoll, &channel.stream, epoll::EventData::new_u64(data), room);
                }
            }
        }
    }
}

fn accept(
    epoll: &rustix::fd::OwnedFd,
    listener: &TcpListener,
    answer: &ReflectorAnswer,
    channels: &mut Vec<Option<ReflectorChannel>>,
) {
    while let Ok((stream, _)) = listener.accept() {
        let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
        let number = epoll::EventData::new_u64(channels.len() as u64);
        if prepared.is_err() || epoll::add(epoll, &stream, number, epoll::EventFlags::IN).is_err() {
            continue;
        }
        let mut channel = ReflectorChannel { stream, input: Vec::new(), output: answer.hello.clone(), is_full: false };
        channels.push(channel.write().then_some(channel));
    }
}
