# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""What happens in a daemon's life (life.py): each operation changes something, and tells the model beforehand what may
come of it. docs/faults.md lists them."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import time

import host
import servers
import traffic
from host import HERE, inside, run
from lists import (COMMAND, COMMON, CROWDSEC, FILE, FILTERS, FOLDER, IN_PROTECTED, PROTECTED_AT_INTERFACES, RANGES,
                   WEB, beside, is_range)
from model import DROP, PASS, Contents, Table

OPERATIONS = {}  # name: (weight, method)


class Violation(Exception):
    """Something that must hold does not."""


def operation(weight):
    def note(method):
        OPERATIONS[method.__name__] = weight, method
        return method

    return note


# --- lists --------------------------------------------------------------------------------------------------


class OnLists:
    @operation(10)
    def rewrite_a_list(self):
        name = self.draw_set()
        self.write_list(name, self.draw_list(name))
        return name

    @operation(4)
    def append_to_a_list(self):
        name = self.draw_set(lambda one: one.plain() and one.good)
        if not name:
            return None
        one = self.lists[name]
        more = self.draw.sample(COMMON, 5)
        addresses = one.newest | set(more)
        self.may_hold(name, addresses)
        one.newest = addresses
        with open(self.path_of(name), "a", encoding="ascii") as out:
            out.write("".join(f"{one.line(address)}\n" for address in more))
        return name

    @operation(4)
    def rewrite_a_list_in_place(self):
        """As an editor does that does not rename: the file is empty, then half, then whole."""
        name = self.draw_set(lambda one: one.plain())
        one = self.lists[name]
        addresses = self.draw_list(name)
        self.may_hold(name, addresses)
        text = one.text(addresses)
        with open(self.path_of(name), "w", encoding="ascii") as out:
            out.write(text[: len(text) // 3] + "x1")  # an entry in the midst of being written is none
            out.flush()
            self.send_packets()
            out.seek(0)
            out.write(text)
        one.newest, one.good, one.told = frozenset(addresses), True, False
        return name

    @operation(8)
    def spoil_a_list(self):
        name = self.draw_set(lambda one: one.taken)
        if not name:
            return None
        one = self.lists[name]
        # What a set that drops may hold is no matter for others.
        drops = self.configuration["sets"].get(name, {}).get("action") == DROP
        ways = self.ways_to_spoil(one, drops)
        how = self.draw.choice(sorted(ways))
        self.write_bad(name, ways[how]())
        one.bad_if_dropped = "own" in how or "protected" in how
        return f"{name} {how}"

    def ways_to_spoil(self, one, drops):
        """{how: what makes such a list}"""
        good, core = one.text(one.newest), one.core
        ways = {"html": lambda: servers.PAGE, "binary": lambda: bytes(range(256)) * 20, "empty": lambda: ""}
        if one.source == CROWDSEC:
            decision = b'{"id": 1, "type": "ban", "scope": "Ip", "value": "192.0.2.1"}'  # for how long?
            return {**ways, "number": lambda: b'{"new": 5, "deleted": null}', "array": lambda: b"[]",
                    "endless": lambda: b'{"new": [' + decision + b"]}", "cut": lambda: b'{"new": [' + decision[:30]}
        own = self.interfaces[0].addresses
        more = {"damaged": good + "192.0.2.300\n", "cut": good + "192.0.2.", "wide": good + "0.0.0.0/1\n128.0.0.0/2\n",
                "wide6": good + "2000::/3\n", "shrunk": one.text(core[:20]),
                "huge": good + "".join(f"60.{i >> 8}.{i & 255}.1\n" for i in range(len(core) * 20))}
        if drops and not one.skips_own and not one.changes_live():  # that one leaves them out
            more |= {"own": good + own[0] + "\n", "own6": good + own[1] + "\n"}
        if drops and one.protects:
            more |= {"protected": good + IN_PROTECTED[0] + "\n", "protected6": good + IN_PROTECTED[1] + "\n",
                     "over-protected": good + "88.1.0.0/20\n"}
        if one.unchecked:
            # Its guards ask a filter: they know a single protected address, not a single prefix within one.
            for how in ("damaged", "cut", "shrunk", "own", "own6"):
                more.pop(how, None)
            more = {how: (text, self.draw.choice(FILTERS)) for how, text in more.items() if how == "huge"}
            return {**ways, "cut-image": lambda: self.image_of(good, FILTERS[0])[:-100],
                    "huge": lambda: self.image_of(*more["huge"])}
        ways |= {how: (lambda text=text: text) for how, text in more.items()}
        if one.images:
            ways |= {f"image-{how}": (lambda text=text: self.image_of(text, "ranges")) for how, text in more.items()
                     if how in ("wide", "wide6", "shrunk", "huge", "own", "own6")}
            ways["cut-image"] = lambda: self.image_of(good, one.images[0])[:-100]
            ways["filter"] = lambda: self.image_of(good, self.draw.choice(FILTERS))
        elif one.source in (WEB, COMMAND):
            ways["image"] = lambda: self.image_of(good, self.draw.choice(["ranges", *FILTERS]))
        return ways

    @operation(3)
    def lock_out_by_a_list(self):
        """An address that an interface protects: each table is asked, and the addresses of other tables stay judged."""
        name = self.draw_set(lambda one: one.plain() and one.good and one.taken and not one.prefixes and
                             not one.changes_live())
        if not name or self.configuration["sets"].get(name, {}).get("action") != DROP:
            return None
        one = self.lists[name]
        self.write_bad(name, one.text(one.newest) + PROTECTED_AT_INTERFACES + "\n", told=False)
        return name

    @operation(2)
    def remove_a_list(self):
        name = self.draw_set(lambda one: one.source != CROWDSEC and one.taken)
        if not name:
            return None
        one = self.lists[name]
        one.good, one.told = False, True
        if one.source == WEB:
            self.server.contents.pop("/" + one.place(), None)
            return name
        path = self.path_of(name)
        if one.source == FOLDER and self.draw.random() < 0.5:
            shutil.rmtree(path.parent, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        return name

    @operation(4)
    def the_server_lies(self):
        self.server.manner = self.draw.choice(servers.ANSWERS)
        return self.server.manner

    @operation(3)
    def the_command_lies(self):
        path = self.path_of(next(name for name, one in self.lists.items() if one.source == COMMAND))
        words = self.draw.choice(["exit 3", f"cat {path}; exit 3", "exec sleep 100", "exec yes 192.0.2.1", "kill -9 $$",
                                  f"cat {path}; kill -9 $$", "echo who are you >&2; exit 1", "exec no-such-program"])
        self.put(self.lists_at / "command", f"{words}\n".encode())
        return words

    def command_is_good(self):
        path = self.path_of(next(name for name, one in self.lists.items() if one.source == COMMAND))
        self.put(self.lists_at / "command", f"exec cat {path}\n".encode())

    def lists_beside_are_good(self):
        for one in self.lists.values():
            if one.has_second:
                self.server.contents["/" + one.second_place()] = one.text_of_second().encode()
        self.put(self.lists_at / "beside.txt", next(one for one in self.lists.values() if one.source == CROWDSEC)
                 .text_beside().encode())

    @operation(3)
    def the_list_beside_the_decisions(self):
        """It is spoilt, goes, or is written anew; what it said stays."""
        if not self.draw_set(lambda one: one.source == CROWDSEC and one.taken):
            return None
        how = self.draw.choice(["good", "html", "cut", "empty", "gone"])
        path = self.lists_at / "beside.txt"
        self.lists_beside_are_good()
        if how == "gone":
            path.unlink()
        elif how != "good":
            self.put(path, {"html": servers.PAGE, "cut": path.read_bytes()[:300] + b"192.0.2.",
                            "empty": b""}[how])
        return how

    @operation(4)
    def the_second_source(self):
        """It goes, or is no list; what it said stays, and the first one's news come."""
        name = self.draw_set(lambda one: one.has_second)
        one, how = self.lists[name], self.draw.choice(["html", "cut", "gone"])
        place = "/" + one.second_place()
        if self.draw.random() < 0.5:
            self.write_list(name, self.draw_list(name))
        if how == "gone":
            self.server.contents.pop(place, None)
        else:
            cut = one.text_of_second()[:300] + "192.0.2."
            self.server.contents[place] = {"html": servers.PAGE, "cut": cut.encode()}[how]
        return how

    @operation(3)
    def the_api_lies(self):
        self.decisions.manner = self.draw.choice(servers.ANSWERS)
        return self.decisions.manner

    @operation(4)
    def a_decision_that_ends(self):
        name = self.draw_set(lambda one: one.source == CROWDSEC)
        one = self.lists[name]
        address = self.draw.choice(COMMON)
        if address in one.newest:
            return None
        contents = self.model.contents[self.key(name, RANGES if is_range(address) else "")]
        for each in (address, beside(address)) if is_range(address) else (address,):
            contents.may_also_hold(each)
        [decision] = one.decisions([address])
        self.decisions.decide_for(decision, self.draw.uniform(0.3, 2))
        return address

    @operation(2)
    def mount_over_a_folder(self):
        """What inotify does not see."""
        name = next(name for name, one in self.lists.items() if one.source == FOLDER)
        folder = self.path_of(name).parent
        if folder.is_mount():
            return None
        folder.mkdir(exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "mode=755", "life", folder)
        self.write_list(name, self.draw_list(name))
        return name

    def unmount_the_folder(self):
        name = next(name for name, one in self.lists.items() if one.source == FOLDER)
        if self.path_of(name).parent.is_mount():
            # What a child reads there at this moment stays until it has read it.
            run("umount", "--lazy", self.path_of(name).parent)
            one = self.lists[name]
            one.good = one.told = one.taken = False  # written anew with the others


# --- the configuration and the daemon -----------------------------------------------------------------------


class OnTheDaemon:
    @operation(6)
    def reload(self):
        if self.is_up():
            self.daemon.signal(signal.SIGHUP)

    def read_anew(self):
        self.write_configuration()
        self.config_is_broken = False
        self.reload()

    @operation(8)
    def another_configuration(self):
        self.configuration = self.draw_configuration()
        # One that has another name, and other options before the daemon has seen it, begins anew.
        self.known_sets -= self.renamed
        self.options_known = False
        # Sets that were in no table have no list to fall back on.
        self.lists_beside_are_good()
        for name, one in self.lists.items():
            if name not in self.configuration["sets"]:
                one.taken = False
            elif not one.good and (not one.taken or (
                    one.bad_if_dropped and self.configuration["sets"][name]["action"] != DROP)):
                self.write_list(name, self.draw_list(name))
        self.read_anew()

    @operation(3)
    def another_name(self):
        """A set is renamed. It takes its list with it."""
        name = self.draw_set(lambda one: one.good and one.taken)
        if name not in self.configuration["sets"]:
            return None
        new = name[:-1] if name.endswith("n") else name + "n"

        def renamed(names):
            return {new if one == name else one: value for one, value in names.items()}

        for suffix in self.lists[name].sets():
            self.model.contents[self.key(name, suffix).replace(name, new)] = self.model.contents[self.key(name, suffix)]
        self.lists, self.configuration["sets"] = renamed(self.lists), renamed(self.configuration["sets"])
        for entry in self.configuration["entries"]:
            entry["sets"] = [(new if one == name else one, action) for one, action in entry["sets"]]
        # The daemon may know it by sources or options that are not these.
        if name in self.known_sets - self.resourced and self.options_known:
            self.known_sets.add(new)
        self.renamed.add(new)
        self.read_anew()
        return name

    @operation(3)
    def another_source(self):
        """A set gets other sources and another action: the new list and the new action come together."""
        name = self.draw_set(lambda one: one.source in (FILE, WEB) and one.good)
        if name not in self.configuration["sets"]:
            return None
        one, options = self.lists[name], self.configuration["sets"][name]
        action = self.draw.choice([DROP, PASS, "count"])
        entries = [(entry, [(other, action if other == name else old) for other, old in entry["sets"]])
                   for entry in self.configuration["entries"]]
        if all(entry["default"] == PASS or PASS in dict(sets).values() for entry, sets in entries):
            options["action"] = action
            for entry, sets in entries:
                entry["sets"] = sets
        old = self.model.contents[self.key(name)]
        one.version += 1
        self.lists_beside_are_good()
        addresses = self.draw_list(name)
        contents = self.model.contents[self.key(name)] = Contents(one.members(addresses)[""])
        contents.exceptions = list(old.exceptions)
        # Where nobody knows of which sources a list is, any mixture may be in force.
        if self.state_is_damaged:
            for both in (old, contents):
                both.lists = old.lists + contents.lists
        self.resourced.add(name)
        one.taken = False  # its new action waits for this list, so none may spoil it before
        self.known_sets -= self.renamed
        self.write_list(name, addresses)
        self.read_anew()
        return f"{name} {action}"

    @operation(3)
    def broken_configuration(self):
        text = self.config_at.read_text()
        self.put(self.config_at, self.draw.choice([
            text[: len(text) // 2] + "\n[[[", "", text + '\n[set.unused]\nsources = ["x"]\n', "\0" * 64,
            text.replace("default", "defualt", 1), text.replace("[[interface]]", "[interface]", 1),
            "<html>"]).encode())
        self.config_is_broken = True
        self.reload()

    @operation(6)
    def kill(self):
        if self.is_up():
            self.daemon.end(signal.SIGKILL)
            self.daemon = None
            self.restart_some_day()

    @operation(4)
    def stop(self):
        if not self.is_up():
            return
        unloads = "unload" in self.recent_on_stop
        if unloads:
            for place in self.places():
                self.model.may_be(place, None)
        status = self.daemon.end(signal.SIGTERM)
        self.daemon = None
        if status != 0 and not (unloads and status == 5):
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

    @operation(2)
    def sleep_for_a_while(self):
        if self.is_up():
            self.daemon.signal(signal.SIGSTOP)
            self.a_moment()
            self.daemon.signal(signal.SIGCONT)

    @operation(3)
    def kill_a_child(self):
        """One that downloads, parses or builds, if there is one."""
        if not self.is_up():
            return None
        children = []
        with contextlib.suppress(OSError):  # threads come and go
            for path in pathlib.Path(f"/proc/{self.daemon.pid}/task").glob("*/children"):
                children += path.read_text().split()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        return len(children)

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
    def the_port_is_taken(self):
        """Somebody else has the port of the status page when the daemon starts."""
        if self.is_up() or self.squatter:
            return
        self.squatter = traffic.in_namespace(
            HERE, lambda: socket.create_server(("127.0.0.1", host.STATUS_PORT), backlog=64))
        self.bring_up()
        if self.is_up() and "no metrics and no status page" not in self.daemon.said():
            raise Violation("the port of the status page is taken, and the daemon does not say so")


# --- commands by hand ---------------------------------------------------------------------------------------


class ByHand:
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
        # Only what is in the record, or in the configuration in force, is known to be managed.
        known = not (self.hooks_lost or self.run_files_lost or self.config_is_broken)
        if status == 0 and not force and self.is_up() and known and words[0] != "expire":
            raise Violation(f"{' '.join(words)} is not refused beside the daemon")

    def on_probation(self):
        return ["--confirm", "1"] if self.draw.random() < 0.2 else []

    @operation(3)
    def apply(self):
        """`apply` beside the daemon is refused; without one, it does the work."""
        # It reads the lists, or refuses: everything that is possible for the daemon is possible for it.
        status, err = self.command("apply", str(self.config_at))
        if self.is_up() and status == 0:
            raise Violation(f"apply beside the daemon is not refused: {err}")

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
            name, _ = self.draw.choice(self.sets_of(entry))
            self.may_be_by_hand(place, lambda table: table.without(name))
            self.by_hand("remove", words[0], name, *words[1:], *self.on_probation())

    @operation(2)
    def set_by_hand(self):
        place, entry, words = self.draw_hook()
        if place:
            name, _ = self.draw.choice(self.sets_of(entry))
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
        """A file with a list for that set, and what the command says of it."""
        one = self.lists[name]
        addresses = one.core + self.draw.sample(COMMON, 10)
        path = self.work / "by-hand.txt"
        path.write_text(one.text(addresses))
        members = set(addresses) | ({beside(each) for each in addresses} if one.prefixes else set())
        for contents in self.model.contents_of(name):
            contents.by_hand.append(frozenset(members))
        return f"{name}={path}" + ("" if one.prefixes else ",fpr=1e-9")

    @operation(3)
    def swap_by_hand(self):
        place, entry, words = self.draw_hook()
        if place:
            name, _ = self.draw.choice(entry["sets"])
            self.by_hand("swap", words[0], self.list_by_hand(name), *words[1:], *self.on_probation())

    @operation(2)
    def load_by_hand(self):
        place, _, words = self.draw_hook()
        if place:
            name = self.draw_set()
            self.model.may_be(place, Table(PASS, ((self.key(name), DROP),)))
            self.by_hand("load", words[0], self.list_by_hand(name), *words[1:], "--replace", *self.on_probation())

    @operation(2)
    def add_by_hand(self):
        place, entry, words = self.draw_hook()
        if place:
            names = [name for name in self.lists if name not in dict(entry["sets"])]
            if not names:
                return
            name = self.draw.choice(names)
            self.may_be_by_hand(place, lambda table: Table(table.default,
                                                             ((self.key(name), DROP), *table.without(name).sets)))
            self.by_hand("add", words[0], self.list_by_hand(name) + ",action=drop", "first", *words[1:])

    @operation(5)
    def keys_by_hand(self):
        """Keys come and go in a set that can be changed in place; every other set refuses them."""
        place, entry, words = self.draw_hook()
        if not place:
            return None
        live = [name for name, _ in entry["sets"] if self.lists[name].changes_live()]
        name = self.draw.choice(live or [name for name, _ in entry["sets"]])
        keys = self.draw.sample(COMMON + self.lists[name].core, self.draw.randint(1, 4))
        for suffix in self.lists[name].sets():
            for contents in self.model.contents_of(name + suffix):
                contents.touched.update(self.lists[name].probes(keys))
        verb = self.draw.choice(["insert", "delete"])
        ends = ["--for", "1s"] if verb == "insert" and self.draw.random() < 0.5 else []
        self.by_hand(verb, words[0], name, *keys, *words[1:], *ends)
        return f"{verb} {name}"

    @operation(2)
    def join_by_hand(self):
        """Of the lists as they are now: those that their filters were not built from are refused."""
        place, entry, words = self.draw_hook()
        if not place:
            return None
        names = [name for name, _ in entry["sets"] if self.lists[name].plain() and self.path_of(name).is_file()]
        if not names:
            return None
        self.by_hand("join", words[0], *(f"{name}={self.path_of(name)}" for name in names), *words[1:])
        return len(names)

    @operation(2)
    def confirm_by_hand(self):
        """What a person has put on probation may be kept, or taken back, until the daemon undoes it."""
        place, _, words = self.draw_hook()
        if place:
            self.command("confirm", *words, *(["--take-back"] if self.draw.random() < 0.5 else []))

    @operation(3)
    def ask_by_hand(self):
        place, entry, words = self.draw_hook()
        if place:
            name, key = self.draw.choice(entry["sets"])[0], self.draw.choice(COMMON)
            asked = self.draw.choice([["status"], ["stats", words[0]], ["stats", "--reset", words[0]], ["expire"],
                                      ["query", words[0], key], ["explain", words[0], key], ["list", words[0], name],
                                      ["top", words[0], name, "--times", "1"], ["config", str(self.config_at)],
                                      ["apply", "--check", str(self.config_at)],
                                      ["apply", "--diff", str(self.config_at)]])
            self.command(*asked)
            return asked[0]
        return None

    # The off switch.

    @operation(4)
    def pause_by_hand(self):
        if self.config_is_broken:
            return None  # it may not name the state directory
        number = None if self.draw.random() < 0.2 else self.draw.choice(self.interfaces).number
        some = [interface for interface in self.interfaces if number in (None, interface.number)]
        for interface in some:
            for place in self.places_of(interface.number):
                self.model.may_be(place, None)
        status, _ = self.command("pause", *([] if number is None else [f"life{number}"]), "--config",
                                 str(self.config_at))
        if status not in (0, 5):
            self.must_resume = True
            self.pauses_doubtful = True
            return status
        self.all_paused |= number is None
        self.paused |= set() if number is None else {number}
        for interface in some:
            # What is not there by its name is found when it is.
            if status == 0 and interface.where == "here" and not self.pauses_doubtful:
                for place in self.places_of(interface.number):
                    self.model.tables[place] = [None]
        return number

    @operation(4)
    def resume_by_hand(self):
        if self.config_is_broken or not (self.paused or self.all_paused):
            return None
        number = None if self.all_paused else self.draw.choice(sorted(self.paused))
        for interface in self.interfaces:
            if self.is_paused(interface.number) and number in (None, interface.number):
                self.may_judge_again(interface.number)
        status, _ = self.command("resume", *([] if number is None else [f"life{number}"]), "--config",
                                 str(self.config_at))
        if status != 0:
            self.must_resume = True
            self.pauses_doubtful = True
            return status
        self.end_pauses(number)
        return number

    def end_pauses(self, number=None):
        """These pauses are over, and the interfaces may be judged again."""
        for interface in self.interfaces:
            if number in (None, interface.number):
                self.may_judge_again(interface.number)
        if number is None:
            self.all_paused = False
            self.paused.clear()
        self.paused.discard(number)

    def resume_all(self):
        status, err = self.command("resume", "--config", str(self.config_at))
        if status != 0:
            raise Violation(f"resume ended with {status}: {err}")
        self.end_pauses()
        self.must_resume = False


# --- the host -----------------------------------------------------------------------------------------------


class OnTheHost:
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

    @operation(2)
    def hold_the_lock(self):
        """A person holds the controllers' lock, sometimes for longer than the daemon waits."""
        inode = os.stat(f"/run/netns/{HERE}").st_ino
        seconds = self.draw.choice([0.1, 0.5, 0.5, 1, 2, 11])
        with open(f"/run/xdp-sieve/net-{inode}.lock", "a", encoding="ascii") as lock:
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self.a_moment(seconds)
                    return seconds
                except BlockingIOError:
                    self.send_packets()
        return None

    @operation(1)
    def too_many_changes(self):
        """More of them than the kernel's queue holds."""
        if not self.is_up():
            return
        name = next(name for name, one in self.lists.items() if one.source == FOLDER)
        path = self.path_of(name).parent / ".noise"
        path.parent.mkdir(exist_ok=True)
        with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as text:
            most = int(text.read())
        self.daemon.signal(signal.SIGSTOP)
        for number in range(most // 2 + 100):
            # Two equal events in a row count as one.
            other = path.with_name(f".noise{number % 2}")
            other.touch()
            other.unlink()
        self.write_list(name, self.draw_list(name))
        self.daemon.signal(signal.SIGCONT)

    # The state.

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
        with contextlib.suppress(OSError):
            (self.state / "ballast").unlink(missing_ok=True)

    @operation(2)
    def spoil_the_folder(self):
        """The state directory can be written by others, belongs to somebody else, or cannot be written at all."""
        how = self.draw.choice(["others", "owner", "read-only"])
        # Whoever may write there could pause the host, or change a list, so what is there does not count.
        self.doubt_pauses()
        self.doubt_lists()
        if how == "read-only":
            # Refused while the daemon has a file open there that it writes to.
            run("mount", "-o", "remount,ro", self.state, check=False)
        elif not os.access(self.state, os.W_OK):
            return None
        elif how == "others":
            self.state.chmod(0o777)
        else:
            os.chown(self.state, 12345, 12345)
        return how

    def give_back_the_host(self):
        """Room, descriptors, memory, the port of the status page, and the folders as they were."""
        run("mount", "-o", "remount,rw", self.state)
        os.chown(self.state, 0, 0)
        self.state.chmod(0o700)
        self.room_on_the_disk()
        if self.is_up():
            for name in ("nofile", "as"):
                self.limit(name, {"nofile": 20000, "as": "unlimited"}[name])
        if self.squatter:
            self.squatter.close()
            self.squatter, self.squatted = None, True
        if hasattr(self, "lists"):
            self.unmount_the_folder()

    def state_files(self):
        return sorted(path for path in self.state.rglob("*") if path.is_file() and path.name != "ballast")

    @operation(4)
    def damage_the_state(self):
        """What a list lost must not depend on a list that the daemon would refuse."""
        self.all_lists_good()
        files = self.state_files()
        if files:
            # The names of files differ from run to run, their sort does not.
            sort = self.draw.choice(["version", "hooks.json", "record.json", ".list", ".sieve", "counters.json",
                                     "journal", "paused", ""])
            path = self.chance.choice([one for one in files if sort in one.name] or files)
            how = self.draw.choice(["empty", "cut", "garbage", "gone", "folder"])
            self.hooks_lost |= path.name == "hooks.json"
            self.doubt_lists()
            if path.name.startswith("paused") and how == "gone":
                self.doubt_pauses()
            self.spoil(path, how)
            if path.name == "paused" and not path.exists():
                self.all_paused = False
            if path.name.startswith("paused.life") and not path.exists():
                self.paused.discard(int(path.name[-1]))
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
            pass  # the daemon has removed it, the disk is full, or nobody may write there

    @operation(2)
    def lose_the_state(self):
        self.all_lists_good()
        self.doubt_pauses()
        self.doubt_lists()
        for one in self.state.iterdir():
            self.delete(one)
        self.hooks_lost = True
        self.all_paused &= (self.state / "paused").exists()
        self.paused = {number for number in self.paused if (self.state / f"paused.life{number}").exists()}

    @operation(1)
    def lose_the_run_files(self):
        self.run_files_lost = True
        for one in pathlib.Path("/run/xdp-sieve").iterdir():
            if one.is_file():
                one.unlink(missing_ok=True)

    def all_lists_good(self):
        self.lists_beside_are_good()
        for name, one in self.lists.items():
            if not one.good:
                self.write_list(name, self.draw_list(name))
            one.taken = False
