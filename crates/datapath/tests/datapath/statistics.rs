//! Replies to requests for statistics and descriptions.
use crate::bench::*;
use weir_datapath::PortCounters;
use weir_openflow::model::error::{BadRequest, MeterModFailed, QueueOpFailed};
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::{ErrorType, GroupId, Match, MeterId, MultipartReply, PortNo, TableId};
use weir_openflow::{Body, Message, Version, codec};
use weir_packet::Field;

#[test]
fn statistics() {
    let mut bench = Bench::controlled();
    bench.add(1, from_port(1), output(2));
    bench.receive(1, &frame());
    bench.receive(2, &frame());
    let counters = PortCounters { rx_packets: 8, tx_dropped: 2, ..PortCounters::default() };
    bench.datapath.set_port_counters(PortNo(1), counters);
    let ports = bench.multipart(CONTROLLER, RequestBody::PortStats(PortNo(1))).unwrap();
    let [ReplyBody::PortStats(ports)] = &ports[..] else { panic!() };
    assert_eq!((ports[0].rx_packets, ports[0].tx_dropped), (8, 2));
    let tables = bench.multipart(CONTROLLER, RequestBody::Table).unwrap();
    let [ReplyBody::Table(tables)] = &tables[..] else { panic!() };
    assert_eq!((tables.len(), tables[0].active_count, tables[0].lookup_count, tables[0].matched_count), (64, 1, 2, 1));
    let sums = bench.multipart(CONTROLLER, RequestBody::Aggregate(FlowRequest::all())).unwrap();
    let [ReplyBody::Aggregate(sum)] = sums[..] else { panic!() };
    assert_eq!((sum.packet_count, sum.byte_count, sum.flow_count), (1, 214, 1));
    let descs = bench.multipart(CONTROLLER, RequestBody::PortDesc(PortNo::ANY)).unwrap();
    let [ReplyBody::PortDesc(descs)] = &descs[..] else { panic!() };
    assert_eq!(descs.len(), 4);
    let errors: [(RequestBody, ErrorType); 4] = [
        (RequestBody::PortStats(PortNo(9)), BadRequest::BadPort.into()),
        (RequestBody::Queue { port: PortNo(1), queue: 3 }, QueueOpFailed::BadQueue.into()),
        (RequestBody::Meter(MeterId(1)), MeterModFailed::UnknownMeter.into()),
        (RequestBody::Flow(FlowRequest { table: TableId(64), ..FlowRequest::all() }), BadRequest::BadTableId.into()),
    ];
    for (body, error) in errors {
        assert_eq!(bench.multipart(CONTROLLER, body), Err(error));
    }
}

#[test]
fn every_statistics_reply_encodes_however_long() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    for number in 0..3000_u32 {
        bench.add(1, Match::any().with(Field::EthDst, mac(number.into()).to_bits()), output(2));
    }
    let asked = [
        RequestBody::Desc,
        RequestBody::Flow(FlowRequest::all()),
        RequestBody::Aggregate(FlowRequest::all()),
        RequestBody::Table,
        RequestBody::PortStats(PortNo::ANY),
        RequestBody::PortDesc(PortNo::ANY),
        RequestBody::Queue { port: PortNo::ANY, queue: u32::MAX },
        RequestBody::Group(GroupId::ALL),
        RequestBody::GroupDesc(GroupId::ALL),
        RequestBody::GroupFeatures,
        RequestBody::Meter(MeterId::ALL),
        RequestBody::MeterConfig(MeterId::ALL),
        RequestBody::MeterFeatures,
        RequestBody::TableFeatures(vec![]),
    ];
    for body in asked {
        let is_in_v10 = !matches!(
            body,
            RequestBody::PortDesc(_)
                | RequestBody::Group(_)
                | RequestBody::GroupDesc(_)
                | RequestBody::GroupFeatures
                | RequestBody::Meter(_)
                | RequestBody::MeterConfig(_)
                | RequestBody::MeterFeatures
                | RequestBody::TableFeatures(_)
        );
        let channels = [(CONTROLLER, Version::V13, true), (OLD_CONTROLLER, Version::V10, is_in_v10)];
        for (channel, version, _) in channels.into_iter().filter(|(.., has)| *has) {
            let parts = bench.multipart(channel, body.clone()).unwrap();
            let mut flows = 0;
            for part in parts {
                flows += if let ReplyBody::Flow(entries) = &part { entries.len() } else { 0 };
                let reply = MultipartReply { more: false, body: part };
                codec::encode(&Message { xid: 1, body: Body::MultipartReply(reply) }, version, &mut Vec::new())
                    .unwrap();
            }
            assert_eq!(flows, if matches!(body, RequestBody::Flow(_)) { 3000 } else { 0 });
        }
    }
}

#[test]
fn statistics_of_one_five_tell_what_is_kept() {
    use weir_openflow::model::multipart::FlowCountersReason;
    use weir_openflow::model::stats::OxsStats;
    use weir_openflow::model::{FlowFlags, FlowMod};
    let mut bench = Bench::new();
    let channel = weir_datapath::ChannelId(15);
    bench.datapath.channel_up(bench.now, channel, weir_openflow::Version::V15);
    let flow = FlowMod { flags: FlowFlags::NO_BYT_COUNTS, ..FlowMod::add(5, from_port(1), apply(output(2))) };
    bench.flow_mod(&flow).unwrap();
    bench.wait(std::time::Duration::from_secs(2));
    bench.receive(1, &frame());
    bench.wait(std::time::Duration::from_secs(1));
    let replies = bench.multipart(channel, RequestBody::FlowCounters(FlowRequest::all())).unwrap();
    let [ReplyBody::FlowCounters(list)] = &replies[..] else { panic!("{replies:?}") };
    let (duration, idle_time, packet_count) = (Some((3, 0)), Some((1, 0)), Some(1));
    let stats = OxsStats { duration, idle_time, packet_count, ..OxsStats::default() };
    assert_eq!((list.len(), list[0].reason, &list[0].stats), (1, FlowCountersReason::Request, &stats));
    assert_eq!((list[0].priority, &list[0].matching), (5, &from_port(1)));
}
