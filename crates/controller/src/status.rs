//! State of a running controller for its operator: switches and their messages by class, threads, applications, links.
use crate::hub::{ControllerCounters, MessageClass};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_openflow::Version;
use weir_openflow::model::PortNo;

/// State of a controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControllerOverview {
    /// Name under which the controller is asked; empty without one.
    pub name: String,
    /// Seconds since the start.
    pub uptime_s: f64,
    /// Addresses on which it listens, with the actual ports.
    pub listen: Vec<String>,
    /// Switches that are up, in order of their datapath ids.
    pub switches: Vec<SwitchStatus>,
    /// Threads, in order of their numbers.
    pub threads: Vec<ThreadStatus>,
    /// Applications in the order in which they see a packet-in, with their counters over all threads.
    pub applications: Vec<ApplicationStatus>,
    /// Links found between switches; `None` if no application looks for them.
    pub links: Option<Vec<LinkStatus>>,
    /// Counters over all switches, also those that are gone.
    pub counters: ControllerCounters,
}

/// A switch that is up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchStatus {
    /// Datapath id of the switch.
    pub dpid: u64,
    /// Address of the switch's end.
    pub peer: String,
    /// True if the main connection is encrypted.
    pub tls: bool,
    /// OpenFlow version in use.
    pub version: Version,
    /// Role of this controller: `equal`, `master` or `slave`.
    pub role: String,
    /// Seconds since the switch completed its handshake.
    pub up_s: f64,
    /// Number of the thread that serves it.
    pub thread: usize,
    /// Auxiliary connections, in order of their numbers.
    pub auxiliary: Vec<AuxiliaryStatus>,
    /// Messages over all present connections of the switch, each class once, the most urgent first.
    pub classes: Vec<ClassStatus>,
}

/// An auxiliary connection of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuxiliaryStatus {
    /// Number of the connection.
    pub number: u8,
    /// Address of the switch's end.
    pub peer: String,
}

/// Messages of a class from a switch, since it connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassStatus {
    /// Class of the messages.
    pub class: MessageClass,
    /// Messages received.
    pub received: u64,
    /// Messages that wait for their turn.
    pub waiting: usize,
    /// Bytes of these messages.
    pub waiting_bytes: usize,
    /// Packet-ins dropped because the switch sent more than is handled.
    pub dropped_overload: u64,
    /// Packet-ins dropped because their port went down while they waited.
    pub dropped_port_down: u64,
    /// Messages handled.
    pub handled: u64,
    /// Messages of these upon which the controller sent something, to this switch or another.
    pub answered: u64,
}

impl ClassStatus {
    pub(crate) fn none(class: MessageClass) -> ClassStatus {
        let (received, waiting, waiting_bytes, dropped_overload, dropped_port_down, handled, answered) =
            Default::default();
        ClassStatus { class, received, waiting, waiting_bytes, dropped_overload, dropped_port_down, handled, answered }
    }

    /// Adds another connection's messages of the class.
    pub(crate) fn add(&mut self, other: &ClassStatus) {
        self.received += other.received;
        self.waiting += other.waiting;
        self.waiting_bytes += other.waiting_bytes;
        self.dropped_overload += other.dropped_overload;
        self.dropped_port_down += other.dropped_port_down;
        self.handled += other.handled;
        self.answered += other.answered;
    }
}

/// A thread of the controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadStatus {
    /// Number of the thread, from 0.
    pub thread: usize,
    /// Switches that it serves.
    pub switches: usize,
    /// Connections that it has: of switches, auxiliary ones, and such that are not up yet.
    pub connections: usize,
    /// Part of the last second in which it worked and did not wait, `0..=1`.
    pub busy: f64,
    /// Part of the time since its start in which it worked.
    pub busy_since_start: f64,
    /// Turns of its loop in which it had something to do.
    pub turns: u64,
}

/// An application and its counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationStatus {
    /// Name of the application.
    pub name: String,
    /// Counters of the application by name.
    pub counters: BTreeMap<String, u64>,
}

impl ApplicationStatus {
    /// Returns an application with these counters.
    pub fn new(name: &str, counters: impl IntoIterator<Item = (&'static str, u64)>) -> ApplicationStatus {
        let counters = counters.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        ApplicationStatus { name: name.to_owned(), counters }
    }
}

/// A link found between two switches, by the end that sent a probe and the end that received it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Datapath id of the lesser end.
    pub from: u64,
    /// Port of this end.
    pub from_port: PortNo,
    /// Datapath id of the greater end.
    pub to: u64,
    /// Port of this end.
    pub to_port: PortNo,
    /// Seconds since a probe came over it.
    pub heard_s: f64,
    /// Shortest time that a packet lately took from the lesser to the greater end, in microseconds; `None` if unknown.
    pub delay_us: Option<f64>,
    /// True if packets do not use it, because it would close a loop.
    pub blocked: bool,
    /// True if a port at one of its ends is down.
    pub down: bool,
    /// True if it went down again and again, so that packets use it only where no other way is.
    pub damped: bool,
}

impl ControllerOverview {
    /// Adds what another thread of the same controller has.
    pub(crate) fn add(&mut self, other: ControllerOverview) {
        self.switches.extend(other.switches);
        self.threads.extend(other.threads);
        self.counters.add(&other.counters);
        if let Some(more) = other.links {
            self.links.get_or_insert_default().extend(more);
        }
        // All threads have the same applications, except one whose application is gone.
        for (number, app) in other.applications.into_iter().enumerate() {
            match self.applications.get_mut(number) {
                Some(known) => {
                    for (name, count) in app.counters {
                        *known.counters.entry(name).or_default() += count;
                    }
                }
                None => self.applications.push(app),
            }
        }
    }

    /// Puts switches and links in order.
    pub(crate) fn sort(&mut self) {
        self.switches.sort_by_key(|switch| switch.dpid);
        self.links.iter_mut().for_each(|links| links.sort_by_key(|link| (link.from, link.from_port, link.to)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_added_up() {
        let app = |count| ApplicationStatus::new("a", [("seen", count)]);
        let link = LinkStatus {
            from: 1,
            from_port: PortNo(1),
            to: 2,
            to_port: PortNo(1),
            heard_s: 0.5,
            delay_us: Some(20.0),
            blocked: false,
            down: false,
            damped: false,
        };
        let later = LinkStatus { from: 0, ..link.clone() };
        let one = |count, links| ControllerOverview { applications: vec![app(count)], links, ..Default::default() };
        let mut sum = ControllerOverview::default();
        [one(2, None), one(3, Some(vec![link.clone()])), one(0, Some(vec![later.clone()]))]
            .into_iter()
            .for_each(|part| sum.add(part));
        sum.sort();
        assert_eq!((sum.applications, sum.links), (vec![app(5)], Some(vec![later, link])));
    }
}
