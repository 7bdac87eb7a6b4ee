//! Tests the delays of a virtual switch's datapath.
use super::{Rig, TWO_LEVELS, us};
use weir_device::{DelayedDatapath, ProfileConfig};
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_profile::Profile;

#[test]
fn frames_leave_with_their_input_as_queue_unless_an_entry_chose_one() {
    let mut rig = Rig::new(TWO_LEVELS);
    let profile = Box::new(Profile::parse(TWO_LEVELS, "test.toml").unwrap());
    let config = ProfileConfig { profile, seed: 1 };
    rig.timed = DelayedDatapath::of_virtual_switch(&config, 7, &mut rig.datapath).unwrap().unwrap();
    let entries = ["in_port=1,actions=output:3", "in_port=2,actions=set_queue:9,output:3"].map(str::to_owned);
    rig.datapath.add_entries(us(0), &entries).unwrap();
    for port in [1, 2] {
        let frame = Frame::from_bytes(&[0; 60]);
        rig.timed.packet(us(0), us(0), (PortNo(port), frame), &mut rig.datapath, &mut rig.pool, &mut rig.out);
    }
    let at = us(1000);
    while rig.timed.release(at, at, &mut rig.datapath, &mut rig.pool, &mut rig.out).is_some() {}
    let frames = rig.out.frames.iter().flat_map(|(_, frames)| frames);
    assert_eq!(frames.map(|frame| frame.queue).collect::<Vec<_>>(), [1, 9]);
}
