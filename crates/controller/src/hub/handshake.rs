//! Joins connections whose handshake is complete to their switch, and ends connections.
use super::registry::RegisteredSwitch;
use super::{ControllerHub, SwitchConnection, SwitchEvent, SwitchInfo};
use crate::{ConnectionId, TooManyConnections};
use weir_openflow::Version;
use weir_openflow::model::FeaturesReply;
use weir_units::Instant;

impl ControllerHub {
    pub(super) fn handle_up(&mut self, now: Instant, id: ConnectionId, version: Version, features: FeaturesReply) {
        if features.auxiliary_id != 0 {
            return self.join_auxiliary(now, id, version, features);
        }
        if let Err(reason) = self.claim(id, version, &features) {
            return self.end(now, id, reason);
        }
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        let info = SwitchInfo { dpid: features.datapath_id, version, peer: connection.peer.clone() };
        (connection.info, connection.up_at) = (Some(info.clone()), now);
        connection.features = features;
        (self.observer)(&SwitchEvent::Up(info));
        self.request_initial_role(id);
        self.serve(now, id);
    }

    /// Registers a main connection.
    ///
    /// # Errors
    /// The reason to refuse it.
    fn claim(&mut self, id: ConnectionId, version: Version, features: &FeaturesReply) -> Result<(), String> {
        if version == Version::V10 && !self.is_role_equal() {
            return Err("it speaks OpenFlow 1.0, which knows no roles".to_owned());
        }
        let dpid = features.datapath_id;
        let peer = self.connections.get(id).map(|connection| connection.peer.clone()).unwrap_or_default();
        self.registry
            .claim(dpid, RegisteredSwitch { shard: self.shard, id, peer })
            .map_err(|taken| format!("datapath id {dpid:016x} is connected already, from {}", taken.peer))
    }

    /// Joins an auxiliary connection to its main connection. A new connection with an existing number replaces that
    /// connection, because the switch has opened it again. If another hub has the main connection, the connection has
    /// to move there.
    fn join_auxiliary(&mut self, now: Instant, id: ConnectionId, version: Version, features: FeaturesReply) {
        let (dpid, number) = (features.datapath_id, features.auxiliary_id);
        let main = match self.registry.find(dpid) {
            None => {
                let reason = format!("it is auxiliary connection {number} of {dpid:016x}, whose main one is not up");
                return self.end(now, id, reason);
            }
            Some(main) if main.shard != self.shard => {
                if let Some(connection) = self.connections.get_mut(id) {
                    connection.features = features;
                    connection.moves_to = Some(main.shard);
                    self.note_changed(id);
                }
                return;
            }
            Some(main) => main.id,
        };
        let Some(switch) = self.connections.get(main).and_then(|found| found.info.clone()) else { return };
        if switch.version != version {
            let [own, of_main] = [version.name(), switch.version.name()];
            let reason = format!("it is auxiliary connection {number} in OpenFlow {own}, the main one is in {of_main}");
            return self.end(now, id, reason);
        }
        let same = |found: &SwitchConnection| found.auxiliary == Some((main, number));
        let former = self.connections.iter().find(|(_, found)| same(found)).map(|(id, _)| id);
        if let Some(former) = former {
            self.end(now, former, "the switch opened it anew".to_owned());
        }
        if let Some(connection) = self.connections.get_mut(id) {
            connection.auxiliary = Some((main, number));
            (self.observer)(&SwitchEvent::Auxiliary { switch, number });
        }
    }

    /// Returns the hub to which a connection has to move.
    pub(crate) fn moves_to(&self, id: ConnectionId) -> Option<usize> {
        self.connections.get(id)?.moves_to
    }

    /// Removes a connection that moves to another hub.
    pub(crate) fn release(&mut self, id: ConnectionId) -> Option<SwitchConnection> {
        let connection = self.connections.remove(id)?;
        self.n_open -= 1;
        Some(connection)
    }

    /// Adds a connection that another hub has released.
    ///
    /// # Errors
    /// [`TooManyConnections`]; the caller has to close the connection.
    pub(crate) fn adopt(
        &mut self,
        now: Instant,
        mut connection: SwitchConnection,
    ) -> Result<ConnectionId, TooManyConnections> {
        self.make_room(now, &connection.peer.clone())?;
        (connection.moves_to, connection.timer) = (None, None);
        (connection.is_changed, connection.is_urgent) = (false, false);
        connection.turn = Default::default();
        let version = connection.session.version();
        let features = std::mem::take(&mut connection.features);
        let id = self.insert(connection);
        if let Some(version) = version {
            self.handle_up(now, id, version, features);
            self.dispatch(Some(id));
        }
        self.begin_turn(id);
        Ok(id)
    }

    /// Returns the auxiliary connections of a main connection.
    pub(super) fn auxiliaries(&self, main: ConnectionId) -> Vec<ConnectionId> {
        let of_main = |found: &SwitchConnection| found.auxiliary.is_some_and(|(of, _)| of == main);
        self.connections.iter().filter(|(_, found)| of_main(found)).map(|(id, _)| id).collect()
    }

    /// Ends a connection once, and reports the end to the application and the observer.
    pub(super) fn end(&mut self, now: Instant, id: ConnectionId, reason: String) {
        let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.ended.is_none()) else {
            return;
        };
        connection.ended = Some(reason.clone());
        self.n_open -= 1;
        let (info, auxiliary) = (connection.info.take(), connection.auxiliary.take());
        let is_served = std::mem::take(&mut connection.is_served);
        let peer = connection.peer.clone();
        self.note_changed(id);
        let event = match (info, auxiliary) {
            (Some(switch), _) => {
                self.registry.release(switch.dpid);
                if is_served {
                    self.app.handle_switch_down(now, id);
                }
                for auxiliary in self.auxiliaries(id) {
                    self.end(now, auxiliary, "its main connection ended".to_owned());
                }
                SwitchEvent::Down { switch, reason }
            }
            (None, Some((_, number))) => {
                return tracing::info!("{peer}: auxiliary connection {number} ended: {reason}");
            }
            (None, None) => {
                self.counters.refused += 1;
                SwitchEvent::Refused { peer, reason }
            }
        };
        (self.observer)(&event);
    }

    /// Reports the end of all switches, without the application, which has failed.
    pub(crate) fn abandon(&mut self, reason: &str) {
        for id in self.connections.ids() {
            let info = self.connections.get_mut(id).and_then(|found| found.info.take());
            if let Some(switch) = info {
                (self.observer)(&SwitchEvent::Down { switch, reason: reason.to_owned() });
            }
        }
        self.registry.release_shard(self.shard);
    }
}
