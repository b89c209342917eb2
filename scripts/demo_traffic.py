#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""The demo's arithmetic: which lists, which packets, what must become of each, and what did.

    demo_traffic.py lists FEED HOST FOLDER        old.txt and new.txt of addresses, old-flows.txt and new-flows.txt
    demo_traffic.py flows XDP-SIEVE HOST FOLDER   packets for traffic.py, with their verdict before and after each swap
    demo_traffic.py table FOLDER TITLE REPORT BEFORE AFTER
                                                  a report of traffic.py beside the program's own counters
"""

import json
import os
import random
import socket
import subprocess
import sys

# Senders, and flows of other senders.
GROUPS = {
    "both": "address on both lists",
    "removed": "address taken off the list",
    "added": "address added to the list",
    "neither": "address on neither list",
    "flow-both": "flow on both lists",
    "flow-removed": "flow taken off the list",
    "flow-added": "flow added to the list",
    "flow-neither": "flow on neither list",
    "flow-mistaken": "flow on neither, mistaken (*)",
}
PER_GROUP = 600
FLOWS = 20000  # on each list
CANDIDATES = 30000  # non-members to try: no address is mistaken, and few flows are
HOST_V6 = "2001:db8::2"


def read_list(path):
    with open(path, encoding="utf-8") as lines:
        return [line.split()[0] for line in lines if line.strip() and line[0] not in "#;"]


def write_list(path, title, keys):
    with open(path, "w", encoding="ascii") as out:
        out.write(f"# {title}\n")
        out.writelines(f"{key}\n" for key in keys)


# The first bytes of networks of which a part is no ordinary sender. To ask `ipaddress` takes most of the time.
SPECIAL_V4 = {0, 10, 100, 127, 169, 172, 192, 198, 203}


def random_v4(draw):
    while True:
        address = draw.getrandbits(32)
        first = address >> 24
        if first < 224 and first not in SPECIAL_V4:
            return socket.inet_ntoa(address.to_bytes(4, "big"))


def random_v6(draw):
    return socket.inet_ntop(socket.AF_INET6, ((0x20010DB8 << 96) | draw.getrandbits(96)).to_bytes(16, "big"))


def random_flow(draw, host):
    """A flow from anywhere to the host, as a line of a list."""
    v4 = draw.random() < 7 / 8
    source = random_v4(draw) if v4 else random_v6(draw)
    to = host if v4 else HOST_V6
    return f"{source} {to} {draw.randrange(1024, 65536)} {draw.choice((22, 53, 443))} {draw.choice(('tcp', 'udp'))}"


def make_lists(feed, host, folder):
    draw = random.Random()
    old = read_list(feed) + [random_v6(draw) for _ in range(2000)]
    kept = draw.sample(old, len(old) // 2)
    taken = set(old)
    others = {random_v4(draw) for _ in range(30000)} | {random_v6(draw) for _ in range(500)}
    write_list(f"{folder}/old.txt", "the feed, and some IPv6 addresses", old)
    write_list(f"{folder}/new.txt", "half of it, and others", kept + sorted(others - taken))
    print(f"old.txt: {len(old):,} addresses; new.txt: {len(kept):,} of them and {len(others - taken):,} others")
    flows = list({random_flow(draw, host) for _ in range(FLOWS * 3 // 2)})
    write_list(f"{folder}/old-flows.txt", "source, destination, ports, protocol", flows[:FLOWS])
    write_list(f"{folder}/new-flows.txt", "half of them, and others", flows[FLOWS // 2 :])
    print(f"old-flows.txt: {FLOWS:,} flows; new-flows.txt: {FLOWS // 2:,} of them and {len(flows) - FLOWS:,} others")


def ask(program, image, keys):
    """Asks the set about each key; returns those that match."""
    answer = subprocess.run([program, "query", image, "--stdin"], input="\n".join(keys) + "\n", text=True,
                            stdout=subprocess.PIPE, check=False)
    if answer.returncode not in (0, 1):
        sys.exit("demo: the set could not be asked")
    said = [line.split()[-1] for line in answer.stdout.splitlines()]
    if len(said) != len(keys) or any(word not in ("present", "absent") for word in said):
        sys.exit("demo: the set did not answer for every key")
    return {key for key, word in zip(keys, said) if word == "present"}


class Lists:
    """An old and a new list, and what the sets made of them say about everybody."""

    def __init__(self, program, folder, name, strangers, read):
        self.old, self.new = (set(read(f"{folder}/{age}{name}.txt")) for age in ("old", "new"))
        self.strangers = strangers - self.old - self.new
        everybody = sorted(self.old | self.new | self.strangers)
        self.takes_old, self.takes_new = (ask(program, f"{folder}/{age}{name}.sieve", everybody)
                                          for age in ("old", "new"))
        for member in everybody:
            if (member in self.old and member not in self.takes_old) or (
                    member in self.new and member not in self.takes_new):
                sys.exit(f"demo: a set does not know its own member {member}")
        self.mistaken = self.strangers & (self.takes_old | self.takes_new)

    def groups(self):
        return {"both": self.old & self.new, "removed": self.old - self.new, "added": self.new - self.old,
                "neither": self.strangers - self.mistaken}


def read_flows(path):
    with open(path, encoding="ascii") as lines:
        return [line.strip() for line in lines if line[0] != "#"]


def make_flows(program, host, folder):
    draw = random.Random()
    strangers = {random_v4(draw) for _ in range(CANDIDATES)} | {random_v6(draw) for _ in range(CANDIDATES // 10)}
    senders = Lists(program, folder, "", strangers, read_list)
    print(f"{len(senders.strangers):,} addresses that are on no list were asked: {len(senders.mistaken)} mistaken")
    if senders.mistaken:
        sys.exit("demo: a set of addresses is not exact")
    strange_flows = {random_flow(draw, host) for _ in range(CANDIDATES)}
    flows = Lists(program, folder, "-flows", strange_flows, read_flows)
    print(f"{len(flows.strangers):,} flows that are on no list were asked: {len(flows.mistaken)} mistaken (*)")

    packets = []
    for group, addresses in senders.groups().items():
        for number, source in enumerate(draw.sample(sorted(addresses), PER_GROUP)):
            proto = ("udp", "tcp", "icmp")[number % 3]
            to = HOST_V6 if ":" in source else host
            packets.append((group, f"{proto} {source} {to} {1024 + number} 53"))
    on_lists = senders.takes_old | senders.takes_new
    for group, all_flows in {**flows.groups(), "mistaken": flows.mistaken}.items():
        fine = sorted(flow for flow in all_flows if flow.split()[0] not in on_lists)
        for flow in draw.sample(fine, min(PER_GROUP, len(fine))):
            source, to, sport, dport, proto = flow.split()
            packets.append((f"flow-{group}", f"{proto} {source} {to} {sport} {dport}"))
    draw.shuffle(packets)

    def flow_of(packet):
        proto, source, to, sport, dport = packet.split()
        return f"{source} {to} {sport} {dport} {proto}"

    # The senders' packets belong to flows, too, unless they have no ports.
    asked = [flow_of(packet) for _, packet in packets if not packet.startswith("icmp")]
    old_flows, new_flows = (ask(program, f"{folder}/{age}-flows.sieve", asked) for age in ("old", "new"))
    # The tables that follow each other: all old, then the new addresses, then the new flows as well.
    tables = {"old": (senders.takes_old, old_flows), "between": (senders.takes_new, old_flows),
              "new": (senders.takes_new, new_flows)}

    def verdict(packet, table):
        of_senders, of_flows = tables[table]
        return "drop" if packet.split()[1] in of_senders or flow_of(packet) in of_flows else "pass"

    for name, before, after in (("old", "old", "old"), ("swap", "old", "between"), ("swap-flows", "between", "new"),
                                ("new", "new", "new")):
        with open(f"{folder}/flows.{name}", "w", encoding="ascii") as out:
            for group, packet in packets:
                out.write(f"{group} {verdict(packet, before)} {verdict(packet, after)} {packet}\n")
    with open(f"{folder}/flows.back", "w", encoding="ascii") as out:
        for group, packet in draw.sample(packets, len(packets)):
            proto, source, to, sport, dport = packet.split()
            out.write(f"{group} pass pass {proto} {to} {source} {dport} {sport}\n")
    print(f"{len(packets):,} packets were chosen, each again and again")


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
    for side, words in (("old", "before the swap" if swap else title), ("new", "after the swap")):
        if side == "new" and not swap:
            continue
        heading(words)
        for group, name in GROUPS.items():
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
