#!/usr/bin/env python3
"""Measures how long a controller waits for replies while others load the switch.

    bench/control_delay.py [--seconds 5] [--count 600000] [--no-record]

Starts weir (release build, null ports) for each case. One session sends an echo request and a barrier request every
10 ms, and notes when each reply arrives. Meanwhile one load runs:

idle      nothing
changes   another session adds COUNT flow entries one by one, then up to 100,000 in one bundle, and deletes them
echoes    another session sends echo requests as fast as the switch takes them
frames    the ports receive 60-byte frames as fast as the switch takes them, and forward them
workers   the same with two workers
punts     the frames are sent to the controller, limited to 1,000 packet-ins a second for each session

Prints the median, 99th percentile and maximum of both delays in milliseconds. Meant for an idle machine: the measuring
program needs a core itself. Writes a record to bench/records.
"""
import argparse
import os
import pathlib
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import veth
from veth import ROOT, WEIR, run, stop, wait_for

HELLO, ECHO_REQUEST, ECHO_REPLY, BARRIER_REQUEST, BARRIER_REPLY = 0, 2, 3, 20, 21
VERSION = 4  # OpenFlow 1.3
INTERVAL = 0.01
# A bundle holds at most 32 MiB of messages.
MAX_BUNDLE = 100_000
ADDRESS = ("127.0.0.1", 16997)


class Session:
    """An OpenFlow 1.3 session on a TCP connection."""

    def __init__(self):
        self.socket = socket.create_connection(ADDRESS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.send(HELLO, 0)

    def send(self, kind, xid, body=b""):
        self.socket.sendall(struct.pack("!BBHI", VERSION, kind, 8 + len(body), xid) + body)

    def messages(self, timeout):
        """Returns the type and transaction id of each message that arrives within `timeout` seconds."""
        if not select.select([self.socket], [], [], max(0, timeout))[0]:
            return []
        data = self.socket.recv(1 << 16)
        if not data:
            sys.exit("control_delay: the switch closed the connection")
        self.received += data
        found = []
        while len(self.received) >= 8:
            _, kind, length, xid = struct.unpack("!BBHI", self.received[:8])
            if len(self.received) < length:
                break
            found.append((kind, xid))
            self.received = self.received[length:]
        return found


def delays(seconds, loaded):
    """Returns the delays of echo and barrier replies in seconds, for `seconds` and as long as `loaded()` is true."""
    session, sent, found = Session(), {}, {ECHO_REPLY: [], BARRIER_REPLY: []}
    start = due = time.monotonic()
    xid = 0
    while due < start + seconds or loaded() or sent:
        now = time.monotonic()
        if now > start + seconds + 120:
            sys.exit("control_delay: no reply within two minutes")
        if now >= due and (due < start + seconds or loaded()):
            for kind in (ECHO_REQUEST, BARRIER_REQUEST):
                xid += 1
                sent[xid] = time.monotonic()
                session.send(kind, xid)
            due += INTERVAL
        for kind, number in session.messages(min(due - time.monotonic(), INTERVAL)):
            if kind in found and number in sent:
                found[kind].append(time.monotonic() - sent.pop(number))
    session.socket.close()
    return found


def flood(stopped):
    """Sends echo requests as fast as the switch takes them, until `stopped` is set."""
    session = Session()
    piece = b"".join(struct.pack("!BBHI", VERSION, ECHO_REQUEST, 64, number) + bytes(56) for number in range(1000))
    session.socket.setblocking(False)
    left = b""
    while not stopped.is_set():
        readable, writable, _ = select.select([session.socket], [session.socket], [], 0.1)
        if readable:
            session.socket.recv(1 << 20)
        if writable:
            left = left or piece
            left = left[session.socket.send(left):]
    session.socket.close()


def figures(values):
    """Returns median, 99th percentile and maximum in milliseconds."""
    values = sorted(values)
    at = lambda share: round(values[min(len(values) - 1, int(share * len(values)))] * 1000, 3)
    return {"n": len(values), "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": round(values[-1] * 1000, 3)}


def measure(case, options, folder):
    """Runs one case. Returns its row for the record."""
    control = folder / f"{case}.sock"
    frames = case in ("frames", "workers", "punts")
    ports = "null:a,rx=on,headers=udp,flows=1000 null:b".split() if frames else "null:a null:b".split()
    more = {"workers": "--workers 2", "punts": "--packet-in-rate 1000"}.get(case, "")
    command = f"{WEIR} switch --port 1={ports[0]} --port 2={ports[1]} --listen ptcp:{ADDRESS[1]}:{ADDRESS[0]} " \
              f"--control-socket {control} {more}"
    switch = subprocess.Popen(command.split(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    load, stopped, thread = None, threading.Event(), None
    try:
        wait_for(control.exists, "weir switch")
        if frames:
            action = "CONTROLLER:128" if case == "punts" else "output:2"
            run(f"{WEIR} ctl --switch {control} add-flow in_port=1,actions={action}")
        if case == "changes":
            ways = [f"{WEIR} bench flow-mods tcp:{ADDRESS[0]}:{ADDRESS[1]} --way {way} --count {count} --rounds 1 --json"
                    for way, count in (("plain", options.count), ("bundle", min(options.count, MAX_BUNDLE)))]
            load = subprocess.Popen(" && ".join(ways), shell=True, stdout=subprocess.DEVNULL, start_new_session=True)
        if case == "echoes":
            thread = threading.Thread(target=flood, args=(stopped,))
            thread.start()
        found = delays(options.seconds, lambda: load is not None and load.poll() is None)
        if load is not None and load.returncode:
            sys.exit(f"control_delay: the load ended with {load.returncode}")
    finally:
        stopped.set()
        if thread:
            thread.join()
        if load and load.poll() is None:
            os.killpg(load.pid, 15)
            load.wait()
        stop(switch)
    return {"case": case, "echo": figures(found[ECHO_REPLY]), "barrier": figures(found[BARRIER_REPLY])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="duration of each case, in which a reply is awaited every 10 ms")
    parser.add_argument("--count", type=int, default=600_000, help="flow entries of the case `changes`")
    parser.add_argument("--cases", default="idle,changes,echoes,frames,workers,punts")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench-"))
    rows = []
    try:
        print(f"{'ms':10} {'echo p50':>9} {'p99':>9} {'max':>9}   {'barrier p50':>11} {'p99':>9} {'max':>9}")
        for case in options.cases.split(","):
            row = measure(case, options, folder)
            rows.append(row)
            echo, barrier = row["echo"], row["barrier"]
            print(f"{case:10} {echo['p50_ms']:9.3f} {echo['p99_ms']:9.3f} {echo['max_ms']:9.3f}   "
                  f"{barrier['p50_ms']:11.3f} {barrier['p99_ms']:9.3f} {barrier['max_ms']:9.3f}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not options.no_record:
        veth.save_record("control_delay", {"load": os.getloadavg(), "cases": rows})


if __name__ == "__main__":
    main()
