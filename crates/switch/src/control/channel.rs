//! One control channel: a stream, the session on it, and the two bounded queues to and from the engine.
//!
//! From the controller: a piece is read only when the messages of the one before are in the engine's inbox, so one that
//! floods is read at the engine's pace, and TCP tells it. To the controller: the session's output is written as far as the
//! stream takes it, and filled from the queue only up to [`OUTPUT_BYTES`]; what waits beyond waits in the queue, whose
//! bounds drop and count ([`super::backlog`]).
use super::auxiliary::{self, Main};
use super::backlog::{self, Backlog, Outbox, ToChannel, outbox};
use super::registry::ChannelInfo;
use super::stamped::{Arrivals, Stamped};
use super::turn::{TURN_BYTES, Turn};
use super::{Control, stopped};
use crate::clock::SwitchClock;
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
use weir_openflow::session::{Event, SendError, Session};
use weir_openflow::{Body, Message, Version};
use weir_units::{Clock, Instant};

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// Bytes of output from which on the queue is not taken from.
const OUTPUT_BYTES: usize = 256 * 1024;
/// Time in which a controller must take some of what is written for it.
const STALL_TIME: Duration = Duration::from_secs(10);
/// Time for the last bytes when the channel ends.
const LINGER: Duration = Duration::from_millis(200);

/// Anything that bytes can be exchanged over.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// What a channel is made of.
pub(crate) struct ByteStream {
    pub(super) bytes: Box<dyn Bytes>,
    /// Where it says when what is read from it came, if it does.
    pub(super) arrivals: Option<Arrivals>,
}

impl ByteStream {
    /// One that does not say when bytes came.
    pub(crate) fn new(bytes: impl Bytes + 'static) -> ByteStream {
        ByteStream { bytes: Box::new(bytes), arrivals: None }
    }

    /// The same that says it.
    pub(super) fn stamped(stream: Stamped) -> ByteStream {
        ByteStream { arrivals: Some(stream.arrivals()), bytes: Box::new(stream) }
    }
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Whether the session had come up.
    pub(crate) was_up: bool,
    /// Why, for people.
    pub(crate) reason: String,
}

/// What a connection is to its controller.
pub(crate) enum Part {
    /// The one everything may go over; told of the version when it is up.
    Main(watch::Sender<Option<Version>>),
    /// One more beside the main one, with its number.
    Auxiliary(u8, Main),
}

impl Part {
    /// A main connection that no other waits for.
    pub(crate) fn alone() -> Part {
        Part::Main(watch::channel(None).0)
    }
}

/// Runs a channel over `stream` until either side ends it.
pub(crate) async fn run(
    control: Control,
    stream: ByteStream,
    info: Arc<ChannelInfo>,
    id: ChannelId,
    part: Part,
) -> Ended {
    info.connected(id);
    let ByteStream { bytes, arrivals } = stream;
    let (reader, writer) = tokio::io::split(bytes);
    let backlog = Arc::new(Backlog::new(Arc::clone(&info.carried)));
    let (outbox, queue) = outbox(Arc::clone(&backlog));
    let clock = control.clock;
    let mut config = control.session.clone();
    if let Part::Auxiliary(_, main) = &part {
        // Another version than the main connection's is refused.
        config.versions = vec![main.version];
    } else if id < ChannelId::FIRST_PASSIVE && !control.controller_versions.is_empty() {
        config.versions = control.controller_versions.to_vec();
    }
    let mut channel = Channel {
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
    };
    let reason = channel.exchange(reader, writer).await;
    channel.end(reason).await
}

impl Part {
    /// What the engine is told when the session is up.
    fn up(&self, id: ChannelId, version: Version, outbox: Outbox) -> FromChannel {
        match self {
            Part::Main(up) => {
                up.send_replace(Some(version));
                FromChannel::Up(id, version, outbox)
            }
            Part::Auxiliary(number, main) => FromChannel::AuxiliaryUp(id, main.id, *number, outbox),
        }
    }
}

/// Waits until the main connection of an auxiliary one has ended.
async fn main_ended(part: &mut Part) {
    match part {
        Part::Main(_) => std::future::pending().await,
        Part::Auxiliary(_, main) => auxiliary::over(&mut main.ended).await,
    }
}

/// The next thing that happened on a channel.
enum Happened {
    /// The engine's inbox took messages.
    Sent(Result<(), SwitchError>),
    /// The controller sent bytes.
    Read(io::Result<usize>),
    /// The controller's stream took bytes.
    Wrote(io::Result<usize>),
    /// The engine said something.
    Told(Option<ToChannel>),
    /// The deadline came.
    Due,
}

/// Waits for one of two futures; if both are ready, for the first where `is_a_first`. Callers alternate, so that
/// neither direction of a channel waits for the other, and what happens can be repeated, which a random order could
/// not.
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

struct Channel {
    control: Control,
    info: Arc<ChannelInfo>,
    id: ChannelId,
    clock: SwitchClock,
    session: Session,
    stopping: watch::Receiver<bool>,
    backlog: Arc<Backlog>,
    /// Messages from the engine.
    queue: mpsc::UnboundedReceiver<ToChannel>,
    /// How many were taken.
    taken: u64,
    /// The next part of a long reply, which is behind one that is yet to be taken.
    next_part: Option<backlog::Part>,
    /// Messages for the engine, at most those of one piece read.
    waiting: VecDeque<FromChannel>,
    /// The engine's end of `queue`, until it has it.
    outbox: Option<Outbox>,
    version: Option<Version>,
    part: Part,
    /// When the controller's last bytes came, as far as is known.
    came: Instant,
    /// Where that is said, if the stream does.
    arrivals: Option<Arrivals>,
    /// When the controller last took bytes, or there were some to take again.
    wrote_at: Instant,
}

impl Channel {
    /// Carries messages until the channel ends; says why.
    async fn exchange(&mut self, mut reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) -> String {
        let mut piece = vec![0; READ_BYTES];
        let (mut had_output, mut is_inward_next) = (false, false);
        let (mut turn, mut used) = (Turn::default(), 0);
        let reason = loop {
            turn.used(std::mem::take(&mut used)).await;
            if let Some(reason) = self.take_events() {
                break reason;
            }
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
                    (true, _) => Happened::Sent(self.control.engine.send(&mut self.waiting).await),
                    (false, true) => Happened::Read(reader.read(&mut piece).await),
                    (false, false) => std::future::pending().await,
                }
            };
            let outward = async {
                tokio::select! {
                    biased;
                    wrote = writer.write(self.session.output()), if has_output => Happened::Wrote(wrote),
                    message = self.queue.recv(), if may_fill => Happened::Told(message),
                    () = std::future::pending() => unreachable!("it never comes"),
                }
            };
            let happened = tokio::select! {
                biased;
                () = stopped(&mut self.stopping) => break self.control.why_stopped.to_owned(),
                () = main_ended(&mut self.part) => break "its main connection ended".to_owned(),
                happened = first_of(inward, outward, is_inward_next) => happened,
                () = tokio::time::sleep(deadline) => Happened::Due,
            };
            match happened {
                Happened::Sent(Ok(())) => {}
                Happened::Sent(Err(_)) => break self.control.why_stopped.to_owned(),
                Happened::Read(Ok(0)) => break "the controller closed the connection".to_owned(),
                Happened::Read(Ok(bytes)) => {
                    let now = self.clock.now();
                    self.came = self.arrivals.as_ref().map_or(now, |arrivals| arrivals.last().min(now));
                    self.session.receive(now, &piece[..bytes]);
                    used = bytes;
                }
                Happened::Wrote(Ok(bytes)) => self.wrote(bytes),
                Happened::Read(Err(error)) | Happened::Wrote(Err(error)) => break weir_tls::explain(&error),
                Happened::Told(message) => {
                    let before = self.session.output().len();
                    if let Some(reason) = message.and_then(|first| self.fill(first)) {
                        break reason.to_owned();
                    }
                    used = self.session.output().len().saturating_sub(before);
                }
                Happened::Due => {
                    if !may_read || has_output {
                        // A long reply is under way, or the peer is reading it, longer than silence may last: an echo request waits behind it,
                        // or the answer is unread. Who takes nothing at all is found out below.
                        self.session.excuse(self.clock.now());
                    }
                    self.session.poll(self.clock.now());
                    if has_output && self.clock.now().since(self.wrote_at) >= STALL_TIME {
                        break format!("it took nothing for {STALL_TIME:?}");
                    }
                }
            }
        };
        // Errors of the handshake, and replies that are there already, still go out.
        let _ = tokio::time::timeout(LINGER, async {
            let _ = writer.write_all(self.session.output()).await;
            let _ = writer.shutdown().await;
        })
        .await;
        reason
    }

    /// Moves what the session understood to the engine's queue; the reason if it ended.
    fn take_events(&mut self) -> Option<String> {
        while let Some(event) = self.session.next_event() {
            match event {
                Event::Up { version, .. } => {
                    self.version = Some(version);
                    self.info.up(version);
                    tracing::info!("{}: up, OpenFlow {}", self.info.target(), version.name());
                    self.waiting.extend(self.outbox.take().map(|outbox| self.part.up(self.id, version, outbox)));
                }
                Event::Message(message) => {
                    self.info.carried.received.fetch_add(1, Relaxed);
                    self.queue_up(message);
                }
                Event::Closed { reason } => return Some(reason),
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
                // Where there are two, there are mostly many: growing step by step would move them again and again.
                batch.reserve_exact(BATCH - 1);
            }
            return batch.push(message);
        }
        self.waiting.push_back(FromChannel::Messages(self.id, self.came, vec![message]));
    }

    /// How long nothing needs to be looked at.
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

    /// Gives the session messages up to the bound on its output, or for a turn; the reason if the engine ends the
    /// channel.
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
            // Those behind that message: that they are there has been told.
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
            // A notice that this version cannot say is not for this controller.
            Err(SendError::Encode(error)) => tracing::debug!("{}: {error}", self.info.target()),
            Err(error) => tracing::debug!("{}: {error}", self.info.target()),
        }
    }

    /// Gives the session the parts of long replies that are there and behind no message still on the queue.
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

    fn send_part(&mut self, part: backlog::Part) {
        match self.session.send_encoded(&part.bytes, part.messages as u64) {
            Ok(()) => drop(self.info.carried.sent.fetch_add(part.messages as u64, Relaxed)),
            Err(error) => tracing::debug!("{}: {error}", self.info.target()),
        }
        self.backlog.taken_part(part);
    }

    /// Tells the engine and those who look.
    async fn end(mut self, reason: String) -> Ended {
        let was_up = self.version.is_some();
        let engine_knows = was_up && self.outbox.is_none();
        // Nobody reads answers any more.
        self.queue.close();
        while self.queue.try_recv().is_ok() {}
        if engine_knows {
            // Messages that came before the end count: a controller may send flow-mods and close. Questions do not.
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
                // With the switch the channel goes, whether the engine knows or not.
                () = async { stopped(&mut stopping).await; tokio::time::sleep(LINGER).await } => {}
            }
        }
        Ended { was_up, reason }
    }
    /// Gives the engine all that waits for it.
    async fn hand_over(&mut self) {
        while !self.waiting.is_empty() && self.control.engine.send(&mut self.waiting).await.is_ok() {}
    }
}

/// Whether a message takes the engine a few microseconds at most and is answered by nothing long: others go to it one by one, so that
/// who does not read the answers is soon not read.
fn is_short(body: &Body) -> bool {
    matches!(body, Body::FlowMod(_) | Body::BundleAdd(_) | Body::PacketOut(_) | Body::BarrierRequest)
}

/// Whether a message only asks for something.
fn is_question(message: &Message) -> bool {
    match &message.body {
        Body::MultipartRequest(request) => {
            !matches!(&request.body, RequestBody::TableFeatures(wanted) if !wanted.is_empty())
        }
        body => matches!(body, Body::BarrierRequest | Body::FeaturesRequest | Body::GetConfigRequest),
    }
}
