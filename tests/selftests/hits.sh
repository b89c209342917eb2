#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Which entries of a list packets matched: `list --hits` says it of exactly those, through changes of keys, swaps, loads
# and reloads.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"

# 6 addresses of IPv4 and 2 of IPv6.
members() {
    printf '203.0.113.%d\n' 1 2 3 4 5 6
    printf '2001:db8::%d\n' 1 2
}

# hit SET ADDRESS...: exactly these entries of the set are marked.
hit() {
    local set=$1
    shift
    sieve list "$IN_IF" "$set" --hits >"$WORK/hits"
    diff <(printf '%s\n' "$@" | sed '/^$/d' | sort) <(sed -n 's/ yes$//p' "$WORK/hits" | sort) || fail "other hits"
    sieve list "$IN_IF" "$set" --never-hit | diff - <(sed -n 's/ no$//p' "$WORK/hits") || fail "others were never hit"
}

# drops ADDRESS...: a packet of each is dropped.
drops() { printf '%s\n' "$@" | sed "/:/! s/.*/drop udp & $IN4 1 2/; /:/ s/.*/drop udp & $IN6 1 2/" | verdicts; }

marks() {
    members >"$WORK/list"
    sieve -q load "$IN_IF" "bad=$WORK/list,hits"
    hit bad ''
    drops 203.0.113.2 2001:db8::2
    hit bad 203.0.113.2 2001:db8::2
    verdicts <<<"pass udp 203.0.113.9 $IN4 1 2"
    # Nobody's packets.
    sieve query "$IN_IF" 203.0.113.3 >/dev/null
    sieve explain "$IN_IF" 203.0.113.4 >/dev/null || true
    hit bad 203.0.113.2 2001:db8::2
    diff <(members) <(sieve list "$IN_IF" bad) || fail "another list"
    sieve --json list "$IN_IF" bad | jq -e '.hits and
        ([.keys[] | select(.hit) | .key] == ["203.0.113.2", "2001:db8::2"]) and (.keys | length == 8)' >/dev/null ||
        fail "$(sieve --json list "$IN_IF" bad)"
    sieve --json list "$IN_IF" bad --never-hit | jq -e '.keys | length == 6 and all(.hit | not)' >/dev/null ||
        fail "$(sieve --json list "$IN_IF" bad --never-hit)"
}

keys_come_and_go() {
    members >"$WORK/list"
    sieve -q load "$IN_IF" "bad=$WORK/list,hits"
    drops 203.0.113.1 203.0.113.2 2001:db8::1
    sieve -q delete "$IN_IF" bad 203.0.113.1
    sieve -q insert "$IN_IF" bad 198.18.0.1
    hit bad 203.0.113.2 2001:db8::1
    sieve -q insert "$IN_IF" bad 203.0.113.1
    hit bad 203.0.113.2 2001:db8::1
    # So many that a larger table takes the place of this one.
    python3 -c 'for i in range(5000): print(f"198.19.{i // 250}.{i % 250}")' | sieve -q insert "$IN_IF" bad --stdin
    drops 198.19.3.7
    hit bad 198.19.3.7 203.0.113.2 2001:db8::1
    refused 2 sieve insert "$IN_IF" bad 198.18.0.2 --for 1h
}

replaced() {
    members >"$WORK/list"
    sieve -q load "$IN_IF" "bad=$WORK/list,hits"
    drops 203.0.113.1 203.0.113.2 2001:db8::1
    # 203.0.113.1 goes.
    { members | grep -vx 203.0.113.1 && echo 198.18.0.1; } >"$WORK/next"
    sieve -q swap "$IN_IF" "bad=$WORK/next,hits"
    hit bad 203.0.113.2 2001:db8::1
    drops 198.18.0.1
    sieve -q load "$IN_IF" "bad=$WORK/list,hits" "other=$WORK/next,hits,action=count"
    hit bad 203.0.113.2 2001:db8::1
    hit other ''
    # Without marks there are none to keep.
    sieve -q swap "$IN_IF" "bad=$WORK/list"
    refused 2 sieve list "$IN_IF" bad --hits
    refused 2 sieve list "$IN_IF" bad --never-hit
    sieve list "$IN_IF" bad >/dev/null
    sieve -q swap "$IN_IF" "bad=$WORK/list,hits"
    hit bad ''
}

# Each of these flows has sent packets before the swaps, and one of them none since, so none of their marks may be
# missing.
under_traffic() {
    local i
    members >"$WORK/list"
    python3 -c 'for i in range(40): print(f"198.19.0.{i}")' >>"$WORK/list"
    sieve -q load "$IN_IF" "bad=$WORK/list,hits"
    drops 198.19.0.6
    for i in 1 2 3 4 5; do echo "f$i drop drop udp 198.19.0.$i $IN4 1 2"; done >"$WORK/flows"
    start_stream "$WORK/flows" "$WORK/report"
    stream_round
    for i in 1 2 3 4 5; do
        sieve -q swap "$IN_IF" "bad=$WORK/list,hits"
        hit bad 198.19.0.{1,2,3,4,5,6}
    done
    stop_stream
}

refusals() {
    members >"$WORK/list"
    refused 2 sieve load "$IN_IF" "bad=$WORK/list,hits,kind=ranges"
    echo 203.0.113.0/24 >"$WORK/prefixes"
    refused 2 sieve load "$IN_IF" "bad=$WORK/prefixes,hits"
    refused 2 sieve build --fpr 1e-3 --hits -o "$WORK/none.sieve" "$WORK/list"
    echo a001:db8::1 >"$WORK/unused"
    refused 2 sieve build --hits -o "$WORK/none.sieve" "$WORK/unused"
    sieve -q load "$IN_IF" "bad=$WORK/list,hits" "more=$WORK/list"
    "$SIEVE" -q build --hits -o "$WORK/hits.sieve" "$WORK/list"
    "$SIEVE" inspect "$WORK/hits.sieve" >"$WORK/inspected"
    grep -q 'one of them a hit mark' "$WORK/inspected" || fail "$(cat "$WORK/inspected")"
}

# configured LINE: a set of the service, with one more line.
configured() {
    cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
[[interface]]
name = "$IN_IF"
sets = ["bad"]
[set.bad]
sources = ["lists/bad.txt"]
hits = true
${1-}
END
}
daemon_keeps() {
    [ -x "$SIEVED" ] || skip "xdp-sieved is not built"
    fresh_lists
    service_manager
    configured "$1"
    members >"$LISTS/bad.txt"
    start
    await_listed 203.0.113.1
    hit bad ''
    drops 203.0.113.1 203.0.113.2 2001:db8::1
    { members | grep -vx 203.0.113.1 && echo 198.18.0.1; } >"$WORK/next"
    cp "$WORK/next" "$LISTS/bad.next"
    mv "$LISTS/bad.next" "$LISTS/bad.txt"
    await_listed 198.18.0.1
    hit bad 203.0.113.2 2001:db8::1
    stop
    start
    hit bad 203.0.113.2 2001:db8::1
    stop
}
await_listed() { await listed "$1"; }
listed() { sieve list "$IN_IF" bad 2>&1 | grep -qx "$1"; }
refreshed() { daemon_keeps ''; }
live() { daemon_keeps 'kind = "exact"'; }

ktap_run \
    "marks are those of packets" marks \
    "keys come, go and move" keys_come_and_go \
    "a swap and a load keep marks" replaced \
    "swaps under traffic lose none" under_traffic \
    "where nothing is marked" refusals \
    "the service keeps marks when a list is new" refreshed \
    "and those of a set that changes in place" live
