#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""What a ban costs, as a command and by the thousand, beside ipset and nft, in one interleaved run.

    sudo tests/bench/ban_bench.py [ROUNDS [BANNED BEFORE [OTHER INTERFACES]]]

In a network namespace of its own, with so many interfaces that no filter is on. A ban by xdp-sieve is on the disk and
in force when the command ends; ipset and nft write nothing. Prints medians in ms, and the 9th decile."""

import os, subprocess, sys, tempfile, time

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
BEFORE = int(sys.argv[2]) if len(sys.argv) > 2 else 0
OTHERS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", TREE + "/build")
SIEVE, SIEVED = BUILD + "/xdp-sieve", BUILD + "/xdp-sieved"


def address(number):
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def run(*words, text=None):
    began = time.perf_counter()
    subprocess.run(words, input=text, text=True, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def wait_for_bans(config):
    for _ in range(600):
        done = subprocess.run([SIEVE, "ban", "--config", config, "192.0.2.1"], capture_output=True, text=True)
        if done.stdout.endswith("in force\n") and "not in force" not in done.stdout:
            return
        time.sleep(0.05)
    sys.exit("no ban comes into force: " + done.stdout + done.stderr)


def main():
    if "BAN_BENCH" not in os.environ:
        os.execvp("unshare", ["unshare", "-n", "env", "BAN_BENCH=1", sys.executable, *sys.argv])
    run("ip", "link", "add", "one", "type", "veth", "peer", "name", "two")
    for end in ("one", "two"):
        run("ip", "link", "set", end, "up")
    for number in range(0, OTHERS, 2):
        run("ip", "link", "add", f"veth{number}", "type", "veth", "peer", "name", f"veth{number + 1}")
    run("ipset", "create", "bans", "hash:ip", "timeout", "0", "maxelem", "4000000")
    run("nft", "add table inet t; add set inet t bans { type ipv4_addr; flags timeout; size 4000000; }")
    with tempfile.TemporaryDirectory() as work:
        config = work + "/xdp-sieve.toml"
        with open(config, "w") as out:
            out.write(f'[service]\nstate-directory = "{work}/state"\nlisten = ""\n[[interface]]\nname = "one"\n'
                      'sets = ["banned"]\n[set.banned]\nsources = ["bans"]\n')
        daemon = subprocess.Popen([SIEVED, "--config", config, "--log", "stderr"], stderr=subprocess.DEVNULL)
        try:
            wait_for_bans(config)
            if BEFORE:
                text = "".join(f"11.{n >> 16}.{n >> 8 & 255}.{n & 255}\n" for n in range(BEFORE))
                print(f"{BEFORE} bans by one stream: {run(SIEVE, '-q', 'ban', '--stdin', text=text):.0f} ms")
            measure()
        finally:
            daemon.terminate()
            daemon.wait()
            run("ipset", "destroy", "bans")


def measure():
    times = {}

    def note(what, taken):
        times.setdefault(what, []).append(taken)

    for number in range(ROUNDS):
        one = address(number)
        note("start: true", run("true"))
        note("start: xdp-sieve --version", run(SIEVE, "--version"))
        note("one: xdp-sieve ban", run(SIEVE, "-q", "ban", "--for", "1h", one))
        note("one: ipset add", run("ipset", "add", "bans", one, "timeout", "3600"))
        note("one: nft add element", run("nft", f"add element inet t bans {{ {one} timeout 1h }}"))
        note("one: xdp-sieve unban", run(SIEVE, "-q", "unban", one))
    for number in range(max(ROUNDS // 4, 3)):
        some = [address((number + 1) * 1000 + i) for i in range(1000)]
        note("1,000: xdp-sieve ban --stdin",
             run(SIEVE, "-q", "ban", "--stdin", text="".join(f"add {one} timeout 3600\n" for one in some)))
        note("1,000: ipset restore",
             run("ipset", "restore", text="".join(f"add bans {one} timeout 3600\n" for one in some)))
        note("1,000: nft -f", run("nft", "-f", "-", text="add element inet t bans { " +
                                  ", ".join(f"{one} timeout 1h" for one in some) + " }\n"))
    for what, taken in times.items():
        taken.sort()
        print(f"{what:<32} {taken[len(taken) // 2]:8.2f} {taken[len(taken) * 9 // 10]:8.2f}")


if __name__ == "__main__":
    main()
