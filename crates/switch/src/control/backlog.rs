//! Messages on their way from the engine to a controller: bounded by kind, so that one that does not read costs the switch
//! neither memory nor time.
#[cfg(any(test, feature = "schedules"))]
use crate::engine::inbox::BATCH;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use tokio::sync::mpsc;
use weir_openflow::model::multipart::ReplyBody;
use weir_openflow::model::nicira::NxMessage;
use weir_openflow::{Body, Message};
use weir_units::Instant;

/// Packet-ins kept for a controller at most; beyond, they are dropped and counted.
pub(crate) const MAX_PACKET_INS: usize = 1024;
/// Flow-removed and port-status messages kept at most; beyond, they are dropped and counted.
pub(crate) const MAX_NOTICES: usize = 16_384;
/// Replies waiting for a controller from which on nothing more is read from it.
pub(crate) const PAUSE_REPLIES: usize = 256;
/// Statistics and descriptions among them from which on nothing more is read or carried out: each may be a hundred kilobytes.
pub(crate) const PAUSE_PARTS: usize = 8;
/// Replies waiting beyond which a request is not carried out any more and the channel is closed. A channel pauses at
/// [`PAUSE_REPLIES`]; only requests that were on their way, each with a long answer, get here.
pub(crate) const MAX_REPLIES: usize = 4096;

/// Bytes from which on a part of a long reply is sent.
pub(crate) const PART_BYTES: usize = 16 << 10;
/// Room in a part beyond that for the last of what is put there, where entries are ordinary ones.
const PART_ROOM: usize = 8 << 10;
/// Parts of a long reply that wait for a controller at most; the engine goes on when it has read half of them.
const MAX_PARTS: usize = 16;
/// Parts from which on the channel is told that there are some: it is woken once for many, since waking another thread takes the engine
/// longer than making a part.
const TOLD_PARTS: usize = MAX_PARTS / 2;

/// What the engine puts on a channel's queue.
#[derive(Debug)]
pub(crate) enum ToChannel {
    /// To be sent.
    Message(Message),
    /// There are parts of a long reply.
    Parts,
    /// To be closed, for this reason.
    Close(&'static str),
    /// Messages are taken from the controller again.
    Resume,
}

/// Some messages of a long reply, encoded.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) bytes: Vec<u8>,
    /// How many they are.
    pub(crate) messages: usize,
    /// How many messages were put on the channel's queue before it, which go first.
    pub(crate) behind: u64,
}

/// A queue of few places, in which neither end ever waits for the other.
#[derive(Debug)]
struct Places {
    put: Sender<Part>,
    take: Receiver<Part>,
}

impl Default for Places {
    fn default() -> Places {
        let (put, take) = bounded(MAX_PARTS);
        Places { put, take }
    }
}

/// What a channel carried and lost, over all its connections.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    /// Packet-ins queued for it.
    pub(crate) packet_ins: AtomicU64,
    pub(crate) packet_ins_dropped: AtomicU64,
    /// Packet-ins not made for it since it is at its rate limit.
    pub(crate) packet_ins_limited: AtomicU64,
    pub(crate) notices_dropped: AtomicU64,
    /// The packet-ins of all channels together.
    pub(crate) all: Arc<PacketIns>,
}

/// The packet-ins of all channels there are and were. Counted where each channel's are: the engine may give a channel
/// packet-ins that has just ended, and those count, too.
#[derive(Debug, Default)]
pub(crate) struct PacketIns {
    /// Queued.
    pub(crate) taken: AtomicU64,
    /// Dropped: the channel's queue was full.
    pub(crate) dropped: AtomicU64,
    /// Not made: the channel was at its rate limit.
    pub(crate) limited: AtomicU64,
}

/// How much waits for a controller on one connection.
#[derive(Debug)]
pub(crate) struct Backlog {
    packet_ins: AtomicUsize,
    notices: AtomicUsize,
    replies: AtomicUsize,
    /// Multipart replies among them.
    parts: AtomicUsize,
    /// A reply is being given in parts, behind which other messages wait.
    is_held: AtomicBool,
    /// The engine waits for room.
    is_awaited: AtomicBool,
    /// Parts of long replies; each says which messages of the queue it is behind.
    ready: Places,
    /// The channel has been told that there are some, and has not looked yet.
    is_told: AtomicBool,
    /// Where parts of a long reply lay that were sent, for those that come: so neither thread waits for the other's allocator.
    spare: Places,
    carried: Arc<Carried>,
    handing: Handing,
}

/// How long it took until what the engine gave a channel was written, in nanoseconds of the switch's clock; 0: not known.
#[derive(Debug, Default)]
struct Handing {
    given: AtomicU64,
    written: AtomicU64,
}

/// The engine's end of a channel's queue.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::UnboundedSender<ToChannel>,
    /// Messages that were queued so far.
    queued: Cell<u64>,
    backlog: Arc<Backlog>,
}

/// Makes the queue to a channel: unbounded itself, bounded by what [`Outbox::send`] lets in.
pub(crate) fn outbox(backlog: Arc<Backlog>) -> (Outbox, mpsc::UnboundedReceiver<ToChannel>) {
    let (queue, receiver) = mpsc::unbounded_channel();
    (Outbox { queue, queued: Cell::new(0), backlog }, receiver)
}

impl Outbox {
    /// Queues a message, or drops and counts it.
    pub(crate) fn send(&self, message: Message) {
        let carried = &self.backlog.carried;
        let kind = kind(&message);
        let (waiting, dropped, max) = match kind {
            Kind::PacketIn => (&self.backlog.packet_ins, &carried.packet_ins_dropped, MAX_PACKET_INS),
            Kind::Notice => (&self.backlog.notices, &carried.notices_dropped, MAX_NOTICES),
            // Bounded by `is_overrun`: the parts of one reply are not torn apart.
            Kind::Reply => (&self.backlog.replies, &carried.notices_dropped, usize::MAX),
        };
        if waiting.load(Relaxed) >= max {
            dropped.fetch_add(1, Relaxed);
            if kind == Kind::PacketIn {
                carried.all.dropped.fetch_add(1, Relaxed);
            }
            return;
        }
        waiting.fetch_add(1, Relaxed);
        if is_part(&message) {
            self.backlog.parts.fetch_add(1, Relaxed);
        }
        if kind == Kind::PacketIn {
            carried.packet_ins.fetch_add(1, Relaxed);
            carried.all.taken.fetch_add(1, Relaxed);
        }
        self.queued.update(|queued| queued + 1);
        // A channel that has just ended does not need it.
        let _ = self.queue.send(ToChannel::Message(message));
    }

    /// Where a part of a long reply can be put; empty.
    pub(crate) fn spare(&self) -> Part {
        let new = || Part { bytes: Vec::with_capacity(PART_BYTES + PART_ROOM), ..Part::default() };
        self.backlog.spare.take.try_recv().unwrap_or_else(|_| new())
    }

    /// Queues a part of a long reply, for which there was room.
    pub(crate) fn send_part(&self, mut part: Part, is_last: bool) {
        let backlog = &*self.backlog;
        part.behind = self.queued.get();
        backlog.replies.fetch_add(1, Relaxed);
        backlog.parts.fetch_add(1, Relaxed);
        // There are no more parts than replies, so there is a place.
        let _ = backlog.ready.put.try_send(part);
        let is_due = is_last || backlog.ready.put.len() >= TOLD_PARTS;
        // Either the channel finds this part when it has looked, or it is told again.
        if is_due && !backlog.is_told.swap(true, SeqCst) {
            // As in `send`.
            let _ = self.queue.send(ToChannel::Parts);
        }
    }

    /// Asks how long it takes from `given` until what was given to the channel is written, unless that is being asked.
    pub(crate) fn ask_when_written(&self, given: Instant) {
        let handing = &self.backlog.handing;
        let _ = handing.given.compare_exchange(0, given.as_nanos(), SeqCst, Relaxed);
    }

    /// The answer, once: when it was given, and when it was written.
    pub(crate) fn written(&self) -> Option<(Instant, Instant)> {
        let handing = &self.backlog.handing;
        if handing.written.load(Relaxed) == 0 {
            return None;
        }
        // In this order nothing is taken for written that is asked for later.
        let given = handing.given.swap(0, SeqCst);
        let written = handing.written.swap(0, SeqCst);
        Some((Instant::from_nanos(given), Instant::from_nanos(written)))
    }

    /// Counts packet-ins that the datapath did not make for the channel.
    pub(crate) fn limited(&self, packet_ins: u64) {
        let carried = &self.backlog.carried;
        carried.packet_ins_limited.fetch_add(packet_ins, Relaxed);
        carried.all.limited.fetch_add(packet_ins, Relaxed);
    }

    /// As [`Backlog::check_bounds`].
    #[cfg(any(test, feature = "schedules"))]
    pub(crate) fn check_bounds(&self) -> Result<(), String> {
        self.backlog.check_bounds()
    }

    /// Whether so many notices wait that flow monitors are to be paused, before any is dropped.
    pub(crate) fn is_crowded(&self) -> bool {
        self.backlog.notices.load(Relaxed) >= MAX_NOTICES / 2
    }

    /// Whether most notices have been read, so that flow monitors go on.
    pub(crate) fn is_notice_room(&self) -> bool {
        self.backlog.notices.load(Relaxed) <= MAX_NOTICES / 4
    }

    /// Whether so many replies wait that no request is to be carried out.
    pub(crate) fn is_overrun(&self) -> bool {
        self.backlog.replies.load(Relaxed) >= MAX_REPLIES
    }

    /// Whether there is room for a part of a long reply. If not, the channel wakes the engine when there is.
    pub(crate) fn has_room(&self) -> bool {
        let has_room = || self.backlog.replies.load(SeqCst) < MAX_PARTS;
        // Either this sees what the channel takes from now on, or the channel sees that it is awaited.
        has_room() || {
            self.backlog.is_awaited.store(true, SeqCst);
            has_room()
        }
    }

    /// Nothing more is to be read from the controller.
    pub(crate) fn pause(&self) {
        self.backlog.is_held.store(true, Relaxed);
    }

    /// The controller is read again.
    pub(crate) fn resume(&self) {
        self.backlog.is_held.store(false, Relaxed);
        let _ = self.queue.send(ToChannel::Resume);
    }

    /// Ends the channel.
    pub(crate) fn close(&self, reason: &'static str) {
        let _ = self.queue.send(ToChannel::Close(reason));
    }
}

impl Backlog {
    /// Nothing waits; what is lost is counted in `carried`.
    pub(crate) fn new(carried: Arc<Carried>) -> Backlog {
        Backlog {
            packet_ins: 0.into(),
            notices: 0.into(),
            replies: 0.into(),
            parts: 0.into(),
            is_held: false.into(),
            is_awaited: false.into(),
            ready: Places::default(),
            is_told: false.into(),
            spare: Places::default(),
            carried,
            handing: Handing::default(),
        }
    }

    /// All that was given has been written.
    pub(crate) fn wrote(&self, now: Instant) {
        if self.handing.given.load(SeqCst) != 0 {
            let _ = self.handing.written.compare_exchange(0, now.as_nanos(), SeqCst, Relaxed);
        }
    }

    /// A message left the queue.
    pub(crate) fn taken(&self, message: &Message) {
        let waiting = match kind(message) {
            Kind::PacketIn => &self.packet_ins,
            Kind::Notice => &self.notices,
            Kind::Reply => &self.replies,
        };
        waiting.fetch_sub(1, SeqCst);
        if is_part(message) {
            self.parts.fetch_sub(1, Relaxed);
        }
    }

    /// The channel looks at the parts that it was told of.
    pub(crate) fn looked(&self) {
        self.is_told.swap(false, SeqCst);
    }

    /// Parts of a long reply that are there to be sent.
    pub(crate) fn ready(&self) -> usize {
        self.ready.take.len()
    }

    /// Takes the next part of a long reply; [`Backlog::taken_part`] follows when it is sent.
    pub(crate) fn next_part(&self) -> Option<Part> {
        self.ready.take.try_recv().ok()
    }

    /// A part of a long reply is sent.
    pub(crate) fn taken_part(&self, mut part: Part) {
        self.replies.fetch_sub(1, SeqCst);
        self.parts.fetch_sub(1, Relaxed);
        part.bytes.clear();
        part.messages = 0;
        // Those that grew for entries of an unusual size are not kept.
        if part.bytes.capacity() <= PART_BYTES + PART_ROOM {
            let _ = self.spare.put.try_send(part);
        }
    }

    /// Checks that no more waits than may.
    ///
    /// # Errors
    /// What waits beyond its bound.
    #[cfg(any(test, feature = "schedules"))]
    pub(crate) fn check_bounds(&self) -> Result<(), String> {
        let counts = [&self.packet_ins, &self.notices, &self.replies].map(|count| count.load(Relaxed));
        let bounds = [MAX_PACKET_INS, MAX_NOTICES, MAX_REPLIES + BATCH];
        let is_within = counts.iter().zip(bounds).all(|(count, bound)| *count <= bound) && self.ready() <= MAX_PARTS;
        if is_within { Ok(()) } else { Err(format!("{counts:?} messages wait for a channel, {bounds:?} may")) }
    }

    /// Whether the controller is to read before more is read from it.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_held.load(Relaxed)
            || self.replies.load(Relaxed) >= PAUSE_REPLIES
            || self.parts.load(Relaxed) >= PAUSE_PARTS
    }

    /// Whether the engine is to be woken, since there is room that it waits for.
    pub(crate) fn is_engine_to_wake(&self) -> bool {
        self.replies.load(SeqCst) <= MAX_PARTS / 2 && self.is_awaited.swap(false, SeqCst)
    }
}

/// Whether a message tells a flow monitor what happened. The answer to the request for a monitor, which has the same form, carries
/// the request's transaction id.
pub(crate) fn is_flow_update(message: &Message) -> bool {
    let Body::MultipartReply(reply) = &message.body else { return false };
    message.xid == 0 && matches!(reply.body, ReplyBody::FlowMonitor(_))
}

/// Whether a message is a part of an answer to a multipart request.
fn is_part(message: &Message) -> bool {
    matches!(message.body, Body::MultipartReply(_)) && !is_flow_update(message)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    PacketIn,
    Notice,
    Reply,
}

fn kind(message: &Message) -> Kind {
    match &message.body {
        _ if is_flow_update(message) => Kind::Notice,
        Body::PacketIn(_) => Kind::PacketIn,
        Body::Nx(message) => match **message {
            NxMessage::PacketIn(_) | NxMessage::PacketIn2(_) => Kind::PacketIn,
            NxMessage::FlowRemoved(_) | NxMessage::FlowMonitorPaused | NxMessage::FlowMonitorResumed => Kind::Notice,
            _ => Kind::Reply,
        },
        Body::FlowRemoved(_)
        | Body::PortStatus(_)
        | Body::RoleStatus(_)
        | Body::TableStatus(_)
        | Body::RequestForward(_)
        | Body::ControllerStatus(_) => Kind::Notice,
        _ => Kind::Reply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use weir_openflow::model::monitor::FlowUpdate;
    use weir_openflow::model::multipart::MultipartReply;

    fn update(xid: u32) -> Message {
        let body = ReplyBody::FlowMonitor(vec![FlowUpdate::Abbrev { xid: 1 }]);
        Message { xid, body: Body::MultipartReply(MultipartReply { more: false, body }) }
    }

    #[test]
    fn updates_that_nobody_reads_crowd_then_are_dropped() {
        let backlog = Arc::new(Backlog::new(Arc::default()));
        let (outbox, mut queue) = outbox(backlog.clone());
        (0..MAX_NOTICES / 2 - 1).for_each(|_| outbox.send(update(0)));
        assert!(!outbox.is_crowded());
        outbox.send(update(0));
        assert!(outbox.is_crowded() && !outbox.is_notice_room());
        (0..MAX_NOTICES).for_each(|_| outbox.send(update(0)));
        assert_eq!(backlog.carried.notices_dropped.load(Relaxed), MAX_NOTICES as u64 / 2);
        // The answer to a request is none of them, and is not lost.
        outbox.send(update(7));
        assert_eq!(backlog.replies.load(Relaxed), 1);
        while let Ok(ToChannel::Message(message)) = queue.try_recv() {
            backlog.taken(&message);
        }
        assert!(outbox.is_notice_room() && !backlog.is_paused());
        assert_eq!((backlog.notices.load(Relaxed), backlog.parts.load(Relaxed)), (0, 0));
    }

    #[test]
    fn parts_are_as_replies_and_their_memory_comes_back() {
        let backlog = Arc::new(Backlog::new(Arc::default()));
        let (outbox, mut queue) = outbox(backlog.clone());
        let mut places = HashSet::new();
        for number in 0..MAX_PARTS {
            assert!(outbox.has_room());
            let mut part = outbox.spare();
            assert!(part.bytes.is_empty());
            part.bytes.push(u8::try_from(number).unwrap());
            places.insert(part.bytes.as_ptr());
            outbox.send_part(part, false);
        }
        assert!(!outbox.has_room() && backlog.is_paused() && !backlog.is_engine_to_wake());
        backlog.looked();
        for number in 0..MAX_PARTS {
            let part = backlog.next_part().expect("it was put there");
            assert_eq!(usize::from(part.bytes[0]), number, "they keep their order");
            backlog.taken_part(part);
        }
        assert!(backlog.next_part().is_none() && !backlog.is_paused() && backlog.is_engine_to_wake());
        let spare: Vec<Part> = (0..MAX_PARTS).map(|_| outbox.spare()).collect();
        assert!(spare.iter().all(|part| part.bytes.is_empty() && places.contains(&part.bytes.as_ptr())));
        assert!(matches!(queue.try_recv(), Ok(ToChannel::Parts)) && queue.try_recv().is_err());
    }

    #[test]
    fn how_long_writing_took_is_told_once() {
        let backlog = Arc::new(Backlog::new(Arc::default()));
        let (outbox, _queue) = outbox(backlog.clone());
        let at = Instant::from_nanos;
        backlog.wrote(at(5));
        assert_eq!(outbox.written(), None, "nobody asked");
        outbox.ask_when_written(at(10));
        outbox.ask_when_written(at(20));
        assert_eq!(outbox.written(), None, "it is not written yet");
        backlog.wrote(at(30));
        backlog.wrote(at(40));
        assert_eq!(
            (outbox.written(), outbox.written()),
            (Some((at(10), at(30))), None),
            "of the first that was asked for"
        );
        outbox.ask_when_written(at(50));
        backlog.wrote(at(60));
        assert_eq!(outbox.written(), Some((at(50), at(60))));
    }

    #[test]
    fn a_channel_is_told_once_for_many_parts_and_at_the_end() {
        let backlog = Arc::new(Backlog::new(Arc::default()));
        let (outbox, mut queue) = outbox(backlog.clone());
        let mut told = || std::iter::from_fn(|| queue.try_recv().ok()).count();
        (1..TOLD_PARTS).for_each(|_| outbox.send_part(Part::default(), false));
        assert_eq!(told(), 0);
        (TOLD_PARTS..MAX_PARTS).for_each(|_| outbox.send_part(Part::default(), false));
        assert_eq!(told(), 1);
        outbox.send_part(Part::default(), true);
        assert_eq!((told(), backlog.ready()), (0, MAX_PARTS), "it has not looked since it was told");
        backlog.looked();
        while let Some(part) = backlog.next_part() {
            backlog.taken_part(part);
        }
        outbox.send_part(Part::default(), true);
        assert_eq!((told(), backlog.ready()), (1, 1));
    }

    #[test]
    fn parts_know_which_messages_they_are_behind() {
        let backlog = Arc::new(Backlog::new(Arc::default()));
        let (outbox, _queue) = outbox(backlog.clone());
        let barrier = || Message { xid: 1, body: Body::BarrierReply };
        outbox.send_part(Part::default(), true);
        outbox.send(barrier());
        outbox.send(barrier());
        outbox.send_part(Part::default(), true);
        let behind: Vec<u64> = std::iter::from_fn(|| backlog.next_part()).map(|part| part.behind).collect();
        assert_eq!(behind, [0, 2]);
    }
}
