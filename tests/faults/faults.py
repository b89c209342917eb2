#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Kills a command of xdp-sieve, or fails it, at each of its system calls in turn, while packets flow.

    faults.py CASE --hook xdp|egress [--sample N | --every N] --work FOLDER --inside NS/IFACE --outside NS/IFACE

After each fault, this must hold:
  - The old table or the new one judged every packet, and all old verdicts come before all new ones.
  - The table in force is the old or the new one, whole, and the one that the exit code promises: 0 and 5 the new
    one, 1 to 4 the old one. A command that was killed promises nothing.
  - The next command works without complaint, and does what it promises.
  - Of all filters that were ever in the kernel, only those of the table in force are left.
At the end of a case, nothing is left: no program, map, pin or lock file.

A place is one system call of the command. --sample N takes few places of each case, always the same ones: the places
around the call with which the change takes effect, with every fault, and N others, evenly spread, with one fault each.
--every N takes every Nth place with every fault. Without either option, all places are taken. If a command repeats a
call for each of thousands of keys, some of these calls are taken.

Prints one line for each violation, and a count as the last line. Exit 1 if there was a violation.
"""

import argparse
import ctypes
import dataclasses
import errno
import json
import os
import pathlib
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "selftests"))
import traffic  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"])
SIEVE = os.environ.get("SIEVE", str(BUILD / "xdp-sieve"))
INJECT = str(BUILD / "selftests" / "inject")
PATIENCE = traffic.PATIENCE  # seconds until a wait counts as a hang; no result depends on it
KILLED = 128 + 9

# --- faults -------------------------------------------------------------------------------------------------

# The errors that a call can really return. With a +, all later calls of that name fail, too. Calls that are not
# listed here cannot fail, or not in a way that a program could handle: at these, the command is only killed.
MEMORY = ["ENOMEM", "ENOMEM+"]
FILES = ["EMFILE", "EACCES"]
ERRORS = {
    "access": ["EACCES"],
    "bind": ["ENOMEM"],
    "bpf": ["ENOMEM", "EPERM", "ENOMEM+"],
    "bpf.MAP_UPDATE_BATCH": ["ENOMEM", "EINVAL", "EINVAL+", "ENOMEM+"],
    "bpf.MAP_UPDATE_ELEM": ["ENOMEM", "EBUSY", "ENOMEM+"],
    "bpf.PROG_LOAD": ["ENOMEM", "EAGAIN", "EPERM+", "ENOMEM+"],
    "bpf.PROG_TEST_RUN": ["EINTR", "ENOMEM"],
    "brk": MEMORY,
    "clone3": ["EAGAIN"],
    "close": ["EIO"],
    "dup3": ["EMFILE"],
    "fcntl": ["EMFILE"],
    "flock": ["EINTR", "ENOLCK"],
    "ftruncate": ["ENOSPC"],
    "getrandom": ["EINTR"],
    "getsockname": ["ENOBUFS"],
    "ioctl": ["EPERM", "EPERM+"],
    "madvise": ["ENOMEM"],
    "mkdir": ["ENOSPC"],
    "mkdirat": ["ENOSPC"],
    "mmap": MEMORY,
    "mprotect": ["ENOMEM"],
    "munmap": ["ENOMEM"],
    "newfstatat": ["ENOMEM", "EACCES+"],
    "openat": [*FILES, "EMFILE+"],
    "pwrite64": ["ENOSPC"],
    "read": ["EIO", "EINTR"],
    "recvfrom": ["ENOBUFS", "EINTR", "ENOBUFS+"],
    "recvmsg": ["ENOBUFS", "EINTR", "ENOBUFS+"],
    "sendto": ["ENOBUFS", "ENOBUFS+"],
    "setsockopt": ["ENOBUFS"],
    "socket": ["EMFILE", "EMFILE+"],
    "statfs": ["EACCES"],
    "unlink": ["EBUSY"],
    "unlinkat": ["EBUSY"],
    "write": ["ENOSPC", "EIO"],
}
# Calls whose number depends on how threads meet, or that a loop repeats: take this many, evenly spread.
REPEATED = {"sched_yield": 2, "futex": 4, "bpf.PROG_TEST_RUN": 12, "bpf.MAP_LOOKUP_ELEM": 12,
            "bpf.MAP_UPDATE_ELEM": 40, "bpf.MAP_DELETE_ELEM": 12}


def faults_of(call):
    family = call.partition(".")[0]
    return ["kill", *ERRORS.get(call, ERRORS.get(family, []))]


def fault_argument(fault):
    if fault == "kill":
        return fault
    name, plus, _ = fault.partition("+")
    return f"{getattr(errno, name)}{plus}"


@dataclasses.dataclass(frozen=True)
class Place:
    """One call of a command: the INDEXth of its name."""

    call: str
    index: int


def places_of(calls):
    """The selected places among a command's calls, in their order."""
    seen, places = {}, []
    for call in calls:
        seen[call] = seen.get(call, 0) + 1
        places.append(Place(call, seen[call]))
    kept = {call: {1 + i * (seen[call] - 1) // (some - 1) for i in range(some)} if seen.get(call, 0) > some else None
            for call, some in REPEATED.items()}
    return [place for place in places if kept.get(place.call) is None or place.index in kept[place.call]]


def plan_of(places, turn, options):
    """The selected faults: pairs of a place and a fault."""
    whole = [(place, fault) for place in places for fault in faults_of(place.call)]
    if options.every:
        chosen = set(places[:: options.every])
        return [(place, fault) for place, fault in whole if place in chosen]
    if not options.sample:
        return whole
    near = places[max(0, turn - 1) : turn + 2]
    plan = [(place, fault) for place, fault in whole if place in near]
    far = [place for place in places if place not in near]
    for i in range(options.sample):
        place = far[i * len(far) // options.sample]
        possible = faults_of(place.call)
        plan.append((place, possible[i % len(possible)]))
    return plan


# --- tables -------------------------------------------------------------------------------------------------

# Sources, and the lists that contain them.
SOURCES = {
    "kept": ("192.0.2.1", {"old", "new", "live"}),
    "old": ("192.0.2.2", {"old"}),
    "new": ("192.0.2.3", {"new"}),
    "third": ("192.0.2.4", {"third"}),
    "first guest": ("203.0.113.1", {"guests"}),
    "last guest": ("203.0.120.208", {"guests"}),
    "stranger": ("192.0.2.9", set()),
}
GUESTS = 2000
# How many keys each list has. The numbers differ, so that `status` tells the lists apart.
FILL = {"old": 5, "new": 6, "third": 7, "live": 6000}  # the last one has room for the guests


def write_lists(work):
    for number, (name, size) in enumerate(FILL.items()):
        members = [address for address, lists in SOURCES.values() if name in lists]
        members += [f"198.{18 + number}.{i // 256}.{i % 256}" for i in range(size - len(members))]
        (work / f"{name}.txt").write_text("\n".join(members) + "\n", encoding="ascii")
        kind = ["--kind", "ddlcbf"] if name == "live" else []
        subprocess.run([SIEVE, "-q", "build", "--seed", "1", "--bits-per-key", "40", *kind,
                        "-o", work / f"{name}.sieve", work / f"{name}.txt"], check=True)
    guests = [f"203.0.{113 + i // 256}.{i % 256}" for i in range(1, GUESTS + 1)]
    (work / "guests.txt").write_text("\n".join(guests) + "\n", encoding="ascii")


@dataclasses.dataclass(frozen=True)
class Table:
    """A possible content of the hook point: sets in their order, each of one list. None instead of it means no
    program."""

    sets: tuple  # (name, list, further arguments) of each
    guests: bool = False  # the guests are in the live list
    default: str = "pass"
    lifetime: str = ""  # of the guests; with "1s" the table is there when their time is over

    def drops(self, source):
        if self.default == "drop":
            return True  # no set of these tables lets anybody in
        lists = {list_name for _, list_name, rest in self.sets if "count" not in rest}
        return bool(SOURCES[source][1] & (lists | ({"guests"} if self.guests else set())))

    def arguments(self, work):
        return [f"{name}={work}/{list_name}{rest}" for name, list_name, rest in
                ((name, list_name, rest or ".sieve") for name, list_name, rest in self.sets)]

    def told(self):
        """What `status` says about this table."""
        return [(name, FILL[list_name] + (GUESTS if self.guests else 0)) for name, list_name, _ in self.sets]

    def maps(self):
        return sum(2 if "verify" in rest else 1 for _, _, rest in self.sets) + (1 if self.lifetime else 0)

    def insertion(self):
        """The command that inserts the guests."""
        return ["insert", *(["--for", self.lifetime] if self.lifetime else []), "IFACE", self.sets[0][0], "--stdin"]


BETWEEN = "between"  # between the old table and the new one: some keys are in


@dataclasses.dataclass(frozen=True)
class Case:
    before: Table | None
    after: Table | None
    command: tuple  # IFACE stands for the interface, WORK for the folder of the lists
    turn: str  # the change takes effect with this call, or just before it
    last: int = 1  # counted from the end: 1 is the last call of that name
    standard_input: str = ""
    by_key: bool = False  # each key changes separately, so some may have changed when others have not
    again: tuple = ()  # of by_key: the command that finishes the work of one that was killed
    unordered: bool = False  # of by_key: the keys change in no order


def cases(tag):
    s, t, d = f"{tag}s", f"{tag}t", f"{tag}d"
    old, new = Table(((s, "old", ""),)), Table(((s, "new", ""),))
    both, third = Table(((s, "old", ""), (t, "third", ""))), Table(((t, "third", ""),))
    other = Table(((t, "third", ".txt,verify"), (s, "new", "")))
    counting = Table(((t, "third", ""), (s, "old", ".sieve,action=count")))
    closed = Table(old.sets, default="drop")
    live, guests = Table(((d, "live", ""),)), Table(((d, "live", ""),), guests=True)
    verified = Table(((d, "live", ".sieve,verify=WORK/live.txt"),))
    verified_guests = dataclasses.replace(verified, guests=True)
    ending, overdue = (dataclasses.replace(guests, lifetime=lifetime) for lifetime in ("4h", "1s"))
    # The banks flip just before the grace period, whose first call makes a map.
    flip = {"turn": "bpf.MAP_CREATE", "last": 2}
    by_key = {"turn": "unlinkat", "standard_input": "guests.txt", "by_key": True}
    insert, insert_again = ("insert", "IFACE", d, "--stdin"), ("insert", "--present-ok", "IFACE", d, "--stdin")
    delete, delete_again = ("delete", "IFACE", d, "--stdin"), ("delete", "--absent-ok", "IFACE", d, "--stdin")
    insert_for, expire = (*insert, "--for", "4h"), ("expire", "IFACE")
    return {
        "load": Case(None, old, ("load", "IFACE", f"{s}=WORK/old.sieve"), "sendto", 2),
        "table": Case(old, other, ("load", "IFACE", f"{t}=WORK/third.txt,verify", f"{s}=WORK/new.sieve"), **flip),
        "swap": Case(old, new, ("swap", "IFACE", f"{s}=WORK/new.sieve"), **flip),
        "set": Case(both, counting, ("set", "IFACE", s, "action=count", "last"), **flip),
        "add": Case(third, both, ("add", "IFACE", f"{s}=WORK/old.sieve", f"before={t}"), **flip),
        "default": Case(old, closed, ("default", "--force", "IFACE", "drop"), **flip),
        "remove": Case(both, third, ("remove", "IFACE", s), **flip),
        "insert": Case(live, guests, insert, again=insert_again, **by_key),
        "delete": Case(guests, live, delete, again=delete_again, **by_key),
        "insert_verified": Case(verified, verified_guests, insert, again=insert_again, **by_key),
        "delete_verified": Case(verified_guests, verified, delete, again=delete_again, **by_key),
        "insert_for": Case(live, ending, insert_for, again=(*insert_again, "--for", "4h"), **by_key),
        "expire": Case(overdue, live, expire, again=expire, unordered=True, **by_key),
        "unload": Case(old, None, ("unload", "IFACE"), "sendto"),
    }


# --- the kernel's objects -----------------------------------------------------------------------------------


# The command whose calls fail. The calls of a child that reads a list would count as its own.
CONTROLLER = (SIEVE, "--no-sandbox")
CONTROL = ".data.sieve"  # the map with a program's control block


class Bpf:
    """The few commands of bpf(2) that list maps."""

    CALL = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    LOOKUP, NEXT_MAP, OPEN_MAP, INFO = 1, 12, 14, 15
    INFO_BYTES = 256

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)

    def call(self, command, attributes):
        memory = ctypes.create_string_buffer(attributes, 128)
        return self.libc.syscall(self.CALL, command, memory, len(attributes)), memory

    def maps(self):
        """(id, name, value) of each map. The value is that of index 0, and only for control blocks."""
        at = 0
        while True:
            result, memory = self.call(self.NEXT_MAP, struct.pack("=III", at, 0, 0))
            if result != 0:
                return
            at = struct.unpack_from("=I", memory, 4)[0]
            file, _ = self.call(self.OPEN_MAP, struct.pack("=III", at, 0, 0))
            if file < 0:
                continue  # the map has gone in the meantime
            try:
                info = ctypes.create_string_buffer(self.INFO_BYTES)
                self.call(self.INFO, struct.pack("=IIQ", file, self.INFO_BYTES, ctypes.addressof(info)))
                _, _, _, value_size, _, _, name = struct.unpack_from("=IIIIII16s", info)
                name = name.split(b"\0")[0].decode()
                value = b""
                if name == CONTROL:
                    key, found = ctypes.create_string_buffer(4), ctypes.create_string_buffer(value_size)
                    self.call(self.LOOKUP, struct.pack("=IIQQQ", file, 0, ctypes.addressof(key),
                                                       ctypes.addressof(found), 0))
                    value = found.raw
                yield at, name, value
            finally:
                os.close(file)


# --- one case -----------------------------------------------------------------------------------------------


class Violation(Exception):
    """Something that must hold does not."""


class Bench:
    """A case under test: its commands, its packets, and its objects in the kernel."""

    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work)
        self.tag = f"f{os.getpid()}"
        self.case = cases(self.tag)[options.case]
        self.namespace, self.interface = options.inside.split("/")
        self.bpf = Bpf()
        self.pins = self.listing("/sys/fs/bpf")
        egress = options.hook == "egress"
        ends = [options.inside, options.outside] if egress else [options.outside, options.inside]
        self.ports = traffic.Port(ends[0], drops=egress), traffic.Port(ends[1])
        # A fence reaches the sets, too, but it has no key, and so it passes.
        self.line = traffic.Line(*self.ports, os.getpid() & 0xFFFF)
        self.packets = {source: self.line.packet(f"udp {address} 198.51.100.2 1000 53")
                        for source, (address, _) in SOURCES.items()}
        self.sent = []  # the sources of the packets since the last judgement

    # Commands.

    def argv(self, words):
        words = [word.replace("IFACE", self.interface).replace("WORK", str(self.work)) for word in words]
        return [*words, "--hook", self.options.hook]

    def start(self, argv):
        given = self.case.standard_input if "--stdin" in argv else ""
        source = open(self.work / given, "rb") if given else subprocess.DEVNULL
        inside = ["nsenter", f"--net=/run/netns/{self.namespace}"]
        if argv[0] == INJECT:
            # The command looks through all processes for sshd's. It sees its own alone, or its calls would be as
            # many as the machine has processes, and another number each time.
            inside += ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        try:
            return subprocess.Popen([*inside, *map(str, argv)], stdin=source,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.work)
        finally:
            if given:
                source.close()

    def run(self, words):
        """Runs a command that must work without complaint."""
        process = self.start([SIEVE, "-q", *self.argv(words)])
        _, err = process.communicate(timeout=PATIENCE)
        if process.returncode != 0 or err:
            raise Violation(f"the next command, {words[0]}, ended with {process.returncode}: {err.strip()}")

    def put(self, table):
        """Puts a table in force by the command that an operator would use."""
        if table is None:
            self.run(["unload", "IFACE"])
        else:
            # By force, because a table with a default of pass comes after one with a default of drop.
            self.run(["load", "--force", "--replace", "--default", table.default, "IFACE", *table.arguments("WORK")])
            if table.guests:
                self.run(table.insertion())
            if table.lifetime == "1s":
                self.await_true(lambda: self.status()[0]["overdue"] == GUESTS, lambda: "the guests stay")

    # Packets.

    def send_round(self):
        for source, packet in self.packets.items():
            self.line.send(packet)
            self.sent.append(source)
        self.line.receive()

    def verdicts(self):
        """(source, arrived) of the packets sent since the last call. All of them have been judged."""
        self.line.settle()
        arrived = self.line.arrived[len(self.line.arrived) - len(self.sent) :]
        judged = list(zip(self.sent, arrived))
        self.sent = []
        return judged

    @staticmethod
    def fits(table, source, arrived, lossy=False):
        drops = table is not None and table.drops(source)
        return arrived == 0 if drops else arrived == 1 or (lossy and arrived == 0)

    def expect(self, table):
        """Checks that the table judges all packets, and that `status` says the same."""
        self.send_round()
        wrong = [source for source, arrived in self.verdicts() if not self.fits(table, source, arrived)]
        if wrong:
            raise Violation(f"wrong verdicts: {', '.join(wrong)}")
        self.expect_maps(table)

    def table_in_force(self):
        """Finds the table in force, the old or the new one, by the packets' verdicts and by `status`. Both must
        agree."""
        self.send_round()
        judged = self.verdicts()
        tables = self.case.before, self.case.after
        found = [table for table in tables if all(self.fits(table, *one) for one in judged)]
        if not found and self.case.by_key and all(any(self.fits(table, *one) for table in tables) for one in judged):
            return BETWEEN
        if len(found) != 1:
            raise Violation(f"neither the old table nor the new one judges: {judged}")
        table = found[0]
        told = self.status()
        sets = None if told is None else [(one["name"], one["keys"]) for one in told]
        fewest, most = sorted(one.told()[0][1] if one else 0 for one in tables)
        if self.case.unordered and sets and fewest < sets[0][1] < most:
            return BETWEEN
        if sets != (table.told() if table else None):
            raise Violation(f"packets are judged by {table}, but status says {sets}")
        return table

    def status(self):
        """The sets in force, as `status` tells them. None: no program."""
        process = self.start([SIEVE, "--json", *self.argv(["status", "IFACE"])])
        out, err = process.communicate(timeout=PATIENCE)
        if process.returncode not in (0, 1) or err:
            raise Violation(f"status ended with {process.returncode}: {err.strip()}")
        told = json.loads(out)["interfaces"]
        if bool(told) != (process.returncode == 0):
            raise Violation(f"status ended with {process.returncode}, and says: {out}")
        return told[0]["sets"] if told else None

    def name_of(self, table):
        if table is BETWEEN:
            return "something between"
        return "the old table" if table is self.case.before else "the new one"

    def judge_meanwhile(self, judged, table):
        """Checks the packets that were sent during the command: old verdicts, then new ones."""
        before, after = self.case.before, self.case.after
        # Native XDP creates and removes queues of a veth. Packets in these queues are lost.
        lossy = self.options.hook == "xdp" and (before is None or after is None)
        by_source = [[one for one in judged if one[0] == source] for source in SOURCES]
        for some in by_source if self.case.by_key else [judged]:
            # The packets before this one had the old verdict. The loop finds the largest such number.
            turn = next((at for at, one in enumerate(some) if not self.fits(before, *one, lossy)), len(some))
            if table is before and turn < len(some):
                raise Violation(f"{some[turn][0]}, packet {turn} of {len(some)}, was not judged by the old table")
            for at, one in enumerate(some[turn:], turn):
                if not self.fits(after, *one, lossy):
                    raise Violation(f"{one[0]}, packet {at} of {len(some)}, was judged by neither table; the first "
                                    f"that was not judged by the old one was {turn}")

    # What is left.

    def await_true(self, holds, what):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise Violation(what())
            time.sleep(0.002)

    def expect_maps(self, table):
        """Checks that of our sets' maps only those in force are left. The kernel frees maps shortly after their last
        reference."""
        wanted = table.maps() if table else 0

        def ours():
            return [name for _, name, _ in self.bpf.maps() if name.startswith(self.tag)]

        self.await_true(lambda: len(ours()) == wanted, lambda: f"{ours()} are in the kernel instead of {wanted} maps")

    @staticmethod
    def listing(folder):
        return {os.path.join(at, name) for at, _, names in os.walk(folder) for name in names}

    def expect_nothing_left(self):
        def control_blocks():
            # Other processes may work on this machine. Our program names its sets in its control block. If a program
            # was killed before it had sets, only a pin could hold it.
            return [number for number, name, value in self.bpf.maps() if name == CONTROL and self.tag.encode() in value]

        self.await_true(lambda: not control_blocks(), lambda: f"programs are left, with the maps {control_blocks()}")
        self.await_true(lambda: not self.listing("/sys/fs/bpf") - self.pins,
                        lambda: f"pins are left: {self.listing('/sys/fs/bpf') - self.pins}")

    def expect_no_lock_file(self):
        inode = os.stat(f"/run/netns/{self.namespace}").st_ino
        if os.path.exists(f"/run/xdp-sieve/net-{inode}.lock"):
            raise Violation("the lock file is left")

    # Faults.

    def calls(self):
        """The calls of an undisturbed run."""
        report = self.work / "report"
        process = self.start([INJECT, report, "--", *CONTROLLER, *self.argv(self.case.command)])
        _, err = process.communicate(timeout=PATIENCE)
        if process.returncode != 0:
            raise Violation(f"undisturbed, it ended with {process.returncode}: {err.strip()}")
        return report.read_text(encoding="ascii").split()

    def under_fault(self, place, fault):
        """The exit status and the command's messages. The status is None if the command never reached that place."""
        report = self.work / "report"
        process = self.start([INJECT, report, place.call, str(place.index), fault_argument(fault), "--",
                              *CONTROLLER, *self.argv(self.case.command)])
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None:
            self.send_round()
            if time.monotonic() > deadline:
                process.kill()
                raise Violation("it hangs")
            time.sleep(0.001)
        _, err = process.communicate()
        self.send_round()
        return process.returncode if report.stat().st_size else None, err.strip()

    def check(self, place, fault):
        """Injects one fault; returns whether it happened."""
        status, said = self.under_fault(place, fault)
        judged = self.verdicts()
        table = self.table_in_force()
        self.judge_meanwhile(judged, table)
        allowed = {None: [self.case.after], KILLED: [self.case.before, self.case.after], 0: [self.case.after],
                   5: [self.case.after]} | dict.fromkeys((1, 2, 3, 4), [self.case.before])
        if fault != "kill":
            allowed.pop(KILLED)
        if status == 5 and "not known" in said:
            allowed[5] = [self.case.before, self.case.after]
        if self.case.by_key:
            for one in (KILLED, 5):
                allowed.get(one, []).append(BETWEEN)
        if status not in allowed:
            raise Violation(f"it ended with {status}: {said}")
        if table not in allowed[status]:
            raise Violation(f"exit status {status} is not true, {self.name_of(table)} is in force: {said}")
        if status not in (0, None, KILLED) and not said:
            raise Violation(f"exit status {status} without a word")
        self.recover(table)
        return status is not None

    def recover(self, table):
        """Checks that the next command works, whatever the fault has left."""
        if table is None and self.case.before is None:
            self.run(self.case.command)
            self.expect(self.case.after)
        if table is BETWEEN and self.case.again:
            self.run(self.case.again)
            if self.table_in_force() is not self.case.after:
                raise Violation(f"{self.case.again[0]} did not finish the work")
        self.put(self.case.before)
        self.expect(self.case.before)
        self.expect_no_lock_file()

    def start_over(self):
        """Cleans up by force after a violation, so that the next fault is judged separately."""
        self.sent = []
        subprocess.run(["nsenter", f"--net=/run/netns/{self.namespace}", SIEVE, "-q", *self.argv(["unload", "IFACE"])],
                       stderr=subprocess.DEVNULL, check=False)
        if self.case.before is not None:
            self.put(self.case.before)

    def show(self, text):
        """Shows the progress on a terminal."""
        if os.isatty(self.options.progress):
            os.write(self.options.progress, f"\r\033[K{text}".encode())

    def run_case(self):
        write_lists(self.work)
        if self.case.before is not None:
            self.put(self.case.before)
        self.expect(self.case.before)
        calls = self.calls()
        self.recover(self.case.after)
        places = places_of(calls)
        named = [at for at, place in enumerate(places) if place.call == self.case.turn]
        plan = plan_of(places, named[-self.case.last], self.options)
        happened = violations = 0
        for number, (place, fault) in enumerate(plan, 1):
            self.show(f"{self.options.case} at {self.options.hook}: {number} of {len(plan)}, {violations} violations")
            try:
                happened += self.check(place, fault)
            except Violation as violation:
                violations += 1
                print(f"{self.options.case} at {self.options.hook}, {place.call} {place.index}, {fault}: {violation}",
                      flush=True)
                self.start_over()
        self.show("")
        if self.case.before is not None:
            self.put(None)
        self.expect_nothing_left()
        print(f"{self.options.case} at {self.options.hook}: {len(calls)} system calls, {happened} faults at "
              f"{len({place for place, _ in plan})} places, {violations} violations")
        # How often some calls are made depends on how threads meet. Most places must have been reached.
        return 1 if violations or happened * 4 < len(plan) * 3 else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=list(cases("")))
    parser.add_argument("--hook", choices=["xdp", "egress"], required=True)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--every", type=int, default=0)
    parser.add_argument("--progress", type=int, default=2, metavar="DESCRIPTOR")
    parser.add_argument("--work", required=True)
    parser.add_argument("--inside", required=True, metavar="NS/IFACE", help="where the program is attached")
    parser.add_argument("--outside", required=True, metavar="NS/IFACE", help="the other end of the pair")
    options = parser.parse_args()
    try:
        sys.exit(Bench(options).run_case())
    except (Violation, traffic.Trouble) as problem:
        print(f"{options.case} at {options.hook}: {problem}")
        sys.exit(1)


if __name__ == "__main__":
    main()
