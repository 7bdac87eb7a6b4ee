#!/usr/bin/env python3
"""Records certificates beside errors, to set the limits of certificates where both agree.

    bench/certificate.py [--rounds 5] [--scenarios LIST] [--verbs run,emulate] [--busy 0,1] [--weir FILE]
    bench/certificate.py --evaluate RECORD...

Each scenario is simulated, then run --rounds times by each verb (emulate needs root), beside --busy processes that only
compute. Scenarios are the shipped quickstart, office and lab (with traffic added), and trees of ten switches whose
busiest links are 15, 30 and 60 % used. Simulations know how long this machine takes to wake a thread; weir compare
measures it first. A run is right if each flow's median is within 3 % of the simulated one, the 95th percentile within
10 %, losses within 0.5 points, and TCP's rate within 3 %. The tables have, for each verdict, how many runs were right
and wrong, and for each figure of the certificate the limit that tells right from wrong best, with the runs that it gets
wrong. Run this on a quiet machine. What a verb refuses is left out, and named. A record is written to bench/records:
for each run the certificate, the flows' figures, and the simulated ones. --evaluate prints the tables of records again.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import veth

EXAMPLES = veth.ROOT / "examples"
TIMEOUT_S = 300
# Most that a run may be off, to be right: median and 95th percentile as shares, losses in points, rates as shares.
LIMITS = {"p50": 0.03, "p95": 0.10, "loss": 0.005, "rate": 0.03}
LAB_TRAFFIC = """
[[traffic]]
kind = "ping"
from = "h1"
to = "h4"
count = 50
interval = "40ms"
[[traffic]]
kind = "udp"
from = "h2"
to = "h3"
rate = "5Mbit/s"
duration = "2s"
start = "500ms"
"""


def tree(use):
    """Returns ten switches in three levels, with six hosts: links of 100 Mbit/s, the busiest ones `use` used."""
    lines = ['name = "tree"', 'duration = "3s"', "[controller]", 'app = "learning"']
    lines += [f'[[switch]]\nname = "s{number}"' for number in range(10)]
    parents = {number: 0 if number <= 3 else (number - 4) // 2 + 1 for number in range(1, 10)}
    lines += [f'[[link]]\nends = ["s{up}", "s{down}"]\nrate = "100Mbit/s"\ndelay = "20us"'
              for down, up in parents.items()]
    lines += [f'[[host]]\nname = "h{number}"\nswitch = "s{number + 3}"\nip = "10.0.0.{number}/24"\nrate = "100Mbit/s"'
              for number in range(1, 7)]
    # Two of these flows leave each branch of the tree. The first pings let switches learn where hosts are.
    pairs = [(number, (number + 1) % 6 + 1) for number in range(1, 7)]
    lines += [f'[[traffic]]\nkind = "ping"\nfrom = "h{a}"\nto = "h{b}"\ncount = 5\ninterval = "50ms"' for a, b in pairs]
    lines += [f'[[traffic]]\nkind = "udp"\nfrom = "h{a}"\nto = "h{b}"\nrate = "{use * 50:.3f}Mbit/s"\n'
              'payload = "958B"\narrival = "poisson"\nstart = "1s"' for a, b in pairs]
    return "\n".join(lines) + "\n"


def scenarios():
    """Returns the text of each scenario, by name."""
    found = {name: (EXAMPLES / f"{name}.toml").read_text() for name in ("quickstart", "office", "lab")}
    found["lab"] += LAB_TRAFFIC
    return found | {f"tree-{percent}": tree(percent / 100) for percent in (15, 30, 60)}


def flows(result):
    """Returns what a run or a simulation says of each item of traffic."""
    def of(item):
        delay = item.get("undisturbed") or item.get("rtt_after_first") or item.get("rtt") or item.get("delay") or {}
        figures = {name: delay.get(f"{name}_us") for name in ("mean", "p50", "p95", "p99", "max")}
        return {"flow": f"{item['kind']} {item['from']} > {item['to']}", "samples": delay.get("samples", 0),
                "in_stops": item.get("in_stops", 0), "loss": item.get("loss"), "rate_bps": item.get("goodput_bps"),
                **figures}
    return [of(item) for item in result["traffic"] if item["expect"] == "reach"]


def ask(command):
    """Returns the JSON of a program's run; fails with what it said if there is none."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}: {done.stderr[-500:]}") from None


def wake_up_us(weir, file):
    """Returns how long this machine takes to wake a thread, as weir compare measures it."""
    found = ask([weir, "compare", file, "--answers", "simulate,run", "--rounds", "1", "--replications", "1",
                 "--duration", "100ms", "--json"])
    conditions = next(answer["conditions"] for answer in found["answers"] if answer["by"]["verb"] == "run")
    told = re.search(r"([0-9.]+) us for each of", conditions)
    return float(told[1]) if told else 0.0


def errors(run, simulated):
    """Returns the largest errors of a run's flows by figure, in the units of LIMITS."""
    worst = dict.fromkeys(LIMITS, 0.0)
    for live, virtual in zip(run, simulated):
        for figure, least in (("p50", 2), ("p95", 20)):
            if live[figure] and virtual[figure] and min(live["samples"], virtual["samples"]) >= least:
                worst[figure] = max(worst[figure], abs(live[figure] / virtual[figure] - 1))
        if live["loss"] is not None and virtual["loss"] is not None:
            worst["loss"] = max(worst["loss"], abs(live["loss"] - virtual["loss"]))
        if live["flow"].startswith("tcp") and live["rate_bps"] and virtual["rate_bps"]:
            worst["rate"] = max(worst["rate"], abs(live["rate_bps"] / virtual["rate_bps"] - 1))
    return worst


def is_right(one):
    return all(one["errors"][figure] <= limit for figure, limit in LIMITS.items())


def rounds(name, verb, busy, file, simulated, weir, count):
    """Runs a scenario `count` times by a verb, and returns the runs with certificates and errors."""
    found = []
    for _ in range(count):
        try:
            result = ask([weir, verb, file, "--json"])
        except RuntimeError as problem:
            # Not every verb can do everything that a scenario asks for.
            print(f"left out: {problem}", file=sys.stderr)
            break
        run, certificate = flows(result), result["certificate"]
        found.append({"scenario": name, "verb": verb, "busy": busy, "flows": run, "certificate": certificate,
                      "simulated": simulated, "errors": errors(run, simulated)})
        off = ", ".join(f"{figure} {value * 100:.1f} %" for figure, value in found[-1]["errors"].items())
        print(f"{name} {verb} busy {busy}: {certificate['verdict']}, {off}", flush=True)
    return found


def measure(name, text, weir, options):
    """Simulates a scenario, and returns its runs with certificates and errors."""
    found = []
    with tempfile.TemporaryDirectory(prefix="weir-certificate-") as folder:
        file = pathlib.Path(folder) / f"{name}.toml"
        file.write_text(text)
        wake_up = wake_up_us(weir, file)
        simulated = flows(ask([weir, "simulate", file, "--level", "packets", "--wake-up", f"{wake_up}us", "--json"]))
        print(f"{name}: {wake_up} us to wake a thread", flush=True)
        for busy in options.busy:
            load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
            try:
                for verb in options.verbs:
                    found += rounds(name, verb, busy, file, simulated, weir, options.rounds)
            finally:
                for process in load:
                    process.kill()
                    process.wait()
    return found


def figures(certificate):
    """Returns the figures of a certificate that have limits, by name."""
    machine, senders = certificate["machine"], certificate.get("senders") or {}
    asked = senders.get("asked") or 0
    lost = [flow["lost"] / max(flow["asked"], 1) for flow in certificate.get("flows", [])]
    found = {"links late": (certificate["links"] or {}).get("share_late", 0),
             "devices late": (certificate["devices"] or {}).get("share_over_20us", 0),
             "saturated": machine["saturated_share"], "stolen": machine["stolen_share"],
             "stopped": machine["stopped_share"], "no processor free": machine["preempted_share"],
             "threads waited, us": machine.get("thread_wait_us") or 0,
             "not sent": 1 - senders["sent"] / asked if asked else 0,
             "datagrams late, us": senders.get("datagrams_p99_us") or 0, "lost": max(lost, default=0)}
    return found


def best_limit(values):
    """Returns the limit that tells right runs (at most the limit) from wrong ones best, and the runs it gets wrong:
    right ones above it, wrong ones at most at it."""
    ordered = [-1.0, *sorted({value for value, _ in values})]
    cost = {limit: (sum(right and value > limit for value, right in values),
                    sum(not right and value <= limit for value, right in values)) for limit in ordered}
    limit = min(ordered, key=lambda limit: (sum(cost[limit]), -limit))
    return limit, *cost[limit]


def evaluate(runs):
    """Prints how verdicts and limits agree with errors."""
    print(f"\n{'verb, verdict':30} {'right':>6} {'wrong':>6}")
    for verb in sorted({one["verb"] for one in runs}):
        for verdict in ("faithful", "doubtful", "not_faithful"):
            own = [is_right(one) for one in runs if one["verb"] == verb and one["certificate"]["verdict"] == verdict]
            print(f"{verb + ', ' + verdict:30} {sum(own):6} {len(own) - sum(own):6}")
    print(f"\n{'figure':22} {'limit':>10} {'right above':>12} {'wrong below':>12} {'largest right':>14}")
    for name in figures(runs[0]["certificate"]):
        values = [(figures(one["certificate"])[name], is_right(one)) for one in runs]
        limit, above, below = best_limit(values)
        largest = max((value for value, right in values if right), default=0)
        print(f"{name:22} {limit:10.4f} {above:12} {below:12} {largest:14.4f}")
    good = sum(map(is_right, runs))
    print(f"\n{len(runs)} runs, {good} right; every limit of -1 calls all runs wrong")


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    known = scenarios()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each scenario by each verb [5]")
    parser.add_argument("--scenarios", default=",".join(known), help=f"some of {', '.join(known)} [all]")
    parser.add_argument("--verbs", help="run, emulate [both as root, otherwise run]")
    parser.add_argument("--busy", type=numbers, default=[0, 1], help="numbers of processes that compute beside [0,1]")
    parser.add_argument("--weir", type=pathlib.Path, help="the program [target/release/weir, built first]")
    parser.add_argument("--record", default="certificate", help="the record's name [certificate]")
    parser.add_argument("--no-record", action="store_true", help="print only")
    parser.add_argument("--evaluate", nargs="+", type=pathlib.Path, metavar="RECORD",
                        help="measure nothing, evaluate these")
    options = parser.parse_args()
    if options.evaluate:
        return evaluate([one for file in options.evaluate for one in json.loads(file.read_text())["runs"]])
    options.verbs = (options.verbs or ("run,emulate" if os.geteuid() == 0 else "run")).split(",")
    names = options.scenarios.split(",")
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"--scenarios: found {', '.join(unknown)}, expected some of {', '.join(known)}")
    if not options.weir:
        veth.run("cargo build --quiet --release --locked -p weir-cli", cwd=veth.ROOT)
    weir = (options.weir or veth.WEIR).resolve()
    runs = [one for name in names for one in measure(name, known[name], weir, options)]
    if not runs:
        sys.exit("bench/certificate.py: no run to evaluate")
    evaluate(runs)
    if not options.no_record:
        veth.save_record(options.record, {"rounds": options.rounds, "limits": LIMITS,
                                          "units": "errors as shares of the simulated value, losses in points",
                                          "runs": runs})


if __name__ == "__main__":
    main()
