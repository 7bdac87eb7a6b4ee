//! Nicira's actions and messages: their effects, and the errors of invalid ones.
use crate::bench::{Bench, CONTROLLER, OLD_CONTROLLER, PORTS, frame};
use weir_openflow::model::error::{BadAction, BadMatch, BadRequest};
use weir_openflow::model::group::GroupCommand;
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::nicira::{FlowFormat, NxMessage, PacketInFormat};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::{Body, ErrorType, FlowCommand, FlowMod, PortNo};
use weir_openflow::text::{parse_actions, parse_flow, parse_group};
use weir_openflow::{Version, decode, encode};
use weir_packet::Field;

fn add(bench: &mut Bench, flows: &[&str]) {
    for flow in flows {
        bench
            .flow_mod(&parse_flow(flow, FlowCommand::Add).unwrap())
            .unwrap_or_else(|error| panic!("{flow}: {error:?}"));
    }
}

/// Returns the ports that a packet from port 1 leaves by.
fn ports(flows: &[&str]) -> Vec<u32> {
    let mut bench = Bench::new();
    add(&mut bench, flows);
    bench.ports_of(1, &frame())
}

fn nicira(message: NxMessage) -> Body {
    Body::Nx(Box::new(message))
}

#[test]
fn a_resubmit_runs_what_it_finds_and_goes_on() {
    let flows = ["actions=resubmit(,1),output:2", "table=1,actions=output:3"];
    assert_eq!(ports(&flows), [2, 3]);
    // A resubmit that finds no entry does nothing, and the rest of the list runs.
    assert_eq!(ports(&["actions=resubmit(,9),output:2"]), [2]);
    // The other input port applies to the lookup only: for outputs, port 1 is still the input port.
    let flows = ["in_port=1,actions=resubmit:4,output:1", "in_port=4,actions=output:2,in_port"];
    assert_eq!(ports(&flows), [1, 2]);
    // The entry found may go to another table and write to the action set.
    let flows = [
        "actions=resubmit(,1),output:2",
        "table=1,actions=write_actions(output:4),goto_table:2",
        "table=2,actions=output:3",
    ];
    assert_eq!(ports(&flows), [2, 3, 4]);
}

#[test]
fn registers_begin_at_zero_and_are_kept() {
    let flows = [
        "reg0=0,actions=load:0x12->NXM_NX_REG0[8..15],resubmit(,1),goto_table:3",
        "table=1,reg0=0x1200,actions=move:NXM_NX_REG0[8..11]->NXM_NX_REG1[0..3]",
        "table=3,reg0=0x1200,reg1=2,actions=output:NXM_NX_REG1[]",
    ];
    assert_eq!(ports(&flows), [2]);
    let mut bench = Bench::new();
    add(&mut bench, &flows);
    assert_eq!(bench.ports_of(1, &frame()), bench.ports_of(1, &frame()), "nothing is left from the packet before");
    // A wide register consists of two registers.
    let flows = ["actions=set_field:0x300000002->xreg0,resubmit(,1)", "table=1,reg0=3,actions=output:reg1[]"];
    assert_eq!(ports(&flows), [2]);
}

#[test]
fn exit_ends_everything_but_outside_a_clone() {
    assert_eq!(ports(&["actions=resubmit(,1),output:2", "table=1,actions=output:3,exit,output:4"]), [3]);
    assert_eq!(ports(&["actions=clone(output:3,exit,output:4),output:2"]), [2, 3]);
    // A clone's changes affect only the clone.
    assert_eq!(ports(&["actions=clone(load:3->reg0[],output:reg0[]),output:reg0[],output:2"]), [2, 3]);
}

#[test]
fn resubmits_without_end_are_dropped_and_counted() {
    let mut bench = Bench::new();
    add(&mut bench, &["actions=output:2,resubmit(,0)"]);
    assert_eq!(bench.receive(1, &frame()).len(), 65, "one for each level");
    assert_eq!(bench.datapath.drops().resubmits, 1);
    // Many resubmits of small depth: each table resubmits twice to the next one.
    let mut bench = Bench::new();
    for table in 0..20 {
        add(&mut bench, &[&format!("table={table},actions=resubmit(,{0}),resubmit(,{0})", table + 1)]);
    }
    assert_eq!(bench.receive(1, &frame()).len(), 0);
    assert_eq!(bench.datapath.drops().resubmits, 1);
    // Clones share the packet's limit of resubmits.
    let mut bench = Bench::new();
    add(&mut bench, &["actions=clone(resubmit(,0)),clone(resubmit(,0))"]);
    bench.receive(1, &frame());
    assert!(bench.datapath.drops().resubmits > 0);
}

#[test]
fn the_stack_gives_back_the_latest_first() {
    let flow = "actions=load:2->reg0[],load:3->reg1[],push:reg0[],push:reg1[],pop:reg2[],pop:reg3[],output:reg2[],output:reg3[]";
    assert_eq!(ports(&[flow]), [2, 3]);
    assert_eq!(ports(&["actions=load:2->reg0[],pop:reg0[],output:reg0[]"]), [2], "nothing is on it");
    let mut bench = Bench::new();
    add(
        &mut bench,
        &["actions=push:reg0[],resubmit(,1)", &format!("table=1,actions={}", "push:xxreg0[],".repeat(1000))],
    );
    bench.receive(1, &frame());
    assert_eq!(bench.datapath.drops().stack_full, 0);
}

fn add_group(bench: &mut Bench, group: &str) -> Option<ErrorType> {
    bench.error_of(CONTROLLER, Body::GroupMod(parse_group(group, GroupCommand::Add).unwrap()))
}

#[test]
fn in_a_bucket_they_run_in_their_order_before_the_output() {
    let ports = |actions: &str| {
        let mut bench = Bench::controlled();
        assert_eq!(add_group(&mut bench, &format!("group_id=1,type=indirect,bucket={actions}")), None);
        add(&mut bench, &["actions=group:1"]);
        bench.ports_of(1, &frame())
    };
    assert_eq!(ports("output:4,load:2->reg0[],load:3->reg1[],output:reg0[],output:reg1[]"), [2, 3, 4]);
    // Set-fields and copies come first.
    assert_eq!(ports("load:2->reg0[],output:reg0[],set_field:3->reg0"), [2]);
    assert_eq!(ports("output:reg1[],set_field:3->reg0,move:reg0[]->reg1[]"), [3]);
    assert_eq!(
        ports("output:4,load:3->reg0[],push:reg0[],load:2->reg0[],push:reg0[],pop:reg1[],output:reg1[]"),
        [2, 4]
    );
    // There is nothing behind the output that `exit` could skip.
    assert_eq!(ports("exit,output:2"), [2]);
    // A queue is for the output, and nothing takes it back.
    let mut bench = Bench::controlled();
    assert_eq!(add_group(&mut bench, "group_id=1,type=indirect,bucket=set_queue:5,output:2,pop_queue"), None);
    add(&mut bench, &["actions=group:1"]);
    let mut frames = vec![weir_packet::Frame::from_bytes(&frame())];
    bench.datapath.process(bench.now, PortNo(1), &mut frames, &mut bench.pool, &mut bench.out);
    assert_eq!(bench.out.frames.drain(..).flat_map(|(_, list)| list).map(|frame| frame.queue).collect::<Vec<_>>(), [5]);
}

#[test]
fn a_bucket_has_the_packets_stack() {
    let ports = |actions: &str| {
        let mut bench = Bench::controlled();
        assert_eq!(add_group(&mut bench, "group_id=1,type=indirect,bucket=pop:reg0[],output:reg0[]"), None);
        add(&mut bench, &[&format!("actions=load:2->reg1[],load:3->reg2[],push:reg1[],push:reg2[],{actions}")]);
        bench.ports_of(1, &frame())
    };
    assert_eq!(ports("group:1"), [3], "on the packet itself");
    assert_eq!(ports("group:1,output:4"), [3, 4], "on a copy");
    // The stack is that of the time when the packet came to the group, and what a bucket takes is still there for
    // others.
    assert_eq!(ports("group:1,pop:reg4[],output:reg4[]"), [3, 3]);
    assert_eq!(ports("group:1,push:reg1[],output:4"), [3, 4]);
}

#[test]
fn tags_are_written_whole() {
    let mut bench = Bench::new();
    add(&mut bench, &["actions=load:0x3005->NXM_OF_VLAN_TCI[],output:2,load:0->NXM_OF_VLAN_TCI[],output:3"]);
    let sent = bench.receive(1, &frame());
    assert_eq!(&sent[0].1[12..16], [0x81, 0, 0x20, 0x05]);
    assert_eq!(sent[1].1, frame());
    assert_eq!(ports(&["vlan_tci=0x0000,actions=output:2"]), [2]);
}

#[test]
fn outputs_of_registers_bundles_and_beginnings() {
    assert_eq!(ports(&["actions=load:0->in_port[],output:1"]), [1], "it came in nowhere now");
    assert_eq!(ports(&["actions=bundle(eth_src,0,active_backup,ofport,members:9,3,2)"]), [3]);
    assert_eq!(ports(&["actions=bundle_load(eth_src,0,hrw,ofport,reg5[],members:9,4),output:reg5[]"]), [4]);
    assert_eq!(ports(&["actions=multipath(symmetric_l4,0,modulo_n,1,0,reg0[]),load:2->reg0[],output:reg0[]"]), [2]);
    let mut bench = Bench::new();
    add(&mut bench, &["actions=output(port=2,max_len=60),output:3"]);
    let sent = bench.receive(1, &frame());
    assert_eq!(sent[0], (PortNo(2), frame()[..60].to_vec()));
    assert_eq!(sent[1], (PortNo(3), frame()));
    let larger = |length| ports(&[&format!("actions=check_pkt_larger({length})->reg0[1],output:reg0[]")]);
    assert_eq!((larger(213), larger(214)), (vec![2], vec![]));
}

#[test]
fn learned_entries_are_there_for_the_next_batch() {
    let mut bench = Bench::new();
    let learn = "learn(table=1,idle_timeout=10,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])";
    add(&mut bench, &[&format!("actions={learn},resubmit(,1)")]);
    assert_eq!(bench.ports_of(2, &frame()), [0; 0]);
    let (src, dst) = (frame()[6..12].to_vec(), frame()[..6].to_vec());
    let mut answer = frame();
    answer[..6].copy_from_slice(&src);
    answer[6..12].copy_from_slice(&dst);
    assert_eq!(bench.ports_of(3, &answer), [2]);
    assert_eq!(bench.ports_of(2, &frame()), [3]);
    assert_eq!(bench.datapath.learn_failures(), 0);
}

#[test]
fn what_is_not_there_or_makes_no_sense_is_refused() {
    let cases = [
        ("actions=controller(pause)", BadAction::BadArgument),
        ("actions=fin_timeout(idle_timeout=1)", BadAction::BadExpType),
        ("actions=experimenter(0x2320,0023000100000000000000ff00000000)", BadAction::BadExpType),
        ("actions=load:1->NXM_OF_TCP_DST[]", BadAction::MatchInconsistent),
        ("actions=load:1->NXM_OF_IP_PROTO[]", BadAction::MatchInconsistent),
        ("actions=load:1->NXM_NX_IP_FRAG[]", BadAction::BadSetArgument),
        ("actions=push:tcp_src", BadAction::MatchInconsistent),
        ("actions=output(port=1,max_len=13)", BadAction::BadArgument),
        ("actions=output(port=all,max_len=100)", BadAction::BadOutPort),
        ("actions=multipath(eth_src,0,hrw,2000,0,reg0[])", BadAction::BadArgument),
        ("actions=write_actions(exit)", BadAction::UnsupportedOrder),
        ("actions=clone(load:1->NXM_OF_TCP_DST[])", BadAction::MatchInconsistent),
        ("actions=learn(table=1,delete_learned,output:NXM_OF_IN_PORT[])", BadAction::BadArgument),
    ];
    let mut bench = Bench::new();
    for (flow, code) in cases {
        let flow_mod = parse_flow(flow, FlowCommand::Add).unwrap();
        assert_eq!(bench.flow_mod(&flow_mod), Err(code.into()), "{flow}");
    }
    let learn = parse_flow("actions=learn(table=1,tcp_dst=80)", FlowCommand::Add).unwrap();
    assert_eq!(bench.flow_mod(&learn), Err(BadMatch::BadPrereq.into()));
}

#[test]
fn controllers_with_numbers_get_what_actions_mean_for_them() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    assert!(bench.ask(OLD_CONTROLLER, nicira(NxMessage::SetControllerId(7))).is_empty());
    bench.ask(OLD_CONTROLLER, nicira(NxMessage::SetPacketInFormat(PacketInFormat::Nxt2)));
    add(&mut bench, &["actions=load:9->reg3[],controller(id=7,userdata=01.02),controller"]);
    bench.receive(1, &frame());
    let told = bench.told(OLD_CONTROLLER);
    let [Body::Nx(message)] = &told[..] else { panic!("{told:?}") };
    let NxMessage::PacketIn2(message) = &**message else { panic!("{message:?}") };
    assert_eq!(message.userdata.0, [1, 2]);
    assert_eq!(message.packet.matching.get(Field::Reg3).map(|(value, _)| value), Some(9));
    assert_eq!(message.packet.in_port(), Some(PortNo(1)));
    assert_eq!(bench.packet_ins(CONTROLLER).len(), 1, "it has no number: the plain output is for it alone");
    // The message can be encoded and decoded.
    let sent = weir_openflow::Message { xid: 1, body: told[0].clone() };
    let mut bytes = Vec::new();
    encode(&sent, Version::V10, &mut bytes).unwrap();
    assert_eq!(decode(&bytes), Ok(sent));
}

#[test]
fn flow_mods_and_statistics_of_1_0_have_lists_of_fields() {
    let mut bench = Bench::controlled_v10();
    assert!(bench.ask(OLD_CONTROLLER, nicira(NxMessage::SetFlowFormat(FlowFormat::Nxm))).is_empty());
    let mut flow: FlowMod = parse_flow("table=2,send_flow_rem,reg5=7,actions=resubmit(,3)", FlowCommand::Add).unwrap();
    assert!(bench.ask(OLD_CONTROLLER, nicira(NxMessage::FlowMod(flow.clone()))).is_empty());
    let replies = bench.multipart(OLD_CONTROLLER, RequestBody::NxFlow(FlowRequest::all())).unwrap();
    let [ReplyBody::NxFlow(entries)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!(
        (entries[0].matching.clone(), entries[0].instructions.clone()),
        (flow.matching.clone(), flow.instructions.clone())
    );
    let replies = bench.multipart(OLD_CONTROLLER, RequestBody::NxAggregate(FlowRequest::all())).unwrap();
    assert!(matches!(&replies[..], [ReplyBody::NxAggregate(sum)] if sum.flow_count == 1));
    flow.command = FlowCommand::DeleteStrict;
    let told = bench.ask(OLD_CONTROLLER, nicira(NxMessage::FlowMod(flow)));
    assert!(matches!(&told[..], [Body::Nx(message)] if matches!(**message, NxMessage::FlowRemoved(_))), "{told:?}");
    let unknown = nicira(NxMessage::SetFlowFormat(FlowFormat::Unknown(9)));
    assert_eq!(bench.error_of(OLD_CONTROLLER, unknown), Some(BadRequest::Eperm.into()));
}

#[test]
fn roles_of_1_0() {
    let mut bench = Bench::controlled_v10();
    let role = |role| RoleMessage { role, short_id: 0, generation_id: 0 };
    let asked = |role: RoleMessage| nicira(NxMessage::RoleRequest(role));
    let told = bench.ask(OLD_CONTROLLER, asked(role(Role::Slave)));
    assert_eq!(told, [nicira(NxMessage::RoleReply(role(Role::Slave)))]);
    let flow = FlowMod::add(1, weir_openflow::model::Match::any(), Vec::new());
    assert_eq!(bench.error_of(OLD_CONTROLLER, Body::FlowMod(flow.clone())), Some(BadRequest::IsSlave.into()));
    let flow = nicira(NxMessage::FlowMod(flow));
    assert_eq!(bench.error_of(OLD_CONTROLLER, flow.clone()), Some(BadRequest::IsSlave.into()));
    bench.ask(OLD_CONTROLLER, asked(role(Role::Master)));
    assert_eq!(bench.error_of(OLD_CONTROLLER, flow), None);
    assert!(bench.error_of(OLD_CONTROLLER, asked(role(Role::Unknown(9)))).is_some());
}

#[test]
fn packet_outs_may_resubmit() {
    let mut bench = Bench::controlled();
    add(&mut bench, &["table=1,actions=write_actions(output:3)"]);
    let message = weir_openflow::model::PacketOut {
        buffer_id: None,
        in_port: PortNo(PORTS),
        matching: weir_openflow::model::Match::any(),
        actions: parse_actions("resubmit(,1),output:2").unwrap(),
        data: frame().into(),
    };
    assert_eq!(bench.error_of(CONTROLLER, Body::PacketOut(message)), None);
    let ports: Vec<u32> = bench.sent().into_iter().map(|(port, _)| port.0).collect();
    assert_eq!(ports, [3, 2]);
}
