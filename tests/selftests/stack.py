#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Compares the filter with the network stack: which packets from a listed source does the stack deliver?

Whatever the filter makes of a frame, the stack behind it has the last word. So the stack is the oracle: raw sockets
get every packet that it delivers to this host, reassembled and without its tags and extension headers.

    stack.py feeds FOLDER
        Writes FOLDER/hosts and FOLDER/ports: the listed sources, and the listed pairs of source and destination
        port. All other sources and ports are not listed.

    stack.py known --from NS/IFACE --to NS/IFACE --to-address V4 --to-address V6 [--filtered]
        Sends packets from listed sources in every disguise that Linux is known to see through. Without a filter, the
        stack must deliver each one. With --filtered, it may deliver none.

    stack.py random ... [--filtered] --frames N | --seconds N [--seed N] [--longest BYTES] [--pcap FILE]
        Sends N frames, or sends for N seconds: random layers, most of them well-formed, and mutations. Prints how many
        packets were delivered. With --filtered, a delivered packet from a listed source is a failure, and its frames
        are written to the capture. Without --filtered, too few deliveries to prove anything are a failure.

Equal arguments send equal frames. Exit 1: a failure; 3: no result. Run this only on interfaces that the test has
made.
"""

import argparse
import ipaddress
import os
import random
import select
import socket
import struct
import sys
import time

from traffic import PATIENCE, Port, Trouble, fold, in_namespace, ones_sum

ETH_IPV4, ETH_IPV6, ETH_ARP = 0x0800, 0x86DD, 0x0806
TPIDS = (0x8100, 0x88A8)
HOP, ROUTING, FRAGMENT, ESP, AUTH, NONE, DEST = 0, 43, 44, 50, 51, 59, 60
ICMP, IPIP, TCP, UDP, DCCP, ICMPV6, SCTP, UDPLITE, EXPERIMENT = 1, 4, 6, 17, 33, 58, 132, 136, 253
NAMES = {TCP: "TCP", UDP: "UDP", DCCP: "DCCP", SCTP: "SCTP", UDPLITE: "UDP-Lite"}
WITH_PORTS = tuple(NAMES)
HEARD = {4: (ICMP, IPIP, TCP, UDP, DCCP, SCTP, UDPLITE, EXPERIMENT),
         6: (TCP, UDP, DCCP, ICMPV6, SCTP, UDPLITE, EXPERIMENT)}
BOUND = (UDP, UDPLITE)  # programs listen at the listed port
DISCOVERY = range(133, 138)  # never filtered, because it keeps the host on its link

LISTED_HOST = {4: ipaddress.ip_address("203.0.113.1"), 6: ipaddress.ip_address("2001:db8:a::1")}
LISTED_PAIR = {4: ipaddress.ip_address("203.0.113.2"), 6: ipaddress.ip_address("2001:db8:a::2")}
NOT_LISTED = {4: ipaddress.ip_address("203.0.113.3"), 6: ipaddress.ip_address("2001:db8:a::3")}
LISTED_PORT = 53
SO_BINDTODEVICE = 25
SO_RCVBUFFORCE = 33
BATCH = 64
FENCE_PORT = 40001


def is_listed(source, ports, protocol):
    """Whether a delivered packet, whose payload begins with these bytes, has a listed port."""
    if source in LISTED_HOST.values():
        return not (protocol == ICMPV6 and ports and ports[0] in DISCOVERY)
    if source not in LISTED_PAIR.values() or protocol not in WITH_PORTS or len(ports) < 4:
        return False
    return struct.unpack_from("!H", ports, 2)[0] == LISTED_PORT


class Host:
    """The receiving end: hears whatever the stack delivers from the interface."""

    def __init__(self, place):
        namespace, interface = place.split("/")

        def listen(family, kind, protocol):
            heard = socket.socket(family, kind, protocol)
            heard.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, interface.encode() + b"\0")
            heard.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
            heard.setblocking(False)
            return heard

        self.raw = [
            (version, protocol, in_namespace(namespace, lambda f=family, p=protocol: listen(f, socket.SOCK_RAW, p)))
            for version, family in ((4, socket.AF_INET), (6, socket.AF_INET6))
            for protocol in HEARD[version]
        ]
        # Programs that listen at the listed port. They get only what the protocol itself accepts.
        self.bound = []
        for protocol in BOUND:
            for family in (socket.AF_INET, socket.AF_INET6):
                heard = in_namespace(namespace, lambda f=family, p=protocol: listen(f, socket.SOCK_DGRAM, p))
                if family == socket.AF_INET6:
                    heard.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                heard.bind(("", LISTED_PORT))
                self.bound.append((protocol, heard))
        self.fences = in_namespace(namespace, lambda: listen(socket.AF_INET, socket.SOCK_DGRAM, 0))
        self.fences.bind(("0.0.0.0", FENCE_PORT))

    def take(self):
        """What came since the last call: packets of listed ends, packets of others, and how many packets of listed
        ends reached the programs at the listed port."""
        listed = others = at_port = 0
        for protocol, heard in self.bound:
            while True:
                try:
                    sender = heard.recvfrom(65536)[1]
                except BlockingIOError:
                    break
                ports = struct.pack("!HH", 0, LISTED_PORT)
                at_port += is_listed(ipaddress.ip_address(sender[0].partition("%")[0]), ports, protocol)
        for version, protocol, heard in self.raw:
            while True:
                try:
                    packet, sender = heard.recvfrom(65536)
                except BlockingIOError:
                    break
                if version == 4:
                    packet = packet[(packet[0] & 15) * 4 :]
                if protocol == UDP and packet[2:4] == struct.pack("!H", FENCE_PORT):
                    continue
                # An interface scope may follow the address.
                if is_listed(ipaddress.ip_address(sender[0].partition("%")[0]), packet[:4], protocol):
                    listed += 1
                else:
                    others += 1
        return listed, others, at_port


class Wire:
    """Sends frames, and knows when the stack has handled them."""

    def __init__(self, options):
        self.port = Port(options.sender)
        self.ethernet = Port(options.receiver).mac + self.port.mac
        self.host = Host(options.receiver)
        self.target = {a.version: a for a in map(ipaddress.ip_address, options.to_address)}
        self.number = 0

    def delivered(self, frames):
        for frame in frames:
            self.port.send(frame)
        self.await_fence()
        return self.host.take()

    def await_fence(self):
        """Sends a packet after all others. The pair has one queue, so its arrival says that the others have been
        judged."""
        self.number += 1
        text = struct.pack("!I", self.number)
        udp = struct.pack("!4H", FENCE_PORT, FENCE_PORT, 8 + len(text), 0) + text
        fence = self.ethernet + struct.pack("!H", ETH_IPV4)
        fence += ipv4(NOT_LISTED[4], self.target[4], UDP, udp, identification=1)
        for _ in range(int(PATIENCE * 20)):
            self.port.send(fence)
            if select.select([self.host.fences], [], [], 0.05)[0]:
                while True:
                    try:
                        if self.host.fences.recv(64) == text:
                            return
                    except BlockingIOError:
                        break
        raise Trouble("the frame behind the last one did not arrive: is the line up?")


# --- layers -------------------------------------------------------------------------------------------------


def ipv4(source, target, protocol, payload, identification=0, offset=0, more=False, options=b"", total=None):
    words = 5 + len(options) // 4
    total = words * 4 + len(payload) if total is None else total
    flags = offset | (0x2000 if more else 0)
    head = struct.pack("!BBHHHBBH4s4s", 0x40 | words, 0, total & 0xFFFF, identification, flags, 64, protocol, 0,
                       source.packed, target.packed) + options
    return head[:10] + struct.pack("!H", fold(ones_sum(head))) + head[12:] + payload


def ipv6(source, target, following, payload, length=None, hops=64):
    length = len(payload) if length is None else length
    return struct.pack("!IHBB16s16s", 6 << 28, length & 0xFFFF, following, hops, source.packed, target.packed) + payload


def extension(kind, following, units=0):
    """An extension header of (units + 1) * 8 bytes that Linux accepts. Its option is unknown and may be skipped."""
    size = units * 8 + 6
    if kind == ROUTING:
        return struct.pack("!BBBB", following, units, 253, 0) + bytes(size - 2)
    return struct.pack("!BBBB", following, units, 0x1E, size - 2 & 0xFF) + bytes(size - 2)


def fragment(following, identification, offset=0, more=False):
    return struct.pack("!BBHI", following, 0, offset << 3 | more, identification)


def transport(protocol, source, target, sport, dport, text=b"sieve"):
    """An upper-layer header and its payload, with the right checksum."""
    if protocol == UDP or protocol == UDPLITE:
        body, at = struct.pack("!4H", sport, dport, 8 + len(text), 0) + text, 6
    elif protocol == TCP:
        body, at = struct.pack("!HHIIBBHHH", sport, dport, 1, 0, 5 << 4, 2, 1024, 0, 0) + text, 16
    elif protocol == SCTP:
        return struct.pack("!HHII", sport, dport, 0, 0) + text
    elif protocol == DCCP:
        return struct.pack("!HHBBHII", sport, dport, 4, 0, 0, 0, 0) + text
    elif protocol in (ICMP, ICMPV6):
        body, at = struct.pack("!BBHI", 8 if protocol == ICMP else 128, 0, 0, 0) + text, 2
    else:
        return text * 3
    pseudo = b"" if protocol == ICMP else source.packed + target.packed
    total = ones_sum(body) + ones_sum(pseudo) + (protocol + len(body) if pseudo else 0)
    return body[:at] + struct.pack("!H", fold(total) or 0xFFFF) + body[at + 2 :]


def tagged(tags, ethertype):
    """The tags, each a pair of TPID and control word, followed by the type of the payload."""
    head = b"".join(struct.pack("!HH", tpid, control) for tpid, control in tags)
    return head + struct.pack("!H", ethertype)


# --- frames that Linux is known to accept ---------------------------------------------------------------------


def disguises(wire):
    """Names, upper protocols and frames. Each frame is a packet from a listed source and port."""
    for version in (4, 6):
        for protocol in (UDP, TCP, UDPLITE, DCCP, SCTP):
            for source in (LISTED_HOST[version], LISTED_PAIR[version]):
                upper = transport(protocol, source, wire.target[version], 1000, LISTED_PORT)
                name = f"{NAMES[protocol]} over IPv{version} from {source}"
                for disguise, frames in disguises_of(wire, version, protocol, source, upper):
                    yield f"{name} {disguise}", protocol, frames


def disguises_of(wire, version, protocol, source, upper):
    """Names and frames. The rarer protocols have fewer, since the parser reads each protocol at one place."""
    target = wire.target[version]
    rare = protocol not in (UDP, TCP)
    ethertype = ETH_IPV4 if version == 4 else ETH_IPV6
    bare = ipv4(source, target, protocol, upper) if version == 4 else ipv6(source, target, protocol, upper)
    for tags in (0, 5) if rare else [*range(21), 63, 64, 65, 200]:
        for outer in TPIDS if tags else TPIDS[:1]:
            head = tagged([(outer if i == 0 else TPIDS[0], 0) for i in range(tags)], ethertype)
            yield f"behind {tags} tags, the first {outer:#x}", [wire.ethernet + head + bare]
    if version == 4:
        options = ipv4(source, target, protocol, upper, options=bytes([1]) * 40)
        yield "behind options", [wire.ethernet + tagged([(TPIDS[0], 0)] * 30, ethertype) + options]
        return
    start = wire.ethernet + tagged([], ethertype)
    for kinds in ([DEST] * n for n in ((1, 9) if rare else (1, 7, 8, 9, 10, 20, 63, 64, 65, 150))):
        yield f"behind {len(kinds)} extension headers", [start + chain(source, target, kinds, protocol, upper)]
    for kinds in ([HOP], [HOP] + [DEST] * 20, [HOP] + [DEST, ROUTING] * 10,
                  [HOP, ROUTING, FRAGMENT] + [DEST, ROUTING] * 9):
        yield f"behind {len(kinds)} different headers", [start + chain(source, target, kinds, protocol, upper)]
        if FRAGMENT not in kinds:  # a jumbogram cannot be a fragment
            yield f"without a length, behind {len(kinds)} different headers", [
                start + chain(source, target, kinds, protocol, upper, length=0)]
    # The first fragment ends between two extension headers.
    first = fragment(DEST, 77, more=True) + extension(DEST, DEST)
    second = fragment(DEST, 77, offset=1) + extension(DEST, protocol) + upper
    yield "in the second fragment", [start + ipv6(source, target, FRAGMENT, part) for part in (first, second)]


def chain(source, target, kinds, protocol, upper, length=None):
    packet = upper
    following = protocol
    for kind in reversed(kinds):
        packet = (fragment(following, 5) if kind == FRAGMENT else extension(kind, following)) + packet
        following = kind
    return ipv6(source, target, following, packet, length)


def run_known(wire, options):
    wrong = count = 0
    for name, protocol, frames in disguises(wire):
        listed, _, at_port = wire.delivered(frames)
        count += 1
        if options.filtered:
            wrong += listed + at_port > 0
            if listed + at_port:
                print(f"delivered: {name}")
        elif not listed or (protocol in BOUND and not at_port):
            wrong += 1
            print(f"{'not at its port' if listed else 'not delivered'}: {name}")
    print(f"{count} disguises, {wrong} wrong")
    return 1 if wrong else 0


# --- random frames --------------------------------------------------------------------------------------------


class Maker:
    """Draws frames by a seed, and by nothing else."""

    def __init__(self, wire, seed, longest):
        self.wire, self.longest = wire, longest
        self.random = random.Random(seed)

    def one_in(self, n):
        return self.random.randrange(n) == 0

    def tags(self):
        if not self.one_in(3):
            return []
        count = self.random.randrange(90 if self.one_in(6) else 7)
        return [(self.random.choice(TPIDS), self.random.randrange(0x10000) if self.one_in(16) else
                 self.random.randrange(16) << 12) for _ in range(count)]

    def ends(self, version):
        sources = (LISTED_HOST, LISTED_HOST, LISTED_PAIR, LISTED_PAIR, NOT_LISTED)
        return self.random.choice(sources)[version], self.wire.target[version]

    def upper(self, version, source, target):
        protocol = self.random.choice((UDP, UDP, TCP, TCP, *HEARD[version]))
        dport = self.random.choice((LISTED_PORT, LISTED_PORT, LISTED_PORT, 54))
        text = bytes(self.random.randrange(64))
        return protocol, transport(protocol, source, target, self.random.randrange(65536), dport, text)

    def extensions(self, protocol, packet):
        """Puts extension headers in front of the packet; returns the first one's kind."""
        count = self.random.randrange(80 if self.one_in(6) else 6) if self.one_in(2) else 0
        long = self.longest > 4096 and self.one_in(3)  # reaches beyond the first buffer of a jumbo frame
        if long:
            count = self.random.randrange(self.longest // 248)
        for _ in range(count):
            kind = self.random.choice((DEST, DEST, DEST, ROUTING, FRAGMENT if self.one_in(4) else DEST,
                                       self.random.choice((HOP, AUTH, ESP, NONE, 135, 139, 140)) if self.one_in(12)
                                       else DEST))
            units = 30 if long else self.random.randrange(30 if self.one_in(4) else 4) if self.one_in(4) else 0
            packet = (fragment(protocol, self.random.randrange(1 << 32)) if kind == FRAGMENT else
                      extension(kind, protocol, units)) + packet
            protocol = kind
        if self.one_in(4):
            packet, protocol = extension(HOP, protocol, self.random.randrange(3)) + packet, HOP
        return protocol, packet

    def ip_packets(self):
        """One IP packet: whole, or as fragments."""
        version = self.random.choice((4, 6))
        source, target = self.ends(version)
        protocol, packet = self.upper(version, source, target)
        identification = self.random.randrange(1 << 32)
        pieces = 1
        if self.one_in(5):
            pieces = self.random.choice((2, 2, 3))
        if version == 4:
            options = bytes([1]) * 4 * self.random.randrange(11) if self.one_in(4) else b""
            total = self.random.choice((0, 19, 20, 22, 24, 28, 0xFFFF)) if self.one_in(20) else None
            return ETH_IPV4, [
                ipv4(source, target, protocol, part, identification & 0xFFFF, at // 8, more, options, total)
                for at, more, part in self.parts(packet, pieces)]
        following, packet = self.extensions(protocol, packet)
        hops = self.random.choice((255, 64, 64, 1))
        length = None
        if self.one_in(12) or (following == HOP and self.one_in(2)):
            length = self.random.choice((0, 0, 0, 4, 8, 16, len(packet) - 1, len(packet) + 1))
        if pieces == 1:
            return ETH_IPV6, [ipv6(source, target, following, packet, length, hops)]
        return ETH_IPV6, [
            ipv6(source, target, FRAGMENT, fragment(following, identification, at // 8, more) + part, length, hops)
            for at, more, part in self.parts(packet, pieces)]

    def parts(self, packet, pieces):
        """(offset, more, bytes) of each fragment, in any order, now and then overlapping."""
        cuts = sorted(self.random.randrange(len(packet) // 8 + 1) * 8 for _ in range(pieces - 1))
        parts = []
        for begin, end in zip([0, *cuts], [*cuts, len(packet)]):
            stop = min(end + 8, len(packet)) if self.one_in(30) else end
            parts.append((begin, end < len(packet) and pieces > 1, packet[begin:stop]))
        if self.one_in(2):
            self.random.shuffle(parts)
        return parts

    def mutate(self, frame, ip_at):
        """Changes some bytes, mostly in headers. The IPv4 header's checksum is usually right again."""
        frame = bytearray(frame)
        for _ in range(self.random.randrange(1, 4)):
            reach = min(len(frame), ip_at + 64 if self.random.randrange(4) else len(frame))
            at = self.random.randrange(12, max(13, reach))
            change = self.random.randrange(4)
            if change == 0:
                frame[at] = self.random.choice((0, 1, 4, 6, 17, 43, 44, 51, 58, 60, 132, 0x45, 0x60, 0x81, 0x88, 0xFF))
            elif change == 1:
                frame[at] ^= 1 << self.random.randrange(8)
            elif change == 2:
                frame[at] = self.random.randrange(256)
            else:
                frame[at] = frame[at] + self.random.choice((-2, -1, 1, 2)) & 0xFF
        if self.one_in(6):
            del frame[self.random.randrange(14, len(frame) + 1) :]
        header = (frame[ip_at] & 15) * 4 if len(frame) > ip_at else 0
        if len(frame) >= ip_at + 20 and frame[ip_at] >> 4 == 4 and header >= 20 and not self.one_in(16):
            frame[ip_at + 10 : ip_at + 12] = b"\0\0"
            frame[ip_at + 10 : ip_at + 12] = struct.pack("!H", fold(ones_sum(bytes(frame[ip_at : ip_at + header]))))
        return bytes(frame)

    def frames(self):
        """A group of frames: a single frame, or the fragments of a packet."""
        ethertype, packets = self.ip_packets()
        frames = []
        for packet in packets:
            head = self.wire.ethernet + tagged(self.tags(), ethertype)
            frame = head + packet
            if self.one_in(4):
                frame += bytes(self.random.randrange(20))
            if self.one_in(2):
                frame = self.mutate(frame, len(head))
            frames.append(frame[: self.longest])
        return frames


def write_capture(path, frames):
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, frame in enumerate(frames):
            out.write(struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame)


def guilty(wire, groups):
    """Of groups that were delivered together: those that are delivered alone, or all of them if none is."""

    def gets_in(frames):
        listed, _, at_port = wire.delivered(frames)
        return listed + at_port > 0

    alone = [frames for frames in groups if gets_in(frames)]
    return [frame for frames in alone or groups for frame in frames]


def run_random(wire, options):
    maker = Maker(wire, options.seed, options.longest)
    sent = listed = others = 0
    found = []
    end = time.monotonic() + options.seconds if options.seconds else None
    while time.monotonic() < end if end else sent < options.frames:
        groups = [maker.frames() for _ in range(BATCH)]
        got, rest, at_port = wire.delivered([frame for frames in groups for frame in frames])
        got += at_port if options.filtered else 0
        sent += sum(map(len, groups))
        listed += got
        others += rest
        if got and options.filtered and len(found) < 1000:
            found += guilty(wire, groups)
    print(f"{sent} frames, seed {options.seed}: {listed} packets of listed ends delivered, {others} of others")
    if options.filtered:
        if found and options.pcap:
            write_capture(options.pcap, found)
            print(f"{len(found)} frames that got in, and those that came with them: {options.pcap}")
        return 1 if listed else 0
    if listed < sent / 10:
        print("too few: these frames prove nothing")
        return 1
    return 0


def write_feeds(folder):
    with open(os.path.join(folder, "hosts"), "w", encoding="ascii") as out:
        out.writelines(f"{source}\n" for source in LISTED_HOST.values())
    with open(os.path.join(folder, "ports"), "w", encoding="ascii") as out:
        out.writelines(f"{source} {LISTED_PORT}\n" for source in LISTED_PAIR.values())
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("feeds").add_argument("folder")
    for name in ("known", "random"):  # the options of `random` follow
        verb = verbs.add_parser(name)
        verb.add_argument("--from", dest="sender", required=True, metavar="NS/IFACE")
        verb.add_argument("--to", dest="receiver", required=True, metavar="NS/IFACE")
        verb.add_argument("--to-address", action="append", required=True)
        verb.add_argument("--filtered", action="store_true")
    amount = verb.add_mutually_exclusive_group(required=True)
    amount.add_argument("--frames", type=int)
    amount.add_argument("--seconds", type=float)
    verb.add_argument("--seed", type=int, default=1)
    verb.add_argument("--longest", type=int, default=1514)
    verb.add_argument("--pcap")
    options = parser.parse_args()
    if options.verb == "feeds":
        return write_feeds(options.folder)
    wire = Wire(options)
    return run_known(wire, options) if options.verb == "known" else run_random(wire, options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Trouble as trouble:
        print(f"stack: {trouble}", file=sys.stderr)
        sys.exit(3)
