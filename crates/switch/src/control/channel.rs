//! Runs one control channel: a stream, its OpenFlow session, and the two bounded queues to and from the engine.
//!
//! From the controller: the channel reads more bytes only when the messages of the previous piece are in the engine's
//! inbox. A controller that floods is therefore read at the engine's pace, and TCP flow control slows it down. To the
//! controller: the session's output is written as far as the stream accepts it, and is filled from the queue only up
//! to [`OUTPUT_BYTES`]. Further messages wait in the queue, whose bounds drop and count ([`super::backlog`]).
use super::auxiliary::{self, MainConnection};
use super::backlog::{self, Backlog, Outbox, ToChannel, outbox};
use super::byte_budget::{ChannelByteBudget, TURN_BYTES};
use super::registry::ChannelInfo;
use super::timestamped_stream::{StreamArrivalTime, TimestampedStream};
use super::{ControlContext, stopped};
use crate::clock::SwitchClock;
use crate::ctl::SnoopedMessage;
use crate::engine::inbox::{BATCH, FromChannel};
use crate::handle::SwitchError;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use weir_datapath::ChannelId;
use weir_openflow::model::multipart::RequestBody;
use weir_openflow::session::{SendError, Session, SessionEvent};
use weir_openflow::{Body, Message, Version};
use weir_units::{Clock, Instant};

/// Maximum number of bytes of one read.
const READ_BYTES: usize = 64 * 1024;
/// Bytes of output from which on no message is taken from the queue.
const OUTPUT_BYTES: usize = 256 * 1024;
/// Time within which a controller must accept some of the output.
const STALL_TIME: Duration = Duration::from_secs(10);
/// Time allowed for the last bytes when the channel ends.
const LINGER: Duration = Duration::from_millis(200);

/// Any stream over which bytes can be exchanged.
pub(crate) trait AsyncReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> AsyncReadWrite for T {}

/// The stream of a channel.
pub(crate) struct ByteStream {
    pub(super) bytes: Box<dyn AsyncReadWrite>,
    /// Arrival times of the bytes read, if the stream reports them.
    pub(super) arrivals: Option<StreamArrivalTime>,
}

impl ByteStream {
    /// Wraps a stream that does not report arrival times.
    pub(crate) fn new(bytes: impl AsyncReadWrite + 'static) -> ByteStream {
        ByteStream { bytes: Box::new(bytes), arrivals: None }
    }

    /// Wraps a stream that reports arrival times.
    pub(super) fn stamped(stream: TimestampedStream) -> ByteStream {
        ByteStream { arrivals: Some(stream.arrivals()), bytes: Box::new(stream) }
    }
}

/// End of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disconnection {
    /// True if the session had come up.
    pub(crate) was_up: bool,
    /// Reason, as text for logs and snapshots.
    pub(crate) reason: String,
}

/// Function of a connection to its controller.
pub(crate) enum ChannelConnectionKind {
    /// Main connection, which may carry everything. Sends the negotiated version when it is up.
    Main(watch::Sender<Option<Version>>),
    /// Auxiliary connection with its number (from 1) and its main connection.
    Auxiliary(u8, MainConnection),
}

impl ChannelConnectionKind {
    /// Returns the part of a main connection without auxiliary connections.
    pub(crate) fn main_only() -> ChannelConnectionKind {
        ChannelConnectionKind::Main(watch::channel(None).0)
    }
}

/// Runs a channel over `stream` until either side ends it.
pub(crate) async fn run(
    control: ControlContext,
    stream: ByteStream,
    info: Arc<ChannelInfo>,
    id: ChannelId,
    part: ChannelConnectionKind,
) -> Disconnection {
    info.connected(id);
    let ByteStream { bytes, arrivals } = stream;
    let (reader, writer) = tokio::io::split(bytes);
    let backlog = Arc::new(Backlog::new(Arc::clone(&info.carried)));
    let (outbox, queue) = outbox(Arc::clone(&backlog));
    let clock = control.clock;
    let mut config = control.session.clone();
    if let ChannelConnectionKind::Auxiliary(_, main) = &part {
        // Restricts the negotiation to the main connection's version.
        config.versions = vec![main.version];
    } else if id < ChannelId::FIRST_PASSIVE && !control.controller_versions.is_empty() {
        config.versions = control.controller_versions.to_vec();
    }
    let mut channel = ChannelTask {
        session: Session::switch(config, clock.now()),
        part,
        stopping: control.stopping.clone(),
        came: clock.now(),
        arrivals,
        wrote_at: clock.now(),
        waiting: VecDeque::new(),
        outbox: Some(outbox),
        version: None,
        control,
        info,
        id,
        clock,
        backlog,
        queue,
        taken: 0,
        next_part: None,
        is_watched: false,
    };
    let reason = channel.exchange(reader, writer).await;
    channel.end(reason).await
}

impl ChannelConnectionKind {
    /// Returns the message that tells the engine that the session is up.
    fn up(&self, id: ChannelId, version: Version, outbox: Outbox) -> FromChannel {
        match self {
            ChannelConnectionKind::Main(up) => {
                up.send_replace(Some(version));
                FromChannel::Up(id, version, outbox)
            }
            ChannelConnectionKind::Auxiliary(number, main) => FromChannel::AuxiliaryUp(id, main.id, *number, outbox),
        }
    }
}

/// Waits until the main connection of an auxiliary one has ended; for ever on a main connection.
async fn main_ended(part: &mut ChannelConnectionKind) {
    match part {
        ChannelConnectionKind::Main(_) => std::future::pending().await,
        ChannelConnectionKind::Auxiliary(_, main) => auxiliary::main_has_ended(&mut main.ended).await,
    }
}

/// Next event of a channel.
enum ChannelEvent {
    /// The engine's inbox accepted messages.
    Sent(Result<(), SwitchError>),
    /// The controller sent bytes.
    Read(io::Result<usize>),
    /// The controller's stream accepted bytes.
    Wrote(io::Result<usize>),
    /// The engine put an item on the queue.
    Told(Option<ToChannel>),
    /// The deadline has passed.
    Due,
}

/// Waits for one of two futures. If both are ready, returns the first one if `is_a_first`. Callers alternate, so that
/// neither direction of a channel starves the other. A random order would also prevent that, but could not be
/// reproduced.
async fn first_of<T>(a: impl Future<Output = T>, b: impl Future<Output = T>, is_a_first: bool) -> T {
    tokio::pin!(a, b);
    std::future::poll_fn(|context| {
        if is_a_first && let Poll::Ready(value) = a.as_mut().poll(context) {
            return Poll::Ready(value);
        }
        match b.as_mut().poll(context) {
            Poll::Pending if !is_a_first => a.as_mut().poll(context),
            polled => polled,
        }
    })
    .await
}

struct ChannelTask {
    control: ControlContext,
    info: Arc<ChannelInfo>,
    id: ChannelId,
    clock: SwitchClock,
    session: Session,
    stopping: watch::Receiver<bool>,
    backlog: Arc<Backlog>,
    /// Items from the engine.
    queue: mpsc::UnboundedReceiver<ToChannel>,
    /// Number of messages taken from `queue`.
    taken: u64,
    /// Next part of a long reply, if messages that precede it are still on the queue.
    next_part: Option<backlog::ReplyPart>,
    /// Messages for the engine, at most those of one read.
    waiting: VecDeque<FromChannel>,
    /// True if the session keeps messages for those who listen.
    is_watched: bool,
    /// The engine's end of `queue`, until the engine has it.
    outbox: Option<Outbox>,
    version: Option<Version>,
    part: ChannelConnectionKind,
    /// Arrival time of the controller's last bytes, as far as known.
    came: Instant,
    /// Arrival times reported by the stream, if it reports them.
    arrivals: Option<StreamArrivalTime>,
    /// Time at which the controller last accepted bytes, or at which output became available again.
    wrote_at: Instant,
}

impl ChannelTask {
    /// Carries messages until the channel ends. Returns the reason.
    async fn exchange(&mut self, mut reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) -> String {
        let mut piece = vec![0; READ_BYTES];
        let (mut had_output, mut is_inward_next) = (false, false);
        let (mut turn, mut used) = (ChannelByteBudget::default(), 0);
        self.listen_in();
        let reason = loop {
            turn.used(std::mem::take(&mut used)).await;
            if let Some(reason) = self.take_events() {
                break reason;
            }
            self.listen_in();
            let may_ask = !self.backlog.is_paused();
            let may_read = self.waiting.is_empty() && may_ask;
            let has_output = !self.session.output().is_empty();
            if has_output && !had_output {
                self.wrote_at = self.clock.now();
            }
            had_output = has_output;
            let may_fill = self.session.output().len() < OUTPUT_BYTES;
            let deadline = self.deadline(has_output);
            is_inward_next = !is_inward_next;
            let inward = async {
                match (may_ask && !self.waiting.is_empty(), may_read) {
                    (true, _) => ChannelEvent::Sent(self.control.engine.send(&mut self.waiting).await),
                    (false, true) => ChannelEvent::Read(reader.read(&mut piece).await),
                    (false, false) => std::future::pending().await,
                }
            };
            let outward = async {
                tokio::select! {
                    biased;
                    wrote = writer.write(self.session.output()), if has_output => ChannelEvent::Wrote(wrote),
                    message = self.queue.recv(), if may_fill => ChannelEvent::Told(message),
                    () = std::future::pending() => unreachable!("it never comes"),
                }
            };
            let happened = tokio::select! {
                biased;
                () = stopped(&mut self.stopping) => break self.control.why_stopped.to_owned(),
                () = main_ended(&mut self.part) => break "its main connection ended".to_owned(),
                happened = first_of(inward, outward, is_inward_next) => happened,
                () = tokio::time::sleep(deadline) => ChannelEvent::Due,
            };
            // A listener may have come meanwhile.
            self.listen_in();
            match happened {
                ChannelEvent::Sent(Ok(())) => {}
                ChannelEvent::Sent(Err(_)) => break self.control.why_stopped.to_owned(),
                ChannelEvent::Read(Ok(0)) => break "the controller closed the connection".to_owned(),
                ChannelEvent::Read(Ok(bytes)) => {
                    let now = self.clock.now();
                    self.came = self.arrivals.as_ref().map_or(now, |arrivals| arrivals.last().min(now));
                    self.session.receive(now, &piece[..bytes]);
                    used = bytes;
                }
                ChannelEvent::Wrote(Ok(bytes)) => self.wrote(bytes),
                ChannelEvent::Read(Err(error)) | ChannelEvent::Wrote(Err(error)) => break weir_tls::explain(&error),
                ChannelEvent::Told(message) => {
                    let before = self.session.output().len();
                    if let Some(reason) = message.and_then(|first| self.fill(first)) {
                        break reason.to_owned();
                    }
                    used = self.session.output().len().saturating_sub(before);
                }
                ChannelEvent::Due => {
                    if !may_read || has_output {
                        // A long reply is being sent or read for longer than the silence limit: the echo request
                        // waits behind it, or its reply is unread. A controller that accepts nothing at all is
                        // detected below.
                        self.session.excuse(self.clock.now());
                    }
                    self.session.poll(self.clock.now());
                    if has_output && self.clock.now().since(self.wrote_at) >= STALL_TIME {
                        break format!("it took nothing for {STALL_TIME:?}");
                    }
                }
            }
        };
        self.listen_in();
        // Handshake errors and replies that are ready are still sent.
        let _ = tokio::time::timeout(LINGER, async {
            let _ = writer.write_all(self.session.output()).await;
            let _ = writer.shutdown().await;
        })
        .await;
        reason
    }

    /// Gives those who listen to the switch's channels the messages that passed this one. Without listeners this is one
    /// comparison.
    fn listen_in(&mut self) {
        let hub = self.control.registry.snoop();
        let is_wanted = hub.is_wanted();
        if is_wanted != self.is_watched {
            self.session.watch(is_wanted);
            self.is_watched = is_wanted;
        }
        if !is_wanted {
            return;
        }
        for message in self.session.take_watched() {
            hub.put(&SnoopedMessage::now(self.info.target(), !message.is_sent, &message.bytes));
        }
    }

    /// Moves the session's events to `waiting`. Returns the reason if the session ended.
    fn take_events(&mut self) -> Option<String> {
        while let Some(event) = self.session.take_event() {
            match event {
                SessionEvent::Up { version, .. } => {
                    self.version = Some(version);
                    self.info.up(version);
                    tracing::info!("{}: up, OpenFlow {}", self.info.target(), version.name());
                    self.waiting.extend(self.outbox.take().map(|outbox| self.part.up(self.id, version, outbox)));
                }
                SessionEvent::Message(message) => {
                    self.info.carried.received.fetch_add(1, Relaxed);
                    self.queue_up(message);
                }
                SessionEvent::Closed { reason } => return Some(reason),
            }
        }
        None
    }

    fn queue_up(&mut self, message: Message) {
        if let Some(FromChannel::Messages(_, _, batch)) = self.waiting.back_mut()
            && batch.len() < BATCH
            && is_short(&message.body)
        {
            if batch.len() == 1 {
                // After two messages there are usually many: growing the batch step by step would move them
                // repeatedly.
                batch.reserve_exact(BATCH - 1);
            }
            return batch.push(message);
        }
        self.waiting.push_back(FromChannel::Messages(self.id, self.came, vec![message]));
    }

    /// Returns the time until the next deadline, one hour at most.
    fn deadline(&self, has_output: bool) -> Duration {
        let now = self.clock.now();
        let stalled = if has_output { self.wrote_at + STALL_TIME } else { Instant::FAR };
        self.session.deadline().unwrap_or(Instant::FAR).min(stalled).since(now).min(Duration::from_secs(3600))
    }

    fn wrote(&mut self, bytes: usize) {
        self.session.output().drain(..bytes);
        self.wrote_at = self.clock.now();
        if self.session.output().is_empty() {
            self.backlog.wrote(self.wrote_at);
        }
    }

    /// Hands the session messages from the queue, up to the bound on its output or for one turn. Returns the reason
    /// if the engine ends the channel.
    fn fill(&mut self, first: ToChannel) -> Option<&'static str> {
        let end = OUTPUT_BYTES.min(self.session.output().len() + TURN_BYTES);
        let mut next = Some(first);
        while let Some(order) = next {
            if matches!(order, ToChannel::Parts) {
                self.backlog.looked();
            }
            self.send_parts();
            match order {
                ToChannel::Message(message) => self.send(&message),
                ToChannel::Close(reason) => return Some(reason),
                ToChannel::Parts | ToChannel::Resume => {}
            }
            // Sends the parts behind that message, which were announced before.
            self.send_parts();
            next = (self.session.output().len() < end).then(|| self.queue.try_recv().ok()).flatten();
        }
        if self.backlog.is_engine_to_wake() {
            self.control.engine.wake();
        }
        None
    }

    fn send(&mut self, message: &Message) {
        self.taken += 1;
        self.backlog.taken(message);
        match self.session.send(message) {
            Ok(()) => drop(self.info.carried.sent.fetch_add(1, Relaxed)),
            // A notice that this OpenFlow version cannot express is not meant for this controller.
            Err(SendError::Encode(error)) => tracing::debug!("{}: {error}", self.info.target()),
            Err(error) => tracing::debug!("{}: {error}", self.info.target()),
        }
    }

    /// Hands the session the parts of long replies that are ready and not behind a message still on the queue.
    fn send_parts(&mut self) {
        for _ in 0..=self.backlog.ready() {
            match self.next_part.take().or_else(|| self.backlog.next_part()) {
                Some(part) if part.behind <= self.taken => self.send_part(part),
                later => {
                    self.next_part = later;
                    return;
                }
            }
        }
    }

    fn send_part(&mut self, part: backlog::ReplyPart) {
        match self.session.send_encoded(&part.bytes, part.messages as u64) {
            Ok(()) => drop(self.info.carried.sent.fetch_add(part.messages as u64, Relaxed)),
            Err(error) => tracing::debug!("{}: {error}", self.info.target()),
        }
        self.backlog.taken_part(part);
    }

    /// Ends the channel: tells the engine, and returns how the connection ended.
    async fn end(mut self, reason: String) -> Disconnection {
        let was_up = self.version.is_some();
        let engine_knows = was_up && self.outbox.is_none();
        // No reply can be sent any more.
        self.queue.close();
        while self.queue.try_recv().is_ok() {}
        if engine_knows {
            // Messages received before the end are carried out: a controller may send flow-mods and close. Requests
            // that only ask for a reply are dropped.
            for waiting in &mut self.waiting {
                if let FromChannel::Messages(_, _, batch) = waiting {
                    batch.retain(|message| !is_question(message));
                }
            }
            self.waiting.push_back(FromChannel::Down(self.id));
            let mut stopping = self.stopping.clone();
            tokio::select! {
                biased;
                () = self.hand_over() => {}
                // When the switch stops, the channel ends whether or not the engine has been told.
                () = async { stopped(&mut stopping).await; tokio::time::sleep(LINGER).await } => {}
            }
        }
        Disconnection { was_up, reason }
    }
    /// Sends everything in `waiting` to the engine.
    async fn hand_over(&mut self) {
        while !self.waiting.is_empty() && self.control.engine.send(&mut self.waiting).await.is_ok() {}
    }
}

/// Returns true if a message takes the engine a few microseconds at most and has no long reply. Only such messages
/// are batched: others are sent one by one, so that the channel soon stops reading from a controller that does not
/// read replies.
fn is_short(body: &Body) -> bool {
    matches!(body, Body::FlowMod(_) | Body::BundleAdd(_) | Body::PacketOut(_) | Body::BarrierRequest)
}

/// Returns true if a message only asks for a reply and changes nothing.
fn is_question(message: &Message) -> bool {
    match &message.body {
        Body::MultipartRequest(request) => {
            !matches!(&request.body, RequestBody::TableFeatures(wanted) if !wanted.is_empty())
        }
        body => matches!(body, Body::BarrierRequest | Body::FeaturesRequest | Body::GetConfigRequest),
    }
}
