#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""The two ends of replies.sh.

    replies.py serve               a server of all addresses, until it is killed: says "ready"
    replies.py ask ADDRESS WHAT... conversations that this host begins; prints what came of each, a line each
    replies.py hold ADDRESS [spoken]  a connected UDP socket that says nothing, or asks once: prints its port, and stays
    replies.py half ADDRESS        a TCP connection whose client has said all, and waits: prints its port, then what
                                   came
    replies.py keep ADDRESS        a TCP connection that stays: says "connected"; each line on standard input is a
                                   round trip, answered by "ok" or by what went wrong
    replies.py await               the same from the other side: waits for a peer, says "connected", and so on
    replies.py echo ADDRESS        such a peer
    replies.py library LIBRARY IFACE LIST   changes tables through the C interface; prints what each call came to
    replies.py listen              a host that nobody should reach: prints "ready", then what reached it, a line each
    replies.py bulk WHAT ADDRESS...  many transfers (push or pull) on each CPU: prints how many bytes
    replies.py tun NETWORK NETWORK a device tun0 in each network namespace, joined: says "ready", and stays
    replies.py put MAP AT NUMBER [KEY]  writes 4 bytes at this offset of a map's value, or one byte if it is no multiple
                                   of 4; the value of key 0 if none is given
    replies.py get MAP AT [KEY]    prints them
    replies.py strange ADDRESS     a stranger's packets to that address, of every kind; prints how many

WHAT is tcp, udp, time, fragments, closed, hop, speak, push, pull or service; after `speak`, the server answers its
half-closed connections. Patience is short, since the caller looks
at counters, too.
"""

import fcntl
import os
import socket
import struct
import sys
import threading
import time

# What few of the commands need is imported there: most conversations are shorter than these imports.

WAIT = float(os.environ.get("WAIT", 3))  # seconds for an answer that is on its way through three namespaces
PUSHED = 3_000_000
SERVICE, PORT, NAMES, TIME, LIVE, HALF = 22, 8080, 53, 123, 7777, 7778
IP_MTU_DISCOVER, IP_RECVERR, IPV6_RECVERR = 10, 11, 25


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def bound(kind, port, which):
    listener = socket.socket(which, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if which == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind(("::" if which == socket.AF_INET6 else "0.0.0.0", port))
    return listener


def serve():
    def names(sock):
        while True:
            question, peer = sock.recvfrom(9000)
            if question == b"speak":
                spoken.set()
            sock.sendto(b"answer" * (700 if b"large" in question else 1), peer)

    def pushes(sock):
        while True:
            peer, _ = sock.accept()
            threading.Thread(target=take, args=(peer,), daemon=True).start()

    def take(peer):
        got = 0
        while got < PUSHED:
            data = peer.recv(1 << 18)
            if not data:
                return
            got += len(data)
            if data == b"pull":
                peer.sendall(bytes(PUSHED))
                return peer.close()
            if data.endswith(b"?"):
                break
        peer.sendall(b"got %d" % got)
        peer.close()

    def echoes(sock):
        while True:
            peer, _ = sock.accept()
            threading.Thread(target=echo, args=(peer,), daemon=True).start()

    def echo(peer):
        while data := peer.recv(4096):
            peer.sendall(data)

    def halves(sock):
        while True:
            peer, _ = sock.accept()
            threading.Thread(target=answer_late, args=(peer,), daemon=True).start()

    def answer_late(peer):
        while peer.recv(4096):
            pass
        spoken.wait()
        peer.sendall(b"at last")
        peer.close()

    spoken = threading.Event()
    for which in socket.AF_INET, socket.AF_INET6:
        for port in NAMES, TIME:
            sock = bound(socket.SOCK_DGRAM, port, which)
            if which == socket.AF_INET:
                sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, 0)  # its large answers may be cut
            threading.Thread(target=names, args=(sock,), daemon=True).start()
        for port, work in (PORT, pushes), (LIVE, echoes), (HALF, halves):
            sock = bound(socket.SOCK_STREAM, port, which)
            sock.listen(64)
            threading.Thread(target=work, args=(sock,), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


def ask(address, what):
    stream = what in ("tcp", "push", "pull", "service")
    sock = socket.socket(family(address), socket.SOCK_STREAM if stream else socket.SOCK_DGRAM)
    sock.settimeout(WAIT)
    if stream:
        sock.connect((address, SERVICE if what == "service" else PORT))
        if what == "service":
            return "connected"
        if what == "pull":
            sock.sendall(b"pull")
            got = 0
            while data := sock.recv(1 << 18):
                got += len(data)
            return "got %d" % got
        sock.sendall(bytes(PUSHED) if what == "push" else b"?")
        return sock.recv(100).decode()
    if what == "hop":
        six = sock.family == socket.AF_INET6
        sock.setsockopt(socket.IPPROTO_IPV6 if six else 0, IPV6_RECVERR if six else IP_RECVERR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6 if six else 0, 16 if six else 2, 1)  # one hop
    if what == "time":  # as NTP: the same port at both ends, of a socket that is not connected
        sock = bound(socket.SOCK_DGRAM, TIME, sock.family)
        sock.settimeout(WAIT)
        sock.sendto(b"small", (address, TIME))
        return "%d bytes" % len(sock.recv(9000))
    sock.connect((address, {"closed": 9, "hop": 33434}.get(what, NAMES)))
    sock.send({"fragments": b"large", "speak": b"speak"}.get(what, b"small"))
    return "%d bytes" % len(sock.recv(9000))


def hold(address, spoken=None):
    sock = socket.socket(family(address), socket.SOCK_DGRAM)
    sock.connect((address, NAMES))
    if spoken:
        sock.settimeout(WAIT)
        sock.send(b"small")
        sock.recv(9000)
    print(sock.getsockname()[1], flush=True)
    threading.Event().wait()


def half(address):
    sock = socket.create_connection((address, HALF), timeout=WAIT)
    sock.shutdown(socket.SHUT_WR)
    sock.settimeout(None)
    print(sock.getsockname()[1], flush=True)
    print(sock.recv(4096).decode(), flush=True)


def keep(address):
    talk(socket.create_connection((address, LIVE), timeout=WAIT))


def await_peer():
    with bound(socket.SOCK_STREAM, LIVE, socket.AF_INET) as listener:
        listener.listen()
        print("ready", flush=True)
        sock, _ = listener.accept()
        talk(sock)  # while the port is still listened on


def echo(address):
    sock = socket.create_connection((address, LIVE), timeout=WAIT)
    sock.settimeout(None)
    while data := sock.recv(4096):
        sock.sendall(data)


def talk(sock):
    sock.settimeout(WAIT * 10)  # retransmissions may be needed
    print("connected", flush=True)
    for line in sys.stdin:
        try:
            sock.sendall(line.encode())
            back = b""
            while not back.endswith(b"\n"):
                data = sock.recv(4096)
                if not data:
                    raise OSError("the connection has ended")
                back += data
            print("ok" if back == line.encode() else "another text", flush=True)
        except OSError as error:
            print(type(error).__name__, error, flush=True)


def listen():
    def streams(sock):
        while True:
            _, peer = sock.accept()
            print("tcp", peer[0], flush=True)

    def datagrams(sock, name):
        while True:
            print("udp", name, sock.recvfrom(9000)[1][0], flush=True)

    for which in socket.AF_INET, socket.AF_INET6:
        sock = bound(socket.SOCK_STREAM, SERVICE, which)
        sock.listen()
        threading.Thread(target=streams, args=(sock,), daemon=True).start()
        for port in NAMES, 40000:
            threading.Thread(target=datagrams, args=(bound(socket.SOCK_DGRAM, port, which), port), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


def strange(address):
    """Sends a SYN, a SYN-ACK, an ACK, a RST; UDP to a service, to a client's port, from a service; ICMP echo and an
    error about a packet that was never sent."""
    which, sent = family(address), 0
    six = which == socket.AF_INET6
    for flags in 0x02, 0x12, 0x10, 0x04:
        raw = socket.socket(which, socket.SOCK_RAW, socket.IPPROTO_TCP)
        segment = struct.pack("!HHIIBBHHH", 45001, SERVICE, 1, 1, 0x50, flags, 1000, 0, 0)
        if six:
            raw.setsockopt(socket.IPPROTO_IPV6, 7, 16)  # IPV6_CHECKSUM
        raw.sendto(segment, (address, 0))
        sent += 1
    for port, to in (45000, NAMES), (45002, 40000), (500, 40000):
        sock = socket.socket(which, socket.SOCK_DGRAM)
        sock.bind(("::" if six else "0.0.0.0", port))
        sock.sendto(b"unsolicited", (address, to))
        sent += 1
    icmp = socket.socket(which, socket.SOCK_RAW, 58 if six else 1)
    source = socket.socket(which, socket.SOCK_DGRAM)
    source.connect((address, 9))
    us, them = (socket.inet_pton(which, x) for x in (source.getsockname()[0], address))
    if six:
        quoted = struct.pack("!IHBB", 6 << 28, 40, 6, 64) + them + us
        error, echo = 1, 128
    else:
        quoted = struct.pack("!BBHHHBBH", 0x45, 0, 60, 1, 0, 64, 6, 0) + them + us
        error, echo = 3, 8
    quoted += struct.pack("!HHI", 5555, PORT, 1)
    for kind, body in (echo, b"\0\1\0\1"), (error, b"\0\0\0\0" + quoted):
        packet = struct.pack("!BBH", kind, 1 if kind == error and not six else 0, 0) + body
        if not six:
            total = sum(struct.unpack("!%dH" % (len(packet) // 2), packet))
            total = (total >> 16) + (total & 0xFFFF)
            packet = packet[:2] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + packet[4:]
        icmp.sendto(packet, (address, 0))
        sent += 1
    return sent


def library(path, interface, feed):
    import ctypes

    lib = ctypes.CDLL(path)
    for name in "libsieve_error_message", "libsieve_error_free":
        getattr(lib, name).argtypes = [ctypes.c_void_p]
    lib.libsieve_error_message.restype = ctypes.c_char_p
    table = ctypes.c_void_p()

    def call(name, *arguments):
        error = ctypes.c_void_p()
        function = getattr(lib, "libsieve_" + name)
        function.restype = ctypes.c_bool
        texts = [x.encode() if isinstance(x, str) else x for x in arguments]
        words = [ctypes.c_uint64(x) if isinstance(x, int) else x for x in texts]
        done = function(*words, ctypes.byref(error))
        print(name, "done" if done else lib.libsieve_error_message(error).decode(), flush=True)
        lib.libsieve_error_free(error)

    call("table_new", interface, None, ctypes.byref(table))
    call("table_set_replies", table, "perhaps", 0)
    call("table_set_replies", table, "pass", 4096)
    call("table_add", table, "bad", feed, "drop")
    call("table_keep_replies_out", table, "worse")
    call("table_keep_replies_out", table, "bad")
    call("table_apply", table)
    lib.libsieve_table_free(table)
    call("edit_replies", interface, None, "drop", 4096, None)
    call("edit_replies", interface, None, "pass", 8192, None)
    call("edit_replies", interface, None, "pass", 4096, None)


def value_of(number, key):
    import json
    import subprocess

    dump = subprocess.run(["bpftool", "-j", "map", "dump", "id", number], check=True, capture_output=True).stdout
    return [int(byte, 16) for byte in json.loads(dump)[int(key)]["value"]]


def put(number, at, new, key="0"):
    import subprocess

    value, at, new = value_of(number, key), int(at), int(new, 0)
    size = 1 if at % 4 else 4
    value[at : at + size] = new.to_bytes(size, "little")
    words = ["%02x" % byte for byte in value]
    subprocess.run(
        ["bpftool", "map", "update", "id", number, "key", key, "0", "0", "0", "value", "hex", *words],
        check=True,
    )


def get(number, at, key="0"):
    print(int.from_bytes(value_of(number, key)[int(at) : int(at) + 4], "little"))


def bulk(what, *addresses):
    """A child on each CPU: each pushes to or pulls from each server."""
    transfers, children = 8, []
    for cpu in os.sched_getaffinity(0):
        child = os.fork()
        if child == 0:
            os.sched_setaffinity(0, {cpu})
            done = all(
                ask(address, what) == "got %d" % PUSHED
                for _ in range(transfers)
                for address in addresses
            )
            os._exit(0 if done else 1)
        children.append(child)
    if any([os.waitpid(child, 0)[1] for child in children]):
        sys.exit("a transfer failed")
    print(PUSHED * transfers * len(addresses) * len(children))


def tun(*networks):
    import ctypes

    ends = []
    for network in networks:
        with open("/run/netns/" + network) as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) != 0:
                sys.exit("no such network")
        ends.append(os.open("/dev/net/tun", os.O_RDWR))
        fcntl.ioctl(ends[-1], 0x400454CA, struct.pack("16sH", b"tun0", 0x1001))  # TUNSETIFF: IFF_TUN | IFF_NO_PI
    print("ready", flush=True)

    def carry(source, target):
        while True:
            try:
                os.write(target, os.read(source, 65536))
            except OSError:  # one is down
                time.sleep(0.01)

    threading.Thread(target=carry, args=ends, daemon=True).start()
    carry(*reversed(ends))


def main():
    command, *arguments = sys.argv[1:]
    works = {"serve": serve, "hold": hold, "half": half, "keep": keep, "await": await_peer, "echo": echo}
    works |= {"library": library, "listen": listen, "put": put, "get": get, "bulk": bulk, "tun": tun}
    if command in ("ask", "strange"):
        address, *asked = arguments
        for what in asked or [None]:
            try:
                print(ask(address, what) if what else strange(address), flush=True)
            except OSError as error:
                print(type(error).__name__, flush=True)
    else:
        works[command](*arguments)


if __name__ == "__main__":
    main()
