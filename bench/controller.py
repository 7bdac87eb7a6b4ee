#!/usr/bin/env python3
"""Measures weir's controller beside ovs-testcontroller and os-ken.

    bench/controller.py [--rounds 3] [--seconds 3] [--cases one,flood-1.0] [--no-record]

Calls `weir bench controller --compare` (release build): the controllers in turn on the first core, the generator on the
other. Each case is measured in every round, and the medians of the rounds are printed.

one        one switch, one packet-in at a time; weir asleep in between, and weir polling for 50 us (`--spin`)
flood-1.0  one switch that sends as fast as it can, OpenFlow 1.0
flood-1.3  the same with OpenFlow 1.3
switches   weir with 16 and with 1000 switches, each of which has 64 unanswered packet-ins
fair       weir with 128 switches that send as fast as they can: how much their rates differ
greedy     weir with 128 switches that ask at a third of its rate, and one that comes and sends as fast as it can
join       weir with 128 switches that send as fast as they can, and one that joins them
joins      as join, 1000 times in one measurement of 1600 s; only if it is asked for
peak       weir with 16 switches that send as fast as they can
overload   weir with 16 switches that ask at twice its peak, and one that asks little
threads    weir with one thread and with two, on both cores, which they share with the generator

os-ken is that of the virtual environment OSKEN_VENV, if the variable is set. `per core` is the rate divided by the
processors that the controller used. Writes a record to bench/records.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import veth
from veth import ROOT, WEIR, run

SPINNING = f"weir-spinning={WEIR} controller --listen tcp:127.0.0.1:{{port}} --spin 50us"
PEERS = ["ovs-testcontroller", "os-ken"]
ON_BOTH = [f"weir-{count}-threads=taskset -c 0,1 {WEIR} controller --listen tcp:127.0.0.1:{{port}} --threads {count}"
           for count in (1, 2)]
CASES = {
    "one": (["weir", SPINNING, *PEERS], "--openflow 1.3"),
    "flood-1.0": (["weir", *PEERS], "--openflow 1.0 --flood"),
    "flood-1.3": (["weir", *PEERS], "--openflow 1.3 --flood"),
    "switches": (["weir"], "--window 64 --switches 16 --hosts 16"),
    "switches-1000": (["weir"], "--window 64 --switches 1000 --hosts 16"),
    "fair": (["weir"], "--flood --switches 128"),
    "greedy": (["weir"], "--switches 128 --rate {third} --greedy"),
    "join": (["weir"], "--flood --switches 128 --join"),
    "joins": (["weir"], "--flood --switches 128 --join=1000 --time 1600s"),
    "peak": (["weir"], "--flood --switches 16"),
    "overload": (["weir"], "--switches 16 --rate {twice} --probe"),
    "threads": (ON_BOTH, "--flood --switches 16"),
}
GROUPS = {"switches": ["switches", "switches-1000"]}


def measure(controllers, arguments, options, environment):
    """Runs one measurement. Returns the controllers' results."""
    compare = [word for name in controllers for word in ("--compare", name)]
    time = [] if "--time" in arguments else ["--time", f"{options.seconds}s"]
    command = [WEIR, "bench", "controller", *compare, *arguments.split(), *time, "--json"]
    pipe = subprocess.PIPE
    ended = subprocess.run(command, stdout=pipe, stderr=pipe, text=True, env=environment, timeout=1200)
    if not ended.stdout:
        sys.exit(f"controller: {' '.join(map(str, command))} ended with {ended.returncode}: {ended.stderr}")
    report = json.loads(ended.stdout)
    for failure in report["failures"]:
        print(f"{failure['controller']}: {failure['error']}", file=sys.stderr)
    # Courses and distributions would make the record a hundred times as long.
    for one in report["controllers"]:
        del one["course"], one["delay_quantiles_us"]
    return report["controllers"]


def medians(samples):
    """Returns the median of each number that every sample has, by its name."""
    def numbers(sample, before=""):
        for name, value in sample.items():
            if name == "fairness" and value:
                after = [one["after_ms"] for one in value if one["after_ms"] is not None]
                yield f"{before}fair_times", len(after)
                if after:
                    yield f"{before}fair_after_ms", statistics.median(after)
                    yield f"{before}fair_after_at_most_ms", max(after)
            elif isinstance(value, dict):
                yield from numbers(value, f"{before}{name}.")
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                yield before + name, value
    all_numbers = [dict(numbers(sample)) for sample in samples]
    names = [name for name in all_numbers[0] if all(name in found for found in all_numbers)]
    return {name: statistics.median(found[name] for found in all_numbers) for name in names}


def per_core(found):
    """Returns responses a second and processor."""
    cores = found["process.cpu_s"] / found["process.wall_s"]
    return found["responses_per_second"] / cores


def show(case, found):
    """Prints the medians of one case."""
    for name, row in found.items():
        delay = f"p50 {row['delay.p50_us']:9.1f} us, p99 {row['delay.p99_us']:9.1f} us" if "delay.p50_us" in row else ""
        print(f"{case:14} {name:20} {row['responses_per_second']:10.0f} /s {per_core(row):10.0f} /s per core  {delay}")
        for key, what in (("deviation_percent", "deviation %"), ("event.fair_times", "times fair"),
                          ("event.fair_after_ms", "fair after ms"), ("event.fair_after_at_most_ms", "at most ms"),
                          ("event.others_before", "others before /s"), ("event.others_after", "others after /s"),
                          ("event.delay_before.p99_us", "p99 before us"), ("event.delay_after.p99_us", "p99 after us"),
                          ("event.own_delay.p99_us", "own p99 us"), ("event.echo.p99_us", "echo p99 us")):
            if key in row:
                print(f"{'':14} {what:20} {row[key]:10.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="time of each measurement")
    parser.add_argument("--cases", help="only these, separated by commas")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    usual = [case for case in CASES if case not in ("switches-1000", "joins")]
    names = options.cases.split(",") if options.cases else usual
    names = [case for name in names for case in GROUPS.get(name, [name])]
    unknown = [name for name in names if name not in CASES]
    if unknown:
        sys.exit(f"controller: no case {unknown[0]}; there are {', '.join(CASES)}")
    run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
    environment = dict(os.environ)
    if venv := os.environ.get("OSKEN_VENV"):
        environment["PATH"] = f"{venv}/bin:{environment['PATH']}"
    # What weir answers at most decides what is offered to it.
    peak = measure(["weir"], "--flood --switches 16", options, environment)[0]["responses_per_second"]
    offered = {"third": f"{peak / 3:.0f}", "twice": f"{2 * peak:.0f}"}
    print(f"weir answers at most {peak:.0f} packet-ins a second of 16 switches")
    samples = {case: {} for case in names}
    for _ in range(options.rounds):
        for case in names:
            controllers, arguments = CASES[case]
            for result in measure(controllers, arguments.format(**offered), options, environment):
                samples[case].setdefault(result["controller"], []).append(result)
    found = {case: {name: medians(of) for name, of in samples[case].items()} for case in names}
    for case, rows in found.items():
        show(case, rows)
    if not options.no_record:
        arguments = {case: CASES[case][1].format(**offered) for case in names}
        veth.save_record("controller", {"load": os.getloadavg(), "peak": peak, "rounds": options.rounds,
                                        "arguments": arguments, "medians": found, "samples": samples})


if __name__ == "__main__":
    main()
