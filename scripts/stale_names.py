#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Finds names in comments and docs that the tree no longer has.

    stale_names.py    exit 1 if there are any

Looked for are, in comments, docstrings, man pages and docs:

  * capitals that begin with a prefix of the project, with or without backticks: SIEVE_ABI, SIEVE_OUTCOME_*
  * in backticks: identifiers and test names, alone, qualified or called, such as `sieve_load()`, `Fleet::follow`,
    `Policy.NothingHidesAMember`; files and folders of the tree, by the end of their path; options such as `--force`

An identifier or an option exists if code has it: what is not a comment, a docstring, a man page or a doc. Names of
others, such as functions of the kernel, are in scripts/foreign_names, each line with its reason.
"""

import ast
import fnmatch
import io
import pathlib
import re
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOREIGN = ROOT / "scripts/foreign_names"
LEFT_OUT = {".git", "build", "LICENSES"}
DATA = ("tests/data/", "tests/fuzz/corpus/", "tests/fuzz/seeds/", "docs/results/", "docs/figures/", "docs/drawings/")
PROSE = {".md", ".8", ".5", ".1"}
C_LIKE = {".c", ".h", ".cpp", ".hpp"}
SOURCE = r"(?:c|h|cpp|hpp|py|sh|bash|mk|md|json|toml|svg|service|timer|conf|[158])"

PREFIXED = re.compile(r"\b(?:SIEVE|LIBSIEVE|XDP_SIEVE)_[A-Z0-9_]*")
SPAN = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
IDENTIFIER = re.compile(r"~?[A-Za-z_][A-Za-z0-9_]*(?:(?:::|\.|->)[A-Za-z_*][A-Za-z0-9_*]*)*(?:\(\))?")
PATH = re.compile(r"(?![0-9.]+/)[A-Za-z0-9_.*-]+(?:/[A-Za-z0-9_.*-]+)*/?")
LIBRARY = re.compile(r".*\.so\.\d+")
# In a path: what stands for any name, such as KIND in `filters/kinds/KIND/`.
PLACEHOLDER = re.compile(r"(?<![A-Za-z])(?:SHA-256|[A-Z]{3,})(?![A-Za-z])|\*")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
# A comment, or what may look like one inside: strings and characters, but no digit separators.
C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'',
                     re.DOTALL)


def blank(text):
    """The text's line ends, so that what follows keeps its line number."""
    return re.sub(r"[^\n]", " ", text)


def split_c(text):
    """(code, comments), each with the other blanked."""
    code, comments, at = [], [], 0
    for match in C_TOKEN.finditer(text):
        if match[0][:2] not in ("//", "/*"):
            continue
        code += [text[at:match.start()], blank(match[0])]
        comments += [blank(text[at:match.start()]), match[0]]
        at = match.end()
    return "".join(code) + text[at:], "".join(comments)


def split_python(text):
    lines, comments = text.split("\n"), [""] * (text.count("\n") + 1)

    def move(first, begin, last, end):
        for number in range(first, last + 1):
            line = lines[number - 1]
            a, b = (begin if number == first else 0), (end if number == last else len(line))
            comments[number - 1] += line[a:b]
            lines[number - 1] = line[:a] + " " * (b - a) + line[b:]

    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            move(token.start[0], token.start[1], *token.end)
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            move(body[0].lineno, 0, body[0].end_lineno, len(lines[body[0].end_lineno - 1]))
    return "\n".join(lines), "\n".join(comments)


def split_hashes(text):
    """Shell, make, TOML: a comment follows a # at the line's beginning or behind a blank."""
    code, comments = [], []
    for line in text.split("\n"):
        match = re.search(r"(?:^|\s)#(?:\s|$)", line)
        at = match.start() if match else len(line)
        code.append(line[:at])
        comments.append(" " * at + line[at:])
    return "\n".join(code), "\n".join(comments)


def split(path, text):
    """(code, prose) of a file."""
    if path.suffix in PROSE:
        prose = re.sub(r"^( *)```.*?^ *```", lambda match: blank(match[0]), text, flags=re.DOTALL | re.MULTILINE)
        return "", prose
    if path.suffix in C_LIKE:
        return split_c(text)
    if path.suffix == ".py":
        return split_python(text)
    return split_hashes(text)


def read_tree():
    """The tree's paths, and (path, code, prose) of its texts."""
    paths, texts = set(), []
    for path in sorted(ROOT.rglob("*")):
        name = path.relative_to(ROOT)
        if name.parts[0] in LEFT_OUT or "__pycache__" in name.parts:
            continue
        paths.add(f"/{name}")
        if not path.is_file() or path == FOREIGN or f"{name}".startswith(DATA):
            continue
        try:
            texts.append((name, *split(name, path.read_text())))
        except UnicodeDecodeError:
            pass
    return paths, texts


def read_foreign():
    """The allow-list: a pattern in each line, and its reason behind a #."""
    patterns = []
    for number, line in enumerate(FOREIGN.read_text().splitlines(), 1):
        pattern, mark, reason = line.partition("#")
        if pattern.strip():
            if not reason.strip():
                sys.exit(f"{FOREIGN.relative_to(ROOT)}:{number}: no reason")
            patterns += pattern.split()
    return patterns


class Names:
    def __init__(self, paths, texts):
        self.paths = paths
        self.words = {word for _, code, _ in texts for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", code)}
        self.words |= {word for path in paths for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", path)}
        self.options = {option for _, code, _ in texts for option in OPTION.findall(code)}
        self.code = "\n".join(code for _, code, _ in texts)
        self.foreign = {pattern: 0 for pattern in read_foreign()}

    def word(self, name):
        if "*" in name or name.endswith("_"):
            pattern = re.compile(re.escape(name).replace(r"\*", r"\w*") + (r"\w*" if name.endswith("_") else ""))
            return any(pattern.fullmatch(word) for word in self.words)
        return name in self.words

    def file(self, name):
        """Whether the tree has it, with or without its ending, or code names its parts, since it is made later."""
        exact = f"*/{name.rstrip('/')}"
        patterns = {f"{pattern}{ending}" for pattern in (exact, PLACEHOLDER.sub("*", exact)) for ending in ("", ".?pp")}
        if any(fnmatch.fnmatchcase(path, pattern) for path in self.paths for pattern in patterns):
            return True
        parts = [part for step in name.removeprefix("build/").split("/") for part in PLACEHOLDER.split(step)]
        return all(part in self.code for part in parts)

    def is_foreign(self, name):
        for pattern in self.foreign:
            if fnmatch.fnmatchcase(name, pattern):
                self.foreign[pattern] += 1
                return True
        return False

    def exists(self, span):
        """Whether what the backticks enclose exists, as far as it is a name."""
        if IDENTIFIER.fullmatch(span) and all(self.word(part) for part in re.findall(r"[\w*]+", span)):
            return True
        if PATH.fullmatch(span) and ("/" in span or re.fullmatch(rf".*\.{SOURCE}", span)):
            return LIBRARY.fullmatch(span) or self.file(span)
        return not IDENTIFIER.fullmatch(span)


def stale(names, prose):
    """(offset, name) of each name in the prose that does not exist."""
    for match in PREFIXED.finditer(prose):
        if not names.word(match[0]):
            yield match.start(), match[0]
    for match in SPAN.finditer(prose):
        span = match[1]
        if not names.exists(span):
            yield match.start(), span
        for option in OPTION.findall(span):
            if option not in names.options:
                yield match.start(), option


def main():
    paths, texts = read_tree()
    names = Names(paths, texts)
    found = 0
    for path, _, prose in texts:
        for offset, name in stale(names, prose):
            if not names.is_foreign(name):
                found += 1
                print(f"{path}:{prose.count(chr(10), 0, offset) + 1}: {name}: nothing in the tree has this name")
    for pattern, uses in names.foreign.items():
        if not uses:
            found += 1
            print(f"{FOREIGN.relative_to(ROOT)}: {pattern}: no comment and no doc has this name")
    if found:
        print(f"Name what is there instead. A name of others goes into {FOREIGN.relative_to(ROOT)}, with its reason.")
    return found > 0


sys.exit(main())
