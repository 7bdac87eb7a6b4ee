//! A switch with routers: reads what it has, tells it what changes, and compares.
use super::{InstallState, InstalledRouter, MAX_NAMED_CONFLICTS, VirtualRouterApp, VirtualRouterId, send};
use crate::change::{EntryChanges, EntryMap, by_key};
use crate::conflict::conflicts;
use crate::entries::{RouterEntry, RouterPlacement, entries, neighbour_entries};
use std::net::IpAddr;
use std::time::Duration;
use weir_controller::{ConnectionId, ControllerOutbox};
use weir_openflow::Version;
use weir_openflow::model::multipart::{FlowRequest, FlowStats, MultipartRequest, RequestBody};
use weir_openflow::model::{Body, ErrorMessage};
use weir_units::Instant;

/// Time from a change of neighbours to the question what the switch has.
const SETTLING: Duration = Duration::from_secs(1);
/// Times that a switch is told what it should have before it counts as one that differs.
const MAX_TOLD: u32 = 2;
/// Type of flow-mods in the data of an error (OpenFlow 1.3.5, A.1).
const FLOW_MOD: u8 = 14;

/// A switch that is connected.
#[derive(Debug)]
pub(super) struct ControlledSwitch {
    pub(super) dpid: u64,
    version: Version,
    n_tables: u8,
    /// Entries read so far; `None` if the switch is not asked.
    reading: Option<Vec<FlowStats>>,
    /// Time of the question.
    asked: Instant,
    /// True if entries changed since the switch was asked.
    is_stale: bool,
    /// Entries that are of no router, as of the last time they were read.
    pub(super) others: Vec<RouterEntry>,
    /// Time of the next comparison.
    pub(super) next_check: Instant,
}

impl ControlledSwitch {
    pub(super) fn new(now: Instant, dpid: u64, version: Version, n_tables: u8) -> ControlledSwitch {
        let (reading, is_stale, others) = (None, false, Vec::new());
        ControlledSwitch { dpid, version, n_tables, reading, asked: now, is_stale, others, next_check: now }
    }

    /// Returns the reason for which the switch cannot have a router.
    fn lacks(&self, placement: &RouterPlacement) -> Option<String> {
        if self.version < Version::V13 {
            return Some(format!("found OpenFlow {}, expected 1.3 or later", self.version.name()));
        }
        let (last, n_tables) = (placement.last_table(), self.n_tables);
        (last >= n_tables).then(|| format!("found {n_tables} tables, expected table {last} to be there"))
    }
}

impl VirtualRouterApp {
    /// Begins with a router whose switch may be connected: its entries are read first.
    pub(super) fn begin(&mut self, now: Instant, id: VirtualRouterId, out: &mut ControllerOutbox) {
        let Some(router) = self.routers.get_mut(&id) else { return };
        (router.told, router.refusal) = (0, None);
        router.present.clear();
        let found = self.connections.get(&id.dpid).and_then(|found| Some((*found, self.switches.get(found)?)));
        let Some((connection, switch)) = found else {
            router.install = InstallState::Away;
            return;
        };
        if let Some(reason) = switch.lacks(&router.placement) {
            router.install = InstallState::Unsupported { reason };
            return;
        }
        router.install = InstallState::Reading;
        send(connection, [Body::GetAsyncRequest], out);
        self.read(now, connection, out);
    }

    /// Asks a switch for its entries, or asks again if something has changed since it was asked.
    pub(super) fn read(&mut self, now: Instant, connection: ConnectionId, out: &mut ControllerOutbox) {
        let Some(switch) = self.switches.get_mut(&connection) else { return };
        switch.next_check = now + self.settings.check_interval.max(Duration::from_secs(1));
        if switch.reading.is_some() {
            switch.is_stale = true;
            return;
        }
        (switch.reading, switch.asked, switch.is_stale) = (Some(Vec::new()), now, false);
        let request = MultipartRequest { more: false, body: RequestBody::Flow(FlowRequest::all()) };
        send(connection, [Body::MultipartRequest(request)], out);
    }

    /// Compares the switches that are due.
    pub(super) fn check(&mut self, now: Instant, out: &mut ControllerOutbox) {
        let due = self.switches.iter().filter(|(_, switch)| switch.next_check <= now).map(|(id, _)| *id);
        for connection in due.collect::<Vec<_>>() {
            let Some(switch) = self.switches.get_mut(&connection) else { continue };
            if now.since(switch.asked) >= self.settings.check_interval {
                // A switch that has not answered for so long is asked anew.
                switch.reading = None;
            }
            let dpid = switch.dpid;
            let of_switch = self.routers.iter_mut().filter(|(id, _)| id.dpid == dpid);
            of_switch.for_each(|(_, router)| router.told = 0);
            self.read(now, connection, out);
        }
    }

    /// Takes a part of the entries that a switch has.
    pub(super) fn handle_flows(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        found: &[FlowStats],
        more: bool,
        out: &mut ControllerOutbox,
    ) {
        let Some(switch) = self.switches.get_mut(&connection) else { return };
        let Some(reading) = switch.reading.as_mut() else { return };
        reading.extend(found.iter().cloned());
        if more {
            return;
        }
        let found = switch.reading.take().unwrap_or_default();
        if switch.is_stale {
            return self.read(now, connection, out);
        }
        let dpid = switch.dpid;
        let found: Vec<RouterEntry> = found.iter().map(RouterEntry::of).collect();
        let is_of_router =
            |entry: &&RouterEntry| !self.on_switch(dpid).any(|(_, r)| r.placement.has_cookie(entry.cookie));
        let others: Vec<RouterEntry> = found.iter().filter(is_of_router).cloned().collect();
        let mut has_told = false;
        for (_, router) in self.routers.iter_mut().filter(|(id, _)| id.dpid == dpid) {
            let messages = router.compare(&found, &others);
            has_told |= !messages.is_empty();
            send(connection, messages, out);
        }
        if let Some(switch) = self.switches.get_mut(&connection) {
            switch.others = others;
        }
        if has_told {
            self.read(now, connection, out);
        }
    }

    /// Tells the switch of a router what has changed.
    pub(super) fn update(&mut self, now: Instant, id: VirtualRouterId, out: &mut ControllerOutbox) {
        let Some(router) = self.routers.get_mut(&id) else { return };
        match entries(&router.host.config, &router.host.learned(), &router.placement) {
            Ok(wanted) => router.wanted = by_key(wanted),
            // The placement had room for the configuration, but has none for this neighbour: its packets go through the
            // controller.
            Err(error) => {
                router.refusal = Some(error.to_string());
                return;
            }
        }
        let (Some(connection), true) = (self.connections.get(&id.dpid).copied(), router.is_active()) else { return };
        let changes = EntryChanges::between(&router.present, &router.wanted);
        if changes.is_empty() {
            return;
        }
        router.present = router.wanted.clone();
        router.install = InstallState::Installing;
        send(connection, changes.messages(), out);
        self.read(now, connection, out);
    }

    /// Tells the switch of a router which neighbours are new, changed or gone. The switch is asked a little later what
    /// it has, once for many neighbours.
    pub(super) fn update_neighbours(
        &mut self,
        now: Instant,
        id: VirtualRouterId,
        changed: &[IpAddr],
        out: &mut ControllerOutbox,
    ) {
        let Some(router) = self.routers.get_mut(&id) else { return };
        let Some(changes) = router.set_neighbours(changed) else { return self.update(now, id, out) };
        let Some(connection) = self.connections.get(&id.dpid).copied().filter(|_| router.is_active()) else { return };
        router.install = InstallState::Installing;
        changes.added.iter().for_each(|entry| drop(router.present.insert(entry.key.clone(), entry.clone())));
        changes.deleted.iter().for_each(|entry| drop(router.present.remove(&entry.key)));
        send(connection, changes.messages(), out);
        if let Some(switch) = self.switches.get_mut(&connection) {
            switch.is_stale = switch.reading.is_some();
            switch.next_check = switch.next_check.min(now + SETTLING);
        }
    }

    /// Notes that a switch has refused a flow-mod.
    pub(super) fn handle_error(&mut self, connection: ConnectionId, error: &ErrorMessage) {
        let Some(dpid) = self.switches.get(&connection).map(|switch| switch.dpid) else { return };
        let data = &error.data.0;
        if data.get(1) != Some(&FLOW_MOD) {
            return;
        }
        let cookie = data.get(8..16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let is_of = |router: &InstalledRouter| cookie.is_some_and(|cookie| router.placement.has_cookie(cookie));
        let mut of_switch = self.routers.iter_mut().filter(|(id, _)| id.dpid == dpid);
        if let Some((_, router)) = of_switch.find(|(_, router)| is_of(router)) {
            router.host.counts.refused += 1;
            router.refusal = Some(weir_openflow::text::error_name(error.error));
        }
    }
}

impl InstalledRouter {
    /// Takes up neighbours that are new, changed or gone. Returns what has to change in the switch; `None` if other
    /// entries depend on neighbours, too.
    fn set_neighbours(&mut self, changed: &[IpAddr]) -> Option<EntryChanges> {
        let (mut before, mut after) = (EntryMap::new(), EntryMap::new());
        for addr in changed {
            let mac = self.host.learned_mac(*addr);
            let (config, placement) = (&self.host.config, &self.placement);
            for entry in neighbour_entries(config, placement, &self.hops, *addr, mac.unwrap_or_default())? {
                before.extend(self.present.get(&entry.key).map(|present| (entry.key.clone(), present.clone())));
                self.wanted.remove(&entry.key);
                if mac.is_some() {
                    self.wanted.insert(entry.key.clone(), entry.clone());
                    after.insert(entry.key.clone(), entry);
                }
            }
        }
        Some(EntryChanges::between(&before, &after))
    }

    /// Compares what the switch has with what it should have. Returns the messages that put it right.
    fn compare(&mut self, found: &[RouterEntry], others: &[RouterEntry]) -> Vec<Body> {
        if matches!(self.install, InstallState::Away | InstallState::Unsupported { .. }) {
            return Vec::new();
        }
        let wanted: Vec<RouterEntry> = self.wanted.values().cloned().collect();
        let conflicts = conflicts(others, &wanted);
        self.conflicts = conflicts.iter().take(MAX_NAMED_CONFLICTS).map(ToString::to_string).collect();
        if !self.is_active() && !conflicts.is_empty() {
            self.install = InstallState::Conflicting;
            return Vec::new();
        }
        let mine = found.iter().filter(|entry| self.placement.has_cookie(entry.cookie));
        let present = by_key(mine.cloned());
        let changes = EntryChanges::between(&present, &self.wanted);
        let (missing, unexpected) = (changes.added.len(), changes.deleted.len());
        if changes.is_empty() {
            (self.present, self.install, self.told) = (present, InstallState::Installed, 0);
            return Vec::new();
        }
        if self.told >= MAX_TOLD {
            (self.present, self.install) = (present, InstallState::Differing { missing, unexpected });
            return Vec::new();
        }
        if self.is_active() {
            self.host.counts.repaired += u64::try_from(missing + unexpected).unwrap_or(u64::MAX);
        }
        self.told += 1;
        (self.present, self.install) = (self.wanted.clone(), InstallState::Installing);
        changes.messages()
    }
}
