//! Meters, as seen by packets and controllers.
use crate::bench::*;
use std::time::Duration;
use weir_datapath::{DropReason, MAX_BANDS, MAX_METERS};
use weir_openflow::Body;
use weir_openflow::model::error::MeterModFailed;
use weir_openflow::model::meter::MeterCommand::{Add, Delete, Modify};
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterConfig, MeterMod, MeterStats, flags};
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::{Action, FlowFlags, FlowMod, Instruction, Match, MeterId, PortNo, TableId};
use weir_packet::checksum::verify;
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::field::eth_type;
use weir_packet::frame::{Segmentation, SegmentationKind};
use weir_packet::{Field, parse};

fn drop_above(rate: u32, burst_size: u32) -> Band {
    Band { rate, burst_size, kind: BandKind::Drop }
}

fn remark_above(rate: u32, burst_size: u32, prec_level: u8) -> Band {
    Band { rate, burst_size, kind: BandKind::DscpRemark { prec_level } }
}

impl Bench {
    fn meter_mod(
        &mut self,
        command: MeterCommand,
        meter: MeterId,
        flags: u16,
        bands: Vec<Band>,
    ) -> Result<(), MeterModFailed> {
        match self.error_of(CONTROLLER, Body::MeterMod(MeterMod { command, flags, meter, bands })) {
            None => Ok(()),
            Some(weir_openflow::model::ErrorType::MeterModFailed(code)) => Err(code),
            Some(other) => panic!("{other:?}"),
        }
    }

    fn stats(&mut self, meter: MeterId) -> Vec<MeterStats> {
        let parts = self.multipart(CONTROLLER, RequestBody::Meter(meter)).unwrap();
        parts.into_iter().flat_map(|part| if let ReplyBody::Meter(stats) = part { stats } else { panic!() }).collect()
    }

    /// Returns the statistics of the only meter.
    fn only(&mut self) -> MeterStats {
        self.stats(MeterId::ALL).remove(0)
    }
}

/// Returns a bench whose packets pass meter 1 and leave by port 2.
fn metered(flags: u16, bands: Vec<Band>) -> Bench {
    let mut bench = Bench::controlled();
    bench.meter_mod(Add, MeterId(1), flags, bands).unwrap();
    bench.flow_mod(&through(1, 1, Match::any())).unwrap();
    bench
}

/// Returns an entry that outputs the packets a meter passes to port 2.
fn through(meter: u32, priority: u16, matching: Match) -> FlowMod {
    FlowMod::add(priority, matching, [vec![Instruction::Meter(MeterId(meter))], apply(output(2))].concat())
}

fn ipv4(dscp: u8) -> FrameBuilder {
    FrameBuilder::ethernet(mac(2), mac(1)).traffic_class(dscp << 2 | 1).ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
}

/// Returns DSCP and ECN of a frame.
fn traffic_class(frame: &[u8]) -> (u128, u128) {
    let key = parse(frame, PortNo(1)).unwrap().key;
    (key.get(Field::IpDscp), key.get(Field::IpEcn))
}

#[test]
fn what_passes_is_the_rate_and_the_burst() {
    // 214 bytes are 1712 bits; twice the rate is offered for 100 s.
    for (flags, rate, burst, gap_us, due) in [
        (flags::PKTPS | flags::BURST, 10, 5, 50_000, 1005),
        (flags::PKTPS, 10, 5, 50_000, 1010),
        (flags::KBPS | flags::BURST, 100, 200, 8_560, (100 * 100 + 200) * 1000 / 1712),
        (flags::KBPS, 100, 0, 8_560, (100 * 100 + 100) * 1000 / 1712),
        (0, 100, 0, 8_560, (100 * 100 + 100) * 1000 / 1712),
    ] {
        let mut bench = metered(flags, vec![drop_above(rate, burst)]);
        let (mut sent, mut passed) = (0_u64, 0_u64);
        while sent * gap_us < 100_000_000 {
            passed += bench.receive(1, &frame()).len() as u64;
            sent += 1;
            bench.wait(Duration::from_micros(gap_us));
        }
        assert!(passed.abs_diff(due) <= 1, "flags {flags:#x}, rate {rate}: passed {passed}, due {due}");
        assert_eq!(bench.datapath.drops().meter, sent - passed);
        let stats = bench.only();
        assert_eq!((stats.packet_in_count, stats.byte_in_count), (sent, sent * 214));
        assert_eq!(stats.bands, [(sent - passed, (sent - passed) * 214)]);
    }
}

#[test]
fn of_the_bands_that_are_exceeded_the_one_with_the_highest_rate_acts() {
    let flags = flags::PKTPS | flags::BURST;
    for bands in [vec![remark_above(10, 10, 1), drop_above(20, 20)], vec![drop_above(20, 20), remark_above(10, 10, 1)]]
    {
        let of_remark = usize::from(bands[0].kind == BandKind::Drop);
        let mut bench = metered(flags, bands);
        let dscps: Vec<_> =
            (0..30).flat_map(|_| bench.receive(1, &ipv4(10).build())).map(|(_, frame)| traffic_class(&frame)).collect();
        assert_eq!(dscps, [vec![(10, 1); 10], vec![(12, 1); 10]].concat());
        let bands = bench.only().bands;
        assert_eq!((bands[of_remark].0, bands[1 - of_remark].0), (10, 10));
    }
}

#[test]
fn remarking_keeps_checksums_and_everything_else() {
    let mut bench = metered(flags::PKTPS, vec![remark_above(0, 0, 1)]);
    let ipv6 =
        FrameBuilder::ethernet(mac(2), mac(1)).vlan(0x8100, 5, 3).traffic_class(34 << 2 | 3).ipv6(1.into(), 2.into());
    for (craft, before, after) in [
        (ipv4(10).udp(1, 2), (10, 1), (12, 1)),
        (ipv4(14).udp(1, 2), (14, 1), (14, 1)),
        (ipv4(46).udp(1, 2), (46, 1), (46, 1)),
        (ipv4(0).udp(1, 2), (0, 1), (0, 1)),
        (ipv6.udp(1, 2), (34, 3), (36, 3)),
    ] {
        let original = craft.payload(&[7; 100]).build();
        assert_eq!(traffic_class(&original), before);
        let [(PortNo(2), sent)] = &bench.receive(1, &original)[..] else { panic!() };
        assert_eq!(traffic_class(sent), after);
        assert_eq!(verify(sent), Ok(()));
        let differing = original.iter().zip(sent).filter(|(a, b)| a != b).count();
        assert!(differing <= 3, "only the field and the header's checksum change");
    }
    let not_ip = frame();
    assert_eq!(bench.receive(1, &not_ip), [(PortNo(2), not_ip)]);
}

#[test]
fn later_tables_see_the_new_drop_precedence() {
    let mut bench = Bench::controlled();
    bench.meter_mod(Add, MeterId(1), flags::PKTPS, vec![remark_above(0, 0, 2)]).unwrap();
    let goto = vec![Instruction::Meter(MeterId(1)), Instruction::GotoTable(TableId(1))];
    bench.flow_mod(&FlowMod::add(1, Match::any(), goto)).unwrap();
    let high = Match::any().with(Field::EthType, eth_type::IPV4).with(Field::IpDscp, 14_u8);
    bench.flow_mod(&FlowMod { table: TableId(1), ..FlowMod::add(1, high, apply(output(3))) }).unwrap();
    assert_eq!(bench.ports_of(1, &ipv4(10).build()), [3]);
}

#[test]
fn a_dropped_packet_runs_no_action_and_goes_to_no_table() {
    let mut bench = Bench::controlled();
    bench.meter_mod(Add, MeterId(1), flags::PKTPS, vec![drop_above(0, 0)]).unwrap();
    let all = [
        Instruction::GotoTable(TableId(1)),
        Instruction::ApplyActions(output(2)),
        Instruction::WriteActions(output(3)),
        Instruction::Meter(MeterId(1)),
    ];
    bench.flow_mod(&FlowMod::add(1, Match::any(), all.to_vec())).unwrap();
    assert_eq!(bench.receive(1, &frame()), []);
    assert_eq!((bench.datapath.drops().meter, bench.datapath.drops().total()), (1, 1));
}

#[test]
fn flows_are_counted_as_they_come_change_and_go() {
    let mut bench = metered(flags::PKTPS, vec![drop_above(1000, 0)]);
    bench.meter_mod(Add, MeterId(2), flags::PKTPS, vec![]).unwrap();
    let counts = |bench: &mut Bench| -> Vec<u32> { bench.stats(MeterId::ALL).iter().map(|s| s.flow_count).collect() };
    assert_eq!(counts(&mut bench), [1, 0]);
    for port in 1..=3 {
        bench.flow_mod(&FlowMod { table: TableId(port), ..through(1, 5, from_port(1)) }).unwrap();
    }
    assert_eq!(counts(&mut bench), [4, 0]);
    // The entry is added again, then replaced with another meter, then without a meter.
    bench.flow_mod(&through(1, 1, Match::any())).unwrap();
    assert_eq!(counts(&mut bench), [4, 0]);
    bench.flow_mod(&through(2, 1, Match::any())).unwrap();
    assert_eq!(counts(&mut bench), [3, 1]);
    use weir_openflow::model::FlowCommand::{Delete, Modify};
    let all = |command, flow| FlowMod { table: TableId(1), command, ..flow };
    bench.flow_mod(&all(Modify, through(2, 0, Match::any()))).unwrap();
    assert_eq!(counts(&mut bench), [2, 2]);
    bench.flow_mod(&all(Modify, FlowMod::add(0, Match::any(), vec![]))).unwrap();
    assert_eq!(counts(&mut bench), [2, 1]);
    bench.flow_mod(&FlowMod { command: Delete, ..FlowMod::delete_all() }).unwrap();
    assert_eq!(counts(&mut bench), [0, 0]);
    bench.flow_mod(&FlowMod { hard_timeout: 1, ..through(2, 1, Match::any()) }).unwrap();
    bench.wait(Duration::from_secs(2));
    bench.datapath.expire(bench.now, &mut bench.out);
    assert_eq!(counts(&mut bench), [0, 0]);
}

#[test]
fn a_meter_takes_its_flow_entries_with_it() {
    for (deleted, left) in [(MeterId(1), vec![2_u64, 3]), (MeterId::ALL, vec![3]), (MeterId(7), vec![1, 2, 3])] {
        let mut bench = Bench::controlled();
        for (number, table) in [(1, 0), (2, 9)] {
            bench.meter_mod(Add, MeterId(number), flags::KBPS, vec![drop_above(1, 0)]).unwrap();
            let flow = FlowMod { cookie: number.into(), table: TableId(table), ..through(number, 1, Match::any()) };
            bench.flow_mod(&FlowMod { flags: FlowFlags::SEND_FLOW_REM, ..flow }).unwrap();
        }
        bench.flow_mod(&FlowMod { cookie: 3, ..FlowMod::add(2, from_port(3), apply(output(2))) }).unwrap();
        let told = bench
            .ask(CONTROLLER, Body::MeterMod(MeterMod { command: Delete, flags: 0, meter: deleted, bands: vec![] }));
        let mut gone: Vec<u64> = told
            .iter()
            .map(|body| match body {
                Body::FlowRemoved(removed) => removed.cookie,
                other => panic!("{other:?}"),
            })
            .collect();
        let flows = bench.multipart(CONTROLLER, RequestBody::Flow(FlowRequest::all())).unwrap();
        let mut there: Vec<u64> = flows
            .iter()
            .flat_map(|part| if let ReplyBody::Flow(flows) = part { flows.clone() } else { panic!() })
            .map(|flow| flow.cookie)
            .collect();
        there.sort_unstable();
        assert_eq!(there, left, "{deleted}");
        gone.extend(there);
        gone.sort_unstable();
        assert_eq!(gone, [1, 2, 3], "{deleted}");
    }
}

#[test]
fn configuration_reads_back_as_it_was_set() {
    let mut bench = Bench::controlled();
    let configs = [
        (MeterId(1), 0, vec![]),
        (MeterId(7), flags::PKTPS | flags::STATS, vec![drop_above(u32::MAX, 77), remark_above(0, 0, 255)]),
        (MeterId::MAX, flags::ALL & !flags::PKTPS, vec![remark_above(5, u32::MAX, 1); usize::from(MAX_BANDS)]),
        (MeterId::SLOWPATH, flags::PKTPS, vec![drop_above(1, 0)]),
        (MeterId::CONTROLLER, flags::KBPS, vec![drop_above(1, 0)]),
    ];
    let expected = configs.map(|(meter, flags, bands)| MeterConfig { flags, meter, bands });
    for config in expected.iter().rev() {
        bench.meter_mod(Add, config.meter, config.flags, config.bands.clone()).unwrap();
    }
    let all = bench.multipart(CONTROLLER, RequestBody::MeterConfig(MeterId::ALL)).unwrap();
    assert_eq!(all, [ReplyBody::MeterConfig(expected.to_vec())]);
    let one = bench.multipart(CONTROLLER, RequestBody::MeterConfig(MeterId(7))).unwrap();
    assert_eq!(one, [ReplyBody::MeterConfig(vec![expected[1].clone()])]);
    let unknown = Err(MeterModFailed::UnknownMeter.into());
    assert_eq!(bench.multipart(CONTROLLER, RequestBody::MeterConfig(MeterId(2))), unknown);
    assert_eq!(bench.multipart(CONTROLLER, RequestBody::Meter(MeterId(2))), unknown);
    let features = bench.multipart(CONTROLLER, RequestBody::MeterFeatures).unwrap();
    let [ReplyBody::MeterFeatures(features)] = &features[..] else { panic!() };
    let said = (features.max_meter, features.max_bands, features.band_types, features.capabilities);
    assert_eq!(said, (MAX_METERS, MAX_BANDS, 0b110, 0b1111));
}

#[test]
fn a_changed_meter_keeps_what_it_counted_and_gives_no_second_burst() {
    let mut bench = metered(flags::PKTPS | flags::BURST, vec![drop_above(1, 10), remark_above(1, 1, 1)]);
    let passed = |bench: &mut Bench| (0..20).map(|_| bench.receive(1, &frame()).len()).sum::<usize>();
    assert_eq!(passed(&mut bench), 10);
    bench.wait(Duration::from_secs(3));
    let flags = flags::PKTPS | flags::BURST | flags::STATS;
    bench.meter_mod(Modify, MeterId(1), flags, vec![drop_above(100, 50), drop_above(1000, 0)]).unwrap();
    assert_eq!(passed(&mut bench), 1, "the new second band has no burst");
    let stats = bench.only();
    assert_eq!((stats.packet_in_count, stats.duration_sec, stats.flow_count), (40, 3, 1));
    assert_eq!(stats.bands, [(10, 2140), (19, 19 * 214)]);
    bench.meter_mod(Modify, MeterId(1), flags::PKTPS, vec![]).unwrap();
    assert_eq!((passed(&mut bench), bench.only().bands.len()), (20, 0));
}

#[test]
fn what_cannot_be_done_is_refused_with_its_code() {
    let mut bench = Bench::controlled();
    bench.meter_mod(Add, MeterId(1), flags::KBPS, vec![drop_above(1, 1)]).unwrap();
    let before = bench.multipart(CONTROLLER, RequestBody::MeterConfig(MeterId::ALL)).unwrap();
    let band = |kind| vec![Band { rate: 1, burst_size: 1, kind }];
    let foreign = BandKind::Experimenter { id: 1, data: vec![].into() };
    let unknown = BandKind::Unknown { kind: 3, data: vec![].into() };
    use MeterModFailed::*;
    for (command, meter, flags, bands, code) in [
        (Add, MeterId(1), flags::KBPS, vec![], MeterExists),
        (Add, MeterId(0), flags::KBPS, vec![], InvalidMeter),
        (Add, MeterId(MeterId::MAX.0 + 1), flags::KBPS, vec![], InvalidMeter),
        (Add, MeterId::ALL, flags::KBPS, vec![], InvalidMeter),
        (Modify, MeterId::ALL, flags::KBPS, vec![], InvalidMeter),
        (Modify, MeterId(2), flags::KBPS, vec![], UnknownMeter),
        (Modify, MeterId::CONTROLLER, flags::KBPS, vec![], UnknownMeter),
        (MeterCommand::Unknown(3), MeterId(1), flags::KBPS, vec![], BadCommand),
        (MeterCommand::Unknown(u16::MAX), MeterId(0), 0, vec![], BadCommand),
        (Add, MeterId(2), flags::KBPS | flags::PKTPS, vec![], BadFlags),
        (Add, MeterId(2), 1 << 4, vec![], BadFlags),
        (Modify, MeterId(1), 1 << 15, vec![], BadFlags),
        (Add, MeterId(2), 0, vec![drop_above(1, 1); usize::from(MAX_BANDS) + 1], OutOfBands),
        (Add, MeterId(2), 0, band(foreign.clone()), BadBand),
        (Modify, MeterId(1), 0, band(unknown.clone()), BadBand),
        (Add, MeterId(2), 0, vec![remark_above(1, 1, 0)], BadBandValue),
    ] {
        assert_eq!(bench.meter_mod(command, meter, flags, bands.clone()), Err(code), "{command:?} {meter} {bands:?}");
    }
    for meter in [MeterId(5), MeterId(0), MeterId::SLOWPATH] {
        assert_eq!(bench.meter_mod(Delete, meter, u16::MAX, band(unknown.clone())), Ok(()));
    }
    assert_eq!(bench.multipart(CONTROLLER, RequestBody::MeterConfig(MeterId::ALL)).unwrap(), before);
    for (meter, code) in
        [(0, InvalidMeter), (MeterId::CONTROLLER.0, InvalidMeter), (u32::MAX, InvalidMeter), (2, UnknownMeter)]
    {
        assert_eq!(bench.flow_mod(&through(meter, 1, Match::any())), Err(code.into()));
    }
    let twice = vec![Instruction::Meter(MeterId(1)), Instruction::Meter(MeterId(1))];
    assert!(bench.flow_mod(&FlowMod::add(1, Match::any(), twice)).is_err());
}

#[test]
fn there_is_room_for_so_many_and_reserved_ones_besides() {
    let mut bench = Bench::controlled();
    for number in 1..=MAX_METERS {
        bench.meter_mod(Add, MeterId(number), flags::KBPS, vec![]).unwrap();
    }
    let more = MeterId(MAX_METERS + 1);
    assert_eq!(bench.meter_mod(Add, more, flags::KBPS, vec![]), Err(MeterModFailed::OutOfMeters));
    bench.meter_mod(Add, MeterId::CONTROLLER, flags::KBPS, vec![]).unwrap();
    bench.meter_mod(Add, MeterId::SLOWPATH, flags::KBPS, vec![]).unwrap();
    bench.meter_mod(Delete, MeterId(3), 0, vec![]).unwrap();
    bench.meter_mod(Add, more, flags::KBPS, vec![]).unwrap();
    assert_eq!(bench.stats(MeterId::ALL).len(), MAX_METERS as usize + 2);
}

#[test]
fn a_super_frame_counts_as_its_segments() {
    let mut bench = metered(flags::PKTPS | flags::BURST, vec![drop_above(1, 40)]);
    let tcp = TcpHeader { source: 1, destination: 2, sequence: 0, acknowledgment: 0, flags: 16, window: 9 };
    let mut frame = ipv4(0).tcp(tcp).payload(&[3; 40 * 1000 - 500]).frame();
    let kind = SegmentationKind::Tcpv4 { ecn: false };
    frame.offload.segmentation = Some(Segmentation { kind, segment_bytes: 1000, header_bytes: 54 });
    for _ in 0..2 {
        let mut frames = vec![frame.clone()];
        bench.datapath.process(bench.now, PortNo(1), &mut frames, &mut bench.pool, &mut bench.out);
    }
    assert_eq!(bench.sent().len(), 1, "the second one exceeds");
    let stats = bench.only();
    assert_eq!((stats.packet_in_count, stats.byte_in_count), (80, 2 * (40 * 54 + 39_500)));
    assert_eq!(stats.bands, [(40, 40 * 54 + 39_500)]);
}

#[test]
fn tracing_shows_meters_and_takes_no_tokens() {
    let mut bench = metered(flags::PKTPS | flags::BURST, vec![drop_above(1, 1)]);
    for _ in 0..3 {
        let text = bench.datapath.trace(bench.now, PortNo(1), &frame()).to_string();
        assert!(text.contains("\n  meter 1: passes\n"), "{text}");
    }
    assert_eq!(bench.ports_of(1, &frame()), [2]);
    let trace = bench.datapath.trace(bench.now, PortNo(1), &frame());
    assert_eq!((trace.drops.clone(), trace.outputs.len()), (vec![DropReason::Meter], 0));
    assert!(trace.to_string().contains("meter 1: drops it"), "{trace}");
    assert_eq!(bench.only().packet_in_count, 1);
}

#[test]
fn reserved_meters_measure_what_goes_to_controllers() {
    for (meter, reason) in
        [(MeterId::CONTROLLER, DropReason::ControllerMeter), (MeterId::SLOWPATH, DropReason::SlowPathMeter)]
    {
        let mut bench = Bench::controlled();
        bench.add(1, Match::any(), vec![Action::output(PortNo(2)), Action::to_controller()]);
        bench
            .meter_mod(Add, meter, flags::PKTPS | flags::BURST, vec![drop_above(5, 5), remark_above(2, 2, 1)])
            .unwrap();
        let packet = ipv4(10).build();
        assert!(
            bench.datapath.trace(bench.now, PortNo(1), &packet).to_string().contains(&format!("meter {meter}: passes"))
        );
        // Forwarded packets are not remarked.
        for _ in 0..8 {
            assert_eq!(bench.receive(1, &packet), [(PortNo(2), packet.clone())]);
        }
        let told: Vec<_> = bench.packet_ins(CONTROLLER).iter().map(|told| traffic_class(&told.data.0).0).collect();
        assert_eq!(told, [10, 10, 12, 12, 12]);
        assert_eq!(bench.datapath.drops().counted(), [(reason, 3)]);
        assert_eq!((bench.only().packet_in_count, bench.only().bands), (8, vec![(3, 3 * 34), (3, 3 * 34)]));
        let trace = bench.datapath.trace(bench.now, PortNo(1), &packet);
        assert_eq!((trace.drops, trace.to_controller), (vec![reason], false));
        bench.meter_mod(Delete, meter, 0, vec![]).unwrap();
        bench.receive(1, &packet);
        assert_eq!(bench.packet_ins(CONTROLLER).len(), 1);
    }
}

#[test]
fn the_action_meters_like_the_instruction() {
    use weir_openflow::model::error::BadAction;
    let mut bench = Bench::controlled();
    let limit = |bench: &mut Bench, number, packets| {
        let band = vec![drop_above(1, packets)];
        bench.meter_mod(Add, MeterId(number), flags::PKTPS | flags::BURST, band).unwrap();
    };
    limit(&mut bench, 1, 5);
    limit(&mut bench, 2, 3);
    // In an action list, actions before the meter run and actions after it do not.
    let list = vec![
        Action::output(PortNo(3)),
        Action::Meter(MeterId(1)),
        Action::Meter(MeterId(2)),
        Action::output(PortNo(2)),
    ];
    bench.add(1, from_port(1), list);
    let ports: Vec<_> = (0..4).map(|_| bench.ports_of(1, &frame())).collect();
    assert_eq!(ports, [vec![2, 3], vec![2, 3], vec![2, 3], vec![3]]);
    assert_eq!(bench.datapath.drops().meter, 1);
    // In the action set the meter runs before the output.
    let set = vec![Action::output(PortNo(2)), Action::Meter(MeterId(1))];
    bench.flow_mod(&FlowMod::add(1, from_port(4), vec![Instruction::WriteActions(set)])).unwrap();
    assert_eq!((bench.ports_of(4, &frame()), bench.ports_of(4, &frame())), (vec![2], vec![]));
    let counts: Vec<u32> = bench.stats(MeterId::ALL).iter().map(|stats| stats.flow_count).collect();
    assert_eq!(counts, [2, 1]);
    for meter in [0, 9, MeterId::CONTROLLER.0] {
        let flow = FlowMod::add(1, from_port(2), apply(vec![Action::Meter(MeterId(meter))]));
        assert_eq!(bench.flow_mod(&flow), Err(BadAction::BadMeter.into()));
    }
    bench.meter_mod(Delete, MeterId(1), 0, vec![]).unwrap();
    assert_eq!((bench.ports_of(1, &frame()), bench.ports_of(4, &frame())), (vec![], vec![]), "the entries are gone");
}
