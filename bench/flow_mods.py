#!/usr/bin/env python3
"""Compares how fast weir and Debian's Open vSwitch process flow-mods over TCP.

    bench/flow_mods.py [--rounds 5] [--count 100000] [--matching udp,mac,mpls] [--ways plain,bundle,atomic]

Starts weir (release build, two null ports) and a private Open vSwitch (user-space datapath, no ports), both without
traffic. In every round one client (`weir bench flow-mods`) sends the same flow-mods to one switch after the other. The
measured time runs from the first byte to the barrier reply, or to the reply to the bundle's commit. Prints the medians,
and the median of the rounds' ratios. Writes a record to bench/records. Open vSwitch treats every bundle as atomic, so
`bundle` and `atomic` mean the same for it.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import tempfile

from veth import ROOT, WEIR, run, save_record, stop, wait_for


def resident(process):
    """Returns the resident memory of a process in bytes."""
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]) * 1024


def spawn(started, command, **more):
    process = subprocess.Popen(command.split(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    started.append(process)
    return process


def weir(folder, started):
    control = folder / "weir.sock"
    process = spawn(started, f"{WEIR} switch --port 1=null:a --port 2=null:b --listen ptcp:16999:127.0.0.1 --control-socket {control}")
    wait_for(control.exists, "weir switch")
    return process, "tcp:127.0.0.1:16999"


def ovs(folder, started):
    env = dict(os.environ, OVS_RUNDIR=str(folder), OVS_LOGDIR=str(folder), OVS_DBDIR=str(folder))
    database = f"unix:{folder}/db.sock"
    run(f"ovsdb-tool create {folder}/conf.db /usr/share/openvswitch/vswitch.ovsschema", env=env)
    spawn(started, f"ovsdb-server --remote=punix:{folder}/db.sock --unixctl={folder}/db.ctl {folder}/conf.db", env=env)
    wait_for((folder / "db.sock").exists, "ovsdb-server")
    run(f"ovs-vsctl --db={database} --no-wait init", env=env)
    process = spawn(started, f"ovs-vswitchd {database} --unixctl={folder}/vs.ctl", env=env)
    bridge = "-- set bridge br0 datapath_type=netdev fail_mode=secure protocols=OpenFlow13,OpenFlow14"
    run(f"ovs-vsctl --db={database} --timeout=20 add-br br0 {bridge} -- set-controller br0 ptcp:16998:127.0.0.1", env=env)
    wait_for(lambda: listens(16998), "ovs-vswitchd")
    return process, "tcp:127.0.0.1:16998"


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def measure(target, matching, way, count):
    text = run(f"{WEIR} bench flow-mods {target} --matching {matching} --way {way} --count {count} --rounds 1 --json")
    return json.loads(text)["per_second"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--matching", default="udp")
    parser.add_argument("--ways", default="plain,bundle,atomic")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
    started, folder = [], pathlib.Path(tempfile.mkdtemp(prefix="weir-bench-"))
    try:
        switches = {"weir": weir(folder, started), "ovs": ovs(folder, started)}
        results = []
        for matching in options.matching.split(","):
            for way in options.ways.split(","):
                samples = {name: [] for name in switches}
                for _ in range(options.rounds):
                    for name, (_, target) in switches.items():
                        samples[name].append(measure(target, matching, way, options.count))
                ratio = statistics.median(ours / theirs for ours, theirs in zip(samples["weir"], samples["ovs"]))
                medians = {name: round(statistics.median(values)) for name, values in samples.items()}
                memory = {name: resident(process) for name, (process, _) in switches.items()}
                results.append({"matching": matching, "way": way, "count": options.count, "per_second": samples,
                                "median": medians, "ratio": ratio, "resident_bytes_afterwards": memory})
                print(f"{matching:5} {way:7} weir {medians['weir']:>9,}/s   ovs {medians['ovs']:>9,}/s   {ratio:.1f}x", flush=True)
    finally:
        for process in reversed(started):
            stop(process)
        shutil.rmtree(folder, ignore_errors=True)
    if not options.no_record:
        save_record("flow_mods", {"load": os.getloadavg(), "results": results})


if __name__ == "__main__":
    main()
