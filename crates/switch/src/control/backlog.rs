//! Queues messages from the engine to a controller. The queue is bounded by kind of message, so that a controller
//! that does not read costs the switch neither memory nor time.
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

/// Maximum number of packet-ins queued for a controller; further ones are dropped and counted.
pub(crate) const MAX_PACKET_INS: usize = 1024;
/// Maximum number of flow-removed and port-status messages queued; further ones are dropped and counted.
pub(crate) const MAX_NOTICES: usize = 16_384;
/// Number of waiting replies from which on the channel reads no more from the controller.
pub(crate) const PAUSE_REPLIES: usize = 256;
/// Number of waiting multipart replies from which on no more requests are read or carried out, because each reply may
/// have a hundred kilobytes.
pub(crate) const PAUSE_PARTS: usize = 8;
/// Number of waiting replies from which on no request is carried out and the channel is closed. A channel stops reading
/// at [`PAUSE_REPLIES`], so only requests that were already read, each with a long reply, exceed that number.
pub(crate) const MAX_REPLIES: usize = 4096;

/// Size in bytes from which on a part of a long reply is sent.
pub(crate) const PART_BYTES: usize = 16 << 10;
/// Extra capacity of a part in bytes, for the last entry put in it; enough for entries of ordinary size.
const PART_ROOM: usize = 8 << 10;
/// Maximum number of parts of a long reply that wait for a controller. The engine continues when the controller has
/// read half of them.
const MAX_PARTS: usize = 16;
/// Number of parts from which on the channel is notified. One wake-up serves many parts, because waking another
/// thread takes the engine longer than making a part.
const TOLD_PARTS: usize = MAX_PARTS / 2;

/// Item that the engine puts on a channel's queue.
#[derive(Debug)]
pub(crate) enum ToChannel {
    /// Message to be sent.
    Message(Message),
    /// Parts of a long reply are ready.
    Parts,
    /// Request to close the channel, for this reason.
    Close(&'static str),
    /// Notice that [`Outbox::resume`] was called, so that the channel reads from the controller again.
    Resume,
}

/// Part of a long reply: encoded messages that are sent in one go.
#[derive(Debug, Default)]
pub(crate) struct ReplyPart {
    pub(crate) bytes: Vec<u8>,
    /// Number of messages in `bytes`.
    pub(crate) messages: usize,
    /// Number of messages put on the channel's queue before this part. They are sent first.
    pub(crate) behind: u64,
}

/// A bounded queue of parts in which neither end waits for the other.
#[derive(Debug)]
struct ReplyPartQueue {
    put: Sender<ReplyPart>,
    take: Receiver<ReplyPart>,
}

impl Default for ReplyPartQueue {
    fn default() -> ReplyPartQueue {
        let (put, take) = bounded(MAX_PARTS);
        ReplyPartQueue { put, take }
    }
}

/// Counters of the messages that a channel carried and dropped, over all its connections.
#[derive(Debug, Default)]
pub(crate) struct ChannelCounters {
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    /// Packet-ins queued for the channel.
    pub(crate) packet_ins: AtomicU64,
    pub(crate) packet_ins_dropped: AtomicU64,
    /// Packet-ins not made because the channel was at its rate limit.
    pub(crate) packet_ins_limited: AtomicU64,
    pub(crate) notices_dropped: AtomicU64,
    /// Packet-ins of all channels together.
    pub(crate) all: Arc<PacketInCounters>,
}

/// Packet-ins of all present and past channels. Incremented together with each channel's own counters: the engine may
/// send packet-ins to a channel that has just ended, and those count as well.
#[derive(Debug, Default)]
pub(crate) struct PacketInCounters {
    /// Packet-ins queued for a channel.
    pub(crate) taken: AtomicU64,
    /// Packet-ins dropped because the channel's queue was full.
    pub(crate) dropped: AtomicU64,
    /// Packet-ins not made because the channel was at its rate limit.
    pub(crate) limited: AtomicU64,
}

/// Number of messages that wait for a controller on one connection.
#[derive(Debug)]
pub(crate) struct Backlog {
    packet_ins: AtomicUsize,
    notices: AtomicUsize,
    replies: AtomicUsize,
    /// Multipart replies among `replies`.
    parts: AtomicUsize,
    /// True while the engine has paused reading from the controller: a long reply is sent in parts, or too many
    /// messages wait for the engine.
    is_held: AtomicBool,
    /// True if the engine waits for room for another part of a long reply.
    is_awaited: AtomicBool,
    /// Parts of long replies that are ready to be sent. Each part states how many messages of the channel's queue must
    /// be sent before it (`ReplyPart::behind`).
    ready: ReplyPartQueue,
    /// True if the channel has been notified of parts and has not called [`Backlog::looked`] yet.
    is_told: AtomicBool,
    /// Memory of parts that were sent, reused for new ones, so that neither thread waits for the other's allocator.
    spare: ReplyPartQueue,
    carried: Arc<ChannelCounters>,
    handing: WriteLatencyProbe,
}

/// Measurement of the time from handing a message to a channel (`given`) until it is written to the connection
/// (`written`), in nanoseconds of the switch's clock; 0 if unknown.
#[derive(Debug, Default)]
struct WriteLatencyProbe {
    given: AtomicU64,
    written: AtomicU64,
}

/// The engine's end of a channel's queue.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::UnboundedSender<ToChannel>,
    /// Number of messages queued so far.
    queued: Cell<u64>,
    backlog: Arc<Backlog>,
}

/// Makes the queue to a channel. The queue itself is unbounded; [`Outbox::send`] limits what it accepts.
pub(crate) fn outbox(backlog: Arc<Backlog>) -> (Outbox, mpsc::UnboundedReceiver<ToChannel>) {
    let (queue, receiver) = mpsc::unbounded_channel();
    (Outbox { queue, queued: Cell::new(0), backlog }, receiver)
}

impl Outbox {
    /// Queues a message, or drops and counts it if too many of its kind wait.
    pub(crate) fn send(&self, message: Message) {
        let carried = &self.backlog.carried;
        let kind = kind(&message);
        let (waiting, dropped, max) = match kind {
            QueuedMessageKind::PacketIn => (&self.backlog.packet_ins, &carried.packet_ins_dropped, MAX_PACKET_INS),
            QueuedMessageKind::Notice => (&self.backlog.notices, &carried.notices_dropped, MAX_NOTICES),
            // Bounded by `is_overrun` instead, because no part of a reply may be dropped.
            QueuedMessageKind::Reply => (&self.backlog.replies, &carried.notices_dropped, usize::MAX),
        };
        if waiting.load(Relaxed) >= max {
            dropped.fetch_add(1, Relaxed);
            if kind == QueuedMessageKind::PacketIn {
                carried.all.dropped.fetch_add(1, Relaxed);
            }
            return;
        }
        waiting.fetch_add(1, Relaxed);
        if is_part(&message) {
            self.backlog.parts.fetch_add(1, Relaxed);
        }
        if kind == QueuedMessageKind::PacketIn {
            carried.packet_ins.fetch_add(1, Relaxed);
            carried.all.taken.fetch_add(1, Relaxed);
        }
        self.queued.update(|queued| queued + 1);
        // Fails for a channel that has just ended, which needs no message.
        let _ = self.queue.send(ToChannel::Message(message));
    }

    /// Returns an empty part to fill with messages of a long reply.
    pub(crate) fn spare(&self) -> ReplyPart {
        let new = || ReplyPart { bytes: Vec::with_capacity(PART_BYTES + PART_ROOM), ..ReplyPart::default() };
        self.backlog.spare.take.try_recv().unwrap_or_else(|_| new())
    }

    /// Queues a part of a long reply. The caller has checked [`Outbox::has_room`].
    pub(crate) fn send_part(&self, mut part: ReplyPart, is_last: bool) {
        let backlog = &*self.backlog;
        part.behind = self.queued.get();
        backlog.replies.fetch_add(1, Relaxed);
        backlog.parts.fetch_add(1, Relaxed);
        // There are never more parts than replies, so there is a free place.
        let _ = backlog.ready.put.try_send(part);
        let is_due = is_last || backlog.ready.put.len() >= TOLD_PARTS;
        // Either the channel finds this part when it has looked, or it is notified again.
        if is_due && !backlog.is_told.swap(true, SeqCst) {
            // Fails for a channel that has just ended.
            let _ = self.queue.send(ToChannel::Parts);
        }
    }

    /// Starts a measurement of the time from `given` until everything handed to the channel is written, unless one is
    /// running.
    pub(crate) fn ask_when_written(&self, given: Instant) {
        let handing = &self.backlog.handing;
        let _ = handing.given.compare_exchange(0, given.as_nanos(), SeqCst, Relaxed);
    }

    /// Returns the result of the measurement once: when the message was handed over, and when it was written.
    pub(crate) fn written(&self) -> Option<(Instant, Instant)> {
        let handing = &self.backlog.handing;
        if handing.written.load(Relaxed) == 0 {
            return None;
        }
        // In this order no later measurement is mistaken for a finished one.
        let given = handing.given.swap(0, SeqCst);
        let written = handing.written.swap(0, SeqCst);
        Some((Instant::from_nanos(given), Instant::from_nanos(written)))
    }

    /// Counts packet-ins that the datapath did not make because of the channel's rate limit.
    pub(crate) fn limited(&self, packet_ins: u64) {
        let carried = &self.backlog.carried;
        carried.packet_ins_limited.fetch_add(packet_ins, Relaxed);
        carried.all.limited.fetch_add(packet_ins, Relaxed);
    }

    /// Checks the bounds of [`Backlog::check_bounds`].
    #[cfg(any(test, feature = "schedules"))]
    pub(crate) fn check_bounds(&self) -> Result<(), String> {
        self.backlog.check_bounds()
    }

    /// Returns true if so many notices wait that flow monitors must pause, before any notice is dropped.
    pub(crate) fn is_crowded(&self) -> bool {
        self.backlog.notices.load(Relaxed) >= MAX_NOTICES / 2
    }

    /// Returns true if most notices have been sent, so that flow monitors can continue.
    pub(crate) fn is_notice_room(&self) -> bool {
        self.backlog.notices.load(Relaxed) <= MAX_NOTICES / 4
    }

    /// Returns true if so many replies wait that no request may be carried out.
    pub(crate) fn is_overrun(&self) -> bool {
        self.backlog.replies.load(Relaxed) >= MAX_REPLIES
    }

    /// Returns true if there is room for a part of a long reply. If not, the channel wakes the engine when there is.
    pub(crate) fn has_room(&self) -> bool {
        let has_room = || self.backlog.replies.load(SeqCst) < MAX_PARTS;
        // Either this call sees the parts that the channel takes from now on, or the channel sees that the engine
        // waits.
        has_room() || {
            self.backlog.is_awaited.store(true, SeqCst);
            has_room()
        }
    }

    /// Stops reading from the controller.
    pub(crate) fn pause(&self) {
        self.backlog.is_held.store(true, Relaxed);
    }

    /// Resumes reading from the controller.
    pub(crate) fn resume(&self) {
        self.backlog.is_held.store(false, Relaxed);
        let _ = self.queue.send(ToChannel::Resume);
    }

    /// Ends the channel for `reason`.
    pub(crate) fn close(&self, reason: &'static str) {
        let _ = self.queue.send(ToChannel::Close(reason));
    }
}

impl Backlog {
    /// Returns an empty backlog; lost messages are counted in `carried`.
    pub(crate) fn new(carried: Arc<ChannelCounters>) -> Backlog {
        Backlog {
            packet_ins: 0.into(),
            notices: 0.into(),
            replies: 0.into(),
            parts: 0.into(),
            is_held: false.into(),
            is_awaited: false.into(),
            ready: ReplyPartQueue::default(),
            is_told: false.into(),
            spare: ReplyPartQueue::default(),
            carried,
            handing: WriteLatencyProbe::default(),
        }
    }

    /// Records that all messages handed to the channel were written by `now`.
    pub(crate) fn wrote(&self, now: Instant) {
        if self.handing.given.load(SeqCst) != 0 {
            let _ = self.handing.written.compare_exchange(0, now.as_nanos(), SeqCst, Relaxed);
        }
    }

    /// Records that the channel took `message` from the queue.
    pub(crate) fn taken(&self, message: &Message) {
        let waiting = match kind(message) {
            QueuedMessageKind::PacketIn => &self.packet_ins,
            QueuedMessageKind::Notice => &self.notices,
            QueuedMessageKind::Reply => &self.replies,
        };
        waiting.fetch_sub(1, SeqCst);
        if is_part(message) {
            self.parts.fetch_sub(1, Relaxed);
        }
    }

    /// Records that the channel looks for parts now. The next part notifies it again.
    pub(crate) fn looked(&self) {
        self.is_told.swap(false, SeqCst);
    }

    /// Returns the number of parts of long replies that are ready to be sent.
    pub(crate) fn ready(&self) -> usize {
        self.ready.take.len()
    }

    /// Takes the next part of a long reply. The caller calls [`Backlog::taken_part`] when the part is sent.
    pub(crate) fn next_part(&self) -> Option<ReplyPart> {
        self.ready.take.try_recv().ok()
    }

    /// Records that `part` of a long reply is sent, and keeps its memory for reuse.
    pub(crate) fn taken_part(&self, mut part: ReplyPart) {
        self.replies.fetch_sub(1, SeqCst);
        self.parts.fetch_sub(1, Relaxed);
        part.bytes.clear();
        part.messages = 0;
        // Parts that grew for entries of an unusual size are not kept.
        if part.bytes.capacity() <= PART_BYTES + PART_ROOM {
            let _ = self.spare.put.try_send(part);
        }
    }

    /// Checks that no more messages wait than the bounds allow.
    ///
    /// # Errors
    /// A message with the counts and the bounds.
    #[cfg(any(test, feature = "schedules"))]
    pub(crate) fn check_bounds(&self) -> Result<(), String> {
        let counts = [&self.packet_ins, &self.notices, &self.replies].map(|count| count.load(Relaxed));
        let bounds = [MAX_PACKET_INS, MAX_NOTICES, MAX_REPLIES + BATCH];
        let is_within = counts.iter().zip(bounds).all(|(count, bound)| *count <= bound) && self.ready() <= MAX_PARTS;
        if is_within { Ok(()) } else { Err(format!("{counts:?} messages wait for a channel, {bounds:?} may")) }
    }

    /// Returns true if the channel must not read from the controller now, because the engine has paused it or too many
    /// replies wait.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_held.load(Relaxed)
            || self.replies.load(Relaxed) >= PAUSE_REPLIES
            || self.parts.load(Relaxed) >= PAUSE_PARTS
    }

    /// Returns true, once, if the engine waits for room and there is room again.
    pub(crate) fn is_engine_to_wake(&self) -> bool {
        self.replies.load(SeqCst) <= MAX_PARTS / 2 && self.is_awaited.swap(false, SeqCst)
    }
}

/// Returns true if a message notifies a flow monitor of changes. The reply to the request for a monitor looks
/// alike but carries the request's transaction id.
pub(crate) fn is_flow_update(message: &Message) -> bool {
    let Body::MultipartReply(reply) = &message.body else { return false };
    message.xid == 0 && matches!(reply.body, ReplyBody::FlowMonitor(_))
}

/// Returns true if a message is a part of the reply to a multipart request.
fn is_part(message: &Message) -> bool {
    matches!(message.body, Body::MultipartReply(_)) && !is_flow_update(message)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueuedMessageKind {
    PacketIn,
    Notice,
    Reply,
}

fn kind(message: &Message) -> QueuedMessageKind {
    match &message.body {
        _ if is_flow_update(message) => QueuedMessageKind::Notice,
        Body::PacketIn(_) => QueuedMessageKind::PacketIn,
        Body::Nx(message) => match **message {
            NxMessage::PacketIn(_) | NxMessage::PacketIn2(_) => QueuedMessageKind::PacketIn,
            NxMessage::FlowRemoved(_) | NxMessage::FlowMonitorPaused | NxMessage::FlowMonitorResumed => {
                QueuedMessageKind::Notice
            }
            _ => QueuedMessageKind::Reply,
        },
        Body::FlowRemoved(_)
        | Body::PortStatus(_)
        | Body::RoleStatus(_)
        | Body::TableStatus(_)
        | Body::RequestForward(_)
        | Body::ControllerStatus(_) => QueuedMessageKind::Notice,
        _ => QueuedMessageKind::Reply,
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
        // The reply to a request is not a notice, and is not lost.
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
        let spare: Vec<ReplyPart> = (0..MAX_PARTS).map(|_| outbox.spare()).collect();
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
        (1..TOLD_PARTS).for_each(|_| outbox.send_part(ReplyPart::default(), false));
        assert_eq!(told(), 0);
        (TOLD_PARTS..MAX_PARTS).for_each(|_| outbox.send_part(ReplyPart::default(), false));
        assert_eq!(told(), 1);
        outbox.send_part(ReplyPart::default(), true);
        assert_eq!((told(), backlog.ready()), (0, MAX_PARTS), "it has not looked since it was told");
        backlog.looked();
        while let Some(part) = backlog.next_part() {
            backlog.taken_part(part);
        }
        outbox.send_part(ReplyPart::default(), true);
        assert_eq!((told(), backlog.ready()), (1, 1));
    }

    #[test]
    fn parts_know_which_messages_they_are_behind() {
        let backlog = Arc::new(Backlog::new(Arc::default()));
        let (outbox, _queue) = outbox(backlog.clone());
        let barrier = || Message { xid: 1, body: Body::BarrierReply };
        outbox.send_part(ReplyPart::default(), true);
        outbox.send(barrier());
        outbox.send(barrier());
        outbox.send_part(ReplyPart::default(), true);
        let behind: Vec<u64> = std::iter::from_fn(|| backlog.next_part()).map(|part| part.behind).collect();
        assert_eq!(behind, [0, 2]);
    }
}
