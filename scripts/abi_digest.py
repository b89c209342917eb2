#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Notices a change of what a running program reads, so that nobody forgets to raise SIEVE_ABI.

    abi_digest.py             exit 1 if the sources are not those that were recorded
    abi_digest.py --record    record them

A controller changes the maps of a program that may be older than itself. It refuses a program of another SIEVE_ABI
(include/sieve/policy.h). A program of the same number must read policies and images as the controller writes them, or
members are missed. A digest cannot tell whether a change matters; a person must.
"""

import hashlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests/data/abi"
SOURCES = ("include/sieve/*.h", "bpf/lookup*.h")


def digest() -> str:
    """SHA-256 of the sources without comments, and with single spaces."""
    whole = hashlib.sha256()
    for source in sorted(path for pattern in SOURCES for path in ROOT.glob(pattern)):
        code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", source.read_text(), flags=re.DOTALL)
        whole.update(f"{source.relative_to(ROOT)}\n{' '.join(code.split())}\n".encode())
    return whole.hexdigest()


def now() -> str:
    number = re.search(r"#define SIEVE_ABI (\d+)", (ROOT / "include/sieve/policy.h").read_text())
    return f"SIEVE_ABI {number[1]}: {digest()}\n"


if sys.argv[1:] == ["--record"]:
    RECORD.write_text(now())
elif not RECORD.exists() or RECORD.read_text() != now():
    sys.exit(f"{' or '.join(SOURCES)} is not what was recorded with {RECORD.relative_to(ROOT)}.\n"
             "Would a program built before this change read a policy or an image of today wrongly, or the other way "
             "round? Then raise SIEVE_ABI.\nIn any case record the new sources: scripts/abi_digest.py --record")
