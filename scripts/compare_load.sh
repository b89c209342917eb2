#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Compares how long two builds take for `load INTERFACE NAME=IMAGE`: the whole command, until packets are judged. The
# builds take turns in one run, so that other work on the machine slows both alike. Prints the time of the whole
# command, and the processors' share of it, which other work disturbs less.
#
#     compare_load.sh OLD_TREE NEW_TREE [ROUNDS]
#
# Both trees must be built. Each loads a set of KEYS (1,000,000) addresses that its own build made as kind KIND
# (blocked). Compare the lower quartile first: other work on the machine disturbs it less than the median. If the new
# build protects the addresses that its host lives by, a third row leaves that out (`--allow-lockout`).
set -euo pipefail

[ $# -ge 2 ] || {
    echo "usage: compare_load.sh OLD_TREE NEW_TREE [ROUNDS]" >&2
    exit 2
}
[ "$(id -u)" -eq 0 ] || {
    echo "compare_load.sh: loading programs needs root" >&2
    exit 1
}
old=$(realpath "$1")/build/xdp-sieve
new=$(realpath "$2")/build/xdp-sieve
rounds=${3:-51}

WORK=$(mktemp -d)
space=sieve-load-$$
cleanup() {
    local status=$?
    trap '' HUP INT TERM
    # Interrupted early, the namespace does not exist.
    ip netns del "$space" 2>/dev/null || true
    rm -rf "$WORK"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

awk -v keys="${KEYS:-1000000}" 'BEGIN { srand(1); for (i = 0; i < keys; i++)
    printf "%d.%d.%d.%d\n", 1 + rand() * 223, rand() * 256, rand() * 256, rand() * 256 }' >"$WORK/feed"
"$old" -q build --seed 1 --kind "${KIND:-blocked}" -o "$WORK/old.sieve" "$WORK/feed"
"$new" -q build --seed 1 --kind "${KIND:-blocked}" -o "$WORK/new.sieve" "$WORK/feed"

ip netns add "$space"
ip -n "$space" link add sieve0 type veth peer name sieve1
ip -n "$space" link set sieve0 up
ip -n "$space" link set sieve1 up

# turn NAME PROGRAM IMAGE OPTION...: one load. Adds its seconds to a file: in all, and of processors, user and system.
turn() {
    local name=$1 program=$2 image=$3 TIMEFORMAT='%R %U %S'
    shift 3
    {
        time nsenter --net="/run/netns/$space" "$program" -q load "$@" sieve0 "listed=$image" 2>"$WORK/said"
    } 2>>"$WORK/$name.times" || {
        cat "$WORK/said" >&2
        exit 1
    }
    nsenter --net="/run/netns/$space" "$program" -q unload sieve0
}

rows=(old new)
if "$new" load --help | grep -q -- --allow-lockout; then rows+=("new, --allow-lockout"); fi
for ((round = 0; round < rounds; round++)); do
    turn old "$old" "$WORK/old.sieve"
    turn new "$new" "$WORK/new.sieve"
    if [ ${#rows[@]} -gt 2 ]; then turn "${rows[2]}" "$new" "$WORK/new.sieve" --allow-lockout; fi
done

# quarters TITLE FIRST LAST: each row's least value, lower quartile and median of the sum of these columns.
quarters() {
    local name
    printf '%-30s %8s %8s %8s\n' "$1" least quartile median
    for name in "${rows[@]}"; do
        awk -v first="$2" -v last="$3" '{ ms = 0; for (i = first; i <= last; i++) ms += 1000 * $i; print ms }' \
            "$WORK/$name.times" | sort -n | awk -v name="$name" '{ ms[NR] = $1 }
            END { printf "  %-28s %8.1f %8.1f %8.1f\n", name, ms[1], ms[int((NR + 3) / 4)], ms[int((NR + 1) / 2)] }'
    done
}
quarters milliseconds 1 1
quarters "milliseconds of processors" 2 3
