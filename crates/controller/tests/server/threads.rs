//! Tests a controller with several threads: each has its switches, and one that fails harms no other.
use crate::peer::{Heard, Peer, features, packet_in};
use crate::sockets::block_on;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch, LearningSwitches};
use weir_controller::{
    AppFactory, AppWaker, ConnectionId, Controller, ControllerApp, ControllerConfig, ControllerOutbox, SwitchEvent,
};
use weir_openflow::model::port::{PortStatus, PortStatusReason};
use weir_openflow::model::{Body, BufferId, FeaturesReply, FlowCommand, PacketIn, PortDesc, PortNo};
use weir_openflow::{Message, Version};
use weir_packet::MacAddr;
use weir_units::Instant;

fn start(make_app: AppFactory, threads: usize, heard: &Heard) -> Controller {
    let config = ControllerConfig { threads, observer: heard.observer(), ..ControllerConfig::default() };
    Controller::start_threads(make_app, config).unwrap()
}

fn learning() -> AppFactory {
    let switches = LearningSwitches::new(LearningConfig::default());
    Box::new(move |shard, waker| Box::new(switches.make(shard, waker)))
}

fn is_packet_out(body: &Body) -> bool {
    matches!(body, Body::PacketOut(_))
}

#[test]
fn switches_are_spread_and_counted_together() {
    let heard = Heard::default();
    let controller = start(learning(), 3, &heard);
    block_on(async {
        let mut peers = Vec::new();
        for dpid in 1..=7 {
            peers.push(Peer::up(controller.connect(), dpid).await);
        }
        for peer in &mut peers {
            peer.send(&packet_in()).await;
            assert!(peer.until(is_packet_out).await.is_some());
        }
        let snapshot = controller.snapshot();
        assert_eq!((snapshot.switches.len(), snapshot.loads.len(), snapshot.app["flooded"]), (7, 7, 7));
    });
    assert_eq!(controller.stop().counters.packet_ins, 7);
}

/// Tests connections accepted by any thread: a datapath id is there once, and auxiliary ones find their main one.
#[test]
fn threads_know_each_others_switches() {
    let heard = Heard::default();
    let controller = start(learning(), 2, &heard);
    block_on(async {
        let _main = Peer::up(controller.connect(), 7).await;
        let mut same = Peer::greet(controller.connect(), features(7, 0)).await;
        assert!(same.until(|_| false).await.is_none(), "closed");
        assert_eq!(heard.reasons(), ["datapath id 0000000000000007 is connected already, from this process"]);
        for number in 1..=4 {
            let mut auxiliary = Peer::greet(controller.connect(), features(7, number)).await;
            auxiliary.send(&packet_in()).await;
            assert!(auxiliary.until(is_packet_out).await.is_some());
        }
        let joined = |event: &SwitchEvent| matches!(event, SwitchEvent::Auxiliary { .. });
        assert_eq!(heard.events().iter().filter(|event| joined(event)).count(), 4);
    });
    assert_eq!(controller.stop().counters.packet_ins, 4);
}

/// A link that goes down at the switch of one thread changes what the switch of another one has to do.
#[test]
fn the_spanning_tree_is_that_of_all_threads() {
    let link = |a, b, port| [(a, PortNo(port)), (b, PortNo(port))];
    let links = vec![link(1, 2, 1), link(1, 2, 2)];
    let switches = LearningSwitches::new(LearningConfig { links, ..LearningConfig::default() });
    let controller = start(Box::new(move |shard, waker| Box::new(switches.make(shard, waker))), 2, &Heard::default());
    block_on(async {
        let mut first = Peer::up(controller.connect(), 1).await;
        let mut second = Peer::up(controller.connect(), 2).await;
        let desc = PortDesc { state: 1, ..PortDesc::new(PortNo(1), MacAddr::default(), "p1") };
        let status = PortStatus { reason: PortStatusReason::Modify, desc };
        first.send(&Message { xid: 1, body: Body::PortStatus(status) }).await;
        let is_delete = |body: &Body| matches!(body, Body::FlowMod(entry) if entry.command == FlowCommand::Delete);
        assert!(second.until(is_delete).await.is_some(), "the other switch's links have changed, too");
    });
}

/// Application that floods packets, and panics at one with a buffer.
struct Touchy(LearningSwitch);

impl ControllerApp for Touchy {
    fn handle_switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.0.handle_switch_up(now, switch, version, features, out);
    }

    fn handle_message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox) {
        if let Body::PacketIn(PacketIn { buffer_id: Some(_), .. }) = &message.body {
            panic!("it does not like buffers");
        }
        self.0.handle_message(now, switch, message, out);
    }

    fn handle_switch_down(&mut self, now: Instant, switch: ConnectionId) {
        self.0.handle_switch_down(now, switch);
    }
}

#[test]
fn an_application_that_panics_harms_no_other_thread_and_is_replaced() {
    let heard = Heard::default();
    let make_app = || Box::new(Touchy(LearningSwitch::new(LearningConfig::default())));
    let controller = start(Box::new(move |_, _| make_app()), 2, &heard);
    block_on(async {
        let mut first = Peer::up(controller.connect(), 1).await;
        let mut second = Peer::up(controller.connect(), 2).await;
        let Body::PacketIn(packet) = packet_in().body else { panic!("a packet-in") };
        let packet = PacketIn { buffer_id: Some(BufferId(1)), ..packet };
        first.send(&Message { xid: 1, body: Body::PacketIn(packet) }).await;
        assert!(first.until(|_| false).await.is_none(), "closed");
        second.send(&packet_in()).await;
        assert!(second.until(is_packet_out).await.is_some());
        let mut again = Peer::up(controller.connect(), 1).await;
        again.send(&packet_in()).await;
        assert!(again.until(is_packet_out).await.is_some());
        let end = controller.stop();
        assert_eq!((end.switches.len(), end.counters.packet_ins), (2, 3));
    });
    assert_eq!(heard.reasons()[0], "the application panicked: it does not like buffers");
}

#[test]
fn one_application_serves_one_thread() {
    let config = ControllerConfig { threads: 2, ..ControllerConfig::default() };
    let error = Controller::start(learning()(0, AppWaker::default()), config).err().unwrap().to_string();
    assert!(error.contains("found 2 threads for one application, expected 1"), "{error}");
    let config = ControllerConfig { threads: 0, ..ControllerConfig::default() };
    let error = Controller::start_threads(learning(), config).err().unwrap().to_string();
    assert_eq!(error, "found 0 threads, expected 1 to 256");
}
