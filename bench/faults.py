#!/usr/bin/env python3
"""Injects faults into running switches and labs at random times, and checks for leftovers and that a restart works.

    bench/faults.py [--rounds 100] [--seed 1] [--cases switch-af_packet,switch-af_xdp,run,emulate,device,disk,socket]

switch-KIND  SIGKILL to a switch on two interfaces, up to a second after its start, with and without traffic. A switch
             of the same name must start and forward, and leave nothing when it is stopped.
run          SIGKILL to `weir run --netns`, up to three seconds after its start. `weir cleanup` must leave no namespace,
             interface, file or process. In a quarter of the rounds the scenario is run again.
emulate      as run, with `weir emulate`
device       The interface of a port is deleted under traffic and created again. The port must recover and forward.
disk         Results and plots are written to a full file system. The exit status must not be 0, and older files must
             stay unchanged.
socket       A second switch with the control socket, or the listening port, of another switch is refused with an error
             that names it. The first switch continues.

The cases take turns over the rounds; the seed and the round give the random numbers of a round. `--only SEED:ROUND`
repeats a single round. The exit status is 1 if a check failed. A record is written to bench/records. Needs root, ping,
ethtool.
"""
import argparse
import collections
import contextlib
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import veth
from veth import ROOT, Bed, run

FORWARD = ["--entry", "in_port=1,actions=output:2", "--entry", "in_port=2,actions=output:1"]
# Maximum wait in seconds: long enough for a debug build on a busy machine to start.
PATIENCE = 20


class Failed(Exception):
    """A failed check; the text is what was expected."""


def check(holds, what):
    if not holds:
        raise Failed(what)


def wait(holds, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < end, f"{what} within {seconds} s")
        time.sleep(0.05)


def weir(*arguments, inside=None):
    """Runs a weir command to its end, in the namespace `inside` if given. Returns the completed process."""
    prefix = ["ip", "netns", "exec", inside] if inside else []
    return subprocess.run([*prefix, str(veth.WEIR), *arguments], capture_output=True, text=True, timeout=120)


class Switch:
    """A switch on the interfaces s0 and s1 of a bed, or on one null port if `kind` is None."""

    def __init__(self, bed, kind, name="faults", more=()):
        self.bed, self.socket = bed, bed.folder / f"{name}.sock"
        ports = [f"--port={number}={kind}:{device}" for number, device in ((1, "s0"), (2, "s1"))] if kind else ["--port=1=null:"]
        command = ["ip", "netns", "exec", bed.s, str(veth.WEIR), "switch", "--name", name, "--control-socket", str(self.socket)]
        self.process = subprocess.Popen([*command, *ports, *FORWARD, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        bed.started.append(self.process)

    def wait_ready(self):
        line = self.process.stdout.readline()
        check("is ready" in line, f"a switch that gets ready, not: {line}{self.rest() if not line else ''}")

    def rest(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.communicate(timeout=PATIENCE)[0]
        return ""

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failed(f"a switch that ends within {PATIENCE} s of SIGTERM") from None
        check(self.process.returncode == 0, f"status 0 after SIGTERM, not {self.process.returncode}")
        check(not self.socket.exists(), "no control socket after the end")


def forwards(bed, seconds=PATIENCE):
    ping = ["ip", "netns", "exec", bed.a, "ping", "-c", "1", "-W", "1", "-q", "10.99.0.2"]
    wait(lambda: subprocess.run(ping, capture_output=True).returncode == 0, "a ping through the switch", seconds)


def devices(name):
    return sorted(link["ifname"] for link in json.loads(run(f"ip -n {name} -json link")))


def flood(bed):
    """Starts pings every 2 ms, which run until the bed ends or the process is stopped. Returns the process."""
    return bed.start(bed.a, "ping -q -i 0.002 10.99.0.2")


def switch(draw, kind):
    with Bed() as bed:
        before = devices(bed.s)
        if draw.random() < 0.5:
            flood(bed)
        killed = Switch(bed, kind)
        time.sleep(draw.uniform(0, 1))
        killed.kill()
        check(devices(bed.s) == before, f"interfaces {before}, not {devices(bed.s)}")
        again = Switch(bed, kind)
        again.wait_ready()
        forwards(bed)
        again.stop()
        check(devices(bed.s) == before, f"interfaces {before} after the end, not {devices(bed.s)}")


def lab_leftovers(pid):
    """Returns the namespaces, interfaces and files that are left of the lab of process `pid`."""
    found = [f"namespace {line}" for line in run("ip netns list").split() if line.startswith(f"weir-{pid}-")]
    found += [f"interface {name}" for name in (link["ifname"] for link in json.loads(run("ip -json link")))
              if name.startswith(f"weir{pid}p")]
    found += [str(path) for path in pathlib.Path("/run/weir").glob(f"**/*{pid}*")]
    return found


def children(pid):
    """Returns the descendants of process `pid`, each as its id and start time, which tell it from a reused id."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == pid:
                own = int(status.parent.name)
                found += [(own, fields[19]), *children(own)]
    return found


def alive(process):
    pid, start = process
    with contextlib.suppress(OSError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return fields[19] == start and fields[0] != "Z"
    return False


def lab(draw, command, scenario, again):
    process = subprocess.Popen([str(veth.WEIR), *command, str(scenario)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        time.sleep(draw.uniform(0, 3))
        below = children(process.pid)
    finally:
        process.kill()
        process.communicate()
    done = weir("cleanup", "--json")
    check(done.returncode == 0, f"cleanup's status 0, not {done.returncode}: {done.stderr}")
    check(not lab_leftovers(process.pid), f"nothing left after cleanup, not {lab_leftovers(process.pid)}")
    wait(lambda: not any(map(alive, below)), f"none of the lab's {len(below)} programs running", 5)
    if draw.random() < 0.25:
        done = subprocess.run([str(veth.WEIR), *again, str(scenario)], input="exit\n", capture_output=True, text=True, timeout=180)
        check(done.returncode == 0, f"status 0 of the next {again[0]}, not {done.returncode}: {done.stderr[-400:]}")
        done = weir("cleanup")
        check("nothing" in done.stdout, f"nothing left behind by the next one, not: {done.stdout}")


def device(draw, kind):
    with Bed() as bed:
        flood(bed)
        running = Switch(bed, kind)
        running.wait_ready()
        forwards(bed)
        time.sleep(draw.uniform(0, 0.3))
        run(f"ip -n {bed.s} link del s1")
        time.sleep(draw.uniform(0, 0.5))
        run(f"ip -n {bed.b} link add e0 numtxqueues 1 numrxqueues 1 type veth peer name s1 netns {bed.s} numtxqueues 1 numrxqueues 1")
        run(f"ip -n {bed.b} link set e0 address {veth.B_MAC} up")
        run(f"ip -n {bed.s} link set s1 up")
        run(f"ip -n {bed.b} addr add 10.99.0.2/24 dev e0")
        run(f"ip -n {bed.b} neigh replace 10.99.0.1 lladdr {veth.A_MAC} dev e0")
        forwards(bed)
        running.stop()


def disk(_draw):
    quickstart = ROOT / "examples/quickstart.toml"
    with tempfile.TemporaryDirectory(prefix="weir-disk-") as folder:
        run(f"mount -t tmpfs -o size=64k tmpfs {folder}")
        try:
            old = pathlib.Path(folder, "plot.svg")
            old.write_text("the plot of before")
            with contextlib.suppress(OSError), open(f"{folder}/filler", "wb") as filler:
                while True:
                    filler.write(bytes(4096))
                    filler.flush()
            for command in (["simulate", "--json", str(quickstart)], ["predict", "--json", str(quickstart)], ["predict", str(quickstart)]):
                with open(f"{folder}/result", "w") as result:
                    done = subprocess.run([str(veth.WEIR), *command], stdout=result, stderr=subprocess.PIPE, text=True, timeout=120)
                check(done.returncode != 0 and done.stderr.strip(), f"{command[:2]} to a full disk fails aloud, not {done.returncode}")
            sweep = ["predict", str(quickstart), "--sweep", "link[0].rate=1Gbit/s..2Gbit/s:500Mbit/s", "--plot", str(old)]
            done = weir(*sweep)
            check(done.returncode != 0, "a plot that does not fit fails")
            check(old.read_text() == "the plot of before", "the old plot stays as it was")
            check(sorted(path.name for path in pathlib.Path(folder).iterdir()) == ["filler", "plot.svg", "result"],
                  f"no piece of a file left: {sorted(path.name for path in pathlib.Path(folder).iterdir())}")
        finally:
            run(f"umount {folder}")


def taken(_draw):
    with Bed() as bed:
        first = Switch(bed, None, more=["--listen", "ptcp:6699"])
        first.wait_ready()
        for name, what in (("faults", str(first.socket)), ("other", "6699")):
            second = Switch(bed, None, name, more=["--listen", "ptcp:6699"])
            said = second.rest()
            check(second.process.returncode not in (0, None), f"a second switch at {what} is refused, not: {said}")
            check(what in said, f"the refusal names {what}: {said}")
            check(name == "faults" or not second.socket.exists(), "the refused switch left its control socket")
        done = weir("ctl", "--socket", str(first.socket), "show", inside=bed.s)
        check(done.returncode == 0, f"the first switch answers, not: {done.stderr}")
        first.stop()


CASES = {
    "switch-af_packet": lambda draw: switch(draw, "af_packet"),
    "switch-af_xdp": lambda draw: switch(draw, "af_xdp"),
    "run": lambda draw: lab(draw, ["run", "--netns"], ROOT / "examples/quickstart.toml", ["run", "--netns", "--duration", "100ms"]),
    "emulate": lambda draw: lab(draw, ["emulate"], ROOT / "examples/lab.toml", ["emulate"]),
    "device": lambda draw: device(draw, draw.choice(("af_packet", "af_xdp"))),
    "disk": disk,
    "socket": taken,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--only", help="SEED:ROUND, this round alone, without a record")
    parser.add_argument("--record", default="faults", help="the record's name")
    parser.add_argument("--weir", type=pathlib.Path, help="the weir that is broken, instead of target/release/weir, which is built first")
    options = parser.parse_args()
    names = options.cases.split(",")
    if unknown := set(names) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    seed, rounds = options.seed, range(options.rounds)
    if options.only:
        seed, number = map(int, options.only.split(":"))
        rounds = [number]
    if options.weir:
        veth.WEIR = options.weir.resolve()
    else:
        run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
    tried, failures, start = collections.Counter(), [], time.monotonic()
    for number in rounds:
        draw = random.Random(f"{seed}:{number}")
        name = names[number % len(names)]
        tried[name] += 1
        try:
            CASES[name](draw)
        except Failed as found:
            again = f"bench/faults.py --cases {options.cases} --only {seed}:{number}"
            failures.append({"case": name, "round": number, "expected": str(found), "again": again})
            print(f"{name}: expected {found}\n    again: {again}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{number + 1} rounds, {len(failures)} failed ", end="", file=sys.stderr)
    print(", ".join(f"{name} {count}" for name, count in tried.items()) + f": {len(failures)} failed")
    if not options.only:
        result = {"rounds": dict(tried), "failures": failures, "seconds": round(time.monotonic() - start)}
        veth.save_record(options.record, result)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
