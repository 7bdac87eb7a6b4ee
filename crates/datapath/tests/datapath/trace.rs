//! Traces: their text, and that tracing changes nothing.
use crate::bench::*;
use std::net::Ipv4Addr;
use weir_datapath::{Datapath, ExpectedTimes, TraceTimes};
use weir_openflow::model::meter::MeterCommand;
use weir_openflow::model::nicira::NxMessage;
use weir_openflow::model::{Action, Body, FlowCommand, FlowMod, Instruction, Match, PortNo, TableId};
use weir_openflow::text::{parse_flow, parse_meter};
use weir_packet::Field;
use weir_packet::craft::FrameBuilder;

fn frame() -> Vec<u8> {
    let craft = FrameBuilder::ethernet(mac(2), mac(1));
    craft.ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)).udp(1000, 2000).payload(&[1; 18]).build()
}

/// Returns all state that packets change.
fn counts(datapath: &Datapath) -> String {
    format!("{datapath:?}")
}

#[test]
fn a_trace_tells_tables_entries_actions_and_outputs() {
    let mut bench = Bench::controlled();
    let goto = Instruction::GotoTable(TableId(1));
    let push = vec![Action::PushVlan(0x8100), Action::SetField { field: Field::VlanVid, value: 0x1005 }];
    let first = vec![Instruction::ApplyActions(push), goto];
    bench.flow_mod(&FlowMod { cookie: 7, ..FlowMod::add(9, from_port(1), first) }).unwrap();
    let both = vec![Action::output(PortNo(9)), Action::output(PortNo::FLOOD)];
    bench.flow_mod(&FlowMod { table: TableId(1), ..FlowMod::add(0, Match::any(), apply(both)) }).unwrap();
    let before = counts(&bench.datapath);
    let trace = bench.datapath.trace(bench.now, PortNo(1), &frame());
    assert_eq!(counts(&bench.datapath), before);
    let sent = "dl_vlan=5,dl_vlan_pcp=0,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,\
                nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=1000,tp_dst=2000";
    let expected = format!(
        "packet: udp,in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,\
         nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=1000,tp_dst=2000\n\
         table 0: cookie=0x7, priority=9,in_port=1 actions=push_vlan:0x8100,set_field:4101->vlan_vid,goto_table:1\n  \
           push_vlan:0x8100\n  set_field:4101->vlan_vid\n\
         table 1: cookie=0x0, priority=0 actions=output:9,FLOOD\n  output:9\n  dropped: no such port\n  FLOOD\n  \
           -> port 2: udp,{sent}\n  -> port 3: udp,{sent}\n  -> port 4: udp,{sent}\n"
    );
    assert_eq!(trace.to_string().replace("dl_vlan_pcp=0,", ""), expected.replace("dl_vlan_pcp=0,", ""));
    let json = serde_json::to_value(&trace).unwrap();
    assert_eq!(
        (&json["outputs"], &json["drops"]),
        (&serde_json::json!([2, 3, 4]), &serde_json::json!(["unknown_port"]))
    );
}

#[test]
fn a_trace_ends_as_the_packet_would() {
    let mut bench = Bench::new();
    let text = |bench: &Bench, port, frame: &[u8]| bench.datapath.trace(bench.now, PortNo(port), frame).to_string();
    assert!(text(&bench, 1, &frame()).ends_with("table 0: no entry matches\n  dropped: no entry matched\n"));
    assert!(text(&bench, 9, &frame()).ends_with("dropped: no such port\n"));
    assert!(text(&bench, 1, &[0; 9]).ends_with("dropped: shorter than an Ethernet header\n"));
    bench.add(0, Match::any(), vec![Action::to_controller()]);
    assert!(text(&bench, 1, &frame()).ends_with("dropped: no controller takes it\n"));
    bench.datapath.channel_up(bench.now, CONTROLLER, weir_openflow::Version::V13);
    assert!(text(&bench, 1, &frame()).ends_with("-> controller: no_match\n"));
}

#[test]
fn a_trace_gives_misses_to_channels_of_1_0_with_controller_id_0() {
    let mut bench = Bench::new();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, weir_openflow::Version::V10);
    let ends = |bench: &mut Bench, end: &str| {
        let text = bench.datapath.trace(bench.now, PortNo(1), &frame()).to_string();
        assert!(text.ends_with(end), "{text}");
        bench.receive(1, &frame());
        bench.packet_ins(OLD_CONTROLLER).len()
    };
    assert_eq!(ends(&mut bench, "-> controller: no_match\n"), 1);
    bench.ask(OLD_CONTROLLER, Body::Nx(Box::new(NxMessage::SetControllerId(7))));
    assert_eq!(ends(&mut bench, "dropped: no entry matched\n"), 0);
}

#[test]
fn every_step_of_a_trace_is_timed() {
    let mut bench = Bench::controlled();
    let steps = |bench: &Bench, port| {
        let trace = bench.datapath.trace(bench.now, PortNo(port), &frame());
        // Once with time for many runs, each on a fresh copy of the packet, and once with time for only one run.
        let times = [1_000_000, 0].map(|budget| {
            let cycles = bench.datapath.time_trace(bench.now, PortNo(port), &frame(), budget);
            cycles.times(1.0).steps_ns.len()
        });
        (trace.steps.len(), times)
    };
    assert_eq!(steps(&bench, 1), (2, [2, 2]), "a miss is a lookup and a drop");
    bench.add(
        0,
        Match::any(),
        vec![Action::PushVlan(0x8100), Action::output(PortNo::FLOOD), Action::output(PortNo(2))],
    );
    let before = counts(&bench.datapath);
    assert_eq!(steps(&bench, 1), (8, [8, 8]), "a lookup, three actions, four copies");
    assert_eq!(steps(&bench, 9), (1, [1, 1]), "a port that is not there");
    assert_eq!(counts(&bench.datapath), before);
}

/// Repeated traces leave meters, learned addresses, learned entries and counters as they are; one packet changes them.
#[test]
fn timing_a_trace_many_times_changes_nothing_that_a_packet_would() {
    let mut bench = Bench::controlled();
    let learn = "learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])";
    let meter = parse_meter("meter=1,pktps,bands=type=drop,rate=1", MeterCommand::Add).unwrap();
    bench.ask(CONTROLLER, Body::MeterMod(meter));
    let flow = parse_flow(&format!("actions=meter:1,{learn},NORMAL"), FlowCommand::Add).unwrap();
    bench.flow_mod(&flow).unwrap();
    let before = counts(&bench.datapath);
    let passes = |bench: &Bench| {
        let trace = bench.datapath.trace(bench.now, PortNo(1), &frame());
        assert!(bench.datapath.time_trace(bench.now, PortNo(1), &frame(), 3_000_000).times(1.0).runs > 1);
        trace.drops.is_empty()
    };
    assert!(passes(&bench) && passes(&bench), "the meter's one packet is still there");
    assert_eq!(counts(&bench.datapath), before);
    bench.receive(1, &frame());
    assert_ne!(counts(&bench.datapath), before);
    assert_eq!(bench.datapath.trace(bench.now, PortNo(1), &frame()).outputs, [], "now the meter drops");
}

#[test]
fn times_stand_in_columns_with_their_resolution() {
    let mut bench = Bench::controlled();
    bench.add(0, Match::any(), vec![Action::output(PortNo(2))]);
    let mut trace = bench.datapath.trace(bench.now, PortNo(1), &frame());
    let steps_ns = vec![Some(7.25), None, Some(3.0)];
    let (parse_ns, total_ns) = (Some(20.0), 30.5);
    trace.times = Some(TraceTimes { parse_ns, steps_ns, total_ns, resolution_ns: 0.8, clock_ns: 9.2, runs: 5 });
    let text = trace.to_string();
    assert!(text.starts_with("   20.0 ns  packet: "), "{text}");
    assert!(text.contains("\n    7.2 ns  table 0: ") && text.contains("\n  < 0.8 ns    output:2\n"), "{text}");
    let total = "   30.5 ns  in all, for a packet alone whose way is in the cache: the best of 5 runs";
    let resolution = "            resolution 0.8 ns; reading the clock took 9.2 ns, which is subtracted";
    assert!(text.ends_with(&format!("\n{total}\n{resolution}\n")), "{text}");
    let json = serde_json::to_value(&trace).unwrap();
    assert_eq!(json["times"]["steps_ns"], serde_json::json!([7.25, null, 3.0]));
    assert!(json.get("expected").is_none(), "no profile, no expectation");
    let steps_ns = vec![Some(4000.0), None, None];
    trace.expected = Some(ExpectedTimes { profile: "slow".to_owned(), steps_ns, total_ns: 4000.0 });
    let text = trace.to_string();
    assert!(text.starts_with("  measured        profile  step\n   20.0 ns                 packet: "), "{text}");
    assert!(text.contains("\n    7.2 ns      4000.0 ns  table 0: "), "{text}");
    assert!(text.contains("\n   30.5 ns      4000.0 ns  in all"), "{text}");
    assert_eq!(serde_json::to_value(&trace).unwrap()["expected"]["steps_ns"][0], 4000.0);
}
