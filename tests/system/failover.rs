//! Tests two controllers of one switch: the master is killed, the slave takes over, and no packet is lost meanwhile.
use crate::bed::{B4, Bed, ping_train, weir};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use weir_testing::{Signal, TestProcess, osken, wait_until};

const PATIENCE: Duration = Duration::from_secs(20);
const CONTROLLERS: [&str; 4] = ["--controller", "tcp:127.0.0.1:6653,aux=2", "--controller", "tcp:127.0.0.1:6654"];

fn ready() -> bool {
    weir_testing::root() && weir_testing::programs(&["ip", "ping"])
}

/// Starts a switch on two hosts' ports with two controllers. Returns it and a function that runs `weir ctl`.
fn switch<'a>(bed: &'a Bed, socket: &'a str) -> (TestProcess, impl Fn(&[&str]) -> String + use<'a>) {
    let ports = ["--port", "1=af_packet:pa", "--port", "2=af_packet:pb", "--control-socket", socket];
    let switch = bed.switch(&[&ports[..], &CONTROLLERS].concat());
    let ctl = move |asked: &[&str]| bed.run(weir(), &[&["ctl", "--socket", socket], asked].concat());
    (switch, ctl)
}

/// Pings B from A every 2 ms while `meanwhile` runs, and until the current ping ends. Returns the requests sent and
/// answered.
fn pings_while(bed: &Bed, meanwhile: impl FnOnce()) -> (u64, u64) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let (mut sent, mut received) = (0, 0);
            // Each ping runs to its end: an interrupted one counts a packet in transit as lost.
            while !is_over.load(Relaxed) {
                let mut ping = bed.a.command("ping");
                let output = ping.args(["-q", "-i", "0.002", "-c", "250", B4]).stdin(Stdio::null()).output();
                let counts = counted(&String::from_utf8_lossy(&output.expect("ping starts").stdout));
                (sent, received) = (sent + counts.0, received + counts.1);
            }
            (sent, received)
        });
        // Raised even after a panic, because the traffic would not end otherwise.
        let over = Raise(&is_over);
        meanwhile();
        drop(over);
        traffic.join().expect("the traffic")
    })
}

/// Raises a flag when dropped.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Parses the numbers (sent, received) of ping's summary.
fn counted(summary: &str) -> (u64, u64) {
    let line = summary.lines().find(|line| line.contains("packets transmitted")).expect("ping's summary");
    let mut numbers = line.split(' ').filter_map(|word| word.parse().ok());
    (numbers.next().expect("sent"), numbers.next().expect("received"))
}

/// Returns the flow entries without counters, times, and the table miss.
fn entries(ctl: &impl Fn(&[&str]) -> String) -> Vec<String> {
    let text = ctl(&["dump-flows"]);
    let mut entries: Vec<String> = text
        .lines()
        .filter(|line| line.contains("priority=100"))
        .map(|line| line.split_once("idle_timeout").expect("an entry of the learning switch").1.to_owned())
        .collect();
    entries.sort();
    entries
}

#[test]
fn a_slave_takes_over_and_loses_no_entry_and_no_packet() {
    if !ready() {
        return;
    }
    let bed = Bed::new();
    let socket = format!("/tmp/weir-failover-{}.sock", std::process::id());
    let first = bed.controller(&["--listen", "tcp:127.0.0.1:6653", "--role", "master"]);
    let second = bed.controller(&["--listen", "tcp:127.0.0.1:6654", "--role", "slave"]);
    let (switch, ctl) = switch(&bed, &socket);
    assert!(bed.reaches(B4, 20), "with the first controller");
    let roles = || {
        let shown = ctl(&["show"]);
        ["master", "slave"].map(|role| shown.lines().find(|line| line.contains(role)).map(str::to_owned))
    };
    assert!(wait_until(PATIENCE, || roles().iter().all(Option::is_some)), "{}", ctl(&["show"]));
    let before = entries(&ctl);
    assert!(before.len() >= 2, "{before:?}");
    let is_master = |shown: String| shown.lines().any(|line| line.contains(":6654") && line.contains("master"));
    let (sent, received) = pings_while(&bed, || {
        first.signal(Signal::KILL);
        drop(first);
        second.signal(Signal::USR1);
        assert!(wait_until(PATIENCE, || is_master(ctl(&["show"]))), "{}", ctl(&["show"]));
        // The new master works: a host with a new address is found.
        bed.b.ip("addr add 10.9.0.77/24 dev eth0");
        assert!(wait_until(PATIENCE, || ping_train(&bed.a, "10.9.0.77", 1)));
    });
    assert_eq!(sent, received, "packets lost while controllers changed");
    let after = entries(&ctl);
    assert!(before.iter().all(|entry| after.contains(entry)), "entries lost:\n{before:#?}\n{after:#?}");
    // The former master comes back as a slave and changes nothing.
    let former = bed.controller(&["--listen", "tcp:127.0.0.1:6653", "--role", "slave"]);
    assert!(wait_until(PATIENCE, || roles()[1].as_ref().is_some_and(|line| line.contains(":6653"))));
    assert!(is_master(ctl(&["show"])));
    for controller in [second, former] {
        controller.stop();
    }
    switch.stop();
}

/// An application for os-ken: requests a role with a generation id, and as master forwards between ports 1 and 2.
const OSKEN_APP: &str = r#"
import os
import sys
from os_ken import cfg, flags
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3


class Failover(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def features(self, ev):
        datapath = ev.msg.datapath
        proto, parser = datapath.ofproto, datapath.ofproto_parser
        role = {'master': proto.OFPCR_ROLE_MASTER, 'slave': proto.OFPCR_ROLE_SLAVE}[os.environ['ROLE']]
        datapath.send_msg(parser.OFPRoleRequest(datapath, role, int(os.environ['GENERATION'])))

    @set_ev_cls(ofp_event.EventOFPRoleReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def role(self, ev):
        datapath = ev.msg.datapath
        proto, parser = datapath.ofproto, datapath.ofproto_parser
        self.say('role %d generation %d' % (ev.msg.role, ev.msg.generation_id))
        for in_port, out_port in ((1, 2), (2, 1)):
            actions = [parser.OFPActionOutput(out_port)]
            instructions = [parser.OFPInstructionActions(proto.OFPIT_APPLY_ACTIONS, actions)]
            match = parser.OFPMatch(in_port=in_port)
            datapath.send_msg(parser.OFPFlowMod(datapath, priority=50, match=match, instructions=instructions))

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def error(self, ev):
        self.say('error %d %d' % (ev.msg.type, ev.msg.code))

    def say(self, line):
        with open(os.environ['SAID'], 'a') as said:
            said.write(line + '\n')


if __name__ == '__main__':
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    cfg.CONF(args=sys.argv[1:], project='os_ken')
    app_manager.AppManager.run_apps(['failover', 'os_ken.controller.ofp_handler'])
"#;

/// Starts an os-ken controller in a role; it writes the messages it receives to the file `said`.
fn osken_controller(bed: &Bed, app: &Path, port: u16, role: &str, generation: u64, said: &Path) -> Option<TestProcess> {
    let python = osken()?;
    let mut command: Command = bed.switches.command(python.to_str()?);
    command.arg(app).args(["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", &port.to_string()]);
    command.env("ROLE", role).env("GENERATION", generation.to_string()).env("SAID", said);
    Some(TestProcess::start(command.stdout(Stdio::null()).stderr(Stdio::null())))
}

#[test]
fn os_ken_controllers_take_over_from_each_other() {
    if !ready() || osken().is_none() {
        return;
    }
    let bed = Bed::new();
    let folder = tempfile::tempdir().expect("a folder");
    let app = folder.path().join("failover.py");
    std::fs::write(&app, OSKEN_APP).expect("writable");
    let said = |name: &str| folder.path().join(name);
    let heard = |name: &str| std::fs::read_to_string(said(name)).unwrap_or_default();
    let socket = format!("/tmp/weir-osken-failover-{}.sock", std::process::id());
    let (switch, ctl) = switch(&bed, &socket);
    let start = |port, role, generation, name| {
        osken_controller(&bed, &app, port, role, generation, &said(name)).expect("os-ken is there")
    };
    let first = start(6653, "master", 5, "first");
    assert!(wait_until(PATIENCE, || bed.reaches(B4, 20)), "{}", heard("first"));
    // A slave may not write: OFPET_BAD_REQUEST (1), OFPBRC_IS_SLAVE (10).
    let slave = start(6654, "slave", 5, "slave");
    assert!(wait_until(PATIENCE, || heard("slave").contains("error 1 10")), "{}", heard("slave"));
    assert!(heard("slave").starts_with("role 3 generation 5"), "{}", heard("slave"));
    drop(slave);
    // An outdated election: OFPET_ROLE_REQUEST_FAILED (11), OFPRRFC_STALE (0).
    let stale = start(6654, "master", 4, "stale");
    assert!(wait_until(PATIENCE, || heard("stale").contains("error 11 0")), "{}", heard("stale"));
    drop(stale);
    let before = ctl(&["dump-flows", "priority=50"]).lines().count();
    let mut second = None;
    let (sent, received) = pings_while(&bed, || {
        first.signal(Signal::KILL);
        drop(first);
        second = Some(start(6654, "master", 6, "second"));
        assert!(wait_until(PATIENCE, || heard("second").contains("role 2 generation 6")), "{}", heard("second"));
    });
    assert_eq!(sent, received, "packets lost while controllers changed");
    assert_eq!(ctl(&["dump-flows"]).lines().count(), before);
    assert!(!heard("second").contains("error"), "{}", heard("second"));
    drop(second);
    switch.stop();
}
