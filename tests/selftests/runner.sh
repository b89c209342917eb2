#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Runs test programs one after the other and prints one KTAP document, each program's own nested in it.
#
#     runner.sh PROGRAM...
#
# Exit codes as those of one test: 0 passed, 1 failed, 4 all skipped.
set -euo pipefail
cd "$(dirname "$0")"

timeout=45 # seconds until a program counts as hung; the kernel's default
# shellcheck source=settings
. ./settings

failed=0 passed=0 number=0
echo "KTAP version 1"
echo "1..$#"
for program in "$@"; do
    number=$((number + 1))
    status=0
    started=$SECONDS
    # SIGTERM first, so that the program can clean up.
    timeout --kill-after=10 "$timeout" "./$program" 2>&1 | sed -u 's/^/  /' || status=${PIPESTATUS[0]}
    echo "# $program took $((SECONDS - started)) s"
    case $status in
    0)
        passed=$((passed + 1))
        echo "ok $number $program"
        ;;
    4)
        echo "ok $number $program # SKIP"
        ;;
    124 | 137)
        failed=$((failed + 1))
        echo "not ok $number $program # TIMEOUT $timeout seconds"
        ;;
    *)
        failed=$((failed + 1))
        echo "not ok $number $program # exit=$status"
        ;;
    esac
done
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || exit 4
