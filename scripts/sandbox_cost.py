#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""What it costs that a child without privileges reads the lists of root's commands.

sandbox_cost.py [--keys N,N,...] [--rounds N]: has `xdp-sieve build` read lists of so many IPv4 addresses, with the
child and with `--no-sandbox` by turns, so that other load meets both. Prints medians of the wall-clock time, the median
of the differences of neighbours, and the mean processor time of both processes. Needs root: an ordinary user's command
has no child.
"""
import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time

SIEVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "xdp-sieve")


def write_list(path, keys):
    """Distinct addresses: a permutation of 32 bits."""
    with open(path, "w", encoding="ascii") as file:
        for first in range(0, keys, 100000):
            numbers = ((i * 2654435761) & 0xFFFFFFFF for i in range(first, min(keys, first + 100000)))
            file.writelines(f"{n >> 24}.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}\n" for n in numbers)


def processor():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cost(folder, options):
    """Seconds and processor seconds of one build."""
    before, begin = processor(), time.perf_counter()
    command = [SIEVE, *options, "-q", "build", "--seed", "1", "-o", f"{folder}/image", f"{folder}/list"]
    subprocess.run(command, check=True)
    return time.perf_counter() - begin, processor() - before


def compare(folder, keys, rounds):
    write_list(f"{folder}/list", keys)
    ways = [["--no-sandbox"], []]
    times, used = [[], []], [[], []]
    for turn in range(rounds + 1):
        for way in (turn % 2, 1 - turn % 2):
            took, processors = cost(folder, ways[way])
            if turn > 0:  # the first one warms up
                times[way].append(took)
                used[way].append(processors)
    differences = [1e3 * (child - own) for own, child in zip(*times)]
    own, child = (1e3 * statistics.median(times[way]) for way in (0, 1))
    own_used, child_used = (1e3 * statistics.mean(used[way]) for way in (0, 1))
    print(f"{keys:>9} addresses, {rounds} rounds: {own:.1f} ms without, {child:.1f} ms with a child; median difference "
          f"{statistics.median(differences):+.1f} ms; processor {own_used:.1f} ms and {child_used:.1f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", default="1,1e4,1e6,1e7", help="numbers of addresses")
    parser.add_argument("--rounds", type=int, default=31)
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("expected root")
    with tempfile.TemporaryDirectory() as folder:
        for keys in arguments.keys.split(","):
            count = int(float(keys))
            compare(folder, count, arguments.rounds if count < 1000000 else max(5, arguments.rounds // 3))


if __name__ == "__main__":
    main()
