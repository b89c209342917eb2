# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""The host whose filter lives: network namespaces, interfaces, packets, and the daemon's process."""

import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "selftests"))
import traffic  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"])
SIEVE = os.environ.get("SIEVE", str(BUILD / "xdp-sieve"))
SIEVED = os.environ.get("SIEVED", str(BUILD / "xdp-sieved"))
PATIENCE = traffic.PATIENCE  # seconds until a wait counts as a hang
HERE, PEER, AWAY = "life-here", "life-peer", "life-away"  # the network namespaces, in mounts of our own
UDP_PORT, LISTS_PORT, DECISIONS_PORT, STATUS_PORT = 53, 8000, 8001, 9100
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
        self.addresses = [f"198.51.{100 + number}.2", f"2001:db8:f{number}::2"]
        self.peer_addresses = [f"198.51.{100 + number}.1", f"2001:db8:f{number}::1"]
        self.where = "gone"  # "here", "renamed", "away" or "gone"

    def make(self):
        one_queue = ["numtxqueues", 1, "numrxqueues", 1]
        run("ip", "-n", PEER, "link", "add", self.peer, "address", f"02:00:00:00:{self.number:02}:01", *one_queue,
            "type", "veth", "peer", "name", self.name, "address", f"02:00:00:00:{self.number:02}:02", *one_queue,
            "netns", HERE)
        run("ip", "-n", PEER, "link", "set", self.peer, "up")
        self.give_addresses(PEER, self.peer, self.peer_addresses)
        self.up()

    def up(self):
        run("ip", "-n", HERE, "link", "set", self.name, "up")
        self.give_addresses(HERE, self.name, self.addresses)
        self.await_carrier(HERE, self.name, self.addresses)
        self.await_carrier(PEER, self.peer, self.peer_addresses)
        self.where = "here"

    @staticmethod
    def give_addresses(namespace, name, addresses):
        for address in addresses:
            length, options = (64, ["nodad"]) if ":" in address else (24, [])
            run("ip", "-n", namespace, "address", "replace", f"{address}/{length}", "dev", name, *options)

    @staticmethod
    def await_carrier(namespace, name, addresses):
        """The kernel notices a carrier some time after it came, and drops packets until then."""
        def is_up():
            [link] = json.loads(run("ip", "-n", namespace, "-j", "link", "show", name).stdout)
            return link["operstate"] == "UP" and all(
                run("ip", "-n", namespace, "route", "get", address, check=False).stdout.startswith("local")
                for address in addresses)

        deadline = time.monotonic() + PATIENCE
        while not is_up():
            if time.monotonic() > deadline:
                raise Trouble(f"{name} in {namespace} has no carrier")
            time.sleep(0.01)

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
        # No addresses but ours, and no packets but ours.
        for name, value in (("ipv6.conf.default.addr_gen_mode", 1), ("ipv6.conf.default.accept_ra", 0),
                            ("ipv6.conf.default.router_solicitations", 0), ("ipv6.conf.default.accept_dad", 0),
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
        targets = interface.addresses
        if leaving:
            ends.reverse()
            targets = interface.peer_addresses
        Way.runs = Way.runs % 0xFFFF + 1
        super().__init__(traffic.Port(ends[0], drops=leaving), traffic.Port(ends[1]), Way.runs)
        namespace, name = ends[1].split("/")
        self.targets = targets
        self.packets = {}

        def open_socket():
            opened = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.setsockopt(socket.SOL_SOCKET, traffic.SO_RCVBUFFORCE, 16 << 20)
            opened.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, name.encode() + b"\0")
            opened.bind(("::", UDP_PORT))
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
                target = self.targets[":" in address]
                self.packets[address] = self.packet(f"udp {address} {target} 1000 {UDP_PORT}")
            self.send(self.packets[address])
        self.settle()
        return {address for address, count in zip(addresses, self.arrived[first:]) if count}


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

    def waits_for(self):
        """Where its threads and its children are in the kernel, a line each; 0: they run, or would."""
        for task in sorted(pathlib.Path(f"/proc/{self.pid}/task").glob("*")):
            with contextlib.suppress(OSError):
                yield f"thread {task.name}: {(task / 'wchan').read_text()}"
                for child in (task / "children").read_text().split():
                    of_child = pathlib.Path("/proc", child)
                    words = (of_child / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    yield f"child {child}, {words.strip()}: {(of_child / 'wchan').read_text()}"

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
