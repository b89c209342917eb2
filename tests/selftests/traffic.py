#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Sends packets over a veth pair and says exactly which of them arrived.

Every packet ends in its own number. So the receiver (a packet socket behind the XDP hook, in the other network
namespace) can tell for each packet whether it arrived once, twice or never. A fence follows the last packet: a frame
without a key, which the filter always passes. A pair with one queue keeps the order, so the fence's arrival says that
all packets before it have been judged. Nothing here uses the filter's code or counters.

    traffic.py verdicts
        Answers one table after the other. A request on standard input is a line of arguments, the table, and a
        line "end". The answer is a line for each packet with a wrong verdict, and "status N": 0 all right,
        1 something wrong, 3 no result. A line of the table is a verdict and a packet, such as
        "drop udp 192.0.2.1 198.51.100.2 1000 53". The arguments are --from NS/IFACE --to NS/IFACE; --repeat N, how
        often each packet is sent; --fence NS/IFACE, where fences are sent from, beside the filter, if packets are
        redirected; --patience SECONDS, how long to wait for a packet that must arrive.

    traffic.py stream --from NS/IFACE --to NS/IFACE --flows FILE [--back-flows FILE] --report FILE
        Sends the flows of the file over and over until standard input says "stop" or ends. A line of the file
        is "GROUP OLD NEW PACKET": the verdict while the old set is in force, and the one under the new set. The
        command prints "sending N" as soon as the first packets have been judged. It answers each line that it
        reads with the line "WORD N", where N packets have been sent so far:
            count     at once
            more [N]  when N more packets have been sent and judged; without N, each flow once more
            begin     at once: a swap is about to be requested
            end       at once: the swap was reported done
            stop      at once; the report follows
        So a test waits for packets, however long they take. --back-flows go the other way; all must arrive.
        The report, JSON, counts per group; exit 1 if a verdict was wrong. Between "begin" and "end" there
        must be one packet such that all before it were judged by the old set and all others by the new.

A packet: PROTO SRC DST [SPORT DPORT] [size=BYTES] [vlan=ID[,ID...]] [fragment], where PROTO is udp, tcp, icmp,
a number (no header of its own then) or sctp. Only run this on interfaces that the test has made.
"""

import argparse
import contextlib
import ctypes
import ipaddress
import json
import os
import select
import socket
import struct
import sys
import time

ETH_P_ALL = 0x0003
ETH_P_IP = 0x0800
ETH_P_IPV6 = 0x86DD
ETH_P_8021Q = 0x8100
ETH_P_FENCE = 0x88B5  # "local experimental": the fence, a frame behind the last packet
SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
CLONE_NEWNET = 0x40000000

PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58, "sctp": 132}
PROTO_FRAGMENT = 44

MAGIC = b"sieve#"
TRAILER = len(MAGIC) + 6  # the magic, the run and the number
BURST = 32
AHEAD = 3  # bursts that may be on their way at once: far below the 256 entries of a veth queue
VERDICTS = ("drop", "pass", "any")
# Seconds until a wait counts as a hang. No result depends on it.
PATIENCE = float(os.environ.get("PATIENCE", 60))


class Trouble(Exception):
    """The result is void: no verdict can be derived from it."""


def in_namespace(name, action):
    """Runs the action in a network namespace and returns to the old one."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as home, open(f"/run/netns/{name}", "rb") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"namespace {name}")
        try:
            return action()
        finally:
            if libc.setns(home.fileno(), CLONE_NEWNET) != 0:
                os._exit(3)


class Port:
    """A packet socket on NAMESPACE/INTERFACE."""

    def __init__(self, place, drops=False):
        namespace, interface = place.split("/")
        self.drops = drops  # egress may drop frames, which looks to the sender like a full queue

        def open_socket():
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            opened.bind((interface, ETH_P_ALL))
            return opened

        self.socket = in_namespace(namespace, open_socket)
        self.socket.setblocking(False)
        self.mac = self.socket.getsockname()[4]

    def lost(self):
        """How many frames the socket had no room for since the last call."""
        return struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]

    def send(self, frame):
        while True:
            try:
                return self.socket.send(frame)
            except (BlockingIOError, OSError) as error:
                if not isinstance(error, BlockingIOError) and error.errno != 105:  # ENOBUFS
                    raise
                if self.drops and error.errno == 105:
                    return len(frame)
                select.select([], [self.socket], [], 0.01)


def ones_sum(data):
    """The sum of the data's 16-bit words, not folded."""
    if len(data) % 2:
        data += b"\0"
    return sum(struct.unpack(f"!{len(data) // 2}H", data))


def fold(total):
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def udp_packet(source, target, content, ports=(5000, 5000)):
    """An IPv4 packet with UDP and no checksum of that, for tests that write to a tun device or to a capture."""
    udp = struct.pack("!4H", *ports, 8 + len(content), 0) + content
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, PROTOCOLS["udp"], 0)
    head += socket.inet_aton(source) + socket.inet_aton(target)
    return head[:10] + struct.pack("!H", fold(ones_sum(head))) + head[12:] + udp


class Packet:
    """One flow's frame, without the packet's number."""

    def __init__(self, text, source_mac, target_mac, run):
        self.text = text
        words = text.split()
        name, source, target = words[0], ipaddress.ip_address(words[1]), ipaddress.ip_address(words[2])
        rest = words[3:]
        ports = []
        while rest and rest[0].isdigit():
            ports.append(int(rest.pop(0)))
        options = dict(word.partition("=")[::2] for word in rest)
        unknown = set(options) - {"size", "vlan", "fragment"}
        if unknown or len(ports) not in (0, 2) or source.version != target.version:
            raise ValueError(f"cannot read the packet: {text}")
        sport, dport = ports or (40000, 7)
        if name == "icmp" and source.version == 6:
            name = "icmpv6"
        proto = PROTOCOLS[name] if name in PROTOCOLS else int(name)
        fragment = "fragment" in options

        header, at = self.upper_header(name, sport, dport)
        if fragment:
            header, at = b"", None
        payload = max(TRAILER, int(options.get("size", TRAILER)))
        body = header + bytes(payload - TRAILER) + MAGIC + struct.pack("!HI", run, 0)
        if name == "udp" and not fragment:
            body = body[:4] + struct.pack("!H", len(body)) + body[6:]

        if source.version == 4:
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 64 if fragment else 0, 64, proto, 0,
                             source.packed, target.packed)
            ip = ip[:10] + struct.pack("!H", fold(ones_sum(ip))) + ip[12:]
            ethertype = ETH_P_IP
        else:
            extension = struct.pack("!BBHI", proto, 0, 64 << 3, 1) if fragment else b""
            ip = struct.pack("!IHBB16s16s", 6 << 28, len(extension) + len(body),
                             PROTO_FRAGMENT if fragment else proto, 64, source.packed, target.packed)
            ip += extension
            ethertype = ETH_P_IPV6
        tags = b""
        for tag in filter(None, options.get("vlan", "").split(",")):
            tags += struct.pack("!HH", ETH_P_8021Q, int(tag))
        start = target_mac + source_mac + tags + struct.pack("!H", ethertype) + ip
        self.frame = bytearray(start + body)

        self.checksum_at = None if at is None else len(start) + at
        self.checksum = ones_sum(body)
        if name != "icmp":  # all other checksums include the pseudo header
            self.checksum += ones_sum(source.packed + target.packed) + proto + len(body)
        self.trailer_odd = len(body) % 2

    @staticmethod
    def upper_header(name, sport, dport):
        """The header, and the offset of its checksum if it has one."""
        if name == "udp":
            return struct.pack("!HHHH", sport, dport, 0, 0), 6
        if name == "tcp":
            return struct.pack("!HHIIBBHHH", sport, dport, 1, 0, 5 << 4, 2, 1024, 0, 0), 16
        if name in ("icmp", "icmpv6"):
            return struct.pack("!BBHHH", 8 if name == "icmp" else 128, 0, 0, sport, 1), 2
        if name == "sctp":
            return struct.pack("!HHII", sport, dport, 0, 0), None
        return b"", None

    def numbered(self, number):
        frame = self.frame
        struct.pack_into("!I", frame, len(frame) - 4, number)
        if self.checksum_at is not None and not self.trailer_odd:
            value = fold(self.checksum + (number >> 16) + (number & 0xFFFF))
            struct.pack_into("!H", frame, self.checksum_at, value or 0xFFFF)
        return frame


class Line:
    """One direction: the packets that one port sent and the ones that the other port received."""

    def __init__(self, sender, receiver, run, fence=None):
        self.sender, self.receiver, self.run = sender, receiver, run
        self.fence = fence or sender
        self.mark = MAGIC + struct.pack("!H", run)
        self.arrived = []  # how often each arrived, by number
        self.fences_sent = self.fences = 0  # the newest fence's number: sent, and arrived
        self.fence_start = receiver.mac + sender.mac + struct.pack("!H", ETH_P_FENCE) + bytes(40) + self.mark

    def packet(self, text):
        return Packet(text, self.sender.mac, self.receiver.mac, self.run)

    def send(self, packet):
        """Sends one packet. Waits while too many are on their way, since a full veth queue drops silently."""
        self.sender.send(packet.numbered(len(self.arrived)))
        self.arrived.append(0)
        if len(self.arrived) % BURST == 0:
            self.send_fence()
            self.receive()
            self.await_fence(self.fences_sent - AHEAD)

    def send_fence(self):
        self.fences_sent += 1
        self.fence.send(self.fence_start + struct.pack("!I", self.fences_sent))

    def await_fence(self, number):
        """Returns when that fence, or a later one, has arrived: all packets before it have been judged."""
        deadline = time.monotonic() + PATIENCE
        while self.fences < number:
            self.receive(0.05)
            if self.fences >= number:
                return
            if time.monotonic() > deadline:
                raise Trouble("the frame behind the last packet did not arrive: is the line up?")
            # A link that is being reconfigured loses frames.
            self.send_fence()

    def receive(self, wait=0.0):
        """Reads what has arrived; waits for the first frame until the timeout."""
        if wait:
            select.select([self.receiver.socket], [], [], wait)
        arrived, mark = self.arrived, self.mark
        try:
            while True:
                frame = self.receiver.socket.recv(16384)
                if frame[-TRAILER:-4] != mark:
                    continue
                number = int.from_bytes(frame[-4:], "big")
                if frame[12:14] == b"\x88\xb5":
                    self.fences = max(self.fences, number)
                elif number < len(arrived):
                    arrived[number] += 1
        except BlockingIOError:
            pass

    def settle(self):
        """Returns when everything that was sent has arrived or never will."""
        # Twice: the first fence flushes packets that the receiver may hold back to merge them.
        for _ in range(2):
            self.send_fence()
            self.await_fence(self.fences_sent)
        self.receive()
        lost = self.receiver.lost()
        if lost:
            raise Trouble(f"the receiver had no room for {lost} packets")

    def await_packets(self, missing, patience):
        """Waits for packets that do not keep their order with the fences, such as redirected ones."""
        deadline = time.monotonic() + patience
        while missing() and time.monotonic() < deadline:
            self.receive(0.05)


def read_verdict(text):
    if text not in VERDICTS:
        raise ValueError(f"expected one of {', '.join(VERDICTS)}, not {text}")
    return text


def is_wrong(verdict, count):
    """A packet must arrive once or not at all. Arriving twice is always wrong."""
    return count > 1 or (verdict == "pass" and count == 0) or (verdict == "drop" and count == 1)


def run_verdicts(options, table, run):
    fence = Port(options.fence) if options.fence else None
    line = Line(Port(options.sender, options.sender_drops), Port(options.receiver), run & 0xFFFF, fence)
    cases = []
    for text in table:
        text = text.partition("#")[0].strip()
        if text:
            verdict, packet = text.split(maxsplit=1)
            cases.append((read_verdict(verdict), line.packet(packet)))
    for _ in range(options.repeat):
        for _, packet in cases:
            line.send(packet)
    line.settle()
    line.await_packets(
        lambda: any(count == 0 and cases[i % len(cases)][0] == "pass" for i, count in enumerate(line.arrived)),
        options.patience,
    )
    wrong = 0
    for i, (verdict, packet) in enumerate(cases):
        counts = line.arrived[i :: len(cases)]
        if any(is_wrong(verdict, count) for count in counts):
            wrong += 1
            print(f"expected {verdict}, but {sum(counts)} of {len(counts)} arrived: {packet.text}")
    if not cases:
        raise Trouble("an empty table proves nothing")
    return 1 if wrong else 0


def answer_tables():
    parser = argparse.ArgumentParser("a table's arguments", add_help=False)
    add_line_arguments(parser)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--fence", metavar="NS/IFACE")
    parser.add_argument("--patience", type=float, default=PATIENCE)
    parser.add_argument("--sender-drops", action="store_true", help="the sender's interface has an egress hook")
    for number, words in enumerate(iter(sys.stdin.readline, "")):
        table = list(iter(sys.stdin.readline, "end\n"))
        try:
            # Every run has its own number, so that a late packet does not count for the next run.
            status = run_verdicts(parser.parse_args(words.split()), table, os.getpid() + number)
        except Trouble as trouble:
            print(f"traffic: {trouble}")
            status = 3
        print(f"status {status}", flush=True)


class Stream:
    """Sends flows over and over, and judges the results."""

    def __init__(self, line, path):
        self.line = line
        self.flows = []
        with open(path, encoding="ascii") as lines:
            for text in lines:
                group, old, new, packet = text.split(maxsplit=3)
                self.flows.append((group, read_verdict(old), read_verdict(new), line.packet(packet)))
        if not self.flows:
            raise Trouble(f"{path}: no flows")

    def sent(self):
        return len(self.line.arrived)

    def send(self, count):
        first = self.sent()
        for i in range(first, first + count):
            self.line.send(self.flows[i % len(self.flows)][3])

    def cut(self, begin, end):
        """The packet from which on the new set judged, chosen such that the fewest verdicts are wrong."""
        arrived, flows = self.line.arrived, self.flows
        wrong = sum(is_wrong(flows[i % len(flows)][2], arrived[i]) for i in range(begin, end))
        best, at = wrong, begin
        for i in range(begin, end):
            _, old, new, _ = flows[i % len(flows)]
            wrong += is_wrong(old, arrived[i]) - is_wrong(new, arrived[i])
            if wrong < best:
                best, at = wrong, i + 1
        return at

    def judged(self, begin, end):
        """The report, after a wait for late packets."""
        self.line.await_packets(lambda: self.report(begin, end)["missing"], PATIENCE)
        return self.report(begin, end)

    def report(self, begin, end):
        cut = self.cut(begin, end)
        groups, examples, total, missing = {}, [], 0, 0
        for i, count in enumerate(self.line.arrived):
            group, old, new, packet = self.flows[i % len(self.flows)]
            verdict = old if i < cut else new
            row = groups.setdefault(group, {"old": [0] * 4, "new": [0] * 4})["old" if i < cut else "new"]
            row[0] += 1
            row[1] += verdict == "drop"
            row[2] += count > 0
            if is_wrong(verdict, count):
                row[3] += 1
                total += 1
                missing += count == 0
                if len(examples) < 5:
                    where = f"packet {i}, under the {'old' if i < cut else 'new'} set"
                    examples.append(f"expected {verdict}, arrived {count} times ({where}): {packet.text}")
        names = ("sent", "expected_drops", "arrived", "wrong")
        return {
            "packets": self.sent(),
            "arrived": sum(count > 0 for count in self.line.arrived),
            "begin": begin,
            "end": end,
            "cut": cut,
            "wrong": total,
            "missing": missing,
            "examples": examples,
            "groups": {g: {k: dict(zip(names, v)) for k, v in rows.items()} for g, rows in groups.items()},
        }


class Requests:
    """The requests on standard input of a stream. Each line gets an answer of one line."""

    def __init__(self, stream):
        self.stream = stream
        self.marks = {}  # how many packets had been sent at each word
        self.due = []  # how many packets must have been sent before each "more" is answered
        self.pending = b""

    def read(self, wait):
        """Reads requests; waits for them until the timeout."""
        if not select.select([0], [], [], wait)[0]:
            return
        text = os.read(0, 4096)
        self.pending += text or b"stop\n"
        *lines, self.pending = self.pending.split(b"\n")
        for word, *rest in (line.decode().split() for line in lines):
            if word == "more":
                self.due.append(self.stream.sent() + int(rest[0] if rest else len(self.stream.flows)))
            else:
                self.marks[word] = self.stream.sent()
                self.answer(word)

    def answer_due(self):
        while self.due and self.due[0] <= self.stream.sent():
            self.stream.line.settle()
            self.due.pop(0)
            self.answer("more")

    def answer(self, word):
        # The reader may have gone already.
        with contextlib.suppress(BrokenPipeError):
            print(f"{word} {self.stream.sent()}", flush=True)


def run_stream(options):
    there, here = Port(options.sender), Port(options.receiver)
    run = os.getpid() & 0x7FFF
    streams = [Stream(Line(there, here, run), options.flows)]
    if options.back_flows:
        streams.append(Stream(Line(here, there, run | 0x8000), options.back_flows))
    requests = Requests(streams[0])
    started = time.monotonic()
    while "stop" not in requests.marks:
        first = streams[0].sent() == 0
        streams[0].send(BURST)
        if len(streams) > 1:
            streams[1].send(BURST // 4)
        for stream in streams:
            stream.line.receive()
        if first:
            streams[0].line.settle()
            requests.answer("sending")
        requests.answer_due()
        # The rate is a limit: a slower machine sends fewer packets.
        requests.read(max(0.0, streams[0].sent() / options.rate - (time.monotonic() - started)))
    for stream in streams:
        stream.line.settle()
    begin = requests.marks.get("begin", streams[0].sent())
    report = streams[0].judged(begin, requests.marks.get("end", begin))
    report["seconds"] = time.monotonic() - started
    if len(streams) > 1:
        report["back"] = streams[1].judged(streams[1].sent(), streams[1].sent())
    with open(options.report, "w", encoding="ascii") as out:
        json.dump(report, out, indent=2)
    return 1 if report["wrong"] or report.get("back", {}).get("wrong") else 0


def add_line_arguments(parser):
    parser.add_argument("--from", dest="sender", required=True, metavar="NS/IFACE")
    parser.add_argument("--to", dest="receiver", required=True, metavar="NS/IFACE")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("verdicts")
    stream = verbs.add_parser("stream")
    add_line_arguments(stream)
    stream.add_argument("--flows", required=True)
    stream.add_argument("--back-flows")
    stream.add_argument("--report", required=True)
    stream.add_argument("--rate", type=float, default=20000, help="packets a second, at most")
    options = parser.parse_args()
    try:
        sys.exit(answer_tables() if options.verb == "verdicts" else run_stream(options))
    except Trouble as trouble:
        print(f"traffic: {trouble}", file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
