#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Makes groups of source files, so that the compiler reads the headers of a group once.

    group_sources.py BUILD SOURCE...

The sources of a group lie in one room, or in one of the test programs' trees. A group includes the headers of its
sources first, then the sources. If another source of the group has or calls a name that a source defines for itself,
a macro renames it while the compiler reads that source. Writes each group to BUILD/PLACE/group_N.cpp, unless it is
there already. Prints the groups' names, without BUILD.
"""

import collections
import functools
import glob
import os
import re
import sys

# So many lines take several times as long as their headers. Processors still share the work evenly.
LINES = 4000

# What begins at the margin inside an anonymous namespace: a type, a function, or a constant. Nothing is indented there.
TYPE = re.compile(r"(?:struct|class|enum(?: class)?) (\w+)\b|using (\w+) =")
OTHER = re.compile(r"[\w\[][^(={;]*?(?<!<)\b(\w+)()(?: ?[(={;]|\[)")
NO_NAME = re.compile(r"(?:using [\w: ]+;|namespace )|[A-Z_]+\(")  # GoogleTest's macros make names of their own
CALL = re.compile(r"(?<!\.)(?<!->)(?<!std::)\b(\w+)\(")
# Members, names of other namespaces, and names that GoogleTest prints.
ELSEWHERE = re.compile(r"(?:\.|->|::|\bTEST\w*\(|SUITE_P\(\w+, ?)(\w+)")
DIRECTIVE = re.compile(r"#\s*(include|define|undef|if|endif)\w*(?: +([^\s(]+))?")
# A source can see the kernel's header or the C library's.
INTERFACES = re.compile(r"<(linux|net)/if(?:_arp)?\.h>")
COMMENT = re.compile(r"//.*")
FOLDERS = "userspace", "include", "tests", "."


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.readlines()


@functools.cache
def functions_of(header):
    """The free functions and constants of a header of ours, with those of the headers that it includes. Nothing is
    indented in a namespace."""
    names = set()
    path = next(filter(os.path.exists, (f"{folder}/{header[1:-1]}" for folder in FOLDERS)), None)
    for line in lines_of(path) if path and header.startswith('"') else []:
        if (match := DIRECTIVE.match(line)) and match[1] == "include":
            names |= functions_of(match[2])
        elif not TYPE.match(line) and (match := OTHER.match(line)):
            names.add(match[1])
    return names


class Source:
    def __init__(self, path):
        self.path = path
        text = lines_of(path)
        self.lines = len(text)
        self.own = set()  # names that the source defines for itself
        self.headers, self.macros = [], set()
        self.kept, self.called = set(), set()
        depth, hidden = 0, False
        for line in text:
            if match := DIRECTIVE.match(line):
                depth = self.read_directive(match[1], match[2], depth)
            elif line.startswith("namespace {"):
                hidden = True
            elif line.startswith("} // namespace\n"):
                hidden = False
            elif hidden and not NO_NAME.match(line) and (match := TYPE.match(line) or OTHER.match(line)):
                self.own.add(match[1] or match[2])
        code = COMMENT.sub("", "".join(text))
        # Functions of others that the source calls. Another source's own function of that name would hide them.
        self.called |= set(CALL.findall(code)) - self.own
        # Names of its own that no macro may rename, because they have another meaning, too.
        self.kept |= self.own & set(ELSEWHERE.findall(code)).union(*map(functions_of, self.headers))

    def read_directive(self, verb, what, depth):
        if verb in ("if", "endif"):
            return depth + (1 if verb == "if" else -1)
        if verb == "include" and depth == 0:
            beside = os.path.join(os.path.dirname(self.path), what.strip('"'))
            self.headers.append(f'"{beside}"' if os.path.exists(beside) else what)
            if match := INTERFACES.match(what):
                (self.kept if match[1] == "linux" else self.called).add("<net/if.h>")
        elif verb == "define":
            self.macros.add(what)
        elif verb == "undef" and what not in self.macros:
            self.kept.add(what)
        return depth


class Group:
    def __init__(self):
        self.sources, self.lines, self.kept, self.called = [], 0, set(), set()

    def has_room(self, source):
        if not self.sources:
            return True
        clash = source.kept & (self.kept | self.called) or self.kept & source.called
        return self.lines + source.lines <= LINES and not clash

    def add(self, source):
        self.sources.append(source)
        self.lines += source.lines
        self.kept |= source.kept
        self.called |= source.called

    def text(self):
        headers = dict.fromkeys(header for source in self.sources for header in source.headers)
        yield from (f"#include {header}" for header in headers)
        for number, source in enumerate(self.sources, 1):
            others = set().union(*(other.own | other.called for other in self.sources if other is not source))
            renamed = sorted((source.own - source.kept) & others)
            yield f"#if FIRST_SOURCE <= {number} && {number} <= LAST_SOURCE"
            yield from (f"#define {name} {name}_{number}" for name in renamed)
            yield f'#include "{source.path}"'
            yield from (f"#undef {name}" for name in renamed + sorted(source.macros))
            yield "#endif"


def groups_of(sources):
    groups = []
    for source in sources:
        group = next((group for group in groups if group.has_room(source)), None)
        if group is None:
            groups.append(group := Group())
        group.add(source)
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


def rooms():
    """The rooms of user space (userspace/rooms), the longest name first. NAME/* is each folder in NAME."""
    with open("userspace/rooms", encoding="utf-8") as file:
        names = " ".join(re.split("[#|]", line)[0] for line in file).split()
    folders = [folder for name in names for folder in glob.glob("userspace/" + name)]
    return sorted(folders, key=len, reverse=True)


def place_of(path, folders):
    """The compiler's options depend on the room, and on the room that a unit test tests."""
    room = next((folder for folder in folders if path.startswith(folder + "/")), None)
    return room or "/".join(path.split("/")[: 3 if path.startswith("tests/unit/") else 2])


def main():
    build, *paths = sys.argv[1:]
    places = collections.defaultdict(list)
    folders = rooms()
    for path in sorted(set(paths)):
        places[place_of(path, folders)].append(Source(path))
    for place in sorted(places):
        for number, group in enumerate(groups_of(places[place]), 1):
            name = f"{place}/group_{number}.cpp"
            write(os.path.join(build, name), "\n".join(group.text()) + "\n")
            print(name)


main()
