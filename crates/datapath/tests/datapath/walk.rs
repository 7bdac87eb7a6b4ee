//! Long replies: walks through tables that change meanwhile.
use crate::bench::*;
use std::collections::HashMap;
use weir_openflow::codec::{self, MessageHeader};
use weir_openflow::model::multipart::{FlowRequest, MultipartReply, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, Match, PortNo, TableId};
use weir_openflow::{Body, Message};
use weir_packet::Field;

/// Returns an entry of a table, identified by its cookie.
fn entry(table: u8, number: u32) -> FlowMod {
    let matching = Match::any().with(Field::EthType, 0x0800u16).with(Field::Ipv4Dst, number);
    let cookie = u64::from(table) << 32 | u64::from(number);
    FlowMod { table: TableId(table), cookie, ..FlowMod::add(1, matching, apply(output(1))) }
}

fn delete(table: u8, number: u32) -> FlowMod {
    FlowMod { command: FlowCommand::DeleteStrict, ..entry(table, number) }
}

/// A walk visits entries that stay exactly once, and others at most once for each time they were added.
#[test]
fn a_walk_meets_what_stays_exactly_once() {
    for most in [1, 7, 64, 10_000] {
        let mut bench = Bench::controlled();
        for (table, numbers) in [(0, 0..300), (3, 0..200), (63, 0..1)] {
            numbers.for_each(|number| bench.flow_mod(&entry(table, number)).unwrap());
        }
        let mut walk = bench.datapath.flow_walk(&FlowRequest::all()).unwrap();
        let mut met = Vec::new();
        let mut step = 0;
        while bench.datapath.walk_flows(bench.now, &mut walk, most, &mut met) {
            // Every third entry is removed, in the order of the walk and against it, and new entries take their
            // places.
            if step >= 100 {
                continue;
            }
            let number = step * 3;
            for (table, number) in [(0, number), (3, 198 - number.min(198)), (0, 297 - number)] {
                let _ = bench.flow_mod(&delete(table, number));
                bench.flow_mod(&entry(table, 1000 + step * 3 + u32::from(table))).unwrap();
            }
            step += 1;
        }
        assert_eq!(step == 0, most == 10_000);
        let mut times: HashMap<u64, u32> = HashMap::new();
        met.iter().for_each(|flow| *times.entry(flow.cookie).or_default() += 1);
        for (table, count) in [(0u64, 300), (3, 200), (63, 1)] {
            for number in (0..count).filter(|number| number % 3 != 0 || table == 63) {
                assert_eq!(
                    times.get(&(table << 32 | number)),
                    Some(&1),
                    "table {table}, entry {number}, {most} a step"
                );
            }
        }
        assert!(times.values().all(|times| *times == 1), "nothing was added twice");
    }
}

/// A table may shrink to less than the walk has already visited.
#[test]
fn a_walk_goes_on_behind_a_table_that_has_become_shorter() {
    let mut bench = Bench::controlled();
    (0..2000).for_each(|number| bench.flow_mod(&entry(0, number)).unwrap());
    bench.flow_mod(&entry(3, 0)).unwrap();
    let mut walk = bench.datapath.flow_walk(&FlowRequest::all()).unwrap();
    let mut met = Vec::new();
    assert!(bench.datapath.walk_flows(bench.now, &mut walk, 1500, &mut met));
    (0..2000).rev().for_each(|number| bench.flow_mod(&delete(0, number)).unwrap());
    while bench.datapath.walk_flows(bench.now, &mut walk, 1, &mut met) {}
    assert_eq!((met.len(), met.last().map(|flow| flow.table)), (1501, Some(TableId(3))));
}

/// The parts of a reply together equal the whole reply, and only the last part says that it is the last.
#[test]
fn an_answer_in_parts_is_the_whole_answer() {
    let mut bench = Bench::controlled();
    (0..1000).for_each(|number| bench.flow_mod(&entry(0, number)).unwrap());
    let one_table = FlowRequest { table: TableId(5), ..FlowRequest::all() };
    let few = FlowRequest { cookie: 0, cookie_mask: 63, ..FlowRequest::all() };
    let last = FlowRequest { cookie: 999, cookie_mask: u64::MAX, ..FlowRequest::all() };
    let first = FlowRequest { cookie: 0, ..last.clone() };
    for (request, expected) in [(FlowRequest::all(), 1000), (one_table, 0), (few, 16), (last, 1), (first, 1)] {
        for body in [RequestBody::Flow(request.clone()), RequestBody::Aggregate(request)] {
            let message =
                Message { xid: 9, body: Body::MultipartRequest(MultipartRequest { more: false, body: body.clone() }) };
            let mut reply = bench.datapath.long_reply(CONTROLLER, &message).expect("it may be long");
            while bench.datapath.reply_on(bench.now, &mut reply, 10, &mut bench.out) {}
            assert!(bench.out.messages.iter().all(|(channel, message)| (*channel, message.xid) == (CONTROLLER, 9)));
            let parts = bench.told(CONTROLLER);
            let mut count = 0;
            for (at, part) in parts.iter().enumerate() {
                let Body::MultipartReply(part) = part else { panic!("{part:?}") };
                assert_eq!(part.more, at + 1 < parts.len());
                match &part.body {
                    ReplyBody::Flow(flows) => {
                        assert!(!flows.is_empty() || parts.len() == 1, "{at} of {}", parts.len());
                        count += flows.len();
                    }
                    ReplyBody::Aggregate(sum) => count += sum.flow_count as usize,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(count, expected, "{body:?}");
        }
    }
}

/// An encoded reply has the same entries, whether its parts fit into messages or not.
#[test]
fn an_encoded_answer_is_the_same() {
    let mut bench = Bench::controlled();
    (0..300).for_each(|number| bench.flow_mod(&entry(0, number)).unwrap());
    // Entries of which few fit into a message.
    let long = vec![Action::output(PortNo(2)); 1000];
    for number in 300..310 {
        let flow = FlowMod { instructions: vec![Instruction::ApplyActions(long.clone())], ..entry(0, number) };
        bench.flow_mod(&flow).unwrap();
    }
    for body in [RequestBody::Flow(FlowRequest::all()), RequestBody::Aggregate(FlowRequest::all())] {
        let message = Message { xid: 9, body: Body::MultipartRequest(MultipartRequest { more: false, body }) };
        let mut reply = bench.datapath.long_reply(CONTROLLER, &message).expect("it may be long");
        while bench.datapath.reply_on(bench.now, &mut reply, 7, &mut bench.out) {}
        let expected = replies(bench.told(CONTROLLER));
        let mut reply = bench.datapath.long_reply(CONTROLLER, &message).expect("it may be long");
        let (mut bytes, mut count) = (Vec::new(), 0);
        loop {
            let part = bench.datapath.encode_on(bench.now, &mut reply, 7, &mut bytes);
            count += part.messages;
            if !part.more {
                break;
            }
        }
        let mut decoded = Vec::new();
        while let Some(header) = MessageHeader::read(&bytes) {
            let rest = bytes.split_off(usize::from(header.length));
            let message = codec::decode(&bytes).expect("it is right");
            assert_eq!(message.xid, 9);
            decoded.push(message.body);
            bytes = rest;
        }
        assert_eq!(decoded.len(), count);
        assert_eq!(replies(decoded), expected);
    }
}

/// Returns the multipart replies of a list of message bodies.
fn replies(bodies: Vec<Body>) -> Vec<MultipartReply> {
    let reply = |body| match body {
        Body::MultipartReply(reply) => reply,
        other => panic!("{other:?}"),
    };
    bodies.into_iter().map(reply).collect()
}

/// A message answered at once or by an error has no long reply.
#[test]
fn other_messages_are_not_taken() {
    let bench = Bench::controlled();
    let no_table = FlowRequest { table: TableId(200), ..FlowRequest::all() };
    for (channel, body) in [
        (CONTROLLER, RequestBody::Table),
        (CONTROLLER, RequestBody::Flow(no_table)),
        (OLD_CONTROLLER, RequestBody::Flow(FlowRequest::all())),
    ] {
        let message = Message { xid: 9, body: Body::MultipartRequest(MultipartRequest { more: false, body }) };
        assert!(bench.datapath.long_reply(channel, &message).is_none(), "{channel:?} {message:?}");
    }
    assert!(bench.datapath.long_reply(CONTROLLER, &Message { xid: 9, body: Body::BarrierRequest }).is_none());
}
