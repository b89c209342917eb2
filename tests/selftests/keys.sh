#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The fields of a key: each combination of fields, both address families, and packets that lack a field.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup

# one_set KEY ENTRY...
one_set() {
    image "$WORK/set.sieve" "$@"
    [ -n "$(program_id)" ] || attach
    sieve -q load "$IN_IF" "set=$WORK/set.sieve,action=drop"
}

by_source() {
    one_set src 203.0.113.1 2001:db8::1
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
drop udp 203.0.113.1 192.0.2.9 3 4
drop tcp 2001:db8::1 $IN6 1 2
pass udp $IN4 203.0.113.1 1 2
pass tcp $IN6 2001:db8::1 1 2
END
}

by_destination() {
    one_set dst 203.0.113.1 2001:db8::1
    verdicts <<END
pass udp 203.0.113.1 $IN4 1 2
pass tcp 2001:db8::1 $IN6 1 2
drop udp $IN4 203.0.113.1 1 2
drop udp 192.0.2.9 203.0.113.1 3 4
drop tcp $IN6 2001:db8::1 1 2
END
}

by_pair() {
    one_set src,dst "203.0.113.1 192.0.2.1" "2001:db8::1,2001:db8::2"
    verdicts <<END
drop udp 203.0.113.1 192.0.2.1 1 2
drop icmp 203.0.113.1 192.0.2.1
pass udp 203.0.113.1 192.0.2.2 1 2
pass udp 203.0.113.2 192.0.2.1 1 2
pass udp 192.0.2.1 203.0.113.1 1 2
drop tcp 2001:db8::1 2001:db8::2 1 2
pass tcp 2001:db8::2 2001:db8::1 1 2
pass tcp 2001:db8::1 2001:db8::3 1 2
END
}

by_flow() {
    one_set src,dst,sport,dport,proto "203.0.113.1 192.0.2.1 1000 53 udp" \
        "203.0.113.1 192.0.2.1 1000 80 tcp" "2001:db8::1 2001:db8::2 2000 443 tcp"
    verdicts <<END
drop udp 203.0.113.1 192.0.2.1 1000 53
pass tcp 203.0.113.1 192.0.2.1 1000 53
drop tcp 203.0.113.1 192.0.2.1 1000 80
pass udp 203.0.113.1 192.0.2.1 1001 53
pass udp 203.0.113.1 192.0.2.1 1000 54
pass udp 203.0.113.1 192.0.2.1 53 1000
pass udp 203.0.113.2 192.0.2.1 1000 53
pass udp 203.0.113.1 192.0.2.2 1000 53
drop tcp 2001:db8::1 2001:db8::2 2000 443
pass udp 2001:db8::1 2001:db8::2 2000 443
pass tcp 2001:db8::1 2001:db8::2 443 2000
END
}

by_port_and_protocol() {
    one_set dport,proto "53 udp" "23 tcp"
    verdicts <<END
drop udp 203.0.113.1 $IN4 1000 53
drop udp 2001:db8::1 $IN6 2000 53
drop tcp 203.0.113.1 $IN4 1000 23
pass tcp 203.0.113.1 $IN4 1000 53
pass udp 203.0.113.1 $IN4 53 1000
END
}

# A packet without ports never matches a set whose keys have ports. Sets of addresses alone still match it.
no_ports() {
    one_set src,sport "203.0.113.1 0" "203.0.113.1 1000"
    verdicts <<END
drop udp 203.0.113.1 $IN4 1000 1
drop udp 203.0.113.1 $IN4 0 1
pass udp 203.0.113.1 $IN4 fragment
pass icmp 203.0.113.1 $IN4
pass 47 203.0.113.1 $IN4
END
    [ "$(counter outcomes.fragment)" = 3 ] || fail "the fragments were not counted"
    one_set src,proto "203.0.113.1 udp" "2001:db8::1 udp"
    verdicts <<END
drop udp 203.0.113.1 $IN4 fragment
drop udp 203.0.113.1 $IN4 1 2
drop udp 2001:db8::1 $IN6 fragment
pass icmp 203.0.113.1 $IN4
END
}

# IPv4 and IPv6 in one set, and sets of different fields one after the other.
mixed() {
    image "$WORK/flows.sieve" src,dst,sport,dport,proto "203.0.113.1 192.0.2.1 1000 53 udp"
    image "$WORK/hosts.sieve" src 203.0.113.1 2001:db8::1
    attach
    sieve -q load "$IN_IF" "ok=$WORK/flows.sieve,action=pass" "bad=$WORK/hosts.sieve,action=drop"
    verdicts <<END
pass udp 203.0.113.1 192.0.2.1 1000 53
drop udp 203.0.113.1 192.0.2.1 1000 54
drop udp 2001:db8::1 $IN6 1000 53
pass udp 2001:db8::2 $IN6 1000 53
END
}

# The feed's spelling of an address does not matter: the packet's address is the same.
notations() {
    one_set src 2001:DB8:0:0:0:0:0:00A1 ::ffff:203.0.113.9
    verdicts <<END
drop udp 2001:db8::a1 $IN6 1 2
drop udp 203.0.113.9 $IN4 1 2
END
}

# Prefixes and ranges, with single addresses in between. The first and the last address are members, their neighbours
# are not. Each packet asks at several lengths, so false positives are not rare: the test asks the filter which they
# are.
prefixes() {
    local non_member
    image "$WORK/set.sieve" src 203.0.113.0/25 198.18.0.0/15 192.0.2.9-192.0.2.20 192.0.2.77 2001:db8:bad::/48
    for non_member in 203.0.112.255 203.0.113.128 198.17.255.255 198.20.0.0 192.0.2.8 192.0.2.21 \
        2001:db8:bac:ffff:ffff:ffff:ffff:ffff 2001:db8:bae::; do
        "$SIEVE" -q query "$WORK/set.sieve" "$non_member" || echo "pass udp $non_member $IN4 1 2"
    done | sed "/:/s/$IN4/$IN6/" >"$WORK/non-members"
    [ "$(wc -l <"$WORK/non-members")" -ge 7 ] || fail "the filter mistakes too many: $(cat "$WORK/non-members")"
    attach
    sieve -q load "$IN_IF" "set=$WORK/set.sieve,action=drop"
    verdicts <<END
drop udp 203.0.113.0 $IN4 1 2
drop tcp 203.0.113.127 $IN4 1 2
drop udp 198.18.0.0 $IN4 1 2
drop udp 198.19.255.255 $IN4 1 2
drop udp 192.0.2.9 $IN4 1 2
drop udp 192.0.2.20 $IN4 1 2
drop udp 192.0.2.77 $IN4 1 2
drop udp 2001:db8:bad:: $IN6 1 2
drop udp 2001:db8:bad:ffff:ffff:ffff:ffff:ffff $IN6 1 2
$(cat "$WORK/non-members")
END
}

ktap_run \
    "source" by_source \
    "destination" by_destination \
    "source and destination" by_pair \
    "five-tuple" by_flow \
    "destination port and protocol" by_port_and_protocol \
    "packets without ports" no_ports \
    "sets of different keys" mixed \
    "other notations of an address" notations \
    "prefixes and ranges" prefixes
