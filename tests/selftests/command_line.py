#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Compares what the help, the manual page, the README and docs/sets.md say of commands, options, kinds and exit codes.

command_line.py XDP-SIEVE MANUAL README SETS commands|options|kinds|codes: prints the differences; exit 1 if there are
any.
command_line.py PROGRAM MANUAL README SETS program: the same for the options and exit codes of a program without
commands.
"""
import re
import subprocess
import sys

SIEVE, MANUAL, README, SETS, WHAT = sys.argv[1:]
COMMON = {"--help", "--json", "--no-sandbox", "--quiet", "--verbose", "--version"}
manual, readme, sets = (open(page).read() for page in (MANUAL, README, SETS))
failed = False


def said(*arguments):
    run = subprocess.run([SIEVE, *arguments], capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def same(what, **sides):
    """Reports a difference between two sets, which must be equal."""
    global failed
    union = set().union(*sides.values())
    for name, side in sides.items():
        if union - side:
            failed = True
            print(f"{what}: {name} lacks {' '.join(sorted(union - side))}")
    if not union:
        failed = True
        print(f"{what}: nothing found")


def section(name, level="Sh"):
    """The lines of a section or subsection of the manual."""
    found = re.search(rf"^\.{level} {re.escape(name)}$\n(.*?)(?=^\.S[hs] |\Z)", manual, re.M | re.S)
    return found.group(1) if found else ""


def synopsis(command):
    found = re.search(rf"^\.Cm {command}$\n(.*?)(?=^\.Nm$|\Z)", section("SYNOPSIS"), re.M | re.S)
    return found.group(1) if found else ""


def mentioned(text):
    """The long options in a part of the manual, and the short ones."""
    return set("-" + o for o in re.findall(r"\bFl (-[a-z][a-z0-9-]*|[a-z]\b)", text)) - COMMON


def helped(*command):
    options = re.findall(r"^ +(-[^ ]*)", said(*command, "--help"), re.M)
    return set(o for names in options for o in names.split(",")) - COMMON - {"-h"}


def brief_options(text, *command):
    """The options in a synopsis, where a short name stands for its long one."""
    pairs = re.findall(r"^  (-[a-z]),(--[a-z0-9-]+)", said(*command, "--help"), re.M)
    brief = mentioned(text)
    return brief | {long for short, long in pairs if short in brief} | {short for short, long in pairs if long in brief}


def numbers(text):
    return set(re.findall(r"\b(\d) [a-z]", text))


def helped_codes():
    return numbers(re.search(r"Exit codes: (.*)", said("--help")).group(1))


def manual_codes():
    return set(re.findall(r"^\.It (\d)$", section("EXIT STATUS"), re.M))


commands = re.findall(r"^  ([a-z]+)  ", said("--help").split("Commands:")[-1], re.M)
if WHAT == "commands":
    same("commands", help=set(commands),
         synopsis=set(re.findall(r"^\.Cm ([a-z]+)$", section("SYNOPSIS"), re.M)),
         manual=set(re.findall(r"^\.Ss ([a-z]+)$", manual, re.M)),
         readme=set(c for c in commands if re.search(rf"(xdp-sieve |`){c}\b", readme)))
elif WHAT == "options":
    for command in commands:
        options = helped(command)
        described = mentioned(section(command, "Ss"))
        if command in ("insert", "delete"):  # the manual describes them together
            described |= mentioned(section("insert", "Ss")) & options
        if command == "replay":  # takes the same options as load
            described |= mentioned(section("load", "Ss")) & options
        described |= {"--hook"} & options  # every command takes it; the manual describes it with load
        if not options and not described:
            continue
        brief = brief_options(synopsis(command), command)
        # A description may mention another command's option.
        described -= set().union(*(helped(other) for other in commands)) - options
        same(f"options of {command}", help=options, synopsis=brief, manual=described)
    every = set().union(*(helped(c) for c in commands)) | COMMON
    unknown = set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]+)", readme)) - every
    same("options in the README that no command has", known=set(["none"]), readme=unknown | set(["none"]))
elif WHAT == "kinds":
    message = said("build", "--kind", "nonsense", "-o", "/nonexistent/x", "/nonexistent/y")
    kinds = set(re.split(r", | or ", re.search(r"expected (.*)", message).group(1)))
    word = lambda text: set(k for k in kinds if re.search(rf"\b{k}\b", text))
    option = re.search(r"--kind KIND +(.*)", said("build", "--help")).group(1)
    items = set(w for line in re.findall(r"^\.It Cm ([a-z0-9 ,]+)$", section("build", "Ss"), re.M)
                for w in line.split(" , "))
    same("kinds", command=kinds, help=word(option), manual=items, sets_page=word(sets))
elif WHAT == "program":
    common = COMMON | {"-q"}
    same("options", help=helped() - common, synopsis=brief_options(section("SYNOPSIS")) - common,
         manual=mentioned(section("DESCRIPTION")) - common)
    same("exit codes", help=helped_codes(), manual=manual_codes())
elif WHAT == "codes":
    same("exit codes", help=helped_codes(), manual=manual_codes(),
         readme=numbers(re.search(r"Exit codes: (.*?)\. ", readme, re.S).group(1)))
else:
    sys.exit(f"unknown: {WHAT}")
sys.exit(1 if failed else 0)
