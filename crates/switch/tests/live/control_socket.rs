//! The control socket, used by correct and by faulty clients.
use crate::bed::{Controller, Host, PATIENCE, forward, punt, switch, until};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use weir_client::OpenFlowClient;
use weir_openflow::model::config::SwitchConfig;
use weir_openflow::{Body, Version};
use weir_switch::ctl::{
    CtlClient, CtlRequest, FlowDump, FlowVerb, GroupVerb, MAX_REQUEST_BYTES, PerfReport, SnoopRecord, TraceReply,
};
use weir_switch::{PortConfig, SocketFile, SoftwareSwitch, SoftwareSwitchConfig, SwitchHandle, SwitchSnapshot};

/// Types of messages.
const HELLO: u8 = 0;
const BARRIER_REQUEST: u8 = 20;
const BARRIER_REPLY: u8 = 21;

struct Bed {
    switch: SwitchHandle,
    path: PathBuf,
    /// The far ends of the ports, whose links they keep up.
    hosts: Vec<Host>,
    _dir: tempfile::TempDir,
}

fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let control_socket = Some(SocketFile::bind(&path).unwrap());
    let (switch, hosts) = switch(2, SoftwareSwitchConfig { control_socket, ..SoftwareSwitchConfig::default() });
    Bed { switch, path, hosts, _dir: dir }
}

fn ask(client: &mut CtlClient, request: &CtlRequest) -> Result<serde_json::Value, String> {
    client.ask(request).map_err(|error| error.to_string())
}

#[test]
fn every_request_is_answered() {
    let bed = bed();
    let mut client = CtlClient::connect(&bed.path).unwrap();
    let flow = |command, flow: &str| CtlRequest::FlowMod { command, flow: flow.into() };
    ask(&mut client, &flow(FlowVerb::Add, "priority=7,ip,nw_dst=10.0.0.0/8,actions=dec_ttl,output:2")).unwrap();
    bed.switch.flow_mod(forward(2, 1)).unwrap();
    let dump = |client: &mut CtlClient, filter: &str| -> FlowDump {
        serde_json::from_value(ask(client, &CtlRequest::DumpFlows { filter: filter.into() }).unwrap()).unwrap()
    };
    let flows = dump(&mut client, "ip");
    assert_eq!((flows.flows.len(), flows.left_out), (1, 0));
    assert!(flows.flows[0].text.ends_with("priority=7,ip,nw_dst=10.0.0.0/8 actions=dec_ttl,output:2"), "{flows:?}");
    let packet = "udp,nw_src=10.0.0.1,nw_dst=10.0.0.2".into();
    let trace = ask(&mut client, &CtlRequest::Trace { in_port: "p1".into(), packet }).unwrap();
    let trace: TraceReply = serde_json::from_value(trace).unwrap();
    assert!(trace.text.contains("priority=7") && trace.text.contains("port 2"), "{}", trace.text);
    assert!(
        trace.text.contains(" ns  table 0: ") && trace.text.contains("\n            resolution "),
        "{}",
        trace.text
    );
    assert!(!trace.text.contains("profile") && trace.trace.get("expected").is_none(), "{}", trace.text);
    ask(&mut client, &flow(FlowVerb::Delete, "ip")).unwrap();
    assert_eq!(dump(&mut client, "").flows.len(), 1);
    ask(&mut client, &CtlRequest::AddPort { port: "5=null:x".into() }).unwrap();
    let show: SwitchSnapshot = serde_json::from_value(ask(&mut client, &CtlRequest::Show).unwrap()).unwrap();
    assert_eq!(show.ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(), ["p1", "p2", "x"]);
    ask(&mut client, &CtlRequest::DelPort { port: "x".into() }).unwrap();
    ask(&mut client, &CtlRequest::AddPort { port: "LOCAL=null:host".into() }).unwrap();
    ask(&mut client, &CtlRequest::DelPort { port: "local".into() }).unwrap();
    assert_eq!(bed.switch.snapshot().unwrap().ports.len(), 2);
}

/// Names of ports stand for their numbers in flow entries, in filters and in groups.
#[test]
fn ports_are_known_by_name() {
    let bed = bed();
    let mut client = CtlClient::connect(&bed.path).unwrap();
    let add = |flow: &str| CtlRequest::FlowMod { command: FlowVerb::Add, flow: flow.into() };
    ask(&mut client, &add("in_port=p1,actions=output:p2")).unwrap();
    ask(&mut client, &add("in_port=p2,actions=p1")).unwrap();
    let listed = ask(&mut client, &CtlRequest::DumpFlows { filter: "in_port=p1".into() }).unwrap();
    let flows: FlowDump = serde_json::from_value(listed).unwrap();
    assert_eq!(flows.flows.len(), 1);
    assert!(flows.flows[0].text.ends_with("in_port=1 actions=output:2"), "{flows:?}");
    let group = "group_id=1,type=indirect,bucket=output:p2".to_owned();
    ask(&mut client, &CtlRequest::GroupMod { command: GroupVerb::Add, group }).unwrap();
    assert!(ask(&mut client, &CtlRequest::DumpGroups).unwrap().to_string().contains("output:2"));
    let error = ask(&mut client, &add("in_port=p9,actions=drop")).unwrap_err();
    assert!(error.contains("p9") && error.contains("1=p1, 2=p2"), "{error}");
    let mut trace = |packet: &str| ask(&mut client, &CtlRequest::Trace { in_port: "p1".into(), packet: packet.into() });
    assert!(trace("in_port=p1,tcp").unwrap().to_string().contains("-> port 2"));
    let error = trace("in_port=p9,tcp").unwrap_err();
    assert!(error.contains("no port `p9`; there are: 1=p1, 2=p2"), "{error}");
    let error = trace("in_port=p2,tcp").unwrap_err();
    assert!(error.contains("found in_port=2 in the packet, expected 1"), "{error}");
}

/// Entries and groups of a configuration call ports by name, as requests do.
#[test]
fn a_configuration_knows_ports_by_name() {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let groups = texts(&["group_id=1,type=ff,bucket=watch_port:p2,output:p2"]);
    let entries = texts(&["in_port=p1,actions=group:1", "in_port=p2,actions=p1"]);
    let (switch, mut hosts) =
        crate::bed::switch(2, SoftwareSwitchConfig { groups, entries, ..SoftwareSwitchConfig::default() });
    let [a, b] = &mut hosts[..] else { unreachable!() };
    a.send(b, 1);
    assert_eq!(b.tag(), 1);
    drop(switch);
    let port = || PortConfig::open("1=null:x".parse().unwrap()).unwrap();
    for (groups, entries, expected) in [
        (vec![], texts(&["in_port=y,actions=drop"]), "entries: `in_port=y,actions=drop`: no port `y`; there are: 1=x"),
        (texts(&["group_id=1,type=all,bucket=output:y"]), vec![], "output:y`: no port `y`; there are: 1=x"),
    ] {
        let config = SoftwareSwitchConfig { ports: vec![port()], groups, entries, ..SoftwareSwitchConfig::default() };
        let error = SoftwareSwitch::start(config).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expected), "{error}");
    }
}

/// Values of 128 bits in matches, masks, actions and buckets are listed as text and in the entry, as are all other
/// settings.
#[test]
fn wide_values_and_flags_are_listed() {
    let bed = bed();
    let mut client = CtlClient::connect(&bed.path).unwrap();
    let wide = "ipv6,ipv6_src=fd00::/8,ipv6_dst=fd00::1 actions=set_field:fd00::2->ipv6_dst,output:2";
    let flow = format!("send_flow_rem,check_overlap,importance=7,idle_timeout=60,priority=9,{wide}");
    ask(&mut client, &CtlRequest::FlowMod { command: FlowVerb::Add, flow }).unwrap();
    let listed = ask(&mut client, &CtlRequest::DumpFlows { filter: String::new() }).unwrap();
    let flows: FlowDump = serde_json::from_value(listed.clone()).unwrap();
    let text = &flows.flows[0].text;
    let settings = "idle_timeout=60, send_flow_rem check_overlap importance=7, priority=9,";
    assert!(text.ends_with(&format!("{settings}{wide}")), "{text}");
    assert!(listed.to_string().contains("\"0xfd000000000000000000000000000001\""), "{listed}");
    let group = "group_id=1,type=indirect,bucket=actions=set_field:fd00::2->ipv6_src,output:2".to_owned();
    ask(&mut client, &CtlRequest::GroupMod { command: GroupVerb::Add, group }).unwrap();
    let groups = ask(&mut client, &CtlRequest::DumpGroups).unwrap().to_string();
    assert!(groups.contains("set_field:fd00::2->ipv6_src"), "{groups}");
}

/// An entry with a packet's description as its match is found by the trace of that packet.
#[test]
fn a_described_packet_meets_its_entry() {
    let bed = bed();
    let mut client = CtlClient::connect(&bed.path).unwrap();
    let described = "icmp6,icmp_type=135,nd_target=fd00::1";
    let flow = format!("priority=9,in_port=1,{described},actions=output:2");
    ask(&mut client, &CtlRequest::FlowMod { command: FlowVerb::Add, flow }).unwrap();
    let mut trace = |packet: &str| ask(&mut client, &CtlRequest::Trace { in_port: "1".into(), packet: packet.into() });
    for packet in [described.to_owned(), format!("in_port=1,{described}")] {
        let traced: TraceReply = serde_json::from_value(trace(&packet).unwrap()).unwrap();
        assert!(traced.text.contains("priority=9") && traced.text.contains("port 2"), "{}", traced.text);
    }
    let error = trace("in_port=3,tcp").unwrap_err();
    assert!(error.contains("found in_port=3 in the packet, expected 1"), "{error}");
    let error = trace("metadata=5").unwrap_err();
    assert!(error.contains("metadata=0x5 cannot be described"), "{error}");
}

/// Measuring ends when its client disconnects: the next measurement starts at zero.
#[test]
fn measuring_ends_with_who_asked() {
    let bed = bed();
    let mut gone = UnixStream::connect(&bed.path).unwrap();
    let request = serde_json::to_vec(&CtlRequest::Perf { seconds: 20.0 }).unwrap();
    gone.write_all(&[&request[..], b"\n"].concat()).unwrap();
    let is_watched = || -> bool {
        let mut client = CtlClient::connect(&bed.path).unwrap();
        let shown: SwitchSnapshot = serde_json::from_value(ask(&mut client, &CtlRequest::Show).unwrap()).unwrap();
        shown.perf_watchers > 0
    };
    assert!(weir_testing::wait_until(PATIENCE, is_watched), "it is not measured");
    drop(gone);
    assert!(weir_testing::wait_until(Duration::from_secs(10), || !is_watched()), "it is still measured");
}

#[test]
fn what_is_refused_says_why() {
    let bed = bed();
    let mut client = CtlClient::connect(&bed.path).unwrap();
    let flow = |flow: &str| CtlRequest::FlowMod { command: FlowVerb::Add, flow: flow.into() };
    for (request, reason) in [
        (CtlRequest::DelPort { port: "eth9".into() }, "no port `eth9`; there are: 1=p1, 2=p2"),
        (CtlRequest::AddPort { port: "1=null:x".into() }, "taken by memory:p1"),
        (CtlRequest::AddPort { port: "nul:x".into() }, "null"),
        (flow("prioritie=7,actions=drop"), "prioritie"),
        (flow("table=253,actions=drop"), "refuses the flow entry: OFPFMFC_BAD_TABLE_ID"),
        (CtlRequest::Trace { in_port: "9".into(), packet: "ip".into() }, "no port `9`"),
        (
            CtlRequest::Trace { in_port: "1".into(), packet: "zz".into() },
            "neither hexadecimal digits nor a packet description",
        ),
        (CtlRequest::DumpFlows { filter: "actions=drop".into() }, ""),
    ] {
        let error = ask(&mut client, &request).unwrap_err();
        assert!(error.contains(reason), "{request:?}: {error}");
    }
}

#[test]
fn malformed_requests_are_answered_and_harm_nobody() {
    let bed = bed();
    let mut stream = BufReader::new(UnixStream::connect(&bed.path).unwrap());
    let lines: [&[u8]; 8] = [
        b"",
        b"{",
        b"[1,2]",
        b"\xff\xfe\x00",
        b"{\"request\":\"fly\"}",
        b"{\"request\":\"del-port\"}",
        b"{\"request\":\"del-port\",\"port\":7}",
        b"{\"request\":\"del-port\",\"port\":\"1\",\"force\":true}",
    ];
    for line in lines {
        stream.get_mut().write_all(line).unwrap();
        stream.get_mut().write_all(b"\n").unwrap();
        let mut answer = String::new();
        stream.read_line(&mut answer).unwrap();
        assert!(answer.starts_with("{\"error\":\"the request is not understood"), "{answer}");
    }
    // An endless line is answered once it is too long, and the connection is closed.
    let mut endless = BufReader::new(UnixStream::connect(&bed.path).unwrap());
    let _ = endless.get_mut().write_all(&vec![b' '; MAX_REQUEST_BYTES + 2]);
    let mut answer = String::new();
    let _ = endless.read_line(&mut answer);
    assert!(answer.is_empty() || answer.contains("longer than"), "{answer}");
    // Half a request followed by nothing does not keep others from being served.
    let mut half = UnixStream::connect(&bed.path).unwrap();
    half.write_all(b"{\"request\":").unwrap();
    let mut client = CtlClient::connect(&bed.path).unwrap();
    assert!(ask(&mut client, &CtlRequest::Show).is_ok());
    assert_eq!(bed.switch.snapshot().unwrap().ports.len(), 2);
}

#[tokio::test]
async fn stop_is_asked_for_and_the_socket_goes() {
    let bed = bed();
    ask(&mut CtlClient::connect(&bed.path).unwrap(), &CtlRequest::Stop).unwrap();
    tokio::time::timeout(crate::bed::PATIENCE, bed.switch.stop_requested()).await.unwrap();
    bed.switch.stop();
    assert!(!bed.path.exists());
    assert!(CtlClient::connect(&bed.path).unwrap_err().to_string().contains("no switch answers"));
}

#[test]
fn where_time_goes_can_be_watched_by_several_at_once() {
    let bed = bed();
    let watch = |seconds: f64| {
        let path = bed.path.clone();
        std::thread::spawn(move || ask(&mut CtlClient::connect(&path).unwrap(), &CtlRequest::Perf { seconds }))
    };
    let both = [watch(0.05), watch(0.1)];
    for (watched, least) in both.into_iter().zip([0.05, 0.1]) {
        let report: PerfReport = serde_json::from_value(watched.join().unwrap().unwrap()).unwrap();
        assert!(report.seconds >= least && report.cycles_per_ns > 0.0, "{report:?}");
        let buffers = report.buffers.as_ref().expect("a switch has buffers");
        assert_eq!(buffers.prepared.iter().map(|prepared| prepared.count).sum::<u32>(), 4096);
        assert!((1..=4096).contains(&buffers.free) && buffers.beyond == 0, "{buffers:?}");
        assert!(!report.threads[0].stages.is_empty(), "it slept or looked: {report:?}");
    }
    for wrong in [0.0, -1.0, 21.0] {
        let error = watch(wrong).join().unwrap().unwrap_err();
        assert!(error.contains("expected 0.01 to 20"), "{error}");
    }
}

/// A listener sees the messages of both directions, from the handshake on and of channels that are up already, and
/// its end leaves the channels as they were.
#[tokio::test]
async fn snooping_shows_both_directions() {
    let bed = bed();
    let mut early = Controller::embedded(&bed.switch, 4096).await;
    early.barrier().await;
    let mut client = CtlClient::connect(&bed.path).unwrap();
    ask(&mut client, &CtlRequest::Snoop).unwrap();
    early.barrier().await;
    let mut late = Controller::embedded(&bed.switch, 4096).await;
    late.barrier().await;
    let mut seen = Vec::new();
    while seen.iter().filter(|(kind, to_switch)| *kind == BARRIER_REPLY && !to_switch).count() < 2 {
        let record = client.next_record(Some(PATIENCE)).unwrap().expect("a message in time");
        let SnoopRecord::Message(message) = record else { panic!("{record:?}") };
        assert_eq!(message.channel, "in-process");
        seen.push((u8::from_str_radix(&message.bytes[2..4], 16).unwrap(), message.to_switch));
    }
    assert_eq!(seen[..2], [(BARRIER_REQUEST, true), (BARRIER_REPLY, false)], "{seen:?}");
    assert!(seen.contains(&(HELLO, true)) && seen.contains(&(HELLO, false)), "{seen:?}");
    assert_eq!(client.next_record(Some(Duration::from_millis(20))).unwrap(), None);
    drop(client);
    early.barrier().await;
}

/// The end of the switch is an error for a listener, unlike the end of its time.
#[tokio::test]
async fn the_end_of_the_switch_is_no_end_of_time() {
    let bed = bed();
    let mut client = CtlClient::connect(&bed.path).unwrap();
    ask(&mut client, &CtlRequest::Snoop).unwrap();
    assert_eq!(client.next_record(Some(Duration::from_millis(5))).unwrap(), None);
    bed.switch.stop();
    let error = client.next_record(Some(PATIENCE)).unwrap_err();
    assert_eq!(error.to_string(), "the switch stopped answering: it ended the connection");
    assert!(std::error::Error::source(&error).is_none(), "programs that print sources would say it twice");
}

/// A listener that does not read costs the channel nothing: what does not fit is counted.
#[tokio::test]
async fn a_slow_listener_loses_messages_only() {
    let bed = bed();
    let mut client = CtlClient::connect(&bed.path).unwrap();
    ask(&mut client, &CtlRequest::Snoop).unwrap();
    let mut controller = Controller::embedded(&bed.switch, 1 << 20).await;
    let sent = 20_000;
    for _ in 0..sent {
        controller.send(Body::EchoRequest(weir_openflow::model::Bytes(vec![0; 256]))).await;
        controller.expect(|message| matches!(message.body, Body::EchoReply(_)).then_some(())).await;
    }
    controller.barrier().await;
    let (mut seen, mut lost) = (0, 0);
    while seen + lost < 2 * sent {
        match client.next_record(Some(PATIENCE)).unwrap().expect("a record in time") {
            SnoopRecord::Message(_) => seen += 1,
            SnoopRecord::Lost(more) => lost += more,
        }
    }
    assert!(lost > 1000 && seen >= 4096, "{seen} seen, {lost} lost");
}

/// A monitor is a channel that gets asynchronous messages and is no controller.
#[tokio::test]
async fn a_monitor_is_a_channel_of_a_tool() {
    let mut bed = bed();
    bed.switch.flow_mod(punt()).unwrap();
    let mut client = CtlClient::connect(&bed.path).unwrap();
    ask(&mut client, &CtlRequest::Monitor).unwrap();
    let (stream, read) = client.into_channel().unwrap();
    let clock = weir_units::SystemClock::start();
    let channel = OpenFlowClient::over(stream, &read, &[Version::V13], PATIENCE, clock);
    let mut channel = channel.unwrap();
    assert_eq!(bed.switch.snapshot().unwrap().channels[0].target, "weir ctl monitor");
    channel.tell(Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: u16::MAX })).unwrap();
    channel.ask(Body::BarrierRequest).unwrap();
    let [a, b] = &mut bed.hosts[..] else { unreachable!() };
    a.send(b, 7);
    let got = loop {
        if let Some((_, message)) = channel.poll().unwrap() {
            break message.body;
        }
        channel.wait_for_input(PATIENCE);
    };
    assert!(matches!(got, Body::PacketIn(_)), "{got:?}");
    drop(channel);
    until(|| bed.switch.snapshot().unwrap().channels.is_empty()).await;
}
