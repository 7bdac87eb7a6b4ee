//! Tests parsing of flow entries against `ovs-ofctl parse-flows`: the same text must give the same flow-mod.
use std::io::Write as _;
use std::process::Command;
use weir_openflow::model::FlowCommand;
use weir_openflow::text::{self, PrintDetail, print_bytes};
use weir_openflow::{Body, Message, Version, encode};

/// Number of texts at the end of [`FLOWS`] that both programs refuse.
const REFUSED: usize = 2;

/// Texts that both programs parse to the same flow-mod, for OpenFlow 1.3.
const FLOWS: &[&str] = &[
    "table=0,priority=10,ip,nw_dst=10.0.0.0/8,actions=push_vlan:0x8100,set_field:4197->vlan_vid,output:2",
    "in_port=1,dl_src=00:11:22:33:44:55,dl_vlan=5,dl_vlan_pcp=3,actions=strip_vlan,mod_dl_src:00:00:00:00:00:01,set_queue:5",
    "tcp,tp_src=80,tp_dst=0x1000/0xf000,tcp_flags=+syn-ack,actions=drop",
    "tcp,tcp_flags=syn|ack actions=drop",
    "tcp,tcp_flags=0x800/0xf00 actions=1",
    "tcp6,ipv6_src=fe80::1,ipv6_dst=2001:db8::/32,tcp_flags=0x12/0x3f,actions=controller",
    "udp,ip_frag=later,nw_tos=32,nw_ecn=1,actions=controller:65535",
    "udp,nw_frag=first,actions=1",
    "ip,nw_frag=not_later,actions=1",
    "icmp,icmp_type=8,icmp_code=0 actions=controller:128,ALL,FLOOD,LOCAL,NORMAL,IN_PORT,table",
    "icmp6,icmp_type=135,icmp_code=0,nd_target=fe80::1,nd_sll=00:00:00:00:00:01 actions=group:5",
    "icmp6,icmp_type=136,nd_tll=00:00:00:00:00:01 actions=set_field:1::1->nd_target",
    "arp,arp_op=1,arp_spa=10.0.0.0/8,arp_tpa=1.1.1.1,arp_sha=00:00:00:00:00:01,arp_tha=00:00:00:00:00:02 actions=1",
    "arp,nw_src=10.0.0.1,nw_proto=2 actions=set_field:2->arp_op,set_field:10.0.0.3->arp_spa",
    "mpls,mpls_label=5,mpls_tc=3,mpls_bos=1 actions=dec_mpls_ttl,set_mpls_ttl(4),set_field:7->mpls_label,pop_mpls:0x0800",
    "mplsm actions=set_mpls_tc(3),1",
    "tun_id=5,metadata=0x10/0xf0 actions=write_metadata:0x5/0xf,goto_table:3",
    "metadata=5 actions=meter:1,clear_actions,write_actions(output:1,group:3),write_metadata:7,goto_table:3",
    "vlan_tci=0x1000/0x1000 actions=1",
    "vlan_tci=0 actions=1",
    "vlan_vid=0x1000/0x1000 actions=1",
    "vlan_vid=0x1005,vlan_pcp=4 actions=1",
    "vlan_tci=0x1005/0x1fff actions=1",
    "vlan_tci=0xb005 actions=1",
    "vlan_tci=0x5/0xfff actions=1",
    "vlan_tci=0xf000/0xf000 actions=1",
    "dl_vlan_pcp=7 actions=1",
    "dl_vlan=0xffff actions=1",
    "dl_type=0x1234 actions=1",
    "dl_type=0x0800,nw_proto=47 actions=1",
    "eth_type=0x800,ip_proto=6,tcp_dst=80 actions=1",
    "nw_proto=17,dl_type=0x86dd,tp_dst=53 actions=1",
    "dl_type=0x88cc,dl_dst=01:80:c2:00:00:0e/ff:ff:ff:ff:ff:f0 actions=1",
    "sctp,sctp_src=1,sctp_dst=2 actions=1",
    "sctp6,tp_src=1 actions=1",
    "udp6,ipv6_label=5/0xff actions=1",
    "rarp,arp_op=3 actions=1",
    "cookie=0x5,idle_timeout=4,hard_timeout=5,send_flow_rem,check_overlap,reset_counts,actions=1",
    "no_packet_counts,no_byte_counts,actions=1",
    "ip,nw_src=10.0.0.1/255.0.255.0 actions=1",
    "nw_src=10.0.0.1,ip actions=set_field:10.0.0.1->ip_dst,set_field:00:00:00:00:00:01->eth_dst,set_field:5->tun_id",
    "ip actions=set_field:3->metadata,set_field:1->ip_dscp,set_field:2->nw_ecn,mod_nw_ttl:9,dec_ttl",
    "tcp actions=set_field:80->tcp_src,set_field:81->tcp_dst,mod_tp_dst:82",
    "udp actions=mod_nw_src:1.2.3.4,mod_nw_dst:1.2.3.5,mod_nw_tos:32,mod_tp_src:9",
    "ipv6 actions=set_field:fe80::1->ipv6_src,set_field:5->ipv6_label",
    "in_port=LOCAL actions=output:controller,output:local",
    "priority=0 actions=CONTROLLER:65535",
    "ip,nw_src=0.0.0.0/0,metadata=0/0 actions=",
    "actions=apply_actions,drop",
    "table=2 priority=3 ip nw_dst=10.0.0.1 actions=resubmit_is_unknown",
];

/// Returns the flow-mod that `ovs-ofctl` prints for a text; `None` if it refuses the text.
fn ovs(text: &str, folder: &std::path::Path) -> Option<String> {
    let path = folder.join("flow");
    std::fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
    let output = Command::new("ovs-ofctl").args(["-O", "OpenFlow13", "parse-flows"]).arg(&path).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = shown.lines().find(|line| line.starts_with("OFPT_FLOW_MOD"));
    line.filter(|_| output.status.success()).map(|line| line.trim_end().to_owned())
}

fn weir(text: &str) -> Option<String> {
    let flow = text::parse_flow(text, FlowCommand::Add).ok()?;
    let mut bytes = Vec::new();
    encode(&Message { xid: 1, body: Body::FlowMod(flow) }, Version::V13, &mut bytes).ok()?;
    Some(print_bytes(&bytes, PrintDetail::Fields).trim_end().to_owned())
}

#[test]
fn texts_are_read_as_in_ovs() {
    if !weir_testing::programs(&["ovs-ofctl"]) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("weir-text-parse-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let pairs: Vec<_> = FLOWS.iter().map(|text| (text, weir(text), ovs(text, &folder))).collect();
    std::fs::remove_dir_all(&folder).unwrap();
    let read = pairs.iter().filter(|(_, ours, _)| ours.is_some()).count();
    assert_eq!(read, FLOWS.len() - REFUSED, "texts that were read");
    let differ: Vec<_> = pairs.into_iter().filter(|(_, ours, theirs)| ours != theirs).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}
