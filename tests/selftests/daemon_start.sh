#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# After a reboot, xdp-sieved puts last good images in force before it asks any source. KEYS (together) and SETS (how
# many sets, several numbers) choose the size; the daemon itself says how long it took, and the median of RUNS starts is
# printed. For figures on a busy machine:
#
#     echo -12 >/proc/self/autogroup; KEYS=1000000 RUNS=9 nice -n -15 tests/selftests/daemon_start.sh
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon
KEYS=${KEYS:-8000} SETS=${SETS:-1 5 16} RUNS=${RUNS:-1}

# The sources are commands. Each notes in a file what is attached when it is asked, and prints its list.
configure_sets() {
    local count=$1 i
    rm -rf "$STATE" "$LISTS"
    mkdir -p "$LISTS"
    chmod 755 "$WORK" "$LISTS"
    : >"$LISTS/asked" && chmod 666 "$LISTS/asked"
    cat >"$LISTS/list" <<END
#!/bin/sh
ip link show dev $IN_IF | grep -q 'prog/xdp' && echo attached >>$LISTS/asked || echo bare >>$LISTS/asked
exec awk -v set="\$1" -v keys=$((KEYS / count)) 'BEGIN {
    for (i = 0; i < keys; i++) printf "%d.%d.%d.%d\n", 20 + set, i / 65536, i / 256 % 256, i % 256 }'
END
    chmod 755 "$LISTS/list"
    {
        printf '[service]\nstate-directory = "%s"\n[[interface]]\nname = "%s"\n' "$STATE" "$IN_IF"
        printf 'protect = ["%s"]\nsets = [' "$STRANGER"
        printf '"s%d", ' $(seq "$count")
        echo ']'
        for ((i = 1; i <= count; i++)); do
            printf '[set.s%d]\nsources = [{ command = ["%s", "%d"] }]\n' "$i" "$LISTS/list" "$i"
        done
    } >"$CONFIG"
}
asked() { [ "$(wc -l <"$LISTS/asked")" -ge "$1" ]; }
have_lists() { [ "$(grep -c 'a new list with' "$WORK/said")" = "$1" ]; }

# median N: the median of column N of $WORK/times.
median() { cut -d' ' -f"$1" "$WORK/times" | sort -n | sed -n "$(((RUNS + 1) / 2))p"; }

in_force_before_asking() {
    local count run
    for count in $SETS; do
        : >"$WORK/times"
        configure_sets "$count"
        service_manager
        start
        await have_lists "$count"
        stop
        for ((run = 0; run < RUNS; run++)); do starts_again "$count"; done
        echo "$count sets, $((KEYS / count * count)) keys: ready $(median 1) ms after the start," \
            "$(median 2) ms of them on a processor (median of $RUNS)"
    done
}

starts_again() {
    local count=$1
    reset_interfaces # a reboot leaves nothing in the kernel
    : >"$LISTS/asked"
    start
    await asked "$count"
    if grep -q bare "$LISTS/asked"; then fail "a source was asked before the sets were in force"; fi
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].sets | length')" = "$count" ] || fail "not all sets"
    verdicts <<END
drop udp 21.0.0.0 $IN4 1 2
drop udp $((20 + count)).0.0.1 $IN4 1 2
pass udp $STRANGER $IN4 1 2
END
    says 'ready [0-9]+ ms after the start of this process, [0-9]+ ms of them'
    sed -nE 's/.*ready ([0-9]+) ms after the start of this process, ([0-9]+) ms of them.*/\1 \2/p' "$WORK/said" \
        >>"$WORK/times"
    stop
    reset_interfaces
}

ktap_run "last good images are in force before a source is asked" in_force_before_asking
