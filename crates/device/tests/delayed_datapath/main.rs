//! Tests of a datapath with a profile in virtual time, polled exactly when something is due.
mod bundles;
mod virtual_switches;

use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput};
use weir_device::DelayedDatapath;
use weir_openflow::model::bundle::{BundleAdd, BundleCommand, BundleControl, BundleFlags, BundleId};
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::group::{BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::port::bits;
use weir_openflow::model::{
    Action, FlowCommand, FlowMod, GroupId, Instruction, Match, PacketOut, PortDesc, PortNo, TableId,
};
use weir_openflow::{Body, Message, Version};
use weir_packet::frame::{PartialChecksum, Segmentation, SegmentationKind};
use weir_packet::{Field, Frame, FramePool, MacAddr, craft::FrameBuilder};
use weir_profile::Profile;
use weir_units::Instant;

const CHANNEL: ChannelId = ChannelId(1);

/// Profile with two levels. Adding takes 100 us in the first level and 20 us in the second; deleting takes 100 us for
/// each level searched. Packets take 4 us or 6 us in the first level, 60 us in the second.
const TWO_LEVELS: &str = r#"
name = "two"
device = "Two levels"
origin = "assumed"
source = "A test"
policy = [{ attribute = "priority", evicts = "lowest" }]
[barrier]
lag = "5us"
[[level]]
name = "fast"
size = 2
write = "100us"
forward = { base_l2 = "4us", base_l3 = "6us" }
[[level]]
name = "slow"
size = 3
write = "20us"
forward = { base_l2 = "60us" }
"#;

/// Output of the switch.
#[derive(Debug, PartialEq)]
enum Seen {
    Frame(PortNo, usize),
    Message(Body),
}

struct Rig {
    datapath: Datapath,
    timed: DelayedDatapath,
    pool: FramePool,
    out: DatapathOutput,
    now: Instant,
    xid: u32,
}

fn us(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

impl Rig {
    fn new(profile: &str) -> Rig {
        let mut datapath = Datapath::new(DatapathConfig::default());
        let mut out = DatapathOutput::default();
        for number in 1..=3 {
            datapath.add_port(us(0), port(number), &mut out).unwrap();
        }
        datapath.channel_up(us(0), CHANNEL, Version::V14);
        let profile = Profile::parse(profile, "test.toml").unwrap();
        let timed = DelayedDatapath::new(&profile, 1, &mut datapath).unwrap().unwrap();
        out = DatapathOutput::default();
        Rig { datapath, timed, pool: FramePool::default(), out, now: us(0), xid: 0 }
    }

    /// Sends a message on the channel at the present time.
    fn say(&mut self, body: Body) {
        self.xid += 1;
        let message = Message { xid: self.xid, body };
        let (datapath, pool, out) = (&mut self.datapath, &mut self.pool, &mut self.out);
        if let Some(message) = self.timed.message((self.now, self.now), (CHANNEL, message), datapath, pool, out) {
            datapath.handle(self.now, CHANNEL, message, pool, out);
        }
    }

    fn add(&mut self, priority: u16, field: Field, value: u32, actions: Vec<Action>) {
        let matching = match field {
            Field::Ipv4Dst => Match::any().with(Field::EthType, 0x0800_u16),
            _ => Match::any(),
        };
        let apply = vec![Instruction::ApplyActions(actions)];
        self.say(Body::FlowMod(FlowMod::add(priority, matching.with(field, value), apply)));
    }

    /// Delivers a datagram on port 1.
    fn packet(&mut self, last: u8) {
        self.frame(frame(last));
    }

    fn frame(&mut self, frame: Frame) {
        let (datapath, pool, out) = (&mut self.datapath, &mut self.pool, &mut self.out);
        self.timed.packet(self.now, self.now, (PortNo(1), frame), datapath, pool, out);
    }

    /// Lets time pass until `at`. Returns the output with its times.
    fn until(&mut self, at: Instant) -> Vec<(Instant, Seen)> {
        let mut seen = Vec::new();
        self.look(&mut seen);
        while self.timed.due() <= at {
            self.now = self.timed.due().max(self.now);
            let (datapath, pool, out) = (&mut self.datapath, &mut self.pool, &mut self.out);
            self.timed.release(self.now, self.now, datapath, pool, out);
            self.look(&mut seen);
        }
        self.now = at;
        seen
    }

    fn look(&mut self, seen: &mut Vec<(Instant, Seen)>) {
        for (port, frames) in &mut self.out.frames {
            seen.extend(frames.drain(..).map(|frame| (self.now, Seen::Frame(*port, frame.len()))));
        }
        let messages = self.out.messages.drain(..);
        seen.extend(messages.map(|(_, message)| (self.now, Seen::Message(message.body))));
    }

    fn occupancy(&mut self) -> Vec<u64> {
        self.timed.snapshot().levels.iter().map(|level| level.entries).collect()
    }
}

fn port(number: u32) -> PortDesc {
    let address = MacAddr([2, 0, 0, 0, 0, u8::try_from(number).unwrap()]);
    PortDesc { state: bits::LIVE, ..PortDesc::new(PortNo(number), address, format!("p{number}")) }
}

fn frame(last: u8) -> Frame {
    let to = MacAddr([2, 0, 0, 0, 1, last]);
    let craft =
        FrameBuilder::ethernet(to, MacAddr([2, 0, 0, 0, 0, 9])).ipv4([10, 0, 0, 1].into(), [10, 0, 0, last].into());
    craft.udp(1, 2).payload(&[0; 86]).frame()
}

fn output() -> Vec<Action> {
    vec![Action::output(PortNo(2))]
}

fn ip(last: u8) -> u32 {
    0x0a00_0000 + u32::from(last)
}

fn times(seen: &[(Instant, Seen)]) -> Vec<u64> {
    seen.iter().map(|(at, _)| at.as_nanos() / 1000).collect()
}

#[test]
fn a_command_takes_effect_when_its_time_has_come() {
    let mut rig = Rig::new(TWO_LEVELS);
    rig.add(10, Field::Ipv4Dst, ip(5), output());
    rig.until(us(99));
    rig.packet(5);
    rig.until(us(100));
    rig.packet(5);
    let seen = rig.until(us(1000));
    assert_eq!(
        seen,
        [(us(106), Seen::Frame(PortNo(2), 128))],
        "only the second met the entry, which looks at IP addresses"
    );
    assert_eq!(rig.occupancy(), [1, 0]);
}

/// The time of the data path stands at the lookup that decides it, that of a packet-in at the punt.
#[test]
fn a_trace_has_the_times_of_the_profile() {
    let mut rig = Rig::new(&format!("{TWO_LEVELS}[timing]\npacket_in = \"2ms\"\n"));
    let expected = |rig: &mut Rig, last| {
        let frame = frame(last);
        let mut trace = rig.datapath.trace(rig.now, PortNo(1), frame.bytes());
        rig.timed.expect(&mut trace, frame.bytes_len(), &mut rig.datapath);
        let expected = trace.expected.unwrap();
        assert_eq!((expected.profile.as_str(), expected.steps_ns.len()), ("two", trace.steps.len()));
        (expected.steps_ns, expected.total_ns)
    };
    let in_us = |us: f64| Some(us * 1000.0);
    assert_eq!(expected(&mut rig, 1), (vec![in_us(60.0), None], 60_000.0), "a miss has passed through both levels");
    for (priority, last) in [(30, 1), (20, 2), (10, 3)] {
        rig.add(priority, Field::Ipv4Dst, ip(last), output());
    }
    rig.add(5, Field::InPort, 1, vec![Action::to_controller()]);
    rig.until(us(10_000));
    assert_eq!(rig.occupancy(), [2, 2]);
    assert_eq!(expected(&mut rig, 2), (vec![in_us(6.0), None, None], 6000.0), "an entry with IP addresses");
    assert_eq!(expected(&mut rig, 3), (vec![in_us(60.0), None, None], 60_000.0), "an entry of the slow level");
    assert_eq!(expected(&mut rig, 9), (vec![in_us(60.0), None, in_us(2000.0)], 2_060_000.0), "a punt");
    // Asking takes no time of the profile: the next packet is alone.
    rig.packet(2);
    assert_eq!(times(&rig.until(us(20_000))), [10_006]);
}

/// With a delayed effect, the control plane finishes, answers and refuses first; packets are handled by all changes
/// of a burst together, later.
#[test]
fn packets_meet_what_a_burst_changed_when_it_takes_effect() {
    let mut rig = Rig::new(&format!("effect = \"3ms\"\n{TWO_LEVELS}"));
    for last in 1..=6 {
        rig.add(10, Field::Ipv4Dst, ip(last), output());
    }
    let (command_bucket, buckets, properties) = (BucketId::ALL, Vec::new(), Vec::new());
    let group = GroupMod {
        command: GroupCommand::Add,
        kind: GroupKind::All,
        group: GroupId(1),
        command_bucket,
        buckets,
        properties,
    };
    rig.say(Body::GroupMod(group));
    rig.say(Body::BarrierRequest);
    let seen = rig.until(us(3000));
    // All entries have the same priority, so the third to the fifth are in the second level, and the sixth finds no
    // room.
    let said: Vec<&Seen> = seen.iter().map(|(_, seen)| seen).collect();
    assert!(matches!(said[..], [Seen::Message(Body::Error(_))]), "{said:?}");
    rig.packet(1);
    rig.until(us(3259));
    rig.packet(5);
    assert_eq!(rig.occupancy(), [0, 0]);
    // The group waits for the entries, and the barrier for the group, which might be refused.
    let seen = rig.until(us(3300));
    assert_eq!(seen, [(us(3265), Seen::Message(Body::BarrierReply))]);
    assert_eq!(rig.occupancy(), [2, 3]);
    rig.packet(1);
    rig.packet(5);
    // The last packet waits for the one that matched no entry.
    assert_eq!(times(&rig.until(us(4000))), [3306, 3379]);
}

/// A packet that the engine takes late, after a wake-up, leaves at the time that follows from its arrival.
#[test]
fn times_of_packets_count_from_when_they_came() {
    let mut rig = Rig::new(TWO_LEVELS);
    rig.add(10, Field::Ipv4Dst, ip(5), output());
    rig.until(us(1000));
    for (came, taken, leaves) in [(1000, 1000, 1006), (2000, 2004, 2006), (3000, 3050, 3050)] {
        rig.until(us(taken));
        let (datapath, pool, out) = (&mut rig.datapath, &mut rig.pool, &mut rig.out);
        rig.timed.packet(us(taken), us(came), (PortNo(1), frame(5)), datapath, pool, out);
        assert_eq!(times(&rig.until(us(taken + 100))), [leaves], "came at {came}, taken at {taken}");
    }
    // The snapshot counts the packet that was due before the release ran.
    assert_eq!(rig.timed.snapshot().lateness.late, 1);
}

#[test]
fn packets_take_the_time_of_their_level_and_of_what_entries_look_at() {
    let mut rig = Rig::new(TWO_LEVELS);
    for (priority, last) in [(30, 1), (20, 2), (10, 3)] {
        rig.add(priority, Field::Ipv4Dst, ip(last), output());
    }
    rig.say(Body::FlowMod(FlowMod::add(
        40,
        Match::any().with(Field::EthDst, 0x0200_0000_0104_u64),
        vec![Instruction::ApplyActions(output())],
    )));
    rig.until(us(1000));
    assert_eq!(rig.occupancy(), [2, 2], "the lowest priorities went down");
    for (at, last) in [(1000, 1), (2000, 4), (3000, 3), (4000, 9)] {
        rig.until(us(at));
        rig.packet(last);
        let seen = rig.until(us(at + 500));
        let took = match last {
            1 => vec![at + 6],
            4 => vec![at + 4],
            3 => vec![at + 60],
            _ => vec![],
        };
        assert_eq!(times(&seen), took, "the packet to {last}");
    }
    let lateness = rig.timed.snapshot().lateness;
    assert_eq!((lateness.late, lateness.max_s), (0, 1e-9), "who looks in time is not late");
}

#[test]
fn full_levels_refuse_and_deleting_makes_room() {
    let mut rig = Rig::new(TWO_LEVELS);
    (1..=6).for_each(|last| rig.add(10, Field::Ipv4Dst, ip(last), output()));
    let seen = rig.until(us(10_000));
    let [(at, Seen::Message(Body::Error(error)))] = &seen[..] else { panic!("{seen:?}") };
    // Two entries are in the first level, three in the second.
    assert_eq!((*at, error.error), (us(2 * 100 + 3 * 20), FlowModFailed::TableFull.into()));
    assert_eq!(rig.occupancy(), [2, 3]);
    let all = FlowMod { command: FlowCommand::Delete, table: TableId::ALL, ..FlowMod::add(0, Match::any(), vec![]) };
    rig.say(Body::FlowMod(all));
    rig.until(us(20_000));
    assert_eq!(rig.occupancy(), [0, 0]);
    let records = rig.timed.take_records();
    assert_eq!(records.len(), 7);
    assert!(records[5].contains(",true,") && records[6].starts_with("delete,"), "{records:?}");
    assert!(rig.timed.take_records().is_empty());
}

#[test]
fn barriers_are_answered_behind_commands_and_hold_the_channel() {
    let mut rig = Rig::new(TWO_LEVELS);
    rig.add(10, Field::Ipv4Dst, ip(1), output());
    rig.say(Body::BarrierRequest);
    assert!(rig.timed.awaits_answer(CHANNEL) && rig.timed.owes(CHANNEL));
    assert_eq!(rig.until(us(104)), []);
    assert_eq!(rig.until(us(200)), [(us(105), Seen::Message(Body::BarrierReply))]);
    assert!(!rig.timed.awaits_answer(CHANNEL) && !rig.timed.owes(CHANNEL));
    // A device that answers barriers too early.
    let mut rig = Rig::new(&TWO_LEVELS.replace("lag", "waits = false\nlag"));
    rig.add(10, Field::Ipv4Dst, ip(1), output());
    rig.say(Body::BarrierRequest);
    assert_eq!(times(&rig.until(us(50))), [5]);
    assert!(!rig.timed.awaits_answer(CHANNEL) && rig.timed.owes(CHANNEL));
}

/// Entries that are added or expire without commands are counted in their level as well.
#[test]
fn entries_that_come_and_go_by_themselves_are_known() {
    let mut rig = Rig::new(TWO_LEVELS);
    let entry = |last: u8, idle_timeout| {
        let matching = Match::any().with(Field::EthType, 0x0800_u16).with(Field::Ipv4Dst, ip(last));
        FlowMod { idle_timeout, ..FlowMod::add(7, matching, vec![Instruction::ApplyActions(output())]) }
    };
    (1..=5).for_each(|last| rig.datapath.flow_mod(us(0), &entry(last, u16::from(last == 1))).unwrap());
    rig.datapath.flow_mod(us(0), &entry(2, 0)).unwrap();
    rig.timed.follow(&mut rig.datapath);
    assert_eq!(rig.occupancy(), [2, 3], "one of the same match takes the place of another");
    let late = us(5_000_000);
    while rig.datapath.expire(late, &mut rig.out).is_some_and(|at| at <= late) {}
    rig.timed.follow(&mut rig.datapath);
    assert_eq!(rig.occupancy().iter().sum::<u64>(), 4);
}

#[test]
fn a_bundle_that_fails_leaves_the_levels_as_they_were() {
    let mut rig = Rig::new(TWO_LEVELS);
    rig.add(10, Field::Ipv4Dst, ip(1), output());
    rig.until(us(1000));
    let control = |command| {
        Body::BundleControl(BundleControl {
            bundle: BundleId(1),
            command,
            flags: BundleFlags::default(),
            properties: Vec::new(),
        })
    };
    rig.say(control(BundleCommand::OpenRequest));
    let good = FlowMod::add(20, Match::any(), vec![Instruction::ApplyActions(output())]);
    let bad = FlowMod { table: TableId(200), ..good.clone() };
    for flow in [good, bad] {
        let xid = rig.xid + 1;
        let message = Box::new(Message { xid, body: Body::FlowMod(flow) });
        rig.say(Body::BundleAdd(BundleAdd {
            bundle: BundleId(1),
            flags: BundleFlags::default(),
            message,
            properties: Vec::new(),
        }));
    }
    rig.say(control(BundleCommand::CommitRequest));
    let errors = rig.until(us(2000)).iter().filter(|(_, seen)| matches!(seen, Seen::Message(Body::Error(_)))).count();
    assert_eq!(errors, 2, "that of the message, and that of the bundle");
    rig.timed.follow(&mut rig.datapath);
    assert_eq!(rig.occupancy(), [1, 0]);
}

#[test]
fn groups_do_not_overtake_entries() {
    let mut rig = Rig::new(TWO_LEVELS);
    let group = |command| {
        let (command_bucket, buckets, properties) = (BucketId::ALL, Vec::new(), Vec::new());
        Body::GroupMod(GroupMod {
            command,
            kind: GroupKind::All,
            group: GroupId(1),
            command_bucket,
            buckets,
            properties,
        })
    };
    rig.say(group(GroupCommand::Add));
    rig.add(10, Field::Ipv4Dst, ip(1), vec![Action::Group(GroupId(1))]);
    rig.say(group(GroupCommand::Delete));
    assert_eq!(rig.until(us(1000)), [], "no error: the group went when the entry was there");
    assert_eq!(rig.occupancy(), [0, 0], "and the entry with it");
}

const AGENTS: &str = r#"
name = "agents"
device = "Agents"
origin = "assumed"
source = "A test"
[timing]
data = "10us"
data_buffer = 3
packet_in = "4ms"
packet_out = "2ms"
buffer = 2
"#;

#[test]
fn packets_go_to_the_controller_and_back_through_agents() {
    for (returns, more) in [("direct", 0), ("fifo", 10)] {
        let mut rig = Rig::new(&format!("{AGENTS}returns = \"{returns}\"\n"));
        let punt = vec![Action::Output { port: PortNo::CONTROLLER, max_len: u16::MAX }];
        rig.say(Body::FlowMod(FlowMod::add(0, Match::any(), vec![Instruction::ApplyActions(punt)])));
        rig.until(us(1000));
        (0..3).for_each(|_| rig.packet(1));
        let seen = rig.until(us(20_000));
        // The third packet finds two at the agent and is lost; it was the last of three in the data path.
        assert_eq!(times(&seen), [1000 + 10 + 4000, 1000 + 10 + 8000]);
        let (_, Seen::Message(Body::PacketIn(packet))) = &seen[0] else { panic!("{seen:?}") };
        let back = PacketOut {
            buffer_id: None,
            in_port: PortNo(1),
            matching: Match::any(),
            actions: output(),
            data: packet.data.clone(),
        };
        rig.say(Body::PacketOut(back));
        assert!(rig.timed.owes(CHANNEL) && !rig.timed.awaits_answer(CHANNEL));
        assert_eq!(rig.until(us(30_000)), [(us(22_000 + more), Seen::Frame(PortNo(2), 128))]);
        assert!(!rig.timed.owes(CHANNEL));
        let lost = rig.timed.snapshot();
        assert_eq!((lost.lost_control, lost.lost_data), (1, 0));
        assert!(rig.timed.drops().contains(&("profile_agent_full", 1)));
    }
}

#[test]
fn the_data_path_has_so_much_room_and_super_frames_are_packets() {
    let mut rig = Rig::new(AGENTS);
    rig.say(Body::FlowMod(FlowMod::add(0, Match::any(), vec![Instruction::ApplyActions(output())])));
    rig.until(us(100));
    let craft = FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 9]));
    let mut long = craft.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2).payload(&[7; 4000]).frame();
    long.offload.checksum = Some(PartialChecksum { start: 34, offset: 6 });
    long.offload.segmentation =
        Some(Segmentation { kind: SegmentationKind::Udp, segment_bytes: 1000, header_bytes: 42 });
    rig.frame(long);
    let seen = rig.until(us(1000));
    assert_eq!(times(&seen), [110, 120, 130], "three of four have a place");
    assert!(seen.iter().all(|(_, seen)| *seen == Seen::Frame(PortNo(2), 1042)));
    assert_eq!(rig.timed.snapshot().lost_data, 1);
}

#[test]
fn a_profile_that_takes_no_time_is_none() {
    let mut datapath = Datapath::new(DatapathConfig::default());
    let native = Profile::find("native", std::path::Path::new("")).unwrap();
    assert!(DelayedDatapath::new(&native, 1, &mut datapath).unwrap().is_none());
}
