#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Holds docs/format.md against the headers and against a real image.

usage: format_page.py [--write]

Three kinds of marks in the page say what is checked:

    <!-- layout: NAME -->   the next table's columns are offset, bytes and field of struct NAME, every field in order
    <!-- values: NAME -->   the next table's columns are value and name of enum NAME, every name in order
    <!-- image -->          the next two code blocks are commands that build an image and print it, and what they print

Names, offsets, sizes and values come from the compiler. The commands run with build/xdp-sieve. With --write the
numbers and the output are put right in the page; new fields are for a person to describe. Exit 0: the page is true;
1: it is not; 4: nothing was built yet.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/format.md"
HEADERS = sorted((ROOT / "include/sieve").glob("*.h"))
SKIPPED = 4


def compiler(*arguments, source):
    """Runs the C++ compiler on a source that includes all shared headers; returns its output."""
    includes = "".join(f"#include <sieve/{header.name}>\n" for header in HEADERS)
    command = [*shlex.split(os.environ.get("CXX", "g++")), "-std=c++20", "-w", f"-I{ROOT / 'include'}"]
    command += ["-x", "c++", "-", *arguments]
    return subprocess.run(command, input=includes + source, text=True, check=True, stdout=subprocess.PIPE).stdout


def body_of(kind, name, text):
    found = re.search(rf"\b{kind}(?: __attribute__\(\(\w+\)\))? {name}(?:\s*:\s*\w+)?\s*\{{([^}}]*)\}}", text)
    if not found:
        sys.exit(f"format_page: include/sieve has no {kind} {name}")
    return found[1]


def fields_of(name, text):
    return re.findall(r"(\w+)\s*(?:\[[^;]*\])?;", body_of("struct", name, text))


def names_of(name, text):
    return re.findall(r"(?:^|,)\s*(\w+)", body_of("enum", name, text))


def ask_compiler(expressions):
    """The values of constant expressions over the shared headers."""
    prints = "".join(f'    printf("%lld\\n", (long long)({expression}));\n' for expression in expressions)
    with tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, "ask")
        compiler("-o", program, source=f"#include <cstddef>\n#include <cstdio>\nint main() {{\n{prints}}}\n")
        return [int(line) for line in subprocess.check_output([program], text=True).split()]


def expressions_of(of, name):
    """What a row says of a field of a struct, or of a name of an enum."""
    return (f"offsetof({of}, {name})", f"sizeof((({of}*)0)->{name})") if of.startswith("struct ") else (name,)


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table_at(lines, at):
    """(first, last) of the rows of the next table after a line, without the table's two header lines."""
    first = next(i for i in range(at, len(lines)) if lines[i].startswith("|")) + 2
    last = first
    while last < len(lines) and lines[last].startswith("|"):
        last += 1
    return first, last


def block_at(lines, at):
    """(first, last) of the lines inside the next code block."""
    first = next(i for i in range(at, len(lines)) if lines[i].startswith("```")) + 1
    return first, next(i for i in range(first, len(lines)) if lines[i].startswith("```"))


class Page:
    def __init__(self):
        self.lines = PAGE.read_text().splitlines()
        self.wrong = []

    def marks(self, kind):
        for at, line in enumerate(self.lines):
            if found := re.fullmatch(rf"<!-- {kind}(?:: (\w+))? -->", line):
                yield at, found[1]

    def columns(self, at, what, wanted):
        """Checks that the table after the mark begins with the columns of `wanted`, whose last column is the name."""
        first, last = table_at(self.lines, at)
        names = [row[-1] for row in wanted]
        known = {row[-1]: row for row in wanted}
        width = len(wanted[0])
        present = []
        for i in range(first, last):
            cells = cells_of(self.lines[i])
            name = cells[width - 1].strip("`")
            present.append(name)
            if name not in known:
                self.wrong.append(f"{what} has no {name}")
                continue
            numbers = [str(number) for number in known[name][:-1]]
            if cells[:width - 1] != numbers:
                self.wrong.append(f"{what}: {name}: the page says {cells[:width - 1]}, the compiler {numbers}")
                self.lines[i] = "| " + " | ".join(numbers + cells[width - 1:]) + " |"
        if present != names:
            self.wrong.append(f"{what}: the page lists {present}, the header {names}")

    def numbers(self, text):
        """Checks all layouts and values. The compiler is asked once, since reading the headers takes it seconds."""
        tables = [(at, f"struct {name}", fields_of(name, text)) for at, name in self.marks("layout")]
        tables += [(at, f"enum {name}", names_of(name, text)) for at, name in self.marks("values")]
        asked = [expressions_of(of, name) for _, of, names in tables for name in names]
        answers = iter(ask_compiler([expression for each in asked for expression in each]))
        for at, of, names in tables:
            self.columns(at, of, [(*(next(answers) for _ in expressions_of(of, name)), name) for name in names])

    def image(self):
        for at, _ in self.marks("image"):
            first, last = block_at(self.lines, at)
            commands = "\n".join(self.lines[first:last])
            environment = dict(os.environ, PATH=f"{ROOT / 'build'}:{os.environ['PATH']}", LC_ALL="C")
            with tempfile.TemporaryDirectory() as work:
                printed = subprocess.run(["bash", "-e", "-c", commands], cwd=work, env=environment, check=True,
                                         capture_output=True, text=True).stdout.splitlines()
            first, last = block_at(self.lines, last + 1)
            if self.lines[first:last] != printed:
                self.wrong.append("the image differs from the page's:\n" + "\n".join(printed))
                self.lines[first:last] = printed


def main():
    if sys.argv[1:] not in ([], ["--write"]):
        sys.exit(__doc__)
    if not (ROOT / "build/xdp-sieve").exists():
        print("format_page: build/xdp-sieve is missing: run make first")
        return SKIPPED
    text = compiler("-E", "-P", source="")  # without comments and macros
    page = Page()
    page.numbers(text)
    page.image()
    if not page.wrong:
        return 0
    print("docs/format.md: " + "\ndocs/format.md: ".join(page.wrong))
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text("\n".join(page.lines) + "\n")
        print("written; the words are for a person to check")
    return 1


if __name__ == "__main__":
    sys.exit(main())
