//! New events for all listeners: the network wakes the feed, which asks for them once and keeps the newest.
use super::ApiState;
use crate::Problem;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use weir_routing::request::{NetworkReply, NetworkRequest};
use weir_routing::state::EventRecord;

/// Most listeners at a time; more are refused.
pub(super) const MAX_LISTENERS: usize = 32;
/// Most events of one question to the network, of a list, and of what a listener is sent at once.
pub(super) const MAX_EVENTS: usize = 1000;
/// Pause after the network has not answered, before it is asked again.
const RETRY_TIME: Duration = Duration::from_millis(100);

/// The newest events, and the listeners that wait for more.
pub(crate) struct EventFeed {
    /// Number of the newest event that the network has told of.
    told: watch::Receiver<u64>,
    recent: Mutex<RecentEvents>,
    /// Number of the newest event that was asked for.
    pub(super) fetched: watch::Sender<u64>,
    pub(super) listeners: watch::Sender<usize>,
    pub(super) places: Arc<Semaphore>,
}

/// The newest events that were asked for, without gaps.
#[derive(Debug, Default)]
struct RecentEvents {
    events: VecDeque<EventRecord>,
    /// Number of the newest event that was asked for; 0 for none.
    last: u64,
}

impl RecentEvents {
    /// Adds events that were asked for after the last one.
    fn add(&mut self, events: Vec<EventRecord>) {
        for event in events {
            if event.number != self.last + 1 {
                self.events.clear();
            }
            self.last = event.number;
            self.events.push_back(event);
        }
        let excess = self.events.len().saturating_sub(MAX_EVENTS);
        self.events.drain(..excess);
    }

    /// Returns the events after a number; `None` if earlier ones of them are not kept here.
    fn after(&self, after: u64) -> Option<Vec<EventRecord>> {
        let first = self.events.front()?.number;
        let skipped = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        Some(self.events.iter().skip(skipped).cloned().collect())
    }
}

impl EventFeed {
    /// Returns a feed without events. `told` is woken by the network.
    pub(crate) fn new(told: watch::Receiver<u64>) -> EventFeed {
        EventFeed {
            told,
            recent: Mutex::default(),
            fetched: watch::Sender::new(0),
            listeners: watch::Sender::new(0),
            places: Arc::new(Semaphore::new(MAX_LISTENERS)),
        }
    }

    /// Returns what hears of each new event.
    pub(super) fn told(&self) -> watch::Receiver<u64> {
        self.told.clone()
    }

    /// Returns the events after a number that were asked for already; `None` if some of them are not kept here.
    pub(super) fn recent_after(&self, after: u64) -> Option<Vec<EventRecord>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).after(after)
    }
}

/// Asks for new events as soon as the network tells of them, as long as there are listeners.
pub(crate) async fn feed_events(state: Arc<ApiState>) {
    let feed = &state.events;
    let mut listeners = feed.listeners.subscribe();
    let mut told = feed.told();
    // The state has the senders of listeners, so there is one.
    while listeners.wait_for(|count| *count > 0).await.is_ok() {
        told.mark_unchanged();
        if let Err(problem) = fetch(&state).await {
            tracing::debug!("no events: {}", problem.detail);
            tokio::time::sleep(RETRY_TIME).await;
            continue;
        }
        tokio::select! {
            // The network is gone when nothing can wake any more.
            changed = told.changed() => if changed.is_err() { return },
            _ = listeners.wait_for(|count| *count == 0) => {}
        }
    }
}

/// Asks for the events after those that are known.
async fn fetch(state: &ApiState) -> Result<(), Problem> {
    let feed = &state.events;
    let last = || feed.recent.lock().unwrap_or_else(PoisonError::into_inner).last;
    loop {
        let events = state.events_after(last(), MAX_EVENTS).await?;
        let is_all = events.len() < MAX_EVENTS;
        feed.recent.lock().unwrap_or_else(PoisonError::into_inner).add(events);
        if is_all {
            break;
        }
    }
    feed.fetched.send_replace(last());
    Ok(())
}

impl ApiState {
    /// Returns at most `most` events after a number, the oldest first.
    pub(super) async fn events_after(&self, after: u64, most: usize) -> Result<Vec<EventRecord>, Problem> {
        match self.backend.ask(NetworkRequest::Events { after, most }).await? {
            NetworkReply::Events { events } => Ok(events),
            _ => Err(Problem::unexpected_reply()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(numbers: std::ops::RangeInclusive<u64>) -> Vec<EventRecord> {
        let event =
            |number| EventRecord { number, time_s: 0.5, kind: "link-up".into(), text: String::new(), alarm: false };
        numbers.map(event).collect()
    }

    fn numbers(recent: &RecentEvents, after: u64) -> Option<Vec<u64>> {
        recent.after(after).map(|events| events.iter().map(|event| event.number).collect())
    }

    #[test]
    fn kept_events_have_no_gaps() {
        let mut recent = RecentEvents::default();
        assert_eq!(numbers(&recent, 0), None);
        recent.add(events(1..=3));
        recent.add(events(4..=5));
        assert_eq!(numbers(&recent, 0), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!((numbers(&recent, 4), numbers(&recent, 5)), (Some(vec![5]), Some(vec![])));
        recent.add(events(9..=10));
        assert_eq!((numbers(&recent, 5), numbers(&recent, 8), recent.last), (None, Some(vec![9, 10]), 10));
        recent.add(events(11..=2000));
        assert_eq!((numbers(&recent, 999), numbers(&recent, 1000).map(|all| all.len())), (None, Some(1000)));
    }
}
