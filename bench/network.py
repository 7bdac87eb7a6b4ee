#!/usr/bin/env python3
"""Measures the controller of a network, `weir controller --app forwarding`, with emulated switches; needs root.

    bench/network.py [--rounds 3] [--cases discovery,silent] [--seed 1] [--weir PATH] [--no-record]

The controller is a process of its own, and the switches and hosts are a lab (`weir emulate`) on the same machine. Each
case is measured in every round, with random choices from the seed and the round.

discovery  100 switches with 200 links, drawn at random: time from the last switch that connects until all links are
           known, by the controller's events; then the controller is killed, and a new one finds them again
port-down  fat-tree of 20 switches, four flows with a packet each millisecond: a link of a flow's way goes down. Time
           from the port's status to the confirmation of all other ways, packets lost by each flow, and packets lost
           when the link returns
silent     the same, but the link loses all packets, and no port says so
protected  the same with protected intents, whose first link goes down
moves      1000 flows leave a switch of the core whose links go down, and come back when the links return: packets lost
           and repeated on the way back
intents    1000 intents, each for a flow of its own, are changed so that they avoid one half of the core instead of the
           other: packets lost and repeated meanwhile
overload   `weir bench controller` offers twice the packet-ins that the controller handles at most, beside a lab of 20
           switches and 40 links: links lost while the lab starts and under load, delay of echo replies, and time to
           find a link that comes up meanwhile

Losses are counted packet by packet. An outage is the number of a flow's lost packets times the time between them.
Writes a record to bench/records, with every sample.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import veth
from labs import Flows, RunningController, RunningLab, fat_tree, free_port, loadavg, random_network
from veth import ROOT, run

CASES = ["discovery", "port-down", "silent", "protected", "moves", "intents", "overload"]
# Time between two packets of a flow, in seconds.
INTERVAL = 0.001
# Trials of a round.
TRIALS = {"port-down": 30, "silent": 20, "protected": 20}
# Time in seconds after a change of a link until the next one.
PAUSE = 0.35
# Flows of the trials, by numbers of hosts: all cross the core.
PAIRS = [(1, 16), (5, 12), (9, 4), (13, 8)]
MOVED, TIMES_MOVED = 1000, 3
# Time between two packets of a flow that is moved, in seconds.
MOVED_INTERVAL = 0.2
# Cores of the controller and of all else, in the case of overload.
CONTROLLER_CORE, OTHER_CORE = ["taskset", "-c", "0"], ["taskset", "-c", "1"]


def share(samples, part):
    """Returns the value that a part of the samples does not exceed; None without samples."""
    ordered = sorted(samples)
    return ordered[max(0, -(-len(ordered) * part // 100) - 1)] if ordered else None


def times_of(events, kind):
    return [event["time_s"] for event in events if event["kind"] == kind]


# Networks with 100 switches.

def discovered(controller, plan, what, seconds=30):
    """Waits until all links are known at once. Returns the milliseconds from the last switch that connected until then."""
    deadline, ups, known, lost = time.monotonic() + seconds, [], set(), 0
    while time.monotonic() < deadline:
        for event in controller.events():
            ends = " ".join(event["text"].split()[:3])
            if event["kind"] == "switch-up":
                ups.append(event["time_s"])
            elif event["kind"] == "link-up":
                known.add(ends)
            elif event["kind"] == "link-down":
                known.discard(ends)
                lost += 1
            if len(known) == len(plan.links) and len(ups) >= len(plan.switches):
                return {"after_last_switch_ms": max(0.0, event["time_s"] - max(ups)) * 1000,
                        "after_first_switch_ms": (event["time_s"] - ups[0]) * 1000,
                        "switches_came_within_ms": (max(ups) - ups[0]) * 1000, "links": len(known), "links_lost": lost,
                        "controller_cpu_s": veth.processor_seconds(controller.process)}
        time.sleep(0.05)
    raise RuntimeError(f"{what}: not within {seconds} s: {len(ups)} times a switch has connected, {len(known)} links are "
                       f"known, {lost} were lost")


def discovery(bench, seed):
    plan, port = random_network(seed, 100, 200), free_port()
    found = {}
    controller = RunningController(bench.weir, bench.folder, port)
    try:
        lab = RunningLab(bench.weir, bench.folder, plan, port)
        try:
            found["start"] = discovered(controller, plan, "discovery")
            found["lab_cpu_s"] = veth.processor_seconds(lab.process)
            controller.stop(signal.SIGKILL)
            controller = RunningController(bench.weir, bench.folder, port)
            found["restart"] = discovered(controller, plan, "discovery by a new controller")
        finally:
            lab.stop()
    finally:
        controller.stop()
    return found


# Failures in a fat-tree.

class Tree:
    """A fat-tree under a controller, whose hosts are known, with the flows of the trials."""

    def __init__(self, bench):
        self.plan, self.port = fat_tree(), free_port()
        self.controller = RunningController(bench.weir, bench.folder, self.port)
        try:
            self.lab = RunningLab(bench.weir, bench.folder, self.plan, self.port)
            try:
                hosts = self.plan.hosts
                # Each host sends something, so that the controller knows it.
                known = Flows(self.lab, [(host, hosts[number - 1], 5000) for number, host in enumerate(hosts)], 0.1)
                is_known = lambda state: (len(state["hosts"]), len(state["links"])) == (len(hosts), len(self.plan.links))
                try:
                    self.controller.wait(is_known, "hosts and links of the fat-tree", 20)
                    time.sleep(0.5)
                finally:
                    known.stop()
            except BaseException:
                self.lab.stop()
                raise
        except BaseException:
            self.controller.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lab.stop()
        self.controller.stop()

    def pairs(self):
        return [(self.plan.hosts[a - 1], self.plan.hosts[b - 1]) for a, b in PAIRS]


def trial(tree, flows, link, down, up):
    """Changes a link and changes it back. Returns what is known at once, and the times of both changes."""
    tree.controller.events()
    changed = tree.lab.link(link, down)
    time.sleep(PAUSE)
    events = tree.controller.events()
    returned = tree.lab.link(link, up)
    time.sleep(PAUSE)
    ports, rerouted = times_of(events, "port-down"), times_of(events, "rerouted")
    found = {"link": link, "kinds": sorted({event["kind"] for event in events})}
    if ports and rerouted:
        found["confirmed_ms"] = (rerouted[0] - ports[0]) * 1000
    return found, (changed, returned, time.monotonic())


def count_losses(flows, trials):
    """Adds to the findings of trials what the flows have lost. The flows have been stopped."""
    for found, (changed, returned, end) in trials:
        lost = flows.lost(changed - 2 * INTERVAL, returned)
        found["lost"] = [len(times) for times in lost]
        found["outages_ms"] = [len(times) * INTERVAL * 1000 for times in lost if times]
        found["flows_again_ms"] = [(max(times) - changed + INTERVAL) * 1000 for times in lost if times]
        found["lost_by_return"] = sum(map(len, flows.lost(returned, end)))
    return [found for found, _ in trials]


def failures(tree, dice, kind):
    pairs = tree.pairs()
    flows, trials = Flows(tree.lab, [(*pair, 6000) for pair in pairs], INTERVAL), []
    try:
        time.sleep(0.2)
        for number in range(TRIALS[kind]):
            if kind == "protected":
                link = first_link(tree, f"p{number % len(pairs)}")
            else:
                link = dice.choice(tree.lab.way(*pairs[number % len(pairs)]))
            time.sleep(dice.uniform(0, 0.025))
            down, up = ("loss 100%", "loss 0") if kind == "silent" else ("down", "up")
            trials.append(trial(tree, flows, link, down, up))
            if kind == "protected":
                all_installed(tree, [f"p{number}" for number in range(len(pairs))])
        # The last packets need time to arrive.
        time.sleep(0.3)
    finally:
        flows.stop()
    return {"trials": count_losses(flows, trials), "refused": flows.refused}


def set_intent(tree, key, source, target, traffic="", kind="host-to-host", **constraints):
    intent = {"kind": kind, "from": [source["ip"]], "to": [target["ip"]], "traffic": traffic, "constraints": constraints}
    status, reply = tree.controller.ask("PUT", f"intents/{key}", intent)
    if status not in (200, 201):
        raise RuntimeError(f"intent {key}: {status} {reply}")


def all_installed(tree, keys, seconds=10):
    def is_installed(state):
        states = {intent["key"]: intent["state"] for intent in state["intents"]}
        return all(states.get(key) == "installed" for key in keys)
    # The state of many intents is long, and takes the controller's time.
    tree.controller.wait(is_installed, f"intents {keys[0]} to {keys[-1]}", seconds, 0.05 if len(keys) < 100 else 0.5)


def first_link(tree, key):
    """Returns the first link of the way in use of an intent."""
    ports = tree.controller.get(f"intents/{key}")["paths"][0]["ports"]
    dpid, port = ports[1].split(":")
    near = (tree.plan.switch_of(int(dpid, 16)), int(port))
    return near, tree.plan.far_end(*near)


def protected(tree, dice):
    for number, (source, target) in enumerate(tree.pairs()):
        set_intent(tree, f"p{number}", source, target, protected=True)
    all_installed(tree, [f"p{number}" for number in range(len(PAIRS))])
    return failures(tree, dice, "protected")


def planned_flows(tree, dice):
    """Returns flows between hosts of different pods, which all cross the core. Hosts 1 to 4 are in the first pod."""
    hosts = tree.plan.hosts
    pairs = [(a, b) for a in hosts for b in hosts if (hosts.index(a) // 4) != (hosts.index(b) // 4)]
    dice.shuffle(pairs)
    return [(*pairs[number % len(pairs)], 7000 + number // len(pairs)) for number in range(MOVED)]


def core_of(tree, flow):
    """Returns the switch of the core by which a flow's packets go."""
    return next(name for link in tree.lab.way(*flow[:2]) for name, _ in link if name.startswith("c"))


def moves(tree, dice):
    """Moves flows away from a core switch by pulling its links, and back by plugging them in again. Pulled cables lose
    packets; what the way back costs is counted."""
    planned, found = planned_flows(tree, dice), []
    core = core_of(tree, planned[0])
    cables = [link for link in tree.plan.links if core in (link[0][0], link[1][0])]
    flows = Flows(tree.lab, planned, MOVED_INTERVAL)
    try:
        for _ in range(TIMES_MOVED):
            for link in cables:
                tree.lab.link(link, "down")
            time.sleep(1.0)
            cores = [core_of(tree, flow) for flow in planned[:4]]
            tree.controller.events()
            begin = time.monotonic()
            for link in cables:
                tree.lab.link(link, "up")
            time.sleep(1.0)
            rerouted = [event["text"] for event in tree.controller.events() if event["kind"] == "rerouted"]
            found.append((begin, time.monotonic(), cores, [core_of(tree, flow) for flow in planned[:4]], rerouted))
        time.sleep(0.3)
    finally:
        flows.stop()
    return {"flows": MOVED, "refused": flows.refused, "moves": [
        {"cores_before": before, "cores_after": after, "rerouted": rerouted, **flows.totals(begin, end)}
        for begin, end, before, after, rerouted in found]}


def intent_moves(tree, dice):
    """Moves flows from one half of the core to the other by a change of all their intents."""
    planned, halves = planned_flows(tree, dice), [["1", "2"], ["3", "4"]]
    keys = [f"m{number}" for number in range(MOVED)]

    def ask_for(avoided):
        for key, (source, target, port) in zip(keys, planned):
            set_intent(tree, key, source, target, f"udp,tp_dst={port}", "point-to-point", avoid=avoided)
        all_installed(tree, keys, 120)
    begin = time.monotonic()
    ask_for(halves[0])
    installed = time.monotonic()
    flows = Flows(tree.lab, planned, MOVED_INTERVAL)
    try:
        time.sleep(1.0)
        moved = time.monotonic()
        ask_for(halves[1])
        end = time.monotonic()
        time.sleep(0.5)
    finally:
        flows.stop()
    counted = flows.totals(moved - MOVED_INTERVAL, end + 0.3)
    return {"flows": MOVED, "set_up_s": installed - begin, "moved_within_s": end - moved, "refused": flows.refused, **counted}


# Overload.

def bench_controller(bench, port, options, prefix=()):
    command = [*OTHER_CORE, *prefix, bench.weir, "bench", "controller", f"127.0.0.1:{port}", "--frames", "arp",
               "--switches", "16", "--hosts", "16", "--no-ceiling", "--json", *options]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result_of(process):
    out, errors = process.communicate(timeout=60)
    if not out:
        raise RuntimeError(f"weir bench controller ended with {process.returncode}: {errors}")
    return json.loads(out)["controllers"][0]


def overload(bench, seed):
    """Offers too much to a controller beside a lab, whose switches have datapath ids of their own."""
    dice, port = random.Random(seed), free_port()
    plan = random_network(seed, 20, 40, first_dpid=0x1000)
    # Requests for addresses are passed on, so that each answer is told from the others.
    controller = RunningController(bench.weir, bench.folder, port, ["--no-arp-answers"], CONTROLLER_CORE)
    try:
        capacity = result_of(bench_controller(bench, port, ["--flood", "--time", "2s"]))["responses_per_second"]
        lab = RunningLab(bench.weir, bench.folder, plan, port, OTHER_CORE)
        try:
            controller.wait(lambda state: len(state["links"]) == len(plan.links), "links of the lab", 20)
            lost_at_start = [event["text"] for event in controller.events() if event["kind"] == "link-down"]
            before_load = controller.last_event
            # The lab goes before the generator, which would else take its core.
            load = bench_controller(bench, port, ["--rate", f"{2 * capacity:.0f}", "--probe", "--time", "6s"],
                                    ["nice", "-n", "5"])
            # The load begins after its switches were set up and it has warmed up.
            time.sleep(2.5)
            toggled, found_ms = [], []
            for _ in range(6):
                link = dice.choice(plan.links)
                toggled.append(link)
                lab.link(link, "down")
                time.sleep(0.3)
                controller.events()
                lab.link(link, "up")
                time.sleep(0.4)
                events = controller.events()
                # Switches of the generator come up meanwhile, too.
                ends = {f"port {plan.switches[switch]:x}:{port} is up" for switch, port in link}
                ups = times_of([event for event in events if event["text"] in ends], "port-up")
                links = times_of(events, "link-up")
                found_ms.append((links[0] - max(ups)) * 1000 if ups and links else None)
            result = result_of(load)
            events = controller.get(f"events?after={before_load}&most=1000")
        finally:
            lab.stop()
        lost = [event["text"] for event in events if event["kind"] == "link-down"]
        expected = [{f"{plan.switches[switch]:x}:{port}" for switch, port in link} for link in toggled]
        lost = [text for text in lost if set(text.split()[:3:2]) not in expected]
        event = result["event"]
        return {"capacity_per_s": capacity, "offered_per_s": 2 * capacity, "answered_per_s": result["responses_per_second"],
                "links_lost": lost, "links_lost_at_start": lost_at_start, "link_found_ms": found_ms,
                "echo": event.get("echo"), "own_delay": event.get("own_delay")}
    finally:
        controller.stop()


# All of it.

class Bench:
    def __init__(self, weir, folder):
        self.weir, self.folder = weir, folder


def measure(bench, names, seed):
    """Measures cases once. Returns their findings by name."""
    found, dice = {}, random.Random(seed)
    if "discovery" in names:
        found["discovery"] = discovery(bench, seed)
    in_tree = {"port-down": lambda tree: failures(tree, dice, "port-down"), "silent": lambda tree: failures(tree, dice, "silent"),
               "protected": lambda tree: protected(tree, dice), "moves": lambda tree: moves(tree, dice),
               "intents": lambda tree: intent_moves(tree, dice)}
    # A tree for each case: links that have failed often are damped for a while.
    for name in names:
        if name in in_tree:
            with Tree(bench) as tree:
                found[name] = in_tree[name](tree)
    if "overload" in names:
        found["overload"] = overload(bench, seed)
    return found


def summary(name, samples):
    """Returns the figures of a case by what they are."""
    if name == "discovery":
        cpu = statistics.median(sample["start"]["controller_cpu_s"] for sample in samples)
        figures = {"processor time of the controller until then, s (median)": cpu}
        for how in ("start", "restart"):
            times = [sample[how]["after_last_switch_ms"] for sample in samples]
            figures[f"{how}: all links known, ms after the last switch (median, longest)"] = [statistics.median(times), max(times)]
        return figures
    if name in TRIALS:
        trials = [trial for sample in samples for trial in sample["trials"]]
        figures = {"trials": len(trials), "packets lost as links returned": sum(trial["lost_by_return"] for trial in trials)}
        outages = [outage for trial in trials for outage in trial["outages_ms"]]
        again = [time for trial in trials for time in trial["flows_again_ms"]]
        confirmed = [trial["confirmed_ms"] for trial in trials if "confirmed_ms" in trial]
        for what, times in (("packets of a flow lost, ms", outages), ("until a flow's packets arrive again, ms", again),
                            ("port status to other ways confirmed, ms", confirmed)):
            figures[f"{what} (p50, p99, longest)"] = [share(times, 50), share(times, 99), max(times, default=None)]
        return figures
    if name == "moves":
        moved = [move for sample in samples for move in sample["moves"]]
        # Before the links return, flows are on other switches of the core than after it.
        not_moved = sum(bool(set(move["cores_before"]) & set(move["cores_after"])) for move in moved)
        return {"flows": MOVED, "times moved, not moved": [len(moved), not_moved],
                **{what: sum(move[what] for move in moved) for what in ("packets", "lost", "repeated")}}
    if name == "intents":
        return {what: [sample[what] for sample in samples]
                for what in ("flows", "packets", "lost", "repeated", "set_up_s", "moved_within_s")}
    found = [time for sample in samples for time in sample["link_found_ms"]]
    echoes = [sample["echo"]["p99_us"] for sample in samples if sample["echo"]]
    return {"capacity, offered, answered per second": [statistics.median(sample[what] for sample in samples)
                                                       for what in ("capacity_per_s", "offered_per_s", "answered_per_s")],
            "links lost under load": sum(len(sample["links_lost"]) for sample in samples),
            "links lost before, while the lab starts": sum(len(sample["links_lost_at_start"]) for sample in samples),
            "a link that comes up is found after, ms (median, longest)":
                [statistics.median(found), max(found)] if None not in found else ["not found"] + found,
            "echo replies p99, us (median, longest)": [statistics.median(echoes), max(echoes)] if echoes else None}


def show(name, figures):
    def text(value):
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    for what, value in figures.items():
        value = ", ".join(map(text, value)) if isinstance(value, list) else text(value)
        print(f"{name:10} {what}: {value}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default=",".join(CASES), help="only these, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--weir", type=pathlib.Path, help="the weir to be measured, instead of target/release/weir, which is built first")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    names = options.cases.split(",")
    if unknown := [name for name in names if name not in CASES]:
        sys.exit(f"network: no case {unknown[0]}; there are {', '.join(CASES)}")
    if os.geteuid() != 0:
        sys.exit("network: found another user, expected root: hosts are network namespaces")
    if options.weir:
        weir = options.weir.resolve()
    else:
        run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
        weir = veth.WEIR
    load, samples = loadavg(), {name: [] for name in names}
    with tempfile.TemporaryDirectory(prefix="weir-network-") as folder:
        bench = Bench(weir, pathlib.Path(folder))
        for number in range(options.rounds):
            begin = time.monotonic()
            for name, found in measure(bench, names, options.seed + number).items():
                samples[name].append(found)
            print(f"round {number + 1}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    figures = {name: summary(name, of) for name, of in samples.items()}
    for name, of in figures.items():
        show(name, of)
    if not options.no_record:
        veth.save_record("network", {"load_before": load, "rounds": options.rounds, "seed": options.seed,
                                     "figures": figures, "samples": samples})


if __name__ == "__main__":
    main()
