#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Prints what lcov counted, by room, and the files with the most lines that no test runs.

    coverage_table.py FILE.info [WORST]
"""

import collections
import os
import sys


def read_info(path):
    """{file: {line: runs}} of a tracefile; lcov lists a file once for each test."""
    counts = collections.defaultdict(lambda: collections.defaultdict(int))
    name = None
    with open(path, encoding="utf-8") as info:
        for line in info:
            key, _, value = line.strip().partition(":")
            if key == "SF":
                name = os.path.relpath(value)
            elif key == "DA":
                number, runs = value.split(",")[:2]
                counts[name][int(number)] += int(runs)
    return counts


def room_of(path):
    """The room of a file: its folder below userspace/libsieve or userspace. include/sieve and bpf are one room each."""
    parts = path.split("/")
    if parts[0] == "include":
        return "include/sieve"
    if parts[0] == "bpf":
        return "bpf"
    depth = 3 if parts[1] == "libsieve" else 2
    return "/".join(parts[:depth])


def percent(run, lines):
    return f"{100 * run / lines:5.1f}%" if lines else "    -"


def main():
    counts = read_info(sys.argv[1])
    worst = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    rooms = collections.defaultdict(lambda: [0, 0])
    files = []
    for path, lines in counts.items():
        run = sum(runs > 0 for runs in lines.values())
        files.append((len(lines) - run, path, run, len(lines)))
        for sums in (rooms[room_of(path)], rooms["all"]):
            sums[0] += run
            sums[1] += len(lines)
    print(f"{'room':<34} {'lines':>6} {'run':>6}")
    for room in sorted(rooms, key=lambda name: (name == "all", name)):
        run, lines = rooms[room]
        print(f"{room:<34} {lines:>6} {run:>6} {percent(run, lines)}")
    print("\nmost lines that no test runs:")
    for missed, path, run, lines in sorted(files, reverse=True)[:worst]:
        print(f"{missed:>6} of {lines:<6} {percent(run, lines)}  {path}")


if __name__ == "__main__":
    main()
