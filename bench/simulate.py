#!/usr/bin/env python3
"""Compares the speed of `weir bench simulate` with simpy on the same queue: M/M/1 at a utilisation of 0.8.

Needs simpy (`pip install simpy`) and a release build of weir. Both run on one thread, one after the other; the fastest
of five runs counts for each. simpy's model is the one of its documentation: a resource of capacity one, and a process
for each customer. The comparison is in customers per second, because simpy counts events in another way. (In weir a
customer is two events: arrival and departure.)
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time

import simpy


def customers_per_second(customers):
    """Simulates the queue once. Returns the customers per second of real time, and their mean wait in units of the mean
    service time."""
    env = simpy.Environment()
    server = simpy.Resource(env, capacity=1)
    rng = random.Random(1)
    waits = [0.0, 0]

    def customer():
        came = env.now
        with server.request() as turn:
            yield turn
            waits[0] += env.now - came
            waits[1] += 1
            yield env.timeout(rng.expovariate(1.0))

    def source():
        for _ in range(customers):
            yield env.timeout(rng.expovariate(0.8))
            env.process(customer())

    env.process(source())
    begin = time.perf_counter()
    env.run()
    return customers / (time.perf_counter() - begin), waits[0] / waits[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default="target/release/weir", help="the command")
    parser.add_argument("--customers", type=int, default=100_000, help="customers of each run of simpy")
    parser.add_argument("--record", metavar="FILE", help="also write the result there")
    args = parser.parse_args()
    if not os.path.exists(args.weir):
        sys.exit(f"{args.weir}: not there; build it with `cargo build --release`, or name it with --weir")
    ours = json.loads(subprocess.run([args.weir, "bench", "simulate", "--json"], check=True, capture_output=True).stdout)
    runs = [customers_per_second(args.customers) for _ in range(5)]
    theirs = max(rate for rate, _ in runs)
    result = {
        "machine": ours["machine"],
        "weir": ours["speeds"],
        "simpy": {
            "version": simpy.__version__,
            "python": sys.version.split()[0],
            "customers": args.customers,
            "customers_per_second": theirs,
            "mean_wait_services": sum(wait for _, wait in runs) / len(runs),
        },
        "ratio": ours["speeds"][0]["packets_per_second"] / theirs,
    }
    text = json.dumps(result, indent=2) + "\n"
    print(text, end="")
    if args.record:
        with open(args.record, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
