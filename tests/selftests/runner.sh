#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Runs test programs one after the other. Prints one KTAP document, with each program's own nested in it.
#
#     runner.sh PROGRAM...
#
# Exits with the code of a single test: 0 passed, 1 failed, 4 all skipped ($ALL_SKIPPED replaces the 4).
set -euo pipefail
cd "$(dirname "$0")"

timeout=45 # seconds until a program counts as hung; the kernel's default
# shellcheck source=settings
. ./settings

[ ! -x ../../scripts/mount_bpffs.sh ] || ../../scripts/mount_bpffs.sh # guests mount it when they start

WORK=$(mktemp -d)
mkfifo "$WORK/output"
program_job=
cleanup() {
    local status=$?
    trap '' HUP INT PIPE TERM
    # timeout forwards the signal to the program and its children; the program then cleans up.
    if [ -n "$program_job" ]; then
        kill "$program_job" 2>/dev/null || true
        wait "$program_job" 2>/dev/null || true
    fi
    rm -rf "$WORK"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# note_processor_time: sets processor_time to the milliseconds that the commands of this shell have taken.
note_processor_time() {
    times >"$WORK/times" # in a subshell, `times` would tell of that one
    processor_time=$(awk 'NR == 2 { gsub("[ms]", " "); print int(($1 * 60 + $2 + $3 * 60 + $4) * 1000) }' "$WORK/times")
}

failed=0 passed=0 number=0
echo "KTAP version 1"
echo "1..$#"
for program in "$@"; do
    number=$((number + 1))
    status=0
    started=$SECONDS
    note_processor_time
    before=$processor_time
    # SIGTERM comes first, so that the program can clean up. It runs in the background, because a waiting shell hears
    # signals.
    timeout --kill-after=60 "$timeout" "./$program" >"$WORK/output" 2>&1 &
    program_job=$!
    sed -u 's/^/  /' <"$WORK/output" &
    printer=$!
    wait "$program_job" || status=$?
    program_job=
    wait "$printer"
    note_processor_time
    echo "# $program took $((SECONDS - started)) s, processors $(((processor_time - before) / 1000)) s"
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
[ "$passed" -gt 0 ] || exit "${ALL_SKIPPED:-4}"
