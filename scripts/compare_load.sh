#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Compares how long two builds take for `load INTERFACE NAME=IMAGE`: the whole command, until packets are judged. The
# builds take turns in one run, so that other work on the machine slows both alike.
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

# turn NAME PROGRAM IMAGE OPTION...: one load, and its milliseconds as a line of the file NAME.
turn() {
    local name=$1 program=$2 image=$3 start
    shift 3
    start=$(date +%s%N)
    nsenter --net="/run/netns/$space" "$program" -q load "$@" sieve0 "listed=$image" 2>"$WORK/said" || {
        cat "$WORK/said" >&2
        exit 1
    }
    echo $((($(date +%s%N) - start) / 1000)) >>"$WORK/$name.times"
    nsenter --net="/run/netns/$space" "$program" -q unload sieve0
}

rows=(old new)
if "$new" load --help | grep -q -- --allow-lockout; then rows+=("new, --allow-lockout"); fi
for ((round = 0; round < rounds; round++)); do
    turn old "$old" "$WORK/old.sieve"
    turn new "$new" "$WORK/new.sieve"
    if [ ${#rows[@]} -gt 2 ]; then turn "${rows[2]}" "$new" "$WORK/new.sieve" --allow-lockout; fi
done

printf '%-22s %8s %8s %8s\n' milliseconds least quartile median
for name in "${rows[@]}"; do
    sort -n "$WORK/$name.times" | awk -v name="$name" '{ ms[NR] = $1 / 1000 }
        END { printf "%-22s %8.1f %8.1f %8.1f\n", name, ms[1], ms[int((NR + 3) / 4)], ms[int((NR + 1) / 2)] }'
done
