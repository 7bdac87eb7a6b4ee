//! Compares the pipeline with the plain interpreter of [`weir_reference`]: random groups and flow-mods, then random
//! packets. Both must send the same frames and drop the same number.
mod generate;
mod workers;

use crate::bench::*;
use generate::*;
use proptest::prelude::*;
use weir_openflow::Body;
use weir_openflow::model::group::{GroupCommand, GroupMod};
use weir_openflow::model::{Action, FlowCommand, FlowMod, PortNo};
use weir_reference::{BucketChoices, ReferencePipeline};

/// Number of tables used.
const TABLES: u8 = 3;

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn the_pipeline_does_what_the_plain_interpreter_does(
        groups in groups(),
        change in group(1..=GROUPS),
        down in prop::sample::subsequence((1..=PORTS).collect::<Vec<u32>>(), 0..=2),
        last in to_group(),
        flows in proptest::collection::vec(flow_mod(), 0..14),
        packets in proptest::collection::vec(packet(), 1..12),
    ) {
        let (mut bench, mut naive) = (Bench::controlled(), ReferencePipeline::new(PORTS));
        for group in groups {
            naive.group_mod(&group);
            prop_assert_eq!(bench.error_of(CONTROLLER, Body::GroupMod(group)), None);
        }
        // Packets that match nothing else go to a group.
        for mut flow in std::iter::once(last).chain(flows) {
            let mut tried = naive.clone();
            tried.flow_mod(&flow);
            while flow.command == FlowCommand::Add && tried.is_ambiguous() {
                flow.priority += 7;
                tried = naive.clone();
                tried.flow_mod(&flow);
            }
            naive = tried;
            bench.flow_mod(&flow).unwrap();
        }
        for port in down {
            naive.set_link(PortNo(port), false);
            bench.datapath.set_link(bench.now, PortNo(port), false, 0, &mut bench.out);
        }
        let change = GroupMod { command: GroupCommand::Modify, ..change };
        naive.group_mod(&change);
        prop_assert_eq!(bench.error_of(CONTROLLER, Body::GroupMod(change)), None);
        for (port, frame) in packets {
            let before = bench.datapath.drops().total();
            let mut found = bench.receive(port, &frame);
            let drops = bench.datapath.drops().total() - before;
            let again = bench.receive(port, &frame);
            prop_assert_eq!(&found, &again, "packets of a flow go the same way");
            found.sort();
            let mut expected = Vec::new();
            let mut choices = BucketChoices::default();
            loop {
                let (mut sent, drops) = naive.process(port, &frame, &mut choices);
                sent.sort();
                expected.push((sent, drops));
                if !choices.another() {
                    break;
                }
            }
            prop_assert!(expected.contains(&(found.clone(), drops)), "{found:?} and {drops} drops, not {expected:?}");
            prop_assert!(found.len() as u64 + drops > 0, "every packet goes somewhere or is counted");
        }
    }

    #[test]
    fn any_bytes_are_sent_or_counted(
        port in 0..6_u32,
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        shape in prop::sample::select(vec!["0800", "86dd", "8100", "8847", "0806", "88e7"]),
    ) {
        let mut bench = Bench::controlled();
        let ports = [PortNo::NORMAL, PortNo::FLOOD, PortNo::IN_PORT, PortNo::CONTROLLER, PortNo(2)];
        for (priority, output) in (1..).zip(ports) {
            let edits = vec![Action::PushVlan(0x8100), Action::PopVlan, Action::PushMpls(0x8847), Action::DecMplsTtl,
                Action::PopMpls(0x0800), Action::DecNwTtl, Action::output(output)];
            bench.flow_mod(&FlowMod::add(priority, from_port(priority.into()), apply(edits))).unwrap();
        }
        let mut frame = bytes;
        let kind = u16::from_str_radix(shape, 16).unwrap().to_be_bytes();
        if frame.len() >= 14 {
            frame[12..14].copy_from_slice(&kind);
        }
        let sent = bench.receive(port, &frame).len() + bench.packet_ins(CONTROLLER).len();
        let drops = bench.datapath.drops().total();
        prop_assert!(sent as u64 + drops > 0);
        prop_assert!(sent == 0 || drops == 0, "sent {sent}, dropped {drops}");
    }
}
