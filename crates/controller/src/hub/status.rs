//! Says what the hub's switches, their messages and its application are doing.
use super::{ControllerHub, MessageClass, SwitchConnection};
use crate::ConnectionId;
use crate::status::{AuxiliaryStatus, ClassStatus, ControllerOverview, SwitchStatus};
use std::collections::BTreeMap;
use weir_units::Instant;

/// Beginning of the address of a switch whose connection is encrypted.
const TLS_PEER: &str = "ssl:";

impl ControllerHub {
    /// Returns the state of the hub, without threads. Messages that [`ControllerHub::receive`] handled are not in the
    /// counts by class.
    pub fn status(&self, now: Instant) -> ControllerOverview {
        let mut auxiliaries: BTreeMap<ConnectionId, Vec<&SwitchConnection>> = BTreeMap::new();
        for (_, connection) in self.connections.iter() {
            if let Some((main, _)) = connection.auxiliary {
                auxiliaries.entry(main).or_default().push(connection);
            }
        }
        let none = Vec::new();
        let of = |(id, connection): (ConnectionId, &SwitchConnection)| {
            self.switch_status(now, connection, auxiliaries.get(&id).unwrap_or(&none))
        };
        ControllerOverview {
            switches: self.connections.iter().filter_map(of).collect(),
            applications: self.app.applications(),
            links: self.app.links(now),
            counters: self.counters.clone(),
            ..ControllerOverview::default()
        }
    }

    /// Returns the state of a switch, given its connections; `None` if the main one is not up.
    fn switch_status(
        &self,
        now: Instant,
        main: &SwitchConnection,
        auxiliaries: &[&SwitchConnection],
    ) -> Option<SwitchStatus> {
        let info = main.info.as_ref()?;
        let number = |found: &&SwitchConnection| {
            found.auxiliary.map(|(_, number)| AuxiliaryStatus { number, peer: found.peer.clone() })
        };
        let mut auxiliary: Vec<_> = auxiliaries.iter().filter_map(number).collect();
        auxiliary.sort_by_key(|connection| connection.number);
        let class = |class: MessageClass| {
            let mut sum = ClassStatus::none(class);
            let all = auxiliaries.iter().copied().chain([main]);
            all.for_each(|connection| sum.add(&connection.queues.status(class)));
            sum
        };
        Some(SwitchStatus {
            dpid: info.dpid,
            peer: info.peer.clone(),
            tls: info.peer.starts_with(TLS_PEER),
            version: info.version,
            role: main.role_negotiation.name().to_owned(),
            up_s: now.since(main.up_at).as_secs_f64(),
            thread: self.shard,
            auxiliary,
            classes: MessageClass::ALL.map(class).into(),
        })
    }
}
