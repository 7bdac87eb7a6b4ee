//! Tests three switches in a row on veth pairs: traffic crosses them unharmed.
use crate::bed::{B4, B6, Bed, iperf, ping};
use std::process::Stdio;
use std::time::Duration;
use weir_testing::TestProcess;

/// Switches 1, 2, 3 with port 1 towards host A and port 2 towards host B; `weir ctl` adds their flow entries.
struct Chain {
    bed: Bed,
    switches: Vec<TestProcess>,
}

impl Chain {
    fn new(kind: &str, arguments: &[&str]) -> Chain {
        let bed = Bed::new();
        bed.trunk("t12", "t21");
        bed.trunk("t23", "t32");
        let ports = [("pa", "t12"), ("t21", "t23"), ("t32", "pb")];
        let start = |(index, (left, right)): (usize, (&str, &str))| {
            let (dpid, socket) = (format!("{:#x}", index + 1), socket(index + 1));
            let (left, right) = (format!("1={kind}:{left}"), format!("2={kind}:{right}"));
            let mut all = vec!["--dpid", &dpid, "--port", &left, "--port", &right, "--control-socket", &socket];
            all.extend(arguments);
            bed.switch(&all)
        };
        let switches = ports.into_iter().enumerate().map(start).collect();
        Chain { bed, switches }
    }

    fn add_flow(&self, switch: usize, flow: &str) {
        self.bed.run(crate::bed::weir(), &["ctl", "--socket", &socket(switch), "add-flow", flow]);
    }

    fn stop(self) {
        for switch in self.switches {
            switch.stop();
        }
    }
}

/// Returns the path of the control socket of a switch of the calling test.
fn socket(switch: usize) -> String {
    let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
    format!("/tmp/weir-{}-{test}-{switch}.sock", std::process::id())
}

fn ready() -> bool {
    weir_testing::root() && weir_testing::programs(&["ip", "ping", "iperf3", "tcpdump", "ss"])
}

/// Ping over IPv4 and IPv6, TCP and UDP by iperf3, over every kind of port that supports a veth.
#[test]
fn ping_tcp_and_udp_cross_three_switches() {
    if !ready() {
        return;
    }
    for kind in ["af_packet", "af_xdp"] {
        let chain = Chain::new(kind, &["--fail-mode", "standalone"]);
        assert!(chain.bed.reaches(B4, 20), "{kind}: IPv4");
        assert!(ping(&chain.bed.a, B4, 20), "{kind}: IPv4");
        assert!(chain.bed.reaches(B6, 20) && ping(&chain.bed.a, B6, 20), "{kind}: IPv6");
        let tcp = iperf(&chain.bed, &["-t", "2"]);
        // The last bytes may still be in transit when the sender counts.
        let received = tcp["end"]["sum_received"]["bytes"].as_u64().unwrap_or_default();
        assert!(received > 10_000_000, "{kind}: TCP moved {received} bytes in 2 s");
        // No more than every queue on the path and the receiver's socket can hold, even if a process is delayed.
        let udp = iperf(&chain.bed, &["-u", "-b", "1M", "-l", "1000", "-n", "60K"]);
        let lost = udp["end"]["sum"]["lost_percent"].as_f64().unwrap_or(100.0);
        assert!(lost < 1.0, "{kind}: UDP lost {lost} %");
        chain.stop();
    }
}

/// A tag pushed by the first switch is on the wire between the others and popped by the last.
#[test]
fn tagged_traffic_keeps_its_tag_between_switches() {
    if !ready() {
        return;
    }
    for kind in ["af_packet", "af_xdp"] {
        let chain = Chain::new(kind, &[]);
        let push = "push_vlan:0x8100,set_field:4196->vlan_vid";
        chain.add_flow(1, &format!("in_port=1,actions={push},output:2"));
        chain.add_flow(1, "in_port=2,vlan_vid=0x1064,actions=pop_vlan,output:1");
        chain.add_flow(2, "in_port=1,vlan_vid=0x1064,actions=output:2");
        chain.add_flow(2, "in_port=2,vlan_vid=0x1064,actions=output:1");
        chain.add_flow(3, "in_port=1,vlan_vid=0x1064,actions=pop_vlan,output:2");
        chain.add_flow(3, &format!("in_port=2,actions={push},output:1"));
        // AF_XDP takes frames before captures see them; there, the entries that match the tag show it.
        let capture = (kind == "af_packet").then(|| Capture::start(&chain.bed.switches, "t21", &["-e", "vlan", "100"]));
        assert!(chain.bed.reaches(B4, 20) && ping(&chain.bed.a, B4, 5), "{kind}");
        let tcp = iperf(&chain.bed, &["-n", "20M"]);
        // The last bytes may still be in transit when the sender counts.
        let received = tcp["end"]["sum_received"]["bytes"].as_u64().unwrap_or_default();
        assert!(received >= 5_000_000, "{kind}: {received} bytes: {}", tcp["end"]);
        if let Some(seen) = capture.map(Capture::stop) {
            assert!(seen.contains("vlan 100") && seen.contains("ICMP echo request"), "{kind}: {seen}");
        }
        chain.stop();
    }
}

/// Addresses and ports are rewritten on the way: every checksum that host B sees is correct.
#[test]
fn checksums_are_valid_after_rewrites() {
    if !ready() {
        return;
    }
    for kind in ["af_packet", "af_xdp"] {
        let chain = Chain::new(kind, &[]);
        chain.add_flow(1, "priority=1,actions=normal");
        chain.add_flow(3, "priority=1,actions=normal");
        chain.add_flow(2, "priority=1,in_port=1,actions=output:2");
        chain.add_flow(2, "priority=1,in_port=2,actions=output:1");
        // B is reached at 10.9.0.77, too; TTL and DSCP change on the way.
        let there = "set_field:10.9.0.2->ip_dst,mod_nw_tos:184,dec_ttl";
        chain.add_flow(2, &format!("priority=9,in_port=1,ip,nw_dst=10.9.0.77,actions={there},output:2"));
        chain.add_flow(
            2,
            "priority=9,in_port=2,ip,nw_src=10.9.0.2,actions=set_field:10.9.0.77->ip_src,dec_ttl,output:1",
        );
        chain.bed.a.ip(&format!("neigh replace 10.9.0.77 lladdr {} dev eth0", mac_of(&chain.bed)));
        // Frames need complete checksums in the capture, so A's transmit offloads are off.
        for host in [&chain.bed.a, &chain.bed.b] {
            weir_testing::run(host.command("ethtool").args(["-K", "eth0", "tx", "off", "tso", "off", "gso", "off"]));
        }
        // The word "inbound" in the expression would do, but libpcap passes no frames with it until the kernel
        // filters.
        let capture = Capture::start(&chain.bed.b, "eth0", &["-vvv", "-Q", "in", "ip"]);
        assert!(ping(&chain.bed.a, "10.9.0.77", 5), "{kind}");
        send_tcp_and_udp(&chain.bed);
        let seen = capture.stop();
        assert!(
            seen.contains("tos 0xb8, ttl 63") && seen.contains("Flags [S]") && seen.contains("UDP"),
            "{kind}: {seen}"
        );
        assert!(
            !seen.contains("incorrect") && !seen.contains("bad cksum") && !seen.contains("wrong"),
            "{kind}: {seen}"
        );
        chain.stop();
    }
}

fn mac_of(bed: &Bed) -> String {
    weir_testing::run(bed.b.command("cat").args(["/sys/class/net/eth0/address"])).trim().to_owned()
}

/// Opens a TCP connection and sends UDP datagrams to the rewritten address.
fn send_tcp_and_udp(bed: &Bed) {
    let server = TestProcess::start(bed.b.command("iperf3").args(["-s", "-1"]).stdout(Stdio::null()));
    let listening = || weir_testing::run(bed.b.command("ss").args(["-ltn"])).contains(":5201");
    assert!(weir_testing::wait_until(Duration::from_secs(5), listening), "iperf3 does not listen");
    weir_testing::run(bed.a.command("iperf3").args(["-c", "10.9.0.77", "-u", "-b", "1M", "-l", "500", "-n", "20K"]));
    server.stop();
}

/// A running tcpdump, whose output is kept.
struct Capture {
    process: TestProcess,
    /// The file is removed with the capture, even if the test fails.
    file: tempfile::NamedTempFile,
}

impl Capture {
    fn start(namespace: &weir_testing::Namespace, interface: &str, filter: &[&str]) -> Capture {
        let file = tempfile::NamedTempFile::new().expect("a file for the capture");
        let output = file.reopen().expect("a handle for tcpdump");
        let errors = output.try_clone().expect("a second handle");
        let mut command = namespace.command("tcpdump");
        command.args(["-n", "-l", "-c", "400", "-i", interface]).args(filter).stdout(output).stderr(errors);
        let capture = Capture { process: TestProcess::start(&mut command), file };
        let listening = || capture.text().contains("listening on");
        assert!(weir_testing::wait_until(Duration::from_secs(5), listening), "tcpdump: {}", capture.text());
        capture
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.file.path()).unwrap_or_default()
    }

    fn stop(self) -> String {
        // tcpdump prints lines only when the kernel passes it the block that contains them.
        let mut before = String::new();
        weir_testing::wait_until(Duration::from_secs(3), || {
            let settled = !self.text().is_empty() && self.text() == before;
            before = self.text();
            std::thread::park_timeout(Duration::from_millis(300));
            settled
        });
        self.process.signal(weir_testing::Signal::INT);
        let text = self.text();
        self.process.stop();
        text
    }
}
