//! Writes the seed corpus of the fuzz target `frame`: one frame of every kind, after the sixteen bytes that select
//! the edits (fuzz/src/bin/frame.rs).
//!
//! `cargo run -p weir-packet --example seeds -- fuzz/seeds/frame`
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::{MacAddr, PacketType};

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).expect("usage: seeds DIRECTORY");
    let ethernet = || FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    let (here, there) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let ipv4 = || ethernet().ipv4(here, there).payload(&[7; 40]);
    let ipv6 = || ethernet().ipv6(1.into(), 2.into()).payload(&[7; 40]);
    let tcp = TcpHeader { source: 1, destination: 2, flags: 0x99, ..TcpHeader::default() };
    let hop_by_hop = [17, 0, 1, 4, 0, 0, 0, 0, 4, 210, 0, 53, 0, 8, 0, 0];
    let routing = [[44, 2, 0, 1, 0, 0, 0, 0].as_slice(), &[3; 16], &[6, 0, 0, 1, 0, 0, 0, 1], &[0; 20]].concat();
    let solicitation = [[0xfe; 16].as_slice(), &[1, 1, 2, 0, 0, 0, 0, 1]].concat();
    let shapes = [
        ("arp", ethernet().arp(1, (MacAddr([2; 6]), here), (MacAddr([4; 6]), there))),
        ("udp4", ipv4().udp(1234, 53)),
        ("tcp4", ipv4().tcp(tcp)),
        ("sctp4", ipv4().sctp(5, 6)),
        ("icmp4", ipv4().icmp(8, 0, [0, 1, 0, 1])),
        ("tcp4-tagged", ethernet().vlan(0x88a8, 1, 2).vlan(0x8100, 3, 4).ipv4(here, there).tcp(tcp)),
        ("udp6", ipv6().udp(1234, 53)),
        ("tcp6", ipv6().tcp(tcp)),
        ("nd", ipv6().icmp(135, 0, [0; 4]).payload(&solicitation)),
        ("udp6-hop-by-hop", ipv6().ip_proto(0).payload(&hop_by_hop)),
        ("tcp6-routing-fragment", ipv6().ip_proto(43).payload(&routing)),
        ("mpls", ethernet().mpls(100, 3, 64).mpls(200, 0, 9).ipv4(here, there).udp(1, 2)),
        ("nsh", ethernet().nsh(0x7ff, [1, 2, 3, 4], PacketType::ETHERNET).payload(&ipv4().udp(1, 2).build())),
        ("snap", ethernet().ether_type(28).payload(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45, 0, 0, 20])),
        (
            "pbb",
            ethernet().ether_type(0x88e7).payload(&[&[0, 0, 0, 203], ipv4().udp(1, 2).build().as_slice()].concat()),
        ),
    ];
    // First choice: edits ipv4_dst and tcp_dst, push_mpls, copy_ttl_out; no offload. Second: ip_proto and udp_src,
    // dec_nw_ttl, push_vlan; a TCP or UDP super-frame with segments of 16 bytes. Third: pushes and pops a service
    // header and an Ethernet header.
    let choices = [
        [12, 1, 2, 14, 3, 4, 130, 0, 0, 135, 0, 0, 0, 0, 0, 0],
        [10, 0, 17, 15, 5, 6, 138, 0, 0, 128, 0, 0, 3, 34, 16, 16],
        [141, 0, 0, 142, 0, 0, 143, 0, 0, 143, 0, 0, 0, 0, 0, 0],
    ];
    for (name, craft) in shapes {
        for (number, choice) in choices.iter().enumerate() {
            std::fs::write(format!("{directory}/{name}-{number}"), [choice.as_slice(), &craft.build()].concat())?;
        }
    }
    Ok(())
}
