#!/usr/bin/env python3
"""Compares predicted delays with simulated ones on random networks: how far the formulas are off behind several links.

    bench/networks.py [--networks 120] [--seed 14] [--duration 120s] [--weir FILE] [--before FILE]

Networks are trees, rows, rings and meshes of 3 to 10 switches with 3 to 7 hosts; flows of datagrams have Poisson or
constant gaps, or each its own of both, and frames of one size, a size for each flow, two ranges of sizes, or IMIX; the
busiest line is 30 to 80 % used. Each network is simulated packet by packet. Errors are in percent of the simulated
value: average, 95 of 100 flows, largest. --before is another binary whose formulas are compared with the same
simulations. A record is written to bench/records.
A network that one of the programs cannot answer is named, and the exit status is 1.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import veth

FIGURES = ("mean", "p95", "p99")
TIMEOUT_S = 600


def shape(draw):
    """Returns the kind of a network, its number of switches, and its links."""
    kind, switches = draw.choice(["tree", "row", "ring", "mesh"]), draw.randint(3, 10)
    links = [(to - 1 if kind in ("row", "ring") else draw.randrange(to), to) for to in range(1, switches)]
    if kind == "ring":
        links.append((0, switches - 1))
    if kind == "mesh":
        others = [(a, b) for b in range(switches) for a in range(b) if (a, b) not in links]
        links += draw.sample(others, min(len(others), draw.randint(1, switches)))
    return kind, switches, links


def neighbours(links, switch):
    """Returns the switches to which a switch has links."""
    return [b if a == switch else a for a, b in links if switch in (a, b)]


def paths(links, start, end):
    """Returns all paths with the fewest links from one switch to another."""
    open_ends = [[start]]
    while not any(way[-1] == end for way in open_ends):
        open_ends = [[*way, far] for way in open_ends for far in neighbours(links, way[-1]) if far not in way]
    return [way for way in open_ends if way[-1] == end]


def entries(switch, hosts, links):
    """Returns flow entries of a switch, and the ports of its links by neighbour. Hosts have the first ports."""
    own = [name for name, at in hosts if at == switch]
    ports = {far: len(own) + 1 + number for number, far in enumerate(sorted(neighbours(links, switch)))}
    found = []
    for name, at in hosts:
        out = own.index(name) + 1 if at == switch else ports[paths(links, switch, at)[0][1]]
        address = f"10.0.0.{name[1:]}"
        found += [f"ip,nw_dst={address},actions=output:{out}", f"arp,arp_tpa={address},actions=output:{out}"]
    return found, ports


def network(draw, duration):
    """Returns a scenario, its law of gaps, and its law of sizes."""
    kind, switches, links = shape(draw)
    rates = draw.choice([[10], [10], [10, 20], [10, 50]])
    rate = {link: draw.choice(rates) for link in links}
    host_rate = draw.choice([10, 10, 100])
    hosts = [(f"h{number}", draw.randrange(switches)) for number in range(1, draw.randint(3, 7) + 1)]
    target = draw.choice([None, draw.choice(hosts)])
    pairs = [(draw.choice(hosts), target or draw.choice(hosts), draw.uniform(0.3, 1))
             for _ in range(draw.randint(2, 8))]
    # Between some switches of rings and meshes there are several shortest paths: no flow takes these.
    usable = [pair for pair in pairs if pair[0] != pair[1] and len(paths(links, pair[0][1], pair[1][1])) == 1]
    if not usable:
        return network(draw, duration)
    sizes = draw.choice(["fixed", "fixed", "imix", "bimodal", "mixed"])
    gaps = draw.choice(["poisson", "poisson", "poisson", "constant", "both"])
    load = collections.Counter()
    for (source, start), (sink, end), share in usable:
        way = paths(links, start, end)[0]
        for line in [("from", source), *zip(way, way[1:]), ("to", sink)]:
            capacity = rate.get(line) or rate.get(line[::-1]) or host_rate
            load[line] += share / capacity
    scale = draw.uniform(0.3, 0.8) / max(load.values())
    text = [f'name = "{kind}"', f'duration = "{duration}"', "[controller]", 'connect = "none"']
    loops = kind in ("ring", "mesh")
    ports = {}
    for number in range(switches):
        text += ["[[switch]]", f'name = "s{number + 1}"']
        if loops:
            found, ports[number] = entries(number, hosts, links)
            text.append(f"entries = {json.dumps(found)}")
        else:
            text.append('fail_mode = "standalone"')
    for name, switch in hosts:
        port = [other for other, at in hosts if at == switch].index(name) + 1
        text += ["[[host]]", f'name = "{name}"', f'switch = "s{switch + 1}"', f'ip = "10.0.0.{name[1:]}/24"',
                 f'rate = "{host_rate}Mbit/s"', 'buffer = "10MB"', f"port = {port}"]
    for a, b in links:
        text += ["[[link]]", f'ends = ["s{a + 1}", "s{b + 1}"]', f'rate = "{rate[a, b]}Mbit/s"', 'buffer = "10MB"']
        if loops:
            text.append(f"ports = [{ports[a][b]}, {ports[b][a]}]")
    for (source, _), (sink, _), share in usable:
        length = {"fixed": 'payload = "1000B"', "mixed": f'payload = "{draw.choice([100, 500, 1400])}B"'}
        arrival = draw.choice(["poisson", "constant"]) if gaps == "both" else gaps
        text += ["[[traffic]]", 'kind = "udp"', f'from = "{source}"', f'to = "{sink}"', f'arrival = "{arrival}"',
                 f'rate = "{share * scale * 1e6:.0f}bit/s"', length.get(sizes, f'sizes = "{sizes}"')]
    return "\n".join(text) + "\n", gaps, sizes


def answer(program, verb, file, *options):
    """Returns the answer of a verb, or what went wrong."""
    try:
        command = [program, verb, file, "--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"weir {verb} took longer than {TIMEOUT_S} s"
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip() or f"status {done.returncode}"


def compare(task):
    """Simulates and predicts one network. Returns its laws, and errors by program and figure for each flow."""
    text, gaps, sizes, programs = task
    with tempfile.TemporaryDirectory(prefix="weir-networks-") as folder:
        file = pathlib.Path(folder) / "network.toml"
        file.write_text(text)
        simulated = answer(programs["weir"], "simulate", file, "--level", "packets")
        found = {name: answer(program, "predict", file) for name, program in programs.items()}
    problems = [problem for problem in (simulated, *found.values()) if isinstance(problem, str)]
    if problems:
        return gaps, sizes, problems[0], []
    flows = []
    for number, item in enumerate(simulated["traffic"]):
        predicted = {name: one["flows"][number].get("delay") for name, one in found.items()}
        if not item["delay"] or not all(predicted.values()):
            return gaps, sizes, f"flow {number} has no delay", []
        real = item["delay"]
        flows.append({name: {figure: delay[f"{figure}_s"] * 1e6 / real[f"{figure}_us"] - 1 for figure in FIGURES}
                      for name, delay in predicted.items()})
    return gaps, sizes, None, flows


def summary(errors):
    """Returns the average, the 95th of 100, the largest and the signed average of errors, in percent."""
    sizes = sorted(abs(error) * 100 for error in errors)
    return {"flows": len(sizes), "average": statistics.mean(sizes), "p95": sizes[int(0.95 * (len(sizes) - 1))],
            "largest": sizes[-1], "bias": statistics.mean(errors) * 100}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=120, help="number of networks [120]")
    parser.add_argument("--seed", type=int, default=14, help="seed of the networks [14]")
    parser.add_argument("--duration", default="120s", help="time for which packets are sent [120s]")
    parser.add_argument("--weir", type=pathlib.Path, help="the program [target/release/weir, built first]")
    parser.add_argument("--before", type=pathlib.Path, help="another program whose formulas are compared, too")
    parser.add_argument("--record", default="networks", help="the record's name [networks]")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    if not options.weir:
        veth.run("cargo build --quiet --release --locked -p weir-cli", cwd=veth.ROOT)
    programs = {"weir": (options.weir or veth.WEIR).resolve()}
    if options.before:
        programs["before"] = options.before.resolve()
    for program in programs.values():
        if not program.is_file():
            sys.exit(f"bench/networks.py: there is no {program}")
    draw = random.Random(options.seed)
    tasks = [(*network(draw, options.duration), programs) for _ in range(options.networks)]
    errors, problems = collections.defaultdict(list), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        for number, (gaps, sizes, problem, flows) in enumerate(workers.map(compare, tasks)):
            if problem:
                problems.append(f"network {number}: {problem}")
            for flow in flows:
                for name, figures in flow.items():
                    for figure, error in figures.items():
                        for group in ("all", f"{gaps} {sizes}"):
                            errors[group, figure, name].append(error)
    rows = {" ".join(key): summary(found) for key, found in sorted(errors.items())}
    print(f"{'gaps, sizes, figure, program':34} {'flows':>6} {'average':>8} {'95 %':>7} {'largest':>8} {'bias':>7}")
    for name, row in rows.items():
        print(f"{name:34} {row['flows']:6} {row['average']:8.1f} {row['p95']:7.1f} {row['largest']:8.1f} "
              f"{row['bias']:7.1f}")
    for problem in problems:
        print(problem, file=sys.stderr)
    if not options.no_record:
        veth.save_record(options.record, {"networks": options.networks, "seed": options.seed,
                                          "duration": options.duration,
                                          "units": "errors of predicted delays in percent of simulated ones",
                                          "rows": rows, "problems": problems})
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
