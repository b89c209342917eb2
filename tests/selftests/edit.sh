#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# One thing of the table in force changes, and everything else stays: inserted keys, verification, counters.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
address_lists 20261123 members 300 guests 20
# With this seed, no guest is a false positive.
"$SIEVE" -q build --kind ddlcbf --seed 1 --bits-per-key 80 -o "$WORK/live.sieve" "$WORK/members"
image "$WORK/a.sieve" src 203.0.113.1
image "$WORK/b.sieve" src 203.0.113.1 203.0.113.2

names() { sieve --json status "$IN_IF" | jq -r '[.interfaces[0].sets[].name] | join(" ")'; }
hits() { counter "sets[] | select(.name == \"$1\") | .packets"; }
maps() { sieve --json status "$IN_IF" | jq -c '[.interfaces[0].sets[] | [.name, .map_id, .keys]] | sort'; }

# Three sets, one of them with an inserted key.
begin() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve" "live=$WORK/live.sieve" "b=$WORK/b.sieve,action=count"
    guest=$(head -n 1 "$WORK/guests")
    sieve -q insert "$IN_IF" live "$guest"
    verdicts --repeat 1 <<END
drop udp 203.0.113.1 $IN4 1 2
drop udp $guest $IN4 1 2
pass udp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.9 $IN4 1 2
END
}

action() {
    local before
    begin
    before=$(maps)
    sieve set "$IN_IF" a action=count | grep -q 'a: count, was drop; its counters start at zero; order a, live, b' ||
        fail "said otherwise"
    verdicts --repeat 1 <<END
pass udp 203.0.113.1 $IN4 1 2
drop udp $guest $IN4 1 2
END
    [ "$(hits a) $(hits live) $(hits b)" = "1 2 2" ] || fail "counted $(hits a) $(hits live) $(hits b)"
    sieve -q set --keep-counters "$IN_IF" a action=drop
    verdicts --repeat 1 <<<"drop udp 203.0.113.1 $IN4 1 2"
    [ "$(hits a)" = 2 ] || fail "kept $(hits a)"
    [ "$(maps)" = "$before" ] || fail "the filters changed: $before, $(maps)"
    sieve set "$IN_IF" a action=drop | grep -q 'nothing to change' || fail "a change?"
    # Exactly zero, even in a slot that was used before.
    sieve -q set "$IN_IF" a action=pass
    sieve -q set "$IN_IF" a action=drop
    [ "$(hits a)" = 0 ] || fail "starts at $(hits a)"
}

order() {
    begin
    [ "$(names)" = "a live b" ] || fail "$(names)"
    sieve -q set "$IN_IF" b before=a action=pass
    [ "$(names)" = "b a live" ] || fail "$(names)"
    verdicts --repeat 1 <<END
pass udp 203.0.113.1 $IN4 1 2
drop udp $guest $IN4 1 2
END
    sieve -q set "$IN_IF" b last
    [ "$(names)" = "a live b" ] || fail "$(names)"
    verdicts --repeat 1 <<<"drop udp 203.0.113.1 $IN4 1 2"
    sieve --json set "$IN_IF" a after=live >"$WORK/answer"
    [ "$(jq -c '[.changed, .order, .counters_kept]' "$WORK/answer")" = '[true,["live","a","b"],true]' ] ||
        fail "$(cat "$WORK/answer")"
    [ "$(hits a)" = 2 ] || fail "counted $(hits a)"
}

adds() {
    begin
    sieve -q add "$IN_IF" "friends=$WORK/members,action=pass,kind=blocked,verify" before=live
    [ "$(names)" = "a friends live b" ] || fail "$(names)"
    verdicts --repeat 1 <<END
drop udp 203.0.113.1 $IN4 1 2
drop udp $guest $IN4 1 2
pass udp $(head -n 1 "$WORK/members") $IN4 1 2
END
    [ "$(hits a)" = 2 ] || fail "counted $(hits a)"
    sieve -q add "$IN_IF" "more=$WORK/b.sieve"
    verdicts --repeat 1 <<<"drop udp 203.0.113.2 $IN4 1 2"
    # With the whole action, and on probation like any other change.
    sieve -q add "$IN_IF" "slow=$WORK/b.sieve,limit=1/40" --confirm 60
    sieve status "$IN_IF" | grep -q 'limit=1/40' || fail "$(sieve status "$IN_IF")"
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].probation.seconds_left > 0' >/dev/null
    sieve -q confirm "$IN_IF"
}

default_changes() {
    begin
    sieve -q set "$IN_IF" b action=pass
    sieve default "$IN_IF" drop | grep -q 'default drop, was pass' || fail "said otherwise"
    verdicts --repeat 1 <<END
drop udp 203.0.113.9 $IN4 1 2
pass udp 203.0.113.2 $IN4 1 2
drop udp $guest $IN4 1 2
END
    sieve default "$IN_IF" drop | grep -q 'default drop already' || fail "a change?"
    sieve -q default "$IN_IF" pass
    verdicts --repeat 1 <<<"pass udp 203.0.113.9 $IN4 1 2"
}

# Loading over an allowlist, or shutting its last door, is refused unless it is meant.
guards() {
    local before
    attach
    sieve -q load --default drop "$IN_IF" "friends=$WORK/a.sieve"
    before=$(state)
    refused 2 sieve load "$IN_IF" "friends=$WORK/b.sieve"
    refused 2 sieve load --default drop "$IN_IF" "friends=$WORK/b.sieve,action=drop" "b=$WORK/b.sieve"
    refused 2 sieve remove "$IN_IF" friends
    refused 2 sieve set "$IN_IF" friends action=count
    unchanged "$before"
    sieve -q default "$IN_IF" pass
    sieve -q set "$IN_IF" friends action=drop
    before=$(state)
    refused 2 sieve default "$IN_IF" drop
    unchanged "$before"
    sieve -q default --force "$IN_IF" drop
    sieve -q load --force "$IN_IF" "friends=$WORK/b.sieve"
    verdicts --repeat 1 <<<"pass udp 203.0.113.9 $IN4 1 2"
}

refusals() {
    local before
    begin
    before=$(state)
    refused 1 sieve set "$IN_IF" other action=drop
    refused 1 sieve set "$IN_IF" a before=other
    refused 1 sieve add "$IN_IF" "new=$WORK/a.sieve" after=other
    refused 2 sieve set "$IN_IF" a action
    refused 2 sieve set "$IN_IF" a first=b
    refused 2 sieve set "$IN_IF" a action=reject
    refused 2 sieve set "$IN_IF" a action=drop action=pass
    refused 2 sieve set "$IN_IF" a first last
    refused 2 sieve set "$IN_IF" a before=a
    refused 2 sieve add "$IN_IF" "new=$WORK/a.sieve" action=drop
    refused 2 sieve add "$IN_IF" "b=$WORK/a.sieve"
    refused 3 sieve add "$IN_IF" "new=$WORK/missing"
    refused 2 sieve default "$IN_IF" count
    refused 2 sieve stats --reset "$IN_IF" --watch 1
    unchanged "$before"
    refused 1 sieve default lo drop
}

# Every packet is in one of the two accounts, and the default's packets are counted without a counter of their own.
reset() {
    begin
    [ "$(counter by_default)" = 2 ] || fail "by default: $(counter by_default)"
    sieve stats "$IN_IF" | grep -q 'by default (pass)' || fail "stats does not say it"
    sieve --json stats --reset "$IN_IF" >"$WORK/told"
    [ "$(jq -c '.interfaces[0] | [.by_default, .dropped.packets, .sets[0].packets]' "$WORK/told")" = '[2,2,1]' ] ||
        fail "$(cat "$WORK/told")"
    [ "$(counter packets) $(counter by_default) $(hits a) $(hits b)" = "0 0 0 0" ] ||
        fail "starts at $(counter packets) $(counter by_default) $(hits a) $(hits b)"
    verdicts --repeat 1 <<END
drop udp 203.0.113.1 $IN4 1 2
pass udp 203.0.113.9 $IN4 1 2
END
    [ "$(counter dropped.packets) $(counter by_default) $(hits a)" = "1 1 1" ] || fail "$(sieve stats "$IN_IF")"
}

# At tc's hook, too.
egress() {
    printf '%s\n' 203.0.113.1 >"$WORK/dst"
    sieve -q load --hook egress "$IN_IF" "a=$WORK/dst,key=dst"
    sieve -q set "$IN_IF" a action=count
    sieve -q add "$IN_IF" "b=$WORK/dst,key=dst" first
    sieve -q default --force "$IN_IF" drop
    [ "$(names)" = "b a" ] || fail "$(names)"
    [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0] | .default + " " + .sets[1].action')" = "drop count" ] ||
        fail "$(sieve status)"
    sieve -q unload --hook egress "$IN_IF"
}

# Under traffic, no packet sees half of a change: each flow has its old or its new verdict.
under_traffic() {
    local i
    begin
    {
        echo "a drop drop udp 203.0.113.1 $IN4 1 2"
        echo "guests drop drop udp $guest $IN4 1 2"
        echo "default pass pass udp 203.0.113.9 $IN4 1 2"
    } >"$WORK/flows"
    start_stream "$WORK/flows" "$WORK/report"
    for i in 1 2 3; do
        under_stream sieve -q set "$IN_IF" b first
        under_stream sieve -q add "$IN_IF" "more=$WORK/b.sieve,action=count" before=a
        under_stream sieve -q set "$IN_IF" b last
        under_stream sieve -q remove "$IN_IF" more
        stream_round
    done
    stop_stream || fail "$(jq -c . "$WORK/report")"
}

ktap_run \
    "a set's action" action \
    "a set's place in the order" order \
    "one set more" adds \
    "the default" default_changes \
    "an allowlist is not turned around by mistake" guards \
    "what is refused changes nothing" refusals \
    "counters are reset, and the default's packets counted" reset \
    "at tc's egress" egress \
    "under traffic" under_traffic
