//! Packet-ins, packet-outs and buffered packets.
use crate::bench::*;
use std::net::Ipv4Addr;
use weir_openflow::Body;
use weir_openflow::model::error::{BadAction, BadRequest};
use weir_openflow::model::role::AsyncConfig;
use weir_openflow::model::{Action, BufferId, ErrorType, FlowMod, Match, PacketInReason, PacketOut, PortNo};
use weir_packet::Field;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;

fn packet_out(in_port: PortNo, actions: Vec<Action>, data: Vec<u8>) -> Body {
    Body::PacketOut(PacketOut { buffer_id: None, in_port, matching: Match::any(), actions, data: data.into() })
}

#[test]
fn a_kept_packet_is_sent_by_its_number() {
    let mut bench = Bench::controlled();
    bench.add(1, Match::any(), vec![Action::Output { port: PortNo::CONTROLLER, max_len: 64 }]);
    bench.receive(1, &frame());
    let [packet] = bench.packet_ins(CONTROLLER).try_into().unwrap();
    assert_eq!((packet.total_len, packet.data.0.as_slice()), (214, &frame()[..64]));
    assert_eq!(packet.reason, PacketInReason::Action);
    let out = PacketOut {
        buffer_id: packet.buffer_id,
        in_port: PortNo(1),
        matching: Match::any(),
        actions: output(3),
        data: vec![].into(),
    };
    assert_eq!(bench.ask(CONTROLLER, Body::PacketOut(out.clone())), []);
    assert_eq!(bench.sent(), [(PortNo(3), frame())]);
    assert_eq!(bench.error_of(CONTROLLER, Body::PacketOut(out)), Some(BadRequest::BufferEmpty.into()));
}

#[test]
fn a_flow_mod_releases_a_kept_packet_into_the_pipeline() {
    let mut bench = Bench::controlled();
    bench.add(1, Match::any(), vec![Action::Output { port: PortNo::CONTROLLER, max_len: 64 }]);
    bench.receive(1, &frame());
    let [packet] = bench.packet_ins(CONTROLLER).try_into().unwrap();
    let flow = FlowMod { buffer_id: packet.buffer_id, ..FlowMod::add(2, from_port(1), apply(output(4))) };
    assert_eq!(bench.ask(CONTROLLER, Body::FlowMod(flow)), []);
    assert_eq!(bench.sent(), [(PortNo(4), frame())]);
    let unknown = FlowMod { buffer_id: Some(BufferId(99)), ..FlowMod::add(3, from_port(2), apply(output(4))) };
    let error = bench.error_of(CONTROLLER, Body::FlowMod(unknown));
    assert_eq!(error, Some(BadRequest::BufferUnknown.into()));
    assert_eq!(bench.ports_of(2, &frame()), [4], "the entry is there all the same");
}

#[test]
fn packet_outs() {
    let mut bench = Bench::controlled();
    bench.add(1, from_port(2), output(4));
    let table = vec![Action::Output { port: PortNo::TABLE, max_len: 0 }];
    assert_eq!(bench.ask(CONTROLLER, packet_out(PortNo(2), table, frame())), []);
    assert_eq!(bench.sent(), [(PortNo(4), frame())]);
    let flood = vec![Action::output(PortNo::FLOOD)];
    bench.ask(CONTROLLER, packet_out(PortNo::CONTROLLER, flood.clone(), frame()));
    assert_eq!(bench.sent().len(), 4);
    bench.ask(CONTROLLER, packet_out(PortNo(3), flood, frame()));
    assert_eq!(bench.sent().len(), 3);
    let back = bench.ask(CONTROLLER, packet_out(PortNo::CONTROLLER, vec![Action::to_controller()], frame()));
    let [Body::PacketIn(packet)] = &back[..] else { panic!("{back:?}") };
    assert_eq!((&packet.data.0, packet.in_port()), (&frame(), Some(PortNo::CONTROLLER)));
    let wrong = [
        (packet_out(PortNo::FLOOD, output(1), frame()), ErrorType::from(BadRequest::BadPort)),
        (packet_out(PortNo(1), output(0), frame()), BadAction::BadOutPort.into()),
        (packet_out(PortNo(1), output(2), vec![1; 13]), BadRequest::BadPacket.into()),
        (packet_out(PortNo(1), vec![Action::DecNwTtl], frame()), BadAction::MatchInconsistent.into()),
    ];
    for (body, error) in wrong {
        assert_eq!(bench.error_of(CONTROLLER, body.clone()), Some(error), "{body:?}");
    }
    assert_eq!(bench.sent(), []);
}

#[test]
fn an_expired_ttl_is_told_to_those_who_ask() {
    let mut bench = Bench::controlled();
    let ipv4 = Match::any().with(Field::EthType, eth_type::IPV4);
    bench.add(1, ipv4, vec![Action::DecNwTtl, Action::output(PortNo(2))]);
    let craft = FrameBuilder::ethernet(mac(2), mac(1)).ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let last_hop = craft.ttl(1).udp(1, 2).build();
    assert_eq!(bench.ports_of(1, &last_hop), [0_u32; 0]);
    assert_eq!(bench.packet_ins(CONTROLLER), []);
    assert_eq!(bench.datapath.drops().ttl_expired, 1);
    let [Body::GetAsyncReply(config)] = &bench.ask(CONTROLLER, Body::GetAsyncRequest)[..] else { panic!() };
    let config = AsyncConfig { packet_in: [Some(0b100), Some(0)], ..config.clone() };
    assert_eq!(bench.ask(CONTROLLER, Body::SetAsync(config)), []);
    bench.receive(1, &last_hop);
    let [packet] = bench.packet_ins(CONTROLLER).try_into().unwrap();
    assert_eq!((packet.reason, packet.data.0), (PacketInReason::InvalidTtl, last_hop));
    // The controller asked for no other packet-ins.
    bench.add(2, Match::any(), vec![Action::to_controller()]);
    bench.receive(1, &frame());
    assert_eq!(bench.packet_ins(CONTROLLER), []);
    assert_eq!(bench.datapath.drops().total(), 2);
}

#[test]
fn packet_outs_of_one_five_say_what_is_not_in_the_packet() {
    use weir_openflow::model::{FlowMod, PacketOut};
    use weir_openflow::{Body, Version};
    let mut bench = Bench::new();
    let channel = weir_datapath::ChannelId(15);
    bench.datapath.channel_up(bench.now, channel, Version::V15);
    let with_metadata = Match::any().with(weir_packet::Field::Metadata, 7_u32);
    bench.flow_mod(&FlowMod::add(5, with_metadata.clone(), apply(output(3)))).unwrap();
    let out = |matching| {
        let actions = vec![Action::output(PortNo::TABLE)];
        let (buffer_id, in_port) = (None, PortNo(1));
        Body::PacketOut(PacketOut { buffer_id, in_port, matching, actions, data: frame().into() })
    };
    assert_eq!(bench.error_of(channel, out(Match::any().with(weir_packet::Field::Metadata, 7_u32))), None);
    assert_eq!(bench.sent(), [(PortNo(3), frame())]);
    let in_packet = Match::any().with(weir_packet::Field::EthDst, 7_u32);
    assert_eq!(bench.error_of(channel, out(in_packet)), Some(BadRequest::PipelineFieldsOnly.into()));
}
