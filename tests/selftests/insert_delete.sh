#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Inserts single keys into a set in force and deletes them: at once, in place, and never missing a member.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
CHANGES=${CHANGES:-15}
GUESTS=$WORK/guests # the list for guests_come_and_go

# 2000 members, 600 guests (keys that are inserted and deleted), 300 non-members.
address_lists 20261122 members 2000 guests 600 non-members 300
varies+=(member guest)
# With this seed, no guest and no non-member is a false positive, neither at the start nor after the changes below.
"$SIEVE" -q build --kind ddlcbf --seed 1 --bits-per-key 40 -o "$WORK/set.sieve" "$WORK/members"

begin() {
    attach
    sieve -q load "$IN_IF" "set=$WORK/set.sieve"
}

# packets VERDICT FILE [COUNT]: prints a table for verdicts().
packets() { head -n "${3:-100}" "$2" | awk -v verdict="$1" -v to="$IN4" '{ print verdict, "udp", $1, to, 1, 2 }'; }

status_of() { sieve --json status "$IN_IF" | jq -r ".interfaces[0].sets[0].$1"; }

comes_and_goes() {
    local guest
    guest=$(head -n 1 "$WORK/guests")
    begin
    packets pass "$WORK/guests" 1 | verdicts
    sieve insert "$IN_IF" set "$guest" | grep -q 'inserted 1 of 1 key; 2,001 in it now' || fail "said otherwise"
    packets drop "$WORK/guests" 1 | verdicts
    [ "$(status_of keys)" = 2001 ] && [ "$(status_of live_changes)" = 1 ] || fail "status: $(sieve status)"
    sieve -q delete "$IN_IF" set "$guest"
    packets pass "$WORK/guests" 1 | verdicts
    [ "$(status_of keys)" = 2000 ] && [ "$(status_of live_changes)" = 2 ] || fail "status: $(sieve status)"
    sieve status "$IN_IF" | grep -q ', 2 keys inserted or deleted since' || fail "status does not tell"
    # Several keys at once, and the whole list on standard input; answers in JSON.
    sieve --json insert "$IN_IF" set --stdin <"$WORK/guests" >"$WORK/answer"
    [ "$(jq -c '[.inserted, .keys, .full]' "$WORK/answer")" = '[600,2600,[]]' ] || fail "$(cat "$WORK/answer")"
    packets drop "$WORK/guests" 600 | verdicts --repeat 1
    packets drop "$WORK/members" 2000 | verdicts --repeat 1
    packets pass "$WORK/non-members" 300 | verdicts --repeat 1
    # Deleting the guests again loses no member.
    sieve --json delete "$IN_IF" set --stdin <"$WORK/guests" >"$WORK/answer"
    [ "$(jq -c '[.deleted, .keys, .absent]' "$WORK/answer")" = '[600,2000,[]]' ] || fail "$(cat "$WORK/answer")"
    packets pass "$WORK/guests" 600 | verdicts --repeat 1
    packets drop "$WORK/members" 2000 | verdicts --repeat 1
    # A swap replaces the whole filter, insertions and deletions included.
    sieve -q insert "$IN_IF" set "$guest"
    sieve -q swap "$IN_IF" "set=$WORK/set.sieve"
    packets pass "$WORK/guests" 1 | verdicts
    [ "$(status_of live_changes)" = 0 ] || fail "the new filter has changes"
}

# guests_come_and_go SET GUESTS ARGUMENT...: inserts and deletes what the arguments name, for --stdin the lines of
# $GUESTS, while the packets of $WORK/flows come. GUESTS flows are of guests.
guests_come_and_go() {
    local set=$1 guests=$2 i
    shift 2
    start_stream "$WORK/flows" "$WORK/report"
    stream_round
    # Repeat this often, and until packets of all flows have met changes.
    for ((i = 0; i < CHANGES || stream_meanwhile < 900; i++)); do
        under_stream sieve -q insert "$IN_IF" "$set" "$@" <"$GUESTS"
        [ "$i" -gt 0 ] || stream_round
        under_stream sieve -q delete "$IN_IF" "$set" "$@" <"$GUESTS"
        [ "$i" -gt 0 ] || stream_round
    done
    echo "$i times; $stream_meanwhile packets during the changes"
    stop_stream || true
    jq -c '{packets, arrived, wrong, seconds}' "$WORK/report"
    jq -r '.examples[]' "$WORK/report"
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts"
    # Each guest was sent at least twice while it was out and once while it was in.
    jq -e --argjson guests "$guests" \
        '.groups.guests.old | .arrived >= 2 * $guests and .arrived + $guests <= .sent' "$WORK/report" >/dev/null ||
        fail "the guests did not come and go"
}

# Flows of members, guests and non-members, for guests_come_and_go.
flows() {
    {
        head -n 300 "$WORK/members" | awk -v to="$IN4" '{ print "members drop drop udp", $1, to, 1, 2 }'
        head -n 300 "$WORK/guests" | awk -v to="$IN4" '{ print "guests any any udp", $1, to, 1, 2 }'
        head -n 300 "$WORK/non-members" | awk -v to="$IN4" '{ print "non-members pass pass udp", $1, to, 1, 2 }'
    } | shuf --random-source="$OBJECT" >"$WORK/flows"
}

# Members match in every packet while hundreds of other keys are inserted and deleted.
under_traffic() {
    begin
    flows
    guests_come_and_go set 300 --stdin
    [ "$(status_of keys)" = 2000 ] || fail "keys: $(status_of keys)"
}

# Each kind of key: by the set's fields, and IPv6.
fields() {
    printf '%s\n' "192.0.2.1 53 udp" "2001:db8::1 443 tcp" |
        "$SIEVE" -q build --kind ddlcbf --key src,dport,proto --bits-per-key 200 -o "$WORK/flows.sieve" -
    attach
    ipv6_up
    sieve -q load "$IN_IF" "flows=$WORK/flows.sieve"
    sieve -q insert "$IN_IF" flows "192.0.2.1,80,tcp" "2001:db8::7 53 udp"
    verdicts <<END
drop tcp 192.0.2.1 $IN4 1 80
drop udp 192.0.2.1 $IN4 1 53
drop udp 2001:db8::7 $IN6 1 53
pass udp 192.0.2.1 $IN4 1 80
pass tcp 2001:db8::7 $IN6 1 53
END
    sieve -q delete "$IN_IF" flows "192.0.2.1 80 tcp"
    verdicts <<END
pass tcp 192.0.2.1 $IN4 1 80
drop udp 192.0.2.1 $IN4 1 53
END
    ipv6_down
}

# Prefixes that come and go, one inside the other: each is a member of its own.
prefixes() {
    local before set
    printf '%s\n' 10.1.0.0/22 192.0.2.1 2001:db8::/48 >"$WORK/nets"
    "$SIEVE" -q build --kind ddlcbf --seed 1 --bits-per-key 200 --v4-lengths 24 --max-probes 2 \
        -o "$WORK/nets.sieve" "$WORK/nets"
    attach
    ipv6_up
    for set in plain sure; do
        sieve -q load "$IN_IF" "$set=$WORK/nets.sieve$([ "$set" = plain ] || echo ",verify=$WORK/nets")"
        verdicts <<END
drop udp 10.1.2.3 $IN4 1 2
drop udp 192.0.2.1 $IN4 1 2
drop udp 2001:db8:0:1::1 $IN6 1 2
pass udp 10.1.4.3 $IN4 1 2
pass udp 10.2.4.3 $IN4 1 2
END
        # The inner one outlives the outer one. Only a verified set knows that it is not in yet.
        refused 1 sieve delete "$IN_IF" "$set" 10.7.0.0/24
        if [ "$set" = plain ]; then
            refused 1 sieve insert "$IN_IF" plain 10.1.1.0/24
            sieve -q insert --again "$IN_IF" plain 10.1.1.0/24 10.1.2.3
        else
            refused 1 sieve delete "$IN_IF" sure 10.1.1.0/24
            sieve -q insert "$IN_IF" sure 10.1.1.0/24 10.1.2.3
            # A verified set has a key once.
            refused 1 sieve insert "$IN_IF" sure 10.1.1.0/24
            refused 1 sieve insert --again "$IN_IF" sure 10.1.1.0/24
        fi
        printf '%s\n' 10.2.4.0-10.2.5.255 2001:db8:7::/48 | sieve -q insert "$IN_IF" "$set" --stdin
        sieve -q delete "$IN_IF" "$set" 10.1.0.0/22
        verdicts <<END
drop udp 10.1.1.9 $IN4 1 2
drop udp 10.1.2.3 $IN4 1 2
pass udp 10.1.2.4 $IN4 1 2
pass udp 10.1.0.1 $IN4 1 2
drop udp 10.2.4.3 $IN4 1 2
drop udp 10.2.5.255 $IN4 1 2
drop udp 2001:db8:7:1::1 $IN6 1 2
END
        sieve -q delete "$IN_IF" "$set" 10.1.1.0/24 10.1.2.3 10.2.4.0/23
        verdicts <<END
pass udp 10.1.1.9 $IN4 1 2
pass udp 10.1.2.3 $IN4 1 2
pass udp 10.2.4.3 $IN4 1 2
drop udp 192.0.2.1 $IN4 1 2
END
        # The kernel itself sends packets here, so the counters change.
        before=$(status_of keys),$(status_of live_changes)
        refused 3 sieve insert "$IN_IF" "$set" 10.9.0.0/24 2001:db0::/28
        refused 3 sieve insert "$IN_IF" "$set" 10.9.0.1/24
        [ "$before" = "$(status_of keys),$(status_of live_changes)" ] || fail "something has changed"
    done
    sieve list "$IN_IF" sure | sort >"$WORK/listed"
    printf '%s\n' 192.0.2.1/32 2001:db8:7::/48 2001:db8::/48 | sort | diff - "$WORK/listed" || fail "list"
    sieve -q insert "$IN_IF" sure 10.5.0.0/16 --grow --for 1h
    verdicts <<END
drop udp 10.5.255.255 $IN4 1 2
drop udp 192.0.2.1 $IN4 1 2
pass udp 10.6.0.0 $IN4 1 2
END
    sieve list "$IN_IF" sure | grep -q '^10.5.0.0/16 # until' || fail "$(sieve list "$IN_IF" sure)"
    ipv6_down
    "$SIEVE" -q build --kind ddlcbf --bits-per-key 40 -o "$WORK/single.sieve" "$WORK/members"
    sieve -q load "$IN_IF" "plain=$WORK/single.sieve"
    refused 3 sieve insert "$IN_IF" plain 10.9.0.0/24
    refused 2 sieve build --kind ddlcbf --v4-lengths 24,8 -o "$WORK/x" "$WORK/nets"
    refused 2 sieve build --kind ddlcbf --v4-lengths 33 -o "$WORK/x" "$WORK/nets"
    refused 2 sieve build --kind blocked --v4-lengths 24 -o "$WORK/x" "$WORK/nets"
}

# Prefixes among several fields: an inner one that stays a member while an outer one comes and goes under traffic.
flow_prefixes() {
    local i set
    printf '%s\n' '10.1.1.0/24 53 udp' '192.0.2.0/24 * tcp' '2001:db8::/48 443 tcp' >"$WORK/flow-nets"
    "$SIEVE" -q build --kind ddlcbf --key src,dport,proto --seed 1 --memory 64K --v4-lengths 24 \
        -o "$WORK/flow-nets.sieve" "$WORK/flow-nets"
    "$SIEVE" query "$WORK/flow-nets.sieve" '10.1.1.9 53 udp' '192.0.2.7 81 tcp' >"$WORK/answer" ||
        fail "$(cat "$WORK/answer")"
    attach
    ipv6_up
    for set in plain sure; do
        sieve -q load "$IN_IF" \
            "$set=$WORK/flow-nets.sieve$([ "$set" = plain ] || echo ",verify=$WORK/flow-nets")"
        verdicts <<END
drop udp 10.1.1.9 $IN4 1 53
pass udp 10.1.1.9 $IN4 1 54
pass tcp 10.1.1.9 $IN4 1 53
drop tcp 192.0.2.9 $IN4 1 77
pass udp 192.0.2.9 $IN4 1 77
drop tcp 2001:db8:0:1::1 $IN6 1 443
pass udp 10.1.4.3 $IN4 1 53
END
        printf '%s\n' '10.1.0.0/21,53,udp' '10.2.0.0-10.2.1.255 80 tcp' '192.0.2.128/25 9 tcp' |
            sieve -q insert "$IN_IF" "$set" --stdin
        verdicts <<END
drop udp 10.1.4.3 $IN4 1 53
drop tcp 10.2.1.3 $IN4 1 80
pass tcp 10.2.2.3 $IN4 1 80
END
        sieve -q delete "$IN_IF" "$set" '10.1.0.0/21 53 udp' '10.2.0.0/23 80 tcp' '192.0.2.0/24 * tcp'
        verdicts <<END
drop udp 10.1.1.9 $IN4 1 53
pass udp 10.1.4.3 $IN4 1 53
pass tcp 10.2.1.3 $IN4 1 80
pass tcp 192.0.2.9 $IN4 1 9
drop tcp 192.0.2.129 $IN4 1 9
END
        refused 1 sieve delete "$IN_IF" "$set" '10.7.0.0/24 53 udp'
        refused 3 sieve insert "$IN_IF" "$set" '10.9.0.0/24 * *'
        refused 3 sieve insert "$IN_IF" "$set" '10.9.0.0/24 53 udp' '2001:db0::/28 53 udp'
        sieve -q insert --present-ok "$IN_IF" "$set" '192.0.2.0/24 * tcp'
    done
    sieve -q delete "$IN_IF" sure '192.0.2.0/24 * tcp'
    sieve list "$IN_IF" sure | sort >"$WORK/listed"
    printf '%s\n' '10.1.1.0/24 53 udp' '192.0.2.128/25 9 tcp' '2001:db8::/48 443 tcp' | sort |
        diff - "$WORK/listed" || fail "list"
    ipv6_down

    for ((i = 1; i < 100; i++)); do
        echo "members drop drop udp 10.1.1.$i $IN4 1 53"
        echo "guests any any udp 10.1.4.$i $IN4 1 53"
        echo "non-members pass pass udp 10.1.1.$i $IN4 1 54"
    done >"$WORK/flows"
    guests_come_and_go sure 99 '10.1.0.0/21 53 udp' '10.1.1.0/25 53 udp'
}

# Exact sets know their members: nothing matches by mistake, every key can be listed, and the set grows by itself.
exact() {
    local before guest
    guest=$(head -n 1 "$WORK/guests")
    "$SIEVE" -q build --kind exact --seed 1 -o "$WORK/exact.sieve" "$WORK/members"
    attach
    sieve -q load "$IN_IF" "set=$WORK/exact.sieve"
    sieve insert "$IN_IF" set "$guest" | grep -q 'inserted 1 of 1 key; 2,001 in it now, exactly' ||
        fail "said otherwise"
    packets drop "$WORK/guests" 1 | verdicts
    refused 1 sieve insert "$IN_IF" set "$guest"
    refused 2 sieve insert --again "$IN_IF" set "$guest"
    refused 3 sieve insert "$IN_IF" set 10.9.0.0/24
    sieve -q insert --present-ok "$IN_IF" set "$guest"
    sieve -q delete "$IN_IF" set "$guest"
    packets pass "$WORK/guests" 1 | verdicts
    before=$(status_of keys),$(status_of live_changes)
    [ "$before" = 2000,2 ] || fail "status: $before"
    refused 1 sieve delete "$IN_IF" set "$guest"
    refused 1 sieve delete "$IN_IF" set "$guest" 203.0.113.9
    [ "$before" = "$(status_of keys),$(status_of live_changes)" ] || fail "something has changed"
    # The set grows, and becomes one of both families.
    { cat "$WORK/guests" && echo 2001:db8::7; } >"$WORK/more"
    sieve --json insert "$IN_IF" set --stdin <"$WORK/more" >"$WORK/answer"
    [ "$(jq -c '[.inserted, .keys, .full, .grown]' "$WORK/answer")" = '[601,2601,[],1]' ] ||
        fail "$(cat "$WORK/answer")"
    packets drop "$WORK/guests" 600 | verdicts --repeat 1
    packets drop "$WORK/members" 2000 | verdicts --repeat 1
    packets pass "$WORK/non-members" 300 | verdicts --repeat 1
    sieve list "$IN_IF" set | sort >"$WORK/listed"
    sort "$WORK/members" "$WORK/more" | diff - "$WORK/listed" || fail "the list differs"
    ipv6_up
    verdicts <<END
drop udp 2001:db8::7 $IN6 1 2
pass udp 2001:db8::8 $IN6 1 2
END
    sieve -q delete "$IN_IF" set 2001:db8::7
    verdicts <<END
pass udp 2001:db8::7 $IN6 1 2
END
    ipv6_down
    sieve -q delete "$IN_IF" set --stdin <"$WORK/guests"
    packets pass "$WORK/guests" 600 | verdicts --repeat 1
    [ "$(sieve list "$IN_IF" set | wc -l)" = 2000 ] || fail "the list is not as it was"
    flows
    guests_come_and_go set 300 --stdin
    [ "$(status_of keys)" = 2000 ] || fail "keys: $(status_of keys)"
}

# The same for keys of several fields.
exact_flows() {
    local before
    ten_by_ten() { for i in $(seq 1 "$1"); do for j in $(seq 0 9); do echo "10.$2.$i.$j 53 udp"; done; done; }
    ten_by_ten 100 1 >"$WORK/flow-members"
    ten_by_ten 60 2 >"$WORK/flow-guests"
    echo '2001:db8::1 443 tcp' >>"$WORK/flow-members"
    "$SIEVE" -q build --kind exact --key src,dport,proto --seed 1 -o "$WORK/flows.sieve" "$WORK/flow-members"
    "$SIEVE" inspect "$WORK/flows.sieve" | grep -q 'rows of 16 tags, records of 24 bytes' ||
        fail "$("$SIEVE" inspect "$WORK/flows.sieve")"
    "$SIEVE" query "$WORK/flows.sieve" '10.1.7.3 53 udp' '2001:db8::1 443 tcp' >/dev/null || fail "a member is absent"
    "$SIEVE" query "$WORK/flows.sieve" '10.1.7.3 53 tcp' >/dev/null && fail "a stranger is present"
    refused 2 "$SIEVE" -q build --kind exact --key src,dport,proto -o "$WORK/none.sieve" - <<<'10.0.0.0/8 53 udp'
    attach
    ipv6_up
    sieve -q load "$IN_IF" "set=$WORK/flows.sieve"
    sieve insert "$IN_IF" set '10.2.1.0 53 udp' | grep -q 'inserted 1 of 1 key; 1,002 in it now, exactly' ||
        fail "said otherwise"
    refused 1 sieve insert "$IN_IF" set '10.2.1.0 53 udp'
    refused 2 sieve insert --again "$IN_IF" set '10.2.1.0 53 udp'
    refused 2 sieve insert --for 1h "$IN_IF" set '10.2.9.9 53 udp'
    refused 3 sieve insert "$IN_IF" set '10.2.0.0/16 53 udp'
    refused 1 sieve delete "$IN_IF" set '10.2.1.0 53 tcp' \
        '10.2.1.1 53 udp'
    verdicts <<END
drop udp 10.1.7.3 $IN4 1 53
pass tcp 10.1.7.3 $IN4 1 53
drop udp 10.2.1.0 $IN4 1 53
pass udp 10.2.1.1 $IN4 1 53
drop tcp 2001:db8::1 $IN6 1 443
pass tcp 2001:db8::1 $IN6 1 80
END
    ipv6_down
    sieve -q delete "$IN_IF" set '10.2.1.0 53 udp'
    before=$(status_of keys)
    [ "$before" = 1001 ] || fail "status: $before"
    sieve --json insert "$IN_IF" set --stdin <"$WORK/flow-guests" >"$WORK/answer"
    [ "$(jq -c '[.inserted, .keys, .full]' "$WORK/answer")" = '[600,1601,[]]' ] || fail "$(cat "$WORK/answer")"
    sieve list "$IN_IF" set | sort >"$WORK/listed"
    sort "$WORK/flow-members" "$WORK/flow-guests" | diff - "$WORK/listed" || fail "the list differs"
    sieve -q delete "$IN_IF" set --stdin <"$WORK/flow-guests"
    {
        awk -v to="$IN4" 'NR <= 300 { print "members drop drop udp", $1, to, 1, 53 }' "$WORK/flow-members"
        awk -v to="$IN4" 'NR <= 300 { print "guests any any udp", $1, to, 1, 53 }' "$WORK/flow-guests"
        awk -v to="$IN4" 'NR <= 300 { print "non-members pass pass udp", $1, to, 1, 54 }' "$WORK/flow-members"
    } | shuf --random-source="$OBJECT" >"$WORK/flows"
    GUESTS=$WORK/flow-guests guests_come_and_go set 300 --stdin
    [ "$(status_of keys)" = 1001 ] || fail "keys: $(status_of keys)"
}

refusals() {
    local before member guest
    member=$(head -n 1 "$WORK/members")
    guest=$(head -n 1 "$WORK/guests")
    begin
    before=$(state)
    refused 1 sieve insert "$IN_IF" set "$member"
    refused 1 sieve delete "$IN_IF" set "$guest"
    refused 1 sieve delete "$IN_IF" set "$guest" 203.0.113.9
    refused 1 sieve insert "$IN_IF" other "$guest"
    refused 2 sieve insert "$IN_IF" set
    refused 3 sieve insert "$IN_IF" set "$guest" 10.0.0.0/8
    refused 3 sieve insert "$IN_IF" set "$guest" nonsense
    unchanged "$before"
    # Only what this command has is offered.
    refused 3 sieve insert "$IN_IF" set "$IN4"
    unchanged "$before"
    # Insert the key a second time on purpose. It then stays until it is deleted as often.
    sieve -q insert --again "$IN_IF" set "$member"
    sieve -q delete "$IN_IF" set "$member"
    packets drop "$WORK/members" 1 | verdicts
    "$SIEVE" -q build --kind blocked -o "$WORK/blocked.sieve" "$WORK/members"
    sieve -q swap "$IN_IF" "set=$WORK/blocked.sieve"
    before=$(state)
    refused 3 sieve insert "$IN_IF" set "$guest"
    refused 3 sieve delete "$IN_IF" set "$member"
    unchanged "$before"
    # A set of ranges lists them, and kind exact would not take its list.
    printf '%s\n' 192.0.2.1 10.1.0.0/22 10.9.0.0-10.9.0.7 >"$WORK/ranges"
    sieve -q swap "$IN_IF" "set=$WORK/ranges,kind=ranges"
    refused 3 sieve insert "$IN_IF" set 10.8.0.0/24
    sieve list "$IN_IF" set >"$WORK/listed"
    [ "$(xargs <"$WORK/listed")" = "10.1.0.0/22 10.9.0.0/29 192.0.2.1/32" ] || fail "$(cat "$WORK/listed")"
    many_ranges >"$WORK/fewest"
    sieve -q swap "$IN_IF" "set=$WORK/ranges,kind=ranges"
    for _ in list itself; do
        sieve list "$IN_IF" set >"$WORK/listed"
        diff <(sort "$WORK/listed") <(sort "$WORK/fewest") >"$WORK/out" || fail "$(head "$WORK/out")"
        sieve -q swap "$IN_IF" "set=$WORK/listed,kind=ranges"
    done
}

# Writes addresses, prefixes and ranges to $WORK/ranges, and prints the fewest prefixes that they are together.
many_ranges() {
    python3 - "$WORK/ranges" <<'END'
import ipaddress, random, sys
random.seed(4)
fewest = []
with open(sys.argv[1], "w") as file:
    for family, begin in ((ipaddress.IPv4Address, "10.0.0.0"), (ipaddress.IPv6Address, "2001:db8::")):
        networks = []
        for _ in range(3000):
            shift = random.choice((0, 32, 64)) if family is ipaddress.IPv6Address else 0
            first = family(begin) + (random.randrange(2 ** random.choice((20, 24))) << shift)
            last = first + (random.choice((0, 0, 1, 6, 255, random.randrange(4000))) << shift)
            file.write(f"{first}-{last}\n" if first != last else f"{first}\n")
            networks += ipaddress.summarize_address_range(first, last)
        fewest += ipaddress.collapse_addresses(networks)
print(*fewest, sep="\n")
END
}

# More keys than there is room for: keys that fit are in; the command names the others, which changed nothing.
overflow() {
    local inserted
    head -n 60 "$WORK/members" | "$SIEVE" -q build --kind ddlcbf --bits-per-key 40 -o "$WORK/small.sieve" -
    attach
    sieve -q load "$IN_IF" "set=$WORK/small.sieve"
    sieve --json insert "$IN_IF" set --stdin <"$WORK/guests" >"$WORK/answer" && fail "all fitted?"
    inserted=$(jq .inserted "$WORK/answer")
    [ "$inserted" -gt 0 ] && [ "$(jq '.full | length' "$WORK/answer")" -gt 0 ] || fail "$(cat "$WORK/answer")"
    jq -e '.inserted + (.full | length) + (.matched_already | length) == 600' "$WORK/answer" >/dev/null ||
        fail "$(cat "$WORK/answer")"
    [ "$(status_of keys)" = $((60 + inserted)) ] || fail "keys: $(status_of keys)"
    jq -r '.full[]' "$WORK/answer" >"$WORK/full"
    packets drop "$WORK/members" 60 | verdicts --repeat 1
    grep -vxFf "$WORK/full" "$WORK/guests" >"$WORK/in"
    packets drop "$WORK/in" 600 | verdicts --repeat 1
    refused_with 1 'none of|does not fit|matches already' sieve insert "$IN_IF" set "$(tail -n 1 "$WORK/full")"
    # Now there is room again. Keys that matched already were not inserted, and must not be deleted.
    jq -r '.matched_already[]' "$WORK/answer" >>"$WORK/full"
    grep -vxFf "$WORK/full" "$WORK/guests" >"$WORK/in"
    sieve -q delete "$IN_IF" set --stdin <"$WORK/in"
    packets drop "$WORK/members" 60 | verdicts --repeat 1
}

# Two controllers at the same time take turns, and no change is lost.
two_controllers() {
    local first second first_half second_half
    begin
    mapfile -t first_half < <(head -n 300 "$WORK/guests")
    mapfile -t second_half < <(tail -n 300 "$WORK/guests")
    insist sieve -q insert "$IN_IF" set "${first_half[@]}" &
    first=$!
    insist sieve -q insert "$IN_IF" set "${second_half[@]}" &
    second=$!
    wait "$first"
    wait "$second"
    [ "$(status_of keys)" = 2600 ] || fail "keys: $(status_of keys)"
    packets drop "$WORK/guests" 600 | verdicts --repeat 1
}

ktap_run \
    "keys come and go, at once" comes_and_goes \
    "$CHANGES times 600 keys in and out under traffic" under_traffic \
    "keys of several fields, IPv6" fields \
    "prefixes, one inside the other" prefixes \
    "prefixes among several fields, the outer one under traffic" flow_prefixes \
    "exact sets: no doubt, and growth by itself" exact \
    "exact sets of flows" exact_flows \
    "what is refused changes nothing" refusals \
    "more keys than fit" overflow \
    "two controllers" two_controllers
