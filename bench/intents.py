#!/usr/bin/env python3
"""Measures how soon a network carries intents out, in batches, confirmed by switches and by packets.

    bench/intents.py [--rounds 5] [--sizes 1,100,1000,5000] [--weir PATH] [--no-record]

Starts `weir controller --app forwarding` and a lab of 20 switches with 16 hosts (`weir emulate examples/fat-tree.toml`;
release build), lets all hosts ping each other, so that they are known, and sends arrays of point-to-point intents over
the controller's Unix socket: POST /api/v1/intents?wait=. Each intent is about one UDP port between two hosts; pairs of
hosts take turns. In every round each size is measured once (less than 20 intents several times), and everything is
removed in between.

Prints the median, least and greatest time from the request's first byte until its answer says that all intents are
installed: all switches have confirmed their entries, and a packet has passed every way. Beside it are the time that the
removal took until all switches had confirmed it, the times asked for, and those published for ONOS 1.0 (Berde et al.,
"ONOS: Towards an Open, Distributed SDN OS", 2014; installed on null devices, which confirm at once, without packets).
An intent that is not installed ends the measurement with an error. Needs two cores. Writes a record to bench/records.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import veth
from labs import ApiSocket, free_port
from veth import ROOT, WEIR, run, stop, wait_for

SCENARIO = ROOT / "examples/fat-tree.toml"
SWITCHES, LINKS, HOSTS = 20, 32, 16
# Milliseconds by the number of intents: asked for, and published.
TARGETS = {1: 3, 100: 8, 1000: 30, 5000: 150}
ONOS = {1: 15.5, 100: 19.4, 1000: 48, 5000: 365}
WAIT_S = 15
# Intents of a round at least: smaller numbers are measured several times.
SAMPLED = 20


class Interface:
    """The controller's interface, on one connection that stays open."""

    def __init__(self, path):
        self.connection = ApiSocket(str(path))
        self.connection.connect()

    def ask(self, method, path, body=None):
        """Returns the answer's JSON, and the milliseconds from the request to its end."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        start = time.perf_counter()
        self.connection.request(method, f"/api/v1{path}", body, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        took = (time.perf_counter() - start) * 1000
        if answer.status >= 300:
            sys.exit(f"intents: {method} {path} was answered with {answer.status}: {text.decode()[:400]}")
        return (json.loads(text) if text else None), took


class Network:
    """A controller and a lab, which end with the block."""

    def __init__(self, weir):
        self.weir, self.folder = weir, pathlib.Path(tempfile.mkdtemp(prefix="weir-intents-"))
        self.started, self.logs = [], []

    def __enter__(self):
        port = free_port()
        control = self.folder / "intents.controller"
        self.start("controller", f"{self.weir} controller --app forwarding --listen tcp:127.0.0.1:{port} "
                                 f"--control-socket {control}")
        api = control.with_suffix(".api")
        wait_for(api.exists, "the controller")
        scenario = self.folder / SCENARIO.name
        scenario.write_text(SCENARIO.read_text().replace("127.0.0.1:6653", f"127.0.0.1:{port}"))
        lab = self.start("lab", f"{self.weir} emulate {scenario}", stdin=subprocess.PIPE)
        self.interface = Interface(api)
        wait_for(lambda: self.size()[:2] == (SWITCHES, LINKS), "the lab", 60)
        lab.stdin.write(b"pingall\n")
        lab.stdin.flush()
        wait_for(lambda: self.size()[2] == HOSTS, "all hosts", 60)
        # Pings that are still under way would share the processors with the measurement.
        time.sleep(5)
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            stop(process)
        for log in self.logs:
            log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name, command, **more):
        log = (self.folder / f"{name}.log").open("wb")
        self.logs.append(log)
        process = subprocess.Popen(command.split(), stdout=log, stderr=subprocess.STDOUT, **more)
        self.started.append(process)
        return process

    def network(self):
        for process in self.started:
            if process.poll() is not None:
                logs = "".join((self.folder / f"{name}.log").read_text() for name in ("controller", "lab"))
                sys.exit(f"intents: {process.args[1]} ended with {process.returncode}:\n{logs[-2000:]}")
        return self.interface.ask("GET", "/network")[0]

    def size(self):
        network = self.network()
        return tuple(len(network[part]) for part in ("switches", "links", "hosts"))


def intents(hosts, count):
    """Returns point-to-point intents between pairs of hosts in turn, each about a UDP port of its own."""
    pairs = [(one, other) for step in range(1, len(hosts)) for one, other in zip(hosts, hosts[step:] + hosts[:step])]
    return [{"key": f"intent-{number}", "kind": "point-to-point", "from": [pairs[number % len(pairs)][0]],
             "to": [pairs[number % len(pairs)][1]], "traffic": f"udp,tp_dst={1000 + number}"}
            for number in range(count)]


def measure(network, hosts, count):
    """Installs and removes `count` intents. Returns the milliseconds of both, and processor time of the controller."""
    body = json.dumps(intents(hosts, count))
    controller, lab = network.started
    before = [veth.processor_seconds(process) for process in (controller, lab)]
    answers, installed = network.interface.ask("POST", f"/intents?wait={WAIT_S}s", body)
    used = [veth.processor_seconds(process) for process in (controller, lab)]
    wrong = [answer for answer in answers if answer.get("state") != "installed"]
    if wrong or len(answers) != count:
        sys.exit(f"intents: {len(wrong)} of {count} are not installed, such as {wrong[:1]}")
    _, removed = network.interface.ask("DELETE", f"/intents?all=true&wait={WAIT_S}s")
    left = network.network()["intents"]
    if left:
        sys.exit(f"intents: {len(left)} of {count} were not removed, such as {left[:1]}")
    return {"installed_ms": round(installed, 3), "removed_ms": round(removed, 3),
            "controller_cpu_ms": round((used[0] - before[0]) * 1000, 3),
            "lab_cpu_ms": round((used[1] - before[1]) * 1000, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="1,100,1000,5000", help="numbers of intents, separated by commas")
    parser.add_argument("--weir", type=pathlib.Path, help="program to measure, in place of a release build")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.weir is None:
        run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
    samples, load_before = {size: [] for size in sizes}, os.getloadavg()
    with Network(options.weir or WEIR) as network:
        hosts = [host["mac"] for host in network.network()["hosts"]]
        # The first intents of a controller take longer: memory is fetched, programs are read.
        measure(network, hosts, 100)
        for _ in range(options.rounds):
            for size in sizes:
                # A few intents take as long as a few threads need to wake, which differs from time to time.
                for _ in range(max(1, SAMPLED // size)):
                    samples[size].append(measure(network, hosts, size))
                    # Removed entries drain, and probes of links go on.
                    time.sleep(0.1 if size < SAMPLED else 0.5)
    medians = {}
    print(f"{'intents':>8} {'installed ms':>26} {'asked':>7} {'ONOS':>7} {'removed ms':>11} "
          f"{'controller cpu ms':>18} {'lab cpu ms':>11}")
    for size, found in samples.items():
        median = medians[size] = {name: statistics.median(one[name] for one in found) for name in found[0]}
        times = [one["installed_ms"] for one in found]
        spread = f"{median['installed_ms']:.2f} ({min(times):.2f}-{max(times):.2f})"
        print(f"{size:8} {spread:>26} {TARGETS.get(size, '-'):>7} {ONOS.get(size, '-'):>7} {median['removed_ms']:11.2f} "
              f"{median['controller_cpu_ms']:18.2f} {median['lab_cpu_ms']:11.2f}")
    if not options.no_record:
        veth.save_record("intents", {"load_before": load_before, "load": os.getloadavg(), "rounds": options.rounds,
                                     "targets_ms": TARGETS, "onos_ms": ONOS, "medians": medians, "samples": samples})


if __name__ == "__main__":
    main()
