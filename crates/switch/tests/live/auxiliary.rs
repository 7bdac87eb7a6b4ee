//! Auxiliary connections of a controller (OpenFlow 1.3.5, 6.3.7).
use crate::bed::{Controller, PATIENCE, forward, punt, switch, until};
use std::collections::HashMap;
use tokio::net::{TcpListener, TcpStream};
use weir_openflow::Body;
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::role::{Role, RoleMessage};
use weir_switch::{ChannelState, SoftwareSwitchConfig, SwitchHandle};

type Connection = Controller<TcpStream>;

async fn accept(listener: &TcpListener) -> Connection {
    let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await.expect("the switch connects");
    Controller::up(accepted.unwrap().0).await
}

/// Returns a switch whose controller has the main connection and two auxiliary ones, in the order of their numbers.
async fn connected(hosts: u32) -> (SwitchHandle, Vec<crate::bed::Host>, TcpListener, [Connection; 3]) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let spec = format!("tcp:{},aux=2", listener.local_addr().unwrap()).parse().unwrap();
    let (switch, hosts) =
        switch(hosts, SoftwareSwitchConfig { controllers: vec![spec], ..SoftwareSwitchConfig::default() });
    let main = accept(&listener).await;
    let mut others = [accept(&listener).await, accept(&listener).await];
    others.sort_by_key(|connection| connection.features.auxiliary_id);
    let [first, second] = others;
    until(|| {
        let channels = switch.snapshot().unwrap().channels;
        channels.len() == 3
            && channels.iter().all(|channel| channel.state == ChannelState::Up { version: "1.3".into() })
    })
    .await;
    (switch, hosts, listener, [main, first, second])
}

/// Returns the tags of the packet-ins received before a barrier reply.
async fn packet_ins(connection: &mut Connection) -> Vec<u64> {
    let xid = connection.send(Body::BarrierRequest).await;
    let mut tags = Vec::new();
    loop {
        let message = connection.message().await;
        match message.body {
            Body::PacketIn(packet) => tags.push(u64::from_be_bytes(packet.data.0[42..50].try_into().unwrap())),
            Body::BarrierReply if message.xid == xid => return tags,
            _ => {}
        }
    }
}

#[tokio::test]
async fn the_features_tell_the_connections_apart_and_each_is_answered_on_its_own() {
    let (_switch, _hosts, _listener, mut all) = connected(1).await;
    assert_eq!(all.each_ref().map(|connection| connection.features.auxiliary_id), [0, 1, 2]);
    assert!(all.iter().all(|connection| connection.features.datapath_id == all[0].features.datapath_id));
    for connection in &mut all {
        connection.barrier().await;
    }
    // Every connection accepts every message.
    all[2].send(Body::FlowMod(forward(1, 1))).await;
    all[2].barrier().await;
    let stats = crate::bed::multipart(weir_openflow::model::multipart::RequestBody::Table);
    let xid = all[1].send(stats).await;
    all[1].expect(|message| (message.xid == xid).then_some(())).await;
}

/// Packet-ins use the auxiliary connections; those of one flow use the same connection, in order.
#[tokio::test]
async fn packet_ins_are_spread_by_flow() {
    let (_switch, mut hosts, _listener, mut all) = connected(8).await;
    all[0].send(Body::FlowMod(punt())).await;
    all[0].barrier().await;
    let (target, senders) = hosts.split_last_mut().unwrap();
    for round in 0..20 {
        for sender in &mut *senders {
            let number = u64::from(sender.number);
            sender.send(target, number << 32 | round);
        }
    }
    let mut seen: HashMap<u64, (usize, Vec<u64>)> = HashMap::new();
    let mut count = 0;
    while count < 7 * 20 {
        for (place, connection) in all.iter_mut().enumerate() {
            for tag in packet_ins(connection).await {
                assert_ne!(place, 0, "the main connection carries none");
                let (of, rounds) = seen.entry(tag >> 32).or_insert((place, Vec::new()));
                assert_eq!(*of, place, "a flow stays on its connection");
                rounds.push(tag & 0xffff_ffff);
                count += 1;
            }
        }
    }
    assert!(seen.values().all(|(_, rounds)| rounds.is_sorted()), "a flow stays in order");
    let carriers: std::collections::HashSet<_> = seen.values().map(|(place, _)| *place).collect();
    assert_eq!(carriers.len(), 2, "seven flows leave no connection idle");
}

/// A broken auxiliary connection is reopened; meanwhile the other connections carry its packet-ins.
#[tokio::test]
async fn one_that_breaks_comes_back_and_loses_nothing_later() {
    let (switch, mut hosts, listener, all) = connected(2).await;
    let [mut main, first, second] = all;
    main.send(Body::FlowMod(punt())).await;
    main.barrier().await;
    drop((first, second));
    let again = [accept(&listener).await, accept(&listener).await];
    let mut numbers = again.each_ref().map(|connection| connection.features.auxiliary_id);
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    drop(again);
    drop(listener);
    until(|| switch.snapshot().unwrap().channels.iter().filter(|c| c.state != ChannelState::Connecting).count() == 1)
        .await;
    // The engine has been told of both ends by now, but may not have handled them. Packet-ins sent to a connection
    // before that are lost.
    main.barrier().await;
    let [a, b] = &mut hosts[..] else { unreachable!() };
    a.send(b, 5);
    main.expect(|message| matches!(message.body, Body::PacketIn(_)).then_some(())).await;
}

#[tokio::test]
async fn they_end_with_the_main_connection() {
    let (switch, _hosts, _listener, all) = connected(1).await;
    let [main, mut first, mut second] = all;
    drop(main);
    first.closed().await;
    second.closed().await;
    until(|| switch.snapshot().unwrap().channels.len() == 1).await;
}

/// Role and configuration belong to the controller, whichever connection they were set on.
#[tokio::test]
async fn they_share_the_role_of_the_main_connection() {
    let (_switch, _hosts, _listener, mut all) = connected(1).await;
    let request = RoleMessage { role: Role::Slave, short_id: 0, generation_id: 3 };
    let xid = all[1].send(Body::RoleRequest(request)).await;
    all[1].expect(|message| (message.xid == xid && message.body == Body::RoleReply(request)).then_some(())).await;
    for connection in &mut all {
        let xid = connection.send(Body::FlowMod(forward(1, 1))).await;
        let refused = connection.expect(|message| (message.xid == xid).then_some(message.body)).await;
        let Body::Error(error) = refused else { panic!("{refused:?}") };
        assert_eq!(error.error, BadRequest::IsSlave.into());
    }
}

/// OpenFlow 1.0 has no auxiliary connections.
#[tokio::test]
async fn a_controller_of_1_0_gets_none() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let spec = format!("tcp:{},aux=2", listener.local_addr().unwrap()).parse().unwrap();
    let mut config = SoftwareSwitchConfig { controllers: vec![spec], ..SoftwareSwitchConfig::default() };
    config.session.versions = vec![weir_openflow::Version::V10];
    let (switch, _hosts) = switch(1, config);
    let mut main = accept(&listener).await;
    main.barrier().await;
    assert_eq!(switch.snapshot().unwrap().channels.len(), 1);
}
