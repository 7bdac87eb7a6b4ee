#!/usr/bin/env python3
"""Runs a switch under load for a long time, and checks that it neither leaks resources nor loses count of frames.

    bench/soak.py [--minutes 30] [--kind af_packet|af_xdp|mixed] [--rate 5000]

A switch forwards pings and UDP (iperf3, one direction) between two namespaces. Meanwhile the script adds and deletes
hundreds of entries (`ovs-ofctl`; each call is a control session of its own), requests statistics, and kills and
restarts a controller that the switch connects to. At the end it checks:

counts     The frames that the hosts' kernels sent equal the frames that the ports received or lost. These equal the sum
           of the frames that the ports sent or lost, the frames dropped by reason, and the frames that controllers did
           not send back (at most the number of packet-ins). The frames that the ports sent equal the frames that the
           hosts' kernels received or dropped. "behind" in the record has the losses of programs behind the kernels:
           echo replies that A's kernel received and ping did not count (they came after its end), and datagrams that
           found iperf3's socket full.
flat       Resident memory, descriptors and threads of the switch do not grow: median of the last quarter of the run
           against that of the second quarter.
answers    Every command was answered.

Each run is a piece of a longer soak, with a record of its own (--record). Needs root, iperf3, ovs-ofctl, ping, ethtool.
The exit status is 1 if a check failed.
"""
import argparse
import json
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

import veth
from veth import ROOT, Bed, run

CONTROLLER, LISTENER = 6653, 6654
# Kinds of the two ports, by the value of --kind.
KINDS = {"af_packet": ("af_packet", "af_packet"), "af_xdp": ("af_xdp", "af_xdp"), "mixed": ("af_packet", "af_xdp")}
# Allowed growth of resident memory in bytes: another order of allocations leaves heap pages half full.
GROWTH = 2 << 20
# Entries for the traffic. Their priority is above that of the entries added and deleted, which match unused addresses.
FORWARD = ["--entry", "priority=1000,in_port=1,actions=output:2", "--entry", "priority=1000,in_port=2,actions=output:1"]


def start_switch(bed, kind):
    command = ["ip", "netns", "exec", bed.s, str(veth.WEIR), "switch", "--name", "soak", "--control-socket", f"{bed.folder}/soak.sock",
               *(f"--port={number}={kind}:s{number - 1}" for number, kind in enumerate(KINDS[kind], 1)), *FORWARD, "--listen", f"ptcp:{LISTENER}",
               "--controller", f"tcp:127.0.0.1:{CONTROLLER}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    bed.started.append(process)
    line = process.stdout.readline()
    if "is ready" not in line:
        sys.exit(f"soak: the switch did not start: {line}")
    return process


def counters(bed, name):
    statistics_ = json.loads(run(f"ip -n {name} -s -json link show e0"))[0]["stats64"]
    return {"tx": statistics_["tx"]["packets"], "rx": statistics_["rx"]["packets"], "rx_dropped": statistics_["rx"]["dropped"]}


def protocols(bed, name):
    """Returns the protocol counters of a host from /proc/net/snmp, such as IcmpInEchoReps."""
    lines = [line.split() for line in bed.inside(name, "cat /proc/net/snmp").splitlines()]
    return {names[0].rstrip(":") + key: int(value) for names, values in zip(lines[::2], lines[1::2])
            for key, value in zip(names[1:], values[1:])}


def behind(bed, before, ping):
    """Returns counts of packets that reached a host's kernel but not its program, and of echo requests sent."""
    a, b = ({key: value - before[name].get(key, 0) for key, value in protocols(bed, name).items()} for name in (bed.a, bed.b))
    received = int(re.search(r"(\d+) received", ping).group(1))
    return {"echo requests": a["IcmpOutEchos"], "echo replies that A's kernel received": a["IcmpInEchoReps"],
            "echo replies that ping received": received, "datagrams that found the socket full": b["UdpRcvbufErrors"]}


def ctl(bed, *arguments):
    return json.loads(bed.inside(bed.s, f"{veth.WEIR} ctl --socket {bed.folder}/soak.sock --json {' '.join(arguments)}"))


def size(pid):
    status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return {"resident": int(status["VmRSS"].split()[0]) << 10, "threads": int(status["Threads"]),
            "descriptors": len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))}


class Churn:
    """Changes entries, statistics requests and controller restarts that run beside the traffic, in turns."""

    def __init__(self, bed):
        self.bed, self.controller = bed, None
        self.done = {"turns": 0, "sessions": 0, "entries": 0, "controllers": 0, "statistics": 0}
        self.file = bed.folder / "entries"
        self.file.write_text("".join(f"priority=10,udp,nw_dst=10.99.7.{low},tp_dst={port},actions=output:1\n"
                                     for low in range(4) for port in range(1, 101)))

    def ofctl(self, command, more=""):
        self.done["sessions"] += 1
        return self.bed.inside(self.bed.s, f"ovs-ofctl -O OpenFlow13 {command} tcp:127.0.0.1:{LISTENER} {more}")

    def turn(self):
        number = self.done["turns"]
        self.done["turns"] += 1
        self.ofctl("--bundle add-flows" if number % 2 else "add-flows", self.file)
        self.done["entries"] += 400
        for command in ("dump-flows", "dump-ports", "dump-tables"):
            self.ofctl(command)
        ctl(self.bed, "dump-flows")
        ctl(self.bed, "counters")
        self.done["statistics"] += 5
        self.ofctl("del-flows", "udp,nw_dst=10.99.7.0/24")
        if number % 10 == 0:
            self.end_controller()
            command = f"{veth.WEIR} controller --listen tcp:127.0.0.1:{CONTROLLER}"
            self.controller = self.bed.start(self.bed.s, command)
            self.done["controllers"] += 1

    def end_controller(self):
        if self.controller:
            self.controller.send_signal(signal.SIGKILL)
            self.controller.wait()
            self.bed.started.remove(self.controller)
            self.controller = None


def traffic(bed, rate, seconds):
    """Starts pings and datagrams for a number of seconds. Returns the two sending processes."""
    bed.start(bed.b, "iperf3 -s -1")
    time.sleep(0.5)
    size_, bits = 200, rate * 200 * 8
    return [bed.start(bed.a, f"ping -q -i 0.01 -w {seconds} 10.99.0.2", stdout=subprocess.PIPE, text=True),
            bed.start(bed.a, f"iperf3 -c 10.99.0.2 -u -l {size_} -b {bits} -t {seconds}")]


def differences(bed, before):
    """Compares the frame counts. Returns a list of the differences, and the counts for the record."""
    ports = {port["number"]: port["counters"] for port in ctl(bed, "dump-ports")}
    show = ctl(bed, "show")
    drops = dict(show["drops"])
    hosts = {name: {key: value - before[name].get(key, 0) for key, value in counters(bed, name).items()} for name in (bed.a, bed.b)}
    a, b, one, two = hosts[bed.a], hosts[bed.b], ports[1], ports[2]
    lost = {f"port {number} {key}": value for number, port in ports.items() for key, value in port.items()
            if key in ("rx_lost", "rx_missed", "tx_full", "tx_lost", "tx_too_long", "rx_errors", "tx_errors") and value}
    pairs = [("A sent", a["tx"], "port 1 received or lost", one["rx_packets"] + one["rx_missed"] + one["rx_lost"]),
             ("B sent", b["tx"], "port 2 received or lost", two["rx_packets"] + two["rx_missed"] + two["rx_lost"]),
             ("port 2 sent", two["tx_packets"], "B received or dropped", b["rx"] + b["rx_dropped"]),
             ("port 1 sent", one["tx_packets"], "A received or dropped", a["rx"] + a["rx_dropped"])]
    wrong = [f"{first} {count}, {second} {other}" for first, count, second, other in pairs if count != other]
    received = sum(port["rx_packets"] for port in (one, two))
    left = sum(port[key] for port in (one, two) for key in ("tx_packets", "tx_full", "tx_lost")) + sum(drops.values())
    controllers = {key: show[key] for key in ("packet_ins", "packet_ins_dropped", "packet_ins_limited")}
    # A killed controller does not send back the packet-ins that it received last.
    if not 0 <= received - left <= sum(controllers.values()):
        wrong.append(f"ports received {received}, ports sent, lost or dropped for a reason {left}, to controllers {controllers}")
    controllers["not sent back"] = received - left
    return wrong, {"frames": a["tx"] + b["tx"], "lost": lost, "drops": drops, "controllers": controllers}


def growth(samples):
    """Compares the medians of the second and the last quarter. Returns the sizes that grew, and all medians."""
    quarter = len(samples) // 4
    early, late = samples[quarter:2 * quarter] or samples, samples[-quarter:] or samples
    found = {key: (statistics.median(sample[key] for sample in early), statistics.median(sample[key] for sample in late)) for key in samples[0]}
    wrong = [f"{key} from {first:.0f} to {last:.0f}" for key, (first, last) in found.items()
             if last - first > (GROWTH if key == "resident" else 0)]
    return wrong, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--kind", default="af_packet", choices=tuple(KINDS))
    parser.add_argument("--rate", type=int, default=5000, help="datagrams a second")
    parser.add_argument("--record", default="soak", help="the record's name")
    parser.add_argument("--weir", type=pathlib.Path, help="the weir that works, instead of target/release/weir, which is built first")
    options = parser.parse_args()
    if options.weir:
        veth.WEIR = options.weir.resolve()
    else:
        run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
    with Bed() as bed:
        before = {name: counters(bed, name) for name in (bed.a, bed.b)}
        switch, churn, samples = start_switch(bed, options.kind), Churn(bed), []
        # Counting starts now: frames that the hosts sent before the switch was ready do not count.
        before = {name: counters(bed, name) | {"rx": before[name]["rx"]} for name in before}
        first, end = ctl(bed, "dump-ports"), time.monotonic() + options.minutes * 60
        if any(port["counters"]["rx_packets"] for port in first):
            sys.exit(f"soak: frames came before the traffic: {first}")
        veth.wait_for(lambda: all(port["link_up"] for port in ctl(bed, "dump-ports")), "links that are up")
        heard = {name: protocols(bed, name) for name in (bed.a, bed.b)}
        senders = traffic(bed, options.rate, int(options.minutes * 60))
        while time.monotonic() < end:
            churn.turn()
            samples.append(size(switch.pid))
            time.sleep(1)
        said = senders[0].communicate(timeout=60)[0]
        senders[1].wait(60)
        churn.end_controller()
        time.sleep(2)
        wrong, counted = differences(bed, before)
        grown, sizes = growth(samples)
        result = {"minutes": options.minutes, "kind": options.kind, "churn": churn.done, **counted,
                  "behind": behind(bed, heard, said), "sizes": sizes, "wrong": wrong + grown,
                  "samples": samples[::max(1, len(samples) // 100)]}
    print(json.dumps({key: value for key, value in result.items() if key != "samples"}, indent=1))
    veth.save_record(options.record, result)
    sys.exit(1 if result["wrong"] else 0)


if __name__ == "__main__":
    main()
