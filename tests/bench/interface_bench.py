#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""How long a new interface is without protection while the service runs, and servers of other sets hang.

    sudo tests/bench/interface_bench.py [ROUNDS [KEYS]]

In a network namespace of its own, with a daemon that has one list of KEYS addresses in force and four lists on a server
that takes requests and never answers. Each round makes an interface into which a listed source sends a packet each half
millisecond. The time is from the return of `ip link add` to the last packet that arrived. Prints the median, the 9th
decile and the longest, in ms."""

import os, socket, struct, subprocess, sys, tempfile, threading, time

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
KEYS = int(float(sys.argv[2])) if len(sys.argv) > 2 else 1_000_000
TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", TREE + "/build")
SIEVED = BUILD + "/xdp-sieved"
PAUSE = 0.0005
QUIET = 0.5  # without a packet, the interface is protected
LISTED = "10.0.0.1"


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def frame():
    payload = b"listed"
    length = 20 + 8 + len(payload)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 17, 0, socket.inet_aton(LISTED),
                       socket.inet_aton("192.0.2.1"))
    udp = struct.pack("!HHHH", 1, 2, 8 + len(payload), 0)
    return b"\xff" * 6 + b"\x02" + b"\x00" * 5 + b"\x08\x00" + head + udp + payload


def hanging_server():
    server = socket.create_server(("127.0.0.1", 0))
    taken = []
    threading.Thread(target=lambda: [taken.append(server.accept()) for _ in iter(int, 1)], daemon=True).start()
    return server.getsockname()[1]


def unprotected(name):
    """The time of a new interface without protection, in ms."""
    packet = frame()
    ip("link", "add", name, "type", "veth", "peer", "name", "peer")
    began = time.perf_counter()
    try:
        ip("link", "set", name, "up")
        ip("link", "set", "peer", "up")
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sender.bind(("peer", 0))
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        receiver.bind((name, 0x0800))
        receiver.setblocking(False)
        last, arrived = began, 0
        while time.perf_counter() - last < QUIET:
            sender.send(packet)
            time.sleep(PAUSE)
            try:
                while receiver.recv(2000):
                    last, arrived = time.perf_counter(), arrived + 1
            except BlockingIOError:
                pass
            if time.perf_counter() - began > 60:
                sys.exit(f"{name} is not protected after a minute")
        return (last - began) * 1000
    finally:
        ip("link", "del", name)


def main():
    if "INTERFACE_BENCH" not in os.environ:
        os.execvp("unshare", ["unshare", "-n", "env", "INTERFACE_BENCH=1", sys.executable, *sys.argv])
    ip("link", "set", "lo", "up")
    port = hanging_server()
    with tempfile.TemporaryDirectory() as work:
        with open(work + "/list", "w") as out:
            out.writelines(f"{10 + (n >> 24)}.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}\n" for n in range(1, KEYS + 1))
        slow = [f"slow{n}" for n in range(4)]
        config = work + "/xdp-sieve.toml"
        with open(config, "w") as out:
            out.write(f'[service]\nstate-directory = "{work}/state"\nlisten = ""\n[[interface]]\nname = "eth*"\n'
                      f'sets = {["listed", *slow]}\n[set.listed]\nsources = ["{work}/list"]\n')
            out.writelines(f'[set.{name}]\nsources = ["http://127.0.0.1:{port}/{name}"]\n' for name in slow)
        daemon = subprocess.Popen([SIEVED, "--config", config, "--log", "stderr"], stderr=subprocess.PIPE, text=True)
        try:
            # The first interface waits for the list.
            said = threading.Thread(target=lambda: [None for _ in daemon.stderr], daemon=True)
            said.start()
            unprotected("eth0")
            times = sorted(unprotected(f"eth{n}") for n in range(1, ROUNDS + 1))
        finally:
            daemon.terminate()
            daemon.wait()
    print(f"{KEYS} keys, {ROUNDS} new interfaces, four servers hang: {times[len(times) // 2]:.0f}, "
          f"{times[len(times) * 9 // 10]:.0f} and {times[-1]:.0f} ms without protection")


if __name__ == "__main__":
    main()
