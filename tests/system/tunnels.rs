//! Tests tunnels and service chains between two switches on separate machines, and with Linux's own VXLAN.
use crate::bed::{ping, ping_train, ready, weir};
use std::process::Stdio;
use std::time::Duration;
use weir_testing::{Namespace, TestProcess, run, wait_until};

const LEFT: &str = "192.0.2.1";
const RIGHT: &str = "192.0.2.2";
const B: &str = "10.9.0.2";
const LIMIT: Duration = Duration::from_secs(10);

/// Hosts A and B, each with a machine with a switch (`left`, `right`), where the host's veth ends as `pa` or `pb`;
/// the machines are joined by `u0`.
struct Sites {
    a: Namespace,
    left: Namespace,
    right: Namespace,
    b: Namespace,
}

impl Sites {
    fn new() -> Sites {
        let sites = Sites { a: Namespace::new(), left: Namespace::new(), right: Namespace::new(), b: Namespace::new() };
        sites.a.join("eth0", &sites.left, "pa");
        sites.b.join("eth0", &sites.right, "pb");
        sites.left.join("u0", &sites.right, "u0");
        sites.left.ip(&format!("addr add {LEFT}/24 dev u0"));
        sites.right.ip(&format!("addr add {RIGHT}/24 dev u0"));
        for (number, host) in [(1, &sites.a), (2, &sites.b)] {
            host.ip(&format!("addr add 10.9.0.{number}/24 dev eth0"));
            // Room for a tunnel's headers, and for a service header.
            host.ip("link set eth0 mtu 1400");
        }
        sites
    }

    fn reaches(&self, count: u32) -> bool {
        wait_until(LIMIT, || ping_train(&self.a, B, 1)) && ping(&self.a, B, count)
    }
}

/// Starts a switch with a host on port 1 and `trunk` on port 2, and adds flow entries.
fn switch(machine: &Namespace, host: &str, trunk: &str, flows: &[&str]) -> TestProcess {
    let ports = [format!("1=af_packet:{host}"), format!("2={trunk}")];
    let mut command = machine.command(weir());
    command.args(["switch", "--name", &format!("{}-{host}", machine.name()), "--listen", "ptcp:6654"]);
    command.args(["--port", &ports[0], "--port", &ports[1]]);
    let switch = ready(command);
    for flow in flows {
        run(machine.command("ovs-ofctl").args(["-O", "OpenFlow13", "add-flow", "tcp:127.0.0.1:6654", flow]));
    }
    switch
}

/// Returns a dump of a machine's switch.
fn dump(machine: &Namespace, what: &str) -> String {
    run(machine.command("ovs-ofctl").args(["-O", "OpenFlow13", what, "tcp:127.0.0.1:6654"]))
}

/// Captures the packets on an interface of a machine while `during` runs. Returns tshark's output of the fields.
fn seen(machine: &Namespace, interface: &str, filter: &str, fields: &[&str], during: impl FnOnce()) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seen.pcap");
    let file = file.to_str().expect("a name");
    let mut capture = machine.command("tcpdump");
    let capture = TestProcess::start(
        capture.args(["-U", "--immediate-mode", "-Z", "root", "-i", interface, "-w", file]).stderr(Stdio::null()),
    );
    let size = || std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    assert!(wait_until(LIMIT, || size() > 0), "tcpdump captures");
    during();
    // Enough for some requests and answers.
    assert!(wait_until(LIMIT, || size() > 600), "little was captured");
    capture.stop();
    let mut tshark = machine.command("tshark");
    tshark.args(["-r", file, "-Y", filter, "-T", "fields", "-E", "separator=,"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    run(&mut tshark)
}

fn is_possible() -> bool {
    weir_testing::root() && weir_testing::programs(&["ip", "ping", "ovs-ofctl", "iperf3", "tcpdump", "tshark"])
}

/// Sends TCP from A to B. iperf3 stops counting at 20 MB sent, when some bytes in transit are not yet received.
fn tcp_passes(sites: &Sites) {
    let mut server = sites.b.command("iperf3");
    let server = TestProcess::start(server.args(["-s", "-1"]).stdout(Stdio::null()));
    assert!(wait_until(LIMIT, || run(sites.b.command("ss").args(["-ltn"])).contains(":5201")));
    let output = run(sites.a.command("iperf3").args(["-J", "-n", "20M", "-c", B]));
    server.stop();
    let report: serde_json::Value = serde_json::from_str(&output).expect("iperf3 prints JSON");
    assert!(report["end"]["sum_received"]["bytes"].as_u64() >= Some(10_000_000), "{}", report["end"]["sum_received"]);
}

#[test]
fn every_tunnel_carries_ping_and_tcp_and_other_programs_read_it() {
    if !is_possible() {
        return;
    }
    let all = ["in_port=1,actions=output:2", "in_port=2,tun_id=77,actions=output:1"];
    for (kind, filter, fields, expected) in [
        ("vxlan", "vxlan && icmp", ["vxlan.vni", "udp.dstport"], "77,4789"),
        ("vxlan-gpe", "vxlan && icmp", ["vxlan.vni", "vxlan.next_proto"], "77,3"),
        ("gre", "gre && icmp", ["gre.key", "gre.proto"], "0x0000004d,0x6558"),
    ] {
        let sites = Sites::new();
        let tunnel = |remote: &str| format!("{kind}:t0,remote={remote},key=77");
        let left = switch(&sites.left, "pa", &tunnel(RIGHT), &all);
        let right = switch(&sites.right, "pb", &tunnel(LEFT), &all);
        let text = seen(&sites.right, "u0", filter, &fields, || assert!(sites.reaches(5), "{kind}"));
        assert!(text.lines().any(|line| line == expected), "{kind}: {text}");
        tcp_passes(&sites);
        let addresses = format!("in_port=2,tun_src={RIGHT},tun_dst={LEFT},actions=drop");
        run(sites.left.command("ovs-ofctl").args([
            "-O",
            "OpenFlow13",
            "add-flow",
            "tcp:127.0.0.1:6654",
            &format!("priority=40000,{addresses}"),
        ]));
        assert!(!ping_train(&sites.a, B, 1), "{kind}: the tunnel's addresses are matched");
        let ports = dump(&sites.left, "dump-ports");
        assert!(!ports.contains("errs=1"), "{kind}: {ports}");
        left.stop();
        right.stop();
    }
}

#[test]
fn the_other_end_is_chosen_per_packet() {
    if !is_possible() {
        return;
    }
    let sites = Sites::new();
    let onward = format!("in_port=1,actions=set_field:{RIGHT}->tun_dst,set_field:5->tun_id,output:2");
    let left = switch(&sites.left, "pa", "vxlan:t0,remote=flow,key=flow", &[&onward, "tun_id=5,actions=output:1"]);
    let back = ["in_port=1,actions=output:2", "in_port=2,actions=output:1"];
    let right = switch(&sites.right, "pb", &format!("vxlan:t0,remote={LEFT},key=5"), &back);
    assert!(sites.reaches(5));
    left.stop();
    right.stop();
}

#[test]
fn linux_takes_us_for_a_vxlan_tunnel() {
    if !is_possible() {
        return;
    }
    let sites = Sites::new();
    let device = ["link", "add", "vx0", "type", "vxlan", "id", "77", "remote", LEFT, "dstport", "4789"];
    if !sites.right.command("ip").args(device).output().is_ok_and(|output| output.status.success()) {
        return weir_testing::skip("needs VXLAN in the kernel");
    }
    sites.right.ip(&format!("addr add {B}/24 dev vx0"));
    sites.right.ip("link set vx0 up");
    let both = ["in_port=1,actions=output:2", "in_port=2,actions=output:1"];
    for checksum in ["off", "on"] {
        let tunnel = format!("vxlan:t0,remote={RIGHT},key=77,csum={checksum}");
        let left = switch(&sites.left, "pa", &tunnel, &both);
        assert!(sites.reaches(5), "csum={checksum}");
        left.stop();
    }
    let left = switch(&sites.left, "pa", &format!("vxlan:t0,remote={RIGHT},key=78"), &both);
    assert!(!ping_train(&sites.a, B, 1), "another network");
    left.stop();
}

/// Actions of a classifier on packets of path 7, which the forwarder reverses.
const ONWARD: &str =
    "encap(nsh(md_type=1)),set_field:7->nsh_spi,set_field:3->nsh_si,set_field:0x1122->nsh_c1,dec_nsh_ttl";

#[test]
fn a_service_path_over_ethernet() {
    if !is_possible() {
        return;
    }
    let sites = Sites::new();
    let onward = format!("in_port=1,actions={ONWARD},encap(ethernet),set_field:2:0:0:0:0:9->eth_dst,output:2");
    let back = "in_port=2,dl_type=0x894f,nsh_mdtype=1,nsh_np=3,nsh_spi=7,nsh_si=3,nsh_c1=0x1122,actions=decap(),decap(),output:1";
    let left = switch(&sites.left, "pa", "af_packet:u0", &[&onward, back]);
    let right = switch(&sites.right, "pb", "af_packet:u0", &[&onward, back]);
    let fields = ["nsh.spi", "nsh.si", "nsh.ttl", "nsh.nextproto"];
    let text = seen(&sites.right, "u0", "nsh && icmp", &fields, || {
        assert!(sites.reaches(5), "{}", dump(&sites.left, "dump-flows"))
    });
    assert!(text.lines().any(|line| line.replace("0x003e", "62") == "7,3,62,3"), "{text}");
    tcp_passes(&sites);
    left.stop();
    right.stop();
}

#[test]
fn a_service_path_over_vxlan_gpe() {
    if !is_possible() {
        return;
    }
    let sites = Sites::new();
    let onward = format!("in_port=1,actions={ONWARD},output:2");
    let back = "in_port=2,packet_type=(1,0x894f),nsh_spi=7,nsh_si=3,actions=decap(),output:1";
    // A path that also carries bare IP packets, which get an Ethernet header again that B accepts.
    let tunnel = |remote: &str| format!("vxlan-gpe:t0,remote={remote}");
    let left = switch(&sites.left, "pa", &tunnel(RIGHT), &[&onward, back]);
    let right = switch(&sites.right, "pb", &tunnel(LEFT), &[&onward, back]);
    let text = seen(&sites.right, "u0", "nsh && icmp", &["vxlan.next_proto", "nsh.si"], || assert!(sites.reaches(5)));
    assert!(text.lines().any(|line| line == "4,3"), "{text}");
    tcp_passes(&sites);

    // Bare IPv4 in the tunnel; ARP stays on path 7.
    let bare = "priority=40000,ip,in_port=1,actions=decap(),output:2";
    let address = run(sites.b.command("cat").arg("/sys/class/net/eth0/address"));
    let other = run(sites.a.command("cat").arg("/sys/class/net/eth0/address"));
    for (machine, host) in [(&sites.left, other.trim()), (&sites.right, address.trim())] {
        let back = format!(
            "priority=40000,in_port=2,packet_type=(1,0x800),nw_dst=10.9.0.0/24,actions=encap(ethernet),set_field:{host}->eth_dst,output:1"
        );
        for flow in [bare, &back] {
            run(machine.command("ovs-ofctl").args(["-O", "OpenFlow13", "add-flow", "tcp:127.0.0.1:6654", flow]));
        }
    }
    let text = seen(&sites.right, "u0", "vxlan && icmp", &["vxlan.next_proto", "nsh.si"], || assert!(sites.reaches(5)));
    assert!(text.lines().any(|line| line == "1,"), "{text}");

    // A packet without Ethernet header is not sent by a port for frames.
    run(sites.right.command("ovs-ofctl").args([
        "-O",
        "OpenFlow13",
        "add-flow",
        "tcp:127.0.0.1:6654",
        "priority=50000,packet_type=(1,0x800),actions=output:1",
    ]));
    assert!(!ping_train(&sites.a, B, 1));
    let socket = format!("{}-pb", sites.right.name());
    let stats = run(sites.right.command(weir()).args(["ctl", "--switch", &socket, "show"]));
    assert!(stats.contains("not ethernet 1"), "{stats}");
    left.stop();
    right.stop();
}
