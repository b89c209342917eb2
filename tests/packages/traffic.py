#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Sends packets of two addresses by turns from one end of a veth pair to the other, and counts those that arrive there.

    traffic.py OUT IN LISTED OTHER      until the end of standard input; then prints `listed SENT ARRIVED` and
                                        `other SENT ARRIVED`

What XDP drops at the end IN does not arrive: sockets get only what it passes."""
import select
import socket
import struct
import sys

EVERY_SECONDS = 0.001
PATIENCE_SECONDS = 10  # for the last packet of the other address
UDP = 17
ALL_PROTOCOLS = 3


def frame(source):
    """An Ethernet frame with an empty UDP datagram."""
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, UDP, 0, socket.inet_aton(source),
                         socket.inet_aton("192.0.2.254"))
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xffff) + (total >> 16)
    header = header[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xffff) + header[12:]
    return b"\xff" * 6 + b"\x02\0\0\0\0\1" + b"\x08\0" + header + struct.pack("!HHHH", 9, 9, 8, 0)


def main():
    out_name, in_name, *addresses = sys.argv[1:]
    frames = [frame(address) for address in addresses]
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.bind((out_name, 0))
    receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    receiver.bind((in_name, 0))
    receiver.settimeout(PATIENCE_SECONDS)
    sent, arrived = [0, 0], [0, 0]
    ended = False
    while not ended:
        ended = bool(select.select([sys.stdin], [], [], EVERY_SECONDS)[0])
        for index, one in enumerate(frames):
            sender.send(one)
            sent[index] += 1
        # The other address's packet ends each round: packets of a veth pair keep their order.
        while arrived[1] < sent[1]:
            try:
                got = receiver.recv(2048)
            except TimeoutError:
                break
            for index, one in enumerate(frames):
                arrived[index] += got == one
        else:
            continue
        break
    for name, count, came in zip(("listed", "other"), sent, arrived):
        print(name, count, came)


main()
