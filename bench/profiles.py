#!/usr/bin/env python3
"""Measures how far a measured profile is from its switch, as a user would: profile, then random commands and packets.

    bench/profiles.py [--switch ovs|bridge|weir] [--rounds 5] [--weir PATH] [--priority] [--record FILE]

ovs     Open vSwitch in user space, on veth pairs in a network namespace
bridge  the Linux bridge on the same veth pairs; it has no commands
weir    a `weir switch` without a profile

Each round profiles the switch anew (`weir profile --quick`) and runs the experiments model-validation-control and
model-validation-data with that profile, on the same switch. --priority gives the measuring program and the switch
real-time priority, the switch the higher one, so that other programs on the machine count less. Prints the errors of
each round, and median and range over the rounds. Needs root.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMESPACE = f"weirprof{os.getpid()}"
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


def run(*command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


def inside(*command):
    return ["ip", "netns", "exec", NAMESPACE, *map(str, command)]



@contextlib.contextmanager
def network():
    """Makes a namespace with three veth pairs d0-p0, d1-p1, d2-p2, and removes it afterwards."""
    run("ip", "netns", "add", NAMESPACE)
    try:
        run(*inside("ip", "link", "set", "lo", "up"))
        for at in range(3):
            run(*inside("ip", "link", "add", f"d{at}", "type", "veth", "peer", "name", f"p{at}"))
            for end in "dp":
                run(*inside("ip", "link", "set", f"{end}{at}", "up"))
        yield
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)


def ended(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def ovs(folder, priority):
    environment = dict(os.environ, OVS_RUNDIR=folder, OVS_LOGDIR=folder, OVS_DBDIR=folder)
    database, socket = f"{folder}/conf.db", f"unix:{folder}/db.sock"
    run("ovsdb-tool", "create", database, SCHEMA)
    started = []
    try:
        def start(*command):
            started.append(subprocess.Popen(inside(*command), env=environment, stderr=subprocess.DEVNULL))

        start("ovsdb-server", database, f"--remote=p{socket}")
        wait_for(lambda: os.path.exists(f"{folder}/db.sock"))
        run("ovs-vsctl", f"--db={socket}", "--no-wait", "init", environment=environment)
        start(*(["chrt", "-f", "20"] if priority else []), "ovs-vswitchd", socket, "--disable-system")
        bridge = ["--timeout=20", f"--db={socket}", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"]
        ports = [word for at in range(3) for word in ("--", "add-port", "br0", f"p{at}")]
        run("ovs-vsctl", *bridge, "fail_mode=secure", *ports, "--", "set-controller", "br0", "ptcp:6653", environment=environment)
        yield "tcp:127.0.0.1:6653"
    finally:
        for process in reversed(started):
            ended(process)


@contextlib.contextmanager
def bridge(_folder, _priority):
    run(*inside("ip", "link", "add", "br0", "type", "bridge"))
    for at in range(2):
        run(*inside("ip", "link", "set", f"p{at}", "master", "br0"))
    run(*inside("ip", "link", "set", "br0", "up"))
    yield None


@contextlib.contextmanager
def weir(folder, priority):
    ports = [word for at in range(3) for word in ("--port", f"{at + 1}=af_packet:p{at}")]
    command = [*(["chrt", "-f", "20"] if priority else []), WEIR, "switch", *ports, "--listen", "ptcp:6653"]
    process = subprocess.Popen(inside(*command), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        yield "tcp:127.0.0.1:6653"
    finally:
        ended(process)


SWITCHES = {"ovs": ovs, "bridge": bridge, "weir": weir}


def wait_for(is_true):
    until = time.monotonic() + 20
    while not is_true():
        if time.monotonic() > until:
            raise SystemExit("the switch did not start within 20 s")
        time.sleep(0.05)


def busy():
    """Returns processor time used and given away by the host, and all of it, in ticks."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], fields[7], sum(fields)


def one_round(target, number, folder, first_seed, priority):
    """Profiles the switch and validates the profile. Returns figures of the experiments by name."""
    data = "d0,d1,d2" if target else "d0,d1"
    prefix = inside(*(["chrt", "-f", "10"] if priority else []), WEIR)
    out = f"{folder}/round-{number}"
    only = [] if target else ["--only", "data"]
    before = busy()
    said = run(*prefix, "profile", *([target] if target else []), "--data", data, *only, "--quick", "--out", out)
    made = {"profile": pathlib.Path(f"{out}/profile.toml").read_text(encoding="utf-8"), "notes": []}
    made["notes"] = [line for line in said.splitlines() if line.startswith("note:")]
    for plane in ["data"] + (["control"] if target else []):
        record = f"{out}/{plane}.json"
        command = [*prefix, "experiment", f"model-validation-{plane}", "--data", data, "--profile", f"{out}/profile.toml"]
        command += ["--seed", str(first_seed + number), "--record", record] + (["--switch", target] if target else [])
        # Its status says whether the claim holds.
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        made[plane] = json.loads(pathlib.Path(record).read_text(encoding="utf-8"))["figures"]
    after = busy()
    ticks = max(after[2] - before[2], 1)
    made["machine"] = {"busy": (after[0] - before[0]) / ticks, "stolen": (after[1] - before[1]) / ticks}
    return made


def figures(made):
    """Returns the errors of a round by case and metric, in percent."""
    return {
        (figure["case"], figure["metric"]): figure["ours"]
        for plane in ("data", "control")
        for figure in made.get(plane, [])
        if figure["metric"] in ("error rate", "error of all runs together", "chance of a run")
        and figure["case"].split()[-1] in ("packets", "commands")
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switch", choices=SWITCHES, default="ovs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--weir", default=str(ROOT / "target/release/weir"))
    parser.add_argument("--priority", action="store_true")
    parser.add_argument("--record")
    options = parser.parse_args()
    global WEIR
    WEIR = options.weir
    rounds, folder = [], tempfile.mkdtemp(prefix="weir-profiles-")
    try:
        with network(), SWITCHES[options.switch](folder, options.priority) as target:
            for number in range(options.rounds):
                rounds.append(one_round(target, number, folder, options.seed, options.priority))
                print(f"round {number + 1}: machine {rounds[-1]['machine']}", flush=True)
                for (case, metric), value in sorted(figures(rounds[-1]).items()):
                    print(f"  {case:14} {metric:28} {value:7.1f} %", flush=True)
                save(options, rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("median over the rounds, and range:")
    for key in sorted({key for made in rounds for key in figures(made)}):
        values = [figures(made)[key] for made in rounds if key in figures(made)]
        print(f"  {key[0]:14} {key[1]:28} {statistics.median(values):7.1f} % ({min(values):.1f} to {max(values):.1f})")


def save(options, rounds):
    if options.record:
        about = {
            "command": f"bench/profiles.py --switch {options.switch} --rounds {options.rounds} --seed {options.seed}"
            + (" --priority" if options.priority else ""),
            "date": datetime.date.today().isoformat(),
            "commit": run("git", "-C", str(ROOT), "rev-parse", "HEAD").strip(),
            "cores": os.cpu_count(),
            "kernel": os.uname().release,
        }
        if options.switch == "ovs":
            about["peer"] = run("ovs-vswitchd", "--version").splitlines()[0]
        pathlib.Path(options.record).write_text(json.dumps({"about": about, "rounds": rounds}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
