#!/usr/bin/env python3
"""Compares switches on veth pairs: A - S - B in three network namespaces.

    bench/veth.py [--rounds 4] [--switches bridge,ovs-af_packet,ovs-af_xdp,weir-af_packet,weir-af_xdp,xdp-redirect]
                  [--measures rtt,tcp,pps,idle,tcp-plain]

Measures each switch once per round, in turn, so that disturbances of the machine affect all switches alike. Prints the
medians with minimum and maximum, and the medians of the rounds' ratios to the peers: Open vSwitch's user-space datapath
(Debian's openvswitch-switch, datapath_type=netdev; also over AF_XDP if it was built with it) and the Linux bridge.
xdp-redirect is not a switch but the upper bound of the kernel. Writes a record to bench/records. Needs root, two cores,
iperf3, ping, ethtool, taskset, ovs-*. Hosts and senders run on core 0, user-space switches on core 1. A round takes a
minute and a half.

rtt        ping, 1000 requests 1 ms apart: median and 99th percentile in microseconds (lower is better), and the
           processor time of the switch meanwhile, in percent of a core. rtt-10 and rtt-100, only on request, send 10
           and 100 requests per second.
tcp        iperf3, one stream, 2 s, offloads as the kernel sets them: Gbit/s received
pps        60-byte UDP frames (64 on a wire): thousands per second that arrive at B, with the better of two senders,
           because each sender slows down some switches. One sends from inside the kernel (live_frames.py); it offers
           far more than any switch forwards, on the core that the other end's receiving needs. The other is a packet
           socket. The record has the offered rate of the first.
idle       processor time of the switch's process without traffic, 3 s: percent of one core (no figure for the bridge)
tcp-plain  as tcp, with checksum and segmentation offloads off at every end
"""
import argparse
import contextlib
import datetime
import json
import math
import os
import pathlib
import platform
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = ROOT / "target/release/weir"
SENDER = ROOT / "bench/live_frames.py"
BLAST = ROOT / "target/release/examples/blast"
# Metrics: unit, and True if more is better.
METRICS = {"rtt": ("us", False), "rtt-p99": ("us", False), "rtt-cpu": ("%", False), "tcp": ("Gbit/s", True), "pps": ("kpps", True),
           "pps-kernel": ("kpps", True), "pps-socket": ("kpps", True),
           "pps-offered": ("kpps", True), "idle": ("%", False), "tcp-plain": ("Gbit/s", True)}
METRICS |= {name.replace("rtt", f"rtt-{rate}"): METRICS[name] for rate in (10, 100) for name in ("rtt", "rtt-p99", "rtt-cpu")}
DEFAULT_MEASURES = "rtt,tcp,pps,idle,tcp-plain"
PEERS = ("ovs-af_xdp", "ovs-af_packet", "bridge")
A_MAC, B_MAC = "06:00:00:00:00:0a", "06:00:00:00:00:0b"
# A destination behind B: B receives these frames and drops them at once, so that its network stack is not measured.
C_MAC = "06:00:00:00:00:0c"
HOST_CORE, SWITCH_CORE = "taskset -c 0", "taskset -c 1"


def run(command, check=True, **more):
    done = subprocess.run(command.split(), capture_output=True, text=True, **more)
    if check and done.returncode:
        sys.exit(f"bench: {command}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


# Commit at the start, because a new commit during a long measurement is not what is measured.
COMMIT = run("git rev-parse --short HEAD", check=False, cwd=ROOT).strip()


class Bed:
    """Test bed of the namespaces A, S and B. S has the interfaces s0 (to A) and s1 (to B) with one queue each."""

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
        """Turns checksum, segmentation and receive offloads off at every interface."""
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
    for port, macs in (("s0", [A_MAC]), ("s1", [B_MAC, C_MAC])):
        run(f"ip -n {bed.s} link set {port} master br0")
        for mac in macs:
            run(f"bridge -n {bed.s} fdb add {mac} dev {port} master static")
    run(f"ip -n {bed.s} link set br0 up")
    return None


def ovs(kind):
    """Returns the function that starts a private Open vSwitch with its own database, sockets and daemons."""
    def start(bed):
        folder = bed.folder
        env = dict(os.environ, OVS_RUNDIR=str(folder), OVS_LOGDIR=str(folder), OVS_DBDIR=str(folder))
        run(f"ovsdb-tool create {folder}/conf.db /usr/share/openvswitch/vswitch.ovsschema", env=env)
        database = f"unix:{folder}/db.sock"
        bed.start(bed.s, f"ovsdb-server --remote=punix:{folder}/db.sock --unixctl={folder}/db.ctl {folder}/conf.db", env=env)
        wait_for(lambda: (folder / "db.sock").exists(), "ovsdb-server")
        run(f"ovs-vsctl --db={database} --no-wait init", env=env)
        run(f"ovs-vsctl --db={database} --no-wait set Open_vSwitch . other_config:pmd-cpu-mask=0x2", env=env)
        daemon = bed.start(bed.s, f"{SWITCH_CORE} ovs-vswitchd {database} --unixctl={folder}/vs.ctl", env=env)
        add = f"ovs-vsctl --db={database} --timeout=20 add-br br0 -- set bridge br0 datapath_type=netdev fail_mode=secure"
        more = " type=afxdp options:xdp-mode=native options:n_rxq=1" if kind == "afxdp" else ""
        for number, port in enumerate(("s0", "s1"), 1):
            add += f" -- add-port br0 {port} -- set interface {port} ofport_request={number}{more}"
        run(add, env=env)
        if kind == "afxdp" and "afxdp" not in run(f"ovs-vsctl --db={database} get Open_vSwitch . iface_types", env=env):
            raise NotBuilt("this Open vSwitch is built without AF_XDP")
        for there, back in ((1, 2), (2, 1)):
            run(f"ovs-ofctl add-flow unix:{folder}/br0.mgmt in_port={there},actions=output:{back}", env=env)
        return daemon
    return start


class NotBuilt(Exception):
    """Raised for a peer that the machine's packages do not support."""


def weir(kind, more=""):
    def start(bed):
        socket = bed.folder / "weir.sock"
        ports = f"--port 1={kind}:s0 --port 2={kind}:s1"
        process = bed.start(bed.s, f"{SWITCH_CORE} {WEIR} switch {ports} --control-socket {socket} {more}", stdout=subprocess.PIPE)
        if not process.stdout.readline():
            sys.exit(f"bench: weir switch with {kind} did not start")
        for there, back in ((1, 2), (2, 1)):
            run(f"{WEIR} ctl --socket {socket} add-flow in_port={there},actions=output:{back}")
        return process
    return start


def xdp_redirect(bed):
    """Redirects frames by XDP without a switch: the upper bound of the kernel. The receiving ends need NAPI."""
    bed.inside(bed.a, "ethtool -K e0 gro on")
    bed.inside(bed.b, "ethtool -K e0 gro on")
    process = bed.start(bed.s, f"{sys.executable} {SENDER} redirect s0 s1", stdout=subprocess.PIPE)
    if not process.stdout.readline():
        sys.exit("bench: frames cannot be redirected by XDP")
    return None


SWITCHES = {"bridge": bridge, "ovs-af_packet": ovs("system"), "ovs-af_xdp": ovs("afxdp"), "weir-af_packet": weir("af_packet"),
            "weir-af_xdp": weir("af_xdp"), "xdp-redirect": xdp_redirect}
# Measures that a switch is limited to: XDP loses partial checksums, so TCP does not work.
ONLY = {"xdp-redirect": ("rtt", "pps")}
# Measured only on request: the polling time of earlier versions (30 us), and polling without end.
ON_DEMAND = {f"weir-{kind}-{name}": weir(kind, f"--spin {spin}")
             for kind in ("af_packet", "af_xdp") for name, spin in (("30us", "30us"), ("busy", "1h"))}


def wait_for(ready, what, seconds=10):
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            sys.exit(f"bench: {what} did not get ready in {seconds} s")
        time.sleep(0.05)


def processor_seconds(daemon):
    """Returns the processor time of all threads of a process so far, in seconds."""
    total = 0
    for thread in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir() if daemon else ():
        with contextlib.suppress(OSError):
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


class Usage:
    """Context that measures the processor time of a switch's process, in percent of a core."""

    def __init__(self, daemon):
        self.daemon = daemon

    def __enter__(self):
        self.before, self.start = processor_seconds(self.daemon), time.monotonic()
        return self

    def __exit__(self, *_):
        self.percent = (processor_seconds(self.daemon) - self.before) / (time.monotonic() - self.start) * 100


def rtt(bed, daemon, what="rtt"):
    rate = int(what.partition("-")[2] or 1000)
    with Usage(daemon) as usage:
        text = bed.inside(bed.a, f"{HOST_CORE} ping -c {min(rate, 1000) if rate >= 1000 else rate * 3} -i {1 / rate} 10.99.0.2")
    times = sorted(float(found) * 1000 for found in re.findall(r"time=([\d.]+)", text))
    return {what: statistics.median(times), f"{what}-p99": times[int(len(times) * 0.99)], f"{what}-cpu": usage.percent}


def tcp(bed, _daemon, what="tcp"):
    server = bed.start(bed.b, f"{HOST_CORE} iperf3 -s -1 -p 5999")
    wait_for(lambda: ":5999" in bed.inside(bed.b, "ss -ltn"), "iperf3")
    text = bed.inside(bed.a, f"{HOST_CORE} timeout 20 iperf3 -J --connect-timeout 2000 -c 10.99.0.2 -p 5999 -t 2", check=False)
    stop(server)
    received = json.loads(text or "{}").get("end", {}).get("sum_received")
    # TCP between hosts with offloads does not connect through Open vSwitch, whose ports lose partial checksums.
    return {what: received["bits_per_second"] / 1e9 if received else None}


def tcp_plain(bed, daemon):
    bed.plain()
    return tcp(bed, daemon, "tcp-plain")


def pps(bed, _daemon):
    def received():
        return int(bed.inside(bed.b, "cat /sys/class/net/e0/statistics/rx_packets")), time.monotonic()
    # The sender needs NAPI at the other end of its link; a veth has NAPI with an XDP program or with GRO.
    bed.inside(bed.s, "ethtool -K s0 gro on")
    sender = bed.start(bed.a, f"{HOST_CORE} {sys.executable} {SENDER} e0 {A_MAC} {C_MAC} 3", stdout=subprocess.PIPE, text=True)
    # After a second the sender's calibration, a tenth of its run, is over.
    time.sleep(1)
    before, start = received()
    time.sleep(2)
    after, end = received()
    sent = json.loads(sender.communicate(timeout=20)[0])
    before_socket, start_socket = received()
    bed.inside(bed.a, f"{HOST_CORE} {BLAST} af_packet:e0 {A_MAC} {C_MAC} 2")
    after_socket, end_socket = received()
    rates = {"pps-kernel": (after - before) / (end - start) / 1000,
             "pps-socket": (after_socket - before_socket) / (end_socket - start_socket) / 1000}
    return {"pps": max(rates.values()), **rates, "pps-offered": sent["offered"] / sent["seconds"] / 1000}


def idle(_bed, daemon):
    with Usage(daemon) as usage:
        time.sleep(3)
    return {"idle": usage.percent}


# In order of execution: measures that change the bed come last.
MEASURES = {"rtt": rtt, "rtt-10": lambda bed, daemon: rtt(bed, daemon, "rtt-10"),
            "rtt-100": lambda bed, daemon: rtt(bed, daemon, "rtt-100"), "tcp": tcp, "idle": idle, "pps": pps, "tcp-plain": tcp_plain}


def measure(switch, wanted):
    """Runs the requested measures on one switch in a new bed. Returns the values by metric."""
    with Bed() as bed:
        daemon = (SWITCHES | ON_DEMAND)[switch](bed)
        wait_for(lambda: " 0% packet loss" in bed.inside(bed.a, "ping -c 1 -W 1 10.99.0.2", check=False), switch)
        found = {}
        for name, function in MEASURES.items():
            if name in wanted and name in ONLY.get(switch, MEASURES):
                found |= function(bed, daemon)
        return found


def spread(values):
    if not values:
        return "-"
    if None in values:
        return "fails"
    return f"{statistics.median(values):.3g} ({min(values):.3g}-{max(values):.3g})"


def ratio(ours, theirs, more_is_better):
    """Returns the median of the rounds' ratios, above 1 if ours is better, or None if a measurement failed."""
    if None in ours or None in theirs:
        return None
    pairs = [(own, peer) if more_is_better else (peer, own) for own, peer in zip(ours, theirs)]
    return round(statistics.median(first / second if second else math.inf for first, second in pairs), 3)


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"cpu": model[1] if model else platform.machine(), "cores": os.cpu_count(), "kernel": platform.release(),
            "ovs": run("ovs-vswitchd --version", check=False).partition("\n")[0], "iperf3": run("iperf3 --version", check=False).partition("\n")[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--switches", default=",".join(SWITCHES))
    parser.add_argument("--measures", default=DEFAULT_MEASURES)
    parser.add_argument("--record", default="veth", help="the record's name")
    parser.add_argument("--no-record", action="store_true", help="print only")
    parser.add_argument("--shared-core", action="store_true", help="hosts on the switch's core, too")
    parser.add_argument("--weir", type=pathlib.Path, help="the weir to be measured, instead of target/release/weir, which is built first")
    options = parser.parse_args()
    switches, wanted = options.switches.split(","), options.measures.split(",")
    for name, known in [(name, SWITCHES | ON_DEMAND) for name in switches] + [(name, MEASURES) for name in wanted]:
        if name not in known:
            sys.exit(f"bench: found `{name}`, expected some of {', '.join(known)}")
    global HOST_CORE, WEIR
    if options.shared_core:
        HOST_CORE = SWITCH_CORE
    if options.weir:
        WEIR = options.weir.resolve()
    else:
        run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
    run("cargo build --quiet --release --locked -p weir-port --example blast", cwd=ROOT)
    results, load = {}, os.getloadavg()[0]
    for number in range(options.rounds):
        for switch in list(switches):
            try:
                found = measure(switch, wanted)
            except NotBuilt as reason:
                print(f"{switch} is left out: {reason}", file=sys.stderr)
                switches.remove(switch)
                continue
            for metric, value in found.items():
                results.setdefault(metric, {}).setdefault(switch, []).append(value)
            told = ", ".join(f"{metric} {spread([value])}" for metric, value in found.items())
            print(f"round {number + 1} {switch:15} {told}", file=sys.stderr)
    results = {metric: results[metric] for metric in METRICS if metric in results}
    ratios = {metric: ratios_of(metric, found) for metric, found in results.items()}
    show(switches, results, ratios)
    if not options.no_record:
        write_record(options, results, ratios, load)


def ratios_of(metric, found):
    """Returns the ratio of each switch to each peer, for a metric that has ratios."""
    more = METRICS[metric][1]
    return {f"to {peer}": {switch: ratio(samples, found[peer], more) for switch, samples in found.items() if switch != peer}
            for peer in PEERS if peer in found and metric not in ("idle", "pps-kernel", "pps-socket", "pps-offered") and not metric.endswith("-cpu")}


def show(switches, results, ratios):
    print(f"\n{'':18} " + "".join(f"{switch:>24}" for switch in switches))
    for metric, found in results.items():
        print(f"{metric:18} " + "".join(f"{spread(found.get(switch, [])):>24}" for switch in switches), METRICS[metric][0])
        for peer, of in ratios[metric].items():
            better = (f"{value:.2f}x" if (value := of.get(switch)) else "-" for switch in switches)
            print(f"  {peer:16} " + "".join(f"{text:>24}" for text in better))


def write_record(options, results, ratios, load):
    medians = {metric: {switch: None if None in samples else statistics.median(samples) for switch, samples in found.items()}
               for metric, found in results.items()}
    save_record(options.record, {"load_before": load, "rounds": options.rounds, "units": {metric: METRICS[metric][0] for metric in results},
                                 "medians": medians, "ratios": ratios, "samples": results})


def save_record(name, results):
    """Writes a record with results, command, commit and machine to bench/records."""
    command = shlex.join([str(pathlib.Path(sys.argv[0]).resolve().relative_to(ROOT)), *sys.argv[1:]])
    record = {"command": command, "commit": COMMIT, "machine": machine(), **results}
    cpu = re.sub(r"[^a-z0-9]+", "-", record["machine"]["cpu"].lower()).strip("-")
    folder = ROOT / "bench/records" / f"{datetime.date.today()}-{cpu}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_text(json.dumps(record, indent=1) + "\n")
    print(f"record: {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
