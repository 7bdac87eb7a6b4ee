//! The application that keeps virtual routers on their switches.
//!
//! For each router it installs the entries when its switch comes up, and asks the switch what it has: first whether
//! entries of others overlap, before anything is sent, and then whether the router's are there, after a barrier. It
//! answers ARP, neighbour solicitations and echo requests, asks for neighbours, lets packets wait for them, and sends
//! errors of ICMP. A new configuration is installed by the difference ([`EntryChanges`]).
//!
//! The application takes packet-ins with the cookies of its routers and leaves all others to later applications
//! (`weir_controller::apps::chain`). Flow statistics that another application asks for at the same time can be taken
//! for those of this one; the next check puts that right.
mod application;
mod command;
mod counts;
mod learned;
mod messages;
mod neighbours;
mod router;
mod settings;
mod status;
mod switch;

pub use settings::VirtualRouterSettings;
pub use status::{InstallState, MAX_NAMED_CONFLICTS, VirtualRouterError, VirtualRouterId, VirtualRouterStatus};

use crate::change::{EntryChanges, EntryMap, by_key};
use crate::config::{RouterPortId, VirtualRouterConfig};
use crate::conflict::{EntryConflict, conflicts};
use crate::entries::{RouterEntry, RouterPlacement, entries};
use crate::forwarding::next_hops;
use counts::RouterCounts;
use router::{RouterEffects, RouterHost};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use switch::ControlledSwitch;
use weir_controller::{ConnectionId, ControllerOutbox};
use weir_openflow::Message;
use weir_openflow::model::Body;
use weir_units::Instant;

/// Application with the virtual routers of any number of switches.
///
/// Order of calls: [`VirtualRouterApp::add`] and the like at any time, whether the switch is connected or not; the hub
/// calls the methods of [`ControllerApp`](weir_controller::ControllerApp). Methods that take an outbox append messages
/// to it, which the caller must send. Behind a hub, use the commands instead
/// ([`ControllerHub::command`](weir_controller::ControllerHub::command)):
///
/// | command | answer, in JSON |
/// |---|---|
/// | `vrouter status` | list of [`VirtualRouterStatus`] |
/// | `vrouter add {"dpid": N, "placement": {...}, "config": {...}}` | the router's state |
/// | `vrouter replace {"dpid": N, "number": N, "config": {...}}` | the router's state |
/// | `vrouter remove {"dpid": N, "number": N}` | `{"removed": true}` |
///
/// A command that fails is answered by `{"error": "reason"}`.
#[derive(Debug, Default)]
pub struct VirtualRouterApp {
    settings: VirtualRouterSettings,
    routers: BTreeMap<VirtualRouterId, InstalledRouter>,
    switches: BTreeMap<ConnectionId, ControlledSwitch>,
    connections: BTreeMap<u64, ConnectionId>,
    /// Places of routers that were removed while their switch was away.
    orphans: BTreeMap<u64, Vec<RouterPlacement>>,
    /// Counters of routers that are gone.
    gone: RouterCounts,
}

/// A router and what its switch has of it.
#[derive(Debug)]
struct InstalledRouter {
    host: RouterHost,
    placement: RouterPlacement,
    /// Next hops of the configuration.
    hops: BTreeSet<IpAddr>,
    /// Entries that the switch should have.
    wanted: EntryMap,
    /// Entries that the switch has, as far as known.
    present: EntryMap,
    install: InstallState,
    /// Times that the switch was told, since it last had all entries.
    told: u32,
    conflicts: Vec<String>,
    refusal: Option<String>,
}

impl InstalledRouter {
    /// Returns true if the switch may be told of changes at once.
    fn is_active(&self) -> bool {
        matches!(self.install, InstallState::Installing | InstallState::Installed | InstallState::Differing { .. })
    }
}

impl VirtualRouterApp {
    /// Returns an application without routers.
    pub fn new(settings: VirtualRouterSettings) -> VirtualRouterApp {
        VirtualRouterApp { settings, ..VirtualRouterApp::default() }
    }

    /// Adds a router. If its switch is connected, the switch is asked for its entries; the router's follow unless
    /// others conflict.
    ///
    /// # Errors
    /// Fails without any change if the configuration or the placement is wrong, if another router has the number or the
    /// cookie, or if entries of another router overlap.
    pub fn add(
        &mut self,
        now: Instant,
        dpid: u64,
        config: VirtualRouterConfig,
        placement: RouterPlacement,
        out: &mut ControllerOutbox,
    ) -> Result<VirtualRouterId, VirtualRouterError> {
        let id = VirtualRouterId { dpid, number: placement.number };
        if self.routers.contains_key(&id) {
            return Err(VirtualRouterError::Taken(id));
        }
        if let Some((other, _)) = self.on_switch(dpid).find(|(_, router)| router.placement.cookie == placement.cookie) {
            return Err(VirtualRouterError::CookieTaken { cookie: placement.cookie, other: *other });
        }
        config.check()?;
        let host = RouterHost::new(config, self.settings.clone());
        let wanted = entries(&host.config, &host.learned(), &placement)?;
        refuse(self.conflicts_with_routers(id, &wanted))?;
        let (present, conflicts, wanted) = (EntryMap::new(), Vec::new(), by_key(wanted));
        let (install, told, refusal) = (InstallState::Away, 0, None);
        let hops = next_hops(&host.config);
        let router = InstalledRouter { host, placement, hops, wanted, present, install, told, conflicts, refusal };
        self.routers.insert(id, router);
        self.begin(now, id, out);
        Ok(id)
    }

    /// Gives a router another configuration, while it runs. Entries that stay the same are left alone; the others
    /// change in the order of [`EntryChanges`].
    ///
    /// # Errors
    /// Fails without any change if the configuration is wrong, has no room in the router's place, or if entries of
    /// others overlap with the new ones.
    pub fn replace(
        &mut self,
        now: Instant,
        id: VirtualRouterId,
        config: VirtualRouterConfig,
        out: &mut ControllerOutbox,
    ) -> Result<(), VirtualRouterError> {
        let router = self.routers.get(&id).ok_or(VirtualRouterError::Unknown(id))?;
        config.check()?;
        let wanted = entries(&config, &router.host.learned(), &router.placement)?;
        refuse(self.conflicts_with_routers(id, &wanted))?;
        if router.is_active() {
            let switch = self.connections.get(&id.dpid).and_then(|connection| self.switches.get(connection));
            refuse(switch.map(|switch| conflicts(&switch.others, &wanted)).unwrap_or_default())?;
        }
        let Some(router) = self.routers.get_mut(&id) else { return Err(VirtualRouterError::Unknown(id)) };
        router.hops = next_hops(&config);
        router.host.set_config(config);
        router.told = 0;
        if router.is_active() {
            self.update(now, id, out);
        } else {
            router.wanted = by_key(wanted);
            self.begin(now, id, out);
        }
        Ok(())
    }

    /// Removes a router and its entries. Those of a switch that is away are deleted when it comes up.
    ///
    /// # Errors
    /// Fails if there is no such router.
    pub fn remove(
        &mut self,
        now: Instant,
        id: VirtualRouterId,
        out: &mut ControllerOutbox,
    ) -> Result<(), VirtualRouterError> {
        let mut router = self.routers.remove(&id).ok_or(VirtualRouterError::Unknown(id))?;
        self.gone.add(&router.host.counts);
        match self.connections.get(&id.dpid).copied() {
            Some(connection) => {
                router.wanted.clear();
                send(connection, EntryChanges::between(&router.present, &router.wanted).messages(), out);
                send(connection, messages::delete_all(&router.placement), out);
                self.read(now, connection, out);
            }
            None => self.orphans.entry(id.dpid).or_default().push(router.placement),
        }
        Ok(())
    }

    /// Returns the state of a router.
    pub fn status(&self, id: VirtualRouterId) -> Option<VirtualRouterStatus> {
        let router = self.routers.get(&id)?;
        Some(VirtualRouterStatus {
            id,
            config: router.host.config.clone(),
            placement: router.placement,
            pipeline: router.placement.pipeline(),
            install: router.install.clone(),
            entries: router.wanted.len(),
            neighbours: router.host.learned(),
            conflicts: router.conflicts.clone(),
            refusal: router.refusal.clone(),
            counters: router.host.counts.named().into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        })
    }

    /// Returns the states of all routers, by switch and number.
    pub fn statuses(&self) -> Vec<VirtualRouterStatus> {
        self.routers.keys().filter_map(|id| self.status(*id)).collect()
    }

    /// Returns the entries that the switch of a router should have, in no particular order.
    pub fn wanted(&self, id: VirtualRouterId) -> Option<Vec<RouterEntry>> {
        Some(self.routers.get(&id)?.wanted.values().cloned().collect())
    }

    fn on_switch(&self, dpid: u64) -> impl Iterator<Item = (&VirtualRouterId, &InstalledRouter)> {
        self.routers.range(VirtualRouterId { dpid, number: 0 }..=VirtualRouterId { dpid, number: u16::MAX })
    }

    fn conflicts_with_routers(&self, id: VirtualRouterId, wanted: &[RouterEntry]) -> Vec<EntryConflict> {
        let others = self.on_switch(id.dpid).filter(|(other, _)| **other != id);
        let others: Vec<RouterEntry> = others.flat_map(|(_, router)| router.wanted.values().cloned()).collect();
        conflicts(&others, wanted)
    }

    /// Looks for the router that sent a packet to the controller, and its port.
    fn router_of(&self, dpid: u64, cookie: u64, port: RouterPortId) -> Option<VirtualRouterId> {
        let has =
            |router: &InstalledRouter| router.placement.has_cookie(cookie) && router.host.config.port(port).is_some();
        self.on_switch(dpid).find(|(_, router)| has(router)).map(|(id, _)| *id)
    }

    /// Sends what a router wants to be sent, its new entries in front.
    fn carry_out(&mut self, now: Instant, id: VirtualRouterId, effects: RouterEffects, out: &mut ControllerOutbox) {
        if !effects.changed.is_empty() {
            self.update_neighbours(now, id, &effects.changed, out);
        }
        let (Some(connection), Some(router)) = (self.connections.get(&id.dpid), self.routers.get(&id)) else { return };
        for (port, frame) in effects.frames {
            if let Some(port) = router.host.config.port(port) {
                send(*connection, [messages::packet_out(port, &frame)], out);
            }
        }
    }
}

fn refuse(conflicts: Vec<EntryConflict>) -> Result<(), VirtualRouterError> {
    if conflicts.is_empty() { Ok(()) } else { Err(VirtualRouterError::Conflicts(conflicts)) }
}

fn send(switch: ConnectionId, bodies: impl IntoIterator<Item = Body>, out: &mut ControllerOutbox) {
    out.extend(bodies.into_iter().map(|body| (switch, Message { xid: 0, body })));
}
