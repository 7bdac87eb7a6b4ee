#!/usr/bin/env python3
"""Runs whole switches under a scheduler that a seed controls, for many seeds, and records the results.

    bench/schedules.py [--seeds 0..1000000] [--jobs 2] [--for SECONDS]

The script first builds the runner, an example of the crate weir-switch. For a seed that fails, the last steps and the
command that repeats it are printed. The exit status is 1 if a seed failed. A record is written to bench/records.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import veth
from veth import ROOT

BUILD = "cargo build --quiet --release --locked -p weir-switch --features schedules --example schedules"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0..1000000", metavar="FROM..END")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="threads (one for each processor unless told)")
    parser.add_argument("--for", type=int, dest="seconds", help="time after which no further seed is begun, in seconds")
    parser.add_argument("--record", default="schedules", help="the record's name")
    options = parser.parse_args()
    veth.run(BUILD, cwd=ROOT)
    with tempfile.TemporaryDirectory() as folder:
        sums = pathlib.Path(folder) / "sums.json"
        command = [ROOT / "target/release/examples/schedules", "--seeds", options.seeds, "--jobs", str(options.jobs), "--record", sums]
        if options.seconds is not None:
            command += ["--for", str(options.seconds)]
        status = subprocess.run(command).returncode
        if not sums.exists():
            sys.exit(f"schedules: the runner ended with status {status} and without a result")
        veth.save_record(options.record, json.loads(sums.read_text()))
    sys.exit(status)


if __name__ == "__main__":
    main()
