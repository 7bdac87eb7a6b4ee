//! Tests which virtual switch packets are assigned to.
use super::*;
use crate::{FabricPort, FabricSpec, VirtualPortSpec};
use std::net::Ipv4Addr;
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;
use weir_units::{Bps, ByteSize};

const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// Selector that matches all packets; tests set some of its fields.
const ALL: PacketSelector = PacketSelector {
    port: None,
    vlan: None,
    eth_src: None,
    eth_dst: None,
    ip_src: None,
    ip_dst: None,
    mpls: None,
    tunnel: None,
};

/// Returns a virtual switch with these selectors, or those of its ports if there are none. Ports are given with their
/// VLAN outside.
fn switch(number: u64, select: &[PacketSelector], ports: &[(u32, Option<u16>)]) -> VirtualSwitch {
    let physical = |port| FabricPort { port, rate: Bps(1_000_000_000) };
    let fabric = FabricSpec { ports: (1..=4).map(physical).collect(), ..FabricSpec::default() };
    let rate = Bps(1_000_000);
    let share =
        |(port, vlan): &(u32, _)| VirtualPortSpec { vlan: *vlan, ..VirtualPortSpec::new(&physical(*port), rate, rate) };
    let ports = ports.iter().map(share).collect();
    let unsaid = VirtualSwitch::new(&format!("v{number}"), number, ports, ByteSize(9000), &fabric);
    if select.is_empty() {
        return unsaid;
    }
    let select = select.iter().map(|selector| selector.checked(&unsaid.ports, &fabric).unwrap()).collect();
    VirtualSwitch { select, ..unsaid }
}

fn vlan(vlan: u16) -> PacketSelector {
    PacketSelector { vlan: Some(vlan), ..ALL }
}

fn port(port: u32) -> PacketSelector {
    PacketSelector { port: Some(port), ..ALL }
}

fn net(text: &str) -> Option<IpNet> {
    Some(text.parse().unwrap())
}

/// Returns the fabric indices of the virtual switches that frames on a port are assigned to.
fn asked(switches: &[VirtualSwitch], port: u32, frames: &[Frame]) -> Vec<Option<u16>> {
    let lookup = FirstLookup::new((0..).zip(switches));
    let way = lookup.at(PortNo(port));
    let mut parsed = ParsedHeaders::default();
    frames.iter().map(|frame| Some(way?.target(frame, &mut parsed)?.switch)).collect()
}

fn udp(vlan: Option<u16>, src: [u8; 4]) -> Frame {
    let craft = FrameBuilder::ethernet(B, A);
    let craft = vlan.into_iter().fold(craft, |craft, vlan| craft.vlan(0x8100, vlan, 0));
    Frame::from_bytes(&craft.ipv4(Ipv4Addr::from(src), [10, 0, 0, 9].into()).udp(1, 2).payload(b"x").build())
}

const BOTH: &[(u32, Option<u16>)] = &[(1, None), (2, None)];

#[test]
fn a_whole_port_is_one_switch() {
    let switches = [switch(1, &[], &[(1, None)]), switch(2, &[], &[(2, None)])];
    let frames = [udp(None, [10, 0, 0, 1]), udp(Some(7), [10, 0, 0, 1])];
    assert_eq!(asked(&switches, 1, &frames), [Some(0), Some(0)]);
    assert_eq!(asked(&switches, 2, &frames), [Some(1), Some(1)]);
    assert_eq!(asked(&switches, 3, &frames), [None, None], "no switch has the port");
    let lookup = FirstLookup::new((0..).zip(&switches));
    assert!(matches!(lookup.at(PortNo(1)), Some(PortFirstLookup::One(VirtualInputPort { switch: 0, input: 0 }))));
}

#[test]
fn vlans_choose_and_the_first_switch_wins() {
    let switches = [switch(1, &[vlan(10), vlan(0)], BOTH), switch(2, &[vlan(20), port(2)], BOTH)];
    let priority_only = udp(Some(0), [10, 0, 0, 1]);
    let vlans = [None, Some(10), Some(20), Some(30)].map(|vlan| udp(vlan, [10, 0, 0, 1]));
    let frames: Vec<Frame> = vlans.into_iter().chain([priority_only, Frame::from_bytes(&[0; 13])]).collect();
    assert_eq!(asked(&switches, 1, &frames), [Some(0), Some(0), Some(1), None, Some(0), Some(0)]);
    assert_eq!(asked(&switches, 2, &frames), [Some(0), Some(0), Some(1), Some(1), Some(0), Some(0)]);
}

#[test]
fn addresses_labels_and_tunnels_choose() {
    let switches = [
        switch(
            1,
            &[
                PacketSelector { ip_src: net("10.1.0.0/16"), ..ALL },
                PacketSelector { eth_src: Some(MacAddr([2, 0, 0, 0, 0, 7])), ..ALL },
            ],
            BOTH,
        ),
        switch(
            2,
            &[
                PacketSelector { ip_src: net("10.0.0.0/8"), vlan: Some(5), ..ALL },
                PacketSelector { mpls: Some(77), ..ALL },
            ],
            BOTH,
        ),
        switch(
            3,
            &[PacketSelector { tunnel: Some(9), ..ALL }, PacketSelector { ip_dst: net("fd00::/16"), ..ALL }],
            BOTH,
        ),
        switch(4, &[PacketSelector { ip_src: net("10.0.0.0/8"), ..ALL }], BOTH),
    ];
    let mut tunnelled = udp(None, [192, 0, 2, 1]);
    tunnelled.tunnel.id = 9;
    let other_mac = FrameBuilder::ethernet(B, MacAddr([2, 0, 0, 0, 0, 7])).ether_type(0x88b5).payload(b"x").build();
    let labelled = FrameBuilder::ethernet(B, A).mpls(77, 0, 9).payload(&[0x45; 30]).build();
    let six =
        FrameBuilder::ethernet(B, A).ipv6("fd01::1".parse().unwrap(), "fd00::1".parse().unwrap()).udp(1, 2).build();
    let frames = [
        udp(None, [10, 1, 2, 3]),
        udp(Some(5), [10, 2, 0, 1]),
        udp(Some(6), [10, 2, 0, 1]),
        udp(None, [192, 0, 2, 1]),
        tunnelled,
        Frame::from_bytes(&other_mac),
        Frame::from_bytes(&labelled),
        Frame::from_bytes(&six),
        Frame::from_bytes(&[1; 13]),
    ];
    let expected = [Some(0), Some(1), Some(3), None, Some(2), Some(0), Some(1), Some(2), None];
    assert_eq!(asked(&switches, 2, &frames), expected);
}

#[test]
fn arp_goes_where_its_addresses_go() {
    let switches = [
        switch(1, &[PacketSelector { ip_src: net("10.1.0.0/16"), ..ALL }], BOTH),
        switch(2, &[PacketSelector { ip_dst: net("10.2.0.0/16"), ..ALL }], BOTH),
    ];
    let arp =
        |from: [u8; 4], to: [u8; 4]| FrameBuilder::ethernet(B, A).arp(1, (A, from.into()), (B, to.into())).frame();
    let frames =
        [arp([10, 1, 0, 1], [10, 2, 0, 1]), arp([10, 3, 0, 1], [10, 2, 0, 1]), arp([10, 3, 0, 1], [10, 3, 0, 2])];
    assert_eq!(asked(&switches, 1, &frames), [Some(0), Some(1), None]);
}

#[test]
fn a_port_that_is_a_vlan_outside_has_no_other_packets() {
    let trunk = |vlan| [(1, Some(vlan)), (2, None)];
    let switches = [
        switch(1, &[PacketSelector { eth_src: Some(A), ..ALL }, vlan(30)], &trunk(10)),
        switch(2, &[port(1)], &trunk(20)),
    ];
    let frames = [None, Some(10), Some(20), Some(30)].map(|vlan| udp(vlan, [10, 0, 0, 1]));
    assert_eq!(asked(&switches, 1, &frames), [None, Some(0), Some(1), None]);
    assert_eq!(asked(&switches, 2, &frames), [Some(0); 4]);
}
