#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Sends packets that do not name their destination where an IP packet names it, and says whether they left.

    way_out.py FUNCTION FROM-NS/IFACE TO-NS/IFACE STOP4 STOP6 LISTED4 LISTED6

    routes_arrive    packets to the listed addresses by way of the stops: both must arrive
    routes_end       the same: neither may arrive
    bypass           a packet socket sends to LISTED4, with and without PACKET_QDISC_BYPASS: only the former arrives
    foreign          to LISTED4 in an LLC/SNAP frame and behind an MPLS label: both arrive; to STOP4 in an LLC/SNAP
                     frame: its host's stack does not take it for IP

Exit 1: it was otherwise. Run this only on interfaces that the test has made.
"""

import ipaddress
import os
import select
import socket
import struct
import sys
import time

from traffic import PATIENCE, SOL_PACKET, Port, in_namespace, udp_packet

IP_OPTIONS = 4
LOOSE_ROUTE = 131
IPV6_RTHDR = 57
SEGMENT_ROUTE = 4
PACKET_QDISC_BYPASS = 20
NOBODY = 65534
PORT = 9


class WayOut:
    def __init__(self, source, target, *addresses):
        self.home, self.away = source.partition("/")[0], target.partition("/")[0]
        self.source, self.target = source, Port(target)
        self.stop, self.listed = dict(zip((4, 6), addresses[:2])), dict(zip((4, 6), addresses[2:]))
        self.marks = 0

    def port(self):
        return Port(self.source, drops=True)

    def send(self, version, text, route):
        """To the listed address by way of the stop, or to the stop itself. Any user may; but newer kernels want
        CAP_NET_RAW for a source route of IPv4."""
        family = socket.AF_INET if version == 4 else socket.AF_INET6

        def send():
            with socket.socket(family, socket.SOCK_DGRAM) as user:
                stop = socket.inet_pton(family, self.stop[version])
                if route and version == 4:
                    user.setsockopt(socket.IPPROTO_IP, IP_OPTIONS, bytes((LOOSE_ROUTE, 7, 4)) + stop + b"\0")
                elif route:
                    header = struct.pack("!6BH", 0, 4, SEGMENT_ROUTE, 1, 1, 0, 0) + bytes(16) + stop
                    user.setsockopt(socket.IPPROTO_IPV6, IPV6_RTHDR, header)
                try:
                    user.sendto(text, ((self.listed if route else self.stop)[version], PORT))
                except OSError:  # egress may drop it, which the sender may learn
                    if not route:
                        raise

        def as_user():
            os.seteuid(0 if version == 4 and route else NOBODY)
            try:
                send()
            finally:
                os.seteuid(0)

        in_namespace(self.home, as_user)

    def arrived(self, version=4):
        """All frames that arrived before a packet to the stop that is sent now."""
        self.marks += 1
        mark = b"mark %d." % self.marks
        self.send(version, mark, route=False)
        frames, deadline = [], time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if select.select([self.target.socket], [], [], 1)[0]:
                frames.append(self.target.socket.recv(4096))
                if mark in frames[-1]:
                    return frames
        sys.exit("the mark did not arrive")

    def with_text(self, text, version=4):
        return [frame for frame in self.arrived(version) if text in frame]

    def routes(self, wanted):
        for version in (4, 6):
            self.arrived(version)  # whatever came earlier; and the neighbour is known now
            self.send(version, b"routed", route=True)
            frames = self.with_text(b"routed", version)
            if len(frames) != wanted:
                sys.exit(f"IPv{version}: {len(frames)} packets on a source route arrived instead of {wanted}")
            for frame in frames:
                at = 30 if version == 4 else 38
                address = ipaddress.ip_address(frame[at : at + (4 if version == 4 else 16)])
                if str(address) != self.stop[version] or ipaddress.ip_address(self.listed[version]).packed not in frame:
                    sys.exit(f"IPv{version}: it goes to {address}, not to the stop")

    def frame(self, protocol, target, text, before=b""):
        packet = before + udp_packet("198.51.100.2", target, text, (1, PORT))
        return self.target.mac + self.port().mac + struct.pack("!H", protocol or len(packet)) + packet


def routes_arrive(way):
    way.routes(1)


def routes_end(way):
    way.routes(0)


def bypass(way):
    for number in (0, 1):
        text = b"bypass %d." % number
        port = way.port()
        port.socket.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, number)
        way.arrived()
        port.send(way.frame(0x0800, way.listed[4], text))
        if len(way.with_text(text)) != number:
            sys.exit(f"a packet with PACKET_QDISC_BYPASS {number}: not {number} arrived")


def foreign(way):
    snap = bytes((0xAA, 0xAA, 3, 0, 0, 0, 8, 0))
    for protocol, before in ((0, snap), (0x8847, struct.pack("!I", 16 << 12 | 1 << 8 | 64))):
        way.port().send(way.frame(protocol, way.listed[4], b"foreign", before))
        if len(way.with_text(b"foreign")) != 1:
            sys.exit(f"a frame of type {protocol:#x} did not arrive")
    # The same host takes the packet in an Ethernet frame, and not in an LLC/SNAP frame.
    with in_namespace(way.away, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as host:
        host.settimeout(PATIENCE)
        host.bind((way.stop[4], PORT))
        for protocol, before, text in ((0, snap, b"in SNAP"), (0x0800, b"", b"in Ethernet")):
            way.port().send(way.frame(protocol, way.stop[4], text, before))
        if host.recv(100) != b"in Ethernet":
            sys.exit("Linux takes IP out of LLC/SNAP frames")


if __name__ == "__main__":
    globals()[sys.argv[1]](WayOut(*sys.argv[2:]))
