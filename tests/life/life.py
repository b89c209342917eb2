#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Lives the life of xdp-sieved at random, while packets flow and a model says which of them may pass.

    life.py --work FOLDER [--operations N] [--seed SEED] [--only NAME,...]

Run it in mounts of its own (unshare --mount): it mounts file systems, and makes network namespaces of fixed names.

A life is a row of operations: edits of lists and of the configuration, signals, commands by hand, interfaces that
come and go, servers that lie, resources that run out, state that is damaged (docs/testing.md lists them). After a few
operations comes a quiet period: what was taken away is given back, the daemon reads its configuration and asks its
sources. When it has done so, the host must be in step with the configuration.

At every moment, this must hold:
  - A packet that the model says is dropped does not pass: its key is missed otherwise.
  - A packet that the model says passes does. Only while a program may be attached or taken off, it is sent again.
  - The daemon runs until it is told to end.

The same seed gives the same operations, unless a violation has changed their course. How they meet the daemon's
threads is left to chance. Prints a line for each violation, then the totals. Exit 1 if there was a violation.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import host
from host import HERE, SIEVE, Trouble, inside, run
from model import DROP, PASS, Contents, Model, Table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))

PATIENCE = host.PATIENCE
XDP, INGRESS, EGRESS = "xdp", "ingress", "egress"
ARRIVING, LEAVING = "arriving", "leaving"
MOST_VIOLATIONS = 5
# What the driver can do and the daemon is known not to stand yet. --everything does it all the same.
NOT_YET = {
    "mode": "another mode in the configuration: the interface keeps its program and its lists",
    "version": "a state directory without its version: the next start ends with 3; without its lock, a second "
               "controller finds it free",
    "run": "lost files of /run/xdp-sieve: a second daemon finds the namespace free",
}
STATE_BYTES = "8M"
CORE, SHARED, STRANGERS = 130, 60, 40
# Addresses that any list may hold, and ones that none ever holds.
COMMON = [f"99.1.{i}.1" for i in range(SHARED)]
NEVER = [f"77.{i}.3.9" for i in range(STRANGERS)]


class Violation(Exception):
    """Something that must hold does not."""


# --- lists --------------------------------------------------------------------------------------------------

FILE, FOLDER, WEB, COMMAND = "file", "folder", "web", "command"
FILTERS = ["", "xorsat", "blocked", "bloom", "dleft64"]


class ListOfSet:
    """A list that changes: its sources, what they say now, and which kinds can hold it."""

    def __init__(self, number, letter, source, kinds, prefixes=False):
        self.letter, self.source, self.kinds, self.prefixes = letter, source, kinds, prefixes
        self.core = [f"{20 + number}.{i}.7.1" for i in range(CORE)]
        self.good = True  # whether the daemon must take what the sources say now
        self.taken = False  # whether the daemon is known to have a good list
        self.newest = frozenset(self.core)

    def line(self, address):
        return address.rpartition(".")[0] + ".0/28" if self.prefixes else address

    def text(self, addresses):
        return "".join(f"{self.line(address)}\n" for address in sorted(addresses))


# --- one life -----------------------------------------------------------------------------------------------

OPERATIONS = {}  # name: (weight, method)


def operation(weight):
    def note(method):
        OPERATIONS[method.__name__] = weight, method
        return method

    return note


class Life:
    def __init__(self, options):
        self.options = options
        self.draw = random.Random(options.seed)  # the operations
        self.chance = random.Random(options.seed + 1)  # moments and packets
        self.work = pathlib.Path(options.work)
        self.lists_at, self.state = self.work / "lists", self.work / "state"
        self.config_at, self.log = self.work / "xdp-sieve.toml", self.work / "said"
        self.tag = f"l{os.getpid()}"
        self.interfaces = [host.Interface(0), host.Interface(1)]
        self.ways = {}
        self.daemon = self.server = None
        self.trail = collections.deque(maxlen=16)
        self.done = collections.Counter()
        self.packets = self.held_up = self.quiet_periods = self.violations = 0

    def does(self, what):
        return what not in NOT_YET or self.options.everything

    # The world.

    def make_world(self):
        run("mount", "--make-rprivate", "/")
        for place in ("/run/netns", "/run/xdp-sieve"):
            os.makedirs(place, exist_ok=True)
            run("mount", "-t", "tmpfs", "-o", "mode=700", "life", place)
        run("mount", "-t", "bpf", "life", "/sys/fs/bpf")
        self.work.chmod(0o755)
        self.lists_at.mkdir()
        self.state.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={STATE_BYTES},mode=700", "life", self.state)
        host.make_namespaces()
        self.server = host.ListServer()

    def begin(self):
        """A new life: new interfaces, no state, lists without their past."""
        for interface in self.interfaces:
            if interface.where == "away":
                interface.move_back()
            if interface.where != "gone":
                interface.remove()
            interface.make()
        self.empty_state()
        self.hooks_lost = False
        shutil.rmtree(self.lists_at)
        self.lists_at.mkdir()
        self.lists = {}
        for number, (letter, source, kinds, prefixes) in enumerate((
                ("a", FILE, FILTERS, False), ("b", FOLDER, FILTERS, False), ("c", WEB, FILTERS, False),
                ("d", COMMAND, FILTERS, False), ("e", FILE, ["", "ranges"], True), ("f", FILE, ["ddlcbf"], False))):
            self.lists[self.tag + letter] = ListOfSet(number, letter, source, kinds, prefixes)
        self.model = Model()
        for name, one in self.lists.items():
            self.model.contents[name] = Contents(one.newest)
            self.write_list(name, one.newest)
        self.server.manner = host.GOOD
        self.model.tables = {place: [None] for place in self.places()}
        self.ways_anew()
        self.configuration = self.draw_configuration()
        self.config_is_broken = False
        self.write_configuration()
        self.start()
        self.settle()

    def places(self):
        return [(interface.number, way) for interface in self.interfaces for way in (ARRIVING, LEAVING)]

    def ways_anew(self, number=None):
        """Opens the sockets of the interfaces that are there."""
        for interface in self.interfaces:
            if number not in (None, interface.number):
                continue
            for way in (ARRIVING, LEAVING):
                old = self.ways.pop((interface.number, way), None)
                if old:
                    old.close()
                if interface.where == "here":
                    self.ways[interface.number, way] = host.Way(interface, way == LEAVING)

    def empty_state(self):
        for one in self.state.iterdir():
            self.delete(one)

    @staticmethod
    def delete(path):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    # Lists.

    def path_of(self, name):
        one = self.lists[name]
        return self.lists_at / (f"{one.letter}.d/list.txt" if one.source == FOLDER else f"{one.letter}.txt")

    def source_of(self, name):
        one = self.lists[name]
        path = self.path_of(name)
        return {FILE: f'"{path}"', FOLDER: f'"{path.parent}/"',
                WEB: f'{{ url = "http://127.0.0.1:{host.LISTS_PORT}/{one.letter}", timeout = "3s", '
                     'most-bytes = "256K" }',
                COMMAND: f'{{ command = ["cat", "{path}"], timeout = "10s" }}'}[one.source]

    def write_text(self, name, text):
        """Puts the text where the set's source is, as a whole."""
        data = text.encode() if isinstance(text, str) else text
        if self.lists[name].source == WEB:
            self.server.content = data
            return
        path = self.path_of(name)
        path.parent.mkdir(exist_ok=True)
        new = path.with_name(path.name + ".new")
        new.write_bytes(data)
        new.rename(path)

    def write_list(self, name, addresses):
        """A new list that the daemon has to take."""
        one = self.lists[name]
        self.model.contents[name].may_be(addresses)
        one.newest, one.good = frozenset(addresses), True
        self.write_text(name, one.text(addresses))

    def write_bad(self, name, text):
        """A list that the daemon must not take."""
        self.lists[name].good = False
        self.write_text(name, text)

    def draw_list(self, name):
        one = self.lists[name]
        return one.core + self.draw.sample(COMMON, self.draw.randint(0, SHARED))

    def draw_set(self, usable=None):
        names = [name for name in self.lists if not usable or usable(name)]
        return self.draw.choice(names) if names else None

    # The configuration.

    def draw_configuration(self):
        """{"entries": [...], "sets": {name: options}}"""
        draw = self.draw
        entries = []
        pattern = draw.random() < 0.3
        for interface in self.interfaces[:1] if pattern else self.interfaces:
            for hook in [draw.choice([XDP, XDP, INGRESS])] + ([EGRESS] if draw.random() < 0.4 else []):
                closed = draw.random() < 0.25
                names = draw.sample(sorted(self.lists), draw.randint(1, 4))
                actions = [draw.choice([DROP, DROP, PASS, "count"]) for _ in names]
                if closed:
                    actions[draw.randrange(len(actions))] = PASS
                entries.append({"name": "life*" if pattern else interface.name, "hook": hook,
                                "numbers": [0, 1] if pattern else [interface.number],
                                "mode": draw.choice(["auto", "native", "skb"]) if self.does("mode") else "auto",
                                "default": DROP if closed else PASS, "join": draw.random() < 0.3,
                                "sets": list(zip(names, actions))})
        # A set has one action wherever it is used.
        actions, sets = {}, {}
        for entry in entries:
            entry["sets"] = [(name, actions.setdefault(name, action)) for name, action in entry["sets"]]
            if entry["default"] == DROP and all(action != PASS for _, action in entry["sets"]):
                entry["default"] = PASS
            for name, action in entry["sets"]:
                one = self.lists[name]
                sets[name] = {"action": action, "kind": draw.choice(one.kinds),
                              "verify": not one.prefixes and draw.random() < 0.25,
                              "except": frozenset(draw.sample(COMMON, 12) + draw.sample(one.core, 12))
                              if "ddlcbf" not in one.kinds and draw.random() < 0.25 else frozenset()}
        return {"entries": entries, "sets": sets}

    @staticmethod
    def table_of(entry):
        return Table(entry["default"], tuple(entry["sets"]))

    def wanted(self, place, configuration=None):
        """The entry for a place, or None."""
        number, way = place
        for entry in (configuration or self.configuration)["entries"]:
            if number in entry["numbers"] and (entry["hook"] == EGRESS) == (way == LEAVING):
                return entry
        return None

    def wanted_table(self, place):
        entry = self.wanted(place)
        return self.table_of(entry) if entry else None

    def write_configuration(self):
        """Writes the configuration; a model of what may come of it comes first."""
        for place in self.places():
            self.model.may_be(place, self.wanted_table(place))
            self.model.may_be(place, self.model.tables[place][0])
        lines = ["[service]", f'state-directory = "{self.state}"', f'listen = "127.0.0.1:{host.STATUS_PORT}"']
        for entry in self.configuration["entries"]:
            names = ", ".join(f'"{name}"' for name, _ in entry["sets"])
            lines += ["[[interface]]", f'name = "{entry["name"]}"', f'hook = "{entry["hook"]}"',
                      f'default = "{entry["default"]}"', f'join = {str(entry["join"]).lower()}', f"sets = [{names}]"]
            if entry["hook"] == XDP:
                lines.append(f'mode = "{entry["mode"]}"')
        for name, options in self.configuration["sets"].items():
            lines += [f"[set.{name}]", f"sources = [{self.source_of(name)}]", f'action = "{options["action"]}"']
            if options["kind"]:
                lines.append(f'kind = "{options["kind"]}"')
            if not self.lists[name].prefixes:
                lines.append("fpr = 1e-9")  # so that no stranger matches by chance
            if options["verify"]:
                lines.append("verify = true")
            if options["except"]:
                path = self.lists_at / f"{self.lists[name].letter}.except"
                path.with_suffix(".new").write_text("".join(f"{one}\n" for one in sorted(options["except"])))
                path.with_suffix(".new").rename(path)
                lines.append(f'except = "{path}"')
            self.model.contents[name].may_lack(options["except"])
        self.write_config_text("\n".join(lines) + "\n")

    def write_config_text(self, text):
        new = self.config_at.with_suffix(".new")
        new.write_text(text)
        new.rename(self.config_at)

    # The daemon.

    def start(self):
        """Starts the daemon, and returns when it is ready or has ended."""
        self.daemon = host.Daemon(self.config_at, self.log)
        self.await_true(lambda: self.daemon.is_ready() or self.daemon.ended(), "the daemon does not get ready")

    def is_up(self):
        return self.daemon is not None

    def check_daemon(self):
        if self.daemon and self.daemon.ended():
            status, self.daemon = self.daemon.process.returncode, None
            raise Violation(f"the daemon has ended with {status}")

    def by_hand(self, *words):
        """A change that a person makes by hand. Where a daemon manages the hook, it takes --force."""
        forced = not self.is_up() or self.draw.random() < 0.8
        status, err = self.command(*words, *["--force"] * forced)
        if not forced and status == 0:
            raise Violation(f"{' '.join(words)} is not refused beside the daemon: {err}")

    def command(self, *words):
        """Runs a command, while packets flow."""
        process = subprocess.Popen(inside(HERE, SIEVE, "-q", *words), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=host.die_with_parent)
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None:
            self.send_packets()
            if time.monotonic() > deadline:
                process.kill()
                raise Violation(f"{' '.join(words)} hangs")
        _, err = process.communicate()
        self.trail[-1] += f" -> {process.returncode}"
        if process.returncode not in (0, 1, 2, 3, 4, 5):
            raise Violation(f"{' '.join(words)} ended with {process.returncode}: {err.strip()}")
        if process.returncode > 1 and not err.strip():
            raise Violation(f"{' '.join(words)}: exit status {process.returncode} without a word")
        return process.returncode, err.strip()

    # Packets.

    def send_packets(self):
        """A round of packets over every interface that is there; each is judged by the model as it is now."""
        addresses = self.chance.sample(COMMON, 12) + self.chance.sample(NEVER, 5)
        for one in self.lists.values():
            addresses += self.chance.sample(one.core, 3)
        for place, way in list(self.ways.items()):
            self.judge(place, way, addresses)

    def judge(self, place, way, addresses):
        number, direction = place
        sure = all(self.model.is_sure((number, one)) for one in (ARRIVING, LEAVING))
        again = addresses
        for attempt in range(1 if sure else 20):
            arrived = way.send_round(again)
            self.packets += len(again)
            missing = []
            for address in again:
                possible = self.model.verdicts(place, address)
                if address in arrived and PASS not in possible:
                    raise Violation(f"MISSED: {address} {direction} at life{number} must be dropped, and passed")
                if address not in arrived and DROP not in possible:
                    missing.append(address)
            if not missing:
                return
            # A program that comes or goes takes the packets with it that wait in the interface's queue.
            again = missing
            time.sleep(0.01 * attempt)
        self.held_up += 1
        raise Violation(f"HELD UP: {', '.join(again[:5])} {direction} at life{number} must pass, and did not")

    def await_true(self, holds, what):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            self.send_packets()
            if time.monotonic() > deadline:
                raise Violation(what() if callable(what) else what)
            time.sleep(0.01)

    def a_moment(self):
        """Packets for a random time."""
        end = time.monotonic() + self.chance.expovariate(1 / 0.05)
        self.send_packets()
        while time.monotonic() < end:
            self.send_packets()

    # Operations on lists.

    @operation(10)
    def rewrite_a_list(self):
        name = self.draw_set()
        self.write_list(name, self.draw_list(name))
        return name

    @operation(4)
    def append_to_a_list(self):
        name = self.draw_set(lambda one: self.lists[one].source != WEB and self.lists[one].good)
        if not name:
            return None
        one = self.lists[name]
        more = self.draw.sample(COMMON, 5)
        addresses = one.newest | set(more)
        self.model.contents[name].may_be(addresses)
        one.newest = addresses
        with open(self.path_of(name), "a", encoding="ascii") as out:
            out.write("".join(f"{one.line(address)}\n" for address in more))
        return name

    @operation(4)
    def rewrite_a_list_in_place(self):
        """As an editor does that does not rename: the file is empty, then half, then whole."""
        name = self.draw_set(lambda one: self.lists[one].source != WEB)
        one = self.lists[name]
        addresses = self.draw_list(name)
        self.model.contents[name].may_be(addresses)
        text = one.text(addresses)
        with open(self.path_of(name), "w", encoding="ascii") as out:
            out.write(text[: len(text) // 3] + "1")  # an entry with another one's digits is none
            out.flush()
            self.a_moment_of_writing()
            out.seek(0)
            out.write(text)
        one.newest, one.good = frozenset(addresses), True
        return name

    def a_moment_of_writing(self):
        self.send_packets()

    @operation(6)
    def spoil_a_list(self):
        name = self.draw_set(lambda one: self.lists[one].taken)
        if not name:
            return None
        one = self.lists[name]
        good = one.text(one.newest)
        how = self.draw.choice(["empty", "html", "damaged", "own", "huge", "wide", "binary", "shrunk", "cut"])
        own = self.interfaces[0].address
        drops = self.configuration["sets"].get(name, {}).get("action") == DROP
        if how == "own" and not drops:
            how = "empty"
        self.write_bad(name, {
            "empty": "", "html": host.PAGE, "damaged": good + "192.0.2.300\n", "own": good + own + "\n",
            "huge": good + "".join(f"60.{i >> 8}.{i & 255}.1\n" for i in range(CORE * 20)),
            "wide": good + "0.0.0.0/1\n128.0.0.0/2\n", "binary": bytes(range(256)) * 20,
            "shrunk": one.text(one.core[:20]), "cut": good + "192.0.2."}[how])
        return f"{name} {how}"

    @operation(2)
    def remove_a_list(self):
        name = self.draw_set(lambda one: self.lists[one].source != WEB and self.lists[one].taken)
        if not name:
            return None
        self.lists[name].good = False
        path = self.path_of(name)
        if self.lists[name].source == FOLDER and self.draw.random() < 0.5:
            shutil.rmtree(path.parent, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        return name

    @operation(4)
    def the_server_lies(self):
        self.server.manner = self.draw.choice(host.ANSWERS)
        return self.server.manner

    # Operations on the configuration and on the daemon.

    @operation(6)
    def reload(self):
        if self.is_up():
            self.daemon.signal(signal.SIGHUP)

    @operation(8)
    def another_configuration(self):
        self.configuration = self.draw_configuration()
        self.lists_for_configuration()
        self.write_configuration()
        self.config_is_broken = False
        self.reload()

    def lists_for_configuration(self):
        """Sets that were in no table have no list to fall back on."""
        for name, one in self.lists.items():
            if name not in self.configuration["sets"]:
                one.taken = False
            elif not one.taken and not one.good:
                self.write_list(name, self.draw_list(name))

    @operation(3)
    def broken_configuration(self):
        text = self.config_at.read_text()
        self.write_config_text(self.draw.choice([
            text[: len(text) // 2] + "\n[[[", "", text + '\n[set.unused]\nsources = ["x"]\n', "\0" * 64,
            text.replace("default", "defualt", 1), text.replace("[[interface]]", "[interface]", 1), "<html>"]))
        self.config_is_broken = True
        self.reload()

    @operation(6)
    def kill(self):
        if self.is_up():
            self.daemon.end(signal.SIGKILL)
            self.daemon = None
            self.restart_some_day()

    @operation(3)
    def stop(self):
        if self.is_up():
            status = self.daemon.end(signal.SIGTERM)
            self.daemon = None
            if status != 0:
                raise Violation(f"SIGTERM ended the daemon with {status}")
            self.restart_some_day()

    def restart_some_day(self):
        if self.draw.random() < 0.7:
            self.bring_up()

    def bring_up(self):
        self.start()
        if self.daemon.ended():
            status, self.daemon = self.daemon.process.returncode, None
            if not (self.config_is_broken and status == 3):
                raise Violation(f"a start ended with {status}")

    @operation(3)
    def die_in_the_start(self):
        if not self.is_up():
            self.daemon = host.Daemon(self.config_at, self.log)
            self.a_moment()
            self.daemon.end(signal.SIGKILL)
            self.daemon = None

    @operation(2)
    def a_second_daemon(self):
        if not self.is_up():
            return
        second = host.Daemon(self.config_at, self.work / "said-second")
        self.await_true(second.ended, "a second daemon goes on beside the first")
        if second.process.returncode not in (4, 3 if self.config_is_broken else 4):
            raise Violation(f"a second daemon ended with {second.process.returncode}")

    @operation(3)
    def apply(self):
        """`apply` beside the daemon is refused; without one, it does the work."""
        # It reads the lists, or refuses: everything that is possible for the daemon is possible for it.
        status, err = self.command("apply", str(self.config_at))
        if self.is_up() and status == 0:
            raise Violation(f"apply beside the daemon is not refused: {err}")

    # Commands by hand.

    def draw_hook(self):
        """A place where a table should be, and the words that name it."""
        here = [place for place in self.places() if place in self.ways and self.wanted(place)]
        if not here:
            return None, None, None
        place = self.draw.choice(here)
        entry = self.wanted(place)
        return place, entry, [f"life{place[0]}", "--hook", entry["hook"]]

    def may_be_by_hand(self, place, change):
        for table in list(self.model.tables[place]):
            if table is not None:
                self.model.may_be(place, change(table))

    def by_hand(self, *words):
        """Under the daemon, a change without --force is refused."""
        force = self.draw.random() < 0.75
        status, err = self.command(*words, *(["--force"] if force else []))
        if status == 4 and force and "manages it and" in err:
            raise Violation(f"refused in spite of --force: {err}")

    @operation(2)
    def unload_by_hand(self):
        place, _, words = self.draw_hook()
        if place:
            self.model.may_be(place, None)
            self.by_hand("unload", *words)

    @operation(2)
    def remove_by_hand(self):
        place, entry, words = self.draw_hook()
        if place:
            name, _ = self.draw.choice(entry["sets"])
            self.may_be_by_hand(place, lambda table: table.without(name))
            self.by_hand("remove", words[0], name, *words[1:])

    @operation(2)
    def set_by_hand(self):
        place, entry, words = self.draw_hook()
        if place:
            name, _ = self.draw.choice(entry["sets"])
            action = self.draw.choice([DROP, PASS, "count"])
            self.may_be_by_hand(place, lambda table: table.with_action(name, action))
            self.by_hand("set", words[0], name, f"action={action}", *words[1:])

    @operation(2)
    def default_by_hand(self):
        place, _, words = self.draw_hook()
        if place:
            default = self.draw.choice([DROP, PASS])
            self.may_be_by_hand(place, lambda table: Table(default, table.sets))
            self.by_hand("default", words[0], default, *words[1:])

    def list_by_hand(self, name):
        one = self.lists[name]
        addresses = one.core + self.draw.sample(COMMON, 10)
        path = self.work / "by-hand.txt"
        path.write_text(one.text(addresses))
        return path, frozenset(addresses), "" if one.prefixes else ",fpr=1e-9"

    @operation(3)
    def swap_by_hand(self):
        place, entry, words = self.draw_hook()
        if place:
            name, _ = self.draw.choice(entry["sets"])
            path, addresses, options = self.list_by_hand(name)
            self.model.contents[name].by_hand.append(addresses)
            self.by_hand("swap", words[0], f"{name}={path}{options}", *words[1:])

    @operation(2)
    def load_by_hand(self):
        place, _, words = self.draw_hook()
        if place:
            name = self.draw_set()
            path, addresses, options = self.list_by_hand(name)
            self.model.contents[name].by_hand.append(addresses)
            self.model.may_be(place, Table(PASS, ((name, DROP),)))
            self.by_hand("load", words[0], f"{name}={path}{options}", *words[1:], "--replace")

    @operation(2)
    def add_by_hand(self):
        place, entry, words = self.draw_hook()
        if place:
            name = self.draw_set(lambda one: one not in dict(entry["sets"]))
            if not name:
                return
            path, addresses, options = self.list_by_hand(name)
            self.model.contents[name].by_hand.append(addresses)
            self.may_be_by_hand(place, lambda table: Table(table.default, ((name, DROP), *table.without(name).sets)))
            self.by_hand("add", words[0], f"{name}={path}{options},action=drop", "first", *words[1:])

    # Interfaces.

    def forget(self, number):
        """Nothing is in force at an interface's places, or what should be."""
        for way in (ARRIVING, LEAVING):
            self.model.may_be((number, way), None)
            self.model.may_be((number, way), self.wanted_table((number, way)))

    def draw_interface(self, *where):
        some = [interface for interface in self.interfaces if interface.where in where]
        return self.draw.choice(some) if some else None

    @operation(3)
    def remove_an_interface(self):
        interface = self.draw_interface("here", "renamed")
        if interface:
            self.forget(interface.number)
            interface.remove()
            self.ways_anew(interface.number)

    @operation(5)
    def make_an_interface(self):
        """An interface comes, or is made anew under the same name."""
        interface = self.draw_interface("here", "gone")
        if interface:
            self.forget(interface.number)
            if interface.where == "here":
                interface.remove()
            interface.make()
            self.ways_anew(interface.number)

    @operation(3)
    def rename_an_interface(self):
        interface = self.draw_interface("here", "renamed")
        if interface:
            self.forget(interface.number)
            if interface.where == "here":
                interface.rename()
            else:
                interface.rename_back()
            self.ways_anew(interface.number)

    @operation(3)
    def move_an_interface(self):
        interface = self.draw_interface("here", "away")
        if interface:
            self.forget(interface.number)
            if interface.where == "here":
                interface.move_away()
            else:
                interface.move_back()
            self.ways_anew(interface.number)

    @operation(3)
    def switch_off(self):
        """Somebody takes the program away behind the daemon's back."""
        interface = self.draw_interface("here")
        if interface:
            self.forget(interface.number)
            run("ip", "-n", HERE, "link", "set", interface.name, "xdp", "off", check=False)
            run("ip", "-n", HERE, "link", "set", interface.name, "xdpgeneric", "off", check=False)
            run(*inside(HERE, "tc", "qdisc", "del", "dev", interface.name, "clsact"), check=False)

    @operation(2)
    def down_and_up(self):
        interface = self.draw_interface("here")
        if interface:
            self.forget(interface.number)
            run("ip", "-n", HERE, "link", "set", interface.name, "down")
            interface.up()
            self.ways_anew(interface.number)

    # Resources and state.

    @operation(2)
    def no_descriptors(self):
        if self.is_up():
            used = len(os.listdir(f"/proc/{self.daemon.pid}/fd"))
            self.limit("nofile", used + self.draw.randint(0, 12))

    @operation(2)
    def no_memory(self):
        if self.is_up():
            with open(f"/proc/{self.daemon.pid}/statm", encoding="ascii") as text:
                used = int(text.read().split()[0]) * os.sysconf("SC_PAGESIZE")
            self.limit("as", used + self.draw.randint(0, 8 << 20))

    def limit(self, name, number):
        run("prlimit", "--pid", self.daemon.pid, f"--{name}={number}:", check=False)

    @operation(2)
    def full_disk(self):
        try:
            with open(self.state / "ballast", "wb") as out:
                while True:
                    out.write(bytes(4096))
                    out.flush()
        except OSError:
            pass

    @operation(2)
    def room_on_the_disk(self):
        (self.state / "ballast").unlink(missing_ok=True)

    def state_files(self):
        return sorted(path for path in self.state.rglob("*") if path.is_file() and path.name != "ballast")

    @operation(4)
    def damage_the_state(self):
        """What a list lost must not depend on a list that the daemon would refuse."""
        self.all_lists_good()
        files = self.state_files()
        if files:
            # The names of files differ from run to run, their sort does not.
            sort = self.draw.choice(["version", "hooks.json", "record.json", ".list", ".sieve", "counters.json", ""])
            path = self.chance.choice([one for one in files if one.name.endswith(sort)] or files)
            if path.name in ("version", "lock") and not self.does("version"):
                return None
            how = self.draw.choice(["empty", "cut", "garbage", "gone", "folder"])
            self.hooks_lost |= path.name == "hooks.json"
            self.spoil(path, how)
            return f"{path.name} {how}"
        return None

    @staticmethod
    def spoil(path, how):
        try:
            if how == "cut":
                os.truncate(path, path.stat().st_size // 2)
            elif how in ("empty", "garbage"):
                path.write_bytes(b"" if how == "empty" else os.urandom(300))
            else:
                path.unlink()
                if how == "folder":
                    path.mkdir()
        except OSError:
            pass  # the daemon has removed it, or the disk is full

    @operation(2)
    def lose_the_state(self):
        self.all_lists_good()
        for one in self.state.iterdir():
            if one.name not in ("version", "lock") or self.does("version"):
                self.delete(one)
        self.hooks_lost = True

    @operation(1)
    def lose_the_run_files(self):
        if not self.does("run"):
            return
        for one in pathlib.Path("/run/xdp-sieve").iterdir():
            if one.is_file():
                one.unlink(missing_ok=True)

    def all_lists_good(self):
        for name, one in self.lists.items():
            if not one.good:
                self.write_list(name, self.draw_list(name))
            one.taken = False

    # Quiet periods.

    def repair(self):
        """Gives back all that was taken away, but for some lists: those keep what was good last."""
        self.room_on_the_disk()
        if self.is_up():
            for name in ("nofile", "as"):
                self.limit(name, {"nofile": 20000, "as": "unlimited"}[name])
        self.server.manner = host.GOOD
        for interface in self.interfaces:
            if interface.where != "here":
                self.forget(interface.number)
                {"gone": interface.make, "renamed": interface.rename_back, "away": interface.move_back}[
                    interface.where]()
                self.ways_anew(interface.number)
        if self.config_is_broken:
            self.config_is_broken = False
            self.write_configuration()
        for name, one in self.lists.items():
            if not one.good and (not one.taken or self.draw.random() < 0.5):
                self.write_list(name, self.draw_list(name))
        if not self.is_up():
            self.bring_up()
        if self.hooks_lost:
            # Without its record the daemon does not know its programs on hooks that left the configuration.
            self.unload_what_is_unknown()
            self.hooks_lost = False

    def hooks_wanted(self):
        """(interface, hook, entry or None) of all hooks."""
        for interface in self.interfaces:
            for hook in (XDP, INGRESS, EGRESS):
                entry = self.wanted((interface.number, LEAVING if hook == EGRESS else ARRIVING))
                yield interface, hook, entry if entry and entry["hook"] == hook else None

    def unload_what_is_unknown(self):
        for interface, hook, entry in self.hooks_wanted():
            if not entry:
                self.model.may_be((interface.number, LEAVING if hook == EGRESS else ARRIVING), None)
                run(*inside(HERE, SIEVE, "-q", "unload", "--force", interface.name, "--hook", hook), check=False)

    def asked(self, metrics):
        """How often each set's sources were asked."""
        counts = collections.Counter()
        for line, value in (metrics or {}).items():
            if line.startswith("xdp_sieve_refreshes_total{"):
                counts[line.split('set="')[1].partition('"')[0]] += value
        return counts

    def settle(self):
        """A quiet period. After it, the host is in step with the configuration."""
        self.repair()
        metrics = None

        def answers():
            nonlocal metrics
            metrics = self.daemon.metrics()
            return metrics is not None

        def has_worked():
            self.check_daemon()
            now = self.daemon.metrics() or {}
            counts = self.asked(now)
            # The sources of a set that was left out count from zero.
            late = [name for name in self.configuration["sets"] if counts[name] <= before[name]]
            busy = now.get('xdp_sieve_state{state="ready"}') != 1
            waits_for[:] = late + ["the end of its work"] * busy
            return not waits_for

        waits_for = []
        self.await_true(answers, "the status page does not answer")
        before = self.asked(metrics)
        before = collections.Counter({name: before[name] for name in self.configuration["sets"]
                                      if name in self.settled_sets})
        self.daemon.signal(signal.SIGHUP)
        self.await_true(has_worked, lambda: f"NOT IN STEP: the daemon has not asked or not finished: {waits_for}")
        wrong = []

        def in_step():
            self.check_daemon()
            wrong[:] = self.out_of_step() or self.judged_otherwise(settled)
            return not wrong

        settled = self.settled()
        self.await_true(in_step, lambda: f"NOT IN STEP: {'; '.join(wrong)}")
        self.model = settled
        self.settled_sets = set(self.configuration["sets"])
        for name in self.settled_sets:
            self.lists[name].taken |= self.lists[name].good
        self.quiet_periods += 1

    def judged_otherwise(self, model):
        """Sends a packet from every address, and returns whose verdict is not the model's."""
        addresses = COMMON + NEVER + [address for one in self.lists.values() for address in one.core]
        wrong = []
        for place, way in self.ways.items():
            arrived = way.send_round(addresses)
            self.packets += len(addresses)
            some = [address for address in addresses
                    if (PASS if address in arrived else DROP) not in model.verdicts(place, address)]
            if some:
                wrong.append(f"wrong verdicts {place[1]} at life{place[0]}: {', '.join(some[:5])}")
        return wrong

    settled_sets = frozenset()

    def out_of_step(self):
        """What `status` says that is not as configured."""
        done = run(*inside(HERE, SIEVE, "--json", "status"), check=False)
        if done.returncode not in (0, 1):
            return [f"status ended with {done.returncode}: {done.stderr.strip()}"]
        told = {(one["interface"], one["hook"]): one for one in json.loads(done.stdout)["interfaces"]}
        wrong = []
        for interface, hook, entry in self.hooks_wanted():
            one = told.get((interface.name, hook))
            is_there = one and (one["default"], [(each["name"], each["action"]) for each in one["sets"]])
            should = entry and (entry["default"], entry["sets"])
            if is_there != should:
                wrong.append(f"{interface.name} {hook}: {is_there} instead of {should}")
        return wrong

    def settled(self):
        """The model in which only what is configured, and the newest good lists, are possible."""
        model = Model()
        model.tables = {place: [self.wanted_table(place)] for place in self.places()}
        for name, one in self.lists.items():
            old, options = self.model.contents[name], self.configuration["sets"].get(name)
            new = model.contents[name] = Contents(one.newest)
            if not options or not one.good:
                # A list that is not taken leaves the exceptions as they were, too.
                new.lists, new.exceptions = list(old.lists), list(old.exceptions)
            else:
                new.exceptions = [options["except"]]
        return model

    # The course of a life.

    def step(self):
        names = [name for name in OPERATIONS if not self.options.only or name in self.options.only]
        name = self.draw.choices(names, [OPERATIONS[one][0] for one in names])[0]
        self.trail.append(name)
        what = OPERATIONS[name][1](self)
        if what:
            self.trail[-1] += f" ({what})"
        self.done[name] += 1
        self.check_daemon()
        self.a_moment()

    def report(self, number, violation):
        self.violations += 1
        print(f"violation {self.violations}: seed {self.options.seed}, operation {number}: {violation}")
        print(f"  after {'; '.join(self.trail)}")
        said = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        for line in said[-12:]:
            print(f"  {line}")
        sys.stdout.flush()

    def end_daemon(self):
        if self.daemon:
            self.daemon.end(signal.SIGKILL)
            self.daemon = None

    def live(self):
        self.make_world()
        number, begun = 0, False
        while number < self.options.operations and self.violations < MOST_VIOLATIONS:
            try:
                if not begun:
                    self.settled_sets = frozenset()
                    self.begin()
                    begun = True
                for _ in range(self.draw.randint(1, 5)):
                    number += 1
                    self.step()
                self.trail.append("|")
                self.settle()
            except Violation as violation:
                self.report(number, violation)
                self.end_daemon()
                begun = False
        self.end_daemon()
        for name in sorted(self.done):
            print(f"{self.done[name]:6} {name}")
        print(f"seed {self.options.seed}: {sum(self.done.values())} operations, {self.quiet_periods} quiet periods, "
              f"{self.packets} packets, {self.violations} violations")
        return 1 if self.violations else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True)
    parser.add_argument("--operations", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--everything", action="store_true", help="also what NOT_YET names")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(Life(options).live())
    except (Trouble, host.traffic.Trouble) as problem:
        print(f"the test could not go on: {problem}")
        sys.exit(1)


if __name__ == "__main__":
    main()
