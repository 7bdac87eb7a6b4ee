//! Controllers that stall, flood, end and come back.
use crate::bed::{Controller, PATIENCE, forward, multipart, punt, switch, until};
use std::time::Duration;
use weir_openflow::Body;
use weir_openflow::model::multipart::RequestBody;
use weir_switch::{ChannelState, ControllerTarget, SoftwareSwitchConfig};

/// Known flows continue at full speed while a controller stalls. Packet-ins that it does not read are dropped and
/// counted. When it reads again it receives packet-ins of new packets.
#[tokio::test]
async fn a_stalled_controller_loses_packet_ins_only() {
    let (switch, mut hosts) = switch(3, SoftwareSwitchConfig::default());
    let [a, b, c] = &mut hosts[..] else { unreachable!() };
    let mut stalled = Controller::embedded(&switch, 4096).await;
    stalled.send(Body::FlowMod(punt())).await;
    stalled.send(Body::FlowMod(forward(2, 3))).await;
    stalled.barrier().await;
    for burst in 0..200 {
        for tag in 0..100 {
            a.send(b, burst * 100 + tag);
        }
        b.send(c, burst);
        assert_eq!(c.tag(), burst, "a known flow");
        // The switch receives a's frames as fast as they are sent, or the ring would be full.
        until(|| switch.snapshot().unwrap().ports[0].counters.rx_packets == (burst + 1) * 100).await;
    }
    let dropped = switch.snapshot().unwrap().channels[0].packet_ins_dropped;
    assert!(dropped > 10_000, "{dropped} of 20000 packet-ins dropped");
    assert_eq!(switch.snapshot().unwrap().packet_ins_dropped, dropped);
    // The controller reads again: first the packet-ins kept, then new ones.
    let mut kept = 0;
    stalled.barrier_counting(&mut kept).await;
    assert_eq!(kept + dropped, 20_000);
    assert_eq!(switch.snapshot().unwrap().packet_ins, kept);
    a.send(b, 1);
    stalled.expect(|message| matches!(message.body, Body::PacketIn(_)).then_some(())).await;
    drop(stalled);
    until(|| switch.snapshot().unwrap().channels.is_empty()).await;
    assert_eq!(switch.snapshot().unwrap().packet_ins_dropped, dropped, "a loss is not forgotten with its channel");
    assert_eq!(switch.snapshot().unwrap().packet_ins, kept + 1);
}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Controller<S> {
    /// Sends a barrier and counts the packet-ins before its reply.
    async fn barrier_counting(&mut self, packet_ins: &mut u64) {
        let xid = self.send(Body::BarrierRequest).await;
        loop {
            let message = self.message().await;
            match message.body {
                Body::PacketIn(_) => *packet_ins += 1,
                Body::BarrierReply if message.xid == xid => return,
                _ => {}
            }
        }
    }
}

/// A controller that sends requests and never reads is not read either: only its own stream fills.
#[tokio::test]
async fn a_controller_that_does_not_read_its_replies_is_not_read() {
    let (switch, _hosts) = switch(1, SoftwareSwitchConfig::default());
    let mut deaf = Controller::embedded(&switch, 64 * 1024).await;
    let mut request = Vec::new();
    let body = multipart(RequestBody::TableFeatures(Vec::new()));
    let message = weir_openflow::Message { xid: 1, body };
    weir_openflow::encode(&message, weir_openflow::Version::V13, &mut request).unwrap();
    let many = request.repeat(100_000);
    let asked = tokio::time::timeout(Duration::from_millis(500), deaf.raw(&many)).await;
    assert!(!matches!(asked, Ok(Ok(()))), "100000 requests were read without one reply being taken");
    // Others are served meanwhile.
    let mut other = Controller::embedded(&switch, 64 * 1024).await;
    other.barrier().await;
    let answered = switch.snapshot().unwrap().channels[0].received;
    assert!(answered < 10_000, "{answered} requests were carried out for a controller that does not read");
}

/// A flood of flow-mods is carried out at the engine's pace; frames and another controller are not delayed.
#[tokio::test]
async fn a_flooding_controller_starves_nobody() {
    let (switch, mut hosts) = switch(2, SoftwareSwitchConfig::default());
    let [a, b] = &mut hosts[..] else { unreachable!() };
    switch.flow_mod(forward(1, 2)).unwrap();
    let mut flooding = Controller::embedded(&switch, 1 << 20).await;
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let flood = tokio::spawn(async move {
        let mut sent = 0u32;
        while stopped.try_recv().is_err() {
            let mut flow = forward(2, 1);
            flow.priority = u16::try_from(sent % 1000).unwrap();
            flooding.send(Body::FlowMod(flow)).await;
            sent += 1;
            if sent.is_multiple_of(64) {
                tokio::task::yield_now().await;
            }
        }
        flooding.barrier().await;
        sent
    });
    let mut other = Controller::embedded(&switch, 64 * 1024).await;
    for tag in 0..200 {
        a.send(b, tag);
        assert_eq!(b.tag(), tag);
        other.barrier().await;
    }
    stop.send(()).unwrap();
    let sent = tokio::time::timeout(PATIENCE, flood).await.unwrap().unwrap();
    assert!(sent > 200, "{sent} flow-mods are no flood");
    assert_eq!(switch.snapshot().unwrap().entries(), 1 + u64::from(sent.min(1000)));
}

/// The switch soon reconnects to a controller that ended the connection.
#[tokio::test]
async fn a_controller_that_comes_back_is_found() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = ControllerTarget::Tcp(listener.local_addr().unwrap().into());
    let (switch, _hosts) =
        switch(1, SoftwareSwitchConfig { controllers: vec![target.into()], ..SoftwareSwitchConfig::default() });
    for connects in 1..4 {
        let accepted = tokio::time::timeout(Duration::from_secs(1), listener.accept()).await;
        let (stream, _) = accepted.expect("within a second").unwrap();
        let mut controller = Controller::up(stream).await;
        controller.barrier().await;
        let channel = switch.snapshot().unwrap().channels.remove(0);
        assert_eq!((channel.state, channel.connects), (ChannelState::Up { version: "1.3".into() }, connects));
    }
    drop(listener);
    until(|| switch.snapshot().unwrap().channels[0].state == ChannelState::Connecting).await;
    until(|| switch.snapshot().unwrap().channels[0].last_error.as_deref().is_some_and(|e| e.contains("refused"))).await;
}

/// Messages received before a controller closed are carried out.
#[tokio::test]
async fn what_was_sent_before_the_end_counts() {
    let (switch, _hosts) = switch(1, SoftwareSwitchConfig::default());
    for priority in 0..50 {
        let mut controller = Controller::embedded(&switch, 64 * 1024).await;
        let mut flow = forward(1, 1);
        flow.priority = priority;
        controller.send(Body::FlowMod(flow)).await;
        drop(controller);
    }
    until(|| switch.snapshot().unwrap().entries() == 50).await;
}

/// A controller given by name is reached at any of the name's addresses, and its auxiliary connections go there, too.
#[tokio::test]
async fn a_controller_is_found_by_its_name() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = format!("tcp:localhost:{}", listener.local_addr().unwrap().port());
    let controllers = vec![format!("{target},aux=1").parse().unwrap()];
    let (switch, _hosts) = switch(1, SoftwareSwitchConfig { controllers, ..SoftwareSwitchConfig::default() });
    let (stream, _) = tokio::time::timeout(PATIENCE, listener.accept()).await.expect("in time").unwrap();
    let mut main = Controller::up(stream).await;
    main.barrier().await;
    let (stream, _) = tokio::time::timeout(PATIENCE, listener.accept()).await.expect("in time").unwrap();
    let _auxiliary = Controller::up(stream).await;
    let targets: Vec<String> = switch.snapshot().unwrap().channels.into_iter().map(|channel| channel.target).collect();
    assert_eq!(targets, [format!("{target},aux=1"), format!("{target} auxiliary 1")]);
}

/// A name that does not resolve is the connection's error. The switch forwards, tries again, and stops at once.
#[tokio::test]
async fn a_name_that_does_not_resolve_is_an_error_of_its_channel() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = format!("tcp:{}", listener.local_addr().unwrap());
    let controllers = ["tcp:nowhere.invalid:6653", &there].map(|target| target.parse().unwrap()).to_vec();
    let (switch, _hosts) = switch(1, SoftwareSwitchConfig { controllers, ..SoftwareSwitchConfig::default() });
    // The other controller does not wait for the resolver.
    let (stream, _) = tokio::time::timeout(PATIENCE, listener.accept()).await.expect("in time").unwrap();
    Controller::up(stream).await.barrier().await;
    let error = || switch.snapshot().unwrap().channels[0].last_error.clone();
    until(|| error().is_some_and(|error| error.starts_with("cannot resolve `nowhere.invalid`: "))).await;
}
