#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Redirection to another interface and to another CPU: who goes there, and what happens when it has gone.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/a.sieve" src 203.0.113.1 2001:db8:a::1
image "$WORK/b.sieve" src 203.0.113.2

# The third place: what is redirected out of IN's second interface arrives at OUT's.
SIDE_OUT=side-out SIDE_IN=side-in
make_side() {
    ip -n "$OUT" link del "$SIDE_OUT" 2>/dev/null || true
    ip -n "$OUT" link add "$SIDE_OUT" numtxqueues 1 numrxqueues 1 type veth \
        peer name "$SIDE_IN" netns "$IN" numtxqueues 1 numrxqueues 1
    ip -n "$OUT" link set "$SIDE_OUT" up
    ip -n "$IN" link set "$SIDE_IN" up
    # A veth takes redirected frames only if its peer polls, which it does with a program.
    ip -n "$OUT" link set dev "$SIDE_OUT" xdp obj "$OBJECT" sec xdp
}

# At the side arrives what the table of packets says; `fence` there comes by an ordinary way.
at_the_side() {
    verdicts --to "$OUT/$SIDE_OUT" --fence "$IN/$SIDE_IN"
}

to_device() {
    make_side
    attach "$1"
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN" "b=$WORK/b.sieve,action=drop"
    at_the_side <<END
pass udp 203.0.113.1 $IN4 1 2
pass tcp 2001:db8:a::1 $IN6 1 2
drop udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.3 $IN4 1 2
END
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
drop udp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
END
    [ "$(counter redirected.packets)" = 9 ] || fail "$(counter redirected.packets) redirected instead of 9"
    [ "$(counter redirect_failed)" = 0 ] || fail "$(counter redirect_failed) failed"
    [ "$(counter dropped.packets)" = 6 ] || fail "$(counter dropped.packets) dropped instead of 6"
    [ "$(counter 'sets[0].packets')" = 9 ] || fail "$(counter 'sets[0].packets') hits instead of 9"
    [ "$(counter 'sets[0].target')" = "$SIDE_IN" ] || fail "stats do not tell the target"
    [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0].sets[0].target')" = "$SIDE_IN" ] ||
        fail "status does not tell the target"
}
native_device() { to_device xdpdrv; }
generic_device() { to_device xdpgeneric; }

# The packets still reach the host, on another CPU.
to_cpu() {
    local cpu
    cpu=$(($(nproc) - 1))
    attach "$1"
    sieve -q load --default drop "$IN_IF" "a=$WORK/a.sieve,redirect=cpu:$cpu"
    verdicts <<END
pass udp 203.0.113.1 $IN4 1 2
pass udp 2001:db8:a::1 $IN6 1 2
drop udp 203.0.113.3 $IN4 1 2
END
    [ "$(counter redirected.packets)" = 6 ] || fail "$(counter redirected.packets) redirected instead of 6"
    [ "$(counter dropped.packets)" = 3 ] || fail "$(counter dropped.packets) dropped instead of 3"
    [ "$(counter 'sets[0].target')" = "cpu:$cpu" ] || fail "stats do not tell the target"
}
native_cpu() { to_cpu xdpdrv; }
generic_cpu() { to_cpu xdpgeneric; }

# An interface that vanishes takes its place in the kernel's table along: the default, and counted.
vanished() {
    make_side
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN"
    at_the_side <<<"pass udp 203.0.113.1 $IN4 1 2"
    ip -n "$IN" link del "$SIDE_IN"
    verdicts <<END
pass udp 203.0.113.1 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
END
    [ "$(counter redirect_failed)" = 3 ] || fail "$(counter redirect_failed) failed instead of 3"
    sieve status "$IN_IF" | grep -q gone || fail "status does not say that it is gone"
    # Other sets change as ever, and so does this one's filter.
    sieve -q swap "$IN_IF" "a=$WORK/b.sieve"
    verdicts <<<"pass udp 203.0.113.2 $IN4 1 2"
    # A new interface of that name is found by a new load.
    make_side
    sieve -q load --default drop "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN"
    at_the_side <<<"pass udp 203.0.113.1 $IN4 1 2"
}

swap_keeps() {
    make_side
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN"
    sieve -q swap "$IN_IF" "a=$WORK/b.sieve"
    at_the_side <<END
pass udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.1 $IN4 1 2
END
}

refusals() {
    local before
    attach
    sieve -q load "$IN_IF" "b=$WORK/b.sieve,action=count"
    before=$(state)
    refused 4 'nobody' sieve load "$IN_IF" "a=$WORK/a.sieve,redirect=nobody"
    refused 4 'cpu:4095.*online' sieve load "$IN_IF" "a=$WORK/a.sieve,redirect=cpu:4095"
    refused 2 'cpu:x' sieve load "$IN_IF" "a=$WORK/a.sieve,redirect=cpu:x"
    refused 2 'redirect=' sieve load "$IN_IF" "a=$WORK/a.sieve,redirect="
    refused 2 'one action' sieve load "$IN_IF" "a=$WORK/a.sieve,action=drop,redirect=$IN_IF"
    refused 2 'filter only' sieve swap "$IN_IF" "b=$WORK/a.sieve,redirect=$IN_IF"
    unchanged "$before"
}

ktap_run \
    "to an interface, native" native_device \
    "to an interface, generic" generic_device \
    "to a CPU, native" native_cpu \
    "to a CPU, generic" generic_cpu \
    "to an interface that has gone: the default" vanished \
    "a swap keeps the target" swap_keeps \
    "targets that are not there" refusals
