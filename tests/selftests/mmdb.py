#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Writes an MMDB file (https://maxmind.github.io/MaxMind-DB/) of the lines "PREFIX JSON" on standard input.

    mmdb.py FILE [--record 24|28|32] [--ip 4|6] [--type NAME] [--built SECONDS]

A file of both families has IPv4 at ::/96, and the same tree once more where IPv6 addresses hold IPv4 ones, as
MaxMind's files do. A value that comes again is a pointer to its first.
"""

import argparse
import ipaddress
import json
import struct
import sys

# Numbers of other than 32 bits.
TYPES = {"record_size": 5, "ip_version": 5, "binary_format_major_version": 5, "binary_format_minor_version": 5,
         "build_epoch": 9}
ALIASES = ("::ffff:0:0/96", "2001::/32", "2002::/16")


def head(kind, size):
    """The bytes in front of a value."""
    first = kind << 5 if kind < 8 else 0
    more = b"" if kind < 8 else bytes([kind - 7])
    if size < 29:
        return bytes([first | size]) + more
    if size < 285:
        return bytes([first | 29]) + more + bytes([size - 29])
    if size < 65821:
        return bytes([first | 30]) + more + struct.pack(">H", size - 285)
    return bytes([first | 31]) + more + struct.pack(">I", size - 65821)[1:]


def pointer(at):
    if at < 2048:
        return bytes([1 << 5 | at >> 8, at & 255])
    if at < 526336:
        return bytes([1 << 5 | 1 << 3 | (at - 2048) >> 16]) + struct.pack(">H", (at - 2048) & 0xFFFF)
    if at < 526336 + (1 << 27):
        return bytes([1 << 5 | 2 << 3 | (at - 526336) >> 24]) + struct.pack(">I", (at - 526336) & 0xFFFFFF)[1:]
    return bytes([1 << 5 | 3 << 3]) + struct.pack(">I", at)


class Values:
    """Values one behind the other; maps and texts that come again are pointers, if `shared`."""

    def __init__(self, shared):
        self.bytes = bytearray()
        self.at = {} if shared else None

    def add(self, value, number=6):
        key = json.dumps(value)
        if self.at is not None and isinstance(value, (dict, str)):
            if key in self.at:
                self.bytes += pointer(self.at[key])
                return
            self.at[key] = len(self.bytes)
        if isinstance(value, bool):
            self.bytes += head(14, int(value))
        elif isinstance(value, str):
            self.bytes += head(2, len(value.encode())) + value.encode()
        elif isinstance(value, float):
            self.bytes += head(3, 8) + struct.pack(">d", value)
        elif isinstance(value, int):
            digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
            self.bytes += head(number, len(digits)) + digits
        elif isinstance(value, list):
            self.bytes += head(11, len(value))
            for one in value:
                self.add(one)
        else:
            self.bytes += head(7, len(value))
            for name, one in value.items():
                self.add(name)
                self.add(one, TYPES.get(name, 6))


def insert(nodes, prefix, shift, record):
    """Puts a record, or a node's number, at a prefix. A longer prefix inside of a shorter one comes behind it."""
    node, bits = 0, int(prefix.network_address) << shift
    length = prefix.prefixlen + (prefix.version == 4 and nodes.bits == 128 and 96)
    for depth in range(length - 1):
        side = bits >> (nodes.bits - 1 - depth) & 1
        below = nodes.all[node][side]
        if not isinstance(below, int):
            nodes.all.append([below, below])
            nodes.all[node][side] = below = len(nodes.all) - 1
        node = below
    nodes.all[node][bits >> (nodes.bits - length) & 1] = record


class Nodes:
    """The tree: a record is None, the number of a node, or a value's text."""

    def __init__(self, bits):
        self.bits = bits
        self.all = [[None, None]]


def record_bytes(left, right, size):
    if size == 28:
        return left.to_bytes(4, "big")[1:] + bytes([left >> 24 << 4 | right >> 24]) + right.to_bytes(4, "big")[1:]
    return left.to_bytes(size // 8, "big") + right.to_bytes(size // 8, "big")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--record", type=int, default=28)
    parser.add_argument("--ip", type=int, default=6)
    parser.add_argument("--type", default="GeoLite2-Country")
    parser.add_argument("--built", type=int, default=1767312000)
    options = parser.parse_args()
    nodes = Nodes(128 if options.ip == 6 else 32)
    lines = [line.split(None, 1) for line in sys.stdin if line.strip()]
    entries = [(ipaddress.ip_network(prefix), value.strip()) for prefix, value in lines]
    for prefix, value in sorted(entries, key=lambda one: one[0].prefixlen):
        insert(nodes, prefix, 0, value)
    if options.ip == 6:
        node = 0
        for _ in range(96):
            if not isinstance(nodes.all[node][0], int):
                break
            node = nodes.all[node][0]
        else:
            for alias in ALIASES:
                insert(nodes, ipaddress.ip_network(alias), 0, node)
    values, at = Values(shared=True), {}
    for _, value in entries:
        if value not in at:
            at[value] = len(values.bytes)
            values.at.pop(json.dumps(json.loads(value)), None)  # a record leads to a value, not to a pointer
            values.add(json.loads(value))
    count = len(nodes.all)

    def number(record):
        if record is None:
            return count
        return record if isinstance(record, int) else count + 16 + at[record]

    metadata = Values(shared=False)
    metadata.add({"node_count": count, "record_size": options.record, "ip_version": options.ip,
                  "database_type": options.type, "languages": ["en"], "binary_format_major_version": 2,
                  "binary_format_minor_version": 0, "build_epoch": options.built, "description": {"en": "a test"}})
    with open(options.file, "wb") as out:
        for left, right in nodes.all:
            out.write(record_bytes(number(left), number(right), options.record))
        out.write(bytes(16) + values.bytes + b"\xab\xcd\xefMaxMind.com" + metadata.bytes)


main()
