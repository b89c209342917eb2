#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The program on an interface: every way to attach it works, and the controller finds it.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/bad.sieve" src 203.0.113.7 2001:db8:bad::7

# What an attached program must do: the controller finds it, it takes a set, and it drops members and nothing else.
works() {
    local mode=$1
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve"
    [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0].mode')" = "$mode" ] || fail "not in $mode mode"
    verdicts <<END
drop udp 203.0.113.7 $IN4 1000 53
drop tcp 2001:db8:bad::7 $IN6 1000 80
pass udp 203.0.113.8 $IN4 1000 53
pass tcp 2001:db8:bad::8 $IN6 1000 80
END
    [ "$(counter dropped.packets)" = 6 ] && [ "$(counter passed.packets)" -ge 6 ] || fail "counted wrongly"
}

# Attached by ip link, without a set: everything passes. Sets then come into the running program.
by_ip_link() {
    local before
    attach "$1" xdp
    before=$(program_id)
    verdicts <<<"pass udp 203.0.113.7 $IN4 1000 53"
    works "$2"
    [ "$(program_id)" = "$before" ] || fail "load has replaced the program that was there"
    sieve -q unload "$IN_IF"
    [ -z "$(program_id)" ] || fail "unload left a program"
}
ip_link_xdp() { by_ip_link xdp native; }
ip_link_xdpdrv() { by_ip_link xdpdrv native; }
ip_link_xdpgeneric() { by_ip_link xdpgeneric skb; }

# `load` attaches the program if the interface has none.
by_load() {
    sieve -q load "$@" "$IN_IF" "bad=$WORK/bad.sieve" 2>/dev/null
    [ -n "$(program_id)" ] || fail "load attached nothing"
}
load_native() { by_load -m native; works native; }
load_skb() { by_load -m skb; works skb; }
load_auto() { by_load; works native; }

load_other_mode() {
    attach xdpgeneric
    refused 2 sieve load -m native "$IN_IF" "bad=$WORK/bad.sieve"
    sieve -q load -m skb "$IN_IF" "bad=$WORK/bad.sieve"
}

# Frames that span several buffers.
jumbo() {
    make_link 9000
    trap 'make_link' EXIT
    ! attach xdp xdp 2>/dev/null || skip "this kernel's veth takes ordinary programs at an MTU of 9000"
    attach xdp xdp.frags
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve"
    verdicts <<END
drop udp 203.0.113.7 $IN4 1000 53 size=8900
drop tcp 2001:db8:bad::7 $IN6 1000 80 size=8900
pass udp 203.0.113.8 $IN4 1000 53 size=8900
pass udp 203.0.113.8 $IN4 1000 53
drop udp 203.0.113.7 $IN4 1000 53
END
    # The byte counter covers the whole frame, header and payload, not only the first buffer.
    [ "$(counter 'sets[0].bytes')" -gt $((6 * 8900)) ] || fail "counted $(counter 'sets[0].bytes') bytes"
}

jumbo_load() {
    make_link 9000
    trap 'make_link' EXIT
    sieve -q load -m native "$IN_IF" "bad=$WORK/bad.sieve" 2>/dev/null
    verdicts <<END
drop udp 203.0.113.7 $IN4 1000 53 size=8900
pass udp 203.0.113.8 $IN4 1000 53 size=8900
END
}

vlan_tags() {
    attach
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve"
    verdicts <<END
drop udp 203.0.113.7 $IN4 1000 53 vlan=5
pass udp 203.0.113.8 $IN4 1000 53 vlan=5
drop udp 203.0.113.7 $IN4 1000 53 vlan=5,6,7,8
pass udp 203.0.113.8 $IN4 1000 53 vlan=5,6,7,8
drop tcp 2001:db8:bad::7 $IN6 1000 80 vlan=5,6
END
}

# The kernel lets a port change its program only while the bridge has none.
a_port() {
    ip -n "$IN" link add up0 type bridge 2>"$WORK/err" || skip "no bridges: $(cat "$WORK/err")"
    sieve -q load up0 "bad=$WORK/bad.sieve"
    ip -n "$IN" link set "$IN_IF" master up0
    refused_with 4 'take the program off the bridge or bond that this interface belongs to first$' \
        sieve load "$IN_IF" "bad=$WORK/bad.sieve"
    sieve -q unload up0
    ip -n "$IN" link del up0
    works native
}

ktap_run \
    "ip link xdp" ip_link_xdp \
    "ip link xdpdrv" ip_link_xdpdrv \
    "ip link xdpgeneric" ip_link_xdpgeneric \
    "load attaches, native" load_native \
    "load attaches, skb" load_skb \
    "load attaches, by its own choice" load_auto \
    "load at a port of a bridge that has a program" a_port \
    "load keeps to the mode that is attached" load_other_mode \
    "ip link xdp.frags with jumbo frames" jumbo \
    "load with jumbo frames" jumbo_load \
    "VLAN tags" vlan_tags
