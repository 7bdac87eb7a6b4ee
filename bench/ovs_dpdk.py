#!/usr/bin/env python3
"""Compares the packet path of weir with that of OVS-DPDK on one core, with the same entries and the same packets.

    bench/ovs_dpdk.py [--quick] [--rows port,wildcard-1k,...] [--routes FILE] [--rules DIRECTORY] [--record NAME]

Each row is a case of `weir bench datapath` (docs/guide/bench.md). weir writes the case to files. OVS gets its entries
and, in a net_null device of DPDK, its packets (bench/peers/flowgen.c); the first 256 frames are compared before any
measurement. The script tries the settings of OVS's caches and keeps the best. Then it measures both in turn, five times
by default (--pairs): OVS is stopped (SIGSTOP) while weir runs. Figures are packets per second of the processor time of
the thread that does the work, so other programs on the machine have little influence. The ratio is the median of the
pairs' ratios.

Rows that need a file are left out without it. --routes takes prefixes, one in each line; --rules takes a directory with
acl1_10k, fw1_10k and ipc1_10k in ClassBench's format (each plain or .gz). --pcap measures with looping captures
instead. Each finished row is added to a record in bench/records. When the script is started again with the same
--record, it does not repeat the rows in the record (--fresh repeats all).

Needs root, 2 cores, 4 GiB of memory (8 GiB for rows of a million entries), and Debian's packages openvswitch-switch,
openvswitch-switch-dpdk, dpdk, libdpdk-dev, gcc.
"""
import argparse
import datetime
import gzip
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = ROOT / "target/release/weir"
OVS_DPDK = pathlib.Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
SCHEMA = pathlib.Path("/usr/share/openvswitch/vswitch.ovsschema")
CORES = sorted(os.sched_getaffinity(0))
HUGE_PAGES = 1024
# Nice value of the measured threads: fewer other threads interrupt them and displace their cache contents.
PRIORITY = -20
# Settings of OVS's caches. emc-insert-inv-prob=20: the EMC inserts one in 20 misses, best for large numbers of flows.
CACHES = {
    "emc": "emc-insert-inv-prob=20 other_config:smc-enable=false",
    "smc": "emc-insert-inv-prob=0 other_config:smc-enable=true",
    "none": "emc-insert-inv-prob=0 other_config:smc-enable=false",
}
# Rows: name, arguments of `weir bench datapath`, needed file, maximum time in seconds for OVS to learn the flows.
# From 100,000 flows on the flows come in random order, because a repeated order makes large tables look faster.
RANDOM = "--order random"
ROWS = [
    ("port", "port", None, 5),
    ("wildcard-1k", "wildcard", None, 5),
    ("wildcard-1M", f"wildcard --flows 1M {RANDOM}", None, 5),
    ("mac-1k", "mac", None, 5),
    ("udp-1k", "udp", None, 5),
    ("mac-100k", f"mac --entries 100k {RANDOM}", None, 20),
    ("udp-100k", f"udp --entries 100k {RANDOM}", None, 20),
    ("masks-1k", "masks", None, 5),
    ("masks-1M", f"masks --flows 1M {RANDOM}", None, 8),
    ("pipeline", "pipeline", None, 5),
    ("attack", "attack", None, 15),
    ("acl1", f"classbench {RANDOM}", "acl1_10k", 25),
    ("fw1", f"classbench {RANDOM}", "fw1_10k", 25),
    ("ipc1", f"classbench {RANDOM}", "ipc1_10k", 25),
    ("acl1-attack", f"attack {RANDOM}", "acl1_10k", 25),
    ("lpm", f"lpm {RANDOM}", "routes", 45),
    ("mac-1M", f"mac --entries 1M {RANDOM}", None, 45),
    ("mpls-1M", f"mpls --entries 1M {RANDOM}", None, 45),
    ("udp-1M", f"udp --entries 1M {RANDOM}", None, 45),
    ("first-15s", f"udp --entries 100k {RANDOM}", None, 0),
]
QUICK = ["port", "wildcard-1k", "wildcard-1M", "mac-1k", "udp-1k", "udp-100k", "masks-1k", "masks-1M", "pipeline"]
# Row that is measured from the first packet on, with OVS in its default settings; and its duration.
AS_SHIPPED, AS_SHIPPED_SECONDS = "first-15s", 15


def fail(why):
    sys.exit(f"bench/ovs_dpdk.py: {why}")


def free():
    """Lets a child process run on all cores; this script itself is pinned to the first one."""
    os.sched_setaffinity(0, CORES)


def run(command, check=True, **more):
    words = command if isinstance(command, list) else command.split()
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=free, **more)
    if check and done.returncode:
        fail(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def note(text):
    print(text, file=sys.stderr, flush=True)


def wait_for(ready, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            fail(f"{what} did not get ready in {seconds} s")
        time.sleep(0.1)


def stop(process):
    """Ends a process that this script started, even if it is stopped by SIGSTOP."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 10)):
        if process.poll() is None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                pass


class HugePages:
    """Context with enough huge pages for OVS's packet buffers; restores the previous number at its end."""

    FILE = pathlib.Path("/proc/sys/vm/nr_hugepages")

    def __enter__(self):
        self.before = int(self.FILE.read_text())
        if self.before < HUGE_PAGES:
            self.FILE.write_text(str(HUGE_PAGES))
            if int(self.FILE.read_text()) < HUGE_PAGES:
                self.__exit__()
                fail(f"the kernel has no {HUGE_PAGES} huge pages of 2 MiB: free memory, or reboot")

    def __exit__(self, *_):
        if self.before < HUGE_PAGES:
            self.FILE.write_text(str(self.before))


class Case:
    """Entries and flows of a row, as files that weir has written."""

    def __init__(self, folder, arguments, generator):
        self.arguments, self.folder = arguments, folder / "case"
        shutil.rmtree(self.folder, ignore_errors=True)
        run([str(WEIR), "bench", "datapath", *arguments, "--out", str(self.folder)])
        told = json.loads((self.folder / "generator.json").read_text())
        self.entries, self.flows = told["entries"], told["flows"]
        names = ("headers", "flows", "spread", "size", "order", "seed")
        self.env = {f"FLOWGEN_{name.upper()}": str(told[name]) for name in names}
        self.env |= {"FLOWGEN_LIST": str(self.folder / "list"), "FLOWGEN_DEVICE": "net_null0"}
        self.compare(generator)

    def compare(self, generator):
        """Exits if the generators of weir and OVS do not make the same packets."""
        first, size = (self.folder / "first").read_bytes(), 60
        count = len(first) // size
        shown = subprocess.run([str(generator), str(count)], capture_output=True, env=os.environ | self.env).stdout
        frames = b"".join(shown[at * 64:at * 64 + size] for at in range(count))
        if frames != first:
            fail(f"{' '.join(self.arguments)}: flowgen.c makes other packets than weir: {generator} is not of this version")


class Ovs:
    """A private OVS-DPDK with its own database, sockets and daemons, between two DPDK devices."""

    def __init__(self, folder, case, source, preload, tuned):
        self.folder, self.case, self.tuned, self.started = folder / "ovs", case, tuned, []
        self.folder.mkdir()
        places = {name: str(self.folder) for name in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")}
        self.env = os.environ | places
        self.database, self.control = f"unix:{self.folder}/db.sock", self.folder / "vs.ctl"
        try:
            self.start(source, preload)
        except BaseException:
            self.stop()
            raise

    def start(self, source, preload):
        run(f"ovsdb-tool create {self.folder}/conf.db {SCHEMA}", env=self.env)
        self.launch(f"ovsdb-server --remote=p{self.database} --unixctl={self.folder}/db.ctl {self.folder}/conf.db", {})
        wait_for((self.folder / "db.sock").exists, "ovsdb-server")
        self.vsctl("--no-wait init")
        settings = ["dpdk-init=true", "dpdk-socket-mem=1024", f"dpdk-lcore-mask={1 << CORES[0]:#x}",
                    f"pmd-cpu-mask={1 << CORES[-1]:#x}", "n-handler-threads=1", "n-revalidator-threads=1"]
        if self.tuned:
            settings += ["flow-limit=4000000", "max-idle=3600000"]
        self.vsctl("--no-wait set Open_vSwitch . " + " ".join("other_config:" + setting for setting in settings))
        run(["ovs-vsctl", f"--db={self.database}", "--no-wait", "set", "Open_vSwitch", ".",
             'other_config:dpdk-extra="--in-memory --no-pci --no-telemetry"'], env=self.env)
        self.daemon = self.launch(f"{OVS_DPDK} {self.database} --unixctl={self.control} --log-file={self.folder}/vs.log",
                                  self.case.env | {"LD_PRELOAD": str(preload)})
        wait_for(self.control.exists, "ovs-vswitchd-dpdk")
        self.vsctl("add-br br0 -- set bridge br0 datapath_type=netdev fail_mode=secure"
                   " protocols=OpenFlow10,OpenFlow13,OpenFlow14")
        self.add_port("p1", "net_null1", 2)
        if self.tuned:
            self.appctl("upcall/set-flow-limit 4000000")
        begin = time.monotonic()
        bridge = f"unix:{self.folder}/br0.mgmt"
        run(f"ovs-ofctl --bundle -O OpenFlow14 add-flows {bridge} {self.case.folder}/entries", env=self.env)
        self.load_seconds = time.monotonic() - begin
        # The receiving port is added after the entries, so that all entries exist before the first packet.
        self.add_port("p0", source, 1)
        self.thread = self.find_thread()

    def launch(self, command, env):
        log = open(self.folder / "output", "ab")
        process = subprocess.Popen(command.split(), env=self.env | env, stdout=log, stderr=log, preexec_fn=free)
        self.started.append(process)
        return process

    def stop(self):
        for process in reversed(self.started):
            stop(process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def vsctl(self, command):
        return run(f"ovs-vsctl --db={self.database} --timeout=60 {command}", env=self.env)

    def appctl(self, command, check=True):
        return run(f"ovs-appctl -t {self.control} {command}", check, env=self.env)

    def add_port(self, name, device, number):
        self.vsctl(f"add-port br0 {name} -- set interface {name} type=dpdk options:dpdk-devargs={device} ofport_request={number}")
        if "could not" in (error := self.vsctl(f"get interface {name} error")):
            fail(f"OVS does not open {device}: {error.strip()}")

    def find_thread(self):
        """Returns the /proc folder of the thread that polls the devices, and raises the thread's priority."""
        for task in pathlib.Path(f"/proc/{self.daemon.pid}/task").iterdir():
            if (task / "comm").read_text().startswith("pmd"):
                os.setpriority(os.PRIO_PROCESS, int(task.name), PRIORITY)
                return task
        fail(f"OVS started no thread on core {CORES[-1]}")

    def cache(self, name):
        self.vsctl(f"set Open_vSwitch . other_config:{CACHES[name]}")
        time.sleep(0.3)

    def learn(self, seconds):
        """Waits for half a second without a cache miss, at most `seconds`.

        Returns the time in seconds, and True if OVS learned all flows in it.
        """
        begin = time.monotonic()
        while (spent := time.monotonic() - begin) < seconds:
            self.appctl("dpif-netdev/pmd-stats-clear")
            time.sleep(0.5)
            if self.statistics()["misses"] == 0:
                break
        if self.tuned:
            self.appctl("revalidator/pause")
        return spent, spent < seconds

    def statistics(self):
        text = self.appctl("dpif-netdev/pmd-stats-show")
        mine = text.partition(f"core_id {CORES[-1]}:")[2].partition("\nmain thread")[0]

        def found(name):
            value = re.search(rf"{name}:\s*([\d.]+)", mine)
            return float(value[1]) if value else 0.0
        return {"packets": found("packets received"), "misses": found("miss with success upcall") + found("miss with failed upcall"),
                "subtables": found("avg. subtable lookups per megaflow hit")}

    def measure(self, seconds):
        """Returns millions of packets per second of the polling thread's processor time, and OVS's statistics."""
        def used():
            return int((self.thread / "schedstat").read_text().split()[0]) - before
        self.appctl("dpif-netdev/pmd-stats-clear")
        before = 0
        before, deadline = used(), time.monotonic() + 10 * seconds
        time.sleep(seconds)
        # On a busy machine, wait until the thread has had half of the time in processor time.
        while used() < seconds * 5e8 and time.monotonic() < deadline:
            time.sleep(seconds / 4)
        told = self.statistics()
        if not (spent := used()):
            fail("OVS's polling thread got no processor time: the machine is too busy to measure on")
        return told["packets"] * 1e3 / spent, told

    def pause(self):
        self.daemon.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.daemon.send_signal(signal.SIGCONT)

    def left(self):
        """Returns the share of the frames received by one device that the other has sent."""
        text = run(f"ovs-ofctl -O OpenFlow13 dump-ports unix:{self.folder}/br0.mgmt", env=self.env)
        came, went = re.search(r"port +1: +rx pkts=(\d+)", text), re.search(r"port +2: .*?tx pkts=(\d+)", text, re.DOTALL)
        if not came or not went or not int(came[1]) or not int(went[1]):
            fail(f"OVS forwards nothing: {text}")
        return int(went[1]) / int(came[1])

    def resident_mib(self):
        status = pathlib.Path(f"/proc/{self.daemon.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+)", status)[1]) >> 10


def weir(arguments, seconds, warm_up="300ms"):
    text = run(["nice", "-n", str(PRIORITY), str(WEIR), "bench", "datapath", *arguments, "--core", str(CORES[-1]), "--time", f"{int(seconds * 1000)}ms",
                "--warm-up", warm_up, "--json"])
    return json.loads(text)["cases"][0]


def best_cache(ovs, seconds):
    """Tries each setting of OVS's caches once and keeps the fastest. Returns its name and the rates of all settings."""
    tried = {}
    for name in CACHES:
        ovs.cache(name)
        ovs.measure(0.5)
        tried[name] = ovs.measure(seconds)[0]
    best = max(tried, key=tried.get)
    ovs.cache(best)
    ovs.measure(0.5)
    return best, tried


def measure_row(row, tools, options):
    name, arguments, _, learning = row
    case = Case(tools.folder, arguments, tools.generator)
    tuned = name != AS_SHIPPED
    source = f"net_pcap0,rx_pcap={case.folder}/flows.pcap,infinite_rx=1" if options.pcap else "net_null0"
    begin = time.monotonic()
    ovs = Ovs(tools.folder, case, source, tools.preload, tuned)
    try:
        result = in_turn(ovs, case, learning, options) if tuned else from_the_first_packet(ovs, case)
        result |= {"ovs_left": ovs.left(), "arguments": arguments, "entries": case.entries, "flows": case.flows, "ovs_load_seconds": ovs.load_seconds,
                   "ovs_resident_mib": ovs.resident_mib(), "row_seconds": time.monotonic() - begin}
        return result
    finally:
        ovs.stop()


def in_turn(ovs, case, learning, options):
    spent, learned = ovs.learn(learning)
    cache, tried = best_cache(ovs, options.seconds)
    result = {"cache": cache, "tried": tried, "learned": learned, "learning_seconds": spent, "ovs": [], "weir": [], "ratios": []}
    for _ in range(options.pairs):
        theirs, told = ovs.measure(options.seconds)
        ovs.pause()
        try:
            ours = weir(case.arguments, options.seconds)
        finally:
            ovs.go_on()
        result["ovs"].append(theirs)
        result["weir"].append(ours["mpps"])
        result["ratios"].append(ours["mpps"] / theirs)
        time.sleep(0.2)
    return result | {"ovs_misses": told["misses"], "ovs_subtables": told["subtables"], "weir_last": ours}


def from_the_first_packet(ovs, case):
    """Measures both switches in their default settings from the first packet on: one pair of 15 seconds."""
    per_second = [ovs.measure(1)[0] for _ in range(AS_SHIPPED_SECONDS)]
    ovs.pause()
    try:
        ours = weir(case.arguments, AS_SHIPPED_SECONDS, "0s")
    finally:
        # The caller reads OVS's counters next.
        ovs.go_on()
    theirs = statistics.mean(per_second)
    return {"cache": "as shipped", "ovs": [theirs], "weir": [ours["mpps"]], "ratios": [ours["mpps"] / theirs],
            "ovs_seconds": per_second, "weir_seconds": ours["seconds"], "weir_last": ours}


class Tools:
    """A folder for files, and the generator, which is built here."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.preload, self.generator = self.folder / "flowgen.so", self.folder / "flowgen"
        source = ROOT / "bench/peers/flowgen.c"
        flags = run("pkg-config --cflags libdpdk").split()
        run(["cc", "-O3", "-shared", "-fPIC", "-o", str(self.preload), str(source), *flags, "-march=native"])
        run(["cc", "-O2", "-DFLOWGEN_SHOW", "-o", str(self.generator), str(source)])

    def unpacked(self, path):
        if path.suffix != ".gz":
            return path
        plain = self.folder / path.stem
        if not plain.exists():
            plain.write_bytes(gzip.decompress(path.read_bytes()))
        return plain


def check_machine():
    missing = [package for package, there in {
        "openvswitch-switch": SCHEMA.exists() and shutil.which("ovs-vsctl"),
        "openvswitch-switch-dpdk": OVS_DPDK.exists(),
        "gcc": shutil.which("cc"),
        "pkg-config": shutil.which("pkg-config"),
    }.items() if not there]
    if not missing and subprocess.run(["pkg-config", "--exists", "libdpdk"]).returncode:
        missing.append("libdpdk-dev")
    if missing:
        fail(f"packages are missing: apt install {' '.join(missing)}")
    if os.geteuid():
        fail("needs root for huge pages: run it with sudo")
    if len(CORES) < 2:
        fail(f"found {len(CORES)} core, expected 2: one to measure on, one for the rest")


def rows_of(options, tools):
    """Yields the requested rows whose files exist, with their full arguments."""
    names = [row[0] for row in ROWS]
    wanted = options.rows.split(",") if options.rows else QUICK if options.quick else names
    if unknown := set(wanted) - set(names):
        fail(f"no row {', '.join(sorted(unknown))}; rows are {', '.join(names)}")
    for name, arguments, needs, learning in ROWS:
        if name not in wanted:
            continue
        words = arguments.split()
        if needs:
            found = options.routes if needs == "routes" else file_of(options.rules, needs)
            if found is None:
                note(f"{name}: left out, it needs --{'routes' if needs == 'routes' else 'rules'}")
                continue
            words += ["--file", str(tools.unpacked(found))]
        if options.pcap:
            if needs is None and "1M" in arguments or name == "lpm":
                note(f"{name}: left out, a looping capture has 100,000 flows at most")
                continue
            words += ["--ports", "pcap"]
        yield name, words, needs, learning


def file_of(folder, name):
    if folder is None:
        return None
    there = (path for path in (folder / name, folder / f"{name}.gz") if path.exists())
    return next(there, None)


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"cpu": cpu[1] if cpu else platform.machine(), "cores": len(CORES), "kernel": platform.release(),
            "ovs": run(f"{OVS_DPDK} --version", check=False).splitlines()[:2],
            "gcc": run("cc --version", check=False).partition("\n")[0], "load": os.getloadavg()[0]}


def show(name, result):
    ours, theirs = statistics.median(result["weir"]), statistics.median(result["ovs"])
    ratio = statistics.median(result["ratios"])
    spread = f"{min(result['ratios']):.2f}-{max(result['ratios']):.2f}"
    misses = "" if result.get("learned", True) else "  (OVS had not learned all flows)"
    print(f"{name:12} {theirs:10.2f} {result['cache']:>11} {ours:10.2f} {ratio:9.2f}x {spread:>13}{misses}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows, three pairs of half a second: below five minutes")
    parser.add_argument("--rows", help="only these")
    parser.add_argument("--pairs", type=int, help="pairs of each row [5, quick: 3]")
    parser.add_argument("--seconds", type=float, help="length of each sample [1, quick: 0.5]")
    parser.add_argument("--routes", type=pathlib.Path, help="prefixes, one in each line, for the row lpm")
    parser.add_argument("--rules", type=pathlib.Path, help="directory of ClassBench rule sets")
    parser.add_argument("--pcap", action="store_true", help="packets from looping captures")
    parser.add_argument("--binary", type=pathlib.Path, help="weir as it was built before [it is built]")
    parser.add_argument("--record", help="the record's name [ovs-dpdk, ovs-dpdk-quick, ovs-dpdk-pcap]")
    parser.add_argument("--fresh", action="store_true", help="measure rows again that are in the record")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    options.pairs = options.pairs or (3 if options.quick else 5)
    options.seconds = options.seconds or (0.5 if options.quick else 1.0)
    check_machine()
    commit = run("git describe --always --dirty", cwd=ROOT, check=False).strip()
    if options.binary:
        global WEIR
        WEIR = options.binary.resolve()
    else:
        run("cargo build --quiet --release --locked -p weir-cli", cwd=ROOT, env=os.environ | {"WEIR_COMMIT": commit})
    # This script stays on the first core, so that it does not disturb the measured one.
    os.sched_setaffinity(0, CORES[:1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder, HugePages():
        measure_all(options, Tools(folder), commit)


def measure_all(options, tools, commit):
    file = record_file(options)
    record = json.loads(file.read_text()) if file and file.exists() and not options.fresh else {"rows": {}}
    record |= {"command": "bench/ovs_dpdk.py " + " ".join(sys.argv[1:]), "commit": commit, "machine": machine(),
               "pairs": options.pairs, "seconds": options.seconds, "units": "millions of packets per second of processor time"}
    print(f"{'':12} {'OVS-DPDK':>10} {'cache':>11} {'weir':>10} {'weir/OVS':>10} {'from-to':>13}")
    for row in rows_of(options, tools):
        name = row[0]
        if name not in record["rows"]:
            note(f"{name}: measuring")
            record["rows"][name] = measure_row(row, tools, options) | {"commit": commit, "load": os.getloadavg()[0]}
            if file:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(record, indent=1) + "\n")
        show(name, record["rows"][name])
    if file:
        print(f"record: {file.relative_to(ROOT)}")


def record_file(options):
    if options.no_record:
        return None
    name = options.record or "ovs-dpdk" + ("-pcap" if options.pcap else "") + ("-quick" if options.quick else "")
    cpu = re.sub(r"[^a-z0-9]+", "-", machine()["cpu"].lower()).strip("-")
    return ROOT / "bench/records" / f"{datetime.date.today()}-{cpu}" / f"{name}.json"


if __name__ == "__main__":
    main()
