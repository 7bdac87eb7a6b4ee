//! Events of a network for its operator: the newest are kept.
use super::signal::EventSignal;
use crate::app::NetworkEvent;
use crate::state::EventRecord;
use std::collections::{BTreeMap, VecDeque};
use weir_units::Instant;

/// Most events that are kept.
pub const MAX_EVENTS: usize = 4096;

/// The newest events.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    kept: VecDeque<EventRecord>,
    /// Number of the newest event.
    last: u64,
    /// Events since the start by kind, and those of them that are alarms.
    counts: BTreeMap<&'static str, u64>,
    alarms: u64,
    signal: EventSignal,
}

impl EventLog {
    pub(super) fn add(&mut self, now: Instant, kind: &'static str, text: String, alarm: bool) {
        if alarm {
            tracing::warn!(kind, "{text}");
        } else {
            tracing::debug!(kind, "{text}");
        }
        self.last += 1;
        *self.counts.entry(kind).or_default() += 1;
        self.alarms += u64::from(alarm);
        if self.kept.len() >= MAX_EVENTS {
            self.kept.pop_front();
        }
        let time_s = now.since(Instant::ZERO).as_secs_f64();
        self.kept.push_back(EventRecord { number: self.last, time_s, kind: kind.to_owned(), text, alarm });
        self.signal.send(self.last);
    }

    /// Returns the signal that is sent with each new event.
    pub(super) fn signal(&self) -> EventSignal {
        self.signal.clone()
    }

    /// Returns the number of events by kind since the start, and how many of them are alarms.
    pub(super) fn counts(&self) -> (&BTreeMap<&'static str, u64>, u64) {
        (&self.counts, self.alarms)
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns at most `most` events after number `after`, the oldest first.
    pub(super) fn after(&self, after: u64, most: usize) -> Vec<EventRecord> {
        self.kept.iter().filter(|event| event.number > after).take(most).cloned().collect()
    }
}

/// Returns the kind of an event and what happened in words.
pub(super) fn describe(event: &NetworkEvent) -> (&'static str, String) {
    match event {
        NetworkEvent::SwitchUp { dpid } => ("switch-up", format!("switch {dpid:x} has connected")),
        NetworkEvent::SwitchDown { dpid } => ("switch-down", format!("switch {dpid:x} is not connected")),
        NetworkEvent::PortChanged { at, up: true } => ("port-up", format!("port {at} is up")),
        NetworkEvent::PortChanged { at, up: false } => ("port-down", format!("port {at} is down")),
        NetworkEvent::LinkUp { ends: [a, b] } => ("link-up", format!("{a} and {b} are joined")),
        NetworkEvent::LinkDown { ends: [a, b] } => ("link-down", format!("{a} and {b} are no longer joined")),
        NetworkEvent::HostAdded { host } => ("host-added", format!("host {} is at {}", host.mac, host.at)),
        NetworkEvent::HostMoved { host, from } => {
            ("host-moved", format!("host {} moved from {from} to {}", host.mac, host.at))
        }
        NetworkEvent::HostRemoved { host } => ("host-removed", format!("host {} is gone", host.mac)),
        NetworkEvent::HostChanged { host } => {
            let ips: Vec<_> = host.ips.iter().map(ToString::to_string).collect();
            ("host-changed", format!("host {} has {}", host.mac, ips.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn listeners_hear_of_each_event_when_it_can_be_asked_for() {
        let mut log = EventLog::default();
        let (tell, told) = mpsc::channel();
        let signal = log.signal();
        for _ in 0..2 {
            let tell = tell.clone();
            signal.subscribe(move |number| tell.send(number).unwrap());
        }
        for number in 1..=3 {
            log.add(Instant::ZERO, "link-up", String::new(), false);
            assert_eq!(told.try_iter().collect::<Vec<_>>(), [number; 2]);
            assert_eq!(log.after(number - 1, 9).len(), 1);
        }
    }
}
