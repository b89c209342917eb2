#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Runs test programs. Prints one KTAP document, with each program's own nested in it.
#
#     runner.sh PROGRAM...
#
# With PROGRAMS_AT_ONCE=2, two programs run beside each other, and what they print appears when they end. Each then
# has a bpffs of its own, so that none finds another's pins.
#
# Exits with the code of a single test: 0 passed, 1 failed, 4 all skipped ($ALL_SKIPPED replaces the 4).
set -euo pipefail
cd "$(dirname "$0")"

timeout=45 # seconds until a program counts as hung; the kernel's default
# shellcheck source=settings
. ./settings

[ ! -x ../../scripts/mount_bpffs.sh ] || ../../scripts/mount_bpffs.sh # guests mount it when they start

WORK=$(mktemp -d)
declare -A running=() # process id: number of the program
cleanup() {
    local status=$? job
    trap '' HUP INT PIPE TERM
    for job in "${!running[@]}"; do
        kill "$job" 2>/dev/null || true
        wait "$job" 2>/dev/null || true
    done
    rm -rf "$WORK"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# end_run: ends what run() has begun. The program cleans up, and may print until then.
end_run() {
    if [ -n "$job" ]; then
        kill "$job" 2>/dev/null || true
        wait "$job" || true
    fi
    [ -z "$printer" ] || kill "$printer" 2>/dev/null || true
    exit 143
}

# run NUMBER: runs that program and prints what it prints, and what it took. Exits with its status. For a process of its
# own.
run() {
    local program=${programs[$1 - 1]} output=$WORK/$1.lines status=0 started=$SECONDS job='' printer=''
    local -a command=("./$program")
    # shellcheck disable=SC2016 # for the other shell
    [ "$at_once" -eq 1 ] || command=(unshare --mount --propagation private bash -c
        'mount -t bpf bpf /sys/fs/bpf && exec "$@"' - "${command[@]}")
    mkfifo "$output"
    trap - EXIT
    trap end_run TERM
    # timeout forwards the signal to the program and its children; the program then cleans up. It runs in the
    # background, because a waiting shell hears signals. SIGTERM comes first.
    timeout --kill-after=60 "$timeout" "${command[@]}" >"$output" 2>&1 &
    job=$!
    sed -u 's/^/  /' <"$output" &
    printer=$!
    wait "$job" || status=$?
    wait "$printer"
    times >"$output.times"
    echo "# $program took $((SECONDS - started)) s, processors $(
        awk 'NR == 2 { gsub("[ms]", " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$output.times") s"
    exit "$status"
}

# report NUMBER PROGRAM STATUS: prints the result.
report() {
    case $3 in
    0)
        passed=$((passed + 1))
        echo "ok $1 $2"
        ;;
    4) echo "ok $1 $2 # SKIP" ;;
    124 | 137)
        failed=$((failed + 1))
        echo "not ok $1 $2 # TIMEOUT $timeout seconds"
        ;;
    *)
        failed=$((failed + 1))
        echo "not ok $1 $2 # exit=$3"
        ;;
    esac
}

# await_one: waits for one of the running programs and reports it.
await_one() {
    local job status=0 number
    wait -n -p job "${!running[@]}" || status=$?
    number=${running[$job]}
    unset "running[$job]"
    [ "$at_once" -eq 1 ] || cat "$WORK/$number"
    report "$number" "${programs[number - 1]}" "$status"
}

at_once=${PROGRAMS_AT_ONCE:-1} programs=("$@") failed=0 passed=0
echo "KTAP version 1"
echo "1..$#"
for ((number = 1; number <= $#; number++)); do
    if [ "$at_once" -eq 1 ]; then run "$number" & else run "$number" >"$WORK/$number" & fi
    running[$!]=$number
    [ ${#running[@]} -lt "$at_once" ] || await_one
done
while [ ${#running[@]} -gt 0 ]; do await_one; done
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || exit "${ALL_SKIPPED:-4}"
