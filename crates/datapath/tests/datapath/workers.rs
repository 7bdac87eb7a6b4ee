//! Workers on other threads than the engine's: bursts that they forward with shared access to the datapath.
use crate::bench::*;
use weir_datapath::DatapathOutput;
use weir_openflow::model::{Action, Match, PortNo};
use weir_packet::{Frame, FramePool};

#[test]
fn bursts_of_every_size_leave_whole() {
    let mut bench = Bench::new();
    bench.add(0, Match::any(), vec![Action::output(PortNo(2))]);
    let mut worker = bench.datapath.add_worker();
    for count in 1..=64 {
        let mut frames: Vec<Frame> = (0..count).map(|_| Frame::from_bytes(&frame())).collect();
        let mut out = DatapathOutput::default();
        let pool = &mut FramePool::default();
        assert!(bench.datapath.forward(&mut worker, bench.now, PortNo(1), &mut frames, pool, &mut out), "{count}");
        let sent: Vec<_> = out.frames.iter().map(|(port, frames)| (*port, frames.len())).collect();
        assert_eq!((sent, frames.len()), (vec![(PortNo(2), count)], 0));
    }
}
