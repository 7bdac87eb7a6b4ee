#!/usr/bin/env python3
"""Compares how exactly links keep their rate and delay: weir's (`weir emulate`) and Mininet's TCLink (HTB and netem).

    bench/link.py [--rounds 3] [--rates 10,100,1000] [--seconds 5] [--delay 5]

Rate: h1 sends datagrams of 1400 bytes to h2 at 1.2 times the link's rate. The measured rate is the count of h2's
interface over the time (frames without check sequence, as in the rates of both links). The median of the relative
errors is printed, and the largest of all rounds. weir's link is between a switch and h2, Mininet's between the hosts.

Delay: pings are sent every 10 ms, over a link with the delay and over one without. Half of the difference of the round
trips is the delay.

A measurement that the machine does not support is reported and left out (a kernel without netem has no delays for
TCLink). Writes a record to bench/records. Needs root, iproute2, iputils-ping and Debian's mininet.
"""
import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PAYLOAD = 1400
PORT = 9009
# Time in seconds in which the sender fills the link before the count begins.
SETTLE = 1.0


def send(address, bps, seconds):
    """Sends datagrams at a rate in bit/s of frames, and prints the offered rate."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((address, PORT))
    payload, gap = bytes(PAYLOAD), (PAYLOAD + 42) * 8 / bps
    begin, sent = time.monotonic(), 0
    while (now := time.monotonic()) < begin + seconds:
        # A late sender catches up, because both links have room for 1000 frames.
        while sent < (now - begin) / gap:
            try:
                sock.send(payload)
            except OSError:
                pass
            sent += 1
            if time.monotonic() > begin + seconds:
                break
        time.sleep(min(gap, 0.001))
    print(f"offered {sent * gap * bps / (time.monotonic() - begin)}", flush=True)


def count(seconds):
    """Prints the rate that the host's interface receives, in bit/s."""
    # An open socket, so that the kernel does not answer with "port unreachable".
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("0.0.0.0", PORT))
    interface = next(name for name in sorted(os.listdir("/sys/class/net")) if name.endswith("eth0"))
    received = lambda: (int(pathlib.Path(f"/sys/class/net/{interface}/statistics/rx_bytes").read_text()), time.monotonic())
    time.sleep(SETTLE)
    first, begin = received()
    time.sleep(seconds)
    last, end = received()
    print(f"counted {(last - first) * 8 / (end - begin)}", flush=True)


def ends(address, mbit, seconds):
    """Returns the commands of the sender and of the counter."""
    own = f"{sys.executable} {HERE / 'link.py'}"
    return f"{own} --send {address} {mbit * 1.2e6} {seconds + SETTLE + 1}", f"{own} --count {seconds}"


def told(text):
    """Returns the received and the offered rate in bit/s from the output of both. Exits if one is missing."""
    found = [re.search(rf"^{what} (\S+)", text, re.M) for what in ("counted", "offered")]
    if None in found:
        sys.exit(f"bench: nothing was counted:\n{text}")
    return dict(zip(("bps", "offered_bps"), (float(one[1]) for one in found)))


def round_trips(text):
    return [float(ms) for ms in re.findall(r"time=(\S+) ms", text)]


def pings(address):
    return f"ping -i 0.01 -c 300 {address}"


def weir_lab(weir, link, commands):
    """Runs prompt commands in a lab of two hosts behind one switch. Returns their output."""
    host = lambda number, more: f'[[host]]\nname = "h{number}"\nswitch = "s1"\nip = "10.9.0.{number}/24"\n{more}\n'
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "lab.toml"
        file.write_text('[[switch]]\nname = "s1"\n' + host(1, "") + host(2, link))
        execs = [word for command in ["pingall 10s", *commands] for word in ("--exec", command)]
        done = subprocess.run([weir, "emulate", file, *execs], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if "2 of 2 reached" not in done.stdout:
            sys.exit(f"bench: weir emulate failed:\n{done.stdout}{done.stderr}")
        return done.stdout


def weir_rate(weir, mbit, seconds):
    sender, counter = ends("10.9.0.2", mbit, seconds)
    link = f'rate = "{mbit}Mbit/s"\nbuffer = "{PAYLOAD + 42}kB"'
    return told(weir_lab(weir, link, [f"h1 {sender} &", f"h2 {counter}", "sleep 3s"]))


def weir_delay(weir, ms):
    link = f'delay = "{ms}ms"' if ms else ""
    return round_trips(weir_lab(weir, link, [f"h1 {pings('h2')}"]))


def tc_link(settings, command):
    """Joins two Mininet hosts by a TCLink, inside in_a_world_of_its_own. Returns the result of `command`."""
    from mininet.link import TCLink
    from mininet.net import Mininet

    net = Mininet(controller=None)
    one, two = net.addHost("h1"), net.addHost("h2")
    net.addLink(one, two, cls=TCLink, **settings)
    net.start()
    try:
        return command(one, two)
    finally:
        net.stop()


def mininet_rate(mbit, seconds):
    def command(one, two):
        sender, counter = ends(two.IP(), mbit, seconds)
        process = one.popen(sender.split(), text=True)
        text = two.cmd(counter)
        return told(text.replace("\r", "") + process.communicate()[0])

    return tc_link({"bw": mbit}, command)


def mininet_delay(ms):
    def command(one, two):
        if ms and "netem" not in one.cmd("tc qdisc show dev h1-eth0"):
            said = one.cmd(f"tc qdisc add dev lo root netem delay {ms}ms").split("\n")[0].strip()
            return {"problem": f"netem: {said}"}
        return {"round_trips_ms": round_trips(one.cmd(pings(two.IP())))}

    return tc_link({"delay": f"{ms}ms"} if ms else {}, command)


def in_a_world_of_its_own(arguments):
    """Runs this script with --mininet in PID, network and mount namespaces with an own /tmp. Returns the result.

    After a failure Mininet ends programs by name and removes files in /tmp; the namespaces keep this from others.
    """
    world = ("set -e; mount -t tmpfs tmpfs /mnt; mkdir /mnt/bench; mount --bind \"$BENCH\" /mnt/bench; mount -t tmpfs tmpfs /tmp; "
             "cd /tmp; ip link set lo up; exec /usr/bin/python3 /mnt/bench/link.py --mininet \"$@\"")
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", world, "sh", *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, "BENCH": str(HERE)}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return {"problem": " ".join((done.stderr or done.stdout).split())[-300:]}
    return json.loads(lines[-1])


def compare_rates(options):
    rows = []
    for mbit in map(int, options.rates.split(",")):
        row = {"mbit": mbit, "weir": [], "tclink": []}
        for _ in range(options.rounds):
            row["weir"].append(weir_rate(options.weir, mbit, options.seconds))
            row["tclink"].append(in_a_world_of_its_own(["rate", mbit, options.seconds]))
        rows.append(row)
        print(f"{mbit:5} Mbit/s   weir {errors(row['weir'], mbit * 1e6)}   TCLink {errors(row['tclink'], mbit * 1e6)}", flush=True)
    return rows


def errors(rounds, wanted):
    problems = [one["problem"] for one in rounds if "problem" in one]
    if problems:
        return f"not run: {problems[0]}"
    off = [(one["bps"] / wanted - 1) * 100 for one in rounds]
    least = min(one["offered_bps"] for one in rounds)
    starved = f", only {least / 1e6:.1f} Mbit/s were sent" if least < wanted * 1.05 else ""
    return f"{statistics.median(off):+.3f} % off ({max(off, key=abs):+.3f} at most{starved})"


def compare_delays(options):
    rows = {}
    for name, measure in [("weir", lambda ms: {"round_trips_ms": weir_delay(options.weir, ms)}),
                          ("TCLink", lambda ms: in_a_world_of_its_own(["delay", ms]))]:
        without, with_delay = measure(0), measure(options.delay)
        rows[name] = {"without": without, "with": with_delay}
        problem = without.get("problem") or with_delay.get("problem")
        if problem:
            print(f"{options.delay:5} ms       {name}: not run: {problem}", flush=True)
            continue
        rig, times = without["round_trips_ms"], sorted(with_delay["round_trips_ms"])
        late = [(time - 2 * options.delay - statistics.median(rig)) / 2 * 1000 for time in times]
        p99 = late[min(len(late) - 1, len(late) * 99 // 100)]
        rig99 = sorted(rig)[min(len(rig) - 1, len(rig) * 99 // 100)] / 2 * 1000
        print(f"{options.delay:5} ms       {name}: {statistics.median(late):+.1f} us off (p50), {p99:+.1f} us (p99); "
              f"half a round trip without the link's delay {statistics.median(rig) / 2 * 1000:.1f} us (p50), {rig99:.1f} us (p99)", flush=True)
    return rows


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--send":
        return send(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
    if len(sys.argv) > 2 and sys.argv[1] == "--count":
        return count(float(sys.argv[2]))
    if len(sys.argv) > 2 and sys.argv[1] == "--mininet":
        kind, *numbers = sys.argv[2:]
        found = mininet_rate(int(numbers[0]), float(numbers[1])) if kind == "rate" else mininet_delay(int(numbers[0]))
        return print(json.dumps(found))
    from veth import ROOT, WEIR, run, save_record

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rates", default="10,100,1000", help="of the link, in Mbit/s")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--delay", type=int, default=5, help="of the link, in ms")
    parser.add_argument("--weir", type=pathlib.Path, help="the weir to be measured, instead of target/release/weir, which is built first")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    if options.weir is None:
        run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT)
        options.weir = WEIR
    results = {"rates": compare_rates(options), "delays": compare_delays(options)}
    if not options.no_record:
        save_record("tclink", {"load": os.getloadavg()[0], "results": results})


if __name__ == "__main__":
    main()
