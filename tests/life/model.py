# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""What may become of a packet while a daemon's life goes on. Uses nothing of the filter's own code.

Whatever changes adds a possibility; a quiet period, after which the daemon has said that it has done all of its
work, takes possibilities away. So a verdict is sure where all possibilities agree, and open where they differ.
"""

import dataclasses
import itertools

PASS, DROP = "pass", "drop"
IN, OUT, OPEN = "in", "out", "open"  # of an address in a list


def name_of(key):
    """A set's name: a set whose sources have changed is another one to the model, with the same name."""
    return key.partition("@")[0]


@dataclasses.dataclass(frozen=True)
class Table:
    """What is in force where packets pass. None instead of it means no program."""

    default: str
    sets: tuple  # (key, action) in their order

    def without(self, name):
        return dataclasses.replace(self, sets=tuple(one for one in self.sets if name_of(one[0]) != name))

    def partial(self, may_lack):
        """What may be in force while some of these sets have no list yet. Where one that passes has none, sets behind
        it that could drop its members, and a default of drop, may wait as well."""
        missing = [name for name, _ in self.sets if name in may_lack]
        tables = {self}
        for count in range(1, len(missing) + 1):
            for some in itertools.combinations(missing, count):
                friend = next((i for i, one in enumerate(self.sets) if one[1] == PASS and one[0] in some), None)
                rest = [one for one in self.sets if one[0] not in some]
                if friend is None:
                    tables.add(dataclasses.replace(self, sets=tuple(rest)))
                    continue
                behind = [one for one in self.sets[friend:] if one in rest and one[1] not in (PASS, "count")]
                for held in range(len(behind) + 1):
                    for waiting in itertools.combinations(behind, held):
                        sets = tuple(one for one in rest if one not in waiting)
                        tables |= {Table(default, sets) for default in (PASS, self.default)}
        return tables

    def with_action(self, name, action):
        return dataclasses.replace(self, sets=tuple((one, action if name_of(one) == name else old)
                                                    for one, old in self.sets))


class Contents:
    """What one set may hold: any of these lists, less any of these exceptions."""

    def __init__(self, addresses):
        self.lists = [frozenset(addresses)]
        self.exceptions = [frozenset()]
        # What a person did: lists put there last until the next quiet period.
        self.by_hand = []
        # Keys inserted or deleted, since the last quiet period and before it. They last until then in a set that the
        # daemon keeps live, in any other one until its next list.
        self.touched, self.touched_before = set(), set()

    @staticmethod
    def held_by(address, some):
        held = sum(address in one for one in some)
        return IN if held == len(some) else OPEN if held else OUT

    def holds(self, address):
        if address in self.touched or address in self.touched_before:
            return OPEN
        listed = self.held_by(address, self.lists)
        excepted = self.held_by(address, self.exceptions)
        if listed == OUT or excepted == IN:
            held = OUT
        else:
            held = IN if listed == IN and excepted == OUT else OPEN
        # A list by hand is what it is, without exceptions.
        return held if all((address in one) == (held == IN) and held != OPEN for one in self.by_hand) else OPEN

    def may_be(self, addresses):
        one = frozenset(addresses)
        if one not in self.lists:
            self.lists.append(one)

    def may_lack(self, addresses):
        one = frozenset(addresses)
        if one not in self.exceptions:
            self.exceptions.append(one)

    def may_also_hold(self, address):
        self.touched.add(address)


class Model:
    def __init__(self):
        self.contents = {}  # by the set's key
        self.tables = {}  # by the place: what may be in force there

    def may_be(self, place, table):
        if table not in self.tables[place]:
            self.tables[place].append(table)

    def contents_of(self, name):
        """Those of all sets that had this name lately."""
        return [contents for key, contents in self.contents.items() if name_of(key) == name]

    def is_sure(self, place):
        return len(self.tables[place]) == 1

    def judged(self, table, address):
        if table is None:
            return {PASS}
        possible = set()
        for name, action in table.sets:
            held = self.contents[name].holds(address)
            if held == OUT or action == "count":
                continue
            possible.add(action)
            if held == IN:
                return possible
        return possible | {table.default}

    def verdicts(self, place, address):
        """The verdicts that are possible for packets from that address."""
        return set().union(*(self.judged(table, address) for table in self.tables[place]))
