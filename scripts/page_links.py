#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Finds links in the project's pages that lead nowhere: files that do not exist, headings that a page does not have.

usage: page_links.py

A path in backquotes counts as a link if it begins with a folder of this project, so that a page does not name a file
that has moved. Also finds pages that do not stand in one shelf of docs/README.md, or whose first lines name another
reader than the shelf does. Exit 0: all is well; 1: the faults are printed.
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


def misplaced():
    """A page has one reader: that of the shelf in which it stands."""
    index = ROOT / "docs/README.md"
    shelves = re.findall(r"^## For (\w+)\n(.*?)(?=^## |\Z)", index.read_text(), flags=re.MULTILINE | re.DOTALL)
    for page in sorted(ROOT.glob("docs/*.md")):
        if page == index:
            continue
        readers = [reader for reader, text in shelves if f"]({page.name})" in text]
        begin = " ".join(page.read_text().split("\n## ")[0].split())
        said = {reader for reader, _ in shelves if re.search(rf"[Tt]his page is for {reader}\b", begin)}
        if len(readers) != 1 or said != set(readers):
            yield f"{page.relative_to(ROOT)}: for {' and '.join(sorted(said)) or 'nobody'}, in the shelf of " \
                  f"{' and '.join(readers) or 'nobody'}"


def main():
    found = [f"{page.relative_to(ROOT)}: {target}" for page in PAGES for target in broken(page)]
    found += misplaced()
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
