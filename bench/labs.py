"""Networks to measure: plans, a running controller, an emulated lab, and flows whose packets are counted."""
import array
import ctypes
import http.client
import json
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

CLONE_NEWNET = 0x40000000
# Not in the module `socket`: Linux, asm-generic/socket.h.
SO_RCVBUFFORCE = 33
LIBC = ctypes.CDLL(None, use_errno=True)


class Plan:
    """A network: switches by name with their datapath ids, links and hosts with their ports."""

    def __init__(self, first_dpid=1):
        self.switches, self.links, self.hosts = {}, [], []
        self.ports, self.first_dpid = {}, first_dpid

    def add_switch(self, name):
        self.switches[name] = self.first_dpid + len(self.switches)
        self.ports[name] = 0

    def _port(self, switch):
        self.ports[switch] += 1
        return self.ports[switch]

    def add_link(self, a, b):
        self.links.append(((a, self._port(a)), (b, self._port(b))))

    def add_host(self, switch):
        number = len(self.hosts) + 1
        self.hosts.append({"name": f"h{number}", "switch": switch, "port": self._port(switch),
                           "ip": f"10.1.0.{number}", "mac": f"0a:00:00:00:00:{number:02x}"})

    def joined(self, a, b):
        return any({a, b} == {one[0], other[0]} for one, other in self.links)

    def far_end(self, switch, port):
        """Returns the switch and port at the other end of a link; None if the port has no link."""
        for ends in self.links:
            for near, far in (ends, ends[::-1]):
                if near == (switch, port):
                    return far
        return None

    def switch_of(self, dpid):
        return next(name for name, known in self.switches.items() if known == dpid)

    def text(self, port, rate="100Mbit/s", delay="100us"):
        """Returns the scenario file, for a controller at a TCP port of this machine."""
        lines = ['name = "bench-network"', "[controller]", f'connect = "tcp:127.0.0.1:{port}"']
        for name, dpid in self.switches.items():
            lines += ["[[switch]]", f'name = "{name}"', f"dpid = {dpid}"]
        for host in self.hosts:
            lines += ["[[host]]", f'name = "{host["name"]}"', f'switch = "{host["switch"]}"', f'port = {host["port"]}',
                      f'ip = "{host["ip"]}/24"', f'mac = "{host["mac"]}"']
        for (a, a_port), (b, b_port) in self.links:
            lines += ["[[link]]", f'ends = ["{a}", "{b}"]', f"ports = [{a_port}, {b_port}]", f'rate = "{rate}"',
                      f'delay = "{delay}"']
        return "\n".join(lines) + "\n"


def fat_tree(k=4):
    """Returns the network of examples/fat-tree.toml: k pods, a core of k*k/4 switches, k*k*k/4 hosts."""
    plan, half = Plan(), k // 2
    cores = [f"c{number}" for number in range(1, half * half + 1)]
    for name in cores:
        plan.add_switch(name)
    for pod in range(1, k + 1):
        above, edge = ([f"{kind}{pod}-{place}" for place in range(1, half + 1)] for kind in "ae")
        for name in above + edge:
            plan.add_switch(name)
        for low in edge:
            for _ in range(half):
                plan.add_host(low)
        for place, high in enumerate(above):
            for low in edge:
                plan.add_link(high, low)
            for core in cores[place * half:(place + 1) * half]:
                plan.add_link(core, high)
    return plan


def random_network(seed, switches, links, first_dpid=1):
    """Returns a connected network without hosts that is drawn from a seed."""
    dice, plan = random.Random(seed), Plan(first_dpid)
    names = [f"s{number}" for number in range(1, switches + 1)]
    for name in names:
        plan.add_switch(name)
    for number in range(1, switches):
        plan.add_link(names[dice.randrange(number)], names[number])
    while len(plan.links) < links:
        a, b = dice.sample(names, 2)
        if not plan.joined(a, b):
            plan.add_link(a, b)
    return plan


class ApiSocket(http.client.HTTPConnection):
    """Connection to the controller's interface by its Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class RunningController:
    """`weir controller --app forwarding`, as a process of its own. `prefix` begins the command, as in taskset."""

    def __init__(self, weir, folder, port, options=(), prefix=()):
        self.socket = folder / f"network-{port}.controller"
        command = [*prefix, weir, "controller", "--app", "forwarding", "--listen", f"tcp:127.0.0.1:{port}", "--name",
                   f"network-{port}", "--control-socket", self.socket, *options]
        # Errors go to a file: a pipe that nobody reads would fill.
        self.errors = (folder / "controller.err").open("a")
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"unix:(\S+?\.api)", line)
        if not found:
            self.stop()
            sys.exit(f"network: the controller did not start: {line}{(folder / 'controller.err').read_text()}")
        self.api, self.last_event = found[1], 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for _ in self.process.stdout:
            pass

    def ask(self, method, route, body=None):
        """Sends a request. Returns the status and the reply."""
        connection = ApiSocket(self.api)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, f"/api/v1/{route}", body and json.dumps(body), headers)
        with connection.getresponse() as response:
            text = response.read()
            connection.close()
            return response.status, json.loads(text) if text else None

    def get(self, route):
        status, reply = self.ask("GET", route)
        if status != 200:
            raise RuntimeError(f"GET {route}: {status} {reply}")
        return reply

    def events(self):
        """Returns the events since the last call."""
        found = []
        while True:
            some = self.get(f"events?after={self.last_event}&most=1000")
            some = some if isinstance(some, list) else some["events"]
            if not some:
                return found
            self.last_event = some[-1]["number"]
            found += some

    def wait(self, ready, what, seconds, look_every=0.05):
        """Waits until a function of the state of the network is true. Returns that state."""
        deadline = time.monotonic() + seconds
        while True:
            state = self.get("network")
            if ready(state):
                return state
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what}: not within {seconds} s")
            time.sleep(look_every)

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.errors.close()


class RunningLab:
    """`weir emulate` with a plan's network, whose commands come from this program."""

    def __init__(self, weir, folder, plan, port, prefix=()):
        self.plan, self.weir = plan, weir
        file = folder / f"network-{port}.toml"
        file.write_text(plan.text(port))
        command = [*prefix, weir, "emulate", "--cli", file]
        self.errors = (folder / "lab.err").open("w+")
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=self.errors, text=True)
        self.folder = f"/run/weir/labs/{self.process.pid}"
        deadline = time.monotonic() + 60
        while "control and links up" not in (folder / "lab.err").read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                sys.exit(f"network: the lab did not start: {(folder / 'lab.err').read_text()}")
            time.sleep(0.02)

    def command(self, line):
        """Gives a command of the prompt. Returns the time just before."""
        before = time.monotonic()
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return before

    def link(self, link, change):
        (a, _), (b, _) = link
        return self.command(f"link {a} {b} {change}")

    def way(self, source, target, patience=10):
        """Returns the links by which packets go from one host to another, from the switches' entries. While ways change
        the entries may lead nowhere; then it looks again."""
        deadline = time.monotonic() + patience
        while True:
            try:
                return self._way(source, target)
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _way(self, source, target):
        switch, links = source["switch"], []
        while switch != target["switch"]:
            text = subprocess.run([self.weir, "ctl", "--socket", f"{self.folder}/{switch}.sock", "dump-flows"],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
            found = re.search(rf"table=3,.*dl_dst={target['mac']} actions=output:(\d+)", text)
            far = found and self.plan.far_end(switch, int(found[1]))
            if not far or len(links) > len(self.plan.switches):
                raise RuntimeError(f"switch {switch} has no way to {target}, links so far {links}:\n{text}")
            links.append(((switch, int(found[1])), far))
            switch = far[0]
        return links

    def stop(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                subprocess.run([self.weir, "cleanup"], stdout=subprocess.DEVNULL, check=False)
        self.errors.close()


def socket_of(namespace):
    """Returns a UDP socket in a network namespace. The thread comes back to its own namespace."""
    with open("/proc/self/ns/net") as own, open(f"/run/netns/{namespace}") as other:
        if LIBC.setns(other.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
        try:
            return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        finally:
            if LIBC.setns(own.fileno(), CLONE_NEWNET):
                sys.exit("network: cannot leave a network namespace")


class Flows:
    """Packets from hosts of a lab to others: each flow (source, target, port) sends one every `interval` seconds.

    Flows take turns within the interval, in groups. `sent[flow]` has the times at which packets were sent, by number; `copies[flow]`
    how often each arrived.
    """

    STAMP = struct.Struct("!II")
    TICK = 0.0005

    def __init__(self, lab, flows, interval):
        self.flows, self.interval = flows, interval
        self.sent = [array.array("d") for _ in flows]
        self.copies = [bytearray() for _ in flows]
        self.refused = 0
        self.running = True
        hosts = {host["name"]: host for flow in flows for host in flow[:2]}
        namespace = {name: f"weir-{lab.process.pid}-{name}" for name in hosts}
        self.senders = {name: socket_of(namespace[name]) for name in {flow[0]["name"] for flow in flows}}
        self.receivers = []
        for name, port in {(flow[1]["name"], flow[2]) for flow in flows}:
            receiver = socket_of(namespace[name])
            receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
            receiver.bind((hosts[name]["ip"], port))
            receiver.setblocking(False)
            self.receivers.append(receiver)
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]
        for thread in self.threads:
            thread.start()

    def _send(self):
        plan = [(number, self.senders[source["name"]].sendto, (target["ip"], port), self.sent[number], self.copies[number])
                for number, (source, target, port) in enumerate(self.flows)]
        # Packets leave in groups, at most one group each half a millisecond: each sleep costs processor time.
        size = max(1, round(len(plan) * self.TICK / self.interval))
        groups = [plan[first:first + size] for first in range(0, len(plan), size)]
        gap, due, pack = self.interval / len(groups), time.monotonic(), self.STAMP.pack
        while self.running:
            for group in groups:
                now = time.monotonic()
                if due > now:
                    time.sleep(due - now)
                    now = time.monotonic()
                # After a stop of the machine packets are not made up for: they would be a burst.
                due = max(due, now - self.interval) + gap
                for number, send, address, sent, copies in group:
                    copies.append(0)
                    sent.append(now)
                    try:
                        send(pack(number, len(sent) - 1), address)
                    except OSError:
                        # Not sent: what the host itself refuses says nothing about the network.
                        copies[-1] = 1
                        self.refused += 1

    def _receive(self):
        poll = select.epoll()
        by_fd = {receiver.fileno(): receiver for receiver in self.receivers}
        for fd in by_fd:
            poll.register(fd, select.EPOLLIN)
        size, unpack = self.STAMP.size, self.STAMP.unpack
        while self.running:
            for fd, _ in poll.poll(0.1):
                receiver = by_fd[fd]
                try:
                    while True:
                        number, place = unpack(receiver.recv(size))
                        copies = self.copies[number]
                        copies[place] = min(copies[place] + 1, 255)
                except BlockingIOError:
                    pass
        poll.close()

    def stop(self):
        self.running = False
        for thread in self.threads:
            thread.join()
        for one in [*self.senders.values(), *self.receivers]:
            one.close()

    def lost(self, begin, end):
        """Returns for each flow the times at which packets were sent that did not arrive, from `begin` to `end`."""
        return [[at for at, copies in zip(sent, self.copies[number]) if begin <= at < end and not copies]
                for number, sent in enumerate(self.sent)]

    def totals(self, begin, end):
        """Returns the numbers of packets sent, lost and repeated from `begin` to `end`."""
        found = [copies for number, sent in enumerate(self.sent) for at, copies in zip(sent, self.copies[number])
                 if begin <= at < end]
        return {"packets": len(found), "lost": found.count(0), "repeated": sum(copies > 1 for copies in found)}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def loadavg():
    return os.getloadavg()[0]
