#!/usr/bin/env python3
"""Runs all tests repeatedly beside busy processes, to find tests that fail only sometimes.

    bench/suite.py [--runs 10] [--busy 2] [--record suite] [--after bench/records/DAY/suite.json]

The script first builds the tests. Each busy process loops without waiting, at the priority of the tests, for the
duration of a run. With --busy 0 other programs may keep the processors busy: for each run, the record has the share of
processor time that programs other than the tests used. The output of a run that fails is written to a file, whose name
is printed.

A series may be made in pieces: --after names the record of the earlier pieces. It is refused if the tested code has
changed since. The exit status is 1 if a run failed. A record is written to bench/records. Needs root and the programs
that CI installs; without them tests are skipped, and the record counts the skipped tests.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import veth
from veth import ROOT

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)


@contextlib.contextmanager
def busy(count):
    """Runs `count` processes that loop without waiting, until the block ends."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def processor_seconds():
    """Returns two processor times in seconds: of the whole machine, without idle time, and of this process's children
    that have ended."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / ticks, children.ru_utime + children.ru_stime


@contextlib.contextmanager
def tests():
    """Runs the tests in their own process group, which is ended with the block."""
    running = subprocess.Popen([ROOT / "weir", "test"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGTERM)


def suite():
    """Runs the tests once. Returns the run's entry for the record, and the printed text."""
    start, before = time.monotonic(), processor_seconds()
    with tests() as running:
        printed, _ = running.communicate()
    seconds, (machine, own) = time.monotonic() - start, (now - then for now, then in zip(processor_seconds(), before))
    counts = COUNTS.findall(printed)
    if not counts:
        sys.exit(f"suite: the tests ended with status {running.returncode} and no counts:\n{printed[-3000:]}")
    passed, failed, skipped = map(int, counts[-1])
    names = re.findall(r"^failed (.*)$", printed, re.MULTILINE)
    return {"passed": passed, "failed": failed, "skipped": skipped, "failures": names, "status": running.returncode,
            "minutes": round(seconds / 60, 1), "others": round((machine - own) / seconds / os.cpu_count(), 2)}, printed


def earlier_runs(file):
    """Returns the runs of an earlier record, each with the commit that it tested. Exits if the tested code differs."""
    try:
        record = json.loads(file.read_text())
        commit, runs = record["commit"], record["runs"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        sys.exit(f"suite: {file}: {problem!r}; expected a record of this script")
    tested = ["crates", "tests", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "weir", "mininet"]
    if subprocess.run(["git", "diff", "--quiet", commit, "--", *tested], cwd=ROOT).returncode:
        sys.exit(f"suite: {file}: found code or tests that differ from its commit {commit}; expected the same "
                 "for one series: check that commit out, or begin a new series without --after")
    return [{"commit": commit, **run} for run in runs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="processes that turn in a loop (one for each processor unless told)")
    parser.add_argument("--record", default="suite", help="the record's name")
    parser.add_argument("--after", type=pathlib.Path, help="a record whose runs these follow")
    options = parser.parse_args()
    if options.runs < 1 or options.busy < 0:
        parser.error("expected a run at least, and no fewer than 0 busy processes")
    runs = earlier_runs(options.after) if options.after else []
    if subprocess.run(["cargo", "test", "--quiet", "--locked", "--workspace", "--no-run"], cwd=ROOT).returncode:
        sys.exit("suite: the tests cannot be built; see above")
    # SIGTERM raises SystemExit, so that the started processes are ended as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("suite: ended by a signal"))
    for number in range(len(runs) + 1, len(runs) + options.runs + 1):
        with busy(options.busy):
            run, printed = suite()
        runs.append(run)
        print(f"run {number}: {run['passed']} passed, {run['failed']} failed, {run['skipped']} skipped in {run['minutes']} minutes; "
              f"others had {run['others']:.0%} of the processors", flush=True)
        if run["status"]:
            with tempfile.NamedTemporaryFile("w", prefix="weir-suite-", suffix=".log", delete=False) as log:
                log.write(printed)
            print("\n".join(f"    {name}" for name in run["failures"]) + f"\n    printed: {log.name}", flush=True)
        # Saved after each run, so that a long series that is stopped keeps its results.
        veth.save_record(options.record, {"busy": options.busy, "runs": runs})
    wrong = sum(run["status"] != 0 for run in runs)
    print(f"{len(runs) - wrong} of {len(runs)} runs passed, {statistics.median(run['minutes'] for run in runs)} minutes each in the median")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
