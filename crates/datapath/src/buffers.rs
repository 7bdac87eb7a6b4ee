//! Buffers packets in the switch while a controller decides about them (OpenFlow 1.3.5, 7.4.1: `buffer_id`).
//!
//! Buffer ids are given in sequence, and a ring of `n_buffers` places holds the packets. In a full ring the oldest
//! packet is dropped. So a controller that never answers cannot use more memory than the ring, and no packet stays
//! longer than [`MAX_AGE`].
use crate::ChannelId;
use std::time::Duration;
use weir_openflow::model::error::{BadRequest, ErrorType};
use weir_openflow::model::{BufferId, PortNo};
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Maximum time a packet is buffered: longer than a controller needs, short enough to free memory soon.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(10);
/// Buffer id that means "not buffered" (`OFP_NO_BUFFER`).
const NO_BUFFER: u32 = u32::MAX;

/// A buffered packet.
#[derive(Debug)]
pub(crate) struct BufferedPacket {
    number: u32,
    channel: ChannelId,
    pub(crate) in_port: PortNo,
    pub(crate) frame: Frame,
    since: Instant,
}

/// The ring of buffered packets.
#[derive(Debug)]
pub(crate) struct PacketInBuffers {
    /// The packets; a packet's place is its buffer id modulo the ring's length.
    ring: Vec<Option<BufferedPacket>>,
    /// Buffer id of the next packet, which is the number of ids given so far.
    next: u32,
    /// Oldest buffer id that may still hold a packet.
    oldest: u32,
}

impl PacketInBuffers {
    /// Returns a ring for at most `count` packets. With a count of zero, controllers get packets whole.
    pub(crate) fn new(count: u32) -> PacketInBuffers {
        PacketInBuffers { ring: (0..count).map(|_| None).collect(), next: 0, oldest: 0 }
    }

    /// Buffers a packet for a channel and returns its buffer id, or `None` if the ring has no places.
    pub(crate) fn keep(
        &mut self,
        now: Instant,
        channel: ChannelId,
        in_port: PortNo,
        frame: Frame,
        pool: &mut FramePool,
    ) -> Option<BufferId> {
        if self.ring.is_empty() {
            pool.give(frame);
            return None;
        }
        if self.next == NO_BUFFER {
            self.restart(pool);
        }
        let number = self.next;
        self.next += 1;
        let place = self.place(number);
        if let Some(old) = self.ring[place].replace(BufferedPacket { number, channel, in_port, frame, since: now }) {
            pool.give(old.frame);
        }
        Some(BufferId(number))
    }

    /// Removes a channel's packet and returns it.
    ///
    /// # Errors
    /// `OFPBRC_BUFFER_EMPTY` if the packet was taken before, `OFPBRC_BUFFER_UNKNOWN` for any other id.
    pub(crate) fn take(&mut self, channel: ChannelId, id: BufferId) -> Result<BufferedPacket, ErrorType> {
        if id.0 >= self.next || (self.next - id.0) as usize > self.ring.len() {
            return Err(BadRequest::BufferUnknown.into());
        }
        let place = self.place(id.0);
        match &self.ring[place] {
            None => Err(BadRequest::BufferEmpty.into()),
            Some(kept) if kept.channel != channel => Err(BadRequest::BufferUnknown.into()),
            Some(_) => self.ring[place].take().ok_or(BadRequest::BufferEmpty.into()),
        }
    }

    /// Buffers a packet again under its old id. No other packet may have been buffered since it was taken.
    pub(crate) fn put_back(&mut self, kept: BufferedPacket) {
        let place = self.place(kept.number);
        self.ring[place] = Some(kept);
    }

    /// Drops packets buffered for longer than [`MAX_AGE`]. Returns the time when the next packet expires.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Instant> {
        let length = u32::try_from(self.ring.len()).unwrap_or(u32::MAX);
        self.oldest = self.oldest.max(self.next.saturating_sub(length));
        while self.oldest < self.next {
            let place = self.place(self.oldest);
            if let Some(kept) = &self.ring[place] {
                let end = kept.since + MAX_AGE;
                if end > now {
                    return Some(end);
                }
                // The memory is freed instead of returned to the pool, because no packet needs it now.
                self.ring[place] = None;
            }
            self.oldest += 1;
        }
        None
    }

    fn place(&self, number: u32) -> usize {
        number as usize % self.ring.len()
    }

    /// Starts over with the first buffer id after the ids are used up. Drops all buffered packets.
    fn restart(&mut self, pool: &mut FramePool) {
        self.ring.iter_mut().filter_map(Option::take).for_each(|kept| pool.give(kept.frame));
        (self.next, self.oldest) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: ChannelId = ChannelId(1);
    const UNKNOWN: ErrorType = ErrorType::BadRequest(BadRequest::BufferUnknown);

    fn keep(buffers: &mut PacketInBuffers, now: Instant, byte: u8) -> BufferId {
        let frame = Frame::from_bytes(&[byte; 60]);
        buffers.keep(now, CHANNEL, PortNo(3), frame, &mut FramePool::default()).unwrap()
    }

    #[test]
    fn what_is_kept_is_taken_once_and_by_its_channel() {
        let mut buffers = PacketInBuffers::new(4);
        let id = keep(&mut buffers, Instant::ZERO, 7);
        assert_eq!(buffers.take(ChannelId(2), id).unwrap_err(), UNKNOWN);
        let kept = buffers.take(CHANNEL, id).unwrap();
        assert_eq!((kept.in_port, kept.frame.bytes()), (PortNo(3), &[7; 60][..]));
        buffers.put_back(kept);
        assert_eq!(buffers.take(CHANNEL, id).unwrap().frame.bytes(), [7; 60]);
        assert_eq!(buffers.take(CHANNEL, id).unwrap_err(), BadRequest::BufferEmpty.into());
        assert_eq!(buffers.take(CHANNEL, BufferId(id.0 + 1)).unwrap_err(), UNKNOWN);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut buffers = PacketInBuffers::new(4);
        let ids: Vec<BufferId> = (0..6).map(|byte| keep(&mut buffers, Instant::ZERO, byte)).collect();
        let kept: Vec<bool> = ids.iter().map(|id| buffers.take(CHANNEL, *id).is_ok()).collect();
        assert_eq!(kept, [false, false, true, true, true, true]);
    }

    #[test]
    fn nothing_is_kept_for_ever() {
        let mut buffers = PacketInBuffers::new(4);
        let id = keep(&mut buffers, Instant::ZERO, 1);
        let later = Instant::ZERO + Duration::from_secs(4);
        let newer = keep(&mut buffers, later, 2);
        assert_eq!(buffers.expire(later), Some(Instant::ZERO + MAX_AGE));
        assert_eq!(buffers.expire(Instant::ZERO + MAX_AGE), Some(later + MAX_AGE));
        assert!(buffers.take(CHANNEL, id).is_err());
        assert!(buffers.take(CHANNEL, newer).is_ok());
        assert_eq!(buffers.expire(later), None);
    }

    #[test]
    fn numbers_begin_again_before_the_one_that_means_none() {
        let mut buffers = PacketInBuffers::new(4);
        buffers.next = NO_BUFFER - 1;
        assert_eq!(keep(&mut buffers, Instant::ZERO, 1).0, NO_BUFFER - 1);
        assert_eq!(keep(&mut buffers, Instant::ZERO, 1).0, 0);
        assert_eq!(buffers.take(CHANNEL, BufferId(NO_BUFFER - 1)).unwrap_err(), UNKNOWN);
    }
}
