//! Statistics of many flow entries: sent in parts while frames are forwarded, in order, as fast as the controller
//! reads.
use crate::bed::{Controller, Host, forward, multipart, switch, until};
use std::collections::HashSet;
use std::time::Duration;
use tokio::io::DuplexStream;
use weir_openflow::Body;
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::{FlowCommand, FlowMod, Match};
use weir_openflow::session::SessionConfig;
use weir_packet::Field;
use weir_switch::{SoftwareSwitchConfig, SwitchHandle};

/// Far more entries than one part, or all parts in transit, can hold.
const ENTRIES: u32 = 20_000;

fn full_switch() -> (SwitchHandle, Vec<Host>) {
    filled(SoftwareSwitchConfig::default())
}

fn filled(config: SoftwareSwitchConfig) -> (SwitchHandle, Vec<Host>) {
    let (switch, hosts) = switch(2, config);
    switch.flow_mod(forward(1, 2)).unwrap();
    for number in 1..ENTRIES {
        let matching = Match::any().with(Field::EthType, 0x0800u16).with(Field::Ipv4Dst, number);
        let flow = FlowMod { cookie: number.into(), ..FlowMod::add(1, matching, Vec::new()) };
        switch.flow_mod(flow).unwrap();
    }
    (switch, hosts)
}

/// Reads flow statistics to their end and returns their cookies. Calls `between` after each part but the last.
async fn cookies(controller: &mut Controller<DuplexStream>, mut between: impl FnMut()) -> Vec<u64> {
    let mut cookies = Vec::new();
    loop {
        match controller.message().await.body {
            Body::MultipartReply(part) => {
                let ReplyBody::Flow(flows) = part.body else { panic!("{:?}", part.body) };
                cookies.extend(flows.iter().map(|flow| flow.cookie));
                if !part.more {
                    return cookies;
                }
                between();
            }
            other => panic!("{other:?} comes before the reply's end"),
        }
    }
}

#[tokio::test]
async fn what_comes_behind_a_long_reply_is_done_and_answered_behind_it() {
    let (switch, mut hosts) = full_switch();
    let [a, b] = &mut hosts[..] else { unreachable!() };
    let mut controller = Controller::embedded(&switch, 4096).await;
    let mut other = Controller::embedded(&switch, 4096).await;
    controller.send(multipart(RequestBody::Flow(FlowRequest::all()))).await;
    let delete = FlowMod { command: FlowCommand::Delete, ..FlowMod::add(0, Match::any(), Vec::new()) };
    controller.send(Body::FlowMod(delete)).await;
    controller.send(Body::BarrierRequest).await;
    controller.send(multipart(RequestBody::Aggregate(FlowRequest::all()))).await;
    // The first controller reads nothing yet: others are served, frames are forwarded, and nothing was deleted.
    for tag in 0..100 {
        other.barrier().await;
        a.send(b, tag);
        assert_eq!(b.tag(), tag);
    }
    let mut tag = 0;
    let cookies = cookies(&mut controller, || {
        // Not after the last parts: when they are read, the engine may have continued with the deletion.
        if tag < 150 {
            a.send(b, tag);
            assert_eq!(b.tag(), tag, "frames pass between the parts");
            tag += 1;
        }
    });
    let cookies = cookies.await;
    assert_eq!(tag, 150);
    assert_eq!(cookies.len(), ENTRIES as usize);
    assert_eq!(cookies.into_iter().collect::<HashSet<_>>().len(), ENTRIES as usize);
    assert_eq!(controller.message().await.body, Body::BarrierReply);
    let Body::MultipartReply(reply) = controller.message().await.body else { panic!() };
    assert!(matches!(reply.body, ReplyBody::Aggregate(sum) if sum.flow_count == 0), "{reply:?}");
    // Later messages are read again.
    controller.send(Body::FlowMod(forward(2, 1))).await;
    controller.barrier().await;
    assert_eq!(switch.snapshot().unwrap().entries(), 1);
}

#[tokio::test]
async fn a_controller_that_goes_amid_a_long_reply_leaves_nothing_behind() {
    let (switch, _hosts) = full_switch();
    for _ in 0..3 {
        let mut controller = Controller::embedded(&switch, 4096).await;
        for _ in 0..10 {
            controller.send(multipart(RequestBody::Flow(FlowRequest::all()))).await;
        }
        controller.message().await;
        drop(controller);
        until(|| switch.snapshot().unwrap().channels.is_empty()).await;
    }
    assert_eq!(switch.flows(FlowRequest::all()).unwrap().len(), ENTRIES as usize);
}

/// Time without input after which the switch sends an echo request in these tests. After twice that time the channel
/// ends.
const SILENCE: Duration = Duration::from_secs(1);

/// The reply to an echo request waits behind the long reply that is being read. That does not count as silence,
/// however long the reply takes.
#[tokio::test]
async fn a_slow_reader_of_a_long_reply_keeps_its_channel() {
    let session = SessionConfig { echo_interval: SILENCE, ..SessionConfig::default() };
    let (switch, _hosts) = filled(SoftwareSwitchConfig { session, ..SoftwareSwitchConfig::default() });
    let mut controller = Controller::embedded(&switch, 4096).await;
    controller.send(multipart(RequestBody::Flow(FlowRequest::all()))).await;
    let (mut found, mut is_over) = (HashSet::new(), false);
    while !is_over {
        match controller.message().await.body {
            Body::MultipartReply(part) => {
                let ReplyBody::Flow(flows) = part.body else { panic!("{:?}", part.body) };
                found.extend(flows.iter().map(|flow| flow.cookie));
                is_over = !part.more;
                // All parts together take more than three times the silence.
                tokio::time::sleep(SILENCE / 150).await;
            }
            other => panic!("{other:?} comes before the reply's end"),
        }
    }
    assert_eq!(found.len(), ENTRIES as usize);
    controller.barrier().await;
}
