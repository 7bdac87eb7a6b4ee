//! Measuring: what is counted while it is on, and that nothing is counted while it is off.
use crate::bench::*;
use weir_datapath::perf::{Perf, ThreadStage};
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortNo, TableId};
use weir_packet::craft::FrameBuilder;
use weir_packet::{Frame, FramePool};

fn frames(count: usize) -> Vec<Frame> {
    let craft = FrameBuilder::ethernet(mac(2), mac(1)).ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2);
    (0..count).map(|_| craft.clone().payload(&[1; 18]).frame()).collect()
}

fn process(bench: &mut Bench, count: usize) {
    let (mut frames, mut pool) = (frames(count), FramePool::default());
    let mut out = weir_datapath::DatapathOutput::default();
    bench.datapath.process(bench.now, PortNo(1), &mut frames, &mut pool, &mut out);
    assert!(frames.is_empty());
}

#[test]
fn stages_and_bursts_are_counted_while_somebody_looks() {
    let mut bench = Bench::new();
    let goto = vec![Instruction::GotoTable(TableId(1))];
    bench.flow_mod(&FlowMod::add(1, Match::any(), goto)).unwrap();
    let output = apply(vec![Action::output(PortNo(2))]);
    bench.flow_mod(&FlowMod { table: TableId(1), ..FlowMod::add(1, from_port(1), output) }).unwrap();
    process(&mut bench, 5);
    assert_eq!(*bench.datapath.watch_mut().perf(), Perf::default(), "nobody looks");
    bench.datapath.watch_mut().watch(true);
    process(&mut bench, 3);
    process(&mut bench, 32);
    // More packets than a burst holds make several bursts.
    process(&mut bench, 70);
    let watch = bench.datapath.watch_mut();
    for stage in [ThreadStage::Parse, ThreadStage::LookUp, ThreadStage::Execute] {
        let took = watch.perf().stage(stage);
        assert_eq!((took.times, took.packets), (4, 105), "{}", stage.name());
    }
    let bursts: Vec<usize> = (0..=64).filter(|size| watch.perf().bursts[*size] == 1).collect();
    assert_eq!(bursts, [3, 6, 32, 64]);
    let samples = watch.samples().to_vec();
    let shapes = bench.datapath.table_shapes(&samples);
    let seen: Vec<_> = shapes.iter().map(|shape| (shape.table, shape.entries, shape.lookups)).collect();
    assert_eq!(seen, [(0, 1, 110), (1, 1, 110)]);
    for shape in &shapes {
        let probes = shape.probes.unwrap();
        assert_eq!((probes.samples, probes.max), (4, 1), "one of each burst, in both tables");
    }
    bench.datapath.watch_mut().watch(false);
    let before = bench.datapath.watch_mut().perf().clone();
    process(&mut bench, 8);
    assert_eq!(*bench.datapath.watch_mut().perf(), before);
}
