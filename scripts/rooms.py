#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Enforces userspace/rooms: which room of user space may include which.

    rooms.py             exit 1 with the lines that break it, for a page that names what is not there, and for a
                         drawing of other rooms
    rooms.py --sizes     files and lines of code of each room, without blanks and comments
    rooms.py --draw      writes docs/drawings/rooms.svg
    rooms.py --libraries FOLDER
                         exit 1 with the symbols that a library of a room needs from rooms that it may not include;
                         `make` puts the libraries into build/rooms

--tree FOLDER: instead of the tree that this script is in.
"""

import argparse
import html
import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"^\s*(//.*)?$")
DRAWING = "docs/drawings/rooms.svg"
TINTS = {"libsieve/service": "#e3f0fb", "libsieve/control": "#e6f5e4", "libsieve/fleet": "#f3e6f7",
         "libsieve/kernel": "#fbe9e3", "libsieve": "#eef0f5"}


class Law:
    """The rooms by name, each with its rank, and what each is for."""

    def __init__(self, userspace):
        self.userspace = userspace
        self.rank, self.purpose, self.mistakes = {}, {}, []
        page = userspace / "rooms"
        for number, line in enumerate(page.read_text().splitlines(), 1):
            line = line.split("#", 1)[0].strip()
            if not line:
                continue
            names, _, purpose = line.partition("|")
            for name in names.split():
                folders = self.folders(name)
                if not folders:
                    self.mistakes.append(f"userspace/rooms:{number}: there is no folder userspace/{name}")
                for folder in folders:
                    if folder in self.rank:
                        self.mistakes.append(f"userspace/rooms:{number}: {folder} stands on two lines")
                    self.rank[folder] = number
                    self.purpose[folder] = purpose.strip()

    def folders(self, name):
        if name.endswith("/*"):
            parent = self.userspace / name[:-2]
            return sorted(f"{name[:-2]}/{one.name}" for one in parent.glob("*/") if one.is_dir())
        return [name] if (self.userspace / name).is_dir() else []

    def room_of(self, path):
        """The room of a file, by its path from userspace: the nearest folder that is one. None: it has none."""
        return next((str(one) for one in path.parents if str(one) in self.rank), None)

    def may_include(self, room, other):
        return room == other or self.rank[other] < self.rank[room]


def sources(userspace):
    return sorted(one for one in userspace.rglob("*") if one.suffix in (".cpp", ".hpp", ".h"))


def included(userspace):
    """Each pair of a file and a file of user space that it includes, by their paths from userspace."""
    for source in sources(userspace):
        for name in INCLUDE.findall(source.read_text()):
            if (userspace / name).is_file():
                yield source.relative_to(userspace), pathlib.PurePath(name)


def breaches(law):
    yield from law.mistakes
    for source in sources(law.userspace):
        if law.room_of(source.relative_to(law.userspace)) is None:
            yield f"{source.relative_to(law.userspace.parent)}: is in no room of userspace/rooms"
    for source, other in included(law.userspace):
        room, others_room = law.room_of(source), law.room_of(other)
        if room and others_room and not law.may_include(room, others_room):
            yield f"userspace/{source}: {room} may not include {other}, which is in {others_room}"


def symbols(library, which):
    said = subprocess.run(["nm", "--demangle", "--extern-only", which, library], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return {line[19:] for line in said.splitlines() if line[17:18].isalpha()}


def links(law, folder):
    """What a library would have to find in a library that is not below its own."""
    library = {room: folder / (room.replace("/", "-") + ".a") for room in law.rank}
    library = {room: path for room, path in library.items() if path.exists()}
    definers = {}
    for room, path in library.items():
        for symbol in symbols(path, "--defined-only"):
            definers.setdefault(symbol, set()).add(room)
    for room, path in library.items():
        for symbol in sorted(symbols(path, "--undefined-only")):
            rooms = definers.get(symbol, set())
            if rooms and not any(law.may_include(room, other) for other in rooms):
                yield f"{room} may not link {symbol}, which is in {', '.join(sorted(rooms))}"


def sizes(law):
    """Files and lines of code of each room."""
    count = {room: [0, 0] for room in law.rank}
    for source in sources(law.userspace):
        room = law.room_of(source.relative_to(law.userspace))
        if room:
            count[room][0] += 1
            count[room][1] += sum(not COMMENT.match(line) for line in source.read_text().splitlines())
    return count


def drawing(law):
    """The rooms as boxes, the lowest at the bottom, each with what it is for."""
    ranks = sorted(set(law.rank.values()), reverse=True)
    width, row, top = 950, 28, 40
    height = top + row * len(ranks) + 10
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             f'height="{height}" font-family="sans-serif" font-size="13">',
             "<title>The rooms of user space</title>", f'<rect width="{width}" height="{height}" fill="white"/>',
             '<text x="20" y="24" fill="#445">A file may include what stands below it, never what stands above it or '
             "beside it.</text>"]
    for index, rank in enumerate(ranks):
        rooms = sorted(room for room in law.rank if law.rank[room] == rank)
        y = top + index * row
        tint = next((tint for name, tint in TINTS.items() if rooms[0].startswith(name)), "#fdf4dc")
        name = ", ".join(room.removeprefix("libsieve/") for room in rooms)
        if len({pathlib.PurePath(room).parent for room in rooms}) < len(rooms) and rooms[0].count("/") > 2:
            name = rooms[0].removeprefix("libsieve/").rsplit("/", 1)[0] + "/KIND"
        lines += [f'<rect x="14" y="{y}" width="{width - 28}" height="{row - 4}" rx="4" fill="{tint}"/>',
                  f'<text x="22" y="{y + 17}" font-weight="bold">{html.escape(name)}</text>',
                  f'<text x="370" y="{y + 17}" fill="#445">{html.escape(law.purpose[rooms[0]])}</text>']
    return "\n".join([*lines, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Enforces userspace/rooms.")
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--libraries", type=pathlib.Path)
    parser.add_argument("--tree", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    law = Law(arguments.tree / "userspace")
    if arguments.sizes:
        for room, (files, code) in sizes(law).items():
            print(f"{room:34} {files:4} files {code:6,} lines")
    elif arguments.draw:
        (arguments.tree / DRAWING).write_text(drawing(law))
    else:
        found = list(links(law, arguments.libraries) if arguments.libraries else breaches(law))
        if not found and (arguments.tree / DRAWING).read_text() != drawing(law):
            found.append(f"{DRAWING} shows other rooms: run scripts/rooms.py --draw")
        print("\n".join(found), end="\n" if found else "")
        return 1 if found else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
