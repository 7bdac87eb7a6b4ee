#!/usr/bin/env python3
"""Switches on a veth pair, side by side: A - S - B in three network namespaces.

    bench/veth.py [--rounds 5] [--switches bridge,ovs,weir-af_packet,weir-af_xdp,weir-spin] [--measures rtt,tcp,tcp-plain,pps,idle]

Measures each switch once per round, in turn, so that a noisy machine troubles all alike; prints medians with minimum and
maximum, and the median of the rounds' ratios to Open vSwitch's user-space datapath (Debian's openvswitch-switch,
datapath_type=netdev) and to the Linux bridge. Writes a record to bench/records. Needs root, iperf3, ping, ethtool, ovs-*.

rtt        ping, 1000 requests 1 ms apart: median in microseconds (lower is better)
tcp        iperf3, one stream, 3 s, offloads as the kernel sets them: Gbit/s received
tcp-plain  the same with checksum and segmentation offloads off at every end
pps        60-byte UDP frames (64 on a wire) sent as fast as one core can for 3 s: thousands delivered per second
idle       processor time of the switch's process with no traffic, 10 s: percent of one core (nothing to say for the bridge)
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = ROOT / "target/release/weir"
BLAST = ROOT / "target/release/examples/blast"
MEASURES = {"rtt": ("us", False), "tcp": ("Gbit/s", True), "tcp-plain": ("Gbit/s", True), "pps": ("kpps", True), "idle": ("%", False)}
A_MAC, B_MAC = "06:00:00:00:00:0a", "06:00:00:00:00:0b"


def run(command, check=True, **more):
    done = subprocess.run(command.split(), capture_output=True, text=True, **more)
    if check and done.returncode:
        sys.exit(f"bench: {command}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Bed:
    """Namespaces A, S, B; S holds s0 (to A) and s1 (to B), one queue each."""

    def __init__(self):
        self.a, self.s, self.b = (f"wb{os.getpid()}{end}" for end in "asb")
        self.started, self.folder = [], pathlib.Path(tempfile.mkdtemp(prefix="weir-bench-"))

    def __enter__(self):
        for name in (self.a, self.s, self.b):
            run(f"ip netns add {name}")
            run(f"ip -n {name} link set lo up")
            self.inside(name, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        queues = "numtxqueues 1 numrxqueues 1"
        for host, end, mac, address in ((self.a, "s0", A_MAC, "10.99.0.1"), (self.b, "s1", B_MAC, "10.99.0.2")):
            run(f"ip -n {host} link add e0 {queues} type veth peer name {end} netns {self.s} {queues}")
            run(f"ip -n {host} link set e0 address {mac} up")
            run(f"ip -n {self.s} link set {end} up")
            run(f"ip -n {host} addr add {address}/24 dev e0")
        run(f"ip -n {self.a} neigh replace 10.99.0.2 lladdr {B_MAC} dev e0")
        run(f"ip -n {self.b} neigh replace 10.99.0.1 lladdr {A_MAC} dev e0")
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            stop(process)
        for name in (self.a, self.s, self.b):
            run(f"ip netns del {name}", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def inside(self, name, command, **more):
        return run(f"ip netns exec {name} {command}", **more)

    def start(self, name, command, **more):
        more.setdefault("stdout", subprocess.DEVNULL)
        process = subprocess.Popen(["ip", "netns", "exec", name, *command.split()], stderr=subprocess.DEVNULL, **more)
        self.started.append(process)
        return process

    def plain(self):
        """Turns offloads off at every end."""
        for name, device in ((self.a, "e0"), (self.b, "e0"), (self.s, "s0"), (self.s, "s1")):
            self.inside(name, f"ethtool -K {device} tx off rx off tso off gso off gro off")


def stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def bridge(bed):
    run(f"ip -n {bed.s} link add br0 type bridge")
    for port, mac in (("s0", A_MAC), ("s1", B_MAC)):
        run(f"ip -n {bed.s} link set {port} master br0")
        run(f"bridge -n {bed.s} fdb add {mac} dev {port} master static")
    run(f"ip -n {bed.s} link set br0 up")
    return None


def ovs(bed):
    """A private Open vSwitch: its own database, sockets and daemons."""
    folder = bed.folder
    env = dict(os.environ, OVS_RUNDIR=str(folder), OVS_LOGDIR=str(folder), OVS_DBDIR=str(folder))
    run(f"ovsdb-tool create {folder}/conf.db /usr/share/openvswitch/vswitch.ovsschema", env=env)
    database = f"unix:{folder}/db.sock"
    bed.start(bed.s, f"ovsdb-server --remote=punix:{folder}/db.sock --unixctl={folder}/db.ctl {folder}/conf.db", env=env)
    wait_for(lambda: (folder / "db.sock").exists(), "ovsdb-server")
    run(f"ovs-vsctl --db={database} --no-wait init", env=env)
    daemon = bed.start(bed.s, f"ovs-vswitchd {database} --unixctl={folder}/vs.ctl", env=env)
    run(f"ovs-vsctl --db={database} --timeout=20 add-br br0 -- set bridge br0 datapath_type=netdev fail_mode=secure"
        " -- add-port br0 s0 -- set interface s0 ofport_request=1 -- add-port br0 s1 -- set interface s1 ofport_request=2",
        env=env)
    for there, back in ((1, 2), (2, 1)):
        run(f"ovs-ofctl add-flow unix:{folder}/br0.mgmt in_port={there},actions=output:{back}", env=env)
    return daemon


def weir(kind, more=""):
    def start(bed):
        socket = bed.folder / "weir.sock"
        ports = f"--port 1={kind}:s0 --port 2={kind}:s1"
        process = bed.start(bed.s, f"{WEIR} switch {ports} --control-socket {socket} {more}", stdout=subprocess.PIPE)
        if not process.stdout.readline():
            sys.exit(f"bench: weir switch with {kind} did not start")
        for there, back in ((1, 2), (2, 1)):
            run(f"{WEIR} ctl --socket {socket} add-flow in_port={there},actions=output:{back}")
        return process
    return start


SWITCHES = {"bridge": bridge, "ovs": ovs, "weir-af_packet": weir("af_packet"), "weir-af_xdp": weir("af_xdp")}
# Measured only when asked for: polling on for longer than the time between two pings.
ON_DEMAND = {"weir-spin": weir("af_packet", "--spin 2ms")}


def wait_for(ready, what, seconds=10):
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            sys.exit(f"bench: {what} did not get ready in {seconds} s")
        time.sleep(0.05)


def rtt(bed):
    lines = bed.inside(bed.a, "ping -c 1000 -i 0.001 10.99.0.2").splitlines()
    times = [float(found[1]) * 1000 for line in lines if (found := re.search(r"time=([\d.]+)", line))]
    return statistics.median(times)


def tcp(bed):
    server = bed.start(bed.b, "iperf3 -s -1 -p 5999")
    wait_for(lambda: ":5999" in bed.inside(bed.b, "ss -ltn"), "iperf3")
    text = bed.inside(bed.a, "timeout 20 iperf3 -J --connect-timeout 3000 -c 10.99.0.2 -p 5999 -t 3", check=False)
    stop(server)
    received = json.loads(text or "{}").get("end", {}).get("sum_received")
    # Open vSwitch's AF_PACKET ports lose partial checksums: TCP between hosts with offloads does not connect.
    return received["bits_per_second"] / 1e9 if received else None


def pps(bed):
    def received():
        return int(bed.inside(bed.b, "cat /sys/class/net/e0/statistics/rx_packets"))
    before, seconds = received(), 3
    bed.inside(bed.a, f"taskset -c 0 {BLAST} af_packet:e0 {A_MAC} {B_MAC} {seconds}")
    return (received() - before) / seconds / 1000


def idle(bed, daemon):
    if daemon is None:
        return 0.0

    def ticks():
        return sum(int(field) for field in pathlib.Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()[11:13])
    before, seconds = ticks(), 10
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds * 100


def measure(switch, what):
    with Bed() as bed:
        if what == "tcp-plain":
            bed.plain()
        daemon = (SWITCHES | ON_DEMAND)[switch](bed)
        wait_for(lambda: " 0% packet loss" in bed.inside(bed.a, "ping -c 1 -W 1 10.99.0.2", check=False), switch)
        if what == "idle":
            return idle(bed, daemon)
        return {"rtt": rtt, "tcp": tcp, "tcp-plain": tcp, "pps": pps}[what](bed)


def spread(values):
    if None in values:
        return "fails"
    return f"{statistics.median(values):.3g} ({min(values):.3g}-{max(values):.3g})"


def ratio(ours, theirs, more_is_better):
    """The median of the rounds' ratios, above 1 when ours is better; nothing where one of them fails."""
    if None in ours or None in theirs:
        return float("nan")
    pairs = [(own, peer) if more_is_better else (peer, own) for own, peer in zip(ours, theirs)]
    return statistics.median(first / second if second else float("nan") for first, second in pairs)


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"cpu": model[1] if model else platform.machine(), "cores": os.cpu_count(), "kernel": platform.release(),
            "ovs": run("ovs-vswitchd --version", check=False).partition("\n")[0], "iperf3": run("iperf3 --version", check=False).partition("\n")[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--switches", default=",".join(SWITCHES))
    parser.add_argument("--measures", default=",".join(MEASURES))
    parser.add_argument("--record", default="veth", help="the record's name")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    switches, measures = options.switches.split(","), options.measures.split(",")
    run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
    run("cargo build --quiet --release --locked -p weir-port --example blast", cwd=ROOT)
    results = {what: {switch: [] for switch in switches} for what in measures}
    for number in range(options.rounds):
        for what in measures:
            for switch in switches:
                results[what][switch].append(measure(switch, what))
                print(f"round {number + 1} {what:9} {switch:15} {spread(results[what][switch][-1:])}", file=sys.stderr)
    print(f"\n{'':10} " + "".join(f"{switch:>28}" for switch in switches))
    for what in measures:
        print(f"{what:10} " + "".join(f"{spread(results[what][switch]):>28}" for switch in switches), MEASURES[what][0])
        for peer in ("ovs", "bridge"):
            if peer in switches:
                better = (ratio(results[what][switch], results[what][peer], MEASURES[what][1]) for switch in switches)
                better = ("-" if math.isnan(value) else f"{value:.2f}x" for value in better)
                print(f"  to {peer:6} " + "".join(f"{text:>28}" for text in better))
    if not options.no_record:
        write_record(options, results)


def write_record(options, results):
    commit = run("git rev-parse --short HEAD", cwd=ROOT).strip()
    record = {"command": "bench/veth.py " + " ".join(sys.argv[1:]), "commit": commit, "machine": machine(), "rounds": options.rounds,
              "units": {what: MEASURES[what][0] for what in results}, "results": results}
    cpu = re.sub(r"[^a-z0-9]+", "-", record["machine"]["cpu"].lower()).strip("-")
    folder = ROOT / "bench/records" / f"{datetime.date.today()}-{cpu}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{options.record}.json"
    file.write_text(json.dumps(record, indent=1) + "\n")
    print(f"record: {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
