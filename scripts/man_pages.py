#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Makes a manual page for each command of docs/xdp-sieve.8, and one for what they share.

    man_pages.py FOLDER    writes FOLDER/xdp-sieve.8 and FOLDER/xdp-sieve-COMMAND.8
    man_pages.py --list    prints their names

The source stays one page, so that a command is described once: its synopsis, and its subsection of DESCRIPTION.
"""

import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "docs/xdp-sieve.8"


def parts(text, macro):
    """The text before the first `.macro NAME` line, and each NAME with what follows it."""
    found = re.split(rf"^\.{macro} (.+)\n", text, flags=re.M)
    return found[0], list(zip(found[1::2], found[2::2]))


def synopses(text):
    """What all commands share, and the arguments of each command."""
    shared, by_command = "", {}
    for use in re.split(r"^\.Nm\n", text, flags=re.M)[1:]:
        command = re.match(r"\.Cm ([a-z]+)\n", use)
        if command:
            by_command.setdefault(command[1], []).append(".Nm xdp-sieve\n" + use)
        else:
            shared += ".Nm\n" + use
    return shared, {name: "".join(uses) for name, uses in by_command.items()}


def plain(lines):
    """The text of lines that may be macros."""
    text = " ".join(re.sub(r"^\.Nm$", "xdp-sieve", re.sub(r"^\.Fl -", "--", line)) for line in lines)
    text = re.sub(r"\bFl -", "--", re.sub(r"(?:^|(?<= ))\.[A-Z][a-z] ", "", text))
    return re.sub(r"\s+([.,:;])", r"\1", text)


def summary(section):
    """What the first sentence says, up to its first colon or semicolon."""
    lines = []
    for line in section.split("\n"):
        lines.append(line)
        if re.search(r"[.:;]$", line):
            break
    text = re.split(r"[:;]|\.$", plain(lines))[0]
    while len(text) > 70 and "," in text:
        text = text[: text.rindex(",")]
    return text[0].lower() + text[1:]


def on_its_own(text):
    """Sections that only the shared page has are named with that page."""
    text = re.sub(r"^\.Pq Sx ([A-Z ]+?)( [.,])?$", r".Po\n\1 in\n.Xr xdp-sieve 8\n.Pc\2", text, flags=re.M)
    text = re.sub(r"^\.Sx ([A-Z ]+?)( [.,])?$", r"\1 in\n.Xr xdp-sieve 8\2", text, flags=re.M)
    return re.sub(r"^\.Nm$", ".Nm xdp-sieve", text, flags=re.M)


def pages():
    head, sections = parts(SOURCE.read_text(), "Sh")
    by_name = dict(sections)
    shared, uses = synopses(by_name["SYNOPSIS"])
    intro, commands = parts(by_name["DESCRIPTION"], "Ss")
    listed = "".join(f".It Xr xdp-sieve-{name} 8\n{summary(text)}\n" for name, text in commands)
    whole = head
    for name, text in sections:
        if name == "SYNOPSIS":
            text = shared
        if name == "DESCRIPTION":
            text = intro + ".Sh COMMANDS\n.Bl -tag -width xdp-sieve-explainxxx -compact\n" + listed + ".El\n"
        whole += f".Sh {name}\n{text}"
    yield "xdp-sieve.8", whole
    for name, text in commands:
        title = head.replace(".Dt XDP-SIEVE 8", f".Dt XDP-SIEVE-{name.upper()} 8")
        yield f"xdp-sieve-{name}.8", (
            f"{title}.Sh NAME\n.Nm xdp-sieve-{name}\n.Nd {summary(text)}\n"
            f".Sh SYNOPSIS\n{uses[name]}.Sh DESCRIPTION\n{on_its_own(text)}"
            ".Sh EXIT STATUS\nThat of all commands:\n.Xr xdp-sieve 8 .\n"
            ".Sh SEE ALSO\n.Xr xdp-sieve.toml 5 ,\n.Xr xdp-sieve 8\n")


if sys.argv[1:] == ["--list"]:
    print(*(name for name, _ in pages()), sep="\n")
elif len(sys.argv) == 2:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (folder / name).write_text(text)
else:
    sys.exit(__doc__)
