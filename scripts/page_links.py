#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Finds links in the project's pages that lead nowhere: files that do not exist, headings that a page does not have.

usage: page_links.py

A path in backquotes counts as a link if it begins with a folder of this project, so that a page does not name a file
that has moved. Exit 0: all links lead somewhere; 1: the others are printed.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:include|bpf|userspace|tests|scripts|docs)/[\w./+-]+)`")
PLACEHOLDER = re.compile(r"KIND|NAME")


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            yield target
    for path in PATH.findall(text):
        if not PLACEHOLDER.search(path) and not (ROOT / path).exists():
            yield path


def main():
    found = [f"{page.relative_to(ROOT)}: {target}" for page in PAGES for target in broken(page)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
