#!/usr/bin/env python3
"""Measures how exactly a switch keeps to the rate of a meter if twice the rate is offered.

    bench/meter.py [--rounds 1] [--seconds 10] [--weir PATH] [--switches ovs,weir-af_packet] [--only kbps,pktps,tcp]

The network is A - S - B in three network namespaces. The meter drops above its rate and has a burst of a tenth of a
second. After three seconds the burst is used up. Then B's interface counts the received frames for --seconds. Both
switches count frames from the destination address on, without frame check sequence, as the interface does. Prints and
records the error of the rate in percent, and for TCP the goodput in percent of the rate.

kbps    UDP in frames of 1514 and 200 bytes at 1, 10 and 100 Mbit/s
pktps   UDP in frames of 200 bytes at 100, 1000 and 10000 packets/s
tcp     one iperf3 stream through 10 and 100 Mbit/s, without offloads and with them: 64 KiB
        super-frames, with which TCP through Open vSwitch fails
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

import veth
from veth import ROOT, SWITCHES, Bed, run, stop, wait_for

# Paced sender: each millisecond it sends all datagrams that are due, so it catches up after a late wake-up.
SENDER = """
import socket, sys, time
rate, length, seconds = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect(("10.99.0.2", 9))
data, start, sent = bytes(length), time.monotonic(), 0
while (now := time.monotonic() - start) < seconds:
    while sent < now * rate:
        try: out.send(data)
        except OSError: pass
        sent += 1
    time.sleep(0.001)
"""
# Reads the clock and the counters together, inside B's namespace. Prints the differences: time in s, packets, bytes.
COUNTER = """
import sys, time
def read(): return [time.monotonic()] + [int(open(f"/sys/class/net/e0/statistics/rx_{what}").read()) for what in ("packets", "bytes")]
time.sleep(3); before = read(); time.sleep(float(sys.argv[1])); after = read()
print(*(new - old for old, new in zip(before, after)))
"""
HEADERS = 42


def set_meter(bed, switch, unit, rate, what):
    meter = f"meter=1,{unit},burst,bands=type=drop,rate={rate},burst_size={max(rate // 10, 1)}"
    flow = f"priority=40000,{what},in_port=1,actions=meter:1,output:2"
    if switch == "ovs":
        target = f"unix:{bed.folder}/br0.mgmt"
        run(f"ovs-ofctl -O OpenFlow13 add-meter {target} {meter}")
        run(f"ovs-ofctl -O OpenFlow13 add-flow {target} {flow}")
    else:
        run(f"{veth.WEIR} ctl --socket {bed.folder}/weir.sock add-meter {meter}")
        run(f"{veth.WEIR} ctl --socket {bed.folder}/weir.sock add-flow {flow}")


def bench(switch):
    bed = Bed()
    bed.__enter__()
    SWITCHES[switch](bed)
    wait_for(lambda: " 0% packet loss" in bed.inside(bed.a, "ping -c 1 -W 1 10.99.0.2", check=False), switch)
    return bed


def udp(switch, unit, rate, frame, seconds):
    """Returns the received rate of UDP, in kbit/s or packets/s."""
    bed = bench(switch)
    try:
        # Offloads off, because Open vSwitch's ports do not handle checksums that the sender leaves to the device.
        bed.plain()
        set_meter(bed, switch, unit, rate, "udp")
        packets = 2 * (rate if unit == "pktps" else rate * 1000 / 8 / frame)
        command = ["ip", "netns", "exec", bed.a, sys.executable, "-c", SENDER, str(packets), str(frame - HEADERS), str(seconds + 5)]
        sender = subprocess.Popen(command)
        bed.started.append(sender)
        done = subprocess.run(["ip", "netns", "exec", bed.b, sys.executable, "-c", COUNTER, str(seconds)], capture_output=True, text=True, check=True)
        span, count, octets = (float(number) for number in done.stdout.split())
        return (count if unit == "pktps" else octets * 8 / 1000) / span
    finally:
        bed.__exit__()


def tcp(switch, rate, offloads, seconds):
    """Returns the goodput of TCP in kbit/s, or None if the connection fails."""
    bed = bench(switch)
    try:
        if not offloads:
            bed.plain()
        set_meter(bed, switch, "kbps", rate, "tcp")
        server = bed.start(bed.b, "iperf3 -s -1 -p 5999")
        wait_for(lambda: ":5999" in bed.inside(bed.b, "ss -ltn"), "iperf3")
        text = bed.inside(bed.a, f"timeout {seconds + 20} iperf3 -J --connect-timeout 3000 -c 10.99.0.2 -p 5999 -O 3 -t {seconds}", check=False)
        stop(server)
        received = json.loads(text or "{}").get("end", {}).get("sum_received")
        return received["bits_per_second"] / 1000 if received else None
    finally:
        bed.__exit__()


def cases(wanted):
    if "kbps" in wanted:
        for rate in (1000, 10_000, 100_000):
            for frame in (1514, 200):
                yield f"{rate} kbit/s, {frame} bytes", rate, lambda switch, seconds, rate=rate, frame=frame: udp(switch, "kbps", rate, frame, seconds)
    if "pktps" in wanted:
        for rate in (100, 1000, 10_000):
            yield f"{rate} packets/s", rate, lambda switch, seconds, rate=rate: udp(switch, "pktps", rate, 200, seconds)
    if "tcp" in wanted:
        for rate in (10_000, 100_000):
            for offloads in (False, True):
                name = f"tcp {rate} kbit/s, offloads {'on' if offloads else 'off'}"
                yield name, rate, lambda switch, seconds, rate=rate, offloads=offloads: tcp(switch, rate, offloads, seconds)


def shown(name, rate, values):
    if None in values:
        return "fails"
    if name.startswith("tcp"):
        return f"{statistics.median(values) / rate * 100:.1f} %"
    return f"{(statistics.median(values) / rate - 1) * 100:+.2f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--switches", default="ovs,weir-af_packet")
    parser.add_argument("--only", default="kbps,pktps,tcp")
    parser.add_argument("--weir", help="a weir that is built already; otherwise the release build, made first")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    if options.weir:
        veth.WEIR = pathlib.Path(options.weir).resolve()
    else:
        run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
    switches, results, loads = options.switches.split(","), {}, []
    print(f"{'':32}" + "".join(f"{switch:>18}" for switch in switches))
    for name, rate, measure in cases(options.only.split(",")):
        found = {switch: [measure(switch, options.seconds) for _ in range(options.rounds)] for switch in switches}
        loads.append(os.getloadavg()[0])
        results[name] = {"rate": rate, "measured": found}
        print(f"{name:32}" + "".join(f"{shown(name, rate, found[switch]):>18}" for switch in switches), flush=True)
    if not options.no_record:
        veth.save_record("meter", {"seconds": options.seconds, "load_average": loads, "units": "kbit/s or packets/s", "results": results})


if __name__ == "__main__":
    main()
