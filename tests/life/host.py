# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""The host whose filter lives: network namespaces, interfaces, packets, a list server, and the daemon's process."""

import contextlib
import ctypes
import gzip
import http.client
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "selftests"))
import traffic  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"])
SIEVE = os.environ.get("SIEVE", str(BUILD / "xdp-sieve"))
SIEVED = os.environ.get("SIEVED", str(BUILD / "xdp-sieved"))
PATIENCE = traffic.PATIENCE  # seconds until a wait counts as a hang
HERE, PEER, AWAY = "life-here", "life-peer", "life-away"  # the network namespaces, in mounts of our own
UDP_PORT, LISTS_PORT, STATUS_PORT = 53, 8000, 9100
SO_BINDTODEVICE = 25
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


class Trouble(Exception):
    """The test itself could not go on."""


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(*words, check=True):
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=PATIENCE)
    if check and done.returncode != 0:
        raise Trouble(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done


def inside(namespace, *words):
    return ["nsenter", f"--net=/run/netns/{namespace}", *map(str, words)]


# --- interfaces ---------------------------------------------------------------------------------------------


class Interface:
    """A veth pair: our end, which is filtered, and the peer's."""

    def __init__(self, number):
        self.number = number
        self.name, self.peer = f"life{number}", f"peer{number}"
        self.renamed = f"lost{number}"
        self.address, self.peer_address = f"198.51.{100 + number}.2", f"198.51.{100 + number}.1"
        self.where = "gone"  # "here", "renamed", "away" or "gone"

    def make(self):
        one_queue = ["numtxqueues", 1, "numrxqueues", 1]
        run("ip", "-n", PEER, "link", "add", self.peer, "address", f"02:00:00:00:{self.number:02}:01", *one_queue,
            "type", "veth", "peer", "name", self.name, "address", f"02:00:00:00:{self.number:02}:02", *one_queue,
            "netns", HERE)
        run("ip", "-n", PEER, "link", "set", self.peer, "up")
        run("ip", "-n", PEER, "address", "add", f"{self.peer_address}/24", "dev", self.peer)
        self.up()

    def up(self):
        run("ip", "-n", HERE, "link", "set", self.name, "up")
        run("ip", "-n", HERE, "address", "replace", f"{self.address}/24", "dev", self.name)
        self.where = "here"

    def remove(self):
        run("ip", "-n", PEER, "link", "del", self.peer)
        self.where = "gone"

    def rename(self):
        run("ip", "-n", HERE, "link", "set", self.name, "down")
        run("ip", "-n", HERE, "link", "set", self.name, "name", self.renamed)
        run("ip", "-n", HERE, "link", "set", self.renamed, "up")
        self.where = "renamed"

    def rename_back(self):
        run("ip", "-n", HERE, "link", "set", self.renamed, "down")
        run("ip", "-n", HERE, "link", "set", self.renamed, "name", self.name)
        self.up()

    def move_away(self):
        run("ip", "-n", HERE, "link", "set", self.name, "netns", AWAY)
        self.where = "away"

    def move_back(self):
        run("ip", "-n", AWAY, "link", "set", self.name, "netns", HERE)
        self.up()


def make_namespaces():
    for namespace in (HERE, PEER, AWAY):
        run("ip", "netns", "add", namespace)
        for name, value in (("ipv6.conf.all.disable_ipv6", 1), ("ipv6.conf.default.disable_ipv6", 1),
                            ("ipv4.conf.all.rp_filter", 0), ("ipv4.conf.default.rp_filter", 0)):
            run(*inside(namespace, "sysctl", "-qw", f"net.{name}={value}"))
        run("ip", "-n", namespace, "link", "set", "lo", "up")


# --- packets ------------------------------------------------------------------------------------------------


class Way(traffic.Line):
    """Packets through one interface in one direction. A UDP socket receives them, so that tc's hooks come before it;
    fences are frames without a key, as in traffic.py."""

    runs = 0

    def __init__(self, interface, leaving):
        ends = [f"{PEER}/{interface.peer}", f"{HERE}/{interface.name}"]
        target = interface.address
        if leaving:
            ends.reverse()
            target = interface.peer_address
        Way.runs = Way.runs % 0xFFFF + 1
        super().__init__(traffic.Port(ends[0], drops=leaving), traffic.Port(ends[1]), Way.runs)
        namespace, name = ends[1].split("/")
        self.target = target
        self.packets = {}

        def open_socket():
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.setsockopt(socket.SOL_SOCKET, traffic.SO_RCVBUFFORCE, 16 << 20)
            opened.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, name.encode() + b"\0")
            opened.bind(("0.0.0.0", UDP_PORT))
            return opened

        self.udp = traffic.in_namespace(namespace, open_socket)
        self.udp.setblocking(False)

    def close(self):
        for one in (self.udp, self.sender.socket, self.receiver.socket):
            one.close()

    def receive(self, wait=0.0):
        if wait:
            select.select([self.receiver.socket], [], [], wait)
        with contextlib.suppress(BlockingIOError):
            while True:
                frame = self.receiver.socket.recv(2048)
                if frame[12:14] == b"\x88\xb5" and frame[-traffic.TRAILER : -4] == self.mark:
                    self.fences = max(self.fences, int.from_bytes(frame[-4:], "big"))
        with contextlib.suppress(BlockingIOError):
            while True:
                content = self.udp.recv(2048)
                number = int.from_bytes(content[-4:], "big")
                if content[-traffic.TRAILER : -4] == self.mark and number < len(self.arrived):
                    self.arrived[number] += 1

    def send_round(self, addresses):
        """Sends a packet from each address and returns those whose packets arrived."""
        first = len(self.arrived)
        for address in addresses:
            if address not in self.packets:
                self.packets[address] = self.packet(f"udp {address} {self.target} 1000 {UDP_PORT}")
            self.send(self.packets[address])
        self.settle()
        return {address for address, count in zip(addresses, self.arrived[first:]) if count}


# --- a list server ------------------------------------------------------------------------------------------

GOOD, SLOW, HANGING, RESETTING, BROKEN, MISSING, SHORT, HTML, HUGE = ANSWERS = (
    "good", "slow", "hanging", "resetting", "500", "404", "short", "html", "huge")
PAGE = b"<!DOCTYPE html>\n<html><head><title>Log in</title></head><body>Please log in.</body></html>\n"


class ListServer(threading.Thread):
    """Serves one list to whoever asks, in the manner that it is told."""

    def __init__(self):
        super().__init__(daemon=True)
        self.content, self.manner = b"", GOOD

        def listen():
            return socket.create_server(("127.0.0.1", LISTS_PORT), backlog=64)

        self.listening = traffic.in_namespace(HERE, listen)
        self.start()

    def run(self):
        while True:
            connection, _ = self.listening.accept()
            threading.Thread(target=self.answer, args=[connection], daemon=True).start()

    def answer(self, connection):
        manner, content = self.manner, self.content
        with connection, contextlib.suppress(OSError):
            connection.settimeout(10)
            connection.recv(65536)
            if manner == RESETTING:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif manner == HANGING:
                connection.recv(1)  # returns when the other end has lost its patience
            elif manner in (BROKEN, MISSING):
                connection.sendall(b"HTTP/1.1 " + manner.encode() + b" No\r\nContent-Length: 0\r\n\r\n")
            elif manner == HUGE:
                body = gzip.compress(b"".join(b"45.%d.%d.%d\n" % (i >> 16, i >> 8 & 255, i & 255)
                                              for i in range(200000)))
                self.send(connection, body, len(body), b"Content-Encoding: gzip\r\n")
            elif manner == HTML:
                self.send(connection, PAGE, len(PAGE))
            elif manner == SHORT:
                self.send(connection, content[: len(content) // 2], len(content))
            else:
                self.send(connection, content, len(content), pause=0.02 if manner == SLOW else 0)

    @staticmethod
    def send(connection, body, length, headers=b"", pause=0.0):
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n" + headers +
                           b"Content-Length: %d\r\n\r\n" % length)
        step = max(1, len(body) // 16) if pause else len(body)
        for at in range(0, len(body), step):
            connection.sendall(body[at : at + step])
            time.sleep(pause)


# --- the daemon ---------------------------------------------------------------------------------------------


class Daemon:
    """One process of xdp-sieved. What it logs goes to a file."""

    def __init__(self, config, log):
        self.log = log
        self.starts_at = log.stat().st_size if log.exists() else 0
        with open(log, "ab") as out:
            self.process = subprocess.Popen(inside(HERE, SIEVED, "--config", config, "--log", "stderr"),
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            preexec_fn=die_with_parent)
        self.pid = self.process.pid

    def said(self):
        with open(self.log, "rb") as text:
            text.seek(self.starts_at)
            return text.read().decode(errors="replace")

    def is_ready(self):
        return "xdp-sieved: ready " in self.said()

    def ended(self):
        return self.process.poll() is not None

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, number):
        """Returns the exit status."""
        if not self.ended():
            self.signal(number)
        return self.process.wait(timeout=PATIENCE)

    @staticmethod
    def metrics():
        """{line up to its value: value}, or None if nobody answers."""
        def connect():
            return socket.create_connection(("127.0.0.1", STATUS_PORT), timeout=10)

        try:
            connection = http.client.HTTPConnection("127.0.0.1", STATUS_PORT, timeout=10)
            connection.sock = traffic.in_namespace(HERE, connect)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            connection.close()
        except (OSError, http.client.HTTPException):
            return None
        lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}
