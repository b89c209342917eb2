#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Removing one set, the last set, and the program: nothing of it is left anywhere.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/a.sieve" src 203.0.113.1
image "$WORK/b.sieve" src 203.0.113.2
image "$WORK/c.sieve" src 203.0.113.3

names() { sieve --json status "$IN_IF" | jq -r '[.interfaces[0].sets[].name] | join(" ")'; }
hits() { counter "sets[] | select(.name == \"$1\") | .packets"; }

load_three() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve" "b=$WORK/b.sieve" "c=$WORK/c.sieve"
}

# The other sets keep their order and their counters.
remove_one() {
    load_three
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
drop udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.3 $IN4 1 2
END
    sieve -q remove "$IN_IF" b
    [ "$(names)" = "a c" ] || fail "left: $(names)"
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
pass udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.3 $IN4 1 2
END
    [ "$(hits a) $(hits c)" = "6 6" ] || fail "the counters of the others: $(hits a) $(hits c)"
}

# A set of the same name that is loaded later starts to count at zero.
comes_again() {
    load_three
    verdicts <<<"drop udp 203.0.113.1 $IN4 1 2"
    sieve -q remove "$IN_IF" a
    sieve -q load "$IN_IF" "c=$WORK/c.sieve" "a=$WORK/a.sieve"
    [ "$(hits a)" = 0 ] || fail "starts at $(hits a)"
    verdicts <<<"drop udp 203.0.113.1 $IN4 1 2"
    [ "$(hits a)" = 3 ] || fail "counted $(hits a) instead of 3"
}

# A swap, on the other hand, keeps the set's counters.
swap_keeps_counters() {
    load_three
    verdicts <<<"drop udp 203.0.113.1 $IN4 1 2"
    sieve -q swap "$IN_IF" "a=$WORK/b.sieve"
    verdicts <<END
pass udp 203.0.113.1 $IN4 1 2
drop udp 203.0.113.2 $IN4 1 2
END
    [ "$(hits a) $(hits b)" = "6 0" ] || fail "counted $(hits a) and $(hits b)"
}

remove_last() {
    attach
    sieve -q load --default drop "$IN_IF" "a=$WORK/a.sieve"
    refused 2 sieve remove "$IN_IF" a
    sieve -q remove --force "$IN_IF" a
    [ "$(names)" = "" ] || fail "left: $(names)"
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
drop udp 203.0.113.9 $IN4 1 2
END
    sieve -q load --force "$IN_IF" "a=$WORK/a.sieve"
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
pass udp 203.0.113.9 $IN4 1 2
END
}

remove_unknown() {
    local before
    load_three
    before=$(state)
    refused 1 sieve remove "$IN_IF" other
    refused 1 sieve swap "$IN_IF" "other=$WORK/a.sieve"
    unchanged "$before"
}

# The kernel frees the filter maps as soon as no packet can be using them.
map_of() { sieve --json status "$IN_IF" | jq ".interfaces[0].sets[] | select(.name == \"$1\") | .map_id"; }

# gone KIND ID: waits until the object has gone, since the kernel frees in the background.
gone() { await not_there "$@"; }
not_there() { ! bpftool "$1" show id "$2" >/dev/null 2>&1; }

old_filters_go() {
    local a b
    load_three
    a=$(map_of a) b=$(map_of b)
    bpftool map show id "$a" >/dev/null || fail "the map in use is not there: the test proves nothing"
    sieve -q swap "$IN_IF" "a=$WORK/c.sieve"
    gone map "$a"
    sieve -q remove "$IN_IF" b
    gone map "$b"
}

# leaves_nothing: after unload there are no programs, maps, pins or files.
leaves_nothing() {
    local program maps id
    program=$(sieve --json status "$IN_IF" | jq '.interfaces[0].program_id') # not the dispatcher's
    maps="$(bpftool -j prog show id "$program" | jq -r '.map_ids[]') $(map_of a) $(map_of b)"
    for id in $maps; do bpftool map show id "$id" >/dev/null || fail "map $id is not there"; done
    sieve -q swap "$IN_IF" "a=$WORK/c.sieve"
    sieve -q unload "$IN_IF"
    [ -z "$(program_id)" ] || fail "unload left a program on the interface"
    gone prog "$program"
    for id in $maps; do gone map "$id"; done
    verdicts <<<"pass udp 203.0.113.1 $IN4 1 2"
    refused 1 sieve unload "$IN_IF"
}

# Lists the files that appeared wherever a controller could leave one. Other processes may work on this machine in
# their own folders (mktemp's), so a name counts only if it is outside these folders and stays.
listing() {
    # Some machines lack some of these folders.
    # Unit tests and benchmarks have folders of their own, and other network namespaces their own locks and notes.
    {
        find /sys/fs/bpf /run /var/lib /tmp -maxdepth 4 -not -path '/run/netns*' -not -path '/tmp/tmp.*/*' \
            -not -path '/tmp/sieve-*' -not -path '/tmp/xdp-sieve-bench-*' -not -path '/run/xdp-sieve/net-*' \
            2>/dev/null || true
        find /run/xdp-sieve -name "net-$(stat -L -c %i "/run/netns/$IN").*" 2>/dev/null || true
    } | { grep -i -e sieve -e dispatch || true; } | sort
}

unload_after_load() {
    local before
    before=$(listing)
    sieve -q load "$IN_IF" "a=$WORK/a.sieve" "b=$WORK/b.sieve" 2>"$WORK/err" || fail "$(cat "$WORK/err")"
    leaves_nothing
    await nothing_new "$before"
}
nothing_new() {
    comm -13 <(echo "$1") <(listing) >"$WORK/awaited"
    [ ! -s "$WORK/awaited" ]
}

unload_after_ip_link() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve" "b=$WORK/b.sieve"
    leaves_nothing
}

# ip link can remove what ip link attached, sets included.
ip_link_off() {
    local program maps id
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve"
    program=$(sieve --json status "$IN_IF" | jq '.interfaces[0].program_id') # not the dispatcher's
    maps="$(bpftool -j prog show id "$program" | jq -r '.map_ids[]') $(map_of a)"
    ip -n "$IN" link set dev "$IN_IF" xdp off
    gone prog "$program"
    for id in $maps; do gone map "$id"; done
    refused 1 sieve stats "$IN_IF"
}

# A table that lacks sets in force takes them away only if that is said. The helper `sieve` says it always.
load_replaces() {
    local before
    load() { inside "$IN" "$SIEVE" load "$IN_IF" --allow-lockout "$@"; }
    load "a=$WORK/a.sieve" "b=$WORK/b.sieve" >"$WORK/out"
    before=$(state)
    refused 2 load "c=$WORK/a.sieve"
    refused 2 load "a=$WORK/a.sieve" --force
    unchanged "$before"
    load "b=$WORK/b.sieve" "a=$WORK/a.sieve" >"$WORK/out"
    load "a=$WORK/a.sieve" "b=$WORK/b.sieve" "c=$WORK/a.sieve" >"$WORK/out"
    load "c=$WORK/a.sieve" --replace >"$WORK/out"
    [ "$(sieve --json status "$IN_IF" | jq -c '[.interfaces[0].sets[].name]')" = '["c"]' ] || fail "$(sieve status)"
}

ktap_run \
    "load names what it would remove" load_replaces \
    "remove one set" remove_one \
    "a name that comes again counts from zero" comes_again \
    "a swap keeps the counters" swap_keeps_counters \
    "remove the last set" remove_last \
    "remove and swap a set that is not there" remove_unknown \
    "old filters are freed" old_filters_go \
    "unload after load leaves nothing" unload_after_load \
    "unload after ip link leaves nothing" unload_after_ip_link \
    "ip link xdp off leaves nothing" ip_link_off
