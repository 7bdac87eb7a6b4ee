//! The controller of a network as an application of the engine: what each message and timer causes.
use super::{N_TABLES, NetworkController, wanted_messages};
use crate::app::Network;
use crate::map::SwitchPort;
use weir_controller::apps::discovery::ProbedLink;
use weir_controller::status::{ApplicationStatus, LinkStatus};
use weir_controller::{ConnectionId, ControllerApp, ControllerOutbox, PacketDecision};
use weir_openflow::model::multipart::{MultipartReply, ReplyBody};
use weir_openflow::model::port::PortStatusReason;
use weir_openflow::model::{Body, FeaturesReply};
use weir_openflow::{Message, PacketInView, Version};
use weir_units::Instant;

impl ControllerApp for NetworkController {
    fn handle_switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.core.now = now;
        let dpid = features.datapath_id;
        if version < Version::V13 || features.n_tables < N_TABLES {
            let tables = features.n_tables;
            let text = format!(
                "switch {dpid:x} speaks OpenFlow {} and has {tables} tables, expected 1.3 or later and \
                 {N_TABLES} tables; it is left alone",
                version.name()
            );
            return self.core.report("switch-left-alone", text, true);
        }
        self.dpids.insert(switch, dpid);
        self.connections.insert(dpid, switch);
        self.core.add_switch(dpid, features.n_tables);
        self.hosts.handle_switch_up(now, dpid);
        self.prober.handle_switch_up(now, switch, version, features, out);
        let messages = self.core.keeper.handle_switch_up(dpid);
        self.send(dpid, [Body::SetAsync(wanted_messages(version))], out);
        self.send(dpid, messages, out);
        self.settle(out);
    }

    fn handle_packet_in(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        packet: &PacketInView<'_>,
        out: &mut ControllerOutbox,
    ) -> PacketDecision {
        self.core.now = now;
        let Some(dpid) = self.dpids.get(&switch).copied() else { return PacketDecision::PassedOn };
        if self.prober.handle_packet_in(now, switch, packet, out) == PacketDecision::PassedOn {
            self.handle_packet(dpid, packet);
        }
        self.settle(out);
        PacketDecision::Taken
    }

    fn handle_message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox) {
        self.core.now = now;
        let Some(dpid) = self.dpids.get(&switch).copied() else { return };
        self.core.keeper.handle_message(now, dpid, &message.body);
        match &message.body {
            Body::PortStatus(status) if status.reason == PortStatusReason::Delete => {
                let at = SwitchPort::new(dpid, status.desc.port_no);
                if self.core.remove_port(at) {
                    self.hosts.handle_port_down(now, at, &mut self.host_changes);
                }
                self.prober.handle_message(now, switch, message, out);
            }
            Body::PortStatus(status) => {
                self.set_ports(dpid, std::slice::from_ref(&status.desc));
                self.prober.handle_message(now, switch, message, out);
            }
            Body::MultipartReply(MultipartReply { body: ReplyBody::PortDesc(ports), .. }) => {
                self.set_ports(dpid, ports);
                self.prober.handle_message(now, switch, message, out);
            }
            Body::MultipartReply(MultipartReply { body, .. }) => {
                self.apps.iter_mut().for_each(|app| app.handle_reply(dpid, body, &mut self.core));
            }
            _ => {}
        }
        self.settle(out);
    }

    fn handle_switch_down(&mut self, now: Instant, switch: ConnectionId) {
        self.core.now = now;
        let Some(dpid) = self.dpids.remove(&switch) else { return };
        self.connections.remove(&dpid);
        self.prober.handle_switch_down(now, switch);
        self.hosts.handle_switch_down(now, dpid, &mut self.host_changes);
        self.core.keeper.handle_switch_down(dpid);
        self.core.remove_switch(dpid);
        // The engine gives no way to send messages here; they follow at once.
        self.wakes_at_once = true;
    }

    fn next_wake(&self) -> Option<Instant> {
        let apps = self.apps.iter().filter_map(|app| app.next_wake());
        let parts = [
            self.prober.next_wake(),
            self.hosts.next_wake(),
            self.core.keeper.next_wake(),
            self.forwarding.next_wake(),
            self.intents.next_wake(),
        ];
        let at_once = self.wakes_at_once.then_some(Instant::ZERO).or(self.next_hand_out());
        parts.into_iter().flatten().chain(apps).chain(at_once).min()
    }

    fn handle_wake(&mut self, now: Instant, out: &mut ControllerOutbox) {
        self.core.now = now;
        self.wakes_at_once = false;
        if self.prober.next_wake().is_some_and(|at| at <= now) {
            self.prober.handle_wake(now, out);
        }
        if self.hosts.next_wake().is_some_and(|at| at <= now) {
            self.hosts.handle_wake(now, &mut self.host_changes);
        }
        self.forwarding.handle_wake(now);
        if self.intents.next_wake().is_some_and(|at| at <= now) {
            self.note_delays();
            self.intents.set_loads(&self.core.loads);
            self.intents.handle_wake(now, &self.core.map);
        }
        for app in &mut self.apps {
            if app.next_wake().is_some_and(|at| at <= now) {
                app.handle_wake(&mut self.core);
            }
        }
        self.settle(out);
    }

    fn handle_command(&mut self, now: Instant, command: &str, out: &mut ControllerOutbox) -> Option<String> {
        self.core.now = now;
        let reply = self.handle_request(command)?;
        self.settle(out);
        Some(reply)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.applications_with_counters().into_iter().flat_map(|(_, counters)| counters).collect()
    }

    fn name(&self) -> &'static str {
        "network"
    }

    fn applications(&self) -> Vec<ApplicationStatus> {
        let all = self.applications_with_counters().into_iter();
        all.map(|(name, counters)| ApplicationStatus::new(name, counters)).collect()
    }

    fn links(&self, now: Instant) -> Option<Vec<LinkStatus>> {
        let link = |link: ProbedLink| {
            let [(from, from_port), (to, to_port)] = link.ends;
            let [start, end] = [SwitchPort::new(from, from_port), SwitchPort::new(to, to_port)];
            let is_used = self.core.map.far_end(start, to) == Some(end);
            LinkStatus {
                from,
                from_port,
                to,
                to_port,
                heard_s: now.since(link.heard).as_secs_f64(),
                delay_us: link.delay.map(|delay| delay.as_secs_f64() * 1e6),
                blocked: !is_used,
                down: false,
                damped: link.damped,
            }
        };
        Some(self.prober.links().map(link).collect())
    }
}
