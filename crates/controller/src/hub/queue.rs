//! Keeps the messages of one switch that are not handled yet, by class, bounded.
//!
//! Packet-ins have a limit for each class. At the limit the oldest is dropped, because a packet that has waited longest
//! is the least use: its host has sent it again. Other messages are never dropped. If they are too many, their
//! switch is not read from until there is room again ([`SwitchQueues::is_full`]).
use super::class::{MessageClass, number};
use crate::status::ClassStatus;
use serde::Serialize;
use weir_openflow::codec::MessageHeader;

/// Room that an empty queue keeps for the next messages, in bytes.
const KEPT_BYTES: usize = 64 << 10;
/// Bytes of a packet-in with a short packet, in OpenFlow 1.3.
const USUAL_BYTES: usize = 106;

/// Limits of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueLimit {
    pub(super) messages: usize,
    /// Bytes of all messages. A longer message than that is kept alone.
    pub(super) bytes: usize,
}

/// Reason why a packet-in was dropped before an application saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueDropReason {
    /// The switch sent more than the controller handles, and newer packet-ins took its place.
    Overload,
    /// The port on which the packet had arrived went down while it waited.
    PortDown,
}

/// Drops of a switch's packet-ins: how many, of which class, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QueueDrops {
    /// Class of the packet-ins.
    pub class: MessageClass,
    /// Reason of the drops.
    pub reason: QueueDropReason,
    /// Number of packet-ins.
    pub count: u64,
}

/// Whole messages in order of arrival. A message's length is in its header.
#[derive(Debug, Default)]
pub(super) struct MessageQueue {
    bytes: Vec<u8>,
    /// Offset of the oldest message in `bytes`.
    start: usize,
    count: usize,
}

impl MessageQueue {
    pub(super) fn push(&mut self, message: &[u8]) {
        // Each byte is moved at most once for each time that half of them were taken.
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..std::mem::take(&mut self.start));
        }
        self.bytes.extend_from_slice(message);
        self.count += 1;
    }

    pub(super) fn front(&self) -> Option<&[u8]> {
        let rest = &self.bytes[self.start..];
        MessageHeader::read(rest).map(|header| &rest[..usize::from(header.length)])
    }

    pub(super) fn pop(&mut self) {
        let Some(length) = self.front().map(<[u8]>::len) else { return };
        self.start += length;
        self.count -= 1;
        if self.count == 0 {
            self.start = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn byte_len(&self) -> usize {
        self.bytes.len() - self.start
    }

    fn is_over(&self, limit: QueueLimit) -> bool {
        self.count > limit.messages || (self.byte_len() > limit.bytes && self.count > 1)
    }

    /// Removes the messages that `wanted` refuses. Returns their number.
    fn retain(&mut self, wanted: impl Fn(&[u8]) -> bool) -> u64 {
        let mut kept = MessageQueue::default();
        let before = self.count;
        while let Some(message) = self.front() {
            if wanted(message) {
                kept.push(message);
            }
            self.pop();
        }
        *self = kept;
        (before - self.count) as u64
    }
}

/// Queues of one switch.
#[derive(Debug, Default)]
pub(super) struct SwitchQueues {
    queues: [MessageQueue; MessageClass::ALL.len()],
    drops: [[u64; 2]; MessageClass::ALL.len()],
    counts: [ClassCounts; MessageClass::ALL.len()],
}

/// Counts of a class besides drops.
#[derive(Debug, Clone, Copy, Default)]
struct ClassCounts {
    received: u64,
    handled: u64,
    answered: u64,
}

impl SwitchQueues {
    /// Adds a message. Returns the number of packet-ins dropped for it.
    pub(super) fn push(&mut self, class: MessageClass, message: &[u8], limit: QueueLimit) -> u64 {
        self.counts[number(class)].received += 1;
        let queue = &mut self.queues[number(class)];
        queue.push(message);
        let mut dropped = 0;
        while class.may_drop() && queue.is_over(limit) {
            queue.pop();
            dropped += 1;
        }
        self.drops[number(class)][QueueDropReason::Overload as usize] += dropped;
        dropped
    }

    pub(super) fn queue(&mut self, class: MessageClass) -> &mut MessageQueue {
        &mut self.queues[number(class)]
    }

    /// Returns true if messages that may not be dropped reach a limit.
    pub(super) fn is_full(&self, limit: QueueLimit) -> bool {
        let of_class = |class: &MessageClass| &self.queues[number(*class)];
        let kept = MessageClass::ALL.iter().filter(|class| !class.may_drop()).map(of_class);
        kept.into_iter().any(|queue| queue.len() >= limit.messages || queue.byte_len() >= limit.bytes)
    }

    /// Returns the bytes of packet-ins for which there is room without a drop, 0 if a queue is half full or more. New
    /// messages are taken to be as long as those that wait.
    pub(super) fn room(&self, limit: QueueLimit) -> usize {
        let of_class = |class: &MessageClass| &self.queues[number(*class)];
        let rooms = MessageClass::ALL.iter().filter(|class| class.may_drop()).map(of_class).map(|queue| {
            let (count, bytes) = (queue.len(), queue.byte_len());
            if count > limit.messages / 2 || bytes > limit.bytes / 2 {
                return 0;
            }
            let mean_bytes = bytes.checked_div(count).unwrap_or(USUAL_BYTES);
            (limit.bytes - bytes).min((limit.messages - count) * mean_bytes)
        });
        rooms.min().unwrap_or(0)
    }

    /// Returns true if a message waits that can be handled: any, or if `only_urgent`, one that is no packet-in.
    pub(super) fn has_work(&self, without_packets: bool) -> bool {
        let mut waiting = MessageClass::ALL.iter().filter(|class| self.queues[number(**class)].len() > 0);
        waiting.any(|class| !(without_packets && class.may_drop()))
    }

    pub(super) fn has_urgent(&self) -> bool {
        self.queues[number(MessageClass::Control)].len() > 0
    }

    /// Drops the packet-ins that `is_stale` accepts, because their port went down. Returns their number.
    pub(super) fn drop_stale(&mut self, is_stale: impl Fn(&[u8]) -> bool) -> u64 {
        let mut dropped = 0;
        for class in MessageClass::ALL.into_iter().filter(|class| class.may_drop()) {
            let stale = self.queues[number(class)].retain(|message| !is_stale(message));
            self.drops[number(class)][QueueDropReason::PortDown as usize] += stale;
            dropped += stale;
        }
        dropped
    }

    /// Counts a message that was taken and handled.
    pub(super) fn count_handled(&mut self, class: MessageClass, is_answered: bool) {
        let counts = &mut self.counts[number(class)];
        counts.handled += 1;
        counts.answered += u64::from(is_answered);
    }

    /// Returns what became of the messages of a class.
    pub(super) fn status(&self, class: MessageClass) -> ClassStatus {
        let (queue, counts, drops) =
            (&self.queues[number(class)], self.counts[number(class)], self.drops[number(class)]);
        ClassStatus {
            class,
            received: counts.received,
            waiting: queue.len(),
            waiting_bytes: queue.byte_len(),
            dropped_overload: drops[QueueDropReason::Overload as usize],
            dropped_port_down: drops[QueueDropReason::PortDown as usize],
            handled: counts.handled,
            answered: counts.answered,
        }
    }

    /// Returns messages and bytes that wait.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let of_all = |of: fn(&MessageQueue) -> usize| self.queues.iter().map(of).sum();
        (of_all(MessageQueue::len), of_all(MessageQueue::byte_len))
    }

    /// Returns the drops so far, by class and reason.
    pub(super) fn drops(&self) -> Vec<QueueDrops> {
        let reasons = [QueueDropReason::Overload, QueueDropReason::PortDown];
        let each = MessageClass::ALL.into_iter().flat_map(|class| reasons.map(|reason| (class, reason)));
        each.map(|(class, reason)| QueueDrops { class, reason, count: self.drops[number(class)][reason as usize] })
            .filter(|drops| drops.count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: QueueLimit = QueueLimit { messages: 3, bytes: 1000 };

    fn message(mark: u8, length: u16) -> Vec<u8> {
        let [high, low] = length.to_be_bytes();
        let mut message = vec![4, 10, high, low];
        message.resize(usize::from(length), mark);
        message
    }

    fn marks(queue: &mut MessageQueue) -> Vec<u8> {
        let mut marks = Vec::new();
        while let Some(front) = queue.front() {
            marks.push(front[4]);
            queue.pop();
        }
        marks
    }

    #[test]
    fn the_newest_are_kept() {
        let mut queues = SwitchQueues::default();
        for mark in 1..=9 {
            queues.push(MessageClass::Packet, &message(mark, 8), LIMIT);
        }
        queues.push(MessageClass::Resolution, &message(7, 8), LIMIT);
        assert_eq!((marks(queues.queue(MessageClass::Packet)), queues.waiting()), (vec![7, 8, 9], (1, 8)));
        let expected = QueueDrops { class: MessageClass::Packet, reason: QueueDropReason::Overload, count: 6 };
        assert_eq!(queues.drops(), [expected]);
    }

    #[test]
    fn bytes_are_limited_but_one_message_always_fits() {
        let mut queues = SwitchQueues::default();
        assert_eq!(queues.push(MessageClass::Packet, &message(1, 600), LIMIT), 0);
        assert_eq!(queues.push(MessageClass::Packet, &message(2, 600), LIMIT), 1);
        assert_eq!(queues.push(MessageClass::Packet, &message(3, 60_000), LIMIT), 1);
        assert_eq!(marks(queues.queue(MessageClass::Packet)), [3]);
    }

    #[test]
    fn answers_are_never_dropped_and_say_when_there_are_too_many() {
        let mut queues = SwitchQueues::default();
        for mark in 1..=3 {
            assert!(!queues.is_full(LIMIT));
            assert_eq!(queues.push(MessageClass::Control, &message(mark, 8), LIMIT), 0);
        }
        assert!(queues.is_full(LIMIT) && queues.has_urgent());
        assert_eq!(marks(queues.queue(MessageClass::Control)), [1, 2, 3]);
        assert!(!queues.is_full(LIMIT) && !queues.has_work(false));
    }

    #[test]
    fn stale_packets_go() {
        let mut queues = SwitchQueues::default();
        for mark in 1..=3 {
            queues.push(MessageClass::Packet, &message(mark, 8), LIMIT);
        }
        assert_eq!(queues.drop_stale(|message| message[4] == 2), 1);
        assert_eq!(marks(queues.queue(MessageClass::Packet)), [1, 3]);
    }

    #[test]
    fn memory_follows_what_waits() {
        let mut queue = MessageQueue::default();
        for round in 0..10_000 {
            queue.push(&message(0, 100));
            if round >= 10 {
                queue.pop();
            }
        }
        assert!(queue.len() == 10 && queue.bytes.capacity() < 8192, "{}", queue.bytes.capacity());
        (0..10_000).for_each(|_| queue.push(&message(0, 100)));
        marks(&mut queue);
        assert!(queue.bytes.capacity() <= KEPT_BYTES, "{}", queue.bytes.capacity());
    }
}
