//! Keeps what a switch learned of stations, which are the senders of frames: at most a set number of them, each until
//! no frame has come from it for [`MAX_AGE`].
//!
//! To make room for a new station, the station learned first is removed. A station from which frames came since it was
//! learned moves to the end of the order instead, once (second chance). So neither learning nor making room examines
//! all stations at once.
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;
use std::time::Duration;
use weir_units::Instant;

/// Maximum time for which a station is kept without frames from it (IEEE 802.1Q-2018, 8.8.3: ageing time).
pub(crate) const MAX_AGE: Duration = Duration::from_secs(300);

/// State of a station, with the time at which it was heard.
pub(crate) trait HeardStation {
    /// Returns the arrival time of the latest frame from the station.
    fn heard_at(&self) -> Instant;
}

/// Stations by a number that stands for their address, each with what is known of it.
#[derive(Debug)]
pub(crate) struct StationTable<S> {
    stations: HashMap<u64, S>,
    /// Learning order. Contains each station once, with the arrival time of a frame from it (possibly not the latest).
    order: VecDeque<(Instant, u64)>,
    max: usize,
}

impl<S: HeardStation> StationTable<S> {
    /// Returns an empty table for at most `max` stations.
    pub(crate) fn new(max: usize) -> StationTable<S> {
        StationTable { stations: HashMap::new(), order: VecDeque::new(), max }
    }

    /// Returns what is known of a station.
    pub(crate) fn get(&self, station: u64) -> Option<&S> {
        self.stations.get(&station)
    }

    /// Returns what is known of a station, mutably.
    pub(crate) fn get_mut(&mut self, station: u64) -> Option<&mut S> {
        self.stations.get_mut(&station)
    }

    /// Adds a station that the table does not have. A table for no stations stays empty.
    pub(crate) fn add(&mut self, station: u64, state: S) {
        if self.max == 0 {
            return;
        }
        if self.stations.len() >= self.max {
            self.make_room();
        }
        self.order.push_back((state.heard_at(), station));
        self.stations.insert(station, state);
    }

    /// Iterates over the stations in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &S)> {
        self.stations.iter().map(|(station, state)| (*station, state))
    }

    /// Removes the stations for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&S) -> bool) {
        self.stations.retain(|_, state| keep(state));
        self.order.retain(|(_, station)| self.stations.contains_key(station));
    }

    /// Removes stations from which no frame came for [`MAX_AGE`], examining at most `most` stations. Returns the time
    /// of the next call, or `None` if no station is left.
    pub(crate) fn expire(&mut self, now: Instant, most: usize) -> Option<Instant> {
        for _ in 0..most {
            let (at, station) = *self.order.front()?;
            if now.since(at) < MAX_AGE {
                return Some(at + MAX_AGE);
            }
            self.order.pop_front();
            self.keep_if(station, |state| now.since(state.heard_at()) < MAX_AGE);
        }
        self.order.front().map(|(at, _)| *at + MAX_AGE)
    }

    /// Removes the first station of the learning order from which no frame came since it was put there. The loop ends
    /// because each station moves to the end of the order at most once.
    fn make_room(&mut self) {
        while self.stations.len() >= self.max {
            let Some((at, station)) = self.order.pop_front() else { return };
            self.keep_if(station, |state| state.heard_at() > at);
        }
    }

    /// Puts a station that was removed from the front of the learning order at its end, if `keep` returns true;
    /// otherwise removes the station from the table.
    fn keep_if(&mut self, station: u64, keep: impl Fn(&S) -> bool) {
        match self.stations.get(&station) {
            Some(state) if keep(state) => self.order.push_back((state.heard_at(), station)),
            _ => drop(self.stations.remove(&station)),
        }
    }
}
