#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Turns the numbers of `xdp-sieve bench --output` into a page of tables and gnuplot programs, one a figure.

usage: bench_figures.py KERNEL.json PAGE.md DIRECTORY

Writes PAGE.md and DIRECTORY/bench-*.gp, each of which writes docs/figures/bench-*.svg.
"""

import json
import pathlib
import sys

HEAD = """# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
set terminal svg size 900,560 dynamic background 'white' font 'sans-serif,13' noenhanced
set output 'docs/figures/{name}.svg'
set title "{title}"
set grid
"""

# What a line of a plot is called, by the contestant's name in the numbers: short, and alike in all figures.
SHORT = {
    "touch one line": "floor: one random line",
    "kernel Bloom, equal FPR, max_entries = keys": "kernel Bloom map, equal FPR",
    "kernel Bloom, equal FPR, tuned": "kernel Bloom map, equal FPR, tuned",
    "kernel Bloom, equal memory": "kernel Bloom map, equal memory",
    "BPF hash": "BPF hash map",
    "BPF LRU hash": "BPF LRU hash map",
    "BPF LPM trie": "BPF LPM trie",
}
WIDTH = {"blocked, 2 choices": 3, "touch one line": 2}
COMPARED = {"floor", "filter", "peer"}


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def lines_figure(tables, name, title, label, value, log):
    """One line for each contestant over the number of keys."""
    series = {}
    for table in tables:
        for one in table["contestants"]:
            if one["role"] in COMPARED:
                series.setdefault(one["name"], []).append((table["keys"], value(one)))
    out = [HEAD.format(name=name, title=title)]
    out += ["set logscale x", "set format x '%.0s%c'", "set xlabel 'keys'", f"set ylabel {quoted(label)}"]
    out += ["set key outside right top"] + (["set logscale y"] if log else ["set yrange [0:*]"])
    plots = []
    for i, (contestant, points) in enumerate(series.items()):
        out.append(f"$data{i} << END")
        out += [f"{keys} {summary['median']} {summary['low']} {summary['high']}" for keys, summary in points]
        out.append("END")
        style = f"pt {i + 1} ps 0.6 lw {WIDTH.get(contestant, 1)} dt {2 if contestant in SHORT else 1}"
        plots.append(f"$data{i} using 1:2:3:4 with yerrorlines {style} title "
                     + quoted(SHORT.get(contestant, contestant)))
    return "\n".join(out) + "\nplot " + ", \\\n     ".join(plots) + "\n"


def bars_figure(rows, name, title, label, log=False):
    """One bar for each (text, value)."""
    out = [HEAD.format(name=name, title=title)]
    out += ["set style fill solid 0.7", "set boxwidth 0.7", "unset key", f"set xlabel {quoted(label)}"]
    out += ["set yrange [-0.6:%f]" % (len(rows) - 0.4), "set lmargin 34"]
    out += ["set logscale x"] if log else ["set xrange [0:*]"]
    out += ["$data << END"]
    out += [f"{i} {value} {quoted(text)}" for i, (text, value) in enumerate(reversed(rows))]
    out += ["END"]
    least = min(value for _, value in rows) / 3 if log else 0
    out.append(f"plot $data using 2:1:({least}):2:($1-0.35):($1+0.35):ytic(3) with boxxyerror, \\")
    out.append("     $data using 2:1:(sprintf('  %.3g', $2)) with labels left")
    return "\n".join(out) + "\n"


def figures(numbers):
    tables = numbers["lookups"]
    for traffic in ("strangers", "members"):
        yield f"bench-lookup-{traffic}", lines_figure(
            tables, f"bench-lookup-{traffic}", f"A lookup of {traffic}, apart from the next one",
            "nanoseconds, net of key and hash", lambda one, t=traffic: one[t]["apart"]["net"], True)
        yield f"bench-floor-{traffic}", lines_figure(
            tables, f"bench-floor-{traffic}", f"A lookup of {traffic}, as a multiple of the floor",
            "times what one random line costs", lambda one, t=traffic: one[t]["apart"]["to_floor"], True)
        yield f"bench-together-{traffic}", lines_figure(
            tables, f"bench-together-{traffic}", f"Lookups of {traffic} one after the other, overlapping",
            "nanoseconds, net of key and hash", lambda one, t=traffic: one[t]["together"]["net"], True)
    for table in tables:
        rows = [(SHORT.get(one["name"], one["name"]), one["bytes"] / table["keys"])
                for one in table["contestants"] if one["role"] in ("filter", "peer")]
        if table["keys"] == 1_000_000:
            yield "bench-memory", bars_figure(rows, "bench-memory", "Memory for a million IPv4 addresses",
                                              "bytes a key, as the kernel counts them", True)
    for table in numbers.get("loading", []):
        if table["keys"] == 1_000_000:
            rows = [(one["name"], one["seconds"]["median"] * 1000) for one in table["rows"]]
            yield "bench-loading", bars_figure(rows, "bench-loading", "A million IPv4 addresses from file to in force",
                                               "milliseconds, the whole command", True)
    for table in numbers.get("links", []):
        for row in table["rows"]:
            if row["generator"] != "packet socket":
                continue
            name = f"bench-link-{table['keys']}"
            rows = [(one["program"], one["packets_per_second"]["median"] / 1e6) for one in row["results"]]
            yield name, bars_figure(rows, name, f"Packets over veth, a set of {table['keys']:,} keys",
                                    "million packets a second, sent by a packet socket")


PAGE_HEAD = """<!-- SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) -->
<!-- Generated by `make figures` from docs/results/bench/kernel.json; do not edit. -->
# The benchmark's numbers

`make bench` measures them again; [performance.md](performance.md) says how, and what they mean. Medians of interleaved
rounds, all kinds of everything in one run of one machine. Lookups: nanoseconds net of what key and hash cost, and in
brackets the multiple of the **floor**, which makes a key, hashes it, and waits for one random line of the same map.
**Apart**: each lookup waits until the one before is done, as packets do, between which a driver works; **together**:
one right after the other, so that the processor overlaps their cache misses as far as it can look ahead.
"""


def cell(one, traffic, spacing):
    summary = one[traffic][spacing]
    return f"{summary['net']['median']:.1f} ({summary['to_floor']['median']:.2f})"


def size_text(count):
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def markdown_table(header, rows):
    yield "| " + " | ".join(header) + " |"
    yield "| --- |" + " ---: |" * (len(header) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def lookup_section(table):
    yield f"\n## {table['keys']:,} keys, {table['bits_per_key']:g} bits a key\n"
    rows = []
    for one in table["contestants"]:
        if one["role"] not in COMPARED | {"touch"}:
            continue
        rows.append([one["name"], size_text(one["bytes"]),
                     f"{one['load_seconds'] * 1000:.1f} ms" if "load_seconds" in one else "",
                     f"{one['fpr']:.1e}" if "fpr" in one else ""]
                    + [cell(one, traffic, spacing) for spacing in ("apart", "together")
                       for traffic in ("strangers", "members", "half")])
    yield from markdown_table(["", "memory", "load", "FPR", "strangers, apart", "members, apart", "half, apart",
                               "strangers, together", "members, together", "half, together"], rows)
    reference = next(one["name"] for one in table["contestants"] if one["reference"])
    yield f"\nHow many times faster `{reference}` is, net:\n"
    rows = [[one["name"]] + [f"{one[traffic][spacing]['to_reference']['median']:.2f}"
                             for spacing in ("apart", "together") for traffic in ("strangers", "members", "half")]
            for one in table["contestants"] if one["role"] == "peer"]
    yield from markdown_table(["than", "strangers, apart", "members, apart", "half, apart", "strangers, together",
                               "members, together", "half, together"], rows)
    yield from (f"\nLeft out: {reason}." for reason in table["skipped"])


def page(numbers, names):
    yield PAGE_HEAD
    for name in names:
        yield f"![{name}](figures/{name}.svg)"
    for table in numbers["lookups"]:
        yield from lookup_section(table)
    for table in numbers.get("packets", []):
        yield f"\n## Whole packets inside the kernel, a set of {table['keys']:,} keys\n"
        yield from markdown_table(["packets", "program", "addresses", "ns a packet"],
                                  [[row["packets"], row["program"], row["traffic"],
                                    f"{row['nanoseconds']['median']:.0f}"] for row in table["rows"]])
    for table in numbers.get("links", []):
        yield f"\n## Packets over veth, a set of {table['keys']:,} keys\n"
        yield from markdown_table(["sent by", "program", "packets a second", "of XDP_DROP's"],
                                  [[row["generator"], one["program"], f"{one['packets_per_second']['median']:,.0f}",
                                    f"{one['to_drop']['median']:.1%}"]
                                   for row in table["rows"] for one in row["results"]])
    for table in numbers.get("loading", []):
        yield f"\n## {table['keys']:,} IPv4 addresses from file to in force, as commands\n"
        yield from markdown_table(["", "milliseconds", "memory", "as told by"],
                                  [[row["name"], f"{row['seconds']['median'] * 1000:.0f}", size_text(row["bytes"]),
                                    row["bytes_by"]] for row in table["rows"]])


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    numbers = json.loads(pathlib.Path(sys.argv[1]).read_text())
    directory = pathlib.Path(sys.argv[3])
    directory.mkdir(parents=True, exist_ok=True)
    names = []
    for name, program in figures(numbers):
        (directory / f"{name}.gp").write_text(program)
        names.append(name)
    pathlib.Path(sys.argv[2]).write_text("\n".join(page(numbers, names)) + "\n")


if __name__ == "__main__":
    main()
