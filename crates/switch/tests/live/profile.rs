//! Live switches with a profile. The times themselves are tested in virtual time (`tests/timed`); these tests show
//! that the engine applies them.
use crate::bed::{Controller, PATIENCE, forward, punt, switch};
use serde_json::json;
use std::time::Duration;
use weir_device::ProfileConfig;
use weir_openflow::Body;
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::{FlowMod, Match, PortNo};
use weir_packet::{Field, Frame, FramePool};
use weir_port::{Port, memory};
use weir_profile::Profile;
use weir_switch::ctl::{CtlClient, CtlRequest, TraceReply};
use weir_switch::threads::{ThreadingMode, ThreadsConfig};
use weir_switch::{PortConfig, SocketFile, SoftwareSwitch, SoftwareSwitchConfig};
use weir_units::{Clock, Instant, SystemClock};

const SLOW: &str = r#"
name = "slow"
device = "A slow one"
origin = "assumed"
source = "A test"
[[level]]
name = "small"
size = 30
write = "2ms"
forward = { base_l2 = "300us" }
[timing]
packet_in = { law = "lattice", values = ["20ms", "40ms"], probs = [1, 1] }
"#;

fn config(text: &str) -> SoftwareSwitchConfig {
    let profile = Box::new(Profile::parse(text, "test.toml").unwrap());
    SoftwareSwitchConfig { profile: Some(ProfileConfig { profile, seed: 1 }), ..SoftwareSwitchConfig::default() }
}

fn entry(number: u16) -> FlowMod {
    FlowMod { matching: Match::any().with(Field::EthType, 0x0800_u16).with(Field::Ipv4Dst, number), ..forward(1, 2) }
}

#[tokio::test]
async fn flow_mods_take_their_time_in_their_order_and_full_tables_refuse() {
    let (switch, _hosts) = switch(2, config(SLOW));
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    let clock = SystemClock::start();
    for number in 0..32 {
        controller.send(Body::FlowMod(entry(number))).await;
    }
    controller.send(Body::BarrierRequest).await;
    let mut errors = 0;
    loop {
        let answer = controller.expect(|message| Some(message.body)).await;
        match answer {
            Body::Error(error) => {
                assert_eq!(error.error, FlowModFailed::TableFull.into());
                errors += 1;
            }
            Body::BarrierReply => break,
            _ => {}
        }
    }
    assert_eq!(errors, 2, "those that come last find 30 entries there");
    // Thirty flow-mods of two milliseconds, one after the other; a machine may be slower, never faster.
    assert!(clock.now().as_secs_f64() >= 0.060);
    let snapshot = switch.snapshot().unwrap();
    let timing = snapshot.timing.clone().unwrap();
    assert_eq!((snapshot.entries(), timing.commands, timing.refused), (30, 30, 2));
    assert_eq!((timing.levels[0].entries, timing.commands_waiting, timing.barriers_waiting), (30, 0, 0));
}

/// A trace on the control socket has the profile's times beside the measured ones, and counts nothing.
#[test]
fn a_trace_shows_what_the_profile_takes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let control_socket = Some(SocketFile::bind(&path).unwrap());
    let (switch, _hosts) = switch(2, SoftwareSwitchConfig { control_socket, ..config(SLOW) });
    switch.flow_mod(forward(1, 2)).unwrap();
    let mut client = CtlClient::connect(&path).unwrap();
    let request = CtlRequest::Trace { in_port: "1".into(), packet: "udp,nw_dst=10.0.0.2".into() };
    let traced: TraceReply = serde_json::from_value(client.ask(&request).unwrap()).unwrap();
    assert!(
        traced.text.contains("300000.0 ns  table 0: ") && traced.text.contains("profile slow: "),
        "{}",
        traced.text
    );
    assert!(traced.text.contains("resolution ") && !traced.text.contains(" 0.0 ns"), "{}", traced.text);
    let expected = &traced.trace["expected"];
    assert_eq!((&expected["profile"], &expected["total_ns"]), (&json!("slow"), &json!(300_000.0)));
    let times = &traced.trace["times"];
    assert_eq!(times["steps_ns"].as_array().map(Vec::len), traced.trace["steps"].as_array().map(Vec::len));
    assert!(times["resolution_ns"].as_f64() > Some(0.0) && times["clock_ns"].as_f64() >= Some(0.0), "{times}");
    let flows = client.ask(&CtlRequest::DumpFlows { filter: String::new() }).unwrap();
    assert!(flows.to_string().contains("n_packets=0"), "{flows}");
}

#[tokio::test]
async fn what_comes_behind_a_barrier_waits_for_it() {
    let (switch, _hosts) = switch(2, config(SLOW));
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    for number in 0..5 {
        controller.send(Body::FlowMod(entry(number))).await;
    }
    controller.send(Body::BarrierRequest).await;
    controller
        .send(crate::bed::multipart(weir_openflow::model::multipart::RequestBody::Aggregate(
            weir_openflow::model::multipart::FlowRequest::all(),
        )))
        .await;
    let order = [controller.expect(answer).await, controller.expect(answer).await];
    assert_eq!(order, ["barrier", "5"]);
    drop(controller);
}

fn answer(message: weir_openflow::Message) -> Option<String> {
    use weir_openflow::model::multipart::ReplyBody;
    match message.body {
        Body::BarrierReply => Some("barrier".to_owned()),
        Body::MultipartReply(reply) => match reply.body {
            ReplyBody::Aggregate(sum) => Some(sum.flow_count.to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// Messages that a controller sent before it ended the connection are carried out.
#[tokio::test]
async fn a_controller_that_goes_has_its_flow_mods() {
    let (switch, _hosts) = switch(2, config(SLOW));
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    for number in 0..20 {
        controller.send(Body::FlowMod(entry(number))).await;
    }
    drop(controller);
    assert!(weir_testing::wait_until(PATIENCE, || switch.snapshot().unwrap().entries() == 20));
    assert!(weir_testing::wait_until(PATIENCE, || switch.snapshot().unwrap().channels_up() == 0));
}

#[tokio::test]
async fn packets_and_packet_ins_are_held() {
    let (switch, mut hosts) = switch(2, config(SLOW));
    let [a, b] = &mut hosts[..] else { unreachable!() };
    switch.flow_mod(forward(1, 2)).unwrap();
    let clock = SystemClock::start();
    for tag in 0..20 {
        a.send(b, tag);
    }
    (0..20).for_each(|tag| assert_eq!(b.tag(), tag));
    assert!(clock.now().as_secs_f64() >= 20.0 * 300e-6, "each waits for those before it");
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    switch.flow_mod(FlowMod { priority: 9, ..punt() }).unwrap();
    switch.flow_mod(FlowMod { command: weir_openflow::model::FlowCommand::Delete, ..forward(1, 2) }).unwrap();
    let clock = SystemClock::start();
    a.send(b, 7);
    let packet = controller.expect(|message| match message.body {
        Body::PacketIn(packet) => Some(packet),
        _ => None,
    });
    assert_eq!(packet.await.in_port(), Some(PortNo(1)));
    assert!(clock.now().as_secs_f64() >= 0.020);
}

/// However late this machine is with each visit, the next visit counts from the time at which the previous one was
/// due.
#[test]
fn visits_over_cables_take_the_profiles_time_each() {
    const VISIT: Duration = Duration::from_micros(50);
    let text =
        "name = \"p\"\ndevice = \"A path\"\norigin = \"assumed\"\nsource = \"A test\"\n[timing]\ndata = \"50us\"\n";
    let ((inlet, mut near), (outlet, mut far)) = (memory::pair(64).unwrap(), memory::pair(64).unwrap());
    let ((out_a, in_a), (out_b, in_b)) = (memory::pair(64).unwrap(), memory::pair(64).unwrap());
    let ports = (1..).zip([inlet, outlet, out_a, in_a, out_b, in_b]);
    let ports = ports.map(|(number, port)| PortConfig::new(PortNo(number), Box::new(port))).collect();
    let switch = SoftwareSwitch::start(SoftwareSwitchConfig { ports, ..config(text) }).unwrap();
    [(1, 3), (4, 5), (6, 2)].into_iter().for_each(|(from, to)| switch.flow_mod(forward(from, to)).unwrap());
    // Both ends of this rig keep a schedule, too: the near end states when the packet was sent, the far end is told
    // when the last visit ended.
    let clock = SystemClock::start();
    for port in [&mut near, &mut far] {
        assert!(port.stamp_arrivals(clock));
        port.keep_schedule();
    }
    let mut pool = FramePool::default();
    for _ in 0..20 {
        let sent = clock.now();
        near.transmit(sent, &mut pool, &mut vec![Frame::from_bytes(&[0; 60])]).unwrap();
        let mut came = Vec::new();
        assert!(weir_testing::wait_until(PATIENCE, || {
            far.receive(clock.now(), &mut pool, &mut came, 1).unwrap();
            !came.is_empty()
        }));
        assert_eq!(Instant::from_nanos(came[0].arrived()), sent + VISIT * 3);
    }
}

#[test]
fn what_does_not_fit_a_profile_is_refused() {
    let threads = ThreadsConfig { mode: ThreadingMode::Pipeline, ..ThreadsConfig::default() };
    let refused = SoftwareSwitch::start(SoftwareSwitchConfig { threads, ..config(SLOW) }).err().unwrap().to_string();
    assert!(refused.starts_with("profile slow: found several threads"), "{refused}");
    let measured = "name = \"p\"\ndevice = \"d\"\norigin = \"assumed\"\nsource = \"s\"\n\
        [timing]\ncontrol = { delay = \"20ms\", capacity = 70 }\n";
    let refused = SoftwareSwitch::start(config(measured)).err().unwrap().to_string();
    assert!(refused.starts_with("profile p: found timing.control"), "{refused}");
}
