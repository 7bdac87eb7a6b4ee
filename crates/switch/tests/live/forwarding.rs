//! Forwarding of frames between ports, and between ports and a controller.
use crate::bed::{Controller, forward, multipart, punt, switch};
use std::time::Duration;
use weir_datapath::FailMode;
use weir_openflow::Body;
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::{Action, Match, PacketOut, PortNo};
use weir_switch::SoftwareSwitchConfig;

#[tokio::test]
async fn frames_follow_the_entries_of_a_controller() {
    let (switch, mut hosts) = switch(2, SoftwareSwitchConfig::default());
    let [a, b] = &mut hosts[..] else { unreachable!() };
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    controller.send(Body::FlowMod(forward(1, 2))).await;
    controller.send(Body::FlowMod(forward(2, 1))).await;
    controller.barrier().await;
    for tag in 0..1000 {
        a.send(b, tag);
        assert_eq!(b.tag(), tag);
        b.send(a, tag);
        assert_eq!(a.tag(), tag);
    }
    let flows = switch.flows(FlowRequest::all()).unwrap();
    assert_eq!(flows.iter().map(|flow| flow.packet_count).collect::<Vec<_>>(), [1000, 1000]);
    let ports = switch.snapshot().unwrap().ports;
    assert_eq!(ports.iter().map(|port| port.counters.tx_packets).collect::<Vec<_>>(), [1000, 1000]);
}

#[tokio::test]
async fn packets_go_to_a_controller_and_back() {
    let (switch, mut hosts) = switch(2, SoftwareSwitchConfig::default());
    let [a, b] = &mut hosts[..] else { unreachable!() };
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    controller.send(Body::FlowMod(punt())).await;
    controller.barrier().await;
    a.send(b, 77);
    let packet_in = controller.expect(|message| match message.body {
        Body::PacketIn(packet_in) => Some(packet_in),
        _ => None,
    });
    let packet_in = packet_in.await;
    assert_eq!(packet_in.in_port(), Some(PortNo(1)));
    let actions = vec![Action::output(PortNo(2))];
    let packet_out =
        PacketOut { buffer_id: None, in_port: PortNo(1), matching: Match::any(), actions, data: packet_in.data };
    controller.send(Body::PacketOut(packet_out)).await;
    assert_eq!(b.tag(), 77);
}

/// Port statistics have the counters at the time of the request.
#[tokio::test]
async fn a_controller_reads_port_counters() {
    let (switch, mut hosts) = switch(2, SoftwareSwitchConfig::default());
    let [a, b] = &mut hosts[..] else { unreachable!() };
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    switch.flow_mod(forward(1, 2)).unwrap();
    a.send(b, 1);
    b.tag();
    controller.send(multipart(RequestBody::PortStats(PortNo::ANY))).await;
    let stats = controller.expect(|message| match message.body {
        Body::MultipartReply(reply) => match reply.body {
            ReplyBody::PortStats(stats) => Some(stats),
            _ => None,
        },
        _ => None,
    });
    let stats = stats.await;
    assert_eq!((stats[0].rx_packets, stats[1].tx_packets, stats[1].tx_bytes), (1, 1, 50));
}

/// Replies arrive in the order of the requests, and a barrier reply when all earlier messages are carried out.
#[tokio::test]
async fn replies_keep_their_order() {
    let (switch, _hosts) = switch(1, SoftwareSwitchConfig::default());
    let mut controller = Controller::embedded(&switch, 1 << 20).await;
    let mut asked = Vec::new();
    for priority in 0..500 {
        let mut flow = forward(1, 1);
        flow.priority = priority;
        controller.send(Body::FlowMod(flow)).await;
        asked.push(controller.send(Body::BarrierRequest).await);
        asked.push(controller.send(multipart(RequestBody::Aggregate(FlowRequest::all()))).await);
    }
    let mut count = 0;
    for xid in asked {
        let message = controller.message().await;
        assert_eq!(message.xid, xid);
        if let Body::MultipartReply(reply) = message.body {
            count += 1;
            assert!(matches!(reply.body, ReplyBody::Aggregate(found) if found.flow_count == count), "{reply:?}");
        }
    }
    assert_eq!(count, 500);
}

/// Without a controller a standalone switch is a learning bridge; a connected tool does not change that.
#[tokio::test]
async fn a_standalone_switch_forwards_while_no_controller_is_there() {
    let listeners = vec!["ptcp:0".parse().unwrap()];
    let config = SoftwareSwitchConfig { fail_mode: FailMode::Standalone, listeners, ..SoftwareSwitchConfig::default() };
    let (switch, mut hosts) = switch(2, config);
    let [a, b] = &mut hosts[..] else { unreachable!() };
    a.send(b, 1);
    assert_eq!(b.tag(), 1);
    let weir_switch::ListenTarget::Tcp(address) = switch.listeners()[0] else { unreachable!() };
    let mut tool = Controller::up(tokio::net::TcpStream::connect(address).await.unwrap()).await;
    tool.barrier().await;
    a.send(b, 2);
    assert_eq!(b.tag(), 2);
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    controller.barrier().await;
    a.send(b, 3);
    controller.barrier().await;
    drop(controller);
    crate::bed::until(|| switch.snapshot().unwrap().channels_up() == 1).await;
    crate::bed::until(|| {
        a.send(b, 4);
        b.next(Duration::from_millis(200)).is_some_and(|frame| frame.bytes()[49] == 4)
    })
    .await;
}
