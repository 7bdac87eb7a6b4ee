//! Tests Mininet (Debian's) with weir as its switches: `mn --custom`, the Python API, profiles.
//!
//! After a failure Mininet ends processes by name and removes logs in /tmp. So each test runs it in separate
//! namespaces of processes, networks and mounts.
use crate::bed::weir;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use weir_testing::output_within;

/// Longest duration of a run of Mininet: ten times its duration on two idle processors.
const PATIENCE: Duration = Duration::from_secs(150);

/// Runs shell lines in separate namespaces, where `$MININET` is the folder with the switch class and `$WEIR` the
/// command. Returns their output, or `None` if they cannot run here.
fn in_a_world_of_its_own(lines: &str) -> Option<String> {
    let programs = ["setpriv", "unshare", "mount", "mn", "ip", "ifconfig", "ping", "ovs-ofctl"];
    if !weir_testing::root() || !weir_testing::programs(&programs) {
        return None;
    }
    let world = "set -e; mount -t tmpfs tmpfs /mnt; mkdir /mnt/mininet /mnt/build; mount --bind \"$MININET\" /mnt/mininet; \
                 mount --bind \"$BUILD\" /mnt/build; mount -t tmpfs tmpfs /tmp; cd /tmp; ip link set lo up; \
                 export MININET=/mnt/mininet WEIR=/mnt/build/weir";
    // Mininet waits without limit for a switch, a shell or a command that does not answer. Before the time is up, the
    // state of each process is printed.
    let watch = format!(
        "(sleep {}; echo still running; ps -eo pid,ppid,stat,etimes,wchan:20,args --forest; ss -tanp; \
         for log in /tmp/weir-*/log; do echo $log; cat $log; done) >&2 &",
        PATIENCE.as_secs() - 5
    );
    // Everything inside ends with the test, also if the test is killed.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare"]);
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
    command.arg(format!("{world}\n{watch}\n{lines}"));
    command.env("MININET", weir_testing::workspace().join("mininet"));
    command.env("BUILD", Path::new(weir()).parent().expect("the command lies in a folder"));
    let output = output_within(PATIENCE, &mut command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}", output.status);
    Some(text)
}

#[test]
fn mn_takes_our_switch_without_a_controller() {
    let run = "mn --custom $MININET/weir_mininet.py --switch weir,failMode=standalone --controller none --topo linear,2 --test pingall; \
               echo left: $(ls -d /tmp/weir-* 2>/dev/null) $(pgrep -x weir)";
    let Some(text) = in_a_world_of_its_own(run) else { return };
    assert!(text.contains("Results: 0% dropped (2/2 received)"), "{text}");
    assert!(text.lines().any(|line| line == "left:"), "processes or files stay behind: {text}");
}

#[test]
fn mn_takes_our_switch_under_a_controller_elsewhere() {
    // If Mininet probes the controller with telnet, it misinterprets byte 1 of a hello and waits without limit.
    let run = "mkdir bin; printf '#!/bin/sh\nprintf \"Connected\\\\001\"\n' >bin/telnet; chmod +x bin/telnet; \
               export PATH=/tmp/bin:$PATH; \
               $WEIR controller --listen tcp:127.0.0.1:6653 >/dev/null & \
               while ! ss -ltn | grep -q :6653; do sleep 0.1; done; \
               printf 'pingall\\ndpctl dump-flows\\ndpctl dump-tables\\npy s1.connected()\\nlink s1 s2 down\\npingall\\nlink s1 s2 up\\nexit\\n' | \
               mn --custom $MININET/weir_mininet.py --switch weir,profile=native --controller remote,ip=127.0.0.1 --topo linear,2 --wait";
    let Some(text) = in_a_world_of_its_own(run) else { return };
    let results = ["0% dropped (2/2 received)", "100% dropped (0/2 received)"];
    assert!(results.iter().all(|result| text.contains(&format!("Results: {result}"))), "{text}");
    assert!(text.contains("actions=output:"), "weir ctl answers dump-flows: {text}");
    assert!(text.contains("OFPST_TABLE reply"), "ovs-ofctl answers dump-tables: {text}");
    assert!(text.lines().any(|line| line.ends_with("True")), "connected: {text}");
}

#[test]
fn the_python_api_takes_our_switch_and_says_what_is_wrong() {
    let script = "\
import sys, os
sys.path.insert(0, os.environ['MININET'])
from mininet.net import Mininet
from mininet.link import TCLink
from weir_mininet import WeirRemote, WeirSwitch
net = Mininet(controller=None)
h1, h2 = net.addHost('h1'), net.addHost('h2')
s1 = net.addSwitch('s1', cls=WeirSwitch, failMode='standalone', dpid='2a')
net.addLink(h1, s1)
net.addLink(s1, h2, cls=TCLink, bw=10)
net.start()
print('lost', net.pingAll())
def queued():
    return [int(line.split()[3]) for line in s1.cmd('tc -s qdisc show dev s1-eth2').splitlines() if 'Sent' in line][0]
before = queued()
h1.cmd('ping -i 0.05 -c 20', h2.IP())
print('through tc', queued() - before >= 20)
print('dpid', '0x000000000000002a' in s1.dpctl('show'), 'detached', 's1-eth2' in s1.detach('s1-eth2') + s1.dpctl('show'))
print('attached', s1.attach('s1-eth2') is not None, 's1-eth2' in s1.dpctl('show'), 'lost', net.pingAll())
net.stop()
print('listening', WeirRemote('c0', ip='127.0.0.1', port=1).isListening('127.0.0.1', 1))
wrong = WeirSwitch('s2', profile='no-such-profile')
try:
    wrong.start([])
except Exception as problem:
    print('refused:', problem)
print('left', [name for name in os.listdir('/tmp') if name.startswith('weir-')])
";
    let Some(text) = in_a_world_of_its_own(&format!("cat > api.py <<'END'\n{script}END\n/usr/bin/python3 api.py"))
    else {
        return;
    };
    assert!(text.contains("lost 0.0\n"), "{text}");
    assert!(text.contains("through tc True\n"), "{text}");
    assert!(text.contains("dpid True detached False\n"), "{text}");
    assert!(text.contains("attached True True lost 0.0\n"), "{text}");
    assert!(text.contains("Unable to contact the remote controller at 127.0.0.1:1: ["), "{text}");
    assert!(text.contains("listening False\n"), "{text}");
    assert!(
        text.contains("refused: s2: weir switch ended with status 2: weir: ") && text.contains("no-such-profile"),
        "{text}"
    );
    assert!(text.lines().any(|line| line == "left []"), "{text}");
}
