#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Swapping sets while packets flow: no packet lost, none misjudged.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
SWAPS=${SWAPS:-60} ROUNDS=${ROUNDS:-3}

# Two lists of different length with 200 addresses in common, and non-members that match neither filter.
address_lists 20261120 common 200 a 4600 b 20000 non-members 1000
# So many bits that probably no non-member (below 1e-6 in all) matches one of the two sets and not the other. The
# verdict on such a non-member would depend on the moment.
"$SIEVE" -q build --bits-per-key 40 -o "$WORK/a.sieve" "$WORK/common" "$WORK/a"
"$SIEVE" -q build --bits-per-key 40 -o "$WORK/b.sieve" "$WORK/common" "$WORK/b"

# flows_of GROUP FILE COUNT: prints lines for the traffic, with the verdicts under a.sieve and under b.sieve.
flows_of() {
    head -n "$3" "$2" >"$WORK/some"
    paste -d ' ' <(said_of "$WORK/a.sieve" "$WORK/some") <(said_of "$WORK/b.sieve" "$WORK/some") |
        awk -v group="$1" -v to="$IN4" '{ print group, $2, $4, (NR % 2 ? "udp" : "tcp"), $1, to, 1000 + NR, 53 }'
}
{
    flows_of common "$WORK/common" 150
    flows_of only-a "$WORK/a" 150
    flows_of only-b "$WORK/b" 150
    flows_of non-members "$WORK/non-members" 150
} | shuf --random-source="$SIEVE" >"$WORK/flows"

judge() {
    jq -c '{packets, arrived, begin, "end": .end, cut, wrong, seconds}' "$WORK/report"
    jq -r '.examples[]' "$WORK/report"
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts"
}

# judge_change FLOWS: checks that both tables have judged every one of these flows.
judge_change() {
    judge
    jq -e --argjson flows "$(wc -l <"$1")" '[([.groups[].old.sent] | add), ([.groups[].new.sent] | add)] |
        all(. >= $flows)' "$WORK/report" >/dev/null || fail "not all flows were judged by both tables"
}

# The program has seen every packet: a packet that did not arrive was dropped by the program and not lost elsewhere.
none_lost() {
    local seen
    seen=$(($(counter packets) - $(counter outcomes.non_ip)))
    [ "$seen" = "$(jq .packets "$WORK/report")" ] ||
        fail "the program saw $seen of $(jq .packets "$WORK/report") packets"
    [ "$(counter dropped.packets)" = "$(jq '.packets - .arrived' "$WORK/report")" ] || fail "dropped by somebody else"
}

# One swap: every verdict before the flip is the old set's, and every verdict after it is the new set's.
one_swap() {
    local round
    for ((round = 0; round < ROUNDS; round++)); do
        reset_interfaces
        attach
        sieve -q load "$IN_IF" "set=$WORK/a.sieve"
        start_stream "$WORK/flows" "$WORK/report"
        stream_round
        tell_stream begin
        sieve -q swap "$IN_IF" "set=$WORK/b.sieve"
        tell_stream end
        stream_round
        stop_stream || true
        judge_change "$WORK/flows"
        none_lost
    done
}

# A new table: other sets, another order, another default, in one step. Packets that were dropped now pass.
one_load() {
    local round
    awk '{ $3 = $3 == "drop" ? "pass" : "drop" } { print }' "$WORK/flows" >"$WORK/inverted"
    for ((round = 0; round < ROUNDS; round++)); do
        reset_interfaces
        attach
        sieve -q load "$IN_IF" "first=$WORK/a.sieve,action=drop"
        start_stream "$WORK/inverted" "$WORK/report"
        stream_round
        tell_stream begin
        sieve -q load --default drop "$IN_IF" "seen=$WORK/a.sieve,action=count" "friends=$WORK/b.sieve,action=pass"
        tell_stream end
        stream_round
        stop_stream || true
        judge_change "$WORK/inverted"
        none_lost
    done
}

# From source addresses to destination addresses: fields, size and hash keys change together.
other_fields() {
    image "$WORK/destination.sieve" dst 192.0.2.1 "$IN6"
    {
        awk '$1 == "common"' "$WORK/flows" | sed "s/^common drop drop/common drop pass/"
        echo "to drop drop udp $(head -n 1 "$WORK/common") 192.0.2.1 1 2"
        echo "to pass drop udp $(head -n 1 "$WORK/non-members") 192.0.2.1 1 2"
        echo "to pass drop tcp 2001:db8::7 $IN6 1 2"
    } >"$WORK/fields"
    attach
    sieve -q load "$IN_IF" "set=$WORK/a.sieve"
    start_stream "$WORK/fields" "$WORK/report"
    stream_round
    tell_stream begin
    sieve -q swap "$IN_IF" "set=$WORK/destination.sieve"
    tell_stream end
    stream_round
    stop_stream || true
    judge_change "$WORK/fields"
    none_lost
}

# Many swaps: members of both sets never arrive, non-members of both always do.
many_swaps() {
    local i
    awk '$1 != "common" && $1 != "non-members" { $2 = $3 = "any" } { print }' "$WORK/flows" >"$WORK/steady"
    attach
    sieve -q load "$IN_IF" "set=$WORK/a.sieve"
    start_stream "$WORK/steady" "$WORK/report"
    stream_round
    # Swap this often, and until packets of all flows have met swaps.
    for ((i = 0; i < SWAPS || stream_meanwhile < 1200; i++)); do
        if ((i % 2)); then
            under_stream sieve -q swap "$IN_IF" "set=$WORK/a.sieve"
        else
            under_stream sieve -q swap "$IN_IF" "set=$WORK/b.sieve"
        fi
        [ "$i" -gt 0 ] || stream_round
    done
    echo "$i swaps; $stream_meanwhile packets during them"
    stop_stream || true
    judge
    none_lost
    # Both sets must have been in force, or the test has shown nothing.
    jq -e '.groups | [.["only-a"], .["only-b"]] | all(.old.arrived > 0 and .old.arrived < .old.sent)' \
        "$WORK/report" >/dev/null || fail "the sets did not alternate"
}

ktap_run \
    "one swap, every verdict exact" one_swap \
    "one load of another table, every verdict exact" one_load \
    "a swap to other fields" other_fields \
    "$SWAPS swaps under traffic" many_swaps
