#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Keys that end, keys of verified sets, and the keys that a set can list.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
address_lists 20261124 members 300 guests 2000
"$SIEVE" -q build --kind ddlcbf --seed 1 --bits-per-key 80 -o "$WORK/live.sieve" "$WORK/members"
first=$(sed -n 1p "$WORK/guests") second=$(sed -n 2p "$WORK/guests") third=$(sed -n 3p "$WORK/guests")
member=$(head -n 1 "$WORK/members")
varies+=(member first third)

status_of() { sieve --json status "$IN_IF" | jq -r ".interfaces[0].sets[0].$1"; }
overdue() { [ "$(status_of overdue)" = "$1" ]; }
listed() { sieve list "$IN_IF" set 2>/dev/null | cut -d' ' -f1 | sort; }

begin() {
    attach
    sieve -q load "$IN_IF" "set=$WORK/live.sieve" "other=$WORK/live.sieve,action=count"
}

ends() {
    begin
    refused 1 sieve list "$IN_IF" set
    sieve -q insert --for 4h "$IN_IF" set "$second"
    sieve -q insert "$IN_IF" set "$third"
    # The map outlives the command and the swap of another set.
    sieve -q swap "$IN_IF" "other=$WORK/live.sieve"
    sieve -q set "$IN_IF" set last
    sieve -q set "$IN_IF" set first
    # Commands that change something take out what is overdue, so none follows until that is asked.
    sieve -q insert --for 1s "$IN_IF" set "$first"
    [ "$(status_of ending)" = 2 ] || fail "$(sieve status)"
    [ "$(listed)" = "$(printf '%s\n' "$first" "$second" | sort)" ] || fail "listed: $(listed)"
    sieve list "$IN_IF" set 2>/dev/null | grep -q "^$second # until 20" || fail "$(sieve list "$IN_IF" set)"
    await overdue 1
    sieve status "$IN_IF" | grep -q '2 keys inserted for a time, 1 overdue' || fail "$(sieve status)"
    # No packet looks at the time.
    verdicts --repeat 1 <<<"drop udp $first $IN4 1 2"
    sieve expire "$IN_IF" | grep -q 'set: 1 key taken out' || fail "said otherwise"
    verdicts --repeat 1 <<END
pass udp $first $IN4 1 2
drop udp $second $IN4 1 2
drop udp $third $IN4 1 2
drop udp $member $IN4 1 2
END
    sieve expire | grep -q 'no key is overdue' || fail "something is overdue"
    [ "$(status_of keys) $(status_of ending) $(status_of overdue)" = "302 1 0" ] || fail "$(sieve status)"
    # Deleting a key removes its end, too.
    sieve -q delete "$IN_IF" set "$second"
    [ "$(status_of ending)" = 0 ] || fail "$(sieve status)"
    verdicts --repeat 1 <<<"pass udp $second $IN4 1 2"
}

# Of an exact set. It lists all its keys, and those that end with their ends. Packets look at the time.
exact() {
    "$SIEVE" -q build --kind exact --seed 1 -o "$WORK/exact.sieve" "$WORK/members"
    attach
    sieve -q load "$IN_IF" "set=$WORK/exact.sieve"
    [ "$(listed)" = "$(sort "$WORK/members")" ] || fail "the list differs"
    sieve insert --for 4h "$IN_IF" set "$second" 2>"$WORK/said"
    grep -q 'set set: a table that can state these ends was swapped in' "$WORK/said" || fail "$(cat "$WORK/said")"
    # Growth keeps the ends.
    tail -n 1000 "$WORK/guests" | sieve --json insert --for 2h "$IN_IF" set --stdin >"$WORK/answer"
    [ "$(jq -c '[.inserted, .grown]' "$WORK/answer")" = '[1000,1]' ] || fail "$(cat "$WORK/answer")"
    sieve insert --for 8h "$IN_IF" set "$second" | grep -q '(1 stay longer now)' || fail "?"
    refused 1 sieve insert --for 1h "$IN_IF" set "$member"
    sieve -q insert --for 1s "$IN_IF" set "$first"
    [ "$(status_of keys) $(status_of ending)" = "1302 1002" ] || fail "$(sieve status)"
    # Not into a pipe: grep leaves before the list has ended.
    sieve list "$IN_IF" set >"$WORK/list"
    grep -q "^$second # until 20" "$WORK/list" || fail "$(grep '#' "$WORK/list" | head -n 3)"
    verdicts --repeat 1 <<<"drop udp $member $IN4 1 2"
    await overdue 1
    verdicts --repeat 1 <<<"pass udp $first $IN4 1 2"
    ! sieve list "$IN_IF" set | grep -q "^$first" || fail "it is still listed"
    sieve status "$IN_IF" | grep -q '1,002 keys inserted for a time, 1 ended' || fail "$(sieve status)"
    # What has ended comes again.
    sieve -q insert --for 1s "$IN_IF" set "$first"
    await overdue 1
    sieve expire "$IN_IF" | grep -q 'set: 1 key taken out' || fail "said otherwise"
    sieve -q insert "$IN_IF" set "$second"
    verdicts --repeat 1 <<END
pass udp $first $IN4 1 2
drop udp $second $IN4 1 2
drop udp $member $IN4 1 2
END
    tail -n 1000 "$WORK/guests" | sieve -q delete "$IN_IF" set --stdin
    [ "$(status_of keys) $(status_of ending) $(status_of overdue)" = "301 0 0" ] || fail "$(sieve status)"
    [ "$(listed)" = "$({ cat "$WORK/members" && echo "$second"; } | sort)" ] || fail "the list differs"
}

# The next command takes overdue keys out, whatever else it does.
next_command() {
    begin
    sieve -q insert --for 1s "$IN_IF" set "$first"
    await overdue 1
    sieve -q insert "$IN_IF" set "$second"
    verdicts --repeat 1 <<END
pass udp $first $IN4 1 2
drop udp $second $IN4 1 2
END
}

again() {
    begin
    sieve -q insert --for 2h "$IN_IF" set "$first"
    sieve insert --for 4h "$IN_IF" set "$first" | grep -q 'inserted 1 of 1 key (1 stay longer now)' || fail "?"
    # A shorter time takes nothing away.
    sieve -q insert --for 1s "$IN_IF" set "$first"
    sieve -q insert --for 1s "$IN_IF" set "$second"
    await overdue 1
    sieve -q expire "$IN_IF"
    verdicts --repeat 1 <<END
drop udp $first $IN4 1 2
pass udp $second $IN4 1 2
END
    sieve insert "$IN_IF" set "$first" | grep -q '1 stay for good now' || fail "?"
    [ "$(status_of ending) $(status_of keys)" = "0 301" ] || fail "$(sieve status)"
    refused 1 sieve insert --for 4h "$IN_IF" set "$member"
    sieve -q insert --present-ok "$IN_IF" set "$first" "$member" || fail "not idempotent"
    sieve -q delete --absent-ok "$IN_IF" set "$second" 203.0.113.77 || fail "not idempotent"
    [ "$(status_of keys)" = 301 ] || fail "$(sieve status)"
}

verified() {
    local i
    attach
    sieve -q load "$IN_IF" "set=$WORK/live.sieve,verify=$WORK/members"
    [ "$(listed)" = "$(sort "$WORK/members")" ] || fail "lists other keys"
    sieve -q insert "$IN_IF" set "$first"
    sieve -q insert --for 1s "$IN_IF" set "$second"
    verdicts --repeat 1 <<END
drop udp $first $IN4 1 2
drop udp $second $IN4 1 2
pass udp $third $IN4 1 2
END
    [ "$(listed)" = "$(sort "$WORK/members" - <<<"$first
$second")" ] || fail "lists other keys"
    await overdue 1
    sieve -q expire
    sieve -q delete "$IN_IF" set "$member"
    refused 1 sieve delete "$IN_IF" set "$third"
    refused_with 1 'matches already|in the set already' sieve insert "$IN_IF" set "$first"
    verdicts --repeat 1 <<END
drop udp $first $IN4 1 2
pass udp $second $IN4 1 2
pass udp $member $IN4 1 2
drop udp $(sed -n 2p "$WORK/members") $IN4 1 2
END
    # All of a few hundred keys come and go, and no other member is missed.
    for i in 1 2; do
        head -n 200 "$WORK/guests" | tail -n 190 | sieve -q insert "$IN_IF" set --stdin
        head -n 200 "$WORK/guests" | tail -n 190 | sieve -q delete "$IN_IF" set --stdin
    done
    [ "$(status_of keys)" = 300 ] || fail "$(sieve status)"
    tail -n +2 "$WORK/members" | sed "s/.*/drop udp & $IN4 1 2/" | verdicts --repeat 1
}

grows() {
    attach
    head -n 50 "$WORK/members" >"$WORK/few"
    sieve -q load "$IN_IF" "set=$WORK/few,kind=ddlcbf,bits-per-key=48,verify" 2>/dev/null
    sieve --json insert "$IN_IF" set --stdin <"$WORK/guests" >"$WORK/answer" && fail "all fitted?"
    [ "$(jq '.full | length' "$WORK/answer")" -gt 0 ] || fail "$(cat "$WORK/answer")"
    sieve -q insert --for 4h --grow --present-ok "$IN_IF" set --stdin <"$WORK/guests"
    [ "$(status_of keys)" = 2050 ] || fail "$(sieve status)"
    sed "s/.*/drop udp & $IN4 1 2/" "$WORK/few" "$WORK/guests" | verdicts --repeat 1
    [ "$(listed | wc -l)" = 2050 ] || fail "lists $(listed | wc -l)"
    [ "$(status_of ending)" -gt 0 ] || fail "the ends are lost: $(sieve status)"
}

refusals() {
    local before
    begin
    before=$(state)
    refused 2 sieve insert --for 4 "$IN_IF" set "$first"
    refused 2 sieve insert --for 0s "$IN_IF" set "$first"
    refused 2 sieve insert --for 4h --again "$IN_IF" set "$first"
    refused 2 sieve insert --grow "$IN_IF" set "$first"
    refused 1 sieve insert --for 4h "$IN_IF" other2 "$first"
    refused 1 sieve list "$IN_IF" other2
    "$SIEVE" -q build --kind blocked -o "$WORK/plain.sieve" "$WORK/members"
    unchanged "$before"
    sieve -q load "$IN_IF" "set=$WORK/plain.sieve,verify=$WORK/members"
    before=$(state)
    refused 3 sieve insert --for 4h "$IN_IF" set "$first"
    unchanged "$before"
}

ktap_run \
    "keys end" ends \
    "keys of an exact set end" exact \
    "the next command takes overdue keys out" next_command \
    "a key that is inserted again" again \
    "a verified set" verified \
    "a set that grows" grows \
    "what is refused changes nothing" refusals
