//! Tests of temporary veth pairs.
use crate::testbed::{SOON, within};
use std::process::Command;
use weir_packet::FramePool;
use weir_port::event::wait_any;
use weir_port::veth::{VethPair, is_veth};
use weir_port::{PortSpec, open};
use weir_testing::{Namespace, root};
use weir_units::Instant;

fn names() -> [String; 2] {
    ["weir1p90", "weir1p91"].map(str::to_owned)
}

#[test]
fn what_one_end_sends_the_other_receives() {
    if !root() {
        return;
    }
    let namespace = Namespace::new();
    let came = within(&namespace, || {
        let pair = VethPair::make(names()).unwrap();
        assert!(is_veth(&pair.names()[0]) && is_veth(&pair.names()[1]) && !is_veth("lo") && !is_veth("nothing"));
        let taken = VethPair::make(names()).err().map(|error| error.kind());
        assert_eq!(taken, Some(std::io::ErrorKind::AlreadyExists), "the first is left alone");
        let mut ends = names().map(|name| open(&format!("af_packet:{name}").parse::<PortSpec>().unwrap()).unwrap());
        let (mut pool, mut batch) = (FramePool::new(4, 4), Vec::new());
        let mut frame = pool.take(60);
        frame.assign(&[0x77; 60]);
        batch.push(frame);
        ends[0].transmit(Instant::ZERO, &mut pool, &mut batch).unwrap();
        wait_any(&ends[1].fd().into_iter().collect::<Vec<_>>(), Some(SOON));
        ends[1].receive(Instant::ZERO, &mut pool, &mut batch, 4).unwrap();
        batch.iter().map(|frame| frame.bytes().to_vec()).collect::<Vec<_>>()
    });
    assert_eq!(came.join().unwrap(), [[0x77; 60]]);
    let left = Command::new("ip").args(["-n", namespace.name(), "link", "show", "weir1p90"]).output().unwrap();
    assert!(!left.status.success(), "it is gone: {left:?}");
}
