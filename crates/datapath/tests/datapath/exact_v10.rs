//! Entries of 1.0 without wildcards: they have precedence over all others, and are reported with the priorities of
//! their flow-mods (OpenFlow 1.0.0, 3.4, 5.4.3).
use crate::bench::*;
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::{Body, Message, Version, decode, encode};
use weir_packet::craft::{FrameBuilder, TcpHeader};

const ADD: u8 = 0;
const MODIFY_STRICT: u8 = 2;
const DELETE_STRICT: u8 = 4;

/// Wildcards `OFPFW_IN_PORT`, `OFPFW_TP_DST` and `OFPFW_DL_VLAN_PCP`.
const IN_PORT: u32 = 1;
const TP_DST: u32 = 1 << 7;
const DL_VLAN_PCP: u32 = 1 << 20;

/// VLAN id `OFP_VLAN_NONE` of untagged packets.
const NO_TAG: u16 = 0xffff;

/// Returns the `ofp_match` of TCP packets with `frame`'s addresses and ports.
fn matching(wildcards: u32, vlan: u16) -> Vec<u8> {
    let in_port = if wildcards & IN_PORT == 0 { 1_u16 } else { 0 };
    let tp_dst = if wildcards & TP_DST == 0 { 80_u16 } else { 0 };
    let mut bytes = [&wildcards.to_be_bytes()[..], &in_port.to_be_bytes(), &mac(1).0, &mac(2).0].concat();
    bytes.extend(vlan.to_be_bytes());
    bytes.extend([0, 0, 0x08, 0x00, 0, 6, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([1000_u16.to_be_bytes(), tp_dst.to_be_bytes()].concat());
    bytes
}

fn frame() -> Vec<u8> {
    let tcp = TcpHeader { source: 1000, destination: 80, ..TcpHeader::default() };
    FrameBuilder::ethernet(mac(2), mac(1)).ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).tcp(tcp).build()
}

/// Returns an encoded flow-mod that outputs to a port and asks for a flow-removed message.
fn flow_mod(command: u8, matching: &[u8], priority: u16, port: u8) -> Body {
    let mut bytes = vec![1, 14, 0, 80, 0, 0, 0, 1];
    bytes.extend(matching);
    bytes.extend([0; 8]);
    bytes.extend([0, command, 0, 0, 0, 0]);
    bytes.extend(priority.to_be_bytes());
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1]);
    bytes.extend([0, 0, 0, 8, 0, port, 0, 0]);
    decode(&bytes).unwrap().body
}

fn bytes_of(body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&Message { xid: 1, body }, Version::V10, &mut bytes).unwrap();
    bytes
}

/// Returns match and priority of the only entry, as statistics of 1.0 report them.
fn told(bench: &mut Bench) -> (Vec<u8>, u16) {
    let body = RequestBody::Flow(FlowRequest::all());
    let answers = bench.ask(OLD_CONTROLLER, Body::MultipartRequest(MultipartRequest { more: false, body }));
    let [reply] = <[Body; 1]>::try_from(answers).unwrap();
    let bytes = bytes_of(reply);
    assert_eq!(bytes.len(), 12 + 88 + 8, "one entry with one action");
    (bytes[16..56].to_vec(), u16::from_be_bytes([bytes[64], bytes[65]]))
}

fn with_both_channels() -> Bench {
    let mut bench = Bench::controlled_v10();
    bench.datapath.channel_up(bench.now, CONTROLLER, Version::V13);
    bench
}

#[test]
fn entries_are_told_as_their_flow_mods_had_them() {
    for (wildcards, vlan) in
        [(0, NO_TAG), (DL_VLAN_PCP, NO_TAG), (0, 5), (DL_VLAN_PCP, 5), (TP_DST, NO_TAG), (IN_PORT, 5)]
    {
        let mut bench = with_both_channels();
        let asked = matching(wildcards, vlan);
        assert!(bench.ask(OLD_CONTROLLER, flow_mod(ADD, &asked, 100, 2)).is_empty());
        assert_eq!(told(&mut bench), (asked.clone(), 100), "{wildcards:#x}, VLAN {vlan}");
        let gone = bench.ask(OLD_CONTROLLER, flow_mod(DELETE_STRICT, &asked, 100, 2));
        let [removed] = <[Body; 1]>::try_from(gone).unwrap();
        let bytes = bytes_of(removed);
        assert_eq!((&bytes[8..48], &bytes[56..58]), (&asked[..], &[0, 100][..]), "{wildcards:#x}, VLAN {vlan}");
    }
}

#[test]
fn an_entry_without_wildcards_comes_first_whatever_its_priority() {
    let mut bench = with_both_channels();
    let exact = matching(0, NO_TAG);
    bench.ask(OLD_CONTROLLER, flow_mod(ADD, &matching(TP_DST, NO_TAG), 200, 3));
    bench.ask(OLD_CONTROLLER, flow_mod(ADD, &exact, 100, 2));
    assert_eq!(bench.ports_of(1, &frame()), [2]);
    // "The priority field is only relevant for flow entries with wildcard fields" (5.3.3).
    bench.ask(OLD_CONTROLLER, flow_mod(MODIFY_STRICT, &exact, 7, 4));
    assert_eq!(bench.ports_of(1, &frame()), [4]);
    bench.ask(OLD_CONTROLLER, flow_mod(ADD, &exact, 8, 2));
    assert_eq!(bench.ports_of(1, &frame()), [2], "in the other's place");
    bench.ask(OLD_CONTROLLER, flow_mod(DELETE_STRICT, &exact, 9, 2));
    assert_eq!(bench.ports_of(1, &frame()), [3]);
}

/// Later versions are told the priority that their strict commands need to find the entry.
#[test]
fn other_versions_are_told_the_priority_that_counts() {
    let mut bench = with_both_channels();
    bench.ask(OLD_CONTROLLER, flow_mod(ADD, &matching(0, NO_TAG), 100, 2));
    let replies = bench.multipart(CONTROLLER, RequestBody::Flow(FlowRequest::all())).unwrap();
    let [ReplyBody::Flow(entries)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!(entries[0].priority, u16::MAX);
    bench.ask(OLD_CONTROLLER, flow_mod(DELETE_STRICT, &matching(0, NO_TAG), 100, 2));
    let removed = bench.told(CONTROLLER);
    assert!(matches!(&removed[..], [Body::FlowRemoved(removed)] if removed.priority == u16::MAX), "{removed:?}");
}
