#!/usr/bin/env python3
"""Writes packaging/THIRD-PARTY.txt: the crates that are linked into the weir command, with the texts of their licences.

    packaging/third_party.py            writes the file anew
    packaging/third_party.py --check    exit status 1 and a list of differences if the file does not name exactly the
                                        crates that are linked now

Needs cargo and the sources of the crates, which any build has downloaded. The licence texts come from the crates. A
crate without a text is listed with the name of its licence. Procedural macros and build scripts are left out: they run
while weir is built, and are not linked.
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "packaging" / "THIRD-PARTY.txt"
TARGET = "x86_64-unknown-linux-gnu"
NAMES = ("licen", "copying", "notice", "unlicense", "copyright")
RULE = "=" * 80


def cargo(*arguments):
    run = subprocess.run(["cargo", *arguments], cwd=ROOT, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"third_party: cargo {' '.join(arguments)} failed:\n{run.stderr}")
    return run.stdout


def linked():
    """Returns the name and version of each third-party crate that is linked into the command."""
    tree = cargo("tree", "--locked", "--package", "weir-cli", "--edges", "normal,no-proc-macro", "--target", TARGET,
                 "--prefix", "none", "--format", "{p}")
    names = {tuple(line.split()[:2]) for line in tree.splitlines() if line and "(/" not in line}
    return {(name, version.removeprefix("v")) for name, version in names}


def texts(folder):
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name.lower().startswith(NAMES)]
    return ["\n".join(line.rstrip() for line in path.read_text(errors="replace").splitlines()).strip() for path in files]


def main():
    wanted = linked()
    headings = [f"{name} {version}" for name, version in sorted(wanted)]
    if sys.argv[1:] == ["--check"]:
        present = {line.rsplit(" (", 1)[0] for line in OUTPUT.read_text().split(RULE)[0].splitlines() if line.startswith("* ")}
        expected = {f"* {heading}" for heading in headings}
        for line in sorted(expected - present):
            print(f"missing in {OUTPUT.name}: {line[2:]}")
        for line in sorted(present - expected):
            print(f"no longer linked: {line[2:]}")
        sys.exit(1 if present != expected else 0)
    packages = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET))["packages"]
    packages = sorted((p for p in packages if (p["name"], p["version"]) in wanted), key=lambda p: (p["name"], p["version"]))
    users = {}
    for package in packages:
        for text in texts(pathlib.Path(package["manifest_path"]).parent):
            users.setdefault(text, []).append(f"{package['name']} {package['version']}")
    lines = ["Crates linked into weir, with their licences (SPDX). Their texts follow.", ""]
    lines += [f"* {p['name']} {p['version']} ({p['license']})" for p in packages]
    for text, names in users.items():
        lines += ["", RULE, "Of " + ", ".join(names) + ":", "", text]
    OUTPUT.write_text("\n".join(lines) + "\n")
    print(f"{len(packages)} crates, {len(users)} texts: {OUTPUT}")


if __name__ == "__main__":
    main()
