#!/usr/bin/env python3
"""Runs all tests again and again beside busy processes: a suite that can be believed passes each time.

    bench/suite.py [--runs 10] [--busy 2] [--record suite] [--after bench/records/DAY/suite.json]

What is missing is built first. Each busy process turns in a loop, at the priority of the tests, for as long as a run takes. With --busy 0
something else may keep the processors busy: the record says for each run which share of their time others than the tests had. The output of
a run that fails goes to a file that is named. A series may be made in pieces: --after names the record of the pieces before, and is refused
if what is tested has changed since. Ends with status 1 when a run failed, and writes a record to bench/records. Needs root, and the
programs that CI installs, or tests are skipped; the record counts them.
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
    """Processes that never wait, until the block ends."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def processor_seconds():
    """Time that the machine's processors worked, and that of processes that this one has started and seen end."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / ticks, children.ru_utime + children.ru_stime


@contextlib.contextmanager
def tests():
    """The tests, in a process group of their own, which ends with the block."""
    running = subprocess.Popen([ROOT / "weir", "test"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGTERM)


def suite():
    """Runs the tests once: what a record keeps of it, and what was printed."""
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


def before(file):
    """The runs of an earlier record, each with the commit that it tested."""
    record = json.loads(file.read_text())
    tested = ["crates", "tests", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "weir", "mininet"]
    if subprocess.run(["git", "diff", "--quiet", record["commit"], "--", *tested], cwd=ROOT).returncode:
        sys.exit(f"suite: {file}: its commit {record['commit']} has other code or tests than what is checked out; expected the same for one series")
    return [{"commit": record["commit"], **run} for run in record["runs"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="processes that turn in a loop (one for each processor unless told)")
    parser.add_argument("--record", default="suite", help="the record's name")
    parser.add_argument("--after", type=pathlib.Path, help="a record whose runs these follow")
    options = parser.parse_args()
    if options.runs < 1 or options.busy < 0:
        parser.error("expected a run at least, and no fewer than 0 busy processes")
    if subprocess.run(["cargo", "test", "--quiet", "--locked", "--workspace", "--no-run"], cwd=ROOT).returncode:
        sys.exit("suite: the tests cannot be built; see above")
    # Ended from outside, it ends what it started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("suite: ended by a signal"))
    runs = before(options.after) if options.after else []
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
        # After each run: what a long series has seen so far is kept if it is stopped.
        veth.save_record(options.record, {"busy": options.busy, "runs": runs})
    wrong = sum(run["status"] != 0 for run in runs)
    print(f"{len(runs) - wrong} of {len(runs)} runs passed, {statistics.median(run['minutes'] for run in runs)} minutes each in the median")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
