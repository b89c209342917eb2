#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Makes groups of source files, so that the compiler reads the headers of a group once.

    group_sources.py BUILD SOURCE...

The sources of a group lie in one folder, or in one of the test programs' trees. They share no name of their own, as
far as their text shows. Writes each group as a file that includes its sources, BUILD/FOLDER/group_N.cpp, unless it is
there already. Prints the groups' names, without BUILD.
"""

import collections
import os
import re
import sys

# A group of this many lines takes some ten seconds, so that processors share the work evenly.
LINES = 1800

# What begins at the margin inside an anonymous namespace: a type, a function, or a constant. Nothing is indented there.
TYPE = re.compile(r"(?:struct|class|enum(?: class)?) (\w+)\b|using (\w+) =")
OTHER = re.compile(r"[\w\[][^(={;]*?\b(\w+)()(?: ?[(={;]|\[)")
NO_NAME = re.compile(r"(?:using [\w: ]+;|namespace )|[A-Z_]+\(")  # GoogleTest's macros make names of their own
CALL = re.compile(r"\b(\w+)\(")
# Macros and headers that change what other sources of the group see.
DIRECTIVE = re.compile(r"#\s*(?:define|undef) (\w+)|#\s*include <((?:linux|net|netinet)/if\w*\.h)>")


def names_of(text):
    """The names that a source defines for itself."""
    names, hidden = set(), False
    for line in text:
        if match := DIRECTIVE.match(line):
            names.add(match[1] or "an interface's header: " + match[2].split("/")[0])
        elif line.startswith("namespace {"):
            hidden = True
        elif line.startswith("} // namespace\n"):
            hidden = False
        elif hidden and not NO_NAME.match(line) and (match := TYPE.match(line) or OTHER.match(line)):
            names.add(match[1] or match[2])
    return names


def called_by(text):
    """The functions that a source calls. A function of another source's own, of the same name, would hide them."""
    return {name for line in text for name in CALL.findall(line)}


class Group:
    def __init__(self):
        self.sources, self.names, self.called, self.lines = [], set(), set(), 0

    def has_room(self, names, called, lines):
        if not self.sources:
            return True
        return self.lines + lines <= LINES and not self.names & (names | called) and not self.called & names

    def add(self, source, names, called, lines):
        self.sources.append(source)
        self.names |= names
        self.called |= called
        self.lines += lines


def groups_of(sources):
    groups = [Group()]
    for source in sources:
        with open(source, encoding="utf-8") as file:
            text = file.readlines()
        described = names_of(text), called_by(text), len(text)
        place = next((group for group in groups if group.has_room(*described)), None)
        if place is None:
            groups.append(place := Group())
        place.add(source, *described)
    return groups


def write(path, text):
    """A group that stays as it is keeps its time."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def folder_of(source):
    """The compiler's options depend on the folder, but are the same for all tests."""
    return "/".join(source.split("/")[:2]) if source.startswith("tests/") else os.path.dirname(source)


def main():
    build, *sources = sys.argv[1:]
    folders = collections.defaultdict(list)
    for source in sorted(set(sources)):
        folders[folder_of(source)].append(source)
    for folder in sorted(folders):
        for number, group in enumerate(groups_of(folders[folder]), 1):
            name = f"{folder}/group_{number}.cpp"
            write(os.path.join(build, name), "".join(f'#include "{source}"\n' for source in group.sources))
            print(name)


main()
