//! Remembers which frames were flooded lately, so that no copy of a flooded frame circles, whatever becomes of the
//! [`paths`](super::paths). The lock of a path ends copies only while the path is known, and a path may be forgotten at
//! any time: after a notice of lost paths, which anyone can make up, or because a controller is silent.
//!
//! For [`LOCK_TIME`] after a switch flooded a frame, a frame of the same bytes is
//!
//! * a copy if it arrives on another port than the first one, and dropped;
//! * a retransmission if it arrives on the same port, and flooded again, but at most [`MOST_REPEATS`] times until none
//!   was flooded for [`LOCK_TIME`].
//!
//! Why this ends all circling, if a frame needs less than [`LOCK_TIME`] for the longest path without a ring:
//!
//! * A frame that every switch floods (to a group, or to a station that none knows) is taken by each switch from one
//!   port, thus from one neighbour, which took it before. The switch at its sender takes it only from the sender's
//!   port, which no neighbour is on. Followed back, a copy has therefore come from the sender over switches that all
//!   differ. Each switch floods each transmission of the sender at most once, in any topology.
//! * A frame to a station may be flooded by some switches of a ring, and sent to a known port by the others. On each
//!   turn it passes a switch that floods it, and that switch counts it as a retransmission. The ring ends after
//!   [`MOST_REPEATS`] turns.
//! * A frame that all switches of a ring send to a known port is one frame and never becomes more. It could circle only
//!   while the paths to its destination form a ring, which the ports of first arrivals do not, and while its source's
//!   lock is forgotten at the switch where it came into the ring. The destination's next flooded frame ends that.
//!
//! A frame also counts as a copy if it would move its source to another port and was flooded lately, even if the port
//! of its destination has become known since.
//!
//! Retransmissions still arrive: TCP retransmits the same bytes after 200 ms, 400 ms and more, and resolvers ask again
//! after 1 s, or after 100 ms if set so. They come in on the same port, unless the path has broken that the first one
//! took. A port that lost its link is forgotten here, too. A switch further on keeps its links. It accepts new frames
//! from the other path at once, and a frame that it flooded before the break after [`LOCK_TIME`].
//!
//! No fresh memory is given up for a new one, because then a sender of many different frames could make copies circle
//! again. Instead each port has a number of frames that may be flooded in [`LOCK_TIME`]. More are dropped.
use super::paths::{LOCK_TIME, Transport};
use foldhash::fast::RandomState;
use std::collections::VecDeque;
use std::hash::BuildHasher;
use weir_openflow::model::PortNo;
use weir_units::Instant;

/// Maximum number of times that a frame is flooded again.
pub(super) const MOST_REPEATS: u8 = 2;
/// Maximum number of frames from all ports that are remembered. Those from LOCAL come in addition, so that no neighbour
/// can keep the switch itself from asking for its controller.
const MOST: usize = 1024;
/// Maximum number of frames from one port that are remembered.
pub(super) const MOST_OF_PORT: usize = 256;

/// Verdict about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FloodVerdict {
    /// Not a copy: to be sent on.
    New,
    /// A copy of a frame that was flooded lately.
    Copy,
    /// Frame to be flooded that is one too many for its port.
    Excess,
}

/// A frame that was flooded.
#[derive(Debug, Clone, Copy)]
struct Flood {
    /// Hash of its bytes.
    hash: u64,
    /// Port on which it arrived first.
    port: PortNo,
    /// Time at which it was flooded last.
    at: Instant,
    /// Number of times that it was flooded again.
    repeats: u8,
}

/// Frames that were flooded lately.
#[derive(Debug, Default)]
pub(super) struct RecentFloods {
    /// Hash function with a key of its own in each switch: a sender does not know which frames have one hash.
    hasher: RandomState,
    /// Ascending by time.
    floods: VecDeque<Flood>,
}

impl RecentFloods {
    /// Judges a frame, and remembers it if it is to be flooded.
    pub(super) fn admit(&mut self, now: Instant, in_port: PortNo, bytes: &[u8], transport: Transport) -> FloodVerdict {
        self.expire(now);
        let hash = self.hash(bytes);
        let mut flood = Flood { hash, port: in_port, at: now, repeats: 0 };
        if let Some(place) = self.floods.iter().position(|known| known.hash == hash) {
            let known = self.floods[place];
            if known.port != in_port || known.repeats == MOST_REPEATS {
                return FloodVerdict::Copy;
            }
            if transport == Transport::Directed {
                return FloodVerdict::New;
            }
            self.floods.remove(place);
            flood.repeats = known.repeats + 1;
        } else if transport == Transport::Directed {
            return FloodVerdict::New;
        } else if !self.has_room(in_port) {
            return FloodVerdict::Excess;
        }
        self.floods.push_back(flood);
        FloodVerdict::New
    }

    /// Forgets the frames that arrived on a port without link: they may come again on another.
    pub(super) fn forget_port(&mut self, port: PortNo) {
        self.floods.retain(|flood| flood.port != port);
    }

    fn expire(&mut self, now: Instant) {
        while self.floods.pop_front_if(|oldest| now.since(oldest.at) >= LOCK_TIME).is_some() {}
    }

    fn has_room(&self, port: PortNo) -> bool {
        let count = |is_meant: &dyn Fn(PortNo) -> bool| self.floods.iter().filter(|flood| is_meant(flood.port)).count();
        let of_neighbours = || count(&|other| other != PortNo::LOCAL);
        count(&|other| other == port) < MOST_OF_PORT && (port == PortNo::LOCAL || of_neighbours() < MOST)
    }

    /// Returns the hash of a frame, which does not depend on the zeros that pad short frames on some links.
    fn hash(&self, bytes: &[u8]) -> u64 {
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.hasher.hash_one(&bytes[..end])
    }
}
