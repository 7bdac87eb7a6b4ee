//! Manages the controller's role with each switch (OpenFlow 1.3.5, 6.3.6).
//!
//! Several controllers may be connected to a switch. A master has sole control: switches make the former master a
//! slave, which receives only port status messages and may not change the switch. Each request carries a generation
//! id so that an outdated election cannot win. The id must not be older than the newest that the switch has seen. The
//! hub first requests this id (by a request that changes nothing) and adds one to become master. The controller that
//! asks last is therefore master, and controllers need not know each other.
//!
//! The application sees a switch only while it may change it: while the role is equal or master.
use super::{ConnectionId, ControllerHub, SwitchEvent};
use weir_openflow::model::error::{BadRequest, RoleRequestFailed};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::{Body, ErrorType};
use weir_openflow::{Message, Version};
use weir_units::Instant;

/// Generation id in a role reply if the switch has not seen any. The next one is 0.
const NO_GENERATION: u64 = u64::MAX;
/// Most attempts at an election that others keep winning. The role then stays as it is.
const MAX_ATTEMPTS: u32 = 8;

/// Role that the controller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mastership {
    /// Equal role, the default of every controller. Switches receive no role request.
    #[default]
    Equal,
    /// Master role, with this generation id if one is given.
    Master(Option<u64>),
    /// Slave role until changed, with this generation id if one is given.
    Slave(Option<u64>),
}

/// State of the controller's role with a switch.
#[derive(Debug, Default)]
pub(super) struct RoleNegotiation {
    /// Role that the switch has granted; `None` (equal) until then.
    role: Option<Role>,
    /// Pending request: transaction id and wanted role.
    asked: Option<(u32, Mastership)>,
    attempts: u32,
}

/// Returns the name of a role that a switch may have granted, for display.
pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Master => "master",
        Role::Slave => "slave",
        Role::Equal | Role::NoChange | Role::Unknown(_) => "equal",
    }
}

impl RoleNegotiation {
    /// Returns the name of the role, which is equal until another one is granted.
    pub(super) fn name(&self) -> &'static str {
        role_name(self.role.unwrap_or(Role::Equal))
    }

    /// Returns true if the application may see the switch: the role allows changes, or no role has been requested.
    fn may_change(&self) -> bool {
        match self.role {
            Some(role) => role != Role::Slave,
            None => self.asked.is_none(),
        }
    }
}

impl ControllerHub {
    /// Sets the wanted role, for connected switches and for later ones.
    pub fn set_mastership(&mut self, now: Instant, wanted: Mastership) {
        self.mastership = wanted;
        let up: Vec<_> = self.connections.iter().filter(|(_, found)| found.info.is_some()).map(|(id, _)| id).collect();
        for id in up {
            if let Some(connection) = self.connections.get_mut(id) {
                connection.role_negotiation.attempts = 0;
            }
            self.request_role(id, wanted);
            self.serve(now, id);
            self.dispatch(Some(id));
            self.note_output(id);
        }
    }

    /// Requests the wanted role of a switch that has just come up.
    pub(super) fn request_initial_role(&mut self, id: ConnectionId) {
        self.request_role(id, self.mastership);
    }

    /// Requests a role with the given generation id, or first requests the current id.
    fn request_role(&mut self, id: ConnectionId, wanted: Mastership) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.info.as_ref().is_none_or(|info| info.version == Version::V10) {
            return;
        }
        let (role, generation_id) = match wanted {
            Mastership::Equal if connection.role_negotiation.role.is_none() => return,
            Mastership::Equal => (Role::Equal, 0),
            Mastership::Master(Some(generation)) => (Role::Master, generation),
            Mastership::Slave(Some(generation)) => (Role::Slave, generation),
            Mastership::Master(None) | Mastership::Slave(None) => (Role::NoChange, 0),
        };
        let xid = connection.session.allocate_xid();
        connection.role_negotiation.asked = Some((xid, wanted));
        let body = Body::RoleRequest(RoleMessage { role, short_id: 0, generation_id });
        if let Err(error) = connection.session.send(&Message { xid, body }) {
            tracing::warn!(peer = connection.peer, "role not asked for: {error}");
        }
    }

    /// Handles messages about the role. Returns a message that is for the application.
    pub(super) fn handle_role_message(&mut self, now: Instant, id: ConnectionId, message: Message) -> Option<Message> {
        let standing = &self.connections.get(id)?.role_negotiation;
        let asked = standing.asked.filter(|(xid, _)| *xid == message.xid);
        match (&message.body, asked) {
            (Body::RoleReply(reply), Some((_, wanted))) => self.handle_grant(now, id, *reply, wanted),
            (Body::Error(error), Some((_, wanted))) => self.handle_refusal(now, id, error.error, wanted),
            (Body::Error(error), _) if error.error == BadRequest::IsSlave.into() => self.handle_demotion(now, id, None),
            (Body::RoleStatus(status), _) if status.role == Role::Slave => {
                self.handle_demotion(now, id, Some(status.generation_id));
            }
            _ if !standing.may_change() => {}
            _ => return Some(message),
        }
        None
    }

    fn handle_grant(&mut self, now: Instant, id: ConnectionId, reply: RoleMessage, wanted: Mastership) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.role_negotiation.asked = None;
        let is_what_we_want = match wanted {
            Mastership::Equal => reply.role == Role::Equal,
            Mastership::Master(Some(_)) => reply.role == Role::Master,
            Mastership::Slave(Some(_)) => reply.role == Role::Slave,
            // The reply has the current generation id that was requested.
            Mastership::Master(None) => {
                return self.request_role(id, Mastership::Master(Some(reply.generation_id.wrapping_add(1))));
            }
            Mastership::Slave(None) => {
                let generation = if reply.generation_id == NO_GENERATION { 0 } else { reply.generation_id };
                return self.request_role(id, Mastership::Slave(Some(generation)));
            }
        };
        if !is_what_we_want {
            tracing::warn!(
                peer = connection.peer,
                "the switch gave the role {:?}, asked was for {wanted:?}",
                reply.role
            );
        }
        connection.role_negotiation.attempts = 0;
        self.set_role(now, id, reply.role, Some(reply.generation_id));
    }

    /// Handles a refused request. If another controller was elected meanwhile, requests the role again, unless the
    /// generation id was given by the user.
    fn handle_refusal(&mut self, now: Instant, id: ConnectionId, error: ErrorType, wanted: Mastership) {
        let is_ours = !matches!(self.mastership, Mastership::Master(Some(_)) | Mastership::Slave(Some(_)));
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.role_negotiation.asked = None;
        connection.role_negotiation.attempts += 1;
        if is_ours && error == RoleRequestFailed::Stale.into() && connection.role_negotiation.attempts < MAX_ATTEMPTS {
            return self.request_role(id, self.mastership);
        }
        tracing::warn!(peer = connection.peer, "the switch refused {wanted:?}: {error:?}");
        // Without a granted role the switch is left to other controllers.
        let role = connection.role_negotiation.role.unwrap_or(Role::Slave);
        self.set_role(now, id, role, None);
    }

    fn handle_demotion(&mut self, now: Instant, id: ConnectionId, generation_id: Option<u64>) {
        let is_master = self.connections.get(id).is_some_and(|found| found.role_negotiation.role == Some(Role::Master));
        if is_master {
            self.set_role(now, id, Role::Slave, generation_id);
        }
    }

    fn set_role(&mut self, now: Instant, id: ConnectionId, role: Role, generation_id: Option<u64>) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.role_negotiation.role = Some(role);
        if let Some(switch) = connection.info.clone() {
            (self.observer)(&SwitchEvent::Role { switch, role, generation_id });
        }
        self.serve(now, id);
    }

    /// Announces a switch to the application once it may change the switch, and withdraws it when it no longer may.
    pub(super) fn serve(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(info) = &connection.info else { return };
        let version = info.version;
        match (connection.role_negotiation.may_change(), connection.is_served) {
            (true, false) => {
                connection.is_served = true;
                let features = &connection.features;
                if connection.role_negotiation.role.is_some() {
                    self.app.take_over(now, id, version, features, &mut self.outbox);
                } else {
                    self.app.handle_switch_up(now, id, version, features, &mut self.outbox);
                }
            }
            (false, true) => {
                connection.is_served = false;
                self.app.handle_switch_down(now, id);
            }
            _ => {}
        }
    }

    /// Returns true if no role is asked of switches.
    pub(super) fn is_role_equal(&self) -> bool {
        self.mastership == Mastership::Equal
    }

    /// Returns true if the application may see the switch.
    pub(super) fn may_change(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_some_and(|found| found.role_negotiation.may_change())
    }
}
