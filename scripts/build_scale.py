#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Builds filters of growing size from text and prints what each key costs.

usage: build_scale.py [--build DIR] [--kind KIND] [--keys 1e6,1e7,...] [--memory-limit BYTES] [--output FILE.json]
                      [OPTION ...]

The list is made while it is read (build/write-addresses) and never stored. Each row is one run of
`xdp-sieve build`; OPTIONs go to it, such as `-- --effort fast`. Time is that of the whole command. Memory is the most
that the command held, without the page cache of its temporary file.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def run(arguments, keys, image):
    """One build; returns its row."""
    make = [arguments.build / "write-addresses", str(keys)]
    build = [arguments.build / "xdp-sieve", "--json", "build", "--kind", arguments.kind, "-o", image]
    if arguments.memory_limit:
        build += ["--memory-limit", arguments.memory_limit]
    build += arguments.options + ["-"]
    begin = time.monotonic()
    with subprocess.Popen(make, stdout=subprocess.PIPE) as feed:
        with subprocess.Popen(build, stdin=feed.stdout, stdout=subprocess.PIPE) as builder:
            feed.stdout.close()
            report = builder.stdout.read()
            _, status, usage = os.wait4(builder.pid, 0)
            builder.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - begin
    if builder.returncode != 0 or feed.returncode != 0:
        sys.exit(f"build_scale.py: the build of {keys} keys failed")
    built = json.loads(report)
    if built["keys"] != keys:
        sys.exit(f"build_scale.py: {built['keys']} keys in the image, expected {keys}")
    return {
        "keys": keys,
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
        "image_bytes": built["bytes"],
        "expected_fpr": built["fpr"]["expected"],
        "predicted_fpr": built["fpr"]["predicted"],
    }


def main():
    """Prints a table, and writes the rows if a file for them was named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "build")
    parser.add_argument("--kind", default="blocked")
    parser.add_argument("--keys", default="1e6,1e7,1e8,1e9")
    parser.add_argument("--memory-limit")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    rows = []
    print(
        f"{'keys':>6} {'seconds':>9} {'ns/key':>8} {'CPU ns/key':>11} {'peak MB':>9} {'B/key':>7} "
        f"{'image MB':>9} {'FPR':>9}"
    )
    # The image goes to a disk: /tmp may be memory.
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        for text in arguments.keys.split(","):
            row = run(arguments, int(float(text)), pathlib.Path(folder) / "image.sieve")
            rows.append(row)
            keys = row["keys"]
            print(
                f"{keys:>6.0e} {row['seconds']:>9.2f} {row['seconds'] / keys * 1e9:>8.0f} "
                f"{row['cpu_seconds'] / keys * 1e9:>11.0f} {row['peak_bytes'] / 1e6:>9.0f} "
                f"{row['peak_bytes'] / keys:>7.1f} {row['image_bytes'] / 1e6:>9.0f} {row['expected_fpr']:>9.2e}",
                flush=True,
            )
    if arguments.output:
        result = {"kind": arguments.kind, "memory_limit": arguments.memory_limit, "rows": rows}
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
