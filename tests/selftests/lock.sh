#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Two controllers at once: they take turns, no change is lost, and nobody waits for ever.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
for i in {1..8}; do image "$WORK/$i.sieve" src "203.0.113.$i"; done

# hold_lock NAMESPACE: starts another controller that does not end; sets $holder.
hold_lock() {
    : >"$WORK/held"
    # Not by a function: $! must be the holder itself.
    nsenter --net="/run/netns/$1" python3 -c '
import fcntl, os, signal
os.makedirs("/run/xdp-sieve", 0o700, exist_ok=True)
inode = os.stat("/proc/self/ns/net").st_ino
holder = open(f"/run/xdp-sieve/net-{inode}.lock", "w")
fcntl.flock(holder, fcntl.LOCK_EX)
holder.write(f"process {os.getpid()} (stuck)")
holder.flush()
print("held", flush=True)
while True: signal.pause()' >"$WORK/held" &
    holder=$!
    await_line "$WORK/held" held
}

let_go() {
    kill -KILL "$holder"
    wait "$holder" 2>/dev/null || true
}

names() { sieve --json status "$IN_IF" | jq -r '[.interfaces[0].sets[].name] | join(" ")'; }

# The second controller says whom it waits for. It goes on when the first one has ended, even by force.
waits() {
    local command waiter
    attach
    sieve -q load "$IN_IF" "a=$WORK/1.sieve" "b=$WORK/2.sieve"
    for command in "load $IN_IF a=$WORK/3.sieve b=$WORK/2.sieve" "swap $IN_IF a=$WORK/4.sieve" "remove $IN_IF b" \
        "unload $IN_IF"; do
        hold_lock "$IN"
        # shellcheck disable=SC2086
        nsenter --net="/run/netns/$IN" "$SIEVE" $command >"$WORK/out" 2>"$WORK/err" &
        waiter=$!
        # The waiter gives up after ten seconds, so the test must not ask it for anything slow.
        await_line "$WORK/err" "waiting for process $holder"
        kill -0 "$waiter" 2>/dev/null || fail "${command%% *} did not wait: $(cat "$WORK/err")"
        [ ! -s "$WORK/out" ] || fail "${command%% *} has done its work already"
        let_go
        wait "$waiter" || fail "${command%% *} failed when it was let: $(cat "$WORK/err")"
    done
}

# without_waiting COMMAND...: the command finishes while another controller holds a lock. A command that needs this
# lock would say whom it waits for, and fail in the end.
without_waiting() {
    "$@" >/dev/null 2>"$WORK/err" || fail "failed: $* ($(cat "$WORK/err"))"
    ! grep -q 'waiting for' "$WORK/err" || fail "waits: $* ($(cat "$WORK/err"))"
    kill -0 "$holder" || fail "the lock was not held: the test proves nothing"
}

# Commands that only read need no lock.
readers() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/1.sieve"
    hold_lock "$IN"
    without_waiting sieve status "$IN_IF"
    without_waiting sieve stats "$IN_IF"
    let_go
}

# A controller of another network namespace needs another lock.
other_namespace() {
    hold_lock "$OUT"
    without_waiting sieve load "$IN_IF" "a=$WORK/1.sieve"
    let_go
}

gives_up() {
    local before
    attach
    sieve -q load "$IN_IF" "a=$WORK/1.sieve"
    before=$(state)
    hold_lock "$IN"
    refused_with 4 "another controller.*process $holder" sieve -q swap "$IN_IF" "a=$WORK/2.sieve"
    let_go
    unchanged "$before"
}

# A user who is not root can neither take the lock nor keep root from it, whatever addresses and files he takes.
unprivileged() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/1.sieve"
    : >"$WORK/bound"
    nsenter --net="/run/netns/$IN" python3 -c '
import os, signal, socket
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
address = socket.socket(socket.AF_UNIX)
address.bind("\0xdp-sieve.controller")
address.listen(0)
waiting = [socket.socket(socket.AF_UNIX) for _ in range(3)]
for each in waiting:
    each.setblocking(False)
    each.connect_ex("\0xdp-sieve.controller")
print("bound", flush=True)
while True: signal.pause()' >"$WORK/bound" &
    holder=$!
    await_line "$WORK/bound" bound
    without_waiting sieve swap "$IN_IF" "a=$WORK/2.sieve"
    without_waiting sieve unload "$IN_IF"
    let_go
    refused_with 4 "run it as root" setpriv --bounding-set=-all --inh-caps=-all "$SIEVE" load lo "a=$WORK/1.sieve"
}

# Six controllers each remove one set from the same table: read, change, write. No change is lost.
no_lost_change() {
    local round i jobs
    attach
    for round in 1 2 3 4; do
        sieve -q load "$IN_IF" a1="$WORK/1.sieve" a2="$WORK/2.sieve" a3="$WORK/3.sieve" a4="$WORK/4.sieve" \
            a5="$WORK/5.sieve" a6="$WORK/6.sieve" a7="$WORK/7.sieve" a8="$WORK/8.sieve"
        jobs=()
        for i in 1 2 4 5 6 8; do
            insist sieve -q remove "$IN_IF" "a$i" &
            jobs+=($!)
        done
        for i in "${jobs[@]}"; do wait "$i" || fail "a controller failed"; done
        [ "$(names)" = "a3 a7" ] || fail "round $round left $(names) instead of a3 a7"
    done
    verdicts <<END
drop udp 203.0.113.3 $IN4 1 2
drop udp 203.0.113.7 $IN4 1 2
pass udp 203.0.113.1 $IN4 1 2
END
}

# Several loads at once, each of which attaches if it is first: one whole table is in force, with one program.
one_table_wins() {
    local i jobs=() left
    for i in 1 2 3 4; do
        insist sieve -q load "$IN_IF" "x$i=$WORK/$i.sieve" "y$i=$WORK/$((i + 4)).sieve" 2>>"$WORK/remarks" &
        jobs+=($!)
    done
    for i in "${jobs[@]}"; do wait "$i" || fail "a controller failed"; done
    left=$(names)
    [[ $left =~ ^x([1-4])\ y([1-4])$ && ${BASH_REMATCH[1]} = "${BASH_REMATCH[2]}" ]] || fail "left: $left"
    i=${BASH_REMATCH[1]}
    verdicts <<END
drop udp 203.0.113.$i $IN4 1 2
drop udp 203.0.113.$((i + 4)) $IN4 1 2
pass udp 203.0.113.$((i % 4 + 1)) $IN4 1 2
END
}

ktap_run \
    "waits for the other and says so" waits \
    "reading needs no lock" readers \
    "each network namespace has its own" other_namespace \
    "gives up after ten seconds" gives_up \
    "nobody but root can hold it" unprivileged \
    "no change is lost" no_lost_change \
    "one of several loads wins whole" one_table_wins
