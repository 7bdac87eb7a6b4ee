#!/usr/bin/env python3
"""Measures the rate of each queue of a port and compares it with the queue's setting.

    bench/queues.py [--rounds 3] [--cases min,rest,max,priority] [--rates 10,100,300] [--seconds 6]

The network is A - weir - B on veth pairs; weir's port to B is a link with queues. Each case sends one UDP stream of
1500-byte frames at the full rate of the link into each of two queues. At B, the frames that arrive in each full second
are counted, except for the first and the last second. Prints the medians over the rounds and the expected shares, both
in percent of the link's rate, and the largest deviation. Writes a record to bench/records. Needs root and iperf3.
"""
import argparse
import json
import re
import statistics
import sys
import tempfile

import veth
from veth import ROOT, WEIR, Bed, run, wait_for

# By case: the settings of queues 1 and 2, and the expected share of each, in percent of the link's rate.
CASES = {
    "min": (("min=60", "min=40"), (60, 40)),
    "rest": (("min=60", ""), (80, 20)),
    "max": (("max=20", ""), (20, 80)),
    "priority": (("priority=1:max=70", "min=10"), (70, 30)),
}
PAYLOAD, FRAME = 1458, 1500
PORTS = (5001, 5002)


def settings(text, mbit):
    """Returns the settings of a queue with rates in place of percentages."""
    rate = lambda found: f"{found[1]}={int(found[2]) * mbit * 10}kbit/s"
    return re.sub(r"(min|max)=(\d+)", rate, text)


def start(bed, case, mbit):
    queues = [f"queue={number}:{settings(text, mbit)}".rstrip(":") for number, text in enumerate(CASES[case][0], 1)]
    socket = bed.folder / "weir.sock"
    port = ",".join([f"2=af_packet:s1,rate={mbit}Mbit/s", *queues])
    process = bed.start(bed.s, f"{WEIR} switch --port 1=af_packet:s0 --port {port} --control-socket {socket}", stdout=veth.subprocess.PIPE)
    if not process.stdout.readline():
        sys.exit("bench: weir switch did not start")
    flows = ["priority=1,in_port=1,actions=output:2", "priority=1,in_port=2,actions=output:1"]
    flows += [f"priority=2,in_port=1,udp,tp_dst={port},actions=set_queue:{queue},output:2" for queue, port in enumerate(PORTS, 1)]
    for flow in flows:
        run(f"{WEIR} ctl --socket {socket} add-flow {flow}")


def received(report, mbit):
    """Returns the received rate in percent of the link's rate, from iperf3's report of the server."""
    intervals = [part["sum"] for part in json.loads(report)["intervals"]][1:-1]
    frames = sum(part["bytes"] for part in intervals) / PAYLOAD
    return frames * FRAME * 8 / sum(part["seconds"] for part in intervals) / mbit / 1e4


def measure(case, mbit, seconds):
    with Bed() as bed:
        start(bed, case, mbit)
        wait_for(lambda: " 0% packet loss" in bed.inside(bed.a, "ping -c 1 -W 1 10.99.0.2", check=False), "the switch")
        reports = [tempfile.TemporaryFile("w+") for _ in PORTS]
        servers = [bed.start(bed.b, f"iperf3 -J -s -1 -i 1 -p {port}", stdout=report) for port, report in zip(PORTS, reports)]
        wait_for(lambda: all(f":{port}" in bed.inside(bed.b, "ss -ltn") for port in PORTS), "iperf3")
        # The sender paces the datagrams. A queue stays full if its arrival rate exceeds its share.
        stream = f"-u -b {mbit}M -l {PAYLOAD} -t {seconds} --connect-timeout 3000 -c 10.99.0.2"
        clients = [bed.start(bed.a, f"iperf3 {stream} -p {port}") for port in PORTS]
        for process in clients + servers:
            process.wait(seconds + 20)
        texts = []
        for report in reports:
            report.seek(0)
            texts.append(report.read())
        return [received(text, mbit) for text in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--rates", default="10,100,300", help="of the link, in Mbit/s")
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
    results = []
    for mbit in map(int, options.rates.split(",")):
        for case in options.cases.split(","):
            rounds = [measure(case, mbit, options.seconds) for _ in range(options.rounds)]
            due = CASES[case][1]
            medians = [statistics.median(values) for values in zip(*rounds)]
            worst = max((abs(value - wanted) for values in rounds for value, wanted in zip(values, due)))
            results.append({"rate_mbit": mbit, "case": case, "queues": CASES[case][0], "due_percent": due, "percent": rounds})
            got = " ".join(f"{value:6.2f} of {wanted:3}" for value, wanted in zip(medians, due))
            print(f"{mbit:4} Mbit/s  {case:9} {got}   at most {worst:.2f} percent of the rate off")
    if not options.no_record:
        veth.save_record("queues", {"results": results})


if __name__ == "__main__":
    main()
