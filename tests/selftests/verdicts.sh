#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The verdict on a packet: each action, either default, sets in their order, and what is counted.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/a.sieve" src 203.0.113.1 203.0.113.2 2001:db8:a::1
image "$WORK/b.sieve" src 203.0.113.2 203.0.113.3

hits() { counter "sets[] | select(.name == \"$1\") | .packets"; }

drop_set() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,action=drop"
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
drop tcp 203.0.113.2 $IN4 1 2
drop icmp 203.0.113.1 $IN4
drop sctp 203.0.113.1 $IN4 1 2
drop 47 203.0.113.1 $IN4
drop udp 203.0.113.1 $IN4 fragment
drop udp 2001:db8:a::1 $IN6 1 2
drop icmp 2001:db8:a::1 $IN6
pass udp 203.0.113.3 $IN4 1 2
pass tcp 203.0.113.4 $IN4 1 2
pass icmp 203.0.113.4 $IN4
pass udp 2001:db8:a::2 $IN6 1 2
END
    [ "$(hits a)" = 24 ] || fail "$(hits a) hits instead of 24"
    [ "$(counter dropped.packets)" = 24 ] || fail "$(counter dropped.packets) dropped instead of 24"
}

pass_set() {
    attach
    sieve -q load --default drop "$IN_IF" "a=$WORK/a.sieve,action=pass"
    verdicts <<END
pass udp 203.0.113.1 $IN4 1 2
pass tcp 203.0.113.2 $IN4 1 2
pass udp 2001:db8:a::1 $IN6 1 2
drop udp 203.0.113.3 $IN4 1 2
drop icmp 203.0.113.3 $IN4
drop udp 2001:db8:a::2 $IN6 1 2
END
    [ "$(hits a)" = 9 ] || fail "$(hits a) hits instead of 9"
    [ "$(counter dropped.packets)" = 9 ] || fail "$(counter dropped.packets) dropped instead of 9"
}

count_set() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,action=count"
    verdicts <<END
pass udp 203.0.113.1 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
END
    [ "$(hits a)" = 3 ] || fail "$(hits a) hits instead of 3"
    [ "$(counter dropped.packets)" = 0 ] || fail "counting has dropped"
}

count_under_default_drop() {
    attach
    sieve -q load --default drop "$IN_IF" "a=$WORK/a.sieve,action=count"
    verdicts <<<"drop udp 203.0.113.1 $IN4 1 2"
    [ "$(hits a)" = 3 ] || fail "$(hits a) hits instead of 3"
}

# The default action of a set differs from the table's default.
natural_action() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve"
    verdicts <<<"drop udp 203.0.113.1 $IN4 1 2"
    sieve -q load --default drop "$IN_IF" "a=$WORK/a.sieve"
    verdicts <<<"pass udp 203.0.113.1 $IN4 1 2"
}

# 203.0.113.2 is in both sets: the set that is asked first decides.
order() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,action=pass" "b=$WORK/b.sieve,action=drop"
    verdicts <<END
pass udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.3 $IN4 1 2
pass udp 203.0.113.4 $IN4 1 2
END
    [ "$(hits b)" = 3 ] || fail "the second set was asked though the first had decided"
    sieve -q load "$IN_IF" "b=$WORK/b.sieve,action=drop" "a=$WORK/a.sieve,action=pass"
    verdicts <<END
drop udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.3 $IN4 1 2
pass udp 203.0.113.1 $IN4 1 2
END
}

# A set that only counts does not end the lookup.
count_then_drop() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,action=count" "b=$WORK/b.sieve,action=drop"
    verdicts <<END
pass udp 203.0.113.1 $IN4 1 2
drop udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.3 $IN4 1 2
END
    [ "$(hits a)/$(hits b)" = 6/6 ] || fail "hits $(hits a)/$(hits b) instead of 6/6"
}

# Sixteen sets, the maximum: the last one is still asked.
many_sets() {
    local sets=() i
    attach
    for i in {1..15}; do sets+=("s$i=$WORK/a.sieve,action=count"); done
    sieve -q load "$IN_IF" "${sets[@]}" "last=$WORK/b.sieve,action=drop"
    verdicts <<END
drop udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.3 $IN4 1 2
pass udp 203.0.113.1 $IN4 1 2
END
    [ "$(hits s15)" = 6 ] || fail "the fifteenth set counted $(hits s15) instead of 6"
    refused 2 sieve load "$IN_IF" "${sets[@]}" "last=$WORK/b.sieve" "more=$WORK/b.sieve"
}

ktap_run \
    "drop: members of every protocol, and nobody else" drop_set \
    "pass, under default drop" pass_set \
    "count changes no verdict" count_set \
    "count leaves it to the default" count_under_default_drop \
    "no action given: the opposite of the default" natural_action \
    "the first set that matches decides" order \
    "count, then ask the next set" count_then_drop \
    "sixteen sets" many_sets
