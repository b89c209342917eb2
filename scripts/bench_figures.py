#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Turns the numbers of `make bench` into a page of tables and one gnuplot program for each figure.

usage: bench_figures.py RESULTS PAGE.md DIRECTORY

RESULTS is a directory of kernel.json and user.json, prefixes.json if prefixes were measured, and scale.json if
scripts/build_scale.py was run. Parts may have been measured by themselves since: exact.json adds what set-bench says of
that kind; lookups.json and loading.json (`sieve-bench --lookups`, `--loading`) replace those of kernel.json. Writes
PAGE.md and DIRECTORY/bench-*.gp, each of which writes docs/figures/bench-*.svg.
"""

import itertools
import json
import math
import pathlib
import re
import sys

HEAD = """# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
set terminal svg size {width},560 dynamic background 'white' font 'sans-serif,13' noenhanced
set output 'docs/figures/{name}.svg'
set title "{title}"
set grid
set linetype 5 linecolor rgb '#a0a000'
"""

# How figures name a line of a plot, by the contestant's name in the numbers: short, and the same in all figures.
SHORT = {
    "touch one line": "floor: one random line",
    "kernel Bloom, equal FPR, max_entries = keys": "kernel Bloom map, equal FPR",
    "kernel Bloom, equal FPR, tuned": "kernel Bloom map, equal FPR, tuned",
    "kernel Bloom, equal memory": "kernel Bloom map, equal memory",
    "BPF hash": "BPF hash map",
    "BPF LRU hash": "BPF LRU hash map",
    "BPF LPM trie": "BPF LPM trie",
}
# How figures name the traffic of a measurement, by its name in the numbers.
TRAFFIC = {"non_members": "non-members", "members": "members", "half": "half of each"}
WIDTH = {"exact, 2 words": 3, "xorsat, 2 lines": 2, "touch one line": 2}
COMPARED = {"floor", "filter", "peer"}


def program_text(one):
    """The program of a packet measurement, with its traffic."""
    return one["program"].replace("non_members", TRAFFIC["non_members"])


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def lines_figure(tables, name, title, label, value, log):
    """One line for each contestant over the number of keys."""
    series = {}
    for table in tables:
        for one in table["contestants"]:
            if one["role"] in COMPARED:
                series.setdefault(one["name"], []).append((table["keys"], value(one)))
    out = [HEAD.format(name=name, title=title, width=1100)]  # a third of it for the key
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
    out = [HEAD.format(name=name, title=title, width=900)]
    out += ["set style fill solid 0.7", "set boxwidth 0.7", "unset key", f"set xlabel {quoted(label)}"]
    out += ["set yrange [-0.6:%f]" % (len(rows) - 0.4), "set lmargin 34"]
    least, most = (pick(value for _, value in rows) for pick in (min, max))
    least = least / 3 if log else 0
    out += [f"set xrange [{least}:{most * (most / least) ** 0.15}]" if log else f"set xrange [0:{1.15 * most}]"]
    out += ["set logscale x"] if log else []
    out += ["$data << END"]
    out += [f"{i} {value} {quoted(text)}" for i, (text, value) in enumerate(reversed(rows))]
    out += ["END"]
    out.append(f"plot $data using 2:1:({least}):2:($1-0.35):($1+0.35):ytic(3) with boxxyerror, \\")
    out.append("     $data using 2:1:(sprintf('  %.4g', $2)) with labels left")
    return "\n".join(out) + "\n"


def points_figure(groups, name, title, x_label, y_label, extra=(), verticals=()):
    """One joined line for each name of [(name, [(x, y, text)])], with the texts at the points, and one upright line for
    each of [(name, x)]."""
    out = [HEAD.format(name=name, title=title, width=1100)]  # a third of it for the key
    out += ["set logscale xy", "set format y '%.0te%T'", "set key outside right top", *extra]
    out += [f"set xlabel {quoted(x_label)}", f"set ylabel {quoted(y_label)}"]
    plots = []
    for i, (group, points) in enumerate(groups):
        out.append(f"$data{i} << END")
        out += [f"{x} {y} {quoted(text)}" for x, y, text in points]
        out.append("END")
        width = WIDTH.get(group, WIDTH.get(group.rpartition(", ")[0], 1))
        plots.append(f"$data{i} using 1:2 with linespoints lc {i + 1} pt {i + 1} ps 0.8 lw {width} "
                     f"title {quoted(group)}")
        if any(text for _, _, text in points):
            plots.append(f"$data{i} using 1:2:3 with labels offset 0,0.8 font ',10' tc lt {i + 1} notitle")
    for i, (text, x) in enumerate(verticals):
        style = f"lc {i + 1} lw 3 dt {2 + i}"
        out.append(f"set arrow from {x}, graph 0 to {x}, graph 1 nohead {style}")
        plots.append(f"keyentry with lines {style} title {quoted(text)}")
    return "\n".join(out) + "\nplot " + ", \\\n     ".join(plots) + "\n"


# How figures name a kind's lines, groups or subtables.
PARTS = {"blocked": "choice", "bloom": "group", "xorsat": "line"}
# The kinds that never mistake a key for another. They have no place in a figure of rates.
WITHOUT_RATE = {"exact", "ranges"}
KINDS = pathlib.Path(__file__).resolve().parent.parent / "include/sieve/image.h"


def all_have_rates(names):
    """Exits unless every kind of the registry is among the contestants' names."""
    kinds = set(re.findall(r"^ +KIND\([A-Z0-9]+, ([a-z0-9]+), \d+\)", KINDS.read_text(), re.MULTILINE))
    missing = kinds - WITHOUT_RATE - {name.split(",")[0] for name in names}
    if missing or not kinds:
        sys.exit(f"bench_figures: no rates of {', '.join(sorted(missing)) or 'any kind'}: run set-bench anew")


def built(user, group):
    """(contestant, bits a key, effort, milliseconds, FPR) of each build that set-bench did in this group."""
    for one in user["benchmarks"]:
        fields = one["name"].split("/")
        if fields[0] != group or "fpr" not in one:
            continue
        options = dict(field.split(":") for field in fields[2:] if ":" in field)
        if "bits" not in options:
            continue  # a kind whose size follows from the list
        part = PARTS.get(fields[1], "subtable")
        name = f"{fields[1]}, {options['choices']} {part}{'' if options['choices'] == '1' else 's'}"
        yield name, float(options["bits"]), options.get("effort"), one["real_time"], one["fpr"]


def least_exact_bits(keys):
    """log2 C(2^32, keys) / keys: what any exact set of IPv4 addresses takes."""
    every = 2 ** 32
    logarithm = math.lgamma(every + 1) - math.lgamma(keys + 1) - math.lgamma(every - keys + 1)
    return logarithm / math.log(2) / keys


def exact_sizes(table, user):
    """[(text, bits a key)] of the kinds without a rate, and of the least that they can take."""
    kinds = {one["name"].split(",")[0]: 8 * one["bytes"] / table["keys"] for one in table["contestants"]}
    kinds |= {one["name"].split("/")[1]: one["bits_per_key"] for one in user["benchmarks"]
              if one["name"].startswith("build/") and "bits_per_key" in one}
    if missing := WITHOUT_RATE - set(kinds):
        sys.exit(f"bench_figures: no size of {', '.join(sorted(missing))}: run set-bench and sieve-bench anew")
    least = least_exact_bits(table["keys"])
    return [(f"least exact set: none, {least:.1f}", least)] + [
        (f"{kind}: none, {kinds[kind]:.1f}", kinds[kind]) for kind in sorted(WITHOUT_RATE)]


def trade_figures(numbers, user):
    """What accuracy costs: space, the builder's time, the packets' time."""
    million = [table for table in numbers["lookups"] if table["keys"] == 1_000_000]
    by_size, by_effort = {}, {}
    for name, bits, _, _, fpr in built(user, "strangers"):
        by_size.setdefault(name, []).append((bits, fpr, ""))
    all_have_rates(by_size)
    for name, bits, effort, milliseconds, fpr in built(user, "build"):
        if bits == 16:
            by_effort.setdefault(name, []).append((milliseconds, fpr, effort))
    by_size["information limit, 2^-b"] = [(bits, 2.0 ** -bits, "") for bits in (8, 12, 16, 20, 24)]
    yield "bench-trade-space", points_figure(
        sorted(by_size.items()), "bench-trade-space",
        "False positives of every kind against space, a million addresses; upright: none",
        "bits per key", "false positive rate, computed from the filter's bits",
        ["unset logscale x", "set xrange [6:26]"], exact_sizes(million[0], user) if million else [])
    yield "bench-trade-effort", points_figure(
        by_effort.items(), "bench-trade-effort", "False positives against the builder's time, 16 bits per key",
        "milliseconds for a million keys, one thread", "false positive rate, computed from the filter's bits")
    for table in million:
        points = [(f"{SHORT.get(one['name'], one['name'])}: {8 * one['bytes'] / table['keys']:.0f} bits per key",
                   [(one["half"]["apart"]["net"]["median"], one["fpr"], "")])
                  for one in table["contestants"] if one.get("fpr") and "equal FPR" not in one["name"]]
        exact = [(f"{one['name']}: none, {8 * one['bytes'] / table['keys']:.0f} bits per key",
                  one["half"]["apart"]["net"]["median"])
                 for one in table["contestants"] if one.get("fpr") == 0]
        yield "bench-trade-lookup", points_figure(
            points, "bench-trade-lookup", "False positives against lookup time, a million keys; upright: none",
            "nanoseconds net of key and hash, half of the lookups are of members", "false positive rate",
            ["set xrange [10:*]"], exact)


def figures(numbers):
    tables = numbers["lookups"]
    for traffic in ("non_members", "members"):
        asked = TRAFFIC[traffic]
        yield f"bench-lookup-{asked}", lines_figure(
            tables, f"bench-lookup-{asked}", f"One lookup of {asked} at a time",
            "nanoseconds, net of key and hash", lambda one, t=traffic: one[t]["apart"]["net"], True)
        yield f"bench-floor-{asked}", lines_figure(
            tables, f"bench-floor-{asked}", f"One lookup of {asked} at a time, as a multiple of the floor",
            "multiple of the cost of one random line", lambda one, t=traffic: one[t]["apart"]["to_floor"], True)
        yield f"bench-together-{asked}", lines_figure(
            tables, f"bench-together-{asked}", f"Overlapping lookups of {asked}",
            "nanoseconds, net of key and hash", lambda one, t=traffic: one[t]["together"]["net"], True)
    for table in tables:
        rows = [(SHORT.get(one["name"], one["name"]), one["bytes"] / table["keys"])
                for one in table["contestants"] if one["role"] in ("filter", "peer")]
        if table["keys"] == 1_000_000:
            yield "bench-memory", bars_figure(rows, "bench-memory", "Memory for a million IPv4 addresses",
                                              "bytes per key, as the kernel counts them", True)
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
            rows = [(program_text(one), one["packets_per_second"]["median"] / 1e6) for one in row["results"]]
            yield name, bars_figure(rows, name, f"Packets over veth, a set of {table['keys']:,} keys",
                                    "million packets per second, sent by a packet socket")


# The two ways in which packets come, and the two sorts of them, of the firewalls' table.
ARRIVALS = ("frames", "packet socket")
FATES = (("non_members", "passed"), ("members", "dropped"))


def firewall_figures(numbers):
    """The receiver's processor time for a packet that is dropped, and for one that passes."""
    for table in numbers.get("firewalls", []):
        if not table["rows"]:
            continue
        for traffic, fate in FATES:
            name = f"bench-firewalls-{table['keys']}-{fate}"
            rows = [(one["name"], one["frames"][traffic]["nanoseconds"]["median"]) for one in table["rows"]]
            yield name, bars_figure(rows, name, f"A packet that is {fate}: a list of {table['keys']:,} addresses",
                                    "nanoseconds of the receiver's processor, packets as a driver hands them over")


# What a set of addresses is compared with, by name: the kernel's maps among the lookups, and whole filters.
EXACT_MAPS = ("exact, 2 words", "xorsat, 2 lines", "BPF hash", "BPF LPM trie")
# Of packet filters: where this one is among them, xdp-sieve's own list is exact. Older numbers are of a filter.
VERIFIED = "xdp-sieve, xorsat, verify"
EXACT_FILTERS = {"iptables raw, ipset": "ipset", "nftables, netdev ingress": "nftables set"}


def peer_figures(numbers):
    """Memory and time of a set of addresses beside what else holds one, by the number of addresses."""
    memory, lookups, packets = {}, {}, {}
    if not any(one["name"] == EXACT_MAPS[0] for table in numbers["lookups"] for one in table["contestants"]):
        return  # the numbers are older than the kind
    for contestant in EXACT_MAPS:
        name = SHORT.get(contestant, contestant)
        for table in numbers["lookups"]:
            one = next((one for one in table["contestants"] if one["name"] == contestant), None)
            if one is None:
                continue
            memory.setdefault(name, []).append((table["keys"], one["bytes"] / table["keys"], ""))
            for traffic in ("non_members", "members"):
                lookups.setdefault(f"{name}, {TRAFFIC[traffic]}", []).append(
                    (table["keys"], one[traffic]["apart"]["net"]["median"], ""))
    for table in numbers.get("firewalls", []):
        exact = any(one["name"] == VERIFIED for one in table["rows"])
        for one in table["rows"]:
            if one["name"] in EXACT_FILTERS:
                memory.setdefault(EXACT_FILTERS[one["name"]], []).append(
                    (table["keys"], one["bytes"] / table["keys"], ""))
            if one["name"] in EXACT_FILTERS or (one["name"] == "xdp-sieve" and exact):
                packets.setdefault(EXACT_FILTERS.get(one["name"], one["name"]), []).append(
                    (table["keys"], one["frames"]["members"]["nanoseconds"]["median"], ""))
    plain = ["set format x '%.0s%c'", "set format y '%g'"]
    yield "bench-peers-memory", points_figure(
        memory.items(), "bench-peers-memory", "Memory for a list of IPv4 addresses", "addresses",
        "bytes per address", plain)
    yield "bench-peers-lookup", points_figure(
        lookups.items(), "bench-peers-lookup", "One lookup at a time in a list of IPv4 addresses", "addresses",
        "nanoseconds, net of key and hash", plain)
    if "xdp-sieve" in packets:
        yield "bench-peers-packets", points_figure(
            packets.items(), "bench-peers-packets", "A packet that a list of IPv4 addresses drops", "addresses",
            "nanoseconds of the receiver's processor", [*plain, "unset logscale y", "set yrange [0:*]"])


def prefix_figures(prefixes):
    for traffic in ("non_members", "members"):
        rows = [(f"{pathlib.Path(table['workload']).name}: {one['name']}", one[traffic]["apart"]["median"])
                for table in prefixes for one in table["contestants"]]
        if rows:
            name = f"bench-prefixes-{TRAFFIC[traffic]}"
            yield name, bars_figure(rows, name, f"Prefixes: one lookup of {TRAFFIC[traffic]} at a time",
                                    "nanoseconds, net of the key", True)


def scale_figure(scale):
    """What a key costs the builder, by the number of keys."""
    def series(name, each):
        return name, [(row["keys"], each(row) / row["keys"], "") for row in scale["rows"]]
    yield "bench-build-scale", points_figure(
        [series("nanoseconds, elapsed", lambda row: row["seconds"] * 1e9),
         series("nanoseconds of processors", lambda row: row["cpu_seconds"] * 1e9),
         series("bytes of memory at most", lambda row: row["peak_bytes"])],
        "bench-build-scale", "What a key costs the builder: text to image, kind blocked, 16 bits per key",
        "keys", "nanoseconds or bytes for each key", ["unset logscale y", "set yrange [0:*]", "set format y '%g'",
                                                      "set format x '%.0s%c'"])


PAGE_HEAD = """<!-- SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) -->
<!-- Generated by `make figures` from docs/results/bench; do not edit. -->
# The benchmark's numbers

This page is for engineers. It has the numbers that `make bench` prints; [performance.md](performance.md) says how they are measured and
what they mean. All contestants took part in one run on one machine, in interleaved rounds; the tables show medians.

Lookups are in nanoseconds, net of what key and hash cost. The number in brackets is the multiple of the **floor**,
which makes a key, hashes it, and waits for one random line of the same map. **Apart**: each lookup waits until the
one before is done, as with packets, between which a driver works. **Together**: one lookup right after the other, so
that the processor overlaps their cache misses as far as it can look ahead. The traffic is **non-members**,
**members**, or **half** of each in random turn. A filter takes turns with a floor in its own map. The kernel's own
sets are compared with the row "touch one line", which reads the map of the default filter. **Verified** is a filter
with the keys themselves behind it; a match asks both. The memory of nftables is the growth of what the kernel uses,
which other work on the machine disturbs.
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
    yield f"\n## {table['keys']:,} keys, {table['bits_per_key']:g} bits per key\n"
    rows = []
    for one in table["contestants"]:
        if one["role"] not in COMPARED | {"touch"}:
            continue
        rows.append([one["name"], size_text(one["bytes"]),
                     f"{one['load_seconds'] * 1000:.1f} ms" if "load_seconds" in one else "",
                     f"{one['fpr']:.1e}" if "fpr" in one else ""]
                    + [cell(one, traffic, spacing) for spacing in ("apart", "together")
                       for traffic in ("non_members", "members", "half")])
    yield from markdown_table(["", "memory", "load", "FPR", "non-members, apart", "members, apart", "half, apart",
                               "non-members, together", "members, together", "half, together"], rows)
    reference = next(one["name"] for one in table["contestants"] if one["reference"])
    yield f"\nHow many times as fast `{reference}` is, net:\n"
    columns = [(spacing, traffic) for spacing in ("apart", "together") for traffic in TRAFFIC]
    header = ["than"] + [f"{TRAFFIC[traffic].split(' ')[0]}, {spacing}" for spacing, traffic in columns]
    peers = [one for one in table["contestants"] if one["role"] == "peer"]
    exact = [one for one in table["contestants"] if one["name"] == EXACT_MAPS[0]]
    yield from markdown_table(header, [[one["name"]] + [f"{one[traffic][spacing]['to_reference']['median']:.2f}"
                                                        for spacing, traffic in columns] for one in exact + peers])
    for own in exact if peers else []:
        yield f"\nHow many times as fast `{own['name']}` is, net, by the medians above:\n"
        yield from markdown_table(header, [[one["name"]] + [
            f"{one[traffic][spacing]['net']['median'] / own[traffic][spacing]['net']['median']:.2f}"
            for spacing, traffic in columns] for one in peers])
    yield from (f"\nLeft out: {reason}." for reason in table["skipped"])


def firewall_section(table):
    yield f"\n## Packet filters over veth, a list of {table['keys']:,} addresses\n"
    if table["rows"]:
        yield ("Packets per second, and in brackets the nanoseconds of the receiver's processor for each packet and "
               "their multiple of what `xdp-sieve` takes. **Frames** are XDP frames, as a driver hands them over; a "
               "**packet socket** makes a buffer first, which XDP programs must have copied. Packets that pass end at "
               "the host's routes.\n")
        rows = []
        for one in table["rows"]:
            row = [one["name"]]
            row += ([size_text(one["bytes"]), f"{one['load_seconds']['median'] * 1000:,.0f} ms"]
                    if "load_seconds" in one else ["", ""])
            for arrival in ARRIVALS:
                for traffic, _ in FATES:
                    result = one[arrival][traffic]
                    row.append(f"{result['packets_per_second']['median']:,.0f} ({result['nanoseconds']['median']:.0f}, "
                               f"{result['to_xdp_sieve']['median']:.2f})")
            rows.append(row)
        yield from markdown_table(["", "memory", "load"] + [f"{arrival}, {fate}" for arrival in ARRIVALS
                                                            for _, fate in FATES], rows)
        yield "\nMemory according to: " + "; ".join(f"{one['name']}: {one['bytes_by']}" for one in table["rows"]
                                                    if "bytes_by" in one) + "."
    yield from (f"\nLeft out: {reason}." for reason in table["skipped"])


def prefix_section(table):
    yield (f"\n## Prefixes: {pathlib.Path(table['workload']).name}, {table['prefixes']:,} prefixes, "
           f"{table['ranges']:,} ranges after merging\n")
    trie = table["contestants"][-1]
    columns = [(spacing, traffic) for spacing in ("apart", "together") for traffic in ("non_members", "members")]
    rows = []
    for one in table["contestants"]:
        row = [one["name"], size_text(one["bytes"]),
               f"{one['build_seconds'] * 1000:.1f} ms" if "build_seconds" in one else "",
               f"{one['load_seconds'] * 1000:.1f} ms" if "load_seconds" in one else "",
               f"{one['fpr']:.1e}" if "fpr" in one else ""]
        for spacing, traffic in columns:
            net = one[traffic][spacing]["median"]
            row.append(f"{net:.1f} ({trie[traffic][spacing]['median'] / net:.2f})" if net > 0 else f"{net:.1f}")
        rows.append(row)
    yield "Nanoseconds net of the key; in brackets, how many times as fast as the LPM trie.\n"
    yield from markdown_table(["", "memory", "build", "load", "FPR"] +
                              [f"{TRAFFIC[traffic]}, {spacing}" for spacing, traffic in columns], rows)
    yield from (f"\nLeft out: {reason}." for reason in table["skipped"])


def machine_text(machine):
    return f"{machine['processors']} processors, {machine['processor']}, {machine['kernel']}."


def page(numbers, prefixes, measured_on, user, names):
    yield PAGE_HEAD
    builder = user["context"]
    yield (f"The builder's times (bench-trade-effort) are of {builder['num_cpus']} processors of "
           f"{builder['mhz_per_cpu']:,} MHz.")
    if machine := numbers.get("machine"):
        yield f"All other times are of {machine_text(machine)}"
    if prefixes and measured_on != numbers.get("machine"):
        yield f"The numbers of prefixes are of {machine_text(measured_on)}"
    for part, machine in numbers["apart"].items():
        yield (f"The numbers of {part} are of a run of their own (`sieve-bench --{part}`), on "
               f"{machine_text(machine)}")
    yield ""
    for name in names:
        yield f"![{name}](figures/{name}.svg)"
    for table in numbers["lookups"]:
        yield from lookup_section(table)
    for table in numbers.get("packets", []):
        yield f"\n## Whole packets inside the kernel, a set of {table['keys']:,} keys\n"
        yield from markdown_table(["packets", "program", "addresses", "ns per packet"],
                                  [[row["packets"], row["program"], TRAFFIC[row["traffic"]],
                                    f"{row['nanoseconds']['median']:.0f}"] for row in table["rows"]])
    for table in numbers.get("links", []):
        yield f"\n## Packets over veth, a set of {table['keys']:,} keys\n"
        yield from markdown_table(["sent by", "program", "packets per second", "share of XDP_DROP's"],
                                  [[row["generator"], program_text(one), f"{one['packets_per_second']['median']:,.0f}",
                                    f"{one['to_drop']['median']:.1%}"]
                                   for row in table["rows"] for one in row["results"]])
    for table in numbers.get("firewalls", []):
        yield from firewall_section(table)
    for table in prefixes:
        yield from prefix_section(table)
    for table in numbers.get("loading", []):
        yield f"\n## {table['keys']:,} IPv4 addresses from file to in force, as commands\n"
        yield from markdown_table(["", "milliseconds", "memory", "memory according to"],
                                  [[row["name"], f"{row['seconds']['median'] * 1000:.0f}", size_text(row["bytes"]),
                                    row["bytes_by"]] for row in table["rows"]])


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    results, page_path, directory = (pathlib.Path(path) for path in sys.argv[1:])
    numbers, user = (json.loads((results / name).read_text()) for name in ("kernel.json", "user.json"))
    measured = results / "exact.json"
    if measured.exists():
        user["benchmarks"] += json.loads(measured.read_text())["benchmarks"]
    numbers["apart"] = {}
    for part in ("lookups", "loading"):
        measured = results / f"{part}.json"
        if measured.exists():
            newer = json.loads(measured.read_text())
            numbers[part] = sorted(newer[part], key=lambda table: table["keys"])
            numbers["apart"][part] = newer["machine"]
    measured = results / "prefixes.json"
    of_prefixes = json.loads(measured.read_text()) if measured.exists() else {"prefixes": [], "machine": None}
    prefixes = of_prefixes["prefixes"]
    measured = results / "scale.json"
    scale = scale_figure(json.loads(measured.read_text())) if measured.exists() else []
    directory.mkdir(parents=True, exist_ok=True)
    names = []
    for name, program in itertools.chain(figures(numbers), trade_figures(numbers, user), firewall_figures(numbers),
                                         peer_figures(numbers), prefix_figures(prefixes), scale):
        (directory / f"{name}.gp").write_text(program)
        names.append(name)
    page_path.write_text("\n".join(page(numbers, prefixes, of_prefixes["machine"], user, names)) + "\n")


if __name__ == "__main__":
    main()
