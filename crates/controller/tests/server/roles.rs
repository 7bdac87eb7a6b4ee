//! Tests the roles master and slave with a switch that has other controllers.
use crate::hub::{NOW, connect, exchange, hub, learning};
use crate::peer::{Heard, features, packet_in};
use weir_controller::{ConnectionId, ControllerHub, Mastership, SwitchEvent};
use weir_openflow::model::error::{BadRequest, ErrorMessage, RoleRequestFailed};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::{Body, Bytes, ErrorType, FlowCommand};
use weir_openflow::session::{Session, SessionConfig};
use weir_openflow::{Message, Version};

/// Switch with one controller, and elections that others have won.
struct Switch {
    id: ConnectionId,
    session: Session,
    generation: Option<u64>,
    role: Role,
    /// Number of elections that another controller still wins before a request.
    rivals: u32,
}

impl Switch {
    fn up(hub: &mut ControllerHub) -> Switch {
        let (id, session) = connect(hub);
        Switch { id, session, generation: None, role: Role::Equal, rivals: 0 }
    }

    /// Exchanges messages until none are left. Returns those that are not about roles.
    fn run(&mut self, hub: &mut ControllerHub) -> Vec<Body> {
        let mut others = Vec::new();
        loop {
            let got = exchange(hub, self.id, &mut self.session, &features(7, 0));
            if got.is_empty() {
                return others;
            }
            for message in got {
                match message.body {
                    Body::RoleRequest(asked) => self.answer(message.xid, asked),
                    other => others.push(other),
                }
            }
        }
    }

    /// Answers a role request as in OpenFlow 1.3.5, 6.3.6.
    fn answer(&mut self, xid: u32, asked: RoleMessage) {
        let body = if asked.role == Role::NoChange {
            let newest = self.generation;
            if self.rivals > 0 {
                self.rivals -= 1;
                self.generation = Some(newest.unwrap_or(0) + 10);
            }
            Body::RoleReply(self.says(newest))
        } else if self.generation.is_some_and(|newest| asked.generation_id < newest) {
            error(RoleRequestFailed::Stale.into())
        } else {
            (self.role, self.generation) = (asked.role, Some(asked.generation_id));
            Body::RoleReply(self.says(self.generation))
        };
        self.session.send(&Message { xid, body }).unwrap();
    }

    fn says(&self, newest: Option<u64>) -> RoleMessage {
        RoleMessage { role: self.role, short_id: 0, generation_id: newest.unwrap_or(u64::MAX) }
    }

    fn tell(&mut self, hub: &mut ControllerHub, body: Body) -> Vec<Body> {
        self.session.send(&Message { xid: 9999, body }).unwrap();
        self.run(hub)
    }
}

fn error(error: ErrorType) -> Body {
    Body::Error(ErrorMessage { error, data: Bytes::default() })
}

fn start(wanted: Mastership) -> (ControllerHub, Heard) {
    let heard = Heard::default();
    let mut hub = hub(learning(), SessionConfig::default(), &heard);
    hub.set_mastership(NOW, wanted);
    (hub, heard)
}

fn roles(heard: &Heard) -> Vec<(Role, Option<u64>)> {
    let events = heard.events().into_iter();
    events
        .filter_map(|event| match event {
            SwitchEvent::Role { role, generation_id, .. } => Some((role, generation_id)),
            _ => None,
        })
        .collect()
}

fn writes(bodies: &[Body]) -> bool {
    bodies.iter().any(|body| matches!(body, Body::FlowMod(_) | Body::PacketOut(_)))
}

#[test]
fn a_master_asks_one_generation_further_and_leaves_entries_alone() {
    for (newest, expected) in [(None, 0), (Some(41), 42)] {
        let (mut hub, heard) = start(Mastership::Master(None));
        let mut switch = Switch::up(&mut hub);
        switch.generation = newest;
        let sent = switch.run(&mut hub);
        assert_eq!((switch.role, switch.generation), (Role::Master, Some(expected)));
        assert_eq!(roles(&heard), [(Role::Master, Some(expected))]);
        let deletes = |body: &Body| matches!(body, Body::FlowMod(entry) if entry.command != FlowCommand::Add);
        assert!(writes(&sent) && !sent.iter().any(deletes), "{sent:?}");
    }
}

#[test]
fn a_slave_changes_nothing_until_it_is_promoted() {
    let (mut hub, heard) = start(Mastership::Slave(None));
    let mut switch = Switch::up(&mut hub);
    switch.generation = Some(5);
    assert!(!writes(&switch.run(&mut hub)));
    assert!(!writes(&switch.tell(&mut hub, packet_in().body)), "a packet that it is shown by mistake");
    assert_eq!((switch.role, switch.generation), (Role::Slave, Some(5)));
    hub.set_mastership(NOW, Mastership::Master(None));
    assert!(writes(&switch.run(&mut hub)));
    assert!(writes(&switch.tell(&mut hub, packet_in().body)));
    assert_eq!(roles(&heard), [(Role::Slave, Some(5)), (Role::Master, Some(6))]);
    hub.set_mastership(NOW, Mastership::Slave(None));
    switch.run(&mut hub);
    assert!(!writes(&switch.tell(&mut hub, packet_in().body)));
    assert_eq!(switch.role, Role::Slave);
}

#[test]
fn a_master_that_another_took_over_from_stops_writing() {
    let (mut hub, heard) = start(Mastership::Master(None));
    let mut switch = Switch::up(&mut hub);
    switch.run(&mut hub);
    switch.tell(&mut hub, error(BadRequest::IsSlave.into()));
    assert_eq!(roles(&heard), [(Role::Master, Some(0)), (Role::Slave, None)]);
    assert!(!writes(&switch.tell(&mut hub, packet_in().body)));
}

#[test]
fn an_election_lost_meanwhile_is_asked_for_again_but_not_for_ever() {
    let (mut hub, heard) = start(Mastership::Master(None));
    let mut switch = Switch::up(&mut hub);
    (switch.generation, switch.rivals) = (Some(0), 3);
    switch.run(&mut hub);
    assert_eq!(roles(&heard), [(Role::Master, Some(31))]);
    let mut endless = Switch::up(&mut hub);
    hub.disconnect(NOW, switch.id, "gone");
    (endless.generation, endless.rivals) = (Some(0), u32::MAX);
    assert!(!writes(&endless.run(&mut hub)));
    assert_eq!(roles(&heard)[1..], [(Role::Slave, None)]);
    // A role that is wanted again has all attempts again.
    endless.rivals = 3;
    hub.set_mastership(NOW, Mastership::Master(None));
    assert!(writes(&endless.run(&mut hub)));
    assert_eq!(roles(&heard).last().map(|(role, _)| *role), Some(Role::Master));
}

#[test]
fn a_generation_given_is_used_as_it_is() {
    let (mut hub, heard) = start(Mastership::Master(Some(7)));
    let mut switch = Switch::up(&mut hub);
    switch.generation = Some(8);
    assert!(!writes(&switch.run(&mut hub)), "an outdated one is refused");
    assert_eq!(roles(&heard), [(Role::Slave, None)]);
    hub.disconnect(NOW, switch.id, "gone");
    let mut other = Switch::up(&mut hub);
    other.generation = Some(7);
    other.run(&mut hub);
    assert_eq!(roles(&heard)[1..], [(Role::Master, Some(7))]);
}

#[test]
fn a_switch_without_roles_is_refused_to_all_but_equals() {
    let (mut hub, heard) = start(Mastership::Slave(None));
    let (id, _) = connect(&mut hub);
    let old = SessionConfig { versions: vec![Version::V10], ..SessionConfig::default() };
    exchange(&mut hub, id, &mut Session::switch(old, NOW), &features(7, 0));
    assert!(hub.is_ended(id));
    assert_eq!(heard.reasons(), ["it speaks OpenFlow 1.0, which knows no roles"]);
}
