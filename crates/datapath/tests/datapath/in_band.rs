//! In-band control: control traffic passes by the flow tables.
use crate::bench::*;
use crate::frames;
use std::time::Duration;
use weir_datapath::{DatapathOutput, InBandConfig};
use weir_openflow::Body;
use weir_openflow::model::port::{PortMod, bits};
use weir_openflow::model::{Action, Match, PortDesc, PortNo};
use weir_packet::{Frame, FramePool};

/// A question of the station 9 for the controller.
const QUESTION: &str = "eth 9>ff:ff:ff:ff:ff:ff / arp 1 9/10.0.0.9>00:00:00:00:00:00/10.0.0.100";
/// A segment from the controller to the station 9.
const SEGMENT: &str = "eth 8>9 / ipv4 10.0.0.100>10.0.0.9 / tcp 6653>40000";

fn bench() -> Bench {
    let mut bench = Bench::controlled();
    let controllers = vec!["10.0.0.100:6653".parse().unwrap()];
    bench.datapath.start_in_band(InBandConfig {
        controllers,
        silence: Duration::from_secs(1),
        queue: Some(2),
        vlan: None,
    });
    bench
}

fn configure(bench: &mut Bench, number: u32, config: u32) {
    let desc = port(number);
    let mask = bits::PORT_DOWN | bits::NO_RECV | bits::NO_FWD;
    let (port_no, hw_addr) = (desc.port_no, desc.hw_addr);
    let change = PortMod { port_no, hw_addr, config, mask, advertise: 0, properties: vec![] };
    bench.ask(CONTROLLER, Body::PortMod(change));
}

#[test]
fn no_entry_and_no_port_configuration_stops_control_traffic() {
    let mut bench = bench();
    bench.add(65535, Match::any(), vec![]);
    configure(&mut bench, 1, bits::NO_RECV);
    configure(&mut bench, 2, bits::NO_FWD);
    assert_eq!(bench.ports_of(1, &frames::frame(QUESTION)), [2, 3, 4]);
    assert_eq!(bench.ports_of(3, &frames::frame(SEGMENT)), [1]);
    assert_eq!(bench.ports_of(2, &frames::frame(QUESTION)), [0_u32; 0]);
    assert_eq!(bench.datapath.drops().control_copy, 1);
    // Only other packets are looked up.
    assert_eq!(bench.ports_of(3, &frame()), [0_u32; 0]);
    assert_eq!(bench.datapath.drops().no_action, 1);
    configure(&mut bench, 4, bits::PORT_DOWN);
    bench.now += Duration::from_secs(1);
    assert_eq!(bench.ports_of(1, &frames::frame(QUESTION)), [2, 3]);
    assert_eq!(bench.ports_of(4, &frames::frame(QUESTION)), [0_u32; 0]);
    let state = bench.datapath.in_band(bench.now).expect("it is on");
    let counted: u64 = state.entries.iter().map(|entry| entry.packets).sum();
    assert_eq!((counted, state.counters.flooded, state.counters.copies, state.stations.len()), (4, 2, 1, 2));
}

#[test]
fn a_port_that_loses_its_link_is_forgotten() {
    let mut bench = bench();
    bench.receive(1, &frames::frame(QUESTION));
    bench.receive(3, &frames::frame(SEGMENT));
    bench.datapath.set_link(bench.now, PortNo(1), false, 0, &mut bench.out);
    let notices = std::mem::take(&mut bench.out.frames);
    let told: Vec<_> = notices.iter().map(|(port, frames)| (port.0, frames[0].bytes()[12..20].to_vec())).collect();
    let notice = b"\x88\xb5weirL1".to_vec();
    assert_eq!(told, [2, 3, 4].map(|port| (port, notice.clone())), "the neighbours on the other ports are told");
    assert_eq!(bench.ports_of(3, &frames::frame(SEGMENT)), [2, 4]);
    let state = bench.datapath.in_band(bench.now).expect("it is on");
    assert_eq!(state.stations, [(mac(8), PortNo(3))]);
}

#[test]
fn the_local_port_has_control_traffic_of_its_own() {
    let mut bench = bench();
    let local = PortDesc::new(PortNo::LOCAL, mac(7), "local");
    bench.datapath.add_port(bench.now, local, &mut bench.out).unwrap();
    let answer = frames::frame("eth 8>7 / arp 2 8/10.0.0.8>7/10.0.0.7");
    assert_eq!(bench.ports_of(1, &answer), [PortNo::LOCAL.0]);
    let question = frames::frame("eth 7>ff:ff:ff:ff:ff:ff / arp 1 7/10.0.0.7>00:00:00:00:00:00/10.0.0.8");
    assert_eq!(bench.ports_of(PortNo::LOCAL.0, &question), [1, 2, 3, 4]);
    // Traffic of the local port that is no control traffic is the controllers' affair.
    assert_eq!(bench.ports_of(PortNo::LOCAL.0, &frames::frame("eth 7>8 / ipv4 10.0.0.7>10.0.0.8 / udp 1>2")), [0; 0]);
}

#[test]
fn control_frames_of_a_burst_leave_first_and_in_their_queue() {
    let mut bench = bench();
    bench.add(0, Match::any(), vec![Action::output(PortNo(2))]);
    bench.receive(2, &frames::frame(QUESTION));
    let mut worker = bench.datapath.add_worker();
    let (mut pool, mut out) = (FramePool::default(), DatapathOutput::default());
    let segment = frames::frame(SEGMENT);
    let mut frames = vec![Frame::from_bytes(&frame()), Frame::from_bytes(&segment)];
    assert!(!bench.datapath.forward(&mut worker, bench.now, PortNo(1), &mut frames, &mut pool, &mut out));
    bench.datapath.process_for(&mut worker, bench.now, PortNo(1), &mut frames, &mut pool, &mut out);
    let sent = &out.frames.iter().find(|(port, _)| *port == PortNo(2)).expect("frames for port 2").1;
    assert_eq!((sent.len(), frames.len()), (2, 0));
    assert_eq!((sent[0].bytes(), sent[0].queue), (&segment[..], 2));
    assert_eq!((sent[1].bytes(), sent[1].queue), (&frame()[..], 0));
    let mut rest = vec![Frame::from_bytes(&frame())];
    assert!(bench.datapath.forward(&mut worker, bench.now, PortNo(1), &mut rest, &mut pool, &mut out));
}

#[test]
fn a_trace_names_the_hidden_entry() {
    let bench = bench();
    let trace = bench.datapath.trace(bench.now, PortNo(1), &frames::frame(SEGMENT)).to_string();
    assert!(trace.contains("in-band control: tcp,nw_src=10.0.0.100,tp_src=6653"), "{trace}");
}
