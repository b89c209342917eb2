#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Lives the life of xdp-sieved at random, while packets flow and a model says which of them may pass.

    life.py --work FOLDER [--operations N] [--seed SEED] [--only NAME,...]

Run it in mounts of its own (unshare --mount): it mounts file systems, and makes network namespaces of fixed names.

A life is a row of operations (operations.py): edits of lists and of the configuration, signals, commands by hand,
interfaces that come and go, servers that lie, resources that run out, state that is damaged. After a few operations
comes a quiet period: what was taken away is given back, the daemon reads its configuration and asks its sources. When
it has done so, the host must be in step with the configuration.

At every moment, this must hold:
  - A packet that the model says is dropped does not pass: its key is missed otherwise.
  - A packet that the model says passes does. Only while a program may be attached or taken off, it is sent again.
  - The daemon runs until it is told to end.
  - A paused interface passes all packets, from the moment at which the command has answered.
  - What the daemon manages is not changed by a command without --force.

The same seed gives the same operations, unless a violation has changed their course. How they meet the daemon's
threads is left to chance. Prints a line for each violation, then the totals, also if SIGTERM ends it. Exit 1 if there
was a violation.
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
import lists
import servers
from host import HERE, SIEVE, Trouble, inside, run
from lists import COMMAND, COMMON, RANGES, CROWDSEC, EXACT, FILE, FILTERS, FOLDER, NEVER, WEB, ListOfSet
from model import DROP, PASS, Contents, Model, Table, name_of
from operations import OPERATIONS, ByHand, OnLists, OnTheDaemon, OnTheHost, Violation

PATIENCE = host.PATIENCE
XDP, INGRESS, EGRESS = "xdp", "ingress", "egress"
ARRIVING, LEAVING = "arriving", "leaving"
MOST_VIOLATIONS = 5
STATE_BYTES = "8M"
SINGLE = ["", *FILTERS, "ddlcbf", "exact"]
LISTS = [("a", FILE, SINGLE, {"skips_own": True}), ("b", FOLDER, SINGLE, {}), ("c", WEB, SINGLE, {"has_second": True}),
         ("d", COMMAND, SINGLE, {"protects": True}), ("e", FILE, ["", "ranges"], {"prefixes": True}),
         ("f", FILE, ["ddlcbf"], {}), ("g", CROWDSEC, ["ddlcbf"], {}), ("h", WEB, ["ranges"], {"images": EXACT}),
         ("i", FILE, [""], {"images": FILTERS, "unchecked": True})]


class Life(OnLists, OnTheDaemon, ByHand, OnTheHost):
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
        self.daemon = self.server = self.decisions = self.squatter = None
        self.squatted = False
        self.trail = collections.deque(maxlen=16)
        self.done = collections.Counter()
        self.packets = self.held_up = self.quiet_periods = self.violations = 0

    # The world.

    def make_world(self):
        run("mount", "--make-rprivate", "/")
        for place in ("/run/netns", "/run/xdp-sieve"):
            os.makedirs(place, mode=0o700, exist_ok=True)
            run("mount", "-t", "tmpfs", "-o", "mode=700", "life", place)
        run("mount", "-t", "bpf", "life", "/sys/fs/bpf")
        self.work.chmod(0o755)
        self.lists_at.mkdir()
        self.state.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={STATE_BYTES},mode=700", "life", self.state)
        host.make_namespaces()
        self.server = servers.ListServer(host.LISTS_PORT)
        self.decisions = servers.DecisionServer(host.DECISIONS_PORT)
        key = self.work / "key"
        key.write_text("0123456789abcdef0123456789abcdef\n")
        key.chmod(0o600)

    def begin(self):
        """A new life: new interfaces, no state, lists without their past."""
        self.give_back_the_host()
        for interface in self.interfaces:
            if interface.where == "away":
                interface.move_back()
            if interface.where != "gone":
                interface.remove()
            interface.make()
        for one in self.state.iterdir():
            self.delete(one)
        self.hooks_lost = self.run_files_lost = self.state_is_damaged = False
        self.known_sets, self.renamed, self.resourced, self.options_known = set(), set(), set(), False
        self.paused, self.all_paused = set(), False
        self.pauses_doubtful = self.must_resume = False
        shutil.rmtree(self.lists_at)
        self.lists_at.mkdir()
        self.lists = {}
        for number, (letter, source, kinds, more) in enumerate(LISTS):
            self.lists[self.tag + letter] = ListOfSet(number, letter, source, kinds, **more)
        self.server.contents.clear()
        self.decisions.empty()
        self.server.manner = self.decisions.manner = servers.GOOD
        self.model = Model()
        for name, one in self.lists.items():
            for suffix, members in one.members(one.newest).items():
                self.model.contents[self.key(name, suffix)] = Contents(members)
            self.write_list(name, one.newest)
        self.command_is_good()
        self.lists_beside_are_good()
        self.model.tables = {place: [None] for place in self.places()}
        self.recent = {place: [] for place in self.places()}
        self.recent_on_stop = set()
        self.ways_anew()
        self.configuration = self.draw_configuration()
        self.config_is_broken = False
        self.write_configuration()
        self.start()
        self.settle()

    def places(self):
        return [(interface.number, way) for interface in self.interfaces for way in (ARRIVING, LEAVING)]

    def places_of(self, number):
        return [(number, way) for way in (ARRIVING, LEAVING)]

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

    @staticmethod
    def delete(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            try:
                path.unlink(missing_ok=True)
            except OSError:
                pass  # a file system that may only be read

    # What may be in force.

    def is_paused(self, number):
        return self.all_paused or number in self.paused

    def may_be(self, place, table):
        """The daemon may put this table in force, from now on, or what of it has lists."""
        if table is None or not self.is_paused(place[0]) or self.pauses_doubtful:
            self.may_be_partly(place, table)

    def may_be_partly(self, place, table):
        for one in [None] if table is None else table.partial(self.sets_without_lists(table, place)):
            self.model.may_be(place, one)

    def sets_without_lists(self, table, place):
        """Sets of which the daemon may have no list that it may put in force there."""
        known = () if self.state_is_damaged else self.known_sets
        has_list = {name + suffix for name in known for suffix in self.lists[name].sets()}
        # One of other sources comes nowhere with another action before its new list has come.
        comes = {name for name in self.resourced
                 if any(now is None or name not in map(name_of, dict(now.sets)) for now in self.model.tables[place])}
        return {key for key, _ in table.sets if name_of(key) not in has_list - comes}

    def doubt_lists(self):
        """The daemon may have lost lists: what comes into force from now on may lack sets."""
        self.state_is_damaged = True
        for key, contents in self.model.contents.items():  # nor may it know of which sources one is
            for other in self.model.contents_of(name_of(key)):
                for one in other.lists:
                    contents.may_be(one)
        for place in self.places():
            if not self.model.is_sure(place):
                for table in list(self.model.tables[place]):
                    self.may_be_partly(place, table)

    def may_judge_again(self, number):
        """The pause of an interface may be over."""
        for place in self.places_of(number):
            self.model.may_be(place, None)
            for table in self.recent[place]:
                self.may_be_partly(place, table)

    def doubt_pauses(self):
        """Nobody knows whether the pauses hold."""
        self.pauses_doubtful = True
        for interface in self.interfaces:
            if self.is_paused(interface.number):
                self.may_judge_again(interface.number)

    def forget(self, number):
        """Nothing is in force at an interface's places, or what should be."""
        for place in self.places_of(number):
            self.may_be(place, None)
            for table in self.recent[place]:
                self.may_be(place, table)

    # Lists.

    def key(self, name, suffix=""):
        """What the model calls the set that has this name now."""
        version = self.lists[name].version
        return f"{name}{suffix}@{version}" if version else name + suffix

    def path_of(self, name):
        one = self.lists[name]
        return self.lists_at / (f"{one.letter}.d/list.txt" if one.source == FOLDER else f"{one.place()}.txt")

    def source_of(self, name):
        one = self.lists[name]
        path = self.path_of(name)
        image = ", image = true" if one.images else ""

        def url(place):
            return (f'{{ url = "http://127.0.0.1:{host.LISTS_PORT}/{place}", timeout = "3s", '
                    f'most-bytes = "256K"{image} }}')

        return {FILE: f'"{path}"', FOLDER: f'"{path.parent}/"',
                WEB: ", ".join(map(url, [one.place(), *([one.second_place()] if one.has_second else [])])),
                COMMAND: f'{{ command = ["sh", "{self.lists_at}/command"], timeout = "3s", most-bytes = "256K" }}',
                CROWDSEC: f'{{ crowdsec = "http://127.0.0.1:{host.DECISIONS_PORT}", poll = "1s", '
                          f'key-file = "{self.work}/key" }}, "{self.lists_at}/beside.txt"'}[one.source]

    def put(self, path, data):
        """Puts a file in place as a whole."""
        path.parent.mkdir(exist_ok=True)
        new = path.with_name(path.name + ".new")
        new.write_bytes(data)
        new.rename(path)

    def write_text(self, name, text):
        """Puts the text, or the image, where the set's source is."""
        data = text.encode() if isinstance(text, str) else text
        one = self.lists[name]
        if one.source == WEB:
            self.server.contents["/" + one.place()] = data
        elif one.source == CROWDSEC:
            self.decisions.lie = data
        else:
            self.put(self.path_of(name), data)

    def image_of(self, text, kind):
        """An image of that list, whatever a builder's own guards say of it."""
        feed, image = self.work / "feed.txt", self.work / "feed.sieve"
        feed.write_text(text)
        run(SIEVE, "-q", "build", "--force", "--allow-wide", "--kind", kind,
            *([] if kind in EXACT else ["--fpr", "1e-9"]), "-o", image, feed)
        return image.read_bytes()

    def may_hold(self, name, addresses):
        for suffix, members in self.lists[name].members(addresses).items():
            self.model.contents[self.key(name, suffix)].may_be(members)

    def write_list(self, name, addresses):
        """A new list that the daemon has to take."""
        one = self.lists[name]
        self.may_hold(name, addresses)
        one.newest, one.good, one.told = frozenset(addresses), True, False
        text = one.text(addresses)
        if one.source == CROWDSEC:
            self.decisions.lie = None
            self.decisions.decide(one.decisions(addresses))
            return
        if one.skips_own and self.draw.random() < 0.5:
            text += "".join(f"{own}\n" for own in self.interfaces[0].addresses)
        if one.images and (one.unchecked or self.draw.random() < 0.7):
            text = self.image_of(text, self.draw.choice(one.images))
        self.write_text(name, text)

    def write_bad(self, name, text, told=True):
        """A list that the daemon must not take."""
        self.lists[name].good, self.lists[name].told = False, told
        self.lists[name].bad_if_dropped = False
        self.write_text(name, text)

    def draw_list(self, name):
        one = self.lists[name]
        return one.core + self.draw.sample(COMMON, self.draw.randint(0, len(COMMON)))

    def draw_set(self, usable=None):
        """The name of a set whose list is usable."""
        names = [name for name, one in self.lists.items() if not usable or usable(one)]
        return self.draw.choice(names) if names else None

    # The configuration.

    def draw_configuration(self):
        """{"entries": [...], "sets": {name: options}, "on-stop": ...}"""
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
                                "mode": draw.choice(["auto", "native", "skb"]),
                                "default": DROP if closed else PASS, "join": draw.random() < 0.3,
                                "sets": list(zip(names, actions))})
        # A set has one action wherever it is used.
        actions, sets = {}, {}
        for entry in entries:
            entry["sets"] = [(name, actions.setdefault(name, action)) for name, action in entry["sets"]]
            if entry["default"] == DROP and all(action != PASS for _, action in entry["sets"]):
                entry["default"] = PASS
            for name, action in entry["sets"]:
                sets[name] = {"action": action, **self.draw_options(self.lists[name])}
        return {"entries": entries, "sets": sets, "on-stop": "unload" if draw.random() < 0.2 else "keep"}

    def draw_options(self, one):
        """What a set's table says, beside its action and source."""
        draw = self.draw
        options = {"kind": draw.choice(one.kinds), "rate": draw.random() < 0.5,
                   "refresh": "2s" if draw.random() < 0.1 else "1h", "except": []}
        options["verify"] = one.may_verify(options["kind"]) and draw.random() < 0.25
        if one.may_except() and options["kind"] != "ddlcbf" and draw.random() < 0.3:
            options["except"] = [lists.draw_exception(draw, address, one.prefixes)
                                 for address in draw.sample(COMMON, 12) + draw.sample(one.core, 12)]
        return options

    @staticmethod
    def excepted(options):
        return frozenset().union(*(members for _, members in options["except"]))

    def sets_of(self, entry):
        """The table's sets with their actions, range sets as well."""
        return [(name + suffix, action) for name, action in entry["sets"] for suffix in self.lists[name].sets()]

    def wanted(self, place):
        """The entry for a place, or None."""
        number, way = place
        for entry in self.configuration["entries"]:
            if number in entry["numbers"] and (entry["hook"] == EGRESS) == (way == LEAVING):
                return entry
        return None

    def wanted_table(self, place):
        entry = self.wanted(place)
        sets = [(self.key(name, suffix), action) for name, action in entry["sets"]
                for suffix in self.lists[name].sets()] if entry else []
        return entry and Table(entry["default"], tuple(sets))

    def write_configuration(self):
        """Writes the configuration; a model of what may come of it comes first."""
        self.known_sets &= set(self.configuration["sets"])
        for place in self.places():
            table = self.wanted_table(place)
            if table not in self.recent[place]:
                self.recent[place].append(table)
            self.may_be(place, table)
        self.recent_on_stop.add(self.configuration["on-stop"])
        lines = ["[service]", f'state-directory = "{self.state}"', f'listen = "127.0.0.1:{host.STATUS_PORT}"',
                 f'on-stop = "{self.configuration["on-stop"]}"']
        for entry in self.configuration["entries"]:
            lines += self.entry_lines(entry)
        for name, options in self.configuration["sets"].items():
            lines += self.set_lines(name, options)
            for contents in self.model.contents_of(name):
                contents.may_lack(self.excepted(options))
        self.put(self.config_at, ("\n".join(lines) + "\n").encode())

    @staticmethod
    def entry_lines(entry):
        names = ", ".join(f'"{name}"' for name, _ in entry["sets"])
        lines = ["[[interface]]", f'name = "{entry["name"]}"', f'hook = "{entry["hook"]}"',
                 f'default = "{entry["default"]}"', f'join = {str(entry["join"]).lower()}', f"sets = [{names}]"]
        if entry["hook"] == XDP:
            lines.append(f'mode = "{entry["mode"]}"')
        if entry["default"] == PASS:
            lines.append(f'protect = ["{lists.PROTECTED_AT_INTERFACES}"]')
        return lines

    def set_lines(self, name, options):
        one = self.lists[name]
        lines = [f"[set.{name}]", f"sources = [{self.source_of(name)}]", f'action = "{options["action"]}"',
                 f'refresh = "{options["refresh"]}"']
        if options["kind"]:
            lines.append(f'kind = "{options["kind"]}"')
        # What asks for no rate is exact; a rate so that no stranger matches by chance.
        if not one.prefixes and not one.images and not one.changes_live() and options["kind"] != "exact" and (
                options["kind"] or options["rate"] or options["verify"]):
            lines.append("fpr = 1e-9")
        if options["verify"]:
            lines.append("verify = true")
        if options["except"]:
            path = self.lists_at / f"{one.letter}.except"
            self.put(path, "".join(f"{text}\n" for text, _ in options["except"]).encode())
            lines.append(f'except = "{path}"')
        lines.append(f"[set.{name}.guards]")
        if one.skips_own:
            lines.append('own-addresses = "skip"')
        if one.protects:
            lines.append(f"protect = {json.dumps(lists.PROTECTED)}")
        if one.unchecked:
            lines.append("unchecked-images = true")
        return lines

    # The daemon and commands.

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

    def command(self, *words):
        """Runs a command, while packets flow. Returns its exit status and what it said."""
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
            addresses += self.chance.sample(one.probes(one.core), 3)
        for place, way in list(self.ways.items()):
            self.judge(place, way, addresses)

    def judge(self, place, way, addresses):
        number, direction = place
        sure = all(self.model.is_sure(one) for one in self.places_of(number))
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

    def a_moment(self, seconds=None):
        """Packets for a random time, or for this time."""
        end = time.monotonic() + (self.chance.expovariate(1 / 0.05) if seconds is None else seconds)
        self.send_packets()
        while time.monotonic() < end:
            self.send_packets()

    # Quiet periods.

    def repair(self):
        """Gives back all that was taken away, but for some lists: those keep what was good last."""
        self.give_back_the_host()
        self.server.manner = self.decisions.manner = servers.GOOD
        self.command_is_good()
        self.lists_beside_are_good()
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
        if self.must_resume:
            self.resume_all()
        if self.hooks_lost:
            # Without its record the daemon does not know its programs on hooks that left the configuration.
            self.unload_what_is_unknown()
            self.hooks_lost = False
        self.a_moment(max(0.0, self.decisions.last_end() - time.monotonic()))

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
            self.check_daemon()
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
        if self.squatted:
            self.daemon.signal(signal.SIGHUP)  # a reload tries the port of the status page again
            self.squatted = False
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
        self.recent = {place: [self.wanted_table(place)] for place in self.places()}
        self.recent_on_stop = {self.configuration["on-stop"]}
        self.pauses_doubtful = self.run_files_lost = self.state_is_damaged = False
        self.settled_sets = set(self.configuration["sets"])
        self.known_sets, self.renamed, self.resourced = set(self.settled_sets), set(), set()
        self.options_known = True
        for name in self.settled_sets:
            self.lists[name].taken |= self.lists[name].good
        self.quiet_periods += 1

    def judged_otherwise(self, model):
        """Sends a packet from every address, and returns whose verdict is not the model's, and what it was."""
        addresses = COMMON + NEVER + [address for one in self.lists.values() for address in one.probes(one.core)]
        wrong = []
        for place, way in self.ways.items():
            arrived = way.send_round(addresses)
            self.packets += len(addresses)
            for verdict, some in ((PASS, arrived), (DROP, set(addresses) - arrived)):
                others = sorted(one for one in some if verdict not in model.verdicts(place, one))
                if others:
                    wrong.append(f"{verdict} {place[1]} at life{place[0]}: {', '.join(others[:5])}")
        return wrong

    settled_sets = frozenset()
    known_sets = set()  # those whose lists the daemon has had ever since it was in step
    renamed, resourced = set(), set()  # those that had another name, or other sources, when it was
    options_known = False  # the sets' options are what they were then
    state_is_damaged = False

    def out_of_step(self):
        """What `status` and the metrics say that is not as configured."""
        done = run(*inside(HERE, SIEVE, "--json", "status"), check=False)
        if done.returncode not in (0, 1):
            return [f"status ended with {done.returncode}: {done.stderr.strip()}"]
        told = {(one["interface"], one["hook"]): one for one in json.loads(done.stdout)["interfaces"]}
        metrics = self.daemon.metrics() or {}
        wrong = []
        for interface, hook, entry in self.hooks_wanted():
            one = told.get((interface.name, hook))
            is_there = one and one.get("sets") is not None and (
                one["default"], [(each["name"], each["action"]) for each in one["sets"]])
            paused = self.is_paused(interface.number)
            should = entry and not paused and (entry["default"], self.sets_of(entry))
            if (is_there or None) != (should or None):
                wrong.append(f"{interface.name} {hook}: {is_there} instead of {should}")
            shown = metrics.get(f'xdp_sieve_hook_paused{{interface="{interface.name}",hook="{hook}"}}')
            if entry and bool(shown) != paused:  # a pattern has no metric unless it is paused
                wrong.append(f"{interface.name} {hook}: the metric of the pause is {shown} instead of {int(paused)}")
        for name in self.configuration["sets"]:
            one = self.lists[name]
            said = [result for result in ("failed", "refused")
                    if metrics.get(f'xdp_sieve_list_last_refresh{{set="{name}",result="{result}"}}')]
            if one.good and said:
                wrong.append(f"{name}: a good list has {said[0]}")
            if one.told and not said:
                wrong.append(f"{name}: nothing is said of a list that is not taken")
        return wrong

    def settled(self):
        """The model in which only what is configured, and the newest good lists, are possible."""
        model = Model()
        model.tables = {place: [None if self.is_paused(place[0]) else self.wanted_table(place)]
                        for place in self.places()}
        for name, one in self.lists.items():
            options = self.configuration["sets"].get(name)
            for suffix, members in one.members(one.newest).items():
                old = self.model.contents[self.key(name, suffix)]
                new = model.contents[self.key(name, suffix)] = Contents(members)
                if not options or not one.good:
                    # A list that is not taken leaves the exceptions as they were, too.
                    new.lists, new.exceptions = list(old.lists), list(old.exceptions)
                else:
                    new.exceptions = [self.excepted(options)]
                if options and not one.is_live(options):
                    new.touched_before = set(old.touched)
                    if not one.good or old.lists[0] == members:
                        new.touched_before |= old.touched_before
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
        for place, tables in self.model.tables.items():
            print(f"  life{place[0]}, {place[1]}: {' or '.join(map(str, tables))}")
        for line in self.daemon.waits_for() if self.daemon else []:
            print(f"  {line}")
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
        try:
            self.live_on()
        finally:
            self.end_daemon()
            for name in sorted(self.done):
                print(f"{self.done[name]:6} {name}")
            operations = sum(self.done.values())
            print(f"seed {self.options.seed}: {operations} operations, {self.quiet_periods} quiet periods, "
                  f"{self.packets} packets, {self.violations} violations")
        return 1 if self.violations else 0

    def live_on(self):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True)
    parser.add_argument("--operations", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
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
