#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Measures how much memory sets take: docs/sizing.md, `make sizing`.

    sizing.py [--build FOLDER] [--entries N,N...] [--write]

For lists of each sort and size: the list's file, the filter's map in the kernel, and the most memory that building took
(the peak resident size of `xdp-sieve build`). As root also the daemon's memory, once a set of that list is in force in
a network namespace that this script makes and removes, and its peak until then. --write puts the tables into
docs/sizing.md.
"""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/sizing.md"
PATIENCE = 600  # seconds until a set must be in force


def addresses(count, draw):
    return (f"{v >> 24}.{v >> 16 & 255}.{v >> 8 & 255}.{v & 255}" for v in (draw.getrandbits(32) for _ in range(count)))


def addresses6(count, draw):
    for _ in range(count):
        value = draw.getrandbits(96)
        yield "2001:db8:" + ":".join(f"{value >> shift & 0xffff:x}" for shift in range(80, -1, -16))


def prefixes(count, draw):
    return (f"{one}/24" for one in (one.rsplit(".", 1)[0] + ".0" for one in addresses(count, draw)))


def flows(count, draw):
    return (f"{one} 192.0.2.{draw.randrange(256)} {draw.randrange(65536)} {draw.randrange(65536)} tcp"
            for one in addresses(count, draw))


# Name, what build is told, the entries.
SORTS = [("IPv4 addresses, `exact`", [], addresses),
         ("IPv6 addresses, `exact`", [], addresses6),
         ("IPv4 prefixes, `ranges`", [], prefixes),
         ("flows, `xorsat`", ["--key", "src,dst,sport,dport,proto"], flows)]


def size(number):
    for unit, limit in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number >= limit:
            return f"{number / limit:.1f} {unit}"
    return f"{number} B"


def run(command):
    """Its peak resident size in bytes, and what it printed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: failed")
    return usage.ru_maxrss * 1024, output


def measure(sieve, folder, sort, count):
    _, options, entries = sort
    text = folder / "list.txt"
    with text.open("w") as file:
        file.writelines(line + "\n" for line in entries(count, random.Random(count)))
    image = folder / "list.sieve"
    peak, _ = run([sieve, "build", "--json", "-q", *options, "-o", str(image), str(text)])
    return text, image.stat().st_size, peak


def status_of(pid, name):
    return int(re.search(rf"^{name}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]) * 1024


class Namespace:
    def __init__(self):
        self.name = f"sieve-sizing-{os.getpid()}"

    def __enter__(self):
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        subprocess.run(["ip", "-n", self.name, *"link add in0 type veth peer name out0".split()], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", self.name], check=False)

    def run(self, command, **more):
        return subprocess.run(["ip", "netns", "exec", self.name, *command], **more)


def measure_daemon(build, folder, text, options):
    """The daemon's memory with the list in force, and its peak until then."""
    key = f'key = "{options[1]}"\n' if options else ""
    (folder / "sizing.toml").write_text(
        f'[service]\nstate-directory = "{folder}/state"\n\n[set.list]\nsources = ["{text}"]\n{key}'
        '\n[[interface]]\nname = "in0"\nsets = ["list"]\n')
    with Namespace() as namespace:
        daemon = subprocess.Popen(["ip", "netns", "exec", namespace.name, str(build / "xdp-sieved"), "--config",
                                   str(folder / "sizing.toml"), "--log", "stderr"],
                                  stderr=(folder / "daemon.log").open("w"))
        try:
            end = time.monotonic() + PATIENCE
            while True:
                answer = namespace.run([str(build / "xdp-sieve"), "status", "in0", "--json"], capture_output=True,
                                       check=False)
                if answer.returncode == 0 and any(
                        one.get("sets") for one in json.loads(answer.stdout).get("interfaces", [])):
                    break
                if daemon.poll() is not None or time.monotonic() > end:
                    sys.exit("the daemon has not put the list in force: " + (folder / "daemon.log").read_text()[-2000:])
                time.sleep(0.2)
            time.sleep(2)
            return status_of(daemon.pid, "VmRSS"), status_of(daemon.pid, "VmHWM")
        finally:
            namespace.run([str(build / "xdp-sieve"), "unload", "in0"], capture_output=True, check=False)
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--entries", default="10000,100000,1000000,10000000")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for sort in SORTS:
        for count in map(int, arguments.entries.split(",")):
            with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
                folder = pathlib.Path(name)
                text, kernel, peak = measure(str(arguments.build / "xdp-sieve"), folder, sort, count)
                rests, most = "", ""
                if os.geteuid() == 0 and count <= 1_000_000:
                    rests, most = map(size, measure_daemon(arguments.build, folder, text, sort[1]))
                rows.append(f"| {sort[0]} | {count:,} | {size(text.stat().st_size)} | {size(kernel)} | "
                            f"{kernel * 8 / count:.1f} | {size(peak)} | {rests} | {most} |")
                print(rows[-1], flush=True)
    if arguments.write:
        begin, end = "<!-- measured: make sizing -->\n", "<!-- end -->"
        page = PAGE.read_text()
        head = ("| list | entries | its file | in the kernel | bits an entry | building, at most | daemon, at rest | "
                "daemon, at most |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
        before, rest = page.split(begin)
        PAGE.write_text(before + begin + head + "\n".join(rows) + "\n" + end + rest.split(end, 1)[1])


if __name__ == "__main__":
    main()
