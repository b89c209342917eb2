#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""The demo's arithmetic: which lists, which packets, what must become of each, and what did.

    demo_traffic.py lists FEED FOLDER             old.txt and new.txt
    demo_traffic.py flows XDP-SIEVE HOST FOLDER   packets for traffic.py, with the verdict under either list
    demo_traffic.py table FOLDER TITLE REPORT BEFORE AFTER
                                                  a report of traffic.py beside the program's own counters
"""

import ipaddress
import json
import os
import random
import subprocess
import sys

# Senders, and whether the old and the new list name them.
GROUPS = {
    "both": ("on both lists", True, True),
    "removed": ("taken off the list", True, False),
    "added": ("added to the list", False, True),
    "neither": ("on neither list", False, False),
    "mistaken": ("on neither, but mistaken (*)", False, False),
}
PER_GROUP = 800
CANDIDATES = 60000  # non-members to try, to find the few false positives


def read_list(path):
    with open(path, encoding="utf-8") as lines:
        return [line.split()[0] for line in lines if line.strip() and line[0] not in "#;"]


def write_list(path, title, keys):
    with open(path, "w", encoding="ascii") as out:
        out.write(f"# {title}\n")
        out.writelines(f"{key}\n" for key in keys)


def random_v4(draw):
    while True:
        address = ipaddress.IPv4Address(draw.getrandbits(32))
        if address.is_global:
            return str(address)


def random_v6(draw):
    return str(ipaddress.IPv6Address((0x20010DB8 << 96) | draw.getrandbits(96)))


def make_lists(feed, folder):
    draw = random.Random()
    old = read_list(feed) + [random_v6(draw) for _ in range(2000)]
    kept = draw.sample(old, len(old) // 2)
    taken = set(old)
    others = {random_v4(draw) for _ in range(30000)} | {random_v6(draw) for _ in range(500)}
    write_list(f"{folder}/old.txt", "the feed, and some IPv6 addresses", old)
    write_list(f"{folder}/new.txt", "half of it, and others", kept + sorted(others - taken))
    print(f"old.txt: {len(old):,} addresses; new.txt: {len(kept):,} of them and {len(others - taken):,} others")


def ask(program, image, keys):
    """Asks the filter about each key; returns the set of matching keys."""
    answer = subprocess.run([program, "query", image, "--stdin"], input="\n".join(keys) + "\n", text=True,
                            stdout=subprocess.PIPE, check=False)
    if answer.returncode not in (0, 1):
        sys.exit("demo: the filter could not be asked")
    said = [line.split() for line in answer.stdout.splitlines()]
    if len(said) != len(keys) or any(word not in ("present", "absent") for _, word in said):
        sys.exit("demo: the filter did not answer for every key")
    return {ipaddress.ip_address(key) for key, word in said if word == "present"}


def make_flows(program, host, folder):
    draw = random.Random()
    old, new = (set(map(ipaddress.ip_address, read_list(f"{folder}/{name}.txt"))) for name in ("old", "new"))
    non_members = {ipaddress.ip_address(random_v4(draw)) for _ in range(CANDIDATES)}
    non_members |= {ipaddress.ip_address(random_v6(draw)) for _ in range(CANDIDATES // 10)}
    non_members -= old | new
    members = {"both": old & new, "removed": old - new, "added": new - old}
    chosen = {}
    for group, all_of_them in members.items():
        by_version = [sorted(a for a in all_of_them if a.version == version) for version in (4, 6)]
        chosen[group] = draw.sample(by_version[0], PER_GROUP * 7 // 8) + draw.sample(by_version[1], PER_GROUP // 8)
    everybody = sorted({a for group in chosen.values() for a in group} | non_members, key=lambda a: (a.version, a))
    takes_old, takes_new = (ask(program, f"{folder}/{name}.sieve", list(map(str, everybody)))
                            for name in ("old", "new"))
    missed = [a for a in everybody if (a in old and a not in takes_old) or (a in new and a not in takes_new)]
    if missed:
        sys.exit(f"demo: a filter does not know its own member {missed[0]}")
    mistaken = non_members & (takes_old | takes_new)
    fine = sorted(non_members - mistaken, key=lambda a: (a.version, a))
    chosen["neither"] = draw.sample(fine, PER_GROUP)
    chosen["mistaken"] = sorted(mistaken, key=lambda a: (a.version, a))

    flows, back = [], []
    for group, addresses in chosen.items():
        for number, address in enumerate(addresses):
            proto = ("udp", "tcp", "icmp")[number % 3]
            to = host if address.version == 4 else "2001:db8::2"
            verdicts = " ".join("drop" if address in takes else "pass" for takes in (takes_old, takes_new))
            flows.append((f"{group} {verdicts}", f"{proto} {address} {to} {1024 + number} 53"))
            back.append(f"{group} pass pass {proto} {to} {address} 53 {1024 + number}")
    draw.shuffle(flows)
    draw.shuffle(back)
    for name, column in (("old", 1), ("new", 2), ("swap", None)):
        with open(f"{folder}/flows.{name}", "w", encoding="ascii") as out:
            for head, packet in flows:
                words = head.split()
                if column:
                    words = [words[0], words[column], words[column]]
                out.write(f"{' '.join(words)} {packet}\n")
    with open(f"{folder}/flows.back", "w", encoding="ascii") as out:
        out.writelines(f"{line}\n" for line in back)
    print(f"{len(flows):,} senders: " + ", ".join(f"{len(chosen[g])} {GROUPS[g][0]}" for g in chosen))


def row(name, cells, width=30):
    print(f"  {name:<{width}}" + "".join(f"{cell:>13,}" if cell != "" else f"{'':>13}" for cell in cells))


def heading(text):
    print(f"  {text:<30}" + "".join(f"{name:>13}" for name in ("sent", "must match", "dropped", "passed", "wrong")))


def load(path):
    with open(path, encoding="ascii") as text:
        return json.load(text)


def counters(path):
    """The counters seen, matched, dropped and passed, without frames that have no key (the tool's own markers)."""
    stats = load(path)["interfaces"][0]
    other = sum(stats["outcomes"][name] for name in ("arp", "neighbour", "non_ip"))
    return (stats["packets"] - other, sum(s["packets"] for s in stats["sets"]), stats["dropped"]["packets"],
            stats["passed"]["packets"] - other)


def show_table(title, report_path, before, after):
    report = load(report_path)
    swap = report["begin"] < report["packets"]
    total = [0] * 5
    for side, words in (("old", "judged by the old list" if swap else title), ("new", "judged by the new list")):
        if side == "new" and not swap:
            continue
        heading(words)
        for group, (name, *_) in GROUPS.items():
            cells = report["groups"].get(group, {}).get(side)
            if cells:
                numbers = [cells["sent"], cells["expected_drops"], cells["sent"] - cells["arrived"], cells["arrived"],
                           cells["wrong"]]
                row(name, numbers)
                total = [a + b for a, b in zip(total, numbers)]
    print("  " + "-" * (30 + 5 * 13))
    row("counted by the receiver", total)
    program = [b - a for a, b in zip(counters(before), counters(after))]
    row("counted by the XDP program", [*program, ""])
    back = report["back"]
    row("the other way, without filter", [back["packets"], 0, back["packets"] - back["arrived"], back["arrived"],
                                          back["wrong"]])
    for example in report["examples"] + back["examples"]:
        print(f"  wrong: {example}")
    if swap:
        print(f"  The list changed between packet {report['cut'] - 1:,} and packet {report['cut']:,}, while the swap "
              f"command ran (packets {report['begin']:,} to {report['end']:,}).")
    if program != total[:4]:
        print("  The program has counted something else than the receiver.")
        return 1
    return 1 if total[4] or back["wrong"] else 0


def main():
    verb, *rest = sys.argv[1:]
    if verb == "lists":
        make_lists(*rest)
    elif verb == "flows":
        make_flows(*rest)
    elif verb == "table":
        os.chdir(rest[0])
        sys.exit(show_table(*rest[1:]))


if __name__ == "__main__":
    main()
