#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""A TCP connection between two network namespaces, controlled by standard input.

    tcp_pair.py FROM-NAMESPACE TO-NAMESPACE ADDRESS

Connects to ADDRESS in the second namespace and prints "connected". Then each line is one command:

    transfer BYTES   sends BYTES bytes; answers "transferred BYTES" when all of them have arrived, unchanged
    queue BYTES      gives the kernel as many of BYTES bytes as it takes at once; answers "queued BYTES"
    arrived          answers "arrived BYTES" at once: how many bytes have arrived since the previous answer
    finish           answers "transferred BYTES" when the rest of the queued bytes has arrived, unchanged
"""

import os
import select
import socket
import sys

from traffic import PATIENCE, in_namespace

BLOCK = bytes(range(251)) * 1045  # a prime period, so that a shift shows


class Pair:
    def __init__(self, source, target, address):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET

        def listen():
            listener = socket.create_server((address, 0), family=family)
            return listener

        listener = in_namespace(target, listen)
        self.sender = in_namespace(source, lambda: socket.socket(family, socket.SOCK_STREAM))
        self.sender.settimeout(PATIENCE)
        self.sender.connect(listener.getsockname()[:2])
        listener.settimeout(PATIENCE)
        self.receiver = listener.accept()[0]
        self.sender.setblocking(False)
        self.receiver.setblocking(False)
        self.sent = self.arrived = 0

    def send(self, most):
        """Sends up to this many bytes; returns how many the kernel took."""
        begin = self.sent % 251
        try:
            done = self.sender.send(BLOCK[begin : begin + min(most, len(BLOCK) - 251)])
        except BlockingIOError:
            return 0
        self.sent += done
        return done

    def receive(self):
        """Reads the bytes that are there; returns how many."""
        try:
            data = self.receiver.recv(1 << 18)
        except BlockingIOError:
            return 0
        if not data:
            raise SystemExit("tcp_pair: the connection has ended")
        begin = self.arrived % 251
        if data != (BLOCK * 2)[begin : begin + len(data)]:
            raise SystemExit("tcp_pair: other bytes arrived than were sent")
        self.arrived += len(data)
        return len(data)

    def transfer(self, count):
        end = self.sent + count
        while self.arrived < end:
            writing = [self.sender] if self.sent < end else []
            ready = select.select([self.receiver, self.sender], writing, [], PATIENCE)
            if not any(ready):
                raise SystemExit(f"tcp_pair: {self.arrived} of {end} bytes arrived")
            if self.sender in ready[0]:  # nobody sends to it, so its connection has ended
                error = os.strerror(self.sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
                raise SystemExit(f"tcp_pair: the sender gave up after {self.arrived} of {end} bytes: {error}")
            if ready[1]:
                self.send(end - self.sent)
            while self.receive():
                pass


def main():
    pair = Pair(*sys.argv[1:4])
    print("connected", flush=True)
    for line in iter(sys.stdin.readline, ""):
        word, *count = line.split()
        if word == "transfer":
            pair.transfer(int(count[0]))
            answer = f"transferred {count[0]}"
        elif word == "queue":
            left = int(count[0])
            while left and (done := pair.send(left)):
                left -= done
            answer = f"queued {int(count[0]) - left}"
        elif word == "arrived":
            before = pair.arrived
            while pair.receive():
                pass
            answer = f"arrived {pair.arrived - before}"
        else:
            left = pair.sent - pair.arrived
            pair.transfer(0)
            answer = f"transferred {left}"
        print(answer, flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)
