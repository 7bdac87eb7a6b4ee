//! Packets in groups.
use super::*;
use std::time::Duration;
use weir_openflow::Version;
use weir_openflow::model::{FlowMod, Instruction, PacketInReason};
use weir_packet::Field;

fn set(number: u64) -> Action {
    Action::set_mac(Field::EthDst, mac(number))
}

fn out(port: u32) -> Action {
    Action::output(PortNo(port))
}

/// Returns the standard frame with another destination address.
fn to(number: u64) -> Vec<u8> {
    let mut frame = frame();
    frame[..6].copy_from_slice(&mac(number).0);
    frame
}

#[test]
fn all_buckets_get_the_packet_as_it_came() {
    let mut bench = Bench::controlled();
    bench.add_group(1, All, vec![bucket(vec![set(7), out(2)]), bucket(vec![out(3)]), bucket(vec![out(4), set(9)])]);
    bench.all_to_group(1);
    let mut sent = bench.receive(1, &frame());
    sent.sort();
    // A bucket is an action set: its set-field runs before its output.
    assert_eq!(sent, [(PortNo(2), to(7)), (PortNo(3), frame()), (PortNo(4), to(9))]);
    assert_eq!(bench.datapath.drops().total(), 0);
}

#[test]
fn the_packet_goes_on_unchanged_behind_the_group() {
    let mut bench = Bench::controlled();
    bench.add_group(1, Indirect, vec![bucket(vec![set(7), Action::PushVlan(0x8100), out(2)])]);
    bench.add(1, Match::any(), vec![set(5), Action::Group(GroupId(1)), out(3), set(6), out(4)]);
    let sent = bench.receive(1, &frame());
    let mut tagged = to(7);
    tagged.splice(12..12, [0x81, 0, 0, 0]);
    assert_eq!(sent, [(PortNo(2), tagged), (PortNo(3), to(5)), (PortNo(4), to(6))]);
}

/// Actions of a list run in the list's order (OpenFlow 1.3.5, 5.11).
#[test]
fn a_groups_packet_in_comes_before_that_of_the_next_action() {
    let mut bench = Bench::controlled();
    bench.add_group(1, Indirect, vec![bucket(vec![set(7), Action::to_controller()])]);
    bench.add(1, Match::any(), vec![Action::Group(GroupId(1)), Action::to_controller()]);
    bench.receive(1, &frame());
    let data: Vec<_> = bench.packet_ins(CONTROLLER).into_iter().map(|packet| packet.data.0).collect();
    assert_eq!(data, [to(7), frame()]);
}

#[test]
fn what_travels_with_the_packet_is_what_it_was_at_the_group() {
    let mut bench = Bench::controlled();
    bench.add_group(1, Indirect, vec![bucket(vec![Action::to_controller()])]);
    let instructions =
        vec![Instruction::ApplyActions(to_group(1)), Instruction::WriteMetadata { metadata: 5, mask: 0xff }];
    bench.flow_mod(&FlowMod::add(1, Match::any(), instructions)).unwrap();
    bench.receive(1, &frame());
    let [packet] = bench.packet_ins(CONTROLLER).try_into().unwrap();
    assert_eq!((packet.reason, packet.matching), (PacketInReason::Action, from_port(1)));
}

#[test]
fn a_queue_chosen_in_a_bucket_stays_there() {
    let mut bench = Bench::controlled();
    bench.add_group(1, All, vec![bucket(vec![Action::SetQueue(5), out(2)]), bucket(output(3))]);
    bench.add(1, Match::any(), vec![Action::SetQueue(7), Action::Group(GroupId(1)), Action::SetQueue(9), out(4)]);
    let mut frames = vec![weir_packet::Frame::from_bytes(&frame())];
    bench.datapath.process(bench.now, PortNo(1), &mut frames, &mut bench.pool, &mut bench.out);
    let queues: Vec<(u32, u32)> =
        bench.out.frames.drain(..).flat_map(|(port, list)| list.into_iter().map(move |f| (port.0, f.queue))).collect();
    assert_eq!(queues, [(2, 5), (3, 7), (4, 9)]);
}

#[test]
fn in_an_action_set_the_group_wins_over_the_output() {
    let mut bench = Bench::controlled();
    bench.add_group(1, Indirect, vec![bucket(output(2))]);
    let both = vec![out(3), Action::Group(GroupId(1)), set(7)];
    let flow = FlowMod::add(1, Match::any(), vec![Instruction::WriteActions(both)]);
    bench.flow_mod(&flow).unwrap();
    assert_eq!(bench.receive(1, &frame()), [(PortNo(2), to(7))]);
}

#[test]
fn the_first_bucket_that_lives_takes_over() {
    let mut bench = Bench::controlled();
    bench.add_group(1, FastFailover, vec![watching(2), watching(3), watching(9)]);
    bench.all_to_group(1);
    let steps: [(u32, bool, &[u32]); 5] =
        [(4, false, &[2]), (2, false, &[3]), (3, false, &[]), (2, true, &[2]), (3, true, &[2])];
    for (port, up, expected) in steps {
        bench.link(port, up);
        assert_eq!(bench.ports_of(1, &frame()), expected, "port {port} up {up}");
    }
    assert_eq!(bench.datapath.drops().no_live_bucket, 1);
    bench.datapath.remove_port(bench.now, PortNo(2), &mut bench.out);
    bench.datapath.remove_port(bench.now, PortNo(3), &mut bench.out);
    bench.datapath.add_port(bench.now, port(9), &mut bench.out).unwrap();
    assert_eq!(bench.ports_of(1, &frame()), [9], "a port that comes later brings its bucket to life");
}

#[test]
fn a_watched_group_lives_while_one_of_its_buckets_does() {
    let mut bench = Bench::controlled();
    bench.add_group(1, FastFailover, vec![watching(2), watching(3)]);
    let watch_group = |group, actions| Bucket { watch_group: GroupId(group), ..bucket(actions) };
    bench.add_group(2, FastFailover, vec![watch_group(1, to_group(1)), watching(4)]);
    bench.all_to_group(2);
    assert_eq!(bench.ports_of(1, &frame()), [2]);
    bench.link(2, false);
    assert_eq!(bench.ports_of(1, &frame()), [3]);
    bench.link(3, false);
    assert_eq!(bench.ports_of(1, &frame()), [4]);
    assert_eq!(bench.group(Modify, 1, All, vec![bucket(output(3))]), None);
    assert_eq!(bench.datapath.drops().total(), 0);
    // The bucket watches nothing, so it is taken although its port is down.
    assert_eq!(bench.ports_of(1, &frame()), [0_u32; 0]);
    assert_eq!(bench.datapath.drops().port_down, 1);
}

#[test]
fn dead_buckets_are_left_out_of_every_type() {
    for kind in [All, Select, Indirect, FastFailover] {
        let mut bench = Bench::controlled();
        let weight = kind.default_weight();
        bench.add_group(1, kind, vec![Bucket { weight, ..watching(2) }]);
        bench.all_to_group(1);
        assert_eq!(bench.ports_of(1, &frame()), [2], "{kind}");
        bench.link(2, false);
        assert_eq!(bench.ports_of(1, &frame()), [0_u32; 0], "{kind}");
        let drops = bench.datapath.drops();
        assert_eq!((drops.no_live_bucket, drops.total()), (1, 1), "{kind}");
    }
}

#[test]
fn every_copy_that_goes_nowhere_is_counted() {
    let mut bench = Bench::controlled();
    bench.add_group(1, All, vec![bucket(vec![]), bucket(output(1)), bucket(output(2)), bucket(output(8))]);
    bench.all_to_group(1);
    assert_eq!(bench.ports_of(1, &frame()), [2]);
    let drops = bench.datapath.drops();
    assert_eq!((drops.no_action, drops.in_port_only, drops.unknown_port, drops.total()), (1, 1, 1, 3));
    bench.add_group(2, All, vec![]);
    bench.all_to_group(2);
    assert_eq!(bench.ports_of(1, &frame()), [0_u32; 0]);
    assert_eq!(bench.datapath.drops().no_live_bucket, 1);
}

#[test]
fn groups_lead_to_groups() {
    let mut bench = Bench::controlled();
    bench.add_group(1, All, vec![bucket(vec![set(7), out(2)]), bucket(output(3))]);
    bench.add_group(2, Indirect, vec![bucket(vec![set(8), Action::Group(GroupId(1))])]);
    bench.add_group(3, All, vec![bucket(output(4)), bucket(to_group(2))]);
    bench.all_to_group(3);
    let mut sent = bench.receive(1, &frame());
    sent.sort();
    assert_eq!(sent, [(PortNo(2), to(7)), (PortNo(3), to(8)), (PortNo(4), frame())]);
}

#[test]
fn a_packet_runs_through_no_more_buckets_than_it_may() {
    let mut bench = Bench::controlled();
    // Without a limit there would be sixteen to the sixth copies.
    let buckets = |actions: Vec<Action>| vec![bucket(actions); 16];
    bench.add_group(1, All, buckets(output(2)));
    (2..=6).for_each(|group| bench.add_group(group, All, buckets(to_group(group - 1))));
    bench.all_to_group(6);
    let sent = bench.receive(1, &frame()).len() as u64;
    let dropped = bench.datapath.drops().too_many_buckets;
    assert!((3000..=4096).contains(&sent), "{sent}");
    assert!((16..=5000).contains(&dropped), "{dropped}");
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.receive(1, &frame()).len() as u64, sent, "the next packet may as many");
}

#[test]
fn packet_outs_reach_groups() {
    let mut bench = Bench::controlled();
    bench.add_group(1, All, vec![bucket(output(2)), bucket(output(3))]);
    let packet = |group| weir_openflow::model::PacketOut {
        buffer_id: None,
        in_port: PortNo::CONTROLLER,
        matching: Match::any(),
        actions: to_group(group),
        data: frame().into(),
    };
    assert_eq!(bench.error_of(CONTROLLER, Body::PacketOut(packet(1))), None);
    assert_eq!(bench.sent().len(), 2);
    let missing = weir_openflow::model::error::BadAction::BadOutGroup.into();
    assert_eq!(bench.error_of(CONTROLLER, Body::PacketOut(packet(2))), Some(missing));
}

#[test]
fn a_bucket_whose_packet_cannot_be_changed_drops_only_its_own() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    let dead = crate::frames::frame("eth 1>2 / ipv4 10.0.0.1>10.0.0.2 ttl 1 / udp 1>2");
    bench.add_group(1, All, vec![bucket(vec![Action::DecNwTtl, out(2)]), bucket(output(3))]);
    bench.all_to_group(1);
    assert_eq!(bench.receive(1, &dead), [(PortNo(3), dead.clone())]);
    assert_eq!(bench.datapath.drops().ttl_expired, 1);
}

#[test]
fn a_trace_shows_the_buckets_and_counts_nothing() {
    let mut bench = Bench::controlled();
    bench.add_group(1, FastFailover, vec![watching(2), watching(3)]);
    bench.add_group(2, All, vec![bucket(vec![set(7), Action::Group(GroupId(1))]), bucket(output(4))]);
    bench.add(1, Match::any(), vec![Action::Group(GroupId(2)), out(4)]);
    bench.link(2, false);
    let trace = bench.datapath.trace(bench.now, PortNo(1), &frame());
    assert_eq!(trace.outputs, [PortNo(3), PortNo(4), PortNo(4)]);
    let text = trace.to_string();
    let lines: Vec<&str> = text.lines().skip(2).map(|line| line.split(": dl").next().unwrap().trim_start()).collect();
    let lines: Vec<&str> = lines.into_iter().map(|line| line.split(": in_port").next().unwrap()).collect();
    let expected = [
        "group:2",
        "group 2 (all): bucket 0",
        "set_field:02:00:00:00:00:07->eth_dst",
        "group:1",
        "group 1 (ff): bucket 1",
        "output:3",
        "-> port 3",
        "group 2 (all): bucket 1",
        "output:4",
        "-> port 4",
        "output:4",
        "-> port 4",
    ];
    assert_eq!(lines, expected, "{text}");
    assert!(bench.group_stats(GroupId::ALL).iter().all(|group| group.packet_count == 0));
}
