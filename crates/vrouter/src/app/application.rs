//! The application as the hub calls it.
use super::switch::ControlledSwitch;
use super::{InstallState, InstalledRouter, VirtualRouterApp, VirtualRouterId, messages, send};
use crate::config::RouterPortId;
use weir_controller::{ConnectionId, ControllerApp, ControllerOutbox, PacketDecision};
use weir_openflow::model::multipart::{MultipartReply, ReplyBody};
use weir_openflow::model::{Body, FeaturesReply, PacketIn};
use weir_openflow::{Message, PacketInView, Version};
use weir_units::Instant;

impl ControllerApp for VirtualRouterApp {
    fn handle_switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        let dpid = features.datapath_id;
        self.connections.insert(dpid, switch);
        self.switches.insert(switch, ControlledSwitch::new(now, dpid, version, features.n_tables));
        let orphans = self.orphans.remove(&dpid).unwrap_or_default();
        orphans.iter().for_each(|placement| send(switch, messages::delete_all(placement), out));
        let ids: Vec<VirtualRouterId> = self.on_switch(dpid).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.begin(now, id, out));
    }

    fn handle_packet_in(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        packet: &PacketInView<'_>,
        out: &mut ControllerOutbox,
    ) -> PacketDecision {
        let Some(dpid) = self.switches.get(&switch).map(|switch| switch.dpid) else { return PacketDecision::PassedOn };
        let is_own = self.on_switch(dpid).any(|(_, router)| router.placement.has_cookie(packet.cookie()));
        if is_own { self.handle_packet(now, dpid, &packet.to_packet_in(), out) } else { PacketDecision::PassedOn }
    }

    fn handle_message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox) {
        match message.body {
            Body::PacketIn(packet) => {
                if let Some(dpid) = self.switches.get(&switch).map(|switch| switch.dpid) {
                    self.handle_packet(now, dpid, &packet, out);
                }
            }
            Body::MultipartReply(MultipartReply { more, body: ReplyBody::Flow(found) }) => {
                self.handle_flows(now, switch, &found, more, out);
            }
            Body::GetAsyncReply(config) if self.switches.contains_key(&switch) => {
                send(switch, messages::with_expired(config), out);
            }
            Body::Error(error) => self.handle_error(switch, &error),
            _ => {}
        }
    }

    fn handle_switch_down(&mut self, _now: Instant, switch: ConnectionId) {
        let Some(gone) = self.switches.remove(&switch) else { return };
        if self.connections.get(&gone.dpid) == Some(&switch) {
            self.connections.remove(&gone.dpid);
            let of_switch = self.routers.iter_mut().filter(|(id, _)| id.dpid == gone.dpid);
            of_switch.for_each(|(_, router)| router.install = InstallState::Away);
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let routers = self.routers.values().filter_map(|router| router.host.next_wake());
        let switches = self.switches.values().filter(|switch| self.on_switch(switch.dpid).next().is_some());
        routers.chain(switches.map(|switch| switch.next_check)).min()
    }

    fn handle_wake(&mut self, now: Instant, out: &mut ControllerOutbox) {
        let due = |router: &InstalledRouter| router.host.next_wake().is_some_and(|at| at <= now);
        let ids: Vec<VirtualRouterId> =
            self.routers.iter().filter(|(_, router)| due(router)).map(|(id, _)| *id).collect();
        for id in ids {
            if let Some(effects) = self.routers.get_mut(&id).map(|router| router.host.handle_wake(now)) {
                self.carry_out(now, id, effects, out);
            }
        }
        self.check(now, out);
    }

    fn handle_command(&mut self, now: Instant, command: &str, out: &mut ControllerOutbox) -> Option<String> {
        self.answer_command(now, command, out)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.gone;
        self.routers.values().for_each(|router| all.add(&router.host.counts));
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let installed = self.routers.values().filter(|router| router.install == InstallState::Installed).count();
        let mut named = vec![("routers", count(self.routers.len())), ("routers_installed", count(installed))];
        named.extend(all.named());
        named
    }

    fn name(&self) -> &'static str {
        "virtual routers"
    }
}

impl VirtualRouterApp {
    fn handle_packet(
        &mut self,
        now: Instant,
        dpid: u64,
        packet: &PacketIn,
        out: &mut ControllerOutbox,
    ) -> PacketDecision {
        let (vlan, frame) = messages::without_tag(&packet.data.0);
        let port = packet.in_port().map(|number| RouterPortId { number, vlan });
        let Some((id, port)) = port.and_then(|port| Some((self.router_of(dpid, packet.cookie, port)?, port))) else {
            return PacketDecision::PassedOn;
        };
        if let Some(router) = self.routers.get_mut(&id) {
            let effects = router.host.handle_frame(now, port, &frame);
            self.carry_out(now, id, effects, out);
        }
        PacketDecision::Taken
    }
}
