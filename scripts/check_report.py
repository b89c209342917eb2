#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Reads what the test suites printed and counts.

    check_report.py gtest|ktap|exit SUITE STATUS LOG JSON    one JSON line per test
    check_report.py count RESULTS                            "N passed, N failed, N skipped"
    check_report.py summary RESULTS ALLOWED                  failures, skips, and that line; exit 1 on failure
"""

import collections
import fnmatch
import json
import os
import re
import sys

KTAP = re.compile(
    r"^(?P<indent> *)(?:KTAP version \d+"
    r"|1\.\.(?P<plan>\d+)(?:\s*# *SKIP *(?P<nothing>.*))?"
    r"|(?P<ok>ok|not ok) (?P<number>\d+)(?: (?:- )?(?P<name>[^#]*))?(?:# *(?P<directive>.*))?)$"
)
DETAIL_LINES = 40


def read_lines(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as text:
            return text.read().splitlines()
    except FileNotFoundError:
        return []


def result(suite, test, verdict, detail=""):
    return {"suite": suite, "test": test, "verdict": verdict, "detail": detail}


def ended_badly(suite, status, log):
    what = f"ended by signal {status - 128}" if status > 128 else f"exit status {status}"
    return result(suite, f"({what})", "fail", "\n".join(log[-DETAIL_LINES:]))


def read_exit(suite, status, log, _):
    """Reports a suite that is a single test."""
    yield result(suite, suite, "pass") if status == 0 else ended_badly(suite, status, log)


def read_gtest(suite, status, log, path):
    failed = False
    try:
        with open(path, encoding="utf-8") as text:
            report = json.load(text)
    except (FileNotFoundError, ValueError):
        # The suite crashed, so it wrote no report. The log names the tests that finished before.
        running = ""
        for line in log:
            if match := re.match(r"\[ RUN      \] (\S+)", line):
                running = match[1]
            elif match := re.match(r"\[(       OK |  FAILED  |  SKIPPED )\] (\S+?),? \(", line):
                verdict = {"OK": "pass", "FAILED": "fail", "SKIPPED": "skip"}[match[1].strip()]
                yield result(suite, match[2], verdict)
                running = ""
        bad = ended_badly(suite, status, log)
        if running:
            bad["test"] = f"{running} {bad['test']}"
        yield bad
        return
    for group in report["testsuites"]:
        for test in group["testsuite"]:
            name = f"{group['name']}.{test['name']}"
            if test.get("value_param"):
                name += f" ({test['value_param']})"
            if test.get("failures"):
                failed = True
                yield result(suite, name, "fail", "\n".join(f["failure"] for f in test["failures"]))
            elif test["status"] == "NOTRUN":
                yield result(suite, name, "skip", "disabled")
            elif test["result"] == "SKIPPED":
                yield result(suite, name, "skip", "; ".join(s.get("message", "") for s in test.get("skipped", [])))
            else:
                yield result(suite, name, "pass")
    if status != 0 and not failed:
        yield ended_badly(suite, status, log)


def read_ktap(suite, status, log, _):
    """Counts the innermost tests. An outer test counts only if it reports something that no inner test has
    reported."""
    found = read_document(collections.deque(log), 0)
    for test, verdict, detail in found:
        yield result(suite, test, verdict, detail)
    # Also reports what make and the runners print, and an exit status that no test explains.
    if not found or (status not in (0, 4) and not any(verdict == "fail" for _, verdict, _ in found)):
        yield ended_badly(suite, status, log)


def read_document(lines, indent):
    """Consumes the lines of one KTAP document and yields (test, verdict, detail) for its tests and for nested
    ones."""
    planned, ran, found, inner, comments = None, 0, [], [], []
    while lines:
        match = KTAP.match(lines[0])
        if match and len(match["indent"]) < indent:
            break
        line = lines.popleft()
        if not match:
            comments.append(re.sub(r"^ *(# ?)?", "", line))
        elif len(match["indent"]) > indent:
            inner = read_document(lines, len(match["indent"]))
        elif match["plan"]:
            planned = int(match["plan"])
            if match["nothing"] is not None:
                found.append(("", "skip", match["nothing"]))
        elif match["ok"]:
            ran += 1
            found += judge(match, inner, comments)
            inner, comments = [], []
    if planned != ran and (ran or planned or not found):
        detail = "\n".join([f"{planned or 'no'} tests planned, {ran} run", *comments[-DETAIL_LINES:]])
        found.append(("(plan)", "fail", detail))
    return found


def judge(match, inner, comments):
    """Handles one result line, after the document nested in it."""
    name, directive = (match["name"] or match["number"]).strip(), match["directive"] or ""
    detail = "\n".join(filter(None, [directive, *comments[-DETAIL_LINES:]]))
    failed = [each for each in inner if each[1] == "fail"]
    if match["ok"] == "not ok" and all(test == "(plan)" for test, _, _ in failed):
        detail = "\n".join(filter(None, [detail, *(each[2] for each in failed)]))
        inner = [each for each in inner if each not in failed] + [("", "fail", detail)]
    elif not inner and directive.upper().startswith("SKIP"):
        inner = [("", "skip", directive[4:].strip())]
    elif not inner:
        inner = [("", "pass", "")]
    return [(f"{name}: {test}" if test else name, verdict, text) for test, verdict, text in inner]


def load_results(path):
    return [json.loads(line) for line in read_lines(path)]


def count(results):
    numbers = [sum(r["verdict"] == verdict for r in results) for verdict in ("pass", "fail", "skip")]
    return "{} passed, {} failed, {} skipped".format(*numbers)


def allowed_skips(path):
    for line in read_lines(path):
        words = line.partition("#")[0].split(maxsplit=1)
        if len(words) == 2:
            yield words[0], words[1].strip()


def summary(results, allowed):
    strict = os.environ.get("CI") == "true"
    patterns = list(allowed_skips(allowed))
    for each in results:
        if each["verdict"] != "skip":
            continue
        known = any(each["suite"] == s and fnmatch.fnmatchcase(each["test"], p) for s, p in patterns)
        if strict and not known:
            each["verdict"] = "fail"
            each["detail"] = f"skipped ({each['detail']}), and {allowed} does not name it"
    for verdict, title in (("skip", "skipped"), ("fail", "FAILED")):
        for each in results:
            if each["verdict"] != verdict:
                continue
            lines = each["detail"].splitlines()
            if verdict == "skip":
                print(f"{title}: {each['suite']}: {each['test']}" + (f" ({lines[0]})" if lines else ""))
                continue
            print(f"\n{title}: {each['suite']}: {each['test']}")
            for line in lines[:DETAIL_LINES]:
                print(f"    {line}")
            if len(lines) > DETAIL_LINES:
                print(f"    ... {len(lines) - DETAIL_LINES} lines more")
    if any(r["verdict"] != "pass" for r in results):
        print()
    print(count(results))
    return 1 if any(r["verdict"] == "fail" for r in results) or not results else 0


def main():
    verb, *rest = sys.argv[1:]
    if verb == "count":
        print(count(load_results(rest[0])))
    elif verb == "summary":
        sys.exit(summary(load_results(rest[0]), rest[1]))
    else:
        suite, status, log, path = rest
        for each in {"gtest": read_gtest, "ktap": read_ktap, "exit": read_exit}[verb](suite, int(status),
                                                                                    read_lines(log), path):
            print(json.dumps(each))


if __name__ == "__main__":
    main()
