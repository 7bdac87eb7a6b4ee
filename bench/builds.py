#!/usr/bin/env python3
"""Compares two builds of weir: whether a change has made the packet path slower.

    bench/builds.py BEFORE [--after AFTER] [--rows port,masks-1M,...] [--live rtt,pps] [--pairs 7] [--rules DIRECTORY]

BEFORE and AFTER are weir binaries; AFTER is target/release/weir, which is built first, if it is not given. Rows are
those of bench/ovs_dpdk.py, as millions of packets per second of processor time; measures are those of bench/veth.py,
with AF_PACKET and AF_XDP ports. The builds run in turn, and each pair begins with the other one. A figure is the median
of the pairs' ratios AFTER to BEFORE, above 1 if AFTER is better. It needs what the two scripts need, without Open
vSwitch: root, two cores, ping, iperf3.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

import ovs_dpdk
import veth

ROWS = "port,wildcard-1k,mac-1k,udp-1k,udp-100k,masks-1k,masks-1M,pipeline,attack"
LIVE = "rtt,pps,tcp,tcp-plain"
PORTS = ("af_packet", "af_xdp")


def in_turn(pairs, measure, builds):
    """Measures both builds in each pair, in alternating order. Returns the values of each."""
    found = {name: [] for name in builds}
    for number in range(pairs):
        for name in list(builds) if number % 2 == 0 else reversed(builds):
            found[name].append(measure(builds[name]))
    return found


def datapath(row, seconds):
    """Returns the function that measures a row with a build."""
    def measure(build):
        ovs_dpdk.WEIR = build
        return ovs_dpdk.weir(row, seconds)["mpps"]
    return measure


def live(kind, wanted):
    """Returns the function that measures a build with ports of one kind on veth pairs."""
    def measure(build):
        veth.WEIR = build
        return veth.measure(f"weir-{kind}", wanted)
    return measure


def judge(name, before, after, more_is_better=True):
    """Prints a line, and returns it for the record."""
    ratios = [(new / old if more_is_better else old / new) for old, new in zip(before, after) if old and new]
    ratio = statistics.median(ratios) if ratios else None
    told = f"{ratio:8.3f} {min(ratios):8.3f}-{max(ratios):.3f}" if ratios else "   fails"
    middle = [statistics.median([value for value in values if value is not None] or [0]) for values in (before, after)]
    print(f"{name:22} {middle[0]:10.3f} {middle[1]:10.3f} {told}", flush=True)
    return {"before": before, "after": after, "ratios": ratios, "median": ratio}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="the build to compare with")
    parser.add_argument("--after", type=pathlib.Path, help="the build to judge [target/release/weir, built first]")
    parser.add_argument("--rows", default=ROWS, help=f"rows of bench/ovs_dpdk.py, or none [{ROWS}]")
    parser.add_argument("--live", default=LIVE, help=f"measures of bench/veth.py, or none [{LIVE}]")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of each row [7]")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of each live measure [5]")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of each sample of a row [0.5]")
    parser.add_argument("--rules", type=pathlib.Path, help="directory of ClassBench rule sets")
    parser.add_argument("--routes", type=pathlib.Path, help="prefixes, one in each line, for the row lpm")
    parser.add_argument("--commits", default=",", help="commits of the two builds, for the record: BEFORE,AFTER")
    parser.add_argument("--record", default="builds", help="the record's name [builds]")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    options.quick = options.pcap = False
    if not options.after:
        veth.run("cargo build --quiet --release --locked -p weir-cli", cwd=veth.ROOT)
    builds = {"before": options.before.resolve(), "after": (options.after or veth.WEIR).resolve()}
    for build in builds.values():
        if not build.is_file():
            sys.exit(f"bench/builds.py: there is no {build}")
    versions = {name: subprocess.run([build, "--version"], capture_output=True, text=True).stdout.strip()
                for name, build in builds.items()}
    print(f"{'':22} {'before':>10} {'after':>10} {'ratio':>8} {'from-to':>14}")
    rows, measures = {}, {}
    if options.rows != "none":
        with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
            unpacker = Unpacker(pathlib.Path(folder))
            for name, arguments, _, _ in ovs_dpdk.rows_of(options, unpacker):
                found = in_turn(options.pairs, datapath(arguments, options.seconds), builds)
                rows[name] = judge(name, found["before"], found["after"])
    if options.live != "none":
        veth.run("cargo build --quiet --release --locked -p weir-port --example blast", cwd=veth.ROOT)
        for kind in PORTS:
            found = in_turn(options.rounds, live(kind, options.live.split(",")), builds)
            for metric in [metric for metric in found["before"][0] if metric in ("rtt", "rtt-p99", "tcp", "pps", "tcp-plain")]:
                values = [[sample[metric] for sample in found[name]] for name in ("before", "after")]
                measures[f"{kind} {metric}"] = judge(f"{kind} {metric}", *values, veth.METRICS[metric][1])
    if not options.no_record:
        commits = dict(zip(builds, options.commits.split(",")))
        veth.save_record(options.record, {"versions": versions, "commits": commits, "pairs": options.pairs, "rounds": options.rounds,
                                          "units": "ratios above 1: the later build is better; rows in millions of "
                                                   "packets per second of processor time, measures as in veth.py",
                                          "rows": rows, "live": measures})


class Unpacker:
    """Unpacks rule sets into a folder; see ovs_dpdk.Tools, which also builds OVS's generator."""

    def __init__(self, folder):
        self.folder = folder

    unpacked = ovs_dpdk.Tools.unpacked


if __name__ == "__main__":
    main()
