//! Timing of bundles, which take the time of their messages, and of barriers, which wait for packet-outs.
use super::*;
use weir_openflow::model::error::BundleFailed;

fn control(command: BundleCommand) -> Body {
    let (bundle, flags, properties) = (BundleId(1), BundleFlags::default(), Vec::new());
    Body::BundleControl(BundleControl { bundle, command, flags, properties })
}

fn entry(priority: u16, last: u8) -> FlowMod {
    let matching = Match::any().with(Field::EthType, 0x0800_u16).with(Field::Ipv4Dst, ip(last));
    FlowMod::add(priority, matching, vec![Instruction::ApplyActions(output())])
}

fn delete_all() -> FlowMod {
    FlowMod { command: FlowCommand::Delete, table: TableId::ALL, ..FlowMod::add(0, Match::any(), vec![]) }
}

impl Rig {
    /// Sends a whole bundle on the channel.
    fn bundle(&mut self, flows: Vec<FlowMod>) {
        self.say(control(BundleCommand::OpenRequest));
        for flow in flows {
            let message = Box::new(Message { xid: self.xid + 1, body: Body::FlowMod(flow) });
            let (bundle, flags, properties) = (BundleId(1), BundleFlags::default(), Vec::new());
            self.say(Body::BundleAdd(BundleAdd { bundle, flags, message, properties }));
        }
        let now = self.now;
        assert!(self.until(now).iter().all(|(_, seen)| matches!(seen, Seen::Message(Body::BundleControl(_)))));
        self.say(control(BundleCommand::CommitRequest));
    }
}

#[test]
fn a_bundle_takes_as_long_as_its_messages_and_takes_effect_then() {
    let mut rig = Rig::new(TWO_LEVELS);
    // The third entry moves another one to the second level.
    rig.bundle((1..=3).map(|last| entry(10 * u16::from(last), last)).collect());
    assert!(rig.timed.awaits_answer(CHANNEL) && rig.timed.owes(CHANNEL));
    rig.until(us(319));
    rig.packet(1);
    assert_eq!(rig.occupancy(), [0, 0]);
    let seen = rig.until(us(1000));
    assert_eq!(seen, [(us(320), Seen::Message(control(BundleCommand::CommitReply)))], "3 of 100 us and 1 of 20");
    assert_eq!(rig.occupancy(), [2, 1]);
    assert!(!rig.timed.awaits_answer(CHANNEL) && !rig.timed.owes(CHANNEL));
    let records = rig.timed.take_records();
    assert!(records.len() == 1 && records[0].starts_with("bundle,"), "{records:?}");
}

#[test]
fn a_bundle_waits_its_turn_however_long() {
    let mut rig = Rig::new(&TWO_LEVELS.replace("\"100us\"", "\"20s\""));
    rig.add(10, Field::Ipv4Dst, ip(1), output());
    rig.bundle(vec![entry(10, 2)]);
    // Bundles of silent controllers are dropped long before that.
    for second in 1..=40 {
        rig.until(us(second * 1_000_000 - 1));
        rig.datapath.expire(rig.now, &mut rig.out);
    }
    let seen = rig.until(us(60_000_000));
    assert_eq!(seen, [(us(40_000_000), Seen::Message(control(BundleCommand::CommitReply)))]);
    assert_eq!(rig.occupancy(), [2, 0]);
}

#[test]
fn what_a_bundle_deletes_first_it_adds_anew() {
    let mut rig = Rig::new(TWO_LEVELS);
    (1..=2).for_each(|last| rig.add(10, Field::Ipv4Dst, ip(last), output()));
    rig.until(us(1000));
    rig.say(Body::FlowMod(delete_all()));
    rig.until(us(2000));
    let deleted = rig.timed.take_records().pop().unwrap();
    (1..=2).for_each(|last| rig.add(10, Field::Ipv4Dst, ip(last), output()));
    rig.until(us(3000));
    rig.bundle(vec![delete_all(), entry(10, 1), entry(10, 2)]);
    let seen = rig.until(us(9000));
    let delay_s: f64 = deleted.split(',').nth(3).unwrap().parse().unwrap();
    let took = times(&seen)[0] - 3000;
    assert!(delay_s > 0.0 && (took as f64 - delay_s * 1e6 - 200.0).abs() < 2.0, "{took} us, deleting alone {deleted}");
    assert_eq!(rig.occupancy(), [2, 0]);
}

#[test]
fn a_bundle_for_which_there_is_no_room_changes_nothing() {
    let mut rig = Rig::new(TWO_LEVELS);
    (1..=4).for_each(|last| rig.add(10, Field::Ipv4Dst, ip(last), output()));
    rig.until(us(10_000));
    rig.bundle(vec![entry(10, 5), entry(10, 6), entry(10, 7)]);
    let seen = rig.until(us(20_000));
    let errors: Vec<_> = seen
        .iter()
        .map(|(at, seen)| match seen {
            Seen::Message(Body::Error(error)) => (*at, error.error),
            other => panic!("{other:?}"),
        })
        .collect();
    // The flow-mods for which there was room took their time.
    let full = us(10_000 + 20);
    assert_eq!(errors, [(full, FlowModFailed::TableFull.into()), (full, BundleFailed::MsgFailed.into())]);
    assert_eq!(rig.occupancy(), [2, 2]);
    assert!(!rig.timed.owes(CHANNEL));
    rig.bundle(vec![entry(10, 5)]);
    rig.until(us(30_000));
    assert_eq!(rig.occupancy(), [2, 3], "the bundle's number is free again");
}

#[test]
fn barriers_wait_for_packet_outs() {
    for (text, answered) in [(AGENTS.to_owned(), 4000), (format!("{AGENTS}[barrier]\nwaits = false\n"), 0)] {
        let mut rig = Rig::new(&text);
        let data = weir_openflow::model::Bytes(frame(1).bytes().to_vec());
        let (in_port, matching, actions) = (PortNo::CONTROLLER, Match::any(), output());
        let packet = PacketOut { buffer_id: None, in_port, matching, actions, data };
        rig.say(Body::PacketOut(packet.clone()));
        rig.say(Body::PacketOut(packet));
        rig.say(Body::BarrierRequest);
        assert!(rig.timed.awaits_answer(CHANNEL));
        let seen = rig.until(us(9000));
        let mut expected = vec![
            (us(2000), Seen::Frame(PortNo(2), 128)),
            (us(4000), Seen::Frame(PortNo(2), 128)),
            (us(answered), Seen::Message(Body::BarrierReply)),
        ];
        expected.sort_by_key(|(at, _)| *at);
        assert_eq!(seen, expected);
        assert!(!rig.timed.owes(CHANNEL));
    }
}
